//! What is said of a loop's own worktree: where it is, and what to do with what is in it.

use super::scm_text;
use crate::engine::State;
use crate::engine::format::quoted;
use crate::engine::plan::Worktree;

/// A commit's name is cut to so many characters.
const SHORT: usize = 7;

/// `/state/worktrees/auth on ralph/auth`
pub fn place(own: &Worktree) -> String {
    format!("{} on {}", own.path.display(), own.branch)
}

/// The commands to look at the work, to take it over and to be rid of it, for the user's own checkout.
pub fn commands(own: &Worktree, name: &str) -> [(&'static str, String); 3] {
    let branch = quoted(&own.branch);
    let base = match &own.base_branch {
        Some(base) if *base != own.branch => quoted(base),
        _ => own.base.chars().take(SHORT).collect(),
    };
    [
        ("inspect", format!("git diff {base}...{branch}")),
        ("merge", format!("git merge {branch}")),
        ("remove", format!("ralph rm {name} --worktree")),
    ]
}

/// What in it is not committed, as far as is known; none while an agent is still at it.
pub fn unsaved(state: &State, running: bool) -> Option<String> {
    state.plan.worktree.as_ref()?;
    match &state.keeping.unsaved {
        Some(owed) => {
            let why = scm_text::complaint(&owed.report)
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            Some(format!(
                "the work of iteration {} is not committed{why}",
                owed.iteration
            ))
        }
        None if state.is_unsaved() && !running => {
            Some(format!("iteration {} was not committed", state.iteration))
        }
        None => None,
    }
}
