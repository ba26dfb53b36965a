//! After a crash, the system's boot ID decides whether processes may be left, not the clock.

use super::{WAITS, crashed};
use crate::kit::{Test, alive, until};
use std::fs;

/// Runs a loop, kills all of ralph, and returns the agent that outlived it.
fn with_orphan() -> (Test, u32) {
    let test = Test::new().script(&format!("iteration 1\n {WAITS}"));
    crashed(&test, &[]);
    let agent = test.events("a", "spawned")[0]["pid"].as_u64().unwrap() as u32;
    assert!(alive(agent));
    (test, agent)
}

/// Changes the journal's text, and returns what it was.
fn edit_journal(test: &Test, edit: impl Fn(&str) -> String) -> String {
    let path = test.loop_dir("a").join("journal.jsonl");
    let before = fs::read_to_string(&path).unwrap();
    let after = edit(&before);
    assert_ne!(after, before);
    fs::write(path, after).unwrap();
    let _ = fs::remove_file(test.loop_dir("a").join("state.json"));
    before
}

#[test]
fn an_agent_is_swept_after_the_clock_was_set_forward() {
    let (test, agent) = with_orphan();
    // To a clock that is ten years ahead, every event is ten years old.
    edit_journal(&test, |text| text.replace("\"at_ms\":1", "\"at_ms\":"));
    test.ralph(&["status", "a"])
        .exits(0)
        .complains("the loop \"a\" crashed; killed");
    until("its end", || !alive(agent));
}

#[test]
fn nothing_is_swept_after_a_reboot() {
    let (test, agent) = with_orphan();
    let boot = test.events("a", "opened")[0]["boot"].clone();
    let boot = boot.as_str().expect("a boot ID");
    let before = edit_journal(&test, |text| text.replace(boot, "another-boot"));
    let done = test.ralph(&["status", "a"]).exits(0).says("crashed");
    assert_eq!(done.err, "");
    assert!(alive(agent), "its ID may be that of another process now");
    edit_journal(&test, |_| before.clone());
    test.ralph(&["status", "a"]).exits(0).complains("killed");
    until("its end", || !alive(agent));
}
