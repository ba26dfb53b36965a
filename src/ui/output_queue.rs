//! Writes to standard output without ever stalling the loop.
//!
//! Output that can be written without blocking is written immediately. A thread writes the rest: a terminal
//! can stop reading for hours (Ctrl-S, a suspended connection), and so can the reader of a pipe. If the
//! reader has stalled, output is skipped and a note says how much; the logs contain all of it. A reader that
//! is merely slow gets every byte, and JSON events are never skipped.

use crate::engine::format;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::io::{self, IoSlice, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The kind of data on standard output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OutputKind {
    /// Text on a terminal.
    Terminal,
    /// Text to a file or a pipe.
    Pipe,
    /// JSON events, none of which may be skipped.
    Events,
}

/// Standard output with a queue in front of it.
pub(super) struct OutputQueue {
    kind: OutputKind,
    /// A second descriptor for standard output, for writes that do not block. `None` before the
    /// first write, and if standard output cannot be reopened.
    nonblocking: Option<OwnedFd>,
    /// The writer thread. Started only when output has to wait, because a single-threaded process
    /// forks faster.
    thread: Option<WriterThread>,
    /// Whether anything has been written.
    has_started: bool,
    /// Whether to write without the thread, because a regular file never blocks for long.
    direct: bool,
    /// Whether the reader of standard output has closed it.
    closed: bool,
}

/// A thread that writes, and the bytes that are pending for it.
struct WriterThread {
    kind: OutputKind,
    queue: Arc<Queue>,
    /// The number of bytes skipped since the last write.
    skipped: usize,
    /// The number of pending bytes when the reader stalled. `None` while the reader is reading.
    stalled_at: Option<usize>,
}

/// The bytes that are pending for the thread.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// Bytes that the thread has not taken yet.
    waiting: Vec<u8>,
    /// The number of bytes that the thread has taken but not written yet.
    taken: usize,
    /// Whether all output has been queued.
    is_closing: bool,
    /// Whether the thread has ended, because everything was written or the output was closed.
    has_ended: bool,
}

/// The maximum number of pending bytes, for a terminal and for a pipe.
const MAX_PENDING_TERMINAL: usize = 1 << 20;
const MAX_PENDING_PIPE: usize = 4 << 20;
/// The time after which a pipe whose reader takes nothing counts as stalled.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum size of one blocking write, in bytes. A slow reader's progress is visible only
/// between writes.
const MAX_BLOCKING_WRITE: usize = 16 * 1024;
/// The maximum capacity, in bytes, that an empty buffer keeps.
const KEPT_CAPACITY: usize = 1 << 20;

impl OutputQueue {
    pub(super) fn new(kind: OutputKind) -> Self {
        Self {
            kind,
            nonblocking: None,
            thread: None,
            has_started: false,
            direct: false,
            closed: false,
        }
    }

    /// Makes the queue write without a thread if standard output is a regular file. Suitable for
    /// consoles that print little.
    pub(super) fn for_little_output(self) -> Self {
        Self {
            direct: file_type() == Some(FileType::RegularFile),
            ..self
        }
    }

    /// Returns whether the reader of standard output has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes the sequence that erases the old live rows, then `text`, then the new live rows.
    /// Returns true if everything was written or queued, and false if it was skipped.
    pub(super) fn write(&mut self, erase: &str, text: &[u8], live: &str) -> bool {
        if self.closed || (erase.is_empty() && text.is_empty() && live.is_empty()) {
            return false;
        }
        let written = if self.direct {
            [erase.as_bytes(), text, live.as_bytes()]
                .into_iter()
                .try_for_each(write_all)
                .map(|()| true)
        } else {
            self.write_or_queue(erase, text, live)
        };
        // A closed standard output must not end the loop.
        self.closed = written.is_err();
        written.unwrap_or(false)
    }

    /// Writes what standard output accepts now, and queues the rest for the thread.
    fn write_or_queue(&mut self, erase: &str, text: &[u8], live: &str) -> io::Result<bool> {
        if !std::mem::replace(&mut self.has_started, true) {
            self.nonblocking = reopen_nonblocking();
        }
        let mut rest = [erase.as_bytes(), text, live.as_bytes()];
        if let Some(fd) = &self.nonblocking
            && self.thread.as_ref().is_none_or(WriterThread::is_idle)
        {
            write_now(fd, &mut rest)?;
            if rest.iter().all(|part| part.is_empty()) {
                return Ok(true);
            }
            self.thread().push(&rest)?;
            return Ok(true);
        }
        self.thread().write(erase, text, live)
    }

    fn thread(&mut self) -> &mut WriterThread {
        self.thread.get_or_insert_with(|| {
            // A terminal can report that it is ready and still accept nothing.
            let pipe = self.nonblocking.as_ref();
            let pipe = pipe.filter(|_| self.kind != OutputKind::Terminal);
            let pipe = pipe.and_then(|fd| fd.try_clone().ok());
            WriterThread::new(self.kind, move |bytes| match &pipe {
                Some(pipe) => write_some(pipe, bytes),
                None => write_some(stdout(), &bytes[..bytes.len().min(MAX_BLOCKING_WRITE)]),
            })
        })
    }

