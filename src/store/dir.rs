//! Names the files in a loop's directory, and creates files that only their owner can access.

use super::error::IoContext;
use super::{Result, aside};
use crate::engine::plan::Scm;
use crate::os::{self, regular_file};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A loop's directory. Methods named after a file return its path, whether or not the file exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopDir {
    path: PathBuf,
}

impl LoopDir {
    /// Wraps the path of a loop's directory, whose last component is the loop's name.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the loop's name.
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

    /// Returns the path of the journal. It contains all events of the loop and is the only source
    /// of truth about it.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Returns the path of the inbox, which contains requests from other processes to the runner.
    pub(crate) fn inbox(&self) -> PathBuf {
        self.path.join("inbox.jsonl")
    }

    /// Returns the path of the lock that a process holds while it applies events to the loop.
    pub(crate) fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Returns the path of the lock that a command holds while it starts the loop's runner.
    pub(crate) fn start_mark(&self) -> PathBuf {
        self.path.join("starting")
    }

    /// Returns the path of the requests with which a resume starts the loop's runner.
    pub(crate) fn start_requests(&self) -> PathBuf {
        self.path.join("start.jsonl")
    }

    /// Returns the path of the lease of a loop that this machine runs for a fleet.
    pub(crate) fn lease(&self) -> PathBuf {
        self.path.join("lease")
    }

    /// Returns the path of the cached state, a fold of the journal.
    pub(crate) fn state(&self) -> PathBuf {
        self.path.join("state.json")
    }

    /// Returns the path of the log with the console output of a supervisor without a terminal.
    pub(crate) fn console_log(&self) -> PathBuf {
        self.path.join("console.log")
    }

    /// Returns the path of the log with a line for each start and end of an iteration, for people.
    pub(crate) fn iterations_log(&self) -> PathBuf {
        self.path.join("iterations.log")
    }

    /// Returns the path of the JSON that the notify command last received on standard input.
    pub(crate) fn notify_payload(&self) -> PathBuf {
        self.path.join("notify.json")
    }

    /// Returns the path of the log with the output of the notify command's last run.
    pub(crate) fn notify_log(&self) -> PathBuf {
        self.path.join("notify.log")
    }

    /// Returns the path of the file that receives the output of the agent's program when it is asked
    /// for its version.
    pub(crate) fn version_log(&self) -> PathBuf {
        self.path.join("version.log")
    }

    /// Returns the directory of iteration `n`.
    pub(crate) fn iteration_dir(&self, n: u32) -> PathBuf {
        self.path.join("iterations").join(format!("{n:04}"))
    }

    /// Returns the path of the log with the agent's undecoded output in iteration `n`.
    pub(crate) fn output_log(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("output.log")
    }

    /// Returns the path of the file that lists the agent's acts in iteration `n`.
    pub(crate) fn activity(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("activity.jsonl")
    }

    /// Returns the path of the file that describes the repository's content at the start of the
    /// loop. All diffs are relative to this content.
    pub(crate) fn diff_base(&self) -> PathBuf {
        self.path.join("base.json")
    }

    /// Returns git's scratch directory, for the objects and the copy of the index that a diff
    /// needs.
    pub(crate) fn git_scratch(&self) -> PathBuf {
        self.path.join("git")
    }

    /// Returns the scratch directory of the view in which the second look runs its checks.
    pub(crate) fn view_scratch(&self) -> PathBuf {
        self.path.join("view")
    }

    /// Returns the path of the record of hooks directories that were created for a sandbox.
    pub(crate) fn created_hooks(&self) -> PathBuf {
        self.path.join("created-hooks")
    }

    /// Returns the scratch directory of `ralph verify`.
    pub(crate) fn verify_scratch(&self) -> PathBuf {
        self.path.join("verify")
    }

    /// Returns the path of the receipt.
    pub(crate) fn receipt(&self) -> PathBuf {
        self.path.join("receipt.json")
    }

    /// Returns the path of the log with a check's output in iteration `n`.
    pub(crate) fn check_log(&self, n: u32, slug: &str) -> PathBuf {
        self.iteration_dir(n).join(format!("check-{slug}.log"))
    }

    /// Returns the path of the log with an SCM task's output in iteration `n`.
    pub(crate) fn scm_task_log(&self, n: u32, task: usize) -> PathBuf {
        self.iteration_dir(n)
            .join(format!("{}.log", Scm::slug(task)))
    }

    /// Returns the iteration and the slug of every check and SCM task that has a log.
    pub(crate) fn logged_slugs(&self) -> Vec<(u32, String)> {
        let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
        let mut found = Vec::new();
        for iteration in entries(self.path.join("iterations")) {
            let Some(number) = iteration
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            for file in entries(iteration.path()) {
                let name = file.file_name();
                let stem = name.to_str().and_then(|name| name.strip_suffix(".log"));
                let slug = stem.and_then(|stem| match stem.strip_prefix("check-") {
                    None => Some(stem).filter(|stem| stem.starts_with("scm-")),
                    slug => slug,
                });
                found.extend(slug.map(|slug| (number, slug.to_owned())));
            }
        }
        found
    }

    /// Returns the path of the message for iteration `n`'s commit.
    pub(crate) fn commit_message(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("commit.txt")
    }

    /// Returns the path of the file with the pathspecs of iteration `n`'s commit.
    pub(crate) fn commit_pathspecs(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("commit-paths")
    }

    /// Returns the path of the file with the ID of the HEAD commit when iteration `n` began.
    pub(crate) fn head_file(&self, n: u32) -> PathBuf {
        self.iteration_dir(n).join("head")
    }

    /// Returns the path of the file that describes the worktree about to be added for the loop. The
    /// file is written before the journal exists, so that a worktree left by a crash can be found
    /// and removed.
    pub(crate) fn worktree_draft(&self) -> PathBuf {
        self.path.join("worktree.json")
    }

    /// Creates the directory of iteration `n` unless it exists, and returns its path.
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
    regular_file::truncate(path)
}

/// Opens a file for appending. A new file gets mode 0600.
pub(crate) fn append_file(path: &Path) -> io::Result<File> {
    regular_file::append(path)
}

/// Creates a directory and its parents with mode 0700, unless they exist.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Adds a `.gitignore` that ignores the whole directory. If the state directory is inside a
/// repository, a loop would otherwise commit its own journal. Errors are ignored, because the file
/// is only a precaution.
pub(super) fn write_gitignore(dir: &Path) {
    let ignore = dir.join(".gitignore");
    if let Ok(mut file) = regular_file::create_new(&ignore) {
        let _ = file.write_all(b"*\n");
    }
}

/// Removes a file if it exists. Anything else in its place is renamed.
pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::IsADirectory => aside::move_away(path).map(drop),
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Makes the creation and renaming of a directory's entries durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    os::sync_dir(path)
}
