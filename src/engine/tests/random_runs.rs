//! Random runs with arbitrary events: whatever happens, the engine keeps its invariants.

use super::random_events::{EventLog, SEEDS, any_event, any_plan, opened};
use crate::engine::event::{Event, Now, Request};
use crate::engine::fallback::NextAgent;
use crate::engine::iteration::RECENT_MAX;
use crate::engine::plan::FIRST_RULES;
use crate::engine::scm::SkipReason;
use crate::engine::{Effect, Outcome, State};
use fastrand::Rng;

/// Loops per seed, and events per loop: two million events in total.
const LOOPS: usize = 2500;
const EVENTS: usize = 200;

/// Derives the expected state independently, from events and orders alone.
#[derive(Default)]
struct Oracle {
    /// The running iteration's number, and whether its process exists; `None` if no iteration is
    /// running.
    alive: Option<(u32, bool)>,
    started: u32,
    /// Number of refunded iterations.
    refunds: u32,
    newest_end: u32,
    highest: u32,
    spent: f64,
    /// The last result of each ordered check, with its iteration.
    reports: Vec<Option<(u32, bool)>>,
    /// The last SCM task: its iteration, its index, and whether it succeeded; `None` before the
    /// first task.
    task: Option<(u32, usize, bool)>,
    /// The index of the worktree task.
    worktree_task: usize,
    /// The last iteration whose worktree was committed.
    committed: u32,
}

impl Oracle {
    /// Applies an event, as seen by a runner that carried out `orders`.
    fn observe(&mut self, orders: &[Effect], event: &Event) {
        match event {
            Event::Started {
                iteration,
                agent: None,
                ..
            } if self.alive.is_none()
                && orders.contains(&Effect::Run {
                    iteration: *iteration,
                }) =>
            {
                assert!(*iteration > self.highest, "an iteration number is repeated");
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
                ..
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
            } if orders.contains(&Effect::ScmTask {
                iteration: *iteration,
                task: *task,
            }) =>
            {
                if *task == self.worktree_task {
                    self.committed = if report.is_success() {
                        *iteration
                    } else {
                        self.committed
                    };
                    return;
                }
                let last = report.skipped == Some(SkipReason::Unchanged);
                self.task = Some((
                    *iteration,
                    if last { usize::MAX } else { *task },
                    report.is_success(),
                ));
            }
            // After child loops have worked, the worktree is committed again.
            Event::Drained { .. } | Event::Opened { .. }
                if orders
                    .iter()
                    .any(|order| matches!(order, Effect::Drain { .. })) =>
            {
                self.committed = 0;
            }
            _ => {}
        }
    }

    fn judge(&mut self, state: &State, orders: &[Effect]) {
        assert!(state.recent.len() <= RECENT_MAX);
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
                        .is_some_and(|reason| reason.kind.is_agent_specific())
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
                assert_eq!(*iteration, number, "two agents are running");
            }
            (Some((number, _)), [Effect::Kill { iteration, .. }]) => assert_eq!(*iteration, number),
            (Some(_), _) => panic!("a running agent is not ordered: {orders:?}"),
            (None, [Effect::Run { iteration }]) => {
                assert_eq!(*iteration, self.highest + 1);
                self.assert_run_is_allowed(state);
            }
            (
                None,
                [Effect::Check { iteration, .. } | Effect::Checkpoint { iteration }]
                | [
                    Effect::WakeAt(_),
                    Effect::Check { iteration, .. } | Effect::Checkpoint { iteration },
                ],
            ) => assert_eq!(*iteration, self.highest),
            (
                None,
                [Effect::Survey { iteration } | Effect::Recheck { iteration, .. }]
                | [
                    Effect::WakeAt(_),
                    Effect::Survey { iteration } | Effect::Recheck { iteration, .. },
                ],
            ) => {
                assert_eq!(*iteration, self.highest);
                assert!(state.all_green() && *iteration > 0 && !state.checks.is_empty());
            }
            (None, [Effect::ScmTask { iteration, task }]) if *task == self.worktree_task => {
                assert!(state.plan.worktree.is_some() && state.fault.is_none());
                assert!(
                    *iteration == self.highest && *iteration > self.committed,
                    "committed only once"
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
            (
                None,
                [Effect::ScmTask { iteration, task }]
                | [Effect::WakeAt(_), Effect::ScmTask { iteration, task }],
            ) => {
                assert!(
                    *iteration == self.highest
                        && *iteration > 0
                        && *task < state.plan.scm.tasks.len()
                );
                assert_eq!((state.request.is_immediate(), &state.fault), (false, &None));
                self.assert_all_checks_green(state);
            }
            (None, [Effect::WakeAtWall(wall_ms), Effect::WakeAt(_)]) => {
                assert!(*wall_ms > state.wall_ms, "a rest ends in the future");
            }
            (None, [] | [Effect::WakeAt(_) | Effect::Finish(_) | Effect::Leave]) => {}
            (None, _) => panic!("{orders:?}"),
        }
    }

