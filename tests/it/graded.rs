//! What the checks graded is what is committed: checks that write files, and git hooks that change a
//! commit.

use crate::kit::{Done, Test};

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

/// A workspace in which `a.txt` has to contain "good".
fn project() -> Test {
    let test = Test::git().file("a.txt", "bad\n");
    test.sh("git add -A && git commit -qm start");
    test
}

/// Runs an agent that is one shell command, and then claims to be done.
fn run(test: &Test, agent: &str, args: &[&str]) -> Done {
    let agent = format!("{agent}\n{PROMISE}");
    let run = ["run", "x", "--name", "a", "-m", "2"];
    test.ralph(&[&run[..], args, &["--", "sh", "-c", &agent]].concat())
}

fn check_events(test: &Test) -> usize {
    let checks = test.events("a", "checked");
    checks
        .iter()
        .filter(|event| event["iteration"] != 0)
        .count()
}

/// Installs a git hook. An agent may do the same.
fn hook(name: &str, script: &str) -> String {
    let script = script.replace('\'', "'\\''");
    format!(
        "mkdir -p .git/hooks; printf '#!/bin/sh\\n%s\\n' '{script}' > .git/hooks/{name}; \
         chmod +x .git/hooks/{name}"
    )
}

const GOOD: &str = "echo good > a.txt";
const CHECK: [&str; 2] = ["--check", "grep -q good a.txt"];

#[test]
fn checks_that_write_files_run_again_on_them() {
    let test = project();
    let check = "grep -q good a.txt && date +%s%N > stamp";
    run(&test, GOOD, &["--check", check])
        .exits(0)
        .says("the checks changed stamp: the checks run again on the changed files")
        .says("the checks themselves changed stamp, and the checks ran again");
    assert_eq!(check_events(&test), 2);
    assert_eq!(test.status("a")["current_iteration"], 1);
}

#[test]
fn a_check_that_breaks_what_it_has_checked_is_red() {
    for args in [&[][..], &["--no-checkpoints"]] {
        let test = project();
        // The check passes, and leaves a tree on which it would fail.
        let check = "grep -q good a.txt && echo bad > a.txt";
        run(&test, GOOD, &[&["--check", check], args].concat())
            .exits(1)
            .says("red (exit 1");
        assert_eq!(check_events(&test), 4, "each iteration was graded twice");
    }
}

#[test]
fn checks_that_write_only_ignored_files_run_once() {
    let test = project();
    test.sh("echo out > .gitignore && git add -A && git commit -qm ignore");
    run(
        &test,
        GOOD,
        &["--check", "grep -q good a.txt && date > out"],
    )
    .exits(0)
    .says("done: every check is green");
    assert_eq!(check_events(&test), 1);
}

#[test]
fn outside_git_checks_that_write_files_run_again_on_them() {
    let test = Test::new().file("a.txt", "bad\n");
    // Dependencies and build output count as ignored.
    let check = "grep -q good a.txt && date +%s%N > stamp && mkdir -p target && date > target/x";
    run(&test, GOOD, &["--check", check])
        .exits(0)
        .says("the checks changed stamp: the checks run again on the changed files")
        .says("the checks themselves changed stamp, and the checks ran again");
    assert_eq!(check_events(&test), 2);
    let written = &test.events("a", "checked")[1]["written"];
    assert_eq!(*written, serde_json::json!(["stamp"]));
    let breaking = Test::new().file("a.txt", "bad\n");
    let check = "grep -q good a.txt && echo bad > a.txt";
    run(&breaking, GOOD, &["--check", check])
        .exits(1)
        .says("red (exit 1");
    assert_eq!(
        check_events(&breaking),
        4,
        "each iteration was graded twice"
    );
    let silent = Test::new().file("a.txt", "bad\n");
    run(&silent, GOOD, &CHECK)
        .exits(0)
        .says("done: every check is green");
    assert_eq!(check_events(&silent), 1);
}

