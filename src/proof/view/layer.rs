//! Writes the upper layer of an overlay: what a view shows instead of the real files. Linux only.

use super::change::{Changes, copy_owner, write_content};
use super::{ViewContent, remove_tree};
use crate::os::regular_file;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, XattrFlags, linkat, mknodat, setxattr};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileTimes, Metadata, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// A directory with fewer absent files than this is not listed: hiding each of them is faster.
const LISTED_MIN: usize = 8;

/// How many absent files take as long to hide as one file takes to copy.
const HIDDEN_PER_COPY: u64 = 4;

/// How many bytes are copied in the time in which an absent file is hidden.
const BYTES_PER_HIDDEN: u64 = 8 << 10;

/// The files to show in one directory, by their names.
type Group<'a> = [(&'a Path, &'a OsStr, &'a ViewContent)];

/// Writes the upper layer of an overlay.
pub(super) struct LayerWriter<'a> {
    /// The real directory, over which the overlay is mounted.
    root: &'a Path,
    upper: &'a Path,
    /// Directories of the layer, relative to it, and whether each shows the real directory's files
    /// too.
    dirs: HashMap<PathBuf, bool>,
    /// The modes to set once everything is written.
    modes: Vec<(PathBuf, u32)>,
    /// A device that hides a file.
    device: Option<PathBuf>,
}

impl<'a> LayerWriter<'a> {
    /// Writes these changes of the directory `root` to the new directory `upper`.
    pub(super) fn write(root: &'a Path, upper: &'a Path, changes: &Changes) -> io::Result<()> {
        let mut writer = Self {
            root,
            upper,
            dirs: HashMap::new(),
            modes: Vec::new(),
            device: None,
        };
        writer.make_dir(Path::new(""))?;
        let mut files: Vec<_> = changes
            .iter()
            .filter_map(|(path, content)| Some((path.parent()?, path.file_name()?, *content)))
            .collect();
        // Directories come before what is in them.
        files.sort_by_key(|(dir, ..)| *dir);
        for group in files.chunk_by(|(a, ..), (b, ..)| a == b) {
            writer.write_group(group[0].0, group)?;
        }
        for (dir, mode) in writer.modes.iter().rev() {
            fs::set_permissions(dir, Permissions::from_mode(*mode))?;
        }
        Ok(())
    }

    /// Writes the changes of the files in one directory.
    fn write_group(&mut self, dir: &Path, group: &Group) -> io::Result<()> {
        let absent = group.iter().filter(|(.., content)| is_absent(content));
        let absent = absent.count();
        let real_dir = self.root.join(dir);
        let names = match absent {
            LISTED_MIN.. => list(&real_dir).ok(),
            _ => None,
        };
        let is_cleared = match &names {
            Some(names) => self.clear(dir, names, group)?,
            None => false,
        };
        let mut upper_dir: Option<OwnedFd> = None;
        for (_, name, content) in group {
            let real = || real_dir.join(name);
            if !is_absent(content) {
                self.make_dir(dir)?;
                write_content(content, &self.upper.join(dir).join(name), &real())?;
                continue;
            }
            let is_there = || match &names {
                Some(names) => names.contains(*name),
                None => fs::symlink_metadata(real()).is_ok(),
            };
            if is_cleared || !is_there() {
                continue;
            }
            self.make_dir(dir)?;
            if !self.dirs[dir] {
                // Nothing is below this directory, and the device itself would be visible.
                continue;
            }
            let fd = match upper_dir {
                Some(fd) => fd,
                None => open_dir(&self.upper.join(dir))?,
            };
            self.hide(dir, name, &fd)?;
            upper_dir = Some(fd);
        }
        Ok(())
    }

    /// Creates a directory that hides the real one, with copies of the files that stay. Returns
    /// `false` if it is faster, or necessary, to hide the absent files one by one: each of them
    /// takes an entry in the layer.
    fn clear(&mut self, dir: &Path, names: &HashSet<OsString>, group: &Group) -> io::Result<bool> {
        let real_dir = self.root.join(dir);
        let Some(copies) = copies(&real_dir, names, group) else {
            return Ok(false);
        };
        // The top of the layer always shows the real files. A directory that does not, or that is a
        // link to another one, has nothing to hide.
        let is_real = fs::symlink_metadata(&real_dir).is_ok_and(|meta| meta.is_dir());
        let Some(parent) = dir.parent().filter(|_| is_real) else {
            return Ok(false);
        };
        self.make_dir(parent)?;
        let upper_dir = self.upper.join(dir);
        if !self.dirs[parent] || fs::symlink_metadata(&upper_dir).is_ok() {
            return Ok(false);
        }
        fs::create_dir(&upper_dir)?;
        let result = make_opaque(&upper_dir).and_then(|()| {
            let mut copies = copies.iter();
            copies.try_for_each(|(name, meta)| {
                copy(&real_dir.join(name), meta, &upper_dir.join(name))
            })
        });
        if result.is_err() {
            // A file that cannot be read, or a file system without attributes.
            remove_tree(&upper_dir)?;
            return Ok(false);
        }
        self.register_dir(dir, upper_dir, false)?;
        Ok(true)
    }

