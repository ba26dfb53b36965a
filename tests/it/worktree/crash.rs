//! Kills, stops and resumes with a worktree: nothing is made twice, nothing is lost, and nothing incomplete is left.

use super::{RUN, WRITES_MADE, place, run, subjects};
use crate::crash::{crash, kill_now};
use crate::kit::{Test, until};

#[test]
fn a_killed_loop_continues_in_its_worktree_and_its_work_is_committed() {
    let test = Test::git().script(
        "iteration 1\n write half\n  | x\n say here\n hang\niteration 2\n write made\n  | x\n",
    );
    let live = test.start(&RUN);
    live.until_out("  | here\n");
    crash(live);
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("worktree commit: 1 file (half)")
        .says("worktree commit: 1 file (made)");
    assert_eq!(
        subjects(&test, "ralph/a"),
        ["Make it.", "Make it.", "first"]
    );
    let iterations =
        test.sh("git log --format='%(trailers:key=Ralph-Iteration,valueonly,separator=)' ralph/a");
    assert_eq!(
        iterations.split_whitespace().collect::<Vec<_>>(),
        ["a", "2", "a", "1"]
    );
    assert!(!test.workspace().join("half").exists());
}

#[test]
fn a_kill_during_a_commit_leads_to_a_single_commit() {
    for hook in ["pre-commit", "post-commit", "reference-transaction"] {
        let test = Test::git().script(WRITES_MADE);
        let held = test.root().join("held");
        let script = format!(
            "#!/bin/sh\ncase $PWD in */worktrees/*) ;; *) exit 0 ;; esac\n\
             test -e made || exit 0\ntest -e '{0}' || {{ touch '{0}'; sleep 600; }}\n",
            held.display()
        );
        let test = test.program(&format!(".git/hooks/{hook}"), &script);
        let live = test.start(&RUN);
        until(hook, || held.exists());
        crash(live);
        test.ralph(&["resume", "a"])
            .exits(0)
            .says("worktree commit: 1 file (made) as ");
        assert_eq!(subjects(&test, "ralph/a"), ["Make it.", "first"], "{hook}");
    }
}

/// Creates a repository in which a checkout never ends. Returns the file that shows that it has
/// begun.
fn slow() -> (Test, std::path::PathBuf) {
    let test = Test::git()
        .script(WRITES_MADE)
        .file(".gitattributes", "big filter=slow\n")
        .file("big", "x\n");
    test.sh("git add -A && git commit -q -m big");
    let begun = test.root().join("begun");
    let filter = format!(
        "git config filter.slow.smudge 'echo $$ > {}; exec sleep 600'",
        begun.display()
    );
    test.sh(&filter);
    (test, begun)
}

fn is_as_before(test: &Test) {
    assert_eq!(
        test.sh("git worktree list | wc -l").trim(),
        "1",
        "{}",
        test.sh("git worktree list")
    );
    assert_eq!(test.sh("git branch --list 'ralph/*'"), "");
    assert!(!place(test, "a").exists() && !test.loop_dir("a").exists());
    assert_eq!(test.survivors(), [0; 0]);
}

#[test]
fn interrupting_the_creation_of_a_worktree_leaves_nothing_behind() {
    for signal in ["INT", "TERM"] {
        for verb in ["run", "spawn"] {
            let (test, begun) = slow();
            let args = [&[verb], &RUN[1..]].concat();
            let live = test.start(&args);
            until("the checkout", || begun.exists());
            live.signal(signal);
            let done = live.end();
            assert_eq!(
                done.code,
                if signal == "INT" { 130 } else { 143 },
                "{done:?}"
            );
            is_as_before(&test);
        }
    }
}

#[test]
fn a_kill_during_the_creation_of_a_worktree_is_cleaned_up_by_the_next_loop() {
    let (test, begun) = slow();
    let live = test.start(&RUN);
    until("the checkout", || begun.exists());
    kill_now(&[live.pid()]);
    live.end();
    until("the filter", || {
        !std::fs::read_to_string(&begun).unwrap().is_empty()
    });
    kill_now(&[std::fs::read_to_string(&begun)
        .unwrap()
        .trim()
        .parse()
        .unwrap()]);
    until("the end of all", || test.survivors().is_empty());
    test.sh("git config --unset filter.slow.smudge");
    run(&test, &[]).exits(0);
    assert_eq!(subjects(&test, "ralph/a"), ["Make it.", "big", "first"]);
}

#[test]
fn stop_commits_the_work_so_far() {
    let test = Test::git().script("iteration 1\n write half\n  | x\n say here\n hang\n");
    let live = test.start(&RUN);
    live.until_out("  | here\n");
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130).says("worktree commit: 1 file (half)");
    assert_eq!(subjects(&test, "ralph/a"), ["Make it.", "first"]);
    // Another Ctrl-C does not wait for a hook either.
    let here = test.root().join("here");
    let hook = format!("#!/bin/sh\ntouch '{}'; sleep 600\n", here.display());
    let test = test.program(".git/hooks/pre-commit", &hook);
    let args = [&["run", "x", "--name", "b", "--worktree"], &RUN[5..]].concat();
    let live = test.start(&args);
    live.until_out("  | here\n");
    live.signal("INT");
    // Two signals at once may be received as one.
    until("the first is heard", || {
        test.events("b", "asked").len() == 1
    });
    live.signal("INT");
    until("the hook", || here.exists());
    live.signal("INT");
    live.end()
        .exits(130)
        .says("  unsaved  the work of iteration 1 is not committed\n");
    assert_eq!(test.survivors(), [0; 0]);
    std::fs::remove_file(test.workspace().join(".git/hooks/pre-commit")).unwrap();
    test.script(WRITES_MADE)
        .ralph(&["resume", "b"])
        .exits(0)
        .says("worktree commit: 1 file (half)");
}

