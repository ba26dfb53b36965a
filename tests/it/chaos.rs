//! Faults at every system call: the repository, the loop and its worktree survive a kill anywhere.
//!
//! By default each test tries a few calls spread over the whole command. `RALPH_CHAOS=1000` tries so
//! many, and `RALPH_CHAOS=all` tries every call that can change something outside its process. A call
//! that fails is tried only where a disk can make it fail.

pub(crate) mod tracer;

use crate::kit::{Done, Test};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracer::{Counted, Fault, Traced};

/// A loop called `a` in its own worktree, which commits the work of one iteration.
const RUN: [&str; 11] = [
    "run",
    "Make it.",
    "--name",
    "a",
    "--worktree",
    "--agent",
    "script:../agent.script",
    "--check",
    "test -f made",
    "--backoff=5ms..10ms",
    "--until-green",
];

const WRITES_MADE: &str = "iteration *\n write made\n  | yes\n";

/// How many calls of a command are tried by default.
const POINTS: u64 = 6;

/// Runs the real binary under the tracer, without showing its output.
pub(crate) fn traced(test: &Test, args: &[&str], counted: Counted, fault: Fault) -> Traced {
    let words = [&[env!("CARGO_BIN_EXE_ralph")], args].concat();
    let mut shell = test.command("sh");
    let quiet = std::process::Stdio::null;
    shell.stdout(quiet()).stderr(quiet());
    tracer::run(shell, &words, counted, fault)
}

/// Kills a command at one system call after another. `prepare` creates the state before the command,
/// `verify` checks the state after the kill.
fn kill_everywhere(args: &[&str], prepare: impl Fn() -> Test, verify: impl Fn(&Test, &str)) {
    let fault = Fault::KillAt;
    strike_everywhere(Counted::Changing, fault, args, prepare, verify);
}

/// Like [`kill_everywhere`], with any kind of fault at any kind of call.
fn strike_everywhere(
    counted: Counted,
    fault: impl Fn(u64) -> Fault,
    args: &[&str],
    prepare: impl Fn() -> Test,
    verify: impl Fn(&Test, &str),
) {
    let calls = traced(&prepare(), args, counted, Fault::None).calls;
    assert!(calls > POINTS, "{calls} calls");
    // Every run differs a little: all calls are tried when a run ends before the nth.
    let (points, last) = match std::env::var("RALPH_CHAOS") {
        Ok(all) if all == "all" => (calls, u64::MAX),
        Ok(number) => (number.parse().expect("a number or `all`"), calls),
        Err(_) => (POINTS, calls),
    };
    let mut failed = Vec::new();
    let step = (calls / points).max(1);
    for n in (1..=last).step_by(step as usize) {
        let test = prepare();
        let struck = traced(&test, args, counted, fault(n)).struck;
        let at = format!("call {n} of {calls}, {struck:?}");
        println!("{at}");
        // One failure must not hide those at other calls.
        if catch_unwind(AssertUnwindSafe(|| verify(&test, &at))).is_err() {
            failed.push(at);
        }
        if struck.is_none() {
            break;
        }
    }
    assert!(failed.is_empty(), "failed at {failed:#?}");
}

/// Asserts that git works in the user's checkout, without help from ralph.
fn git_works(test: &Test, at: &str) {
    for command in ["status", "fsck --no-dangling", "worktree list", "log --all"] {
        let done = test
            .command("sh")
            .args(["-c", &format!("git {command}")])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{at}: git {command}: {error}");
    }
}

/// Returns the lock files in the user's repository.
fn left_locks(test: &Test) -> String {
    test.sh("find .git -name '*.lock'")
}

/// Removes the locks of the user's repository that ralph named, as ralph says. Locks that belong to
/// the loop must not be among them.
fn remove_named_locks(test: &Test, done: &Done, at: &str) -> bool {
    let said = format!("{}{}", done.out, done.err);
    let Some((_, rest)) = said.split_once("run `rm ") else {
        return false;
    };
    let command = rest.split('`').next().unwrap();
    assert!(
        !command.contains("worktrees/") && !command.contains("ralph/a"),
        "{at}: {said}"
    );
    test.sh(&format!("rm {command}"));
    true
}

