//! A workspace with files, changes to it, and commands in its views.

use crate::proof::view::{View, ViewRequest};
use crate::proof::{ViewChange, ViewContent};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Case {
    _temp: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) scratch: PathBuf,
    pub(super) changes: Vec<ViewChange>,
    pub(super) is_own_worktree: bool,
}

impl Case {
    pub(super) fn new() -> Self {
        Self::at(&std::env::temp_dir(), "workspace")
    }

    /// Creates an empty workspace with this path below a temporary directory in `parent`.
    pub(super) fn at(parent: &Path, name: impl AsRef<OsStr>) -> Self {
        let temp = tempfile::tempdir_in(parent).unwrap();
        let root = temp.path().canonicalize().unwrap();
        let workspace = root.join(name.as_ref());
        fs::create_dir_all(&workspace).unwrap();
        Self {
            scratch: root.join("state/loop/view"),
            _temp: temp,
            workspace,
            root,
            changes: Vec::new(),
            is_own_worktree: false,
        }
    }

    /// Runs a script outside every view, as the agent would.
    pub(super) fn agent(self, script: &str) -> Self {
        let mut command = sh(script);
        let done = command.current_dir(&self.workspace).status().unwrap();
        assert!(done.success(), "{script}");
        self
    }

    /// The view shows this content at the path, which is relative to the workspace, or to the
    /// temporary directory if it begins with `~`.
    pub(super) fn original(self, path: &str, content: &str) -> Self {
        let copy = self.root.join(format!("copy-{}", self.changes.len()));
        fs::write(&copy, content).unwrap();
        self.change(path, ViewContent::Original(copy))
    }

    pub(super) fn text(self, path: &str, content: &str) -> Self {
        self.change(path, ViewContent::Text(content.into()))
    }

    pub(super) fn absent(self, path: &str) -> Self {
        self.change(path, ViewContent::Absent)
    }

    pub(super) fn change(mut self, path: &str, content: ViewContent) -> Self {
        let path = match path.strip_prefix("~/") {
            Some(path) => self.root.join(path),
            None => self.workspace.join(path),
        };
        self.changes.push(ViewChange { path, content });
        self
    }

    pub(super) fn request(&self) -> ViewRequest<'_> {
        ViewRequest {
            workspace: &self.workspace,
            scratch: &self.scratch,
            changes: &self.changes,
            is_own_worktree: self.is_own_worktree,
        }
    }

    pub(super) fn view(&self) -> View {
        View::prepare(&self.request()).unwrap()
    }

    /// Returns every path below the workspace with its content.
    pub(super) fn tree(&self) -> String {
        let script = "find . | sort | while read -r f; do \
            if [ -L \"$f\" ]; then echo \"$f -> $(readlink \"$f\")\"; \
            elif [ -d \"$f\" ]; then echo \"$f/\"; else echo \"$f: $(cat \"$f\")\"; fi; done";
        let output = sh(script).current_dir(&self.workspace).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Runs a script in the view and returns its output.
pub(super) fn check(view: &View, script: &str) -> String {
    let mut command = sh(script);
    view.confine(&mut command).unwrap();
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}

pub(super) fn sh(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}
