//! Limits, failures and rests: what is counted, what is not, and when the next iteration may begin.

use super::kit::{Loop, Way};
use crate::engine::event::{Change, Door, Event, Exit, Marker, Notice, Report, Wish};
use crate::engine::state::{How, REMEMBERED};
use crate::engine::{Effect, Limit, Outcome, Phase};

fn set(work: Loop, limit: Change) -> Loop {
    work.feed(Event::Changed { limit, inbox: None })
}

fn spend(work: Loop, usd: Option<f64>) -> Loop {
    work.start().end(Report {
        exit: Exit::code(0),
        cost_usd: usd,
        ..Report::default()
    })
}

#[test]
fn nothing_starts_beyond_the_limit_of_iterations() {
    let work = Loop::new().at_most(2).open().start().exit(0);
    assert_eq!(work.runs(), Some(2));
    assert_eq!(work.start().exit(0).limit(), Limit::Iterations);
    let endless = Loop::new()
        .with(|plan| plan.limits.iterations = None)
        .open();
    assert_eq!(
        (0..100)
            .fold(endless, |work, _| work.start().exit(0))
            .runs(),
        Some(101)
    );
}

#[test]
fn the_last_iteration_may_still_prove_the_work() {
    let work = Loop::new()
        .checks(1)
        .at_most(1)
        .open()
        .check("r")
        .start()
        .exit(0)
        .check("g");
    assert!(work.is_done());
}

#[test]
fn nothing_starts_beyond_the_budget() {
    let work = Loop::new()
        .with(|plan| plan.limits.cost_usd = Some(1.0))
        .open();
    let work = spend(work, Some(0.75));
    assert_eq!(
        (work.runs(), work.state.known_cost()),
        (Some(2), Some(0.75))
    );
    assert_eq!(spend(work, Some(0.25)).limit(), Limit::Cost);
}

#[test]
fn a_cost_that_one_iteration_did_not_tell_is_unknown() {
    let work = spend(spend(spend(Loop::new().open(), Some(0.5)), None), Some(0.5));
    assert_eq!((work.state.known_cost(), work.state.cost_usd), (None, 1.0));
}

#[test]
fn the_loops_time_kills_the_running_iteration() {
    let work = Loop::new()
        .with(|plan| plan.limits.time_ms = Some(10_000))
        .open()
        .after(4000)
        .start();
    assert_eq!(
        work.orders(),
        [Effect::Run { iteration: 1 }, Effect::WakeAt(10_000)]
    );
    let work = work.after(5999);
    assert_eq!(work.runs(), Some(1));
    let work = work.after(1);
    assert_eq!(work.kills(), Some(false));
    let work = work.exit(143);
    assert_eq!((work.limit(), work.state.total_failures), (Limit::Time, 0));
    assert_eq!(work.state.recent[0].how, How::OutOfTime);
}

#[test]
fn time_counts_while_checking_and_resting_but_not_while_paused_or_ended() {
    let mut work = Loop::new().checks(1);
    let mut expected = 0;
    let mut pass = |work: Loop, counts: bool| {
        expected += if counts { 100 } else { 0 };
        let work = work.after(100);
        assert_eq!(work.state.active_ms, expected, "{:?}", work.state.phase);
        work
    };
    work = pass(work, false).open();
    work = pass(work, true).check("g");
    work = pass(work, true).start();
    work = pass(work, true).exit(1);
    work = pass(work, true).check("g");
    assert!(matches!(work.state.phase, Phase::Resting { .. }));
    work = pass(work, true).ask(Wish::Pause, Door::Inbox);
    work = pass(work, false).resume().start().notice(Notice::Silence);
    work = pass(work, true).exit(0).fault();
    work = pass(work, false);
    assert_eq!(work.state.clock_ms, 900);
}

#[test]
fn a_rest_ends_when_the_loops_time_does() {
    let work = Loop::new()
        .with(|plan| plan.limits.time_ms = Some(500))
        .open()
        .start()
        .exit(1);
    assert_eq!(work.orders(), [Effect::WakeAt(500)]);
    assert_eq!(work.after(500).limit(), Limit::Time);
}

#[test]
fn nothing_starts_after_its_time_even_if_it_was_ordered_before() {
    let work = Loop::new()
        .with(|plan| plan.limits.time_ms = Some(500))
        .open();
    assert_eq!(work.runs(), Some(1));
    assert_eq!(work.after(500).limit(), Limit::Time);
}

#[test]
fn an_overrun_is_a_failure() {
    let work = Loop::new()
        .with(|plan| plan.limits.iteration_ms = Some(5000))
        .open()
        .after(100)
        .start();
    assert_eq!(
        work.orders(),
        [Effect::Run { iteration: 1 }, Effect::WakeAt(5100)]
    );
    let work = work.after(4999);
    assert_eq!(work.runs(), Some(1));
    let work = work.after(1);
    assert_eq!(
        work.orders(),
        [Effect::Kill {
            iteration: 1,
            hard: false
        }]
    );
    let work = work.exit(0);
    assert_eq!(
        (work.state.consecutive_failures, work.state.total_failures),
        (1, 1)
    );
    assert_eq!(work.state.recent[0].how, How::TimedOut);
}

