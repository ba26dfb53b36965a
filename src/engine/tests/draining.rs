//! A loop waits for its child loops before it ends, and stops them if the wait times out or the
//! loop is stopped.

use super::kit::TestLoop;
use crate::engine::event::{AgentReport, Event, Marker, Request, RequestSource, TextSignals};
use crate::engine::plan::FIRST_RULES;
use crate::engine::{Amount, Effect, Limit, LimitChange, Outcome};

/// Returns a loop whose work is done and whose child loops are not drained yet.
fn done() -> TestLoop {
    promised(TestLoop::new().open().start())
}

/// Ends the agent with the promise that was asked for.
fn promised(work: TestLoop) -> TestLoop {
    let iteration = work.state.iteration;
    let signals = TextSignals {
        promised: true,
        ..TextSignals::default()
    };
    work.feed_without_draining(Event::Ended {
        iteration,
        report: AgentReport {
            signals,
            cost_usd: Some(0.0),
            ..AgentReport::default()
        },
    })
}

fn ask(work: TestLoop, request: Request) -> TestLoop {
    work.feed_without_draining(Event::Asked {
        request,
        by: RequestSource::Sigint,
        inbox: None,
    })
}

fn woke(mut work: TestLoop, ms: u64) -> TestLoop {
    work.state.step(
        crate::engine::Now {
            wall_ms: 0,
            delta_ms: ms,
        },
        &Event::Woke,
    );
    work
}

#[test]
fn a_loop_is_done_once_its_child_loops_have_ended() {
    let work = done();
    assert_eq!(
        work.orders(),
        [
            Effect::Drain {
                iteration: 1,
                stop: false
            },
            Effect::WakeAt(300_000)
        ]
    );
    assert!(work.clone().drained(&[], &[]).is_done());
    assert!(
        work.drained(&["child"], &[]).is_done(),
        "there are no checks to run again"
    );
}

#[test]
fn checks_run_again_if_child_loops_were_running() {
    let work = TestLoop::until_green("r").start().exit(0);
    let last =
        |work: TestLoop| work.feed_without_draining(super::kit::checked(1, super::kit::green()));
    let work = last(work);
    assert!(work.is_draining());
    assert!(
        work.clone().drained(&[], &[]).is_done(),
        "no child loop ran, so nothing can have changed"
    );
    for work in [
        work.clone().drained(&["child"], &[]),
        work.drained(&[], &["child"]),
    ] {
        assert!(work.is_checking());
        assert!(
            last(work.clone()).is_done(),
            "child loops are not drained twice"
        );
        let red = work.check("r");
        assert_eq!(
            red.runs(),
            Some(2),
            "the agent fixes what a child loop broke"
        );
        assert!(
            !red.start().state.drained,
            "the next agent may start child loops"
        );
    }
}

#[test]
fn a_claim_over_a_red_check_waits_for_child_loops_before_another_iteration() {
    let red =
        |work: TestLoop| work.feed_without_draining(super::kit::checked(1, super::kit::red()));
    let new = || {
        TestLoop::new()
            .checks(1)
            .promise("X")
            .open()
            .check("r")
            .start()
    };
    let claimed = || red(new().say("<promise>X</promise>"));
    assert!(claimed().is_draining());
    assert_eq!(claimed().drained(&[], &[]).runs(), Some(2), "no child loop");
    let again = claimed().drained(&["child"], &[]);
    assert!(again.is_checking());
    assert!(again.clone().check("g").is_done());
    assert_eq!(
        red(again).runs(),
        Some(2),
        "child loops are not drained twice"
    );
    for request in [Request::Pause, Request::PauseNow] {
        assert!(ask(claimed(), request).is_paused());
    }
    let late = woke(claimed(), 300_000);
    assert_eq!(late.runs(), Some(2), "child loops are not stopped");
    let ending = claimed().feed_without_draining(Event::Changed {
        limit: LimitChange {
            limit: Limit::Iterations,
            max: Some(Amount::Count(1)),
        },
        inbox: None,
    });
    let orders = woke(ending, 300_000).orders();
    assert!(matches!(orders[..], [Effect::Drain { stop: true, .. }]));
    assert_eq!(red(new().exit(0)).runs(), Some(2), "no claim");
    let mut old = new().say("<promise>X</promise>");
    old.state.plan.rules = FIRST_RULES;
    assert_eq!(red(old).runs(), Some(2), "older versions did not wait");
}

