//! The files that a loop writes to its workspace: which are its own, how git ignores them, and when
//! they are removed.

use crate::kit::{Done, Test, until};
use std::fs;

/// Runs one iteration with one red check, which prints the loop's name.
fn run(test: &Test, name: &str, more: &[&str]) -> Done {
    let args = ["run", "x", "--name", name, "-m", "1"];
    let check = format!("echo {name}; false");
    let rest = ["--check", &check, "--", "true"];
    test.ralph(&[&args[..], more, &rest].concat())
}

/// Returns everything in the workspace's `.ralph`, sorted.
fn ralph_files(test: &Test) -> Vec<String> {
    let list = test.sh("test -d .ralph && find .ralph -type f | sort || true");
    list.lines().map(str::to_owned).collect()
}

#[test]
fn rm_removes_the_loop_s_own_files_and_no_others() {
    let test = Test::git();
    run(&test, "a", &[]).exits(1);
    assert_eq!(
        ralph_files(&test),
        [
            ".ralph/.gitignore",
            ".ralph/guardrail_0_echo-a-false.log",
            ".ralph/guardrail_1_echo-a-false.log",
            ".ralph/task/a/progress.md",
        ]
    );
    run(&test, "b", &[]).exits(1);
    test.write(".ralph/notes.md", "of another tool\n");
    test.write(".ralph/task/other/kept", "");
    test.ralph(&["rm", "a"])
        .exits(0)
        .says("removed ralph loop a: ");
    assert_eq!(
        ralph_files(&test),
        [
            ".ralph/.gitignore",
            ".ralph/guardrail_0_echo-b-false.log",
            ".ralph/guardrail_1_echo-b-false.log",
            ".ralph/notes.md",
            ".ralph/task/b/progress.md",
            ".ralph/task/other/kept",
        ]
    );
    test.ralph(&["rm", "b", "--keep-files"]).exits(0);
    assert_eq!(ralph_files(&test).len(), 6);
}

#[test]
fn nothing_is_left_after_the_last_loop() {
    let test = Test::git();
    for name in ["a", "b", "b"] {
        run(&test, name, &[]).exits(1);
    }
    test.ralph(&["rm", "--ended"])
        .exits(0)
        .says("3 loops removed");
    assert!(!test.workspace().join(".ralph").exists());
}

#[test]
fn files_that_another_loop_has_too_are_kept() {
    let test = Test::git();
    let same = |name: &str| {
        let args = ["run", "x", "--name", name, "-m", "1", "--check", "false"];
        test.ralph(&[&args[..], &["--", "true"]].concat()).exits(1);
    };
    same("a");
    same("b");
    // The first loop is archived; the second one has its name and files.
    same("b");
    test.ralph(&["rm", "a"]).exits(0);
    let kept = [
        ".ralph/.gitignore",
        ".ralph/guardrail_0_false.log",
        ".ralph/guardrail_1_false.log",
        ".ralph/task/b/progress.md",
    ];
    assert_eq!(ralph_files(&test), kept);
    let archive = test.state_dir().join("archive");
    assert_eq!(fs::read_dir(&archive).unwrap().count(), 1);
    test.ralph(&["rm", "b"]).exits(0);
    assert_eq!(ralph_files(&test), kept, "the archived loop has them too");
    test.ralph(&["rm", "--ended"]).exits(0);
    assert_eq!(ralph_files(&test), Vec::<String>::new());
}

#[test]
fn links_to_elsewhere_are_not_followed() {
    let test = Test::git();
    run(&test, "a", &[]).exits(1);
    test.sh("mv .ralph/task ../precious && ln -s ../../precious .ralph/task");
    test.ralph(&["rm", "a"]).exits(0);
    assert!(test.root().join("precious/a/progress.md").exists());
    run(&test, "b", &[]).exits(2);
    test.sh("rm .ralph/task");
    run(&test, "b", &[]).exits(1);
    test.sh("mv .ralph ../dear && ln -s ../dear .ralph");
    test.ralph(&["rm", "b"]).exits(0);
    assert!(
        test.root()
            .join("dear/guardrail_1_echo-b-false.log")
            .exists()
    );
}

