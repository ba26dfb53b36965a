//! Labels: what a check's results can prove, which extra runs that takes, and when a loop is refused.

use super::kit::{TestLoop, green, red};
use crate::engine::event::{CheckReport, Event, ProcessExit};
use crate::engine::label::{CheckLabel, CheckProbe, Label, WeakChecks};
use crate::engine::test_counts::TestCounts;
use crate::engine::weak_check::label_by_one_run;
use crate::engine::{Effect, ExitCode, Phase};

impl TestLoop {
    /// Returns a loop whose preflight has run these checks: `g` green, `r` red.
    fn preflighted(colors: &str, weak: WeakChecks) -> Self {
        let work = Self::new().checks(colors.len());
        let work = work.with(|plan| plan.proof.weak_checks = weak);
        work.open().check(colors)
    }

    /// Carries out the extra run that is ordered.
    fn probe(self, expected: (usize, CheckProbe), report: CheckReport) -> Self {
        let (check, probe) = expected;
        assert_eq!(self.orders(), [Effect::Probe { check, probe }]);
        let report = Some(report);
        self.feed(Event::Probed {
            check,
            probe,
            report,
        })
    }

    /// Records the labels, which must be ordered.
    fn label(self) -> Self {
        assert_eq!(self.orders(), [Effect::Label]);
        let labels = self.state.judge_labels();
        self.feed(Event::Labeled { labels })
    }

    fn labels(&self) -> Vec<CheckLabel> {
        let labels = self.state.label.labels.iter();
        labels.map(|label| label.label).collect()
    }

    fn replace_first(mut self, change: impl FnOnce(&mut CheckReport)) -> Self {
        change(self.state.checks[0].as_mut().expect("it has run"));
        self
    }
}

fn counted(passed: u64) -> CheckReport {
    CheckReport {
        tests: Some(TestCounts {
            passed,
            ..TestCounts::default()
        }),
        ..green()
    }
}

#[test]
fn a_loop_of_an_earlier_version_gets_no_labels() {
    let work = TestLoop::preflighted("r", WeakChecks::Unlabeled);
    assert!(matches!(work.state.phase, Phase::Running { .. }));
}

#[test]
fn a_red_check_runs_three_times_and_a_green_one_also_without_its_sources() {
    let work = TestLoop::preflighted("rg", WeakChecks::Refuse)
        .probe((0, CheckProbe::Again), red())
        .probe((0, CheckProbe::Again), red())
        .probe((1, CheckProbe::Again), green())
        .probe((1, CheckProbe::Again), green())
        .probe((1, CheckProbe::Emptied), red())
        .label();
    assert_eq!(work.labels(), [CheckLabel::Red, CheckLabel::Green]);
    assert!(matches!(work.state.phase, Phase::Running { .. }));
}

#[test]
fn a_check_that_differs_is_flaky_at_once() {
    let work = TestLoop::preflighted("g", WeakChecks::Refuse)
        .probe((0, CheckProbe::Again), red())
        .label();
    assert_eq!(work.labels(), [CheckLabel::Flaky]);
    let why = &work.state.label.labels[0].why;
    assert_eq!(why, "it was green, then red without a change");
}

#[test]
fn a_check_is_vacuous_if_it_passes_without_code() {
    let twice = |work: TestLoop| {
        work.probe((0, CheckProbe::Again), green())
            .probe((0, CheckProbe::Again), green())
    };
    let green_check = || twice(TestLoop::preflighted("g", WeakChecks::Refuse));
    // It looks at no source at all.
    let work = green_check()
        .probe((0, CheckProbe::Emptied), green())
        .probe((0, CheckProbe::Garbled), green())
        .label();
    assert_eq!(work.labels(), [CheckLabel::Vacuous]);
    // A linter has nothing to say about an empty file.
    let work = green_check()
        .probe((0, CheckProbe::Emptied), green())
        .probe((0, CheckProbe::Garbled), red())
        .label();
    assert_eq!(work.labels(), [CheckLabel::Green]);
    // Its tests import the code, and assert nothing.
    let work = green_check()
        .probe((0, CheckProbe::Emptied), counted(2))
        .label();
    assert_eq!(work.labels(), [CheckLabel::Vacuous]);
}

