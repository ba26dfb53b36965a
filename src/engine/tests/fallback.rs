//! Limits of agents: what is waited for, what is refunded, who takes over, and what stops at once.

use super::kit::Loop;
use crate::engine::event::{Door, Event, Exit, Fault, Marker, Notice, Report, Wish};
use crate::engine::failure::{Kind, Reason};
use crate::engine::plan::{Agent, Approve};
use crate::engine::state::How;
use crate::engine::usage::Tokens;
use crate::engine::{Effect, Limit, Outcome, Phase};

/// The agent ends badly for this reason, which is over at this time.
fn bad(kind: Kind, until_ms: Option<i64>) -> Report {
    let reason = Some(Reason {
        until_ms,
        ..kind.into()
    });
    let error = Some("its words".into());
    Report {
        exit: Exit::code(1),
        cost_usd: Some(0.0),
        reason,
        error,
        ..Report::default()
    }
}

fn good() -> Report {
    Report {
        exit: Exit::code(0),
        cost_usd: Some(0.0),
        finished: true,
        ..Report::default()
    }
}

fn named(name: &str) -> Agent {
    Agent {
        name: name.into(),
        ..Agent::default()
    }
}

/// A loop without checks whose agent has begun.
fn at_work() -> Loop {
    Loop::new().open().start()
}

/// The same with a second agent.
fn two() -> Loop {
    Loop::new()
        .with(|plan| (plan.agent, plan.fallback) = (named("first"), vec![named("second")]))
        .open()
        .start()
}

fn fault(work: &Loop) -> Option<Fault> {
    match work.state.outcome() {
        Some(Outcome::Fatal { class, .. }) => Some(*class),
        _ => None,
    }
}

#[test]
fn a_limit_is_waited_out_and_neither_the_iteration_nor_a_failure_counts() {
    for kind in [Kind::UsageLimit, Kind::RateLimit, Kind::Overloaded] {
        let work = at_work().end(bad(kind, Some(5000)));
        assert_eq!(work.state.orders(), [Effect::WakeAtWall(5000)], "{kind:?}");
        let state = &work.state;
        assert_eq!(
            (
                state.counted,
                state.consecutive_failures,
                state.total_failures
            ),
            (0, 0, 0)
        );
        assert!(state.recent.back().unwrap().refunded);
        let work = work.after(4999);
        assert_eq!(work.state.orders(), [Effect::WakeAtWall(5000)], "not yet");
        assert_eq!(
            work.after(1).state.orders()[0],
            Effect::Run { iteration: 2 },
            "its number is used up"
        );
    }
}

#[test]
fn a_limit_without_a_known_end_is_probed_ever_more_slowly_until_it_is_over() {
    let mut work = at_work();
    for expected in [30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000] {
        work = work.end(bad(Kind::Overloaded, None));
        let now = work.state.wall_ms;
        assert_eq!(work.state.orders(), [Effect::WakeAtWall(now + expected)]);
        work = work.after(expected as u64).start();
    }
    let work = work.end(good()).start().end(bad(Kind::Overloaded, None));
    assert_eq!(
        work.state.orders(),
        [Effect::WakeAtWall(work.state.wall_ms + 30_000)],
        "it begins anew"
    );
}

#[test]
fn a_reset_that_has_passed_is_no_reset() {
    let work = at_work().after(1000).end(bad(Kind::UsageLimit, Some(999)));
    assert_eq!(work.state.orders(), [Effect::WakeAtWall(31_000)]);
}

#[test]
fn waiting_for_a_reset_is_no_work() {
    let work = Loop::new()
        .with(|plan| plan.limits.time_ms = Some(10_000))
        .open()
        .start();
    let work = work
        .after(100)
        .end(bad(Kind::UsageLimit, Some(3_600_000)))
        .after(3_599_900);
    assert_eq!(work.state.active_ms, 100);
    assert_eq!(work.state.orders()[0], Effect::Run { iteration: 2 });
}

#[test]
fn a_person_may_try_at_once() {
    let work = at_work()
        .end(bad(Kind::UsageLimit, Some(5000)))
        .feed(Event::Hurried { inbox: Some(7) });
    assert_eq!(work.state.orders()[0], Effect::Run { iteration: 2 });
    assert_eq!(work.state.inbox_offset, 7);
    let again = work.start().end(bad(Kind::UsageLimit, Some(5000)));
    assert_eq!(again.state.orders(), [Effect::WakeAtWall(5000)], "in vain");
}

