//! Keeps a loop's lease: renews it in time, and passes on how much of the journal is published.

use crate::fleet::exchange::LeasedJob;
use crate::store::{Lease, LoopDir, boot_clock_ms};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long leases are, and how often they are renewed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTimes {
    /// How long the exchange keeps a job for a worker that does not extend it.
    pub(crate) ack_wait: Duration,
    /// How often a worker extends its jobs.
    pub(crate) heartbeat: Duration,
    /// How long a loop goes on without the exchange; `None` until its lease would expire.
    pub(crate) offline_grace: Option<Duration>,
}

impl LeaseTimes {
    /// Returns how long a supervisor may run after the beginning of the last successful extension.
    /// It must be gone before the exchange gives the job to another worker.
    fn validity(self) -> Duration {
        self.offline_grace
            .unwrap_or_else(|| self.ack_wait.mul_f64(0.7))
    }
}

/// The lease file of a loop, which the supervisor reads.
#[derive(Clone)]
pub(super) struct LeaseFile {
    dir: LoopDir,
    lease: Arc<Mutex<Lease>>,
}

impl LeaseFile {
    /// Describes the lease of a loop that has just been claimed. `granted_ms` is the boot clock
    /// before the claim.
    pub(super) fn new(dir: LoopDir, epoch: u64, granted_ms: u64, times: LeaseTimes) -> Self {
        let lease = Lease {
            epoch,
            expires_ms: granted_ms + times.validity().as_millis() as u64,
            published: 0,
            may_run_ahead: times.offline_grace.is_some(),
        };
        Self {
            dir,
            lease: Arc::new(Mutex::new(lease)),
        }
    }

    /// Writes the file. A lease that cannot be written expires.
    pub(super) fn write(&self) {
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = lease.write(&self.dir);
    }

    pub(super) fn set_published(&self, len: u64) {
        self.update(|lease| lease.published = len);
    }

    fn extend_to(&self, expires_ms: u64) {
        self.update(|lease| lease.expires_ms = lease.expires_ms.max(expires_ms));
    }

    fn update(&self, change: impl FnOnce(&mut Lease)) {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut lease);
        if self.dir.journal().exists() {
            let _ = lease.write(&self.dir);
        }
    }
}

/// Extends a job until this future is dropped. A failed extension is tried again: the lease decides
/// how long that makes sense.
pub(super) async fn keep_lease(job: &impl LeasedJob, file: &LeaseFile, times: LeaseTimes) -> ! {
    loop {
        let asked_ms = boot_clock_ms();
        let pause = match job.extend().await {
            Ok(()) => {
                file.extend_to(asked_ms + times.validity().as_millis() as u64);
                times.heartbeat
            }
            Err(_) => times.heartbeat.min(Duration::from_secs(1)),
        };
        tokio::time::sleep(pause).await;
    }
}
