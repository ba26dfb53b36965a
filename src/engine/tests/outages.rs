//! Agents whose service is unavailable: the loop tries again at growing intervals, hands over to
//! another agent, does not run checks in vain, and gives up after `--max-rest`.

use super::kit::TestLoop;
use crate::engine::event::{AgentReport, Event, Notice, ProcessExit, Request, RequestSource};
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::plan::Agent;
use crate::engine::{Effect, Limit, Phase};

const HOUR_MS: u64 = 3_600_000;

/// Returns the report of an agent whose service is unavailable. It ran for a second.
fn unavailable() -> AgentReport {
    AgentReport {
        exit: ProcessExit::from_code(1),
        ms: 1000,
        cost_usd: Some(0.0),
        reason: Some(FailureKind::Unavailable.into()),
        idle: true,
        ..AgentReport::default()
    }
}

fn good() -> AgentReport {
    AgentReport {
        exit: ProcessExit::from_code(0),
        cost_usd: Some(0.0),
        finished: true,
        ..AgentReport::default()
    }
}

fn patient(rest_ms: u64) -> TestLoop {
    TestLoop::new()
        .with(|plan| plan.limits.rest_ms = Some(rest_ms))
        .open()
        .start()
}

/// Ends every iteration with `report` until the loop ends. Returns it with the number of tries.
fn tried_until_the_end(mut work: TestLoop, report: &AgentReport) -> (TestLoop, u32) {
    for tries in 1..1000 {
        work = work.end(report.clone());
        while let Phase::Resting { .. } = work.state.phase {
            let now = work.state.clock_ms;
            let wall = work.state.wall_ms;
            let wakes = work.state.orders().into_iter().map(|order| match order {
                Effect::WakeAt(at) => at - now,
                Effect::WakeAtWall(at) => (at - wall) as u64,
                other => panic!("{other:?}"),
            });
            let next = wakes.min().unwrap();
            work = work.after(next);
        }
        if work.state.outcome().is_some() {
            return (work, tries);
        }
        work = work.start();
    }
    panic!("the loop does not end");
}

#[test]
fn an_outage_hands_over_to_the_next_agent() {
    let named = |name: &str| Agent {
        name: name.into(),
        ..Agent::default()
    };
    let work = TestLoop::new()
        .with(|plan| (plan.agent, plan.fallback) = (named("first"), vec![named("second")]))
        .open()
        .start()
        .end(unavailable());
    assert_eq!(
        (work.state.agent().name.as_str(), work.runs()),
        ("second", Some(2))
    );
    assert_eq!((work.state.counted, work.state.total_failures), (0, 0));
}

#[test]
fn waiting_in_vain_ends_the_loop_and_says_why() {
    let (work, tries) = tried_until_the_end(patient(24 * HOUR_MS), &unavailable());
    assert_eq!(work.limit(), Limit::Rest);
    assert!((95..=105).contains(&tries), "{tries}");
    assert_eq!((work.state.counted, work.state.total_failures), (0, 0));
    let detail = work.state.outcome_summary().unwrap().detail;
    assert_eq!(
        detail,
        "waited too long for its agent (24h of 24h): agent: its service fails or cannot be reached"
    );
    let resumed = work.ask(Request::Go, RequestSource::Inbox);
    assert_eq!(
        (resumed.state.waited_ms, resumed.state.outcome()),
        (0, None)
    );
}

#[test]
fn a_success_or_a_failure_of_another_kind_resets_the_waiting_time() {
    for report in [
        good(),
        AgentReport {
            reason: Some(FailureKind::Crashed.into()),
            ..unavailable()
        },
    ] {
        let work = patient(HOUR_MS).end(unavailable()).after(30_000).start();
        assert_eq!(work.state.waited_ms, 31_000);
        assert_eq!(work.end(report).state.waited_ms, 0);
    }
}

