//! How child loops come to their end: waited for, and stopped when that is ordered.

use super::{Error, Flow, Runner, millis};
use crate::engine::Event;
use crate::engine::event::Wish;
use crate::engine::format::duration;
use crate::store::children::names;
use crate::store::{Home, LoopDir, Message, cache, holder, inbox};
use std::time::{Duration, Instant};

/// The child loops of a loop that has nothing left to do itself.
#[derive(Default)]
pub(super) struct Children {
    living: Vec<LoopDir>,
    waited: Vec<String>,
    stopped: Vec<String>,
    /// When a child loop that was told to stop is waited for no longer.
    give_up_at: Option<Instant>,
}

/// How often child loops are looked at that were told to stop.
const PACE: Duration = Duration::from_millis(50);
/// And how often those that end without a sound.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A little more than a loop needs to stop, and something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);

impl Runner<'_> {
    /// Looks who is left; none means that somebody is.
    pub(super) fn drain(&mut self, iteration: u32, stop: bool) -> Result<Option<Flow>, Error> {
        let mut children = self.children.take().unwrap_or_default();
        children.living.retain(|dir| holder(&dir.lock()).is_some());
        if children.living.is_empty() {
            self.find_children(&mut children);
        }
        if stop {
            self.stop_children(&mut children);
        }
        let given_up = children.give_up_at.is_some_and(|at| at <= Instant::now());
        if !children.living.is_empty() && !given_up {
            if self.world.is_deaf() {
                self.world.look_within(LOOK_AGAIN);
            }
            self.children = Some(children);
            return Ok(None);
        }
        if given_up {
            let left = names(&children.living).join(", ");
            self.watch
                .warn(&format!("these child loops do not stop: {left}"));
        }
        let Children {
            mut waited,
            stopped,
            ..
        } = children;
        waited.retain(|name| !stopped.contains(name));
        self.tell(Event::Drained {
            iteration,
            waited,
            stopped,
        })?;
        Ok(Some(Flow::Again))
    }

    fn find_children(&mut self, children: &mut Children) {
        children.living =
            Home::of(&self.dir).living_children(&self.header.name, self.header.created_ms);
        let found = names(&children.living);
        if found.is_empty() {
            return;
        }
        for dir in &children.living {
            // Whoever lets go of it closes it.
            self.world.watch(&dir.lock());
        }
        let at_most = self.state.plan.grace.children_ms;
        let at_most = at_most
            .map(|ms| format!(", at most {}", duration(ms)))
            .unwrap_or_default();
        self.watch.warn(&format!(
            "waiting for child loops{at_most}: {}",
            found.join(", ")
        ));
        children.waited.extend(found);
    }

    fn stop_children(&mut self, children: &mut Children) {
        for dir in &children.living {
            if children.stopped.iter().any(|name| name == dir.name()) {
                continue;
            }
            // One that is just taken away needs no telling.
            let _ = inbox::append(
                dir,
                &Message::Asked {
                    wish: Wish::StopNow,
                },
            );
            children.stopped.push(dir.name().to_owned());
            let grace = cache::read(dir).map_or(0, |view| {
                let grace = view.state.plan.grace;
                grace.term_ms.saturating_add(grace.survivor_ms)
            });
            let give_up_at = Instant::now() + millis(grace) + PATIENCE;
            children.give_up_at = children.give_up_at.max(Some(give_up_at));
        }
        if !children.living.is_empty() {
            self.tick_at = Some(Instant::now() + PACE);
        }
    }
}
