//! Random plans and events, and a log of them.

use super::kit::{check, committed, failed_task, green, plan, red, worktree};
use crate::engine::event::{
    AgentReport, Event, Fault, Marker, Notice, Now, ProcessExit, Request, RequestSource,
    TextSignals,
};
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::look::SecondLook;
use crate::engine::moved::NewPlace;
use crate::engine::outcome::{OutcomeSummary, StopReason};
use crate::engine::plan::{FIRST_RULES, Plan, Signal};
use crate::engine::scm::{ScmTaskReport, SkipReason};
use crate::engine::touched::TouchedFiles;
use crate::engine::{Amount, Effect, Limit, LimitChange, State};
use fastrand::Rng;

pub(super) const SEEDS: [u64; 4] = [1, 2, 3, 0x5eed];

/// The events of a loop, printed if the test panics.
pub(super) struct EventLog {
    seed: u64,
    plan: Plan,
    pub(super) lines: Vec<(Now, Event)>,
}

impl EventLog {
    pub(super) fn new(seed: u64, plan: &Plan) -> Self {
        Self {
            seed,
            plan: plan.clone(),
            lines: Vec::new(),
        }
    }

    /// Returns the state after all events.
    pub(super) fn fold(&self) -> State {
        let mut state = State::new(self.plan.clone());
        for (now, event) in &self.lines {
            state.step(*now, event);
        }
        state
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "seed {}\n{:#?} {:?} {:?}",
                self.seed, self.plan.proof, self.plan.limits, self.plan.rest
            );
            self.lines
                .iter()
                .for_each(|(now, event)| eprintln!("{:>8} {event:?}", now.delta_ms));
        }
    }
}

pub(super) fn any_plan(random: &mut Rng) -> Plan {
    let mut plan = plan();
    plan.context.template.clear();
    let proof = &mut plan.proof;
    proof.checks = (0..random.usize(..3)).map(check).collect();
    proof.preflight = random.bool();
    match random.u8(..8) {
        0 => proof.signals.push(Signal::Promise("SHIPPED".into())),
        1 => proof.signals.push(Signal::Pattern("FINISHED".into())),
        2 => proof.signals.push(Signal::File("report.md".into())),
        _ => {}
    }
    if random.u8(..3) == 0 {
        if random.bool() && !proof.checks.is_empty() {
            plan.rules = FIRST_RULES;
        }
        proof.until_green = !proof.checks.is_empty() && plan.rules != FIRST_RULES;
        if !proof.until_green {
            proof.fallback.clear();
        }
    }
    proof.second_look = match random.u8(..3) {
        0 => SecondLook::Auto,
        1 => SecondLook::Always,
        _ => SecondLook::Never,
    };
    plan.checkpoints = random.bool();
    let limits = &mut plan.limits;
    limits.stalls = random.bool().then_some(1);
    limits.iterations = random.bool().then(|| random.u32(1..30));
    limits.failures = random.bool().then(|| random.u32(1..4));
    limits.cost_usd = (random.u8(..4) == 0).then_some(4.0);
    limits.time_ms = (random.u8(..4) == 0).then(|| random.u64(1..100_000));
    limits.iteration_ms = random.bool().then(|| random.u64(1..20_000));
    let tasks = ["commit", "push"].map(str::to_owned);
    plan.scm.tasks = tasks[..random.usize(..3)].to_vec();
    plan.worktree = (random.u8(..3) == 0).then(worktree);
    plan.rest.delay_ms = random.u64(..2) * random.u64(..2000);
    plan.fallback = vec![plan.agent.clone(); random.usize(..3).saturating_sub(1)];
    plan.agent.exit_waiting = random.bool().then_some(42);
    plan
}

fn any_tree(random: &mut Rng) -> Option<String> {
    let trees = [None, None, Some("a"), Some("b")];
    trees[random.usize(..trees.len())].map(str::to_owned)
}

fn any_failure(random: &mut Rng) -> AgentFailure {
    let all = [
        FailureKind::UsageLimit,
        FailureKind::UsageLimit,
        FailureKind::RateLimit,
        FailureKind::Overloaded,
        FailureKind::Login,
        FailureKind::Credit,
        FailureKind::Context,
        FailureKind::Crashed,
    ];
    let kind = all[random.usize(..all.len())];
    AgentFailure {
        until_ms: random.bool().then(|| random.i64(-5_000..60_000)),
        ..kind.into()
    }
}

