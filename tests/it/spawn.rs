//! Background loops, in a window of a real tmux and without tmux.

use crate::kit::{Done, Live, Test, alive, signal, until};
use std::fs;

/// Prints a line, then waits for `go`.
const WAITS: &str =
    "iteration *\n sh touch here; until test -e go; do sleep 0.01; done\n say over\n";
const AGENT: [&str; 2] = ["--agent", "script:../agent.script"];

fn spawn(test: &Test, name: &str, args: &[&str]) -> Done {
    test.ralph(
        &[
            &["spawn", "work", "--name", name, "--no-promise"],
            &AGENT[..],
            args,
        ]
        .concat(),
    )
}

/// Spawns a loop called `a` in a window, and waits until its first agent runs.
fn in_window() -> Test {
    let test = Test::new().script(WAITS);
    spawn(&test, "a", &["-m", "2"]).exits(0);
    until("the agent", || test.workspace().join("here").exists());
    test
}

/// Waits until a loop has this status.
pub(crate) fn until_status(test: &Test, name: &str, status: &str) {
    until(&format!("{name} is {status}"), || {
        test.status(name)["status"] == status
    });
}

/// Runs a command on ralph's own tmux server, and returns its output.
pub(crate) fn tmux(test: &Test, args: &[&str]) -> String {
    let output = test
        .command("tmux")
        .args(["-L", "ralph"])
        .args(args)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_spawned_loop_has_a_window_until_it_ends() {
    let test = in_window();
    assert_eq!(
        tmux(
            &test,
            &["list-windows", "-t", "ralph", "-F", "#{window_name}"]
        ),
        "a\n"
    );
    until("its line in the window", || {
        tmux(&test, &["capture-pane", "-p", "-t", "ralph:a"])
            .contains("━━ Iteration 1/2 · agent.script")
    });
    let status = test.status("a");
    assert_eq!(
        (&status["status"], &status["current_iteration"]),
        (&"running".into(), &1.into())
    );
    test.write("go", "");
    test.ralph(&["logs", "a", "-f"]).exits(0).says("over");
    until_status(&test, "a", "done");
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
    assert_eq!(test.events("a", "started").len(), 2);
}

#[test]
fn the_printed_line_names_the_window() {
    let test = Test::new().script("iteration *\n say hello\n");
    let line = "spawned a (tmux: ralph:a) [ralph mode: iteration 1/10]\n";
    assert_eq!(spawn(&test, "a", &["-m", "10"]).exits(0).out, line);
    test.ralph(&["wait", "a"]).exits(0);
    let line = "spawned b (background) [ralph mode: iteration 1/10]\n";
    assert_eq!(
        spawn(&test, "b", &["-m", "10", "--no-tmux"]).exits(0).out,
        line
    );
    test.ralph(&["wait", "b"]).exits(0);
    let json: serde_json::Value =
        serde_json::from_str(&spawn(&test, "c", &["-m", "1", "--json"]).exits(0).out).unwrap();
    assert_eq!(
        (&json["name"], &json["tmux"]),
        (&"c".into(), &"ralph:c".into())
    );
    until_status(&test, "c", "done");
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
}

#[test]
fn without_tmux_a_spawned_loop_is_a_plain_process() {
    let test = Test::new().script(&WAITS.replacen('\n', "\n say begun\n", 1));
    let test = test.file(".ralph/settings.toml", "tmux = false\n");
    spawn(&test, "a", &["-m", "1"])
        .exits(0)
        .says("(background)");
    until("the agent", || test.workspace().join("here").exists());
    assert!(tmux(&test, &["ls"]).is_empty());
    let live = test.start(&["attach", "a"]);
    live.until_out("begun");
    test.write("go", "");
    live.end().exits(0).says("over");
    until_status(&test, "a", "done");
    let log = test.read_loop("a", "console.log");
    assert!(
        log.contains("[ralph] a: loop complete after 1 iteration"),
        "{log}"
    );
    assert!(
        !log.contains("| over"),
        "the agent's output is kept once, in its own log"
    );
}

#[test]
fn the_caller_s_environment_reaches_only_the_agent() {
    let test = Test::new().script(
        "iteration *\n sh echo \"it is $SECRET\" > seen; until test -e go; do sleep 0.01; done\n",
    );
    let mut command = test.ralph_command(&["spawn", "x", "--name", "a", "-m", "1", "--no-promise"]);
    command
        .args(AGENT)
        .env("SECRET", "only-for-the-agent\nin two lines");
    test.start_command(command).end().exits(0);
    until("the agent", || {
        test.workspace().join("seen").exists() && !test.read("seen").is_empty()
    });
    assert_eq!(
        test.read("seen"),
        "it is only-for-the-agent\nin two lines\n"
    );
    assert!(!tmux(&test, &["show-environment", "-g"]).contains("only-for-the-agent"));
    let server: u32 = tmux(&test, &["display-message", "-p", "#{pid}"])
        .trim()
        .parse()
        .unwrap();
    let environment = fs::read(format!("/proc/{server}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("only-for-the-agent"));
    let files = test.sh("grep -rl only-for-the-agent ../state || true");
    assert_eq!(files, "", "it is in no file");
    assert!(!test.loop_dir("a").join("environment").exists());
    test.write("go", "");
    until_status(&test, "a", "done");
}

#[test]
fn an_incomplete_environment_is_refused() {
    let test = Test::new().script("iteration *\n say hello\n");
    spawn(&test, "a", &["-m", "1"]).exits(0);
    until_status(&test, "a", "done");
    let pipe = test.root().join("pipe");
    test.sh("mkfifo ../pipe");
    for (name, sent, fails) in [
        ("b", "PATH=/bin", true),
        ("a", "PATH=/bin\\0", true),
        ("b", "PATH=/bin\\0\\0", false),
    ] {
        let state = test.state_dir();
        let args = [
            "__supervise",
            name,
            "--state-dir",
            state.to_str().unwrap(),
            "--environment",
        ];
        let live = test.start(&[&args[..], &[pipe.to_str().unwrap()]].concat());
        test.sh(&format!("printf '{sent}' > ../pipe"));
        let done = live.end();
        // With a complete environment it goes on to look for the loop.
        let expected = if fails {
            "the process that opened the tmux window exited before sending it"
        } else {
            "no loop is named"
        };
        assert!(done.err.contains(expected), "{sent}: {done:?}");
    }
    let told = test.read_loop("a", "complaint");
    assert!(told.contains("before sending it"), "the launcher: {told}");
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
}

#[test]
fn a_spawned_loop_does_not_inherit_the_caller_s_open_files() {
    for (kind, args) in [("tmux", "--pty"), ("no tmux", "--no-tmux")] {
        let test = Test::new().file("mine", "");
        let agent = "#!/bin/sh\nls -l /proc/self/fd > fds; touch here; until test -e go; do sleep 0.01; done\n";
        let test = test.program("agent", agent);
        let spawn = format!(
            "exec 7<mine; exec {} spawn x --name a -m 1 --no-promise {args} -- ./agent",
            env!("CARGO_BIN_EXE_ralph")
        );
        test.sh(&spawn);
        until("the agent", || test.workspace().join("here").exists());
        assert!(
            !test.read("fds").contains("mine"),
            "{kind}: {}",
            test.read("fds")
        );
        let open = test.sh("ls -l /proc/[0-9]*/fd 2>&- | grep -c \"$PWD/mine\" || true");
        assert_eq!(open.trim(), "0", "{kind}: somebody has it open");
        test.write("go", "");
        until_status(&test, "a", "done");
        until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
    }
}

#[test]
fn a_missing_or_too_old_tmux_is_reported() {
    let test = Test::new()
        .script(WAITS)
        .on_path("tmux", "#!/bin/sh\necho tmux 2.9a\n");
    let done = spawn(&test, "a", &[]).exits(2);
    done.complains("tmux 2.9a is too old")
        .complains("--no-tmux");
    let test = Test::new().script(WAITS);
    test.sh("mkdir ../bin; for tool in sh cat git env; do ln -s \"$(command -v $tool)\" ../bin/$tool; done");
    let mut command = test.ralph_command(&["spawn", "x", "--name", "a"]);
    command.args(AGENT).env("PATH", test.root().join("bin"));
    let done = test.start_command(command).end().exits(2);
    done.complains("tmux is not installed")
        .complains("--no-tmux");
    assert!(!test.loop_dir("a").exists());
}

#[test]
fn a_loop_that_cannot_start_is_reported_and_leaves_nothing_behind() {
    let test = in_window();
    spawn(&test, "a", &[])
        .exits(2)
        .complains("already starting or running");
    let done = spawn(&test, "b", &[]).exits(2);
    done.complains("the loop \"a\" is already running in this workspace");
    assert!(!test.loop_dir("b").exists());
    test.ralph(&["spawn", "x", "--agent", "nobody"])
        .exits(2)
        .complains("unknown agent");
    spawn(&test, "A!", &[]).exits(2).complains("A!");
    test.write("go", "");
    until_status(&test, "a", "done");
}

#[test]
fn a_spawned_loop_is_paused_resumed_and_stopped_like_any_other() {
    let test = in_window();
    test.ralph(&["pause", "a"])
        .exits(0)
        .says("paused ralph loop for a");
    test.write("go", "");
    until_status(&test, "a", "paused");
    test.sh("rm go here");
    assert_eq!(
        test.ralph(&["resume", "a"]).exits(0).out,
        "resumed ralph loop for a\n"
    );
    until("the second agent", || {
        test.workspace().join("here").exists()
    });
    assert_eq!(test.status("a")["current_iteration"], 2);
    assert_eq!(
        tmux(
            &test,
            &["list-windows", "-t", "ralph", "-F", "#{window_name}"]
        ),
        "a\n"
    );
    test.ralph(&["stop", "a"]).exits(0);
    until_status(&test, "a", "stopped");
    until("the end of all", || test.survivors().is_empty());
}

#[test]
fn killing_tmux_leaves_no_agent_and_the_loop_can_be_resumed() {
    let test = in_window();
    tmux(&test, &["kill-server"]);
    until_status(&test, "a", "crashed");
    until("the end of all", || test.survivors().is_empty());
    test.write("go", "");
    test.ralph(&["resume", "a"]).exits(0);
    until_status(&test, "a", "done");
    assert_eq!(
        test.events("a", "started").len(),
        2,
        "the one that was cut short counts"
    );
}

#[test]
fn killing_everything_leaves_no_agent() {
    let test = in_window();
    let server: u32 = tmux(&test, &["display-message", "-p", "#{pid}"])
        .trim()
        .parse()
        .unwrap();
    let warden: u32 = tmux(
        &test,
        &["display-message", "-p", "-t", "ralph:a", "#{pane_pid}"],
    )
    .trim()
    .parse()
    .unwrap();
    let mut victims = vec![warden, server];
    victims.extend(crate::crash::supervisor(warden));
    crate::crash::kill_now(&victims);
    until("their end", || victims.iter().all(|pid| !alive(*pid)));
    test.ralph(&["ls"]).exits(0).says("crashed");
    test.ralph(&["status", "a"]).exits(0);
    until("the end of all", || test.survivors().is_empty());
    test.write("go", "");
    test.ralph(&["resume", "a"]).exits(0);
    until_status(&test, "a", "done");
}

#[test]
fn a_late_terminal_reply_is_not_typed_into_the_next_agent() {
    let agent = "#!/bin/sh\nif mkdir first 2>&-; then for i in 1 2 3 4 5; do printf '\\033[c'; done; exit; fi\n\
                 stty -echo -icanon min 1; printf ready\nhead -c 1 > keys\n";
    let test = Test::new().program("agent", agent);
    let args = [
        "spawn",
        "--prompt",
        "work",
        "--name",
        "a",
        "-m",
        "2",
        "--no-promise",
        "--context",
        "none",
    ];
    test.ralph(&[&args[..], &["--delay", "300ms", "--pty", "--", "./agent"]].concat())
        .exits(0);
    until_status(&test, "a", "done");
    assert_eq!(
        test.read("keys"),
        "w",
        "the prompt's first letter is the first key"
    );
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
}

#[test]
fn only_background_loops_can_be_attached_to() {
    let test = in_window();
    test.ralph(&["attach", "a"])
        .exits(2)
        .complains("attach needs a terminal")
        .complains("ralph logs a -f");
    test.ralph(&["attach", "b"])
        .exits(2)
        .complains("no loop is named `b`");
    test.write("go", "");
    until_status(&test, "a", "done");
    test.ralph(&["attach", "a"])
        .exits(2)
        .complains("it is not running, its status is done")
        .complains("ralph logs a");
    test.sh("rm go here");
    let live = test.start(&[&["run", "x", "--name", "f", "-m", "1"], &AGENT[..]].concat());
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["attach", "f"])
        .exits(2)
        .complains("runs in the foreground of another terminal");
    test.write("go", "");
    live.end().exits(1);
}

#[test]
fn many_loops_can_be_spawned_at_once() {
    let test = Test::new().script("iteration *\n say hello\n");
    let names = ["a", "b", "c", "d", "e"];
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(|| spawn(&test, name, &["-m", "1", "--share-workspace"]).exits(0));
        }
    });
    for name in names {
        until_status(&test, name, "done");
    }
}

