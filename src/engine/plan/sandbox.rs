//! The kinds of sandbox that an agent can run in.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A sandbox for an agent's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sandbox {
    /// Namespaces that the program `bwrap` (bubblewrap) sets up: other files are invisible or
    /// read-only, and every process ends with the agent.
    Bwrap,
    /// File access rules of the kernel, which need no namespaces. Weaker than [`Sandbox::Bwrap`].
    Landlock,
}

impl Sandbox {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Landlock => "landlock",
        }
    }

    /// Returns what the sandbox means for the agent, as a clause about it.
    pub(crate) fn describe(self) -> String {
        format!("in a sandbox ({self}): it can write only to the workspace and its own files")
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
