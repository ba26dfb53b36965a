//! Writes what a view shows instead of the workspace's files.

use super::ViewContent;
use crate::os::regular_file;
use rustix::fs::{AtFlags, CWD, Gid, Uid, XattrFlags, chownat, setxattr};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// The changes below one directory, by their path relative to it.
pub(super) type Changes<'a> = BTreeMap<PathBuf, &'a ViewContent>;

/// The mode of a file that has no counterpart in the workspace.
const DEFAULT_MODE: u32 = 0o644;

/// Writes a file's content in a view to a new file. `counterpart` is the path of the file that the
/// view replaces.
pub(super) fn write_content(
    content: &ViewContent,
    to: &Path,
    counterpart: &Path,
) -> io::Result<()> {
    let existing = fs::symlink_metadata(counterpart).ok();
    match content {
        ViewContent::Absent => return Ok(()),
        ViewContent::Original(copy) => {
            let meta = fs::symlink_metadata(copy)?;
            if meta.is_symlink() {
                symlink(fs::read_link(copy)?, to)?;
            } else {
                // The time of the change is now: a build must not take old results for new ones.
                let mut from = regular_file::open(copy, false)?;
                let mut file = regular_file::create_new(to)?;
                io::copy(&mut from, &mut file)?;
                file.set_permissions(meta.permissions())?;
            }
        }
        ViewContent::Text(text) => {
            let mut file = regular_file::create_new(to)?;
            file.write_all(text)?;
            let mode = existing
                .as_ref()
                .filter(|meta| meta.is_file())
                .map_or(DEFAULT_MODE, Metadata::mode);
            file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
        }
    }
    match existing.or_else(|| fs::symlink_metadata(to.parent()?).ok()) {
        Some(meta) => copy_owner(&meta, to),
        None => Ok(()),
    }
}

/// Gives the file the same owner, if this process may: root's checks can run as other users.
fn copy_owner(from: &Metadata, to: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(from.uid()), Gid::from_raw(from.gid()));
    Ok(chownat(
        CWD,
        to,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

/// Writes the upper layer of an overlay.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux has overlays")
)]
pub(super) struct LayerWriter<'a> {
    /// The real directory, over which the overlay is mounted.
    root: &'a Path,
    upper: &'a Path,
    /// Directories of the layer, relative to it.
    dirs: HashSet<PathBuf>,
    /// The modes to set once everything is written.
    modes: Vec<(PathBuf, u32)>,
    /// A device that hides a file.
    device: Option<PathBuf>,
}

#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux has overlays")
)]
impl<'a> LayerWriter<'a> {
    /// Writes these changes of the directory `root` to the new directory `upper`.
    pub(super) fn write(root: &'a Path, upper: &'a Path, changes: &Changes) -> io::Result<()> {
        let mut writer = Self {
            root,
            upper,
            dirs: HashSet::new(),
            modes: Vec::new(),
            device: None,
        };
        writer.make_dir(Path::new(""))?;
        for (path, content) in changes {
            writer.apply(path, content)?;
        }
        for (dir, mode) in writer.modes.iter().rev() {
            fs::set_permissions(dir, Permissions::from_mode(*mode))?;
        }
        Ok(())
    }

    fn apply(&mut self, path: &Path, content: &ViewContent) -> io::Result<()> {
        let (real, written) = (self.root.join(path), self.upper.join(path));
        if *content == ViewContent::Absent && fs::symlink_metadata(&real).is_err() {
            return Ok(());
        }
        self.make_dir(path.parent().unwrap_or(Path::new("")))?;
        match content {
            ViewContent::Absent => self.hide(written),
            _ => write_content(content, &written, &real),
        }
    }

    /// Hides a file: an overlay shows none where its upper layer has this device. One device is
    /// linked to many paths, because on some file systems each new one takes a millisecond.
    fn hide(&mut self, path: PathBuf) -> io::Result<()> {
        let device = self.device.as_ref();
        if device.is_some_and(|device| fs::hard_link(device, &path).is_ok()) {
            return Ok(());
        }
        make_whiteout(&path)?;
        self.device = Some(path);
        Ok(())
    }

    /// Creates a directory of the layer, with its parents, like the real one.
    fn make_dir(&mut self, path: &Path) -> io::Result<()> {
        if self.dirs.contains(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.make_dir(parent)?;
        }
        let dir = self.upper.join(path);
        let is_replaced = match fs::symlink_metadata(&dir) {
            Ok(meta) if meta.file_type().is_char_device() => {
                fs::remove_file(&dir)?;
                true
            }
            _ => false,
        };
        fs::create_dir(&dir)?;
        if is_replaced {
            // The real directory is absent, except for the files that are written here.
            let name = "user.overlay.opaque";
            setxattr(&dir, name, b"y", XattrFlags::empty())?;
        }
        match fs::symlink_metadata(self.root.join(path)) {
            Ok(meta) if meta.is_dir() => {
                copy_owner(&meta, &dir)?;
                self.modes.push((dir, meta.mode() & 0o7777));
            }
            _ => self.modes.push((dir, 0o755)),
        }
        self.dirs.insert(path.to_owned());
        Ok(())
    }
}

/// Creates the device that hides a file below an overlay. Only Linux has overlays.
#[cfg(target_os = "linux")]
fn make_whiteout(path: &Path) -> io::Result<()> {
    use rustix::fs::{FileType, Mode, mknodat};
    Ok(mknodat(
        CWD,
        path,
        FileType::CharacterDevice,
        Mode::empty(),
        0,
    )?)
}

#[cfg(not(target_os = "linux"))]
#[expect(dead_code, reason = "only Linux has overlays")]
fn make_whiteout(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
