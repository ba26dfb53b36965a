//! Errors of the fleet.

use crate::lifecycle::error::CommandError;
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

impl From<FleetError> for CommandError {
    fn from(error: FleetError) -> Self {
        let hint = match &error {
            FleetError::Fenced => "`ralph fleet status` shows where it runs",
            FleetError::NameTaken => "choose another with --name",
            FleetError::Unreachable(_) => "`ralph fleet doctor` looks for the reason",
            FleetError::Denied(_) => {
                "check fleetCreds, fleetNkey or the user in the address; `ralph fleet doctor` lists what the user may do"
            }
            FleetError::Other(_) => return Self::broken(error),
        };
        Self::broken(&error).with_hint(hint)
    }
}
