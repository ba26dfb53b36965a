//! Lines that test runners print only because ralph asks for names.

use crate::engine::added_lines::{AskedGo, AskedNames, AskedPytest, without_added_lines};

/// Real outputs of the same tests, without and with ralph's options.
macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../testdata/test-runs/", $name))
    };
}

fn kept(output: &str, asked: AskedNames) -> String {
    let kept = without_added_lines(output.as_bytes(), asked);
    kept.map_or_else(
        || output.to_owned(),
        |kept| String::from_utf8(kept).unwrap(),
    )
}

fn pytest(shows_xpass: bool) -> AskedNames {
    AskedNames {
        pytest: Some(AskedPytest { shows_xpass }),
        go: Some(AskedGo::Unknown),
    }
}

fn go(how: AskedGo) -> AskedNames {
    AskedNames {
        pytest: Some(AskedPytest { shows_xpass: false }),
        go: Some(how),
    }
}

#[test]
fn what_is_left_of_pytest_is_what_it_prints_on_its_own() {
    for (plain, asked) in [
        (recorded!("pytest-plain.txt"), recorded!("pytest-asked.txt")),
        (
            recorded!("pytest-plain-q.txt"),
            recorded!("pytest-asked-q.txt"),
        ),
        (
            recorded!("pytest-plain-green.txt"),
            recorded!("pytest-asked-green.txt"),
        ),
    ] {
        assert_eq!(kept(asked, pytest(false)), plain);
        assert_eq!(kept(plain, pytest(false)), plain);
    }
    // The user can ask for some of it.
    let shown = kept(recorded!("pytest-asked.txt"), pytest(true));
    assert!(shown.contains("surprise") && shown.contains("\nXPASS tests/"));
    assert!(!shown.contains("\nPASSED tests/test_green.py"), "{shown}");
    // Colors are part of the lines.
    let colored = "\u{1b}[36m\u{1b}[1m=== short test summary info ===\u{1b}[0m\r\n\
                   \u{1b}[32mPASSED\u{1b}[0m a.py::\u{1b}[1mtest\u{1b}[0m\r\n=== 1 passed in 0.01s ===\n";
    assert_eq!(kept(colored, pytest(false)), "=== 1 passed in 0.01s ===\n");
    // A run that was cut short.
    let cut = "x\n=== short test summary info ===\nPASSED a.py::test\n";
    assert_eq!(kept(cut, pytest(false)), "x\n");
}

/// Returns the lines in any order: what a failed test logs is printed at another place.
fn lines(output: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = output.lines().map(str::trim).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn what_is_left_of_go_is_what_it_prints_on_its_own() {
    let (plain, asked) = (recorded!("go-plain.txt"), recorded!("go-asked.txt"));
    for how in [AskedGo::Packages, AskedGo::Unknown] {
        let left = kept(asked, go(how));
        // Printed before the first test: it could come from another program.
        let left = left.replacen("main says\n", "", 1);
        assert_eq!(lines(&left), lines(plain), "{left}");
        assert_eq!(kept(plain, go(how)), plain);
    }
    let (plain, asked) = (
        recorded!("go-plain-directory.txt"),
        recorded!("go-asked-directory.txt"),
    );
    for how in [AskedGo::Directory, AskedGo::Unknown] {
        assert_eq!(kept(asked, go(how)), plain);
    }
    let left = kept(asked, go(AskedGo::Packages));
    assert_eq!(left, "main says\nok  \texample.com/m/good\t0.01s\n");
}

#[test]
fn a_go_package_without_tests_or_end_is_no_exception() {
    let empty = "testing: warning: no tests to run\nPASS\nok  \tm\t0.01s [no tests to run]\n";
    let left = kept(empty, go(AskedGo::Packages));
    assert_eq!(left, "ok  \tm\t0.01s [no tests to run]\n");
    assert_eq!(kept(empty, go(AskedGo::Directory)), empty);
    let panicked = "=== RUN   TestA\n    a_test.go:3: so far\n--- PASS: TestA (0.00s)\n\
                    === RUN   TestB\npanic: boom\n\ngoroutine 1 [running]:\n";
    let left = kept(panicked, go(AskedGo::Packages));
    assert_eq!(left, "panic: boom\n\ngoroutine 1 [running]:\n");
}

#[test]
fn the_output_of_other_programs_stays() {
    let other = "=== RUN everything ===\n--- PASSED\nPASSED a.py::b\nPASS\nok 3 tests\n";
    assert_eq!(kept(other, pytest(false)), other);
    assert_eq!(kept(other, go(AskedGo::Packages)), other);
}
