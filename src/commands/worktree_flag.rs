//! Rejects `--worktree WORD`, where it is unclear whether WORD is the branch or the task.

use crate::cli::Command;
use crate::lifecycle::error::CommandError;
use std::ffi::OsString;

/// Returns an error if a single word follows `--worktree`. A branch has to follow `=`, so the word
/// would silently become part of the task. An argument with spaces is allowed, because it cannot be
/// a branch.
pub(super) fn reject_ambiguous_branch(
    command: &Command,
    args: &[OsString],
) -> Result<(), CommandError> {
    if !matches!(command, Command::Run(_) | Command::Spawn(_)) {
        return Ok(());
    }
    let typed: Vec<_> = args
        .iter()
        .map(|arg| arg.to_string_lossy())
        .take_while(|arg| arg != "--")
        .collect();
    let is_one_word =
        |arg: &str| !arg.is_empty() && !arg.starts_with('-') && !arg.contains(char::is_whitespace);
    let ambiguous = typed
        .windows(2)
        .find(|pair| pair[0] == "--worktree" && is_one_word(&pair[1]));
    ambiguous.map_or(Ok(()), |pair| {
        let word = &pair[1];
        Err(CommandError::usage(
            format!("--worktree {word}: is {word:?} the branch or the task?"),
            format!(
                "for the branch, write --worktree={word}; for the task, put it before --worktree"
            ),
        ))
    })
}
