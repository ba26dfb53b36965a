//! How is an order carried out here? Processes, files that appear, signals: one world, one ear.
//!
//! Nothing in this room decides whether to retry, stop or succeed.

pub mod capture;
pub mod git;
pub mod job;
pub mod leftover;
pub mod notice;
pub mod notify;
pub mod probe;
pub mod scan;
pub mod script;
pub mod signals;
pub mod task;
pub mod tree;
pub mod warden;

use job::{Gone, Job};
use notice::Notices;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use scan::Scanner;
use signals::Signals;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Which order a job carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The agent of this iteration.
    Agent(u32),
    /// A check of this iteration, by its place in the plan.
    Check(u32, usize),
    /// A task for the green work of this iteration, by its place in the plan.
    Commit(u32, usize),
    /// The command that is told of an ending.
    Notify,
}

/// Something heard from the world.
#[derive(Debug)]
pub enum Heard {
    /// A signal from a person or the system.
    Signal(signals::Heard),
    /// It is time to look at files: something appeared, or a second went by.
    Look,
    /// The agent's output matches the done pattern.
    Pattern(Key),
    /// The job has been silent for too long.
    Silence(Key),
    /// The job's output cannot be written down.
    LogError(io::Error),
    /// The job and everything below it are gone.
    Gone(Key, Box<Gone>, bool),
}

/// The world as one runner hears it.
pub struct World {
    signals: Signals,
    notices: Notices,
    job: Option<(Key, Job)>,
    scanner: Option<Scanner>,
    pattern_told: bool,
    child_changed: bool,
    buffer: Vec<u8>,
    look_at: Instant,
}

/// Files are looked at this often even if nothing was noticed: some file systems tell nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Strays are waited for so long.
const STRAYS: Duration = Duration::from_secs(2);

impl World {
    /// Opens the ears.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            signals: Signals::listen()?,
            notices: Notices::open(),
            job: None,
            scanner: None,
            pattern_told: false,
            child_changed: false,
            buffer: vec![0; 256 * 1024],
            look_at: Instant::now(),
        })
    }

    /// Watches a file or directory for changes.
    pub fn watch(&self, path: &Path) {
        self.notices.watch(path);
    }

    /// Puts a job under way. There is never a second one.
    pub fn begin(&mut self, key: Key, job: Job, scanner: Option<Scanner>) {
        debug_assert!(self.job.is_none(), "two jobs at once");
        self.job = Some((key, job));
        self.scanner = scanner;
        self.pattern_told = false;
        self.child_changed = true;
    }

    /// What is under way.
    pub fn under_way(&self) -> Option<Key> {
        self.job.as_ref().map(|(key, _)| *key)
    }

    /// How long the job has been silent.
    pub fn silent_for(&self) -> Option<Duration> {
        self.job.as_ref().map(|(_, job)| job.silent_for())
    }

    /// Ends what a program that was called in between, such as git with the agent's settings, has left.
    pub fn clear_strays(&mut self) {
        let begun = Instant::now();
        while self.job.is_none() && !tree::reap(|_, _| {}) && begun.elapsed() < STRAYS {
            tree::signal(&[], rustix::process::Signal::KILL);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends what is under way.
    pub fn stop(&mut self, hard: bool) {
        if let Some((_, job)) = &mut self.job {
            job.stop(hard);
        }
    }

    /// Waits until something happens or `until` has come. The agent's output goes to `output` at once.
    pub fn hear(&mut self, until: Option<Instant>, output: &mut dyn FnMut(&[u8])) -> Vec<Heard> {
        self.wait(until);
        let mut heard = Vec::new();
        for signal in self.signals.take() {
            match signal {
                signals::Heard::Child => self.child_changed = true,
                other => heard.push(Heard::Signal(other)),
            }
        }
        self.turn_job(&mut heard, output);
        if self.look_at <= Instant::now() {
            self.look_at = Instant::now() + LOOK_AGAIN;
            heard.push(Heard::Look);
        }
        heard
    }

    fn wait(&mut self, until: Option<Instant>) {
        let job = self.job.as_ref().map(|(_, job)| job);
        let next = [until, job.and_then(Job::next_turn), Some(self.look_at)].into_iter().flatten().min();
        let timeout = next.map(|at| Timespec::try_from(at.saturating_duration_since(Instant::now())));
        let timeout = timeout.and_then(Result::ok);
        let noticed = {
            let output = job.and_then(Job::fd);
            let fds = self.notices.fd().into_iter().chain(self.signals.fds()).chain(output);
            let mut fds: Vec<PollFd<'_>> =
                fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let _ = poll(&mut fds, timeout.as_ref());
            self.notices.fd().is_some() && !fds[0].revents().is_empty()
        };
        if noticed {
            self.notices.clear();
            self.look_at = Instant::now();
        }
    }

    fn turn_job(&mut self, heard: &mut Vec<Heard>, output: &mut dyn FnMut(&[u8])) {
        let Some((key, job)) = &mut self.job else { return };
        let key = *key;
        let mut empty = false;
        if self.child_changed || job.next_turn().is_some_and(|at| at <= Instant::now()) {
            self.child_changed = false;
            empty = tree::reap(|pid, exit| job.first_ended(pid, exit));
        }
        let scanner = &mut self.scanner;
        let mut matched = false;
        job.read(&mut self.buffer, &mut |bytes| {
            matched |= scanner.as_mut().is_some_and(|scanner| scanner.feed(bytes));
            if matches!(key, Key::Agent(_)) {
                output(bytes);
            }
        });
        if matched && !self.pattern_told {
            self.pattern_told = true;
            heard.push(Heard::Pattern(key));
        }
        heard.extend(job.take_log_error().map(Heard::LogError));
        if job.silent_at().is_some_and(|at| at <= Instant::now()) {
            job.silence_noted();
            heard.push(Heard::Silence(key));
        }
        if job.turn(empty) {
            let matched = self.scanner.take().is_some_and(|mut scanner| scanner.finish());
            let (key, job) = self.job.take().expect("it is there");
            heard.push(Heard::Gone(key, Box::new(job.bury()), matched));
        } else if empty {
            // The output is still open somewhere: come back when it has had its time.
            self.child_changed = true;
        }
    }
}