#[test]
fn child_loops_that_take_too_long_are_stopped_and_the_outcome_stays_done() {
    let work = woke(done(), 299_999);
    assert_eq!(work.orders().len(), 2, "not yet");
    let work = woke(work, 1);
    assert_eq!(
        work.orders(),
        [Effect::Drain {
            iteration: 1,
            stop: true
        }]
    );
    assert!(work.drained(&[], &["child"]).is_done());
    let patient = TestLoop::new()
        .with(|plan| plan.grace.children_ms = None)
        .open()
        .start();
    assert_eq!(
        promised(patient).orders(),
        [Effect::Drain {
            iteration: 1,
            stop: false
        }],
        "forever"
    );
}

/// Returns loops about to end in every way but `done` and `stopped`, whose child loops are not
/// drained yet.
fn endings() -> [(&'static str, TestLoop); 4] {
    let new = || TestLoop::new().checks(1).no_preflight();
    let red = |work: TestLoop| {
        let work = work.feed_without_draining(Event::Ended {
            iteration: 1,
            report: AgentReport::default(),
        });
        work.feed_without_draining(super::kit::checked(1, super::kit::red()))
    };
    let fatal = new().open().start().fault();
    [
        ("limit", red(new().at_most(1).open().start())),
        ("blocked", red(new().open().start().marker(Marker::Blocked))),
        ("waiting", red(new().open().start().marker(Marker::Wait))),
        (
            "fatal",
            fatal.feed_without_draining(Event::Ended {
                iteration: 1,
                report: AgentReport::default(),
            }),
        ),
    ]
}

#[test]
fn every_ending_waits_for_child_loops_and_then_stops_them() {
    for (kind, work) in endings() {
        let waits = [
            Effect::Drain {
                iteration: 1,
                stop: false,
            },
            Effect::WakeAt(300_000),
        ];
        assert_eq!(work.orders(), waits, "{kind}");
        assert_eq!(
            work.clone().drained(&[], &[]).outcome().summary().kind,
            kind
        );
        let late = woke(work, 300_000);
        assert_eq!(
            late.orders(),
            [Effect::Drain {
                iteration: 1,
                stop: true
            }],
            "{kind}"
        );
        let ended = late.drained(&[], &["child"]);
        let ended = if kind == "fatal" {
            ended
        } else {
            ended.check("r")
        };
        assert_eq!(ended.outcome().summary().kind, kind, "once is enough");
    }
}

#[test]
fn work_of_child_loops_after_a_limit_can_make_the_loop_done() {
    let [(_, work), ..] = endings();
    let mut work = work;
    work.state.claims.signals.promised = true;
    let work = work.drained(&["child"], &[]);
    assert!(work.is_checking());
    assert!(work.check("g").is_done());
}

#[test]
fn an_immediate_pause_stops_child_loops_but_does_not_change_the_ending() {
    for (kind, work) in endings() {
        let work = ask(work, Request::PauseNow);
        assert_eq!(
            work.orders(),
            [Effect::Drain {
                iteration: 1,
                stop: true
            }],
            "{kind}"
        );
        assert_eq!(
            work.clone()
                .drained(&[], &["child"])
                .outcome()
                .summary()
                .kind,
            kind
        );
        assert_eq!(
            ask(work, Request::PauseNow).outcome().summary().kind,
            kind,
            "a second request does not wait for them"
        );
    }
}

#[test]
fn work_of_child_loops_after_the_commit_is_committed_too() {
    let green = |work: TestLoop, iteration| {
        work.feed_without_draining(super::kit::checked(iteration, super::kit::green()))
    };
    let commits = |work: TestLoop| {
        let report = super::kit::committed();
        work.feed_without_draining(Event::Committed {
            iteration: 1,
            task: 0,
            report,
        })
    };
    let work = TestLoop::new()
        .checks(1)
        .no_promise()
        .tasks(&["commit", "push"])
        .open()
        .check("r")
        .start()
        .exit(0);
    let work = commits(green(work, 1));
    let work = work.feed_without_draining(Event::Committed {
        iteration: 1,
        task: 1,
        report: super::kit::committed(),
    });
    assert!(work.is_draining());
    let before = work.state.scm.clone();
    let work = green(work.drained(&["child"], &[]), 1);
    assert_eq!(
        (work.orders(), work.state.scm.round),
        (
            vec![Effect::ScmTask {
                iteration: 1,
                task: 0
            }],
            1
        )
    );
    let nothing = work.clone().scm_tasks("u");
    assert!(nothing.is_done());
    assert_eq!(
        nothing.state.scm.reports, before.reports,
        "the earlier results are kept"
    );
    let crashed = work.clone().open();
    assert!(crashed.is_checking());
    assert_eq!(
        crashed.check("g").state.scm.round,
        1,
        "a crash does not start another round"
    );
    assert!(work.clone().scm_tasks("ss").is_done());
    let lost = work.scm_tasks("f");
    let rest = lost.state.rest_until_ms - lost.state.clock_ms;
    let next = lost.after(rest).start();
    assert_eq!(
        (next.state.scm.round, next.state.scm.newest_commit.clone()),
        (0, None)
    );
}

#[test]
fn a_stop_stops_child_loops_and_a_second_stop_does_not_wait() {
    let work = ask(TestLoop::new().open().start(), Request::Stop);
    let work = work.feed_without_draining(Event::Ended {
        iteration: 1,
        report: AgentReport::default(),
    });
    assert_eq!(
        work.orders(),
        [Effect::Drain {
            iteration: 1,
            stop: true
        }]
    );
    let stopped = Outcome::Stopped {
        by: RequestSource::Sigint,
    };
    assert_eq!(work.clone().drained(&[], &["child"]).outcome(), stopped);
    assert_eq!(ask(work, Request::Stop).outcome(), stopped);
}

#[test]
fn a_stop_stops_child_loops_that_are_waited_for() {
    for request in [Request::Stop, Request::StopNow] {
        let work = ask(done(), request);
        assert_eq!(
            work.orders(),
            [Effect::Drain {
                iteration: 1,
                stop: true
            }]
        );
        assert_eq!(
            work.drained(&[], &["child"]).outcome().summary().kind,
            "stopped"
        );
    }
}

#[test]
fn a_pause_waits_for_child_loops_unless_it_is_immediate() {
    let work = ask(done(), Request::Pause);
    assert!(work.is_draining());
    assert!(work.drained(&["child"], &[]).is_done());
    let hurried = ask(done(), Request::PauseNow);
    assert!(hurried.is_paused());
    let resumed = ask(hurried, Request::Go);
    assert!(resumed.is_draining(), "the work is still done");
    assert!(resumed.drained(&[], &[]).is_done());
}

#[test]
fn a_loop_continues_if_a_stop_is_taken_back() {
    let work = ask(TestLoop::new().open().start(), Request::Stop);
    let work = work.feed_without_draining(Event::Ended {
        iteration: 1,
        report: AgentReport {
            cost_usd: Some(0.0),
            ..AgentReport::default()
        },
    });
    assert_eq!(ask(work, Request::Go).runs(), Some(2));
}

#[test]
fn after_a_crash_while_draining_checks_and_draining_start_again() {
    let open = || Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd: None,
        tokens: None,
        in_session: false,
        boot: None,
    };
    let work = done().feed_without_draining(open());
    assert!(work.is_draining());
    let checked = TestLoop::until_green("r").start().exit(0);
    let checked = checked.feed_without_draining(super::kit::checked(1, super::kit::green()));
    assert!(
        checked.feed_without_draining(open()).is_checking(),
        "child loops may have changed something since"
    );
    let stopping = ask(TestLoop::new().checks(1).open(), Request::StopNow);
    assert!(stopping.is_draining());
    assert!(
        stopping.feed_without_draining(open()).is_draining(),
        "a loop that stops runs no checks"
    );
}

