//! How a running loop is stopped or paused by another thread of its host.

use crate::agent::function::Bell;
use crate::engine::event::Wish;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Stops or pauses a loop from another thread. Every copy speaks to the same loop; before that runs, its words are
/// kept, and once it has ended they mean nothing.
#[derive(Clone, Default)]
pub struct Stopper {
    wishes: Arc<Mutex<Vec<Wish>>>,
    bell: Arc<OnceLock<Arc<Bell>>>,
}

impl Stopper {
    /// Lets the iteration finish, and then ends the loop.
    pub fn stop(&self) {
        self.wish(Wish::Stop);
    }

    /// Ends the agent and then the loop, at once. Said again: without grace.
    pub fn stop_now(&self) {
        self.wish(Wish::StopNow);
    }

    /// Lets the iteration finish, and then leaves the loop as paused. One whose agent is a command goes on with
    /// `ralph resume NAME`; one whose agent is a function does not.
    pub fn pause(&self) {
        self.wish(Wish::Pause);
    }

    fn wish(&self, wish: Wish) {
        self.wishes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wish);
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }

    /// Lets the loop that begins hear this.
    pub(super) fn connect(&self, bell: &Arc<Bell>) -> Arc<Mutex<Vec<Wish>>> {
        let _ = self.bell.set(bell.clone());
        // What was wished before there was a bell is heard at once.
        bell.ring();
        self.wishes.clone()
    }
}