pub(super) fn any_report(random: &mut Rng) -> AgentReport {
    let rarely = |random: &mut Rng| random.u8(..20) == 0;
    let marker = any_marker(random);
    AgentReport {
        exit: match random.u8(..12) {
            0 => ProcessExit::from_code(42),
            1 => ProcessExit {
                code: None,
                signal: Some(9),
            },
            2..6 => ProcessExit::from_code(1),
            _ => ProcessExit::from_code(0),
        },
        ms: random.u64(..9000),
        signals: TextSignals {
            promised: rarely(random),
            promise_in_sentence: rarely(random),
            matched: rarely(random),
            blocked: rarely(random).then(|| "no key".into()),
            changed: rarely(random).then(|| "asked for".into()),
            commit: None,
        },
        markers: if rarely(random) { vec![marker] } else { vec![] },
        cost_usd: random.bool().then_some(0.25),
        survivors: if rarely(random) { vec![9] } else { vec![] },
        reason: (random.u8(..6) == 0).then(|| any_failure(random)),
        finished: random.bool(),
        ..AgentReport::default()
    }
}

fn any_marker(random: &mut Rng) -> Marker {
    [
        Marker::Done,
        Marker::Blocked,
        Marker::Wait,
        Marker::File,
        Marker::Bus,
    ][random.usize(..5)]
}

fn any_request(random: &mut Rng, inbox: Option<u64>) -> Event {
    let requests = [
        Request::Go,
        Request::Go,
        Request::Go,
        Request::Pause,
        Request::PauseNow,
        Request::Stop,
        Request::StopNow,
    ];
    let sources = [
        RequestSource::Inbox,
        RequestSource::Sigint,
        RequestSource::Sigterm,
    ];
    Event::Asked {
        request: requests[random.usize(..requests.len())],
        by: sources[random.usize(..sources.len())],
        inbox,
    }
}

fn any_limit_change(random: &mut Rng) -> LimitChange {
    match random.u8(..4) {
        0 => LimitChange {
            limit: Limit::Iterations,
            max: random.bool().then(|| random.u32(..40)).map(Amount::Count),
        },
        1 => LimitChange {
            limit: Limit::Cost,
            max: random.bool().then_some(2.0).map(Amount::Dollars),
        },
        2 => LimitChange {
            limit: Limit::Time,
            max: random
                .bool()
                .then(|| random.u64(..200_000))
                .map(Amount::Millis),
        },
        _ => LimitChange {
            limit: Limit::Failures,
            max: random.bool().then(|| random.u32(..6)).map(Amount::Count),
        },
    }
}

/// Returns a random event. Its numbers are right, or wrong by a little.
#[expect(clippy::too_many_lines, reason = "one arm for each event")]
pub(super) fn any_event(random: &mut Rng, state: &State) -> Event {
    let near = |random: &mut Rng, number: u32| match random.u8(..12) {
        0 => number.wrapping_sub(1),
        1 => number.wrapping_add(1),
        2 => random.u32(..),
        _ => number,
    };
    let inbox = random.bool().then(|| random.u64(..));
    let iteration = near(random, state.iteration);
    match random.u8(..42) {
        0 => Event::Opened {
            pid: 1,
            version: String::new(),
            cost_usd: random.bool().then_some(0.5),
            tokens: None,
            in_session: random.bool(),
            boot: None,
        },
        1 | 2 => any_request(random, inbox),
        3 => Event::Answered {
            text: "yes".into(),
            inbox,
        },
        4 => Event::Changed {
            limit: any_limit_change(random),
            inbox,
        },
        5..12 => {
            let expected = state.checks.iter().position(Option::is_none).unwrap_or(0) as u32;
            let report = if random.u8(..3) == 0 { red() } else { green() };
            Event::Checked {
                iteration,
                check: near(random, expected) as usize,
                report,
                tree: any_tree(random),
                written: vec![],
            }
        }
        12..18 => Event::Started {
            iteration: near(random, state.iteration.wrapping_add(1)),
            agent: None,
            tree: any_tree(random),
            baseline: None,
            version: None,
        },
        18 | 19 => Event::Spawned {
            iteration,
            pid: random.u32(..),
            start_time: 1,
        },
        20 => Event::Noticed {
            iteration,
            notice: Notice::Pattern,
            text: None,
        },
        21 => {
            let notice = if random.bool() {
                Notice::Silence
            } else {
                Notice::Unready
            };
            Event::Noticed {
                iteration,
                notice,
                text: None,
            }
        }
        22 => Event::Noticed {
            iteration,
            notice: Notice::Marker(any_marker(random)),
            text: None,
        },
        23..28 => Event::Ended {
            iteration,
            report: any_report(random),
        },
        28 if random.u8(..4) == 0 => Event::Faulted {
            class: Fault::Disk,
            detail: "full".into(),
        },
        29 => finished(),
        30 if random.bool() => Event::TurnFailed {
            iteration,
            message: "overloaded".into(),
        },
        30 => Event::Unknown,
        31..=33 => {
            let expected = state.orders().iter().find_map(|order| match order {
                Effect::ScmTask { task, .. } => Some(*task),
                _ => None,
            });
            let task = near(random, expected.unwrap_or(state.scm.reports.len()) as u32) as usize;
            Event::Committed {
                iteration,
                task,
                report: any_task_report(random),
            }
        }
        34..=37 => any_drained(random, iteration),
        38..=40 => any_look(random, state, iteration),
        41..=48 => any_files_event(random, iteration),
        _ => Event::Woke,
    }
}

