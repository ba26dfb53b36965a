//! Refused worktrees: each case has a hint and exit code 2, and leaves nothing behind.

use super::{RUN, WRITES_MADE, claiming, place, run, subjects};
use crate::kit::Test;

/// Returns everything below the state directory, and the repository's branches and worktrees.
fn traces(test: &Test) -> String {
    let state = test.state_dir();
    test.sh(&format!(
        "find '{}' -type f ! -name .gitignore ! -path '*/workspaces/*' | sort; git worktree list 2>/dev/null; git for-each-ref 2>/dev/null; true",
        state.display()
    ))
}

#[track_caller]
fn refused(test: &Test, args: &[&str], error: &str, hint: &str) {
    let before = traces(test);
    let done = test.ralph(args).exits(2).complains(error);
    let (_, given) = done
        .err
        .split_once("hint: ")
        .unwrap_or_else(|| panic!("no hint: {done:?}"));
    assert!(given.contains(hint), "{hint:?} is not in {given:?}");
    assert_eq!(traces(test), before, "{args:?}");
}

#[test]
fn a_worktree_needs_a_suitable_repository() {
    refused(
        &Test::new().script(WRITES_MADE),
        &RUN,
        "--worktree needs a git repository",
        "git init",
    );
    let test = Test::new().script(WRITES_MADE);
    test.sh("git init -q");
    refused(
        &test,
        &RUN,
        "this repository has none",
        "to make a first commit",
    );
    let test = Test::new().script(WRITES_MADE);
    test.sh("git init -q --bare .");
    refused(&test, &RUN, "a bare repository", "clone");
    let test = Test::git().script(WRITES_MADE);
    let mut command = test.ralph_command(&RUN);
    command.env("PATH", test.root().join("bin"));
    test.start_command(command)
        .end()
        .exits(2)
        .complains("--worktree needs git")
        .complains("PATH");
    let mut command = test.ralph_command(&RUN);
    command.env("GIT_DIR", test.workspace().join(".git"));
    test.start_command(command)
        .end()
        .exits(2)
        .complains("GIT_DIR is set")
        .complains("unset GIT_DIR");
    let mut command = test.ralph_command(&RUN);
    command.env("RALPH_STATE_DIR", test.workspace().join("state"));
    test.start_command(command)
        .end()
        .exits(2)
        .complains("is inside this repository");
    let mut command = test.ralph_command(&RUN);
    for name in [
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ] {
        command.env(name, "");
    }
    command
        .env_remove("GIT_COMMITTER_EMAIL")
        .env("GIT_CONFIG_COUNT", "1");
    command
        .env("GIT_CONFIG_KEY_0", "user.useConfigOnly")
        .env("GIT_CONFIG_VALUE_0", "true");
    test.start_command(command)
        .end()
        .exits(2)
        .complains("git has no committer identity");
}

#[test]
fn an_unusable_branch_is_refused() {
    let test = Test::git().script(WRITES_MADE);
    let with = |flag: &'static str| [&["run", "x", "--name", "a", flag], &RUN[5..]].concat();
    refused(
        &test,
        &with("--worktree=a..b"),
        "not a valid git branch name",
        "feature/parser",
    );
    refused(
        &test,
        &with("--worktree=-x"),
        "not a valid git branch name",
        "feature/parser",
    );
    refused(&test, &with("--worktree="), "--worktree", "--help");
    refused(
        &test,
        &with("--worktree=main"),
        "the branch main is checked out in ",
        "another",
    );
    test.sh("git branch ralph/a");
    refused(
        &test,
        &with("--worktree"),
        "the branch ralph/a already exists",
        "use --worktree=ralph/a to continue that branch",
    );
    test.sh("git branch -D -q ralph/a && git branch ralph");
    refused(
        &test,
        &with("--worktree"),
        "--worktree: cannot create the worktree",
        "git worktree list",
    );
    assert_eq!(subjects(&test, "ralph"), ["first"]);
}

