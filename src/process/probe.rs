//! Runs short, untrusted commands such as `PROGRAM --version` in parallel, with a deadline, and
//! kills everything they start.

use super::exemptions::ExemptSet;
use super::signals::{SignalEvent, SignalListener};
use super::tree;
use crate::engine::ProcessExit;
use crate::os;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The result of a probed command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    /// The command exited on its own. The text is its standard output or, if that is empty, its
    /// standard error.
    Exited(ProcessExit, String),
    /// The program does not exist.
    NotFound,
    /// The command could not be started, for this reason.
    NotStarted(String),
    /// The command did not exit in time, or printed too much.
    TimedOut,
}

/// Maximum output of a command, in bytes. A command that prints more counts as timed out.
const OUTPUT_MAX: usize = 16 << 10;
/// Maximum time to wait for killed processes to exit.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// Runs all commands at once, without standard input or a terminal, and waits at most `timeout` for
/// them. Fails with `Interrupted` if this process receives a signal that asks it to exit.
pub(crate) fn run_probes(
    commands: &[Vec<String>],
    dir: &Path,
    timeout: Duration,
) -> io::Result<Vec<ProbeResult>> {
    tree::become_subreaper();
    let exempt = tree::children(rustix::process::getpid());
    let mut signals = SignalListener::listen()?;
    let deadline = Instant::now() + timeout;
    let mut probes: Vec<Probe> = commands
        .iter()
        .map(|command| Probe::start(command, dir))
        .collect();
    let interrupted = wait_for_all(&mut probes, &mut signals, deadline);
    sweep(&probes, &exempt);
    if interrupted {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok(probes.into_iter().map(Probe::into_result).collect())
}

/// Waits until every probe has ended or the deadline has passed. Returns whether a signal asks this
/// process to exit.
fn wait_for_all(probes: &mut [Probe], signals: &mut SignalListener, deadline: Instant) -> bool {
    loop {
        tree::reap(|pid, exit| probes.iter_mut().for_each(|one| one.ended(pid, exit)));
        // Read after reaping, when everything printed before the exit is available.
        probes.iter_mut().for_each(Probe::read);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !probes.iter().any(Probe::is_running) {
            return false;
        }
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.push(PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN));
        let running = probes
            .iter()
            .filter(|one| one.is_running())
            .flat_map(|one| &one.streams);
        fds.extend(
            running
                .filter_map(|stream| stream.pipe.as_ref())
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        if signals
            .take()
            .iter()
            .any(|signal| *signal != SignalEvent::ChildExited)
        {
            return true;
        }
    }
}

/// Kills every process that the probes left running, except the processes in `exempt`.
fn sweep(probes: &[Probe], exempt: &[Pid]) {
    let exempt = ExemptSet::trees(exempt);
    let begun = Instant::now();
    loop {
        for pid in probes
            .iter()
            .filter(|one| one.is_running())
            .filter_map(|one| one.pid)
        {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        tree::signal_all(&exempt, Signal::KILL);
        let empty = tree::reap(|_, _| {});
        if empty || tree::descendants(&exempt).is_empty() || begun.elapsed() > KILL_WAIT {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One probed command, running or ended.
struct Probe {
    pid: Option<Pid>,
    /// The command's standard output and standard error.
    streams: [ProbeStream; 2],
    exit: Option<ProcessExit>,
    /// The result of a command that could not be started or printed too much; `None` otherwise.
    failed: Option<ProbeResult>,
}

impl Probe {
    fn start(command: &[String], dir: &Path) -> Self {
        let mut one = Self {
            pid: None,
            streams: Default::default(),
            exit: None,
            failed: None,
        };
        let [program, arguments @ ..] = command else {
            one.failed = Some(ProbeResult::NotFound);
            return one;
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(dir)
            .envs([("NO_COLOR", "1"), ("TERM", "dumb")]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        os::set_new_session(&mut command);
        let started = command.spawn().and_then(|mut child| {
            let pipes = [
                child.stdout.take().map(OwnedFd::from),
                child.stderr.take().map(OwnedFd::from),
            ];
            for pipe in pipes.iter().flatten() {
                rustix::io::ioctl_fionbio(pipe, true)?;
            }
            Ok((Pid::from_child(&child), pipes))
        });
        match started {
            Ok((pid, pipes)) => {
                one.pid = Some(pid);
                one.streams = pipes.map(|pipe| ProbeStream {
                    pipe: pipe.map(File::from),
                    text: Vec::new(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                one.failed = Some(ProbeResult::NotFound);
            }
            Err(error) => one.failed = Some(ProbeResult::NotStarted(error.to_string())),
        }
        one
    }

    fn is_running(&self) -> bool {
        self.pid.is_some() && self.exit.is_none() && self.failed.is_none()
    }

    fn ended(&mut self, pid: Pid, exit: ProcessExit) {
        if self.pid == Some(pid) && self.exit.is_none() {
            self.exit = Some(exit);
        }
    }

    fn read(&mut self) {
        if !self.streams.iter_mut().all(ProbeStream::read) {
            self.failed = Some(ProbeResult::TimedOut);
        }
    }

    fn into_result(self) -> ProbeResult {
        match (self.failed, self.exit) {
            (Some(failed), _) => failed,
            (None, Some(exit)) => {
                let texts = self
                    .streams
                    .iter()
                    .map(|stream| String::from_utf8_lossy(&stream.text));
                let printed = texts
                    .map(|text| text.trim().to_owned())
                    .find(|text| !text.is_empty());
                ProbeResult::Exited(exit, printed.unwrap_or_default())
            }
            (None, None) => ProbeResult::TimedOut,
        }
    }
}

/// One output stream of a probe.
#[derive(Default)]
struct ProbeStream {
    pipe: Option<File>,
    text: Vec<u8>,
}

impl ProbeStream {
    /// Reads the available output. Returns `false` if it exceeds [`OUTPUT_MAX`].
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) if self.text.len() + count > OUTPUT_MAX => {
                    self.pipe = None;
                    return false;
                }
                Ok(count) => self.text.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => self.pipe = None,
            }
        }
        true
    }
}
