//! Short questions to programs that nobody vouches for: asked all at once, answered soon or not at all, and
//! whatever they have started is gone afterwards.

use super::exemptions::Spared;
use super::signals;
use super::signals::Signals;
use super::tree;
use crate::engine::Exit;
use crate::os;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What came of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// It ended by itself, having printed this; its complaints, if it printed nothing else.
    Said(Exit, String),
    /// There is no such program.
    Missing,
    /// It could not be started, and why.
    Refused(String),
    /// It had not ended in time, or did not stop talking.
    Late,
}

/// A version fits into this many bytes.
const CAP: usize = 16 << 10;
/// How long what was killed may take to go.
const DYING: Duration = Duration::from_secs(2);

/// Asks all of these commands at once. Each has nothing to read, no terminal to ask back on, and so much time.
/// An error is a signal that asked this process to go.
pub fn ask(commands: &[Vec<String>], dir: &Path, patience: Duration) -> io::Result<Vec<Answer>> {
    tree::adopt_orphans();
    let friends = tree::children(rustix::process::getpid());
    let mut signals = Signals::listen()?;
    let deadline = Instant::now() + patience;
    let mut asked: Vec<Asked> = commands
        .iter()
        .map(|command| Asked::start(command, dir))
        .collect();
    let interrupted = hear(&mut asked, &mut signals, deadline);
    sweep(&asked, &friends);
    if interrupted {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok(asked.into_iter().map(Asked::answer).collect())
}

/// Listens until everyone has answered, or the time is up. True: somebody wants this process to go.
fn hear(asked: &mut [Asked], signals: &mut Signals, deadline: Instant) -> bool {
    loop {
        tree::reap(|pid, exit| asked.iter_mut().for_each(|one| one.ended(pid, exit)));
        // What it printed before it ended is there by now.
        asked.iter_mut().for_each(Asked::read);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !asked.iter().any(Asked::is_open) {
            return false;
        }
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.extend(
            signals
                .fds()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        let open = asked
            .iter()
            .filter(|one| one.is_open())
            .flat_map(|one| &one.streams);
        fds.extend(
            open.filter_map(|stream| stream.pipe.as_ref())
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        if signals
            .take()
            .iter()
            .any(|heard| *heard != signals::Heard::Child)
        {
            return true;
        }
    }
}

/// Ends everything that is left of them.
fn sweep(asked: &[Asked], friends: &[Pid]) {
    let spared = Spared::whole(friends);
    let begun = Instant::now();
    loop {
        for pid in asked
            .iter()
            .filter(|one| one.is_open())
            .filter_map(|one| one.pid)
        {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        tree::signal(&spared, Signal::KILL);
        let empty = tree::reap(|_, _| {});
        if empty || tree::descendants(&spared).is_empty() || begun.elapsed() > DYING {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One program that was asked.
struct Asked {
    pid: Option<Pid>,
    /// Its output, and its complaints.
    streams: [Stream; 2],
    exit: Option<Exit>,
    /// Why there is nothing to wait for.
    no: Option<Answer>,
}

impl Asked {
    fn start(command: &[String], dir: &Path) -> Self {
        let mut one = Self {
            pid: None,
            streams: Default::default(),
            exit: None,
            no: None,
        };
        let [program, arguments @ ..] = command else {
            one.no = Some(Answer::Missing);
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
        os::in_own_session(&mut command);
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
                one.streams = pipes.map(|pipe| Stream {
                    pipe: pipe.map(File::from),
                    text: Vec::new(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => one.no = Some(Answer::Missing),
            Err(error) => one.no = Some(Answer::Refused(error.to_string())),
        }
        one
    }

    fn is_open(&self) -> bool {
        self.pid.is_some() && self.exit.is_none() && self.no.is_none()
    }

    fn ended(&mut self, pid: Pid, exit: Exit) {
        if self.pid == Some(pid) && self.exit.is_none() {
            self.exit = Some(exit);
        }
    }

    fn read(&mut self) {
        if !self.streams.iter_mut().all(Stream::read) {
            self.no = Some(Answer::Late);
        }
    }

    fn answer(self) -> Answer {
        match (self.no, self.exit) {
            (Some(no), _) => no,
            (None, Some(exit)) => {
                let texts = self
                    .streams
                    .iter()
                    .map(|stream| String::from_utf8_lossy(&stream.text));
                let said = texts
                    .map(|text| text.trim().to_owned())
                    .find(|text| !text.is_empty());
                Answer::Said(exit, said.unwrap_or_default())
            }
            (None, None) => Answer::Late,
        }
    }
}

/// What comes out of a program.
#[derive(Default)]
struct Stream {
    pipe: Option<File>,
    text: Vec<u8>,
}

impl Stream {
    /// Takes what has come. False: there is no end to it.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) if self.text.len() + count > CAP => {
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
