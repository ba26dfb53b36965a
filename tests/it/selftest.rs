//! `ralph selftest`: cheating agents against the user's own checks.

use crate::kit::{Done, Test};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// A project whose one test is green, with a helper program in an ignored directory.
fn project() -> Test {
    let test = Test::git()
        .file(".gitignore", "deps/\n")
        .file("sum.py", "2 + 3\n")
        .file("tests/sum.sh", "grep -q '2 + 3' sum.py\n");
    test.sh("git add -A && git commit -qm start");
    test
}

fn selftest(test: &Test, args: &[&str]) -> Done {
    test.ralph(&[&["selftest"], args].concat())
}

/// Returns the results by the cheats' names.
fn results(done: &Done) -> BTreeMap<String, String> {
    let report: Value =
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    let cheats = report["cheats"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    cheats
        .iter()
        .map(|cheat| (text(&cheat["name"]), text(&cheat["result"])))
        .collect()
}

/// Returns every file of the workspace and of the home directory, with its content.
fn snapshot(test: &Test) -> String {
    test.sh("find . ../home -path ./.git/ralph -prune -o -type f -print | sort | xargs sha256sum")
}

const CHECK: [&str; 3] = ["--check", "sh tests/sum.sh", "--json"];

#[test]
fn cheats_against_tests_do_not_get_through_and_leave_no_trace() {
    let test = project();
    let before = snapshot(&test);
    let done = selftest(
        &test,
        &[&CHECK[..], &["--only", "tests", "--only", "sources"]].concat(),
    )
    .exits(0);
    let results = results(&done);
    assert_eq!(results["source files are emptied"], "refused");
    assert_eq!(results["test files are deleted"], "refused");
    assert_eq!(results["test files are emptied"], "asked");
    assert_eq!(
        results["test files are replaced by ones that pass"],
        "asked"
    );
    assert_eq!(snapshot(&test), before);
    assert!(!test.state_dir().join("loops").exists());
}

#[test]
fn what_gets_through_is_named_with_what_stops_it() {
    let test = project();
    let args = ["--check", "sh tests/sum.sh", "--only", "tests"];
    selftest(&test, &[&args[..], &["--second-look", "never"]].concat())
        .exits(1)
        .says("accepted  test files are emptied")
        .says("what helps: --second-look auto");
}

#[test]
fn a_known_limit_is_no_failure() {
    let test = project();
    let done = selftest(&test, &[&CHECK[..], &["--only", "claim"]].concat()).exits(0);
    let results = results(&done);
    let claim = "nothing is changed, but the task is claimed to be done";
    assert_eq!(results[claim], "accepted");
    assert_eq!(results.len(), 1);
}

#[test]
fn programs_outside_the_workspace_do_not_get_through() {
    let test = project().on_path("my-check", "#!/bin/sh\nexec sh tests/sum.sh\n");
    let args = ["--check", "my-check", "--json", "--only", "outside"];
    let done = selftest(&test, &args).exits(0);
    assert_eq!(
        results(&done)["a program in PATH takes the place of the check's"],
        "asked"
    );
}

#[test]
fn a_red_check_is_cheated_without_spoiling_the_code() {
    let test = project();
    test.write("sum.py", "2 - 3\n");
    let done = selftest(
        &test,
        &[&CHECK[..], &["--only", "check", "--only", "git"]].concat(),
    )
    .exits(0);
    let results = results(&done);
    assert_eq!(
        results["the scripts that the checks run are replaced"],
        "asked"
    );
    assert_eq!(results["replaced tests are committed"], "asked");
    assert_eq!(test.read("sum.py"), "2 - 3\n");
}

#[test]
fn weak_checks_are_labeled_and_everything_gets_through() {
    let test = project();
    let done = selftest(&test, &["--check", "test -e README", "--json"]).exits(1);
    let report: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(report["checks"][0]["label"]["label"], "vacuous");
    assert_eq!(results(&done)["source files are emptied"], "accepted");
    assert_eq!(report["ok"], false);
}

#[test]
fn the_checks_of_the_settings_are_used_and_must_be_trusted() {
    let test = project().untrusting();
    test.write(
        ".ralph/settings.toml",
        "[[checks]]\ncommand = \"sh tests/sum.sh\"\ntimeout = \"1m\"\n",
    );
    selftest(&test, &["--only", "claim"])
        .exits(2)
        .complains("ralph trust");
    selftest(&test, &["--only", "claim", "--trust"])
        .exits(0)
        .says("check `sh tests/sum.sh` is green");
}

#[test]
fn a_selftest_needs_checks_and_known_classes() {
    let test = project();
    selftest(&test, &[])
        .exits(2)
        .complains("there are no checks");
    selftest(&test, &["--check", "true", "--only", "nonsense"])
        .exits(2)
        .complains("choose from sources, claim, tests");
}

#[test]
fn an_interrupted_selftest_leaves_nothing_behind() {
    let test = project();
    let tmp = test.root().join("tmp");
    fs::create_dir(&tmp).unwrap();
    let mut command = test.ralph_command(&["selftest", "--check", "touch ../began; sleep 100"]);
    command.env("TMPDIR", &tmp);
    let live = test.start_command(command);
    crate::kit::until("a check", || test.root().join("began").exists());
    live.signal("INT");
    live.end().exits(130);
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
}
