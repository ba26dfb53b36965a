//! Commands on loops that have crashed, are paused or have ended.

use super::{AGENT, WAITS, check_invariants, crashed};
use crate::kit::{Test, until};
use std::fs;

fn waiting() -> Test {
    Test::new().script(&format!(
        "iteration 1-2\n {WAITS}iteration *\n promise COMPLETE\n"
    ))
}

/// Returns a test with a loop called `a` that was paused after its first iteration.
fn paused(args: &[&str]) -> Test {
    let test = waiting();
    let live = test.start(&[&["run", "x", "--name", "a", "--agent", AGENT], args].concat());
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["pause", "a"])
        .exits(0)
        .says("paused ralph loop for a");
    test.ralph(&["pause", "a"])
        .exits(0)
        .complains("already paused");
    test.write("go", "");
    live.end().exits(3);
    assert_eq!(test.status("a")["status"], "paused");
    test
}

#[test]
fn a_crashed_loop_is_reported_and_leaves_no_process_behind() {
    let test = waiting();
    crashed(&test, &[]);
    assert!(
        test.survivors().len() >= 2,
        "the agent and its shell live on"
    );
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Status: crashed")
        .complains("the loop \"a\" crashed; killed ");
    until("the end of all", || test.survivors().is_empty());
    test.ralph(&["pause", "a"])
        .exits(2)
        .complains("its status is crashed");
}

#[test]
fn a_crashed_loop_can_be_stopped() {
    let test = waiting();
    crashed(&test, &[]);
    test.ralph(&["stop", "a"])
        .exits(0)
        .says("stopped ralph loop for a");
    assert_eq!(test.status("a")["status"], "stopped");
    assert_eq!(test.events("a", "finished").len(), 1);
    assert_eq!(test.survivors(), [0; 0]);
    test.ralph(&["stop", "a"])
        .exits(0)
        .complains("its status is stopped");
    check_invariants(&test, "a");
}

#[test]
fn a_paused_loop_can_be_stopped_and_then_resumed() {
    let test = paused(&[]);
    test.ralph(&["pause", "a"])
        .exits(0)
        .complains("already paused");
    test.ralph(&["stop", "a"]).exits(0);
    assert_eq!(test.status("a")["status"], "stopped");
    assert_eq!(test.events("a", "finished")[0]["exit_code"], 130);
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("resumed ralph loop for a")
        .says("starting iteration 2/25");
    check_invariants(&test, "a");
}

#[test]
fn a_paused_loop_continues_without_another_preflight() {
    let test = paused(&["--check", "true"]);
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("loop complete after 3 iterations");
    assert_eq!(
        test.events("a", "checked")
            .iter()
            .filter(|line| line["iteration"] == 0)
            .count(),
        1
    );
    check_invariants(&test, "a");
}

#[test]
fn a_loop_that_is_done_is_not_resumed() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    test.ralph(&["run", "x", "--name", "a", "--agent", AGENT])
        .exits(0);
    let journal = test.read_loop("a", "journal.jsonl");
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("\"a\" is done");
    assert_eq!(test.read_loop("a", "journal.jsonl"), journal);
}

#[test]
fn a_loop_at_its_limit_is_resumed_once_the_limit_is_raised() {
    let test = Test::new().script("iteration *\n cost 0.25\n");
    test.ralph(&["run", "x", "--name", "a", "--agent", AGENT, "-m", "2"])
        .exits(1);
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("has reached its limit (iterations)")
        .complains("ralph set a max-iterations=");
    test.ralph(&["set", "a", "max-iterations=3"]).exits(0);
    assert_eq!(test.status("a")["max_iterations"], 3);
    test.ralph(&["resume", "a"])
        .exits(1)
        .says("starting iteration 3/3");
    test.ralph(&["resume", "a"]).exits(2);
    check_invariants(&test, "a");
    assert_eq!(test.status("a")["cost_usd"], 0.75);
}

#[test]
fn an_answer_is_only_in_the_next_prompt() {
    let test = Test::new().script(
        "iteration 1\n blocked Which port?\niteration 2\n say going on\niteration *\n promise COMPLETE\n",
    );
    test.ralph(&["run", "x", "--name", "a", "--agent", AGENT])
        .exits(3);
    assert_eq!(test.status("a")["outcome"]["why"], "Which port?");
    test.ralph(&["resume", "a", "--answer", "Take 8080, please."])
        .exits(0);
    assert!(test.prompt("a", 2).contains("Take 8080, please."));
    assert!(!test.prompt("a", 3).contains("Take 8080, please."));
}

