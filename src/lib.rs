//! Runs a coding agent again and again, each time with a fresh context, until checks prove that the
//! work is done.
//!
//! The `ralph` program runs loops from the command line. This library runs them inside your own
//! program, with a command or one of your functions as the agent. Start with [`Loop`]:
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
//!     .until_green()
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
//! # Features
//!
//! `cli`, on by default, contains what only the `ralph` program needs: the command line, the
//! console and settings files. `fleet`, also on by default, runs loops on other machines through
//! NATS. To embed ralph, disable both:
//! `ralph = { version = "0.2", default-features = false }`.
//!
//! # Guarantees for the host
//!
//! - *The host process is not changed*: no signal handlers, no fork, no change of directory or
//!   environment, no output. Several loops can run on as many threads.
//! - *The host's own children are left alone.* Before the next iteration, ralph kills the processes
//!   that a command agent or a check left behind: its descendants, its session, and every process
//!   with the loop's marker in its environment. Processes that your function starts are yours to
//!   kill. The host must not ignore `SIGCHLD` and must not wait for arbitrary children: the exit
//!   statuses of agents and checks would be lost, and a check with an unknown status is not green.
//! - *A thread cannot be killed.* If a function does not return although [`Turn::is_cancelled`] is
//!   true, the loop ends as fatal and the thread keeps running.
//! - *A panic in the function* fails the iteration, if the host unwinds panics.
//! - *The loop is on disk like any other*: `ralph status`, `ralph logs` and `ralph stop` work on
//!   it.
//!
//! ARCHITECTURE.md describes the modules of the crate.

#![cfg_attr(
    not(feature = "cli"),
    expect(
        dead_code,
        unused_imports,
        reason = "the modules that the program and the library share have parts that only the program uses"
    )
)]
#![cfg_attr(
    all(feature = "cli", not(feature = "fleet")),
    expect(dead_code, reason = "the settings of the fleet")
)]

mod agent;
#[cfg(feature = "cli")]
mod cli;
mod client;
#[cfg(feature = "cli")]
mod commands;
mod config;
mod engine;
#[cfg(feature = "fleet")]
mod fleet;
mod git;
mod library;
mod lifecycle;
mod os;
mod process;
mod proof;
mod runner;
mod sandbox;
mod store;
mod terminal;
#[cfg(feature = "cli")]
mod ui;

pub use agent::function::Turn;
pub use engine::act::ChangedLines;
pub use engine::plan::{Approve, ContextLevel, Sandbox};
pub use engine::{Act, Amount, Event, ExitCode, Limit, Outcome, StopReason};
pub use library::{CheckResult, Error, IterationReport, Loop, Reply, Report, Stopper};

/// The types of an [`Event`]'s fields.
pub mod event {
    pub use crate::engine::event::{
        AgentReport, CheckReport, Fault, Marker, Notice, ProcessExit, Request, RequestSource,
        TextSignals,
    };
    pub use crate::engine::label::{CheckLabel, CheckProbe, Label};
    pub use crate::engine::limits::LimitChange;
    pub use crate::engine::long_rest::{LongRest, RestStage};
    pub use crate::engine::outcome::{OutcomeSummary, WaitReason};
    pub use crate::engine::receipt::{EndFacts, Versions};
    pub use crate::engine::review::{Review, ReviewLine, ReviewList};
    pub use crate::engine::scm::{ScmTaskReport, SkipReason};
    pub use crate::engine::touched::{FileChange, TouchedFile, TouchedFiles, TouchedList};
    pub use crate::engine::work_elsewhere::{MovedHead, WorkElsewhere};
}

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use commands::main;

/// Internals for tests and fuzzers. Not part of the API.
#[doc(hidden)]
pub mod testing {
    #[cfg(feature = "cli")]
    pub use crate::cli::Cli;
    pub use crate::client::slash;
    pub use crate::client::{hook, loop_file, transcript};
    #[cfg(feature = "cli")]
    pub use crate::config::replay::SettingsReplay;
    pub use crate::engine::prompt::TEMPLATE_FIELDS;
    pub use crate::engine::template::find_invalid_tag;
    #[cfg(feature = "fleet")]
    pub use crate::fleet::driver::{ExchangeDriver, JobDriver, PieceStream};
    pub use crate::library::replay::{Replay, codex_rollout_reset, redact_both_ways, reset_time};
    pub use crate::store::{InboxMessage, JournalHeader, JournalLine};
    #[cfg(feature = "cli")]
    pub use crate::ui::replay::{JournalContent, JournalReplay};
}

/// Compiles the examples in docs/library.md.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
mod library_guide {}
