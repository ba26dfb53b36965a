//! What killed git processes left: entries of half-made worktrees, and locks.

use super::{RUN, WRITES_MADE, place, run, subjects};
use crate::kit::Test;
use serde_json::json;

/// Creates the state after a kill during `git worktree add`, as earlier versions called it: a draft,
/// and an entry in the repository with these files.
fn half_made(files: &[(&str, &str)]) -> Test {
    let test = Test::git().script(WRITES_MADE);
    let base = test.sh("git rev-parse HEAD").trim().to_owned();
    let root = test.root().canonicalize().unwrap();
    let draft = json!({
        "path": root.join("state/worktrees/a"),
        "branch": "ralph/a",
        "new_branch": true,
        "repository": root.join("shop/.git"),
        "from": root.join("shop"),
        "base": base,
        "base_branch": "main",
        "commit_timeout_ms": 0,
    });
    std::fs::create_dir_all(test.loop_dir("a")).unwrap();
    std::fs::write(test.loop_dir("a").join("worktree.json"), draft.to_string()).unwrap();
    test.sh("git branch ralph/a && mkdir -p .git/worktrees/a ../state/worktrees/a");
    for (name, text) in files {
        test.write(&format!(".git/worktrees/a/{name}"), text);
    }
    test
}

#[test]
fn an_entry_that_breaks_git_is_removed_by_the_next_run_or_rm() {
    let root = |test: &Test| test.root().canonicalize().unwrap().display().to_string();
    let states: [&[(&str, &str)]; 4] = [
        &[],
        &[("locked", "initializing")],
        &[("locked", "initializing"), ("gitdir", "")],
        &[
            ("locked", "initializing"),
            ("gitdir", "ROOT/state/worktrees/a/.git\n"),
            ("commondir", ""),
        ],
    ];
    for state in states {
        for verb in ["run", "rm"] {
            let test = half_made(state);
            let root = root(&test);
            if let Some((name, text)) = state.get(1) {
                test.write(
                    &format!(".git/worktrees/a/{name}"),
                    &text.replace("ROOT", &root),
                );
            }
            if state.len() == 3 {
                let log = test.command("git").args(["log", "--all"]).output().unwrap();
                assert!(!log.status.success(), "the repository is broken");
            }
            if verb == "run" {
                run(&test, &[]).exits(0);
                assert_eq!(subjects(&test, "ralph/a"), ["Make it.", "first"]);
            } else {
                test.ralph(&["rm", "a"])
                    .exits(0)
                    .says("removed ralph loop a, which had not started\n");
                assert_eq!(
                    test.sh("git branch --list 'ralph/*'; ls .git/worktrees 2>/dev/null; true"),
                    ""
                );
                assert!(!place(&test, "a").exists() && !test.loop_dir("a").exists());
            }
            test.sh("git status && git log --all && git fsck && git worktree list");
        }
    }
}

#[test]
fn another_worktree_of_the_same_name_is_not_touched() {
    let test = Test::git().script(WRITES_MADE);
    test.sh("git worktree add -q -b theirs ../elsewhere/a && echo x > ../elsewhere/a/x");
    run(&test, &[]).exits(0);
    assert_eq!(test.sh("git worktree list").lines().count(), 3);
    test.ralph(&["rm", "a", "--worktree", "--force"]).exits(0);
    assert_eq!(
        test.sh("git -C ../elsewhere/a status --porcelain"),
        "?? x\n"
    );
    assert_eq!(test.sh("git worktree list").lines().count(), 2);
}

#[test]
fn a_locked_worktree_is_not_removed_and_the_error_says_how_to_unlock_it() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &[]).exits(0);
    test.sh("git merge -q ralph/a && git worktree lock --reason 'on a stick' ../state/worktrees/a");
    let done = test
        .ralph(&["rm", "a", "--worktree"])
        .exits(2)
        .complains("it is locked (on a stick); to unlock it, run `git ");
    let (_, rest) = done.err.split_once("to unlock it, run `git ").unwrap();
    test.sh(&format!("git {}", rest.split('`').next().unwrap()));
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
}

#[test]
fn a_sparse_checkout_stays_sparse_in_the_worktree() {
    let test = Test::git()
        .script(WRITES_MADE)
        .file("in/kept", "")
        .file("out/left", "");
    test.sh("git add -A && git commit -q -m dirs && git sparse-checkout set --cone in");
    run(&test, &[]).exits(0);
    let place = place(&test, "a");
    assert!(place.join("in/kept").exists() && place.join("README").exists());
    assert!(!place.join("out").exists());
    assert_eq!(
        test.sh("git -C ../state/worktrees/a status --porcelain"),
        ""
    );
}

#[test]
fn locks_left_in_the_loops_own_worktree_are_removed() {
    let locks = "touch $(git rev-parse --git-path index.lock) $(git rev-parse --git-path HEAD.lock) \
                 $(git rev-parse --git-path refs/heads/ralph/a.lock)";
    let test = Test::git().script(&format!(
        "iteration 1\n sh {locks}\niteration *\n sh git status && git add -A\n write made\n  | yes\n sh {locks}\n"
    ));
    let done = run(&test, &[])
        .exits(0)
        .says("worktree commit: 1 file (made)");
    for lock in [
        "worktrees/a/index.lock, which",
        "worktrees/a/HEAD.lock, which",
        "refs/heads/ralph/a.lock, which",
    ] {
        assert_eq!(done.err.matches(lock).count(), 2, "{lock}: {done:?}");
    }
    assert_eq!(subjects(&test, "ralph/a"), ["Make it.", "first"]);
}

#[test]
fn locks_left_in_the_users_checkout_are_named_and_kept() {
    let test = Test::git().script(WRITES_MADE);
    test.sh("touch -d '1 minute ago' .git/HEAD.lock");
    let lock = test
        .workspace()
        .canonicalize()
        .unwrap()
        .join(".git/HEAD.lock");
    let remove = format!(
        "if no git command is running there, run `rm {}`",
        lock.display()
    );
    let mut args = RUN.to_vec();
    args[4] = "--scm=commit";
    args.extend(["-m", "1"]);
    let done = test.ralph(&args).exits(1).complains(&remove);
    assert!(lock.exists());
    let log = test.events("a", "committed")[0]["report"]["output"].to_string();
    assert!(log.contains(&remove), "{log} {done:?}");
    std::fs::remove_file(lock).unwrap();
    test.ralph(&["set", "a", "max-iterations=2"]).exits(0);
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(test.sh("git log --format=%s"), "Make it.\nfirst\n");
}

#[test]
fn rm_names_a_lock_that_keeps_it_from_deleting_the_branch() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &[]).exits(0);
    test.sh("git merge -q ralph/a && touch -d '1 minute ago' .git/packed-refs.lock");
    let done = test
        .ralph(&["rm", "a", "--worktree"])
        .exits(2)
        .complains("cannot delete the branch ralph/a, because of a lock");
    assert!(place(&test, "a").exists(), "nothing has been removed");
    let (_, rest) = done.err.split_once("run `rm ").unwrap();
    test.sh(&format!("rm {}", rest.split('`').next().unwrap()));
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
}