#[test]
fn a_stale_drained_event_is_ignored() {
    let running = TestLoop::new().open().start();
    assert_eq!(
        running.clone().drained(&["child"], &[]).state,
        running.state
    );
    let work = done();
    let stale = Event::Drained {
        iteration: 7,
        waited: vec![],
        stopped: vec![],
    };
    assert_eq!(work.clone().feed_without_draining(stale).state, work.state);
}

#[test]
fn drained_events_have_a_stable_format() {
    for (waited, stopped, line) in [
        (vec![], vec![], r#"{"event":"drained","iteration":3}"#),
        (
            vec!["b".to_owned()],
            vec!["c".to_owned()],
            r#"{"event":"drained","iteration":3,"waited":["b"],"stopped":["c"]}"#,
        ),
    ] {
        let event = Event::Drained {
            iteration: 3,
            waited,
            stopped,
        };
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        assert_eq!(serde_json::from_str::<Event>(line).unwrap(), event);
    }
}

#[test]
fn a_state_written_before_child_loops_existed_can_be_read() {
    let work = TestLoop::new().open().start();
    let mut old = serde_json::to_value(&work.state).unwrap();
    old.as_object_mut().unwrap().remove("drained").unwrap();
    old["plan"]["grace"]
        .as_object_mut()
        .unwrap()
        .remove("children_ms")
        .unwrap();
    let read: crate::engine::State = serde_json::from_value(old).unwrap();
    assert_eq!((read.drained, read.plan.grace.children_ms), (false, None));
}
