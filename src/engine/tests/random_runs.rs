//! A hostile world: it says anything at any time, and the engine must keep its invariants.

use super::kit::{check, green, kept, lost, plan, red, worktree};
use crate::engine::event::{
    Change, Door, Event, Exit, Fault, Marker, Notice, Now, Report, Said, Verdict, Wish,
};
use crate::engine::failure::{Kind, Reason};
use crate::engine::fallback::Turn;
use crate::engine::plan::Plan;
use crate::engine::scm::{Skip, TaskReport};
use crate::engine::state::REMEMBERED;
use crate::engine::{Effect, Outcome, State};
use fastrand::Rng;

pub(super) const SEEDS: [u64; 4] = [1, 2, 3, 0x5eed];
/// Loops per seed in the hostile world, and events per loop: two million in all.
const LOOPS: usize = 2500;
const EVENTS: usize = 200;

/// A loop's journal, printed if a test fails while it is kept.
pub(super) struct Journal {
    seed: u64,
    plan: Plan,
    pub(super) lines: Vec<(Now, Event)>,
}

impl Journal {
    pub(super) fn new(seed: u64, plan: &Plan) -> Self {
        Self {
            seed,
            plan: plan.clone(),
            lines: Vec::new(),
        }
    }

    /// The state that this journal folds to.
    pub(super) fn fold(&self) -> State {
        let mut state = State::new(self.plan.clone());
        for (now, event) in &self.lines {
            state.step(*now, event);
        }
        state
    }
}

impl Drop for Journal {
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
        0 => proof.promise = Some("SHIPPED".into()),
        1 => proof.pattern = Some("FINISHED".into()),
        2 => proof.file = Some("report.md".into()),
        _ => {}
    }
    if random.u8(..3) == 0 {
        proof.fallback.clear();
    }
    let limits = &mut plan.limits;
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

fn any_reason(random: &mut Rng) -> Reason {
    let all = [
        Kind::UsageLimit,
        Kind::UsageLimit,
        Kind::RateLimit,
        Kind::Overloaded,
        Kind::Login,
        Kind::Credit,
        Kind::Context,
        Kind::Crashed,
    ];
    let kind = all[random.usize(..all.len())];
    Reason {
        until_ms: random.bool().then(|| random.i64(-5_000..60_000)),
        ..kind.into()
    }
}

pub(super) fn any_report(random: &mut Rng) -> Report {
    let rarely = |random: &mut Rng| random.u8(..20) == 0;
    let marker = [
        Marker::Done,
        Marker::Blocked,
        Marker::Wait,
        Marker::File,
        Marker::Bus,
    ][random.usize(..5)];
    Report {
        exit: match random.u8(..12) {
            0 => Exit::code(42),
            1 => Exit {
                code: None,
                signal: Some(9),
            },
            2..6 => Exit::code(1),
            _ => Exit::code(0),
        },
        ms: random.u64(..9000),
        said: Said {
            promised: rarely(random),
            promise_in_sentence: rarely(random),
            matched: rarely(random),
            blocked: rarely(random).then(|| "no key".into()),
            commit: None,
        },
        markers: if rarely(random) { vec![marker] } else { vec![] },
        cost_usd: random.bool().then_some(0.25),
        survivors: if rarely(random) { vec![9] } else { vec![] },
        reason: (random.u8(..6) == 0).then(|| any_reason(random)),
        finished: random.bool(),
        ..Report::default()
    }
}

