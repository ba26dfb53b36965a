//! Edits a client's settings file without touching anything else in it, and records how to undo the
//! edits.

use super::json::{JsonDocument, PathPart, display_path};
use super::record::{InstallRecord, OriginalContent, RecordedChange, RecordedFile};
use super::steps::FileStep;
use crate::lifecycle::error::CommandError;
use crate::os::{program, regular_file};
use crate::ui::one_line;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{fs, io};

const MAX_BYTES: u64 = 32 << 20;

/// A JSON settings file that is being edited.
pub(crate) struct JsonSettings {
    path: PathBuf,
    /// The file to write. If `path` is a link, this is the file that it resolves to.
    target: PathBuf,
    /// The text before the edits. `None` if the file does not exist.
    old: Option<String>,
    json: JsonDocument,
    entry: RecordedFile,
    notes: Vec<String>,
}

impl JsonSettings {
    /// Reads the file. A missing or blank file counts as an empty object.
    pub(crate) fn open(
        path: &Path,
        client: &str,
        record: &InstallRecord,
    ) -> Result<Self, CommandError> {
        let target = resolve_links(path)?;
        let old = read(&target).map_err(|error| cannot("read", path, &error))?;
        let filled = old.as_deref().filter(|text| !text.trim().is_empty());
        let json = JsonDocument::parse(filled.unwrap_or("{}\n")).map_err(|error| {
            CommandError::usage(
                format!("{} is not a JSON object: {error}", path.display()),
                "fix the file and try again; nothing was written",
            )
        })?;
        let original = match &old {
            None => OriginalContent::Absent,
            Some(text) if filled.is_none() => OriginalContent::Blank(text.clone()),
            Some(_) => OriginalContent::Filled,
        };
        let entry = record.get(path).cloned().unwrap_or_else(|| RecordedFile {
            client: client.to_owned(),
            file: path.to_owned(),
            original,
            changes: Vec::new(),
        });
        Ok(Self {
            path: path.to_owned(),
            target,
            old,
            json,
            entry,
            notes: Vec::new(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn get(&self, path: &[PathPart]) -> Option<Value> {
        self.json.get(path)
    }

    /// Sets a value and records how to undo the change. `is_ours` means that only ralph uses the
    /// key, so uninstalling always removes it.
    pub(crate) fn set(
        &mut self,
        path: &[PathPart],
        value: &Value,
        is_ours: bool,
    ) -> Result<(), CommandError> {
        let undo = self.json.set(path, value).map_err(|error| {
            CommandError::usage(
                format!("{}: {error}", self.path.display()),
                "fix the file and try again; nothing was written",
            )
        })?;
        if let Some(undo) = undo {
            self.forget(path);
            self.entry.changes.push(RecordedChange { undo, is_ours });
            self.notes.push(format!(
                "{} {}",
                display_path(path),
                one_line(&value.to_string())
            ));
        }
        Ok(())
    }

    /// Replaces an earlier value of ralph's in place. `old` and `new` are the paths of the two
    /// values.
    pub(crate) fn replace(
        &mut self,
        old: &[PathPart],
        new: &[PathPart],
        value: &Value,
    ) -> Result<(), CommandError> {
        let index = self
            .entry
            .changes
            .iter()
            .position(|change| change.undo.path == old);
        let first = index.map(|index| self.entry.changes.remove(index));
        self.set(old, value, true)?;
        self.entry.changes.pop();
        // Undoing the first change restores the value from before ralph, so keep only that change's
        // record.
        self.entry.changes.extend(first.map(|mut change| {
            change.undo.path = new.to_vec();
            change.undo.wrote = value.clone();
            change
        }));
        Ok(())
    }

    /// Drops the record of a change, so that the change is not undone.
    pub(crate) fn forget(&mut self, path: &[PathPart]) {
        self.entry.changes.retain(|change| change.undo.path != path);
    }

    /// Undoes all recorded changes. Returns false if there is no record.
    pub(crate) fn undo(&mut self) -> bool {
        let changes = std::mem::take(&mut self.entry.changes);
        for change in changes.iter().rev() {
            let current = self.json.get(&change.undo.path);
            let is_unchanged = current.is_some_and(|current| current == change.undo.wrote);
            if (change.is_ours || is_unchanged) && self.json.undo(&change.undo) {
                self.notes
                    .push(format!("{} (removed)", display_path(&change.undo.path)));
            }
        }
        !changes.is_empty()
    }

    /// Removes a value and every container that the removal leaves empty.
    pub(crate) fn remove_with_empty_parents(&mut self, path: &[PathPart]) {
        if self.json.get(path).is_some() {
            let has_others = |length: &usize| self.json.count(&path[..*length]) != 1;
            let length = (1..path.len())
                .rev()
                .find(has_others)
                .map_or(1, |length| length + 1);
            self.remove(&path[..length]);
        }
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, path: &[PathPart]) {
        if self.json.remove(path) {
            self.notes.push(format!("{} (removed)", display_path(path)));
        }
    }

    /// Updates the record and returns the step that writes the file. `None` if nothing changed.
    pub(crate) fn finish(
        self,
        record: &mut InstallRecord,
    ) -> Result<Option<FileStep>, CommandError> {
        let is_empty = self.entry.changes.is_empty() && self.json.is_empty();
        let new = match &self.entry.original {
            OriginalContent::Absent if is_empty => None,
            OriginalContent::Blank(text) if is_empty => Some(text.clone()),
            _ => Some(self.json.text().to_owned()),
        };
        record.put(self.entry);
        if new == self.old || self.notes.is_empty() {
            return Ok(None);
        }
        check_writable(&self.path, &self.target)?;
        let step = match new {
            Some(text) => FileStep::Edit {
                path: self.path,
                target: self.target,
                is_new: self.old.is_none(),
                text,
                notes: self.notes,
            },
            None => FileStep::DeleteFile { path: self.path },
        };
        Ok(Some(step))
    }
}

/// Returns the text of a client's file that is not JSON. `None` if the file does not exist.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, CommandError> {
    read(&resolve_links(path)?).map_err(|error| cannot("read", path, &error))
}

/// Returns the step that writes a file that is not JSON.
pub(crate) fn edit_step(
    path: &Path,
    is_new: bool,
    text: String,
    notes: Vec<String>,
) -> Result<FileStep, CommandError> {
    let target = resolve_links(path)?;
    check_writable(path, &target)?;
    Ok(FileStep::Edit {
        path: path.to_owned(),
        target,
        is_new,
        text,
        notes,
    })
}

/// Resolves links, because the client writes through them too.
fn resolve_links(path: &Path) -> Result<PathBuf, CommandError> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("find", path, &error)),
        Err(_) if fs::symlink_metadata(path).is_ok() => Err(CommandError::usage(
            format!("{} is a broken link", path.display()),
            "remove the link, or create its target; nothing was written",
        )),
        Err(_) => Ok(path.to_owned()),
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match regular_file::read(path, MAX_BYTES, true) {
        Ok((_, true)) => Err(io::Error::other(format!(
            "the file is larger than {} MiB",
            MAX_BYTES >> 20
        ))),
        Ok((bytes, false)) => String::from_utf8(bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Checks that a file can be written. Fails if the file is read-only, even if its directory would
/// allow replacing it.
fn check_writable(path: &Path, target: &Path) -> Result<(), CommandError> {
    let hint = "make the file writable and try again; nothing was written";
    if fs::metadata(target).is_ok_and(|data| data.permissions().readonly()) {
        return Err(CommandError::usage(
            format!("{} is read-only", path.display()),
            hint,
        ));
    }
    let dir = target
        .ancestors()
        .skip(1)
        .find(|dir| dir.exists())
        .unwrap_or(Path::new("/"));
    if !dir.is_dir() || !program::is_writable(dir) {
        return Err(CommandError::usage(
            format!(
                "cannot write {}: {} is not writable",
                path.display(),
                dir.display()
            ),
            hint,
        ));
    }
    Ok(())
}

fn cannot(action: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(
        format!("cannot {action} {}: {error}", path.display()),
        "check the file and its permissions; nothing was written",
    )
}
