//! How a session of an agent's own client and ralph speak: its JSON, its transcript, and the sheet for people.

pub mod hook;
mod json;
pub mod loop_file;
pub mod process;
pub mod slash;
pub mod transcript;
