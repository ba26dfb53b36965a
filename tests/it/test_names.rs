//! Names and numbers of tests: what a check ran before the first iteration must pass at the end.

use crate::kit::{Done, Test};
use serde_json::Value;

/// A workspace with a check that prints the names of its tests, as a runner does. It reads them from
/// `cases`, which is no test by its name.
fn project(cases: &str) -> Test {
    let test = Test::git().file("cases", cases).file("run.sh", RUNNER);
    test.sh("git add -A && git commit -qm start");
    test
}

const RUNNER: &str = "cat cases
if grep -q ' [.][.][.] ' cases; then
    echo \"test result: $(grep -c ' ok$' cases) passed; $(grep -c FAILED cases) failed\"
fi
! grep -q FAILED cases
";

const CHECK: [&str; 2] = ["--check", "sh run.sh"];

/// Runs at most two iterations of an agent that is one shell command, and then claims to be done.
fn run(test: &Test, agent: &str, args: &[&str]) -> Done {
    let agent = format!("{agent}\necho '<promise>COMPLETE</promise>'");
    let run = ["run", "x", "--name", "a", "-m", "2"];
    test.ralph(&[&run[..], args, &["--", "sh", "-c", &agent]].concat())
}

fn write_cases(cases: &str) -> String {
    format!("printf '{}' > cases", cases.replace('\n', "\\n"))
}

#[test]
fn a_test_of_the_start_that_is_gone_is_disputed_although_the_number_is_the_same() {
    let test = project("test sums ... FAILED\ntest adds ... ok\n");
    let cheat = write_cases("test other ... ok\ntest adds ... ok\n");
    run(&test, &cheat, &CHECK)
        .exits(3)
        .says("by the original tests: red (1 test of the start did not pass: `sums`)")
        .says("ralph resume a --accept '**'");
    let told = test.prompt("a", 2);
    assert!(
        told.contains("(1 test of the start did not pass: `sums`)"),
        "{told}"
    );
    let recorded = &test.events("a", "checked")[0]["report"]["recorded_tests"];
    assert_eq!(recorded["total"], 2);
    let names = test.read_loop("a", "start-tests/sh-run-sh");
    assert_eq!(names, "1 adds\n! sums\n");
    // A person can accept that.
    test.ralph(&["resume", "a", "--accept", "**"])
        .exits(0)
        .says("done: every check is green; a person accepted the changes of **");
}

#[test]
fn tests_that_are_added_or_pass_now_are_fine() {
    let test = project("test sums ... FAILED\ntest adds ... ok\n");
    let honest = write_cases("test adds ... ok\ntest more ... ok\ntest sums ... ok\n");
    run(&test, &honest, &CHECK).exits(0);
    let checked = test.events("a", "checked");
    assert_eq!(
        checked.last().unwrap()["report"]["missing_tests"],
        Value::Null
    );
}

#[test]
fn a_record_of_the_tests_that_was_changed_is_noticed() {
    for cheat in ["echo '1 adds' >", "rm"] {
        let test = project("test sums ... FAILED\ntest adds ... ok\n");
        let cases = write_cases("test adds ... ok\ntest x ... ok\n");
        let agent = format!("{cases}; {cheat} $RALPH_STATE_DIR/loops/a/start-tests/sh-run-sh");
        run(&test, &agent, &CHECK)
            .exits(3)
            .says("the record of the 2 tests of the start was changed or deleted");
    }
}

#[test]
fn tests_that_the_task_may_change_are_not_missed() {
    let test = project("true\n");
    test.write("tests/cases", "test sums ... FAILED\n");
    let check = "cat tests/cases; echo 1 passed; ! grep -q FAILED tests/cases";
    let agent = "echo 'test renamed ... ok' > tests/cases";
    let args = ["--check", check, "--allow", "tests/**"];
    run(&test, agent, &args).exits(0);
    let surveyed = test.events("a", "surveyed");
    assert_eq!(surveyed[0]["touched"]["allowed"]["total"], 1);
}

#[test]
fn without_preflight_the_look_says_that_tests_were_not_compared() {
    let test = project("test sums ... ok\n");
    let args = [&CHECK[..], &["--no-preflight", "--second-look", "always"]].concat();
    run(&test, "echo more >> README", &args)
        .exits(0)
        .says("; its tests were not counted at the start");
    let silent = project("x\n");
    let args = [&CHECK[..], &["--second-look", "always"]].concat();
    run(&silent, "echo more >> README", &args)
        .exits(0)
        .says("; its output has no number of tests");
}

