//! Stops or pauses a running loop from another thread of the host.

use crate::agent::function::Waker;
use crate::engine::event::Request;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Stops or pauses a loop from another thread. All clones control the same loop. Requests made
/// before the loop runs are kept; requests made after it ends are ignored.
#[derive(Clone, Default)]
pub struct Stopper {
    requests: Arc<Mutex<Vec<Request>>>,
    waker: Arc<OnceLock<Arc<Waker>>>,
}

impl Stopper {
    /// Stops the loop after the current iteration.
    pub fn stop(&self) {
        self.request(Request::Stop);
    }

    /// Stops the agent now, then the loop. A second call kills the agent without a grace period.
    pub fn stop_now(&self) {
        self.request(Request::StopNow);
    }

    /// Pauses the loop after the current iteration. If its agent is a command, `ralph resume NAME`
    /// continues it; a loop with a function agent cannot be resumed.
    pub fn pause(&self) {
        self.request(Request::Pause);
    }

    fn request(&self, request: Request) {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Connects this handle to a loop that is starting.
    pub(super) fn connect(&self, waker: &Arc<Waker>) -> Arc<Mutex<Vec<Request>>> {
        let _ = self.waker.set(waker.clone());
        // Deliver requests that were made before the loop had a waker.
        waker.wake();
        self.requests.clone()
    }
}
