//! Describes changes to files as data, so that all steps can be shown before any is applied.

use super::files::PluginFile;
use crate::commands::atomic_file::write_atomically;
use crate::engine::format::plural;
use crate::lifecycle::error::CommandError;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One change to one file or directory.
#[derive(Debug)]
pub(crate) enum FileStep {
    /// Writes the plugin's files to a directory, and deletes stale ones.
    WriteFiles {
        dir: PathBuf,
        files: Vec<PluginFile>,
        stale: Vec<PathBuf>,
    },
    /// Writes a client's settings file. `target` is the file that `path` resolves to if it is a
    /// link.
    Edit {
        path: PathBuf,
        target: PathBuf,
        is_new: bool,
        text: String,
        notes: Vec<String>,
    },
    /// Deletes a file.
    DeleteFile { path: PathBuf },
    /// Deletes a directory with everything in it.
    DeleteDir { path: PathBuf },
}

impl FileStep {
    /// Returns the paths of the files that the step writes.
    pub(super) fn written_paths(&self) -> Vec<PathBuf> {
        match self {
            Self::WriteFiles { dir, files, .. } => {
                files.iter().map(|(name, _)| dir.join(name)).collect()
            }
            Self::Edit { target, .. } => vec![target.clone()],
            Self::DeleteFile { .. } | Self::DeleteDir { .. } => vec![],
        }
    }
}

/// Describes the steps, in one or more lines each.
pub(super) fn describe(steps: &[FileStep]) -> Vec<String> {
    let lines = steps.iter().flat_map(|step| {
        let (what, path, notes) = match step {
            FileStep::WriteFiles { dir, files, stale } => {
                let count = plural((files.len() + stale.len()) as u64, "file");
                ("write", dir, vec![count])
            }
            FileStep::Edit {
                path,
                is_new,
                notes,
                ..
            } => (if *is_new { "create" } else { "edit" }, path, notes.clone()),
            FileStep::DeleteFile { path } | FileStep::DeleteDir { path } => {
                ("delete", path, Vec::new())
            }
        };
        let notes = notes.into_iter().map(|note| format!("{:10}{note}", ""));
        std::iter::once(format!("  {what:6}  {}", path.display())).chain(notes)
    });
    lines.collect()
}

/// Applies all steps in order. A failure does not undo earlier steps. Running the same command
/// again applies the remaining ones.
pub(super) fn apply(steps: Vec<FileStep>) -> Result<(), CommandError> {
    steps.into_iter().try_for_each(|step| match step {
        FileStep::WriteFiles { dir, files, stale } => {
            files
                .iter()
                .try_for_each(|(name, text)| write(&dir.join(name), text))?;
            stale
                .iter()
                .try_for_each(|path| check_deleted(fs::remove_file(path), path))
        }
        FileStep::Edit {
            path, target, text, ..
        } => {
            create_parent(&target)?;
            write_atomically(&target, &path.display().to_string(), &text, true).map(drop)
        }
        FileStep::DeleteFile { path } => check_deleted(fs::remove_file(&path), &path),
        FileStep::DeleteDir { path } => check_deleted(fs::remove_dir_all(&path), &path),
    })
}

/// Writes one of ralph's own files, creating its directory.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    create_parent(path)?;
    write_atomically(path, &path.display().to_string(), text, true).map(drop)
}

fn create_parent(path: &Path) -> Result<(), CommandError> {
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    fs::create_dir_all(dir)
        .map_err(|error| CommandError::broken(format!("cannot create {}: {error}", dir.display())))
}

/// Returns the error of a deletion. A file that did not exist is not an error.
fn check_deleted(result: io::Result<()>, path: &Path) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(CommandError::broken(
            format!("cannot delete {}: {error}", path.display()),
        )),
        _ => Ok(()),
    }
}
