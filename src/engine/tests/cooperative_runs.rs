//! Random runs with a cooperative runner, which carries out every order: errors stop after a while,
//! and every loop ends.

use super::kit::{committed, green, red};
use super::random_events::{
    EventLog, SEEDS, any_checkpoint, any_drained, any_plan, any_report, any_survey,
    any_task_report, finished, opened,
};
use crate::engine::event::{
    AgentReport, Event, Fault, Marker, Notice, Now, ProcessExit, Request, RequestSource,
    TextSignals,
};
use crate::engine::{Effect, Limit, Outcome, Phase, State};
use fastrand::Rng;

/// Number of loops that each seed runs.
const LOOPS: usize = 500;

/// Carries out every order. Errors occur for a while; after that, the work succeeds.
struct CooperativeRunner {
    log: EventLog,
    state: State,
    random: Rng,
    /// Number of events after which no more errors occur.
    errors_end_after: usize,
}

impl CooperativeRunner {
    fn feed(&mut self, delta_ms: u64, event: Event) {
        let now = Now {
            wall_ms: self.state.wall_ms + delta_ms as i64,
            delta_ms,
        };
        self.state.step(now, &event);
        self.log.lines.push((now, event));
    }

    fn ask(&mut self, request: Request) {
        self.feed(
            1,
            Event::Asked {
                request,
                by: RequestSource::Inbox,
                inbox: None,
            },
        );
    }

    fn take_checkpoint(&mut self, iteration: u32) {
        let checkpoint = any_checkpoint(&mut self.random, iteration);
        self.feed(10, checkpoint);
    }

    fn errors_ended(&self) -> bool {
        self.log.lines.len() > self.errors_end_after
    }

    /// Carries out the orders once. Returns false if the loop has ended and cannot be resumed.
    #[expect(clippy::too_many_lines, reason = "a table of orders")]
    fn carry_out(&mut self) -> bool {
        let orders = self.state.orders();
        let error = if self.errors_ended() {
            u8::MAX
        } else {
            self.random.u8(..24)
        };
        let iteration = self.state.iteration;
        match (&orders[..], error) {
            (_, 0) | ([], _) => self.feed(0, opened()),
            (_, 1) => self.ask(Request::Pause),
            (_, 2) => self.ask(Request::StopNow),
            (_, 3) => self.feed(1, disk_full()),
            ([Effect::Check { iteration, check }], error) => {
                let report = if error == u8::MAX || self.random.bool() {
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
                        tree: None,
                        written: vec![],
                    },
                );
            }
            ([Effect::Checkpoint { iteration }], _) => self.take_checkpoint(*iteration),
            ([Effect::Survey { iteration }], _) => {
                let survey = any_survey(&mut self.random, *iteration);
                self.feed(10, survey);
            }
            ([Effect::Recheck { iteration, check }], error) => {
                let report = if error == u8::MAX || self.random.bool() {
                    green()
                } else {
                    red()
                };
                self.feed(
                    100,
                    Event::Rechecked {
                        iteration: *iteration,
                        check: *check,
                        report,
                    },
                );
            }
            ([Effect::ScmTask { iteration, task }], error) => {
                let report = if error == u8::MAX {
                    committed()
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
            (
                [
                    Effect::Drain { stop: false, .. } | Effect::Run { .. },
                    Effect::WakeAt(at),
                ],
                4..8,
            )
            | ([Effect::WakeAt(at)], _) => {
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
                        tree: None,
                        baseline: None,
                        version: None,
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
            ([Effect::Run { .. }, ..], 8) => {
                self.feed(
                    50,
                    Event::Noticed {
                        iteration,
                        notice: Notice::Silence,
                        text: None,
                    },
                );
            }
            ([Effect::Run { .. } | Effect::Kill { .. }, ..], error) => self.end(iteration, error),
            ([Effect::WakeAtWall(at), ..], _) => {
                let left_ms = at.saturating_sub(self.state.wall_ms).max(0) as u64;
                self.feed(left_ms, Event::Woke);
            }
            ([Effect::Finish(_)], _) => self.feed(1, finished()),
            ([Effect::Leave], _) => return self.resume(),
            _ => panic!("{orders:?}"),
        }
        true
    }

    /// Resumes a loop that has paused or ended. Returns false if it ends again and cannot be
    /// resumed.
    fn resume(&mut self) -> bool {
        let can_resume = self.state.outcome().is_none_or(|outcome| match outcome {
            Outcome::Done { .. } => false,
            Outcome::Limit { limit, .. } => *limit == Limit::Failures,
            _ => true,
        });
        self.feed(0, opened());
        self.ask(Request::Go);
        if let ([Effect::Drain { iteration, .. }, ..], false) =
            (&self.state.orders()[..], can_resume)
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
        can_resume
    }

    fn end(&mut self, iteration: u32, error: u8) {
        let proof = &self.state.plan.proof;
        let report = match error {
            u8::MAX => AgentReport {
                exit: ProcessExit::from_code(0),
                signals: TextSignals {
                    promised: !self.state.promises().is_empty(),
                    ..TextSignals::default()
                },
                markers: proof.file().iter().map(|_| Marker::File).collect(),
                ..AgentReport::default()
            },
            9..12 => any_report(&mut self.random),
            _ => AgentReport {
                exit: ProcessExit::from_code(i32::from(error % 2)),
                ..AgentReport::default()
            },
        };
        if error == u8::MAX
            && proof.pattern().is_some()
            && matches!(self.state.phase, Phase::Running { .. })
        {
            self.feed(
                10,
                Event::Noticed {
                    iteration,
                    notice: Notice::Pattern,
                    text: None,
                },
            );
        }
        self.feed(100, Event::Ended { iteration, report });
    }
}

fn disk_full() -> Event {
    Event::Faulted {
        class: Fault::Disk,
        detail: "full".into(),
    }
}

#[test]
fn every_loop_ends_and_succeeds_once_errors_stop() {
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
                plan.limits.stalls,
            ) = (Some(iterations), None, None, None);
            let state = State::new(plan.clone());
            let errors_end_after = random.usize(..100);
            let log = EventLog::new(seed, &plan);
            let mut runner = CooperativeRunner {
                log,
                state,
                random: random.fork(),
                errors_end_after,
            };
            while runner.carry_out() {
                assert!(
                    runner.log.lines.len() < 200 + 12 * iterations as usize,
                    "the loop does not end"
                );
            }
            match runner.state.outcome() {
                Some(Outcome::Done { .. }) => done += 1,
                Some(Outcome::Limit {
                    limit: Limit::Iterations,
                    success: true,
                }) => {
                    assert!(runner.state.is_plain());
                    at_limit += 1;
                }
                other => panic!("{other:?} with {}", runner.errors_ended()),
            }
            assert_eq!(runner.log.fold(), runner.state);
        }
    }
    assert!(done > 500 && at_limit > 100, "{done} {at_limit}");
}
