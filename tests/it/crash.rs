//! Kills, crashes, full disks and second runners: none of them breaks a loop.

mod boot;
mod commands;
mod contention;
mod daemons;
mod disk;
mod files;
mod kill;
mod prefixes;

use crate::kit::{Live, Test, alive, until};
use serde_json::Value;
use std::fs;

const AGENT: &str = "script:../agent.script";

/// Creates the file `here`, then waits for `go`.
pub(crate) const WAITS: &str = "sh touch here; until test -e go; do sleep 0.01; done\n";

/// Sends SIGKILL to all processes. They are stopped first: on a busy machine, one could otherwise
/// still react to the death of another.
pub(crate) fn kill_now(pids: &[u32]) {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in pids {
            let _ = kill_process(Pid::from_raw(*pid as i32).unwrap(), signal);
        }
    }
}

/// Returns a warden's supervisor, found without scanning every process.
pub(crate) fn supervisor(warden: u32) -> Option<u32> {
    let list = fs::read_to_string(format!("/proc/{warden}/task/{warden}/children")).ok()?;
    list.split_whitespace().next()?.parse().ok()
}

/// Kills warden and supervisor at once, and waits until they have exited. The agent keeps running.
pub(crate) fn crash(live: Live) {
    let warden = live.pid();
    let mut victims = vec![warden];
    // The kernel's list may omit a child while others start and exit.
    until("its supervisor", || {
        victims.extend(supervisor(warden));
        victims.len() == 2
    });
    kill_now(&victims);
    let _ = live.end();
    until("the supervisor's end", || {
        victims.iter().all(|pid| !alive(*pid))
    });
}

/// Runs a loop called `a` and kills all of ralph's processes while its agent runs.
pub(crate) fn crashed(test: &Test, args: &[&str]) {
    let live = test.start(&[&["run", "work", "--name", "a", "--agent", AGENT], args].concat());
    until("the agent", || test.workspace().join("here").exists());
    until("its line", || !test.events("a", "spawned").is_empty());
    crash(live);
    fs::remove_file(test.workspace().join("here")).unwrap();
}

/// Asserts what must hold for every loop, however often its runners were killed.
#[track_caller]
pub(crate) fn check_invariants(test: &Test, name: &str) {
    let journal = test.journal(name);
    let is = |line: &Value, event: &str| line["event"] == event;
    let started: Vec<u64> = journal
        .iter()
        .filter(|line| is(line, "started"))
        .map(|line| line["iteration"].as_u64().unwrap())
        .collect();
    assert_eq!(
        started,
        (1..=started.len() as u64).collect::<Vec<_>>(),
        "iteration numbers"
    );

    let (mut cost, mut failures, mut open) = (Some(0.0), 0, None);
    for line in &journal {
        let spent = match line["event"].as_str() {
            Some("started") => {
                assert_eq!(open, None, "an iteration without an end: {journal:#?}");
                open = line["iteration"].as_u64();
                continue;
            }
            Some("ended") => {
                assert_eq!(
                    open,
                    line["iteration"].as_u64(),
                    "an end too many: {journal:#?}"
                );
                let exit = &line["report"]["exit"];
                failures += u64::from(exit["code"] == 1 || exit["signal"] == 9);
                line["report"]["cost_usd"].as_f64()
            }
            Some("opened") if open.is_some() => line["cost_usd"].as_f64(),
            _ => continue,
        };
        open = None;
        cost = cost.zip(spent).map(|(cost, spent)| cost + spent);
    }
    assert_eq!(open, None, "the last iteration has no end: {journal:#?}");

    let status = test.status(name);
    assert_eq!(status["current_iteration"], started.len());
    assert_eq!(status["cost_usd"].as_f64(), cost);
    assert_eq!(status["total_failures"], failures);
    let _ = fs::remove_file(test.loop_dir(name).join("state.json"));
    assert_eq!(test.status(name), status, "from the journal alone");
    assert_eq!(test.survivors(), [0; 0], "processes");
}
