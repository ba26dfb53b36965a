//! Writes an iteration's activity: `activity.jsonl` lists the agent's acts, one per line.
//!
//! The file is for people and scripts; no state is folded from it. Its size is bounded: once the
//! file has grown too large, acts in the middle are dropped, and the first and last ones are kept.
//! After a write error, the rest of the activity is lost, but nothing else.

mod line;
mod read;

#[cfg(test)]
mod tests;

pub(crate) use read::{ActivityItem, ActivityReader};

use crate::engine::Act;
use crate::engine::format::plural;
use crate::engine::plain_text::clean;
use crate::os::regular_file;
use line::{ActRecord, ActivityLine};
use serde::Deserialize;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum size of the file, in bytes. A larger file loses acts in the middle.
const FILE_MAX: usize = 1 << 20;
/// About the first `HEAD_MAX` bytes of the file are always kept.
const HEAD_MAX: usize = 256 << 10;
/// At most the last `TAIL_MAX` bytes of the file are kept when it loses acts.
const TAIL_MAX: usize = 256 << 10;
/// Maximum size of the acts that are not written yet, in bytes. Once the file has lost acts, the
/// oldest unwritten acts are dropped too.
const PENDING_MAX: usize = 128 << 10;
/// Maximum length of the agent's text on one line of the file, in bytes. Longer text is split.
const PIECE_MAX: usize = 16 << 10;
/// Approximate maximum length of an act's other texts, such as a final message, in bytes.
const TEXT_MAX: usize = 32 << 10;
/// Minimum interval between two writes to the file.
const WRITE_INTERVAL: Duration = Duration::from_millis(50);

/// Writes one iteration's activity. Dropping the writer writes the remaining acts.
pub(crate) struct ActivityWriter {
    path: PathBuf,
    /// The open file; `None` after a write error.
    file: Option<File>,
    iteration: u32,
    /// Length of the file, in bytes.
    len: usize,
    /// The length of the part that is never dropped, in bytes, and the number of its last act;
    /// `None` as long as the whole file is shorter than [`HEAD_MAX`].
    head: Option<(usize, u64)>,
    /// Whether the file has lost acts.
    is_full: bool,
    /// The number of the newest act.
    newest: u64,
    /// The number of the last act in the file.
    written: u64,
    pending: VecDeque<PendingAct>,
    pending_len: usize,
    /// Whether a complete line, or an act other than text, is pending.
    has_lines: bool,
    written_at: Option<Instant>,
}

/// An act that is not in the file yet.
struct PendingAct {
    n: u64,
    at_ms: i64,
    act: Act<'static>,
}

impl ActivityWriter {
    /// Creates the file at `path`, or truncates it. After an error, no activity is written.
    pub(crate) fn create(path: &Path, iteration: u32) -> Self {
        Self {
            path: path.to_owned(),
            file: create_empty(path).ok(),
            iteration,
            len: 0,
            head: None,
            is_full: false,
            newest: 0,
            written: 0,
            pending: VecDeque::new(),
            pending_len: 0,
            has_lines: false,
            written_at: None,
        }
    }

    /// Adds an act to be written. Raw bytes are ignored.
    pub(crate) fn push(&mut self, act: &Act<'_>) {
        if self.file.is_none() {
            return;
        }
        match act {
            Act::TerminalOutput(_) | Act::RawOutput(_) => {}
            Act::Text(text) | Act::Thinking(text) => self.push_text(act, text),
            act => {
                let act = act.clone().map_texts(&mut |text| shorten(&text).into());
                self.has_lines = true;
                self.push_pending(act);
            }
        }
    }

    /// Writes pending acts, unless the last write was less than [`WRITE_INTERVAL`] ago.
    pub(crate) fn flush_if_due(&mut self) {
        if self.next_flush().is_some_and(|at| at <= Instant::now()) {
            self.flush(false);
        }
    }

    /// Returns the time at which [`ActivityWriter::flush_if_due`] will write; `None` if no act is
    /// pending.
    pub(crate) fn next_flush(&self) -> Option<Instant> {
        let is_pending = self.has_lines && !self.pending.is_empty();
        is_pending.then(|| {
            self.written_at
                .map_or_else(Instant::now, |at| at + WRITE_INTERVAL)
        })
    }

