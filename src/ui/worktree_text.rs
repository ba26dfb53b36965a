//! Formats text about a loop's own worktree: where it is, and how to inspect, merge or remove it.

use super::scm_text;
use crate::engine::State;
use crate::engine::format::shell_quote;
use crate::engine::plan::Worktree;
use crate::engine::task_text::SHORT_ID;

/// Formats a worktree's path and branch: `/state/worktrees/auth on ralph/auth`.
pub(super) fn location(worktree: &Worktree) -> String {
    format!("{} on {}", worktree.path.display(), worktree.branch)
}

/// Returns labels and commands that inspect, merge and remove the work. The user runs them in the
/// original checkout.
pub(super) fn commands(worktree: &Worktree, name: &str) -> [(&'static str, String); 3] {
    let branch = shell_quote(&worktree.branch);
    let base = match &worktree.base_branch {
        Some(base) if *base != worktree.branch => shell_quote(base),
        _ => worktree.base.chars().take(SHORT_ID).collect(),
    };
    [
        ("inspect", format!("git diff {base}...{branch}")),
        ("merge", format!("git merge {branch}")),
        ("remove", format!("ralph rm {name} --worktree")),
    ]
}

/// Describes the work that is not committed. Returns `None` if all work is committed or an agent is
/// still running.
pub(super) fn unsaved(state: &State, running: bool) -> Option<String> {
    state.plan.worktree.as_ref()?;
    match &state.scm.uncommitted {
        Some(pending) => {
            let why = scm_text::error_line(&pending.report)
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            Some(format!(
                "the work of iteration {} is not committed{why}",
                pending.iteration
            ))
        }
        None if state.has_uncommitted_work() && !running => Some(format!(
            "the work of iteration {} is not committed",
            state.iteration
        )),
        None => None,
    }
}