#[test]
fn a_worktree_of_an_earlier_loop_is_not_overwritten() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &[]).exits(0);
    refused(
        &test,
        &RUN,
        "cannot reuse the name \"a\": the previous loop's worktree still exists at ",
        "ralph rm a --worktree",
    );
    let plain = [
        "run",
        "x",
        "--name",
        "a",
        "--check",
        "true",
        "-m",
        "1",
        "--no-promise",
        "--",
        "true",
    ];
    refused(
        &test,
        &plain,
        "worktree still exists at ",
        "--keep-worktree",
    );
    test.ralph(&["rm", "a", "--keep-worktree"])
        .exits(0)
        .says("kept the worktree ");
    refused(
        &test,
        &RUN,
        "the worktree directory for \"a\" already exists",
        "git worktree remove ",
    );
    assert!(place(&test, "a").join("made").exists());
    test.sh(&format!(
        "git worktree remove '{}'",
        place(&test, "a").display()
    ));
    refused(
        &test,
        &RUN,
        "the branch ralph/a already exists",
        "--worktree=ralph/a",
    );
    let args = [
        &["run", "x", "--name", "a", "--worktree=ralph/a"],
        &claiming()[5..],
        &["-m", "1"],
    ]
    .concat();
    test.ralph(&args).exits(1);
    assert_eq!(
        subjects(&test, "ralph/a"),
        ["Make it.", "first"],
        "it was there already"
    );
}

#[test]
fn errors_in_the_worktree_are_found_before_anything_starts_and_it_is_removed() {
    let test = Test::git()
        .script(WRITES_MADE)
        .program("own-agent", "#!/bin/sh\n")
        .file("claim", "");
    let agent = ["run", "x", "--name", "a", "--worktree", "--", "./own-agent"];
    refused(
        &test,
        &agent,
        "program ./own-agent not found",
        "install ./own-agent",
    );
    test.sh("git add claim && git commit -q -m claim && rm claim");
    refused(
        &test,
        &[claiming(), &["--done-file", "claim"]].concat(),
        "--done-file claim already exists",
        "remove the file",
    );
    assert!(!test.loop_dir("a").exists());
    test.sh("git rm -q --cached claim && git commit -q -m none && touch claim");
    test.ralph(&[claiming(), &["--done-file", "claim", "-m", "1"]].concat())
        .exits(1);
}

#[test]
fn a_living_loop_of_the_same_name_is_reported_first() {
    let test = Test::git().script("iteration 1\n say here\n hang\n");
    let live = test.start(&RUN);
    live.until_out("  | here\n");
    refused(
        &test,
        &RUN,
        "the loop \"a\" is already starting or running",
        "ralph stop a",
    );
    refused(
        &test,
        &["rm", "a", "--worktree", "--force"],
        "cannot remove the loop \"a\" while it is running",
        "run `ralph stop a` first",
    );
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
}

#[test]
fn an_ambiguous_word_after_the_worktree_flag_is_refused() {
    let test = Test::git().script(WRITES_MADE);
    let agent = ["--agent", "script:../agent.script"];
    for args in [
        &["run", "--worktree", "mend"][..],
        &["spawn", "x", "--worktree", "mend"],
        &["--worktree", "mend"],
    ] {
        let args = [args, &agent].concat();
        refused(
            &test,
            &args,
            "--worktree mend: is \"mend\" the branch or the task?",
            "--worktree=mend",
        );
    }
    // A text with spaces is a task, and so is a word before the flag.
    for args in [
        &["run", "--worktree", "mend it"][..],
        &["run", "mend", "--worktree"],
    ] {
        test.ralph(&[args, &agent, &["--dry-run"]].concat())
            .exits(0)
            .says("mend");
    }
    test.ralph(&["rm", "--worktree", "mend"])
        .exits(2)
        .complains("no loop is named `mend`");
}