    /// Adds a piece of the agent's text or thinking, depending on `act`. Joins the piece with the
    /// previous one if possible.
    fn push_text(&mut self, act: &Act<'_>, text: &str) {
        let mut rest = text;
        if self.is_full && text.len() > PENDING_MAX {
            // Most of this text would be dropped, so do not copy it.
            self.pending.clear();
            self.pending_len = 0;
            self.newest += 1;
            rest = &text[char_boundary(text, text.len() - PENDING_MAX / 2)..];
            rest = rest.split_once('\n').map_or(rest, |(_, whole)| whole);
        }
        self.has_lines |= rest.contains('\n');
        while !rest.is_empty() {
            let (piece, more) = split_piece(rest);
            rest = more;
            match (self.pending.back_mut().map(|last| &mut last.act), act) {
                (Some(Act::Text(so_far)), Act::Text(_))
                | (Some(Act::Thinking(so_far)), Act::Thinking(_))
                    if so_far.len() + piece.len() <= PIECE_MAX =>
                {
                    so_far.to_mut().push_str(piece);
                    self.pending_len += piece.len();
                }
                (_, Act::Thinking(_)) => self.push_pending(Act::Thinking(piece.to_owned().into())),
                _ => self.push_pending(Act::Text(piece.to_owned().into())),
            }
        }
    }

    fn push_pending(&mut self, act: Act<'static>) {
        self.newest += 1;
        // The previous act is complete now, so it need not wait for the rest of a line.
        self.has_lines |= !self.pending.is_empty();
        self.pending_len += text_len(&act);
        self.pending.push_back(PendingAct {
            n: self.newest,
            at_ms: jiff::Timestamp::now().as_millisecond(),
            act,
        });
        if self.pending_len > PENDING_MAX && !self.is_full {
            self.flush(false);
        }
        while self.pending_len > PENDING_MAX && self.pending.len() > 1 {
            let oldest = self.pending.pop_front();
            self.pending_len -= oldest.map_or(0, |oldest| text_len(&oldest.act));
        }
    }

    /// Writes pending acts. Until `is_end`, keeps back an incomplete line, because only a whole
    /// line can be cleaned.
    fn flush(&mut self, is_end: bool) {
        let unfinished = if is_end { None } else { self.take_unfinished() };
        let mut lines = Vec::new();
        if self.len == 0 && !self.pending.is_empty() {
            lines.extend_from_slice(line::header(self.iteration).as_bytes());
        }
        let mut written = self.written;
        for PendingAct { n, at_ms, act } in self.pending.drain(..) {
            if n > written + 1 {
                push_dropped(&mut lines, written, n - 1, at_ms);
            }
            let act = act.map_texts(&mut |text| clean(&text).into_owned().into());
            if let Some(act) = ActRecord::new(act) {
                push_line(&mut lines, &ActivityLine { n, at_ms, act });
            }
            written = n;
        }
        let now_ms = || jiff::Timestamp::now().as_millisecond();
        if is_end && self.newest > written {
            push_dropped(&mut lines, written, self.newest, now_ms());
            written = self.newest;
        }
        if is_end && self.file.is_some() && (self.len > 0 || !lines.is_empty()) {
            let (n, act) = (self.newest + 1, ActRecord::End);
            let at_ms = now_ms();
            push_line(&mut lines, &ActivityLine { n, at_ms, act });
        }
        self.written = written;
        self.pending_len = unfinished.as_ref().map_or(0, |last| text_len(&last.act));
        self.pending.extend(unfinished);
        self.has_lines = false;
        self.written_at = Some(Instant::now());
        if self.append(&lines).is_err() {
            self.file = None;
            self.pending.clear();
        }
    }

    /// Removes an incomplete line from the end of the pending acts, and returns it; `None` if the
    /// last line is complete.
    fn take_unfinished(&mut self) -> Option<PendingAct> {
        let last = self.pending.back_mut()?;
        let (Act::Text(text) | Act::Thinking(text)) = &mut last.act else {
            return None;
        };
        let start = text.rfind('\n').map_or(0, |at| at + 1);
        if start == 0 && text.len() < PIECE_MAX {
            return self.pending.pop_back();
        }
        let rest = text.to_mut().split_off(start);
        if rest.is_empty() || rest.len() >= PIECE_MAX {
            text.to_mut().push_str(&rest);
            return None;
        }
        let act = match last.act {
            Act::Thinking(_) => Act::Thinking(rest.into()),
            _ => Act::Text(rest.into()),
        };
        self.newest += 1;
        Some(PendingAct {
            n: self.newest,
            at_ms: last.at_ms,
            act,
        })
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let Some(file) = self.file.as_mut().filter(|_| !lines.is_empty()) else {
            return Ok(());
        };
        file.write_all(lines)?;
        self.len += lines.len();
        match self.head {
            None if self.len >= HEAD_MAX => self.head = Some((self.len, self.written)),
            Some((head, last)) if self.len > FILE_MAX => self.drop_middle(head, last)?,
            _ => {}
        }
        Ok(())
    }

