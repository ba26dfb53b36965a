//! What an agent's function may return.

use crate::agent::function::Answer;
use std::fmt::Display;

/// What an agent's function returns: its final words, or why it failed.
///
/// Made of nothing, of words, or of a result whose error can be shown, so that a function may end with any of
/// these, and use `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(pub(super) Answer);

impl Reply {
    /// Final words. A promise that was asked for counts here.
    pub fn words(words: impl Into<String>) -> Self {
        Self(Ok(words.into()))
    }

    /// The iteration failed, and why.
    pub fn failed(why: impl Display) -> Self {
        Self(Err(why.to_string()))
    }
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Self::words("")
    }
}

impl From<&str> for Reply {
    fn from(words: &str) -> Self {
        Self::words(words)
    }
}

impl From<String> for Reply {
    fn from(words: String) -> Self {
        Self::words(words)
    }
}

impl<T: Into<Self>, E: Display> From<Result<T, E>> for Reply {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(Self::failed, Into::into)
    }
}
