//! Where all loops live: the state directory.

use super::dir::{keep_from_git, make_dir};
use super::error::Doing;
use super::name::{nearest, slug};
use super::{Bus, Error, LoopDir, Result};
use etcetera::BaseStrategy;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

pub use super::name::valid_name;

/// The state directory: `loops/`, `worktrees/`, `archive/`, `projects/` and `workspaces/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// `$RALPH_STATE_DIR`, else `ralph` in the platform's state directory.
    pub fn locate() -> Result<Self> {
        Self::from_setting(env::var_os("RALPH_STATE_DIR"))
    }

    pub(super) fn from_setting(set: Option<OsString>) -> Result<Self> {
        if let Some(set) = set.filter(|set| !set.is_empty()) {
            let path = PathBuf::from(set);
            // A loop outlives the current directory of the command that started it.
            return std::path::absolute(&path)
                .doing("find", &path)
                .map(Self::at);
        }
        let strategy = etcetera::choose_base_strategy().map_err(|e| Error::Io {
            what: "find the home directory".to_owned(),
            source: io::Error::other(e),
        })?;
        let base = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
        Ok(Self::at(base.join("ralph")))
    }

    /// This directory.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The state directory that a loop lies in.
    pub fn of(dir: &LoopDir) -> Self {
        Self::at(
            dir.path()
                .ancestors()
                .nth(2)
                .unwrap_or(Path::new("/"))
                .to_owned(),
        )
    }

    /// The bus of a project, which is the top of a repository, or a workspace outside of any.
    pub fn project_bus(&self, project: &Path) -> Bus {
        Bus::of_project(&self.root.join("projects"), project)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every loop that has a journal, in order.
    pub fn names(&self) -> Result<Vec<String>> {
        let loops = self.loops();
        let entries = match fs::read_dir(&loops) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e).doing("read", &loops),
        };
        let mut names = Vec::new();
        for entry in entries {
            let Ok(name) = entry.doing("read", &loops)?.file_name().into_string() else {
                continue;
            };
            if valid_name(&name) && self.loop_dir(&name).journal().is_file() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The directory of the loop called this, whether or not it exists.
    pub fn loop_dir(&self, name: &str) -> LoopDir {
        LoopDir::at(self.loops().join(name))
    }

    /// The directory of an existing loop.
    pub fn find(&self, name: &str) -> Result<LoopDir> {
        let dir = self.checked(name)?;
        match fs::metadata(dir.journal()) {
            Ok(data) if data.is_file() => Ok(dir),
            // A loop that cannot be looked for is not one that is not there.
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e).doing("read", &dir.journal()),
            _ => Err(self.no_such_loop(name)),
        }
    }

    /// A name for a loop in this workspace: its directory's name and the smallest free number that gives none of
    /// those that are `taken` otherwise.
    ///
    /// Nothing is reserved: who takes the name finds out by its lock whether another was faster.
    pub fn free_name(&self, workspace: &Path, taken: &[String]) -> Result<String> {
        // `.` and `..` have no name of their own.
        let place = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
        let slug = slug(&place.file_name().unwrap_or_default().to_string_lossy());
        let mut n = 1u32;
        loop {
            let name = format!("{slug}-{n}");
            if !taken.contains(&name) && !is_there(self.loop_dir(&name).path())? {
                return Ok(name);
            }
            n += 1;
        }
    }

    /// Moves a loop out of the way and returns where it is now; its name is then free. Only who holds its
    /// lock may, and that lock moves along: it locks nothing that is created under the name later.
    pub fn archive(&self, name: &str) -> Result<PathBuf> {
        self.archive_at(
            name,
            &jiff::Timestamp::now()
                .strftime("%Y%m%dT%H%M%SZ")
                .to_string(),
        )
    }

    pub(super) fn archive_at(&self, name: &str, stamp: &str) -> Result<PathBuf> {
        let dir = self.checked(name)?;
        // Not `find`: what a crash left half made must go out of the way, too.
        if !is_there(dir.path())? {
            return Err(self.no_such_loop(name));
        }
        let archive = self.root.join("archive");
        make_dir(&archive).doing("create", &archive)?;
        let mut target = archive.join(format!("{name}-{stamp}"));
        let mut k = 1u32;
        while is_there(&target)? {
            k += 1;
            target = archive.join(format!("{name}-{stamp}-{k}"));
        }
        fs::rename(dir.path(), &target).doing("archive", dir.path())?;
        Ok(target)
    }

    /// The lock of a workspace, by what the directory is and not by what it is called: symbolic links and
    /// bind mounts lead to the same one.
    pub fn workspace_lock_path(&self, workspace: &Path) -> Result<PathBuf> {
        self.lock_path(workspace, "")
    }

    /// The lock of whoever makes a worktree of this repository.
    pub fn repository_lock_path(&self, repository: &Path) -> Result<PathBuf> {
        self.lock_path(repository, "repository-")
    }

    fn lock_path(&self, workspace: &Path, prefix: &str) -> Result<PathBuf> {
        let is = fs::metadata(workspace).doing("read", workspace)?;
        let workspaces = self.root.join("workspaces");
        make_dir(&workspaces).doing("create", &workspaces)?;
        keep_from_git(&workspaces);
        Ok(workspaces.join(format!("{prefix}{}-{}.lock", is.dev(), is.ino())))
    }

    /// The worktree of the loop called this, whether or not it exists; without links, as git names it.
    pub fn worktree(&self, name: &str) -> PathBuf {
        let path = self.root.join("worktrees").join(name);
        let there = |above: &Path| {
            Some((
                fs::canonicalize(above).ok()?,
                path.strip_prefix(above).ok()?.to_owned(),
            ))
        };
        path.ancestors()
            .find_map(there)
            .map_or(path.clone(), |(real, rest)| real.join(rest))
    }

    /// Makes the directory that they are all in.
    pub fn make_worktrees(&self) -> Result<()> {
        let worktrees = self.root.join("worktrees");
        make_dir(&worktrees).doing("create", &worktrees)?;
        keep_from_git(&worktrees);
        Ok(())
    }

    /// The loops that were never begun, because a crash came before their first line.
    pub fn half_made(&self) -> Vec<LoopDir> {
        let entries = fs::read_dir(self.loops()).into_iter().flatten().flatten();
        let dirs = entries.map(|entry| LoopDir::at(entry.path()));
        dirs.filter(|dir| dir.worktree_draft().is_file() && !dir.journal().exists())
            .collect()
    }

    /// The loops whose name was used again.
    pub fn archived(&self) -> Vec<LoopDir> {
        let entries = fs::read_dir(self.root.join("archive"))
            .into_iter()
            .flatten()
            .flatten();
        let mut dirs: Vec<_> = entries.map(|entry| LoopDir::at(entry.path())).collect();
        dirs.retain(|dir| dir.journal().is_file());
        dirs.sort_unstable_by(|one, other| one.path().cmp(other.path()));
        dirs
    }

    fn loops(&self) -> PathBuf {
        self.root.join("loops")
    }

    fn checked(&self, name: &str) -> Result<LoopDir> {
        if valid_name(name) {
            Ok(self.loop_dir(name))
        } else {
            Err(Error::BadName {
                name: name.to_owned(),
            })
        }
    }

    fn no_such_loop(&self, name: &str) -> Error {
        // A suggestion is a courtesy: that there is none must not hide the answer.
        let nearest = nearest(name, &self.names().unwrap_or_default());
        Error::NoSuchLoop {
            name: name.to_owned(),
            nearest,
        }
    }
}

/// Whether anything is there, be it a dangling link.
fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e).doing("read", path),
    }
}
