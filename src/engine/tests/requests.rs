//! What a person wants: pause, resume, stop, once and again, and what is forgiven by a resume.

use super::kit::Loop;
use crate::engine::event::{
    Change, Door, Event, Exit, Marker, Notice, Report, Said, Verdict, Wish,
};
use crate::engine::state::How;
use crate::engine::{Effect, Limit, Outcome, Phase, Status};

const DOORS: [Door; 4] = [Door::Inbox, Door::Sigint, Door::Sigterm, Door::Host];

fn running() -> Loop {
    Loop::new().open().start()
}

fn finished(work: Loop) -> Loop {
    let verdict = Verdict {
        kind: String::new(),
        why: String::new(),
        detail: String::new(),
    };
    work.feed(Event::Finished {
        outcome: verdict,
        stop_reason: String::new(),
        success: false,
        exit_code: 1,
        iterations: 1,
        cost_usd: None,
        duration_s: 0.0,
        worktree: None,
    })
}

#[test]
fn a_pause_lets_the_agent_finish_and_starts_nothing_new() {
    for by in DOORS {
        let work = running().ask(Wish::Pause, by);
        assert_eq!(work.runs(), Some(1), "{by:?}");
        let work = work.exit(0);
        assert!(work.is_paused());
        assert_eq!(
            (work.orders(), work.state.status(false)),
            (vec![Effect::Leave], Status::Paused)
        );
    }
}

#[test]
fn a_pause_lets_the_checks_finish() {
    let work = Loop::preflight("g")
        .start()
        .exit(0)
        .ask(Wish::Pause, Door::Inbox);
    assert!(work.is_checking());
    assert!(work.check("g").is_paused());
    let preflight = Loop::new().checks(1).open().ask(Wish::Pause, Door::Inbox);
    assert!(preflight.check("g").is_paused());
}

#[test]
fn a_pause_ends_a_rest_at_once_and_a_resume_does_not_rest_again() {
    let work = running().exit(1).ask(Wish::Pause, Door::Inbox);
    assert!(work.is_paused());
    assert_eq!(work.resume().runs(), Some(2));
}

#[test]
fn a_pause_takes_back_an_order_that_was_not_obeyed_yet() {
    let work = Loop::new().open().ask(Wish::Pause, Door::Inbox);
    assert!(work.is_paused());
    assert!(
        work.feed(Event::Started {
            iteration: 1,
            agent: None
        })
        .is_paused(),
        "too late"
    );
}

