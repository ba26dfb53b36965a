//! Crashes, faults, processes that cannot be killed, and stale events.

use super::kit::{TestLoop, green};
use crate::engine::event::{
    AgentReport, CheckReport, Event, Fault, Marker, Notice, Now, ProcessExit, Request,
    RequestSource,
};
use crate::engine::iteration::IterationEnd;
use crate::engine::state::{Claims, ProcessIdentity};
use crate::engine::{Effect, Limit, Outcome, Phase};

#[test]
fn an_iteration_that_a_crash_interrupts_counts_but_is_not_a_failure() {
    let work = TestLoop::until_green("r").start().open();
    let cut = &work.state.recent[0];
    assert_eq!(
        (cut.number, cut.end, cut.exit),
        (1, IterationEnd::Interrupted, ProcessExit::default())
    );
    assert_eq!((work.state.counted, work.state.total_failures), (1, 0));
    assert!(work.is_checking(), "the agent may have finished the work");
    assert!(work.clone().check("g").is_done());
    assert_eq!(work.check("r").runs(), Some(2), "numbers never repeat");
}

#[test]
fn a_crash_while_the_agent_is_killed_is_an_interruption() {
    let work = TestLoop::preflight("g")
        .start()
        .notice(Notice::Pattern)
        .open();
    assert_eq!(work.state.recent[0].end, IterationEnd::Interrupted);
    assert!(work.state.claims.signals.matched, "the match still counts");
}

#[test]
fn a_marker_seen_before_a_crash_still_counts() {
    assert!(
        TestLoop::new()
            .open()
            .start()
            .marker(Marker::Done)
            .open()
            .is_done()
    );
}

#[test]
fn the_next_runner_reports_the_cost_of_an_interrupted_iteration() {
    let opened = |cost_usd| Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd,
        tokens: None,
        in_session: false,
        boot: None,
    };
    let work = TestLoop::new().open().start();
    assert_eq!(
        work.clone().feed(opened(Some(0.5))).state.known_cost(),
        Some(0.5)
    );
    assert_eq!(work.clone().feed(opened(None)).state.known_cost(), None);
    let idle = TestLoop::new().open().feed(opened(Some(0.5)));
    assert_eq!(
        idle.state.known_cost(),
        Some(0.0),
        "no iteration was interrupted"
    );
}

#[test]
fn limits_hold_across_crashes() {
    let work = TestLoop::new().at_most(2).open().start().open();
    assert_eq!(work.runs(), Some(2));
    assert_eq!(work.start().open().limit(), Limit::Iterations);
}

#[test]
fn after_a_crash_during_checks_all_checks_run_again() {
    let work = TestLoop::new().checks(2).open().check("r").open();
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
        "the interrupted preflight does not count"
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
fn a_crash_while_nothing_runs_changes_nothing() {
    let paused = TestLoop::new()
        .open()
        .ask(Request::Pause, RequestSource::Inbox);
    let resting = TestLoop::new().open().start().exit(1);
    let ended = TestLoop::new().open().start().fault().exit(0);
    for work in [paused, resting, ended, TestLoop::new().open()] {
        assert_eq!(work.clone().open().state, work.state);
    }
}

#[test]
fn a_crash_after_an_immediate_pause_leaves_the_loop_paused() {
    assert!(
        TestLoop::preflight("g")
            .start()
            .ask(Request::PauseNow, RequestSource::Inbox)
            .open()
            .is_paused()
    );
}

#[test]
fn a_fault_while_no_agent_runs_is_fatal_at_once() {
    let fatal = Outcome::Fatal {
        class: Fault::Disk,
        detail: "full".into(),
    };
    let resting = TestLoop::new().open().start().exit(1);
    let checking = TestLoop::new().checks(1).open();
    for work in [TestLoop::new(), TestLoop::new().open(), resting, checking] {
        assert_eq!(work.fault().outcome(), fatal);
    }
}

#[test]
fn a_fault_before_the_agent_is_spawned_kills_nothing() {
    let work = TestLoop::preflight("g").started_as_ordered(1).fault();
    assert_eq!(work.outcome().status().as_str(), "failed");
    let cut = &work.state.recent[0];
    assert_eq!(
        (cut.end, cut.cost_usd, work.state.counted),
        (IterationEnd::Faulted, Some(0.0), 1)
    );
    assert_eq!(
        (work.state.known_cost(), work.state.total_failures),
        (Some(0.0), 0)
    );
    assert!(work.resume().is_checking(), "its checks are due");
}

#[test]
fn a_fault_while_the_agent_runs_kills_it_first() {
    let work = TestLoop::preflight("g").start().fault();
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
        (work.state.recent[0].end, work.state.total_failures),
        (IterationEnd::Faulted, 0)
    );
}

#[test]
fn a_fault_while_the_agent_is_killed_waits_for_its_end() {
    let work = TestLoop::new()
        .open()
        .start()
        .notice(Notice::Silence)
        .fault();
    assert_eq!(work.kills(), Some(false));
    let work = work.exit(143);
    assert_eq!(work.outcome().summary().kind, "fatal");
    assert_eq!(work.state.recent[0].end, IterationEnd::Inactive);
}