/// Any event, with numbers that are true, or nearly so.
fn any_event(random: &mut Rng, state: &State) -> Event {
    let near = |random: &mut Rng, number: u32| match random.u8(..12) {
        0 => number.wrapping_sub(1),
        1 => number.wrapping_add(1),
        2 => random.u32(..),
        _ => number,
    };
    let inbox = random.bool().then(|| random.u64(..));
    let iteration = near(random, state.iteration);
    match random.u8(..40) {
        0 => Event::Opened {
            pid: 1,
            version: String::new(),
            cost_usd: random.bool().then_some(0.5),
            tokens: None,
            inside: random.bool(),
        },
        1 | 2 => {
            let wishes = [
                Wish::Go,
                Wish::Go,
                Wish::Go,
                Wish::Pause,
                Wish::PauseNow,
                Wish::Stop,
                Wish::StopNow,
            ];
            let wish = wishes[random.usize(..wishes.len())];
            Event::Asked {
                wish,
                by: [Door::Inbox, Door::Sigint, Door::Sigterm][random.usize(..3)],
                inbox,
            }
        }
        3 => Event::Answered {
            text: "yes".into(),
            inbox,
        },
        4 => {
            let limit = match random.u8(..4) {
                0 => Change::MaxIterations(random.bool().then(|| random.u32(..40))),
                1 => Change::MaxCost(random.bool().then_some(2.0)),
                2 => Change::MaxTime(random.bool().then(|| random.u64(..200_000))),
                _ => Change::MaxFailures(random.bool().then(|| random.u32(..6))),
            };
            Event::Changed { limit, inbox }
        }
        5..12 => {
            let expected = state.checks.iter().position(Option::is_none).unwrap_or(0) as u32;
            let report = if random.u8(..3) == 0 { red() } else { green() };
            Event::Checked {
                iteration,
                check: near(random, expected) as usize,
                report,
            }
        }
        12..18 => Event::Started {
            iteration: near(random, state.iteration.wrapping_add(1)),
            agent: None,
        },
        18 | 19 => Event::Spawned {
            iteration,
            pid: random.u32(..),
            start_time: 1,
        },
        20 => Event::Noticed {
            iteration,
            notice: Notice::Pattern,
            words: None,
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
                words: None,
            }
        }
        22 => {
            let marker = [
                Marker::Done,
                Marker::Blocked,
                Marker::Wait,
                Marker::File,
                Marker::Bus,
            ][random.usize(..5)];
            Event::Noticed {
                iteration,
                notice: Notice::Marker(marker),
                words: None,
            }
        }
        23..28 => Event::Ended {
            iteration,
            report: any_report(random),
        },
        28 if random.u8(..4) == 0 => Event::Faulted {
            class: Fault::Disk,
            detail: "full".into(),
        },
        29 => finished(),
        30 if random.bool() => Event::Stumbled {
            iteration,
            words: "overloaded".into(),
        },
        30 => Event::Unknown,
        31..=33 => {
            let expected = state.orders().iter().find_map(|order| match order {
                Effect::Commit { task, .. } => Some(*task),
                _ => None,
            });
            let task = near(
                random,
                expected.unwrap_or(state.keeping.reports.len()) as u32,
            ) as usize;
            Event::Committed {
                iteration,
                task,
                report: any_task_report(random),
            }
        }
        34..=37 => any_drained(random, iteration),
        _ => Event::Woke,
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

pub(super) fn any_task_report(random: &mut Rng) -> TaskReport {
    match random.u8(..6) {
        0 => lost(),
        1 => TaskReport {
            skipped: Some(Skip::Unchanged),
            ..TaskReport::default()
        },
        2 => TaskReport {
            skipped: Some(Skip::Empty),
            ..TaskReport::default()
        },
        3 => TaskReport {
            timed_out: true,
            ..kept()
        },
        _ => kept(),
    }
}

pub(super) fn finished() -> Event {
    Event::Finished {
        outcome: Verdict {
            kind: String::new(),
            why: String::new(),
            detail: String::new(),
        },
        stop_reason: String::new(),
        success: false,
        exit_code: 1,
        iterations: 1,
        cost_usd: None,
        duration_s: 0.5,
        worktree: None,
    }
}

/// Knows by itself, from the events alone, what must be true of a state.
#[derive(Default)]
struct Oracle {
    /// The agent that lives, and whether it has a process.
    alive: Option<(u32, bool)>,
    started: u32,
    /// Iterations that do not count, and the newest whose end was looked at.
    refunds: u32,
    newest_end: u32,
    highest: u32,
    spent: f64,
    /// The last report of each check that had been ordered, with its iteration.
    reports: Vec<Option<(u32, bool)>>,
    /// The last task that ended for green work: its iteration, its place, and whether it went well.
    task: Option<(u32, usize, bool)>,
    /// The number of the commit in the loop's own worktree.
    own_task: usize,
    /// The last iteration whose worktree was committed.
    saved: u32,
}

impl Oracle {
    /// Takes the event into account as whoever obeyed these orders sees it.
    fn hear(&mut self, orders: &[Effect], event: &Event) {
        match event {
            Event::Started {
                iteration,
                agent: None,
            } if self.alive.is_none()
                && orders.contains(&Effect::Run {
                    iteration: *iteration,
                }) =>
            {
                assert!(*iteration > self.highest, "a number came again");
                (self.alive, self.highest) = (Some((*iteration, false)), *iteration);
                self.started += 1;
            }
            Event::Spawned { iteration, .. } => {
                self.alive = self
                    .alive
                    .map(|(number, spawned)| (number, spawned || number == *iteration));
            }
            Event::Ended { iteration, report }
                if self.alive.is_some_and(|(number, _)| number == *iteration) =>
            {
                self.alive = None;
                self.spent += report.cost_usd.unwrap_or(0.0);
            }
            Event::Opened { cost_usd, .. } if self.alive.take().is_some() => {
                self.spent += cost_usd.unwrap_or(0.0);
            }
            Event::Faulted { .. }
                if matches!(self.alive, Some((_, false)))
                    && matches!(orders[0], Effect::Run { .. }) =>
            {
                self.alive = None;
            }
            Event::Checked {
                iteration,
                check,
                report,
            } if orders.contains(&Effect::Check {
                iteration: *iteration,
                check: *check,
            }) =>
            {
                self.reports
                    .resize((check + 1).max(self.reports.len()), None);
                self.reports[*check] = Some((*iteration, report.is_green()));
            }
            Event::Committed {
                iteration,
                task,
                report,
            } if orders.contains(&Effect::Commit {
                iteration: *iteration,
                task: *task,
            }) =>
            {
                if *task == self.own_task {
                    self.saved = if report.is_good() {
                        *iteration
                    } else {
                        self.saved
                    };
                    return;
                }
                let last = report.skipped == Some(Skip::Unchanged);
                self.task = Some((
                    *iteration,
                    if last { usize::MAX } else { *task },
                    report.is_good(),
                ));
            }
            // What child loops did after it is committed, too.
            Event::Drained { .. } | Event::Opened { .. }
                if orders
                    .iter()
                    .any(|order| matches!(order, Effect::Drain { .. })) =>
            {
                self.saved = 0;
            }
            _ => {}
        }
    }

    fn judge(&mut self, state: &State, orders: &[Effect]) {
        assert!(state.recent.len() <= REMEMBERED);
        if let Some(last) = state
            .recent
            .back()
            .filter(|last| last.number > self.newest_end)
        {
            self.newest_end = last.number;
            self.refunds += u32::from(last.refunded);
            assert!(
                !last.refunded
                    || last
                        .reason
                        .is_some_and(|reason| reason.kind.is_the_agents_own())
            );
        }
        assert_eq!(
            (state.counted, state.iteration),
            (self.started - self.refunds, self.highest)
        );
        assert!(
            (state.cost_usd - self.spent).abs() < 1e-9,
            "{} {}",
            state.cost_usd,
            self.spent
        );
        assert!(state.active_ms <= state.clock_ms);
        match (self.alive, orders) {
            (
                Some((number, _)),
                [Effect::Run { iteration }] | [Effect::Run { iteration }, Effect::WakeAt(_)],
            ) => {
                assert_eq!(*iteration, number, "two agents");
            }
            (Some((number, _)), [Effect::Kill { iteration, .. }]) => assert_eq!(*iteration, number),
            (Some(_), _) => panic!("an agent is left behind: {orders:?}"),
            (None, [Effect::Run { iteration }]) => {
                assert_eq!(*iteration, self.highest + 1);
                self.nothing_stands_against_a_run(state);
            }
            (None, [Effect::Check { iteration, .. }]) => assert_eq!(*iteration, self.highest),
            (None, [Effect::Commit { iteration, task }]) if *task == self.own_task => {
                assert!(state.plan.worktree.is_some() && state.fault.is_none());
                assert!(
                    *iteration == self.highest && *iteration > self.saved,
                    "committed once"
                );
            }
            (
                None,
                [
                    Effect::Drain {
                        iteration,
                        stop: false,
                    },
                    Effect::WakeAt(_),
                ]
                | [Effect::Drain { iteration, .. }],
            ) => {
                assert_eq!((*iteration, state.drained), (self.highest, false));
            }
            (None, [Effect::Commit { iteration, task }]) => {
                assert!(
                    *iteration == self.highest
                        && *iteration > 0
                        && *task < state.plan.scm.tasks.len()
                );
                assert_eq!((state.wish.is_now(), &state.fault), (false, &None));
                self.all_checks_are_green(state);
            }
            (None, [Effect::WakeAtWall(wall_ms)]) => {
                assert!(
                    *wall_ms > state.wall_ms,
                    "a rest has an end, and that is to come"
                );
            }
            (None, [] | [Effect::WakeAt(_) | Effect::Finish(_) | Effect::Leave]) => {}
            (None, _) => panic!("{orders:?}"),
        }
    }

    fn nothing_stands_against_a_run(&self, state: &State) {
        let limits = &state.plan.limits;
        assert!(
            limits
                .iterations
                .is_none_or(|max| self.started - self.refunds < max)
        );
        assert!(limits.cost_usd.is_none_or(|max| self.spent < max));
        assert!(limits.time_ms.is_none_or(|max| state.active_ms < max));
        let failures = state.consecutive_failures.max(state.keeping.failures);
        assert!(limits.failures.is_none_or(|max| failures < max));
        assert_eq!((state.wish, &state.fault), (Wish::Go, &None));
        assert_eq!(state.turn(), Turn::Of(state.using));
        assert!(state.rest_until_ms <= state.clock_ms);
    }

    fn all_checks_are_green(&self, state: &State) {
        for place in 0..state.plan.proof.checks.len() {
            assert_eq!(
                self.reports[place],
                Some((self.highest, true)),
                "check {place}"
            );
        }
    }

    /// Every check of the newest iteration is green, and somebody or something says that this is the work.
    fn judge_done(&self, state: &State) {
        let (proof, tasks) = (&state.plan.proof, state.plan.scm.tasks.len());
        self.all_checks_are_green(state);
        if tasks > 0 && self.highest > 0 && !proof.checks.is_empty() {
            let (iteration, task, good) = self.task.expect("a task has ended");
            assert!(
                iteration == self.highest && task.saturating_add(1) >= tasks && good,
                "{:?}",
                self.task
            );
        }
        let shown = !proof.checks.is_empty() && !proof.explicit();
        let shown = shown && state.red_at_start.unwrap_or(proof.fallback.is_empty());
        assert!(state.claimed() || shown);
    }
}

#[test]
fn no_world_is_too_hostile() {
    let mut endings = [0_usize; 6];
    for seed in SEEDS {
        let mut random = Rng::with_seed(seed);
        for number in 0..LOOPS {
            let plan = any_plan(&mut random);
            let mut journal = Journal::new(seed, &plan);
            let mut oracle = Oracle {
                own_task: plan.scm.tasks.len(),
                ..Oracle::default()
            };
            let mut state = State::new(plan);
            let mut orders = state.orders();
            for count in 0..EVENTS {
                let now = Now {
                    wall_ms: random.i64(..),
                    delta_ms: random.u64(..4) * random.u64(..500),
                };
                let event = if count == 0 {
                    opened()
                } else {
                    any_event(&mut random, &state)
                };
                journal.lines.push((now, event.clone()));
                let ended = state.outcome().cloned();
                oracle.hear(&orders, &event);
                state.step(now, &event);
                orders = state.orders();
                oracle.judge(&state, &orders);
                let resumed = matches!(event, Event::Asked { wish: Wish::Go, .. });
                assert!(
                    ended.is_none() || resumed || ended.as_ref() == state.outcome(),
                    "an ending changed"
                );
                if let Some(outcome) = state.outcome().filter(|_| ended.is_none()) {
                    endings[kind(outcome)] += 1;
                    if matches!(outcome, Outcome::Done { .. }) {
                        oracle.judge_done(&state);
                    }
                }
            }
            if number % 25 == 0 {
                stored_and_folded(&journal, &state);
            }
        }
    }
    assert!(
        endings.iter().all(|count| *count > 100),
        "a world that does not get everywhere: {endings:?}"
    );
}

fn kind(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Done { .. } => 0,
        Outcome::Limit { .. } => 1,
        Outcome::Fatal { .. } => 2,
        Outcome::Blocked { .. } => 3,
        Outcome::Waiting { .. } => 4,
        Outcome::Stopped { .. } => 5,
    }
}

/// What is stored and read again is the same, and so is what the journal folds to.
fn stored_and_folded(journal: &Journal, state: &State) {
    assert_eq!(&journal.fold(), state);
    let stored = serde_json::to_string(state).unwrap();
    assert_eq!(&serde_json::from_str::<State>(&stored).unwrap(), state);
    for (_, event) in &journal.lines {
        let line = serde_json::to_string(event).unwrap();
        assert_eq!(
            &serde_json::from_str::<Event>(&line).unwrap(),
            event,
            "{line}"
        );
    }
}

pub(super) fn opened() -> Event {
    Event::Opened {
        pid: 1,
        version: String::new(),
        cost_usd: None,
        tokens: None,
        inside: false,
    }
}
