//! What a person sees while a loop runs: the agent's words, ralph's lines, and one live line below.

use super::act_printer::Deeds;
use super::cost::Meter;
use super::escape_filter::Glass;
use super::live_line;
use super::live_line::{Moment, Times};
use super::output_queue::{Pen, Reader};
use super::output_tail::last_lines;
use super::text_stream::Stream;
use super::{Paint, columns, event_line, fit, one_line, paint};
use crate::engine::plan::Scm;
use crate::engine::{Act, Event, Phase, State};
use crate::store::{Line, LoopDir};
use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Style {
    /// Everything, as it comes.
    Full {
        /// The agent's output too.
        stream: bool,
        /// Where that is a stream of events: as it is.
        raw: bool,
    },
    /// The result alone.
    Quiet,
    /// One event a line.
    Json,
}

/// The console of one runner.
pub struct Console {
    dir: LoopDir,
    style: Style,
    /// Whether there is a terminal that can take a line away again.
    lively: bool,
    colour: bool,
    gutter: String,
    deeds: Deeds,
    /// What the running iteration has spent and used so far, as far as it tells.
    meter: Meter,
    /// What the live line says; empty while there is none.
    words: String,
    times: Times,
    /// The live rows that were painted last.
    painted: Vec<String>,
    /// Those on the screen, each by its columns.
    live: Vec<usize>,
    began: Instant,
    began_active_ms: u64,
    /// Whether it was said that nobody reads.
    warned: bool,
    /// How a line ends: a terminal that is lent to an agent does not go to the margin by itself.
    ending: &'static str,
    /// The agent's screen, while it is the one that is seen.
    glass: Option<Glass>,
    /// What is said when that is gone.
    held: Vec<u8>,
    pen: Pen,
}

/// A denial is shown in so many columns.
const DENIAL: usize = 200;

/// The live line moves on this often.
const TICK: Duration = Duration::from_secs(1);

impl Console {
    /// A console for this loop.
    pub fn new(dir: &LoopDir, style: Style) -> Self {
        let terminal = stdout().is_terminal();
        let (lively, colour) = (terminal && !is_dumb(), colours());
        let gutter = if lively {
            paint("  │ ", Paint::Dim, colour)
        } else {
            "  | ".to_owned()
        };
        let reader = match style {
            Style::Json => Reader::Events,
            _ if terminal => Reader::Terminal,
            _ => Reader::Pipe,
        };
        Self {
            dir: dir.clone(),
            style,
            lively,
            colour,
            deeds: Deeds::new(
                &gutter,
                colour,
                matches!(style, Style::Full { raw: true, .. }),
            ),
            meter: Meter::default(),
            gutter,
            words: String::new(),
            times: Times::Passing,
            painted: Vec::new(),
            live: Vec::new(),
            began: Instant::now(),
            began_active_ms: 0,
            warned: false,
            ending: "\n",
            glass: None,
            held: Vec::new(),
            pen: if matches!(style, Style::Full { stream: true, .. }) {
                Pen::new(reader)
            } else {
                Pen::new(reader).for_few_words()
            },
        }
    }

    /// The same in a window that nobody may look at: nothing is renewed that stays true.
    pub fn in_window(self) -> Self {
        Self {
            times: Times::Standing,
            ..self
        }
    }

    /// Shows what an event means.
    pub fn event(&mut self, line: &Line, state: &State) {
        (self.began, self.began_active_ms) = (Instant::now(), state.active_ms);
        let lent = state.agent().terminal && self.mirrors();
        self.ending = if lent { "\r\n" } else { "\n" };
        match self.style {
            Style::Json => {
                let text = format!(
                    "{{\"loop\":\"{}\",{}\n",
                    self.dir.name(),
                    &line.to_json()[1..]
                );
                self.show(text.as_bytes());
            }
            Style::Quiet => {}
            Style::Full { .. } => {
                let mut out = Vec::new();
                if matches!(line.event, Event::Ended { .. } | Event::Finished { .. }) {
                    self.take_glass_away();
                    self.deeds.flush(&mut out);
                    self.meter = Meter::default();
                }
                for (words, colour) in event_line::lines(&line.event, state) {
                    self.own_line(&words, colour, &mut out);
                }
                if matches!(line.event, Event::Started { .. }) && state.agent().terminal && !lent {
                    let words = format!(
                        "the agent has a terminal of its own; ralph logs {} shows it",
                        self.dir.name()
                    );
                    self.own_line(&words, Paint::Dim, &mut out);
                }
                self.red_output(&line.event, state, &mut out);
                if let Some(words) = event_line::begins(&line.event, state).filter(|_| !self.lively)
                {
                    self.own_line(&words, Paint::Dim, &mut out);
                }
                self.above(&out, state, None);
            }
        }
        if !matches!(
            state.phase,
            Phase::Ended(_) | Phase::Paused | Phase::Draining { .. }
        ) {
            self.miss_the_reader();
        }
    }

