//! The next steps that ralph suggests are commands that work as printed.

use crate::kit::{Test, until};
use std::os::unix::fs::symlink;

/// An agent that does what the file `plan` says once, and then claims to be done.
const AGENT: &str = "#!/bin/sh
if test -e plan; then mv plan old; . ./old; else echo '<promise>COMPLETE</promise>'; fi
";

fn test(plan: &str) -> Test {
    let test = Test::new().program("agent", AGENT).file("plan", plan);
    std::fs::create_dir_all(test.root().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_ralph"), test.root().join("bin/ralph")).unwrap();
    test
}

/// Returns the next step that `ralph status` suggests.
fn next_step(test: &Test) -> String {
    let shown = test.ralph(&["status", "a"]).exits(0).out;
    let line = shown.lines().find_map(|line| line.strip_prefix("Next: "));
    line.unwrap_or_else(|| panic!("no next step in {shown}"))
        .to_owned()
}

/// Runs a loop that ends with this exit code, then the suggested command, which must complete it.
fn check(plan: &str, args: &[&str], code: i32, expected: &str) {
    let test = test(plan);
    let run = ["run", "x", "--name", "a"];
    let done = test
        .ralph(&[&run[..], args, &["--", "./agent"]].concat())
        .exits(code);
    let step = next_step(&test);
    assert_eq!(step, expected);
    assert!(
        done.out.contains(&step),
        "the summary says the same: {done:?}"
    );
    test.sh(&step);
    assert_eq!(test.status("a")["status"], "done", "{step}");
}

#[test]
fn a_blocked_loop_can_be_answered() {
    check("ralph blocked why", &[], 3, "ralph resume a --answer \"…\"");
}

#[test]
fn a_loop_that_is_blocked_at_a_limit_can_be_answered() {
    check(
        "ralph blocked why",
        &["-m", "1"],
        3,
        "ralph set a max-iterations=2 && ralph resume a --answer \"…\"",
    );
}

#[test]
fn a_loop_that_waits_at_a_limit_can_be_resumed() {
    check(
        "exit 42",
        &["-m", "1"],
        3,
        "ralph set a max-iterations=2 && ralph resume a",
    );
}

#[test]
fn a_loop_at_its_limit_can_be_resumed() {
    check(
        "echo more",
        &["-m", "1"],
        1,
        "ralph set a max-iterations=2 && ralph resume a",
    );
}

#[test]
fn a_loop_that_reached_two_limits_can_be_resumed() {
    check(
        "exit 1",
        &["-m", "1", "--max-failures", "1"],
        1,
        "ralph set a max-iterations=2 && ralph resume a",
    );
}

#[test]
fn a_blocked_loop_whose_prompt_has_no_messages_is_resumed_without_an_answer() {
    let prompt = ["--context", "none", "--promise", "COMPLETE"];
    check("ralph blocked why", &prompt, 3, "ralph resume a");
}

#[test]
fn a_refused_answer_is_kept_in_the_suggested_command() {
    let test = test("ralph blocked why");
    test.ralph(&["run", "x", "--name", "a", "-m", "1", "--", "./agent"])
        .exits(3);
    let hint = "ralph set a max-iterations=2 && ralph resume a --answer 'it'\\''s $5'";
    test.ralph(&["resume", "a", "--answer", "it's $5"])
        .exits(2)
        .complains(hint);
    test.sh(hint);
    assert!(test.prompt("a", 2).contains("it's $5"));
}

#[test]
fn an_answer_that_no_prompt_would_contain_is_refused() {
    let test = test("ralph blocked why");
    let args = ["--context", "none", "--promise", "COMPLETE"];
    test.ralph(&[&["run", "x", "--name", "a"], &args[..], &["--", "./agent"]].concat())
        .exits(3);
    test.ralph(&["resume", "a", "--answer", "yes"])
        .exits(2)
        .complains("cannot receive messages");
}

#[test]
fn a_loop_that_was_stopped_at_a_limit_can_be_resumed() {
    let test = test("touch here; until test -e go; do sleep 0.01; done");
    let live = test.start(&["run", "x", "--name", "a", "-m", "1", "--", "./agent"]);
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    let step = next_step(&test);
    assert_eq!(step, "ralph set a max-iterations=2 && ralph resume a");
    test.sh(&step);
    assert_eq!(test.status("a")["status"], "done");
}

#[test]
fn work_that_a_hook_keeps_from_being_committed_can_be_committed_merged_and_removed() {
    let test = Test::git().program(
        ".git/hooks/pre-commit",
        "#!/bin/sh\necho lint failed >&2; exit 1\n",
    );
    std::fs::create_dir_all(test.root().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_ralph"), test.root().join("bin/ralph")).unwrap();
    let agent = "echo hi > out; echo '<promise>COMPLETE</promise>'";
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--worktree",
        "--check",
        "test -f out",
    ];
    let done = test
        .ralph(&[&args[..], &["--", "sh", "-c", agent]].concat())
        .exits(0);
    let status = test.ralph(&["status", "a"]).exits(0).out;
    for (label, title) in [
        ("inspect", "Inspect"),
        ("commit", "Commit"),
        ("merge", "Merge"),
        ("remove", "Remove"),
    ] {
        let row = done
            .out
            .lines()
            .find_map(|line| line.strip_prefix(&format!("  {label:<8} ")));
        let command = row.unwrap_or_else(|| panic!("no {label} in {}", done.out));
        assert!(
            status.contains(&format!("\n{title}: {command}\n")),
            "{status}"
        );
        let shown = test.sh(command);
        assert!(label != "inspect" || shown.contains("out"), "{shown}");
    }
    assert_eq!(test.read("out"), "hi\n");
    assert!(!test.loop_dir("a").exists());
}
