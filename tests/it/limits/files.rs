//! The files that a loop leaves for users: iterations.log, progress.md and guardrail logs.

use super::run;
use crate::crash::{WAITS, crashed};
use crate::kit::Test;

#[test]
fn the_iterations_log_has_a_line_per_start_end_failure_and_completion() {
    let test = Test::new().script(&format!(
        "iteration 1\n exit 1\niteration 2\n {WAITS}iteration *\n promise COMPLETE\n"
    ));
    crashed(&test, &["--backoff", "1ms..2ms"]);
    test.ralph(&["resume", "a"]).exits(0);
    let log = test.read_loop("a", "iterations.log");
    let entries: Vec<&str> = log
        .lines()
        .map(|line| line.split_once("Z ").expect("a time in UTC").1)
        .collect();
    let begins = [
        "[START] iteration 1/25",
        "[FAIL] iteration 1 exit=1 duration=",
        "[START] iteration 2/25",
        "[END] iteration 2 interrupted",
        "[START] iteration 3/25",
        "[END] iteration 3 exit=0 duration=",
        "[DONE] loop complete after 3 iterations",
    ];
    assert_eq!(entries.len(), begins.len(), "{log}");
    for (line, begin) in entries.iter().zip(begins) {
        assert!(
            line.starts_with(begin),
            "{line:?} does not begin with {begin:?}"
        );
    }
}

#[test]
fn an_interrupted_iteration_is_logged_once() {
    let test = Test::new().script(&format!(
        "iteration 1\n {WAITS}iteration *\n promise COMPLETE\n"
    ));
    // The check waits too, so that ralph can be killed again before the next iteration.
    test.write("go-check", "");
    let check = "touch checking; until test -e go-check; do sleep 0.01; done";
    crashed(&test, &["--check", check]);
    std::fs::remove_file(test.workspace().join("checking")).unwrap();
    std::fs::remove_file(test.workspace().join("go-check")).unwrap();
    let live = test.start(&["resume", "a"]);
    crate::kit::until("the check", || test.workspace().join("checking").exists());
    crate::crash::crash(live);
    test.write("go-check", "");
    test.ralph(&["resume", "a"]).exits(0);
    let log = test.read_loop("a", "iterations.log");
    assert_eq!(
        log.matches("[END] iteration 1 interrupted").count(),
        1,
        "{log}"
    );
}

#[test]
fn progress_is_written_into_the_task_directory() {
    let test = Test::new().script(
        "iteration 1\n cost 0.25\n exit 1\niteration 2\n cost 0.5\n write fixed\n  | yes\n",
    );
    let checks = ["--check", "test -f fixed", "--check", "true"];
    run(&test, &[&checks[..], &["--until-green"]].concat()).exits(0);
    let progress = test.read(".ralph/task/a/progress.md");
    for text in [
        "## Iteration 1 — FAIL",
        "## Iteration 2 — PASS",
        "- Cost: $0.25",
        "- Cost: $0.50",
        "- Duration: ",
        "- Check `test -f fixed`: FAIL (exit 1, ",
        "- Check `test -f fixed`: PASS (",
        "- Check `true`: PASS (",
    ] {
        assert!(progress.contains(text), "{text:?} is not in\n{progress}");
    }
}

#[test]
fn each_check_s_output_is_in_a_guardrail_log_that_git_does_not_see() {
    let test =
        Test::git().script("iteration 1\n say looking\niteration 2\n write fixed\n  | yes\n");
    let checks = [
        "--check",
        "echo one; test -f fixed",
        "--check",
        "echo one, test -f fixed",
        "--check",
        "echo three >&2",
        "--until-green",
    ];
    run(&test, &checks).exits(0);
    for iteration in 0..=2 {
        let log = |slug: &str| test.read(&format!(".ralph/guardrail_{iteration}_{slug}.log"));
        assert_eq!(log("echo-one-test-f-fixed"), "one\n");
        assert_eq!(log("echo-one-test-f-fixed-2"), "one, test -f fixed\n");
        assert_eq!(log("echo-three-2"), "three\n");
    }
    assert_eq!(test.sh("git status --porcelain"), "?? fixed\n");
    assert!(
        test.prompt("a", 1)
            .contains(".ralph/guardrail_0_echo-one-test-f-fixed.log"),
        "the agent is told"
    );
}