#[test]
fn a_reported_reset_is_waited_for_however_far_it_is() {
    let until_ms = Some(100 * HOUR_MS as i64);
    let limited = AgentReport {
        reason: Some(AgentFailure {
            until_ms,
            ..FailureKind::UsageLimit.into()
        }),
        ..unavailable()
    };
    let work = patient(HOUR_MS).end(limited);
    assert_eq!(
        work.state.orders()[0],
        Effect::WakeAtWall(100 * HOUR_MS as i64)
    );
    let work = work.after(100 * HOUR_MS);
    assert_eq!((work.state.waited_ms, work.runs()), (0, Some(2)));
}

#[test]
fn silence_without_a_sign_of_the_model_is_an_outage() {
    let silent = AgentReport {
        exit: ProcessExit::default(),
        reason: None,
        silent: true,
        ..unavailable()
    };
    for notice in [Some(Notice::Silence), None] {
        let work = TestLoop::new().open().start();
        let work = match notice {
            Some(notice) => work.notice(notice),
            None => work.after(2 * HOUR_MS),
        };
        let work = work.end(silent.clone());
        let last = work.state.recent.back().unwrap();
        assert_eq!(last.reason, Some(FailureKind::Unavailable.into()));
        assert!(last.refunded && work.state.counted == 0);
        assert!(matches!(work.state.orders()[0], Effect::WakeAtWall(_)));
    }
    let spoke = AgentReport {
        silent: false,
        ..silent
    };
    let work = TestLoop::new()
        .open()
        .start()
        .notice(Notice::Silence)
        .end(spoke);
    assert_eq!(work.state.counted, 1, "the agent worked, then fell silent");
}

#[test]
fn a_person_who_stops_a_silent_agent_does_not_see_an_outage() {
    let silent = AgentReport {
        reason: None,
        silent: true,
        ..unavailable()
    };
    let work = TestLoop::new()
        .open()
        .start()
        .ask(Request::PauseNow, RequestSource::Inbox)
        .end(silent);
    assert!(!work.state.recent.back().unwrap().refunded);
}

#[test]
fn checks_do_not_run_again_after_an_iteration_that_did_nothing() {
    let work = TestLoop::preflight("r").start().exit(0).check("r");
    let work = work.start().end(unavailable());
    assert!(matches!(work.state.orders()[0], Effect::WakeAtWall(_)));
    assert_eq!(work.state.checked_iteration(), 1);
    let report = work.state.checks[0].as_ref().unwrap();
    assert!(!report.is_green(), "the results of iteration 1 stay valid");
    let work = work.after(30_000).start().end(unavailable()).after(60_000);
    assert_eq!((work.state.checked_iteration(), work.runs()), (1, Some(4)));
    let work = work.start().end(good());
    assert_eq!(
        work.state.orders(),
        [Effect::Check {
            iteration: 4,
            check: 0
        }]
    );
    assert_eq!(work.check("r").state.checked_iteration(), 4);
}

#[test]
fn checks_run_after_a_refunded_iteration_that_did_something() {
    let worked = AgentReport {
        idle: false,
        ..unavailable()
    };
    let work = TestLoop::preflight("r").start().end(worked);
    assert_eq!(
        work.state.orders(),
        [Effect::Check {
            iteration: 1,
            check: 0
        }]
    );
    let mut claimed = unavailable();
    claimed.markers = vec![crate::engine::Marker::Done];
    let work = TestLoop::preflight("r").start().end(claimed);
    assert_eq!(work.check("g").outcome().summary().kind, "done");
}

#[test]
fn a_claim_over_a_red_check_is_answered_after_an_outage() {
    let work = TestLoop::new()
        .checks(1)
        .promise("COMPLETE")
        .open()
        .check("r")
        .start()
        .say("<promise>COMPLETE</promise>")
        .check("r");
    let work = work.start().end(unavailable()).after(30_000);
    assert!(work.state.is_claimed() && !work.state.all_green());
}

#[test]
fn a_crash_after_an_idle_iteration_runs_the_checks_again_when_due() {
    let work = TestLoop::preflight("r").start().end(unavailable());
    let work = work.after(30_000).start().feed(Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd: None,
        tokens: None,
        in_session: false,
        boot: None,
    });
    assert_eq!(
        work.state.orders(),
        [Effect::Check {
            iteration: 2,
            check: 0
        }]
    );
    assert_eq!(work.state.checked_iteration(), 2);
}
