//! What happens next? A pure state machine: it sees no clock, file, process, environment or chance,
//! is never `async`, and cannot fail.
//!
//! [`State::step`] takes one [`Event`] at a time, [`State::orders`] says what must be under way now,
//! and [`decide`] alone chooses between an ending and another iteration.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod act;
pub mod decide;
mod drain;
pub mod event;
pub mod excerpt;
pub mod failure;
pub mod fallback;
pub mod format;
pub mod message;
pub mod outcome;
pub mod plain_text;
pub mod plan;
pub mod prompt;
mod redaction;
pub mod scm;
pub mod screen;
pub mod session;
pub mod signals;
pub mod state;
mod step;
pub mod template;
pub mod usage;

#[cfg(test)]
mod tests;

pub use act::{Act, Tally};
pub use event::{Event, Exit, Marker, Now};
pub use outcome::{Limit, Outcome, Status};
pub use plan::Plan;
pub use state::{Effect, Phase, State};
