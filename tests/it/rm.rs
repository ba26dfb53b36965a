//! `ralph rm`: what it removes, what it keeps, and what it prints.

mod files;

use crate::kit::{Done, Test, until};
use std::path::PathBuf;

/// Runs a loop that is done after one iteration, with one green check.
fn run_to_end(test: &Test, name: &str, more: &[&str]) -> Done {
    let check = format!("grep -qx {name} made");
    let args = [
        "run",
        "x",
        "--name",
        name,
        "--check",
        &check,
        "--until-green",
        "-m",
        "1",
    ];
    test.ralph(
        &[
            &args[..],
            more,
            &["--", "sh", "-c", "echo $RALPH_LOOP > made"],
        ]
        .concat(),
    )
}

fn place(test: &Test, name: &str) -> PathBuf {
    test.state_dir().join("worktrees").join(name)
}

fn names(test: &Test) -> Vec<String> {
    test.ralph(&["ls", "--names"])
        .exits(0)
        .out
        .lines()
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn refused(test: &Test, args: &[&str], error: &str, hint: &str) {
    let done = test.ralph(args).exits(2).complains(error);
    let (_, given) = done
        .err
        .split_once("hint: ")
        .unwrap_or_else(|| panic!("no hint: {done:?}"));
    assert!(given.contains(hint), "{hint:?} is not in {given:?}");
}

#[test]
fn an_ended_loop_is_removed_and_the_freed_size_is_printed() {
    let test = Test::new();
    for name in ["one", "two", "three"] {
        run_to_end(&test, name, &[]).exits(0);
    }
    test.ralph(&["rm", "one"])
        .exits(0)
        .says("removed ralph loop one: ")
        .says(" freed\n");
    assert!(!test.loop_dir("one").exists());
    test.ralph(&["rm", "two", "three", "two"])
        .exits(0)
        .says("removed ralph loop two")
        .says("removed ralph loop three");
    assert_eq!(names(&test), Vec::<String>::new());
    assert_eq!(
        std::fs::read_dir(test.state_dir().join("archive"))
            .unwrap()
            .count(),
        0
    );
    assert!(
        test.workspace().join("made").exists(),
        "the workspace is the user's"
    );
    run_to_end(&test, "one", &[]).exits(0);
    assert_eq!(names(&test), ["one"]);
}

#[test]
fn an_unknown_name_is_reported_with_the_closest_and_nothing_is_removed() {
    let test = Test::new();
    run_to_end(&test, "auth", &[]).exits(0);
    refused(
        &test,
        &["rm", "auth", "auht"],
        "auht",
        "did you mean `auth`?",
    );
    refused(&test, &["rm", "zebra"], "zebra", "ralph ls");
    refused(
        &test,
        &["rm", "../auth"],
        "../auth",
        "use at most 63 characters",
    );
    refused(&test, &["rm"], "NAME", "ralph rm --help");
    refused(
        &test,
        &["rm", "auth", "--ended"],
        "--ended",
        "ralph rm --help",
    );
    refused(
        &test,
        &["rm", "auth", "--force"],
        "--force does not apply to \"auth\": its journal is not damaged",
        "`ralph rm auth` removes the loop",
    );
    refused(
        &test,
        &["rm", "--ended", "--older-than", "soon"],
        "soon",
        "ralph rm --help",
    );
    refused(
        &test,
        &["rm", "--ended", "--older-than", "soon"],
        "5m, 1h30m or 30d",
        "ralph rm --help",
    );
    assert_eq!(names(&test), ["auth"]);
}

#[test]
fn a_running_loop_is_kept_and_a_paused_or_crashed_one_can_be_removed() {
    let test = Test::new().script("iteration 1\n say here\n hang\n");
    let args = |name: &'static str| {
        [
            "run",
            "x",
            "--name",
            name,
            "--agent",
            "script:../agent.script",
            "--share-workspace",
        ]
    };
    let live = test.start(&args("a"));
    live.until_out("  | here\n");
    refused(
        &test,
        &["rm", "a"],
        "cannot remove the loop \"a\" while it is running",
        "run `ralph stop a` first",
    );
    live.signal("TERM");
    live.until_out("pausing after this iteration");
    live.signal("TERM");
    live.end().exits(3);
    test.ralph(&["rm", "a"]).exits(0);
    let live = test.start(&args("b"));
    live.until_out("  | here\n");
    crate::crash::crash(live);
    test.ralph(&["rm", "b"])
        .exits(0)
        .says("removed ralph loop b");
    assert_eq!((names(&test).len(), test.survivors()), (0, Vec::new()));
}

