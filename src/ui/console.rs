//! The console of a running loop: the agent's output, ralph's own lines, and a live line at the
//! bottom.

use super::act_printer::ActPrinter;
use super::cost::IterationSpend;
use super::escape_filter::EscapeFilter;
use super::gutter::GutterWriter;
use super::live_line;
use super::live_line::{LiveStatus, TimeStyle};
use super::output_queue::{OutputKind, OutputQueue};
use super::print::warn_styled;
use super::tty::{in_foreground, is_dumb, is_null_device, is_terminal, use_color, width};
use super::{TextStyle, adapt, display_width, event_line, one_line, styled, truncate_to_width};
use crate::engine::display::wrap;
use crate::engine::plain_text::{escape_json, visible};
use crate::engine::plan::Scm;
use crate::engine::{Act, Event, Phase, State};
use crate::store::log_tail::last_lines;
use crate::store::{JournalLine, LoopDir};
use std::time::{Duration, Instant};

/// The amount of output that the console shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConsoleMode {
    /// Shows everything as it happens.
    Full {
        /// Whether to include the agent's output.
        stream: bool,
        /// Whether to print the agent's output without decoding it.
        raw: bool,
    },
    /// Shows nothing. The command prints the result when the loop has ended.
    Quiet,
    /// Shows only events, as one JSON object per line.
    Json,
}

/// The console of one runner.
pub(crate) struct Console {
    dir: LoopDir,
    mode: ConsoleMode,
    /// Whether standard output is a terminal on which lines can be erased.
    is_interactive: bool,
    color: bool,
    gutter: String,
    acts: ActPrinter,
    /// A reusable buffer for formatted acts. Allocating one per act would cause page faults.
    act_text: Vec<u8>,
    spend: IterationSpend,
    /// The text of the live line. Empty if none is shown.
    live_text: String,
    time_style: TimeStyle,
    /// The live rows that were drawn last.
    drawn: Vec<String>,
    /// The widths, in columns, of the live rows that are on the screen now.
    drawn_widths: Vec<usize>,
    last_event: Instant,
    has_warned_closed: bool,
    /// The line ending: `"\r\n"` while an agent has the terminal in raw mode, else `"\n"`.
    line_end: &'static str,
    /// The filter for the agent's screen. `None` while that screen is not shown.
    screen: Option<EscapeFilter>,
    /// Output that is printed once the agent's screen is no longer shown.
    deferred: Vec<u8>,
    output: OutputQueue,
}

/// What a row starts with that continues a `[ralph]` line.
const INDENT: &str = "        ";

/// The maximum width of a denial message, in columns. Longer messages are truncated.
const DENIAL_WIDTH: usize = 200;

/// The maximum capacity, in bytes, that `act_text` keeps between acts.
const ACT_TEXT_CAPACITY: usize = 1 << 20;

/// The interval at which the live line is redrawn.
const TICK: Duration = Duration::from_secs(1);

impl Console {
    pub(crate) fn new(dir: &LoopDir, mode: ConsoleMode) -> Self {
        let mode = match mode {
            // Formatting a flood of output for the null device would only slow the agent down.
            ConsoleMode::Full { raw, .. } if is_null_device() => {
                ConsoleMode::Full { stream: false, raw }
            }
            mode => mode,
        };
        let is_terminal = is_terminal();
        let (is_interactive, color) = (is_terminal && !is_dumb(), use_color());
        let gutter = if is_interactive {
            adapt(styled("  │ ", TextStyle::Dim, color))
        } else {
            "  | ".to_owned()
        };
        let output = OutputQueue::new(match mode {
            ConsoleMode::Json => OutputKind::Events,
            _ if is_terminal => OutputKind::Terminal,
            _ => OutputKind::Pipe,
        });
        let raw = matches!(mode, ConsoleMode::Full { raw: true, .. });
        Self {
            dir: dir.clone(),
            mode,
            is_interactive,
            color,
            acts: ActPrinter::new(&gutter, color, raw),
            act_text: Vec::new(),
            spend: IterationSpend::default(),
            gutter,
            live_text: String::new(),
            time_style: TimeStyle::Elapsed,
            drawn: Vec::new(),
            drawn_widths: Vec::new(),
            last_event: Instant::now(),
            has_warned_closed: false,
            line_end: "\n",
            screen: None,
            deferred: Vec::new(),
            output: if matches!(mode, ConsoleMode::Full { stream: true, .. }) {
                output
            } else {
                output.for_little_output()
            },
        }
    }

