//! Emulates an agent's terminal: types the prompt, and detects readiness, silence and the done
//! pattern.

use super::responder::Responder;
use super::typing;
use crate::engine::screen;
use crate::process::pty::ScreenSize;
use memchr::memmem;
use regex::Regex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};
use vt100::Parser;
use vt100::capture::{BasicFormattedCaptureRange, basic_formatted_to_plain};

/// The prompt to type into an agent's terminal, and the patterns to look for on its screen.
pub(crate) struct TerminalOptions {
    /// The text to type once the screen is ready.
    pub prompt: String,
    /// A pattern that matches a screen ready for the prompt. If `None`, the screen is ready once it
    /// shows text and stops changing.
    pub ready: Option<Regex>,
    /// Maximum time for the screen to become ready.
    pub ready_timeout: Duration,
    pub done_pattern: Option<Regex>,
}

/// An event that the emulator reports.
#[derive(Debug, PartialEq)]
pub(crate) enum TerminalEvent {
    /// The screen did not become ready for the prompt.
    NeverReady,
    /// A line of the prompt is longer than the terminal accepts. The number is its length in bytes.
    LineTooLong(usize),
    /// A line that the agent printed matches the done pattern.
    DonePattern,
}

/// The progress of typing the prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TypingStage {
    /// The screen is not ready yet.
    Waiting,
    /// The prompt is being written.
    Typing,
    /// The prompt is written. Enter follows at this time, by which the program should have read the
    /// paste.
    Sending(Instant),
    /// Enter was pressed, so the prompt is sent.
    Sent,
    /// The prompt will not be typed: the screen never became ready, or a line is too long.
    GivenUp,
}

/// The state of the search for the done pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PatternState {
    NotFound,
    Found,
    Reported,
}

/// A terminal screen, and the bytes to be written to the program.
pub(crate) struct Emulator {
    parser: Parser<Responder>,
    options: TerminalOptions,
    stage: TypingStage,
    /// Whether to answer terminal queries; `false` if the user's own terminal answers them.
    answers: bool,
    keys: Vec<u8>,
    /// Number of answer bytes queued since the queue was last empty.
    queued_answers: usize,
    /// Number of bytes received since the last control character that can end an escape sequence.
    unterminated: usize,
    /// The bytes of an escape sequence that is not complete yet.
    partial: Vec<u8>,
    born: Instant,
    /// Whether output has arrived since the screen was last examined.
    dirty: bool,
    looked_at: Instant,
    changed_at: Instant,
    /// A hash of the screen's text; 0 if the screen is blank.
    text_hash: u64,
    /// When the last lines of the screen changed. Changes above them, such as a clock in a title
    /// bar, are not activity.
    active_at: Instant,
    /// A hash of these last lines.
    last_lines_hash: u64,
    /// Number of bytes that had scrolled off the screen at the last search for the done pattern.
    searched: usize,
    done_pattern: PatternState,
}

/// Time without changes after which a screen that shows text is taken to wait for input.
const STILL: Duration = Duration::from_millis(700);
/// Delay between the prompt and Enter. Some programs treat an earlier Enter as part of the paste.
const ENTER_DELAY: Duration = Duration::from_millis(300);
/// Number of lines at the end of the screen whose changes are activity.
const ACTIVE_LINES: usize = 20;
/// Interval at which a changing screen is examined.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of bytes before the new text that are searched again, to distinguish the agent's
/// lines from the prompt's.
const CONTEXT: usize = 8 * 1024;
/// Maximum length of an escape sequence, in bytes. A longer one is canceled, because the parser
/// would buffer it without a limit.
const SEQUENCE_MAX: usize = 1024 * 1024;
/// The control character that cancels an escape sequence.
const CANCEL: u8 = 0x18;
/// Maximum size of unread answers, in bytes. Above it, queries are not answered.
const ANSWERS_MAX: usize = 64 * 1024;
/// Maximum number of bytes that may scroll off the screen before the next search for the done
/// pattern.
const SCROLL_MAX: usize = 32 * 1024;

impl Emulator {
    pub(crate) fn new(options: TerminalOptions, size: ScreenSize, answers: bool) -> Self {
        let now = Instant::now();
        Self {
            parser: Parser::new_with_callbacks(size.rows, size.columns, 0, Responder::default()),
            options,
            stage: TypingStage::Waiting,
            answers,
            keys: Vec::new(),
            queued_answers: 0,
            unterminated: 0,
            partial: Vec::new(),
            born: now,
            dirty: false,
            looked_at: now,
            changed_at: now,
            text_hash: 0,
            active_at: now,
            last_lines_hash: 0,
            searched: 0,
            done_pattern: PatternState::NotFound,
        }
    }