#[test]
fn an_agent_cannot_remove_its_own_loop() {
    let test = Test::new();
    let agent = format!("'{}' rm a 2> told; true", env!("CARGO_BIN_EXE_ralph"));
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "sh",
        "-c",
        &agent,
    ])
    .exits(0);
    assert!(
        test.read("told")
            .contains("an agent cannot control its own loop"),
        "{}",
        test.read("told")
    );
    assert_eq!(names(&test), ["a"]);
}

#[test]
fn a_worktree_is_removed_only_on_request_and_only_if_its_work_exists_elsewhere() {
    let test = Test::git();
    run_to_end(&test, "a", &["--worktree"]).exits(0);
    let place = place(&test, "a");
    refused(
        &test,
        &["rm", "a"],
        &format!(
            "has a worktree, which may contain work: {}",
            place.display()
        ),
        "--keep-worktree",
    );
    refused(
        &test,
        &["rm", "a", "--worktree"],
        "removing the worktree of \"a\" would lose work: 1 commit",
        "to keep the work, run `git merge ralph/a`",
    );
    std::fs::write(place.join("new"), "x").unwrap();
    refused(
        &test,
        &["rm", "a", "--worktree"],
        "1 commit and 1 uncommitted file (new)",
        "to keep the work, commit it in ",
    );
    std::fs::remove_file(place.join("new")).unwrap();
    assert_eq!(test.sh("git branch --list 'ralph/*'").trim(), "+ ralph/a");
    let mut command = test.ralph_command(&["rm", "a", "--worktree", "--force"]);
    command.current_dir(&place);
    test.start_command(command)
        .end()
        .exits(2)
        .complains("cannot remove the worktree of \"a\": your current directory is inside it")
        .complains("cd to another directory first");
    test.sh("git merge -q ralph/a");
    test.ralph(&["rm", "a", "--worktree"])
        .exits(0)
        .says(&format!(
            "removed ralph loop a with its worktree {} and its branch ralph/a (was ",
            place.display()
        ))
        .says(" freed\n");
    assert!(!place.exists() && !test.loop_dir("a").exists());
    assert_eq!(test.sh("git worktree list").lines().count(), 1);
    assert_eq!(test.sh("git branch --list 'ralph/*'"), "");
    assert_eq!(
        test.sh("git log --format=%s"),
        "x\nfirst\n",
        "what was merged is there"
    );
}

#[test]
fn force_removes_unsaved_work_and_a_pushed_or_tagged_commit_counts_as_saved() {
    let test = Test::git();
    run_to_end(&test, "a", &["--worktree"]).exits(0);
    std::fs::write(place(&test, "a").join("new"), "x").unwrap();
    test.ralph(&["rm", "a", "--worktree", "--force"]).exits(0);
    assert_eq!(test.sh("git branch --list 'ralph/*'"), "");
    run_to_end(&test, "b", &["--worktree"]).exits(0);
    test.sh("git tag kept ralph/b");
    test.ralph(&["rm", "b", "--worktree"]).exits(0);
    run_to_end(&test, "c", &["--worktree"]).exits(0);
    test.sh("git init -q --bare ../remote.git && git remote add origin ../remote.git && git push -q origin ralph/c");
    test.ralph(&["rm", "c", "--worktree"]).exits(0);
    // If the agent detached HEAD, no branch contains its commits.
    let agent = "git checkout -q --detach; touch lost; git add lost; git commit -q -m lost";
    let args = [
        "run",
        "x",
        "--name",
        "d",
        "--worktree",
        "--no-promise",
        "-m",
        "1",
        "--",
        "sh",
        "-c",
        agent,
    ];
    test.ralph(&args).exits(0);
    refused(
        &test,
        &["rm", "d", "--worktree"],
        "would lose work: 1 commit",
        "--force",
    );
}

