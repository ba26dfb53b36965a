//! Child loops: waited for before a loop is done, stopped when that takes too long or the loop itself is stopped.

use super::kit::Loop;
use crate::engine::event::{Door, Event, Marker, Report, Said, Wish};
use crate::engine::{Effect, Outcome};

/// A loop whose work is done, and nobody has looked for child loops yet.
fn done() -> Loop {
    promised(Loop::new().open().start())
}

/// Its agent promises what was asked for.
fn promised(work: Loop) -> Loop {
    let iteration = work.state.iteration;
    let said = Said {
        promised: true,
        ..Said::default()
    };
    work.feed_alone(Event::Ended {
        iteration,
        report: Report {
            said,
            cost_usd: Some(0.0),
            ..Report::default()
        },
    })
}

fn ask(work: Loop, wish: Wish) -> Loop {
    work.feed_alone(Event::Asked {
        wish,
        by: Door::Sigint,
        inbox: None,
    })
}

fn woke(mut work: Loop, ms: u64) -> Loop {
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
fn a_loop_is_done_once_its_child_loops_are_over() {
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
        "there is no check to look again"
    );
}

#[test]
fn the_checks_look_again_after_child_loops_ran() {
    let work = Loop::preflight("r").start().exit(0);
    let last = |work: Loop| {
        work.feed_alone(Event::Checked {
            iteration: 1,
            check: 0,
            report: super::kit::green(),
        })
    };
    let work = last(work);
    assert!(work.is_draining());
    assert!(
        work.clone().drained(&[], &[]).is_done(),
        "none ran: nothing can have changed"
    );
    for work in [
        work.clone().drained(&["child"], &[]),
        work.drained(&[], &["child"]),
    ] {
        assert!(work.is_checking());
        assert!(
            last(work.clone()).is_done(),
            "they are not waited for twice"
        );
        let red = work.check("r");
        assert_eq!(
            red.runs(),
            Some(2),
            "what a child loop has broken is mended"
        );
        assert!(
            !red.start().state.drained,
            "and the next agent may have child loops of its own"
        );
    }
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
    let patient = Loop::new()
        .with(|plan| plan.grace.children_ms = None)
        .open()
        .start();
    assert_eq!(
        promised(patient).orders(),
        [Effect::Drain {
            iteration: 1,
            stop: false
        }],
        "for ever"
    );
}

