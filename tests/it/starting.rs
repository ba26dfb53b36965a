//! Loops that are starting: what commands say about them, names that several commands claim at
//! once, and resumes that fail.

use crate::kit::{Live, Test, until};
use crate::spawn::{tmux, until_status};
use std::fs;

const WAITS: &str =
    "iteration *\n sh touch here; until test -e go; do sleep 0.01; done\n say over\n";
const AGENT: [&str; 2] = ["--agent", "script:../agent.script"];

/// A tmux that opens a window only once the file `gate` exists. It says that it was called in
/// `asked`.
const GATED_TMUX: &str = "#!/bin/sh
real=$(PATH=${PATH#*:} command -v tmux)
case \"$*\" in
*new-window*) dir=$(dirname \"$0\"); touch \"$dir/asked\"; until test -e \"$dir/gate\"; do sleep 0.01; done;;
esac
exec \"$real\" \"$@\"
";

/// A tmux that cannot open a window.
const BROKEN_TMUX: &str =
    "#!/bin/sh\ncase \"$1\" in -V) echo tmux 3.4;; *) echo no server >&2; exit 1;; esac\n";

fn spawn_args<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &["spawn", "work", "--name", name, "--no-promise", "-m", "2"],
        &AGENT[..],
        more,
    ]
    .concat()
}

/// Starts `ralph spawn`, which waits for the gate in the middle of its start.
fn starting() -> (Test, Live) {
    let test = Test::new().script(WAITS).on_path("tmux", GATED_TMUX);
    let live = test.start(&spawn_args("a", &[]));
    until("the call of tmux", || {
        test.root().join("bin/asked").exists()
    });
    (test, live)
}

fn open_gate(test: &Test, live: Live) {
    test.write("../bin/gate", "");
    live.end().exits(0).says("spawned a");
    until("the agent", || test.workspace().join("here").exists());
}

fn finish(test: &Test) {
    test.write("go", "");
    until_status(test, "a", "done");
    until("the end of tmux", || tmux(test, &["ls"]).is_empty());
}

#[test]
fn a_starting_loop_is_shown_as_starting_and_is_not_removed() {
    let (test, live) = starting();
    assert_eq!(test.status("a")["status"], "starting");
    test.ralph(&["ls"]).exits(0).says("starting");
    let rows: serde_json::Value =
        serde_json::from_str(&test.ralph(&["ls", "--json"]).exits(0).out).unwrap();
    assert_eq!(rows[0]["status"], "starting");
    test.ralph(&["rm", "a"])
        .exits(2)
        .complains("cannot remove the loop \"a\" while it is starting");
    test.ralph(&["rm", "--ended"])
        .exits(0)
        .says("0 loops removed");
    test.ralph(&["resume", "--all"])
        .exits(0)
        .says("nothing to resume");
    open_gate(&test, live);
    assert_eq!(test.status("a")["status"], "running");
    finish(&test);
}

#[test]
fn messages_and_limits_reach_a_starting_loop() {
    let (test, live) = starting();
    let said = test.ralph(&["say", "a", "mind the gap"]).exits(0);
    assert!(!said.out.contains("its status is"), "{said:?}");
    let set = test.ralph(&["set", "a", "max-iterations=3"]).exits(0);
    assert!(!set.out.contains("its status is"), "{set:?}");
    test.ralph(&["resume", "a"])
        .exits(0)
        .complains("it is already starting");
    open_gate(&test, live);
    assert_eq!(test.status("a")["max_iterations"], 3);
    assert!(test.prompt("a", 1).contains("mind the gap"));
    finish(&test);
}

#[test]
fn wait_waits_for_a_starting_loop() {
    let (test, live) = starting();
    test.ralph(&["wait", "a", "--timeout", "200ms"])
        .exits(4)
        .complains("still running after 200ms: a");
    let wait = test.start(&["wait", "a"]);
    open_gate(&test, live);
    test.write("go", "");
    wait.end().exits(0).says("a: done");
    finish(&test);
}

#[test]
fn stop_ends_a_starting_loop_before_its_agent_runs() {
    let (test, live) = starting();
    let stop = test.start(&["stop", "a"]);
    until("the request", || {
        test.loop_dir("a").join("inbox.jsonl").exists()
    });
    test.write("../bin/gate", "");
    live.end().exits(0);
    stop.end().exits(0).says("stopped ralph loop for a");
    until_status(&test, "a", "stopped");
    assert!(test.events("a", "started").is_empty());
}

