//! What is told on the buses of a loop and of its project: the agent's messages, and how the loop leaves.

use super::reactor::Key;
use super::{Error, Runner};
use crate::agent::outbox;
use crate::agent::outbox::Letter;
use crate::engine::event::{Fault, Notice};
use crate::engine::outcome::iterations;
use crate::engine::{Event, Marker};
use crate::store::bus;
use crate::store::bus::Post;
use std::time::Duration;

/// How long others are waited for who write on the same bus. A message that has to wait longer is tried again.
const PATIENCE: Duration = Duration::from_secs(2);
/// What could not be posted is tried again after so long.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The type of a message that has none.
const NOTE: &str = "note";
/// The type by which an agent asks not to be started again.
const WAIT: &str = "wait_without_restart";

impl Runner<'_> {
    /// Passes on what the agent has left for the bus. A message may be a claim as well: that is written down, and
    /// durable, before the message is taken away.
    pub(super) fn relay(&mut self) -> Result<(), Error> {
        let place = outbox::place(self.task.path());
        // One that comes later is noticed in the task directory.
        if place.is_dir() {
            self.world.watch(&place);
        }
        let agent_lives = matches!(self.world.under_way(), Some(Key::Agent(_)));
        let Some(letters) = outbox::read(self.task.path(), agent_lives) else {
            return Ok(());
        };
        if letters.all.iter().any(|letter| kind(letter) == WAIT)
            && !self.state.claims.markers.contains(&Marker::Bus)
        {
            let (iteration, notice) = (self.state.iteration, Notice::Marker(Marker::Bus));
            self.tell(Event::Noticed {
                iteration,
                notice,
                words: None,
            })?;
            self.journal.sync()?;
        }
        let posts: Vec<Post> = letters
            .all
            .iter()
            .filter(|letter| !letter.text.is_empty())
            .map(|letter| self.post_of(letter))
            .collect();
        if !self.publish(&posts) {
            self.world.look_within(TRY_AGAIN);
            return Ok(());
        }
        if let Some(again) = letters.again {
            self.world.look_within(again);
        }
        for letter in &letters.all {
            if let Err(detail) = letters.take_away(letter) {
                return self.tell(Event::Faulted {
                    class: Fault::Marker,
                    detail,
                });
            }
        }
        Ok(())
    }

    fn post_of(&self, letter: &Letter) -> Post {
        let (name, iteration) = (&self.header.name, self.state.iteration);
        // The same letter has the same id, however often a crash makes it be passed on.
        let id = bus::digest(&format!("{}/{iteration}/{}", self.header.id, letter.stamp));
        let text = self.world.mask().cover_text(&letter.text);
        Post::new(id, &kind(letter), Some((name, iteration)), &text)
    }

    /// Says on both buses that this runner leaves, and why.
    pub(super) fn publish_leaving(&mut self) {
        let (state, header) = (&self.state, &self.header);
        let after = format!("after {}", iterations(state.iteration));
        let text = match state.verdict() {
            Some(verdict) => format!("{} {after}: {}", state.status(false).word(), verdict.detail),
            None => format!("paused {after}"),
        };
        // Its active time stands still until the loop goes on: what a crash makes be said again has the same id.
        let id = bus::digest(&format!("{}/left/{}/{text}", header.id, state.active_ms));
        let post = Post::new(
            id,
            state.status(false).word(),
            Some((&header.name, state.iteration)),
            &text,
        );
        self.publish(&[post]);
    }

    /// Posts to both buses. What cannot be posted is no reason to end a loop, and is complained of once.
    fn publish(&mut self, posts: &[Post]) -> bool {
        if posts.is_empty() {
            return true;
        }
        let posted = self
            .buses
            .iter()
            .try_for_each(|bus| bus.post(posts, PATIENCE));
        if let Err(error) = &posted
            && !std::mem::replace(&mut self.bus_complained, true)
        {
            self.watch.warn(&format!("the bus is silent: {error}"));
        }
        posted.is_ok()
    }
}

fn kind(letter: &Letter) -> String {
    let kind = bus::kind(&letter.kind).filter(|kind| !bus::LEAVING.contains(&kind.as_str()));
    kind.unwrap_or_else(|| NOTE.to_owned())
}