#[test]
fn a_pause_does_not_forget_what_was_waited_for() {
    let work = at_work()
        .end(bad(Kind::UsageLimit, Some(5000)))
        .ask(Wish::Pause, Door::Inbox);
    assert_eq!(work.state.phase, Phase::Paused);
    assert_eq!(
        work.ask(Wish::Go, Door::Inbox).state.orders(),
        [Effect::WakeAtWall(5000)]
    );
}

#[test]
fn what_only_a_person_can_mend_stops_at_once_with_what_mends_it() {
    let login = |plan: &mut crate::engine::Plan| plan.agent.login = "type /login".into();
    for (kind, class, mends) in [
        (Kind::Login, Fault::Login, "log in: type /login"),
        (Kind::Credit, Fault::Credit, "add credit"),
        (Kind::Model, Fault::Model, "--model"),
        (Kind::Denied, Fault::Permission, "--approve all"),
    ] {
        let work = Loop::new()
            .with(login)
            .with(|plan| plan.agent.approve = Some(Approve::Edits));
        let work = work.with(login).open().start().end(bad(kind, None));
        assert_eq!(fault(&work), Some(class), "{kind:?}");
        let detail = work.state.outcome().unwrap().verdict().detail;
        assert!(
            detail.contains(mends) && detail.contains("its words"),
            "{detail}"
        );
        assert_eq!(
            work.ask(Wish::Go, Door::Inbox).state.orders()[0],
            Effect::Run { iteration: 2 },
            "a person resumes"
        );
    }
}

#[test]
fn anything_else_is_a_failure() {
    for kind in [Kind::Context, Kind::Refused, Kind::Crashed] {
        let work = at_work().end(Report {
            exit: Exit::code(0),
            ..bad(kind, None)
        });
        assert_eq!(
            (work.state.counted, work.state.consecutive_failures),
            (1, 1),
            "{kind:?}"
        );
    }
    let work = at_work().end(Report {
        exit: Exit::code(1),
        ..good()
    });
    assert_eq!(
        work.state.consecutive_failures, 0,
        "its stream outweighs its exit code"
    );
}

#[test]
fn the_next_agent_takes_over_until_the_first_is_back() {
    let work = two().end(bad(Kind::UsageLimit, Some(5000)));
    assert_eq!(
        (work.state.orders()[0].clone(), work.state.using),
        (Effect::Run { iteration: 2 }, 1)
    );
    assert_eq!(work.state.agent().name, "second");
    let work = work.start().end(good());
    assert_eq!(work.state.using, 1, "the first still rests");
    let work = work.start().after(5000).end(good());
    assert_eq!(work.state.agent().name, "first", "it is back");
    let names: Vec<_> = work
        .state
        .recent
        .iter()
        .filter_map(|last| last.agent.as_deref())
        .collect();
    assert_eq!(names, ["first", "second", "second"]);
}

#[test]
fn if_all_rest_the_soonest_is_waited_for() {
    let work = two()
        .end(bad(Kind::UsageLimit, Some(9000)))
        .start()
        .end(bad(Kind::Overloaded, Some(4000)));
    assert_eq!(work.state.orders(), [Effect::WakeAtWall(4000)]);
    assert_eq!(work.after(4000).state.using, 1);
}

#[test]
fn red_work_and_crashes_change_no_agent() {
    let mut work = two();
    for kind in [Kind::Crashed, Kind::Context, Kind::Refused] {
        work = work.end(bad(kind, None)).after(600_000).start();
        assert_eq!(work.state.using, 0, "{kind:?}");
    }
}

#[test]
fn a_missing_login_is_another_agents_turn_and_fatal_when_nobody_is_left() {
    let work = two().end(bad(Kind::Login, None));
    assert_eq!(
        (work.state.using, work.state.counted),
        (1, 0),
        "it does not count"
    );
    let work = work.start().end(bad(Kind::Login, None));
    assert_eq!(fault(&work), Some(Fault::Login));
    assert_eq!(
        work.ask(Wish::Go, Door::Inbox).state.using,
        0,
        "resumed, the first is asked again"
    );
    let work = two().end(bad(Kind::Credit, None));
    assert_eq!(
        fault(&work),
        Some(Fault::Credit),
        "that is nobody else's business"
    );
}

