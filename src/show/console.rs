//! What a person sees while a loop runs: the agent's words, ralph's lines, and one live line below.

use super::pen::Pen;
use super::stream::Stream;
use super::tail::last_lines;
use super::{Paint, columns, fit, line, one_line, paint};
use crate::engine::words::{dollars, duration, of_limit};
use crate::engine::{Event, Phase, State};
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
    terminal: bool,
    colour: bool,
    gutter: String,
    stream: Stream,
    /// What the live line says; empty while there is none.
    words: String,
    /// The live rows on the screen, each by its columns.
    live: Vec<usize>,
    began: Instant,
    began_active_ms: u64,
    pen: Pen,
}

/// The live line moves on this often.
const TICK: Duration = Duration::from_secs(1);

impl Console {
    /// A console for this loop.
    pub fn new(dir: &LoopDir, style: Style) -> Self {
        let terminal = stdout().is_terminal();
        let colour = colours();
        let gutter = if terminal { paint("  │ ", Paint::Dim, colour) } else { "  | ".to_owned() };
        Self {
            dir: dir.clone(),
            style,
            terminal,
            colour,
            stream: Stream::new(&gutter),
            gutter,
            words: String::new(),
            live: Vec::new(),
            began: Instant::now(),
            began_active_ms: 0,
            pen: Pen::new(terminal),
        }
    }

    /// Shows what an event means.
    pub fn event(&mut self, line: &Line, state: &State) {
        (self.began, self.began_active_ms) = (Instant::now(), state.active_ms);
        match self.style {
            Style::Json => {
                let mut text = line.to_json();
                text.push('\n');
                self.write(text.as_bytes());
            }
            Style::Quiet => {}
            Style::Full { .. } => {
                let mut out = Vec::new();
                if matches!(line.event, Event::Ended { .. } | Event::Finished { .. }) {
                    self.stream.flush(&mut out);
                }
                for (words, colour) in line::lines(&line.event, state) {
                    let head = paint(&format!("[ralph] {}:", self.dir.name()), Paint::Dim, self.colour);
                    let words = paint(&one_line(&words), colour, self.colour);
                    out.extend_from_slice(format!("{head} {words}\n").as_bytes());
                }
                self.red_output(&line.event, state, &mut out);
                self.above(&out, state, None);
            }
        }
    }

    /// The end of what a red check printed.
    fn red_output(&self, event: &Event, state: &State, out: &mut Vec<u8>) {
        let Event::Checked { iteration, check, report } = event else { return };
        let Some(check) = state.plan.proof.checks.get(*check).filter(|_| !report.is_green()) else { return };
        let mut stream = Stream::new(&self.gutter);
        stream.wrap(self.room());
        stream.feed(&last_lines(&self.dir.check_log(*iteration, &check.slug)), out);
        stream.flush(out);
    }

    /// Shows what the agent printed.
    pub fn output(&mut self, bytes: &[u8]) {
        if self.style == (Style::Full { stream: true }) && !self.pen.is_broken() {
            let mut out = Vec::with_capacity(bytes.len() + 256);
            self.stream.wrap(self.room());
            self.stream.feed(bytes, &mut out);
            if !out.is_empty() {
                self.erase();
                self.write(&out);
                self.draw();
            }
        }
    }

    /// Renews the live line; says when to do so again.
    pub fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration> {
        if !self.terminal || !matches!(self.style, Style::Full { .. }) || self.pen.is_broken() {
            return None;
        }
        self.above(b"", state, silent_for);
        Some(TICK)
    }

    /// Says something of importance that is no event.
    pub fn warn(&mut self, words: &str) {
        self.erase();
        let colour = self.colour && stderr().is_terminal();
        let head = paint("ralph: warning:", Paint::Yellow, colour);
        let _ = writeln!(stderr(), "{head} {}", one_line(words));
    }

    /// Takes the live line away; nothing is shown after this.
    pub fn close(&mut self) {
        self.erase();
        self.pen.close();
    }

    /// The columns beside the gutter, and one more that stays empty.
    fn room(&self) -> usize {
        if self.terminal { width().saturating_sub(5).max(8) } else { usize::MAX }
    }

    fn above(&mut self, text: &[u8], state: &State, silent_for: Option<Duration>) {
        self.erase();
        self.write(text);
        let rests = matches!(state.phase, Phase::Ended(_) | Phase::Paused | Phase::Waiting);
        self.words = if rests { String::new() } else { self.live_line(state, silent_for) };
        self.draw();
    }

    fn draw(&mut self) {
        if !self.terminal || self.words.is_empty() {
            return;
        }
        let room = width() - 1;
        let mut rows = Vec::new();
        rows.extend(self.stream.unfinished().map(|text| fit(&format!("  │ {text}"), room)));
        rows.push(fit(&self.words, room));
        self.live = rows.iter().map(|row| columns(row)).collect();
        let last = rows.len() - 1;
        rows[last] = paint(&rows[last], Paint::Bold, self.colour);
        self.write(rows.join("\n").as_bytes());
    }

    /// Erases the live rows, so that what comes next stands in their place. A terminal that became narrower
    /// has broken them into more.
    fn erase(&mut self) {
        if !self.live.is_empty() {
            let width = width();
            let rows: usize = self.live.drain(..).map(|columns| columns.div_ceil(width).max(1)).sum();
            let up = "\x1b[1A\r\x1b[2K".repeat(rows - 1);
            self.write(format!("\r\x1b[2K{up}").as_bytes());
        }
    }

    fn live_line(&self, state: &State, silent_for: Option<Duration>) -> String {
        let limits = &state.plan.limits;
        let elapsed = state.active_ms + (self.began.elapsed().as_millis() as u64);
        let mut parts = vec![match &state.phase {
            Phase::Checking if state.iteration == 0 => "preflight".to_owned(),
            Phase::Checking => format!("checking iteration {}", of_limit(state.iteration, limits.iterations)),
            Phase::Killing { .. } => format!("stopping iteration {}", state.iteration),
            Phase::Resting { until_ms } => {
                let left = until_ms.saturating_sub(state.clock_ms + self.began.elapsed().as_millis() as u64);
                format!("resting {}", duration(left / 1000 * 1000 + 1000))
            }
            _ => format!("iteration {}", of_limit(state.iteration.max(1), limits.iterations)),
        }];
        parts.push(whole_seconds(elapsed));
        if let Some(idle) = silent_for.filter(|idle| idle.as_secs() >= 5) {
            parts.push(format!("idle {}", duration(idle.as_secs() * 1000)));
        }
        match (state.known_cost(), limits.cost_usd) {
            (Some(usd), Some(max)) => parts.push(format!("{} of {}", dollars(usd), dollars(max))),
            (Some(usd), None) if usd > 0.0 => parts.push(dollars(usd)),
            _ => {}
        }
        if let Some(max) = limits.time_ms {
            parts.push(format!("{} left", whole_seconds(max.saturating_sub(elapsed))));
        }
        if state.consecutive_failures > 0 {
            parts.push(format!("failures {}", of_limit(state.consecutive_failures, limits.failures)));
        }
        format!("▸ {} · {}", self.dir.name(), parts.join(" · "))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.pen.write(bytes);
    }
}

/// A time that is renewed every second.
fn whole_seconds(ms: u64) -> String {
    if ms < 1000 { "0s".into() } else { duration(ms / 1000 * 1000) }
}

fn width() -> usize {
    rustix::termios::tcgetwinsize(stdout()).map_or(80, |size| match size.ws_col {
        0 => 80,
        columns => usize::from(columns).max(2),
    })
}

/// Whether colours are wanted on standard output.
pub fn colours() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