/// Runs ralph, and if it names a lock in the user's repository, removes it and repeats.
fn ralph_after_locks(test: &Test, args: &[&str], at: &str) -> Done {
    until_locks_are_old(test);
    let done = test.ralph(args);
    if done.code != 0 && remove_named_locks(test, &done, at) {
        return test.ralph(args);
    }
    done
}

/// Makes locks older than a running git command could be.
fn until_locks_are_old(test: &Test) {
    test.sh("find .git -name '*.lock' -exec touch -d '1 minute ago' {} +");
}

/// Asserts that nothing of a removed loop is left in the repository and the state directory.
fn nothing_is_left(test: &Test, at: &str) {
    let place = test.state_dir().join("worktrees");
    let left = test.sh(&format!(
        "git branch --list 'ralph/*'; find .git -maxdepth 2 -path '*worktrees/*' -o -name 'ralph-*'; \
         ls -A '{}' 2>/dev/null | grep -v gitignore; ls -A '{}/archive' 2>/dev/null; true",
        place.display(),
        test.state_dir().display(),
    ));
    assert_eq!(left, "", "{at}");
    assert!(!test.loop_dir("a").exists(), "{at}");
}

/// Git deletes a branch before it releases the lock, so a kill in between leaves only the lock.
#[test]
fn the_lock_of_a_deleted_branch_is_removed_with_the_worktree() {
    let test = Test::git().script(WRITES_MADE);
    test.ralph(&RUN).exits(0);
    let worktree = test.state_dir().join("worktrees/a");
    test.sh(&format!(
        "git merge -q ralph/a; git worktree remove '{}'; git update-ref -d refs/heads/ralph/a; \
         mkdir -p .git/refs/heads/ralph; touch .git/refs/heads/ralph/a.lock",
        worktree.display()
    ));
    until_locks_are_old(&test);
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
    assert_eq!(left_locks(&test), "");
    test.ralph(&RUN).exits(0);
}

mod needs_ptrace {
    use super::*;

    #[test]
    fn a_loop_with_a_worktree_survives_a_kill_at_any_call() {
        let prepare = || Test::git().script(WRITES_MADE);
        kill_everywhere(&RUN, prepare, |test, at| {
            git_works(test, at);
            let exists = test.loop_dir("a").join("journal.jsonl").exists();
            let is_done = exists && test.status("a")["status"] == "done";
            let again: &[&str] = if exists { &["resume", "a"] } else { &RUN };
            if !is_done {
                let done = ralph_after_locks(test, again, at);
                assert_eq!(done.code, 0, "{at}: {done:?}");
            }
            let subjects = test.sh("git log --format=%s ralph/a");
            assert_eq!(subjects, "Make it.\nfirst\n", "{at}");
            assert_eq!(test.sh("git worktree list").lines().count(), 2, "{at}");
            git_works(test, at);
            let rm = ["rm", "a", "--worktree", "--force"];
            let done = ralph_after_locks(test, &rm, at);
            assert_eq!(done.code, 0, "{at}: {done:?}");
            nothing_is_left(test, at);
            assert_eq!(left_locks(test), "", "{at}");
        });
    }

    #[test]
    fn the_removal_of_a_worktree_survives_a_kill_at_any_call() {
        let rm = ["rm", "a", "--worktree"];
        let prepare = || {
            let test = Test::git().script(WRITES_MADE);
            test.ralph(&RUN).exits(0);
            test.sh("git merge -q ralph/a");
            test
        };
        kill_everywhere(&rm, prepare, |test, at| {
            git_works(test, at);
            if test.loop_dir("a").exists() {
                let done = ralph_after_locks(test, &rm, at);
                assert_eq!(done.code, 0, "{at}: {done:?}");
                remove_named_locks(test, &done, at);
            } else {
                test.ralph(&["rm", "--ended"]).exits(0);
            }
            nothing_is_left(test, at);
            assert_eq!(left_locks(test), "", "{at}");
            git_works(test, at);
            let done = test.ralph(&RUN);
            assert_eq!(done.code, 0, "{at}: {done:?}");
        });
    }

