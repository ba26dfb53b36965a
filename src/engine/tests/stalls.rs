//! When a loop has stalled.

use super::kit::{TestLoop, red};
use crate::engine::event::{AgentReport, CheckReport, Event, Notice, ProcessExit};
use crate::engine::failure::FailureKind;
use crate::engine::{Amount, StopReason};
use crate::engine::{Effect, Limit, LimitChange, Outcome};

/// Returns a loop in git with a red check, which stalls after `max` iterations without progress.
fn work(max: u32) -> TestLoop {
    TestLoop::new()
        .checks(1)
        .with(|plan| plan.limits.stalls = Some(max))
        .tree("start")
        .open()
        .check("r")
}

/// Ends the ordered check red, with these failures.
fn fail(work: TestLoop, fingerprint: &str) -> TestLoop {
    let orders = work.orders();
    let [Effect::Check { iteration, check }] = orders[..] else {
        panic!("no check is ordered: {orders:?}")
    };
    let report = CheckReport {
        fingerprint: Some(fingerprint.into()),
        ..red()
    };
    let tree = work.tree.clone();
    work.feed(Event::Checked {
        iteration,
        check,
        report,
        tree,
        written: vec![],
    })
}

fn idle(mut work: TestLoop, iterations: u32) -> TestLoop {
    for _ in 0..iterations {
        work = work.start().exit(0).check("r");
    }
    work
}

#[test]
fn iterations_that_change_nothing_end_the_loop_as_stalled() {
    let work = idle(work(3), 2);
    assert_eq!(work.runs(), Some(3));
    let ended = idle(work, 1);
    assert_eq!(ended.outcome(), Outcome::Stalled);
    let outcome = ended.outcome();
    assert_eq!(outcome.stop_reason(), StopReason::Stalled);
    assert_eq!(outcome.summary().kind, "stalled");
    assert_eq!(outcome.exit_code().code(), 1);
}

#[test]
fn a_new_state_resets_the_count() {
    let changed = idle(work(3), 2).start().exit(0).tree("changed").check("r");
    assert_eq!(changed.state.progress.stalls, 0);
    let other_failure = fail(idle(work(3), 2).start().exit(0), "other");
    assert_eq!(other_failure.state.progress.stalls, 0);
    let turned_green = idle(work(3), 2).start().exit(0).check("g");
    assert_eq!(turned_green.state.progress.stalls, 0);
}

#[test]
fn going_back_and_forth_is_no_progress() {
    let mut work = work(3).start().exit(0).tree("a").check("r");
    for tree in ["start", "a", "start"] {
        assert!(work.state.outcome().is_none());
        work = work.start().exit(0).tree(tree).check("r");
    }
    assert_eq!(work.outcome(), Outcome::Stalled);
}

#[test]
fn outside_git_only_the_failures_count() {
    let mut work = TestLoop::new()
        .checks(1)
        .with(|plan| plan.limits.stalls = Some(2))
        .open();
    work = fail(work, "a");
    work = fail(work.start().exit(0), "b");
    assert_eq!(work.state.progress.stalls, 0);
    work = fail(work.start().exit(0), "a");
    work = fail(work.start().exit(0), "b");
    assert_eq!(work.outcome(), Outcome::Stalled);
}

#[test]
fn refunded_and_interrupted_iterations_neither_count_nor_reset() {
    let limited = AgentReport {
        exit: ProcessExit::from_code(1),
        reason: Some(FailureKind::UsageLimit.into()),
        ..AgentReport::default()
    };
    let refunded = idle(work(3), 2).start().end(limited);
    assert!(refunded.state.recent.back().unwrap().refunded);
    let refunded = if refunded.is_checking() {
        refunded.check("r")
    } else {
        refunded
    };
    assert_eq!(refunded.state.progress.stalls, 2);
    let interrupted = idle(work(3), 2).start().open().check("r");
    assert_eq!(interrupted.state.progress.stalls, 2);
    assert_eq!(interrupted.runs(), Some(4));
}

#[test]
fn a_silent_iteration_counts() {
    let work = work(1).start().notice(Notice::Silence).exit(143).check("r");
    assert_eq!(work.outcome(), Outcome::Stalled);
}

#[test]
fn a_loop_without_checks_never_stalls() {
    let mut work = TestLoop::new()
        .with(|plan| plan.limits.stalls = Some(1))
        .open();
    for _ in 0..10 {
        work = work.start().exit(0);
    }
    assert_eq!(work.runs(), Some(11));
}

#[test]
fn failures_are_tested_first_and_resuming_resets_the_count() {
    let failing = |max: u32| {
        let mut work = work(max).with(|plan| plan.limits.failures = Some(2));
        work = work.tree("start").open().check("r");
        for _ in 0..2 {
            let rest = work.state.rest_until_ms - work.state.clock_ms;
            work = work.after(rest).start().exit(1).check("r");
        }
        work
    };
    assert_eq!(failing(2).limit(), Limit::Failures);
    let stalled = idle(work(2), 2);
    let resumed = stalled.resume();
    assert_eq!(resumed.state.progress.stalls, 0);
    assert_eq!(idle(resumed, 2).outcome(), Outcome::Stalled);
}

#[test]
fn checks_that_run_again_do_not_count_twice() {
    let work = work(3).start().exit(0).check("r").open();
    assert_eq!(work.state.progress.stalls, 1);
    let again = work.start().exit(0);
    let crashed = again.open().check("r");
    assert_eq!(crashed.state.progress.stalls, 2);
}

#[test]
fn the_limit_can_be_changed_while_the_loop_runs() {
    let change = LimitChange {
        limit: Limit::Stalls,
        max: Some(Amount::Count(2)),
    };
    let work = idle(work(5), 2).feed(Event::Changed {
        limit: change,
        inbox: None,
    });
    assert_eq!(work.outcome(), Outcome::Stalled);
}

#[test]
fn one_prompt_asks_for_another_approach() {
    for (max, warned) in [(1, vec![]), (2, vec![1]), (3, vec![1]), (5, vec![3])] {
        let mut work = work(max);
        let mut due = vec![];
        for number in 1..max {
            work = idle(work, 1);
            if work.state.is_stall_warning_due() {
                due.push(number);
            }
        }
        assert_eq!(due, warned, "max {max}");
    }
}

#[test]
fn outside_git_green_checks_are_no_stall() {
    let mut work = TestLoop::new()
        .checks(1)
        .with(|plan| plan.limits.stalls = Some(2))
        .open()
        .check("g");
    for _ in 0..4 {
        work = work.start().exit(0).check("g");
    }
    assert_eq!(work.runs(), Some(5));
}