#[test]
fn loops_that_share_a_workspace_have_their_own_logs() {
    let test = Test::git();
    let args = |name: &'static str, more: &'static str| {
        let check = "echo $TEST_NAME; test -f go";
        [
            "run",
            "x",
            "--name",
            name,
            "-m",
            "1",
            "--no-preflight",
            more,
            "--check",
            check,
            "--",
            "sh",
            "-c",
        ]
    };
    // The first loop holds the workspace; the second one shares it.
    let waits = "touch here; while test ! -f go; do sleep 0.01; done";
    let mut command = test.ralph_command(&[&args("a", "--no-stream")[..], &[waits]].concat());
    command.env("TEST_NAME", "first");
    let first = test.start_command(command);
    until("the first agent runs", || {
        test.workspace().join("here").exists()
    });
    let mut command =
        test.ralph_command(&[&args("b", "--share-workspace")[..], &["true"]].concat());
    command.env("TEST_NAME", "second");
    test.start_command(command).end().exits(1);
    test.write("go", "");
    first.end();
    let slug = "echo-test-name-test-f-go";
    assert_eq!(
        test.read(&format!(".ralph/guardrail_1_{slug}.log")),
        "first\n"
    );
    assert_eq!(
        test.read(&format!(".ralph/guardrail_1_{slug}_b.log")),
        "second\n"
    );
    test.ralph(&["rm", "b"]).exits(0);
    assert_eq!(
        ralph_files(&test),
        [
            ".ralph/.gitignore".to_owned(),
            format!(".ralph/guardrail_1_{slug}.log"),
            ".ralph/task/a/progress.md".to_owned(),
        ]
    );
}

#[test]
fn a_reused_name_does_not_show_the_old_progress() {
    let test = Test::git();
    run(&test, "a", &[]).exits(1);
    let progress = ".ralph/task/a/progress.md";
    assert!(test.read(progress).contains("echo a; false"));
    let agent = format!("cp {progress} seen 2>/dev/null || touch none");
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
        test.workspace().join("none").exists(),
        "{:?}",
        test.read("seen")
    );
}

#[test]
fn a_project_s_own_ignore_file_stays_and_git_ignores_the_loop_s_files() {
    let test = Test::git().file(".ralph/.gitignore", "cache/\n");
    test.sh("echo mine > .git/info/exclude && git add -A && git commit -q -m ignore");
    let agent = "echo x > made; git add -A; git commit -q -m all; true";
    let args = [
        "run", "x", "--name", "a", "-m", "2", "--check", "false", "--", "sh", "-c", agent,
    ];
    test.ralph(&args)
        .exits(1)
        .says("  changed  1 file +1 −0: made\n");
    assert_eq!(test.sh("git log --name-only --format= -1"), "made\n");
    assert_eq!(test.read(".ralph/.gitignore"), "cache/\n");
    let exclude = test.read(".git/info/exclude");
    assert_eq!(exclude.matches("# >>> ralph").count(), 1, "{exclude}");
    // Worktrees have the same exclude file.
    let tree = [
        "run",
        "x",
        "--name",
        "b",
        "--worktree",
        "-m",
        "1",
        "--check",
        "false",
        "--",
        "sh",
        "-c",
        &agent.replace("made", "other"),
    ];
    test.ralph(&tree).exits(1).says("  changed  1 file");
    assert_eq!(
        test.sh("git log --name-only --format= -1 ralph/b"),
        "other\n"
    );
    test.ralph(&["rm", "a"]).exits(0);
    assert_eq!(test.read(".git/info/exclude"), exclude, "a loop is left");
    test.ralph(&["rm", "b", "--worktree", "--force"]).exits(0);
    assert_eq!(test.read(".git/info/exclude"), "mine\n");
    assert_eq!(ralph_files(&test), [".ralph/.gitignore"]);
}

#[test]
fn an_ordinary_workspace_has_no_exclude_block() {
    let test = Test::git();
    run(&test, "a", &[]).exits(1);
    assert!(!test.sh("cat .git/info/exclude || true").contains("ralph"));
}