    #[test]
    fn a_commit_in_the_users_checkout_survives_a_kill_at_any_call() {
        let mut args = RUN.to_vec();
        args[4] = "--scm=commit";
        let prepare = || Test::git().script(WRITES_MADE);
        kill_everywhere(&args, prepare, |test, at| {
            git_works(test, at);
            until_locks_are_old(test);
            let exists = test.loop_dir("a").join("journal.jsonl").exists();
            let again: &[&str] = if exists { &["resume", "a"] } else { &args };
            let is_done = || exists && test.status("a")["status"] == "done";
            for _ in 0..2 {
                if is_done() {
                    break;
                }
                let done = test.ralph(again);
                let named = remove_named_locks(test, &done, at);
                assert!(done.code == 0 || named, "{at}: {done:?}");
            }
            assert_eq!(test.status("a")["status"], "done", "{at}");
            assert_eq!(test.sh("git log --format=%s"), "Make it.\nfirst\n", "{at}");
            git_works(test, at);
        });
    }

    #[test]
    fn a_spawned_loop_survives_a_kill_at_any_call() {
        let spawn = [&["spawn"], &RUN[1..], &["--no-tmux"]].concat();
        let prepare = || Test::git().script(WRITES_MADE);
        kill_everywhere(&spawn, prepare, |test, at| {
            git_works(test, at);
            test.ralph(&["ls"]).exits(0);
            let exists = test.loop_dir("a").join("journal.jsonl").exists();
            if !(exists && test.status("a")["status"] == "done") {
                let again: &[&str] = if exists {
                    &["resume", "a", "--no-tmux"]
                } else {
                    &spawn
                };
                let done = ralph_after_locks(test, again, at);
                assert_eq!(done.code, 0, "{at}: {done:?}");
            }
            let done = test.ralph(&["wait", "a", "--timeout", "60"]);
            assert_eq!(done.code, 0, "{at}: {done:?}");
            let subjects = test.sh("git log --format=%s ralph/a");
            assert_eq!(subjects, "Make it.\nfirst\n", "{at}");
        });
    }

    /// A call fails as on a full or broken disk, in ralph, git or the agent. The loop may fail, but it
    /// does not crash, and once the fault is gone it finishes with one commit.
    #[cfg(target_arch = "x86_64")]
    fn survives_a_call_that_fails_with(error: nix::errno::Errno) {
        let prepare = || Test::git().script(WRITES_MADE);
        let fault = |n| Fault::FailAt(n, error);
        strike_everywhere(Counted::Storing, fault, &RUN, prepare, |test, at| {
            until_locks_are_old(test);
            git_works(test, at);
            let exists = test.loop_dir("a").join("journal.jsonl").exists();
            if !(exists && test.status("a")["status"] == "done") {
                let again: &[&str] = if exists { &["resume", "a"] } else { &RUN };
                let done = ralph_after_locks(test, again, at);
                assert_eq!(done.code, 0, "{at}: {done:?}");
            }
            // If the commit failed, the summary says so, and the work is still in the worktree.
            let subjects = test.sh("git log --format=%s ralph/a");
            let made = test.state_dir().join("worktrees/a/made");
            let is_kept = subjects == "first\n" && made.exists();
            assert!(
                is_kept || subjects == "Make it.\nfirst\n",
                "{at}: {subjects}"
            );
            git_works(test, at);
        });
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_full_disk_at_any_call_loses_nothing() {
        survives_a_call_that_fails_with(nix::errno::Errno::ENOSPC);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_broken_disk_at_any_call_loses_nothing() {
        survives_a_call_that_fails_with(nix::errno::Errno::EIO);
    }
}
