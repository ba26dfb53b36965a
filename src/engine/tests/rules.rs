//! When a loop is done, and the order in which its endings are looked for.

use super::kit::{Loop, Way, check, promised, red};
use crate::engine::decide::{Next, decide};
use crate::engine::event::{CheckReport, Door, Exit, Fault, Marker, Notice, Report, Said, Wish};
use crate::engine::{Effect, Limit, Outcome, Phase, State, Status};

const PROMISE: &str = "Everything works.\n\n<promise>COMPLETE</promise>";

#[test]
fn a_check_red_at_the_start_that_turns_green_is_done() {
    let turned = Loop::preflight("r").start().say("I fixed it.").check("g");
    assert_eq!(turned.outcome(), Outcome::Done { checked: true });
}

#[test]
fn one_red_check_among_green_ones_is_enough_to_prove_and_to_refuse() {
    let work = Loop::new().checks(3).open().check("grg");
    assert_eq!(work.state.red_at_start, Some(true));
    assert!(work.clone().start().say("").check("ggg").is_done());
    for colours in ["rgg", "grg", "ggr"] {
        assert_eq!(
            work.clone().start().say(PROMISE).check(colours).runs(),
            Some(2),
            "{colours}"
        );
    }
}

#[test]
fn checks_green_at_the_start_need_a_signal() {
    let work = Loop::preflight("g");
    assert_eq!(work.state.promises(), ["COMPLETE", "DONE"]);
    assert_eq!(
        work.clone().start().say("I did a part.").check("g").runs(),
        Some(2)
    );
    assert_eq!(
        work.start().say(PROMISE).check("g").outcome(),
        Outcome::Done { checked: true }
    );
}

#[test]
fn checks_without_preflight_need_a_signal() {
    let work = Loop::new().checks(1).no_preflight().open();
    assert_eq!(work.runs(), Some(1));
    assert_eq!(
        work.clone().start().say("A part.").check("g").runs(),
        Some(2)
    );
    assert!(work.start().say(PROMISE).check("g").is_done());
}

#[test]
fn without_checks_a_signal_alone_is_done() {
    let work = Loop::new().open();
    assert_eq!(
        work.clone().start().say("A part.").runs(),
        Some(2),
        "nothing asked for is not nothing to prove"
    );
    assert_eq!(
        work.clone().start().say(PROMISE).outcome(),
        Outcome::Done { checked: false }
    );
    assert!(
        work.start().say("<response>done</response>").is_done(),
        "DONE is taken too"
    );
}

#[test]
fn no_promise_is_asked_for_where_red_checks_prove_the_work() {
    let work = Loop::preflight("r");
    assert!(work.state.promises().is_empty());
    assert!(!work.state.is_plain());
}

