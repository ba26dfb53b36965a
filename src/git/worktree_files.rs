//! Registers a worktree in its repository, and takes it away again, with renames: at no moment, not
//! even if ralph is killed, does the repository contain an entry that git cannot read.
//!
//! `git worktree add` writes the entry file by file. If it is killed, the entry may break every git
//! command in the user's repository, those that would remove it included.

use crate::engine::fnv;
use crate::engine::plan::Worktree;
use crate::os::regular_file;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum size of a file in an entry that is read, in bytes.
const FILE_MAX: u64 = 8192;

/// How many names are tried for an entry.
const NAMES_TRIED: u32 = 1000;

/// The text in the file `locked` while `git worktree add` is running.
const INITIALIZING: &str = "initializing";

/// Registers the worktree, which has no files yet but the link to its repository. `extra` are files
/// of the entry besides those that every worktree has, by their path in it. Replaces an entry whose
/// worktree was deleted.
pub(super) fn register(plan: &Worktree, extra: &[(&str, Vec<u8>)]) -> io::Result<()> {
    let staging = staging_dir(plan);
    unregister(plan, None)?;
    fs::create_dir_all(staging.join("refs"))?;
    let link = plan.path.join(".git");
    let files = [
        ("HEAD", format!("ref: refs/heads/{}\n", plan.branch)),
        ("commondir", "../..\n".to_owned()),
        ("gitdir", format!("{}\n", link.display())),
    ];
    for (name, text) in files {
        write_durably(&staging.join(name), text.as_bytes())?;
    }
    for (name, bytes) in extra {
        let path = staging.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&staging))?;
        write_durably(&path, bytes)?;
    }
    let entries = plan.repository.join("worktrees");
    fs::create_dir_all(&entries)?;
    // The link comes first, so that `git worktree prune` never finds an entry without a worktree.
    fs::create_dir_all(&plan.path)?;
    let base = entry_name(plan);
    for number in 0..NAMES_TRIED {
        let name = if number == 0 {
            base.clone()
        } else {
            format!("{base}{number}")
        };
        let entry = entries.join(name);
        // A rename would replace an empty directory, which may be the start of another entry.
        if fs::symlink_metadata(&entry).is_ok() {
            continue;
        }
        write_durably(&link, format!("gitdir: {}\n", entry.display()).as_bytes())?;
        match fs::rename(&staging, &entry) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
                ) => {}
            renamed => return renamed,
        }
    }
    Err(io::Error::other(
        "the repository has too many worktrees of this name",
    ))
}

/// Returns why git would not remove the worktree: the reason with which it was locked. `None` if it
/// is not locked.
pub(super) fn lock_reason(plan: &Worktree) -> Option<String> {
    entries_of(plan, None).iter().find_map(|entry| {
        let reason = read(&entry.join("locked"))?;
        Some(reason.trim().to_owned()).filter(|reason| reason != INITIALIZING)
    })
}

/// Returns the lock files in the worktree's entry.
pub(super) fn lock_files(plan: &Worktree) -> Vec<PathBuf> {
    let entries = entries_of(plan, None).into_iter();
    let files = entries.flat_map(|entry| fs::read_dir(entry).into_iter().flatten().flatten());
    let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "lock"));
    files
}

/// Removes the worktree's files and its entry, and what an interrupted removal left. Entries that
/// `git worktree add` had only begun to write are removed if they are newer than `begun`.
pub(super) fn remove(plan: &Worktree, begun: Option<SystemTime>) -> io::Result<()> {
    let removed = removed_dir(plan);
    remove_all(&removed)?;
    // A single rename: a removal that is interrupted leaves no worktree with half of its files,
    // which could no longer be told from one with unsaved work.
    match fs::rename(&plan.path, &removed) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    unregister(plan, begun)?;
    // As git does after it has removed the last worktree. Fails if there are others.
    let _ = fs::remove_dir(plan.repository.join("worktrees"));
    remove_all(&removed)
}

/// Removes the worktree's entries.
fn unregister(plan: &Worktree, begun: Option<SystemTime>) -> io::Result<()> {
    let staging = staging_dir(plan);
    remove_all(&staging)?;
    for entry in entries_of(plan, begun) {
        fs::rename(&entry, &staging)?;
        remove_all(&staging)?;
    }
    Ok(())
}

/// The directory inside the repository in which an entry is prepared and taken apart. Its name
/// depends on the worktree's path, because several state directories may have a loop of this name.
fn staging_dir(plan: &Worktree) -> PathBuf {
    let hash = fnv::hash(plan.path.as_os_str().as_bytes());
    let name = format!("ralph-{}-{hash:016x}", entry_name(plan));
    plan.repository.join(name)
}

/// The path to which a worktree is moved before it is deleted. No loop can have this name.
fn removed_dir(plan: &Worktree) -> PathBuf {
    plan.path
        .with_file_name(format!(".{}.removed", entry_name(plan)))
}

/// Returns the name that git too would choose for the entry.
fn entry_name(plan: &Worktree) -> String {
    let name = plan.path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the repository's entries for this worktree. With `begun`, these include entries without
/// a path that are newer and have the right name.
fn entries_of(plan: &Worktree, begun: Option<SystemTime>) -> Vec<PathBuf> {
    let link = plan.path.join(".git");
    let name = entry_name(plan);
    let Ok(entries) = fs::read_dir(plan.repository.join("worktrees")) else {
        return Vec::new();
    };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.retain(|entry| {
        let path = read(&entry.join("gitdir")).unwrap_or_default();
        let path = path.trim_end_matches('\n');
        if !path.is_empty() {
            return entry.join(path) == link || is_same(&entry.join(path), &link);
        }
        let number = entry
            .file_name()
            .and_then(|own| own.to_str()?.strip_prefix(&name));
        let is_named_so =
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let changed = fs::metadata(entry).and_then(|data| data.modified()).ok();
        is_named_so && begun.is_some_and(|begun| changed.is_some_and(|changed| changed >= begun))
    });
    entries
}

/// Returns whether two paths to a `.git` file name the same one. Newer versions of git may store a
/// relative path.
fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path.parent()?).ok();
    a.file_name() == b.file_name() && real(a).is_some_and(|a| Some(a) == real(b))
}

fn read(path: &Path) -> Option<String> {
    let (bytes, _) = regular_file::read(path, FILE_MAX, true).ok()?;
    String::from_utf8(bytes).ok()
}

/// A power failure must not leave an empty file, which git could not read.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes a directory, if it exists.
fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io::Error::new(
            error.kind(),
            format!("cannot remove {}: {error}", path.display()),
        )),
        _ => Ok(()),
    }
}
