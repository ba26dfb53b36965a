//! Sandboxes of namespaces.

mod needs_bwrap {
    use super::super::{
        ALLOWED, ATTEMPTS, assert_exits, assert_untouched, few_programs, project, run, successes,
    };
    use crate::kit::{Test, signal, until};
    use std::fs;

    #[test]
    fn an_agent_reaches_only_its_workspace_and_its_own_files() {
        let test = project();
        let mut command = test.ralph_command(&[
            "run",
            "x",
            "--name",
            "a",
            "-m",
            "1",
            "--no-promise",
            "--sandbox",
            "--",
            "sh",
            "-c",
            ATTEMPTS,
        ]);
        command.env("SSH_AUTH_SOCK", "/somewhere");
        let done = test.start_command(command).end().exits(0);
        done.says("the agent runs in a sandbox (bwrap)");
        assert_eq!(successes(&test), ALLOWED, "{}", test.read("noise"));
        assert_untouched(&test);
        assert_eq!(test.status("a")["sandbox"], "bwrap");
        test.ralph(&["status", "a"]).exits(0).says("Sandbox: bwrap");
    }

    #[test]
    fn it_works_for_an_ordinary_user_too() {
        use std::os::unix::fs::PermissionsExt as _;
        let test = project();
        fs::set_permissions(test.root(), fs::Permissions::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            test.sh("chown -R 65534:65534 .. ");
        }
        let run = ["run", "x", "--name", "a", "-m", "1", "--no-promise"];
        let agent = ["--sandbox", "--", "sh", "-c", ATTEMPTS];
        let command = test.unprivileged(&[&run[..], &agent].concat());
        test.start_command(command).end().exits(0);
        assert_eq!(successes(&test), ALLOWED, "{}", test.read("noise"));
    }

    #[test]
    fn an_agent_writes_the_paths_that_its_preset_names() {
        let test = project();
        test.write(
            "../home/.config/ralph/settings.toml",
            "[agents.mine]\ncommand = 'mine'\nown-paths = ['~/.mine/', '~/.new/', '~/.mine.json', '~/.missing.json']\n",
        );
        test.write("../home/.mine.json", "{}");
        let test = test.on_path(
            "mine",
            "#!/bin/sh\ncat >/dev/null\nfor f in .mine/a .new/b .mine.json .missing.json .other; do echo x > ~/$f; done\n",
        );
        test.ralph(&[
            "run",
            "x",
            "--agent",
            "mine",
            "-m",
            "1",
            "--no-promise",
            "--sandbox",
        ]);
        let exists = |path: &str| test.root().join("home").join(path).exists();
        assert!(exists(".mine/a") && exists(".new/b"));
        assert_eq!(
            fs::read_to_string(test.root().join("home/.mine.json")).unwrap(),
            "x\n"
        );
        assert!(!exists(".missing.json") && !exists(".other"));
    }

    #[test]
    fn hooks_and_settings_of_the_repository_are_read_only() {
        let test = project();
        let config = test.read(".git/config");
        let script = "
            echo 'exit 1' > .git/hooks/post-commit; mkdir -p .git/hooks/more; echo '[core]' >> .git/config
            git config core.fsmonitor evil; mv .git .moved; rm -rf .git/hooks
            touch done.txt && git add done.txt && git commit -qm mine";
        run(&test, "--sandbox", script, &[]).exits(0);
        assert_eq!(test.read(".git/config"), config);
        assert!(!test.workspace().join(".git/hooks/post-commit").exists());
        assert!(!test.workspace().join(".moved").exists());
        assert_eq!(test.sh("git log -1 --format=%s").trim(), "mine");
    }

    #[test]
    fn the_repositories_of_submodules_are_protected_too() {
        let test = project();
        test.sh(
            "git init -q ../sub && git -C ../sub commit -q --allow-empty -m sub
             git -c protocol.file.allow=always submodule --quiet add ../sub lib/sub
             git commit -qm sub && rm -rf .git/modules/lib/sub/hooks",
        );
        let entry = test.read("lib/sub/.git");
        let script = "
            rm -f .gitmodules; mkdir -p evil && git init -q evil
            echo 'gitdir: ../../evil/.git' > lib/sub/.git; rm -f lib/sub/.git; mv lib/sub moved; mv lib moved
            mkdir -p .git/modules/lib/sub/hooks && echo 'exit 1' > .git/modules/lib/sub/hooks/post-commit
            git -C lib/sub commit -q --allow-empty -m mine; exit 0";
        run(&test, "--sandbox", script, &[]).exits(0);
        // The next iteration, without `.gitmodules`.
        test.ralph(&["rm", "a"]).exits(0);
        run(&test, "--sandbox", script, &[]).exits(0);
        assert_eq!(test.read("lib/sub/.git"), entry);
        let hooks = test.workspace().join(".git/modules/lib/sub/hooks");
        assert!(!hooks.exists());
        assert_eq!(test.sh("git -C lib/sub log -1 --format=%s").trim(), "mine");
    }

