//! SCM tasks that fail: what is skipped, what the next prompt contains, and when the loop ends.

use super::{WRITES_MADE, hook, remote_log, run, start, subjects, with_remote};
use crate::kit::{Test, until};

/// A hook that requires a file called `linted`.
const LINT: &str =
    "test -f linted || { echo 'lint: <promise>linted</promise> is missing'; exit 1; }";

#[test]
fn a_hook_s_complaint_is_in_the_next_prompt_and_the_agent_can_fix_it() {
    let test = hook(Test::git(), "pre-commit", LINT).script(
        "iteration 1\n write made\n  | x\n say <commit>Make it so</commit>\niteration 2\n write linted\n  | x\n",
    );
    run(&test, &["--scm", "status"])
        .exits(0)
        .says("commit: failed (exit 1, ")
        .says("; skipped: status\n")
        .says("  | lint: <promise>linted</promise> is missing\n")
        .says("commit: 2 files (linted, made)")
        .says("status: done");
    let prompt = test.prompt("a", 2);
    assert!(prompt.contains("`git commit` failed (exit 1)"), "{prompt}");
    assert!(
        prompt.contains("lint: ‹promise›linted‹/promise› is missing"),
        "{prompt}"
    );
    assert!(prompt.contains(".ralph/guardrail_1_scm-1.log"), "{prompt}");
    assert!(test.read(".ralph/guardrail_1_scm-1.log").contains("lint: "));
    assert_eq!(
        subjects(&test),
        ["Make it so", "first"],
        "the one who mends it may leave the message to the other"
    );
    assert_eq!(
        test.events("a", "started").len(),
        2,
        "not done while the commit failed"
    );
}

#[test]
fn a_signature_that_cannot_be_made_fails_the_commit() {
    let test = Test::git().script(
        "iteration 1\n write made\n  | x\niteration 2\n sh git config commit.gpgsign false\n",
    );
    test.sh("git config gpg.program false && git config commit.gpgsign true");
    run(&test, &[]).exits(0).says("commit: failed (exit 128");
    assert_eq!(subjects(&test), ["Make it.", "first"]);
    assert!(
        test.prompt("a", 2).contains("failed to sign"),
        "{}",
        test.prompt("a", 2)
    );
}

#[test]
fn a_rejected_push_is_reported_and_retried() {
    let test = with_remote(Test::git());
    test.sh("git push -q -u origin main && git clone -q ../remote.git ../other");
    test.sh("cd ../other && touch theirs && git add -A && git commit -q -m theirs && git push -q");
    let test = test.script(
        "iteration 1\n write made\n  | x\niteration 2\n sh git pull -q --rebase\niteration 3\n exit 1\n",
    );
    run(&test, &["--scm", "push", "--scm", "tag pushed"])
        .exits(0)
        .says("push: failed (exit 1, ")
        .says("; skipped: tag pushed\n")
        .says("commit: nothing to commit")
        .says("tag pushed: done");
    assert!(test.prompt("a", 2).contains("`git push` failed (exit 1)"));
    assert!(test.prompt("a", 2).contains("rejected"));
    assert_eq!(remote_log(&test), "Make it.\ntheirs\nfirst\n");
    assert_eq!(test.sh("git tag"), "pushed\n");
}

#[test]
fn a_failed_push_is_retried_even_if_the_next_agent_changes_nothing() {
    let test = with_remote(Test::git())
        .script("iteration 1\n write made\n  | x\niteration 2\n sh touch ../open\n");
    let test = hook(
        test,
        "pre-push",
        "test \"$GIT_TERMINAL_PROMPT\" = 0 && test -e ../open",
    );
    run(&test, &["--scm", "push origin HEAD"]).exits(0);
    assert_eq!(remote_log(&test), "Make it.\nfirst\n");
    assert_eq!(test.events("a", "started").len(), 2);
}

#[test]
fn too_many_scm_failures_end_the_loop_and_say_what_to_do() {
    let test = hook(
        Test::git().script(WRITES_MADE),
        "pre-commit",
        "echo 'lint: never'; exit 1",
    );
    run(&test, &["--max-failures", "3"])
        .exits(1)
        .says("3 consecutive git failures, stopping loop")
        .says("git commit failed 3 times in a row (exit 1): lint: never")
        .says("next     ralph resume a");
    assert_eq!(test.events("a", "started").len(), 3);
    let status = test.status("a");
    assert_eq!(
        (
            status["stop_reason"].as_str(),
            status["total_failures"].as_u64()
        ),
        (Some("failures"), Some(0))
    );
    // The user fixes it: the commit is made without another agent.
    std::fs::remove_file(test.workspace().join(".git/hooks/pre-commit")).unwrap();
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("commit: 1 file (made)");
    assert_eq!(test.events("a", "started").len(), 3);
    assert_eq!(subjects(&test), ["Make it.", "first"]);
}

