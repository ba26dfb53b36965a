//! Writing to standard output without ever stalling the loop.
//!
//! A terminal may stop taking words for hours (Ctrl-S, a sleeping connection), and so may whoever reads a
//! pipe. What such a reader cannot take is left out, and said; the logs have all of it. A reader that is
//! merely slow gets every byte, at its own pace, and events always wait for theirs.

use crate::engine::format;
use rustix::fs::FileType;
use std::io::{self, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reader {
    /// A person at a terminal.
    Terminal,
    /// A file, or a program behind a pipe.
    Pipe,
    /// A program that needs every event.
    Events,
}

/// A hand that writes.
pub struct Pen {
    reader: Reader,
    /// Made with the first words: whoever says nothing needs no thread, and forks faster.
    queue: Option<Queue>,
    /// Whether the words are few, and it is a file that takes them: that makes nobody wait.
    direct: bool,
    broken: bool,
}

/// What waits for the reader, and the thread that hands it over.
struct Queue {
    reader: Reader,
    pieces: Sender<Vec<u8>>,
    /// Bytes that the reader has not taken yet.
    waiting: Arc<AtomicUsize>,
    closed: Receiver<()>,
    /// Bytes that it never will.
    skipped: usize,
    /// How much waited when the reader was last given up.
    stalled_at: Option<usize>,
}

/// So many bytes may wait for a terminal, and for a pipe.
const WAITING: usize = 1 << 20;
const WAITING_IN_PIPE: usize = 4 << 20;
/// A pipe that takes nothing for so long is not waited for.
const STALLED: Duration = Duration::from_secs(1);

impl Pen {
    /// For this reader.
    pub fn new(reader: Reader) -> Self {
        Self {
            reader,
            queue: None,
            direct: false,
            broken: false,
        }
    }

    /// For few words: into a file they go at once, without a thread that hands them over.
    pub fn for_few_words(self) -> Self {
        let kind = rustix::fs::fstat(stdout()).map(|data| FileType::from_raw_mode(data.st_mode));
        Self {
            direct: kind == Ok(FileType::RegularFile),
            ..self
        }
    }

    /// Whether nobody reads any more.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes a text between what takes the old live rows away and the new ones; says whether it did.
    pub fn write(&mut self, erase: &str, text: &[u8], live: &str) -> bool {
        if self.broken || (erase.is_empty() && text.is_empty() && live.is_empty()) {
            return false;
        }
        let written = if self.direct {
            put(&[erase.as_bytes(), text, live.as_bytes()].concat()).map(|()| true)
        } else {
            let queue = self
                .queue
                .get_or_insert_with(|| Queue::new(self.reader, put));
            queue.write(erase, text, live)
        };
        // A reader that went away must not take the loop with it.
        self.broken = written.is_err();
        written.unwrap_or(false)
    }

    /// Waits until the last words are taken.
    pub fn close(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.close();
        }
    }
}

impl Queue {
    fn new(reader: Reader, mut put: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static) -> Self {
        let (pieces, queue) = channel::<Vec<u8>>();
        let (closing, closed) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = waiting.clone();
        std::thread::spawn(move || {
            for piece in queue {
                if put(&piece).is_err() {
                    break;
                }
                taken.fetch_sub(piece.len(), Relaxed);
            }
            let _ = closing.send(());
        });
        Self {
            reader,
            pieces,
            waiting,
            closed,
            skipped: 0,
            stalled_at: None,
        }
    }

    fn write(&mut self, erase: &str, text: &[u8], live: &str) -> io::Result<bool> {
        let renewed = text.is_empty() && !live.is_empty();
        // A live line is worth nothing while others wait.
        let late = renewed && self.waiting.load(Relaxed) > 0;
        if late || (self.reader != Reader::Events && !self.has_room(text.len())) {
            self.skipped += text.len();
            return Ok(false);
        }
        let mark = self.mark();
        self.send([erase.as_bytes(), mark.as_bytes(), text, live.as_bytes()].concat())?;
        self.skipped = 0;
        Ok(true)
    }

