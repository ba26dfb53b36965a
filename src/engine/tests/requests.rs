//! Requests to pause and stop, and their escalation.

use super::kit::TestLoop;
use crate::engine::event::{Event, Notice, Request, RequestSource};
use crate::engine::iteration::IterationEnd;
use crate::engine::outcome::{OutcomeSummary, StopReason};
use crate::engine::{Effect, Limit, LimitChange, Liveness, Outcome, Phase, Status};
const SOURCES: [RequestSource; 4] = [
    RequestSource::Inbox,
    RequestSource::Sigint,
    RequestSource::Sigterm,
    RequestSource::Host,
];

pub(super) fn running() -> TestLoop {
    TestLoop::new().open().start()
}

pub(super) fn finished(work: TestLoop) -> TestLoop {
    let outcome = OutcomeSummary {
        kind: String::new(),
        why: String::new(),
        detail: String::new(),
    };
    work.feed(Event::Finished {
        outcome,
        stop_reason: StopReason::Stopped,
        success: false,
        exit_code: 1,
        iterations: 1,
        cost_usd: None,
        duration_s: 0.0,
        worktree: None,
        branch: None,
        better: None,
        review: None,
        end: None,
    })
}

#[test]
fn a_pause_lets_the_agent_finish_and_starts_nothing_new() {
    for by in SOURCES {
        let work = running().ask(Request::Pause, by);
        assert_eq!(work.runs(), Some(1), "{by:?}");
        let work = work.exit(0);
        assert!(work.is_paused());
        assert_eq!(
            (work.orders(), work.state.status(Liveness::Idle)),
            (vec![Effect::Leave], Status::Paused)
        );
    }
}

#[test]
fn a_pause_lets_the_checks_finish() {
    let work = TestLoop::preflight("g")
        .start()
        .exit(0)
        .ask(Request::Pause, RequestSource::Inbox);
    assert!(work.is_checking());
    assert!(work.check("g").is_paused());
    let preflight = TestLoop::new()
        .checks(1)
        .open()
        .ask(Request::Pause, RequestSource::Inbox);
    assert!(preflight.check("g").is_paused());
}

#[test]
fn a_pause_ends_a_rest_at_once_and_a_resume_does_not_rest_again() {
    let work = running().exit(1).ask(Request::Pause, RequestSource::Inbox);
    assert!(work.is_paused());
    assert_eq!(work.resume().runs(), Some(2));
}

#[test]
fn a_pause_cancels_an_iteration_that_has_not_started() {
    let work = TestLoop::new()
        .open()
        .ask(Request::Pause, RequestSource::Inbox);
    assert!(work.is_paused());
    assert!(
        work.feed(Event::Started {
            iteration: 1,
            agent: None,
            tree: None,
            baseline: None,
            version: None,
        })
        .is_paused(),
        "too late"
    );
}

