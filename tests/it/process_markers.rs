//! Markers: an agent's files are seen at once and judged once, and cannot steer its own loop.

use crate::kit::{Test, until};
use crate::process::{AGENT, ready};
use std::fs;
use std::time::UNIX_EPOCH;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
const RUN: [&str; 6] = ["run", "t", "--name", "a", "--agent", AGENT];
const TASK: &str = ".ralph/task/a";

/// Returns whether a marker was moved into an iteration's directory.
fn is_archived(test: &Test, iteration: u32, name: &str) -> bool {
    let moved = test
        .loop_dir("a")
        .join(format!("iterations/{iteration:04}/{name}"))
        .exists();
    assert!(
        !(moved && test.workspace().join(TASK).join(name).exists()),
        "{name} is in both places"
    );
    moved
}

#[test]
fn ralph_done_from_inside_ends_the_loop() {
    let test = Test::new().script(&format!("iteration 1\n sh {RALPH} done; echo done=$?\n"));
    test.ralph(&RUN)
        .exits(0)
        .says("done=0")
        .says("loop complete after 1 iteration");
    assert!(is_archived(&test, 1, "DONE"));
}

#[test]
fn ralph_blocked_from_inside_ends_the_loop_with_its_reason() {
    let script = format!(
        "iteration 1\n sh {RALPH} blocked which port?; echo blocked=$?\niteration *\n promise COMPLETE\n"
    );
    let test = Test::new().script(&script);
    test.ralph(&RUN).exits(3).says("blocked=0");
    let status = test.status("a");
    assert_eq!(
        (&status["status"], &status["outcome"]["why"]),
        (&"blocked".into(), &"which port?".into())
    );
    test.ralph(&["resume", "a", "--answer", "port 80"]).exits(0);
    assert!(test.prompt("a", 2).contains("port 80"));
}

#[test]
fn done_and_blocked_outside_a_loop_are_errors() {
    let test = Test::new();
    test.ralph(&["done"])
        .exits(2)
        .complains("not inside a loop");
    test.ralph(&["blocked", "why"])
        .exits(2)
        .complains("not inside a loop");
}

#[test]
fn an_agent_cannot_steer_its_own_loop() {
    let verbs = ["pause a", "resume a", "stop a", "set a max-iterations=99"];
    let tries = verbs.map(|verb| {
        format!("sh {RALPH} {verb}; echo code=$?; env -u RALPH_LOOP {RALPH} {verb}; echo code=$?\n")
    });
    let test = Test::new().script(&format!(
        "iteration 1\n{}sh {RALPH} status a\npromise COMPLETE\n",
        tries.concat()
    ));
    let done = test
        .ralph(&RUN)
        .exits(0)
        .says("an agent cannot control its own loop")
        .says("Status: running");
    assert_eq!(
        done.out.matches("code=2").count(),
        2 * verbs.len(),
        "{}",
        done.out
    );
    assert_eq!(
        test.events("a", "asked").len() + test.events("a", "changed").len(),
        0
    );
    assert_eq!(test.status("a")["max_iterations"], 25);
}

#[test]
fn a_done_marker_during_a_run_is_seen_at_once() {
    let test = Test::new().script("iteration 1\n sleep 50ms\n mark DONE\n say ready\n hang\n");
    let live = test.start(&RUN);
    ready(&test);
    until("a notice", || !test.events("a", "noticed").is_empty());
    let noticed = &test.events("a", "noticed")[0];
    assert_eq!(
        (&noticed["iteration"], &noticed["notice"]["marker"]),
        (&1.into(), &"done".into())
    );
    let made = fs::metadata(test.workspace().join(TASK).join("DONE"))
        .unwrap()
        .modified()
        .unwrap();
    let made = made.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let late = noticed["at_ms"].as_i64().unwrap() - made;
    // Without a watch, it could take 16 seconds.
    assert!(late < 8000, "{late} ms");
    assert_eq!(test.status("a")["status"], "running", "it has its grace");
    test.ralph(&["stop", "a"]).exits(0);
    live.end()
        .exits(130)
        .says("DONE marker seen; the agent has 30s to exit");
    assert!(is_archived(&test, 1, "DONE"));
}