    /// Processes the output of the program on the terminal.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.dirty = true;
        for piece in bytes.chunks(SCROLL_MAX / 2) {
            self.show(piece);
            self.cancel_endless_sequence(piece);
            if self.parser.callbacks().scrolled - self.searched >= SCROLL_MAX {
                self.search();
            }
        }
        let answers = std::mem::take(&mut self.parser.callbacks_mut().answers);
        if self.keys.is_empty() {
            self.queued_answers = 0;
        }
        // Limit the queue: the program may not read the answers.
        if self.answers && self.queued_answers < ANSWERS_MAX {
            self.queued_answers += answers.len();
            self.keys.extend(answers);
        }
    }

    /// Cancels an escape sequence that exceeds [`SEQUENCE_MAX`].
    fn cancel_endless_sequence(&mut self, piece: &[u8]) {
        match piece
            .iter()
            .rposition(|byte| matches!(byte, 0x07 | 0x18 | 0x1a | 0x1b))
        {
            Some(at) => self.unterminated = piece.len() - at,
            None => self.unterminated += piece.len(),
        }
        if self.unterminated > SEQUENCE_MAX {
            self.unterminated = 0;
            self.parser.process(&[CANCEL]);
        }
    }

    /// Passes output to the parser. Before the program leaves the alternate screen, saves the text
    /// on it.
    fn show(&mut self, piece: &[u8]) {
        let whole = [&std::mem::take(&mut self.partial)[..], piece].concat();
        let mut rest = &whole[..];
        while let Some(at) = memmem::find(rest, MODE_PREFIX) {
            let modes = rest[at + MODE_PREFIX.len()..].iter().take(PARTIAL_MAX);
            let digits = modes
                .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
                .count();
            let end = at + MODE_PREFIX.len() + digits;
            match rest.get(end) {
                None => {
                    self.partial = rest[at..].to_vec();
                    rest = &rest[..at];
                    break;
                }
                Some(last) => {
                    self.parser.process(&rest[..at]);
                    let leaves =
                        *last == b'l' && has_alternate_screen(&rest[at + MODE_PREFIX.len()..end]);
                    if leaves && self.parser.screen().alternate_screen() {
                        let shown = self.parser.screen().contents();
                        self.parser
                            .callbacks_mut()
                            .remember(&format!("\n{shown}\n"));
                    }
                    self.parser.process(&rest[at..=end]);
                    rest = &rest[end + 1..];
                }
            }
        }
        let torn = (1..MODE_PREFIX.len())
            .rev()
            .find(|length| rest.ends_with(&MODE_PREFIX[..*length]))
            .unwrap_or(0);
        let (rest, torn) = rest.split_at(rest.len() - torn);
        self.parser.process(rest);
        self.partial.extend_from_slice(torn);
    }

    /// Queues keys that a person pressed.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.extend_from_slice(keys);
    }

    /// Returns the bytes to be written to the program. The caller must remove the bytes it has
    /// written.
    pub(crate) fn keys(&mut self) -> &mut Vec<u8> {
        &mut self.keys
    }

    pub(crate) fn resize(&mut self, size: ScreenSize) {
        self.parser.set_size(size.rows, size.columns);
        self.dirty = true;
    }

    /// Returns when the last lines of the screen changed.
    pub(crate) fn active_at(&self) -> Instant {
        self.active_at
    }

    /// Returns when the last lines will have been unchanged for `time`; `None` as long as the
    /// prompt has not been typed.
    pub(crate) fn still_at(&self, time: Duration) -> Option<Instant> {
        let still = self.active_at + time;
        let at = if self.dirty {
            still.max(self.looked_at + LOOK_INTERVAL)
        } else {
            still
        };
        (!matches!(self.stage, TypingStage::Waiting | TypingStage::GivenUp)).then_some(at)
    }

    /// Returns the latest time for the next call to [`Emulator::tick`]; `None` if only new output
    /// requires a call.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        let look = self.dirty.then_some(self.looked_at + LOOK_INTERVAL);
        let stage = match self.stage {
            TypingStage::Waiting
                if self.dirty || self.text_hash == 0 || self.options.ready.is_some() =>
            {
                Some(self.born + self.options.ready_timeout)
            }
            TypingStage::Waiting => {
                Some((self.changed_at + STILL).min(self.born + self.options.ready_timeout))
            }
            TypingStage::Typing if self.keys.is_empty() => Some(self.looked_at),
            TypingStage::Sending(at) => Some(at),
            _ => None,
        };
        [look, stage].into_iter().flatten().min()
    }

    /// Carries out the actions that are due: examines the screen, and types the prompt or Enter.
    /// `line_max` returns the longest line that the terminal currently accepts, in bytes; `None`
    /// means no limit.
    pub(crate) fn tick(&mut self, line_max: impl Fn() -> Option<usize>) -> Option<TerminalEvent> {
        let now = Instant::now();
        if self.dirty && now >= self.looked_at + LOOK_INTERVAL {
            self.look(now);
        }
        match self.stage {
            TypingStage::Waiting if self.is_ready(now) => {
                let bracketed = self.parser.screen().bracketed_paste();
                let keys = typing::keys(&self.options.prompt, bracketed);
                let longest = keys
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::len)
                    .max()
                    .unwrap_or(0);
                if line_max().is_some_and(|max| longest > max) {
                    self.stage = TypingStage::GivenUp;
                    return Some(TerminalEvent::LineTooLong(longest));
                }
                self.keys.extend(keys);
                self.stage = TypingStage::Typing;
                (self.changed_at, self.active_at) = (now, now);
            }
            TypingStage::Waiting if now >= self.born + self.options.ready_timeout => {
                self.stage = TypingStage::GivenUp;
                return Some(TerminalEvent::NeverReady);
            }
            TypingStage::Typing if self.keys.is_empty() => {
                self.stage = TypingStage::Sending(now + ENTER_DELAY);
            }
            TypingStage::Sending(at) if at <= now => {
                self.keys.push(b'\r');
                self.stage = TypingStage::Sent;
            }
            _ => {}
        }
        if self.done_pattern == PatternState::Found {
            self.done_pattern = PatternState::Reported;
            return Some(TerminalEvent::DonePattern);
        }
        None
    }

    fn is_ready(&self, now: Instant) -> bool {
        let painted = self.text_hash != 0 && !self.dirty;
        painted
            && match &self.options.ready {
                Some(pattern) => pattern.is_match(&self.parser.screen().contents()),
                None => now >= self.changed_at + STILL,
            }
    }

    /// Checks whether the text has changed, and searches it for the done pattern.
    fn look(&mut self, now: Instant) {
        (self.dirty, self.looked_at) = (false, now);
        let contents = self.parser.screen().contents();
        let (text, has_scrolled) = (
            fingerprint(&contents),
            self.parser.callbacks().scrolled != self.searched,
        );
        let last_lines = fingerprint(last_lines(&contents, ACTIVE_LINES));
        if last_lines != self.last_lines_hash || has_scrolled {
            (self.last_lines_hash, self.active_at) = (last_lines, now);
        }
        if text != self.text_hash || has_scrolled {
            (self.text_hash, self.changed_at) = (text, now);
            self.search();
        }
    }

    /// Searches the agent's own text for the done pattern. Text from before the prompt was sent
    /// does not count.
    fn search(&mut self) {
        let scrolled = self.parser.callbacks().scrolled;
        let new = scrolled - std::mem::replace(&mut self.searched, scrolled);
        let Some(pattern) = self.options.done_pattern.as_ref() else {
            return;
        };
        if self.done_pattern != PatternState::NotFound || self.stage != TypingStage::Sent {
            return;
        }
        let text = self.tail(new + CONTEXT);
        // Removing the prompt is expensive, so search the whole text first.
        let matches = |text: &str| text.lines().any(|line| pattern.is_match(line));
        if matches(&text) && matches(&screen::strip_prompt(&text, &self.options.prompt)) {
            self.done_pattern = PatternState::Found;
        }
    }

    /// Returns the whole text, and whether the done pattern was found in it.
    pub(crate) fn finish(mut self) -> (String, bool) {
        if self.parser.screen().alternate_screen() {
            self.show(b"\x1b[?1049l");
        }
        self.search();
        (
            self.tail(usize::MAX),
            self.done_pattern != PatternState::NotFound,
        )
    }

    /// Returns the last `bytes` bytes, at most, of the text that scrolled off the screen, followed
    /// by the screen, with wrapped rows joined.
    fn tail(&self, bytes: usize) -> String {
        let responder = self.parser.callbacks();
        let (mut rows, mut seam) = (String::new(), responder.seam.clone());
        let range = BasicFormattedCaptureRange::Full(&mut seam);
        // Writing to a string does not fail.
        let _ = self
            .parser
            .screen()
            .write_contents_formatted_basic(&mut rows, range);
        let cut = responder.past.len().saturating_sub(bytes);
        let cut = if cut == 0 {
            0
        } else {
            line_after(&responder.past, cut)
        };
        let mut text = responder.past[cut..].to_owned();
        text.extend(basic_formatted_to_plain(&rows));
        text
    }
}

