//! Runs a coding agent again and again, each time with a fresh context, until the work is proven done.
//!
//! The program `ralph` does so with an agent's command line. This library does it inside another program, with a
//! command or with a function of that program as the agent. [`Loop`] is the front door:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let work = place.path().join("work");
//! # std::fs::create_dir(&work)?;
//! use ralph::{Loop, Turn};
//!
//! let report = Loop::new("Count to three in count.txt, one line at a time.")
//!     .workspace(&work)
//!     .state_dir(place.path().join("state"))
//!     .check("test $(wc -l < count.txt) -eq 3")
//!     .max_iterations(10)
//!     .on_event(|event| println!("{event:?}"))
//!     .run_with(|turn: &Turn| -> std::io::Result<String> {
//!         let path = turn.workspace().join("count.txt");
//!         let so_far = std::fs::read_to_string(&path).unwrap_or_default();
//!         std::fs::write(&path, format!("{so_far}{}\n", turn.iteration()))?;
//!         turn.used_tool("write", "count.txt", true);
//!         turn.cost(0.01);
//!         Ok(format!("I wrote {}.", turn.iteration()))
//!     })?;
//!
//! assert!(report.success);
//! assert_eq!(report.iterations.len(), 3);
//! assert_eq!(report.iterations[0].steps, Some(1));
//! assert!(!report.iterations[0].checks[0].passed);
//! # Ok(())
//! # }
//! ```
//!
//! # What a host can rely on
//!
//! - *Nothing of the process is changed*: no signal handler, no fork of the host, no change of directory or
//!   environment, nothing on standard output or standard error. Several loops may run in as many threads.
//! - *The host's own children are left alone.* What a command agent or a check leaves behind is ended before the
//!   next iteration: its descendants, its session, and whatever carries the loop's mark in its environment. What a
//!   function starts is the function's own business. The host must not ignore `SIGCHLD`, nor wait for just any
//!   child: exit statuses of agents and checks would be lost, and unknown is not green.
//! - *A thread cannot be killed.* A function that is told to return ([`Turn::is_cancelled`]) and does not makes the
//!   loop fatal, and its thread stays.
//! - *A panic of the function* is a failed iteration, where the host unwinds panics.
//! - *The loop is on disk as any other*: `ralph status`, `ralph logs` and `ralph stop` know it.
//!
//! The crate's rooms are described in ARCHITECTURE.md.

mod agent;
mod cli;
mod client;
mod commands;
mod config;
mod engine;
mod git;
mod library;
mod lifecycle;
mod os;
mod process;
mod runner;
mod store;
mod terminal;
mod ui;

pub use agent::function::Turn;
pub use engine::plan::{Approve, Level};
pub use engine::{Act, Event, Limit, Outcome};
pub use library::{CheckResult, Error, IterationReport, Loop, Reply, Report, Stopper};

/// What the fields of an [`Event`] are made of.
pub mod event {
    pub use crate::engine::event::{
        Change, CheckReport, Door, Exit, Fault, Marker, Notice, Report, Said, Verdict, Wish,
    };
    pub use crate::engine::scm::{Skip, TaskReport};
}

#[doc(hidden)]
pub use commands::main;

/// What tests and fuzzers need; no part of the interface.
#[doc(hidden)]
pub mod testing {
    pub use crate::cli::Words;
    pub use crate::client::slash;
    pub use crate::client::{hook, loop_file, transcript};
    pub use crate::engine::prompt::NAMES;
    pub use crate::engine::template::unknown;
    pub use crate::library::replay::{Replay, covered, reset_in_thread, reset_time};
    pub use crate::store::{Header, Line, Message};
}

/// The page on the library is held to what compiles.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
mod page {}
