//! The order in which `decide` tests its conditions.

use super::kit::{TestLoop, check};
use crate::engine::decide::{Decision, decide};
use crate::engine::event::{Fault, Marker, Request, RequestSource};
use crate::engine::plan::Signal;
use crate::engine::{Limit, Outcome, State};

/// Tries every combination of conditions; the first one in the contract's order wins.
#[test]
fn decide_tests_its_conditions_in_the_documented_order() {
    let rows = 7;
    for (truth, drained) in (0..1_u32 << rows).flat_map(|truth| [(truth, true), (truth, false)]) {
        let holds = |row: u32| truth & (1 << row) != 0;
        let mut state = TestLoop::new().open().state;
        (state.clock_ms, state.drained) = (10, drained);
        if holds(5) {
            state.request = Request::Pause;
        }
        if holds(0) {
            state.request = Request::Stop;
        }
        state.claims.signals.promised = holds(1);
        state.claims.signals.blocked = holds(2).then(|| "no key".to_owned());
        state.fault = holds(3).then(|| (Fault::Disk, "full".to_owned()));
        state.counted = if holds(4) { 25 } else { 0 };
        state.rest_until_ms = if holds(6) { 11 } else { 10 };
        let expected = match (0..rows).find(|row| holds(*row)) {
            Some(0..=4) if !drained => Decision::Drain,
            Some(0) => Decision::End(Outcome::Stopped {
                by: RequestSource::Inbox,
            }),
            Some(1) => Decision::End(Outcome::Done { checked: false }),
            Some(2) => Decision::End(Outcome::Blocked {
                why: "no key".into(),
            }),
            Some(3) => Decision::End(Outcome::Fatal {
                class: Fault::Disk,
                detail: "full".into(),
            }),
            Some(4) => Decision::End(Outcome::Limit {
                limit: Limit::Iterations,
                success: false,
            }),
            Some(5) => Decision::Pause,
            Some(6) => Decision::Rest(11),
            _ => Decision::Run(0),
        };
        assert_eq!(decide(&state), expected, "{truth:07b}");
    }
}

#[test]
fn immediate_requests_decide_like_the_graceful_ones() {
    let mut state = TestLoop::new().open().state;
    state.request = Request::PauseNow;
    assert_eq!(decide(&state), Decision::Pause);
    state.request = Request::StopNow;
    (state.requested_by, state.drained) = (RequestSource::Sigint, true);
    assert_eq!(
        decide(&state),
        Decision::End(Outcome::Stopped {
            by: RequestSource::Sigint
        })
    );
}

#[test]
fn text_comes_before_markers_and_blocked_before_waiting() {
    let mut state = TestLoop::new().open().state;
    let why = |state: &State| match decide(state) {
        Decision::End(outcome) => outcome.summary().why,
        next => format!("{next:?}"),
    };
    state.drained = true;
    state.claims.signals.blocked = Some("no key".into());
    state.claims.markers = vec![Marker::Wait, Marker::Blocked];
    state.claims.exit_waiting = Some(42);
    assert_eq!(why(&state), "no key");
    state.claims.signals.blocked = None;
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
fn the_most_serious_of_several_limits_is_named() {
    let mut state = TestLoop::new()
        .with(|plan| (plan.limits.cost_usd, plan.limits.time_ms) = (Some(1.0), Some(1)))
        .state;
    state.plan.limits.tokens = Some(10);
    state.tokens.output = 10;
    (state.plan.limits.rest_ms, state.waited_ms) = (Some(5), 5);
    (
        state.counted,
        state.consecutive_failures,
        state.cost_usd,
        state.active_ms,
    ) = (25, 5, 1.0, 1);
    state.drained = true;
    let mut limit = || match decide(&state) {
        Decision::End(Outcome::Limit { limit, .. }) => {
            match limit {
                Limit::Failures => state.consecutive_failures = 4,
                Limit::Cost => state.cost_usd = 0.99,
                Limit::Tokens => state.tokens.output = 9,
                Limit::Time => state.active_ms = 0,
                Limit::Iterations => state.counted = 24,
                Limit::Rest => state.waited_ms = 0,
                Limit::Peeks => state.peeks = 0,
                Limit::Stalls | Limit::Blocks => state.session = None,
            }
            Some(limit)
        }
        _ => None,
    };
    assert_eq!(
        [
            limit(),
            limit(),
            limit(),
            limit(),
            limit(),
            limit(),
            limit()
        ],
        [
            Some(Limit::Failures),
            Some(Limit::Cost),
            Some(Limit::Tokens),
            Some(Limit::Time),
            Some(Limit::Iterations),
            Some(Limit::Rest),
            None
        ]
    );
}

#[test]
fn only_a_loop_without_any_proof_is_plain() {
    let plain = |work: TestLoop| work.state.is_plain();
    assert!(plain(TestLoop::new().no_promise()));
    assert!(!plain(TestLoop::new()));
    assert!(!plain(
        TestLoop::new()
            .no_promise()
            .with(|plan| plan.proof.checks = vec![check(0)])
    ));
    assert!(!plain(TestLoop::new().no_promise().with(|plan| {
        plan.proof.signals = vec![Signal::File("x".into())];
    })));
}
