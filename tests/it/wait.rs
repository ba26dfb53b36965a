//! `ralph wait`: it returns when a loop has ended or paused, with the loop's exit code.

use crate::crash::{WAITS, crash, crashed};
use crate::kit::{Live, Test, alive, signal, until};
use crate::process::supervisor;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

const AGENT: &str = "script:../agent.script";

fn started(test: &Test, name: &str) -> Live {
    let live = test.start(&[
        "run",
        "x",
        "--name",
        name,
        "--agent",
        AGENT,
        "--share-workspace",
    ]);
    until("the agent", || !test.events(name, "spawned").is_empty());
    live
}

/// Starts `ralph wait`, and returns once that process is waiting.
fn waiting(test: &Test, args: &[&str]) -> Live {
    let live = test.start(&[&["wait"], args].concat());
    let state = || fs::read_to_string(format!("/proc/{}/stat", live.pid())).unwrap_or_default();
    // A waiting process sleeps, with one thread per loop.
    until("a waiter", || {
        let threads = fs::read_dir(format!("/proc/{}/task", live.pid())).map_or(0, Iterator::count);
        let loops: BTreeSet<_> = args.iter().collect();
        threads > loops.len() && state().contains(") S ")
    });
    live
}

#[test]
fn every_ending_has_its_exit_code_and_its_line() {
    for (script, more, code, line) in [
        (
            "promise COMPLETE",
            &[][..],
            0,
            "a: done (the agent claimed it; there are no checks)\n",
        ),
        (
            "say x",
            &["-m", "1"],
            1,
            "a: failed (iteration limit reached)\n",
        ),
        (
            "say x",
            &["-m", "1", "--no-promise"],
            0,
            "a: done (ran to its iteration limit)\n",
        ),
        ("blocked Which port?", &[], 3, "a: blocked (Which port?)\n"),
        (
            "exit 42",
            &[],
            3,
            "a: waiting (the agent asked to wait: exit 42)\n",
        ),
    ] {
        let test = Test::new().script(&format!("iteration *\n {script}\n"));
        test.ralph(&[&["run", "x", "--name", "a", "--agent", AGENT], more].concat())
            .exits(code);
        assert_eq!(test.ralph(&["wait", "a"]).exits(code).out, line);
    }
}

#[test]
fn wait_returns_as_soon_as_the_loop_ends() {
    let test = Test::new().script(&format!("iteration 1\n {WAITS} promise COMPLETE\n"));
    let live = started(&test, "a");
    let waiter = waiting(&test, &["a"]);
    let ticks = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<u64> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|word| word.parse().unwrap())
            .collect();
        fields.iter().sum::<u64>()
    };
    let wakes = |pid: u32| -> u64 {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let switches =
            tasks.map(|task| fs::read_to_string(task.path().join("status")).unwrap_or_default());
        switches
            .flat_map(|text| {
                text.lines()
                    .filter_map(|line| line.split_once("ctxt_switches:\t")?.1.parse::<u64>().ok())
                    .collect::<Vec<_>>()
            })
            .sum()
    };
    let mut before = (0, 0);
    until("deep sleep", || {
        std::thread::sleep(Duration::from_millis(50));
        std::mem::replace(&mut before, (ticks(waiter.pid()), wakes(waiter.pid()))) == before
    });
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(
        (ticks(waiter.pid()), wakes(waiter.pid())),
        before,
        "nobody wakes it, not even every second"
    );
    test.write("go", "");
    live.end().exits(0);
    waiter.end().exits(0).says("a: done");
}

#[test]
fn a_pause_a_stop_and_a_crash_end_the_wait() {
    let script = format!("iteration *\n {WAITS}");
    let test = Test::new().script(&script);
    let live = started(&test, "a");
    let waiter = waiting(&test, &["a"]);
    test.ralph(&["pause", "a"]).exits(0);
    assert!(alive(waiter.pid()), "the agent has not finished yet");
    test.write("go", "");
    live.end().exits(3);
    assert_eq!(waiter.end().exits(3).out, "a: paused\n");

    fs::remove_file(test.workspace().join("go")).unwrap();
    let live = test.start(&["resume", "a"]);
    until("the agent", || test.events("a", "spawned").len() == 2);
    let waiter = waiting(&test, &["a"]);
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    assert_eq!(
        waiter.end().exits(130).out,
        "a: stopped by a person (ralph stop)\n"
    );

    let live = test.start(&["resume", "a"]);
    until("the agent", || test.events("a", "spawned").len() == 3);
    let waiter = waiting(&test, &["a"]);
    signal(supervisor(&test), "KILL");
    live.end().exits(137);
    assert_eq!(waiter.end().exits(1).out, "a: crashed\n");
}

#[test]
fn waiting_for_a_killed_loop_leaves_no_process_behind() {
    let test = Test::new().script(&format!("iteration *\n {WAITS}"));
    crashed(&test, &[]);
    test.ralph(&["wait", "a"])
        .exits(1)
        .says("a: crashed")
        .complains("the loop \"a\" crashed; killed");
    assert_eq!(test.survivors(), [0; 0]);
    test.write("go", "");
    let live = test.start(&["resume", "a"]);
    live.until_out("starting iteration 3");
    fs::remove_file(test.workspace().join("go")).unwrap();
    until("a waiting agent", || {
        test.journal("a")
            .last()
            .is_some_and(|line| line["event"] == "spawned")
    });
    let waiter = waiting(&test, &["a"]);
    crash(live);
    waiter.end().exits(1).says("a: crashed");
}

#[test]
fn several_loops_are_all_waited_for_and_the_worst_exit_code_counts() {
    let test = Test::new().script("iteration *\n sh until test -e go-$RALPH_LOOP; do sleep 0.01; done\n sh test $RALPH_LOOP = a || exit 1; echo '<promise>COMPLETE</promise>'\n sh test $RALPH_LOOP = a || touch .ralph/task/b/BLOCKED\n");
    let live = [started(&test, "a"), started(&test, "b")];
    let waiter = waiting(&test, &["b", "a", "b"]);
    test.write("go-a", "");
    waiter.until_out("a: done");
    assert!(alive(waiter.pid()), "b runs");
    test.write("go-b", "");
    let done = waiter.end().exits(3);
    assert_eq!(done.out.lines().count(), 2, "{}", done.out);
    assert!(done.out.contains("b: blocked"), "{}", done.out);
    for (live, code) in live.into_iter().zip([0, 3]) {
        live.end().exits(code);
    }
}

#[test]
fn a_wait_can_time_out() {
    let test = Test::new().script(&format!("iteration *\n {WAITS} promise COMPLETE\n"));
    let live = started(&test, "a");
    let begun = Instant::now();
    test.ralph(&["wait", "a", "--timeout", "300ms"])
        .exits(4)
        .complains("ralph: error: still running after 300ms: a")
        .complains("ralph status a");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    test.write("go", "");
    live.end().exits(0);
    test.ralph(&["wait", "a", "--timeout", "1h"]).exits(0);
}

#[test]
fn an_unknown_name_is_refused_before_waiting() {
    let test = Test::new().script(&format!("iteration *\n {WAITS} promise COMPLETE\n"));
    let live = started(&test, "auth");
    test.ralph(&["wait", "auth", "auht"])
        .exits(2)
        .complains("no loop is named `auht`")
        .complains("did you mean `auth`?");
    test.ralph(&["wait"]).exits(2).complains("<NAME>");
    test.ralph(&["wait", "auth", "--timeout", "soon"])
        .exits(2)
        .complains("90s");
    test.write("go", "");
    live.end().exits(0);
}
