//! How a session of an agent's own client and ralph speak: its JSON, its transcript, and the sheet for people.

pub mod client;
pub mod input;
mod json;
pub mod sheet;
pub mod transcript;
