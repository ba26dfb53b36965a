//! How somebody is told that a runner has left: a command of the user's, the news on its standard input, and a
//! little time.

use super::job::{Gone, Launch, Terms};
use super::reactor::{Heard, Key, World};
use crate::process::exemptions::Friends;
use crate::process::signals;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long it may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// So much of what it prints is kept.
const LOG_CAP: u64 = 1 << 20;

/// What is to be called, and where.
pub struct Call<'a> {
    /// Run with `sh -c`.
    pub command: &'a str,
    /// Where.
    pub dir: &'a Path,
    /// The loop's name.
    pub name: &'a str,
    /// What it reads.
    pub news: File,
    /// The same, for its environment.
    pub result: &'a str,
    /// Where its output goes.
    pub log: PathBuf,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Who is left alone.
    pub friends: Friends,
}

/// Calls it, and waits until nothing of it is left. The answer is what went wrong, in words.
pub fn tell(call: Call<'_>) -> Option<String> {
    match ended(call) {
        Ok(gone) => trouble(&gone),
        Err(error) => Some(format!("it could not be started: {error}")),
    }
}

fn ended(call: Call<'_>) -> io::Result<Gone> {
    let command = ["sh", "-c", call.command].map(str::to_owned);
    // It speaks for a person: without a number and a task directory it is not the loop's agent, even where
    // this loop itself runs inside another's.
    let env = [
        ("RALPH_LOOP", call.name),
        ("RALPH_RESULT", call.result),
        ("RALPH_ITERATION", ""),
        ("RALPH_TASK_DIR", ""),
        ("TASK_FOLDER", ""),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut world = World::open(call.friends)?;
    world.clear_strays();
    let terms = Terms {
        log: call.log,
        log_cap: LOG_CAP,
        timeout: Some(TIMEOUT),
        silence: None,
        linger: None,
        grace: call.grace,
        survivor: call.grace,
    };
    let job = world.start(Launch {
        command: &command,
        dir: call.dir,
        env: &env,
        unset: &[],
        stdin: Some(call.news),
        terminal: None,
        terms,
    })?;
    world.begin(Key::Notify, job, None);
    loop {
        for heard in world.hear(None, &mut |_| {}) {
            match heard {
                Heard::Signal(signals::Heard::Child) => {}
                // Whoever presses Ctrl-C now wants his terminal back.
                Heard::Signal(_) => world.stop(true),
                Heard::Gone(_, gone, _) => return Ok(*gone),
                _ => {}
            }
        }
    }
}

fn trouble(gone: &Gone) -> Option<String> {
    match gone {
        Gone {
            timed_out: true, ..
        } => Some(format!("it was stopped after {} s", TIMEOUT.as_secs())),
        Gone { exit, .. } if exit.code == Some(0) => None,
        Gone { exit, .. } => Some(match (exit.code, exit.signal) {
            (Some(code), _) => format!("it failed (exit {code})"),
            (None, signal) => format!("it was killed (signal {})", signal.unwrap_or(0)),
        }),
    }
}
