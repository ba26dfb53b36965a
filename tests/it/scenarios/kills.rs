//! Kills of background loops in windows: no process is left, the loop is crashed at once, and it can be resumed.

use super::{ends_with, iterations, spawn};
use crate::crash::{kill_now, supervisor};
use crate::kit::{Test, alive, until};
use crate::spawn::{tmux, until_status};

/// A failed iteration with a cost, then an agent that is interrupted, then one that is done.
const SCRIPT: &str = "
iteration 1
  cost 0.50
  exit 1
iteration 2
  cost 0.25
  fork setsid daemon 10m
  sh touch here
  hang
iteration *
  cost 0.10
  promise COMPLETE
";

/// The processes of a loop that a test kills.
#[derive(Clone, Copy, Debug)]
enum Victims {
    Supervisor,
    Warden,
    Server,
    Both,
    All,
}

impl Victims {
    fn pids(self, test: &Test) -> Vec<u32> {
        let number = |args: &[&str]| tmux(test, args).trim().parse::<u32>().unwrap();
        let server = number(&["display-message", "-p", "#{pid}"]);
        let warden = number(&[
            "display-message",
            "-p",
            "-t",
            "=ralph:=agent",
            "#{pane_pid}",
        ]);
        let supervisor = supervisor(warden).expect("a supervisor");
        match self {
            Self::Supervisor => vec![supervisor],
            Self::Warden => vec![warden],
            Self::Server => vec![server],
            Self::Both => vec![warden, supervisor],
            Self::All => vec![server, warden, supervisor],
        }
    }
}

/// Whichever process is killed with SIGKILL, no agent survives and the loop is crashed; resumed, it
/// continues in a window with its counts, limits, rests and costs.
#[test]
fn the_loop_continues_where_it_was_whichever_process_is_killed() {
    for victims in [
        Victims::Supervisor,
        Victims::Warden,
        Victims::Server,
        Victims::Both,
        Victims::All,
    ] {
        let test = Test::new().script(SCRIPT);
        let args = [
            "go",
            "-m",
            "3",
            "--max-failures",
            "2",
            "--backoff",
            "1ms..1ms",
        ];
        spawn(
            &test,
            &[&args[..], &["--agent", "script:../agent.script"]].concat(),
        )
        .exits(0);
        until("the second agent", || {
            test.workspace().join("here").exists()
        });
        let pids = victims.pids(&test);
        kill_now(&pids);
        until("their end", || pids.iter().all(|pid| !alive(*pid)));
        if matches!(victims, Victims::Both | Victims::All) {
            test.ralph(&["ls"]).exits(0).says("crashed");
        }
        until_status(&test, "agent", "crashed");
        until("the end of all", || test.survivors().is_empty());
        let crashed = test.status("agent");
        let counts = [
            "current_iteration",
            "total_failures",
            "consecutive_failures",
        ];
        assert_eq!(
            counts.map(|field| crashed[field].as_u64().unwrap()),
            [2, 1, 1],
            "{victims:?}"
        );
        assert_eq!(
            test.ralph(&["resume", "agent"]).exits(0).out,
            "resumed ralph loop for agent\n"
        );
        ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
        let done = test.status("agent");
        assert_eq!(
            counts.map(|field| done[field].as_u64().unwrap()),
            [3, 1, 0],
            "{victims:?}"
        );
        assert_eq!(
            (iterations(&test), done["cost_usd"].as_f64()),
            (3, Some(0.85)),
            "{victims:?}"
        );
        until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
    }
}

/// A crash does not give a loop more iterations than its limit.
#[test]
fn an_interrupted_iteration_counts_against_the_limit() {
    let test = Test::new().script(SCRIPT);
    let args = [
        "go",
        "-m",
        "2",
        "--backoff",
        "1ms..1ms",
        "--agent",
        "script:../agent.script",
    ];
    spawn(&test, &args).exits(0);
    until("the second agent", || {
        test.workspace().join("here").exists()
    });
    kill_now(&Victims::All.pids(&test));
    until_status(&test, "agent", "crashed");
    test.ralph(&["resume", "agent"]).exits(0);
    ends_with(&test, 1, "failed (iteration limit reached)");
    assert_eq!(iterations(&test), 2);
}
