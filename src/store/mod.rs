//! Reads and writes the state directory and the loops in it: journal, inbox, locks, cache, activity
//! and bus.
//!
//! The journal is the only source of truth about a loop, and only the holder of the loop's
//! [`LoopLock`] may append to it. Other processes read a [`LoopView`] of it and send requests
//! through the [`inbox`]. Journal lines are never rewritten, and nothing in this module decides
//! what a loop does next.

pub(crate) mod activity;
mod aside;
pub(crate) mod bus;
pub(crate) mod cache;
pub(crate) mod children;
pub(crate) mod derived_files;
pub(crate) mod dir;
mod disk_reserve;
mod ended;
mod error;
mod fold;
mod heartbeat;
pub(crate) mod inbox;
pub(crate) mod journal;
mod journal_line;
mod lease;
mod lines;
pub(crate) mod lock;
pub(crate) mod log_tail;
mod loop_lock;
mod name;
#[cfg(feature = "cli")]
mod notices;
pub(crate) mod pending;
mod placement;
mod seal;
pub(crate) mod starting;
pub(crate) mod state_dir;

#[cfg(test)]
mod tests;

pub(crate) use bus::{Bus, BusMessage};
pub(crate) use cache::LoopView;
pub(crate) use dir::LoopDir;
pub(crate) use ended::EndedLoop;
pub(crate) use error::StoreError;
pub(crate) use heartbeat::Heartbeat;
pub use inbox::InboxMessage;
pub(crate) use journal::{Journal, OpenedJournal};
pub(crate) use journal_line::rfc3339;
pub use journal_line::{JournalHeader, JournalLine};
pub(crate) use lease::{Lease, boot_clock_ms};
pub(crate) use lock::{FileLock, LockHolder, last_lock_holder, lock_holder};
pub(crate) use loop_lock::{LockFileGuard, LoopLock, loop_holder, wait_until_loop_is_free};
pub(crate) use name::is_valid_name;
pub(crate) use pending::{event_from_message, view_with_inbox};
pub(crate) use placement::FleetPlacement;
pub(crate) use starting::{START_TIMEOUT, StartMark, is_starting};
pub(crate) use state_dir::StateDir;

pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;
