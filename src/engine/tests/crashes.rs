//! Crashes, faults, survivors, and events that come too late.

use super::kit::{Loop, green};
use crate::engine::event::{
    CheckReport, Door, Event, Exit, Fault, Marker, Notice, Now, Report, Wish,
};
use crate::engine::state::{Claims, How};
use crate::engine::{Effect, Limit, Outcome, Phase};

#[test]
fn an_iteration_that_a_crash_cut_short_counts_and_blames_nobody() {
    let work = Loop::preflight("r").start().open();
    let cut = &work.state.recent[0];
    assert_eq!(
        (cut.number, cut.how, cut.exit),
        (1, How::Interrupted, Exit::default())
    );
    assert_eq!((work.state.counted, work.state.total_failures), (1, 0));
    assert!(work.is_checking(), "the work may be there all the same");
    assert!(work.clone().check("g").is_done());
    assert_eq!(work.check("r").runs(), Some(2), "numbers never repeat");
}

#[test]
fn a_crash_while_killing_is_an_interruption_too() {
    let work = Loop::preflight("g").start().notice(Notice::Pattern).open();
    assert_eq!(work.state.recent[0].how, How::Interrupted);
    assert!(
        work.state.claims.said.matched,
        "what was seen before is not forgotten"
    );
}

#[test]
fn a_marker_seen_before_a_crash_still_counts() {
    assert!(
        Loop::new()
            .open()
            .start()
            .marker(Marker::Done)
            .open()
            .is_done()
    );
}

#[test]
fn an_interrupted_iteration_has_cost_what_the_runner_found() {
    let opened = |cost_usd| Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd,
        tokens: None,
        inside: false,
    };
    let work = Loop::new().open().start();
    assert_eq!(
        work.clone().feed(opened(Some(0.5))).state.known_cost(),
        Some(0.5)
    );
    assert_eq!(work.clone().feed(opened(None)).state.known_cost(), None);
    let idle = Loop::new().open().feed(opened(Some(0.5)));
    assert_eq!(idle.state.known_cost(), Some(0.0), "nothing was cut short");
}

#[test]
fn limits_hold_across_crashes() {
    let work = Loop::new().at_most(2).open().start().open();
    assert_eq!(work.runs(), Some(2));
    assert_eq!(work.start().open().limit(), Limit::Iterations);
}

#[test]
fn a_crash_in_the_middle_of_checks_runs_them_all_again() {
    let work = Loop::new().checks(2).open().check("r").open();
    assert_eq!(
        work.orders(),
        [Effect::Check {
            iteration: 0,
            check: 0
        }]
    );
    let work = work.check("gg");
    assert_eq!(
        work.state.red_at_start,
        Some(false),
        "what was cut short says nothing"
    );
    let work = work
        .start()
        .say("<promise>DONE</promise>")
        .check("g")
        .open();
    assert_eq!(
        work.orders(),
        [Effect::Check {
            iteration: 1,
            check: 0
        }]
    );
    assert!(
        work.check("gg").is_done(),
        "the claim was made in the same iteration"
    );
}

#[test]
fn a_crash_elsewhere_changes_nothing() {
    let paused = Loop::new().open().ask(Wish::Pause, Door::Inbox);
    let resting = Loop::new().open().start().exit(1);
    let ended = Loop::new().open().start().fault().exit(0);
    for work in [paused, resting, ended, Loop::new().open()] {
        assert_eq!(work.clone().open().state, work.state);
    }
}

#[test]
fn a_crash_after_a_hurried_wish_fulfils_it() {
    assert!(
        Loop::preflight("g")
            .start()
            .ask(Wish::PauseNow, Door::Inbox)
            .open()
            .is_paused()
    );
}

#[test]
fn a_fault_before_anything_runs_is_fatal() {
    let fatal = Outcome::Fatal {
        class: Fault::Disk,
        detail: "full".into(),
    };
    let resting = Loop::new().open().start().exit(1);
    let checking = Loop::new().checks(1).open();
    for work in [Loop::new(), Loop::new().open(), resting, checking] {
        assert_eq!(work.fault().outcome(), fatal);
    }
}

