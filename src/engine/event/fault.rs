//! The classes of errors that end a loop because retrying cannot fix them.

use serde::{Deserialize, Serialize};

/// The class of an error that retrying cannot fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fault {
    /// The agent's program does not exist.
    NotFound,
    /// The agent's program is not executable, or the agent lacks a permission it needs.
    Permission,
    /// The agent is not logged in.
    Login,
    /// The agent's account has no credit.
    Credit,
    /// The model does not exist, or the account cannot use it.
    Model,
    /// The agent rejected its arguments.
    Usage,
    /// The prompt file is missing or unreadable.
    PromptFile,
    /// The workspace is missing.
    Workspace,
    /// A marker is not a regular file.
    Marker,
    /// Processes are still running after SIGKILL.
    Survivors,
    /// The disk is full, or a write failed.
    Disk,
    /// There is a cost limit, but the cost cannot be determined.
    Cost,
    /// Every check is broken or hides failures.
    WeakChecks,
    /// The client session is lost, or the loop file in the workspace is unreadable.
    Session,
}

impl Fault {
    /// Returns the name used in the journal and in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Permission => "permission",
            Self::Login => "login",
            Self::Credit => "credit",
            Self::Model => "model",
            Self::Usage => "usage",
            Self::PromptFile => "prompt-file",
            Self::Workspace => "workspace",
            Self::Marker => "marker",
            Self::Survivors => "survivors",
            Self::Disk => "disk",
            Self::Cost => "cost",
            Self::WeakChecks => "weak-checks",
            Self::Session => "session",
        }
    }
}