#[test]
fn words_that_nobody_could_act_on_are_said_again() {
    let answered = |work: Loop| {
        work.feed(Event::Answered {
            text: "mind the roof".into(),
            inbox: None,
        })
    };
    let work = answered(Loop::new().open())
        .start()
        .end(bad(Kind::UsageLimit, Some(5000)));
    assert_eq!(work.state.answers, ["mind the roof"]);
    assert!(
        work.after(5000)
            .start()
            .end(good())
            .state
            .answers
            .is_empty()
    );
}

#[test]
fn tokens_have_a_limit_and_hold_over_a_crash() {
    let tokens = Some(Tokens {
        output: 600,
        ..Tokens::default()
    });
    let work = Loop::new()
        .with(|plan| plan.limits.tokens = Some(1000))
        .open()
        .start();
    let work = work.end(Report { tokens, ..good() }).start();
    let crashed = work.feed(Event::Opened {
        pid: 2,
        version: "0".into(),
        cost_usd: None,
        tokens,
        inside: false,
    });
    assert_eq!(
        crashed.state.outcome(),
        Some(&Outcome::Limit {
            limit: Limit::Tokens,
            success: false
        })
    );
}

#[test]
fn dollars_that_nobody_knows_end_a_loop_that_counts_them() {
    let tokens = Some(Tokens {
        output: 600,
        ..Tokens::default()
    });
    let unknown = Report {
        tokens,
        cost_usd: None,
        ..good()
    };
    let counts = |allowed| {
        Loop::new()
            .with(|plan| (plan.limits.cost_usd, plan.limits.unknown_cost) = (Some(1.0), allowed))
            .open()
            .start()
            .end(unknown.clone())
    };
    assert_eq!(fault(&counts(false)), Some(Fault::Cost));
    assert_eq!(fault(&counts(true)), None);
}

#[test]
fn every_bad_end_has_one_reason_and_a_good_one_has_none() {
    let killed = |why| {
        Some(Reason {
            why: Some(why),
            ..Kind::Killed.into()
        })
    };
    let rows = vec![
        ("well", at_work().exit(0), None),
        (
            "promised",
            at_work().say("<promise>COMPLETE</promise>"),
            None,
        ),
        (
            "matched",
            Loop::new()
                .pattern("x")
                .open()
                .start()
                .notice(Notice::Pattern)
                .exit(143),
            None,
        ),
        (
            "marked",
            at_work().marker(Marker::Done).after(30_000).exit(143),
            None,
        ),
        (
            "finished, and stayed",
            at_work().notice(Notice::Lingering).end(good()),
            None,
        ),
        (
            "an exit code",
            at_work().exit(3),
            Some(Kind::Crashed.into()),
        ),
        (
            "too long",
            at_work().after(7_200_000).exit(143),
            killed(How::TimedOut),
        ),
        (
            "silent",
            at_work().notice(Notice::Silence).exit(143),
            killed(How::Inactive),
        ),
        (
            "no screen",
            at_work().notice(Notice::Unready).exit(143),
            killed(How::Unready),
        ),
        (
            "stayed",
            at_work().notice(Notice::Lingering).exit(143),
            killed(How::Lingered),
        ),
        (
            "a person",
            at_work().ask(Wish::StopNow, Door::Inbox).exit(143),
            killed(How::Stopped),
        ),
        (
            "a full disk",
            at_work().fault().exit(143),
            killed(How::Faulted),
        ),
    ];
    for (name, work, reason) in rows {
        assert_eq!(work.state.recent.back().unwrap().reason, reason, "{name}");
    }
    assert_eq!(
        at_work().open().state.recent.back().unwrap().reason,
        killed(How::Interrupted)
    );
    for (class, reason) in [
        (Fault::NotFound, Some(Kind::NotFound.into())),
        (Fault::Permission, Some(Kind::Denied.into())),
        (Fault::Usage, Some(Kind::Usage.into())),
        (Fault::Disk, killed(How::Faulted)),
    ] {
        let began = Loop::new().open().started_as_ordered(1);
        let work = began.feed(Event::Faulted {
            class,
            detail: "no".into(),
        });
        assert_eq!(
            work.state.recent.back().unwrap().reason,
            reason,
            "{class:?}"
        );
        assert_eq!(fault(&work), Some(class));
    }
}