#[test]
fn resume_all_continues_every_background_loop_after_a_restart() {
    let test = Test::new().script(WAITS);
    for name in ["a", "b"] {
        spawn(&test, name, &["-m", "2", "--share-workspace"]).exits(0);
    }
    spawn(
        &test,
        "ended",
        &["-m", "1", "--share-workspace", "--no-tmux"],
    )
    .exits(0);
    until("the agents", || {
        ["a", "b", "ended"]
            .iter()
            .all(|name| !test.events(name, "spawned").is_empty())
    });
    test.ralph(&["stop", "ended"]).exits(0);
    let live = test.start(
        &[
            &["run", "x", "--name", "f", "--share-workspace"],
            &AGENT[..],
        ]
        .concat(),
    );
    until("the agent", || !test.events("f", "spawned").is_empty());
    crate::crash::crash(live);
    tmux(&test, &["kill-server"]);
    for name in ["a", "b", "f"] {
        until_status(&test, name, "crashed");
    }
    test.write("go", "");
    let done = test.ralph(&["resume", "--all"]).exits(0);
    done.says("resumed ralph loop for a\nresumed ralph loop for b\n")
        .complains("run `ralph resume f` to continue it in this terminal");
    for (name, status) in [
        ("a", "done"),
        ("b", "done"),
        ("f", "crashed"),
        ("ended", "stopped"),
    ] {
        until_status(&test, name, status);
    }
    test.ralph(&["resume"]).exits(2);
    test.ralph(&["resume", "a", "--all"]).exits(2);
}