/// Returns the offset of the first line that starts after `at`.
fn line_after(text: &str, at: usize) -> usize {
    text.as_bytes()[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |end| at + end + 1)
}

/// Returns the last lines of a screen, without blank ones at its end.
fn last_lines(text: &str, count: usize) -> &str {
    let text = text.trim_end();
    let start = text.rmatch_indices('\n').nth(count - 1);
    start.map_or(text, |(at, _)| &text[at + 1..])
}

/// The prefix of the escape sequences with which a program leaves the alternate screen.
const MODE_PREFIX: &[u8] = b"\x1b[?";

/// Returns whether one of the terminal modes in `modes` is the alternate screen.
fn has_alternate_screen(modes: &[u8]) -> bool {
    modes
        .split(|byte| *byte == b';')
        .any(|mode| matches!(mode, b"47" | b"1047" | b"1049"))
}

/// Maximum length of the parameters in a sequence with [`MODE_PREFIX`], in bytes.
const PARTIAL_MAX: usize = 32;

/// Hashes a screen's text; 0 if it is blank. Skips block characters, which some programs use to
/// draw a blinking cursor.
fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut any = false;
    for c in text
        .trim_end()
        .chars()
        .filter(|c| !matches!(c, '\u{2580}'..='\u{259f}'))
    {
        any |= !c.is_whitespace();
        c.hash(&mut hasher);
    }
    if any { hasher.finish().max(1) } else { 0 }
}

#[cfg(test)]
mod tests;
