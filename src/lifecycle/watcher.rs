//! Waits until a loop's files change, or until the loop is no longer running.

use super::session;
use crate::process::file_watcher::FileWatcher;
use crate::store::{LoopDir, cache, is_starting, wait_until_loop_is_free};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The stack size, in bytes, of a thread that waits and then reads a loop's state.
pub(crate) const THREAD_STACK_SIZE: usize = 512 * 1024;
/// The interval between checks whether a client process has exited.
const CLIENT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often to check whether a runner has started.
const START_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How often to wake up where files cannot be watched.
const FALLBACK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until neither a runner nor a session is working on the loop, and no runner is starting.
pub(crate) fn wait_until_over(dir: &LoopDir) {
    let mut watcher = None;
    loop {
        // Check the mark first: when it is removed, the runner already holds the lock.
        let starting = is_starting(dir);
        wait_until_loop_is_free(dir);
        if starting {
            std::thread::sleep(START_POLL_INTERVAL);
            continue;
        }
        if !cache::read(dir).is_ok_and(|view| session::is_active(&view.state)) {
            return;
        }
        let watcher = watcher.get_or_insert_with(FileWatcher::open);
        watcher.watch(&dir.journal());
        watcher.wait(CLIENT_POLL_INTERVAL);
    }
}

/// Watches one loop. A thread waits for the loop's lock, so the process must not fork.
pub(crate) struct LoopWatcher {
    /// The file watcher. It is opened on first use, because closing it is slow.
    files: Option<FileWatcher>,
    /// A socket whose other end is closed by the thread when the loop is over.
    over: UnixStream,
}

impl LoopWatcher {
    /// Starts to watch the loop's runner or session, to notice when it ends.
    pub(crate) fn new(dir: &LoopDir) -> io::Result<Self> {
        let (over, other_end) = UnixStream::pair()?;
        let dir = dir.clone();
        let wait = move || {
            wait_until_over(&dir);
            drop(other_end);
        };
        std::thread::Builder::new()
            .stack_size(THREAD_STACK_SIZE)
            .spawn(wait)?;
        Ok(Self { files: None, over })
    }

    /// Sets the files to watch. Call this again when a missing file may have appeared.
    pub(crate) fn watch(&mut self, paths: &[PathBuf]) {
        let files = self.files.get_or_insert_with(FileWatcher::open);
        files.reset();
        for path in paths {
            files.watch(path);
        }
    }

    /// Returns whether the loop is over. If it is, everything that its runner wrote is on disk.
    pub(crate) fn is_over(&mut self) -> bool {
        self.poll(Duration::ZERO)
    }

    /// Waits until a file changes, the loop ends or time is up. Returns whether the loop is over.
    pub(crate) fn wait(&mut self, timeout: Duration) -> bool {
        let can_watch = self
            .files
            .as_ref()
            .is_some_and(|files| !files.is_unavailable() && !files.may_miss_changes());
        self.poll(if can_watch {
            timeout
        } else {
            timeout.min(FALLBACK_POLL_INTERVAL)
        })
    }

    /// Waits until the loop ends or time is up. Returns whether the loop is over.
    pub(crate) fn wait_for_end(&mut self, timeout: Duration) -> bool {
        self.poll(timeout)
    }

    fn poll(&mut self, timeout: Duration) -> bool {
        let mut fds = vec![PollFd::from_borrowed_fd(self.over.as_fd(), PollFlags::IN)];
        fds.extend(
            self.files
                .as_ref()
                .and_then(FileWatcher::fd)
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        let _ = poll(&mut fds, Timespec::try_from(timeout).ok().as_ref());
        let is_over = !fds[0].revents().is_empty();
        drop(fds);
        if let Some(files) = &mut self.files {
            files.drain();
        }
        is_over
    }
}

/// Why [`WakingWatcher::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// Another thread called [`ThreadWaker::wake`].
    Woken,
    FilesChanged,
    TimedOut,
}

/// Wakes a thread that waits. Clones wake the same thread.
pub(crate) struct ThreadWaker(UnixStream);

impl ThreadWaker {
    /// Returns a waker, and the socket that becomes readable when it is used.
    pub(crate) fn new() -> io::Result<(UnixStream, Self)> {
        let (woken, waker) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        Ok((woken, Self(waker)))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Wakes the thread. A full socket is readable already.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.0, &[0]);
    }
}

/// Empties the socket of a waker. Returns whether it was used since the last call.
pub(crate) fn was_woken(woken: &UnixStream) -> bool {
    let (mut buffer, mut any) = ([0; 64], false);
    while let Ok(1..) = rustix::io::read(woken, &mut buffer) {
        any = true;
    }
    any
}

/// Waits until one of many files changes, or until another thread wakes this one.
pub(crate) struct WakingWatcher {
    files: FileWatcher,
    woken: UnixStream,
}

impl WakingWatcher {
    pub(crate) fn new() -> io::Result<(Self, ThreadWaker)> {
        let (woken, waker) = ThreadWaker::new()?;
        let files = FileWatcher::open();
        Ok((Self { files, woken }, waker))
    }

    /// Sets the files to watch.
    pub(crate) fn watch(&mut self, paths: &[PathBuf]) {
        self.files.reset();
        for path in paths {
            self.files.watch(path);
        }
    }

    pub(crate) fn wait(&mut self, timeout: Duration) -> WakeReason {
        let mut fds = vec![PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN)];
        let files = self.files.fd();
        fds.extend(files.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let _ = poll(&mut fds, Timespec::try_from(timeout).ok().as_ref());
        drop(fds);
        let is_changed = self.files.drain().is_some();
        match was_woken(&self.woken) {
            true => WakeReason::Woken,
            false if is_changed => WakeReason::FilesChanged,
            false => WakeReason::TimedOut,
        }
    }

    /// Waits until another thread wakes this one, or until time is up.
    pub(crate) fn wait_for_waker(&mut self, timeout: Duration) {
        let mut fds = [PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, Timespec::try_from(timeout).ok().as_ref());
        was_woken(&self.woken);
    }
}