#[test]
fn the_summary_suggests_nothing_in_a_worktree_that_no_longer_exists() {
    let test = Test::git().script("iteration 1\n write made\n  | x\n sh rm -rf \"$PWD\"\n");
    let done = run(&test, &[])
        .exits(1)
        .says(", which no longer exists, on ralph/a\n");
    assert!(
        !done.out.contains(" unsaved ") && !done.out.contains("git -C "),
        "{}",
        done.out
    );
    assert!(
        !test
            .ralph(&["status", "a"])
            .exits(0)
            .out
            .contains("Unsaved")
    );
}

#[test]
fn a_loop_whose_worktree_was_deleted_is_not_resumed_and_the_error_shows_how_to_restore_it() {
    let test =
        Test::git().script("iteration 1\n write one\n  | x\niteration 2\n write made\n  | x\n");
    run(&test, &["-m", "1"]).exits(1);
    let place = place(&test, "a");
    std::fs::remove_dir_all(&place).unwrap();
    test.ralph(&["set", "a", "max-iterations=5"]).exits(0);
    let done = test
        .ralph(&["resume", "a"])
        .exits(2)
        .complains("no longer exists; to restore it, run `git ");
    assert_eq!(test.status("a")["outcome"]["why"], "iterations");
    assert!(!place.exists(), "it does not come back empty");
    let (_, rest) = done.err.split_once("; to restore it, run `git ").unwrap();
    test.sh(&format!("git {}", rest.split('`').next().unwrap()));
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(
        subjects(&test, "ralph/a"),
        ["Make it.", "Make it.", "first"]
    );
}

#[test]
fn a_worktree_without_its_git_file_commits_nothing_to_an_outer_repository() {
    let test = Test::git()
        .script("iteration 1\n write one\n  | x\n sh rm .git\niteration 2\n write made\n  | x\n");
    // The state directory is inside another repository of the user.
    test.sh("cd .. && git init -q && git commit -q --allow-empty -m above");
    let done = run(&test, &[])
        .exits(1)
        .complains("is no longer a git worktree");
    assert_eq!(test.sh("git -C .. log --format=%s"), "above\n");
    let (_, rest) = done.err.split_once("; to repair it, run `git ").unwrap();
    test.sh(&format!("git {}", rest.split('`').next().unwrap()));
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("worktree commit: 1 file (one)");
    assert_eq!(test.sh("git -C .. log --format=%s"), "above\n");
}

#[test]
fn a_kill_before_the_first_line_leaves_nothing_behind() {
    for name in ["a", ""] {
        let test = Test::git().script(WRITES_MADE);
        let held = test.root().join("held");
        let hook = format!(
            "#!/bin/sh\ntest -e '{0}' || {{ touch '{0}'; exec sleep 600; }}\n",
            held.display()
        );
        let test = test.program(".git/hooks/post-checkout", &hook);
        let named: &[&str] = if name.is_empty() {
            &[]
        } else {
            &["--name", name]
        };
        let args = [&["run", "x", "--worktree"], named, &RUN[5..]].concat();
        let live = test.start(&args);
        until("the checkout", || held.exists());
        until("the end of all", || {
            kill_now(&test.survivors());
            test.survivors().is_empty()
        });
        let _ = live.end();
        assert_eq!(
            test.ralph(&["ls", "--names"]).exits(0).out,
            "",
            "there is no loop"
        );
        assert_eq!(
            test.sh("git branch --list 'ralph/*'").lines().count(),
            1,
            "half of it is there"
        );
        test.ralph(&args).exits(0);
        let own = if name.is_empty() { "shop-1" } else { name };
        assert_eq!(subjects(&test, &format!("ralph/{own}")), ["x", "first"]);
        assert_eq!(test.sh("git branch --list 'ralph/*'").lines().count(), 1);
        assert_eq!(test.sh("git worktree list").lines().count(), 2);
        assert!(place(&test, own).join("made").exists());
    }
}

#[test]
fn only_one_of_many_loops_started_at_once_runs_and_its_worktree_is_kept() {
    let test = Test::git().script("iteration *\n write made\n  | x\n sleep 300ms\n");
    let live: Vec<_> = (0..6).map(|_| test.start(&RUN)).collect();
    let done: Vec<_> = live.into_iter().map(crate::kit::Live::end).collect();
    let codes: Vec<i32> = done.iter().map(|done| done.code).collect();
    assert_eq!(
        codes.iter().filter(|code| **code == 0).count(),
        1,
        "{done:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == 2).count(),
        5,
        "{done:?}"
    );
    assert!(place(&test, "a").join("made").exists());
    assert_eq!(test.status("a")["status"], "done");
    assert_eq!(subjects(&test, "ralph/a"), ["Make it.", "first"]);
    let args = [&["run", "x", "--worktree"], &RUN[5..]].concat();
    let live: Vec<_> = (0..6).map(|_| test.start(&args)).collect();
    for live in live {
        live.end().exits(0);
    }
    assert_eq!(
        test.sh("git branch --list 'ralph/shop-*'").lines().count(),
        6
    );
}