#[test]
fn a_done_marker_before_the_start_ends_a_loop_without_checks() {
    let test = Test::new()
        .script("iteration *\n promise COMPLETE\n")
        .file(".ralph/task/a/DONE", "");
    test.ralph(&RUN).exits(0);
    assert_eq!(
        (
            test.events("a", "started").len(),
            test.status("a")["status"].as_str()
        ),
        (0, Some("done"))
    );
    assert!(is_archived(&test, 0, "DONE"));
    // The marker was judged: it does not count for the next loop of that name.
    test.ralph(&RUN).exits(0);
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn a_done_marker_before_the_start_does_not_count_if_a_check_is_red() {
    let test = Test::new()
        .script("iteration 1\n write x\n sleep 50ms\niteration 2\n mark DONE\n")
        .file(".ralph/task/a/DONE", "");
    test.ralph(&[&RUN[..], &["--check", "test -e x", "--promise", "P"]].concat())
        .exits(0);
    let noticed: Vec<_> = test
        .events("a", "noticed")
        .iter()
        .map(|event| event["iteration"].clone())
        .collect();
    assert!(
        noticed[0] == 0 && !noticed.contains(&1.into()),
        "{noticed:?}"
    );
    assert_eq!(test.events("a", "started").len(), 2);
    assert!(is_archived(&test, 0, "DONE") && is_archived(&test, 2, "DONE"));
}

#[test]
fn a_done_marker_with_red_checks_is_judged_once() {
    let test = Test::new()
        .script("iteration 1\n mark DONE\niteration 2\n write x\niteration 3\n mark DONE\n");
    test.ralph(&[&RUN[..], &["--check", "test -e x", "--promise", "P"]].concat())
        .exits(0);
    assert_eq!(test.events("a", "started").len(), 3);
    assert!(
        is_archived(&test, 1, "DONE")
            && !is_archived(&test, 2, "DONE")
            && is_archived(&test, 3, "DONE")
    );
}

#[test]
fn a_done_marker_between_iterations_is_judged_at_once() {
    let test = Test::new().script("iteration *\n say ready\n");
    let live = test.start(&[&RUN[..], &["--delay", "10m"]].concat());
    ready(&test);
    until("a rest", || test.status("a")["resting_until"].is_string());
    test.write(".ralph/task/a/DONE", "");
    live.end().exits(0);
    assert!(is_archived(&test, 1, "DONE"));
}

#[test]
fn a_done_marker_of_a_paused_loop_counts_when_it_is_resumed() {
    let test = Test::new().script("iteration *\n say ready\n");
    let live = test.start(&[&RUN[..], &["--delay", "10m"]].concat());
    ready(&test);
    test.ralph(&["pause", "a"]).exits(0);
    live.end().exits(3);
    test.write(".ralph/task/a/DONE", "");
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn resume_ignores_a_blocked_marker_from_before_the_start() {
    let test = Test::new()
        .script("iteration *\n promise COMPLETE\n")
        .file(".ralph/task/a/BLOCKED", "no key\n");
    test.ralph(&RUN).exits(3);
    assert_eq!(test.events("a", "started").len(), 0);
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn a_claim_of_an_interrupted_iteration_is_judged_after_the_crash() {
    let test = Test::new().script("iteration 1\n say ready\n hang\n");
    let live = test.start(&RUN);
    ready(&test);
    live.signal("HUP");
    live.end().exits(129);
    test.write(".ralph/task/a/DONE", "");
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(test.events("a", "started").len(), 1);
    assert!(is_archived(&test, 1, "DONE"));
}

#[test]
fn a_directory_called_done_is_fatal() {
    let test = Test::new()
        .file(".ralph/task/a/DONE/x", "")
        .script("iteration *\n promise COMPLETE\n");
    test.ralph(&RUN)
        .exits(1)
        .complains("the marker DONE must be a file, but is a directory");
    assert_eq!(
        (
            test.events("a", "started").len(),
            &test.status("a")["outcome"]["why"]
        ),
        (0, &"marker".into())
    );
}

#[test]
fn a_directory_called_done_during_a_run_is_fatal() {
    let test = Test::new().script("iteration 1\n sh mkdir $RALPH_TASK_DIR/DONE\n hang\n");
    test.ralph(&RUN)
        .exits(1)
        .complains("the marker DONE must be a file, but is a directory");
    assert_eq!(test.status("a")["outcome"]["why"], "marker");
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn the_cost_of_an_interrupted_iteration_counts_once() {
    let test = Test::new().script(
        "iteration 1\n cost 0.5\n say ready\n hang\niteration 2\n cost 0.25\n promise COMPLETE\n",
    );
    let live = test.start(&RUN);
    ready(&test);
    live.signal("HUP");
    live.end().exits(129);
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(test.status("a")["cost_usd"], 0.75);
}
