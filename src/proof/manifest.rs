//! Lists files with what shows that they were touched: type, inode, size and ctime, which a user
//! cannot set.
//!
//! A renamed directory keeps the ctime of everything in it, so a file is the same only if its path,
//! its inode and its ctime are.

use crate::engine::touched::FileChange;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;
use std::cmp::Ordering;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Directories deeper than this are not listed.
const DEPTH_MAX: usize = 512;

/// A file, directory or symbolic link at the time of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The path below the root of the walk.
    pub(super) path: Vec<u8>,
    /// The type and the permissions. Directories have no permissions here.
    pub(super) mode: u32,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// In nanoseconds since the epoch.
    pub(super) ctime: i64,
}

impl Entry {
    pub(super) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode as _)
    }

    pub(super) fn is_dir(&self) -> bool {
        self.file_type() == FileType::Directory
    }

    pub(super) fn is_file(&self) -> bool {
        self.file_type() == FileType::RegularFile
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the type of modes is another on other systems"
    )]
    fn directory(path: Vec<u8>) -> Self {
        Self {
            path,
            mode: FileType::Directory.as_raw_mode() as u32,
            inode: 0,
            size: 0,
            ctime: 0,
        }
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the fields have other types on other systems"
    )]
    pub(super) fn from_stat(path: Vec<u8>, stat: &Stat) -> Self {
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            // Its size and times change with every file in it.
            return Self::directory(path);
        }
        Self {
            path,
            mode: stat.st_mode as u32,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            ctime: (stat.st_ctime as i64)
                .wrapping_mul(1_000_000_000)
                .wrapping_add(stat.st_ctime_nsec as i64),
        }
    }
}

/// The files below a directory, each directory before its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) entries: Vec<Entry>,
    /// The number of directories that could not be read.
    pub(super) unread: u64,
}

impl Manifest {
    /// Lists everything below `root`. `wants` gets a path, whether it is a directory, and its depth;
    /// what it refuses is left out, with everything below it.
    pub(super) fn walk(
        root: &Path,
        mut wants: impl FnMut(&[u8], bool, usize) -> bool,
    ) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(root, flags, Mode::empty())?;
        let mut manifest = Self::default();
        let mut levels =
            vec![list(top.as_fd(), c".", b"", &mut |p, d| wants(p, d, 1))?.into_iter()];
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.next() else {
                levels.pop();
                continue;
            };
            let below = entry.is_dir().then(|| entry.path.clone());
            manifest.entries.push(entry);
            let Some(path) = below else { continue };
            let depth = levels.len() + 1;
            let name = CString::new(path.clone()).expect("the kernel's names have no NUL");
            let listed = match depth {
                ..=DEPTH_MAX => list(top.as_fd(), &name, &path, &mut |p, d| wants(p, d, depth)),
                _ => Err(Errno::NAMETOOLONG),
            };
            match listed {
                Ok(entries) => levels.push(entries.into_iter()),
                Err(Errno::NOENT) => {}
                Err(_) => manifest.unread += 1,
            }
        }
        Ok(manifest)
    }

    /// Adds the file at an absolute path, if it exists. Call [`Self::sort`] after the last one.
    pub(super) fn add_file(&mut self, path: &Path) {
        if let Ok(stat) = rustix::fs::lstat(path) {
            let path = path.as_os_str().as_bytes().to_vec();
            self.entries.push(Entry::from_stat(path, &stat));
        }
    }

    /// Puts the entries of several walks in order, and removes those that several of them found.
    pub(super) fn sort(&mut self) {
        self.entries.sort_by(|a, b| compare_paths(&a.path, &b.path));
        self.entries.dedup_by(|a, b| a.path == b.path);
    }

    /// Compares this manifest with a later one. A directory itself only appears or disappears.
    pub(super) fn changes<'a>(&'a self, later: &'a Self) -> Vec<Change<'a>> {
        let mut found = Vec::new();
        let (mut old, mut new) = (
            self.entries.iter().peekable(),
            later.entries.iter().peekable(),
        );
        loop {
            let order = match (old.peek(), new.peek()) {
                (Some(a), Some(b)) => compare_paths(&a.path, &b.path),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return found,
            };
            let change = match order {
                Ordering::Less => Change {
                    before: old.next(),
                    after: None,
                },
                Ordering::Greater => Change {
                    before: None,
                    after: new.next(),
                },
                Ordering::Equal => Change {
                    before: old.next(),
                    after: new.next(),
                },
            };
            match (change.before, change.after) {
                // A directory in the place of a file, or the other way around, is another path.
                (Some(before), Some(after)) if before.is_dir() != after.is_dir() => {
                    found.push(Change {
                        after: None,
                        ..change
                    });
                    found.push(Change {
                        before: None,
                        ..change
                    });
                }
                (before, after) if before != after => found.push(change),
                _ => {}
            }
        }
    }
}

/// A path whose entry is not the same in two manifests. At least one of the entries exists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) before: Option<&'a Entry>,
    pub(super) after: Option<&'a Entry>,
}

impl<'a> Change<'a> {
    pub(super) fn path(&self) -> &'a [u8] {
        let entry = self.after.or(self.before);
        entry.map_or(b"", |entry| &entry.path)
    }

    pub(super) fn kind(&self) -> FileChange {
        match (self.before, self.after) {
            (None, _) => FileChange::New,
            (_, None) => FileChange::Deleted,
            _ => FileChange::Changed,
        }
    }

    /// Returns whether the path is a directory, now or, if nothing is there now, at the start.
    pub(super) fn is_dir(&self) -> bool {
        self.after.or(self.before).is_some_and(Entry::is_dir)
    }
}

/// Orders paths by their components, so that a directory comes right before its content.
pub(super) fn compare_paths(a: &[u8], b: &[u8]) -> Ordering {
    let key = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    a.iter().map(key).cmp(b.iter().map(key))
}

/// Returns whether `path` is `dir` or below it.
pub(super) fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || dir.ends_with(b"/"))
}

pub(super) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Lists one directory in the order of [`compare_paths`].
fn list(
    top: BorrowedFd<'_>,
    name: &CStr,
    path: &[u8],
    wants: &mut dyn FnMut(&[u8], bool) -> bool,
) -> Result<Vec<Entry>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(top, name, flags, Mode::empty())?;
    let mut entries = Vec::new();
    let mut names = Dir::read_from(&dir)?;
    while let Some(entry) = names.read() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let mut below = Vec::with_capacity(path.len() + name.to_bytes().len() + 1);
        if !path.is_empty() {
            below.extend_from_slice(path);
            below.push(b'/');
        }
        below.extend_from_slice(name.to_bytes());
        let known_dir = entry.file_type() == FileType::Directory;
        if known_dir {
            if wants(&below, true) {
                entries.push(Entry::directory(below));
            }
            continue;
        }
        match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let entry = Entry::from_stat(below, &stat);
                if wants(&entry.path, entry.is_dir()) {
                    entries.push(entry);
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}
