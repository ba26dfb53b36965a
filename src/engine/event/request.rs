//! Requests in events: pause, stop and resume, from people, signals and embedding programs.

use serde::{Deserialize, Serialize};

/// A request from a person, or from the program that embeds ralph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Request {
    /// Run or resume the loop.
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
    /// Returns whether the request kills the agent instead of letting it finish.
    pub fn is_immediate(self) -> bool {
        matches!(self, Self::PauseNow | Self::StopNow)
    }

    pub(crate) fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::StopNow)
    }
}

/// The source of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestSource {
    /// A `ralph` command, through the loop's inbox.
    #[default]
    Inbox,
    /// Ctrl-C, which sends SIGINT.
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
    /// The parent loop, which ended.
    Parent,
}

impl RequestSource {
    /// Returns whether the source is a process signal. A second signal makes the request immediate.
    pub fn is_signal(self) -> bool {
        matches!(self, Self::Sigint | Self::Sigterm)
    }

    /// Returns the source's name for people, such as `Ctrl-C` or `ralph stop`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Inbox => "ralph stop",
            Self::Sigint => "Ctrl-C",
            Self::Sigterm => "SIGTERM",
            Self::Host => "the host program",
            Self::Session => "cancel-ralph",
            Self::LoopFile => "the loop's file was deleted",
            Self::Parent => "its parent loop",
        }
    }
}