#[test]
fn a_fault_between_start_and_spawn_leaves_nothing_to_kill() {
    let work = Loop::preflight("g").started_as_ordered(1).fault();
    assert_eq!(work.outcome().status().word(), "failed");
    let cut = &work.state.recent[0];
    assert_eq!(
        (cut.how, cut.cost_usd, work.state.counted),
        (How::Faulted, Some(0.0), 1)
    );
    assert_eq!(
        (work.state.known_cost(), work.state.total_failures),
        (Some(0.0), 0)
    );
    assert!(work.resume().is_checking(), "its checks are due");
}

#[test]
fn a_fault_after_the_spawn_kills_first() {
    let work = Loop::preflight("g").start().fault();
    assert_eq!(work.kills(), Some(false));
    let work = work.exit(143);
    assert_eq!(
        work.outcome(),
        Outcome::Fatal {
            class: Fault::Disk,
            detail: "full".into()
        }
    );
    assert_eq!(
        (work.state.recent[0].how, work.state.total_failures),
        (How::Faulted, 0)
    );
}

#[test]
fn a_fault_while_killing_waits_for_the_end() {
    let work = Loop::new().open().start().notice(Notice::Silence).fault();
    assert_eq!(work.kills(), Some(false));
    let work = work.exit(143);
    assert_eq!(work.outcome().verdict().kind, "fatal");
    assert_eq!(work.state.recent[0].how, How::Inactive);
}

#[test]
fn a_process_of_an_earlier_iteration_is_not_the_newest_ones() {
    let work = Loop::new().open().start().exit(0);
    assert_eq!(
        work.state.process,
        Some((101, 7)),
        "to be found again after a crash"
    );
    let late = work.started_as_ordered(2).feed(Event::Spawned {
        iteration: 1,
        pid: 9,
        start_time: 9,
    });
    assert_eq!(late.state.process, None);
    assert!(
        late.fault().state.outcome().is_some(),
        "nothing was spawned, so nothing is killed"
    );
}

#[test]
fn a_fault_ends_nothing_twice() {
    let ended = Loop::new().open().start().say("<promise>DONE</promise>");
    let again = ended.clone().fault();
    assert_eq!(again.state, ended.state);
}

#[test]
fn a_fault_of_a_paused_loop_ends_it() {
    let paused = Loop::new().open().ask(Wish::Pause, Door::Inbox);
    assert_eq!(paused.fault().outcome().verdict().kind, "fatal");
}

#[test]
fn survivors_are_named_and_fatal() {
    let report = Report {
        exit: Exit::code(0),
        survivors: vec![7, 8],
        ..Report::default()
    };
    let work = Loop::preflight("g").start().end(report);
    let detail = "processes outlived KILL: 7, 8".to_owned();
    assert_eq!(
        work.outcome(),
        Outcome::Fatal {
            class: Fault::Survivors,
            detail
        }
    );
}

#[test]
fn events_of_another_iteration_are_ignored() {
    let two = |work: Loop| work.start().exit(0).start();
    let work = two(Loop::new().pattern("x").open());
    for iteration in [0, 1, 3, u32::MAX] {
        for event in [
            Event::Started {
                iteration,
                agent: None,
            },
            Event::Ended {
                iteration,
                report: Report::default(),
            },
            Event::Noticed {
                iteration,
                notice: Notice::Pattern,
                words: None,
            },
            Event::Noticed {
                iteration,
                notice: Notice::Silence,
                words: None,
            },
            Event::Noticed {
                iteration,
                notice: Notice::Marker(Marker::Done),
                words: None,
            },
            Event::Checked {
                iteration,
                check: 0,
                report: green(),
            },
            Event::Spawned {
                iteration,
                pid: 9,
                start_time: 9,
            },
        ] {
            assert_eq!(
                work.clone().feed(event.clone()).state,
                work.state,
                "{event:?}"
            );
        }
    }
}