#[test]
fn a_resume_before_the_end_takes_the_pause_back() {
    let work = running().ask(Wish::Pause, Door::Inbox).resume().exit(0);
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn a_resume_of_a_running_loop_changes_nothing() {
    let resting = running().exit(1);
    for work in [running(), resting, Loop::new().checks(1).open()] {
        let before = work.orders();
        assert_eq!(work.resume().orders(), before);
    }
}

#[test]
fn the_first_signal_waits_the_second_kills_the_third_is_hard() {
    for (wish, by, status) in [
        (Wish::Stop, Door::Sigint, Status::Stopped),
        (Wish::Pause, Door::Sigterm, Status::Paused),
    ] {
        let once = running().ask(wish, by);
        assert_eq!(once.runs(), Some(1));
        assert_eq!(once.clone().exit(0).state.status(true), status);
        let twice = once.ask(wish, by);
        assert_eq!(
            twice.orders(),
            [Effect::Kill {
                iteration: 1,
                hard: false
            }]
        );
        let thrice = twice.clone().ask(wish, by);
        assert_eq!(
            thrice.orders(),
            [Effect::Kill {
                iteration: 1,
                hard: true
            }]
        );
        assert_eq!(thrice.clone().ask(wish, by).kills(), Some(true));
        let ended = twice.exit(143);
        assert_eq!(ended.state.status(true), status);
        assert_eq!(
            (ended.state.recent[0].how, ended.state.total_failures),
            (How::Stopped, 0)
        );
    }
}

#[test]
fn a_verb_asked_twice_does_not_escalate() {
    for wish in [Wish::Pause, Wish::Stop] {
        let work = running()
            .ask(wish, Door::Inbox)
            .ask(wish, Door::Inbox)
            .ask(wish, Door::Inbox);
        assert_eq!((work.runs(), work.state.wish), (Some(1), wish));
    }
    let killing = running().ask(Wish::StopNow, Door::Inbox);
    for weaker in [Wish::Pause, Wish::Stop] {
        assert_eq!(
            killing.clone().ask(weaker, Door::Inbox).kills(),
            Some(false),
            "{weaker:?}"
        );
    }
    assert_eq!(
        killing.ask(Wish::StopNow, Door::Inbox).kills(),
        Some(true),
        "but now asked twice is hard"
    );
}

#[test]
fn who_presses_while_the_agent_is_killed_for_another_reason_is_heard() {
    let killing = running()
        .notice(Notice::Silence)
        .ask(Wish::Stop, Door::Sigint);
    assert_eq!(killing.kills(), Some(false));
    let twice = killing.ask(Wish::Stop, Door::Sigint);
    assert_eq!(twice.kills(), Some(false), "it is being killed already");
    let thrice = twice.ask(Wish::Stop, Door::Sigint);
    assert_eq!(thrice.kills(), Some(true));
    let ended = thrice.exit(1);
    assert_eq!(ended.state.recent[0].how, How::Inactive, "the reason stays");
    assert_eq!(ended.outcome().status(), Status::Stopped);
}

#[test]
fn a_hard_kill_is_not_softened() {
    let hard = running()
        .ask(Wish::StopNow, Door::Inbox)
        .ask(Wish::StopNow, Door::Inbox);
    assert_eq!(
        hard.resume().ask(Wish::StopNow, Door::Inbox).kills(),
        Some(true)
    );
}

#[test]
fn the_first_signal_after_a_verb_is_not_the_second() {
    for (wish, by) in [(Wish::Stop, Door::Sigint), (Wish::Pause, Door::Sigterm)] {
        let once = running().ask(wish, Door::Inbox).ask(wish, by);
        assert_eq!(once.runs(), Some(1), "{by:?}");
        let verb_between = once.ask(wish, Door::Inbox);
        assert_eq!(verb_between.ask(wish, by).kills(), Some(false), "{by:?}");
    }
}

#[test]
fn a_pause_that_changes_nothing_does_not_rename_the_stop() {
    let work = running()
        .ask(Wish::Stop, Door::Sigint)
        .ask(Wish::Pause, Door::Inbox)
        .exit(0);
    assert_eq!(
        work.outcome(),
        Outcome::Stopped {
            by: "Ctrl-C".into()
        }
    );
}

/// What was wished by a signal, what is asked then, and what is wished after a verb or another signal.
#[test]
fn wishes_escalate_by_signal_and_a_pause_takes_no_stop_back() {
    use Wish::{Go, Pause, PauseNow, Stop, StopNow};
    for (before, asked, by_verb, by_signal) in [
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
        for by in DOORS {
            let mut work = running();
            (work.state.wish, work.state.wished_by) = (before, Door::Sigint);
            let expected = if by.is_signal() { by_signal } else { by_verb };
            let work = work.ask(asked, by);
            assert_eq!(work.state.wish, expected, "{before:?} {asked:?} {by:?}");
            let door = if expected == before && !by.is_signal() {
                Door::Sigint
            } else {
                by
            };
            assert_eq!(work.state.wished_by, door, "{before:?} {asked:?} {by:?}");
            assert_eq!(work.kills().is_some(), expected.is_now());
        }
    }
}

#[test]
fn a_stop_names_its_door() {
    for (by, word, sentence) in [
        (Door::Inbox, "ralph stop", "by a person (ralph stop)"),
        (Door::Sigint, "Ctrl-C", "by a person (Ctrl-C)"),
        (Door::Sigterm, "SIGTERM", "by a person (SIGTERM)"),
        (Door::Host, "the host program", "by the host program"),
    ] {
        let work = running().ask(Wish::Stop, by).exit(0);
        assert_eq!(work.outcome(), Outcome::Stopped { by: word.into() });
        assert_eq!(work.outcome().verdict().detail, sentence);
    }
}

#[test]
fn whoever_does_not_wait_for_the_agent_does_not_wait_for_checks() {
    for (wish, status) in [
        (Wish::StopNow, Status::Stopped),
        (Wish::PauseNow, Status::Paused),
    ] {
        let checking = Loop::new()
            .checks(2)
            .open()
            .check("g")
            .ask(wish, Door::Inbox);
        assert_eq!(checking.state.status(true), status);
        let killed = Loop::preflight("g")
            .start()
            .ask(wish, Door::Inbox)
            .exit(143);
        assert_eq!(killed.state.status(true), status);
        assert!(
            killed.resume().is_checking(),
            "the checks that were left out are due"
        );
        let unchecked = Loop::new()
            .checks(1)
            .no_preflight()
            .open()
            .start()
            .ask(wish, Door::Inbox)
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
fn a_wish_that_came_before_the_runner_comes_before_preflight() {
    for (wish, status) in [(Wish::Stop, Status::Stopped), (Wish::Pause, Status::Paused)] {
        let work = Loop::new().checks(1).ask(wish, Door::Inbox).open();
        assert_eq!(work.state.status(true), status);
        assert!(work.resume().is_checking(), "preflight is still due");
    }
}

#[test]
fn a_stop_ends_a_paused_loop() {
    let paused = running().ask(Wish::Pause, Door::Inbox).exit(0);
    let stopped = paused.clone().ask(Wish::Stop, Door::Inbox);
    assert_eq!(stopped.outcome().status(), Status::Stopped);
    assert!(paused.ask(Wish::Pause, Door::Inbox).is_paused());
}

#[test]
fn a_wish_on_an_ended_loop_changes_no_ending() {
    let ended = running().fault().exit(0);
    for wish in [Wish::Pause, Wish::PauseNow, Wish::Stop, Wish::StopNow] {
        assert_eq!(
            ended.clone().ask(wish, Door::Inbox).outcome().status(),
            Status::Failed
        );
    }
}

#[test]
fn an_ending_is_written_down_once_and_then_the_runner_leaves() {
    let ended = running().ask(Wish::Stop, Door::Inbox).exit(0);
    assert_eq!(ended.orders(), [Effect::Finish(ended.outcome())]);
    let left = finished(ended);
    assert_eq!(left.orders(), [Effect::Leave]);
    let again = left.resume().start().ask(Wish::Stop, Door::Inbox).exit(0);
    assert_eq!(again.orders(), [Effect::Finish(again.outcome())]);
    assert!(!finished(running()).state.finished);
}

#[test]
fn done_is_not_reopened() {
    let done = finished(running().say("<promise>DONE</promise>"));
    assert!(done.is_done());
    let asked = done.resume();
    assert!(asked.is_done());
    assert_eq!(asked.orders(), [Effect::Leave]);
}

#[test]
fn a_resume_goes_on_after_every_other_ending() {
    let blocked = Report {
        said: Said {
            blocked: Some("no key".into()),
            ..Said::default()
        },
        ..Report::default()
    };
    for (work, status) in [
        (
            running().ask(Wish::Stop, Door::Inbox).exit(0),
            Status::Stopped,
        ),
        (running().end(blocked), Status::Blocked),
        (running().marker(Marker::Blocked).exit(0), Status::Blocked),
        (running().marker(Marker::Wait).exit(0), Status::Waiting),
        (running().marker(Marker::Bus).exit(0), Status::Waiting),
        (running().fault().exit(0), Status::Failed),
        (
            Loop::new()
                .with(|plan| plan.agent.exit_waiting = Some(42))
                .open()
                .start()
                .exit(42),
            Status::Waiting,
        ),
    ] {
        assert_eq!(work.outcome().status(), status);
        assert_eq!(finished(work).open().resume().runs(), Some(2), "{status:?}");
    }
}

#[test]
fn a_resume_forgets_what_ended_the_loop_and_nothing_else() {
    let markers = vec![
        Marker::Done,
        Marker::Blocked,
        Marker::Wait,
        Marker::File,
        Marker::Bus,
    ];
    let work = Loop::preflight("g").start().end(Report {
        exit: Exit::code(0),
        markers,
        ..Report::default()
    });
    let work = work.check("r").resume();
    assert_eq!(work.state.claims.markers, [Marker::Done, Marker::File]);
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn failures_are_forgiven_at_once() {
    let failed = Loop::new().open().failures(4).start().exit(1);
    assert_eq!(failed.limit(), Limit::Failures);
    let work = failed.resume();
    assert_eq!((work.runs(), work.state.total_failures), (Some(6), 5));
    assert_eq!(work.failures(4).runs(), Some(10));
}

#[test]
fn only_a_limit_of_failures_forgives_failures() {
    let work = Loop::new()
        .open()
        .failures(2)
        .ask(Wish::Stop, Door::Inbox)
        .resume();
    assert_eq!(work.state.consecutive_failures, 2);
    let work = Loop::new().at_most(1).open().start().exit(1).resume();
    assert_eq!(
        (work.limit(), work.state.consecutive_failures),
        (Limit::Iterations, 1)
    );
}

#[test]
fn what_is_used_up_is_only_given_back_by_a_change() {
    let used = finished(Loop::new().at_most(1).open().start().exit(0));
    let refused = used.clone().resume();
    assert_eq!(refused.limit(), Limit::Iterations);
    assert_eq!(
        refused.orders(),
        [Effect::Finish(refused.outcome())],
        "the new runner says so again"
    );
    let more = used.feed(Event::Changed {
        limit: Change::MaxIterations(Some(2)),
        inbox: None,
    });
    assert_eq!(
        more.limit(),
        Limit::Iterations,
        "a change alone resumes nothing"
    );
    assert_eq!(more.resume().runs(), Some(2));
}

#[test]
fn a_resume_runs_no_new_preflight() {
    let paused = Loop::preflight("r").ask(Wish::Pause, Door::Inbox);
    assert!(paused.is_paused());
    assert_eq!(paused.resume().runs(), Some(1));
    let unasked = Loop::new()
        .checks(1)
        .no_preflight()
        .open()
        .ask(Wish::Pause, Door::Inbox);
    assert_eq!(unasked.resume().runs(), Some(1));
}

#[test]
fn answers_wait_for_the_next_iteration_and_are_told_once() {
    let answer = |work: Loop, text: &str| {
        work.feed(Event::Answered {
            text: text.into(),
            inbox: None,
        })
    };
    let work = answer(answer(running(), "use port 80"), "be brief").exit(0);
    assert_eq!(work.state.answers, ["use port 80", "be brief"]);
    let told = answer(work.start(), "in mid-run").exit(0);
    assert_eq!(told.state.answers, ["in mid-run"]);
    assert!(told.start().exit(0).state.answers.is_empty());
}

#[test]
fn the_question_of_a_blocked_agent_is_told_with_the_answer() {
    let said = Said {
        blocked: Some("which port?".into()),
        ..Said::default()
    };
    let blocked = running().end(Report {
        said,
        ..Report::default()
    });
    let resumed = blocked.resume();
    assert_eq!(resumed.state.question.as_deref(), Some("which port?"));
    let crashed = resumed.start().open();
    assert_eq!(crashed.state.question.as_deref(), Some("which port?"));
    assert_eq!(crashed.start().exit(0).state.question, None);
}

#[test]
fn an_answer_that_a_crash_cut_short_is_told_again() {
    let asked = running().exit(0).feed(Event::Answered {
        text: "use port 80".into(),
        inbox: None,
    });
    let crashed = asked.start().open();
    assert_eq!(crashed.state.answers, ["use port 80"]);
    assert!(crashed.start().exit(0).state.answers.is_empty());
}

#[test]
fn an_answer_to_an_iteration_that_was_cut_short_is_told_again() {
    let told = || {
        let said = Said {
            blocked: Some("which port?".into()),
            ..Said::default()
        };
        let blocked = running().end(Report {
            said,
            ..Report::default()
        });
        blocked
            .feed(Event::Answered {
                text: "port 80".into(),
                inbox: None,
            })
            .resume()
    };
    let stopped = |wish| told().start().ask(wish, Door::Inbox).exit(0).resume();
    let unready = told().start().notice(Notice::Unready).exit(0);
    let faulted = told().start().fault().exit(0).resume();
    let unborn = told().started_as_ordered(2).end(Report::default());
    for (how, work) in [
        ("stopped", stopped(Wish::StopNow)),
        ("paused", stopped(Wish::PauseNow)),
        ("never ready", unready),
        ("faulted", faulted),
        ("not started", unborn),
    ] {
        let state = &work.state;
        assert_eq!(
            (&state.answers[..], state.answers_told),
            (&["port 80".to_owned()][..], 0),
            "{how}"
        );
        assert_eq!(state.question.as_deref(), Some("which port?"), "{how}");
        let rest = state.rest_until_ms.saturating_sub(state.clock_ms);
        let heard = work.after(rest).start().exit(0);
        assert!(
            heard.state.answers.is_empty() && heard.state.question.is_none(),
            "{how}"
        );
    }
    let late = told().start().notice(Notice::Silence).exit(0);
    assert!(late.state.answers.is_empty(), "it had its time");
}

#[test]
fn the_inbox_is_never_read_backwards() {
    let mut work = running();
    let asked = |inbox| Event::Asked {
        wish: Wish::Go,
        by: Door::Inbox,
        inbox,
    };
    let changed = |inbox| Event::Changed {
        limit: Change::MaxCost(None),
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
fn status_says_whether_somebody_holds_the_lock() {
    for work in [
        Loop::new(),
        running(),
        running().exit(1),
        Loop::new().checks(1).open(),
    ] {
        assert_eq!(
            (work.state.status(true), work.state.status(false)),
            (Status::Running, Status::Crashed)
        );
        assert_eq!(work.state.outcome(), None);
    }
    assert!(matches!(Loop::new().state.phase, Phase::Waiting));
    assert!(Loop::new().orders().is_empty());
}
