//! Keeps ralph's own copies of the guards, in one file: not in git's objects, which replacements and
//! filters change.

use super::encoding::{ManifestReader, broken, put_bytes, put_number};
use super::manifest::{Entry, as_path};
use crate::os::{regular_file, sync_dir};
use rustix::fs::FileType;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Maximum size of all copies of a loop, in bytes.
pub(super) const COPIES_MAX: u64 = 256 << 20;

/// A copy: where it is in the file of copies, and what it must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredCopy {
    offset: u64,
    length: u64,
    /// The type and the permissions of the original.
    mode: u32,
    hash: [u8; 32],
}

/// The copies of a loop, by the absolute paths of their originals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    index: BTreeMap<Vec<u8>, StoredCopy>,
}

/// Writes copies to a new file.
pub(super) struct CopyWriter {
    copies: Copies,
    file: BufWriter<File>,
    length: u64,
    max: u64,
}

impl CopyWriter {
    pub(super) fn create(path: &Path, max: u64) -> io::Result<Self> {
        let file = BufWriter::new(regular_file::create_new(path)?);
        Ok(Self {
            copies: Copies::default(),
            file,
            length: 0,
            max,
        })
    }

    /// Copies a file or a symbolic link. A file that cannot be read or does not fit has no copy,
    /// which matters only if it is touched. `is_wanted` decides by the content.
    pub(super) fn add(
        &mut self,
        path: &Path,
        entry: &Entry,
        is_wanted: impl FnOnce(&[u8]) -> bool,
    ) -> io::Result<()> {
        let room = self.max - self.length;
        let content = match entry.file_type() {
            FileType::RegularFile if entry.size <= room => regular_file::read(path, room, false)
                .ok()
                .and_then(|(content, more)| (!more).then_some(content)),
            FileType::Symlink => fs::read_link(path)
                .ok()
                .map(|to| to.as_os_str().as_bytes().to_vec()),
            _ => None,
        };
        let Some(content) =
            content.filter(|content| content.len() as u64 <= room && is_wanted(content))
        else {
            return Ok(());
        };
        self.file.write_all(&content)?;
        let copy = StoredCopy {
            offset: self.length,
            length: content.len() as u64,
            mode: entry.mode,
            hash: Sha256::digest(&content).into(),
        };
        self.length += copy.length;
        self.copies
            .index
            .insert(path.as_os_str().as_bytes().to_vec(), copy);
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<Copies> {
        self.file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_data()?;
        Ok(self.copies)
    }
}

impl Copies {
    pub(super) fn contains(&self, path: &[u8]) -> bool {
        self.index.contains_key(path)
    }

    /// Returns the path and the hash of every original.
    pub(super) fn hashes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let copies = self.index.iter();
        copies.map(|(path, copy)| (path.as_slice(), &copy.hash[..]))
    }

    /// Returns the content of a copy from the file `copies`, if it is still the one that was stored.
    pub(super) fn read(&self, copies: &Path, path: &[u8]) -> io::Result<Vec<u8>> {
        let copy = self.index.get(path).ok_or(io::ErrorKind::NotFound)?;
        let mut content = vec![0; usize::try_from(copy.length).map_err(|_| broken())?];
        regular_file::open(copies, false)?.read_exact_at(&mut content, copy.offset)?;
        if <[u8; 32]>::from(Sha256::digest(&content)) == copy.hash {
            return Ok(content);
        }
        let path = as_path(path).display();
        Err(io::Error::other(format!(
            "ralph's copy of {path} was changed"
        )))
    }

    /// Writes the original of a path, with its permissions, to a file in `dir`, and returns the
    /// file. The original of a symbolic link is a symbolic link.
    pub(super) fn extract(&self, copies: &Path, path: &[u8], dir: &Path) -> io::Result<PathBuf> {
        let content = self.read(copies, path)?;
        let copy = self.index.get(path).ok_or(io::ErrorKind::NotFound)?;
        fs::create_dir_all(dir)?;
        let target = dir.join(hex(&Sha256::digest(path)));
        match fs::remove_file(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if FileType::from_raw_mode(copy.mode as _) == FileType::Symlink {
            std::os::unix::fs::symlink(as_path(&content), &target)?;
        } else {
            let mut file = regular_file::create_new(&target)?;
            file.write_all(&content)?;
            file.set_permissions(Permissions::from_mode(copy.mode & 0o777))?;
        }
        Ok(target)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.index.len() as u64);
        for (path, copy) in &self.index {
            put_bytes(out, path);
            put_number(out, copy.offset);
            put_number(out, copy.length);
            put_number(out, copy.mode.into());
            put_bytes(out, &copy.hash);
        }
    }

    pub(super) fn get(from: &mut ManifestReader<'_>) -> io::Result<Self> {
        let mut index = BTreeMap::new();
        for _ in 0..from.number()? {
            let path = from.bytes()?.to_vec();
            let copy = StoredCopy {
                offset: from.number()?,
                length: from.number()?,
                mode: u32::try_from(from.number()?).map_err(|_| broken())?,
                hash: from.bytes()?.try_into().map_err(|_| broken())?,
            };
            index.insert(path, copy);
        }
        Ok(Self { index })
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Writes a new file durably, for its owner only.
pub(super) fn write_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = regular_file::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()?;
    sync_dir(path.parent().unwrap_or(path))
}
