//! Work that a loop's commits do not contain, or that is not on the branch where it is expected.

use super::event::is_default;
use super::format::{plural, shell_quote};
use serde::{Deserialize, Serialize};

/// Work that was found elsewhere when an iteration's changes were committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkElsewhere {
    /// Repositories that the agent created inside the working tree. No commit of the outer
    /// repository contains their files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<String>,
    /// Submodules with changes that only a commit inside them can contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<String>,
    /// Where HEAD is in the loop's worktree; `None` if it is on the loop's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<MovedHead>,
}

/// The HEAD of a worktree in which the agent has switched branches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MovedHead {
    /// The branch that HEAD is on; `None` if HEAD is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that HEAD is at.
    pub commit: String,
    /// Number of the loop's commits on its own branch that HEAD does not contain.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left: u32,
}

impl MovedHead {
    /// Returns what git calls the place: the branch, or else the commit's ID.
    pub(crate) fn revision(&self) -> &str {
        self.branch.as_deref().unwrap_or(&self.commit)
    }
}

impl WorkElsewhere {
    /// Returns whether all work is where it is expected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Says which work no commit contains; `None` if all work is in commits.
    pub(crate) fn not_committed(&self) -> Option<String> {
        let nested = (!self.nested.is_empty()).then(|| {
            format!(
                "{}: no commit contains {} files",
                list("nested repository", "nested repositories", &self.nested),
                if self.nested.len() == 1 {
                    "its"
                } else {
                    "their"
                }
            )
        });
        let submodules = (!self.submodules.is_empty()).then(|| {
            format!(
                "{}: uncommitted changes inside",
                list("submodule", "submodules", &self.submodules)
            )
        });
        let parts: Vec<String> = nested.into_iter().chain(submodules).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Says on which branch the work is instead of `expected`; `None` if HEAD has not moved.
    pub(crate) fn moved(&self, expected: &str) -> Option<String> {
        let head = self.head.as_ref()?;
        let place = match &head.branch {
            Some(branch) => format!("the agent switched from {expected} to {branch}"),
            None => format!("the agent detached HEAD from {expected}"),
        };
        Some(if head.left > 0 {
            format!(
                "{place}; {} on {expected} not included",
                plural(u64::from(head.left), "commit")
            )
        } else {
            place
        })
    }

    /// Asks the agent to bring the work to where commits contain it; one note for each problem.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let nested = self.nested.iter().map(|path| {
            let quoted = shell_quote(path);
            format!(
                "`{path}` is a git repository of its own inside this one, so your work there is \
                 in no commit of this repository. If its files belong to this project, run `rm -rf \
                 {quoted}/.git; git rm -r -q --cached --ignore-unmatch {quoted}`; they are then \
                 committed for you. If it has to stay separate, push it to a remote and add it as \
                 a submodule."
            )
        });
        let submodules = self.submodules.iter().map(|path| {
            format!(
                "The submodule `{path}` has uncommitted changes. They are not committed for you: \
                 commit them inside `{path}`, and push that commit to the submodule's remote."
            )
        });
        nested.chain(submodules)
    }
}

/// Lists names: `nested repository app`, `submodules a, b, c, …`.
fn list(one: &str, many: &str, names: &[String]) -> String {
    const SHOWN: usize = 3;
    let noun = if names.len() == 1 { one } else { many };
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!(
        "{noun} {}{more}",
        names[..SHOWN.min(names.len())].join(", ")
    )
}