#[test]
fn extra_runs_are_bounded() {
    // A slow check gets none, and what a loop can spend on them is limited.
    for (ms, expected) in [(5000, 0), (1400, 2), (2000, 1), (900, 3)] {
        let work = TestLoop::preflighted("g", WeakChecks::Refuse);
        let mut work = work.replace_first(|first| first.ms = ms);
        let mut runs = 0;
        while let [Effect::Probe { check, probe }] = work.orders()[..] {
            let report = CheckReport {
                ms,
                ..if probe == CheckProbe::Again {
                    green()
                } else {
                    red()
                }
            };
            work = work.probe((check, probe), report);
            runs += 1;
        }
        assert_eq!(runs, expected, "{ms}");
        assert_eq!(work.label().labels(), [CheckLabel::Green]);
    }
}

#[test]
fn a_run_that_was_too_slow_or_impossible_says_nothing() {
    let slow = CheckReport {
        timed_out: true,
        ..red()
    };
    let work = TestLoop::preflighted("g", WeakChecks::Refuse)
        .probe((0, CheckProbe::Again), slow)
        .label();
    assert_eq!(work.labels(), [CheckLabel::Green]);
    // Without views, no check runs again.
    let work = TestLoop::preflighted("gg", WeakChecks::Refuse).feed(Event::Probed {
        check: 0,
        probe: CheckProbe::Again,
        report: None,
    });
    assert_eq!(work.label().labels(), [CheckLabel::Green; 2]);
}

#[test]
fn only_a_loop_whose_checks_are_all_broken_or_swallowed_is_refused() {
    let swallowed = Label::new(CheckLabel::Swallowed, "it is".into());
    let weak = |colors: &str, mode| {
        TestLoop::preflighted(colors, mode)
            .replace_first(|first| first.label = Some(swallowed.clone()))
    };
    let refused = weak("g", WeakChecks::Refuse).label();
    let outcome = refused.state.outcome().expect("an ending");
    assert_eq!(outcome.exit_code(), ExitCode::Usage);
    let detail = outcome.summary().detail;
    assert!(
        detail.contains("`make test0` is swallowed: it is"),
        "{detail}"
    );
    assert!(detail.contains("--weak-checks"), "{detail}");
    let accepted = weak("g", WeakChecks::Accept).label();
    assert!(matches!(accepted.state.phase, Phase::Running { .. }));
    let one_is_fine = weak("gr", WeakChecks::Refuse)
        .probe((1, CheckProbe::Again), red())
        .probe((1, CheckProbe::Again), red())
        .label();
    assert!(matches!(one_is_fine.state.phase, Phase::Running { .. }));
    assert_eq!(
        one_is_fine.labels(),
        [CheckLabel::Swallowed, CheckLabel::Red]
    );
}

#[test]
fn a_refused_loop_is_not_done_although_its_checks_are_green() {
    let swallowed = Label::new(CheckLabel::Swallowed, String::new());
    let work = TestLoop::new().checks(1).no_promise();
    let work = work.with(|plan| plan.proof.weak_checks = WeakChecks::Refuse);
    let work = work.open().check("g");
    let work = work.replace_first(|first| first.label = Some(swallowed));
    assert!(!work.label().is_done());
}