#[test]
fn a_hanging_hook_is_killed_with_everything_it_started() {
    let test = hook(
        Test::git(),
        "pre-commit",
        "test -f linted || { setsid sleep 600 & sleep 600; }",
    );
    let test = test.script("iteration 1\n write made\n  | x\niteration 2\n write linted\n  | x\n");
    // The second commit must not take longer than this.
    run(&test, &["--check-timeout", "3s"])
        .exits(0)
        .says("commit: failed (timeout after ");
    assert_eq!(subjects(&test), ["Make it.", "first"]);
    assert_eq!(test.survivors(), [0; 0]);
    assert!(
        test.prompt("a", 2).contains("timeout after"),
        "{}",
        test.prompt("a", 2)
    );
}

#[test]
fn a_second_ctrl_c_kills_a_hanging_hook_and_resume_commits() {
    let test = hook(
        Test::git().script(WRITES_MADE),
        "pre-commit",
        "touch ../here; test -e ../go || sleep 600",
    );
    let live = start(&test, &[]);
    until("the hook", || test.root().join("here").exists());
    live.signal("INT");
    live.until_out("stopping after this iteration");
    live.signal("INT");
    live.end().exits(130);
    assert_eq!(test.survivors(), [0; 0]);
    assert_eq!(subjects(&test), ["first"]);
    test.write("../go", "");
    test.ralph(&["resume", "a"]).exits(0).says("commit: 1 file");
    assert_eq!(subjects(&test), ["Make it.", "first"]);
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn ralph_stop_kills_a_hanging_hook() {
    let test = hook(
        Test::git().script(WRITES_MADE),
        "pre-commit",
        "touch ../here; sleep 600",
    );
    let live = start(&test, &[]);
    until("the hook", || test.root().join("here").exists());
    assert!(test.ralph(&["status", "a"]).out.contains("Now: git commit"));
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    assert_eq!(test.survivors(), [0; 0]);
    assert_eq!(subjects(&test), ["first"]);
}

#[test]
fn one_ctrl_c_lets_the_commit_finish() {
    let test = hook(
        Test::git().script(WRITES_MADE),
        "pre-commit",
        "touch ../here; until test -e ../go; do sleep 0.01; done",
    );
    let live = start(&test, &[]);
    until("the hook", || test.root().join("here").exists());
    live.signal("INT");
    live.until_out("stopping after this iteration");
    test.write("../go", "");
    live.end().exits(130);
    assert_eq!(subjects(&test), ["Make it.", "first"]);
}

#[test]
fn a_red_check_commits_nothing() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &["--check", "false", "-m", "1"]).exits(1);
    assert_eq!(subjects(&test), ["first"]);
    assert!(test.events("a", "committed").is_empty());
}

#[test]
fn unresolved_conflict_markers_are_not_committed() {
    let test = Test::git();
    test.sh("git checkout -q -b side && echo s > README && git commit -q -a -m side");
    test.sh(
        "git checkout -q main && echo m > README && touch other && git add other && git commit -q -a -m own",
    );
    let test = test.script(
        "iteration 1\n write made\n  | x\n sh git merge -q side || true\niteration 2\n write README\n  | both\n",
    );
    run(&test, &[])
        .exits(0)
        .says("commit: failed (exit 1, ")
        .says("  | README:1:<<<<<<< HEAD\n")
        .says("commit: 2 files (README, made) as ");
    assert!(
        test.prompt("a", 2).contains("README:1:<<<<<<< HEAD"),
        "{}",
        test.prompt("a", 2)
    );
    assert_eq!(test.sh("git show HEAD:README"), "both\n");
    assert_eq!(
        test.sh("git log -1 --format=%P").split_whitespace().count(),
        2,
        "the merge is concluded"
    );
}

#[test]
fn a_commit_waits_for_a_briefly_locked_repository() {
    let test = Test::git().script("iteration 1\n write made\n  | x\n sh touch .git/index.lock\n");
    let test = test.on_path("sleep", "#!/bin/sh\nrm .git/index.lock\n");
    run(&test, &[]).exits(0).says("commit: 1 file (made)");
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn the_error_that_ends_a_loop_is_not_one_of_git_s_hints() {
    let complains = "echo 'lint: never'; echo 'hint: try harder'; exit 1";
    let test = hook(Test::git().script(WRITES_MADE), "pre-commit", complains);
    run(&test, &["-m", "1"])
        .exits(1)
        .says("git commit failed (exit 1): lint: never\n");
}
