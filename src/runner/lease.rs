//! Watches the lease of a loop that this machine runs for a fleet: without a valid lease, another
//! machine may be running the loop.

use super::RunnerError;
use crate::store::{Lease, LoopDir};
use std::time::{Duration, Instant};

/// How often the file is read while the runner waits for the fleet.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// How long a loop that may run ahead of the fleet waits for it.
const AHEAD_WAIT: Duration = Duration::from_millis(500);

/// The lease of a loop.
pub(super) struct LeaseWatch {
    dir: LoopDir,
    lease: Lease,
}

impl LeaseWatch {
    /// Returns the lease of a loop that has one; `None` for a loop of this machine alone.
    pub(super) fn open(dir: &LoopDir) -> Option<Self> {
        let lease = Lease::read(dir)?;
        let dir = dir.clone();
        Some(Self { dir, lease })
    }

    /// Returns when the lease must be looked at again.
    pub(super) fn next_check(&self) -> Instant {
        let left = self
            .lease
            .expires_ms
            .saturating_sub(crate::store::boot_clock_ms());
        Instant::now() + Duration::from_millis(left)
    }

    /// Fails if the lease has expired. Reads the file only then: a lease is never shortened.
    pub(super) fn check(&mut self) -> Result<(), RunnerError> {
        if self.lease.is_expired() {
            self.read();
        }
        if self.lease.is_expired() {
            return Err(RunnerError::LeaseExpired);
        }
        Ok(())
    }

    /// Waits until the fleet has the first `len` bytes of the journal.
    pub(super) fn wait_until_published(&mut self, len: u64) -> Result<(), RunnerError> {
        let start = Instant::now();
        loop {
            if self.lease.published < len {
                self.read();
            }
            if self.lease.published >= len
                || self.lease.may_run_ahead && start.elapsed() >= AHEAD_WAIT
            {
                return self.check();
            }
            self.check()?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Reads the file. One that is missing, or of another epoch, is no lease.
    fn read(&mut self) {
        match Lease::read(&self.dir) {
            Some(lease) if lease.epoch == self.lease.epoch => self.lease = lease,
            _ => self.lease.expires_ms = 0,
        }
    }
}
