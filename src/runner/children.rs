//! Waits for child loops when a loop ends, and stops them if the engine orders it.

use super::clock::millis;
use super::{Runner, RunnerError};
use crate::engine::Event;
use crate::engine::format::duration;
use crate::store::children::loop_names;
use crate::store::{InboxMessage, LoopDir, StateDir, cache, inbox, loop_holder};
use std::time::{Duration, Instant};

/// The child loops that a finished loop waits for. The names in `waited` and `stopped` are recorded
/// in the event.
#[derive(Default)]
pub(super) struct ChildDrain {
    running: Vec<LoopDir>,
    waited: Vec<String>,
    stopped: Vec<String>,
    /// The time at which to stop waiting for child loops that were asked to stop. `None` before
    /// that.
    give_up_at: Option<Instant>,
}

/// The interval between checks of child loops that were asked to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// The interval between checks of child loops whose exit the file watcher may miss.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time that a child loop may take to stop, in addition to its own grace periods.
const STOP_MARGIN: Duration = Duration::from_secs(10);

impl Runner<'_> {
    /// Checks which child loops are still running. Records an event and returns true if none are.
    pub(super) fn drain_children(
        &mut self,
        iteration: u32,
        stop: bool,
    ) -> Result<bool, RunnerError> {
        let mut children = self.children.take().unwrap_or_default();
        children.running.retain(|dir| loop_holder(dir).is_some());
        if children.running.is_empty() {
            self.find_children(&mut children);
        }
        if stop {
            self.stop_children(&mut children);
        }
        let gave_up = children.give_up_at.is_some_and(|at| at <= Instant::now());
        if !children.running.is_empty() && !gave_up {
            if self.reactor.may_miss_changes() {
                self.reactor.look_within(CHECK_INTERVAL);
            }
            self.children = Some(children);
            return Ok(false);
        }
        if gave_up {
            let names = loop_names(&children.running).join(", ");
            self.rec.warn(&format!(
                "these child loops were asked to stop, but are still running: {names}"
            ));
        }
        let ChildDrain {
            mut waited,
            stopped,
            ..
        } = children;
        waited.retain(|name| !stopped.contains(name));
        self.rec.record(Event::Drained {
            iteration,
            waited,
            stopped,
        })?;
        Ok(true)
    }

    fn find_children(&mut self, children: &mut ChildDrain) {
        // A hook must not keep the client's session waiting.
        if self.host.session().is_some() {
            return;
        }
        let header = &self.rec.header;
        children.running =
            StateDir::containing(&self.rec.dir).running_children(&header.name, header.created_ms);
        let names = loop_names(&children.running);
        if names.is_empty() {
            return;
        }
        for dir in &children.running {
            // A child closes its lock file when it exits, which the watcher reports.
            self.reactor.watch(&dir.lock());
        }
        let at_most = self.rec.state.plan.grace.children_ms;
        let at_most = at_most
            .map(|ms| format!(", at most {}", duration(ms)))
            .unwrap_or_default();
        self.rec.warn(&format!(
            "waiting for child loops{at_most}: {}",
            names.join(", ")
        ));
        children.waited.extend(names);
    }

    fn stop_children(&mut self, children: &mut ChildDrain) {
        for dir in &children.running {
            if children.stopped.iter().any(|name| name == dir.name()) {
                continue;
            }
            // Ignore errors: the child may have been removed in the meantime.
            let _ = inbox::append(dir, &InboxMessage::ParentEnded);
            children.stopped.push(dir.name().to_owned());
            let grace_ms = cache::read(dir).map_or(0, |view| {
                let grace = view.state.plan.grace;
                grace.term_ms.saturating_add(grace.survivor_ms)
            });
            let give_up_at = Instant::now() + millis(grace_ms) + STOP_MARGIN;
            children.give_up_at = children.give_up_at.max(Some(give_up_at));
        }
        if !children.running.is_empty() {
            self.alarms.tick_at = Some(Instant::now() + STOP_INTERVAL);
        }
    }
}
