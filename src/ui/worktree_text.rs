//! Formats text about a loop's own worktree: where it is, and how to inspect, merge or remove it.

use super::scm_text;
use crate::engine::State;
use crate::engine::format::shell_quote;
use crate::engine::plan::Worktree;
use crate::engine::task_text::SHORT_ID;

/// Formats a worktree's path and branch: `/state/worktrees/auth on ralph/auth`. Adds a note if the
/// agent has switched to another branch.
pub(super) fn location(worktree: &Worktree, state: &State) -> String {
    let moved = state.scm.elsewhere.moved(&worktree.branch);
    let moved = moved.map(|text| format!(" ({text})")).unwrap_or_default();
    let revision = revision(worktree, state);
    let path = worktree.path.display();
    if !worktree.path.exists() {
        return format!("{path}, which no longer exists, on {revision}{moved}");
    }
    format!("{path} on {revision}{moved}")
}

/// Returns the branch, or the abbreviated commit, that has the work.
fn revision(worktree: &Worktree, state: &State) -> String {
    match &state.scm.elsewhere.head {
        Some(head) => head
            .branch
            .clone()
            .unwrap_or_else(|| head.commit.chars().take(SHORT_ID).collect()),
        None => worktree.branch.clone(),
    }
}

/// Returns labels and commands that inspect, merge and remove the work. The user runs them in the
/// original checkout.
pub(super) fn commands(
    worktree: &Worktree,
    state: &State,
    name: &str,
    running: bool,
) -> Vec<(&'static str, String)> {
    let revision = revision(worktree, state);
    let branch = shell_quote(&revision);
    let base = match &worktree.base_branch {
        Some(base) if *base != revision => shell_quote(base),
        _ => worktree.base.chars().take(SHORT_ID).collect(),
    };
    let mut commands = vec![("inspect", format!("git diff {base}...{branch}"))];
    if state.has_uncommitted_work() && !running && worktree.path.exists() {
        // Merging the branch would leave out this work. The hook that refused the commit, if any,
        // would refuse it again.
        let git = format!("git -C {}", shell_quote(&worktree.path.to_string_lossy()));
        commands[0].1 = format!("{git} status");
        commands.push((
            "commit",
            format!("{git} add -A && {git} commit --no-verify -m 'Work of the loop {name}'"),
        ));
    }
    commands.push(("merge", format!("git merge {branch}")));
    commands.push(("remove", format!("ralph rm {name} --worktree")));
    commands
}

/// Describes the work that is not committed. Returns `None` if all work is committed or an agent is
/// still running.
pub(super) fn unsaved(state: &State, running: bool) -> Option<String> {
    let parts = [
        uncommitted(state, running),
        state.scm.elsewhere.not_committed(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn uncommitted(state: &State, running: bool) -> Option<String> {
    let worktree = state.plan.worktree.as_ref()?;
    match &state.scm.uncommitted {
        _ if !worktree.path.exists() => None,
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