#[test]
fn the_process_of_an_earlier_iteration_is_ignored() {
    let work = TestLoop::new().open().start().exit(0);
    assert_eq!(
        work.state.process,
        Some(ProcessIdentity {
            pid: 101,
            start_time: 7
        }),
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
fn a_fault_after_the_end_is_ignored() {
    let ended = TestLoop::new()
        .open()
        .start()
        .say("<promise>DONE</promise>");
    let again = ended.clone().fault();
    assert_eq!(again.state, ended.state);
}

#[test]
fn a_fault_ends_a_paused_loop() {
    let paused = TestLoop::new()
        .open()
        .ask(Request::Pause, RequestSource::Inbox);
    assert_eq!(paused.fault().outcome().summary().kind, "fatal");
}

#[test]
fn processes_that_survive_sigkill_are_named_and_fatal() {
    let report = AgentReport {
        exit: ProcessExit::from_code(0),
        survivors: vec![7, 8],
        ..AgentReport::default()
    };
    let work = TestLoop::preflight("g").start().end(report);
    let detail = "processes still running after SIGKILL: 7, 8".to_owned();
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
    let two = |work: TestLoop| work.start().exit(0).start();
    let work = two(TestLoop::new().pattern("x").open());
    for iteration in [0, 1, 3, u32::MAX] {
        for event in [
            Event::Started {
                iteration,
                agent: None,
                tree: None,
                baseline: None,
                version: None,
            },
            Event::Ended {
                iteration,
                report: AgentReport::default(),
            },
            Event::Noticed {
                iteration,
                notice: Notice::Pattern,
                text: None,
            },
            Event::Noticed {
                iteration,
                notice: Notice::Silence,
                text: None,
            },
            Event::Noticed {
                iteration,
                notice: Notice::Marker(Marker::Done),
                text: None,
            },
            Event::Checked {
                iteration,
                check: 0,
                report: green(),
                tree: None,
                written: vec![],
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
    let work = TestLoop::new().open().start();
    assert_eq!(
        work.clone()
            .feed(Event::Started {
                iteration: 1,
                agent: None,
                tree: None,
                baseline: None,
                version: None,
            })
            .state,
        work.state
    );
}

#[test]
fn a_stale_exit_is_ignored() {
    let report = || AgentReport {
        exit: ProcessExit::from_code(1),
        cost_usd: Some(1.0),
        ..AgentReport::default()
    };
    let checking = TestLoop::preflight("g").start().exit(0);
    let resting = TestLoop::new().open().start().exit(1);
    let waiting = TestLoop::new().open().start().exit(0);
    for work in [checking, resting, waiting] {
        assert_eq!(work.clone().end(report()).state, work.state);
    }
}

#[test]
fn a_check_that_was_not_ordered_is_ignored() {
    let work = TestLoop::new().checks(2).open().check("g");
    for check in [0, 2, usize::MAX] {
        let event = Event::Checked {
            iteration: 0,
            check,
            report: CheckReport::default(),
            tree: None,
            written: vec![],
        };
        assert_eq!(work.clone().feed(event).state, work.state, "{check}");
    }
    let running = TestLoop::preflight("r").start();
    let early = Event::Checked {
        iteration: 1,
        check: 0,
        report: green(),
        tree: None,
        written: vec![],
    };
    assert_eq!(
        running.clone().feed(early).state,
        running.state,
        "a check counts only after its agent is gone"
    );
}

#[test]
fn a_stale_timer_is_ignored() {
    let killing = TestLoop::new().open().start().notice(Notice::Silence);
    assert_eq!(killing.clone().after(0).state, killing.state);
    let early = TestLoop::new().open().start().exit(1);
    assert_eq!(early.clone().after(0).state, early.state);
    let fresh = TestLoop::new()
        .open()
        .start()
        .after(7_199_999)
        .exit(0)
        .start()
        .after(1);
    assert_eq!(
        fresh.runs(),
        Some(2),
        "the first iteration's deadline does not apply to the second"
    );
}

#[test]
fn silence_between_iterations_is_ignored() {
    let work = TestLoop::new().open().start().exit(1);
    assert_eq!(work.clone().notice(Notice::Silence).state, work.state);
    assert_eq!(work.clone().notice(Notice::Pattern).state, work.state);
}

#[test]
fn an_event_of_a_later_version_changes_nothing() {
    let work = TestLoop::new().open().start();
    let event: Event = serde_json::from_str(r#"{"event":"teleported","to":[1,2]}"#).unwrap();
    assert_eq!(event, Event::Unknown);
    assert_eq!(work.clone().feed(event).state, work.state);
}

#[test]
fn claims_and_checks_expire_when_an_iteration_starts() {
    let work = TestLoop::preflight("g")
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
fn times_saturate_instead_of_overflowing() {
    let work = TestLoop::new()
        .open()
        .start()
        .after(u64::MAX)
        .after(u64::MAX)
        .exit(1);
    assert_eq!(
        (work.state.clock_ms, work.state.active_ms),
        (u64::MAX, u64::MAX)
    );
    let marked = TestLoop::new()
        .open()
        .after(u64::MAX)
        .start()
        .marker(Marker::Done);
    assert_eq!(marked.orders()[1], Effect::WakeAt(u64::MAX));
}

#[test]
fn an_interrupted_iteration_took_as_long_as_it_ran() {
    let mut work = TestLoop::new().open().start();
    work.state.clock_ms += 4200;
    let work = work.open();
    assert_eq!(
        (work.state.recent[0].end, work.state.recent[0].ms),
        (IterationEnd::Interrupted, 4200)
    );
}
