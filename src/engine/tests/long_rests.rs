//! Notifications of long rests: one when the rest begins, and one when it ends.

use super::kit::TestLoop;
use super::requests::finished;
use crate::engine::event::{AgentReport, Event, ProcessExit, Request, RequestSource};
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::long_rest::{LongRest, RestStage};
use crate::engine::{Effect, State};

const MINUTE_MS: i64 = 60_000;

/// Returns a loop whose agent has reached a limit that resets after `ms`.
fn at_a_limit(notify: Option<&str>, ms: i64) -> TestLoop {
    let work = TestLoop::new()
        .with(|plan| plan.notify = notify.map(str::to_owned))
        .open();
    failed(work, FailureKind::UsageLimit, Some(ms))
}

/// Runs an iteration that ends with a failure of the agent's service.
fn failed(work: TestLoop, kind: FailureKind, until_ms: Option<i64>) -> TestLoop {
    work.start().end(AgentReport {
        exit: ProcessExit::from_code(1),
        cost_usd: Some(0.0),
        reason: Some(AgentFailure {
            until_ms,
            ..kind.into()
        }),
        ..AgentReport::default()
    })
}

fn due(state: &State) -> Option<(RestStage, LongRest)> {
    state.orders().into_iter().find_map(|order| match order {
        Effect::Notify { stage, rest } => Some((stage, rest)),
        _ => None,
    })
}

fn notified(work: TestLoop) -> TestLoop {
    let (stage, rest) = due(&work.state).expect("a notification is due");
    let work = work.feed(Event::Notified { stage, rest });
    assert_eq!(due(&work.state), None, "it is due once");
    work
}

fn asked(work: TestLoop, request: Request) -> TestLoop {
    work.ask(request, RequestSource::Inbox)
}

#[test]
fn a_rest_of_ten_minutes_is_notified_when_it_begins_and_when_it_ends() {
    let rest = LongRest {
        until_ms: 10 * MINUTE_MS,
        why: "agent: usage limit reached".into(),
    };
    let work = at_a_limit(Some("tell"), rest.until_ms);
    assert_eq!(due(&work.state), Some((RestStage::Started, rest.clone())));
    let work = notified(work).after(MINUTE_MS as u64).open();
    assert_eq!(due(&work.state), None, "a new runner does not repeat it");
    let work = work.feed(Event::Hurried { inbox: None });
    assert_eq!(due(&work.state), Some((RestStage::Ended, rest)));
    assert_eq!(
        notified(work).state.orders(),
        [Effect::Run { iteration: 2 }]
    );
}

#[test]
fn short_rests_and_loops_without_a_command_are_not_notified() {
    for work in [
        at_a_limit(Some("tell"), 10 * MINUTE_MS - 1),
        at_a_limit(None, 600 * MINUTE_MS),
    ] {
        assert_eq!(due(&work.state), None);
        let work = work.after(600 * MINUTE_MS as u64);
        assert_eq!(work.state.orders(), [Effect::Run { iteration: 2 }]);
    }
}

#[test]
fn a_pause_does_not_repeat_the_notification_but_an_ending_does() {
    let work = notified(at_a_limit(Some("tell"), 60 * MINUTE_MS));
    let paused = asked(work, Request::Pause);
    assert_eq!(paused.state.orders(), [Effect::Leave]);
    let resumed = asked(paused, Request::Go).open();
    assert_eq!(due(&resumed.state), None);
    let stopped = asked(resumed, Request::Stop);
    assert!(matches!(stopped.state.orders()[..], [Effect::Finish(_)]));
    let resumed = asked(finished(stopped), Request::Go).open();
    let (stage, _) = due(&resumed.state).unwrap();
    assert_eq!(stage, RestStage::Started);
}

/// Returns a loop in an outage, whose start was notified.
fn in_an_outage() -> TestLoop {
    let work = TestLoop::new()
        .with(|plan| {
            plan.notify = Some("tell".into());
            (plan.rest.probe_ms, plan.rest.probe_cap_ms) = (15 * 60_000, 15 * 60_000);
        })
        .open();
    notified(failed(work, FailureKind::Unavailable, None))
}

#[test]
fn an_outage_is_notified_once_however_often_the_agent_is_tried() {
    let mut work = in_an_outage();
    for _ in 0..3 {
        work = work.after(15 * MINUTE_MS as u64);
        assert_eq!(due(&work.state), None, "a probe is not the end");
        work = failed(work, FailureKind::Unavailable, None);
        assert_eq!(
            due(&work.state),
            None,
            "the next rest belongs to the same outage"
        );
    }
    let work = work.after(15 * MINUTE_MS as u64).start().end(AgentReport {
        exit: ProcessExit::from_code(0),
        ..AgentReport::default()
    });
    let (stage, _) = due(&work.state).expect("an iteration has worked");
    assert_eq!(stage, RestStage::Ended);
    assert_eq!(due(&notified(work).state), None);
}

#[test]
fn a_reset_time_after_an_outage_is_notified() {
    let work = in_an_outage().after(15 * MINUTE_MS as u64);
    let until_ms = work.state.wall_ms + 60 * MINUTE_MS;
    let work = failed(work, FailureKind::UsageLimit, Some(until_ms));
    let (stage, rest) = due(&work.state).unwrap();
    assert_eq!((stage, rest.until_ms), (RestStage::Started, until_ms));
    let work = notified(work).after(60 * MINUTE_MS as u64);
    let (stage, rest) = due(&work.state).unwrap();
    assert_eq!((stage, rest.until_ms), (RestStage::Ended, until_ms));
}
