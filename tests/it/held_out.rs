//! Held-out checks, the setup command of views, and sealed loops.

use crate::kit::{Done, Test};

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

/// A workspace whose test asks for one sum. `sum.sh` subtracts.
fn project() -> Test {
    let test = Test::git()
        .file(".gitignore", "deps/\n")
        .file("sum.sh", "echo $(($1 - $2))\n")
        .file("tests/sum_test.sh", "test \"$(sh sum.sh 2 3)\" = 5\n");
    test.sh("git add -A && git commit -qm start");
    test
}

fn run(test: &Test, agent: &str, args: &[&str]) -> Done {
    let agent = format!("{agent}\n{PROMISE}");
    let run = ["run", "x", "--name", "a", "--check", "sh tests/sum_test.sh"];
    test.ralph(&[&run[..], args, &["--", "sh", "-c", &agent]].concat())
}

const FIX: &str = "echo 'echo $(($1 + $2))' > sum.sh";
const OVERFIT: &str = "echo 'echo 5' > sum.sh";
const HIDDEN: &str = "test \"$(sh sum.sh 40 2)\" = 42 || { echo want forty-two; exit 1; }";

#[test]
fn a_held_out_check_rejects_code_that_fits_only_the_known_test() {
    let test = project();
    run(&test, OVERFIT, &["--hidden-check", HIDDEN, "-m", "9"])
        .exits(1)
        .complains("an agent that looks for a held-out check can find it")
        .says("a held-out check failed too often");
    let status = test.status("a");
    assert_eq!(status["outcome"]["kind"], "limit");
    assert_eq!(status["stop_reason"], "max_peeks");
    assert_eq!(status["current_iteration"], 3);
    // The agent knows that something failed, but not what.
    let prompt = test.prompt("a", 2);
    assert!(prompt.contains("A held-out check failed."), "{prompt}");
    let seen = test.sh("cat .ralph/task/a/* .ralph/*.log 2>/dev/null | cat");
    for text in [prompt, test.prompt("a", 1), test.prompt("a", 3), seen] {
        assert!(!text.contains("forty-two"), "{text}");
        assert!(!text.contains("40 2"), "{text}");
    }
    // A person may grant more.
    test.ralph(&["set", "a", "max-peeks=2"]).exits(0);
    test.ralph(&["resume", "a"]).exits(1);
    assert_eq!(test.status("a")["current_iteration"], 4);
}

#[test]
fn a_held_out_check_runs_only_when_the_others_are_green() {
    let test = project();
    let hidden = "echo run >> ../hidden-runs; test \"$(sh sum.sh 40 2)\" = 42";
    let agent = format!("if test -e .ralph/told; then {FIX}; fi; touch .ralph/told");
    run(&test, &agent, &["--hidden-check", hidden])
        .exits(0)
        .says("done: every check is green");
    // Neither at preflight nor after the first iteration, in which the other check was red.
    assert_eq!(test.sh("cat ../hidden-runs"), "run\n");
    assert_eq!(test.status("a")["current_iteration"], 2);
}

#[test]
fn held_out_checks_need_another_check() {
    let test = project();
    test.ralph(&["run", "x", "--hidden-check", "true", "--", "true"])
        .exits(2)
        .complains("--hidden-check needs another check");
    test.ralph(&[
        "run",
        "x",
        "--check",
        "true",
        "--hidden-check",
        " ",
        "--",
        "true",
    ])
    .exits(2)
    .complains("--hidden-check: check number 1 is empty");
}

#[test]
fn the_setup_command_makes_what_the_view_lacks() {
    let add = "mkdir -p deps && echo 'echo $(($1 + $2))' > deps/plus.sh \
               && echo 'sh deps/plus.sh $1 $2' > sum.sh";
    let test = project();
    run(&test, add, &["-m", "2"])
        .exits(3)
        .says("1 ignored file (deps/)");
    let test = project();
    let setup = "mkdir -p deps && echo 'echo $(($1 + $2))' > deps/plus.sh";
    run(&test, add, &["--setup", setup])
        .exits(0)
        .says("setup `mkdir -p deps")
        .says("by the original tests too");
    let events = test.events("a", "set_up");
    assert_eq!(events.len(), 1, "{events:?}");
}

