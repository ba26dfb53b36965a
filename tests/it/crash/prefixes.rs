//! A journal cut off after each of its lines, and within some of them.

use super::{AGENT, WAITS, check_invariants};
use crate::kit::{Test, until};
use std::fs;

/// Returns a loop that failed, was blocked and answered, was paused and resumed, and has ended.
/// Also returns its journal.
fn finished() -> (Test, String) {
    let script = format!(
        "iteration 1\n cost 0.25\n exit 1\niteration 2\n cost 0.25\n blocked Which port?\niteration 3\n cost 0.25\n {WAITS}\
         iteration *\n cost 0.25\n sh echo step >> steps\n"
    );
    let test = Test::new().script(&script);
    test.ralph(&[
        "run",
        "work",
        "--name",
        "a",
        "--agent",
        AGENT,
        "--check",
        "test -f steps",
        "--until-green",
        // The test puts back earlier journals, but not the record of the loop's start.
        "--second-look",
        "never",
        "--backoff",
        "10ms..20ms",
    ])
    .exits(3);
    let live = test.start(&["resume", "a", "--answer", "8080"]);
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["pause", "a"]).exits(0);
    test.write("go", "");
    live.end().exits(3);
    test.ralph(&["resume", "a"]).exits(0);
    check_invariants(&test, "a");
    let journal = test.read_loop("a", "journal.jsonl");
    (test, journal)
}

/// Replaces the journal with a prefix of itself, as after a crash.
fn restore_prefix(test: &Test, journal: &str) {
    let _ = fs::remove_file(test.workspace().join("steps"));
    test.replace_journal("a", journal);
}

/// Resumes the loop until it is done. It may be blocked again before that. Returns standard error.
#[track_caller]
fn resume_until_done(test: &Test, written: &str) -> String {
    let mut complaints = String::new();
    for _ in 0..3 {
        let before = test.status("a");
        let said = test
            .journal("a")
            .last()
            .is_some_and(|line| line["event"] == "finished");
        let done = test.ralph(&["resume", "a", "--quiet"]);
        complaints += &done.err;
        if before["status"] == "done" {
            if said {
                done.exits(2).complains("is done");
            } else {
                done.exits(0);
            }
            break;
        }
        assert!([0, 3].contains(&done.code), "after\n{written}\n{done:?}");
    }
    assert_eq!(test.status("a")["status"], "done", "after\n{written}");
    assert!(
        test.read_loop("a", "journal.jsonl")
            .starts_with(written.trim_end_matches(|c| c != '\n')),
        "a line was rewritten"
    );
    check_invariants(test, "a");
    complaints
}

#[test]
fn a_loop_continues_from_any_prefix_of_its_journal() {
    let (test, journal) = finished();
    let ends: Vec<usize> = journal.match_indices('\n').map(|(at, _)| at + 1).collect();
    assert!(ends.len() > 25, "{journal}");
    for end in ends {
        restore_prefix(&test, &journal[..end]);
        let complaints = resume_until_done(&test, &journal[..end]);
        assert!(!complaints.contains("warning"), "{complaints}");
    }
}

#[test]
fn a_torn_last_line_is_removed_with_a_warning() {
    let (test, journal) = finished();
    let ends: Vec<usize> = journal.match_indices('\n').map(|(at, _)| at + 1).collect();
    for (line, keep) in [
        (1, 1),
        (4, 20),
        (5, usize::MAX),
        (12, 40),
        (ends.len() / 2, 3),
        (ends.len() - 3, 60),
    ] {
        let next = &journal[ends[line - 1]..ends[line]];
        let torn = format!(
            "{}{}",
            &journal[..ends[line - 1]],
            &next[..keep.min(next.len() - 1)]
        );
        restore_prefix(&test, &torn);
        // A reader ignores the torn line and leaves it in place.
        test.ralph(&["status", "a"]).exits(0);
        assert_eq!(test.read_loop("a", "journal.jsonl"), torn);
        let complaints = resume_until_done(&test, &torn);
        assert_eq!(
            complaints.matches("ralph: warning: ").count(),
            1,
            "{complaints}"
        );
        assert!(
            complaints.contains(&format!(
                "cut off an incomplete last line of {} bytes",
                keep.min(next.len() - 1)
            )),
            "{complaints}"
        );
    }
}
