//! Limits on iterations, cost and time.

use super::kit::TestLoop;
use crate::engine::event::{AgentReport, Event, Notice, ProcessExit, Request, RequestSource};
use crate::engine::iteration::IterationEnd;
use crate::engine::limits::LIMITS;
use crate::engine::usage::Tokens;
use crate::engine::{Amount, Effect, Limit, LimitChange, Outcome, Phase};

fn set(work: TestLoop, limit: LimitChange) -> TestLoop {
    work.feed(Event::Changed { limit, inbox: None })
}

fn spend(work: TestLoop, usd: Option<f64>) -> TestLoop {
    work.start().end(AgentReport {
        exit: ProcessExit::from_code(0),
        cost_usd: usd,
        ..AgentReport::default()
    })
}

#[test]
fn no_iteration_starts_beyond_the_iteration_limit() {
    let work = TestLoop::new().at_most(2).open().start().exit(0);
    assert_eq!(work.runs(), Some(2));
    assert_eq!(work.start().exit(0).limit(), Limit::Iterations);
    let unlimited = TestLoop::new()
        .with(|plan| plan.limits.iterations = None)
        .open();
    assert_eq!(
        (0..100)
            .fold(unlimited, |work, _| work.start().exit(0))
            .runs(),
        Some(101)
    );
}

#[test]
fn the_last_iteration_can_still_be_done() {
    let work = TestLoop::new()
        .checks(1)
        .no_promise()
        .at_most(1)
        .open()
        .check("r")
        .start()
        .exit(0)
        .check("g");
    assert!(work.is_done());
}

