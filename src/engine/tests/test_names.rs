//! Names of tests, as test runners print them.

use crate::engine::test_counts::TestCounts;
use crate::engine::test_names::{MissingTests, TestNames};
use crate::engine::test_run::{TestRun, TestRunReader};

fn read(output: &str) -> TestRun {
    let mut reader = TestRunReader::default();
    output.lines().for_each(|line| reader.line(line));
    reader.finish(&[])
}

/// Real outputs, each of a run with a test that failed, and what they say.
macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../testdata/test-runs/", $name))
    };
}

#[test]
fn names_are_read_from_the_output_of_real_runners() {
    let table: &[(&str, &str, [u64; 3], &str)] = &[
        (
            "pytest, as ralph asks it",
            recorded!("pytest.txt"),
            [4, 1, 2],
            "1 tests/test_a.py::TestC::test_m\n1 tests/test_a.py::test_ok\n\
             1 tests/test_a.py::test_p[1 2]\n1 tests/test_a.py::test_p[\\xe9\\n]\n\
             ! tests/test_a.py::test_bad - assert 1 == 2\n",
        ),
        (
            "go test, as ralph asks it",
            recorded!("go.txt"),
            [3, 1, 1],
            "1 TestOk\n1 TestOk/sub_one\n1 TestPar\n! TestSum\n",
        ),
        (
            "cargo test",
            recorded!("cargo.txt"),
            [3, 1, 1],
            "1 src/lib.rs - sum\n1 tests::adds\n1 tests::panics\n! tests::fails\n",
        ),
        (
            "nextest",
            recorded!("nextest.txt"),
            [2, 1, 1],
            "1 sums tests::adds\n1 sums tests::panics\n! sums tests::fails\n",
        ),
        (
            "unittest -v",
            recorded!("unittest.txt"),
            [1, 2, 1],
            "1 test_ok (test_u.U.test_ok)\n! test_bad (test_u.U.test_bad)\n",
        ),
        (
            "node --test",
            recorded!("node-spec.txt"),
            [2, 2, 1],
            "1 adds one\n1 top\n! bad\n! s\n",
        ),
        (
            "node --test, TAP",
            recorded!("node-tap.txt"),
            [2, 2, 1],
            "1 adds one\n1 top\n! bad\n! s\n",
        ),
        (
            "jest",
            recorded!("jest.txt"),
            [1, 1, 1],
            "1 adds one\n! bad\n",
        ),
        ("vitest", recorded!("vitest.txt"), [2, 1, 1], ""),
        (
            "vitest --reporter=verbose",
            recorded!("vitest-verbose.txt"),
            [2, 1, 1],
            "1 a.test.js > s > adds one\n1 b.test.js > b1\n! a.test.js > s > bad\n",
        ),
        (
            "mocha",
            recorded!("mocha.txt"),
            [2, 1, 1],
            "1 adds one\n1 slow\n",
        ),
        ("prove", recorded!("prove.txt"), [2, 1, 0], ""),
        (
            "prove -v",
            recorded!("prove-verbose.txt"),
            [2, 1, 0],
            "1 one\n! two\n",
        ),
        (
            "JUnit's XML on the output",
            recorded!("junit.xml"),
            [4, 1, 2],
            "1 tests.test_a test_ok\n1 tests.test_a test_p[1 2]\n1 tests.test_a test_p[\\xe9\\n]\n\
             1 tests.test_a.TestC test_m\n! tests.test_a test_bad\n",
        ),
    ];
    for (runner, output, counts, names) in table {
        let run = read(output);
        let found = run.counts.unwrap_or_default();
        let found = [found.passed, found.failed, found.skipped];
        assert_eq!(found, *counts, "{runner}");
        assert_eq!(run.names.to_text(), *names, "{runner}");
        assert_eq!(TestNames::from_text(&run.names.to_text()), run.names);
    }
}

/// Reads output with a summary, without which dots mean nothing.
fn read_summed(output: &str) -> TestRun {
    read(&format!("{output}\ntest result: ok. 1 passed; 0 failed"))
}

fn missing(start: &str, now: &str) -> Option<MissingTests> {
    read_summed(now).names.missing(&read_summed(start).names)
}

#[test]
fn steps_of_a_build_are_not_tests() {
    let build = "✓ 34 modules transformed.\n✓ built in 1.20s\n✓ Generating static pages (5/5)\n\
                 ✖ lint\nInstalling dependencies ... ok\ntest connection ... ok\n";
    assert_eq!(read(build), TestRun::default());
    let names = |tests: &str| read(&format!("{build}{tests}")).names.to_text();
    let jest = names("✓ adds (2 ms)\nTests: 1 passed, 1 total");
    assert!(
        !jest.contains("modules") && !jest.contains("pages"),
        "{jest}"
    );
    assert!(jest.contains("1 adds\n"), "{jest}");
    let cargo = names("test sums ... ok\ntest result: ok. 1 passed; 0 failed");
    assert!(!cargo.contains("Installing"), "{cargo}");
    assert!(cargo.contains("1 sums\n"), "{cargo}");
}

#[test]
fn a_test_of_unittest_may_have_a_description() {
    let output = "test_a (t.T.test_a)\nAdds two numbers. ... ok\ntest_b (t.T.test_b) ... ok\n\
                  test_c (t.T.test_c) (i=1) ... FAIL\nCopying files ... ok\n\n\
                  Ran 3 tests in 0.001s\n\nFAILED (failures=1)";
    assert_eq!(
        read(output).names.to_text(),
        "1 Adds two numbers.\n1 test_b (t.T.test_b)\n! test_c (t.T.test_c) (i=1)\n"
    );
}

