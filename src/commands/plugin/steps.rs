//! What is to be done to files: first shown as a whole, then done in order.

use super::files::File;
use crate::commands::new_file::put;
use crate::engine::format::plural;
use crate::lifecycle::failure::Failure;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Step {
    /// Files of ralph's own, in a directory of its own; those that are there besides and known by name go.
    Files {
        dir: PathBuf,
        files: Vec<File>,
        stale: Vec<PathBuf>,
    },
    /// A settings file of a client.
    Edit {
        path: PathBuf,
        real: PathBuf,
        is_new: bool,
        text: String,
        notes: Vec<String>,
    },
    /// A file that has no more use.
    Delete { path: PathBuf },
    /// A directory that has no more use.
    Clear { path: PathBuf },
}

/// What is shown before anything is done, a line each.
pub(crate) fn shown(steps: &[Step]) -> Vec<String> {
    let lines = steps.iter().flat_map(|step| {
        let (what, path, notes) = match step {
            Step::Files { dir, files, stale } => {
                let count = plural((files.len() + stale.len()) as u64, "file");
                ("write", dir, vec![count])
            }
            Step::Edit {
                path,
                is_new,
                notes,
                ..
            } => (if *is_new { "make" } else { "edit" }, path, notes.clone()),
            Step::Delete { path } | Step::Clear { path } => ("delete", path, Vec::new()),
        };
        let notes = notes.into_iter().map(|note| format!("{:10}{note}", ""));
        std::iter::once(format!("  {what:6}  {}", path.display())).chain(notes)
    });
    lines.collect()
}

/// Does all of it. What was done before a failure stays, and saying it again goes on from there.
pub(crate) fn obey(steps: Vec<Step>) -> Result<(), Failure> {
    steps.into_iter().try_for_each(|step| match step {
        Step::Files { dir, files, stale } => {
            files
                .iter()
                .try_for_each(|(name, text)| write(&dir.join(name), text))?;
            stale
                .iter()
                .try_for_each(|path| gone(fs::remove_file(path), path))
        }
        Step::Edit {
            path, real, text, ..
        } => {
            make_parent(&real)?;
            put(&real, &path.display().to_string(), &text, true).map(drop)
        }
        Step::Delete { path } => gone(fs::remove_file(&path), &path),
        Step::Clear { path } => gone(fs::remove_dir_all(&path), &path),
    })
}

/// Puts a file of ralph's own in its place.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    make_parent(path)?;
    put(path, &path.display().to_string(), text, true).map(drop)
}

fn make_parent(path: &Path) -> Result<(), Failure> {
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    fs::create_dir_all(dir)
        .map_err(|error| Failure::broken(format!("cannot make {}: {error}", dir.display())))
}

fn gone(done: io::Result<()>, path: &Path) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::broken(format!(
            "cannot delete {}: {error}",
            path.display()
        ))),
        _ => Ok(()),
    }
}
