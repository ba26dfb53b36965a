//! Requests in events: what people, signals and embedding programs ask of a loop.

use serde::{Deserialize, Serialize};

/// What a person, or the program that embeds ralph, wants the loop to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Request {
    /// Run, or resume.
    #[default]
    Go,
    /// Let the iteration finish, then pause until a person resumes the loop.
    Pause,
    /// Pause without waiting for the agent.
    PauseNow,
    /// Let the iteration finish, then end the loop.
    Stop,
    /// End the loop without waiting for the agent.
    StopNow,
}

impl Request {
    /// Returns whether the agent is killed rather than given time to finish.
    pub fn is_immediate(self) -> bool {
        matches!(self, Self::PauseNow | Self::StopNow)
    }

    pub(crate) fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::StopNow)
    }
}

/// How a request reached the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestSource {
    /// A `ralph` command wrote it to the loop's inbox.
    #[default]
    Inbox,
    /// Ctrl-C.
    Sigint,
    /// SIGTERM, sent by the system or a person.
    Sigterm,
    /// The program that embeds ralph as a library.
    Host,
    /// A command in the client session that the loop runs in.
    Session,
    /// The loop file in the workspace was deleted.
    #[serde(rename = "sheet")]
    LoopFile,
}

impl RequestSource {
    /// Returns whether the source is a process signal. A second signal makes the request immediate.
    pub fn is_signal(self) -> bool {
        matches!(self, Self::Sigint | Self::Sigterm)
    }

    /// Returns the source as people read it: `Ctrl-C`, `ralph stop`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Inbox => "ralph stop",
            Self::Sigint => "Ctrl-C",
            Self::Sigterm => "SIGTERM",
            Self::Host => "the host program",
            Self::Session => "cancel-ralph",
            Self::LoopFile => "the loop's file was deleted",
        }
    }
}