    /// Hides a file: an overlay shows none where its upper layer has this device. One device is
    /// linked to many paths, because on some file systems each new one takes a millisecond.
    fn hide(&mut self, dir: &Path, name: &OsStr, fd: &OwnedFd) -> io::Result<()> {
        let is_linked = self
            .device
            .as_ref()
            .is_some_and(|device| linkat(CWD, device, fd, name, AtFlags::empty()).is_ok());
        if !is_linked {
            mknodat(fd, name, FileType::CharacterDevice, Mode::empty(), 0)?;
            self.device = Some(self.upper.join(dir).join(name));
        }
        Ok(())
    }

    /// Creates a directory of the layer, with its parents, like the real one.
    fn make_dir(&mut self, path: &Path) -> io::Result<()> {
        if self.dirs.contains_key(path) {
            return Ok(());
        }
        let mut is_merged = true;
        if let Some(parent) = path.parent() {
            self.make_dir(parent)?;
            is_merged = self.dirs[parent];
        }
        let dir = self.upper.join(path);
        let is_replaced = match fs::symlink_metadata(&dir) {
            Ok(meta) => {
                fs::remove_file(&dir)?;
                meta.file_type().is_char_device()
            }
            Err(_) => false,
        };
        fs::create_dir(&dir)?;
        if is_replaced {
            // The real directory is absent, except for the files that are written here.
            make_opaque(&dir)?;
        }
        self.register_dir(path, dir, is_merged && !is_replaced)
    }

    /// Remembers a new directory of the layer, and the mode that it gets.
    fn register_dir(&mut self, path: &Path, dir: PathBuf, is_merged: bool) -> io::Result<()> {
        let real = fs::symlink_metadata(self.root.join(path));
        let real = real.ok().filter(Metadata::is_dir);
        let mode = match &real {
            Some(meta) => {
                copy_owner(meta, &dir)?;
                meta.mode() & 0o7777
            }
            None => 0o755,
        };
        self.modes.push((dir, mode));
        let is_merged = is_merged && real.is_some();
        self.dirs.insert(path.to_owned(), is_merged);
        Ok(())
    }
}

fn is_absent(content: &ViewContent) -> bool {
    *content == ViewContent::Absent
}

/// Returns the names in a directory.
fn list(dir: &Path) -> io::Result<HashSet<OsString>> {
    fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}

/// Returns the files of a directory that stay. Returns `None` if one of them cannot be copied, or if
/// copying them takes longer than hiding the others.
fn copies<'n>(
    real_dir: &Path,
    names: &'n HashSet<OsString>,
    group: &Group,
) -> Option<Vec<(&'n OsString, Metadata)>> {
    let changed: HashSet<&OsStr> = group.iter().map(|(_, name, _)| *name).collect();
    let kept = names
        .iter()
        .filter(|name| !changed.contains(name.as_os_str()));
    let mut left = (names.len() - kept.clone().count()) as u64;
    let mut copies = Vec::new();
    for name in kept {
        let meta = fs::symlink_metadata(real_dir.join(name)).ok()?;
        let cost = HIDDEN_PER_COPY + meta.len() / BYTES_PER_HIDDEN;
        left = left.checked_sub(cost).filter(|_| can_copy(&meta))?;
        copies.push((name, meta));
    }
    Some(copies)
}

/// Returns whether a copy of the file in the layer is the same to a check.
fn can_copy(meta: &Metadata) -> bool {
    let user = rustix::process::geteuid();
    (meta.is_file() || meta.is_symlink()) && (user.is_root() || meta.uid() == user.as_raw())
}

/// Copies a file with its mode and its time, by which build tools find what has changed.
fn copy(from: &Path, meta: &Metadata, to: &Path) -> io::Result<()> {
    if meta.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
        return copy_owner(meta, to);
    }
    let mut source = regular_file::open(from, false)?;
    let mut file = regular_file::create_new(to)?;
    io::copy(&mut source, &mut file)?;
    copy_owner(meta, to)?;
    file.set_permissions(Permissions::from_mode(meta.mode() & 0o7777))?;
    file.set_times(FileTimes::new().set_modified(meta.modified()?))
}

/// Makes a directory of the layer hide everything in the real one.
fn make_opaque(dir: &Path) -> io::Result<()> {
    let name = "user.overlay.opaque";
    Ok(setxattr(dir, name, b"y", XattrFlags::empty())?)
}

fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(dir, flags, Mode::empty())?)
}