    #[test]
    fn an_agent_commits_in_a_worktree_and_sees_no_other() {
        let test = project();
        run(&test, "--sandbox", "touch one", &["--worktree"]).exits(0);
        let script = "
            ls ../a > seen 2>&1; git worktree prune; echo 'gitdir: /nowhere' > .git
            touch two && git add two && git commit -qm mine && git -C . log --oneline > log";
        let run = [
            "run",
            "x",
            "--name",
            "b",
            "-m",
            "1",
            "--no-promise",
            "--sandbox",
        ];
        test.ralph(&[&run[..], &["--worktree", "--", "sh", "-c", script]].concat())
            .exits(0);
        assert_eq!(test.sh("git log -1 --format=%s ralph/b~1").trim(), "mine");
        let seen = test.sh("git show ralph/b:seen");
        assert!(seen.contains("No such file"), "{seen}");
        let worktrees = test.sh("git worktree list");
        assert!(worktrees.contains("[ralph/a]"), "{worktrees}");
        assert!(worktrees.contains("[ralph/b]"), "{worktrees}");
    }

    #[test]
    fn exit_codes_and_signals_are_those_of_the_agent() {
        assert_exits("--sandbox");
    }

    #[test]
    fn daemons_end_with_the_agent() {
        let test = project();
        // A daemon without the test's environment is found by its argument.
        let seconds = format!("1000.{}7", std::process::id());
        let script = format!(
            "for i in 1 2 3; do setsid sleep {seconds} & env -i setsid sleep {seconds} & done; exit 0"
        );
        run(&test, "--sandbox", &script, &[]).exits(0);
        let is_daemon = |command: &[u8]| {
            let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
            words.get(1) == Some(&seconds.as_bytes())
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut commands = processes.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
        assert!(!commands.any(|command| is_daemon(&command)));
        assert_eq!(test.survivors(), Vec::<u32>::new());
    }

    #[test]
    fn an_agent_that_takes_too_long_can_still_clean_up() {
        let test = project();
        let script =
            "trap 'touch cleaned; exit 5' TERM; setsid sleep 1000 & while :; do sleep 0.05; done";
        run(&test, "--sandbox", script, &["--iteration-timeout", "1s"]);
        assert!(test.workspace().join("cleaned").exists());
        assert_eq!(test.events("a", "ended")[0]["report"]["exit"]["code"], 5);
        assert_eq!(test.survivors(), Vec::<u32>::new());
    }

    #[test]
    fn a_silent_agent_is_ended() {
        let test = project();
        let script = "sleep 1000";
        run(&test, "--sandbox", script, &["--inactivity-timeout", "1s"]);
        assert_eq!(test.events("a", "ended").len(), 1);
        assert_eq!(test.survivors(), Vec::<u32>::new());
    }

    #[test]
    fn an_agent_has_its_terminal() {
        let test = project();
        let script = "test -t 0 && test -t 1 && stty size > size && echo seen > /dev/tty && read line && echo \"$line\" > typed";
        run(&test, "--sandbox", script, &["--pty"]);
        assert_eq!(test.read("size").split_whitespace().count(), 2);
        assert_ne!(test.read("typed"), "");
    }

    /// Starts an agent that never ends, with daemons.
    fn endless(test: &Test) -> crate::kit::Live {
        let script = "setsid sleep 1000 & touch begun; while :; do sleep 1; done";
        let run = [
            "run",
            "x",
            "--name",
            "a",
            "--sandbox",
            "--",
            "sh",
            "-c",
            script,
        ];
        let live = test.start(&run);
        until("the agent", || test.workspace().join("begun").exists());
        live
    }

    #[test]
    fn stop_ends_everything() {
        let test = project();
        let live = endless(&test);
        test.ralph(&["stop", "a"]).exits(0);
        live.end().exits(130);
        assert_eq!(test.survivors(), Vec::<u32>::new());
    }

    #[test]
    fn killing_the_supervisor_and_its_warden_ends_everything() {
        let test = project();
        let live = endless(&test);
        let supervisor = test.events("a", "opened")[0]["pid"].as_u64().unwrap() as u32;
        signal(live.pid(), "STOP");
        signal(supervisor, "KILL");
        signal(live.pid(), "KILL");
        drop(live);
        until("the end of the agent", || test.survivors().is_empty());
        assert_eq!(test.status("a")["status"], "crashed");
    }

    #[test]
    fn resume_needs_the_sandbox_too() {
        let test = project();
        run(&test, "--sandbox", "cat ~/.ssh/id >> stolen; exit 42", &[]).exits(3);
        test.ralph(&["set", "a", "max-iterations=2"]).exits(0);
        let path = few_programs(&test, &["git", "sh"]);
        let mut command = test.ralph_command(&["resume", "a"]);
        command.env("PATH", &path);
        test.start_command(command)
            .end()
            .exits(2)
            .complains("bwrap is not installed");
        test.ralph(&["resume", "a"]).exits(3);
        assert_eq!(test.read("stolen"), "");
        assert_eq!(test.events("a", "ended").len(), 2);
    }

    #[test]
    fn where_namespaces_are_forbidden_the_loop_does_not_begin() {
        let test = project();
        let mut command = test.command("bwrap");
        command
            .args([
                "--unshare-user",
                "--disable-userns",
                "--dev-bind",
                "/",
                "/",
                "--",
            ])
            .arg(env!("CARGO_BIN_EXE_ralph"))
            .args(["run", "x", "--sandbox", "--", "touch", "ran"]);
        test.start_command(command)
            .end()
            .exits(2)
            .complains("bwrap cannot create a sandbox here")
            .complains("user namespaces");
        assert!(!test.workspace().join("ran").exists());
    }

    #[test]
    fn markers_and_messages_leave_the_sandbox() {
        let test = project();
        let ralph = env!("CARGO_BIN_EXE_ralph");
        let script = format!(
            "{ralph} bus post hello; {ralph} spawn y -- true 2> refused; {ralph} blocked 'which one?'"
        );
        run(&test, "--sandbox", &script, &[])
            .exits(3)
            .says("which one?");
        assert!(test.read("refused").contains("does not work in a sandbox"));
        test.ralph(&["bus", "tail", "a"]).exits(0).says("hello");
    }

    #[test]
    fn a_dry_run_says_that_the_agent_is_confined() {
        let test = project();
        test.ralph(&["run", "x", "--dry-run", "--sandbox", "--", "true"])
            .exits(0)
            .says("sandbox     the agent runs in a sandbox (bwrap)");
    }

    #[test]
    fn the_library_confines_a_command() {
        let test = project();
        let script = "touch inside ../outside; ls ../state > listed; setsid sleep 1000 &";
        let report = ralph::Loop::new("x")
            .workspace(test.workspace())
            .state_dir(test.state_dir())
            .name("a")
            .sandbox(ralph::Sandbox::Bwrap)
            .no_promise()
            .max_iterations(1)
            .run_command(["sh", "-c", script])
            .unwrap();
        assert_eq!(report.iterations.len(), 1);
        assert!(test.workspace().join("inside").exists());
        assert!(!test.root().join("outside").exists());
        assert_eq!(test.read("listed"), "");
    }

    #[test]
    fn temporary_files_are_private() {
        let test = project();
        let name = format!("/tmp/ralph-sandbox-{}", std::process::id());
        let script =
            format!("echo x > {name}; ls /tmp > listed; ls /run > services 2>/dev/null; true");
        run(&test, "--sandbox", &script, &[]).exits(0);
        assert!(!std::path::Path::new(&name).exists());
        assert!(test.read("listed").contains("ralph-sandbox-"));
        // What names are resolved with, and programs, are visible; sockets of services are not.
        let visible = [
            "systemd",
            "resolvconf",
            "NetworkManager",
            "connman",
            "current-system",
            "booted-system",
            "opengl-driver",
            "wrappers",
        ];
        for name in test.read("services").lines() {
            assert!(visible.contains(&name), "/run/{name} is visible");
        }
    }
}