#[test]
fn without_limits_there_is_no_alarm() {
    let work = Loop::new()
        .with(|plan| plan.limits.iteration_ms = None)
        .open();
    assert_eq!(work.orders(), [Effect::Run { iteration: 1 }]);
    assert_eq!(
        work.start().after(u64::MAX).orders(),
        [Effect::Run { iteration: 1 }]
    );
}

#[test]
fn of_two_alarms_the_earlier_is_the_reason() {
    let both = |iteration, time| {
        let work = Loop::new().with(|plan| {
            plan.limits.iteration_ms = Some(iteration);
            plan.limits.time_ms = Some(time);
        });
        work.open().start().after(5000).exit(0).state.recent[0].how
    };
    assert_eq!(both(1000, 2000), How::TimedOut);
    assert_eq!(both(2000, 1000), How::OutOfTime);
    assert_eq!(
        both(1000, 1000),
        How::OutOfTime,
        "the loop's end is not the agent's fault"
    );
}

#[test]
fn five_failures_in_a_row_fail_the_loop() {
    let work = Loop::new().open().failures(4);
    assert_eq!(work.runs(), Some(5));
    assert_eq!(work.start().exit(1).limit(), Limit::Failures);
}

#[test]
fn a_good_exit_resets_the_count() {
    let work = Loop::new().open().failures(4).start().exit(0);
    assert_eq!(
        (work.state.consecutive_failures, work.state.total_failures),
        (0, 4)
    );
    assert_eq!(work.failures(4).runs(), Some(10));
}

#[test]
fn the_rest_doubles_with_every_failure_up_to_its_cap() {
    let mut work = Loop::new()
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
fn the_backoff_starts_again_after_a_good_exit() {
    let work = Loop::new()
        .open()
        .failures(3)
        .start()
        .exit(0)
        .start()
        .exit(1);
    assert_eq!(work.state.rest_until_ms - work.state.clock_ms, 1000);
}

#[test]
fn a_delay_rests_after_good_exits_too_and_never_shortens_a_backoff() {
    let work = || Loop::new().with(|plan| plan.rest.delay_ms = 1500).open();
    assert_eq!(work().start().exit(0).orders(), [Effect::WakeAt(1500)]);
    assert_eq!(work().start().exit(1).orders(), [Effect::WakeAt(1500)]);
    let second = work().failures(1).start().exit(1);
    assert_eq!(second.state.rest_until_ms - second.state.clock_ms, 2000);
    assert_eq!(work().runs(), Some(1), "none before the first");
}

/// Way of ending, failures in a row after two before it, failures in all.
#[test]
fn who_is_to_blame() {
    let ways: [(&str, Way, u32, u32); 10] = [
        ("a bad exit", |work| work.exit(1), 3, 3),
        ("a death", |work| work.end(Report::default()), 3, 3),
        ("a good exit", |work| work.exit(0), 0, 2),
        ("an overrun", |work| work.after(7_200_000).exit(0), 3, 3),
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
            |work| work.ask(Wish::PauseNow, Door::Inbox).exit(1),
            2,
            2,
        ),
        ("a crash", Loop::open, 2, 2),
    ];
    for (name, way, in_a_row, in_all) in ways {
        let work = way(Loop::new()
            .checks(1)
            .no_preflight()
            .open()
            .failures_checked(2)
            .start());
        assert_eq!(
            (work.state.consecutive_failures, work.state.total_failures),
            (in_a_row, in_all),
            "{name}"
        );
    }
}

impl Loop {
    /// As `failures`, with a red check after each.
    fn failures_checked(mut self, count: u32) -> Self {
        for _ in 0..count {
            self = self.start().exit(1).check("r").after(300_000);
        }
        self
    }
}

#[test]
fn the_exit_that_means_waiting_is_no_failure() {
    let work = || {
        Loop::new()
            .with(|plan| plan.agent.exit_waiting = Some(42))
            .open()
            .start()
    };
    let waiting = work().exit(42);
    assert_eq!(
        waiting.outcome(),
        Outcome::Waiting {
            why: "exit 42".into()
        }
    );
    assert_eq!(waiting.state.total_failures, 0);
    assert_eq!(work().exit(1).state.total_failures, 1);
    assert_eq!(
        work().notice(Notice::Silence).exit(42).state.outcome(),
        None,
        "that was our own kill"
    );
    let unasked = Loop::new().open().start().exit(42);
    assert_eq!(
        (unasked.state.outcome(), unasked.state.total_failures),
        (None, 1)
    );
    let killed = Loop::new().open().start().end(Report {
        exit: Exit {
            code: None,
            signal: Some(9),
        },
        ..Report::default()
    });
    assert_eq!(
        killed.state.outcome(),
        None,
        "no code is not the code that was not asked for"
    );
}

