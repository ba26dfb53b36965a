//! Compares what is running with the engine's orders: stops what is not ordered, and starts what
//! is.
//!
//! Reconciling never receives input. A step that takes time returns [`Flow::Poll`]. The runner then
//! records input before the next step, which may find different orders.

use super::input::JobKey;
use super::{Runner, RunnerError};
use crate::engine::Effect;

/// The runner's next action.
pub(super) enum Flow {
    /// Wait for input.
    Wait,
    /// Record available input without waiting for more.
    Poll,
    /// Reconcile again, because an event was recorded.
    Again,
    /// Exit.
    Leave,
}

impl Runner<'_> {
    pub(super) fn reconcile(&mut self) -> Result<Flow, RunnerError> {
        let orders = self.rec.state.orders();
        self.alarms.clear_orders();
        if let Some(key) = self.reactor.running()
            && !may_continue(key, &orders)
        {
            let is_hard = |order: &Effect| matches!(order, Effect::Kill { hard: true, .. });
            self.reactor.stop(orders.iter().any(is_hard));
            return Ok(Flow::Wait);
        }
        for order in orders {
            if self.reactor.running().is_none() && is_step(&order) {
                self.rec.check_files()?;
            }
            match order {
                _ if job_of(&order).is_some() && self.reactor.running().is_some() => {}
                Effect::Notify { stage, rest } => {
                    if let Some(payload) = self.rest_payload
                        && self.reactor.running().is_none()
                    {
                        return self.notify_rest(payload, stage, rest);
                    }
                }
                Effect::Run { .. }
                    if self.host.session().is_some() && self.rec.state.awaiting_turn() =>
                {
                    self.rec.sync()?;
                    return Ok(Flow::Leave);
                }
                // The time limit has been reached: record that before anything starts.
                Effect::Checkpoint { iteration: 0 }
                | Effect::Check { .. }
                | Effect::Probe { .. }
                | Effect::Survey { .. }
                | Effect::SetUp { .. }
                | Effect::Recheck { .. }
                | Effect::ScmTask { .. }
                    if self.alarms.is_due() =>
                {
                    return Ok(Flow::Poll);
                }
                Effect::Run { iteration } => return self.run_iteration(iteration),
                Effect::Checkpoint { iteration } => return self.take_checkpoint(iteration),
                Effect::Check { iteration, check } => return self.start_check(iteration, check),
                Effect::Probe { check, probe } => return self.start_probe(check, probe),
                Effect::Label => return self.record_labels(),
                Effect::Survey { iteration } => return self.survey(iteration),
                Effect::SetUp { iteration } => return self.start_setup(iteration),
                Effect::Recheck { iteration, check } => {
                    return self.start_recheck(iteration, check);
                }
                Effect::ScmTask { iteration, task } => return self.start_scm_task(iteration, task),
                Effect::Drain { iteration, stop } => {
                    if self.drain_children(iteration, stop)? {
                        return Ok(Flow::Again);
                    }
                }
                Effect::Kill { iteration, .. } if self.host.session().is_some() => {
                    return self.end_turn(iteration);
                }
                Effect::Kill { .. } => {}
                Effect::WakeAt(clock_ms) => {
                    if self.reactor.running().is_none() {
                        // Nothing else makes the journal durable during a rest, which can be long.
                        self.rec.sync()?;
                    }
                    self.alarms.wake_at = Some(self.rec.clock.instant_at(clock_ms));
                }
                Effect::WakeAtWall(wall_ms) => {
                    self.rec.sync()?;
                    self.alarms.wake_at_wall_ms = Some(wall_ms);
                }
                Effect::Finish(outcome) => {
                    self.finish(&outcome)?;
                    return Ok(Flow::Again);
                }
                Effect::Leave => {
                    if self.rec.state.outcome().is_none() {
                        self.bus.publish_exit(&mut self.rec);
                    }
                    self.rec.sync()?;
                    return Ok(Flow::Leave);
                }
            }
        }
        Ok(Flow::Wait)
    }
}

/// Returns whether the running job is ordered. The notify command is ordered only to start. It
/// continues, and the next job waits for it, unless the runner is about to exit.
fn may_continue(job: JobKey, orders: &[Effect]) -> bool {
    match job {
        JobKey::Notify => !orders
            .iter()
            .any(|order| matches!(order, Effect::Finish(_) | Effect::Leave)),
        JobKey::Version => orders
            .iter()
            .any(|order| matches!(order, Effect::Run { .. })),
        _ => orders.iter().any(|order| job_of(order) == Some(job)),
    }
}

/// Returns whether an order starts something or ends the loop. Before that, the loop's files must
/// be as this runner left them.
fn is_step(order: &Effect) -> bool {
    job_of(order).is_some()
        || matches!(
            order,
            Effect::Checkpoint { .. } | Effect::Survey { .. } | Effect::Finish(_)
        )
}

/// Returns the key of the job that carries out an order, or `None` if the order needs no job.
fn job_of(order: &Effect) -> Option<JobKey> {
    match order {
        Effect::Run { iteration } => Some(JobKey::Agent(*iteration)),
        Effect::Check { iteration, check } => Some(JobKey::Check(*iteration, *check)),
        Effect::SetUp { iteration } => Some(JobKey::SetUp(*iteration)),
        Effect::Recheck { iteration, check } => Some(JobKey::Recheck(*iteration, *check)),
        Effect::Probe { check, probe } => Some(JobKey::Probe(*check, *probe)),
        Effect::ScmTask { iteration, task } => Some(JobKey::ScmTask(*iteration, *task)),
        _ => None,
    }
}