    fn assert_run_is_allowed(&self, state: &State) {
        let limits = &state.plan.limits;
        assert!(
            limits
                .iterations
                .is_none_or(|max| self.started - self.refunds < max)
        );
        assert!(limits.cost_usd.is_none_or(|max| self.spent < max));
        assert!(limits.time_ms.is_none_or(|max| state.active_ms < max));
        let failures = state.consecutive_failures.max(state.scm.failures);
        assert!(limits.failures.is_none_or(|max| failures < max));
        assert_eq!((state.request, &state.fault), (Request::Go, &None));
        assert_eq!(state.next_agent(), NextAgent::Use(state.agent_index));
        assert!(state.rest_until_ms <= state.clock_ms);
    }

    fn assert_all_checks_green(&self, state: &State) {
        for index in 0..state.plan.proof.checks.len() {
            assert_eq!(
                self.reports[index],
                Some((self.highest, true)),
                "check {index}"
            );
        }
    }

    /// Asserts that the loop meets the conditions for done: all checks are green, and the work is
    /// claimed or proven.
    fn judge_done(&self, state: &State) {
        let (proof, tasks) = (&state.plan.proof, state.plan.scm.tasks.len());
        self.assert_all_checks_green(state);
        if tasks > 0 && self.highest > 0 && !proof.checks.is_empty() {
            let (iteration, task, succeeded) = self.task.expect("a task has ended");
            assert!(
                iteration == self.highest && task.saturating_add(1) >= tasks && succeeded,
                "{:?}",
                self.task
            );
        }
        let proven = !proof.checks.is_empty() && (proof.until_green || proof.signals.is_empty());
        let content = &state.content;
        let changed = content.start.is_none() || content.now != content.start;
        let rules = if state.plan.rules == FIRST_RULES {
            state.red_at_start.unwrap_or(proof.fallback.is_empty())
        } else if proof.until_green {
            changed || self.highest == 0
        } else {
            changed && content.now == content.before && state.began_green
        };
        assert!(state.is_claimed() || (proven && rules));
    }
}

#[test]
fn the_invariants_hold_for_any_events() {
    let mut endings = [0_usize; 8];
    for seed in SEEDS {
        let mut random = Rng::with_seed(seed);
        for number in 0..LOOPS {
            let plan = any_plan(&mut random);
            let mut log = EventLog::new(seed, &plan);
            let mut oracle = Oracle {
                worktree_task: plan.scm.tasks.len(),
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
                log.lines.push((now, event.clone()));
                let ended = state.outcome().cloned();
                oracle.observe(&orders, &event);
                state.step(now, &event);
                orders = state.orders();
                oracle.judge(&state, &orders);
                let resumed = matches!(
                    event,
                    Event::Asked {
                        request: Request::Go,
                        ..
                    }
                );
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
                assert_round_trips(&log, &state);
            }
        }
    }
    assert!(
        endings.iter().all(|count| *count > 20),
        "the random events do not reach every ending: {endings:?}"
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
        Outcome::Stalled => 6,
        Outcome::Disputed { .. } => 7,
    }
}

/// Asserts that folding the logged events produces `state`, and that both survive serialization.
fn assert_round_trips(log: &EventLog, state: &State) {
    assert_eq!(&log.fold(), state);
    let stored = serde_json::to_string(state).unwrap();
    assert_eq!(&serde_json::from_str::<State>(&stored).unwrap(), state);
    for (_, event) in &log.lines {
        let line = serde_json::to_string(event).unwrap();
        assert_eq!(
            &serde_json::from_str::<Event>(&line).unwrap(),
            event,
            "{line}"
        );
    }
}