/// Loops that come to each ending but `done` and `stopped`, and nobody has looked for child loops yet.
fn endings() -> [(&'static str, Loop); 4] {
    let new = || Loop::new().checks(1).no_preflight();
    let red = |work: Loop| {
        let work = work.feed_alone(Event::Ended {
            iteration: 1,
            report: Report::default(),
        });
        work.feed_alone(Event::Checked {
            iteration: 1,
            check: 0,
            report: super::kit::red(),
        })
    };
    let fatal = new().open().start().fault();
    [
        ("limit", red(new().at_most(1).open().start())),
        ("blocked", red(new().open().start().marker(Marker::Blocked))),
        ("waiting", red(new().open().start().marker(Marker::Wait))),
        (
            "fatal",
            fatal.feed_alone(Event::Ended {
                iteration: 1,
                report: Report::default(),
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
            work.clone().drained(&[], &[]).outcome().verdict().kind,
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
        assert_eq!(ended.outcome().verdict().kind, kind, "once is enough");
    }
}

#[test]
fn what_child_loops_did_after_a_limit_may_be_the_proof() {
    let [(_, work), ..] = endings();
    let mut work = work;
    work.state.claims.said.promised = true;
    let work = work.drained(&["child"], &[]);
    assert!(work.is_checking());
    assert!(work.check("g").is_done());
}

#[test]
fn who_hurries_an_ending_stops_child_loops_and_changes_nothing_else() {
    for (kind, work) in endings() {
        let work = ask(work, Wish::PauseNow);
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
                .verdict()
                .kind,
            kind
        );
        assert_eq!(
            ask(work, Wish::PauseNow).outcome().verdict().kind,
            kind,
            "and who presses again does not wait"
        );
    }
}

#[test]
fn what_child_loops_did_after_the_commit_is_committed_too() {
    let green = |work: Loop, iteration| {
        work.feed_alone(Event::Checked {
            iteration,
            check: 0,
            report: super::kit::green(),
        })
    };
    let commits = |work: Loop| {
        let report = super::kit::kept();
        work.feed_alone(Event::Committed {
            iteration: 1,
            task: 0,
            report,
        })
    };
    let work = Loop::new()
        .checks(1)
        .tasks(&["commit", "push"])
        .open()
        .check("r")
        .start()
        .exit(0);
    let work = commits(green(work, 1));
    let work = work.feed_alone(Event::Committed {
        iteration: 1,
        task: 1,
        report: super::kit::kept(),
    });
    assert!(work.is_draining());
    let before = work.state.keeping.clone();
    let work = green(work.drained(&["child"], &[]), 1);
    assert_eq!(
        (work.orders(), work.state.keeping.round),
        (
            vec![Effect::Commit {
                iteration: 1,
                task: 0
            }],
            1
        )
    );
    let nothing = work.clone().keep("u");
    assert!(nothing.is_done());
    assert_eq!(
        nothing.state.keeping.reports, before.reports,
        "it went as it went"
    );
    let crashed = work.clone().open();
    assert!(crashed.is_checking());
    assert_eq!(
        crashed.check("g").state.keeping.round,
        1,
        "a crash repeats the order, not the commit"
    );
    assert!(work.clone().keep("kk").is_done());
    let lost = work.keep("l");
    let rest = lost.state.rest_until_ms - lost.state.clock_ms;
    let next = lost.after(rest).start();
    assert_eq!(
        (next.state.keeping.round, next.state.keeping.newest.clone()),
        (0, None)
    );
}

#[test]
fn a_stop_stops_child_loops_and_who_presses_again_does_not_wait() {
    let work = ask(Loop::new().open().start(), Wish::Stop);
    let work = work.feed_alone(Event::Ended {
        iteration: 1,
        report: Report::default(),
    });
    assert_eq!(
        work.orders(),
        [Effect::Drain {
            iteration: 1,
            stop: true
        }]
    );
    let stopped = Outcome::Stopped {
        by: "Ctrl-C".into(),
    };
    assert_eq!(work.clone().drained(&[], &["child"]).outcome(), stopped);
    assert_eq!(ask(work, Wish::Stop).outcome(), stopped);
}

#[test]
fn a_stop_while_child_loops_are_waited_for_stops_them() {
    for wish in [Wish::Stop, Wish::StopNow] {
        let work = ask(done(), wish);
        assert_eq!(
            work.orders(),
            [Effect::Drain {
                iteration: 1,
                stop: true
            }]
        );
        assert_eq!(
            work.drained(&[], &["child"]).outcome().verdict().kind,
            "stopped"
        );
    }
}

#[test]
fn a_pause_waits_for_child_loops_unless_it_is_hurried() {
    let work = ask(done(), Wish::Pause);
    assert!(work.is_draining());
    assert!(work.drained(&["child"], &[]).is_done());
    let hurried = ask(done(), Wish::PauseNow);
    assert!(hurried.is_paused());
    let resumed = ask(hurried, Wish::Go);
    assert!(resumed.is_draining(), "what was done is still done");
    assert!(resumed.drained(&[], &[]).is_done());
}

#[test]
fn whoever_takes_a_stop_back_goes_on() {
    let work = ask(Loop::new().open().start(), Wish::Stop);
    let work = work.feed_alone(Event::Ended {
        iteration: 1,
        report: Report {
            cost_usd: Some(0.0),
            ..Report::default()
        },
    });
    assert_eq!(ask(work, Wish::Go).runs(), Some(2));
}

#[test]
fn a_crash_in_between_looks_and_waits_again() {
    let open = || Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd: None,
        tokens: None,
        inside: false,
    };
    let work = done().feed_alone(open());
    assert!(work.is_draining());
    let checked = Loop::preflight("r").start().exit(0);
    let checked = checked.feed_alone(Event::Checked {
        iteration: 1,
        check: 0,
        report: super::kit::green(),
    });
    assert!(
        checked.feed_alone(open()).is_checking(),
        "nobody knows what child loops did meanwhile"
    );
    let stopping = ask(Loop::new().checks(1).open(), Wish::StopNow);
    assert!(stopping.is_draining());
    assert!(
        stopping.feed_alone(open()).is_draining(),
        "a loop that is to stop checks nothing"
    );
}

#[test]
fn a_stale_end_of_child_loops_is_ignored() {
    let running = Loop::new().open().start();
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
    assert_eq!(work.clone().feed_alone(stale).state, work.state);
}

#[test]
fn the_end_of_child_loops_has_its_line() {
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
fn a_state_of_before_there_were_child_loops_is_understood() {
    let work = Loop::new().open().start();
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
