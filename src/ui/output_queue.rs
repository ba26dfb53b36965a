//! Writes to standard output without ever stalling the loop.
//!
//! A terminal can stop reading for hours (Ctrl-S, a suspended connection), and so can the reader of
//! a pipe. Output that such a reader does not take is skipped, and a note says so; the logs contain
//! all of it. A reader that is merely slow gets every byte, and JSON events are never skipped.

use crate::engine::format;
use rustix::fs::FileType;
use std::io::{self, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// What standard output is used for.
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
    /// Started with the first output: a process without further threads forks faster.
    thread: Option<WriterThread>,
    /// Whether to write without the thread: a regular file never blocks for long.
    direct: bool,
    closed: bool,
}

/// A thread that writes, and the bytes that wait for it.
struct WriterThread {
    kind: OutputKind,
    pieces: Sender<Vec<u8>>,
    /// The number of bytes that are not written yet.
    pending: Arc<AtomicUsize>,
    finished: Receiver<()>,
    /// The number of bytes skipped since the last write.
    skipped: usize,
    /// The number of pending bytes when the reader last stalled.
    stalled_at: Option<usize>,
}

/// How many bytes may be pending for a terminal and for a pipe.
const MAX_PENDING_TERMINAL: usize = 1 << 20;
const MAX_PENDING_PIPE: usize = 4 << 20;
/// A pipe whose reader takes nothing for this long has stalled.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);

impl OutputQueue {
    pub(super) fn new(kind: OutputKind) -> Self {
        Self {
            kind,
            thread: None,
            direct: false,
            closed: false,
        }
    }

    /// For little output: writes to a regular file without a thread.
    pub(super) fn for_little_output(self) -> Self {
        let file_type =
            rustix::fs::fstat(stdout()).map(|data| FileType::from_raw_mode(data.st_mode));
        Self {
            direct: file_type == Ok(FileType::RegularFile),
            ..self
        }
    }

    /// Whether the reader is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes the sequence that erases the old live rows, then a text, then the new live rows.
    /// Returns whether it was written and not skipped.
    pub(super) fn write(&mut self, erase: &str, text: &[u8], live: &str) -> bool {
        if self.closed || (erase.is_empty() && text.is_empty() && live.is_empty()) {
            return false;
        }
        let written = if self.direct {
            write_out(&[erase.as_bytes(), text, live.as_bytes()].concat()).map(|()| true)
        } else {
            let thread = self
                .thread
                .get_or_insert_with(|| WriterThread::new(self.kind, write_out));
            thread.write(erase, text, live)
        };
        // A closed standard output must not end the loop.
        self.closed = written.is_err();
        written.unwrap_or(false)
    }

    /// Waits until everything is written.
    pub(super) fn close(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.close();
        }
    }
}

impl WriterThread {
    fn new(
        kind: OutputKind,
        mut write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let (pieces, queue) = channel::<Vec<u8>>();
        let (finish, finished) = channel();
        let pending = Arc::new(AtomicUsize::new(0));
        let unwritten = pending.clone();
        std::thread::spawn(move || {
            for piece in queue {
                if write(&piece).is_err() {
                    break;
                }
                unwritten.fetch_sub(piece.len(), Relaxed);
            }
            let _ = finish.send(());
        });
        Self {
            kind,
            pieces,
            pending,
            finished,
            skipped: 0,
            stalled_at: None,
        }
    }

    fn write(&mut self, erase: &str, text: &[u8], live: &str) -> io::Result<bool> {
        let only_live = text.is_empty() && !live.is_empty();
        // Do not queue live rows behind other output: they would be outdated.
        let late = only_live && self.pending.load(Relaxed) > 0;
        if late || (self.kind != OutputKind::Events && !self.has_room(text.len())) {
            self.skipped += text.len();
            return Ok(false);
        }
        let note = self.skip_note();
        self.send([erase.as_bytes(), note.as_bytes(), text, live.as_bytes()].concat())?;
        self.skipped = 0;
        Ok(true)
    }

    /// Whether `len` more bytes may be queued. Waits for a slow pipe. One that has stalled is not
    /// waited for again until it reads something.
    fn has_room(&mut self, len: usize) -> bool {
        let (limit, timeout) = match self.kind {
            OutputKind::Terminal => (MAX_PENDING_TERMINAL, Duration::ZERO),
            _ => (MAX_PENDING_PIPE, STALL_TIMEOUT),
        };
        let (mut least, mut since) = (usize::MAX, Instant::now());
        loop {
            let pending = self.pending.load(Relaxed);
            if pending == 0 || pending + len <= limit {
                self.stalled_at = None;
                return true;
            }
            if self.stalled_at.is_some_and(|at| pending >= at) {
                return false;
            }
            if pending < least {
                (least, since) = (pending, Instant::now());
            }
            if since.elapsed() >= timeout {
                self.stalled_at = Some(pending);
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send(&self, piece: Vec<u8>) -> io::Result<()> {
        self.pending.fetch_add(piece.len(), Relaxed);
        self.pieces
            .send(piece)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn skip_note(&self) -> String {
        match self.skipped {
            0 => String::new(),
            skipped => format!(
                "[ralph: {} not shown; see ralph logs]\n",
                format::bytes(skipped as u64)
            ),
        }
    }

    fn close(self) {
        let _ = self.send(self.skip_note().into_bytes());
        drop(self.pieces);
        let _ = self.finished.recv();
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// A terminal that can be suspended: whether it is, what it has read, and a signal to resume.
    type SharedTerminal = Arc<(Mutex<(bool, Vec<u8>)>, Condvar)>;

    fn terminal(held: bool) -> (WriterThread, SharedTerminal) {
        let screen: SharedTerminal = Arc::new((Mutex::new((held, Vec::new())), Condvar::new()));
        let sink = screen.clone();
        let terminal = WriterThread::new(OutputKind::Terminal, move |bytes| {
            let guard = sink.1.wait_while(sink.0.lock().unwrap(), |(held, _)| *held);
            guard.unwrap().1.extend_from_slice(bytes);
            Ok(())
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
        while terminal.pending.load(Relaxed) > 0 {
            std::thread::yield_now();
        }
        assert!(terminal.write("erase ", b"after\n", "live").unwrap());
        terminal.close();
        let seen = seen(&screen);
        let (lines, rest) = seen.split_at(1024 * 1024);
        assert!(lines.lines().all(|line| line.len() == 1023));
        assert_eq!(
            rest,
            "erase [ralph: 976 KiB not shown; see ralph logs]\nafter\nlive"
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
        assert!(seen(&screen).ends_with("x[ralph: 5 bytes not shown; see ralph logs]\n"));
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
