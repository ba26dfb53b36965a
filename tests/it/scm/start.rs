//! Reports about the repository before a loop starts.

use super::{RUN, WRITES_MADE, claiming, run};
use crate::kit::Test;

#[test]
fn uncommitted_changes_are_listed_at_the_start() {
    let test = Test::git()
        .script(WRITES_MADE)
        .file("b", "")
        .file("a", "")
        .file("c c", "")
        .file("README", "changed");
    run(&test, &[])
        .exits(0)
        .complains("first commit will include your uncommitted changes: 4 files (README, a, b, …)");
    let test = Test::git().script(WRITES_MADE).file("made", "");
    test.ralph(&claiming(&["--promise", "X", "-m", "1"]))
        .complains("uncommitted changes: 1 file (made)");
    let test = Test::git().script(WRITES_MADE);
    assert_eq!(run(&test, &[]).exits(0).err, "");
}

#[test]
fn a_loop_does_not_start_if_it_could_not_commit() {
    let test = Test::new().script(WRITES_MADE);
    run(&test, &[])
        .exits(2)
        .complains("--scm commit needs a git repository")
        .complains("hint: run `git init`");
    assert!(!test.loop_dir("a").exists());
    test.sh("git init -q --bare .");
    run(&test, &[]).exits(2).complains("bare repository");

    let test = Test::git().script(WRITES_MADE);
    let mut command = test.ralph_command(&RUN);
    command.env("PATH", test.root().join("nowhere"));
    command.args(["--no-preflight"]);
    test.start_command(command)
        .end()
        .exits(2)
        .complains("needs git, but the program git was not found");

    let mut command = test.ralph_command(&RUN);
    for who in [
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ] {
        command.env_remove(who);
    }
    test.sh("git config user.useConfigOnly true");
    test.start_command(command)
        .end()
        .exits(2)
        .complains("git has no committer identity")
        .complains("user.name");
}

#[test]
fn invalid_scm_arguments_are_refused() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &["--scm", "git push"])
        .exits(2)
        .complains("\"git push\" starts with git");
    test.write(".ralph/settings.json", r#"{"scm": {"command": "hg"}}"#);
    run(&test, &[])
        .exits(2)
        .complains("command is \"hg\", but only git is supported");
    test.write(".ralph/settings.json", "{}");
    run(&test, &["--scm", "push 'x"])
        .exits(2)
        .complains("an unclosed quotation mark");
    run(&test, &["--scm", " "])
        .exits(2)
        .complains("--scm: a task is empty");
}

#[test]
fn likely_scm_failures_trigger_a_warning() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &["--scm", "push", "--dry-run"])
        .exits(0)
        .complains("no remote");
    test.sh("git remote add origin ../x");
    run(&test, &["--scm", "push", "--dry-run"])
        .exits(0)
        .complains("this branch has no upstream");
    assert_eq!(
        run(&test, &["--scm", "push origin HEAD", "--dry-run"])
            .exits(0)
            .err,
        ""
    );
    test.sh("git checkout -q --detach");
    run(&test, &["--scm", "push", "--dry-run"])
        .exits(0)
        .complains("HEAD is detached");
    test.sh("git checkout -q -b side && touch s && git add s && git commit -q -m s");
    test.sh(
        "git checkout -q main && touch m && git add m && git commit -q -m m && git merge -q --no-commit side",
    );
    run(&test, &["--dry-run"])
        .exits(0)
        .complains("a merge is in progress");
}
