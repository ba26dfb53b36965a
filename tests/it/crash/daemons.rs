//! Warden and supervisor killed at once, at random moments: the next command finds every process
//! that the agent started, also daemons with a session of their own and an empty environment.

use super::{kill_now, supervisor};
use crate::kit::{Test, alive, pids, until};
use std::fs;
use std::time::{Duration, Instant};

/// The number of double kills.
const ROUNDS: u32 = 30;
/// The latest moment of a kill, after the loop was started.
const WINDOW: Duration = Duration::from_millis(120);

/// Starts daemons for as long as it lives.
const AGENT: &str = "while :; do (setsid env -i sleep \"$0\" &); sleep 0.002; done";

/// Returns the living processes with this argument.
fn with_argument(argument: &str) -> Vec<u32> {
    let has_argument = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|word| word == argument.as_bytes())
    };
    let all = pids().into_iter().filter(has_argument);
    all.filter(|pid| alive(*pid)).collect()
}

/// Returns the daemons among these processes: ralph and the agent have the same argument.
fn daemons(argument: &str) -> Vec<u32> {
    let is_daemon = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\0")
    };
    let all = with_argument(argument).into_iter();
    all.filter(is_daemon).collect()
}

#[test]
fn no_daemon_outlives_a_double_kill() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut started = 0;
    for round in 0..ROUNDS {
        let test = Test::new();
        let seconds = format!("600.{}{round:02}", std::process::id());
        let live = test.start(&["run", "t", "--name", "a", "--", "sh", "-c", AGENT, &seconds]);
        let moment = Instant::now() + WINDOW.mul_f64(random.f64());
        let journal = test.loop_dir("a").join("journal.jsonl");
        until("the loop", || journal.exists());
        // On a busy machine, the moment may come before the first daemon does.
        if round % 2 == 0 {
            until("a daemon", || !daemons(&seconds).is_empty());
        }
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        let warden = live.pid();
        let victims: Vec<u32> = [Some(warden), supervisor(warden)]
            .into_iter()
            .flatten()
            .collect();
        kill_now(&victims);
        let _ = live.end();
        started += daemons(&seconds).len();
        test.ralph(&["status", "a"]).exits(0);
        assert_eq!(with_argument(&seconds), [0; 0], "round {round}");
        assert_eq!(test.survivors(), [0; 0], "round {round}");
    }
    assert!(started > 0, "some daemons outlived their loop");
}