#[test]
fn a_run_without_names_misses_the_tests_that_a_green_start_named() {
    let counts = |passed| {
        Some(TestCounts {
            passed,
            ..TestCounts::default()
        })
    };
    let named = read_summed("test a ... ok").names;
    let none = TestNames::default();
    for now in [None, counts(1)] {
        let missing = none.compare(now, &named, counts(1)).expect("a is missing");
        assert_eq!(missing.names, ["a"]);
    }
    // The start named only some tests, or named them because one failed.
    assert_eq!(none.compare(counts(2), &named, counts(2)), None);
    let failed = read_summed("test a ... ok\ntest b ... FAILED").names;
    assert_eq!(none.compare(counts(2), &failed, counts(1)), None);
    let mut cut = none;
    cut.is_cut = true;
    assert_eq!(cut.compare(counts(1), &named, counts(1)), None);
}

#[test]
fn only_a_report_is_read_as_one() {
    let summary = "test a ... ok\ntest result: ok. 3 passed; 0 failed";
    let passed = |output: &str| read(output).counts.map(|counts| counts.passed);
    for start in [
        "expected <testsuite> in it",
        "<testsuites>",
        "<testsuite></testsuite>",
    ] {
        let run = read(&format!("{start}\n{summary}"));
        assert_eq!(run.counts.map(|counts| counts.passed), Some(3), "{start}");
        assert_eq!(run.names.to_text(), "1 a\n", "{start}");
    }
    let suite = "x <testsuite name='s'>\n<testcase name='a'/>\n</testsuite>";
    assert_eq!(passed(&format!("{suite}\n{suite}\n")), Some(2));
    assert_eq!(passed(&format!("{suite}\n{summary}")), Some(3));
    let suites = format!("<testsuites>\n{suite}\n{suite}\n</testsuites>");
    assert_eq!(passed(&suites), Some(2));
}

#[test]
fn a_test_of_the_start_that_does_not_pass_is_missing() {
    let start = "test a ... ok\ntest b ... FAILED\ntest c ... ignored\n";
    assert_eq!(missing(start, "test a ... ok\ntest b ... ok\n"), None);
    let names = |now: &str| missing(start, now).unwrap().names;
    assert_eq!(names("test a ... ok\ntest d ... ok\n"), ["b"]);
    assert_eq!(names("test a ... ok\ntest b ... ignored\n"), ["b"]);
    assert_eq!(names("test x ... ok\n"), ["a", "b"]);
    // Two tests of the same name, one of them gone.
    let twice = "test a ... ok\ntest a ... ok\n";
    assert_eq!(missing(twice, "test a ... ok\n").unwrap().names, ["a"]);
    assert_eq!(missing(twice, twice), None);
}

#[test]
fn a_name_with_a_message_after_it_is_found_again() {
    let start = "FAILED t.py::test[a - b] - assert 0\nERROR t.py - ImportError\n";
    assert_eq!(missing(start, "PASSED t.py::test[a - b]\n"), None);
    let gone = missing(start, "PASSED t.py::other\n").unwrap();
    assert_eq!(gone.names, ["t.py::test[a"]);
}

#[test]
fn a_test_that_passes_only_when_tried_again_is_not_missing() {
    let flaky = "  TRY 1 FAIL [   0.1s] (1/1) p a\n  TRY 2 PASS [   0.1s] (1/1) p a\n";
    assert_eq!(missing(flaky, "  PASS [   0.1s] (1/1) p a\n"), None);
}

#[test]
fn names_are_compared_only_if_every_passed_test_has_one() {
    let counts = |passed| {
        Some(TestCounts {
            passed,
            ..TestCounts::default()
        })
    };
    let names = read_summed("test a ... ok\n").names;
    assert!(names.is_complete(None) && names.is_complete(counts(1)));
    assert!(!names.is_complete(counts(2)));
    let mut cut = names;
    cut.is_cut = true;
    assert!(!cut.is_complete(counts(1)));
}

#[test]
fn many_and_long_names_are_bounded() {
    let mut reader = TestRunReader::default();
    for number in 0..250_000 {
        reader.line(&format!("test {number} ... ok"));
    }
    reader.line("test result: ok. 250000 passed; 0 failed");
    let names = reader.finish(&[]).names;
    assert!(names.is_cut && names.to_text().lines().count() == 200_000);
    let long = |end: &str| format!("test {}{end} ... ok", "é".repeat(1500));
    let names = read_summed(&format!("{}\n{}", long("a"), long("b"))).names;
    let text = names.to_text();
    assert!(text.lines().count() == 2 && text.len() < 1000, "{text}");
}

#[test]
fn reports_that_are_broken_are_read_as_far_as_possible() {
    let report = |rest: &str| {
        let run = read(&format!("<testsuite><testcase name='a'/>{rest}"));
        (run.counts.unwrap().passed, run.names.is_cut)
    };
    assert_eq!(report("<testcase name='b&lt;'/></testsuite>"), (2, false));
    assert_eq!(report("<testcase name='b'><system-out>"), (1, true));
    assert_eq!(report("<testcase name='b' <<<"), (1, true));
    assert_eq!(read("<testsuite></testsuite>").counts, None);
}
