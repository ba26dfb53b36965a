//! A settings file of a client: what is to change in it, and how that is put there without harm.

use super::json::{Json, Part, shown};
use super::record::{Entry, Kept, Record, Was};
use super::steps::Step;
use crate::lifecycle::failure::Failure;
use crate::os::{program, regular};
use crate::ui::one_line;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// More than any settings need.
const CAP: u64 = 32 << 20;

pub(crate) struct Sheet {
    path: PathBuf,
    /// Where links lead to.
    real: PathBuf,
    old: Option<String>,
    json: Json,
    entry: Entry,
    notes: Vec<String>,
}

impl Sheet {
    /// Reads it, and sees to it that it can be written.
    pub(crate) fn open(path: &Path, client: &str, record: &Record) -> Result<Self, Failure> {
        let real = real(path)?;
        let old = read(&real).map_err(|error| cannot("read", path, &error))?;
        let filled = old.as_deref().filter(|text| !text.trim().is_empty());
        let json = Json::read(filled.unwrap_or("{}\n")).map_err(|wrong| {
            Failure::usage(
                format!("{} is no JSON object: {wrong}", path.display()),
                "nothing was written; correct that file first",
            )
        })?;
        let was = match &old {
            None => Was::Absent,
            Some(text) if filled.is_none() => Was::Blank(text.clone()),
            Some(_) => Was::Filled,
        };
        let new = || Entry {
            client: client.to_owned(),
            file: path.to_owned(),
            was,
            undo: Vec::new(),
        };
        let entry = record.of(path).cloned().unwrap_or_else(new);
        Ok(Self {
            path: path.to_owned(),
            real,
            old,
            json,
            entry,
            notes: Vec::new(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn get(&self, path: &[Part]) -> Option<Value> {
        self.json.get(path)
    }

    /// Makes this stand there. `is_ours` is a key that nobody else has a use for.
    pub(crate) fn set(
        &mut self,
        path: &[Part],
        value: &Value,
        is_ours: bool,
    ) -> Result<(), Failure> {
        let made = self.json.set(path, value).map_err(|wrong| {
            Failure::usage(
                format!("{}: {wrong}", self.path.display()),
                "nothing was written; correct that file first",
            )
        })?;
        if let Some(change) = made {
            self.entry.undo.retain(|kept| kept.change.path != path);
            self.entry.undo.push(Kept { change, is_ours });
            self.notes
                .push(format!("{} {}", shown(path), one_line(&value.to_string())));
        }
        Ok(())
    }

    /// Puts a value in the place of an earlier one of ralph's.
    pub(crate) fn swap(
        &mut self,
        old: &[Part],
        new: &[Part],
        value: &Value,
    ) -> Result<(), Failure> {
        let kept = self
            .entry
            .undo
            .iter()
            .position(|kept| kept.change.path == old);
        let kept = kept.map(|at| self.entry.undo.remove(at));
        self.set(old, value, true)?;
        self.entry.undo.pop();
        // What takes the first of them back takes this one back.
        self.entry.undo.extend(kept.map(|mut kept| {
            kept.change.path = new.to_vec();
            kept.change.wrote = value.clone();
            kept
        }));
        Ok(())
    }

    /// Leaves something to whoever has it now.
    pub(crate) fn forget(&mut self, path: &[Part]) {
        self.entry.undo.retain(|kept| kept.change.path != path);
    }

    /// Takes back what was ever set here. False: no record tells of it.
    pub(crate) fn undo(&mut self) -> bool {
        let changes = std::mem::take(&mut self.entry.undo);
        for kept in changes.iter().rev() {
            let now = self.json.get(&kept.change.path);
            let still = kept.is_ours || now.is_some_and(|now| now == kept.change.wrote);
            if still && self.json.undo(&kept.change) {
                self.notes
                    .push(format!("{} (no more)", shown(&kept.change.path)));
            }
        }
        !changes.is_empty()
    }

    /// Takes something away, with what would be empty then.
    pub(crate) fn remove(&mut self, path: &[Part]) {
        if self.json.get(path).is_some() {
            let holds_more = |length: &usize| self.json.count(&path[..*length]) != 1;
            let length = (1..path.len())
                .rev()
                .find(holds_more)
                .map_or(1, |length| length + 1);
            self.take(&path[..length]);
        }
    }

    /// Takes away just that.
    pub(crate) fn take(&mut self, path: &[Part]) {
        if self.json.remove(path) {
            self.notes.push(format!("{} (no more)", shown(path)));
        }
    }

    /// The step that writes it, if anything changed.
    pub(crate) fn close(self, record: &mut Record) -> Result<Option<Step>, Failure> {
        let is_ours_alone = self.entry.undo.is_empty() && self.json.is_empty();
        let new = match &self.entry.was {
            Was::Absent if is_ours_alone => None,
            Was::Blank(text) if is_ours_alone => Some(text.clone()),
            _ => Some(self.json.text().to_owned()),
        };
        record.put(self.entry);
        if new == self.old || self.notes.is_empty() {
            return Ok(None);
        }
        writable(&self.path, &self.real)?;
        let step = match new {
            Some(text) => Step::Edit {
                path: self.path,
                real: self.real,
                is_new: self.old.is_none(),
                text,
                notes: self.notes,
            },
            None => Step::Delete { path: self.path },
        };
        Ok(Some(step))
    }
}

/// The text of any other file of a client; none if there is none.
pub(crate) fn text(path: &Path) -> Result<Option<String>, Failure> {
    read(&real(path)?).map_err(|error| cannot("read", path, &error))
}

/// The step that writes such a file.
pub(crate) fn edit(
    path: &Path,
    is_new: bool,
    text: String,
    notes: Vec<String>,
) -> Result<Step, Failure> {
    let real = real(path)?;
    writable(path, &real)?;
    Ok(Step::Edit {
        path: path.to_owned(),
        real,
        is_new,
        text,
        notes,
    })
}

/// Where a file really lies: the client, too, writes through a link.
fn real(path: &Path) -> Result<PathBuf, Failure> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("find", path, &error)),
        Err(_) if fs::symlink_metadata(path).is_ok() => Err(Failure::usage(
            format!("{} is a link that leads nowhere", path.display()),
            "nothing was written; remove the link, or make what it leads to",
        )),
        Err(_) => Ok(path.to_owned()),
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match regular::read(path, CAP, true) {
        Ok((_, true)) => Err(io::Error::other("it is too large for settings")),
        Ok((bytes, false)) => String::from_utf8(bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file that is marked as read-only is so on purpose, even where its directory would let it be replaced.
fn writable(path: &Path, real: &Path) -> Result<(), Failure> {
    let hint = "nothing was written; whoever manages that file has to let it be changed";
    if fs::metadata(real).is_ok_and(|data| data.permissions().readonly()) {
        return Err(Failure::usage(
            format!("{} is read-only", path.display()),
            hint,
        ));
    }
    let dir = real
        .ancestors()
        .skip(1)
        .find(|dir| dir.exists())
        .unwrap_or(Path::new("/"));
    if !dir.is_dir() || !program::may_write(dir) {
        return Err(Failure::usage(
            format!(
                "{} cannot be written: {} is not writable",
                path.display(),
                dir.display()
            ),
            hint,
        ));
    }
    Ok(())
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::usage(
        format!("cannot {what} {}: {error}", path.display()),
        "nothing was written",
    )
}
