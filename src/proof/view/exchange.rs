//! Views by an exchange: the changed files change places with the workspace's, until the view is
//! removed. Only for worktrees that ralph created.
//!
//! A record on disk lists the exchanges before the first one happens. The agent's files are only ever
//! renamed, so a killed process loses none, and [`undo`] can be repeated.

use super::change::{Changes, write_content};
use super::{View, ViewContent, ViewError, ViewKind, ViewRequest, Weakness, at, remove_tree};
use crate::os::{self, regular_file};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What the view of this workspace exchanges.
#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    workspace: OsString,
    /// The directory with the files that are not in the workspace. It is on the same file system.
    staging: OsString,
    swaps: Vec<Swap>,
}

/// One file. Its counterpart in the staging directory is named by its index.
#[derive(Serialize, Deserialize)]
struct Swap {
    path: OsString,
    /// The inode of the agent's file; `None` if the agent deleted it. As long as this file is in the
    /// staging directory, the exchange is not undone.
    agent: Option<u64>,
    /// Whether the view shows a file at this path.
    is_shown: bool,
    /// The outermost directory that must be created for the file.
    created: Option<OsString>,
}

/// Exchanges the files and returns the view.
pub(super) fn prepare(request: &ViewRequest) -> Result<View, ViewError> {
    prepare_up_to(request, usize::MAX)
}

/// Exchanges at most this many files, as a process that is killed would.
pub(super) fn prepare_up_to(request: &ViewRequest, count: usize) -> Result<View, ViewError> {
    let workspace = fs::canonicalize(request.workspace).map_err(at(request.workspace))?;
    let (changes, outside) = request.split(&workspace);
    let staging = staging(&workspace, request.scratch)?;
    fs::create_dir_all(&staging).map_err(at(&staging))?;
    let mut swaps = Vec::new();
    for path in changes.keys() {
        let staged = staging.join(swaps.len().to_string());
        swaps.extend(stage(&workspace, path, &changes, &staged)?);
    }
    let record = Record {
        workspace: workspace.into(),
        staging: staging.into(),
        swaps,
    };
    write_record(&record, request.scratch).map_err(at(request.scratch))?;
    for (index, swap) in record.swaps.iter().enumerate().take(count) {
        let (path, staged) = record.paths(index, swap);
        if let Err(error) = swap.apply(&path, &staged) {
            undo(request.scratch)?;
            return Err(match error.kind() {
                io::ErrorKind::CrossesDevices | io::ErrorKind::InvalidInput => {
                    ViewError::Unavailable(format!("cannot exchange files: {error}"))
                }
                _ => ViewError::Io(path, error),
            });
        }
    }
    Ok(View {
        kind: ViewKind::Exchange,
        dir: request.workspace.to_owned(),
        scratch: request.scratch.to_owned(),
        weaknesses: Weakness::unmasked(outside).into_iter().collect(),
        redirects: Vec::new(),
        #[cfg(target_os = "linux")]
        namespace: None,
    })
}

/// Undoes the exchange of which there is a record in this directory, if any.
pub(super) fn undo(scratch: &Path) -> Result<(), ViewError> {
    let Some(record) = undo_up_to(scratch, usize::MAX)? else {
        return Ok(());
    };
    let staging = Path::new(&record.staging);
    remove_tree(staging).map_err(at(staging))?;
    let path = record_path(scratch);
    fs::remove_file(&path).map_err(at(&path))
}

/// Undoes at most this many exchanges, as a process that is killed would.
pub(super) fn undo_up_to(scratch: &Path, count: usize) -> Result<Option<Record>, ViewError> {
    let path = record_path(scratch);
    let record = match regular_file::read_text(&path, false) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ViewError::Io(path, error)),
    };
    let record: Record = serde_json::from_str(&record)
        .map_err(|error| ViewError::Io(path.clone(), io::Error::other(error)))?;
    for (index, swap) in record.swaps.iter().enumerate().rev().take(count) {
        let (path, staged) = record.paths(index, swap);
        let undone = swap.undo(Path::new(&record.workspace), &path, &staged);
        undone.map_err(at(&path))?;
    }
    Ok(Some(record))
}

