//! A loop inside a session: its agent is the client's, its turns are iterations, and the rules are the same.

use super::kit::Loop;
use crate::engine::event::{Door, Event, Exit, Report, Wish};
use crate::engine::session::Session;
use crate::engine::{Effect, Limit, Outcome, Phase};

fn opened(inside: bool) -> Event {
    Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd: None,
        tokens: None,
        inside,
    }
}

/// A loop in a session whose first turn is under way.
fn inside(before: u32) -> Loop {
    let session = Session {
        client: "claude".into(),
        id: "s".into(),
        before,
    };
    let inside = Loop::new().with(|plan| *plan = plan.clone().inside(session));
    inside.feed(opened(true)).start()
}

fn turn(steps: Option<u32>) -> Report {
    Report {
        exit: Exit::code(0),
        finished: true,
        steps,
        ..Report::default()
    }
}

fn promise() -> Report {
    let mut report = turn(None);
    report.said.promised = true;
    report
}

#[test]
fn a_session_s_agent_outlives_whoever_takes_the_loop_up() {
    let work = inside(0).feed(opened(true));
    assert!(work.state.is_lent());
    assert_eq!(work.state.orders(), [Effect::Run { iteration: 1 }]);
    let work = work.end(turn(None));
    assert_eq!(
        work.state.orders(),
        [Effect::Run { iteration: 2 }],
        "no rest, no timeout"
    );
    assert!(!work.state.is_lent(), "it has not got its prompt yet");
}

#[test]
fn whoever_goes_on_outside_has_left_the_session() {
    let work = inside(0).feed(opened(false));
    assert!(!work.state.is_inside());
    assert_eq!(
        work.state.orders()[0],
        Effect::Run { iteration: 2 },
        "what went on inside is interrupted"
    );
    let work = work.feed(opened(true));
    assert!(!work.state.is_inside(), "there is no way back");
}

#[test]
fn no_rest_and_no_limit_of_failures_holds_a_session_up() {
    let mut work = inside(0);
    for iteration in 2..=25 {
        work = work.end(Report {
            exit: Exit::code(1),
            ..Report::default()
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
fn only_a_promise_that_was_asked_for_ends_it() {
    assert!(inside(0).end(promise()).state.outcome().is_some());
    let session = Session {
        client: "claude".into(),
        id: "s".into(),
        before: 0,
    };
    let work = Loop::new()
        .checks(1)
        .with(|plan| *plan = plan.clone().inside(session));
    let work = work.feed(opened(true)).start().end(promise());
    assert_eq!(
        work.state.orders(),
        [Effect::Check {
            iteration: 1,
            check: 0
        }],
        "a word is not enough"
    );
    let work = work.check("r").start().end(turn(None)).check("g");
    assert_eq!(work.state.outcome(), Some(&Outcome::Done { checked: true }));
}

#[test]
fn a_stop_ends_it_at_once_and_whoever_is_told_lets_the_agent_go() {
    let work = inside(0).feed(Event::Asked {
        wish: Wish::StopNow,
        by: Door::Session,
        inbox: None,
    });
    assert_eq!(
        work.state.orders(),
        [Effect::Kill {
            iteration: 1,
            hard: false
        }]
    );
    let work = work.end(Report::default());
    assert_eq!(
        work.state.outcome(),
        Some(&Outcome::Stopped {
            by: "cancel-ralph".into()
        })
    );
}

#[test]
fn a_turn_that_broke_off_is_remembered_until_it_goes_on() {
    let stumbled = |iteration| Event::Stumbled {
        iteration,
        words: "overloaded".into(),
    };
    let work = inside(0).feed(stumbled(7));
    assert_eq!(work.state.stumble(), None, "not of this iteration");
    let work = work.feed(stumbled(1));
    assert_eq!(work.state.stumble(), Some("overloaded"));
    assert!(work.state.is_lent());
    assert_eq!(work.end(turn(None)).state.stumble(), None);
    assert!(matches!(
        inside(0).feed(stumbled(1)).feed(opened(false)).state.phase,
        Phase::Running { .. }
    ));
}

#[test]
fn a_client_s_patience_counts_blocks_without_a_tool() {
    let ends = |steps: &[Option<u32>]| {
        let mut work = inside(0);
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
        "the first turn began without a block"
    );
    assert_eq!(ends(&[busy, idle, idle]), Some(3));
    assert_eq!(ends(&[idle, idle, busy, idle, idle]), Some(5));
    assert_eq!(ends(&[idle, idle, unknown, idle, unknown, idle]), None);
}

#[test]
fn a_loop_that_was_taken_over_counts_on() {
    let work = inside(3);
    assert_eq!(
        (work.state.turn_number(), work.state.turn_limit()),
        (4, Some(25))
    );
    assert_eq!(work.state.plan.limits.iterations, Some(22));
    assert_eq!(work.state.turn_words(), "4/25");
}
