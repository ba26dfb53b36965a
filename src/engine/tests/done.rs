//! Conditions under which a loop is done.

use super::kit::{TestLoop, Transition, promised, red};
use crate::engine::event::{AgentReport, CheckReport, Marker, Notice, ProcessExit, TextSignals};
use crate::engine::plan::Signal;
use crate::engine::{Effect, Limit, Outcome, Phase, Status};
const PROMISE: &str = "Everything works.\n\n<promise>COMPLETE</promise>";

#[test]
fn green_checks_need_a_claim_even_if_they_were_red_at_the_start() {
    for color in ["r", "g"] {
        let work = || TestLoop::preflight(color).start();
        assert_eq!(work().say("I did a part.").check("g").runs(), Some(2));
        assert_eq!(
            work().say(PROMISE).check("g").outcome(),
            Outcome::Done { checked: true }
        );
        assert_eq!(work().say(PROMISE).check("r").runs(), Some(2));
    }
}

#[test]
fn checks_without_preflight_need_a_claim() {
    let work = TestLoop::new().checks(1).no_preflight().open();
    assert_eq!(work.runs(), Some(1));
    assert_eq!(
        work.clone().start().say("A part.").check("g").runs(),
        Some(2)
    );
    assert!(work.start().say(PROMISE).check("g").is_done());
}

#[test]
fn without_checks_a_claim_is_enough() {
    let work = TestLoop::new().open();
    assert_eq!(
        work.clone().start().say("A part.").runs(),
        Some(2),
        "a claim is needed by default"
    );
    assert_eq!(
        work.clone().start().say(PROMISE).outcome(),
        Outcome::Done { checked: false }
    );
    assert!(
        work.start().say("<response>done</response>").is_done(),
        "DONE counts too"
    );
}

#[test]
fn an_explicit_signal_is_needed_even_if_a_red_check_turned_green() {
    let asked: [(&str, Transition); 3] = [
        ("promise", |work| work.promise("SHIPPED")),
        ("pattern", |work| work.pattern("^FINISHED$")),
        ("file", |work| {
            work.with(|plan| plan.proof.signals.push(Signal::File("report.md".into())))
        }),
    ];
    for (name, ask) in asked {
        let work = ask(TestLoop::new().checks(1)).open().check("r");
        assert_eq!(
            work.clone().start().say(PROMISE).check("g").runs(),
            Some(2),
            "{name}"
        );
        let work = work.start();
        let claimed = match name {
            "promise" => work.say("<promise>shipped</promise>"),
            "pattern" => work.notice(Notice::Pattern).exit(143),
            _ => work.marker(Marker::File).exit(0),
        };
        assert!(claimed.check("g").is_done(), "{name}");
    }
}

#[test]
fn signals_are_alternatives() {
    let work = || {
        TestLoop::new()
            .promise("SHIPPED")
            .pattern("^FINISHED$")
            .open()
            .start()
    };
    assert!(work().say("<promise>SHIPPED</promise>").is_done());
    assert!(work().notice(Notice::Pattern).exit(0).is_done());
    assert!(
        work().marker(Marker::Done).exit(0).is_done(),
        "DONE always counts"
    );
    assert_eq!(work().state.promises(), ["SHIPPED"]);
    assert!(
        TestLoop::new()
            .pattern("x")
            .open()
            .state
            .promises()
            .is_empty()
    );
}

#[test]
fn a_signal_that_was_not_asked_for_does_not_count() {
    let work = || TestLoop::new().open().start();
    assert_eq!(work().marker(Marker::File).exit(0).runs(), Some(2));
    let matched = AgentReport {
        signals: TextSignals {
            matched: true,
            ..TextSignals::default()
        },
        ..AgentReport::default()
    };
    assert!(!work().end(matched).is_done());
}

#[test]
fn without_promise_and_preflight_green_checks_are_enough() {
    let work = TestLoop::new().checks(1).no_promise().no_preflight().open();
    assert!(!work.state.is_plain());
    assert_eq!(work.clone().start().say("").check("r").runs(), Some(2));
    assert!(work.start().say("").check("g").is_done());
}

#[test]
fn a_plain_loop_succeeds_at_its_limit() {
    let bare = TestLoop::new()
        .no_promise()
        .at_most(1)
        .open()
        .start()
        .exit(0);
    assert_eq!(
        bare.outcome(),
        Outcome::Limit {
            limit: Limit::Iterations,
            success: true
        }
    );
}

#[test]
fn a_plain_loop_fails_at_any_other_limit() {
    let limited = TestLoop::new()
        .no_promise()
        .with(|plan| plan.limits.cost_usd = Some(1.0))
        .open()
        .start();
    let limited = limited.end(AgentReport {
        exit: ProcessExit::from_code(0),
        cost_usd: Some(1.0),
        ..AgentReport::default()
    });
    assert_eq!(
        limited.outcome(),
        Outcome::Limit {
            limit: Limit::Cost,
            success: false
        }
    );
}

#[test]
fn a_loop_that_can_be_done_fails_at_its_limit() {
    for work in [
        TestLoop::new(),
        TestLoop::new().no_promise().promise("X"),
        TestLoop::new().no_promise().pattern("X"),
    ] {
        let ended = work.at_most(1).open().start().exit(0);
        assert_eq!(
            ended.outcome(),
            Outcome::Limit {
                limit: Limit::Iterations,
                success: false
            }
        );
    }
}