/// Chooses a directory on the workspace's file system, outside the workspace.
fn staging(workspace: &Path, scratch: &Path) -> Result<PathBuf, ViewError> {
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    let name = workspace.file_name().unwrap_or_default();
    let mut sibling = OsString::from(".");
    sibling.push(name);
    sibling.push(".ralph-view");
    let candidates = [
        Some(scratch.join("staging")),
        workspace.parent().map(|parent| parent.join(sibling)),
    ];
    let is_usable = |dir: &PathBuf| {
        let parent = dir.parent();
        !dir.starts_with(workspace) && parent.and_then(device) == device(workspace)
    };
    let found = candidates.into_iter().flatten().find(is_usable);
    found.ok_or_else(|| {
        let why = "no directory outside the workspace is on its file system".to_owned();
        ViewError::Unavailable(why)
    })
}

/// Writes the file that the view shows to the staging directory. Returns `None` if nothing changes.
fn stage(
    workspace: &Path,
    path: &Path,
    changes: &Changes,
    staged: &Path,
) -> Result<Option<Swap>, ViewError> {
    let full = workspace.join(path);
    let content = changes[path];
    let linked = path.ancestors().skip(1).find(|parent| {
        let meta = fs::symlink_metadata(workspace.join(parent));
        meta.is_ok_and(|meta| !meta.is_dir())
    });
    if let Some(parent) = linked {
        let why = format!("{} is no longer a directory", parent.display());
        return Err(ViewError::Unavailable(why));
    }
    // A directory that is absent in the view is moved away before the files in it.
    let is_absent = |dir: &Path| changes.get(dir) == Some(&&ViewContent::Absent);
    let absent_dir = path.ancestors().skip(1).find(|dir| is_absent(dir));
    let agent = match absent_dir {
        Some(_) => None,
        None => inode(&full).map_err(at(&full))?,
    };
    let missing = path
        .ancestors()
        .skip(1)
        .take_while(|dir| !workspace.join(dir).exists());
    let created = absent_dir.or(missing.last());
    let is_shown = *content != ViewContent::Absent;
    if !is_shown && agent.is_none() {
        return Ok(None);
    }
    write_content(content, staged, &full).map_err(at(staged))?;
    Ok(Some(Swap {
        path: path.into(),
        agent,
        is_shown,
        created: created.map(Into::into),
    }))
}

fn inode(path: &Path) -> io::Result<Option<u64>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn record_path(scratch: &Path) -> PathBuf {
    scratch.join("exchange.json")
}

/// Writes the record durably, and completely or not at all.
fn write_record(record: &Record, scratch: &Path) -> io::Result<()> {
    let temporary = scratch.join("exchange.json.new");
    let mut file = regular_file::truncate(&temporary)?;
    file.write_all(&serde_json::to_vec(record).map_err(io::Error::other)?)?;
    file.sync_all()?;
    fs::rename(temporary, record_path(scratch))?;
    os::sync_dir(scratch)
}

impl Record {
    /// Returns the paths in the workspace and in the staging directory.
    fn paths(&self, index: usize, swap: &Swap) -> (PathBuf, PathBuf) {
        (
            Path::new(&self.workspace).join(&swap.path),
            Path::new(&self.staging).join(index.to_string()),
        )
    }
}

impl Swap {
    fn apply(&self, path: &Path, staged: &Path) -> io::Result<()> {
        let rename = |from: &Path, to: &Path, flags| Ok(renameat_with(CWD, from, CWD, to, flags)?);
        match (self.agent, self.is_shown) {
            (Some(_), true) => rename(staged, path, RenameFlags::EXCHANGE),
            (Some(_), false) => rename(path, staged, RenameFlags::NOREPLACE),
            (None, _) => {
                fs::create_dir_all(path.parent().unwrap_or(path))?;
                rename(staged, path, RenameFlags::NOREPLACE)
            }
        }
    }

    /// Puts the agent's file back, whatever a check has written in its place.
    fn undo(&self, workspace: &Path, path: &Path, staged: &Path) -> io::Result<()> {
        let in_staging = inode(staged)?;
        match self.agent {
            Some(agent) if in_staging == Some(agent) => {
                remove_tree(path)?;
                fs::create_dir_all(path.parent().unwrap_or(path))?;
                fs::rename(staged, path)
            }
            None if in_staging.is_none() => {
                match &self.created {
                    Some(dir) => remove_tree(&workspace.join(dir))?,
                    None => remove_tree(path)?,
                }
                // Another undo must not delete what is put back here next.
                regular_file::create_new(staged).map(drop)
            }
            _ => Ok(()),
        }
    }
}