#[test]
fn a_starting_loop_can_be_paused_and_resumed() {
    let (test, live) = starting();
    test.ralph(&["pause", "a"])
        .exits(0)
        .says("paused ralph loop for a");
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("resumed ralph loop for a");
    open_gate(&test, live);
    finish(&test);
}

#[test]
fn a_loop_whose_creator_was_killed_is_crashed() {
    let (test, live) = starting();
    live.signal("KILL");
    drop(live.end());
    assert_eq!(test.status("a")["status"], "crashed");
    test.write("../bin/gate", "");
    test.ralph(&["rm", "a"]).exits(0);
}

#[test]
fn one_of_several_commands_gets_a_name_and_the_others_the_same_error() {
    let test = Test::new().script(WAITS);
    let live: Vec<Live> = (0..5)
        .map(|_| test.start(&spawn_args("same", &["--no-tmux"])))
        .collect();
    let done: Vec<_> = live.into_iter().map(Live::end).collect();
    let won = done.iter().filter(|done| done.code == 0).count();
    assert_eq!(won, 1, "{done:?}");
    for lost in done.iter().filter(|done| done.code != 0) {
        assert_eq!(lost.code, 2, "{lost:?}");
        assert_eq!(
            lost.err,
            "ralph: error: the loop \"same\" is already starting or running\n  \
             hint: `ralph status same` shows what it does, `ralph stop same` stops it; or choose another --name\n"
        );
    }
    test.ralph(&["stop", "same"]).exits(0);
}

/// Returns everything that a failed resume must not change.
fn snapshot(test: &Test) -> (serde_json::Value, Vec<u8>, Vec<u8>) {
    let read = |file: &str| fs::read(test.loop_dir("a").join(file)).unwrap_or_default();
    (test.status("a"), read("journal.jsonl"), read("inbox.jsonl"))
}

/// Asserts that resuming a loop with this status fails, without a change, if tmux is broken or the
/// workspace is gone, and that the flag in the hint works.
fn fails_without_a_change(test: Test, status: &str) {
    until_status(&test, "a", status);
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
    let test = test.on_path("tmux", BROKEN_TMUX);
    let before = snapshot(&test);
    test.ralph(&["resume", "a", "--answer", "yes"])
        .exits(1)
        .complains("tmux cannot open a window: no server")
        .complains("add --no-tmux");
    assert_eq!(snapshot(&test), before);

    fs::rename(test.workspace(), test.root().join("moved")).unwrap();
    let mut resume = test.ralph_command(&["resume", "a", "--no-tmux"]);
    resume.current_dir(test.root().join("moved"));
    test.start_command(resume)
        .end()
        .exits(2)
        .complains("its workspace no longer exists")
        .complains("ralph rm a");
    fs::rename(test.root().join("moved"), test.workspace()).unwrap();
    assert_eq!(snapshot(&test), before);

    test.write("go", "");
    test.ralph(&["resume", "a", "--no-tmux"]).exits(0);
    until_status(&test, "a", "done");
}

#[test]
fn a_failed_resume_leaves_a_paused_loop_as_it_was() {
    let test = spawned();
    test.ralph(&["pause", "a"]).exits(0);
    test.write("go", "");
    fails_without_a_change(test, "paused");
}

#[test]
fn a_failed_resume_leaves_a_stopped_loop_as_it_was() {
    let test = spawned();
    test.ralph(&["stop", "a"]).exits(0);
    fails_without_a_change(test, "stopped");
}

#[test]
fn a_failed_resume_leaves_a_failed_loop_as_it_was() {
    let test = Test::new().script("iteration 1\n exit 1\niteration *\n say over\n");
    test.ralph(&spawn_args("a", &["--max-failures", "1"]))
        .exits(0);
    fails_without_a_change(test, "failed");
}

/// Spawns a loop called `a` in a window, and waits until its first agent runs.
fn spawned() -> Test {
    let test = Test::new().script(&WAITS.replacen('\n', "\n say begun\n", 1));
    test.ralph(&spawn_args("a", &[])).exits(0);
    until("the agent", || test.workspace().join("here").exists());
    test
}