#[test]
fn a_done_marker_ends_a_plain_loop() {
    assert!(
        TestLoop::new()
            .no_promise()
            .open()
            .start()
            .marker(Marker::Done)
            .exit(0)
            .is_done()
    );
}

#[test]
fn a_marker_that_exists_at_the_start_counts() {
    let seen = |work: TestLoop| work.marker(Marker::Done).open();
    assert_eq!(
        seen(TestLoop::new()).outcome(),
        Outcome::Done { checked: false }
    );
    assert!(seen(TestLoop::new().checks(1)).check("g").is_done());
    assert_eq!(seen(TestLoop::new().checks(1)).check("r").runs(), Some(1));
    assert!(TestLoop::new().open().marker(Marker::Done).is_done());
    assert_eq!(
        TestLoop::new()
            .open()
            .marker(Marker::Blocked)
            .outcome()
            .status(),
        Status::Blocked
    );
    assert_eq!(
        TestLoop::new()
            .open()
            .marker(Marker::Wait)
            .outcome()
            .status(),
        Status::Waiting
    );
}

#[test]
fn a_marker_at_the_start_without_preflight_is_judged_by_the_checks() {
    let seen = || {
        TestLoop::new()
            .checks(1)
            .no_preflight()
            .open()
            .marker(Marker::Done)
    };
    assert_eq!(
        seen().orders(),
        [Effect::Check {
            iteration: 0,
            check: 0
        }]
    );
    assert!(seen().check("g").is_done());
    let refused = seen().check("r");
    assert_eq!(refused.runs(), Some(1));
    assert_eq!(refused.state.red_at_start, None, "that was not preflight");
    assert_eq!(refused.start().say("").check("g").runs(), Some(2));
}

#[test]
fn a_marker_between_iterations_is_judged_by_the_checks_that_have_run() {
    let resting = TestLoop::new()
        .checks(1)
        .with(|plan| plan.rest.delay_ms = 1000)
        .open()
        .check("g")
        .start()
        .exit(0);
    assert!(resting.clone().check("g").marker(Marker::Done).is_done());
    let refused = resting.check("r").marker(Marker::Done);
    assert!(matches!(refused.state.phase, Phase::Resting { .. }));
}

#[test]
fn a_claim_never_overrides_a_red_check() {
    let claims = AgentReport {
        exit: ProcessExit::from_code(0),
        signals: TextSignals {
            promised: true,
            matched: true,
            ..TextSignals::default()
        },
        markers: vec![Marker::Done, Marker::File],
        ..AgentReport::default()
    };
    let work = TestLoop::new()
        .checks(2)
        .pattern("x")
        .open()
        .check("gg")
        .start()
        .end(claims)
        .check("gr");
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn a_check_that_timed_out_is_red_even_if_it_exits_with_0() {
    assert!(
        !CheckReport {
            exit: ProcessExit::from_code(0),
            timed_out: true,
            ms: 1,
            ..CheckReport::default()
        }
        .is_green()
    );
    assert!(
        !CheckReport {
            exit: ProcessExit {
                code: None,
                signal: Some(9)
            },
            timed_out: false,
            ms: 1,
            ..CheckReport::default()
        }
        .is_green()
    );
    assert!(!red().is_green());
}

#[test]
fn a_promise_expires_with_its_iteration() {
    let work = TestLoop::preflight("g").start().say(PROMISE).check("r");
    assert_eq!(
        work.start().say("More.").check("g").runs(),
        Some(3),
        "green but not claimed"
    );
    let work = TestLoop::preflight("g")
        .start()
        .marker(Marker::Done)
        .say("")
        .check("r");
    assert_eq!(work.start().say("").check("g").runs(), Some(3));
}

#[test]
fn a_green_check_expires_with_its_iteration() {
    let work = TestLoop::preflight("g").start();
    assert_eq!(work.state.checks, [None]);
    assert!(!work.say(PROMISE).is_done(), "the checks must run first");
}

#[test]
fn the_exit_code_does_not_matter_for_done() {
    for exit in [
        ProcessExit::from_code(0),
        ProcessExit::from_code(1),
        ProcessExit::from_code(137),
        ProcessExit {
            code: None,
            signal: Some(11),
        },
    ] {
        let report = AgentReport {
            exit,
            signals: promised(),
            ..AgentReport::default()
        };
        assert!(
            TestLoop::preflight("g")
                .start()
                .end(report)
                .check("g")
                .is_done(),
            "{exit:?}"
        );
        let work = TestLoop::new().open().start().end(AgentReport {
            exit,
            ..AgentReport::default()
        });
        assert!(
            work.state.outcome().is_none(),
            "an exit alone ends nothing: {exit:?}"
        );
    }
}

#[test]
fn claims_and_checks_count_however_the_iteration_ended() {
    let ends: [(&str, Transition); 6] = [
        ("exit", |work| work),
        ("timeout", |work| work.after(7_200_000)),
        ("silence", |work| work.notice(Notice::Silence)),
        ("screen not ready", |work| work.notice(Notice::Unready)),
        ("marker", |work| work.marker(Marker::Wait).after(30_000)),
        ("pattern", |work| work.notice(Notice::Pattern)),
    ];
    for (name, end) in ends {
        let ended = end(TestLoop::preflight("g").start()).end(AgentReport {
            signals: promised(),
            ..AgentReport::default()
        });
        assert!(ended.is_checking(), "{name}");
        assert!(ended.check("g").is_done(), "{name}");
    }
}
