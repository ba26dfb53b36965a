//! Signals: the first one asks, the second one insists, and each counts once, whichever process receives it.

use crate::kit::{Live, Test, alive, signal, until};
use crate::process::{AGENT, assert_no_survivors, press, ready, supervisor};
use std::os::unix::process::CommandExt;

/// The first agent works until a file tells it to finish; the second one does the work.
const PATIENT: &str = "
iteration 1
  fork setsid 10m
  say ready
  sh until test -e go; do sleep 0.02; done
  say finished
iteration 2
  write x
";

const RUN: [&str; 9] = [
    "run",
    "t",
    "--name",
    "a",
    "--agent",
    AGENT,
    "--check",
    "test -e x",
    "--until-green",
];

/// Asserts what a single signal does: the iteration and its checks finish, nothing new starts, and
/// resume continues.
fn assert_graceful(send: impl Fn(&Test, &Live), code: i32, status: &str) {
    let test = Test::new().script(PATIENT);
    let mut command = test.ralph_command(&RUN);
    command.process_group(0);
    let live = test.start_command(command);
    ready(&test);
    send(&test, &live);
    until("a heard signal", || !test.events("a", "asked").is_empty());
    test.write("go", "");
    live.end().exits(code).says("finished");
    assert_eq!(test.events("a", "asked").len(), 1);
    assert_eq!(test.events("a", "ended")[0]["report"]["exit"]["code"], 0);
    assert_eq!(test.events("a", "checked").last().unwrap()["iteration"], 1);
    assert_eq!(test.events("a", "started").len(), 1);
    assert_eq!(test.status("a")["status"], status);
    assert_no_survivors(&test, 1);
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(test.status("a")["current_iteration"], 2);
}

#[test]
fn one_ctrl_c_lets_the_iteration_finish_and_then_stops() {
    assert_graceful(|_, live| live.signal("INT"), 130, "stopped");
}

#[test]
fn sigint_to_the_supervisor_stops_too() {
    assert_graceful(|test, _| signal(supervisor(test), "INT"), 130, "stopped");
}

#[test]
fn sigint_to_the_whole_process_group_counts_once() {
    assert_graceful(
        |test, live| drop(test.sh(&format!("kill -s INT -- -{}", live.pid()))),
        130,
        "stopped",
    );
}

#[test]
fn one_sigterm_lets_the_iteration_finish_and_then_pauses() {
    assert_graceful(|_, live| live.signal("TERM"), 3, "paused");
}

#[test]
fn sigterm_to_the_supervisor_pauses_too() {
    assert_graceful(|test, _| signal(supervisor(test), "TERM"), 3, "paused");
}

#[test]
fn a_paused_loop_records_no_ending() {
    let test = Test::new().script(PATIENT);
    let live = test.start(&RUN);
    ready(&test);
    press(&test, &live, "TERM", 1);
    test.write("go", "");
    live.end().exits(3);
    assert_eq!(test.events("a", "finished").len(), 0);
    assert_eq!(test.status("a")["outcome"], serde_json::Value::Null);
}

#[test]
fn sighup_to_the_supervisor_kills_the_tree_and_records_no_ending() {
    let test = Test::new().script(PATIENT);
    let live = test.start(&RUN);
    ready(&test);
    signal(supervisor(&test), "HUP");
    live.end().exits(129);
    assert_no_survivors(&test, 1);
    assert_eq!(test.status("a")["status"], "crashed");
    assert_eq!(
        (
            test.events("a", "finished").len(),
            test.events("a", "ended").len()
        ),
        (0, 0)
    );
}

#[test]
fn sighup_is_ignored_if_the_parent_ignores_it() {
    let test = Test::new().script(PATIENT);
    let mut command = test.command("sh");
    command
        .args([
            "-c",
            "trap '' HUP; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_ralph"),
        ])
        .args(RUN);
    let live = test.start_command(command);
    ready(&test);
    live.signal("HUP");
    test.write("go", "");
    live.end().exits(0).says("finished");
}

#[test]
fn another_signal_while_the_agent_is_being_stopped_kills_it_at_once() {
    // With this grace, the test would time out.
    let test = Test::new()
        .file(".ralph/settings.toml", "graceTerm = '10m'\n")
        .script("iteration 1\n ignore TERM\n fork ignore-term 10m\n say ready\n hang\n");
    let live = test.start(&RUN);
    ready(&test);
    press(&test, &live, "INT", 3);
    live.end().exits(130);
    assert_no_survivors(&test, 1);
}

#[test]
fn a_signal_ends_a_rest_at_once() {
    for (name, code) in [("INT", 130), ("TERM", 3)] {
        let test = Test::new().script("iteration *\n say ready\n");
        let live = test.start(&[&RUN[..], &["--delay", "10m"]].concat());
        ready(&test);
        until("a rest", || test.status("a")["resting_until"].is_string());
        live.signal(name);
        live.end().exits(code);
        assert_eq!(test.events("a", "started").len(), 1);
    }
}

mod needs_script {
    use super::*;

    #[test]
    fn ctrl_c_on_a_terminal_counts_once() {
        let test = Test::new().script(PATIENT);
        let live = test.start_on_terminal(&RUN);
        ready(&test);
        live.type_in("\x03");
        live.until_out("stopping after this iteration; Ctrl-C again kills it now");
        test.write("go", "");
        live.end().exits(130).says("finished");
        assert_eq!(test.events("a", "asked").len(), 1);
    }

    #[test]
    fn two_ctrl_c_on_a_terminal_kill_the_agent() {
        let test = Test::new().script(PATIENT);
        let live = test.start_on_terminal(&RUN);
        ready(&test);
        for count in 1..=2 {
            live.type_in("\x03");
            until("a heard key", || test.events("a", "asked").len() == count);
        }
        live.end().exits(130).says("by a person (Ctrl-C)");
        assert_no_survivors(&test, 1);
    }

    #[test]
    fn closing_the_terminal_kills_the_tree() {
        let test = Test::new().script(PATIENT);
        let live = test.start_on_terminal(&RUN);
        ready(&test);
        let supervisor = supervisor(&test);
        live.signal("KILL");
        until("the runner's end", || !alive(supervisor));
        until("a free lock", || test.status("a")["status"] == "crashed");
        assert_no_survivors(&test, 1);
        assert_eq!(test.events("a", "finished").len(), 0);
    }
}
