//! How is an order carried out here? Processes, files that appear, signals: one world, one ear.
//!
//! Nothing in this room decides whether to retry, stop or succeed.

use crate::agent::decode::Reader;
use crate::agent::function::{Bell, Function, Invitation};
use crate::agent::pattern::Scanner;
use crate::agent::redact::Mask;
use crate::engine::Act;
use crate::engine::event::Wish;
use crate::os;
use crate::process::exemptions::Friends;
use crate::process::file_watcher::{Notices, When};
use crate::process::pty::Size;
use crate::process::signals::Signals;
use crate::runner::job::{Gone, Job, Launch, Piece, Terms};
use crate::runner::owner::Reach;
use crate::runner::poll_schedule::{Looks, Mood};
use crate::terminal::emulator::Told;
use crate::terminal::guard::Loan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
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
    Signal(crate::process::signals::Heard),
    /// The host program wants something.
    Asked(Wish),
    /// It is time to look at files: something appeared, or a second went by.
    Look,
    /// The agent's output matches the done pattern.
    Pattern(Key),
    /// The job has been silent for too long.
    Silence(Key),
    /// The agent's screen did not get ready for the prompt.
    Unready(Key),
    /// The agent said that all is over, and does not go.
    Lingering(Key),
    /// The agent's terminal takes no line as long as one of the prompt, in bytes.
    TooLong(usize),
    /// The job's output cannot be written down.
    LogError(io::Error),
    /// The job and everything below it are gone.
    Gone(Key, Box<Gone>, bool),
}

/// What an agent's output is read for.
pub struct Ears {
    /// What it does.
    pub reader: Reader,
    /// The done pattern.
    pub scanner: Option<Scanner>,
    /// Whether there was any event yet. What has none is plain text.
    pub spoke: bool,
}

/// The program that a runner is a part of, where that is not ralph's own.
pub struct Host {
    /// The loop's id, by which its processes are told from the host's.
    pub id: String,
    /// Rung by whoever has something to say.
    pub bell: Arc<Bell>,
    /// Who is left alone by every sweep.
    pub friends: Friends,
    /// What the host wants, oldest first.
    pub wishes: Arc<Mutex<Vec<Wish>>>,
    /// The agent, where it is no command.
    pub function: Option<Function>,
}

/// The world as one runner hears it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct World {
    signals: Option<Signals>,
    host: Option<Host>,
    reach: Reach,
    notices: Notices,
    job: Option<(Key, Job)>,
    ears: Option<Ears>,
    pattern_told: bool,
    child_changed: bool,
    buffer: Vec<u8>,
    looks: Looks,
    is_knocked_at: bool,
    /// Whether nothing is to be waited for.
    is_brief: bool,
    /// Whether an agent on a terminal gets the person's.
    lends: bool,
    loan: Option<Loan>,
    mask: Mask,
}

/// A file that was just made is given so long to be written.
const BEING_WRITTEN: Duration = Duration::from_millis(50);

/// Strays are waited for so long.
const STRAYS: Duration = Duration::from_secs(2);

impl World {
    /// Opens the ears in a process of ralph's own: signals are heard, and every child is a job's.
    pub fn open(friends: Friends) -> io::Result<Self> {
        Ok(Self::new(
            Some(Signals::listen()?),
            None,
            Reach::Everything { friends },
        ))
    }

    /// Opens the ears in somebody else's process: its signals, children and threads are left alone.
    pub fn inside(host: Host) -> Self {
        let reach = Reach::Own {
            id: host.id.clone(),
            friends: host.friends.clone(),
        };
        Self::new(None, Some(host), reach)
    }

    fn new(signals: Option<Signals>, host: Option<Host>, reach: Reach) -> Self {
        Self {
            signals,
            host,
            reach,
            notices: Notices::open(),
            job: None,
            ears: None,
            pattern_told: false,
            child_changed: false,
            buffer: vec![0; 256 * 1024],
            looks: Looks::new(),
            is_knocked_at: false,
            is_brief: false,
            lends: false,
            loan: None,
            mask: Mask::of_environment(),
        }
    }

