//! Kills at every point of a commit: no commit is made twice, and none is lost.

use super::{RUN, WRITES_MADE, claiming, hook, start, subjects, with_remote};
use crate::crash::{crash, kill_now, supervisor};
use crate::kit::{Test, alive, until};
use std::fs;

/// A hook that blocks the first time, and reports that.
const BLOCKS_ONCE: &str = "test -e ../held || { touch ../held; sleep 600; }";

/// Asserts the final state: one commit, one iteration.
#[track_caller]
fn committed_once(test: &Test) {
    assert_eq!(subjects(test), ["Make it.", "first"]);
    assert_eq!(test.sh("git status --porcelain"), "");
    assert_eq!(test.events("a", "started").len(), 1);
    assert_eq!(test.status("a")["status"], "done");
}

#[test]
fn a_loop_recovers_from_a_kill_before_or_after_the_commit() {
    for name in [
        "pre-commit",
        "commit-msg",
        "post-commit",
        "reference-transaction",
    ] {
        let test = hook(Test::git().script(WRITES_MADE), name, BLOCKS_ONCE);
        let live = start(&test, &[]);
        until(name, || test.root().join("held").exists());
        crash(live);
        test.ralph(&["resume", "a"])
            .exits(0)
            .says("commit: 1 file (made) as ");
        committed_once(&test);
    }
}

#[test]
fn a_kill_after_the_commit_does_not_repeat_it_but_commits_new_changes() {
    let test = hook(
        Test::git().script(WRITES_MADE),
        "post-commit",
        &format!("touch generated; {BLOCKS_ONCE}"),
    );
    let live = start(&test, &[]);
    until("the hook", || test.root().join("held").exists());
    crash(live);
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("commit: 1 file (made) as ")
        .says("commit: 1 file (generated) as ");
    assert_eq!(subjects(&test), ["Make it.", "Make it.", "first"]);
    assert_eq!(test.sh("git status --porcelain"), "");
}

#[test]
fn a_kill_during_a_push_repeats_the_push_but_not_the_commit() {
    let test = hook(
        with_remote(Test::git().script(WRITES_MADE)),
        "pre-push",
        BLOCKS_ONCE,
    );
    let live = start(&test, &["--scm", "push origin HEAD"]);
    until("the push", || test.root().join("held").exists());
    crash(live);
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("push origin HEAD: done");
    committed_once(&test);
    assert_eq!(test.events("a", "committed").len(), 2);
    assert_eq!(super::remote_log(&test), "Make it.\nfirst\n");
}

#[test]
fn a_push_prevented_by_a_crash_is_made_even_if_the_next_agent_changes_nothing() {
    let test = hook(
        with_remote(Test::git().script(WRITES_MADE)),
        "pre-push",
        BLOCKS_ONCE,
    );
    let live = start(&test, &["--scm", "push origin HEAD"]);
    until("the push", || test.root().join("held").exists());
    crash(live);
    fs::remove_file(test.workspace().join("made")).unwrap();
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("commit: nothing to commit")
        .says("push origin HEAD: done");
    assert_eq!(test.events("a", "started").len(), 2);
    assert_eq!(super::remote_log(&test), "Make it.\nfirst\n");
}

#[test]
fn a_loop_with_commits_continues_from_any_prefix_of_its_journal() {
    let test = Test::git().script("iteration *\n write made\n  | x\n promise COMPLETE\n");
    // The test puts back earlier journals, but not the record of the loop's start.
    test.ralph(&claiming(&["--second-look", "never"])).exits(0);
    let journal = test.read_loop("a", "journal.jsonl");
    let ends: Vec<usize> = journal.match_indices('\n').map(|(at, _)| at + 1).collect();
    let commits = subjects(&test);
    for end in &ends[..ends.len() - 1] {
        test.replace_journal("a", &journal[..*end]);
        let done = test.ralph(&["resume", "a", "--quiet"]);
        assert_eq!(done.code, 0, "after\n{}\n{done:?}", &journal[..*end]);
        assert_eq!(subjects(&test), commits, "after\n{}", &journal[..*end]);
    }
    assert_eq!(commits, ["Make it.", "first"]);
}

#[test]
fn work_is_committed_even_if_the_agent_copies_the_trailer() {
    let forge = "git commit -q --allow-empty -m \"own\" -m \"Ralph-Id: $(grep -o '\"id\":\"[0-9a-f]*' ../state/loops/a/journal.jsonl \
                 | head -n 1 | cut -d '\"' -f 4)/1\"";
    let test = Test::git().script(&format!("iteration 1\n write made\n  | x\n sh {forge}\n"));
    test.ralph(&RUN).exits(0).says("commit: 1 file (made)");
    assert_eq!(subjects(&test), ["Make it.", "own", "first"]);
    assert_eq!(
        test.sh(
            "git log --format='%(trailers:key=Ralph-Id,valueonly,separator=)' | sort -u | wc -l"
        )
        .trim(),
        "2"
    );
}

/// Two green iterations with one commit each.
const TWICE: &str =
    "iteration 1\n write made\n  | 1\niteration *\n append made\n  | 2\n promise SHIPPED\n";

#[test]
fn a_loop_killed_at_any_line_commits_each_iteration_once() {
    let args = claiming(&["--promise", "SHIPPED", "--context", "feedback"]);
    let undisturbed = Test::git().script(TWICE);
    undisturbed.ralph(&args).exits(0);
    assert_eq!(subjects(&undisturbed).len(), 3);
    for line in 2..=undisturbed.journal("a").len() {
        let test = Test::git().script(TWICE);
        let live = test.start(&args);
        let journal = test.loop_dir("a").join("journal.jsonl");
        let count = || {
            fs::read_to_string(&journal)
                .unwrap_or_default()
                .matches('\n')
                .count()
        };
        until("the line", || count() >= line || !alive(live.pid()));
        let victims = [
            Some(live.pid()).filter(|_| line % 2 == 0),
            supervisor(live.pid()),
        ];
        kill_now(&victims.into_iter().flatten().collect::<Vec<_>>());
        let _ = live.end();
        test.ralph(&["resume", "a", "--quiet"]);
        assert_eq!(test.status("a")["status"], "done", "line {line}");
        let made = test
            .sh("git log --format='%(trailers:key=Ralph-Id,valueonly,separator=)' | sed '/^$/d'");
        let mut once: Vec<&str> = made.lines().collect();
        let all = once.len();
        once.sort_unstable();
        once.dedup();
        assert!(
            all == once.len() && (1..=3).contains(&all),
            "line {line}: {made}"
        );
        assert_eq!(subjects(&test).len(), all + 1, "line {line}");
        assert_eq!(test.sh("git status --porcelain"), "", "line {line}");
    }
}