#[test]
fn a_marker_written_while_no_runner_was_alive_still_counts() {
    let test = Test::new().script(&format!(
        "iteration 1\n {WAITS} mark DONE\niteration *\n say more\n"
    ));
    let live = test.start(&["run", "x", "--name", "a", "--agent", AGENT]);
    until("the agent", || test.workspace().join("here").exists());
    until("its line", || !test.events("a", "spawned").is_empty());
    super::crash(live);
    test.write("go", "");
    until("the marker", || {
        test.workspace().join(".ralph/task/a/DONE").exists()
    });
    until("the end of the agent", || test.survivors().is_empty());
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("loop complete after 1 iteration");
    check_invariants(&test, "a");
}

#[test]
fn a_marker_written_during_a_pause_counts() {
    let test = paused(&[]);
    test.write(".ralph/task/a/DONE", "by hand\n");
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("loop complete after 1 iteration");
    assert_eq!(test.read_loop("a", "iterations/0001/DONE"), "by hand\n");
    assert!(
        !test.workspace().join(".ralph/task/a/DONE").exists(),
        "it does not finish the next loop of that name"
    );
    check_invariants(&test, "a");
}

#[test]
fn a_marker_counts_only_once() {
    let test = Test::new().script(&format!(
        "iteration 1\n {WAITS}iteration *\n promise COMPLETE\n"
    ));
    test.write(".ralph/task/a/DONE", "too early\n");
    let live = test.start(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        AGENT,
        "-m",
        "2",
        "--check",
        "test -e go",
    ]);
    until("the agent", || test.workspace().join("here").exists());
    assert!(
        !test.workspace().join(".ralph/task/a/DONE").exists(),
        "it is moved away before the agent starts"
    );
    assert_eq!(test.read_loop("a", "iterations/0000/DONE"), "too early\n");
    fs::write(test.workspace().join("go"), "").unwrap();
    live.end().exits(0).says("loop complete after 2 iterations");
}

#[test]
fn resume_records_an_ending_that_a_kill_left_unrecorded() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    test.ralph(&["run", "x", "--name", "a", "--agent", AGENT])
        .exits(0);
    let journal = test.read_loop("a", "journal.jsonl");
    let unsaid: Vec<&str> = journal
        .lines()
        .filter(|line| !line.contains("\"finished\""))
        .collect();
    test.replace_journal("a", &(unsaid.join("\n") + "\n"));
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("loop complete after 1 iteration");
    assert_eq!(test.events("a", "finished").len(), 1);
    test.ralph(&["resume", "a"]).exits(2).complains("is done");
}

#[test]
fn a_new_loop_does_not_start_next_to_processes_of_a_crashed_one() {
    let test = Test::new()
        .script(&format!("iteration *\n {WAITS}"))
        .program("quick", "#!/bin/sh\ntest ! -e go\n");
    crashed(&test, &[]);
    assert!(
        !test.survivors().is_empty(),
        "the agent outlived its runner"
    );
    test.ralph(&[
        "run",
        "x",
        "--name",
        "b",
        "--no-promise",
        "-m",
        "1",
        "--",
        "./quick",
    ])
    .exits(0)
    .complains("the loop \"a\" crashed; killed");
    assert_eq!(test.status("a")["status"], "crashed");
}

#[test]
fn an_unknown_name_is_an_error_that_suggests_the_closest_name() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    test.ralph(&["run", "x", "--name", "painter", "--agent", AGENT])
        .exits(0);
    for args in [
        &["status"][..],
        &["resume"],
        &["stop"],
        &["pause"],
        &["logs"],
        &["set"],
        &["say"],
        &["wait"],
    ] {
        let rest: &[&str] = match args[0] {
            "set" => &["paintr", "max-iterations=3"],
            "say" => &["paintr", "hello"],
            _ => &["paintr"],
        };
        let done = test.ralph(&[args, rest].concat()).exits(2);
        done.complains("ralph: error: no loop is named `paintr`")
            .complains("did you mean `painter`?");
    }
    test.ralph(&["status", "nobody"])
        .exits(2)
        .complains("ralph ls");
    test.ralph(&["status", "../x"])
        .exits(2)
        .complains("is not a valid loop name");
}

#[test]
fn logs_that_follow_a_crashed_loop_end_and_say_so() {
    let test = waiting();
    crashed(&test, &[]);
    let last = "[ralph] a: crashed; run `ralph resume a` to continue it\n";
    for out in [
        test.ralph(&["logs", "a", "-f"]).exits(0).out,
        test.ralph(&["logs", "a", "-f", "--raw"]).exits(0).out,
    ] {
        assert!(out.ends_with(last), "{out}");
    }
    assert!(!test.ralph(&["logs", "a"]).exits(0).out.contains("crashed"));
    test.ralph(&["stop", "a"]).exits(0);
    assert!(
        !test
            .ralph(&["logs", "a", "-f"])
            .exits(0)
            .out
            .contains("crashed")
    );
    test.ralph(&["resume", "--all"])
        .exits(0)
        .says("nothing to resume: no loop was interrupted by a crash or a shutdown\n");
}
