//! Checkpoints: commits of a working tree's content under `refs/ralph/<loop ID>/`, made without
//! touching the user's index, HEAD, stash, hooks or branches.
//!
//! A checkpoint is named by its iteration. `undo` is the content before the last rewind. The
//! parent of each checkpoint is the one before, so nothing is lost if one is taken again.

use super::command::{self, GitError, GitOutput};
use super::content::{SkippedFiles, TreeContent};
use super::diff::{DIFF_OPTIONS, FileCounts, parse_numstat};
use super::overlay::create_private;
use super::shadow::ShadowRepository;
use super::skipped::SkipCause;
use super::{READ_MAX, look};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The name of the checkpoint before the last rewind.
pub(crate) const UNDO: &str = "undo";

/// The file in the scratch directory that says where the checkpoints are.
const LOCATION: &str = "checkpoints";

/// How a line of a checkpoint's message begins that names a skipped file.
const SKIPPED: [(&[u8], SkipCause); 2] = [
    (b"Skipped-Secret: ", SkipCause::Secret),
    (b"Skipped-Large: ", SkipCause::Large),
];

/// A checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) commit: String,
    pub(crate) tree: String,
    pub(crate) skipped: SkippedFiles,
}

/// A file that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDiffStat {
    /// The path, quoted as git quotes it.
    pub(crate) path: String,
    /// Number of lines added; 0 for a binary file.
    pub(crate) insertions: u64,
    /// Number of lines removed; 0 for a binary file.
    pub(crate) deletions: u64,
}

/// The checkpoints of one loop.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    /// The git directory that all worktrees of the repository share.
    common: PathBuf,
    /// The beginning of the refs' names, with a slash at the end.
    prefix: String,
    scratch: PathBuf,
}

/// The most files that one checkpoint's message names.
const NAMED_MAX: usize = 1000;

impl TreeContent {
    /// Takes a checkpoint of the current content. If it exists already, it is taken again.
    pub(crate) fn take_checkpoint(&self, loop_id: &str, name: &str) -> Result<Checkpoint, String> {
        let checkpoints = self.checkpoints(loop_id)?;
        let tree = self.store()?;
        let newest = self.newest.borrow().clone();
        let newest = newest.or_else(|| checkpoints.newest());
        let is_same = |newest: &Checkpoint| {
            newest.tree == tree.id && newest.skipped == tree.skipped && name != UNDO
        };
        let checkpoint = match newest {
            Some(newest) if is_same(&newest) => newest,
            newest => {
                let undo = (name == UNDO).then(|| checkpoints.get(UNDO)).transpose()?;
                let parents = newest.iter().chain(undo.iter().flatten());
                let mut args = vec!["commit-tree", &tree.id];
                args.extend(parents.flat_map(|parent| ["-p", &parent.commit]));
                let message = message(loop_id, name, &tree.skipped);
                let made = self.stored_shadow()?.git_with_input(&args, &message)?;
                Checkpoint {
                    commit: String::from_utf8_lossy(&made.stdout).trim().to_owned(),
                    tree: tree.id,
                    skipped: tree.skipped,
                }
            }
        };
        checkpoints.set(name, &checkpoint.commit)?;
        self.newest.replace(Some(checkpoint.clone()));
        Ok(checkpoint)
    }

    /// Returns the loop's checkpoints. Records where they are before there are any.
    pub(crate) fn checkpoints(&self, loop_id: &str) -> Result<Checkpoints, String> {
        if loop_id.is_empty()
            || !loop_id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            return Err(format!("{loop_id:?} is no loop ID"));
        }
        // Creates the directory.
        self.stored_shadow()?;
        let common = &self.settings()?.files.common;
        let common = fs::canonicalize(common).unwrap_or_else(|_| common.clone());
        let prefix = format!("refs/ralph/{loop_id}/");
        let path = self.scratch.join(LOCATION);
        let location = [prefix.as_bytes(), b"\n", common.as_os_str().as_bytes()].concat();
        if fs::read(&path).ok().as_ref() != Some(&location) {
            create_private(&path)
                .and_then(|mut file| file.write_all(&location))
                .map_err(|error| format!("cannot write to {}: {error}", path.display()))?;
        }
        Ok(Checkpoints {
            common,
            prefix,
            scratch: self.scratch.clone(),
        })
    }
}

impl Checkpoints {
    /// Finds the checkpoints of the loop with this scratch directory; `None` if it has none.
    pub(crate) fn find(scratch: &Path) -> Option<Self> {
        let scratch = scratch.join("content");
        let bytes = fs::read(scratch.join(LOCATION)).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let prefix = str::from_utf8(&bytes[..end]).ok()?;
        let id = prefix.strip_prefix("refs/ralph/")?.strip_suffix('/')?;
        let is_id = !id.is_empty() && !id.contains(['/', '*', '.', ' ']);
        is_id.then(|| Self {
            common: OsStr::from_bytes(&bytes[end + 1..]).into(),
            prefix: prefix.to_owned(),
            scratch,
        })
    }

