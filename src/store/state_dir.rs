//! Finds, names and archives loops in the state directory.

use super::dir::{create_dir, write_gitignore};
use super::error::IoContext;
use super::name::{is_valid_name, nearest, slug};
use super::{Bus, LockHolder, LoopDir, Result, StoreError, lock_holder};
use etcetera::BaseStrategy;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// How the names of directories in the archive begin that are being removed. No loop's name does.
const DISCARDED: &str = ".removed-";

/// The state directory, which contains `loops/`, `worktrees/`, `archive/`, `projects/` and
/// `workspaces/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// Returns `$RALPH_STATE_DIR` or, if it is not set, `ralph` in the platform's state directory.
    pub(crate) fn locate() -> Result<Self> {
        Self::from_setting(env::var_os("RALPH_STATE_DIR"))
    }

    pub(super) fn from_setting(setting: Option<OsString>) -> Result<Self> {
        if let Some(setting) = setting.filter(|setting| !setting.is_empty()) {
            let path = PathBuf::from(setting);
            // The loop and the command that starts it may run in different directories.
            return std::path::absolute(&path)
                .context("find", &path)
                .map(Self::new);
        }
        let strategy = etcetera::choose_base_strategy().map_err(|e| StoreError::Io {
            action: "find the home directory".to_owned(),
            source: io::Error::other(e),
        })?;
        let base = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
        Ok(Self::new(base.join("ralph")))
    }

    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the state directory that contains a loop's directory.
    pub(crate) fn containing(dir: &LoopDir) -> Self {
        Self::new(
            dir.path()
                .ancestors()
                .nth(2)
                .unwrap_or(Path::new("/"))
                .to_owned(),
        )
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of the lock that the process of a mirror holds.
    pub(crate) fn mirror_lock(&self) -> PathBuf {
        self.root.join("mirror.lock")
    }

    /// Returns whether this is a copy of loops that run elsewhere: no runner may start here.
    pub(crate) fn is_mirror(&self) -> bool {
        self.mirror_lock().exists()
    }

    /// Returns the bus of a project. The project is the top directory of a repository, or a
    /// workspace outside any repository.
    pub(crate) fn project_bus(&self, project: &Path) -> Bus {
        Bus::for_project(&self.root.join("projects"), project)
    }

    /// Returns the names of all loops that have a journal, sorted.
    pub(crate) fn loop_names(&self) -> Result<Vec<String>> {
        let loops = self.loops();
        let entries = match fs::read_dir(&loops) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e).context("read", &loops),
        };
        let mut names = Vec::new();
        for entry in entries {
            let Ok(name) = entry.context("read", &loops)?.file_name().into_string() else {
                continue;
            };
            // Anything in place of a journal is reported when the loop is read.
            if is_valid_name(&name) && exists(&self.loop_dir(&name).journal()).unwrap_or(false) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the directory of the loop `name`, which need not exist.
    pub(crate) fn loop_dir(&self, name: &str) -> LoopDir {
        LoopDir::new(self.loops().join(name))
    }

    /// Returns the directory of the existing loop `name`. Fails if there is no such loop.
    pub(crate) fn find_loop(&self, name: &str) -> Result<LoopDir> {
        let dir = self.checked_loop_dir(name)?;
        // Unlike a missing file, a failed lookup does not mean that the loop does not exist.
        if exists(&dir.journal())? {
            Ok(dir)
        } else {
            Err(self.no_such_loop(name))
        }
    }

    /// Picks a name for a loop in this workspace: the directory's name and the smallest number for
    /// which the name is neither in use nor in `taken`.
    ///
    /// The name is not reserved. The lock of the loop's directory decides between two processes
    /// that pick the same name.
    pub(crate) fn free_name(&self, workspace: &Path, taken: &[String]) -> Result<String> {
        let slug = Self::name_base(workspace);
        let mut n = 1u32;
        loop {
            let name = format!("{slug}-{n}");
            if !taken.contains(&name) && !exists(self.loop_dir(&name).path())? {
                return Ok(name);
            }
            n += 1;
        }
    }

    /// Returns the first part of the names of loops in this workspace.
    pub(crate) fn name_base(workspace: &Path) -> String {
        // Resolve the path first, because `.` and `..` have no file name.
        let path = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
        slug(&path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Moves a loop's directory to the archive, which frees its name, and returns the new path.
    ///
    /// The caller must hold the loop's lock. The lock file is moved too, so the lock does not apply
    /// to a new loop of the same name.
    pub(crate) fn archive(&self, name: &str) -> Result<PathBuf> {
        self.archive_at(
            name,
            &jiff::Timestamp::now()
                .strftime("%Y%m%dT%H%M%SZ")
                .to_string(),
        )
    }

    pub(super) fn archive_at(&self, name: &str, timestamp: &str) -> Result<PathBuf> {
        let dir = self.checked_loop_dir(name)?;
        // Not `find_loop`: a directory left without a journal by a crash can be archived too.
        if !exists(dir.path())? {
            return Err(self.no_such_loop(name));
        }
        let archive = self.root.join("archive");
        create_dir(&archive).context("create", &archive)?;
        let mut target = archive.join(format!("{name}-{timestamp}"));
        let mut k = 1u32;
        while exists(&target)? {
            k += 1;
            target = archive.join(format!("{name}-{timestamp}-{k}"));
        }
        fs::rename(dir.path(), &target).context("archive", dir.path())?;
        Ok(target)
    }

    /// Moves a loop's directory, archived or not, to where [`Self::remove_discarded`] finds it, and
    /// returns the new path. The caller must hold the loop's lock.
    pub(crate) fn discard(&self, dir: &LoopDir) -> Result<PathBuf> {
        let archive = self.root.join("archive");
        create_dir(&archive).context("create", &archive)?;
        let name = dir.path().file_name().unwrap_or_default().to_string_lossy();
        let target = archive.join(format!("{DISCARDED}{name}-{}", std::process::id()));
        fs::rename(dir.path(), &target).context("remove", dir.path())?;
        Ok(target)
    }

    /// Removes what an interrupted removal of a loop left. Errors are ignored: these files belong to
    /// no loop.
    pub(crate) fn remove_discarded(&self) {
        let entries = fs::read_dir(self.root.join("archive"));
        for entry in entries.into_iter().flatten().flatten() {
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(DISCARDED.as_bytes())
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Returns the path of a workspace's lock file. The file is named after the directory's device
    /// and inode, because all paths to one directory (symbolic links, bind mounts) must share a
    /// lock.
    pub(crate) fn workspace_lock_path(&self, workspace: &Path) -> Result<PathBuf> {
        self.lock_path(workspace, "")
    }

    /// Returns the holders of all workspaces' locks.
    pub(crate) fn workspace_holders(&self) -> Vec<LockHolder> {
        let entries = fs::read_dir(self.root.join("workspaces"));
        let paths = entries.into_iter().flatten().flatten();
        paths
            .filter_map(|entry| lock_holder(&entry.path()))
            .filter(|holder| !holder.workspace.as_os_str().is_empty())
            .collect()
    }

    /// Returns the path of the lock file that a process holds while it adds a worktree to
    /// `repository`.
    pub(crate) fn repository_lock_path(&self, repository: &Path) -> Result<PathBuf> {
        self.lock_path(repository, "repository-")
    }

    fn lock_path(&self, directory: &Path, prefix: &str) -> Result<PathBuf> {
        let data = fs::metadata(directory).context("read", directory)?;
        let workspaces = self.root.join("workspaces");
        create_dir(&workspaces).context("create", &workspaces)?;
        write_gitignore(&workspaces);
        Ok(workspaces.join(format!("{prefix}{}-{}.lock", data.dev(), data.ino())))
    }

    /// Returns the path of a loop's worktree, which need not exist. Symbolic links are resolved as
    /// far as the path exists, because git reports worktrees by their real paths.
    pub(crate) fn worktree_path(&self, name: &str) -> PathBuf {
        let path = self.root.join("worktrees").join(name);
        let resolve = |ancestor: &Path| {
            Some((
                fs::canonicalize(ancestor).ok()?,
                path.strip_prefix(ancestor).ok()?.to_owned(),
            ))
        };
        path.ancestors()
            .find_map(resolve)
            .map_or(path.clone(), |(real, rest)| real.join(rest))
    }

    /// Creates the directory that contains all worktrees.
    pub(crate) fn create_worktrees_dir(&self) -> Result<()> {
        let worktrees = self.root.join("worktrees");
        create_dir(&worktrees).context("create", &worktrees)?;
        write_gitignore(&worktrees);
        Ok(())
    }

    /// Returns the loops that have a worktree draft but no journal, because a crash interrupted
    /// their creation.
    pub(crate) fn incomplete_loops(&self) -> Vec<LoopDir> {
        let entries = fs::read_dir(self.loops()).into_iter().flatten().flatten();
        let dirs = entries.map(|entry| LoopDir::new(entry.path()));
        dirs.filter(|dir| dir.worktree_draft().is_file() && !dir.journal().exists())
            .collect()
    }

    /// Returns the loops in the archive, sorted by path.
    pub(crate) fn archived_loops(&self) -> Vec<LoopDir> {
        let entries = fs::read_dir(self.root.join("archive"))
            .into_iter()
            .flatten()
            .flatten();
        let mut dirs: Vec<_> = entries
            .filter(|entry| {
                !entry
                    .file_name()
                    .as_encoded_bytes()
                    .starts_with(DISCARDED.as_bytes())
            })
            .map(|entry| LoopDir::new(entry.path()))
            .collect();
        dirs.retain(|dir| dir.journal().is_file());
        dirs.sort_unstable_by(|a, b| a.path().cmp(b.path()));
        dirs
    }

    /// Returns the newest loop in the archive that had this name, or whose directory has it; `None` if
    /// there is none.
    pub(crate) fn find_archived(&self, name: &str) -> Option<LoopDir> {
        let had_name = |dir: &LoopDir| {
            let rest = dir.name().strip_prefix(name)?.strip_prefix('-')?;
            // The time at which it was archived, and a number if there are several of that time.
            let stamp = rest.split('-').next()?.as_bytes();
            Some(stamp.len() == 16 && stamp[8] == b'T' && stamp[15] == b'Z')
        };
        let mut newest_first = self.archived_loops().into_iter().rev();
        newest_first.find(|dir| dir.name() == name || had_name(dir) == Some(true))
    }

    fn loops(&self) -> PathBuf {
        self.root.join("loops")
    }

    fn checked_loop_dir(&self, name: &str) -> Result<LoopDir> {
        if is_valid_name(name) {
            Ok(self.loop_dir(name))
        } else {
            Err(StoreError::InvalidName {
                name: name.to_owned(),
            })
        }
    }

    fn no_such_loop(&self, name: &str) -> StoreError {
        // The names are only used for a suggestion, so failing to read them must not hide the
        // actual error.
        let nearest = nearest(name, &self.loop_names().unwrap_or_default());
        StoreError::NoSuchLoop {
            name: name.to_owned(),
            nearest,
        }
    }
}

/// Returns whether a path exists. Unlike [`Path::try_exists`], this counts a dangling symbolic link
/// as existing.
fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e).context("read", path),
    }
}
