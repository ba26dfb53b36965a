//! The return value of an agent function.

use crate::agent::function::FunctionResult;
use std::fmt::Display;

/// What an agent function returns: its final message, or why it failed.
///
/// It converts from `()`, from strings, and from a `Result` of these whose error implements
/// `Display`, so an agent function can return any of them and use `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(pub(super) FunctionResult);

impl Reply {
    /// Creates a reply with the agent's final message, in which ralph looks for a promise.
    pub fn text(text: impl Into<String>) -> Self {
        Self(Ok(text.into()))
    }

    /// Creates a reply that fails the iteration for this reason.
    pub fn failed(why: impl Display) -> Self {
        Self(Err(why.to_string()))
    }
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Self::text("")
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl<T: Into<Self>, E: Display> From<Result<T, E>> for Reply {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(Self::failed, Into::into)
    }
}
