//! Labels of checks before the first iteration, and loops that are refused because of them.

use crate::kit::{Done, Test};
use serde_json::Value;

/// Runs one iteration of an agent that does nothing.
fn run(test: &Test, args: &[&str]) -> Done {
    let run = ["run", "x", "--name", "a", "-m", "1"];
    test.ralph(&[&run[..], args, &["--", "true"]].concat())
}

fn labels(test: &Test) -> Vec<String> {
    let labels = &test.events("a", "labeled")[0]["labels"];
    let labels = labels.as_array().expect("a list").iter();
    labels
        .map(|label| label["label"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Returns whether the extra runs of the first check fit into the time for them. On a machine under
/// load they may not, and the label is then that of the first run.
fn had_time(test: &Test) -> bool {
    let first = test.events("a", "checked").into_iter().take(1);
    let runs = first.chain(test.events("a", "probed"));
    let ms: u64 = runs.filter_map(|run| run["report"]["ms"].as_u64()).sum();
    ms < 3000
}

/// A workspace with one source file and a test that reads it.
fn project() -> Test {
    let test = Test::git()
        .file("sum.py", "print(2 + 3)\n")
        .file("tests/sum.sh", "grep -q '2 + 3' sum.py\n");
    test.sh("git add -A && git commit -qm start");
    test
}

#[test]
fn red_and_green_checks_are_labeled_silently() {
    let test = project();
    let done = run(
        &test,
        &["--check", "sh tests/sum.sh", "--check", "test -e no"],
    )
    .exits(1);
    assert_eq!(labels(&test), ["green", "red"]);
    for word in ["flaky", "vacuous", "swallowed", "broken"] {
        assert!(!done.out.contains(word), "{}", done.out);
    }
    let status = test.status("a");
    assert_eq!(status["checks"][0]["label"]["label"], "green");
    assert!(!test.loop_dir("a").join("view").exists());
}

#[test]
fn a_check_that_does_not_look_at_the_sources_is_vacuous() {
    let test = project();
    let done = run(&test, &["--check", "test -e README"]).exits(1);
    assert_eq!(test.read("sum.py"), "print(2 + 3)\n");
    if had_time(&test) {
        done.says(
            "check `test -e README` is vacuous: it is green even if every source file is empty",
        );
        assert_eq!(labels(&test), ["vacuous"]);
        test.ralph(&["status", "a"]).exits(0).says(", vacuous");
    }
}

#[test]
fn a_check_that_reads_the_code_is_not_vacuous_although_nothing_is_wrong_with_an_empty_file() {
    let test = project();
    let lint = "! grep -n ')]}' sum.py";
    run(&test, &["--check", lint]).exits(1);
    assert_eq!(labels(&test), ["green"]);
}

#[test]
fn a_check_that_differs_between_runs_is_flaky_and_the_agent_knows() {
    let test = project();
    // The file is outside the workspace, so it is not part of the view.
    let check = "n=$(cat ../n 2>/dev/null || echo 0); echo $((n + 1)) > ../n; test $n != 1";
    let done = run(&test, &["--check", check]).exits(1);
    if had_time(&test) {
        done.says("is flaky: it was green, then red without a change");
        assert_eq!(labels(&test), ["flaky"]);
        assert!(test.prompt("a", 1).contains("is flaky: it was green"));
    }
}

#[test]
fn extra_runs_leave_the_workspace_alone() {
    let test = project();
    run(&test, &["--check", "echo x >> count"]).exits(1);
    // Preflight and one iteration.
    assert_eq!(test.read("count"), "x\nx\n");
    assert_eq!(labels(&test).len(), 1);
}

#[test]
fn a_loop_is_refused_if_every_check_hides_failures() {
    let test = project();
    let check = ["--check", "echo '1 failed, 2 passed'"];
    run(&test, &check)
        .exits(2)
        .says("swallowed: it exits with 0, but its output says that 1 failed")
        .says("--weak-checks");
    assert_eq!(test.events("a", "started").len(), 0);
    assert_eq!(test.status("a")["outcome"]["why"], "weak-checks");
    // Nothing has changed, so the loop is refused again.
    test.ralph(&["resume", "a"]).exits(2).says("--weak-checks");
    assert_eq!(test.events("a", "started").len(), 0);
    run(&test, &[&check[..], &["--weak-checks"]].concat()).exits(1);
    assert_eq!(test.events("a", "started").len(), 1);
    assert_eq!(labels(&test), ["swallowed"]);
    run(
        &test,
        &["--check", "sh tests/sum.sh || true", "--until-green"],
    )
    .exits(2)
    .says("`|| true` hides its exit code");
}

#[test]
fn a_loop_is_refused_if_no_check_can_run() {
    let test = project();
    run(&test, &["--check", "test 'x"])
        .exits(2)
        .says("broken: it cannot run");
    // One check that can is enough, and a script that does not exist yet is only red.
    run(&test, &["--check", "test 'x", "--check", "sh tests/sum.sh"]).exits(1);
    assert_eq!(labels(&test), ["broken", "green"]);
    run(&test, &["--check", "./later.sh"]).exits(1);
    assert_eq!(labels(&test), ["red"]);
}

#[test]
fn without_preflight_there_are_no_labels() {
    let test = project();
    run(&test, &["--no-preflight", "--check", "true || true"]).exits(1);
    assert_eq!(test.events("a", "labeled"), [] as [Value; 0]);
}

#[test]
fn a_held_out_check_that_is_not_due_is_not_shown_as_running() {
    let test = project();
    let red = "test -e no";
    let hidden = "test -e hidden";
    let done = run(&test, &["--check", red, "--hidden-check", hidden]).exits(1);
    assert!(
        !done.out.contains("checking `test -e hidden`"),
        "{}",
        done.out
    );
}
