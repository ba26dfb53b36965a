//! Loops inside a session of Claude Code or Codex: hook input and responses, slash commands,
//! session transcripts, the loop file in the workspace, and the table of clients.

pub(crate) mod descriptor;
pub mod hook;
mod json;
pub mod loop_file;
pub(crate) mod process;
pub mod slash;
pub mod transcript;

/// Quotes at most the first 60 characters of a text for an error message.
fn quote_short(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}