#[test]
fn checks_that_cannot_run_are_broken_and_missing_files_are_red() {
    let broken: &[(&str, i32, &str)] = &[
        ("npm test", 127, "> jest\nsh: 1: jest: not found"),
        ("npm test", 127, "bash: line 1: jest: command not found"),
        ("./check.sh", 126, "sh: 1: ./check.sh: Permission denied"),
        (
            "test 'x",
            2,
            "/bin/sh: 1: Syntax error: Unterminated quoted string",
        ),
        (
            "(",
            2,
            "sh: -c: line 2: syntax error: unexpected end of file",
        ),
        (
            "pytest --nope",
            4,
            "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --nope",
        ),
        (
            "cargo test --nope",
            1,
            "error: unexpected argument '--nope' found",
        ),
    ];
    let module = "/usr/bin/python3: No module named pytest";
    let broken = [broken, &[("python3 -m pytest", 1, module)]].concat();
    let red: &[(&str, i32, &str)] = &[
        ("python3 -m new", 1, "/usr/bin/python3: No module named new"),
        ("./check.sh", 127, "sh: 1: ./check.sh: not found"),
        ("sh run.sh", 127, "sh: 0: cannot open run.sh: No such file"),
        (
            "pytest tests/new.py",
            4,
            "ERROR: file or directory not found: tests/new.py",
        ),
        ("pytest", 5, "no tests ran in 0.01s"),
        (
            "make test",
            2,
            "make: *** No rule to make target 'test'.  Stop.",
        ),
        (
            "./tool --new",
            2,
            "tool: error: unrecognized arguments: --new",
        ),
        ("sh t.sh", 2, "t.sh: 3: Syntax error: \"fi\" unexpected"),
        ("npm test", 1, "1 failed"),
    ];
    let label = |(command, code, output): &(&str, i32, &str)| {
        let report = CheckReport {
            exit: ProcessExit::from_code(*code),
            ..CheckReport::default()
        };
        label_by_one_run(command, &report, output).map(|label| label.label)
    };
    for case in &broken {
        assert_eq!(label(case), Some(CheckLabel::Broken), "{case:?}");
    }
    for case in red {
        assert_eq!(label(case), None, "{case:?}");
    }
    // A test of an option that the code does not know yet.
    let output = "E   usage: tool [-h]\nE   tool: error: unrecognized arguments: --new\n1 failed";
    let ran = CheckReport {
        exit: ProcessExit::from_code(1),
        tests: Some(TestCounts::default()),
        ..CheckReport::default()
    };
    assert_eq!(label_by_one_run("pytest -q", &ran, output), None);
}

#[test]
fn a_command_that_hides_exit_codes_is_swallowed() {
    let swallowed = [
        "pytest || true",
        "pytest -q tests/ || :",
        "npm test 2>&1 | tail -20",
        "npm test |& tee log",
        "ruff check --exit-zero .",
        "make test; true",
        "make test || echo failed",
        "make test; exit 0;",
        "a && b || true",
        "pytest \"tests dir\" | cat",
    ];
    let plain = [
        "true",
        "pytest",
        "pytest && echo ok",
        "curl -s localhost | grep -q ok",
        "set -o pipefail; npm test | tail -5",
        "bash -c 'set -o pipefail; npm test | tail'",
        "test -f x || exit 1; echo ok",
        "if pytest; then true; fi",
        "sh -c 'pytest || true'",
        "x=$(pytest | tail -1); test \"$x\" = ok",
        "! grep -q x f",
        "grep -q '|| true' file",
        "(pytest || true) && make",
        "",
    ];
    for command in swallowed {
        let label = label_by_one_run(command, &green(), "").map(|label| label.label);
        assert_eq!(label, Some(CheckLabel::Swallowed), "{command}");
        assert_eq!(label_by_one_run(command, &red(), ""), None, "{command}");
    }
    for command in plain {
        assert_eq!(label_by_one_run(command, &green(), ""), None, "{command}");
    }
}