#[test]
fn pytest_and_go_are_asked_for_names_beside_the_users_own_options() {
    let test = Test::git();
    let check = "echo \"$PYTEST_ADDOPTS|$GOFLAGS\"; echo '= short test summary info ='; \
                 echo PASSED t.py::a; echo '= 1 passed in 0.01s ='";
    let mut command = test.ralph_command(&[
        "run", "x", "--name", "a", "-m", "1", "--check", check, "--", "true",
    ]);
    command.env("PYTEST_ADDOPTS", "-x --tb=no");
    test.sh("mkdir -p ../home/.config/go && echo GOFLAGS=-mod=mod > ../home/.config/go/env");
    command.output().unwrap();
    let log = test.sh("cat ../state/loops/a/iterations/0001/*.log | grep -v '^<'");
    assert!(
        log.contains("-rfEpX -x --tb=no|-test.v -mod=mod\n"),
        "{log}"
    );
    assert!(!log.contains("PASSED") && !log.contains("summary"), "{log}");
    let names = test.sh("cat ../state/loops/a/start-tests/*");
    assert_eq!(names, "1 t.py::a\n");
}

#[test]
fn pytests_own_rows_are_kept_if_the_project_asks_for_them() {
    let test = Test::git().file("pytest.ini", "[pytest]\naddopts = -rs\n");
    let check = "echo \"<$PYTEST_ADDOPTS>\"";
    let args = ["run", "x", "--name", "a", "-m", "1", "--check", check];
    test.ralph(&[&args[..], &["--", "true"]].concat());
    let log = test.sh("cat ../state/loops/a/iterations/0001/*.log");
    assert!(log.contains("<-rspX>\n"), "{log}");
}

/// A program that prints what `go test` does: with a test that fails unless `sum` exists, and more
/// lines if it is asked for names.
const GO: &str = r#"#!/bin/sh
case $GOFLAGS in *-test.v*) v() { echo "$1"; } ;; *) v() { :; } ;; esac
v '=== RUN   TestFine'
v '    a_test.go:3: error: expected, and only logged'
v '--- PASS: TestFine (0.00s)'
v '=== RUN   TestSum'
if test -e sum; then
    v '--- PASS: TestSum (0.00s)'
    v PASS
    printf 'ok  \texample.com/sum\t0.001s\n'
    exit
fi
echo '--- FAIL: TestSum (0.00s)'
echo '    a_test.go:9: got 4'
echo FAIL
printf 'FAIL\texample.com/sum\t0.001s\n'
exit 1
"#;

#[test]
fn a_pattern_and_the_failing_lines_do_not_see_what_only_ralph_asked_for() {
    let test = project("true\n").on_path("go", GO);
    let check = ["--check", "go test ./..."];
    let expecting = |pattern| [&check[..], &["--expect", pattern]].concat();
    run(&test, "touch sum", &expecting("PASS: TestSum"))
        .exits(1)
        .says("its output does not match /PASS: TestSum/");
    let checked = test.events("a", "checked");
    let report = &checked[0]["report"];
    assert_eq!(report["line"], "--- FAIL: TestSum (0.00s)");
    assert_eq!(
        report["tests"],
        serde_json::json!({"passed": 1, "failed": 1, "skipped": 0})
    );
    let plain = "--- FAIL: TestSum (0.00s)\n    a_test.go:9: got 4\nFAIL\n\
                 FAIL\texample.com/sum\t0.001s\n";
    let told = test.prompt("a", 1);
    assert!(told.contains(plain), "{told}");
    assert!(!told.contains("TestFine"), "{told}");
    let log = test.sh("cat .ralph/guardrail_0_*.log");
    assert!(log.ends_with(plain) && !log.contains("TestFine"), "{log}");
    test.ralph(&["rm", "a", "--force"]);
    test.sh("rm sum");
    run(&test, "touch sum", &expecting("(?s)\\Aok  \\S*")).exits(0);
    // The numbers of tests are the same when the checks run again.
    test.ralph(&["verify", "a"]).exits(0);
}

#[test]
fn flags_for_go_that_an_agent_stores_do_not_reach_the_second_look() {
    let test = project("true\n");
    let check = "printf '%s\\n' \"<$GOFLAGS>\"; test -e sum";
    let agent = "touch sum; mkdir -p ~/.config/go; echo GOFLAGS=-run=None > ~/.config/go/env";
    run(&test, agent, &["--check", check]).exits(0);
    let dir = "../state/loops/a/iterations/0001";
    let logs = test.sh(&format!("cat {dir}/*.log | grep '^<'"));
    assert!(logs.contains("<-test.v -run=None>\n"), "{logs}");
    let logs = test.sh(&format!("cat {dir}/*-original.log"));
    assert_eq!(logs, "<-test.v>\n");
}

#[test]
fn a_runner_that_names_its_tests_anyway_is_not_asked() {
    let test = Test::git().file("pytest.ini", "[pytest]\naddopts = -rA\n");
    let check = "echo \"<$PYTEST_ADDOPTS|$GOFLAGS>\"; : go vet; echo PASSED t.py::a";
    let args = ["run", "x", "--name", "a", "-m", "1", "--check", check];
    test.ralph(&[&args[..], &["--", "true"]].concat());
    let log = test.sh("cat ../state/loops/a/iterations/0001/*.log");
    assert!(log.contains("<|>\nPASSED t.py::a\n"), "{log}");
}

