//! `ralph __supervise`: the process that runs a background loop.

use super::supervise::supervise;
use crate::cli::{OutputWords, SuperviseWords};
use crate::config::{Settings, Stack};
use crate::lifecycle::failure::Failure;
use crate::lifecycle::launch::{END, PATIENCE, complaint};
use crate::lifecycle::locks::Locks;
use crate::store::{Home, LoopDir, cache};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// `ralph __supervise`: the supervisor's own process.
pub(crate) fn supervise_loop(words: &SuperviseWords) -> Result<i32, Failure> {
    if let Some(pipe) = &words.environment {
        return Err(with_environment(pipe, words));
    }
    let home = Home::at(words.state_dir.clone());
    let dir = home.find(&words.name)?;
    begin(&home, &dir).inspect_err(|failure| {
        // Whoever started this waits for a sign of life.
        let (draft, place) = (dir.path().join("complaint.draft"), complaint(&dir));
        let _ = std::fs::write(&draft, failure.to_pass_on())
            .and_then(|()| std::fs::rename(&draft, place));
    })
}

fn begin(home: &Home, dir: &LoopDir) -> Result<i32, Failure> {
    let view = cache::read(dir)?;
    let plan = view.state.plan;
    let locks = Locks::take_in_background(home, dir, &plan, view.header.tmux.is_some())?;
    let (stream, raw) = Stack::load(&crate::commands::run::places(plan.workspace.clone(), None))
        .map(|stack| Settings::of(&stack))
        .map_or((true, false), |all| (all.stream, all.raw));
    // A file would hold all of the agents' output a second time, and without an end.
    let no_stream = !stream || !io::stdout().is_terminal();
    let output = OutputWords {
        no_stream,
        raw,
        in_window: true,
        ..OutputWords::default()
    };
    supervise(dir, locks, &plan, output)
}

/// Hears the environment, if there is still somebody to send it, and all of it.
fn receive_environment(pipe: &Path) -> io::Result<Vec<u8>> {
    let cut_off = || {
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "whoever started this went away",
        )
    };
    // Without waiting for whoever sends: he may be dead.
    let mut pipe: File = rustix::fs::open(
        pipe,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?
    .into();
    let (begun, mut text) = (Instant::now(), Vec::new());
    loop {
        let left = PATIENCE.checked_sub(begun.elapsed()).ok_or_else(cut_off)?;
        let _ = poll(
            &mut [PollFd::new(&pipe, PollFlags::IN)],
            Timespec::try_from(left).ok().as_ref(),
        );
        match pipe.read_to_end(&mut text) {
            Ok(0) if text.is_empty() => std::thread::sleep(Duration::from_millis(2)),
            Ok(_)
                if text.ends_with(END)
                    && (text.len() == END.len()
                        || text[..text.len() - END.len()].ends_with(b"\0")) =>
            {
                return Ok(text);
            }
            Ok(_) => return Err(cut_off()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Takes over the environment of whoever started this, but for what tells of the window's own terminal.
fn with_environment(pipe: &Path, words: &SuperviseWords) -> Failure {
    let text = match receive_environment(pipe) {
        Ok(text) => text,
        Err(error) => return Failure::broken(format!("cannot read {}: {error}", pipe.display())),
    };
    let all = text.split(|byte| *byte == 0).filter_map(|entry| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        Some((
            OsString::from_vec(entry[..at].to_vec()),
            OsString::from_vec(entry[at + 1..].to_vec()),
        ))
    });
    let exe = match std::env::current_exe() {
        Ok(exe) => exe,
        Err(error) => return Failure::broken(error),
    };
    let mut command = Command::new(exe);
    command.env_clear().envs(all);
    for name in ["TERM", "COLORTERM", "TERM_PROGRAM"] {
        match std::env::var_os(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args([
        OsStr::new("__supervise"),
        OsStr::new(&words.name),
        OsStr::new("--state-dir"),
        words.state_dir.as_os_str(),
    ]);
    Failure::broken(command.exec())
}