/// Returns the result of the step of the second look that is ordered, or one that is not expected.
fn any_look(random: &mut Rng, state: &State, iteration: u32) -> Event {
    if random.u8(..10) == 0 {
        return Event::Accepted {
            globs: vec!["tests/*".into()],
            inbox: None,
        };
    }
    let expected = state.look.checks.iter().position(Option::is_none);
    match expected.filter(|_| random.u8(..8) > 0) {
        Some(check) => Event::Rechecked {
            iteration,
            check,
            report: if random.u8(..3) == 0 { red() } else { green() },
        },
        None => any_survey(random, iteration),
    }
}

pub(super) fn any_survey(random: &mut Rng, iteration: u32) -> Event {
    let mut touched = TouchedFiles::default();
    touched.guards.total = random.u64(..2);
    Event::Surveyed {
        iteration,
        touched,
        weaknesses: vec![],
        failure: (random.u8(..10) == 0).then(|| "no view".into()),
    }
}

fn any_files_event(random: &mut Rng, iteration: u32) -> Event {
    if random.u8(..64) > 0 {
        return any_checkpoint(random, iteration);
    }
    if random.bool() {
        let place = NewPlace {
            host: "other".into(),
            epoch: 2,
            workspace: "/elsewhere".into(),
            worktree: None,
            homes: None,
            baseline: None,
        };
        return Event::Moved {
            place: Box::new(place),
        };
    }
    Event::Rewound {
        to: "0".into(),
        inbox: None,
    }
}

pub(super) fn any_checkpoint(random: &mut Rng, iteration: u32) -> Event {
    let tree = any_tree(random);
    Event::Checkpointed {
        iteration,
        commit: tree.clone(),
        tree,
        skipped: Vec::new(),
        failure: random.bool().then(|| "full".into()),
        head: None,
    }
}

pub(super) fn any_drained(random: &mut Rng, iteration: u32) -> Event {
    let some = |random: &mut Rng| {
        if random.u8(..4) == 0 {
            vec!["child".to_owned()]
        } else {
            vec![]
        }
    };
    Event::Drained {
        iteration,
        waited: some(random),
        stopped: some(random),
    }
}

pub(super) fn any_task_report(random: &mut Rng) -> ScmTaskReport {
    match random.u8(..6) {
        0 => failed_task(),
        1 => ScmTaskReport {
            skipped: Some(SkipReason::Unchanged),
            ..ScmTaskReport::default()
        },
        2 => ScmTaskReport {
            skipped: Some(SkipReason::Empty),
            ..ScmTaskReport::default()
        },
        3 => ScmTaskReport {
            timed_out: true,
            ..committed()
        },
        _ => committed(),
    }
}

pub(super) fn finished() -> Event {
    Event::Finished {
        outcome: OutcomeSummary {
            kind: String::new(),
            why: String::new(),
            detail: String::new(),
        },
        stop_reason: StopReason::Stopped,
        success: false,
        exit_code: 1,
        iterations: 1,
        cost_usd: None,
        duration_s: 0.5,
        worktree: None,
        branch: None,
        better: None,
        review: None,
        end: None,
    }
}

pub(super) fn opened() -> Event {
    Event::Opened {
        pid: 1,
        version: String::new(),
        cost_usd: None,
        tokens: None,
        in_session: false,
        boot: None,
    }
}
