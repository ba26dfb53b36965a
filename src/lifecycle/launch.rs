//! How a loop gets into the background: a supervisor of its own, in a window of tmux or without one.

use super::failure::Failure;
use super::tmux::{SESSION, Tmux, Trouble};
use super::watch::STACK;
use crate::os;
use crate::process::file_watcher::Notices;
use crate::store::dir::append_file;
use crate::store::{Home, LoopDir, cache, holder};
use rustix::fs::{FileType, Mode};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long a supervisor may take to begin.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// It is noticed as soon as it begins; how often to look whether it is gone instead, or where nothing is noticed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Whether loops can live in this tmux, and what can be done if they cannot.
pub(crate) fn usable(tmux: Option<&Tmux>, otherwise: &str) -> Result<(), Failure> {
    if tmux.is_none() {
        return Ok(());
    }
    Tmux::look().map_err(|trouble| match trouble {
        Trouble::Missing => {
            Failure::usage("tmux is not installed", format!("install it{otherwise}"))
        }
        Trouble::Old(version) => Failure::usage(
            format!("{version} is too old: ralph needs tmux 3.0"),
            format!("update it{otherwise}"),
        ),
    })
}

/// Where a loop in the background is, in words.
pub(crate) fn place(name: &str, tmux: Option<&Tmux>) -> String {
    tmux.map_or_else(
        || "background".into(),
        |_| format!("tmux: {SESSION}:{name}"),
    )
}

/// Starts a supervisor for a loop that nobody holds, and waits until it does.
pub(crate) fn launch(home: &Home, dir: &LoopDir, tmux: Option<&Tmux>) -> Result<(), Failure> {
    let complaint = complaint(dir);
    let _ = std::fs::remove_file(&complaint);
    // A lock or a pipe of the caller's must not stay with a loop, or with a tmux server, that outlives him.
    os::keep_files();
    // What it did before is no sign of life.
    let before = cache::read(dir)?.offset;
    let mut notices = Notices::open();
    for path in [dir.path(), &dir.lock(), &dir.journal()] {
        notices.watch(path);
    }
    let mut child = None;
    match tmux {
        Some(tmux) => in_window(home, dir, tmux)?,
        None => child = Some(alone(home, dir).map_err(Failure::broken)?),
    }
    let begun = Instant::now();
    loop {
        // Registered, too: whoever started this may be swept at once, and what was born below with it.
        if holder(&dir.lock()).is_some_and(|holder| holder.background) {
            return Ok(());
        }
        if let Ok(words) = std::fs::read_to_string(&complaint) {
            let _ = std::fs::remove_file(&complaint);
            return Err(Failure::passed_on(&words));
        }
        let gone = child
            .as_mut()
            .is_some_and(|child: &mut Child| child.try_wait().is_ok_and(|end| end.is_some()));
        // It may have done all it had to do between two looks.
        if has_begun(dir, before) {
            return Ok(());
        }
        if gone || begun.elapsed() > PATIENCE {
            return Err(
                Failure::broken("the supervisor did not begin").with_hint(format!(
                    "see {}; ralph resume {} tries again",
                    dir.console_log().display(),
                    dir.name()
                )),
            );
        }
        notices.wait(LOOK_AGAIN);
    }
}

/// Whether a runner has written to a journal that was so long before: it then had the lock, and registered.
fn has_begun(dir: &LoopDir, before: u64) -> bool {
    cache::read(dir).is_ok_and(|view| view.offset > before)
}

/// A plain process in a session of its own.
fn alone(home: &Home, dir: &LoopDir) -> io::Result<Child> {
    let log = append_file(&dir.console_log())?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(words(home, dir))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    os::in_own_session(&mut command);
    command.spawn()
}

fn words(home: &Home, dir: &LoopDir) -> Vec<OsString> {
    vec![
        "__supervise".into(),
        dir.name().into(),
        "--state-dir".into(),
        home.root().into(),
    ]
}

/// A window. A window's environment is its server's, so this one's goes there through a pipe that only its owner
/// can open: it is on no command line and in no file.
fn in_window(home: &Home, dir: &LoopDir, tmux: &Tmux) -> Result<(), Failure> {
    let pipe = dir.path().join("environment");
    let _ = std::fs::remove_file(&pipe);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    );
    made.map_err(|error| Failure::broken(format!("cannot make {}: {error}", pipe.display())))?;
    let exe = std::env::current_exe().map_err(Failure::broken)?;
    let mut program = vec![exe.into_os_string()];
    program.extend(words(home, dir));
    program.extend(["--environment".into(), pipe.clone().into_os_string()]);
    let sent = tmux
        .open_window(dir.name(), &program)
        .map_err(|error| {
            Failure::broken(format!("tmux cannot open a window: {error}"))
                .with_hint("--no-tmux does without")
        })
        .and_then(|()| send_environment(&pipe).map_err(Failure::broken));
    let _ = std::fs::remove_file(&pipe);
    sent
}

/// What comes after the last variable: without it, whoever sent them was killed.
pub(crate) const END: &[u8] = b"\0";

fn send_environment(pipe: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for (name, value) in std::env::vars_os() {
        for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0"] {
            all.extend_from_slice(part);
        }
    }
    all.extend_from_slice(END);
    let (pipe, (tell, told)) = (pipe.to_owned(), channel());
    // The kernel lets the pipe be opened once somebody reads it. Who never comes is not waited for, and then this
    // thread goes with the process.
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            let sent = File::options()
                .write(true)
                .open(&pipe)
                .and_then(|mut file| file.write_all(&all));
            let _ = tell.send(sent);
        })?;
    let late = || {
        io::Error::new(
            io::ErrorKind::TimedOut,
            "the window's program did not begin",
        )
    };
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(late()))
}

/// Where a supervisor says why it could not begin.
pub(crate) fn complaint(dir: &LoopDir) -> PathBuf {
    dir.path().join("complaint")
}
