//! Names the files in a loop's directory and creates them with access for the owner only.

use super::Result;
use super::error::IoContext;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A loop's directory. The methods named after a file return its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopDir {
    path: PathBuf,
}

impl LoopDir {
    /// Wraps a path whose last component is the loop's name.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The loop's name.
    pub(crate) fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    /// Creates the directory unless it exists.
    pub(crate) fn create(&self) -> Result<()> {
        create_dir(&self.path).context("create", &self.path)
    }

    /// All events of the loop, and the only source of truth about it.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Requests from other processes to the runner.
    pub(crate) fn inbox(&self) -> PathBuf {
        self.path.join("inbox.jsonl")
    }

    /// The lock that a process holds while it applies events to the loop.
    pub(crate) fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// A cache of the state that the journal folds to.
    pub(crate) fn state(&self) -> PathBuf {
        self.path.join("state.json")
    }

    /// The console output of a supervisor without a terminal.
    pub(crate) fn console_log(&self) -> PathBuf {
        self.path.join("console.log")
    }

    /// A line per start and end of an iteration, for people.
    pub(crate) fn iterations_log(&self) -> PathBuf {
        self.path.join("iterations.log")
    }

    /// The JSON that the notify command last got on standard input.
    pub(crate) fn notify_payload(&self) -> PathBuf {
        self.path.join("notify.json")
    }

    /// The output of the notify command's last run.
    pub(crate) fn notify_log(&self) -> PathBuf {
        self.path.join("notify.log")
    }

    /// The directory of one iteration.
    pub(crate) fn iteration_dir(&self, n: u32) -> PathBuf {
        self.path.join("iterations").join(format!("{n:04}"))
    }

    /// What the agent printed in one iteration, undecoded.
    pub(crate) fn output_log(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("output.log")
    }

    /// What the agent did in one iteration.
    pub(crate) fn activity(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("activity.jsonl")
    }

    /// The repository's content at the start of the loop, which diffs are made against.
    pub(crate) fn diff_base(&self) -> PathBuf {
        self.path.join("base.json")
    }

    /// Scratch space for git: the objects and the copy of the index that a diff needs.
    pub(crate) fn git_scratch(&self) -> PathBuf {
        self.path.join("git")
    }

    /// The output of one check in one iteration.
    pub(crate) fn check_log(&self, n: u32, slug: &str) -> PathBuf {
        self.iteration_dir(n).join(format!("check-{slug}.log"))
    }

    /// The output of one SCM task in one iteration.
    pub(crate) fn scm_task_log(&self, n: u32, task: usize) -> PathBuf {
        self.iteration_dir(n).join(format!("scm-{}.log", task + 1))
    }

    /// The message for the commit of one iteration.
    pub(crate) fn commit_message(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("commit.txt")
    }

    /// The ID of the repository's HEAD commit when one iteration began.
    pub(crate) fn head_file(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("head")
    }

    /// The worktree that is about to be added for the loop. Written before the journal exists, so
    /// that a worktree left over from a crash can be found and removed.
    pub(crate) fn worktree_draft(&self) -> PathBuf {
        self.path.join("worktree.json")
    }

    /// Creates the directory of one iteration unless it exists.
    pub(crate) fn create_iteration_dir(&self, n: u32) -> Result<PathBuf> {
        let path = self.iteration_dir(n);
        create_dir(&path).context("create", &path)?;
        Ok(path)
    }

    pub(super) fn disk_reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }
}

/// Creates an empty file, or truncates an existing one. A new file gets mode 0600.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// Opens a file for appending. A new file gets mode 0600.
pub(crate) fn append_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// Creates a directory and its parents with mode 0700, unless they exist.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Adds a `.gitignore` that ignores the whole directory. The state directory may be inside a
/// repository, and a loop would then commit its own journal. Errors are ignored: the file is only a
/// precaution.
pub(super) fn write_gitignore(dir: &Path) {
    let ignore = dir.join(".gitignore");
    if let Ok(mut file) = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(ignore)
    {
        let _ = file.write_all(b"*\n");
    }
}

pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Makes the creation and renaming of a directory's entries durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
