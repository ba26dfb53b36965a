//! Notices which files checks write themselves, where git cannot tell.

use super::baseline::is_own;
use super::guards::is_in_ignored_directory;
use super::manifest::Manifest;
use std::io;
use std::path::{Path, PathBuf};

/// The files of a workspace at a moment, without dependencies and build output.
pub(crate) struct FileSnapshot {
    workspace: PathBuf,
    manifest: Manifest,
}

impl FileSnapshot {
    pub(crate) fn take(workspace: &Path) -> io::Result<Self> {
        Ok(Self {
            manifest: walk(workspace)?,
            workspace: workspace.to_owned(),
        })
    }

    /// Returns the files that were written or deleted since, by their paths in the workspace. A file
    /// that was written with the content that it had before is one of them.
    pub(crate) fn written(&self) -> io::Result<Vec<Vec<u8>>> {
        let now = walk(&self.workspace)?;
        let changes = self.manifest.changes(&now);
        let files = changes.iter().filter(|change| !change.is_dir());
        Ok(files.map(|change| change.path().to_vec()).collect())
    }
}

fn walk(workspace: &Path) -> io::Result<Manifest> {
    Manifest::walk(workspace, |path, is_dir, depth| {
        !is_own(path, depth) && !is_in_ignored_directory(path, is_dir, false)
    })
}
