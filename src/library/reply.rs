//! The return value of an agent function.

use crate::agent::function::FunctionResult;
use std::fmt::Display;

/// The return value of an agent function: the agent's final message, or an error.
///
/// `()`, strings, and a `Result` of these whose error implements `Display` convert into a reply. An
/// agent function can therefore return any of these types and use `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(pub(super) FunctionResult);

impl Reply {
    /// Creates a reply with the agent's final message, in which ralph looks for a promise.
    pub fn text(text: impl Into<String>) -> Self {
        Self(Ok(text.into()))
    }

    /// Creates a reply that fails the iteration. `why` is the reason.
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