#[test]
fn output_that_says_failed_is_swallowed() {
    let swallowed = [
        "FAILED (failures=1)",
        "error: could not compile `x` (lib) due to 2 previous errors",
        "Found 3 errors in 1 file (checked 2 source files)",
        "make: *** [Makefile:2: test] Error 1",
        "✖ 3 problems (2 errors, 1 warning)",
        "===== 1 failed, 3 passed in 0.12s =====",
        "FAIL\texample.com/x\t0.01s",
        "BUILD FAILED in 2s",
    ];
    let fine = [
        "0 failed",
        "===== 4 passed in 0.12s =====",
        "test checks_failed ... ok",
        "✖ 3 problems (0 errors, 3 warnings)",
        "Found 0 files",
        "Found 0 errors. Watching for file changes.",
        "the build FAILED yesterday",
    ];
    for output in swallowed {
        let label = label_by_one_run("./t", &green(), output);
        assert_eq!(
            label.map(|label| label.label),
            Some(CheckLabel::Swallowed),
            "{output}"
        );
    }
    for output in fine {
        assert_eq!(label_by_one_run("./t", &green(), output), None, "{output}");
    }
    let report = CheckReport {
        tests: Some(TestCounts {
            failed: 2,
            ..TestCounts::default()
        }),
        ..green()
    };
    let label = label_by_one_run("./t", &report, "").expect("a label");
    assert_eq!(
        label.why,
        "it exits with 0, but its output says that 2 failed"
    );
}

#[test]
fn any_command_can_be_read() {
    let mut random = fastrand::Rng::with_seed(11);
    let parts = [
        "a", " ", "|", "||", "&", ";", "'", "\"", "\\", "$", "true", "\n", "é", ">", "2",
    ];
    for _ in 0..20_000 {
        let count = random.usize(0..12);
        let command: String = (0..count)
            .map(|_| parts[random.usize(0..parts.len())])
            .collect();
        label_by_one_run(&command, &green(), "");
    }
}

#[test]
fn the_prompt_names_flaky_checks() {
    use crate::engine::prompt::{PromptInputs, render};
    let work = TestLoop::preflighted("g", WeakChecks::Refuse)
        .probe((0, CheckProbe::Again), red())
        .label();
    let prompt = render(&work.state, &PromptInputs::default());
    assert!(
        prompt.contains("- The check `make test0` is flaky"),
        "{prompt}"
    );
}

#[test]
fn a_runner_that_is_killed_during_an_extra_run_is_followed_by_the_labels() {
    let work = TestLoop::preflighted("g", WeakChecks::Refuse)
        .probe((0, CheckProbe::Again), green())
        .open();
    assert_eq!(work.label().labels(), [CheckLabel::Green]);
}

#[test]
fn runs_of_the_same_kind_follow_each_other() {
    let again = (0..2).flat_map(|check| [(check, CheckProbe::Again); 2]);
    let mut work = TestLoop::preflighted("gg", WeakChecks::Refuse);
    for expected in again {
        work = work.probe(expected, green());
    }
    let work = work
        .probe((0, CheckProbe::Emptied), green())
        .probe((1, CheckProbe::Emptied), red())
        .probe((0, CheckProbe::Garbled), green())
        .label();
    assert_eq!(work.labels(), [CheckLabel::Vacuous, CheckLabel::Green]);
}

#[test]
fn a_loop_that_was_refused_is_labeled_again_when_it_is_resumed() {
    let swallowed = |report: &mut CheckReport| {
        report.label = Some(Label::new(CheckLabel::Swallowed, "it hides".into()));
    };
    let refused = TestLoop::preflighted("g", WeakChecks::Refuse).replace_first(swallowed);
    let work = refused.label().resume();
    assert!(work.is_checking(), "{:?}", work.state.phase);
    let again = work.check("g").replace_first(swallowed).label();
    assert!(again.state.outcome().is_some(), "{:?}", again.state.phase);
    assert_eq!(again.state.iteration, 0);
}

#[test]
fn a_held_out_check_that_does_not_run_is_not_the_running_one() {
    let work = TestLoop::new().checks(2).with(|plan| {
        plan.proof.weak_checks = WeakChecks::Refuse;
        plan.proof.checks[1].is_held_out = true;
    });
    let work = work.open();
    assert_eq!(work.state.running_check(), Some(0));
    let work = work.check("r");
    assert!(work.state.is_labeling());
    assert_eq!(work.state.running_check(), Some(0));
}
