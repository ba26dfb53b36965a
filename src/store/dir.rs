//! What a loop's files are called, and that nobody else may read them.

use super::Result;
use super::error::Doing;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// One loop's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDir {
    path: PathBuf,
}

impl LoopDir {
    /// This directory, named like its loop.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The loop's name.
    pub fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    /// Creates the directory, if it is not there.
    pub fn create(&self) -> Result<()> {
        make_dir(&self.path).doing("create", &self.path)
    }

    /// The only truth.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// What was said to the loop.
    pub fn inbox(&self) -> PathBuf {
        self.path.join("inbox.jsonl")
    }

    /// Held by whoever may step the loop.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// A cache of the journal's fold.
    pub fn state(&self) -> PathBuf {
        self.path.join("state.json")
    }

    /// What a supervisor without a terminal says.
    pub fn console_log(&self) -> PathBuf {
        self.path.join("console.log")
    }

    /// A line for each start and end, for people.
    pub fn iterations_log(&self) -> PathBuf {
        self.path.join("iterations.log")
    }

    /// What the command that is told of endings was told last.
    pub fn notify_news(&self) -> PathBuf {
        self.path.join("notify.json")
    }

    /// What that command printed then.
    pub fn notify_log(&self) -> PathBuf {
        self.path.join("notify.log")
    }

    /// The directory of one iteration.
    pub fn iteration(&self, n: u32) -> PathBuf {
        self.path.join("iterations").join(format!("{n:04}"))
    }

    /// The state of the repository when the loop began.
    pub fn base(&self) -> PathBuf {
        self.path.join("base.json")
    }

    /// Where git may keep what it needs for a diff.
    pub fn scratch(&self) -> PathBuf {
        self.path.join("git")
    }

    /// What one check printed in one iteration.
    pub fn check_log(&self, n: u32, slug: &str) -> PathBuf {
        self.iteration(n).join(format!("check-{slug}.log"))
    }

    /// What one task for green work printed in one iteration.
    pub fn task_log(&self, n: u32, task: usize) -> PathBuf {
        self.iteration(n).join(format!("scm-{}.log", task + 1))
    }

    /// What the commit of one iteration was to say.
    pub fn commit_message(&self, n: u32) -> PathBuf {
        self.iteration(n).join("commit.txt")
    }

    /// Where the repository's HEAD was when one iteration began.
    pub fn head(&self, n: u32) -> PathBuf {
        self.iteration(n).join("head")
    }

    /// The worktree that is about to be made for the loop: until the journal has it, a crash is found by this.
    pub fn worktree_draft(&self) -> PathBuf {
        self.path.join("worktree.json")
    }

    /// Creates the directory of one iteration, if it is not there.
    pub fn make_iteration(&self, n: u32) -> Result<PathBuf> {
        let path = self.iteration(n);
        make_dir(&path).doing("create", &path)?;
        Ok(path)
    }

    pub(super) fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }
}

/// Creates an empty file, or empties it, for its owner alone.
pub fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// Opens a file to write at its end, created for its owner alone.
pub fn append_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// Creates a directory and those above it, for their owner alone.
pub fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Keeps what is in a directory out of every repository that it may lie in: a loop would commit its own journal.
/// Where it cannot be written, nothing is worse than before.
pub(super) fn keep_from_git(path: &Path) {
    let ignore = path.join(".gitignore");
    if let Ok(mut file) = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(ignore)
    {
        let _ = file.write_all(b"*\n");
    }
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Makes a directory's names durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
