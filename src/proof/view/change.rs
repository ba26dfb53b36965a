//! Writes what a view shows instead of the workspace's files.

use super::ViewContent;
use crate::os::regular_file;
use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};
use std::collections::BTreeMap;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
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
pub(super) fn copy_owner(from: &Metadata, to: &Path) -> io::Result<()> {
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
