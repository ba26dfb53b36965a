//! The screen of an agent that has a terminal: what it shows, when that last changed, and what is typed at it.

use super::responder::Listener;
use super::typing;
use crate::engine::screen;
use crate::process::pty::Size;
use memchr::memmem;
use regex::Regex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};
use vt100::Parser;
use vt100::capture::{BasicFormattedCaptureRange, basic_formatted_to_plain};

/// How an agent is served at its terminal.
pub struct Service {
    /// What is typed once it is ready.
    pub prompt: String,
    /// What its screen shows then; none: it is painted and still.
    pub ready: Option<Regex>,
    /// How long that may take.
    pub patience: Duration,
    /// The done pattern.
    pub pattern: Option<Regex>,
}

/// Something that a screen tells.
#[derive(Debug, PartialEq)]
pub enum Told {
    /// It does not get ready for the prompt.
    Unready,
    /// It takes no line of the prompt that is as long as this one, in bytes.
    TooLong(usize),
    /// A line of the agent's own matches the done pattern.
    Pattern,
}

/// How far the prompt has come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// The screen is not ready.
    Waiting,
    /// It is on its way.
    Typing,
    /// It is there; the key that sends it waits until the program has taken it in.
    Sending(Instant),
    /// The agent has it.
    Sent,
    /// It is never typed.
    GivenUp,
}

/// Whether the done pattern stands on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Finding {
    Nothing,
    Found,
    Told,
}

/// A terminal's screen, and the keys that wait for the program.
pub struct Terminal {
    parser: Parser<Listener>,
    service: Service,
    stage: Stage,
    /// Whether queries are answered here: nobody else sees them.
    answers: bool,
    keys: Vec<u8>,
    /// How many bytes of answers have been put among the keys since there were none.
    unheard: usize,
    /// How much has come since a control last ended whatever had begun.
    unended: usize,
    /// The beginning of a sequence whose end has not come yet.
    torn: Vec<u8>,
    born: Instant,
    /// Whether something came since the last look.
    dirty: bool,
    looked_at: Instant,
    changed_at: Instant,
    text: u64,
    /// How much had scrolled away when the pattern was last looked for.
    searched: usize,
    finding: Finding,
}

/// A painted screen that stands still for so long waits for somebody.
const STILL: Duration = Duration::from_millis(700);
/// Between the prompt and the key that sends it: some programs take that for part of a paste if it comes too soon.
const BEFORE_ENTER: Duration = Duration::from_millis(300);
/// Between two looks at a screen that changes.
const LOOK: Duration = Duration::from_millis(200);
/// So much of what was seen before is looked at again: it tells whose the lines after it are.
const CONTEXT: usize = 8 * 1024;
/// A longer command to the terminal is none.
const ENDLESS: usize = 1024 * 1024;
/// What ends any sequence, and does nothing else.
const CANCEL: u8 = 0x18;
/// So many bytes of answers may wait for a program before its questions go unanswered.
const UNHEARD: usize = 64 * 1024;
/// So much may scroll away between two looks.
const UNSEEN: usize = 32 * 1024;

impl Terminal {
    /// A new screen.
    pub(crate) fn new(service: Service, size: Size, answers: bool) -> Self {
        let now = Instant::now();
        Self {
            parser: Parser::new_with_callbacks(size.rows, size.columns, 0, Listener::default()),
            service,
            stage: Stage::Waiting,
            answers,
            keys: Vec::new(),
            unheard: 0,
            unended: 0,
            torn: Vec::new(),
            born: now,
            dirty: false,
            looked_at: now,
            changed_at: now,
            text: 0,
            searched: 0,
            finding: Finding::Nothing,
        }
    }

