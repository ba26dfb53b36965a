//! Starts the supervisor of a background loop, in a tmux window or as a plain process.

use super::error::CommandError;
use super::tmux::{SESSION, Tmux, TmuxError};
use super::watcher::THREAD_STACK_SIZE;
use crate::os::{self, regular_file};
use crate::process::file_watcher::FileWatcher;
use crate::process::mark::Mark;
use crate::store::dir::append_file;
use crate::store::{InboxMessage, LoopDir, START_TIMEOUT, StateDir, cache, loop_holder, starting};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How often to check for an early exit, and for a start that the file watcher did not report.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What to do without tmux, for hints of `ralph spawn` and `ralph resume`.
const ALTERNATIVE: &str = "add --no-tmux for a plain background process";

/// Checks that tmux can be used, if it is requested.
pub(crate) fn check_tmux(tmux: Option<&Tmux>) -> Result<(), CommandError> {
    if tmux.is_none() {
        return Ok(());
    }
    Tmux::check_version().map_err(|error| match error {
        TmuxError::NotInstalled => CommandError::usage(
            "tmux is not installed",
            format!("install tmux, or {ALTERNATIVE}"),
        ),
        TmuxError::TooOld(version) => CommandError::usage(
            format!("{version} is too old: ralph needs tmux 3.0 or newer"),
            format!("update tmux, or {ALTERNATIVE}"),
        ),
    })
}

/// Describes where a background loop runs: `tmux: ralph:NAME` or `background`.
pub(crate) fn location_text(name: &str, tmux: Option<&Tmux>) -> String {
    tmux.map_or_else(
        || "background".into(),
        |_| format!("tmux: {SESSION}:{name}"),
    )
}

/// Starts the supervisor of a loop that is not running, and waits until it holds the loop's lock
/// and has sent itself these requests. If it does not start, the loop is unchanged. The caller has
/// marked the loop as starting. Returns the supervisor's process; `None` if tmux is its parent.
pub(crate) fn launch(
    state_dir: &StateDir,
    dir: &LoopDir,
    tmux: Option<&Tmux>,
    requests: &[InboxMessage],
) -> Result<Option<Child>, CommandError> {
    starting::save_start_requests(dir, requests)?;
    start_supervisor(state_dir, dir, tmux).inspect_err(|_| {
        let _ = starting::discard_start_requests(dir);
    })
}

fn start_supervisor(
    state_dir: &StateDir,
    dir: &LoopDir,
    tmux: Option<&Tmux>,
) -> Result<Option<Child>, CommandError> {
    let error_file = start_error_file(dir);
    let _ = std::fs::remove_file(&error_file);
    // The loop and the tmux server outlive this process, and must not inherit its locks and pipes,
    // nor belong to the loop that this process may belong to.
    os::set_cloexec_on_open_files();
    Mark::detach();
    // Lines added to the journal from now on show that the supervisor has started.
    let before = cache::read(dir)?.offset;
    let mut watcher = FileWatcher::open();
    for path in [dir.path(), &dir.lock(), &dir.journal()] {
        watcher.watch(path);
    }
    let mut child = None;
    match tmux {
        Some(tmux) => open_window(state_dir, dir, tmux)?,
        None => child = Some(spawn_detached(state_dir, dir).map_err(CommandError::broken)?),
    }
    let started = Instant::now();
    loop {
        // Wait until the supervisor is registered: a sweep may kill our caller at any moment, and
        // would kill an unregistered supervisor too.
        if loop_holder(dir).is_some_and(|holder| holder.background)
            && !dir.start_requests().exists()
        {
            return Ok(child);
        }
        // Before the two files are looked at: both are written before the supervisor exits.
        let exited = child
            .as_mut()
            .is_some_and(|child: &mut Child| child.try_wait().is_ok_and(|end| end.is_some()));
        if let Ok(text) = regular_file::read_text(&error_file, false) {
            let _ = std::fs::remove_file(&error_file);
            return Err(CommandError::from_json(&text));
        }
        // A short loop may have run from start to end between two checks.
        if has_started(dir, before) {
            return Ok(child);
        }
        if exited || started.elapsed() > START_TIMEOUT {
            return Err(CommandError::broken(format!(
                "the supervisor of {:?} did not start",
                dir.name()
            ))
            .with_hint(format!(
                "see {} for the reason, then run `ralph resume {}`",
                dir.console_log().display(),
                dir.name()
            )));
        }
        watcher.wait(POLL_INTERVAL);
    }
}