#[test]
fn a_resume_before_the_iteration_ends_takes_the_pause_back() {
    let work = running()
        .ask(Request::Pause, RequestSource::Inbox)
        .resume()
        .exit(0);
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn a_resume_of_a_running_loop_changes_nothing() {
    let resting = running().exit(1);
    for work in [running(), resting, TestLoop::new().checks(1).open()] {
        let before = work.orders();
        assert_eq!(work.resume().orders(), before);
    }
}

#[test]
fn a_person_s_pause_outweighs_a_signal_s() {
    use RequestSource::{Inbox, Sigterm};
    for (sources, expected) in [
        (&[Sigterm][..], Sigterm),
        (&[Sigterm, Sigterm], Sigterm),
        (&[Inbox], Inbox),
        (&[Inbox, Sigterm], Inbox),
        (&[Sigterm, Inbox], Inbox),
    ] {
        let pause = |work: TestLoop, by: &RequestSource| work.ask(Request::Pause, *by);
        let work = sources.iter().fold(running(), pause);
        assert_eq!(work.state.paused_by, Some(expected), "{sources:?}");
        assert_eq!(work.resume().state.paused_by, None);
    }
}

#[test]
fn the_first_signal_waits_the_second_kills_and_the_third_kills_hard() {
    for (request, by, status) in [
        (Request::Stop, RequestSource::Sigint, Status::Stopped),
        (Request::Pause, RequestSource::Sigterm, Status::Paused),
    ] {
        let once = running().ask(request, by);
        assert_eq!(once.runs(), Some(1));
        assert_eq!(once.clone().exit(0).state.status(Liveness::Running), status);
        let twice = once.ask(request, by);
        assert_eq!(
            twice.orders(),
            [Effect::Kill {
                iteration: 1,
                hard: false
            }]
        );
        let thrice = twice.clone().ask(request, by);
        assert_eq!(
            thrice.orders(),
            [Effect::Kill {
                iteration: 1,
                hard: true
            }]
        );
        assert_eq!(thrice.clone().ask(request, by).kills(), Some(true));
        let ended = twice.exit(143);
        assert_eq!(ended.state.status(Liveness::Running), status);
        assert_eq!(
            (ended.state.recent[0].end, ended.state.total_failures),
            (IterationEnd::Stopped, 0)
        );
    }
}

#[test]
fn a_repeated_command_does_not_escalate() {
    for request in [Request::Pause, Request::Stop] {
        let work = running()
            .ask(request, RequestSource::Inbox)
            .ask(request, RequestSource::Inbox)
            .ask(request, RequestSource::Inbox);
        assert_eq!((work.runs(), work.state.request), (Some(1), request));
    }
    let killing = running().ask(Request::StopNow, RequestSource::Inbox);
    for weaker in [Request::Pause, Request::Stop] {
        assert_eq!(
            killing.clone().ask(weaker, RequestSource::Inbox).kills(),
            Some(false),
            "{weaker:?}"
        );
    }
    assert_eq!(
        killing.ask(Request::StopNow, RequestSource::Inbox).kills(),
        Some(true),
        "a second immediate stop kills hard"
    );
}

#[test]
fn signals_escalate_while_the_agent_is_killed_for_another_reason() {
    let killing = running()
        .notice(Notice::Silence)
        .ask(Request::Stop, RequestSource::Sigint);
    assert_eq!(killing.kills(), Some(false));
    let twice = killing.ask(Request::Stop, RequestSource::Sigint);
    assert_eq!(twice.kills(), Some(false), "it is already being killed");
    let thrice = twice.ask(Request::Stop, RequestSource::Sigint);
    assert_eq!(thrice.kills(), Some(true));
    let ended = thrice.exit(1);
    assert_eq!(
        ended.state.recent[0].end,
        IterationEnd::Inactive,
        "the reason does not change"
    );
    assert_eq!(ended.outcome().status(), Status::Stopped);
}

#[test]
fn a_hard_kill_stays_hard() {
    let hard = running()
        .ask(Request::StopNow, RequestSource::Inbox)
        .ask(Request::StopNow, RequestSource::Inbox);
    assert_eq!(
        hard.resume()
            .ask(Request::StopNow, RequestSource::Inbox)
            .kills(),
        Some(true)
    );
}

#[test]
fn the_first_signal_after_a_command_does_not_escalate() {
    for (request, by) in [
        (Request::Stop, RequestSource::Sigint),
        (Request::Pause, RequestSource::Sigterm),
    ] {
        let once = running()
            .ask(request, RequestSource::Inbox)
            .ask(request, by);
        assert_eq!(once.runs(), Some(1), "{by:?}");
        let command_between = once.ask(request, RequestSource::Inbox);
        assert_eq!(
            command_between.ask(request, by).kills(),
            Some(false),
            "{by:?}"
        );
    }
}

#[test]
fn a_weaker_request_does_not_change_the_source_of_a_stop() {
    let work = running()
        .ask(Request::Stop, RequestSource::Sigint)
        .ask(Request::Pause, RequestSource::Inbox)
        .exit(0);
    assert_eq!(
        work.outcome(),
        Outcome::Stopped {
            by: RequestSource::Sigint
        }
    );
}

/// Each row has the request in force, made by a signal; a second request; the result if the second
/// request comes from a command; and the result if it comes from a signal.
#[test]
fn requests_escalate_by_signal_and_a_pause_does_not_undo_a_stop() {
    use Request::{Go, Pause, PauseNow, Stop, StopNow};
    for (before, asked, by_command, by_signal) in [
        (Go, Go, Go, Go),
        (Go, Pause, Pause, Pause),
        (Go, PauseNow, PauseNow, PauseNow),
        (Go, Stop, Stop, Stop),
        (Go, StopNow, StopNow, StopNow),
        (Pause, Go, Go, Go),
        (Pause, Pause, Pause, PauseNow),
        (Pause, PauseNow, PauseNow, PauseNow),
        (Pause, Stop, Stop, StopNow),
        (Pause, StopNow, StopNow, StopNow),
        (PauseNow, Go, Go, Go),
        (PauseNow, Pause, PauseNow, PauseNow),
        (PauseNow, PauseNow, PauseNow, PauseNow),
        (PauseNow, Stop, StopNow, StopNow),
        (PauseNow, StopNow, StopNow, StopNow),
        (Stop, Go, Go, Go),
        (Stop, Pause, Stop, StopNow),
        (Stop, PauseNow, StopNow, StopNow),
        (Stop, Stop, Stop, StopNow),
        (Stop, StopNow, StopNow, StopNow),
        (StopNow, Go, Go, Go),
        (StopNow, Pause, StopNow, StopNow),
        (StopNow, PauseNow, StopNow, StopNow),
        (StopNow, Stop, StopNow, StopNow),
        (StopNow, StopNow, StopNow, StopNow),
    ] {
        for by in SOURCES {
            let mut work = running();
            (work.state.request, work.state.requested_by) = (before, RequestSource::Sigint);
            let expected = if by.is_signal() {
                by_signal
            } else {
                by_command
            };
            let work = work.ask(asked, by);
            assert_eq!(work.state.request, expected, "{before:?} {asked:?} {by:?}");
            let source = if expected == before && !by.is_signal() {
                RequestSource::Sigint
            } else {
                by
            };
            assert_eq!(
                work.state.requested_by, source,
                "{before:?} {asked:?} {by:?}"
            );
            assert_eq!(work.kills().is_some(), expected.is_immediate());
        }
    }
}

#[test]
fn a_stop_names_its_source() {
    for (by, label, detail) in [
        (
            RequestSource::Inbox,
            "ralph stop",
            "by a person (ralph stop)",
        ),
        (RequestSource::Sigint, "Ctrl-C", "by a person (Ctrl-C)"),
        (
            RequestSource::Parent,
            "its parent loop",
            "by its parent loop",
        ),
        (RequestSource::Sigterm, "SIGTERM", "by a person (SIGTERM)"),
        (
            RequestSource::Host,
            "the host program",
            "by the host program",
        ),
    ] {
        let work = running().ask(Request::Stop, by).exit(0);
        assert_eq!(work.outcome(), Outcome::Stopped { by });
        let summary = work.outcome().summary();
        assert_eq!(
            (summary.why.as_str(), summary.detail.as_str()),
            (label, detail)
        );
    }
}

#[test]
fn an_immediate_request_skips_the_checks() {
    for (request, status) in [
        (Request::StopNow, Status::Stopped),
        (Request::PauseNow, Status::Paused),
    ] {
        let checking = TestLoop::new()
            .checks(2)
            .open()
            .check("g")
            .ask(request, RequestSource::Inbox);
        assert_eq!(checking.state.status(Liveness::Running), status);
        let killed = TestLoop::preflight("g")
            .start()
            .ask(request, RequestSource::Inbox)
            .exit(143);
        assert_eq!(killed.state.status(Liveness::Running), status);
        assert!(killed.resume().is_checking(), "the skipped checks are due");
        let unchecked = TestLoop::new()
            .checks(1)
            .no_preflight()
            .open()
            .start()
            .ask(request, RequestSource::Inbox)
            .exit(143);
        assert!(unchecked.resume().is_checking());
        assert_eq!(
            checking.resume().orders(),
            [Effect::Check {
                iteration: 0,
                check: 0
            }]
        );
    }
}

#[test]
fn a_request_made_before_the_loop_opens_comes_before_preflight() {
    for (request, status) in [
        (Request::Stop, Status::Stopped),
        (Request::Pause, Status::Paused),
    ] {
        let work = TestLoop::new()
            .checks(1)
            .ask(request, RequestSource::Inbox)
            .open();
        assert_eq!(work.state.status(Liveness::Running), status);
        assert!(work.resume().is_checking(), "preflight is still due");
    }
}

#[test]
fn a_stop_ends_a_paused_loop() {
    let paused = running().ask(Request::Pause, RequestSource::Inbox).exit(0);
    let stopped = paused.clone().ask(Request::Stop, RequestSource::Inbox);
    assert_eq!(stopped.outcome().status(), Status::Stopped);
    assert!(paused.ask(Request::Pause, RequestSource::Inbox).is_paused());
}

#[test]
fn a_request_does_not_change_an_ending() {
    let ended = running().fault().exit(0);
    for request in [
        Request::Pause,
        Request::PauseNow,
        Request::Stop,
        Request::StopNow,
    ] {
        assert_eq!(
            ended
                .clone()
                .ask(request, RequestSource::Inbox)
                .outcome()
                .status(),
            Status::Failed
        );
    }
}

#[test]
fn an_ending_is_recorded_once_and_then_the_runner_exits() {
    let ended = running().ask(Request::Stop, RequestSource::Inbox).exit(0);
    assert_eq!(ended.orders(), [Effect::Finish(ended.outcome())]);
    let recorded = finished(ended);
    assert_eq!(recorded.orders(), [Effect::Leave]);
    let again = recorded
        .resume()
        .start()
        .ask(Request::Stop, RequestSource::Inbox)
        .exit(0);
    assert_eq!(again.orders(), [Effect::Finish(again.outcome())]);
    assert!(!finished(running()).state.finished);
}

#[test]
fn the_inbox_offset_never_decreases() {
    let mut work = running();
    let asked = |inbox| Event::Asked {
        request: Request::Go,
        by: RequestSource::Inbox,
        inbox,
    };
    let changed = |inbox| Event::Changed {
        limit: LimitChange {
            limit: Limit::Cost,
            max: None,
        },
        inbox,
    };
    let answered = |inbox| Event::Answered {
        text: String::new(),
        inbox,
    };
    for (event, offset) in [
        (asked(Some(10)), 10),
        (asked(Some(5)), 10),
        (asked(None), 10),
        (changed(Some(20)), 20),
        (answered(Some(30)), 30),
    ] {
        work = work.feed(event);
        assert_eq!(work.state.inbox_offset, offset);
    }
}

#[test]
fn a_loop_without_an_ending_is_crashed_if_its_lock_is_free() {
    for work in [
        TestLoop::new(),
        running(),
        running().exit(1),
        TestLoop::new().checks(1).open(),
    ] {
        assert_eq!(
            (
                work.state.status(Liveness::Running),
                work.state.status(Liveness::Idle)
            ),
            (Status::Running, Status::Crashed)
        );
        assert_eq!(work.state.outcome(), None);
    }
    assert!(matches!(TestLoop::new().state.phase, Phase::NotStarted));
    assert!(TestLoop::new().orders().is_empty());
}
