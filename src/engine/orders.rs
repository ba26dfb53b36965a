//! Derives a loop's orders from its state: what must be running now, and which actions are due.

use super::label::CheckProbe;
use super::long_rest::{LongRest, RestStage};
use super::look::LookVerdict;
use super::outcome::Outcome;
use super::state::{Phase, State};

/// A process that must be running now, or an action that is due.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Take a checkpoint of the working tree, and record
    /// [`Event::Checkpointed`](super::Event::Checkpointed).
    Checkpoint {
        /// The number of the iteration whose work it contains.
        iteration: u32,
    },
    /// Run a check of the plan.
    Check {
        /// The number of the iteration whose work the check is for.
        iteration: u32,
        /// The check's index in the plan.
        check: usize,
    },
    /// Run a check of the plan once more, in a view, before the first iteration.
    Probe {
        /// The check's index in the plan.
        check: usize,
        probe: CheckProbe,
    },
    /// Record [`Event::Labeled`](super::Event::Labeled), which ends preflight.
    Label,
    /// Compare the files with the loop's start, before the second look.
    Survey {
        /// The number of the latest iteration.
        iteration: u32,
    },
    /// Run the plan's setup command in the view.
    SetUp {
        /// The number of the latest iteration.
        iteration: u32,
    },
    /// Run a check of the plan in the view, for the second look.
    Recheck {
        /// The number of the iteration whose work the check is for.
        iteration: u32,
        /// The check's index in the plan.
        check: usize,
    },
    /// Run an SCM task, either one from the plan or the worktree task.
    ScmTask {
        /// The number of the iteration whose work the task is for.
        iteration: u32,
        /// The task's index in the plan.
        task: usize,
    },
    /// Wait for the loop's child loops to end.
    Drain {
        /// The number of the latest iteration.
        iteration: u32,
        /// Whether to stop the child loops.
        stop: bool,
    },
    /// Record [`Event::Notified`](super::Event::Notified), then run the `--notify` command.
    Notify {
        /// Whether the rest begins or ends.
        stage: RestStage,
        rest: LongRest,
    },
    /// Run the agent, starting it if necessary.
    Run {
        /// The number of the agent's iteration.
        iteration: u32,
    },
    /// Kill the agent and all its processes.
    Kill {
        /// The number of the agent's iteration.
        iteration: u32,
        /// Whether to send SIGKILL at once, without SIGTERM first.
        hard: bool,
    },
    /// Send [`Event::Woke`](super::Event::Woke) at this time, in milliseconds on the loop's clock.
    WakeAt(u64),
    /// Send [`Event::Woke`](super::Event::Woke) at this wall-clock time, in milliseconds since
    /// 1970.
    WakeAtWall(i64),
    /// Write the loop's ending to the journal.
    Finish(Outcome),
    /// Exit the runner; there is nothing left to do.
    Leave,
}

impl State {
    /// Returns the processes that must be running now and the actions that are due. The runner
    /// starts what is ordered and not running, and stops what is running and not ordered.
    pub(crate) fn orders(&self) -> Vec<Effect> {
        let iteration = self.iteration;
        match &self.phase {
            Phase::NotStarted => vec![],
            Phase::Checking if self.due_checkpoint().is_some() => {
                self.until_out_of_time(Some(Effect::Checkpoint { iteration }))
            }
            Phase::Checking if self.is_labeling() => {
                let probe = self.next_probe();
                let probe = probe.map(|(check, probe)| Effect::Probe { check, probe });
                self.until_out_of_time(Some(probe.unwrap_or(Effect::Label)))
            }
            Phase::Checking if self.due_seal().is_some() => self.until_out_of_time(self.due_seal()),
            Phase::Checking => {
                let check = self.next_check();
                self.until_out_of_time(check.map(|check| Effect::Check { iteration, check }))
            }
            Phase::Looking => {
                let step = match self.look_verdict() {
                    LookVerdict::Survey => Some(Effect::Survey { iteration }),
                    LookVerdict::SetUp => Some(Effect::SetUp { iteration }),
                    LookVerdict::Recheck(check) => Some(Effect::Recheck { iteration, check }),
                    _ => None,
                };
                self.until_out_of_time(step)
            }
            Phase::Committing => {
                let task = self.next_scm_task();
                self.until_out_of_time(task.map(|task| Effect::ScmTask { iteration, task }))
            }
            Phase::Running { started, .. } => {
                let number = if *started { iteration } else { iteration + 1 };
                let mut orders = Vec::from_iter(self.rest_notification());
                orders.push(Effect::Run { iteration: number });
                orders.extend(self.deadlines().map(|(at, _)| at).min().map(Effect::WakeAt));
                orders
            }
            Phase::Draining { until_ms, stop } => {
                let mut orders = vec![Effect::Drain {
                    iteration,
                    stop: *stop,
                }];
                orders.extend(until_ms.filter(|_| !stop).map(Effect::WakeAt));
                orders
            }
            Phase::Killing { hard, .. } => vec![Effect::Kill {
                iteration,
                hard: *hard,
            }],
            Phase::Resting {
                until_ms,
                wall_ms: Some(wall_ms),
            } => {
                let mut orders = Vec::from_iter(self.rest_notification());
                orders.push(Effect::WakeAtWall(*wall_ms));
                // The loop's clock ends the rest if the wall clock is set back meanwhile.
                let out_of_patience = self.out_of_patience_at().unwrap_or(u64::MAX);
                orders.push(Effect::WakeAt(out_of_patience.min(*until_ms)));
                orders
            }
            Phase::Resting { until_ms, .. } => {
                let out_of_time = self.out_of_time_at().unwrap_or(u64::MAX);
                vec![Effect::WakeAt(out_of_time.min(*until_ms))]
            }
            Phase::Paused => vec![Effect::Leave],
            Phase::Ended(_) if self.finished => vec![Effect::Leave],
            Phase::Ended(outcome) => vec![Effect::Finish(outcome.clone())],
        }
    }

    /// Returns the orders for a check or an SCM task. The alarm comes first, so that nothing starts
    /// after the time limit.
    fn until_out_of_time(&self, job: Option<Effect>) -> Vec<Effect> {
        let alarm = self.job_stops_at().map(Effect::WakeAt);
        alarm.into_iter().chain(job).collect()
    }

    /// Returns when the loop has waited as long as it may, on the loop's clock; `None` if it does
    /// not wait, or may wait for as long as it takes.
    fn out_of_patience_at(&self) -> Option<u64> {
        let max_ms = self.plan.limits.rest_ms.filter(|_| self.is_probing())?;
        let left_ms = max_ms.saturating_sub(self.waited_ms);
        Some(self.clock_ms.saturating_add(left_ms))
    }
}