    /// Whether an agent's screen can be shown here.
    pub fn mirrors(&self) -> bool {
        self.lively && self.streams()
    }

    /// A line in ralph's own name.
    fn own_line(&self, words: &str, colour: Paint, out: &mut Vec<u8>) {
        let head = paint(
            &format!("[ralph] {}:", self.dir.name()),
            Paint::Dim,
            self.colour,
        );
        let words = paint(&one_line(words), colour, self.colour);
        out.extend_from_slice(format!("{head} {words}{}", self.ending).as_bytes());
    }

    /// The end of what a red check or a failed task printed, and where the rest is.
    fn red_output(&self, event: &Event, state: &State, out: &mut Vec<u8>) {
        let (log, guardrail) = match event {
            Event::Checked {
                iteration,
                check,
                report,
            } if !report.is_green() => {
                let Some(check) = state.plan.proof.checks.get(*check) else {
                    return;
                };
                (
                    self.dir.check_log(*iteration, &check.slug),
                    check.guardrail(*iteration),
                )
            }
            Event::Committed {
                iteration,
                task,
                report,
            } if !report.is_good() => (
                self.dir.task_log(*iteration, *task),
                Scm::guardrail(*iteration, *task),
            ),
            _ => return,
        };
        let mut stream = Stream::new(&self.gutter);
        stream.wrap(room());
        let (last, cut) = last_lines(&log);
        stream.feed(&last, out);
        stream.flush(out);
        if cut {
            self.own_line(&format!("all of it: {guardrail}"), Paint::Dim, out);
        }
    }

    /// Shows what the agent did.
    pub fn act(&mut self, act: &Act<'_>) {
        match act {
            Act::Painted(bytes) => self.painted(bytes),
            Act::Denied(line) => self.denied(line),
            act => {
                self.meter.count(act);
                self.done(act);
            }
        }
    }

    /// Said in ralph's own name: among an agent's many words it is easily missed.
    fn denied(&mut self, line: &str) {
        if matches!(self.style, Style::Full { .. }) && !self.pen.is_broken() {
            let mut out = Vec::new();
            let line = fit(line, DENIAL);
            self.own_line(
                &format!("the agent was not allowed: {line}"),
                Paint::Yellow,
                &mut out,
            );
            self.show(&out);
        }
    }

    /// Whether the agent's output is shown.
    fn streams(&self) -> bool {
        matches!(self.style, Style::Full { stream: true, .. })
    }

    fn done(&mut self, act: &Act<'_>) {
        if self.streams() && !self.pen.is_broken() {
            let mut out = Vec::new();
            self.deeds.wrap(room());
            self.deeds.act(act, &mut out);
            if !out.is_empty() {
                self.show(&out);
                self.miss_the_reader();
            } else if self.times == Times::Standing {
                self.renew();
            }
        }
    }

    /// The agent's screen takes the place of everything else.
    fn painted(&mut self, bytes: &[u8]) {
        if !self.mirrors() || self.pen.is_broken() || !in_foreground() {
            return;
        }
        if self.glass.is_none() {
            self.erase();
        }
        let shown = self.glass.get_or_insert_default().through(bytes);
        self.pen.write("", &shown, "");
    }

    /// Puts the terminal back, and says what was held back meanwhile.
    fn take_glass_away(&mut self) {
        if let Some(glass) = self.glass.take() {
            let held = std::mem::take(&mut self.held);
            self.pen.write("", &[glass.close(), held].concat(), "");
        }
    }

    /// Renews the live line if it is not true any more; says when to do so again.
    pub fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration> {
        if !self.lively || !matches!(self.style, Style::Full { .. }) || self.pen.is_broken() {
            return None;
        }
        self.words = self.words_below(state, silent_for);
        self.renew();
        match self.times {
            Times::Passing => Some(TICK),
            Times::Standing if self.just_drains(state) => Some(TICK),
            Times::Standing => live_line::silence_shows_in(silent_for),
        }
    }

    /// Says something of importance that is no event.
    pub fn warn(&mut self, words: &str) {
        if self.glass.is_some() {
            let mut out = Vec::new();
            self.own_line(words, Paint::Yellow, &mut out);
            self.held.extend(out);
            return;
        }
        self.erase();
        warn(words, self.colour);
    }

