//! What may keep green work from being committed, said before a loop begins.

use super::failure::{Failure, warn};
use crate::engine::Plan;
use crate::engine::format::plural;
use crate::engine::scm::COMMIT;
use crate::git::{NoTree, Standing, Tree};
use std::path::Path;

/// How many files a warning names.
const SHOWN: usize = 3;

/// Refuses what cannot work, and warns of what may not. `name` is where the tasks were given.
pub(crate) fn work_can_be_kept(plan: &Plan, name: &str) -> Result<(), Failure> {
    let tasks = &plan.scm.tasks;
    if tasks.is_empty() {
        return Ok(());
    }
    let asked = format!("{name} {}", plan.scm.tasks[0]);
    let refused = |why: NoTree| refusal(&asked, &why, &plan.scm.command.join(" "), &plan.workspace);
    let tree = Tree::around(&plan.scm.command, &plan.workspace).map_err(refused)?;
    let standing = tree
        .standing()
        .map_err(|why| refused(NoTree::Broken(why)))?;
    if plan.proof.checks.is_empty() {
        warn(format!(
            "{name} {} is never done without a check: only green work is",
            tasks.join(", ")
        ));
    }
    let commits = tasks.iter().any(|task| task == COMMIT);
    let pushes = |task: &String| task.split_whitespace().next() == Some("push");
    if let (true, Some(why)) = (commits, &standing.nobody) {
        return Err(Failure::usage(
            format!("git does not know who commits: {why}"),
            "git config user.name \"…\" && git config user.email \"…\"",
        ));
    }
    let plainly = tasks.iter().any(|task| task == "push");
    for warning in warnings(&standing, commits, tasks.iter().any(pushes), plainly) {
        warn(warning);
    }
    Ok(())
}

fn warnings(standing: &Standing, commits: bool, pushes: bool, plainly: bool) -> Vec<String> {
    let mut all = Vec::new();
    let changed = &standing.changed;
    if commits && !changed.is_empty() {
        let names = changed[..SHOWN.min(changed.len())].join(", ");
        let more = if changed.len() > SHOWN { ", …" } else { "" };
        let count = plural(changed.len() as u64, "file");
        all.push(format!(
            "uncommitted changes will be in the first commit: {count} ({names}{more})"
        ));
    }
    if let Some(what) = standing.under_way {
        all.push(format!(
            "{what} is under way in this repository: a commit may conclude it, or fail"
        ));
    }
    if pushes && !standing.has_remote {
        all.push("this repository has no remote: git push will fail".into());
    } else if pushes && standing.detached {
        all.push("HEAD is on no branch: git push will fail unless it is told where to".into());
    } else if plainly && !standing.has_upstream {
        all.push(
            "this branch has no upstream: git push will fail; say --scm \"push origin HEAD\", or git push -u once"
                .into(),
        );
    }
    all
}

/// Why something that was asked for cannot be done without a working tree, or with the one that is here.
pub(crate) fn refusal(asked: &str, why: &NoTree, git: &str, place: &Path) -> Failure {
    let place = place.display();
    match why {
        NoTree::NoGit => Failure::usage(
            format!("{asked} needs git, and there is none: {git}"),
            "install it, or check your PATH",
        ),
        NoTree::Outside => Failure::usage(
            format!("{asked} needs a git repository, and {place} is in none"),
            "git init, or leave it out",
        ),
        NoTree::Bare => Failure::usage(
            format!("{asked} needs a working tree, and {place} is in a bare repository"),
            "work in a clone of it",
        ),
        NoTree::Broken(why) => Failure::usage(
            format!("{asked} cannot work here: {why}"),
            "see what git status says",
        ),
    }
}