#[test]
fn no_iteration_starts_beyond_the_cost_limit() {
    let work = TestLoop::new()
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
fn the_cost_is_unknown_if_one_iteration_did_not_report_it() {
    let work = spend(
        spend(spend(TestLoop::new().open(), Some(0.5)), None),
        Some(0.5),
    );
    assert_eq!((work.state.known_cost(), work.state.cost_usd), (None, 1.0));
}

#[test]
fn the_time_limit_kills_the_running_iteration() {
    let work = TestLoop::new()
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
    assert_eq!(work.state.recent[0].end, IterationEnd::OutOfTime);
}

#[test]
fn the_time_limit_stops_preflight_checks_and_scm_tasks() {
    let new = || {
        TestLoop::new()
            .checks(1)
            .tasks(&["push"])
            .with(|plan| plan.limits.time_ms = Some(1000))
    };
    let preflight = new().open();
    let check = |iteration| Effect::Check {
        iteration,
        check: 0,
    };
    assert_eq!(preflight.orders(), [Effect::WakeAt(1000), check(0)]);
    assert!(preflight.clone().after(999).is_checking());
    assert_eq!(preflight.clone().after(1000).limit(), Limit::Time);

    let checking = preflight.check("r").start().after(400).exit(0);
    assert_eq!(checking.orders(), [Effect::WakeAt(1000), check(1)]);
    assert_eq!(checking.clone().after(600).limit(), Limit::Time);

    let pushing = checking.check("g");
    let push = Effect::ScmTask {
        iteration: 1,
        task: 0,
    };
    assert_eq!(pushing.orders(), [Effect::WakeAt(1000), push]);
    assert_eq!(pushing.after(600).limit(), Limit::Time);
}

#[test]
fn after_the_time_limit_no_check_starts_but_the_worktree_is_committed() {
    let new = || {
        TestLoop::new()
            .checks(1)
            .worktree()
            .with(|plan| plan.limits.time_ms = Some(1000))
    };
    let killed = new().open().check("r").start().after(1000).exit(143);
    assert_eq!(killed.orders()[0], Effect::WakeAt(1000), "before any check");
    let saving = killed.after(0);
    assert!(matches!(saving.orders()[..], [Effect::ScmTask { .. }]));
    assert_eq!(saving.scm_tasks("s").limit(), Limit::Time);
}

#[test]
fn checks_that_run_again_after_child_loops_are_not_stopped_by_the_time_limit() {
    let work = TestLoop::new()
        .checks(1)
        .with(|plan| plan.limits.time_ms = Some(1000))
        .open()
        .check("r")
        .start()
        .say("<promise>COMPLETE</promise>");
    let green = Event::Checked {
        iteration: 1,
        check: 0,
        report: super::kit::green(),
        tree: None,
        written: vec![],
    };
    let mut work = work.feed_without_draining(green);
    assert!(work.is_draining());
    work.state.clock_ms += 5000;
    work.state.active_ms += 5000;
    let work = work.drained(&["child"], &[]);
    assert_eq!(work.orders().len(), 1, "{:?}", work.orders());
    assert!(work.check("g").is_done());
}

#[test]
fn time_counts_while_checking_and_resting_but_not_while_paused_or_ended() {
    let mut work = TestLoop::new().checks(1);
    let mut expected = 0;
    let mut pass = |work: TestLoop, counts: bool| {
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
    work = pass(work, true).ask(Request::Pause, RequestSource::Inbox);
    work = pass(work, false).resume().start().notice(Notice::Silence);
    work = pass(work, true).exit(0).fault();
    work = pass(work, false);
    assert_eq!(work.state.clock_ms, 900);
}

#[test]
fn a_rest_ends_at_the_time_limit() {
    let work = TestLoop::new()
        .with(|plan| plan.limits.time_ms = Some(500))
        .open()
        .start()
        .exit(1);
    assert_eq!(work.orders(), [Effect::WakeAt(500)]);
    assert_eq!(work.after(500).limit(), Limit::Time);
}

#[test]
fn no_iteration_starts_after_the_time_limit_even_if_it_was_ordered() {
    let work = TestLoop::new()
        .with(|plan| plan.limits.time_ms = Some(500))
        .open();
    assert_eq!(work.runs(), Some(1));
    assert_eq!(work.after(500).limit(), Limit::Time);
}

#[test]
fn an_iteration_timeout_is_a_failure() {
    let work = TestLoop::new()
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
    assert_eq!(work.state.recent[0].end, IterationEnd::TimedOut);
}

#[test]
fn without_limits_there_is_no_timer() {
    let work = TestLoop::new()
        .with(|plan| plan.limits.iteration_ms = None)
        .open();
    assert_eq!(work.orders(), [Effect::Run { iteration: 1 }]);
    assert_eq!(
        work.start().after(u64::MAX).orders(),
        [Effect::Run { iteration: 1 }]
    );
}

#[test]
fn an_agent_that_uses_up_a_budget_is_stopped_and_the_loop_ends_at_that_limit() {
    let spent = |iteration, cost_usd, input| Event::Spent {
        iteration,
        cost_usd,
        tokens: Some(Tokens {
            input,
            ..Tokens::default()
        }),
    };
    let start = || {
        TestLoop::new()
            .with(|plan| {
                plan.limits.cost_usd = Some(1.0);
                plan.limits.tokens = Some(100);
            })
            .open()
            .start()
    };
    for (event, is_over) in [
        (spent(1, Some(0.9), 99), false),
        (spent(1, None, 99), false),
        (spent(2, Some(5.0), 0), false),
        (spent(1, Some(1.0), 0), true),
        (spent(1, None, 100), true),
    ] {
        let work = start().feed(event.clone());
        let kills = matches!(work.state.orders()[..], [Effect::Kill { .. }]);
        assert_eq!(kills, is_over, "{event:?}");
    }
    let work = start().feed(spent(1, Some(1.5), 0)).end(AgentReport {
        cost_usd: Some(1.5),
        ..AgentReport::default()
    });
    let last = work.state.recent.back().unwrap();
    assert_eq!(last.end, IterationEnd::OverBudget);
    assert!(!last.is_failure());
    assert_eq!(
        work.state.outcome(),
        Some(&Outcome::Limit {
            limit: Limit::Cost,
            success: false
        })
    );
    let unlimited = TestLoop::new().open().start().feed(spent(1, Some(9.0), 9));
    assert!(matches!(unlimited.state.phase, Phase::Running { .. }));
}

#[test]
fn the_earlier_of_two_deadlines_is_the_reason() {
    let both = |iteration, time| {
        let work = TestLoop::new().with(|plan| {
            plan.limits.iteration_ms = Some(iteration);
            plan.limits.time_ms = Some(time);
        });
        work.open().start().after(5000).exit(0).state.recent[0].end
    };
    assert_eq!(both(1000, 2000), IterationEnd::TimedOut);
    assert_eq!(both(2000, 1000), IterationEnd::OutOfTime);
    assert_eq!(
        both(1000, 1000),
        IterationEnd::OutOfTime,
        "the time limit is not a failure of the agent"
    );
}

#[test]
fn limits_can_be_changed_while_the_agent_runs() {
    let work = || TestLoop::new().open().start();
    assert_eq!(
        set(
            work(),
            LimitChange {
                limit: Limit::Iterations,
                max: Some(Amount::Count(1))
            }
        )
        .exit(0)
        .limit(),
        Limit::Iterations
    );
    assert_eq!(
        set(
            work(),
            LimitChange {
                limit: Limit::Failures,
                max: Some(Amount::Count(1))
            }
        )
        .exit(1)
        .limit(),
        Limit::Failures
    );
    let limited = set(
        work(),
        LimitChange {
            limit: Limit::Cost,
            max: Some(Amount::Dollars(0.5)),
        },
    );
    assert_eq!(
        limited
            .end(AgentReport {
                cost_usd: Some(0.5),
                ..AgentReport::default()
            })
            .limit(),
        Limit::Cost
    );
    let late = set(
        work().after(2000),
        LimitChange {
            limit: Limit::Time,
            max: Some(Amount::Millis(1000)),
        },
    );
    assert_eq!(
        late.orders(),
        [Effect::Run { iteration: 1 }, Effect::WakeAt(1000)]
    );
    assert_eq!(late.after(0).kills(), Some(false));
}

#[test]
fn limits_can_be_changed_between_iterations() {
    let resting = || TestLoop::new().open().start().exit(1).after(500);
    assert_eq!(
        set(
            resting(),
            LimitChange {
                limit: Limit::Iterations,
                max: Some(Amount::Count(1))
            }
        )
        .limit(),
        Limit::Iterations
    );
    assert_eq!(
        set(
            resting(),
            LimitChange {
                limit: Limit::Time,
                max: Some(Amount::Millis(500))
            }
        )
        .limit(),
        Limit::Time
    );
    assert_eq!(
        set(
            resting(),
            LimitChange {
                limit: Limit::Failures,
                max: Some(Amount::Count(1))
            }
        )
        .limit(),
        Limit::Failures
    );
    let about_to_run = TestLoop::new().open().start().exit(0);
    assert_eq!(
        set(
            about_to_run,
            LimitChange {
                limit: Limit::Iterations,
                max: Some(Amount::Count(1))
            }
        )
        .limit(),
        Limit::Iterations
    );
}

#[test]
fn a_removed_limit_no_longer_applies() {
    let work = set(
        TestLoop::new().at_most(1).open().start(),
        LimitChange {
            limit: Limit::Iterations,
            max: None,
        },
    )
    .exit(0);
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn every_limit_has_one_row_and_a_change_keeps_its_journal_format() {
    for (index, row) in LIMITS.iter().enumerate() {
        assert!(LIMITS[..index].iter().all(|other| other.limit != row.limit));
        let name = serde_json::to_value(row.limit).unwrap();
        assert_eq!(name, row.name);
    }
    for (json, limit, max) in [
        (
            r#"{"name":"max-iterations","value":null}"#,
            Limit::Iterations,
            None,
        ),
        (
            r#"{"name":"max-failures","value":3}"#,
            Limit::Failures,
            Some(Amount::Count(3)),
        ),
        (
            r#"{"name":"max-cost","value":1.5}"#,
            Limit::Cost,
            Some(Amount::Dollars(1.5)),
        ),
        (
            r#"{"name":"max-tokens","value":70000}"#,
            Limit::Tokens,
            Some(Amount::Tokens(70_000)),
        ),
        (
            r#"{"name":"max-time","value":1000}"#,
            Limit::Time,
            Some(Amount::Millis(1000)),
        ),
    ] {
        let change = LimitChange { limit, max };
        assert_eq!(serde_json::to_string(&change).unwrap(), json);
        assert_eq!(serde_json::from_str::<LimitChange>(json).unwrap(), change);
    }
    for invalid in [
        r#"{"name":"max-moons","value":1}"#,
        r#"{"name":"max-iterations","value":-3}"#,
        r#"{"name":"max-iterations","value":0.4}"#,
    ] {
        assert!(serde_json::from_str::<LimitChange>(invalid).is_err());
    }
}