    /// Takes the live line away; nothing is shown after this.
    pub fn close(&mut self) {
        self.take_glass_away();
        self.erase();
        self.pen.close();
    }

    /// Paints the live rows anew if they say something else.
    fn renew(&mut self) {
        if self.rows() != self.painted {
            self.show(b"");
        }
    }

    fn above(&mut self, text: &[u8], state: &State, silent_for: Option<Duration>) {
        self.words = self.words_below(state, silent_for);
        self.show(text);
    }

    fn words_below(&self, state: &State, silent_for: Option<Duration>) -> String {
        if self.just_drains(state)
            || matches!(
                state.phase,
                Phase::Ended(_) | Phase::Paused | Phase::Waiting
            )
        {
            return String::new();
        }
        let moment = Moment {
            since: self.began.elapsed(),
            silent_for,
            spent: self.meter.words(state),
        };
        live_line::words(self.dir.name(), state, moment, self.times)
    }

    /// Whether there are child loops shows a moment later: as a rule there is none.
    fn just_drains(&self, state: &State) -> bool {
        matches!(state.phase, Phase::Draining { .. }) && self.began.elapsed() < TICK / 2
    }

    /// Puts a text above the live rows, and these anew. Behind another's prompt there are none.
    fn show(&mut self, text: &[u8]) {
        if self.glass.is_some() {
            self.held.extend_from_slice(text);
            return;
        }
        let live = self.lively && in_foreground();
        if !live {
            self.live.clear();
        }
        let rows = if live { self.rows() } else { Vec::new() };
        let columns = rows.iter().map(|row| columns(row)).collect();
        let painted = match rows.split_last() {
            Some((last, above)) => [above, &[paint(last, Paint::Bold, self.colour)]]
                .concat()
                .join("\n"),
            None => String::new(),
        };
        if self.pen.write(&self.erasing(), text, &painted) {
            (self.live, self.painted) = (columns, rows);
        }
    }

    /// Says once that nobody reads.
    fn miss_the_reader(&mut self) {
        if self.pen.is_broken() && !std::mem::replace(&mut self.warned, true) {
            let name = self.dir.name();
            warn(
                &format!(
                    "nobody reads the output any more; the loop goes on (ralph status {name})"
                ),
                false,
            );
        }
    }

    /// What stands below: the line that the agent has not ended yet, and the live line.
    fn rows(&self) -> Vec<String> {
        if self.words.is_empty() {
            return Vec::new();
        }
        let room = width().unwrap_or(80) - 1;
        let unfinished = self
            .deeds
            .unfinished()
            .map(|text| fit(&format!("  │ {text}"), room));
        unfinished
            .into_iter()
            .chain([fit(&self.words, room)])
            .collect()
    }

    fn erase(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.show(b"");
        self.words = words;
    }

    /// What takes the live rows away, so that what comes next stands in their place. A terminal that became
    /// narrower has broken them into more.
    fn erasing(&self) -> String {
        if self.live.is_empty() {
            return String::new();
        }
        let width = width().unwrap_or(80);
        let rows: usize = self
            .live
            .iter()
            .map(|columns| columns.div_ceil(width).max(1))
            .sum();
        format!("\r\x1b[2K{}", "\x1b[1A\r\x1b[2K".repeat(rows - 1))
    }
}

/// The columns of the terminal, if there is one.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    Some(if size.ws_col == 0 {
        80
    } else {
        usize::from(size.ws_col).max(2)
    })
}

/// The columns beside the gutter, and one more that stays empty.
fn room() -> usize {
    width().map_or(usize::MAX, |width| width.saturating_sub(5).max(8))
}

/// Whether the terminal is ours to paint on: the runner has a group of its own, and the warden, its parent,
/// is who a shell knows. A terminal that belongs to no shell tells nothing, and is.
fn in_foreground() -> bool {
    let shown = rustix::termios::tcgetpgrp(stdout());
    let ours = rustix::process::getpgid(rustix::process::getppid());
    let own = rustix::process::getpgrp();
    shown
        .ok()
        .zip(ours.ok())
        .is_none_or(|(shown, ours)| shown == ours || shown == own)
}

fn warn(words: &str, colour: bool) {
    let head = paint(
        "ralph: warning:",
        Paint::Yellow,
        colour && stderr().is_terminal(),
    );
    let _ = writeln!(stderr(), "{head} {}", one_line(words));
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether colours are wanted on standard output.
pub fn colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stdout().is_terminal() && !refused && !is_dumb()
}
