//! Failed agents: failures that the loop waits for and refunds, failures after which another agent
//! takes over, and fatal failures.

use super::kit::TestLoop;
use crate::engine::event::{
    AgentReport, Event, Fault, Marker, Notice, ProcessExit, Request, RequestSource,
};
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::iteration::IterationEnd;
use crate::engine::plan::{Agent, Approve};
use crate::engine::usage::Tokens;
use crate::engine::{Effect, Limit, Outcome, Phase};

/// Returns the report of an agent that failed. `until_ms` is the time at which its limit resets, in
/// milliseconds since 1970; `None` if unknown.
pub(super) fn bad(kind: FailureKind, until_ms: Option<i64>) -> AgentReport {
    let reason = Some(AgentFailure {
        until_ms,
        ..kind.into()
    });
    let error = Some("its message".into());
    AgentReport {
        exit: ProcessExit::from_code(1),
        cost_usd: Some(0.0),
        reason,
        error,
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

fn named(name: &str) -> Agent {
    Agent {
        name: name.into(),
        ..Agent::default()
    }
}

/// Returns a loop without checks whose agent runs.
pub(super) fn running() -> TestLoop {
    TestLoop::new().open().start()
}

/// Returns the loop of [`running`] with a second agent.
fn running_with_fallback() -> TestLoop {
    TestLoop::new()
        .with(|plan| (plan.agent, plan.fallback) = (named("first"), vec![named("second")]))
        .open()
        .start()
}

fn fault(work: &TestLoop) -> Option<Fault> {
    match work.state.outcome() {
        Some(Outcome::Fatal { class, .. }) => Some(*class),
        _ => None,
    }
}

/// Returns the wall-clock time at which a resting loop wakes up. By its own clock, it wakes up at
/// the same time.
pub(super) fn rest_end(work: &TestLoop) -> i64 {
    match work.state.orders()[..] {
        [Effect::WakeAtWall(wall_ms), Effect::WakeAt(clock_ms)] => {
            let left_ms = clock_ms - work.state.clock_ms;
            assert_eq!(wall_ms - work.state.wall_ms, left_ms as i64);
            wall_ms
        }
        ref orders => panic!("{orders:?}"),
    }
}

#[test]
fn a_usage_limit_is_waited_out_and_the_iteration_is_refunded() {
    for kind in [
        FailureKind::UsageLimit,
        FailureKind::RateLimit,
        FailureKind::Overloaded,
        FailureKind::Unavailable,
    ] {
        let work = running().end(bad(kind, Some(5000)));
        assert_eq!(rest_end(&work), 5000, "{kind:?}");
        let state = &work.state;
        assert_eq!(
            (
                state.counted,
                state.consecutive_failures,
                state.total_failures
            ),
            (0, 0, 0)
        );
        assert!(state.recent.back().unwrap().refunded);
        let work = work.after(4999);
        assert_eq!(rest_end(&work), 5000, "not yet");
        assert_eq!(
            work.after(1).state.orders()[0],
            Effect::Run { iteration: 2 },
            "the number is not used again"
        );
    }
}

#[test]
fn a_limit_without_a_reset_time_is_probed_at_growing_intervals() {
    let mut work = running();
    for expected in [30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000] {
        work = work.end(bad(FailureKind::Overloaded, None));
        let now = work.state.wall_ms;
        assert_eq!(rest_end(&work), now + expected);
        work = work.after(expected as u64).start();
    }
    let work = work
        .end(good())
        .start()
        .end(bad(FailureKind::Overloaded, None));
    assert_eq!(
        rest_end(&work),
        work.state.wall_ms + 30_000,
        "after a success the intervals start again"
    );
}

#[test]
fn a_reset_time_in_the_past_is_ignored() {
    let work = running()
        .after(1000)
        .end(bad(FailureKind::UsageLimit, Some(999)));
    assert_eq!(rest_end(&work), 31_000);
}

#[test]
fn waiting_for_a_reset_does_not_count_as_active_time() {
    let work = TestLoop::new()
        .with(|plan| plan.limits.time_ms = Some(10_000))
        .open()
        .start();
    let work = work
        .after(100)
        .end(bad(FailureKind::UsageLimit, Some(3_600_000)))
        .after(3_599_900);
    assert_eq!(work.state.active_ms, 100);
    assert_eq!(work.state.orders()[0], Effect::Run { iteration: 2 });
}

#[test]
fn a_person_can_end_a_rest() {
    let work = running()
        .end(bad(FailureKind::UsageLimit, Some(5000)))
        .feed(Event::Hurried { inbox: Some(7) });
    assert_eq!(work.state.orders()[0], Effect::Run { iteration: 2 });
    assert_eq!(work.state.inbox_offset, 7);
    let again = work.start().end(bad(FailureKind::UsageLimit, Some(5000)));
    assert_eq!(rest_end(&again), 5000, "it rests again");
}

#[test]
fn a_rest_continues_after_a_pause() {
    let work = running()
        .end(bad(FailureKind::UsageLimit, Some(5000)))
        .ask(Request::Pause, RequestSource::Inbox);
    assert_eq!(work.state.phase, Phase::Paused);
    assert_eq!(rest_end(&work.ask(Request::Go, RequestSource::Inbox)), 5000);
}

#[test]
fn a_failure_that_only_a_person_can_fix_is_fatal_and_has_a_hint() {
    let login = |plan: &mut crate::engine::Plan| plan.agent.login = "type /login".into();
    for (kind, class, hint) in [
        (FailureKind::Login, Fault::Login, "log in: type /login"),
        (FailureKind::Credit, Fault::Credit, "add credit"),
        (FailureKind::Model, Fault::Model, "--model"),
        (
            FailureKind::Permission,
            Fault::Permission,
            "it lacks a permission",
        ),
    ] {
        let work = TestLoop::new()
            .with(login)
            .with(|plan| plan.agent.approve = Some(Approve::Edits));
        let work = work.with(login).open().start().end(bad(kind, None));
        assert_eq!(fault(&work), Some(class), "{kind:?}");
        let detail = work.state.outcome().unwrap().summary().detail;
        assert!(
            detail.contains(hint) && detail.contains("its message"),
            "{detail}"
        );
        assert_eq!(
            work.ask(Request::Go, RequestSource::Inbox).state.orders()[0],
            Effect::Run { iteration: 2 },
            "a resume tries again"
        );
    }
}

#[test]
fn other_failures_are_counted() {
    for kind in [
        FailureKind::Denied,
        FailureKind::Context,
        FailureKind::Refused,
        FailureKind::Crashed,
    ] {
        let work = running().end(AgentReport {
            exit: ProcessExit::from_code(0),
            ..bad(kind, None)
        });
        assert_eq!(
            (work.state.counted, work.state.consecutive_failures),
            (1, 1),
            "{kind:?}"
        );
    }
    let work = running().end(AgentReport {
        exit: ProcessExit::from_code(1),
        ..good()
    });
    assert_eq!(
        work.state.consecutive_failures, 0,
        "the stream outweighs the exit code"
    );
}

#[test]
fn the_fallback_agent_takes_over_until_the_first_is_available() {
    let work = running_with_fallback().end(bad(FailureKind::UsageLimit, Some(5000)));
    assert_eq!(
        (work.state.orders()[0].clone(), work.state.agent_index),
        (Effect::Run { iteration: 2 }, 1)
    );
    assert_eq!(work.state.agent().name, "second");
    let work = work.start().end(good());
    assert_eq!(work.state.agent_index, 1, "the first still rests");
    let work = work.start().after(5000).end(good());
    assert_eq!(work.state.agent().name, "first", "available again");
    let names: Vec<_> = work
        .state
        .recent
        .iter()
        .filter_map(|last| last.agent.as_deref())
        .collect();
    assert_eq!(names, ["first", "second", "second"]);
}

#[test]
fn if_all_agents_rest_the_first_to_be_available_is_waited_for() {
    let work = running_with_fallback()
        .end(bad(FailureKind::UsageLimit, Some(9000)))
        .start()
        .end(bad(FailureKind::Overloaded, Some(4000)));
    assert_eq!(rest_end(&work), 4000);
    assert_eq!(work.after(4000).state.agent_index, 1);
}

#[test]
fn other_failures_do_not_switch_the_agent() {
    let mut work = running_with_fallback();
    for kind in [
        FailureKind::Crashed,
        FailureKind::Context,
        FailureKind::Refused,
    ] {
        work = work.end(bad(kind, None)).after(600_000).start();
        assert_eq!(work.state.agent_index, 0, "{kind:?}");
    }
}

#[test]
fn a_missing_login_switches_the_agent_and_is_fatal_if_none_is_left() {
    let work = running_with_fallback().end(bad(FailureKind::Login, None));
    assert_eq!(
        (work.state.agent_index, work.state.counted),
        (1, 0),
        "it does not count"
    );
    let work = work.start().end(bad(FailureKind::Login, None));
    assert_eq!(fault(&work), Some(Fault::Login));
    assert_eq!(
        work.ask(Request::Go, RequestSource::Inbox)
            .state
            .agent_index,
        0,
        "after a resume the first is tried again"
    );
    let work = running_with_fallback().end(bad(FailureKind::Credit, None));
    assert_eq!(
        (work.state.agent_index, work.state.counted),
        (1, 0),
        "the other agent has its own account"
    );
}

#[test]
fn if_no_agent_is_left_the_error_names_every_agent() {
    let detail = |second| {
        let work = running_with_fallback().end(bad(FailureKind::Login, None));
        let work = work.start().end(bad(second, None));
        work.state.outcome().unwrap().summary().detail
    };
    for second in [FailureKind::Login, FailureKind::Credit, FailureKind::Model] {
        let text = detail(second);
        assert!(
            text.contains("first: it is not logged in") && text.contains("; second: "),
            "{text}"
        );
    }
}

#[test]
fn a_message_is_delivered_again_if_its_iteration_was_refunded() {
    let answered = |work: TestLoop| {
        work.feed(Event::Answered {
            text: "use port 80".into(),
            inbox: None,
        })
    };
    let work = answered(TestLoop::new().open())
        .start()
        .end(bad(FailureKind::UsageLimit, Some(5000)));
    assert_eq!(work.state.answers, ["use port 80"]);
    assert!(
        work.after(5000)
            .start()
            .end(good())
            .state
            .answers
            .is_empty()
    );
}

#[test]
fn the_token_limit_holds_across_a_crash() {
    let tokens = Some(Tokens {
        output: 600,
        ..Tokens::default()
    });
    let work = TestLoop::new()
        .with(|plan| plan.limits.tokens = Some(1000))
        .open()
        .start();
    let work = work.end(AgentReport { tokens, ..good() }).start();
    let crashed = work.feed(Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd: None,
        tokens,
        in_session: false,
        boot: None,
    });
    assert_eq!(
        crashed.state.outcome(),
        Some(&Outcome::Limit {
            limit: Limit::Tokens,
            success: false
        })
    );
}

#[test]
fn an_unknown_cost_is_fatal_under_a_cost_limit() {
    let tokens = Some(Tokens {
        output: 600,
        ..Tokens::default()
    });
    let unknown = AgentReport {
        tokens,
        cost_usd: None,
        ..good()
    };
    let limited = |allowed| {
        TestLoop::new()
            .with(|plan| (plan.limits.cost_usd, plan.limits.unknown_cost) = (Some(1.0), allowed))
            .open()
            .start()
            .end(unknown.clone())
    };
    assert_eq!(fault(&limited(false)), Some(Fault::Cost));
    assert_eq!(fault(&limited(true)), None);
}

#[test]
fn every_bad_end_has_exactly_one_reason_and_a_good_one_has_none() {
    let killed = |why| {
        Some(AgentFailure {
            why: Some(why),
            ..FailureKind::Killed.into()
        })
    };
    let rows = vec![
        ("success", running().exit(0), None),
        (
            "promised",
            running().say("<promise>COMPLETE</promise>"),
            None,
        ),
        (
            "matched",
            TestLoop::new()
                .pattern("x")
                .open()
                .start()
                .notice(Notice::Pattern)
                .exit(143),
            None,
        ),
        (
            "marked",
            running().marker(Marker::Done).after(30_000).exit(143),
            None,
        ),
        (
            "finished without exiting",
            running().notice(Notice::Lingering).end(good()),
            None,
        ),
        (
            "an exit code",
            running().exit(3),
            Some(AgentFailure {
                why: Some(IterationEnd::Exited),
                ..FailureKind::Crashed.into()
            }),
        ),
        (
            "timeout",
            running().after(7_200_000).exit(143),
            killed(IterationEnd::TimedOut),
        ),
        (
            "inactivity",
            running().notice(Notice::Silence).exit(143),
            killed(IterationEnd::Inactive),
        ),
        (
            "screen not ready",
            running().notice(Notice::Unready).exit(143),
            killed(IterationEnd::Unready),
        ),
        (
            "not exiting",
            running().notice(Notice::Lingering).exit(143),
            killed(IterationEnd::Lingered),
        ),
        (
            "stopped",
            running()
                .ask(Request::StopNow, RequestSource::Inbox)
                .exit(143),
            killed(IterationEnd::Stopped),
        ),
        (
            "a full disk",
            running().fault().exit(143),
            killed(IterationEnd::Faulted),
        ),
    ];
    for (name, work, reason) in rows {
        assert_eq!(work.state.recent.back().unwrap().reason, reason, "{name}");
    }
    assert_eq!(
        running().open().state.recent.back().unwrap().reason,
        killed(IterationEnd::Interrupted)
    );
    for (class, reason) in [
        (Fault::NotFound, Some(FailureKind::NotFound.into())),
        (Fault::Permission, Some(FailureKind::Denied.into())),
        (Fault::Usage, Some(FailureKind::Usage.into())),
        (Fault::Disk, killed(IterationEnd::Faulted)),
    ] {
        let started = TestLoop::new().open().started_as_ordered(1);
        let work = started.feed(Event::Faulted {
            class,
            detail: "no".into(),
        });
        assert_eq!(
            work.state.recent.back().unwrap().reason,
            reason,
            "{class:?}"
        );
        assert_eq!(fault(&work), Some(class));
    }
}
