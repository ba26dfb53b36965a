//! Two runners that compete for one loop, name or workspace.

use super::{AGENT, WAITS, crash};
use crate::kit::{Live, Test, until};
use std::fs;

const RUN: [&str; 8] = [
    "run",
    "x",
    "--agent",
    AGENT,
    "--no-promise",
    "-m",
    "2",
    "--name",
];

fn waiting() -> Test {
    Test::new().script(&format!("iteration 1\n {WAITS}"))
}

fn start(test: &Test, name: &str, more: &[&str]) -> Live {
    let live = test.start(&[&RUN[..], &[name], more].concat());
    until("the agent", || test.workspace().join("here").exists());
    fs::remove_file(test.workspace().join("here")).unwrap();
    live
}

#[test]
fn a_second_runner_is_refused_and_the_error_names_the_first() {
    let test = waiting();
    let live = start(&test, "a", &[]);
    let process = format!("process {}, since ", live.pid());
    let second = |name| test.ralph(&[&RUN[..], &[name]].concat()).exits(2);
    second("a").complains("the loop \"a\" is already starting or running");
    second("b")
        .complains(&process)
        .complains("the loop \"a\" is already running in this workspace")
        .complains("--share-workspace");
    assert!(!test.loop_dir("b").exists(), "nothing is left of it");
    test.ralph(&["resume", "a"])
        .exits(0)
        .complains("\"a\" is not paused");
    assert_eq!(test.status("a")["status"], "running");
    test.write("go", "");
    live.end().exits(0);
}

#[test]
fn two_loops_may_share_a_workspace_if_both_allow_it() {
    let test = waiting();
    let a = start(&test, "a", &["--share-workspace"]);
    let b = start(&test, "b", &["--share-workspace"]);
    assert_eq!(
        [
            test.status("a")["status"].clone(),
            test.status("b")["status"].clone()
        ],
        ["running", "running"]
    );
    test.write("go", "");
    a.end().exits(0);
    b.end().exits(0);
}

#[test]
fn a_loop_that_is_being_created_keeps_its_name() {
    let test = waiting();
    fs::create_dir_all(test.loop_dir("a")).unwrap();
    // Another `ralph run` has taken the lock and has not written its journal yet.
    let lock = fs::File::create(test.loop_dir("a").join("lock")).unwrap();
    lock.lock().unwrap();
    test.ralph(&[&RUN[..], &["a"]].concat())
        .exits(2)
        .complains("the loop \"a\" is already starting or running");
    assert!(
        test.loop_dir("a").join("lock").exists(),
        "its lock is where it was"
    );
}

#[test]
fn only_one_of_many_loops_started_at_once_under_one_name_runs() {
    let test = waiting();
    test.write("go", "");
    test.ralph(&[&RUN[..], &["a"]].concat()).exits(0);
    fs::remove_file(test.workspace().join("go")).unwrap();
    fs::remove_file(test.workspace().join("here")).unwrap();
    let rivals: Vec<Live> = (0..5)
        .map(|_| test.start(&[&RUN[..], &["a"]].concat()))
        .collect();
    until("the agent", || test.workspace().join("here").exists());
    until("four refusals", || {
        rivals
            .iter()
            .filter(|live| crate::kit::alive(live.pid()))
            .count()
            == 1
    });
    assert_eq!(test.status("a")["status"], "running");
    test.write("go", "");
    let codes: Vec<i32> = rivals.into_iter().map(|live| live.end().code).collect();
    assert_eq!(
        (
            codes.iter().filter(|code| **code == 0).count(),
            codes.iter().filter(|code| **code == 2).count()
        ),
        (1, 4)
    );
    assert_eq!(
        fs::read_dir(test.state_dir().join("archive"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn the_name_of_a_resumable_loop_is_refused() {
    let test = waiting();
    let live = start(&test, "a", &[]);
    crash(live);
    let refused = || {
        test.ralph(&[&RUN[..], &["a"]].concat())
            .exits(2)
            .complains("ralph resume a")
    };
    refused().complains("a crashed loop named");
    let live = test.start(&["resume", "a"]);
    test.write("go", "");
    let _ = live.end().exits(0);
}

#[test]
fn the_name_of_an_ended_loop_can_be_reused_and_the_old_loop_is_archived() {
    let test = waiting();
    test.write("go", "");
    test.ralph(&[&RUN[..], &["a"]].concat()).exits(0);
    let old = test.read_loop("a", "journal.jsonl");
    test.ralph(&[&RUN[..], &["a"]].concat()).exits(0);
    assert_ne!(test.read_loop("a", "journal.jsonl"), old);
    let archived: Vec<_> = fs::read_dir(test.state_dir().join("archive"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(archived.len(), 1);
    assert!(archived[0].file_name().to_string_lossy().starts_with("a-"));
    assert_eq!(
        fs::read_to_string(archived[0].path().join("journal.jsonl")).unwrap(),
        old
    );
}
