//! Writing to standard output without ever stalling the loop.
//!
//! A terminal may stop taking words for hours (Ctrl-S, a sleeping connection). What it cannot take is
//! left out there, and said; the logs have all of it. A file or a pipe gets every byte, at its own pace.

use crate::engine::words;
use std::io::{Write, stdout};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

/// A hand that writes.
pub struct Pen {
    terminal: Option<Terminal>,
    broken: bool,
}

struct Terminal {
    words: SyncSender<Vec<u8>>,
    closed: Receiver<()>,
    skipped: u64,
}

/// So many pieces may wait for a slow terminal.
const WAITING: usize = 32;
/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Pen {
    /// For a terminal, or for anything else.
    pub fn new(terminal: bool) -> Self {
        let terminal = terminal.then(|| {
            let (words, pieces) = sync_channel::<Vec<u8>>(WAITING);
            let (closing, closed) = channel();
            std::thread::spawn(move || {
                for piece in pieces {
                    if put(&piece).is_err() {
                        break;
                    }
                }
                let _ = closing.send(());
            });
            Terminal { words, closed, skipped: 0 }
        });
        Self { terminal, broken: false }
    }

    /// Whether nobody reads any more.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes, or leaves out what a terminal cannot take now.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.broken || bytes.is_empty() {
            return;
        }
        let Some(terminal) = &mut self.terminal else {
            // A reader that went away must not take the loop with it.
            self.broken = put(bytes).is_err();
            return;
        };
        let piece = match terminal.skipped {
            0 => bytes.to_vec(),
            skipped => [format!("[ralph: {} not shown]\n", words::bytes(skipped)).as_bytes(), bytes].concat(),
        };
        match terminal.words.try_send(piece) {
            Ok(()) => terminal.skipped = 0,
            Err(TrySendError::Full(_)) => terminal.skipped += bytes.len() as u64,
            Err(TrySendError::Disconnected(_)) => self.broken = true,
        }
    }

    /// Gives the last words their time.
    pub fn close(&mut self) {
        if let Some(Terminal { words, closed, .. }) = self.terminal.take() {
            drop(words);
            let _ = closed.recv_timeout(LAST_WORDS);
        }
    }
}

fn put(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}