#[test]
fn resume_all_continues_loops_that_a_shutdown_paused_but_not_those_that_a_person_paused() {
    let test = Test::new().script(WAITS);
    for name in ["shut", "mine", "both"] {
        spawn(&test, name, &["-m", "2", "--share-workspace", "--no-tmux"]).exits(0);
        until("the agent", || !test.events(name, "spawned").is_empty());
    }
    test.ralph(&["pause", "mine", "both"]).exits(0);
    for name in ["shut", "both"] {
        let lock: serde_json::Value = serde_json::from_str(&test.read_loop(name, "lock")).unwrap();
        signal(lock["pid"].as_u64().unwrap() as u32, "TERM");
        until("the signal", || {
            let asked = test.events(name, "asked");
            asked.iter().any(|event| event["by"] == "sigterm")
        });
    }
    test.write("go", "");
    for name in ["shut", "mine", "both"] {
        until_status(&test, name, "paused");
        until("its end", || test.ralph(&["wait", name]).code == 3);
    }
    let done = test.ralph(&["resume", "--all"]).exits(0);
    assert_eq!(done.out, "resumed ralph loop for shut\n");
    until_status(&test, "shut", "done");
    for name in ["mine", "both"] {
        assert_eq!(test.status(name)["status"], "paused");
    }
    test.ralph(&["resume", "--all"])
        .exits(0)
        .says("nothing to resume");
}