    /// The secrets that nothing may show.
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// From now on an agent on a terminal gets the keys of the person who looks on, and a screen of that size.
    pub fn lend_terminal(&mut self) {
        self.lends = true;
    }

    /// Starts a process; [`World::begin`] puts it under way.
    pub fn start(&mut self, launch: Launch<'_>) -> io::Result<Job> {
        self.loan = if self.lends && launch.terminal.is_some() {
            Loan::take()
        } else {
            None
        };
        let size = self
            .loan
            .as_ref()
            .and_then(|_| Loan::size())
            .unwrap_or_else(Size::unseen);
        let job = Job::start(launch, &self.reach, size, self.loan.is_none(), &self.mask);
        if job.is_err() {
            self.loan = None;
        }
        job
    }

    /// Whether the agent is a function of the host program.
    pub fn has_function(&self) -> bool {
        self.host
            .as_ref()
            .is_some_and(|host| host.function.is_some())
    }

    /// Calls the agent's function.
    pub fn call(&self, invitation: Invitation, terms: Terms) -> io::Result<Job> {
        match self
            .host
            .as_ref()
            .and_then(|host| host.function.as_ref().zip(Some(&host.bell)))
        {
            Some((function, bell)) => Job::call(function, bell, invitation, terms),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no function")),
        }
    }

    /// Who is left alone by every sweep.
    pub fn friends(&self) -> &Friends {
        match &self.reach {
            Reach::Everything { friends } | Reach::Own { friends, .. } => friends,
        }
    }

    /// Watches a file or directory for changes.
    pub fn watch(&mut self, path: &Path) {
        if !self.is_brief {
            self.notices.watch(path);
        }
    }

    /// From now on nothing is watched: whoever is about to leave has no use for news, and the kernel takes its time to
    /// end a watch.
    pub fn is_brief(&mut self) {
        self.is_brief = true;
    }

    /// From now on whoever writes to this runner knocks as well: while it rests, nobody else has news for it.
    pub fn is_knocked_at(&mut self) {
        self.is_knocked_at = true;
    }

    /// Whether there may be news of which nobody tells.
    pub fn is_deaf(&self) -> bool {
        self.notices.is_deaf() || self.notices.are_none()
    }

    /// Everything that matters is about to be watched again.
    pub fn watch_anew(&mut self) {
        self.notices.renew();
    }

    /// Makes a turn look at files within this time, though nothing is noticed.
    pub fn look_within(&mut self, time: Duration) {
        self.looks.within(time);
    }

    /// Puts a job under way. There is never a second one.
    pub fn begin(&mut self, key: Key, job: Job, ears: Option<Ears>) {
        debug_assert!(self.job.is_none(), "two jobs at once");
        self.job = Some((key, job));
        self.ears = ears;
        self.pattern_told = false;
        self.child_changed = true;
        self.looks.stir();
    }

    /// What is under way.
    pub fn under_way(&self) -> Option<Key> {
        self.job.as_ref().map(|(key, _)| *key)
    }

    /// How long the job has been silent.
    pub fn silent_for(&self) -> Option<Duration> {
        self.job.as_ref().map(|(_, job)| job.silent_for())
    }

