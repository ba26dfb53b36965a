//! Decides what an agent can do with each path. The deepest rule above a path applies to it.

use super::SandboxRequest;
use super::git_dirs;
use super::table::{expand, table};
use crate::engine::plan::Sandbox;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What an agent can do with a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The path looks empty.
    Hidden,
    Read,
    Write,
    /// The agent has an empty directory of its own there, if the kind of sandbox allows that.
    Private,
}

/// The rules by path. All paths are absolute, exist and contain no symbolic links; a parent comes
/// before its children.
#[derive(Debug)]
pub(super) struct Layout {
    rules: BTreeMap<PathBuf, Access>,
}

impl Layout {
    fn new() -> Self {
        Self {
            rules: BTreeMap::from([(PathBuf::from("/"), Access::Read)]),
        }
    }

    /// Adds a rule, which replaces one for the same path. Skips a path that does not exist.
    pub(super) fn add(&mut self, path: &Path, access: Access) {
        if let Ok(real) = fs::canonicalize(path) {
            self.rules.insert(real, access);
        }
    }

    /// Lets the agent read a path that lies in a hidden directory, unless it is that directory.
    fn show(&mut self, path: &Path) {
        let Ok(real) = fs::canonicalize(path) else {
            return;
        };
        if matches!(self.access(&real), Access::Hidden | Access::Private)
            && !self.rules.contains_key(&real)
        {
            self.rules.insert(real, Access::Read);
        }
    }

    /// Returns what the agent can do with a path without symbolic links.
    pub(super) fn access(&self, path: &Path) -> Access {
        let mut above = path.ancestors();
        let rule = above.find_map(|dir| self.rules.get(dir));
        rule.copied().unwrap_or(Access::Read)
    }

    /// Returns the rules, parents before children.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&Path, Access)> {
        self.rules.iter().map(|(path, access)| (&**path, *access))
    }

    /// Returns whether there is a rule for exactly this path.
    pub(super) fn has_rule(&self, path: &Path) -> bool {
        self.rules.contains_key(path)
    }

    /// Returns the first hidden path below this one.
    pub(super) fn hidden_below(&self, path: &Path) -> Option<&Path> {
        let mut hidden = self.rules().filter(|(_, access)| *access == Access::Hidden);
        hidden
            .find(|(hidden, _)| *hidden != path && hidden.starts_with(path))
            .map(|(hidden, _)| hidden)
    }

    /// Removes rules that change nothing.
    fn prune(&mut self) {
        let is_needed = |path: &Path, access: Access| {
            let above = path.parent().map(|parent| self.access(parent));
            above != Some(access) || matches!(access, Access::Write | Access::Private)
        };
        let needed: Vec<bool> = self.rules().map(|(path, it)| is_needed(path, it)).collect();
        let mut needed = needed.into_iter();
        self.rules.retain(|_, _| needed.next().unwrap_or(true));
    }
}

/// Builds the layout for an agent.
pub(super) fn build(request: &SandboxRequest<'_>) -> Layout {
    let mut layout = Layout::new();
    let known = |paths: &'static [String]| paths.iter().filter_map(|path| expand(path));
    for path in known(&table().temp) {
        layout.add(&path, Access::Private);
    }
    for path in known(&table().hide) {
        layout.add(&path, Access::Hidden);
    }
    for path in known(&table().show) {
        layout.add(&path, Access::Read);
    }
    for path in &request.agent.credentials {
        layout.add(Path::new(path), Access::Read);
    }
    for path in &request.agent.own_paths {
        layout.add(Path::new(path), Access::Write);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let visible = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
    for path in std::env::home_dir().into_iter().chain(visible) {
        layout.show(&path);
    }
    layout.add(request.state_dir, Access::Hidden);
    for file in request.files.iter().filter(|file| file.is_file()) {
        layout.show(file);
    }
    layout.add(request.workspace, Access::Write);
    match request.kind {
        Sandbox::Bwrap => git_dirs::add(&mut layout, request.workspace),
        Sandbox::Landlock => {
            git_dirs::add_writable(&mut layout, request.workspace);
            for path in known(&table().devices) {
                layout.add(&path, Access::Write);
            }
            layout.add(&std::env::temp_dir(), Access::Private);
        }
    }
    layout.prune();
    layout
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_rule_applies() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir_all(root.join("state/worktrees/a")).unwrap();
        fs::create_dir_all(root.join("state/loops")).unwrap();
        let mut layout = Layout::new();
        layout.add(&root, Access::Write);
        layout.add(&root.join("state"), Access::Hidden);
        layout.add(&root.join("state/loops"), Access::Hidden);
        layout.add(&root.join("state/worktrees/a"), Access::Write);
        layout.add(&root.join("missing"), Access::Hidden);
        layout.prune();
        let access = |path: &str| layout.access(&root.join(path));
        assert_eq!(layout.access(Path::new("/usr")), Access::Read);
        assert_eq!(access("x"), Access::Write);
        assert_eq!(access("state/loops/b"), Access::Hidden);
        assert_eq!(access("state/worktrees/b"), Access::Hidden);
        assert_eq!(access("state/worktrees/a/src"), Access::Write);
        assert_eq!(layout.rules().count(), 4, "{layout:?}");
        assert_eq!(layout.hidden_below(&root), Some(&*root.join("state")));
        assert_eq!(layout.hidden_below(&root.join("state")), None);
    }

    #[test]
    fn a_path_in_a_hidden_directory_can_be_shown_but_not_the_directory() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir_all(root.join("bin")).unwrap();
        let mut layout = Layout::new();
        layout.add(&root, Access::Private);
        layout.show(&root);
        layout.show(&root.join("bin"));
        layout.show(Path::new("/usr"));
        assert_eq!(layout.access(&root), Access::Private);
        assert_eq!(layout.access(&root.join("bin")), Access::Read);
        assert!(!layout.has_rule(Path::new("/usr")));
    }
}
