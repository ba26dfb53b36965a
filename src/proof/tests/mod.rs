mod baseline;
mod guards;
mod inline_tests;
mod manifests;
mod outside;
mod walks;

use super::baseline::CopyCaps;
use super::scope::Scope;
use super::touched::Touched;
use super::{Baseline, BaselineSpec, VariablePaths, ViewContent};
use crate::engine::touched::{FileChange, TouchedList};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A workspace, a home directory, a directory of programs and a loop's directory.
struct Site {
    _temp: TempDir,
    root: PathBuf,
    checks: Vec<String>,
    protect: Vec<String>,
    allow: Vec<String>,
    variables: Vec<(&'static str, &'static str)>,
}

impl Site {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        for dir in ["up/work", "home/.agent", "bin", "loop"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        Self {
            _temp: temp,
            root,
            checks: Vec::new(),
            protect: Vec::new(),
            allow: Vec::new(),
            variables: Vec::new(),
        }
    }

    fn with_git(self) -> Self {
        let mut command = Command::new("git");
        command
            .args(["init", "--quiet"])
            .current_dir(self.workspace());
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", self.root.join("home"));
        command.env_remove("GIT_DIR");
        assert!(command.status().unwrap().success());
        self
    }

    fn workspace(&self) -> PathBuf {
        self.root.join("up/work")
    }

    /// Writes a file of the workspace, or of another directory if the path starts with `/`.
    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix('/') {
            Some(path) => self.root.join(path),
            None => self.workspace().join(path),
        }
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn take(&self) -> Baseline {
        self.take_with_cap(1 << 20)
    }

    fn take_with_cap(&self, cap: u64) -> Baseline {
        let home = self.root.join("home");
        let workspace = self.workspace();
        let spec = BaselineSpec {
            workspace: &workspace,
            home: Some(&home),
            path_dirs: vec![
                self.root.join("bin"),
                "relative".into(),
                workspace.join("node_modules/.bin"),
            ],
            settings: VariablePaths::find(|name| {
                let found = self.variables.iter().find(|(known, _)| *known == name)?;
                let value = found.1;
                Some(if value.starts_with('/') {
                    self.path(value).into()
                } else {
                    value.into()
                })
            }),
            checks: self.checks.iter().map(String::as_str).collect(),
            protect: &self.protect,
            own: vec![home.join(".agent"), home.join(".ralph-state")],
            copies_sources: false,
        };
        let scope = Scope::new(&spec).unwrap();
        let caps = CopyCaps {
            guards: cap,
            sources: 0,
        };
        Baseline::take_with_caps(scope, &self.root.join("loop"), caps).unwrap()
    }

    fn touched(&self, baseline: &Baseline) -> Touched {
        baseline.touched(&self.allow, &[]).unwrap()
    }

    /// Returns how the view differs: the content of each path, or `None` if it is absent.
    fn view(&self, baseline: &Baseline, touched: &Touched) -> BTreeMap<String, Option<String>> {
        let changes = baseline.changes_for_view(touched).unwrap();
        let shown = |path: &Path| match path.strip_prefix(self.workspace()) {
            Ok(path) => path.to_str().unwrap().to_owned(),
            Err(_) => format!("/{}", path.strip_prefix(&self.root).unwrap().display()),
        };
        let content = |content| match content {
            ViewContent::Original(copy) if copy.is_symlink() => {
                Some(format!("-> {}", fs::read_link(copy).unwrap().display()))
            }
            ViewContent::Original(copy) => Some(fs::read_to_string(copy).unwrap()),
            ViewContent::Text(text) => Some(String::from_utf8(text).unwrap()),
            ViewContent::Absent => None,
        };
        let changes = changes.into_iter();
        changes
            .map(|change| (shown(&change.path), content(change.content)))
            .collect()
    }
}

/// Returns the files of a list as text: `+` new, `~` changed, `-` deleted.
fn names(list: &TouchedList) -> Vec<String> {
    let mark = |change| match change {
        FileChange::New => '+',
        FileChange::Changed => '~',
        FileChange::Deleted => '-',
    };
    let files = list.files.iter();
    files
        .map(|file| format!("{}{}", mark(file.change), file.path))
        .collect()
}

fn absent(paths: &[&str]) -> BTreeMap<String, Option<String>> {
    paths
        .iter()
        .map(|path| ((*path).to_owned(), None))
        .collect()
}