    /// Returns the numbers of the checkpoints, in order.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, String> {
        let names = self.names()?.into_iter();
        let mut numbers: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads a checkpoint; `None` if there is none of this name.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Checkpoint>, String> {
        let reference = format!("{}{name}", self.prefix);
        let args = ["rev-parse", "--quiet", "--verify", &reference];
        let output = self.git(&args)?;
        if output.code != Some(0) {
            return Ok(None);
        }
        let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let output = self.git(&["cat-file", "commit", &commit])?;
        if output.code != Some(0) {
            return Err(output.error_message("cat-file"));
        }
        let mut lines = output.stdout.split(|byte| *byte == b'\n');
        let tree = lines.next().and_then(|line| line.strip_prefix(b"tree "));
        let tree = tree.ok_or_else(|| format!("{reference} is no checkpoint"))?;
        Ok(Some(Checkpoint {
            commit,
            tree: String::from_utf8_lossy(tree).into_owned(),
            skipped: lines.filter_map(parse_skipped).collect(),
        }))
    }

    /// Returns a file with the changes from one tree to another, as a patch or as statistics of
    /// `columns` columns.
    pub(crate) fn diff(
        &self,
        from: &str,
        to: &str,
        columns: Option<usize>,
    ) -> Result<fs::File, String> {
        let shadow = ShadowRepository::without_tree(&self.scratch, &self.common.join("objects"));
        let stat = columns.map(|columns| format!("--stat={columns}"));
        let format = stat.as_deref().unwrap_or("--patch");
        let fixed = ["diff", "--no-ext-diff", "--no-textconv", format];
        let args = [&fixed[..], &DIFF_OPTIONS, &[from, to, "--"]].concat();
        shadow.git_to_file(&args)
    }

    /// Returns the files that differ between two trees, by name.
    pub(crate) fn changes(&self, from: &str, to: &str) -> Result<Vec<FileDiffStat>, String> {
        let mut changes = self.changes_of_each(&[(from, to)])?;
        Ok(changes.pop().unwrap_or_default())
    }

    /// Returns the files that differ between the trees of each pair, by name. Starts one process for
    /// many pairs.
    pub(crate) fn changes_of_each(
        &self,
        pairs: &[(&str, &str)],
    ) -> Result<Vec<Vec<FileDiffStat>>, String> {
        let shadow = ShadowRepository::without_tree(&self.scratch, &self.common.join("objects"));
        let args = [
            "diff-tree",
            "--stdin",
            "-r",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--numstat",
            "-z",
        ];
        let mut changes = Vec::new();
        for pairs in pairs.chunks(PAIRS_MAX) {
            let lines = pairs.iter().map(|(from, to)| format!("{from} {to}\n"));
            let lines: Vec<String> = lines.collect();
            let output = shadow.git_with_pipe(&args, lines.concat().as_bytes())?;
            changes.extend(parse_numstat_of_each(&output.stdout, &lines)?);
        }
        Ok(changes)
    }

    /// Returns the changes from one tree to another as a patch without context, and whether it was
    /// cut off because it is too long.
    pub(crate) fn patch(&self, from: &str, to: &str) -> Result<(Vec<u8>, bool), String> {
        let shadow = ShadowRepository::without_tree(&self.scratch, &self.common.join("objects"));
        shadow.patch(from, to)
    }

    /// Returns the changes from one tree to another as a patch of at most `max` bytes, and whether
    /// it was cut off.
    pub(crate) fn patch_start(
        &self,
        trees: (&str, &str),
        max: usize,
    ) -> Result<(Vec<u8>, bool), String> {
        let shadow = ShadowRepository::without_tree(&self.scratch, &self.common.join("objects"));
        shadow.patch_start(trees, max)
    }

    /// Deletes all checkpoints and returns how many there were.
    pub(crate) fn delete(&self) -> Result<usize, String> {
        if !self.common.is_dir() {
            return Ok(0);
        }
        self.remove_locks();
        let names = self.names()?;
        let mut list = String::new();
        for name in &names {
            let _ = writeln!(list, "delete {}{name}", self.prefix);
        }
        if !names.is_empty() {
            let path = self.scratch.join("input");
            let file = create_private(&path)
                .and_then(|mut file| file.write_all(list.as_bytes()))
                .and_then(|()| fs::File::open(&path))
                .map_err(|error| format!("cannot write to {}: {error}", path.display()))?;
            let mut command = self.command(&["update-ref", "--stdin"]);
            let output =
                command::run_with_stdin(&mut command, file.into(), READ_MAX, command::TIMEOUT)
                    .map_err(GitError::message)?;
            if output.code != Some(0) {
                return Err(output.error_message("update-ref"));
            }
        }
        // Git keeps this directory. It is removed only if it is empty.
        let _ = fs::remove_dir(self.common.join("refs/ralph"));
        Ok(names.len())
    }