#[test]
fn attach_follows_the_log_of_a_loop_that_was_resumed_without_tmux() {
    let test = spawned();
    test.ralph(&["pause", "a"]).exits(0);
    test.write("go", "");
    until_status(&test, "a", "paused");
    test.sh("rm go here");
    test.ralph(&["resume", "a", "--no-tmux"]).exits(0);
    until("the agent", || test.workspace().join("here").exists());
    let live = test.start(&["attach", "a"]);
    live.until_out("begun");
    test.write("go", "");
    live.end()
        .exits(0)
        .says("over")
        .says("\n[ralph] a: loop complete after 2 iterations\n")
        .complains("Ctrl-C ends this view; the loop continues");
    until_status(&test, "a", "done");
}

#[test]
fn a_foreground_loop_has_no_window_to_give_up() {
    let test = Test::new().script(WAITS);
    let args = ["run", "x", "--name", "f", "--no-promise", "-m", "2"];
    let live = test.start(&[&args[..], &AGENT].concat());
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["pause", "f"]).exits(0);
    test.write("go", "");
    live.end().exits(3);
    test.ralph(&["resume", "f", "--no-tmux"])
        .exits(2)
        .complains("--no-tmux does not apply to \"f\"");
    test.ralph(&["resume", "f"]).exits(0);
}

#[test]
fn stop_pause_and_resume_take_several_names() {
    let test = Test::new().script(WAITS);
    for name in ["a", "b"] {
        test.ralph(&spawn_args(name, &["--no-tmux", "--share-workspace"]))
            .exits(0);
    }
    for name in ["a", "b"] {
        test.ralph(&["set", name, "max-iterations=9"]).exits(0);
    }
    test.ralph(&["stop", "a", "b", "none"])
        .exits(2)
        .complains("no loop is named `none`");
    assert_eq!(test.status("a")["status"], "running", "none was stopped");
    test.ralph(&["pause", "a", "b", "a"])
        .exits(0)
        .says("paused ralph loop for a\n")
        .says("paused ralph loop for b\n");
    test.write("go", "");
    test.ralph(&["wait", "a", "b"]).exits(3);
    test.sh("rm go");
    let done = test.ralph(&["resume", "a", "b"]).exits(0);
    assert_eq!(
        done.out,
        "resumed ralph loop for a\nresumed ralph loop for b\n"
    );
    let done = test.ralph(&["stop", "a", "b"]).exits(0);
    assert_eq!(
        done.out,
        "stopped ralph loop for a\nstopped ralph loop for b\n"
    );
    // One that cannot be paused does not keep the others from it.
    test.ralph(&["resume", "b"]).exits(0);
    test.ralph(&["pause", "a", "b"])
        .exits(2)
        .complains("cannot pause \"a\"")
        .says("paused ralph loop for b");
    test.ralph(&["stop", "b"]).exits(0);
}

#[test]
fn a_loop_whose_workspace_is_gone_can_be_stopped() {
    let test = spawned();
    test.ralph(&["pause", "a"]).exits(0);
    test.write("go", "");
    until_status(&test, "a", "paused");
    fs::rename(test.workspace(), test.root().join("moved")).unwrap();
    let mut stop = test.ralph_command(&["stop", "a"]);
    stop.current_dir(test.root());
    test.start_command(stop).end().exits(0);
    fs::rename(test.root().join("moved"), test.workspace()).unwrap();
    until_status(&test, "a", "stopped");
}

mod needs_script {
    use super::*;

    #[test]
    fn attach_never_starts_a_tmux_server() {
        let test = spawned();
        fs::create_dir(test.root().join("other")).unwrap();
        let elsewhere = format!("TMUX_TMPDIR={}", test.root().join("other").display());
        let live =
            test.start_on_terminal_with(&format!("TERM=xterm {elsewhere}"), &["attach", "a"]);
        live.end()
            .exits(2)
            .says("its window is on another tmux server")
            .says("TMUX_TMPDIR");
        let server = test.sh(&format!("{elsewhere} tmux -L ralph ls 2>&1 || true"));
        assert!(!server.contains("view-"), "{server}");
        test.write("go", "");
        finish(&test);
    }

    #[test]
    fn attach_waits_for_a_starting_loop() {
        let (test, live) = starting();
        let attach = test.start_on_terminal_as("xterm", &["attach", "a"]);
        open_gate(&test, live);
        attach.until_out("Iteration 1/2");
        finish(&test);
        attach.end().exits(0);
    }
}
