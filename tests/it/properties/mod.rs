//! Properties that must hold for any input. The test suite checks each on a few inputs; `fuzz/`
//! searches for inputs that violate one.

pub mod decoder;
pub mod hook;
pub mod journal;
pub mod loop_file;
pub mod redaction;
pub mod reset_time;
pub mod settings;
pub mod transcript;
