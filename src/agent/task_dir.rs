//! The task directory, `.ralph/task/<name>/` in the workspace, to which an agent writes markers and
//! costs.
//!
//! Its contents are untrusted claims. The agent may also have deleted or replaced any part of it.

use super::redact::Redactor;
use crate::engine::Marker;
use crate::engine::plain_text::plain;
use crate::engine::plan::Signal;
use crate::engine::signals::fold_whitespace;
use crate::os::regular_file;
use crate::process::output_log::create_private_file;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The task directory of one loop.
#[derive(Clone, Debug)]
pub(crate) struct TaskDir {
    workspace: PathBuf,
    path: PathBuf,
}

/// The contents of a task directory.
#[derive(Debug, Default)]
pub(crate) struct TaskDirContents {
    /// The markers that exist, each once.
    pub(crate) markers: Vec<Marker>,
    /// What is written in the markers, for those that are not empty.
    pub(crate) texts: BTreeMap<Marker, String>,
    /// The cost that the agent reports, in dollars; `None` if it reports none.
    pub(crate) cost_usd: Option<f64>,
    /// An error message if a marker is a directory; `None` otherwise.
    pub(crate) invalid_marker: Option<String>,
}

const MARKER_FILES: [(&str, Marker); 4] = [
    ("DONE", Marker::Done),
    ("BLOCKED", Marker::Blocked),
    ("WAIT", Marker::Wait),
    ("WAIT_WITHOUT_RESTART", Marker::Wait),
];
const COST_FILE: &str = "COST";
/// Only the first `MARKER_TEXT_MAX` bytes of a marker are read.
const MARKER_TEXT_MAX: u64 = 2000;
/// Only the first `FILE_MAX` bytes of a cost file are read, or of a marker archived.
const FILE_MAX: u64 = 1 << 16;
/// Maximum reported cost, in dollars. A higher amount is ignored as a mistake.
const COST_MAX_USD: f64 = 1e9;

const GITIGNORE: &str = "\
# ralph's own files are not part of the project.
/.gitignore
/task/
/guardrail_*.log
/settings.local.*
";

