//! The one integration test binary: the repository's rules, and the program from outside.

mod agents;
mod completions;
mod console;
mod crash;
mod docs;
mod doctor;
mod hostile;
mod house;
mod init;
mod kit;
mod limits;
mod lines;
mod notify;
mod presets;
mod process;
mod process_crash;
mod process_markers;
mod process_signals;
mod process_start;
mod prompt;
mod pty;
mod rows;
mod scm;
mod settings;
mod snap;
mod words;