    /// Waits until everything is written.
    pub(super) fn close(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.close();
        }
    }
}

impl WriterThread {
    /// Starts the thread. `write` blocks until it has written at least one byte, and returns the
    /// number of bytes written.
    fn new(
        kind: OutputKind,
        write: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static,
    ) -> Self {
        let queue = Arc::new(Queue::default());
        let shared = queue.clone();
        std::thread::spawn(move || shared.write_all(write));
        Self {
            kind,
            queue,
            skipped: 0,
            stalled_at: None,
        }
    }

    /// Returns whether everything is written and nothing was skipped. Output may then bypass the
    /// thread.
    fn is_idle(&self) -> bool {
        self.skipped == 0 && self.queue.lock().pending() == 0
    }

    fn write(&mut self, erase: &str, text: &[u8], live: &str) -> io::Result<bool> {
        let only_live = text.is_empty() && !live.is_empty();
        // Do not queue live rows behind other output: they would be outdated.
        let late = only_live && self.queue.lock().pending() > 0;
        if late || (self.kind != OutputKind::Events && !self.has_room(text.len())) {
            self.skipped += text.len();
            return Ok(false);
        }
        let note = self.skip_note();
        self.push(&[erase.as_bytes(), note.as_bytes(), text, live.as_bytes()])?;
        self.skipped = 0;
        Ok(true)
    }