    /// Shows what the program printed.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.dirty = true;
        for piece in bytes.chunks(UNSEEN / 2) {
            self.show(piece);
            self.cut_off_endless(piece);
            if self.parser.callbacks().scrolled - self.searched >= UNSEEN {
                self.search();
            }
        }
        let answers = std::mem::take(&mut self.parser.callbacks_mut().answers);
        if self.keys.is_empty() {
            self.unheard = 0;
        }
        // A program that asks and does not listen is not waited for with more and more answers.
        if self.answers && self.unheard < UNHEARD {
            self.unheard += answers.len();
            self.keys.extend(answers);
        }
    }

    /// A command to the terminal is kept until it ends, and one that never does would fill the memory.
    fn cut_off_endless(&mut self, piece: &[u8]) {
        match piece
            .iter()
            .rposition(|byte| matches!(byte, 0x07 | 0x18 | 0x1a | 0x1b))
        {
            Some(at) => self.unended = piece.len() - at,
            None => self.unended += piece.len(),
        }
        if self.unended > ENDLESS {
            self.unended = 0;
            self.parser.process(&[CANCEL]);
        }
    }

    /// A program that leaves its second screen takes what stands there away: that is remembered first.
    fn show(&mut self, piece: &[u8]) {
        let whole = [&std::mem::take(&mut self.torn)[..], piece].concat();
        let mut rest = &whole[..];
        while let Some(at) = memmem::find(rest, LEAVES) {
            let modes = rest[at + LEAVES.len()..].iter().take(TORN_MAX);
            let digits = modes
                .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
                .count();
            let end = at + LEAVES.len() + digits;
            match rest.get(end) {
                None => {
                    self.torn = rest[at..].to_vec();
                    rest = &rest[..at];
                    break;
                }
                Some(last) => {
                    self.parser.process(&rest[..at]);
                    let leaves = *last == b'l' && leaves(&rest[at + LEAVES.len()..end]);
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
        let torn = (1..LEAVES.len())
            .rev()
            .find(|length| rest.ends_with(&LEAVES[..*length]))
            .unwrap_or(0);
        let (rest, torn) = rest.split_at(rest.len() - torn);
        self.parser.process(rest);
        self.torn.extend_from_slice(torn);
    }

    /// Passes on what a person types.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.extend_from_slice(keys);
    }

    /// The keys that wait for the program.
    pub(crate) fn keys(&mut self) -> &mut Vec<u8> {
        &mut self.keys
    }

    /// Makes the screen as large as this.
    pub(crate) fn resize(&mut self, size: Size) {
        self.parser.set_size(size.rows, size.columns);
        self.dirty = true;
    }

    /// When the text of the screen last changed.
    pub(crate) fn changed_at(&self) -> Instant {
        self.changed_at
    }

    /// When its text has not changed for so long; never while the agent has no prompt yet.
    pub(crate) fn still_at(&self, time: Duration) -> Option<Instant> {
        let still = self.changed_at + time;
        let at = if self.dirty {
            still.max(self.looked_at + LOOK)
        } else {
            still
        };
        (!matches!(self.stage, Stage::Waiting | Stage::GivenUp)).then_some(at)
    }

    /// When [`Terminal::turn`] must be called again at the latest.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        let look = self.dirty.then_some(self.looked_at + LOOK);
        let stage = match self.stage {
            Stage::Waiting if self.dirty || self.text == 0 || self.service.ready.is_some() => {
                Some(self.born + self.service.patience)
            }
            Stage::Waiting => {
                Some((self.changed_at + STILL).min(self.born + self.service.patience))
            }
            Stage::Typing if self.keys.is_empty() => Some(self.looked_at),
            Stage::Sending(at) => Some(at),
            _ => None,
        };
        [look, stage].into_iter().flatten().min()
    }

    /// Does what time asks for. `line_max` says how long a line may be that is typed now.
    pub(crate) fn turn(&mut self, line_max: impl Fn() -> Option<usize>) -> Option<Told> {
        let now = Instant::now();
        if self.dirty && now >= self.looked_at + LOOK {
            self.look(now);
        }
        match self.stage {
            Stage::Waiting if self.is_ready(now) => {
                let bracketed = self.parser.screen().bracketed_paste();
                let keys = typing::keys(&self.service.prompt, bracketed);
                let longest = keys
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::len)
                    .max()
                    .unwrap_or(0);
                if line_max().is_some_and(|max| longest > max) {
                    self.stage = Stage::GivenUp;
                    return Some(Told::TooLong(longest));
                }
                self.keys.extend(keys);
                self.stage = Stage::Typing;
                self.changed_at = now;
            }
            Stage::Waiting if now >= self.born + self.service.patience => {
                self.stage = Stage::GivenUp;
                return Some(Told::Unready);
            }
            Stage::Typing if self.keys.is_empty() => {
                self.stage = Stage::Sending(now + BEFORE_ENTER)
            }
            Stage::Sending(at) if at <= now => {
                self.keys.push(b'\r');
                self.stage = Stage::Sent;
            }
            _ => {}
        }
        if self.finding == Finding::Found {
            self.finding = Finding::Told;
            return Some(Told::Pattern);
        }
        None
    }

    fn is_ready(&self, now: Instant) -> bool {
        let painted = self.text != 0 && !self.dirty;
        painted
            && match &self.service.ready {
                Some(pattern) => pattern.is_match(&self.parser.screen().contents()),
                None => now >= self.changed_at + STILL,
            }
    }

    /// Looks whether the text of the screen has changed, and whether what was looked for stands there.
    fn look(&mut self, now: Instant) {
        (self.dirty, self.looked_at) = (false, now);
        let text = fingerprint(&self.parser.screen().contents());
        if text != self.text || self.parser.callbacks().scrolled != self.searched {
            (self.text, self.changed_at) = (text, now);
            self.search();
        }
    }

    /// Looks for the done pattern in what the agent itself has said. Before it has its prompt, it has said nothing.
    fn search(&mut self) {
        let scrolled = self.parser.callbacks().scrolled;
        let news = scrolled - std::mem::replace(&mut self.searched, scrolled);
        let Some(pattern) = self.service.pattern.as_ref() else {
            return;
        };
        if self.finding != Finding::Nothing || self.stage != Stage::Sent {
            return;
        }
        let text = self.tail(news + CONTEXT);
        // Most texts do not hold it at all, and the prompt is cut out of those that do.
        let matches = |text: &str| text.lines().any(|line| pattern.is_match(line));
        if matches(&text) && matches(&screen::own(&text, &self.service.prompt)) {
            self.finding = Finding::Found;
        }
    }

    /// The end: all of the text, and whether the pattern is in it.
    pub(crate) fn finish(mut self) -> (String, bool) {
        if self.parser.screen().alternate_screen() {
            self.show(b"\x1b[?1049l");
        }
        self.search();
        (self.tail(usize::MAX), self.finding != Finding::Nothing)
    }

    /// So many of the last bytes that scrolled away, and what stands on the screen, rows that were broken in two
    /// joined again.
    fn tail(&self, bytes: usize) -> String {
        let listener = self.parser.callbacks();
        let (mut rows, mut seam) = (String::new(), listener.seam.clone());
        let range = BasicFormattedCaptureRange::Full(&mut seam);
        // Writing into memory does not fail.
        let _ = self
            .parser
            .screen()
            .write_contents_formatted_basic(&mut rows, range);
        let cut = listener.past.len().saturating_sub(bytes);
        let cut = if cut == 0 {
            0
        } else {
            line_after(&listener.past, cut)
        };
        let mut text = listener.past[cut..].to_owned();
        text.extend(basic_formatted_to_plain(&rows));
        text
    }
}

/// Where the next line begins.
fn line_after(text: &str, at: usize) -> usize {
    text.as_bytes()[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |end| at + end + 1)
}

/// What a sequence begins with by which a program may leave its second screen.
const LEAVES: &[u8] = b"\x1b[?";

/// Whether one of these modes is the second screen.
fn leaves(modes: &[u8]) -> bool {
    modes
        .split(|byte| *byte == b';')
        .any(|mode| matches!(mode, b"47" | b"1047" | b"1049"))
}

/// A longer one is none.
const TORN_MAX: usize = 32;

/// The text of a screen in one number, 0 where there is none. Blocks are left out: some programs paint their
/// cursor, and it blinks.
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