#[test]
fn a_red_setup_is_a_dispute_that_names_it() {
    let test = project();
    let agent = format!("{FIX}; mkdir -p deps; touch deps/new");
    run(&test, &agent, &["--setup", "echo no network >&2; exit 7"])
        .exits(3)
        .says("setup `echo no network >&2; exit 7`: red (exit 7");
    let told = test.prompt("a", 2);
    assert!(
        told.contains("which prepares the checks (exit 7)"),
        "{told}"
    );
    let test = project();
    test.ralph(&["run", "x", "--check", "true", "--setup", " ", "--", "true"])
        .exits(2)
        .complains("--setup is empty");
}

#[test]
fn a_sealed_loop_is_graded_by_the_original_tests_every_time() {
    let test = project();
    let cheat = "echo true > tests/sum_test.sh";
    run(&test, cheat, &["--sealed", "-m", "2"]).exits(1);
    let checks = test.events("a", "checked");
    let after: Vec<_> = checks
        .iter()
        .filter(|check| check["iteration"] != 0)
        .collect();
    assert_eq!(after.len(), 2, "{after:?}");
    assert!(
        after
            .iter()
            .all(|check| check["report"]["exit"]["code"] == 1),
        "{after:?}"
    );
    let told = test.prompt("a", 2);
    assert!(
        told.contains("always run with the tests and settings"),
        "{told}"
    );
    assert!(told.contains("- `tests/sum_test.sh`"), "{told}");
    assert_eq!(test.events("a", "rechecked").len(), 0);
    assert!(!test.loop_dir("a").join("view").exists());
}

#[test]
fn a_sealed_loop_is_done_when_the_code_is_right() {
    let test = project();
    let agent = format!("{FIX}; echo true > tests/sum_test.sh");
    run(&test, &agent, &["--sealed"])
        .exits(0)
        .says("every check is green, by the original tests too (1 test or settings file changed)");
    assert_eq!(test.read("tests/sum_test.sh"), "true\n");
    test.ralph(&[
        "run",
        "x",
        "--check",
        "true",
        "--sealed",
        "--second-look",
        "never",
        "--",
        "true",
    ])
    .exits(2)
    .complains("--sealed and --second-look never contradict each other");
}

#[test]
fn flags_that_would_do_nothing_are_errors() {
    let test = project();
    let never = ["--check", "true", "--second-look", "never"];
    for (args, message) in [
        (
            &[&never[..], &["--setup", "true"]].concat()[..],
            "--setup and --second-look never contradict each other",
        ),
        (&["--setup", "true"], "--setup needs checks"),
        (&["--sealed"], "--sealed needs checks"),
    ] {
        let args = [&["run", "x"], args, &["--", "true"]].concat();
        test.ralph(&args).exits(2).complains(message);
    }
}

#[test]
fn a_sealed_loop_is_disputed_if_fewer_tests_run() {
    let test = project();
    test.sh("echo 'cat counts' > tests/count_test.sh; echo passed: 3 > counts; git add -A");
    test.sh("git commit -qm counts");
    let count = ["--check", "sh tests/count_test.sh", "--sealed"];
    run(&test, &format!("{FIX}; echo passed: 2 > counts"), &count)
        .exits(3)
        .says("green")
        .says("but 2 tests ran, 3 at the start")
        .says("disputed: the checks prove less than at the start; the agent is told");
    let told = test.prompt("a", 2);
    assert!(told.contains("(2 tests ran, 3 at the start)"), "{told}");
}

#[test]
fn a_held_out_check_that_is_red_only_by_the_original_tests_counts() {
    let test = project();
    test.sh("echo 'exit 1' > tests/more_test.sh; git add -A; git commit -qm more");
    let agent = format!("{FIX}; echo true > tests/more_test.sh");
    let hidden = [
        "--hidden-check",
        "sh tests/more_test.sh",
        "--max-peeks",
        "1",
    ];
    // The agent is not told of what it must not learn.
    run(&test, &agent, &hidden).exits(3);
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn a_person_decides_if_the_agent_of_a_sealed_loop_must_change_a_test() {
    let test = project();
    let agent = "echo true > tests/sum_test.sh; echo '<changed>sums are gone</changed>'";
    run(&test, agent, &["--sealed"])
        .exits(3)
        .says("sums are gone");
    test.ralph(&["resume", "a", "--accept", "tests/**"])
        .exits(0);
    assert_eq!(test.status("a")["outcome"]["kind"], "done");
    assert_eq!(test.events("a", "started").len(), 1);
}