    /// Makes the live line show clock times, which need not be redrawn every second. A background
    /// window often has no viewer.
    pub(crate) fn in_window(self) -> Self {
        Self {
            time_style: TimeStyle::Clock,
            ..self
        }
    }

    /// Shows an event that has been applied to `state`.
    pub(crate) fn event(&mut self, line: &JournalLine, state: &State) {
        self.last_event = Instant::now();
        let mirrors_agent = state.agent().terminal && self.can_mirror();
        self.line_end = if mirrors_agent { "\r\n" } else { "\n" };
        match self.mode {
            ConsoleMode::Json => {
                let text = format!(
                    "{{\"loop\":\"{}\",{}\n",
                    self.dir.name(),
                    escape_json(&line.to_json()[1..])
                );
                self.show(text.as_bytes());
            }
            ConsoleMode::Quiet => {}
            ConsoleMode::Full { .. } => {
                let text = self.event_text(line, state, mirrors_agent);
                self.live_text = self.live_line(state, None);
                self.show(&text);
            }
        }
        if !matches!(
            state.phase,
            Phase::Ended(_) | Phase::Paused | Phase::Draining { .. }
        ) {
            self.warn_if_closed();
        }
    }

    fn event_text(&mut self, line: &JournalLine, state: &State, mirrors_agent: bool) -> Vec<u8> {
        let mut out = Vec::new();
        if matches!(line.event, Event::Ended { .. } | Event::Finished { .. }) {
            self.leave_screen();
            self.acts.flush(&mut out);
            self.spend = IterationSpend::default();
        }
        for (text, style) in event_line::lines(&line.event, state) {
            self.own_line(&text, style, &mut out);
        }
        let started = matches!(line.event, Event::Started { .. });
        if started && state.agent().terminal && !mirrors_agent {
            let text = format!(
                "the agent runs in its own terminal; ralph logs {} shows its output",
                self.dir.name()
            );
            self.own_line(&text, TextStyle::Dim, &mut out);
        }
        self.failed_output(&line.event, state, &mut out);
        let next = event_line::next_check(&line.event, state);
        if let Some(text) = next.filter(|_| !self.is_interactive) {
            self.own_line(&text, TextStyle::Dim, &mut out);
        }
        out
    }

    /// Returns whether this console can show an agent's screen.
    pub(crate) fn can_mirror(&self) -> bool {
        self.is_interactive && self.shows_acts()
    }

    /// Appends a line that starts with `[ralph] NAME:` to `out`.
    fn own_line(&self, text: &str, style: TextStyle, out: &mut Vec<u8>) {
        let prefix = format!("[ralph] {}:", self.dir.name());
        let text = adapt(one_line(text));
        let columns = width().filter(|_| self.is_interactive);
        let rows = columns.map_or_else(
            || vec![text.clone()],
            |columns| wrap(&text, columns - 1, display_width(&prefix) + 1, INDENT.len()),
        );
        for (at, row) in rows.iter().enumerate() {
            let start = match at {
                0 => styled(&prefix, TextStyle::Dim, self.color) + " ",
                _ => INDENT.to_owned(),
            };
            let row = styled(row, style, self.color);
            out.extend_from_slice(format!("{start}{row}{}", self.line_end).as_bytes());
        }
    }

