//! Sandboxes of rules that a process applies to itself.

mod needs_landlock {
    use super::super::{
        ALLOWED, ATTEMPTS, assert_exits, assert_untouched, project, run, successes,
    };

    #[test]
    fn an_agent_reaches_only_its_workspace_and_its_own_files() {
        let test = project();
        test.sh("mkdir ../temp");
        let mut command = test.ralph_command(&[
            "run",
            "x",
            "--name",
            "a",
            "-m",
            "1",
            "--no-promise",
            "--sandbox=landlock",
            "--",
            "sh",
            "-c",
            ATTEMPTS,
        ]);
        command
            .env("TMPDIR", test.root().join("temp"))
            .env("SSH_AUTH_SOCK", "/somewhere");
        let done = test.start_command(command).end().exits(0);
        done.says("the agent runs in a sandbox (landlock)");
        assert_eq!(successes(&test), ALLOWED, "{}", test.read("noise"));
        assert_untouched(&test);
        assert_eq!(test.status("a")["sandbox"], "landlock");
    }

    #[test]
    fn caches_are_in_a_directory_of_the_loop() {
        let test = project();
        let script = "mkdir -p \"$npm_config_cache\" && echo x > \"$npm_config_cache/x\" \
                      && stat -c %a \"${npm_config_cache%/*}\" > mode && echo \"$GOCACHE\" > go";
        run(&test, "--sandbox=landlock", script, &[]).exits(0);
        let cache = test.workspace().join(".ralph/task/a/cache");
        assert_eq!(
            test.read("go").trim(),
            cache.join("go-build").to_str().unwrap()
        );
        assert_eq!(test.read("mode").trim(), "700");
        assert_eq!(test.sh("git status --porcelain"), "?? go\n?? mode\n");
        test.ralph(&["rm", "a"]).exits(0);
        assert!(!cache.exists());
    }

    #[test]
    fn exit_codes_and_signals_are_those_of_the_agent() {
        assert_exits("--sandbox=landlock");
    }

    #[test]
    fn a_secret_inside_the_workspace_cannot_be_hidden() {
        let test = project();
        let mut command = test.ralph_command(&[
            "run",
            "x",
            "--here",
            "--sandbox=landlock",
            "--",
            "touch",
            "ran",
        ]);
        command.current_dir(test.root().join("home"));
        test.start_command(command)
            .end()
            .exits(2)
            .complains("Landlock cannot hide")
            .complains("use --sandbox=bwrap");
    }
}
