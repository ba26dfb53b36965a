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
    /// Whether the task is done. Also true if a loop without checks and without a promise ran to
    /// its limit.
    pub success: bool,
    /// Why the loop ended or paused.
    pub stop_reason: StopReason,
    /// How the loop ended. `None` if the loop is paused.
    pub outcome: Option<Outcome>,
    /// The exit code that the `ralph` program would return.
    pub exit_code: ExitCode,
    /// The total cost in dollars, as reported by the agent. `None` if any iteration reported none.
    pub total_cost: Option<f64>,
    /// The loop's active time, which excludes pauses and waits for a limit to reset.
    pub duration: Duration,
    /// The path of the loop's own worktree. `None` if it has none.
    pub worktree: Option<PathBuf>,
    /// The directory with the loop's journal and logs.
    pub directory: PathBuf,
    /// The results of the checks before the first iteration. Empty if they did not run.
    pub preflight: Vec<CheckResult>,
    /// All iterations, oldest first.
    pub iterations: Vec<IterationReport>,
    /// Warnings to show to a person.
    pub warnings: Vec<String>,
}

/// The result of one iteration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IterationReport {
    /// The iteration's number, starting at 1.
    pub iteration: u32,
    /// The number of tool calls. `None` if the agent does not report them.
    pub steps: Option<u32>,
    /// The cost in dollars, as reported by the agent. `None` if it reported none.
    pub cost: Option<f64>,
    /// The running time of the agent.
    pub duration: Duration,
    /// The results of the checks that ran after the agent, in order.
    pub checks: Vec<CheckResult>,
    /// Whether the agent claimed that the whole task is done.
    pub claimed: bool,
    /// Why the iteration failed: the agent's last message, the function's error, or the
    /// timeout. `None` if it did not fail.
    pub error: Option<String>,
    /// The number of times that the agent was denied a permission.
    pub denied: u32,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckResult {
    /// The shell command of the check.
    pub command: String,
    /// Whether the command exited with code 0 in time.
    pub passed: bool,
    /// Whether the command was killed because it took too long.
    pub timed_out: bool,
    /// The running time of the command.
    pub duration: Duration,
    /// The end of the command's output.
    pub output: String,
}
