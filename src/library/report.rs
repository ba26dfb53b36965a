//! The report that a host gets when a loop has ended.

use crate::engine::{ExitCode, Outcome, StopReason};
use std::path::PathBuf;
use std::time::Duration;

/// The result of a loop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The loop's name, for `ralph status` and `ralph logs`.
    pub name: String,
    /// Whether the task is done, or a loop without checks and promise has run to its limit.
    pub success: bool,
    /// Why it ended or paused.
    pub stop_reason: StopReason,
    /// How it ended, in full; `None` if it is paused.
    pub outcome: Option<Outcome>,
    /// The exit code that the `ralph` program would return.
    pub exit_code: ExitCode,
    /// The cost in dollars as reported by the agent; `None` if an iteration reported none.
    pub total_cost: Option<f64>,
    /// The working time.
    pub duration: Duration,
    /// The loop's own worktree, if it has one.
    pub worktree: Option<PathBuf>,
    /// The directory of its journal and logs.
    pub directory: PathBuf,
    /// The checks before the first iteration; empty if they did not run.
    pub preflight: Vec<CheckResult>,
    /// Every iteration, starting with the first.
    pub iterations: Vec<IterationReport>,
    /// Warnings that a person should see.
    pub warnings: Vec<String>,
}

/// The result of one iteration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IterationReport {
    /// Its number; the first is 1.
    pub iteration: u32,
    /// The number of tool calls; `None` if the agent does not report them.
    pub steps: Option<u32>,
    /// The cost in dollars, as reported by the agent.
    pub cost: Option<f64>,
    /// The agent's running time.
    pub duration: Duration,
    /// The checks that ran after it, in order.
    pub checks: Vec<CheckResult>,
    /// Whether the agent claimed that the whole task is done.
    pub claimed: bool,
    /// Why it failed: the agent's last message, the function's error, or the timeout.
    pub error: Option<String>,
    /// How often the agent was denied permission.
    pub denied: u32,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckResult {
    /// The shell command.
    pub command: String,
    /// Whether it exited 0 in time.
    pub passed: bool,
    /// Whether it was killed because it took too long.
    pub timed_out: bool,
    /// Its running time.
    pub duration: Duration,
    /// The end of its output.
    pub output: String,
}