    /// Ends what a program that was called in between, such as git with the agent's settings, has left. In
    /// somebody else's process nobody can tell that from the host's own.
    pub fn clear_strays(&mut self) {
        let Reach::Everything { friends } = &self.reach else {
            return;
        };
        let begun = Instant::now();
        while self.job.is_none()
            && !crate::process::tree::reap(|_, _| {})
            && begun.elapsed() < STRAYS
        {
            let spared = friends.now();
            if crate::process::tree::descendants(&spared).is_empty() {
                return;
            }
            crate::process::tree::signal(&spared, rustix::process::Signal::KILL);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends what is under way.
    pub fn stop(&mut self, hard: bool) {
        if let Some((_, job)) = &mut self.job {
            job.stop(hard);
        }
    }

    /// What the host has asked for since the last time.
    pub fn wishes(&mut self) -> Vec<Wish> {
        let Some(host) = &self.host else {
            return Vec::new();
        };
        std::mem::take(&mut *host.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something happens or `until` has come. The agent's acts go to `tell` at once.
    pub fn hear(&mut self, until: Option<Instant>, tell: &mut dyn FnMut(Act<'_>)) -> Vec<Heard> {
        self.wait(until);
        let mut heard: Vec<Heard> = self.wishes().into_iter().map(Heard::Asked).collect();
        for signal in self.signals.as_mut().map(Signals::take).unwrap_or_default() {
            match signal {
                crate::process::signals::Heard::Child => self.child_changed = true,
                // Or somebody knocks, because there is something to read.
                crate::process::signals::Heard::Resized => {
                    self.fit();
                    self.looks.stir();
                    self.looks.within(Duration::ZERO);
                }
                other => heard.push(Heard::Signal(other)),
            }
        }
        self.pass_keys();
        self.turn_job(&mut heard, tell);
        let mood = match &self.job {
            _ if self.notices.is_deaf() => Mood::Deaf,
            None if self.is_knocked_at || !self.notices.are_none() => Mood::Rest,
            Some(_) if !self.notices.are_none() => Mood::Work,
            _ => Mood::Deaf,
        };
        if self.looks.take_due(mood) {
            heard.push(Heard::Look);
        }
        heard
    }

    /// Passes on what the person pressed.
    fn pass_keys(&mut self) {
        let Some((_, job)) = self.job.as_mut().filter(|_| self.loan.is_some()) else {
            return;
        };
        match Loan::read(&mut self.buffer) {
            Some(keys) => job.press(keys),
            None => self.loan = None,
        }
    }

    /// Makes the agent's screen as large as the person's.
    fn fit(&mut self) {
        if let Some(((_, job), size)) = self
            .job
            .as_mut()
            .zip(self.loan.as_ref().and_then(|_| Loan::size()))
        {
            job.resize(size);
        }
    }

    fn wait(&mut self, until: Option<Instant>) {
        // Once a look: whatever is heard in between needs it again at once.
        if self.looks.take_quiet() && self.host.is_none() {
            os::memory::let_go_of_code();
        }
        let keys_wait = self.job.as_mut().is_some_and(|(_, job)| job.has_keys());
        let job = self.job.as_ref().map(|(_, job)| job);
        let next = [until, job.and_then(Job::next_turn), Some(self.looks.at())]
            .into_iter()
            .flatten()
            .min();
        let timeout =
            next.map(|at| Timespec::try_from(at.saturating_duration_since(Instant::now())));
        let timeout = timeout.and_then(Result::ok);
        let noticed = {
            let host = self.host.as_ref().map(|host| host.bell.fd());
            let fds = self.notices.fd().into_iter();
            let fds = fds
                .chain(self.signals.iter().flat_map(Signals::fds))
                .chain(host);
            let fds = fds.chain(self.loan.as_ref().map(|_| Loan::fd()));
            let fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            // The first of a job's is its output, which is also where keys go in.
            let mut flags = if keys_wait {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            let of_job = job.into_iter().flat_map(Job::fds);
            let of_job = of_job.map(|fd| {
                PollFd::from_borrowed_fd(fd, std::mem::replace(&mut flags, PollFlags::IN))
            });
            let mut fds: Vec<PollFd<'_>> = fds.chain(of_job).collect();
            let _ = poll(&mut fds, timeout.as_ref());
            self.notices.fd().is_some() && !fds[0].revents().is_empty()
        };
        if let Some(when) = noticed.then(|| self.notices.take()).flatten() {
            self.looks.stir();
            self.looks.within(if when == When::Now {
                Duration::ZERO
            } else {
                BEING_WRITTEN
            });
        }
        if let Some(host) = &self.host {
            host.bell.clear();
            // Nobody tells of its child but the child itself.
            self.child_changed |= self.job.as_ref().is_some_and(|(_, job)| !job.has_ended());
        }
    }

    fn turn_job(&mut self, heard: &mut Vec<Heard>, tell: &mut dyn FnMut(Act<'_>)) {
        let Some((key, job)) = &mut self.job else {
            return;
        };
        let key = *key;
        let mut matched = false;
        let ears = &mut self.ears;
        let told = self.pattern_told;
        // What the stream of an agent says of its progress: nothing, or that it got on, and whether all is over.
        let mut got_on = None;
        let mut take = |piece: Piece<'_>| {
            let Some(Ears {
                reader,
                scanner,
                spoke,
            }) = ears
            else {
                return;
            };
            let mut scanner = scanner.as_mut().filter(|_| !told);
            let mut scan = |bytes: &[u8]| {
                if let Some(scanner) = &mut scanner {
                    scanner.feed(bytes, &mut |_| matched = true);
                }
            };
            // Where the final words are told from the rest, the pattern is looked for in them alone.
            let structured = matches!(reader, Reader::Stream(_));
            let mut hear = |act: Act<'_>| {
                *spoke |= act.is_event();
                match &act {
                    Act::Said(text) if !structured => scan(text.as_bytes()),
                    Act::Finished(line) if structured => {
                        scan(line.as_bytes());
                        scan(b"\n");
                    }
                    Act::Noise(line) if !*spoke => {
                        scan(line.as_bytes());
                        scan(b"\n");
                    }
                    _ => {}
                }
                if act.is_progress() {
                    got_on = Some(act == Act::Over);
                }
                if act.is_news() {
                    tell(act);
                }
            };
            match (piece, reader) {
                (Piece::Act(act), _) => hear(act),
                (Piece::Bytes(bytes), reader @ Reader::Stream(_)) => reader.feed(bytes, &mut hear),
                (Piece::Bytes(bytes), reader) => {
                    scan(bytes);
                    reader.feed(bytes, tell);
                }
            }
        };
        job.read_notes(&mut take);
        let mut empty = false;
        if self.child_changed || job.is_due() {
            self.child_changed = false;
            empty = job.look();
        }
        // After the look: what was printed before the end is there by now.
        job.read(&mut self.buffer, &mut take);
        if let Some((over, ears)) = got_on.zip(self.ears.as_ref()) {
            job.got_on(ears.reader.is_busy(), over);
        }
        if matched && !self.pattern_told {
            self.pattern_told = true;
            heard.push(Heard::Pattern(key));
        }
        match job.turn_terminal() {
            Some(Told::Unready) => heard.push(Heard::Unready(key)),
            Some(Told::TooLong(bytes)) => heard.push(Heard::TooLong(bytes)),
            Some(Told::Pattern) => heard.push(Heard::Pattern(key)),
            None => {}
        }
        heard.extend(job.take_log_error().map(Heard::LogError));
        if job.silent_at().is_some_and(|at| at <= Instant::now()) {
            job.silence_noted();
            heard.push(Heard::Silence(key));
        }
        if job.lingers_at().is_some_and(|at| at <= Instant::now()) {
            job.lingering_noted();
            heard.push(Heard::Lingering(key));
        }
        if job.turn(empty) {
            let mut matched = self.pattern_told;
            if let Some(Ears {
                mut reader,
                mut scanner,
                ..
            }) = self.ears.take()
            {
                let structured = matches!(reader, Reader::Stream(_));
                reader.finish(&mut |act| {
                    // The last line of a stream may have no end.
                    if let (Act::Finished(words), Some(scanner), true) =
                        (&act, &mut scanner, structured)
                    {
                        scanner.feed(words.as_bytes(), &mut |_| matched = true);
                    }
                    tell(act);
                });
                if let Some(scanner) = scanner.as_mut().filter(|_| !matched) {
                    scanner.finish(&mut |_| matched = true);
                }
            }
            self.loan = None;
            self.looks.stir();
            let (key, job) = self.job.take().expect("it is there");
            let gone = job.bury();
            matched |= gone.matched;
            heard.push(Heard::Gone(key, Box::new(gone), matched));
        } else if empty {
            // The output is still open somewhere: come back when it has had its time.
            self.child_changed = true;
        }
    }
}

impl Drop for World {
    /// A host's observer may panic in the middle of an iteration: its agent must not live on without a runner.
    fn drop(&mut self) {
        if self.host.is_some() {
            self.stop(true);
            while self.job.is_some() {
                self.hear(None, &mut |_| {});
            }
        }
    }
}