    /// Returns whether `len` more bytes may be queued. Waits for the reader of a pipe while it
    /// makes progress. After a stall, does not wait again until the reader has read something.
    fn has_room(&mut self, len: usize) -> bool {
        let (limit, timeout) = match self.kind {
            OutputKind::Terminal => (MAX_PENDING_TERMINAL, Duration::ZERO),
            _ => (MAX_PENDING_PIPE, STALL_TIMEOUT),
        };
        let (mut least, mut since) = (usize::MAX, Instant::now());
        let mut state = self.queue.lock();
        loop {
            let pending = state.pending();
            if pending == 0 || pending + len <= limit || state.has_ended {
                self.stalled_at = None;
                return true;
            }
            if self.stalled_at.is_some_and(|at| pending >= at) {
                return false;
            }
            if pending < least {
                (least, since) = (pending, Instant::now());
            }
            let Some(left) = timeout.checked_sub(since.elapsed()) else {
                self.stalled_at = Some(pending);
                return false;
            };
            state = self
                .queue
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn push(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut state = self.queue.lock();
        if state.has_ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let was_empty = state.waiting.is_empty();
        for part in parts {
            state.waiting.extend_from_slice(part);
        }
        if was_empty {
            self.queue.changed.notify_all();
        }
        Ok(())
    }

    fn skip_note(&self) -> String {
        match self.skipped {
            0 => String::new(),
            skipped => format!(
                "[ralph: {} not shown; run `ralph logs` to see it]\n",
                format::bytes(skipped as u64)
            ),
        }
    }

    fn close(self) {
        let _ = self.push(&[self.skip_note().as_bytes()]);
        let mut state = self.queue.lock();
        state.is_closing = true;
        self.queue.changed.notify_all();
        drop(self.queue.wait_while(state, |state| !state.has_ended));
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        condition: impl FnMut(&mut QueueState) -> bool,
    ) -> MutexGuard<'a, QueueState> {
        self.changed
            .wait_while(state, condition)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes queued bytes until the queue is closed and empty, or a write fails.
    fn write_all(&self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) {
        let mut batch = Vec::new();
        loop {
            let state = self.lock();
            let mut state =
                self.wait_while(state, |state| state.waiting.is_empty() && !state.is_closing);
            std::mem::swap(&mut state.waiting, &mut batch);
            state.taken = batch.len();
            drop(state);
            let mut rest = &batch[..];
            while !rest.is_empty()
                && let Ok(count @ 1..) = write(rest)
            {
                rest = &rest[count..];
                self.lock().taken = rest.len();
                self.changed.notify_all();
            }
            if batch.is_empty() || !rest.is_empty() {
                break;
            }
            batch.clear();
            batch.shrink_to(KEPT_CAPACITY);
        }
        self.lock().has_ended = true;
        self.changed.notify_all();
    }
}

impl QueueState {
    /// Returns the number of bytes that are not written yet.
    fn pending(&self) -> usize {
        self.waiting.len() + self.taken
    }
}

/// Returns the type of the file behind standard output.
fn file_type() -> Option<FileType> {
    let data = rustix::fs::fstat(stdout()).ok()?;
    Some(FileType::from_raw_mode(data.st_mode))
}

/// Opens the terminal or pipe on standard output again, for writes that do not block. Making
/// standard output itself nonblocking would affect every program that shares it.
fn reopen_nonblocking() -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    let can_reopen = cfg!(target_os = "linux")
        && matches!(file_type()?, FileType::Fifo | FileType::CharacterDevice);
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    can_reopen
        .then(|| open("/proc/self/fd/1", flags, Mode::empty()).ok())
        .flatten()
}

/// Writes as much as possible without blocking, and leaves the rest in `parts`.
fn write_now(fd: &OwnedFd, parts: &mut [&[u8]; 3]) -> io::Result<()> {
    while parts.iter().any(|part| !part.is_empty()) {
        let count = match rustix::io::writev(fd, &parts.map(IoSlice::new)) {
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        };
        let mut written = count;
        for part in &mut *parts {
            let (done, rest) = part.split_at(written.min(part.len()));
            written -= done.len();
            *part = rest;
        }
    }
    Ok(())
}

/// Blocks until at least one byte is written. Returns the number of bytes written.
fn write_some(out: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::io::write(&out, bytes) {
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&out, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes all bytes to standard output. Blocks until they are written.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[write_some(stdout(), bytes)?..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A terminal that can be suspended: whether it is suspended, the bytes it has read, and a
    /// condition variable that `release` signals.
    type SharedTerminal = Arc<(Mutex<(bool, Vec<u8>)>, Condvar)>;

    fn terminal(held: bool) -> (WriterThread, SharedTerminal) {
        let screen: SharedTerminal = Arc::new((Mutex::new((held, Vec::new())), Condvar::new()));
        let sink = screen.clone();
        let terminal = WriterThread::new(OutputKind::Terminal, move |bytes| {
            let guard = sink.1.wait_while(sink.0.lock().unwrap(), |(held, _)| *held);
            guard.unwrap().1.extend_from_slice(bytes);
            Ok(bytes.len())
        });
        (terminal, screen)
    }

    fn release(screen: &SharedTerminal) {
        screen.0.lock().unwrap().0 = false;
        screen.1.notify_all();
    }

    fn seen(screen: &SharedTerminal) -> String {
        String::from_utf8(screen.0.lock().unwrap().1.clone()).unwrap()
    }

    #[test]
    fn a_suspended_terminal_gets_what_fits_and_a_note_about_the_rest() {
        let (mut terminal, screen) = terminal(true);
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        let taken = (0..2000)
            .filter(|_| terminal.write("", &line, "").unwrap())
            .count();
        assert_eq!(taken, 1024);
        assert!(
            !terminal.write("", b"", "live").unwrap(),
            "a live line is not queued"
        );
        release(&screen);
        while terminal.queue.lock().pending() > 0 {
            std::thread::yield_now();
        }
        assert!(terminal.write("erase ", b"after\n", "live").unwrap());
        terminal.close();
        let seen = seen(&screen);
        let (lines, rest) = seen.split_at(1024 * 1024);
        assert!(lines.lines().all(|line| line.len() == 1023));
        assert_eq!(
            rest,
            "erase [ralph: 976 KiB not shown; run `ralph logs` to see it]\nafter\nlive"
        );
    }

    #[test]
    fn output_skipped_at_the_end_is_noted_too() {
        let (mut terminal, screen) = terminal(true);
        assert!(
            terminal
                .write("", &vec![b'x'; 2 * MAX_PENDING_TERMINAL], "")
                .unwrap(),
            "a single piece may have any length"
        );
        assert!(!terminal.write("", b"lost\n", "").unwrap());
        let closing = std::thread::spawn(|| terminal.close());
        release(&screen);
        closing.join().unwrap();
        assert!(
            seen(&screen).ends_with("x[ralph: 5 bytes not shown; run `ralph logs` to see it]\n")
        );
    }

    #[test]
    fn what_a_full_pipe_does_not_take_is_left() {
        let (mut reader, writer) = io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let text: Vec<u8> = (0..1 << 20).map(|n| b'a' + (n % 23) as u8).collect();
        let mut parts = [&b"erase"[..], &text, b"live"];
        write_now(&writer, &mut parts).unwrap();
        assert!(parts[0].is_empty() && parts[2] == b"live");
        let mut taken = vec![0; 5 + text.len() - parts[1].len()];
        assert!(taken.len() > 5);
        reader.read_exact(&mut taken).unwrap();
        assert_eq!(
            [&taken[..], parts[1]].concat(),
            [b"erase", &text[..]].concat()
        );
        drop(reader);
        let error = write_now(&writer, &mut parts).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_closed_terminal_is_detected() {
        let mut terminal = WriterThread::new(OutputKind::Terminal, |_| {
            Err(io::ErrorKind::BrokenPipe.into())
        });
        while terminal.write("", b"text\n", "").is_ok() {
            std::thread::yield_now();
        }
        terminal.close();
    }
}