mod needs_script {
    use super::*;

    /// Runs `ralph attach a` on a terminal type that tmux supports.
    fn attach(test: &Test) -> Live {
        test.start_on_terminal_as("xterm", &["attach", "a"])
    }

    #[test]
    fn viewers_can_attach_and_detach() {
        let test = in_window();
        let live = attach(&test);
        live.until_out("Iteration 1/2");
        let client: u32 = tmux(&test, &["list-clients", "-F", "#{client_pid}"])
            .trim()
            .parse()
            .unwrap();
        signal(client, "KILL");
        drop(live.end());
        assert_eq!(test.status("a")["status"], "running");
        let live = attach(&test);
        live.until_out("Iteration 1/2");
        // tmux's own keys detach.
        live.type_in("\u{2}");
        // tmux treats keys within the same millisecond as a paste, and a paste is not a command.
        std::thread::sleep(std::time::Duration::from_millis(50));
        live.type_in("d");
        live.end()
            .exits(0)
            .says("Ctrl-B d detaches · Ctrl-C goes to the loop")
            .says("a is still running");
        test.write("go", "");
        until_status(&test, "a", "done");
    }

    #[test]
    fn a_viewer_shows_one_loop_and_closes_with_it() {
        let test = Test::new().program(
            "wait",
            "#!/bin/sh\nuntil test -e \"$1\"; do sleep 0.05; done\ntouch \"$RALPH_TASK_DIR/DONE\"\n",
        );
        for name in ["a", "b"] {
            let args = [
                "spawn",
                "x",
                "--name",
                name,
                "--share-workspace",
                "--",
                "./wait",
                name,
            ];
            test.ralph(&args).exits(0);
        }
        let first = attach(&test);
        first.until_out("Iteration 1/");
        let second = test.start_on_terminal_as("xterm", &["attach", "b"]);
        second.until_out("Iteration 1/");
        test.write("a", "");
        first.end().exits(0).says("a: done (");
        assert_eq!(
            test.status("b")["status"],
            "running",
            "and nobody was put before another"
        );
        test.write("b", "");
        second.end().exits(0).says("b: done (");
    }
}
