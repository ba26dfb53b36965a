//! Numbers of tests, as test runners print them.

use crate::engine::test_counts::TestCounts;
use crate::engine::test_run::TestRunReader;

fn read(output: &str) -> Option<[u64; 3]> {
    let mut reader = TestRunReader::default();
    output.lines().for_each(|line| reader.line(line));
    let counts = reader.finish(&[]).counts;
    counts.map(|counts| [counts.passed, counts.failed, counts.skipped])
}

#[test]
fn summaries_of_test_runners_are_read() {
    let table: &[(&str, &str, [u64; 3])] = &[
        (
            "cargo test",
            "running 2 tests\ntest result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\n   Doc-tests x\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s\n",
            [14, 0, 1],
        ),
        (
            "cargo test, red",
            "test result: FAILED. 11 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            [11, 1, 0],
        ),
        (
            "nextest",
            "     Summary [  34.043s] 344 tests run: 343 passed (2 slow), 1 failed, 278 skipped",
            [343, 1, 278],
        ),
        (
            "pytest",
            "===== 3 passed, 1 skipped in 0.12s =====",
            [3, 0, 1],
        ),
        (
            "pytest -q",
            "1 failed, 3 passed, 2 warnings in 0.12s",
            [3, 1, 0],
        ),
        (
            "pytest, every kind",
            "== 1 failed, 2 passed, 1 skipped, 4 deselected, 1 xfailed, 1 xpassed, 2 errors in 61.05s (0:01:01) ==",
            [3, 3, 2],
        ),
        (
            "unittest",
            "..s.\n----------\nRan 4 tests in 0.001s\n\nOK (skipped=1)",
            [3, 0, 1],
        ),
        (
            "unittest, red",
            "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1)",
            [3, 2, 0],
        ),
        (
            "go test -v",
            "=== RUN   TestSum\n--- PASS: TestSum (0.00s)\n    --- PASS: TestSum/one (0.00s)\n--- SKIP: TestBig (0.00s)\nPASS\nok  \texample/sum\t0.002s",
            [2, 0, 1],
        ),
        (
            "node --test",
            "✔ adds (0.5ms)\nℹ tests 4\nℹ suites 0\nℹ pass 3\nℹ fail 0\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\nℹ duration_ms 40.1",
            [3, 0, 1],
        ),
        (
            "node --test, TAP",
            "TAP version 13\nok 1 - adds\nnot ok 2 - sums\n1..2\n# tests 2\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0",
            [1, 1, 0],
        ),
        (
            "jest",
            "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 2 skipped, 3 passed, 6 total\nSnapshots:   1 passed, 1 total\nTime:        0.5 s",
            [3, 1, 2],
        ),
        (
            "vitest",
            " Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 2 passed | 1 skipped (4)\n   Duration  300ms",
            [2, 1, 1],
        ),
        (
            "mocha",
            "  3 passing (10ms)\n  1 pending\n  1 failing",
            [3, 1, 1],
        ),
        (
            "TAP",
            "1..3\nok 1 - a\nok 2 - b # SKIP no net\nnot ok 3 - c",
            [1, 1, 1],
        ),
        (
            "prove",
            "t/sum.t .. ok\nAll tests successful.\nFiles=1, Tests=3,  0 wallclock secs ( 0.02 usr +  0.00 sys =  0.02 CPU)\nResult: PASS",
            [3, 0, 0],
        ),
        (
            "prove, red",
            "t/sum.t .. \nDubious, test returned 1 (wstat 256, 0x100)\nFailed 1/3 subtests \n\nFiles=1, Tests=3,  0 wallclock secs\nResult: FAIL",
            [2, 1, 0],
        ),
        ("a script", "checking\nok: 7", [7, 0, 0]),
        ("another script", "bad: 1 of 4", [3, 1, 0]),
        ("one more", "5 tests passed, 0 tests failed", [5, 0, 0]),
    ];
    for (runner, output, counts) in table {
        assert_eq!(read(output), Some(*counts), "{runner}");
    }
}

#[test]
fn other_lines_are_not_summaries() {
    for output in [
        "",
        "the build passed",
        "I think 3 passed and you should merge it",
        "lint: 3 failed attempts to connect to db",
        "Test Files  1 passed (1)",
        "Ran 5 tests in 0.001s",
        "bad: 0",
        "ok  \texample/sum\t0.002s",
        "warning: 2 errors emitted while parsing config",
    ] {
        assert_eq!(read(output), None, "{output:?}");
    }
}

#[test]
fn a_check_falls_short_if_it_ran_less_than_at_the_start() {
    let counts = |passed, failed, skipped| {
        let mut counts = TestCounts::default();
        (counts.passed, counts.failed, counts.skipped) = (passed, failed, skipped);
        counts
    };
    let start = counts(3, 1, 1);
    let short = |now: TestCounts| TestCounts::shortfall(Some(now), start);
    assert_eq!(short(counts(4, 0, 1)), None);
    assert_eq!(short(counts(9, 0, 0)), None);
    assert_eq!(
        short(counts(3, 0, 1)).unwrap(),
        "3 tests ran, 4 at the start"
    );
    assert_eq!(
        short(counts(4, 0, 2)).unwrap(),
        "2 tests were skipped, 1 at the start"
    );
    assert_eq!(
        TestCounts::shortfall(None, start).unwrap(),
        "its output has no number of tests, 4 ran at the start"
    );
    // Such a script may count only failures.
    assert_eq!(TestCounts::shortfall(None, counts(0, 3, 0)), None);
    assert_eq!(
        counts(4, 2, 0).failures().unwrap(),
        "its output says that 2 failed"
    );
    assert_eq!(counts(1, 0, 5).failures(), None);
}
