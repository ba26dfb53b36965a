//! The signals that end a process with an async runtime.

use super::error::FleetError;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Mutex, watch};

/// The signals that ask this process to end, in the order in which they arrive.
pub(super) struct EndSignals {
    received: Mutex<UnboundedReceiver<Signal>>,
}

impl EndSignals {
    /// Starts to receive the signals. From here on, none of them kills the process.
    pub(super) fn listen() -> Result<Self, FleetError> {
        let (sender, received) = unbounded_channel();
        for (kind, name) in [
            (SignalKind::interrupt(), Signal::INT),
            (SignalKind::terminate(), Signal::TERM),
            (SignalKind::hangup(), Signal::HUP),
        ] {
            let mut arriving =
                signal(kind).map_err(|error| FleetError::Other(error.to_string()))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while arriving.recv().await.is_some() && sender.send(name).is_ok() {}
            });
        }
        Ok(Self {
            received: Mutex::new(received),
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&self) -> Signal {
        let next = self.received.lock().await.recv().await;
        next.unwrap_or(Signal::TERM)
    }
}

/// Returns a value that becomes true when the first signal arrives.
pub(super) fn stop_at_signal() -> Result<watch::Receiver<bool>, FleetError> {
    let signals = EndSignals::listen()?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        signals.next().await;
        let _ = sender.send(true);
    });
    Ok(receiver)
}