    /// Appends the end of the output if the event reports a red check or a failed SCM task. If
    /// lines were left out, also appends the path of the full log.
    fn failed_output(&self, event: &Event, state: &State, out: &mut Vec<u8>) {
        let (log, guardrail) = match event {
            Event::Checked {
                iteration,
                check,
                report,
                ..
            } if !report.is_green() => {
                let Some(check) = state.plan.proof.checks.get(*check) else {
                    return;
                };
                (
                    self.dir.check_log(*iteration, &check.slug),
                    state.plan.guardrail_log(*iteration, &check.slug),
                )
            }
            Event::Committed {
                iteration,
                task,
                report,
            } if !report.is_success() => (
                self.dir.scm_task_log(*iteration, *task),
                state.plan.guardrail_log(*iteration, &Scm::slug(*task)),
            ),
            _ => return,
        };
        let mut writer = GutterWriter::new(&self.gutter);
        writer.set_width(text_width());
        let (last, cut) = last_lines(&log);
        writer.feed(last.as_bytes(), out);
        writer.flush(out);
        if cut {
            self.own_line(&format!("full output: {guardrail}"), TextStyle::Dim, out);
        }
    }

    /// Shows an act of the agent.
    pub(crate) fn act(&mut self, act: &Act<'_>) {
        match act {
            Act::TerminalOutput(bytes) => self.mirror(bytes),
            Act::Denied(line) => self.denied(line),
            act => {
                self.spend.add(act);
                self.print_act(act);
            }
        }
    }

    /// Prints a denial as a `[ralph]` line, because it is easily missed among the agent's output.
    fn denied(&mut self, line: &str) {
        if matches!(self.mode, ConsoleMode::Full { .. }) && !self.output.is_closed() {
            let mut out = Vec::new();
            let line = truncate_to_width(line, DENIAL_WIDTH);
            self.own_line(
                &format!("the agent was denied: {line}"),
                TextStyle::Yellow,
                &mut out,
            );
            self.show(&out);
        }
    }

    fn shows_acts(&self) -> bool {
        matches!(self.mode, ConsoleMode::Full { stream: true, .. })
    }

    fn print_act(&mut self, act: &Act<'_>) {
        if self.shows_acts() && !self.output.is_closed() {
            let mut out = std::mem::take(&mut self.act_text);
            self.acts.set_width(text_width());
            self.acts.print(act, &mut out);
            if !out.is_empty() {
                self.show(&out);
                self.warn_if_closed();
            } else if self.time_style == TimeStyle::Clock {
                self.redraw();
            }
            out.clear();
            out.shrink_to(ACT_TEXT_CAPACITY);
            self.act_text = out;
        }
    }

    /// Passes an agent's screen output through to the terminal. All other output is deferred until
    /// the screen is left.
    fn mirror(&mut self, bytes: &[u8]) {
        if !self.can_mirror() || self.output.is_closed() || !in_foreground() {
            return;
        }
        if self.screen.is_none() {
            self.erase();
        }
        let shown = self.screen.get_or_insert_default().filter(bytes);
        self.output.write("", &shown, "");
    }

    /// Restores the terminal after an agent's screen, and prints the deferred output.
    fn leave_screen(&mut self) {
        if let Some(screen) = self.screen.take() {
            let deferred = std::mem::take(&mut self.deferred);
            self.output
                .write("", &[screen.restore(), deferred].concat(), "");
        }
    }

    /// Redraws the live line if it has changed. Returns the time until the next call, or `None` if
    /// only an event can change the line.
    pub(crate) fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration> {
        let is_full = matches!(self.mode, ConsoleMode::Full { .. });
        if !self.is_interactive || !is_full || self.output.is_closed() {
            return None;
        }
        self.live_text = self.live_line(state, silent_for);
        self.redraw();
        match self.time_style {
            TimeStyle::Elapsed => Some(TICK),
            TimeStyle::Clock if self.has_just_started_draining(state) => Some(TICK),
            TimeStyle::Clock => live_line::idle_shown_in(silent_for),
        }
    }

