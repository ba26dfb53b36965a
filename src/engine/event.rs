//! What can happen to a loop. An event is a past participle and one line of the journal.

use super::failure::Reason;
use super::scm::TaskReport;
use super::usage::Tokens;
use serde::{Deserialize, Serialize};

/// When an event happened: the wall's time and the monotonic time since the event before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970.
    pub wall_ms: i64,
    /// Milliseconds since the last event of this runner; 0 for its first.
    pub delta_ms: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A runner took the lock, after it had swept what an earlier one may have left behind.
    Opened {
        /// The runner.
        pid: u32,
        /// Its version.
        version: String,
        /// What an iteration that an earlier runner left unfinished had cost by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// And how many tokens it had taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<Tokens>,
        /// Whether the agent's session goes on around this runner.
        #[serde(default, skip_serializing_if = "is_false")]
        inside: bool,
    },
    /// A person asked for something.
    Asked {
        /// What.
        wish: Wish,
        /// Through which door.
        by: Door,
        /// The inbox is read up to here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A person answered a blocked agent, or told it something.
    Answered {
        /// The words, for the next prompt.
        text: String,
        /// The inbox is read up to here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A person changed a limit.
    Changed {
        /// Which, and to what.
        limit: Change,
        /// The inbox is read up to here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// A check ended.
    Checked {
        /// 0 is preflight.
        iteration: u32,
        /// Its place in the plan.
        check: usize,
        /// How it went.
        report: CheckReport,
    },
    /// A task for green work ended, or had nothing to do.
    Committed {
        /// Of this iteration.
        iteration: u32,
        /// Its place in the plan.
        task: usize,
        /// How it went.
        report: TaskReport,
    },
    /// An iteration began: nothing runs before this line is durable.
    Started {
        /// Its number; numbers never repeat.
        iteration: u32,
        /// Who works, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A person does not want to wait for a limit's end or a rest.
    Hurried {
        /// The inbox is read up to here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inbox: Option<u64>,
    },
    /// The agent's process exists.
    Spawned {
        /// Its iteration.
        iteration: u32,
        /// Its process, group and session.
        pid: u32,
        /// The kernel's start time of that process: a pid alone may be reused.
        start_time: u64,
    },
    /// Something was seen while the agent ran, or between iterations.
    Noticed {
        /// The iteration in which it was seen.
        iteration: u32,
        /// What was seen.
        notice: Notice,
        /// What a BLOCKED marker says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
    },
    /// The agent and everything that it had started are gone.
    Ended {
        /// Its iteration.
        iteration: u32,
        /// What is known of it.
        #[serde(default)]
        report: Report,
    },
    /// The session's turn broke off, and nobody was asked: the loop waits there for a person.
    Stumbled {
        /// In this iteration.
        iteration: u32,
        /// Why, in the client's words.
        words: String,
    },
    /// No child loop of this one is at work any more.
    Drained {
        /// In this iteration.
        iteration: u32,
        /// The child loops that were waited for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waited: Vec<String>,
        /// The child loops that were stopped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stopped: Vec<String>,
    },
    /// Something that ralph cannot mend by trying again.
    Faulted {
        /// What kind of thing.
        class: Fault,
        /// In words.
        detail: String,
    },
    /// A time that the engine had asked for has come.
    Woke,
    /// The loop's last words; for readers, the engine had decided before.
    Finished {
        /// How it ended.
        outcome: Verdict,
        /// One word for scripts.
        stop_reason: String,
        /// Whether that is a success.
        success: bool,
        /// What the runner exits with.
        exit_code: i32,
        /// Iterations that were started.
        iterations: u32,
        /// What they cost; null if unknown.
        cost_usd: Option<f64>,
        /// Active time in seconds.
        duration_s: f64,
        /// Where the work is, if it has a place of its own.
        worktree: Option<String>,
    },
    /// A line of a later ralph that this one does not know.
    #[serde(other)]
    Unknown,
}

impl Event {
    /// Whether it holds words that others chose: an agent, a person or the system.
    pub fn has_words(&self) -> bool {
        match self {
            Self::Answered { .. }
            | Self::Ended { .. }
            | Self::Committed { .. }
            | Self::Stumbled { .. }
            | Self::Faulted { .. } => true,
            Self::Noticed { words, .. } => words.is_some(),
            _ => false,
        }
    }
}

/// What a person wants of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wish {
    /// Go on.
    #[default]
    Go,
    /// Let the agent finish, then rest until resumed.
    Pause,
    /// Pause, and do not wait for the agent.
    PauseNow,
    /// Let the iteration finish, then end.
    Stop,
    /// End, and do not wait for the agent.
    StopNow,
}

impl Wish {
    /// Whether it does not wait for the agent.
    pub fn is_now(self) -> bool {
        matches!(self, Self::PauseNow | Self::StopNow)
    }
}

/// Where a wish came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Door {
    /// A verb.
    #[default]
    Inbox,
    /// Ctrl-C.
    Sigint,
    /// The system, or a person with `kill`.
    Sigterm,
    /// The program that ralph is a library of.
    Host,
    /// A word in the session that the loop lives in.
    Session,
    /// The file in the workspace that stands for the loop is gone.
    Sheet,
}

impl Door {
    /// Whether it is a signal: a second one means now.
    pub fn is_signal(self) -> bool {
        matches!(self, Self::Sigint | Self::Sigterm)
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Inbox => "ralph stop",
            Self::Sigint => "Ctrl-C",
            Self::Sigterm => "SIGTERM",
            Self::Host => "the host program",
            Self::Session => "cancel-ralph",
            Self::Sheet => "the loop's file was deleted",
        }
    }
}

