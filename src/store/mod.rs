//! What has happened? A loop's directory: its lock, journal, inbox, cache and iterations.
//!
//! The journal is the only truth, and only who holds the [`Lock`] may write it. Everyone else reads a
//! [`View`] of it and speaks through the [`inbox`]. Nothing here decides, and no journal line is rewritten.

pub mod bus;
pub mod cache;
pub mod children;
pub mod dir;
mod disk_reserve;
mod error;
mod fold;
mod heartbeat;
pub mod home;
pub mod inbox;
pub mod journal;
mod line;
pub mod lock;
mod name;
pub mod pending;

#[cfg(test)]
mod tests;

pub use bus::{Bus, Post};
pub use cache::View;
pub use dir::LoopDir;
pub use error::Error;
pub use heartbeat::Pulse;
pub use home::{Home, valid_name};
pub use inbox::Message;
pub use journal::{Header, Journal, Line, Opened};
pub use line::rfc3339;
pub use lock::{Holder, Lock, await_free, holder, last_holder};
pub use pending::{event_of, view_with_inbox};

/// What can go wrong in this room is one small enum.
pub type Result<T, E = Error> = std::result::Result<T, E>;
