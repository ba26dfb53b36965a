//! Finds lock files that killed git processes left. In a loop's own worktree they are removed; in
//! the user's repository they are only named, because another program may hold them.

use super::command;
use super::working_tree::WorkingTree;
use crate::engine::format::shell_quote;
use crate::process::tree;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How old a lock must be before it counts as left behind, where the running processes are known.
const MIN_AGE: Duration = Duration::from_secs(2);

/// The same where they are not known.
const MIN_AGE_ALONE: Duration = Duration::from_secs(600);

/// How often to look at a lock that is too young.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The locks of a commit in the user's repository, besides the one of the branch.
const COMMIT_LOCKS: [&str; 4] = ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"];

impl WorkingTree {
    /// Returns the locks that killed git processes left in the repository.
    pub(crate) fn left_locks(&self) -> Vec<PathBuf> {
        let mut names: Vec<String> = COMMIT_LOCKS.map(str::to_owned).into();
        let branch = self.current_branch();
        names.extend(branch.map(|branch| format!("refs/heads/{branch}.lock")));
        let mut args = vec!["rev-parse"];
        args.extend(names.iter().flat_map(|name| ["--git-path", name]));
        let Ok(output) = self.git(&args) else {
            return Vec::new();
        };
        let lines = output.stdout.split_inclusive(|byte| *byte == b'\n');
        let paths = lines.map(|line| self.top().join(command::parse_path(line)));
        paths.filter(|path| is_left(path, &[self.top()])).collect()
    }
}

/// Returns whether a lock was left by a process that has exited: it is not new, and no git process
/// works in one of the directories.
pub(super) fn is_left(lock: &Path, dirs: &[&Path]) -> bool {
    let Some(age) = age(lock) else { return false };
    match is_git_running(dirs) {
        Some(is_running) => !is_running && age >= MIN_AGE,
        None => age >= MIN_AGE_ALONE,
    }
}

/// Removes the locks that were left by processes that have exited. Waits for a moment if a lock is
/// new. Returns those that were removed.
pub(super) fn remove_left(locks: Vec<PathBuf>, dirs: &[&Path]) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for lock in locks {
        while age(&lock).is_some_and(|age| age < MIN_AGE) {
            std::thread::sleep(POLL_INTERVAL);
        }
        if is_left(&lock, dirs) && fs::remove_file(&lock).is_ok() {
            removed.push(lock);
        }
    }
    removed
}

/// Adds to an error message the locks that may be its cause, and the command that removes them.
pub(crate) fn explain(message: String, locks: &[PathBuf]) -> String {
    match advice(locks) {
        None => message,
        Some(advice) => format!("{message}; {advice}"),
    }
}

/// Says how to remove locks that were left behind; `None` if there are none.
pub(crate) fn advice(locks: &[PathBuf]) -> Option<String> {
    let paths: Vec<String> = locks
        .iter()
        .map(|path| shell_quote(&path.to_string_lossy()))
        .collect();
    let (first, more) = paths.split_first()?;
    let all = std::iter::once(first).chain(more);
    let all = all.map(String::as_str).collect::<Vec<_>>().join(" ");
    Some(format!(
        "a git process that was killed left a lock; if no git command is running there, run `rm {all}`"
    ))
}

/// Returns the age of a file; `None` if it does not exist.
fn age(path: &Path) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    // A time in the future is left from a clock that was set back.
    let age = SystemTime::now().duration_since(modified);
    Some(age.unwrap_or(MIN_AGE_ALONE))
}

/// Returns whether a git process has its current directory in one of `dirs`; `None` if the system
/// does not list its processes.
fn is_git_running(dirs: &[&Path]) -> Option<bool> {
    let real = |path: &&Path| fs::canonicalize(path).ok();
    let dirs: Vec<PathBuf> = dirs.iter().filter_map(real).collect();
    let works_there = |pid: u32| {
        let current = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        let is_there = dirs.iter().any(|dir| current.starts_with(dir));
        (is_there && tree::program_name(pid)?.starts_with("git")).then_some(())
    };
    let processes = fs::read_dir("/proc").ok()?;
    let mut pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(pids.any(|pid| works_there(pid).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_lock_is_left_if_it_is_old_and_no_git_process_works_there() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("index.lock");
        assert!(!is_left(&lock, &[dir.path()]), "there is none");
        let file = fs::File::create(&lock).unwrap();
        assert!(!is_left(&lock, &[dir.path()]), "it is new");
        file.set_modified(SystemTime::now() - Duration::from_secs(5))
            .unwrap();
        assert!(is_left(&lock, &[dir.path()]));
        let git = dir.path().join("git");
        std::os::unix::fs::symlink("/bin/sleep", &git).unwrap();
        let mut running = Command::new(&git)
            .arg("60")
            .current_dir(dir.path())
            .spawn()
            .unwrap();
        let is_held = !is_left(&lock, &[dir.path()]);
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(is_held, "another git process may hold it");
        assert_eq!(remove_left(vec![lock.clone()], &[dir.path()]), [lock]);
    }
}