#[test]
fn an_explicit_signal_is_needed_even_after_red_turned_green() {
    let asked: [(&str, Way); 3] = [
        ("promise", |work| work.promise("SHIPPED")),
        ("pattern", |work| work.pattern("^FINISHED$")),
        ("file", |work| {
            work.with(|plan| plan.proof.file = Some("report.md".into()))
        }),
    ];
    for (name, ask) in asked {
        let work = ask(Loop::new().checks(1)).open().check("r");
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
        Loop::new()
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
    assert!(Loop::new().pattern("x").open().state.promises().is_empty());
}

#[test]
fn a_signal_that_was_not_asked_for_is_none() {
    let work = || Loop::new().open().start();
    assert_eq!(work().marker(Marker::File).exit(0).runs(), Some(2));
    let matched = Report {
        said: Said {
            matched: true,
            ..Said::default()
        },
        ..Report::default()
    };
    assert!(!work().end(matched).is_done());
}

#[test]
fn without_promise_and_preflight_green_after_an_iteration_is_done() {
    let work = Loop::new().checks(1).no_promise().no_preflight().open();
    assert!(!work.state.is_plain());
    assert_eq!(work.clone().start().say("").check("r").runs(), Some(2));
    assert!(work.start().say("").check("g").is_done());
}

#[test]
fn without_promise_red_turned_green_is_done() {
    assert!(
        Loop::new()
            .checks(1)
            .no_promise()
            .open()
            .check("r")
            .start()
            .say("")
            .check("g")
            .is_done()
    );
}

#[test]
fn a_plain_loop_ends_at_its_limit_with_success_only_if_green() {
    let guarded = Loop::new()
        .checks(1)
        .no_promise()
        .at_most(2)
        .open()
        .check("g");
    assert!(guarded.state.is_plain());
    for (colours, success) in [("g", true), ("r", false)] {
        let ended = guarded
            .clone()
            .start()
            .say(PROMISE)
            .check("g")
            .start()
            .say("")
            .check(colours);
        assert_eq!(
            ended.outcome(),
            Outcome::Limit {
                limit: Limit::Iterations,
                success
            }
        );
    }
    let bare = Loop::new().no_promise().at_most(1).open().start().exit(0);
    assert_eq!(
        bare.outcome(),
        Outcome::Limit {
            limit: Limit::Iterations,
            success: true
        }
    );
}

#[test]
fn only_the_limit_of_iterations_is_a_success() {
    let broke = Loop::new()
        .no_promise()
        .with(|plan| plan.limits.cost_usd = Some(1.0))
        .open()
        .start();
    let broke = broke.end(Report {
        exit: Exit::code(0),
        cost_usd: Some(1.0),
        ..Report::default()
    });
    assert_eq!(
        broke.outcome(),
        Outcome::Limit {
            limit: Limit::Cost,
            success: false
        }
    );
}

#[test]
fn a_loop_that_can_be_done_is_not_plain_and_fails_at_its_limit() {
    for work in [
        Loop::new(),
        Loop::new().no_promise().promise("X"),
        Loop::new().no_promise().pattern("X"),
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
fn a_done_marker_ends_a_plain_loop_too() {
    assert!(
        Loop::new()
            .no_promise()
            .open()
            .start()
            .marker(Marker::Done)
            .exit(0)
            .is_done()
    );
}

#[test]
fn a_marker_at_the_start_counts() {
    let seen = |work: Loop| work.marker(Marker::Done).open();
    assert_eq!(
        seen(Loop::new()).outcome(),
        Outcome::Done { checked: false }
    );
    assert!(seen(Loop::new().checks(1)).check("g").is_done());
    assert_eq!(seen(Loop::new().checks(1)).check("r").runs(), Some(1));
    assert!(Loop::new().open().marker(Marker::Done).is_done());
    assert_eq!(
        Loop::new()
            .open()
            .marker(Marker::Blocked)
            .outcome()
            .status(),
        Status::Blocked
    );
    assert_eq!(
        Loop::new().open().marker(Marker::Wait).outcome().status(),
        Status::Waiting
    );
}

#[test]
fn a_marker_at_the_start_without_preflight_is_judged_by_the_checks() {
    let seen = || {
        Loop::new()
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
    assert_eq!(refused.state.red_at_start, None, "that was no preflight");
    assert_eq!(refused.start().say("").check("g").runs(), Some(2));
}

#[test]
fn a_marker_between_iterations_is_judged_by_the_checks_that_have_run() {
    let resting = Loop::new()
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
fn a_signal_never_overrules_a_red_check() {
    let every = Report {
        exit: Exit::code(0),
        said: Said {
            promised: true,
            matched: true,
            ..Said::default()
        },
        markers: vec![Marker::Done, Marker::File],
        ..Report::default()
    };
    let work = Loop::new()
        .checks(2)
        .pattern("x")
        .open()
        .check("gg")
        .start()
        .end(every)
        .check("gr");
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn a_check_that_timed_out_is_red_whatever_its_exit() {
    assert!(
        !CheckReport {
            exit: Exit::code(0),
            timed_out: true,
            ms: 1
        }
        .is_green()
    );
    assert!(
        !CheckReport {
            exit: Exit {
                code: None,
                signal: Some(9)
            },
            timed_out: false,
            ms: 1
        }
        .is_green()
    );
    assert!(!red().is_green());
}

#[test]
fn a_promise_does_not_outlive_its_iteration() {
    let work = Loop::preflight("g").start().say(PROMISE).check("r");
    assert_eq!(
        work.start().say("More.").check("g").runs(),
        Some(3),
        "green now, but not claimed"
    );
    let work = Loop::preflight("g")
        .start()
        .marker(Marker::Done)
        .say("")
        .check("r");
    assert_eq!(work.start().say("").check("g").runs(), Some(3));
}

#[test]
fn a_green_check_does_not_outlive_its_iteration() {
    let work = Loop::preflight("g").start();
    assert_eq!(work.state.checks, [None]);
    assert!(!work.say(PROMISE).is_done(), "the checks have to run first");
}

#[test]
fn the_exit_code_plays_no_part_in_done() {
    for exit in [
        Exit::code(0),
        Exit::code(1),
        Exit::code(137),
        Exit {
            code: None,
            signal: Some(11),
        },
    ] {
        let report = Report {
            exit,
            said: promised(),
            ..Report::default()
        };
        assert!(
            Loop::preflight("g")
                .start()
                .end(report)
                .check("g")
                .is_done(),
            "{exit:?}"
        );
        let work = Loop::new().open().start().end(Report {
            exit,
            ..Report::default()
        });
        assert!(
            work.state.outcome().is_none(),
            "exit alone ends nothing: {exit:?}"
        );
    }
}

#[test]
fn signals_and_checks_are_taken_whatever_ended_the_iteration() {
    let ways: [(&str, Way); 6] = [
        ("exit", |work| work),
        ("timeout", |work| work.after(7_200_000)),
        ("silence", |work| work.notice(Notice::Silence)),
        ("a screen that is never ready", |work| {
            work.notice(Notice::Unready)
        }),
        ("marker", |work| work.marker(Marker::Wait).after(30_000)),
        ("pattern", |work| work.notice(Notice::Pattern)),
    ];
    for (name, way) in ways {
        let ended = way(Loop::preflight("g").start()).end(Report {
            said: promised(),
            ..Report::default()
        });
        assert!(ended.is_checking(), "{name}");
        assert!(ended.check("g").is_done(), "{name}");
    }
}

/// Each row is true of one state; the first that is true wins.
#[test]
fn the_order_of_the_tests_is_a_contract() {
    let rows = 7;
    for (truth, drained) in (0..1_u32 << rows).flat_map(|truth| [(truth, true), (truth, false)]) {
        let holds = |row: u32| truth & (1 << row) != 0;
        let mut state = Loop::new().open().state;
        (state.clock_ms, state.drained) = (10, drained);
        if holds(5) {
            state.wish = Wish::Pause;
        }
        if holds(0) {
            state.wish = Wish::Stop;
        }
        state.claims.said.promised = holds(1);
        state.claims.said.blocked = holds(2).then(|| "no key".to_owned());
        state.fault = holds(3).then(|| (Fault::Disk, "full".to_owned()));
        state.counted = if holds(4) { 25 } else { 0 };
        state.rest_until_ms = if holds(6) { 11 } else { 10 };
        let expected = match (0..rows).find(|row| holds(*row)) {
            Some(0..=4) if !drained => Next::Drain,
            Some(0) => Next::End(Outcome::Stopped {
                by: "ralph stop".into(),
            }),
            Some(1) => Next::End(Outcome::Done { checked: false }),
            Some(2) => Next::End(Outcome::Blocked {
                why: "no key".into(),
            }),
            Some(3) => Next::End(Outcome::Fatal {
                class: Fault::Disk,
                detail: "full".into(),
            }),
            Some(4) => Next::End(Outcome::Limit {
                limit: Limit::Iterations,
                success: false,
            }),
            Some(5) => Next::Pause,
            Some(6) => Next::Rest(11),
            _ => Next::Run(0),
        };
        assert_eq!(decide(&state), expected, "{truth:07b}");
    }
}

#[test]
fn now_is_no_weaker_a_wish() {
    let mut state = Loop::new().open().state;
    state.wish = Wish::PauseNow;
    assert_eq!(decide(&state), Next::Pause);
    state.wish = Wish::StopNow;
    (state.wished_by, state.drained) = (Door::Sigint, true);
    assert_eq!(
        decide(&state),
        Next::End(Outcome::Stopped {
            by: "Ctrl-C".into()
        })
    );
}

#[test]
fn the_agents_words_come_before_its_markers_and_blocked_before_waiting() {
    let mut state = Loop::new().open().state;
    let why = |state: &State| match decide(state) {
        Next::End(outcome) => outcome.verdict().why,
        next => format!("{next:?}"),
    };
    state.drained = true;
    state.claims.said.blocked = Some("no key".into());
    state.claims.markers = vec![Marker::Wait, Marker::Blocked];
    state.claims.exit_waiting = Some(42);
    assert_eq!(why(&state), "no key");
    state.claims.said.blocked = None;
    assert_eq!(why(&state), "BLOCKED marker");
    state.claims.markers = vec![Marker::Wait];
    assert_eq!(why(&state), "exit 42");
    state.claims.exit_waiting = None;
    assert_eq!(why(&state), "WAIT marker");
    state
        .claims
        .markers
        .retain(|marker| *marker != Marker::Wait);
    state.claims.markers.push(Marker::Bus);
    assert_eq!(why(&state), "bus");
    state.claims.markers.clear();
    assert_eq!(why(&state), "Run(0)");
}

#[test]
fn of_several_limits_the_gravest_is_named() {
    let mut state = Loop::new()
        .with(|plan| (plan.limits.cost_usd, plan.limits.time_ms) = (Some(1.0), Some(1)))
        .state;
    state.plan.limits.tokens = Some(10);
    state.tokens.output = 10;
    (
        state.counted,
        state.consecutive_failures,
        state.cost_usd,
        state.active_ms,
    ) = (25, 5, 1.0, 1);
    state.drained = true;
    let mut limit = || match decide(&state) {
        Next::End(Outcome::Limit { limit, .. }) => {
            match limit {
                Limit::Failures => state.consecutive_failures = 4,
                Limit::Cost => state.cost_usd = 0.99,
                Limit::Tokens => state.tokens.output = 9,
                Limit::Time => state.active_ms = 0,
                Limit::Iterations => state.counted = 24,
                Limit::Blocks => state.stay = None,
            }
            Some(limit)
        }
        _ => None,
    };
    assert_eq!(
        [limit(), limit(), limit(), limit(), limit(), limit()],
        [
            Some(Limit::Failures),
            Some(Limit::Cost),
            Some(Limit::Tokens),
            Some(Limit::Time),
            Some(Limit::Iterations),
            None
        ]
    );
}

#[test]
fn nothing_is_plain_but_a_loop_without_proof() {
    let plain = |work: Loop| work.state.is_plain();
    assert!(plain(Loop::new().no_promise()));
    assert!(!plain(Loop::new()));
    assert!(!plain(
        Loop::new()
            .no_promise()
            .with(|plan| plan.proof.checks = vec![check(0)])
    ));
    assert!(!plain(
        Loop::new()
            .no_promise()
            .with(|plan| plan.proof.file = Some("x".into()))
    ));
}