#[test]
fn a_hook_that_changes_the_commit_alone_is_a_failed_commit() {
    let test = project();
    let script = "git update-index --cacheinfo 100644,$(git rev-parse HEAD:a.txt),a.txt";
    let agent = format!("{GOOD}; echo new > b.txt; {}", hook("pre-commit", script));
    run(&test, &agent, &[&CHECK[..], &["--scm", "commit"]].concat())
        .exits(1)
        .says("the commit differs from what was checked")
        .says("a.txt");
    assert_eq!(test.status("a")["outcome"]["kind"], "limit");
    assert!(
        test.prompt("a", 2)
            .contains("differs from the files that the checks graded: a.txt")
    );
}

#[test]
fn an_amending_hook_is_a_failed_commit_and_nothing_is_pushed() {
    let test = project();
    test.sh("git init -q --bare ../remote.git && git push -q ../remote.git HEAD:main");
    let script = "test -n \"$AGAIN\" && exit; export AGAIN=1\n\
                  id=$(echo bad $$ | git hash-object -w --stdin)\n\
                  git update-index --cacheinfo 100644,$id,a.txt; git commit -q --amend --no-edit";
    let agent = format!("{GOOD}; {}", hook("post-commit", script));
    let tasks = ["--scm", "commit", "--scm", "push ../remote.git HEAD:main"];
    run(&test, &agent, &[&CHECK[..], &tasks].concat())
        .exits(1)
        .says("the commit differs from what was checked");
    let pushed = test.sh("git --git-dir=../remote.git log --format=%s main");
    assert_eq!(pushed.lines().next(), Some("start"));
}

#[test]
fn a_formatting_hook_is_graded_and_accepted() {
    let test = project();
    test.sh(&hook(
        "pre-commit",
        "echo formatted >> a.txt; git add a.txt",
    ));
    run(&test, GOOD, &[&CHECK[..], &["--scm", "commit"]].concat())
        .exits(0)
        .says("a git hook changed a.txt: the checks run again on the changed files")
        .says("a git hook changed a.txt, and the checks ran again");
    assert_eq!(check_events(&test), 2);
    assert_eq!(test.sh("git show HEAD:a.txt"), "good\nformatted\n");
    assert_eq!(test.sh("git status --porcelain").trim(), "");
}

#[test]
fn a_formatting_hook_that_breaks_the_work_is_red() {
    let test = project();
    test.sh(&hook("pre-commit", "echo bad > a.txt; git add a.txt"));
    run(&test, GOOD, &[&CHECK[..], &["--scm", "commit"]].concat())
        .exits(1)
        .says("a git hook changed a.txt");
    assert_ne!(test.status("a")["outcome"]["kind"], "done");
}

#[test]
fn a_flag_in_the_index_hides_nothing_from_the_comparison() {
    let test = project();
    let agent = format!("{GOOD}; echo new > b.txt; git update-index --assume-unchanged a.txt");
    run(&test, &agent, &[&CHECK[..], &["--scm", "commit"]].concat())
        .exits(1)
        .says("the commit differs from what was checked");
}

#[test]
fn converted_files_are_compared_as_git_stores_them() {
    let test = project();
    test.sh(
        "printf '* text=auto\\n*.bin filter=rot\\n' > .gitattributes; \
         git config filter.rot.clean 'tr a-z n-za-m'; git config filter.rot.smudge 'tr n-za-m a-z'; \
         git config core.autocrlf true; git add -A; git commit -qm attributes",
    );
    let agent = "printf 'good\\r\\n' > a.txt; echo secret > x.bin; echo key > .env";
    run(&test, agent, &[&CHECK[..], &["--scm", "commit"]].concat())
        .exits(0)
        .says("done: every check is green");
    assert_eq!(test.sh("git show HEAD:a.txt"), "good\n");
    assert_eq!(test.sh("git show HEAD:x.bin"), "frperg\n");
}

#[test]
fn a_filter_that_the_agent_sets_does_not_hide_what_is_committed() {
    let test = project();
    let filter = format!(
        "{GOOD}; git config filter.old.clean 'echo bad'; echo 'a.txt filter=old' > .git/info/attributes"
    );
    let done = run(&test, &filter, &[&CHECK[..], &["--scm", "commit"]].concat());
    assert_ne!(done.code, 0, "{done:?}");
    done.says("the commit differs from the files that the checks graded: a.txt");
}
