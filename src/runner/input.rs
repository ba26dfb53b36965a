//! The inputs that the runner reacts to, and the keys of its jobs.

use super::job::JobResult;
use crate::agent::pipeline::AgentOutput;
use crate::engine::event::Request;
use crate::engine::label::CheckProbe;
use crate::process::signals::SignalEvent;
use std::io;

/// The order that a job carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKey {
    /// The agent of this iteration.
    Agent(u32),
    /// A check of this iteration, by its index in the plan.
    Check(u32, usize),
    /// A check of this iteration that runs again in the view.
    Recheck(u32, usize),
    /// The setup command, in the view of this iteration.
    SetUp(u32),
    /// An extra run of a check before the first iteration, by its index in the plan.
    Probe(usize, CheckProbe),
    /// An SCM task of this iteration, by its index in the plan.
    ScmTask(u32, usize),
    /// The user's `--notify` command.
    Notify,
    /// The agent's program, which prints its version.
    Version,
}

/// An input that the runner must react to.
pub(crate) enum Input {
    Signal(SignalEvent),
    /// The user's terminal may have another size.
    Resized,
    /// The console can read keys from the user's terminal, or no longer can.
    KeysAvailable(bool),
    /// Keys that the user has pressed for the console.
    Keys(Vec<u8>),
    /// A request from the embedding program.
    Requested(Request),
    /// Files may have changed.
    FilesChanged,
    /// The agent's output matched the done pattern.
    DonePattern(JobKey),
    /// The job has been silent for longer than its inactivity timeout.
    Inactive(JobKey),
    /// The agent's screen did not become ready for the prompt in time.
    NeverReady(JobKey),
    /// The agent reported the end of its run, but its process has not exited.
    Lingering(JobKey),
    /// A line of the prompt, of this many bytes, is too long for the agent's terminal.
    LineTooLong(usize),
    /// The job's log cannot be written.
    LogFailed(io::Error),
    /// The job's processes have all exited. An agent's result comes with its parsed output.
    JobEnded(JobKey, Box<JobResult>, Option<Box<AgentOutput>>),
}
