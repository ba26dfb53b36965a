//! Loops inside a client session: the client runs the agent, and each turn is an iteration.

use super::kit::TestLoop;
use crate::engine::event::{AgentReport, Event, ProcessExit, Request, RequestSource};
use crate::engine::session::ClientSession;
use crate::engine::{Effect, Limit, Outcome, Phase};

fn opened(in_session: bool) -> Event {
    Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd: None,
        tokens: None,
        in_session,
        boot: None,
    }
}

/// Returns a loop in a session whose first turn has started.
fn in_session(iterations_before: u32) -> TestLoop {
    let session = ClientSession {
        client: "claude".into(),
        id: "s".into(),
        iterations_before,
        transcript_bytes: 0,
    };
    let work = TestLoop::new().with(|plan| *plan = plan.clone().in_session(session, None, true));
    work.feed(opened(true)).start()
}

fn turn(steps: Option<u32>) -> AgentReport {
    AgentReport {
        exit: ProcessExit::from_code(0),
        finished: true,
        steps,
        ..AgentReport::default()
    }
}

fn promise() -> AgentReport {
    let mut report = turn(None);
    report.signals.promised = true;
    report
}

#[test]
fn another_hook_does_not_interrupt_the_turn() {
    let work = in_session(0).feed(opened(true));
    assert!(work.state.awaiting_turn());
    assert_eq!(work.state.orders(), [Effect::Run { iteration: 1 }]);
    let work = work.end(turn(None));
    assert_eq!(
        work.state.orders(),
        [Effect::Run { iteration: 2 }],
        "without a rest and without a timeout"
    );
    assert!(
        !work.state.awaiting_turn(),
        "the session does not have its prompt yet"
    );
}

#[test]
fn opening_the_loop_outside_the_session_detaches_it() {
    let work = in_session(0).feed(opened(false));
    assert!(!work.state.is_in_session());
    assert_eq!(
        work.state.orders()[0],
        Effect::Run { iteration: 2 },
        "the turn is interrupted"
    );
    let work = work.feed(opened(true));
    assert!(!work.state.is_in_session(), "it cannot be attached again");
}

#[test]
fn rests_and_the_failure_limit_do_not_apply_in_a_session() {
    let mut work = in_session(0);
    for iteration in 2..=25 {
        work = work.end(AgentReport {
            exit: ProcessExit::from_code(1),
            ..AgentReport::default()
        });
        assert_eq!(work.state.orders(), [Effect::Run { iteration }]);
        work = work.start();
    }
    let limit = Limit::Iterations;
    let ended = work.end(turn(None));
    assert_eq!(
        ended.state.outcome(),
        Some(&Outcome::Limit {
            limit,
            success: true
        })
    );
}

#[test]
fn a_claim_in_a_session_does_not_override_a_red_check() {
    assert!(in_session(0).end(promise()).state.outcome().is_some());
    let session = ClientSession {
        client: "claude".into(),
        id: "s".into(),
        iterations_before: 0,
        transcript_bytes: 0,
    };
    let work = TestLoop::new()
        .checks(1)
        .with(|plan| *plan = plan.clone().in_session(session, None, true));
    let work = work.feed(opened(true)).check("r").start().end(promise());
    assert_eq!(
        work.state.orders(),
        [Effect::Check {
            iteration: 1,
            check: 0
        }],
        "a claim is not enough"
    );
    let work = work.check("r").start().end(turn(None)).check("g");
    assert_eq!(work.state.outcome(), Some(&Outcome::Done { checked: true }));
}

#[test]
fn a_stop_ends_the_turn_at_once() {
    let work = in_session(0).feed(Event::Asked {
        request: Request::StopNow,
        by: RequestSource::Session,
        inbox: None,
    });
    assert_eq!(
        work.state.orders(),
        [Effect::Kill {
            iteration: 1,
            hard: false
        }]
    );
    let work = work.end(AgentReport::default());
    assert_eq!(
        work.state.outcome(),
        Some(&Outcome::Stopped {
            by: RequestSource::Session
        })
    );
}

#[test]
fn a_failed_turn_is_recorded_until_another_turn_ends() {
    let turn_failed = |iteration| Event::TurnFailed {
        iteration,
        message: "overloaded".into(),
    };
    let work = in_session(0).feed(turn_failed(7));
    assert_eq!(work.state.turn_failure(), None, "another iteration");
    let work = work.feed(turn_failed(1));
    assert_eq!(work.state.turn_failure(), Some("overloaded"));
    assert!(work.state.awaiting_turn());
    assert_eq!(work.end(turn(None)).state.turn_failure(), None);
    assert!(matches!(
        in_session(0)
            .feed(turn_failed(1))
            .feed(opened(false))
            .state
            .phase,
        Phase::Running { .. }
    ));
}

#[test]
fn blocks_without_tool_use_are_limited() {
    let ends = |steps: &[Option<u32>]| {
        let mut work = in_session(0);
        work.state.plan.limits.blocks = Some(2);
        for (at, steps) in steps.iter().enumerate() {
            work = work.end(turn(*steps));
            if work.state.phase
                == Phase::Ended(Outcome::Limit {
                    limit: Limit::Blocks,
                    success: false,
                })
                || matches!(work.state.phase, Phase::Draining { .. })
            {
                return Some(at + 1);
            }
            work = work.start();
        }
        None
    };
    let (idle, busy, unknown) = (Some(0), Some(1), None);
    assert_eq!(
        ends(&[idle, idle, idle]),
        Some(3),
        "the first turn was not started by a block"
    );
    assert_eq!(ends(&[busy, idle, idle]), Some(3));
    assert_eq!(ends(&[idle, idle, busy, idle, idle]), Some(5));
    assert_eq!(ends(&[idle, idle, unknown, idle, unknown, idle]), None);
}

#[test]
fn a_loop_taken_over_continues_the_iteration_count() {
    let work = in_session(3);
    assert_eq!(
        (work.state.turn_number(), work.state.turn_limit()),
        (4, Some(25))
    );
    assert_eq!(work.state.plan.limits.iterations, Some(22));
    assert_eq!(work.state.turn_label(), "4/25");
}

#[test]
fn budgets_act_in_a_session_whose_usage_is_known() {
    for (is_known, ends) in [(true, true), (false, false)] {
        let session = ClientSession {
            client: "claude".into(),
            id: "s".into(),
            iterations_before: 0,
            transcript_bytes: 100,
        };
        let work = TestLoop::new().with(|plan| {
            plan.limits.cost_usd = Some(1.0);
            *plan = plan.clone().in_session(session, None, is_known);
        });
        let work = work.feed(opened(true)).start();
        assert_eq!(work.state.transcript_bytes(), 100);
        let work = work.end(AgentReport {
            cost_usd: Some(1.5),
            transcript_bytes: Some(250),
            ..turn(Some(1))
        });
        assert_eq!(work.state.transcript_bytes(), 250);
        assert_eq!(work.state.outcome().is_some(), ends, "{is_known}");
    }
}