impl TaskDir {
    pub(crate) fn new(workspace: &Path, loop_name: &str) -> Self {
        Self {
            workspace: workspace.into(),
            path: workspace.join(".ralph/task").join(loop_name),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory and makes git ignore it. Call this before every use, because the agent
    /// may have deleted the directory, or put a symbolic link in its place, which would make ralph
    /// overwrite files elsewhere.
    pub(crate) fn ensure(&self) -> io::Result<()> {
        if fs::symlink_metadata(&self.path).is_ok_and(|data| data.is_symlink()) {
            fs::remove_file(&self.path)?;
        }
        for name in [".ralph", ".ralph/task"] {
            if regular_file::leads_outside(&self.workspace, name) {
                let message = format!("{name} is a link to a directory outside the workspace");
                return Err(io::Error::other(message));
            }
        }
        if self.path.is_dir() {
            return Ok(());
        }
        // Create one level at a time, so that a deleted workspace is not recreated. The task
        // directory comes last: if it exists, everything else is complete.
        let ralph = self.workspace.join(".ralph");
        create_dir_if_missing(&ralph)?;
        let ignore = ralph.join(".gitignore");
        if fs::metadata(&ignore).map_or(0, |data| data.len()) == 0 {
            regular_file::create(&ignore)?.write_all(GITIGNORE.as_bytes())?;
        }
        create_dir_if_missing(&ralph.join("task"))?;
        create_dir_if_missing(&self.path)
    }

    /// Returns whether `.ralph/.gitignore` hides ralph's files. A project may have its own file
    /// there, because other tools use the same directory.
    pub(crate) fn is_ignored(&self) -> bool {
        let ignore = self.workspace.join(".ralph/.gitignore");
        let text = read_text(&ignore, FILE_MAX).map(|(text, _)| text);
        text.is_some_and(|text| {
            let has = |pattern: &str| text.lines().any(|line| line.trim_end() == pattern);
            has("*") || (has("/task/") && has("/guardrail_*.log"))
        })
    }

    /// Reads the markers, redacted, and the cost. A done file in `signals` counts as a marker if it exists.
    pub(crate) fn scan(&self, signals: &[Signal], redactor: &Redactor) -> TaskDirContents {
        let mut contents = TaskDirContents::default();
        for (name, marker) in MARKER_FILES {
            match fs::symlink_metadata(self.path.join(name)) {
                Ok(data) if data.is_dir() => {
                    let message = format!(
                        "the marker {name} must be a file, but is a directory: {}",
                        self.path.display()
                    );
                    contents.invalid_marker = Some(message);
                }
                Ok(_) => {
                    if !contents.markers.contains(&marker) {
                        contents.markers.push(marker);
                    }
                    if let Some(text) = self.marker_text(name, redactor) {
                        contents.texts.entry(marker).or_insert(text);
                    }
                }
                Err(_) => {}
            }
        }
        let is_given = |signal: &Signal| match signal {
            Signal::File(path) => self.workspace.join(path).is_file(),
            Signal::Promise(_) | Signal::Pattern(_) => false,
        };
        if signals.iter().any(is_given) {
            contents.markers.push(Marker::File);
        }
        contents.cost_usd = self.cost();
        contents
    }

    /// Returns the text of a marker on one line; `None` if it is empty or cannot be read.
    fn marker_text(&self, name: &str, redactor: &Redactor) -> Option<String> {
        let (text, is_cut) = read_text(&self.path.join(name), MARKER_TEXT_MAX)?;
        let text = if is_cut {
            redactor.redact_cut(&text)
        } else {
            redactor.redact_text(&text)
        };
        let text = plain(&fold_whitespace(&text)).into_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns the sum of the reported costs, in dollars; `None` if there is no amount or the sum
    /// is implausible. The file has one amount per line.
    fn cost(&self) -> Option<f64> {
        let (text, is_cut) = read_text(&self.path.join(COST_FILE), FILE_MAX)?;
        let amounts = text
            .lines()
            .filter_map(|line| line.trim().trim_start_matches('$').parse::<f64>().ok());
        let amounts: Vec<f64> = amounts.collect();
        let sum: f64 = amounts.iter().sum();
        let is_plausible = amounts.iter().all(|usd| *usd >= 0.0) && sum <= COST_MAX_USD && !is_cut;
        (!amounts.is_empty() && is_plausible).then_some(sum)
    }

    /// Moves the cost and `markers` into the iteration's directory, redacted. None of them can then
    /// count twice. The user's done file is not moved.
    pub(crate) fn archive(
        &self,
        markers: &[Marker],
        iteration_dir: &Path,
        redactor: &Redactor,
    ) -> Result<(), String> {
        let files = MARKER_FILES
            .iter()
            .filter(|(_, marker)| markers.contains(marker));
        for name in files.map(|(name, _)| *name).chain([COST_FILE]) {
            let from = self.path.join(name);
            if fs::symlink_metadata(&from).is_err() {
                continue;
            }
            if let Some((text, _)) = read_text(&from, FILE_MAX) {
                let _ = DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(iteration_dir);
                let _ = create_private_file(&iteration_dir.join(name))
                    .and_then(|mut file| file.write_all(redactor.redact_text(&text).as_bytes()));
            }
            fs::remove_file(&from)
                .map_err(|error| format!("cannot remove {}: {error}", from.display()))?;
        }
        Ok(())
    }

    /// Copies the full output of a check from `log` to the file `name` in the workspace, where the
    /// agent can read it.
    pub(crate) fn publish_log(&self, log: &Path, name: &str) -> io::Result<()> {
        self.ensure()?;
        let mut to = create_private_file(&self.workspace.join(name))?;
        io::copy(&mut regular_file::open(log, false)?, &mut to).map(drop)
    }

    /// Writes a marker, as `ralph done` and `ralph blocked` do inside a loop.
    pub(crate) fn write_marker(task_dir: &Path, name: &str, text: &str) -> io::Result<()> {
        fs::create_dir_all(task_dir)?;
        // Write under a draft name first, because the runner may look at any moment.
        let draft = task_dir.join(format!(".{name}.{}", std::process::id()));
        let mut file = create_private_file(&draft)?;
        writeln!(file, "{text}")?;
        fs::rename(draft, task_dir.join(name))
    }
}

/// Removes ralph's `.gitignore` and the directories that contain nothing else.
pub(crate) fn remove_if_unused(workspace: &Path) {
    let ralph = workspace.join(".ralph");
    let _ = fs::remove_dir(ralph.join("task"));
    let ignore = ralph.join(".gitignore");
    let is_last = fs::read_dir(&ralph).is_ok_and(|entries| {
        let mut names = entries.flatten().map(|entry| entry.file_name());
        names.all(|name| name == ".gitignore")
    });
    if is_last && read_text(&ignore, FILE_MAX).is_none_or(|(text, _)| text == GITIGNORE) {
        let _ = fs::remove_file(ignore);
        let _ = fs::remove_dir(ralph);
    }
}

fn create_dir_if_missing(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Reads at most `max` bytes of a file. Returns the text, and whether the file is longer; `None` if
/// the file cannot be read.
fn read_text(path: &Path, max: u64) -> Option<(String, bool)> {
    let (bytes, more) = regular_file::read(path, max, false).ok()?;
    Some((String::from_utf8_lossy(&bytes).into_owned(), more))
}
