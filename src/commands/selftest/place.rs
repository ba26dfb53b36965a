//! Prepares the place in which an agent is played, so that nothing it writes reaches the user's files:
//! a view of the workspace or, where there can be none, a copy.

use crate::lifecycle::error::CommandError;
use crate::proof::view::{View, ViewKind, ViewRequest, Weakness};
use crate::proof::{ViewChange, ViewContent};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of a file that does not exist: its absence makes a view cover the directory.
const COVERED: &str = ".ralph-selftest";

/// What a place is made for.
pub(super) struct Scene {
    pub(super) workspace: PathBuf,
    /// A temporary directory outside everything that is covered.
    pub(super) root: PathBuf,
    home: Option<PathBuf>,
    git_dirs: Vec<PathBuf>,
    /// Settings files of the user and of the project, which a loop must not read.
    masks: Vec<PathBuf>,
    /// The directory that contains the user's settings directories.
    config: Option<PathBuf>,
}

/// A place that is ready.
pub(super) struct Place {
    view: View,
    env: Vec<(&'static str, PathBuf)>,
    /// Whether an agent can write to the home directory without harm.
    pub(super) covers_home: bool,
    /// Whether the workspace is in a repository to which an agent can write without harm.
    pub(super) has_git: bool,
    /// Why results may be others than those of a loop in the workspace itself.
    pub(super) weaknesses: Vec<String>,
}

impl Scene {
    /// Describes the scene of a selftest. `config` is ralph's own directory of the user's settings.
    pub(super) fn new(
        workspace: &Path,
        root: PathBuf,
        masks: Vec<PathBuf>,
        config: Option<PathBuf>,
    ) -> Self {
        Self {
            home: std::env::home_dir().filter(|home| home.is_dir()),
            git_dirs: crate::git::git_dirs_of(workspace),
            config: config.and_then(|dir| dir.parent().map(Path::to_owned)),
            workspace: workspace.to_owned(),
            root,
            masks,
        }
    }

    fn covered(&self) -> impl Iterator<Item = &PathBuf> {
        let outside = self.home.iter().chain(&self.git_dirs);
        std::iter::once(&self.workspace).chain(outside)
    }

    /// Checks that the temporary directory is outside everything that is covered: a loop in the view
    /// would not see it.
    pub(super) fn check_root(&self) -> Result<(), CommandError> {
        let Some(dir) = self.covered().find(|dir| self.root.starts_with(dir)) else {
            return Ok(());
        };
        let (root, dir) = (self.root.display(), dir.display());
        Err(CommandError::usage(
            format!("the temporary directory {root} is in {dir}"),
            "set TMPDIR to a directory outside the workspace and your home directory",
        ))
    }

    /// Prepares a place. What an earlier agent has written is gone.
    pub(super) fn prepare(&self) -> Result<Place, CommandError> {
        let masks = self.masks.iter().cloned();
        let covered = self.covered().map(|dir| dir.join(COVERED));
        let absent = |path| ViewChange {
            path,
            content: ViewContent::Absent,
        };
        let changes: Vec<ViewChange> = masks.chain(covered).map(absent).collect();
        let view = View::prepare(&ViewRequest {
            workspace: &self.workspace,
            scratch: &self.root.join("view"),
            changes: &changes,
            is_own_worktree: false,
        });
        let view = view.map_err(|error| unavailable(&error.to_string()))?;
        let place = match view.kind() {
            ViewKind::Overlay => self.in_overlay(view)?,
            _ => self.in_copy(view).map_err(cannot_prepare)?,
        };
        Ok(place)
    }

    fn in_overlay(&self, view: View) -> Result<Place, CommandError> {
        let unmasked = view
            .weaknesses()
            .iter()
            .flat_map(|weakness| match weakness {
                Weakness::Unmasked(paths) => paths.as_slice(),
                _ => &[],
            });
        let unmasked: Vec<&Path> = unmasked.filter_map(|path| path.parent()).collect();
        let is_unmasked = |dir: &PathBuf| unmasked.contains(&dir.as_path());
        if self.git_dirs.iter().any(is_unmasked) {
            return Err(unavailable("the git directory cannot be covered"));
        }
        let mut place = Place {
            covers_home: !self.home.iter().any(is_unmasked),
            has_git: !self.git_dirs.is_empty(),
            env: Vec::new(),
            weaknesses: Vec::new(),
            view,
        };
        if !place.covers_home {
            self.hide_settings(&mut place).map_err(cannot_prepare)?;
        }
        Ok(place)
    }

    fn in_copy(&self, view: View) -> io::Result<Place> {
        let git = view.dir().join(".git");
        // The git directory of a linked worktree is elsewhere, and was not copied.
        if git.is_file() {
            fs::remove_file(&git)?;
        }
        let why = view
            .weaknesses()
            .iter()
            .filter_map(|weakness| match weakness {
                Weakness::NoOverlay(why) => {
                    Some(format!("the workspace was copied, because {why}"))
                }
                Weakness::NamesWorkspace(_) => Some(weakness.to_string()),
                Weakness::Unmasked(_) => None,
            });
        let mut place = Place {
            covers_home: false,
            has_git: git.is_dir(),
            env: vec![("GIT_CEILING_DIRECTORIES", self.root.clone())],
            weaknesses: why.collect(),
            view,
        };
        if !place.has_git && !self.git_dirs.is_empty() {
            let why = "cheats in the repository were not played";
            place.weaknesses.push(why.into());
        }
        self.hide_settings(&mut place)?;
        Ok(place)
    }

    /// Hides the user's settings of ralph, which could push or notify, where the home directory is
    /// not covered: all other settings stay.
    fn hide_settings(&self, place: &mut Place) -> io::Result<()> {
        place
            .weaknesses
            .push("cheats in the home directory were not played".into());
        let Some(config) = &self.config else {
            return Ok(());
        };
        let shown = self.root.join("config");
        match fs::remove_dir_all(&shown) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir(&shown)?;
        for entry in fs::read_dir(config).into_iter().flatten().flatten() {
            if entry.file_name() != OsStr::new("ralph") {
                symlink(entry.path(), shown.join(entry.file_name()))?;
            }
        }
        place.env.push(("XDG_CONFIG_HOME", shown));
        Ok(())
    }
}

impl Place {
    /// Makes a command start in the place.
    pub(super) fn confine(&self, command: &mut Command) -> io::Result<()> {
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        self.view.confine(command)
    }

    /// Deletes everything that was written in the place.
    pub(super) fn remove(self) -> Result<(), CommandError> {
        let removed = self.view.remove();
        removed.map_err(|error| CommandError::broken(format!("cannot remove a view: {error}")))
    }
}

/// Creates a directory that only its owner can read.
pub(super) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is passed to `map_err`, which passes the error"
)]
pub(super) fn cannot_prepare(error: io::Error) -> CommandError {
    CommandError::broken(format!("cannot prepare: {error}"))
}

pub(super) fn unavailable(why: &str) -> CommandError {
    CommandError::usage(
        format!("cannot play cheats here: {why}"),
        "the selftest works in views or copies of the workspace; `ralph doctor` shows whether views \
         work here",
    )
}
