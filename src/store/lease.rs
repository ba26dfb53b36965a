//! A loop's lease: how long this machine may run a loop of a fleet, and how much of the journal the
//! fleet has. The worker writes the file, and the loop's supervisor reads it.
//!
//! The supervisor does not ask the worker, which may be stopped or dead: it compares the file with
//! the clock.

use super::dir::create_file;
use super::error::IoContext;
use super::{LoopDir, Result};
use crate::os::regular_file;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    /// How many machines have owned the loop, this one included.
    pub(crate) epoch: u64,
    /// When the lease ends, in milliseconds of [`boot_clock_ms`].
    pub(crate) expires_ms: u64,
    /// The length of the part of the journal that the fleet has confirmed, in bytes.
    pub(crate) published: u64,
    /// Whether the loop may act on a journal that is only on this machine's disk.
    #[serde(default)]
    pub(crate) may_run_ahead: bool,
}

impl Lease {
    /// Reads the lease; `None` if there is none or it cannot be read.
    pub(crate) fn read(dir: &LoopDir) -> Option<Self> {
        let text = regular_file::read_text(&dir.lease(), false).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Replaces the lease. Readers see the old one or the new one.
    pub(crate) fn write(&self, dir: &LoopDir) -> Result<()> {
        let path = dir.lease();
        let new = path.with_extension("new");
        let text = serde_json::to_string(self).unwrap_or_default();
        create_file(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, &path))
            .context("write", &path)
    }

    pub(crate) fn is_expired(&self) -> bool {
        boot_clock_ms() >= self.expires_ms
    }
}

/// Returns the milliseconds since the system booted, including the time it was suspended: a machine
/// that slept must not believe that its lease is valid.
pub(crate) fn boot_clock_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Realtime;
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
