//! The task directory in the workspace: how an agent speaks without words, read as untrusted claims.

use super::redact::Mask;
use crate::engine::Marker;
use crate::engine::plain_text::plain;
use crate::engine::signals::fold;
use crate::os::regular;
use crate::process::capture::private_file;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// `.ralph/task/<name>/` of a workspace.
#[derive(Clone, Debug)]
pub struct TaskDir {
    workspace: PathBuf,
    path: PathBuf,
}

/// What lies in the task directory.
#[derive(Debug, Default)]
pub struct Found {
    /// The markers, each once.
    pub markers: Vec<Marker>,
    /// What BLOCKED says.
    pub blocked: Option<String>,
    /// Dollars, by the agent's own report.
    pub cost_usd: Option<f64>,
    /// A marker that is no file.
    pub wrong: Option<String>,
}

const FILES: [(&str, Marker); 4] = [
    ("DONE", Marker::Done),
    ("BLOCKED", Marker::Blocked),
    ("WAIT", Marker::Wait),
    ("WAIT_WITHOUT_RESTART", Marker::Wait),
];
const COST: &str = "COST";
/// Longer words than these are no reason.
const BLOCKED_MAX: u64 = 2000;
const COST_MAX: u64 = 1 << 16;
/// More than this, in dollars, is a mistake.
const COST_SANE: f64 = 1e9;

impl TaskDir {
    /// The directory of this loop in this workspace.
    pub fn of(workspace: &Path, name: &str) -> Self {
        Self {
            workspace: workspace.into(),
            path: workspace.join(".ralph/task").join(name),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it, and keeps git away from it. An agent may have cleaned it away, so this is repeated.
    pub fn ensure(&self) -> io::Result<()> {
        if self.path.is_dir() {
            return Ok(());
        }
        // Level by level: a workspace that is gone must not come back empty. The task directory comes last: if it is
        // there, a kill has left nothing undone.
        let ralph = self.workspace.join(".ralph");
        make_dir(&ralph)?;
        let ignore = ralph.join(".gitignore");
        if fs::metadata(&ignore).map_or(0, |data| data.len()) == 0 {
            let words = "# What ralph writes here is not part of the work.\n/.gitignore\n/task/\n/guardrail_*.log\n/settings.local.*\n";
            regular::create(&ignore)?.write_all(words.as_bytes())?;
        }
        make_dir(&ralph.join("task"))?;
        make_dir(&self.path)
    }

    /// Looks for markers and the cost; `file` is the one asked for as a signal.
    pub fn look(&self, file: Option<&Path>) -> Found {
        let mut found = Found::default();
        for (name, marker) in FILES {
            match fs::symlink_metadata(self.path.join(name)) {
                Ok(data) if data.is_dir() => {
                    found.wrong = Some(format!("{name} is a directory: {}", self.path.display()));
                }
                Ok(_) if !found.markers.contains(&marker) => found.markers.push(marker),
                _ => {}
            }
        }
        if found.markers.contains(&Marker::Blocked) {
            let words = read_some(&self.path.join("BLOCKED"), BLOCKED_MAX)
                .unwrap_or_default()
                .0;
            found.blocked =
                Some(plain(&fold(&words)).into_owned()).filter(|words| !words.is_empty());
        }
        if file.is_some_and(|file| self.workspace.join(file).is_file()) {
            found.markers.push(Marker::File);
        }
        found.cost_usd = self.cost();
        found
    }

    /// Dollars, a line each; none if it does not say, or says what nobody can have spent.
    fn cost(&self) -> Option<f64> {
        let (text, more) = read_some(&self.path.join(COST), COST_MAX)?;
        let amounts = text
            .lines()
            .filter_map(|line| line.trim().trim_start_matches('$').parse::<f64>().ok());
        let amounts: Vec<f64> = amounts.collect();
        let sum: f64 = amounts.iter().sum();
        let sane = amounts.iter().all(|usd| *usd >= 0.0) && sum <= COST_SANE && !more;
        (!amounts.is_empty() && sane).then_some(sum)
    }

    /// Takes the cost and these markers away, into the iteration's directory, so that none counts twice. The
    /// file asked for as a signal is the user's own and stays.
    pub fn file_away(
        &self,
        judged: &[Marker],
        iteration_dir: &Path,
        mask: &Mask,
    ) -> Result<(), String> {
        let judged = FILES.iter().filter(|(_, marker)| judged.contains(marker));
        for name in judged.map(|(name, _)| *name).chain([COST]) {
            let from = self.path.join(name);
            if fs::symlink_metadata(&from).is_err() {
                continue;
            }
            if let Some((words, _)) = read_some(&from, COST_MAX) {
                let _ = DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(iteration_dir);
                let _ = private_file(&iteration_dir.join(name))
                    .and_then(|mut file| file.write_all(mask.cover_text(&words).as_bytes()));
            }
            fs::remove_file(&from)
                .map_err(|error| format!("cannot take {} away: {error}", from.display()))?;
        }
        Ok(())
    }

    /// Puts a check's whole output where the agent can read it.
    pub fn publish(&self, log: &Path, name: &str) -> io::Result<()> {
        self.ensure()?;
        let mut to = private_file(&self.workspace.join(name))?;
        io::copy(&mut regular::open(log, false)?, &mut to).map(drop)
    }

    /// Writes a marker, as `ralph done` and `ralph blocked` do from inside.
    pub fn mark(path: &Path, name: &str, words: &str) -> io::Result<()> {
        fs::create_dir_all(path)?;
        // Appears whole or not at all: the runner may look at any instant.
        let draft = path.join(format!(".{name}.{}", std::process::id()));
        let mut file = private_file(&draft)?;
        writeln!(file, "{words}")?;
        fs::rename(draft, path.join(name))
    }
}

/// Makes one directory, if it is not there.
fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn read_some(path: &Path, max: u64) -> Option<(String, bool)> {
    let (bytes, more) = regular::read(path, max, false).ok()?;
    Some((String::from_utf8_lossy(&bytes).into_owned(), more))
}
