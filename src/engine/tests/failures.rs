//! Failed iterations: which ones count, the rests between them, and their records.

use super::kit::{TestLoop, Transition};
use crate::engine::event::{AgentReport, Marker, Notice, ProcessExit, Request, RequestSource};
use crate::engine::failure::FailureKind;
use crate::engine::iteration::{IterationEnd, RECENT_MAX};
use crate::engine::outcome::WaitReason;
use crate::engine::{Effect, Limit, Outcome, Phase};

#[test]
fn five_failures_in_a_row_fail_the_loop() {
    let work = TestLoop::new().open().failures(4);
    assert_eq!(work.runs(), Some(5));
    assert_eq!(work.start().exit(1).limit(), Limit::Failures);
}

#[test]
fn a_success_resets_the_failure_count() {
    let work = TestLoop::new().open().failures(4).start().exit(0);
    assert_eq!(
        (work.state.consecutive_failures, work.state.total_failures),
        (0, 4)
    );
    assert_eq!(work.failures(4).runs(), Some(10));
}

#[test]
fn the_backoff_doubles_with_every_failure_up_to_its_cap() {
    let mut work = TestLoop::new()
        .with(|plan| (plan.limits.failures, plan.limits.iterations) = (None, None))
        .open();
    let mut rests = Vec::new();
    for _ in 0..70 {
        work = work.start().exit(1);
        let Phase::Resting { until_ms, .. } = work.state.phase else {
            panic!("{:?}", work.state.phase)
        };
        let rest = until_ms - work.state.clock_ms;
        rests.push(rest / 1000);
        assert_eq!(work.orders(), [Effect::WakeAt(until_ms)]);
        work = work.after(rest - 1);
        assert_eq!(work.runs(), None);
        work = work.after(1);
    }
    assert_eq!(rests[..10], [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    assert!(rests[10..].iter().all(|rest| *rest == 300));
}

#[test]
fn the_backoff_starts_again_after_a_success() {
    let work = TestLoop::new()
        .open()
        .failures(3)
        .start()
        .exit(0)
        .start()
        .exit(1);
    assert_eq!(work.state.rest_until_ms - work.state.clock_ms, 1000);
}

#[test]
fn the_delay_applies_after_every_iteration_and_never_shortens_a_backoff() {
    let work = || {
        TestLoop::new()
            .with(|plan| plan.rest.delay_ms = 1500)
            .open()
    };
    assert_eq!(work().start().exit(0).orders(), [Effect::WakeAt(1500)]);
    assert_eq!(work().start().exit(1).orders(), [Effect::WakeAt(1500)]);
    let second = work().failures(1).start().exit(1);
    assert_eq!(second.state.rest_until_ms - second.state.clock_ms, 2000);
    assert_eq!(
        work().runs(),
        Some(1),
        "there is no delay before the first iteration"
    );
}

/// Each row has the end of an iteration that follows two failures, and the expected numbers of
/// consecutive and total failures.
#[test]
fn only_some_ends_count_as_failures() {
    let rows: [(&str, Transition, u32, u32); 10] = [
        ("a bad exit", |work| work.exit(1), 3, 3),
        ("a signal", |work| work.end(AgentReport::default()), 3, 3),
        ("a success", |work| work.exit(0), 0, 2),
        ("a timeout", |work| work.after(7_200_000).exit(0), 3, 3),
        ("silence", |work| work.notice(Notice::Silence).exit(1), 2, 2),
        (
            "a screen that is never ready",
            |work| work.notice(Notice::Unready).exit(143),
            3,
            3,
        ),
        (
            "the pattern",
            |work| work.notice(Notice::Pattern).exit(143),
            0,
            2,
        ),
        (
            "a marker",
            |work| work.marker(Marker::Done).after(30_000).exit(143),
            0,
            2,
        ),
        (
            "a person",
            |work| work.ask(Request::PauseNow, RequestSource::Inbox).exit(1),
            2,
            2,
        ),
        ("a crash", TestLoop::open, 2, 2),
    ];
    for (name, end, in_a_row, total) in rows {
        let work = end(TestLoop::new()
            .checks(1)
            .no_preflight()
            .open()
            .failures_checked(2)
            .start());
        assert_eq!(
            (work.state.consecutive_failures, work.state.total_failures),
            (in_a_row, total),
            "{name}"
        );
    }
}

#[test]
fn the_exit_code_for_waiting_is_not_a_failure() {
    let work = || {
        TestLoop::new()
            .with(|plan| plan.agent.exit_waiting = Some(42))
            .open()
            .start()
    };
    let waiting = work().exit(42);
    assert_eq!(
        waiting.outcome(),
        Outcome::Waiting {
            why: WaitReason::Exit(42)
        }
    );
    assert_eq!(waiting.state.total_failures, 0);
    assert_eq!(work().exit(1).state.total_failures, 1);
    assert_eq!(
        work().notice(Notice::Silence).exit(42).state.outcome(),
        None,
        "ralph killed the agent"
    );
    let not_configured = TestLoop::new().open().start().exit(42);
    assert_eq!(
        (
            not_configured.state.outcome(),
            not_configured.state.total_failures
        ),
        (None, 1)
    );
    let killed = TestLoop::new().open().start().end(AgentReport {
        exit: ProcessExit {
            code: None,
            signal: Some(9),
        },
        ..AgentReport::default()
    });
    assert_eq!(
        killed.state.outcome(),
        None,
        "a missing code does not equal an unset one"
    );
}

#[test]
fn only_the_last_iterations_are_recorded() {
    let work = (0..30).fold(
        TestLoop::new()
            .with(|plan| plan.limits.iterations = None)
            .open(),
        |work, _| work.start().exit(0),
    );
    let numbers: Vec<u32> = work
        .state
        .recent
        .iter()
        .map(|iteration| iteration.number)
        .collect();
    assert_eq!(numbers, (11..=30).collect::<Vec<_>>());
    assert_eq!((numbers.len(), work.state.counted), (RECENT_MAX, 30));
}

#[test]
fn an_iteration_is_recorded_with_its_checks_and_claim() {
    let with_steps = TestLoop::new().open().start().end(AgentReport {
        steps: Some(4),
        ..AgentReport::default()
    });
    assert_eq!(with_steps.state.recent[0].steps, Some(4));
    let work = TestLoop::preflight("g")
        .start()
        .say("<promise>COMPLETE</promise>");
    assert_eq!(work.state.recent[0].checks, [None]);
    let work = work.check("r");
    let first = &work.state.recent[0];
    assert_eq!(
        (first.number, first.end, first.claimed),
        (1, IterationEnd::Exited, true)
    );
    assert!(!first.checks[0].as_ref().unwrap().is_green());
    let work = work.start().say("").check("g");
    assert!(
        !work.state.recent[0].checks[0].as_ref().unwrap().is_green(),
        "the first record keeps its own results"
    );
    assert!(work.state.recent[1].checks[0].as_ref().unwrap().is_green());
    assert!(!work.state.recent[1].claimed);
}

#[test]
fn an_error_is_recorded_only_for_a_failed_iteration() {
    let report = |code: i32| AgentReport {
        exit: ProcessExit::from_code(code),
        error: Some("no login".into()),
        denied: 2,
        denial: Some("ls".into()),
        ..AgentReport::default()
    };
    let waiting = TestLoop::new().with(|plan| plan.agent.exit_waiting = Some(42));
    let recorded = |work: TestLoop| work.state.recent.back().cloned().expect("an iteration");
    for (work, error) in [
        (
            TestLoop::new().open().start().end(report(1)),
            Some("no login"),
        ),
        (TestLoop::new().open().start().end(report(0)), None),
        (waiting.open().start().end(report(42)), None),
        (
            TestLoop::new()
                .open()
                .start()
                .ask(Request::StopNow, RequestSource::Inbox)
                .end(report(1)),
            None,
        ),
    ] {
        let last = recorded(work);
        assert_eq!(last.error.as_deref(), error, "{last:?}");
        assert_eq!((last.denied, last.denial.as_deref()), (2, Some("ls")));
    }
}

impl TestLoop {
    /// Fails `count` iterations, as `failures` does, with a red check after each.
    fn failures_checked(mut self, count: u32) -> Self {
        for _ in 0..count {
            self = self.start().exit(1).check("r").after(300_000);
        }
        self
    }
}

#[test]
fn journals_without_rules_keep_their_reactions_to_failures() {
    let failed = |kind: FailureKind| AgentReport {
        exit: ProcessExit::from_code(1),
        reason: Some(kind.into()),
        ..AgentReport::default()
    };
    let work = || TestLoop::new().first_rules().open().start();
    let denied = work().end(failed(FailureKind::Denied)).outcome();
    assert_eq!(denied.summary().why, "permission");
    let late = work()
        .notice(Notice::Silence)
        .end(failed(FailureKind::UsageLimit));
    assert_eq!((late.state.counted, late.runs()), (1, Some(2)));
}