/// Returns whether a runner has appended to the journal since the journal's length was `before`
/// bytes. Such a runner must have held the lock.
fn has_started(dir: &LoopDir, before: u64) -> bool {
    cache::read(dir).is_ok_and(|view| view.offset > before)
}

/// Starts the supervisor as a plain process in its own session.
fn spawn_detached(state_dir: &StateDir, dir: &LoopDir) -> io::Result<Child> {
    let log = append_file(&dir.console_log())?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(supervisor_args(state_dir, dir))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    os::set_new_session(&mut command);
    command.spawn()
}

fn supervisor_args(state_dir: &StateDir, dir: &LoopDir) -> Vec<OsString> {
    vec![
        "__supervise".into(),
        dir.name().into(),
        "--state-dir".into(),
        state_dir.root().into(),
    ]
}

/// Opens a tmux window for the supervisor. The window gets the environment of the tmux server, so
/// this process sends its own environment through a named pipe that only the user can open. Secrets
/// thus appear on no command line and in no file.
fn open_window(state_dir: &StateDir, dir: &LoopDir, tmux: &Tmux) -> Result<(), CommandError> {
    let pipe = dir.path().join("environment");
    let _ = std::fs::remove_file(&pipe);
    os::make_fifo(&pipe).map_err(|error| {
        CommandError::broken(format!("cannot create {}: {error}", pipe.display()))
    })?;
    let exe = std::env::current_exe().map_err(CommandError::broken)?;
    let mut program = vec![exe.into_os_string()];
    program.extend(supervisor_args(state_dir, dir));
    program.extend(["--environment".into(), pipe.clone().into_os_string()]);
    let sent = tmux
        .open_window(dir.name(), &program)
        .map_err(|error| {
            CommandError::broken(format!("tmux cannot open a window: {error}"))
                .with_hint(ALTERNATIVE)
        })
        .and_then(|()| send_environment(&pipe).map_err(CommandError::broken));
    let _ = std::fs::remove_file(&pipe);
    sent
}

/// The bytes that mark the end of the environment. If they are missing, the sender was killed.
pub(crate) const ENVIRONMENT_END: &[u8] = b"\0";

fn send_environment(pipe: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for (name, value) in std::env::vars_os() {
        for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0"] {
            all.extend_from_slice(part);
        }
    }
    all.extend_from_slice(ENVIRONMENT_END);
    let (pipe, (sender, receiver)) = (pipe.to_owned(), channel());
    // Opening the pipe blocks until the window's program reads from it. If that never happens, this
    // thread ends with the process.
    std::thread::Builder::new()
        .stack_size(THREAD_STACK_SIZE)
        .spawn(move || {
            let sent = File::options()
                .write(true)
                .open(&pipe)
                .and_then(|mut file| file.write_all(&all));
            let _ = sender.send(sent);
        })?;
    let late = || {
        io::Error::new(
            io::ErrorKind::TimedOut,
            "the supervisor in the tmux window did not start",
        )
    };
    receiver
        .recv_timeout(START_TIMEOUT)
        .unwrap_or_else(|_| Err(late()))
}

/// Returns the path of the file in which a supervisor reports why it could not start.
pub(crate) fn start_error_file(dir: &LoopDir) -> PathBuf {
    dir.path().join("complaint")
}