/// A limit changed while the loop exists; `None` lifts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", content = "value", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Change {
    /// `max-iterations`
    MaxIterations(Option<u32>),
    /// `max-cost`
    MaxCost(Option<f64>),
    /// `max-tokens`
    MaxTokens(Option<u64>),
    /// `max-time`, in milliseconds
    MaxTime(Option<u64>),
    /// `max-failures`
    MaxFailures(Option<u32>),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal, if one ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl Exit {
    /// Exited with this code.
    pub fn code(code: i32) -> Self {
        Self {
            code: Some(code),
            signal: None,
        }
    }

    /// Whether it exited with 0.
    pub fn is_good(self) -> bool {
        self.code == Some(0)
    }
}

/// How one check went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// How its process ended.
    pub exit: Exit,
    /// Whether it was killed for taking too long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// How long it took.
    pub ms: u64,
}

impl CheckReport {
    /// Whether it proves something.
    pub fn is_green(&self) -> bool {
        self.exit.is_good() && !self.timed_out
    }
}

/// Something seen while an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// A line matched the done pattern.
    Pattern,
    /// A marker, or the file asked for as a signal, appeared.
    Marker(Marker),
    /// No output, or on a terminal no change of the screen's text, for as long as the plan allows.
    Silence,
    /// The agent's screen did not get ready for the prompt, so that nothing was typed.
    Unready,
    /// The agent said that its whole run is over, and its process stayed.
    Lingering,
}

/// A file by which the agent speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Marker {
    /// `DONE` in the task directory.
    Done,
    /// `BLOCKED`
    Blocked,
    /// `WAIT` or `WAIT_WITHOUT_RESTART`
    Wait,
    /// The file that was asked for as a signal.
    File,
    /// A message of the agent's on the bus that asks not to start it again.
    Bus,
}

/// All that is known of an iteration's agent once it is gone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// How its process ended.
    pub exit: Exit,
    /// How long it took.
    pub ms: u64,
    /// What it said at its end.
    #[serde(default)]
    pub said: Said,
    /// The markers it left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marker>,
    /// Dollars, by its own report.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// Tokens, by its own report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Steps that it took, by its own report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Bytes that it printed.
    #[serde(default)]
    pub bytes: u64,
    /// Why it failed by its own doing: what it said last, in a few lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same in one word, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Whether it said that it came to a good end. Its exit code may say otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    pub finished: bool,
    /// Whether it said that its whole run is over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub over: bool,
    /// What it calls its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Lines of its stream that were not understood.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub strange: u32,
    /// How often it was not allowed something.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub denied: u32,
    /// What it was not allowed first, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// Processes that it had left behind and ralph ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub leftovers: u32,
    /// Processes that could not be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
}

/// What the agent's final words hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Said {
    /// It promised what was asked for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub promised: bool,
    /// The right words stood where they may be a denial, and did not count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub promise_in_sentence: bool,
    /// A line matched the done pattern.
    #[serde(default, skip_serializing_if = "is_false")]
    pub matched: bool,
    /// It said that it is blocked, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// What it would write over the commit of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Why trying again would not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fault {
    /// The agent's program is not there.
    NotFound,
    /// It may not be run, or may not do what it must.
    Permission,
    /// The agent is not logged in.
    Login,
    /// The agent's account has no credit.
    Credit,
    /// There is no such model.
    Model,
    /// The agent does not understand how it is called.
    Usage,
    /// The prompt file is gone or unreadable.
    PromptFile,
    /// The workspace is gone.
    Workspace,
    /// A marker is not a file.
    Marker,
    /// Processes survived KILL.
    Survivors,
    /// No space, or a write failed.
    Disk,
    /// There is a limit of dollars, and nobody can know them.
    Cost,
    /// The session cannot be kept, or what stands for the loop there cannot be read.
    Session,
}

/// An outcome as scripts read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verdict {
    /// `done`, `limit`, `fatal`, `blocked`, `waiting`, `stopped`.
    pub kind: String,
    /// One word where there is a table of them, else the agent's own words.
    pub why: String,
    /// A sentence for people.
    #[serde(default)]
    pub detail: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