#[test]
fn a_worktree_can_be_kept_and_a_deleted_one_does_not_prevent_removal() {
    let test = Test::git();
    run_to_end(&test, "a", &["--worktree"]).exits(0);
    test.ralph(&["rm", "a", "--keep-worktree"])
        .exits(0)
        .says("kept the worktree ")
        .says("on ralph/a; run `git worktree remove ");
    assert!(place(&test, "a").join("made").exists());
    run_to_end(&test, "b", &["--worktree"]).exits(0);
    std::fs::remove_dir_all(place(&test, "b")).unwrap();
    test.ralph(&["rm", "b"]).exits(0);
    assert!(
        test.sh("git branch --list 'ralph/*'").contains("ralph/b"),
        "the branch was not spoken of"
    );
    run_to_end(&test, "c", &["--worktree"]).exits(0);
    std::fs::remove_dir_all(place(&test, "c")).unwrap();
    refused(
        &test,
        &["rm", "c", "--worktree"],
        "would lose work: 1 commit",
        "git merge ralph/c",
    );
    test.ralph(&["rm", "c", "--worktree", "--force"])
        .exits(0)
        .says("branch ralph/c");
    assert!(
        !test.sh("git worktree list").contains("worktrees/c"),
        "git has forgotten it, too"
    );
    // The whole repository may have been deleted.
    run_to_end(&test, "d", &["--worktree"]).exits(0);
    std::fs::remove_dir_all(test.workspace().join(".git")).unwrap();
    refused(
        &test,
        &["rm", "d", "--worktree"],
        "cannot tell whether removing the worktree",
        "--force",
    );
    test.ralph(&["rm", "d", "--worktree", "--force"]).exits(0);
    assert!(!place(&test, "d").exists());
}

#[test]
fn a_worktree_with_submodules_or_its_own_git_settings_is_removed_only_with_force() {
    let test = Test::git();
    test.sh("git init -q ../sub.git && cd ../sub.git && touch README && git add -A && git commit -q -m sub");
    test.sh("git -c protocol.file.allow=always submodule --quiet add ../sub.git sub && git add -A && git commit -q -m sub");
    let agent = "git -c protocol.file.allow=always submodule --quiet update --init";
    let args = |name: &'static str, agent: &'static str| {
        [
            "run",
            "x",
            "--name",
            name,
            "--worktree",
            "--no-promise",
            "-m",
            "1",
            "--",
            "sh",
            "-c",
            agent,
        ]
    };
    test.ralph(&args("a", agent)).exits(0);
    refused(
        &test,
        &["rm", "a", "--worktree"],
        "cannot remove the worktree of \"a\": ",
        "--force",
    );
    assert!(place(&test, "a").join("sub/README").exists() && test.loop_dir("a").exists());
    test.ralph(&["rm", "a", "--worktree", "--force"]).exits(0);
    test.ralph(&args("b", "echo '{}' > .ralph/settings.json"))
        .exits(0);
    refused(
        &test,
        &["rm", "b", "--worktree"],
        "1 uncommitted file (.ralph/settings.json)",
        "--force",
    );
}

#[test]
fn files_that_ralph_wrote_do_not_count_as_unsaved_work() {
    let test = Test::git().file(".ralph/.gitignore", "nothing\n");
    test.sh("git add -A && git commit -q -m ignore");
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--worktree",
        "--check",
        "false",
        "-m",
        "1",
        "--",
        "true",
    ];
    test.ralph(&args).exits(1);
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
}

#[test]
fn rm_ended_removes_all_ended_loops_except_those_waiting_for_the_user() {
    let test = Test::git().script("iteration 1\n say here\n hang\n");
    for name in ["a", "b"] {
        run_to_end(&test, name, &[]).exits(0);
    }
    // An earlier loop of that name, which is now archived.
    run_to_end(&test, "a", &[]).exits(0);
    run_to_end(&test, "tree", &["--worktree"]).exits(0);
    test.ralph(&[
        "run",
        "x",
        "--name",
        "asks",
        "--",
        "sh",
        "-c",
        "echo '<blocked>why</blocked>'",
    ])
    .exits(3);
    let live = test.start(&[
        "run",
        "x",
        "--name",
        "live",
        "--agent",
        "script:../agent.script",
    ]);
    live.until_out("  | here\n");
    test.ralph(&["rm", "--ended", "--older-than", "30d"])
        .exits(0)
        .says("0 loops removed, 0 bytes freed\n");
    test.ralph(&["rm", "--ended"])
        .exits(0)
        .says("removed ralph loop a: ")
        .says("3 loops removed, ")
        .complains("not removed: the loop \"tree\" has a worktree");
    assert_eq!(names(&test), ["asks", "live", "tree"]);
    assert_eq!(
        std::fs::read_dir(test.state_dir().join("archive"))
            .unwrap()
            .count(),
        0
    );
    test.ralph(&["rm", "--ended", "--worktree"])
        .exits(0)
        .complains("would lose work: 1 commit")
        .says("0 loops removed");
    test.ralph(&["rm", "--ended", "--worktree", "--force"])
        .exits(0)
        .says("1 loop removed");
    assert_eq!(names(&test), ["asks", "live"]);
    test.ralph(&["stop", "live"]).exits(0);
    live.end().exits(130);
}

