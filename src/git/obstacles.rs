//! What may stand in the way of committing, seen before anything starts.

use super::command;
use super::scm::Tree;

/// How a working tree stands.
#[derive(Debug, Default)]
pub struct Standing {
    /// The files that are not as the newest commit has them.
    pub changed: Vec<String>,
    /// What was begun and not concluded, such as a merge.
    pub under_way: Option<&'static str>,
    /// Whether HEAD is on no branch.
    pub detached: bool,
    /// Whether there is somewhere to push to.
    pub has_remote: bool,
    /// Whether a push without further words knows where to.
    pub has_upstream: bool,
    /// Why git would not know who commits.
    pub nobody: Option<String>,
}

/// What git keeps while something is under way.
const SIGNS: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
];

impl Tree {
    /// How it stands now. What git does not tell is not known to be in the way.
    pub fn standing(&self) -> Result<Standing, String> {
        let answer = |words: &[&str]| self.call(words).ok();
        let is_good = |output: &command::Output| output.code == Some(0);
        Ok(Standing {
            changed: self.changed()?,
            under_way: SIGNS
                .iter()
                .find(|(sign, _)| self.has(sign))
                .map(|(_, what)| *what),
            detached: !answer(&["symbolic-ref", "--quiet", "HEAD"])
                .is_none_or(|output| is_good(&output)),
            has_remote: answer(&["remote"]).is_none_or(|output| !output.stdout.is_empty()),
            has_upstream: self.has_upstream(),
            nobody: self.nobody(),
        })
    }

    /// Why git would not know who commits.
    pub(crate) fn nobody(&self) -> Option<String> {
        let identity = self.call(&["var", "GIT_COMMITTER_IDENT"]).ok()?;
        (identity.code != Some(0)).then(|| identity.complaint("var"))
    }

    fn has_upstream(&self) -> bool {
        let said = |words: &[&str]| {
            let output = self
                .call(words)
                .ok()
                .filter(|output| output.code == Some(0))?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        said(&["rev-parse", "--abbrev-ref", "@{upstream}"]).is_some()
            || said(&["config", "--bool", "push.autoSetupRemote"]).as_deref() == Some("true")
            || said(&["config", "push.default"])
                .is_some_and(|how| how == "current" || how == "matching")
    }

    /// Whether git keeps such a file for this working tree.
    pub(crate) fn has(&self, name: &str) -> bool {
        let output = self.call(&["rev-parse", "--git-path", name]).ok();
        output.is_some_and(|output| self.top().join(command::path_of(&output.stdout)).exists())
    }
}
