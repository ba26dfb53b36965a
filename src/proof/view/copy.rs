//! Views by a copy of the workspace in another directory. This is the weakest kind: whatever names
//! the workspace's path leads back to it.

use super::change::{Changes, write_content};
use super::{View, ViewContent, ViewError, ViewKind, ViewRequest, Weakness, at, remove_tree};
use crate::os::regular_file;
use memchr::memmem::Finder;
use std::fs::{self, FileTimes, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// The number of files to report that name the workspace's path.
const NAMED_MAX: usize = 5;

/// Copies the workspace, except for the changed files, and writes these as the view shows them.
pub(super) fn prepare(request: &ViewRequest) -> Result<View, ViewError> {
    let workspace = fs::canonicalize(request.workspace).map_err(at(request.workspace))?;
    if workspace == Path::new("/") {
        let why = "the root directory cannot be copied".to_owned();
        return Err(ViewError::Unavailable(why));
    }
    let (changes, outside) = request.split(&workspace);
    let dir = request.scratch.join("copy");
    let mut copier = Copier {
        from: &workspace,
        to: &dir,
        scratch: request.scratch,
        changes: &changes,
        finder: Finder::new(workspace.as_os_str().as_bytes()),
        buffer: vec![0; 1 << 20],
        named: Vec::new(),
    };
    copier.copy_dir(Path::new(""))?;
    let named = copier.named;
    for (path, content) in &changes {
        let written = write_change(path, content, &workspace, &dir);
        written.map_err(at(&dir.join(path)))?;
    }
    let mut weaknesses: Vec<Weakness> = Weakness::unmasked(outside).into_iter().collect();
    if !named.is_empty() {
        weaknesses.push(Weakness::NamesWorkspace(named));
    }
    Ok(View {
        kind: ViewKind::Copy,
        redirects: vec![(request.workspace.to_owned(), dir.clone())],
        dir,
        scratch: request.scratch.to_owned(),
        weaknesses,
        #[cfg(target_os = "linux")]
        namespace: None,
    })
}

fn write_change(
    path: &Path,
    content: &ViewContent,
    workspace: &Path,
    dir: &Path,
) -> io::Result<()> {
    if *content == ViewContent::Absent {
        return Ok(());
    }
    let mut parents: Vec<&Path> = path.ancestors().skip(1).collect();
    parents.reverse();
    for parent in parents {
        let parent = dir.join(parent);
        // The agent may have put a link in place of a directory.
        if !fs::symlink_metadata(&parent).is_ok_and(|meta| meta.is_dir()) {
            remove_tree(&parent)?;
            fs::create_dir(&parent)?;
        }
    }
    write_content(content, &dir.join(path), &workspace.join(path))
}

struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    scratch: &'a Path,
    changes: &'a Changes<'a>,
    finder: Finder<'a>,
    buffer: Vec<u8>,
    /// Files that name the workspace's path.
    named: Vec<PathBuf>,
}

impl Copier<'_> {
    fn copy_dir(&mut self, path: &Path) -> Result<(), ViewError> {
        let (from, to) = (self.from.join(path), self.to.join(path));
        fs::create_dir(&to).map_err(at(&to))?;
        for entry in fs::read_dir(&from).map_err(at(&from))? {
            let entry = entry.map_err(at(&from))?;
            let path = path.join(entry.file_name());
            let kind = entry.file_type().map_err(at(&entry.path()))?;
            if self.changes.contains_key(&path) || entry.path() == self.scratch {
                continue;
            }
            if kind.is_dir() {
                self.copy_dir(&path)?;
            } else if kind.is_symlink() {
                self.copy_link(&path).map_err(at(&entry.path()))?;
            } else if kind.is_file() {
                self.copy_file(&path).map_err(at(&entry.path()))?;
            }
        }
        // Last, because the directory may be read-only.
        let mode = fs::metadata(&from).map_err(at(&from))?.permissions();
        let mode = Permissions::from_mode(mode.mode() | 0o700);
        fs::set_permissions(&to, mode).map_err(at(&to))
    }

    fn copy_link(&mut self, path: &Path) -> io::Result<()> {
        let target = fs::read_link(self.from.join(path))?;
        if target.starts_with(self.from) {
            self.note(path);
        }
        symlink(target, self.to.join(path))
    }

    /// Copies a file with its mode and its time, by which build tools find what has changed.
    fn copy_file(&mut self, path: &Path) -> io::Result<()> {
        let mut from = regular_file::open(&self.from.join(path), false)?;
        let mut to = regular_file::create_new(&self.to.join(path))?;
        // The path may be spread over two blocks.
        let overlap = self.finder.needle().len() - 1;
        let mut kept = 0;
        loop {
            let read = from.read(&mut self.buffer[kept..])?;
            if read == 0 {
                break;
            }
            to.write_all(&self.buffer[kept..kept + read])?;
            let end = kept + read;
            if self.named.len() < NAMED_MAX && self.finder.find(&self.buffer[..end]).is_some() {
                self.note(path);
            }
            kept = overlap.min(end);
            self.buffer.copy_within(end - kept..end, 0);
        }
        let meta = from.metadata()?;
        to.set_times(FileTimes::new().set_modified(meta.modified()?))?;
        to.set_permissions(meta.permissions())
    }

    fn note(&mut self, path: &Path) {
        if self.named.len() < NAMED_MAX && self.named.last().is_none_or(|last| last != path) {
            self.named.push(path.to_owned());
        }
    }
}