    /// Returns the newest checkpoint, which the next one continues.
    fn newest(&self) -> Option<Checkpoint> {
        let last = *self.numbers().ok()?.last()?;
        self.get(&last.to_string()).ok().flatten()
    }

    fn set(&self, name: &str, commit: &str) -> Result<(), String> {
        let reference = format!("{}{name}", self.prefix);
        let args = ["update-ref", "--no-deref", &reference, commit];
        let mut output = self.git(&args)?;
        if output.code != Some(0) && self.remove_locks() {
            output = self.git(&args)?;
        }
        match output.code {
            Some(0) => Ok(()),
            _ => Err(output.error_message("update-ref")),
        }
    }

    /// Removes locks on the checkpoints that killed git processes left. Only the holder of the
    /// loop's lock changes these refs. Returns whether there were any.
    fn remove_locks(&self) -> bool {
        let entries = fs::read_dir(self.common.join(&self.prefix));
        let entries = entries.into_iter().flatten().flatten();
        let locks = entries.filter(|entry| entry.file_name().as_bytes().ends_with(b".lock"));
        locks
            .filter(|lock| fs::remove_file(lock.path()).is_ok())
            .count()
            > 0
    }

    fn names(&self) -> Result<Vec<String>, String> {
        let output = self.git(&["for-each-ref", "--format=%(refname)", &self.prefix])?;
        if output.code != Some(0) {
            return Err(output.error_message("for-each-ref"));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix(&self.prefix));
        Ok(names.map(str::to_owned).collect())
    }

    fn git(&self, args: &[&str]) -> Result<GitOutput, String> {
        command::run(&mut self.command(args), READ_MAX, command::TIMEOUT).map_err(GitError::message)
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = look::own_git(&self.common);
        command
            .args(["-c", "core.logAllRefUpdates=false"])
            .args(args)
            .env("GIT_DIR", &self.common)
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_COMMON_DIR")
            .env_remove("GIT_NAMESPACE");
        command
    }
}

/// The most pairs of trees that one process compares. Their names fit in a pipe.
const PAIRS_MAX: usize = 400;

/// Splits the output of `git diff-tree --stdin --numstat -z`, which repeats each line of its input.
fn parse_numstat_of_each(bytes: &[u8], lines: &[String]) -> Result<Vec<Vec<FileDiffStat>>, String> {
    let mut rest = bytes;
    let mut changes = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        rest = rest
            .strip_prefix(line.as_bytes())
            .ok_or("git diff-tree printed something unexpected")?;
        let next = lines.get(at + 1).map_or(&[][..], String::as_bytes);
        let mut end = 0;
        while end < rest.len() && (next.is_empty() || !rest[end..].starts_with(next)) {
            let length = rest[end..].iter().position(|byte| *byte == 0);
            end += length.map_or(rest.len() - end, |length| length + 1);
        }
        let mut counts = FileCounts::new();
        parse_numstat(&rest[..end], "", &mut counts);
        let files = counts.into_iter();
        let files = files.map(|(path, (insertions, deletions))| FileDiffStat {
            path,
            insertions,
            deletions,
        });
        changes.push(files.collect());
        rest = &rest[end..];
    }
    Ok(changes)
}

/// Returns the message of a checkpoint's commit.
fn message(loop_id: &str, name: &str, skipped: &SkippedFiles) -> Vec<u8> {
    let mut text = format!("ralph checkpoint {name} of loop {loop_id}\n\n").into_bytes();
    for (path, why) in skipped.iter().take(NAMED_MAX) {
        let label = SKIPPED.iter().find(|(_, reason)| reason == why);
        text.extend(label.map_or(&b""[..], |(label, _)| label));
        for byte in path {
            match byte {
                b'\n' => text.extend(b"\\n"),
                b'\\' => text.extend(b"\\\\"),
                _ => text.push(*byte),
            }
        }
        text.push(b'\n');
    }
    text
}

fn parse_skipped(line: &[u8]) -> Option<(Vec<u8>, SkipCause)> {
    let (name, why) = SKIPPED
        .iter()
        .find_map(|(label, why)| Some((line.strip_prefix(*label)?, *why)))?;
    let mut path = Vec::new();
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => path.push(match bytes.next()? {
                b'n' => b'\n',
                other => *other,
            }),
            _ => path.push(*byte),
        }
    }
    Some((path, why))
}
