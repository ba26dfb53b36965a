//! What came of a loop, as its host reads it.

use crate::engine::Outcome;
use std::path::PathBuf;
use std::time::Duration;

/// What came of a loop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The loop's name, as `ralph status` and `ralph logs` know it.
    pub name: String,
    /// Whether the work is proven, or a loop without any proof has run to its limit.
    pub success: bool,
    /// Why it ended, in one word: `all_checks_passed`, `completed`, `max_iterations`, `budget_exhausted`,
    /// `timeout`, `failures`, `fatal`, `blocked`, `waiting`, `stopped` or `paused`.
    pub stop_reason: String,
    /// How it ended, in full; none if it is paused.
    pub outcome: Option<Outcome>,
    /// What the program would exit with.
    pub exit_code: i32,
    /// Dollars, by the agent's own report; none if an iteration did not tell.
    pub total_cost: Option<f64>,
    /// How long it was at work.
    pub duration: Duration,
    /// Where the work is, if it has a place of its own.
    pub worktree: Option<PathBuf>,
    /// Where its journal and logs are.
    pub directory: PathBuf,
    /// The checks before the first iteration; none if they did not run.
    pub preflight: Vec<CheckResult>,
    /// Every iteration, from the first.
    pub iterations: Vec<IterationReport>,
    /// What is worth a word to a person besides.
    pub warnings: Vec<String>,
}

/// What came of one iteration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IterationReport {
    /// Its number; the first is 1.
    pub iteration: u32,
    /// How many tools the agent used; none if it does not tell.
    pub steps: Option<u32>,
    /// Dollars, by the agent's own report.
    pub cost: Option<f64>,
    /// How long the agent took.
    pub duration: Duration,
    /// The checks after it, in their order; those that did not run are left out.
    pub checks: Vec<CheckResult>,
    /// Whether the agent claimed that all of the work is done.
    pub claimed: bool,
    /// Why it failed: the agent's last words, the function's error, or what was too long.
    pub error: Option<String>,
    /// How often the agent was not allowed something.
    pub denied: u32,
}

/// How one check went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckResult {
    /// The shell command.
    pub command: String,
    /// Whether it exited 0 in time.
    pub passed: bool,
    /// Whether it was ended for taking too long.
    pub timed_out: bool,
    /// How long it took.
    pub duration: Duration,
    /// The end of what it printed.
    pub output: String,
}