#[test]
fn a_loop_with_a_damaged_journal_is_removed_by_force() {
    let test = Test::new().script("iteration *\n say hello\n");
    let run = |name: &str| {
        let args = ["run", "x", "--name", name, "-m", "2", "--no-promise"];
        test.ralph(&[&args[..], &["--agent", "script:../agent.script"]].concat())
            .exits(0);
    };
    // Without its cache, the state is folded from the journal.
    let damage = |dir: &str| {
        test.sh(&format!(
            "cd ../state/{dir} && rm -f state.json && sed -i '3s/.*/{{broken/' journal.jsonl"
        ))
    };
    for name in ["a", "b", "fine"] {
        run(name);
    }
    for name in ["a", "b"] {
        damage(&format!("loops/{name}"));
    }
    test.ralph(&["ls"])
        .exits(0)
        .says("fine")
        .complains("ralph rm a --force");
    for command in [&["status", "a"][..], &["rm", "a"]] {
        test.ralph(command).exits(2).complains("ralph rm a --force");
    }
    test.ralph(&["rm", "a", "--worktree", "--force"])
        .exits(2)
        .complains("cannot tell which worktree");
    test.ralph(&["rm", "a", "--force"])
        .exits(0)
        .says("removed ralph loop a: ")
        .complains("its history is lost");
    assert!(!test.loop_dir("a").exists());

    // Two damaged loops, one of them in the archive.
    run("old");
    run("old");
    damage("archive/old-*");
    test.ralph(&["rm", "--ended"])
        .exits(0)
        .says("2 loops removed")
        .complains("ralph rm b --force")
        .complains("ralph rm --ended --force");
    assert!(test.loop_dir("b").exists());
    test.ralph(&["rm", "--ended", "--force"])
        .exits(0)
        .says("2 loops removed");
    assert!(!test.loop_dir("b").exists());
}

#[test]
fn a_running_loop_with_a_damaged_journal_is_not_removed() {
    let test =
        Test::new().script("iteration *\n sh touch here; until test -e go; do sleep 0.01; done\n");
    let live = test.start(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
    ]);
    until("the agent", || test.workspace().join("here").exists());
    test.sh("cd ../state/loops/a && rm -f state.json && sed -i '2s/.*/{broken/' journal.jsonl");
    test.ralph(&["rm", "a", "--force"])
        .exits(2)
        .complains("already starting or running");
    live.signal("KILL");
    drop(live.end());
    test.write("go", "");
}

#[test]
fn a_dry_run_lists_what_would_be_removed_and_removes_nothing() {
    let test = Test::git();
    run_to_end(&test, "a", &[]).exits(0);
    run_to_end(&test, "b", &["--worktree"]).exits(0);
    let shown = test.ralph(&["rm", "--ended", "--dry-run"]).exits(0);
    assert!(
        shown.out.contains("would remove ralph loop a: "),
        "{shown:?}"
    );
    assert!(shown.out.contains("1 loop would be removed, "), "{shown:?}");
    assert!(
        shown
            .err
            .contains("not removed: the loop \"b\" has a worktree"),
        "{shown:?}"
    );
    test.sh("rm made && git merge -q ralph/b");
    let worktree = format!(
        "would remove ralph loop b with its worktree {} and its branch ralph/b: ",
        place(&test, "b").display()
    );
    test.ralph(&["rm", "b", "--worktree", "--dry-run"])
        .exits(0)
        .says(&worktree);
    test.ralph(&["rm", "--ended", "--worktree", "--dry-run"])
        .exits(0)
        .says("2 loops would be removed, ");
    assert_eq!(names(&test), ["a", "b"]);
    assert!(place(&test, "b").exists());
    test.ralph(&["rm", "--ended", "--worktree"])
        .exits(0)
        .says("2 loops removed, ");
}
