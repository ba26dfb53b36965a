//! Errors of the fleet.

use std::fmt;

/// Why an operation on the exchange failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FleetError {
    /// Another machine owns the loop now, or another process changed the record first. The caller
    /// must read again, and stop if it is no longer the owner.
    Fenced,
    /// The name belongs to another loop already.
    NameTaken,
    /// The exchange did not answer. The operation may have happened.
    Unreachable(String),
    /// The exchange refuses the user, or this operation.
    Denied(String),
    /// Anything else, with a description for people.
    Other(String),
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced => f.write_str("another machine owns the loop now"),
            Self::NameTaken => f.write_str("the fleet has a loop of this name already"),
            Self::Unreachable(why) => write!(f, "the fleet cannot be reached: {why}"),
            Self::Denied(why) => write!(f, "the fleet refuses this: {why}"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for FleetError {}