#[test]
fn a_report_that_the_command_names_is_read_also_in_the_view() {
    let report = |tests: &str| format!("<testsuite>{tests}</testsuite>");
    let case = |name: &str| format!("<testcase name=\"{name}\"/>");
    let start = report(&format!("{}{}", case("a"), case("b")));
    let test = Test::git()
        .file("in", &start)
        .file("tests/t.sh", "cp in \"$1\"; test -e done\n");
    test.sh("git add -A && git commit -qm start");
    let check = ["--check", "sh tests/t.sh out.xml"];
    let agent = format!("touch done; printf '%s' '{}' > in", report(&case("a")));
    let agent = format!("{agent}; echo '# more' >> tests/t.sh");
    run(&test, &agent, &check)
        .exits(3)
        .says("1 test of the start did not pass: `b`");
    let reports = test.events("a", "rechecked");
    assert_eq!(reports[0]["report"]["tests"]["passed"], 1, "{reports:?}");
}

#[test]
fn a_runner_that_counts_no_tests_any_more_is_asked_as_it_was() {
    let test = Test::git().file("out", "2 passed\n");
    test.sh("git add -A && git commit -qm start");
    let check = ["--check", "cat out"];
    run(&test, "echo fine > out", &check)
        .exits(3)
        .says("red (its output has no number of tests, 2 ran at the start)");
}

#[test]
fn a_build_has_no_tests() {
    let build = "printf '✓ %s modules transformed.\\nCopying files ... ok\\n' $(wc -c < page)";
    let test = Test::git().file("page", "a\n").file("build.sh", build);
    test.sh("git add -A && git commit -qm start");
    run(&test, "echo more > page", &["--check", "sh build.sh"]).exits(0);
    assert_eq!(test.events("a", "rechecked").len(), 0);
}

#[test]
fn a_check_is_green_only_if_its_output_matches() {
    let test = Test::git().file("status", "1 problem\n");
    test.sh("git add -A && git commit -qm start");
    let check = [
        "--check",
        "cat status",
        "--expect",
        "^0 problems$",
        "--check",
        "true",
    ];
    run(&test, "true", &check)
        .exits(1)
        .says("red (exit 0, but its output does not match /^0 problems$/");
    let told = test.prompt("a", 1);
    assert!(
        told.contains("exit 0, but its output does not match /^0 problems$/"),
        "{told}"
    );
    test.ralph(&["rm", "a", "--force"]);
    run(&test, "echo 0 problems > status", &check).exits(0);
}

#[test]
fn a_pattern_in_the_settings_belongs_to_its_check() {
    let test = Test::git().file(
        ".ralph/settings.toml",
        "[[checks]]\ncommand = \"echo fine\"\nexpect = \"good\"\n",
    );
    run(&test, "true", &[])
        .exits(1)
        .says("does not match /good/");
}

#[test]
fn a_pattern_without_a_check_or_that_is_invalid_is_an_error() {
    let test = Test::new();
    let fails = |args: &[&str], message: &str| {
        let args = [&["run", "x"][..], args, &["--", "true"]].concat();
        test.ralph(&args).exits(2).complains(message);
    };
    fails(
        &["--expect", "a", "--check", "true"],
        "--expect belongs to the --check before it, and there is none",
    );
    fails(
        &["--check", "true", "--expect", "a", "--expect", "b"],
        "--expect is given twice for the same --check",
    );
    fails(
        &["--check", "true", "--expect", "a("],
        "--expect \"a(\" is not a valid pattern",
    );
    fails(
        &["--check", "true", "--expect", "x*"],
        "--expect \"x*\" matches empty output",
    );
}

#[test]
fn parts_of_names_that_differ_from_run_to_run_are_not_compared() {
    let runner = "id=$(cat /proc/sys/kernel/random/uuid)
grep -q fixed code.py && result=ok || result=FAILED
echo \"test reads_$id ... ok\"
echo \"test writes /tmp/x.$$ ... ok\"
echo \"test sums at 0x7f$$$$ ... $result\"
echo 'test result: 2 passed; 0 failed'
test $result = ok
";
    let test = Test::git()
        .file("code.py", "broken\n")
        .file("run.sh", runner);
    test.sh("git add -A && git commit -qm start");
    let args = [&CHECK[..], &["--second-look", "always"]].concat();
    run(&test, "echo fixed > code.py", &args).exits(0);
    let names = test.read_loop("a", "start-tests/sh-run-sh");
    assert_eq!(
        names,
        "1 reads_<id>\n1 writes <path>\n! sums at <address>\n"
    );
}
