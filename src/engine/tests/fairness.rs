//! A fair world: it obeys every order, things go wrong for a while, and every loop comes to its end.

use super::kit::{green, kept, red};
use super::random_runs::{
    Journal, SEEDS, any_drained, any_plan, any_report, any_task_report, finished, opened,
};
use crate::engine::event::{Door, Event, Exit, Fault, Marker, Notice, Now, Report, Said, Wish};
use crate::engine::{Effect, Limit, Outcome, Phase, State};
use fastrand::Rng;

/// Loops per seed.
const LOOPS: usize = 500;

/// Obeys every order; things go wrong until it is healed, and then the work gets done.
struct Fair {
    journal: Journal,
    state: State,
    random: Rng,
    /// After so many events nothing goes wrong any more.
    healed_after: usize,
}

impl Fair {
    fn feed(&mut self, delta_ms: u64, event: Event) {
        let now = Now {
            wall_ms: self.state.wall_ms + delta_ms as i64,
            delta_ms,
        };
        self.state.step(now, &event);
        self.journal.lines.push((now, event));
    }

    fn ask(&mut self, wish: Wish) {
        self.feed(
            1,
            Event::Asked {
                wish,
                by: Door::Inbox,
                inbox: None,
            },
        );
    }

    fn is_healed(&self) -> bool {
        self.journal.lines.len() > self.healed_after
    }

    /// Obeys the orders once; false when there is nothing more to obey.
    fn turn(&mut self) -> bool {
        let orders = self.state.orders();
        let trouble = if self.is_healed() {
            u8::MAX
        } else {
            self.random.u8(..24)
        };
        let iteration = self.state.iteration;
        match (&orders[..], trouble) {
            (_, 0) | ([], _) => self.feed(0, opened()),
            (_, 1) => self.ask(Wish::Pause),
            (_, 2) => self.ask(Wish::StopNow),
            (_, 3) => self.feed(
                1,
                Event::Faulted {
                    class: Fault::Disk,
                    detail: "full".into(),
                },
            ),
            ([Effect::Check { iteration, check }], trouble) => {
                let report = if trouble == u8::MAX || self.random.bool() {
                    green()
                } else {
                    red()
                };
                self.feed(
                    100,
                    Event::Checked {
                        iteration: *iteration,
                        check: *check,
                        report,
                    },
                );
            }
            ([Effect::Commit { iteration, task }], trouble) => {
                let report = if trouble == u8::MAX {
                    kept()
                } else {
                    any_task_report(&mut self.random)
                };
                self.feed(
                    100,
                    Event::Committed {
                        iteration: *iteration,
                        task: *task,
                        report,
                    },
                );
            }
            ([Effect::Drain { stop: false, .. }, Effect::WakeAt(at)], 4..8) => {
                self.feed(at.saturating_sub(self.state.clock_ms), Event::Woke);
            }
            ([Effect::Drain { iteration, .. }, ..], _) => {
                let drained = any_drained(&mut self.random, *iteration);
                self.feed(100, drained);
            }
            ([Effect::Run { iteration: next }, ..], _) if *next > iteration => {
                self.feed(
                    1,
                    Event::Started {
                        iteration: *next,
                        agent: None,
                    },
                );
                self.feed(
                    1,
                    Event::Spawned {
                        iteration: *next,
                        pid: *next,
                        start_time: 1,
                    },
                );
            }
            ([Effect::Run { .. }, Effect::WakeAt(at)], 4..8) => {
                self.feed(at.saturating_sub(self.state.clock_ms), Event::Woke);
            }
            ([Effect::Run { .. }, ..], 8) => {
                self.feed(
                    50,
                    Event::Noticed {
                        iteration,
                        notice: Notice::Silence,
                        words: None,
                    },
                );
            }
            ([Effect::Run { .. } | Effect::Kill { .. }, ..], trouble) => {
                self.end(iteration, trouble)
            }
            ([Effect::WakeAt(at)], _) => {
                self.feed(at.saturating_sub(self.state.clock_ms), Event::Woke)
            }
            ([Effect::WakeAtWall(at)], _) => {
                self.feed(
                    at.saturating_sub(self.state.wall_ms).max(0) as u64,
                    Event::Woke,
                );
            }
            ([Effect::Finish(_)], _) => self.feed(1, finished()),
            ([Effect::Leave], _) => {
                let forgiven = self.state.outcome().is_none_or(|outcome| match outcome {
                    Outcome::Done { .. } => false,
                    Outcome::Limit { limit, .. } => *limit == Limit::Failures,
                    _ => true,
                });
                self.feed(0, opened());
                self.ask(Wish::Go);
                if let ([Effect::Drain { iteration, .. }, ..], false) =
                    (&self.state.orders()[..], forgiven)
                {
                    let (iteration, waited, stopped) = (*iteration, vec![], vec![]);
                    self.feed(
                        1,
                        Event::Drained {
                            iteration,
                            waited,
                            stopped,
                        },
                    );
                }
                return forgiven;
            }
            _ => panic!("{orders:?}"),
        }
        true
    }

    fn end(&mut self, iteration: u32, trouble: u8) {
        let proof = &self.state.plan.proof;
        let report = match trouble {
            u8::MAX => Report {
                exit: Exit::code(0),
                said: Said {
                    promised: !self.state.promises().is_empty(),
                    ..Said::default()
                },
                markers: proof.file.iter().map(|_| Marker::File).collect(),
                ..Report::default()
            },
            9..12 => any_report(&mut self.random),
            _ => Report {
                exit: Exit::code(i32::from(trouble % 2)),
                ..Report::default()
            },
        };
        if trouble == u8::MAX
            && proof.pattern.is_some()
            && matches!(self.state.phase, Phase::Running { .. })
        {
            self.feed(
                10,
                Event::Noticed {
                    iteration,
                    notice: Notice::Pattern,
                    words: None,
                },
            );
        }
        self.feed(100, Event::Ended { iteration, report });
    }
}

#[test]
fn a_fair_world_reaches_an_ending_and_a_healed_one_gets_done() {
    let (mut done, mut at_limit) = (0, 0);
    for seed in SEEDS {
        let mut random = Rng::with_seed(seed);
        for _ in 0..LOOPS {
            let mut plan = any_plan(&mut random);
            let iterations = random.u32(30..60);
            (
                plan.limits.iterations,
                plan.limits.cost_usd,
                plan.limits.time_ms,
            ) = (Some(iterations), None, None);
            let state = State::new(plan.clone());
            let healed_after = random.usize(..100);
            let journal = Journal::new(seed, &plan);
            let mut world = Fair {
                journal,
                state,
                random: random.fork(),
                healed_after,
            };
            while world.turn() {
                assert!(
                    world.journal.lines.len() < 200 + 12 * iterations as usize,
                    "it never ends"
                );
            }
            match world.state.outcome() {
                Some(Outcome::Done { .. }) => done += 1,
                Some(Outcome::Limit {
                    limit: Limit::Iterations,
                    success: true,
                }) => {
                    assert!(world.state.is_plain());
                    at_limit += 1;
                }
                other => panic!("{other:?} with {}", world.is_healed()),
            }
            assert_eq!(world.journal.fold(), world.state);
        }
    }
    assert!(done > 500 && at_limit > 100, "{done} {at_limit}");
}
