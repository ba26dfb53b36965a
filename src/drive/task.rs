//! The task directory in the workspace: how an agent speaks without words, read as untrusted claims.

use super::capture::private_file;
use crate::engine::Marker;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
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

impl TaskDir {
    /// The directory of this loop in this workspace.
    pub fn of(workspace: &Path, name: &str) -> Self {
        Self { workspace: workspace.into(), path: workspace.join(".ralph/task").join(name) }
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
        fs::create_dir_all(&self.path)?;
        let ignore = self.workspace.join(".ralph/.gitignore");
        if !ignore.exists() {
            fs::write(
                ignore,
                "# What ralph writes here is not part of the work.\n/.gitignore\n/task/\n/guardrail_*.log\n",
            )?;
        }
        Ok(())
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
            let words = read_some(&self.path.join("BLOCKED"), BLOCKED_MAX);
            found.blocked = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
        }
        if file.is_some_and(|file| self.workspace.join(file).is_file()) {
            found.markers.push(Marker::File);
        }
        let costs = read_some(&self.path.join(COST), COST_MAX);
        let amounts: Vec<f64> =
            costs.lines().filter_map(|line| line.trim().trim_start_matches('$').parse().ok()).collect();
        let sane = |usd: &f64| usd.is_finite() && *usd >= 0.0;
        found.cost_usd = (!amounts.is_empty() && amounts.iter().all(sane)).then(|| amounts.iter().sum());
        found
    }

    /// Moves the cost and these markers into the iteration's directory, so that none counts twice. The file
    /// asked for as a signal is the user's own and stays.
    pub fn file_away(&self, judged: &[Marker], iteration_dir: &Path) {
        let judged = FILES.iter().filter(|(_, marker)| judged.contains(marker));
        for name in judged.map(|(name, _)| *name).chain([COST]) {
            let from = self.path.join(name);
            if fs::symlink_metadata(&from).is_ok() && move_file(&from, &iteration_dir.join(name)).is_err() {
                // Across file systems nothing but the words matters.
                let _ = fs::remove_file(&from);
            }
        }
    }

    /// Puts a check's whole output where the agent can read it; says where that is.
    pub fn publish(&self, log: &Path, iteration: u32, slug: &str) -> io::Result<String> {
        self.ensure()?;
        let name = format!(".ralph/guardrail_{iteration}_{slug}.log");
        let mut to = private_file(&self.workspace.join(&name))?;
        io::copy(&mut fs::File::open(log)?, &mut to)?;
        Ok(name)
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

/// Moves what an agent left into a place that its owner alone may read. Only a plain file is opened: a pipe
/// could hang, and a link lead anywhere.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to.parent().unwrap_or(to))?;
    let is_file = fs::symlink_metadata(from)?.is_file();
    if is_file {
        fs::set_permissions(from, fs::Permissions::from_mode(0o600))?;
    }
    match fs::rename(from, to) {
        Err(_) if is_file => fs::copy(from, to).and_then(|_| fs::remove_file(from)),
        renamed => renamed,
    }
}

fn read_some(path: &Path, max: u64) -> String {
    use std::io::Read;
    let is_file = fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
    let Some(file) = is_file.then(|| fs::File::open(path).ok()).flatten() else { return String::new() };
    let mut bytes = Vec::new();
    let _ = file.take(max).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
