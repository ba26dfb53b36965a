//! `kill -9` at every line of the journal.

use super::{AGENT, check_invariants, kill_now, supervisor};
use crate::kit::{Live, Test, alive};
use std::fs;

/// The first agent fails. Each later one makes one step, and two steps turn the check green.
const SCRIPT: &str = "iteration 1\n cost 0.25\n sleep 5ms\n exit 1\niteration *\n cost 0.25\n sh echo step >> steps\n sleep 5ms\n";
const RUN: [&str; 15] = [
    "run",
    "work",
    "--name",
    "a",
    "--agent",
    AGENT,
    "--backoff",
    "10ms..20ms",
    "--context",
    "feedback",
    "--check",
    "test $(cat steps 2>/dev/null | wc -l) -ge 2",
    "--check",
    "true",
    "--until-green",
];

#[derive(Clone, Copy)]
enum Victim {
    Supervisor,
    Warden,
    Both,
}

/// Kills a runner as soon as the journal has this many lines, if the loop runs that long. Processes
/// that die with the runner may still be exiting afterwards.
fn kill_at(test: &Test, live: Live, lines: usize, victim: Victim) {
    let journal = test.loop_dir("a").join("journal.jsonl");
    let count = || {
        fs::read_to_string(&journal)
            .unwrap_or_default()
            .matches('\n')
            .count()
    };
    while count() < lines && alive(live.pid()) {
        std::hint::spin_loop();
    }
    let (warden, supervisor) = (live.pid(), supervisor(live.pid()));
    match (victim, supervisor) {
        (Victim::Supervisor, Some(supervisor)) => kill_now(&[supervisor]),
        (Victim::Both, Some(supervisor)) => kill_now(&[warden, supervisor]),
        (Victim::Warden, _) | (_, None) => kill_now(&[warden]),
    }
    let _ = live.end();
}

/// Resumes a loop to its end. A refusal is correct if the loop had ended before the kill.
#[track_caller]
fn resume(test: &Test, ending: &str) {
    let done = test.ralph(&["resume", "a", "--quiet"]);
    let status = test.status("a");
    assert_eq!(status["status"], ending, "{done:?}");
    let code = i32::from(ending == "failed");
    assert!(done.code == code || done.code == 2, "{done:?}");
}

/// Kills a new run at each journal line of an undisturbed one, and checks what the next runner
/// does.
fn kill_at_each_line(args: &[&str], ending: &str, victim: impl Fn(usize) -> Victim) {
    let undisturbed = Test::new().script(SCRIPT);
    undisturbed.ralph(args).exits(i32::from(ending == "failed"));
    check_invariants(&undisturbed, "a");
    for line in 1..=undisturbed.journal("a").len() {
        let test = Test::new().script(SCRIPT);
        kill_at(&test, test.start(args), line, victim(line));
        resume(&test, ending);
        check_invariants(&test, "a");
        assert!(
            ending == "done" || test.events("a", "started").len() == 2,
            "the limit holds"
        );
    }
}

/// Each line has one of the victims in turn; with `RALPH_CHAOS`, each of them.
#[test]
fn a_loop_recovers_from_a_kill_at_any_journal_line() {
    let victims = [Victim::Supervisor, Victim::Warden, Victim::Both];
    let rounds = if std::env::var_os("RALPH_CHAOS").is_some() {
        victims.len()
    } else {
        1
    };
    for first in 0..rounds {
        kill_at_each_line(&RUN, "done", |line| victims[(first + line) % victims.len()]);
    }
}

#[test]
fn a_limit_holds_wherever_the_loop_is_killed() {
    let args = [&RUN[..10], &["--check", "false", "-m", "2"]].concat();
    kill_at_each_line(&args, "failed", |line| {
        [Victim::Supervisor, Victim::Both, Victim::Warden][line % 3]
    });
}

#[test]
fn a_loop_that_is_killed_repeatedly_still_finishes() {
    let test = Test::new().script(SCRIPT);
    let mut live = test.start(&RUN);
    let mut lines = 0;
    while test.loop_dir("a").join("journal.jsonl").exists() && test.status("a")["status"] != "done"
        || lines == 0
    {
        lines = test.journal("a").len() + 8;
        kill_at(
            &test,
            live,
            lines,
            [Victim::Both, Victim::Supervisor][lines % 2],
        );
        live = test.start(&["resume", "a", "--quiet"]);
    }
    let _ = live.end();
    check_invariants(&test, "a");
    assert!(test.events("a", "opened").len() > 1, "it was killed");
}