    /// Shows a warning that is not an event.
    pub(crate) fn warn(&mut self, message: &str) {
        if self.screen.is_some() {
            let mut out = Vec::new();
            self.own_line(message, TextStyle::Yellow, &mut out);
            self.deferred.extend(out);
            return;
        }
        self.erase();
        warn_styled(message, self.color);
    }

    /// Removes the live line and flushes the output. Nothing may be shown after this call.
    pub(crate) fn close(&mut self) {
        self.leave_screen();
        self.erase();
        self.output.close();
    }

    fn redraw(&mut self) {
        if self.live_rows() != self.drawn {
            self.show(b"");
        }
    }

    fn live_line(&self, state: &State, silent_for: Option<Duration>) -> String {
        if self.has_just_started_draining(state)
            || matches!(
                state.phase,
                Phase::Ended(_) | Phase::Paused | Phase::NotStarted
            )
        {
            return String::new();
        }
        let status = LiveStatus {
            since_event: self.last_event.elapsed(),
            silent_for,
            spend: self.spend.describe(state),
        };
        live_line::text(self.dir.name(), state, status, self.time_style)
    }

    /// Returns whether draining has started too recently to show. Without child loops it ends at
    /// once, and showing it would only flicker.
    fn has_just_started_draining(&self, state: &State) -> bool {
        matches!(state.phase, Phase::Draining { .. }) && self.last_event.elapsed() < TICK / 2
    }

    /// Prints `text` above the live rows and redraws them. Draws no live rows in a shell's
    /// background job.
    fn show(&mut self, text: &[u8]) {
        if self.screen.is_some() {
            self.deferred.extend_from_slice(text);
            return;
        }
        let can_draw = self.is_interactive && in_foreground();
        if !can_draw {
            self.drawn_widths.clear();
        }
        let rows = if can_draw {
            self.live_rows()
        } else {
            Vec::new()
        };
        let widths = rows.iter().map(|row| display_width(row)).collect();
        let live = match rows.split_last() {
            Some((last, above)) => [above, &[styled(last, TextStyle::Bold, self.color)]]
                .concat()
                .join("\n"),
            None => String::new(),
        };
        if self.output.write(&self.erase_sequence(), text, &live) {
            (self.drawn_widths, self.drawn) = (widths, rows);
        }
    }

    /// Warns once if the reader of standard output has closed it.
    fn warn_if_closed(&mut self) {
        if self.output.is_closed() && !std::mem::replace(&mut self.has_warned_closed, true) {
            let name = self.dir.name();
            warn_styled(
                &format!("standard output was closed; the loop continues (ralph status {name})"),
                false,
            );
        }
    }

    /// Returns the rows at the bottom: the agent's unfinished line, if any, and the live line.
    fn live_rows(&self) -> Vec<String> {
        if self.live_text.is_empty() {
            return Vec::new();
        }
        let width = width().unwrap_or(80) - 1;
        let unfinished = self
            .acts
            .unfinished()
            .map(|text| truncate_to_width(&format!("  │ {text}"), width));
        unfinished
            .into_iter()
            .chain([truncate_to_width(&visible(&self.live_text), width)])
            .map(adapt)
            .collect()
    }

    fn erase(&mut self) {
        let live_text = std::mem::take(&mut self.live_text);
        self.show(b"");
        self.live_text = live_text;
    }

    /// Returns the escape sequences that erase the live rows. Accounts for rows that the terminal
    /// wrapped because it became narrower.
    fn erase_sequence(&self) -> String {
        if self.drawn_widths.is_empty() {
            return String::new();
        }
        let width = width().unwrap_or(80);
        let rows: usize = self
            .drawn_widths
            .iter()
            .map(|columns| columns.div_ceil(width).max(1))
            .sum();
        format!("\r\x1b[2K{}", "\x1b[1A\r\x1b[2K".repeat(rows - 1))
    }
}

/// Returns the number of columns to the right of the gutter. Leaves the terminal's last column
/// empty.
fn text_width() -> usize {
    width().map_or(usize::MAX, |width| width.saturating_sub(5).max(8))
}
