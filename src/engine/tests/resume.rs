//! Resumed loops: the point at which they continue, and messages to the agent.

use super::kit::TestLoop;
use super::requests::{finished, running};
use crate::engine::event::{
    AgentReport, Event, Marker, Notice, ProcessExit, Request, RequestSource, TextSignals,
};
use crate::engine::{Amount, Effect, Limit, LimitChange, Status};

#[test]
fn a_done_loop_cannot_be_resumed() {
    let done = finished(running().say("<promise>DONE</promise>"));
    assert!(done.is_done());
    let asked = done.resume();
    assert!(asked.is_done());
    assert_eq!(asked.orders(), [Effect::Leave]);
}

#[test]
fn a_resume_continues_after_every_other_ending() {
    let blocked = AgentReport {
        signals: TextSignals {
            blocked: Some("no key".into()),
            ..TextSignals::default()
        },
        ..AgentReport::default()
    };
    let continues = |work: TestLoop, status| {
        assert_eq!(work.outcome().status(), status);
        assert_eq!(finished(work).open().resume().runs(), Some(2), "{status:?}");
    };
    let stopped = running().ask(Request::Stop, RequestSource::Inbox).exit(0);
    continues(stopped, Status::Stopped);
    continues(running().end(blocked), Status::Blocked);
    continues(running().marker(Marker::Blocked).exit(0), Status::Blocked);
    continues(running().marker(Marker::Wait).exit(0), Status::Waiting);
    continues(running().marker(Marker::Bus).exit(0), Status::Waiting);
    continues(running().fault().exit(0), Status::Failed);
    let waiting = TestLoop::new().with(|plan| plan.agent.exit_waiting = Some(42));
    continues(waiting.open().start().exit(42), Status::Waiting);
}

#[test]
fn a_resume_clears_only_the_claims_that_ended_the_loop() {
    let markers = vec![
        Marker::Done,
        Marker::Blocked,
        Marker::Wait,
        Marker::File,
        Marker::Bus,
    ];
    let work = TestLoop::preflight("g").start().end(AgentReport {
        exit: ProcessExit::from_code(0),
        markers,
        ..AgentReport::default()
    });
    let work = work.check("r").resume();
    assert_eq!(work.state.claims.markers, [Marker::Done, Marker::File]);
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn a_resume_clears_the_failures_that_ended_the_loop() {
    let failed = TestLoop::new().open().failures(4).start().exit(1);
    assert_eq!(failed.limit(), Limit::Failures);
    let work = failed.resume();
    assert_eq!((work.runs(), work.state.total_failures), (Some(6), 5));
    assert_eq!(work.failures(4).runs(), Some(10));
}

#[test]
fn a_resume_after_another_ending_keeps_the_failures() {
    let work = TestLoop::new()
        .open()
        .failures(2)
        .ask(Request::Stop, RequestSource::Inbox)
        .resume();
    assert_eq!(work.state.consecutive_failures, 2);
    let work = TestLoop::new().at_most(1).open().start().exit(1).resume();
    assert_eq!(
        (work.limit(), work.state.consecutive_failures),
        (Limit::Iterations, 1)
    );
}

#[test]
fn a_loop_at_its_limit_continues_only_after_the_limit_changes() {
    let at_limit = finished(TestLoop::new().at_most(1).open().start().exit(0));
    let refused = at_limit.clone().resume();
    assert_eq!(refused.limit(), Limit::Iterations);
    assert_eq!(
        refused.orders(),
        [Effect::Finish(refused.outcome())],
        "the new runner records it again"
    );
    let more = at_limit.feed(Event::Changed {
        limit: LimitChange {
            limit: Limit::Iterations,
            max: Some(Amount::Count(2)),
        },
        inbox: None,
    });
    assert_eq!(
        more.limit(),
        Limit::Iterations,
        "a change alone does not resume"
    );
    assert_eq!(more.resume().runs(), Some(2));
}

#[test]
fn a_resume_does_not_run_preflight_again() {
    let paused = TestLoop::preflight("r").ask(Request::Pause, RequestSource::Inbox);
    assert!(paused.is_paused());
    assert_eq!(paused.resume().runs(), Some(1));
    let without_preflight = TestLoop::new()
        .checks(1)
        .no_preflight()
        .open()
        .ask(Request::Pause, RequestSource::Inbox);
    assert_eq!(without_preflight.resume().runs(), Some(1));
}

#[test]
fn messages_wait_for_the_next_iteration_and_are_delivered_once() {
    let answer = |work: TestLoop, text: &str| {
        work.feed(Event::Answered {
            text: text.into(),
            inbox: None,
        })
    };
    let work = answer(answer(running(), "use port 80"), "be brief").exit(0);
    assert_eq!(work.state.answers, ["use port 80", "be brief"]);
    let delivered = answer(work.start(), "in mid-run").exit(0);
    assert_eq!(delivered.state.answers, ["in mid-run"]);
    assert!(delivered.start().exit(0).state.answers.is_empty());
}

#[test]
fn a_blocked_agents_question_is_delivered_with_the_answer() {
    let signals = TextSignals {
        blocked: Some("which port?".into()),
        ..TextSignals::default()
    };
    let blocked = running().end(AgentReport {
        signals,
        ..AgentReport::default()
    });
    let resumed = blocked.resume();
    assert_eq!(resumed.state.question.as_deref(), Some("which port?"));
    let crashed = resumed.start().open();
    assert_eq!(crashed.state.question.as_deref(), Some("which port?"));
    assert_eq!(crashed.start().exit(0).state.question, None);
}

#[test]
fn a_message_is_delivered_again_after_a_crash() {
    let asked = running().exit(0).feed(Event::Answered {
        text: "use port 80".into(),
        inbox: None,
    });
    let crashed = asked.start().open();
    assert_eq!(crashed.state.answers, ["use port 80"]);
    assert!(crashed.start().exit(0).state.answers.is_empty());
}

#[test]
fn a_message_is_delivered_again_if_its_iteration_was_cut_short() {
    let answered = || {
        let signals = TextSignals {
            blocked: Some("which port?".into()),
            ..TextSignals::default()
        };
        let blocked = running().end(AgentReport {
            signals,
            ..AgentReport::default()
        });
        blocked
            .feed(Event::Answered {
                text: "port 80".into(),
                inbox: None,
            })
            .resume()
    };
    let stopped = |request| {
        answered()
            .start()
            .ask(request, RequestSource::Inbox)
            .exit(0)
            .resume()
    };
    let unready = answered().start().notice(Notice::Unready).exit(0);
    let faulted = answered().start().fault().exit(0).resume();
    let not_spawned = answered().started_as_ordered(2).end(AgentReport::default());
    for (name, work) in [
        ("stopped", Box::new(stopped(Request::StopNow))),
        ("paused", Box::new(stopped(Request::PauseNow))),
        ("never ready", Box::new(unready)),
        ("faulted", Box::new(faulted)),
        ("not started", Box::new(not_spawned)),
    ] {
        let state = &work.state;
        assert_eq!(
            (&state.answers[..], state.answers_delivered),
            (&["port 80".to_owned()][..], 0),
            "{name}"
        );
        assert_eq!(state.question.as_deref(), Some("which port?"), "{name}");
        let rest = state.rest_until_ms.saturating_sub(state.clock_ms);
        let delivered = work.after(rest).start().exit(0);
        assert!(
            delivered.state.answers.is_empty() && delivered.state.question.is_none(),
            "{name}"
        );
    }
    let late = answered().start().notice(Notice::Silence).exit(0);
    assert!(
        late.state.answers.is_empty(),
        "the agent had time to read it"
    );
}