    /// Replaces the file with its first `head` bytes and the newest acts. `last` is the number of
    /// the last act in the first `head` bytes.
    fn drop_middle(&mut self, head: usize, last: u64) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let from = self.len.saturating_sub(TAIL_MAX).max(head);
        let (mut kept, mut tail) = (vec![0; head], vec![0; self.len - from]);
        file.read_exact_at(&mut kept, 0)?;
        file.read_exact_at(&mut tail, from as u64)?;
        let end_of_line = memchr::memchr(b'\n', &tail).map_or(tail.len(), |at| at + 1);
        let tail = &tail[end_of_line..];
        let first = tail.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if let Ok(first) = serde_json::from_slice::<LineNumber>(first) {
            push_dropped(&mut kept, last, first.n.saturating_sub(1), first.at_ms);
        }
        kept.extend_from_slice(tail);
        let path = self.path.with_extension("jsonl.new");
        let mut file = create_empty(&path)?;
        file.write_all(&kept)?;
        fs::rename(&path, &self.path)?;
        self.file = Some(file);
        self.len = kept.len();
        self.is_full = true;
        Ok(())
    }
}

impl Drop for ActivityWriter {
    fn drop(&mut self) {
        self.flush(true);
    }
}

/// Creates or truncates a file.
fn create_empty(path: &Path) -> io::Result<File> {
    let file = regular_file::create(path)?;
    if file.metadata()?.len() > 0 {
        file.set_len(0)?;
    }
    Ok(file)
}

/// The fields that every line after the header has.
#[derive(Deserialize)]
struct LineNumber {
    n: u64,
    at_ms: i64,
}

/// Appends a line to `lines` that records dropped acts: those after number `from`, up to and
/// including `to`.
fn push_dropped(lines: &mut Vec<u8>, from: u64, to: u64, at_ms: i64) {
    let acts = to.saturating_sub(from);
    let act = ActRecord::Dropped { acts };
    push_line(lines, &ActivityLine { n: to, at_ms, act });
}

fn push_line(lines: &mut Vec<u8>, line: &ActivityLine<'_>) {
    let start = lines.len();
    match serde_json::to_writer(&mut *lines, line) {
        Ok(()) => lines.push(b'\n'),
        Err(_) => lines.truncate(start),
    }
}

/// Returns the last character boundary that is not after `at`.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Splits off the first piece of `text`, at the end of a line if possible. Returns the piece and
/// the rest.
fn split_piece(text: &str) -> (&str, &str) {
    if text.len() <= PIECE_MAX {
        return (text, "");
    }
    let end = char_boundary(text, PIECE_MAX);
    text.split_at(text[..end].rfind('\n').map_or(end, |at| at + 1))
}

/// Returns the text, or only its beginning and end if it is too long.
fn shorten(text: &str) -> String {
    if text.len() <= TEXT_MAX {
        return text.to_owned();
    }
    let (head, rest) = text.split_at(char_boundary(text, TEXT_MAX / 2));
    let (cut, tail) = rest.split_at(char_boundary(rest, rest.len() - TEXT_MAX / 2));
    let cut = plural(cut.len() as u64, "byte");
    format!("{head}\n[{cut} cut]\n{tail}")
}

/// Returns the approximate size of an act's text, in bytes.
fn text_len(act: &Act<'_>) -> usize {
    let texts = match act {
        Act::Text(text) | Act::Thinking(text) | Act::Finished(text) => text.len(),
        Act::Failed { why, .. } => why.len(),
        Act::ToolStarted { name, about } | Act::ToolFinished { name, about, .. } => {
            name.len() + about.len()
        }
        _ => 0,
    };
    texts + size_of::<PendingAct>()
}