#[test]
fn a_second_start_of_the_same_iteration_is_ignored() {
    let work = Loop::new().open().start();
    assert_eq!(
        work.clone()
            .feed(Event::Started {
                iteration: 1,
                agent: None
            })
            .state,
        work.state
    );
}

#[test]
fn a_stale_exit_is_ignored() {
    let report = || Report {
        exit: Exit::code(1),
        cost_usd: Some(1.0),
        ..Report::default()
    };
    let checking = Loop::preflight("g").start().exit(0);
    let resting = Loop::new().open().start().exit(1);
    let waiting = Loop::new().open().start().exit(0);
    for work in [checking, resting, waiting] {
        assert_eq!(work.clone().end(report()).state, work.state);
    }
}

#[test]
fn a_check_out_of_turn_is_ignored() {
    let work = Loop::new().checks(2).open().check("g");
    for check in [0, 2, usize::MAX] {
        let event = Event::Checked {
            iteration: 0,
            check,
            report: CheckReport::default(),
        };
        assert_eq!(work.clone().feed(event).state, work.state, "{check}");
    }
    let running = Loop::preflight("r").start();
    let early = Event::Checked {
        iteration: 1,
        check: 0,
        report: green(),
    };
    assert_eq!(
        running.clone().feed(early).state,
        running.state,
        "no check counts before its agent is gone"
    );
}

#[test]
fn a_stale_alarm_is_ignored() {
    let killing = Loop::new().open().start().notice(Notice::Silence);
    assert_eq!(killing.clone().after(0).state, killing.state);
    let early = Loop::new().open().start().exit(1);
    assert_eq!(early.clone().after(0).state, early.state);
    let fresh = Loop::new()
        .open()
        .start()
        .after(7_199_999)
        .exit(0)
        .start()
        .after(1);
    assert_eq!(
        fresh.runs(),
        Some(2),
        "the alarm of the first is not the second's"
    );
}

#[test]
fn a_silence_between_iterations_is_ignored() {
    let work = Loop::new().open().start().exit(1);
    assert_eq!(work.clone().notice(Notice::Silence).state, work.state);
    assert_eq!(work.clone().notice(Notice::Pattern).state, work.state);
}

#[test]
fn a_line_of_a_later_version_changes_nothing() {
    let work = Loop::new().open().start();
    let event: Event = serde_json::from_str(r#"{"event":"teleported","to":[1,2]}"#).unwrap();
    assert_eq!(event, Event::Unknown);
    assert_eq!(work.clone().feed(event).state, work.state);
}

#[test]
fn a_new_iteration_starts_with_a_clean_slate() {
    let work = Loop::preflight("g")
        .start()
        .marker(Marker::Done)
        .say("<promise>DONE</promise>")
        .check("r");
    let mut started = work.start();
    assert_eq!(
        (&started.state.claims, &started.state.checks),
        (&Claims::default(), &vec![None])
    );
    started.state.step(
        Now {
            wall_ms: 1_700_000_000_000,
            delta_ms: 5,
        },
        &Event::Woke,
    );
    assert_eq!(started.state.wall_ms, 1_700_000_000_000);
    assert_eq!(started.state.iteration_wall_ms, Some(0), "it began before");
    let Phase::Running { since_ms, .. } = started.state.phase else {
        panic!()
    };
    assert_eq!((since_ms, started.state.clock_ms), (0, 5));
}

#[test]
fn a_time_beyond_all_bounds_does_not_overflow() {
    let work = Loop::new()
        .open()
        .start()
        .after(u64::MAX)
        .after(u64::MAX)
        .exit(1);
    assert_eq!(
        (work.state.clock_ms, work.state.active_ms),
        (u64::MAX, u64::MAX)
    );
    let marked = Loop::new()
        .open()
        .after(u64::MAX)
        .start()
        .marker(Marker::Done);
    assert_eq!(marked.orders()[1], Effect::WakeAt(u64::MAX));
}