#[test]
fn limits_can_be_changed_while_the_agent_runs() {
    let work = || Loop::new().open().start();
    assert_eq!(
        set(work(), Change::MaxIterations(Some(1))).exit(0).limit(),
        Limit::Iterations
    );
    assert_eq!(
        set(work(), Change::MaxFailures(Some(1))).exit(1).limit(),
        Limit::Failures
    );
    let broke = set(work(), Change::MaxCost(Some(0.5)));
    assert_eq!(
        broke
            .end(Report {
                cost_usd: Some(0.5),
                ..Report::default()
            })
            .limit(),
        Limit::Cost
    );
    let late = set(work().after(2000), Change::MaxTime(Some(1000)));
    assert_eq!(
        late.orders(),
        [Effect::Run { iteration: 1 }, Effect::WakeAt(1000)]
    );
    assert_eq!(late.after(0).kills(), Some(false));
}

#[test]
fn limits_can_be_changed_between_iterations() {
    let resting = || Loop::new().open().start().exit(1).after(500);
    assert_eq!(
        set(resting(), Change::MaxIterations(Some(1))).limit(),
        Limit::Iterations
    );
    assert_eq!(
        set(resting(), Change::MaxTime(Some(500))).limit(),
        Limit::Time
    );
    assert_eq!(
        set(resting(), Change::MaxFailures(Some(1))).limit(),
        Limit::Failures
    );
    let about_to_run = Loop::new().open().start().exit(0);
    assert_eq!(
        set(about_to_run, Change::MaxIterations(Some(1))).limit(),
        Limit::Iterations
    );
}

#[test]
fn a_lifted_limit_is_none() {
    let work = set(
        Loop::new().at_most(1).open().start(),
        Change::MaxIterations(None),
    )
    .exit(0);
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn a_marker_in_mid_run_gives_the_agent_its_grace() {
    let work = Loop::new()
        .open()
        .after(1000)
        .start()
        .after(500)
        .marker(Marker::Done);
    assert_eq!(
        work.orders(),
        [Effect::Run { iteration: 1 }, Effect::WakeAt(31_500)]
    );
    let again = work.clone().after(1000).marker(Marker::Blocked);
    assert_eq!(
        again.orders()[1],
        Effect::WakeAt(31_500),
        "a second marker grants no more time"
    );
    assert!(
        work.clone().after(29_999).exit(0).is_done(),
        "it went by itself"
    );
    let killed = work.after(30_000);
    assert_eq!(killed.kills(), Some(false));
    let killed = killed.exit(143);
    assert!(killed.is_done());
    assert_eq!(killed.state.recent[0].how, How::Marked);
}

#[test]
fn only_the_last_iterations_are_remembered() {
    let work = (0..30).fold(
        Loop::new()
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
    assert_eq!((numbers.len(), work.state.counted), (REMEMBERED, 30));
}

#[test]
fn an_iteration_is_remembered_with_its_checks_and_claim() {
    let taken = Loop::new().open().start().end(Report {
        steps: Some(4),
        ..Report::default()
    });
    assert_eq!(taken.state.recent[0].steps, Some(4));
    let work = Loop::preflight("g")
        .start()
        .say("<promise>COMPLETE</promise>");
    assert_eq!(work.state.recent[0].checks, [None]);
    let work = work.check("r");
    let first = &work.state.recent[0];
    assert_eq!(
        (first.number, first.how, first.claimed),
        (1, How::Exited, true)
    );
    assert!(!first.checks[0].as_ref().unwrap().is_green());
    let work = work.start().say("").check("g");
    assert!(
        !work.state.recent[0].checks[0].as_ref().unwrap().is_green(),
        "the first keeps its own"
    );
    assert!(work.state.recent[1].checks[0].as_ref().unwrap().is_green());
    assert!(!work.state.recent[1].claimed);
}

#[test]
fn only_a_marker_gives_the_agent_its_last_seconds() {
    let stops_at = |marker: Marker| match Loop::new().open().start().marker(marker).state.phase {
        Phase::Running {
            started: true,
            stop_at_ms,
            ..
        } => stop_at_ms,
        other => panic!("{other:?}"),
    };
    for marker in [Marker::Done, Marker::Blocked, Marker::Wait] {
        assert!(stops_at(marker).is_some(), "{marker:?}");
    }
    assert_eq!(
        stops_at(Marker::File),
        None,
        "it may be there from an earlier iteration"
    );
}

#[test]
fn an_error_is_remembered_of_an_iteration_that_failed_and_of_no_other() {
    let report = |code: i32| Report {
        exit: Exit::code(code),
        error: Some("no login".into()),
        denied: 2,
        denial: Some("ls".into()),
        ..Report::default()
    };
    let waiting = Loop::new().with(|plan| plan.agent.exit_waiting = Some(42));
    let remembered = |work: Loop| work.state.recent.back().cloned().expect("an iteration");
    for (work, error) in [
        (Loop::new().open().start().end(report(1)), Some("no login")),
        (Loop::new().open().start().end(report(0)), None),
        (waiting.open().start().end(report(42)), None),
        (
            Loop::new()
                .open()
                .start()
                .ask(Wish::StopNow, Door::Inbox)
                .end(report(1)),
            None,
        ),
    ] {
        let last = remembered(work);
        assert_eq!(last.error.as_deref(), error, "{last:?}");
        assert_eq!((last.denied, last.denial.as_deref()), (2, Some("ls")));
    }
}