    /// Whether so many bytes may wait too. A slow pipe is given time; one that takes nothing is given up, and
    /// not waited for again until it does.
    fn has_room(&mut self, len: usize) -> bool {
        let (limit, patience) = match self.reader {
            Reader::Terminal => (WAITING, Duration::ZERO),
            _ => (WAITING_IN_PIPE, STALLED),
        };
        let (mut least, mut since) = (usize::MAX, Instant::now());
        loop {
            let waiting = self.waiting.load(Relaxed);
            if waiting == 0 || waiting + len <= limit {
                self.stalled_at = None;
                return true;
            }
            if self.stalled_at.is_some_and(|at| waiting >= at) {
                return false;
            }
            if waiting < least {
                (least, since) = (waiting, Instant::now());
            }
            if since.elapsed() >= patience {
                self.stalled_at = Some(waiting);
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send(&self, piece: Vec<u8>) -> io::Result<()> {
        self.waiting.fetch_add(piece.len(), Relaxed);
        self.pieces
            .send(piece)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn mark(&self) -> String {
        match self.skipped {
            0 => String::new(),
            skipped => format!(
                "[ralph: {} not shown; ralph logs has it]\n",
                format::bytes(skipped as u64)
            ),
        }
    }

    fn close(self) {
        let _ = self.send(self.mark().into_bytes());
        drop(self.pieces);
        let _ = self.closed.recv();
    }
}

fn put(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// A terminal that can be held: whether it is, what it took, and what to wait for.
    type Held = Arc<(Mutex<(bool, Vec<u8>)>, Condvar)>;

    fn terminal(held: bool) -> (Queue, Held) {
        let screen: Held = Arc::new((Mutex::new((held, Vec::new())), Condvar::new()));
        let sink = screen.clone();
        let terminal = Queue::new(Reader::Terminal, move |bytes| {
            let guard = sink.1.wait_while(sink.0.lock().unwrap(), |(held, _)| *held);
            guard.unwrap().1.extend_from_slice(bytes);
            Ok(())
        });
        (terminal, screen)
    }

    fn release(screen: &Held) {
        screen.0.lock().unwrap().0 = false;
        screen.1.notify_all();
    }

    fn seen(screen: &Held) -> String {
        String::from_utf8(screen.0.lock().unwrap().1.clone()).unwrap()
    }

    #[test]
    fn a_held_terminal_gets_what_fits_and_is_told_of_the_rest() {
        let (mut terminal, screen) = terminal(true);
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        let taken = (0..2000)
            .filter(|_| terminal.write("", &line, "").unwrap())
            .count();
        assert_eq!(taken, 1024);
        assert!(
            !terminal.write("", b"", "live").unwrap(),
            "a live line does not wait"
        );
        release(&screen);
        while terminal.waiting.load(Relaxed) > 0 {
            std::thread::yield_now();
        }
        assert!(terminal.write("erase ", b"after\n", "live").unwrap());
        terminal.close();
        let seen = seen(&screen);
        let (lines, rest) = seen.split_at(1024 * 1024);
        assert!(lines.lines().all(|line| line.len() == 1023));
        assert_eq!(
            rest,
            "erase [ralph: 976 KiB not shown; ralph logs has it]\nafter\nlive"
        );
    }

    #[test]
    fn what_was_left_out_at_the_end_is_said_too() {
        let (mut terminal, screen) = terminal(true);
        assert!(
            terminal.write("", &vec![b'x'; 2 * WAITING], "").unwrap(),
            "one piece may be of any length"
        );
        assert!(!terminal.write("", b"lost\n", "").unwrap());
        let closing = std::thread::spawn(|| terminal.close());
        release(&screen);
        closing.join().unwrap();
        assert!(seen(&screen).ends_with("x[ralph: 5 bytes not shown; ralph logs has it]\n"));
    }

    #[test]
    fn a_terminal_that_is_gone_is_noticed() {
        let mut terminal = Queue::new(Reader::Terminal, |_| Err(io::ErrorKind::BrokenPipe.into()));
        while terminal.write("", b"words\n", "").is_ok() {
            std::thread::yield_now();
        }
        terminal.close();
    }
}
