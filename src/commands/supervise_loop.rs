//! `ralph __supervise`: the process that runs a background loop.

use super::run::settings_paths;
use super::supervise::supervise;
use crate::cli::{OutputArgs, SuperviseArgs};
use crate::config::{Settings, SettingsFiles};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::launch::{ENVIRONMENT_END, start_error_file};
use crate::lifecycle::locks::LoopLocks;
use crate::store::dir::create_file;
use crate::store::{LoopDir, START_TIMEOUT, StateDir, cache, starting};
use crate::ui::tty::is_terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) fn supervise_loop(args: &SuperviseArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::new(args.state_dir.clone());
    if let Some(pipe) = &args.environment {
        let error = restart_with_environment(pipe, args);
        if let Ok(dir) = state_dir.find_loop(&args.name) {
            report_start_error(&dir, &error);
        }
        return Err(error);
    }
    let dir = state_dir.find_loop(&args.name)?;
    run(&state_dir, &dir, args.in_window).inspect_err(|error| report_start_error(&dir, error))
}

/// Tells the launching process why the loop does not start. It waits until this process holds the
/// loop's lock or writes this file.
fn report_start_error(dir: &LoopDir, error: &CommandError) {
    let (draft, path) = (dir.path().join("complaint.draft"), start_error_file(dir));
    let _ = create_file(&draft)
        .and_then(|mut file| file.write_all(error.to_json().as_bytes()))
        .and_then(|()| std::fs::rename(&draft, path));
}

fn run(state_dir: &StateDir, dir: &LoopDir, in_window: bool) -> Result<ExitCode, CommandError> {
    let plan = cache::read(dir)?.state.plan;
    let locks = LoopLocks::acquire_in_background(state_dir, dir, &plan, in_window)?;
    starting::send_start_requests(dir)?;
    let (stream, raw) = SettingsFiles::read(&settings_paths(plan.workspace.clone(), None))
        .map(|files| Settings::from_layers(&files.into_stack()))
        .map_or((true, false), |settings| (settings.stream, settings.raw));
    // Without a terminal, stdout is a log file, which would become a second, unbounded copy of the
    // agent's output.
    let no_stream = !stream || !is_terminal();
    let output = OutputArgs {
        no_stream,
        raw,
        in_window: true,
        ..OutputArgs::default()
    };
    supervise(dir, locks, &plan, output)
}

/// Reads the environment from the pipe. Fails if the sender exits before it has sent everything.
fn receive_environment(pipe: &Path) -> io::Result<Vec<u8>> {
    let cut_off = || {
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the process that opened the tmux window exited before sending it",
        )
    };
    // Open without blocking, so that this does not wait for a sender that has exited.
    let mut pipe: File = rustix::fs::open(
        pipe,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?
    .into();
    let (start, mut text) = (Instant::now(), Vec::new());
    loop {
        let left = START_TIMEOUT
            .checked_sub(start.elapsed())
            .ok_or_else(cut_off)?;
        let _ = poll(
            &mut [PollFd::new(&pipe, PollFlags::IN)],
            Timespec::try_from(left).ok().as_ref(),
        );
        match pipe.read_to_end(&mut text) {
            Ok(0) if text.is_empty() => std::thread::sleep(Duration::from_millis(2)),
            Ok(_)
                if text.ends_with(ENVIRONMENT_END)
                    && (text.len() == ENVIRONMENT_END.len()
                        || text[..text.len() - ENVIRONMENT_END.len()].ends_with(b"\0")) =>
            {
                return Ok(text);
            }
            Ok(_) => return Err(cut_off()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Executes this program again with the environment from the pipe. Keeps only those of its own
/// variables that describe the tmux window's terminal. Returns only on failure.
fn restart_with_environment(pipe: &Path, args: &SuperviseArgs) -> CommandError {
    let text = match receive_environment(pipe) {
        Ok(text) => text,
        Err(error) => {
            return CommandError::broken(format!(
                "cannot read the environment from {}: {error}",
                pipe.display()
            ));
        }
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
        Err(error) => {
            return CommandError::broken(format!("cannot find the ralph program: {error}"));
        }
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
        OsStr::new(&args.name),
        OsStr::new("--state-dir"),
        args.state_dir.as_os_str(),
        OsStr::new("--in-window"),
    ]);
    CommandError::broken(format!("cannot start the supervisor: {}", command.exec()))
}
