//! The console of a running loop: the agent's output, ralph's own lines, and a live line or a panel
//! at the bottom.
//!
//! On a terminal with colors and UTF-8 the console is rich: see `own_line`, `markdown`, `tool_line`
//! and `panel`. Otherwise it prints plain lines, which scripts may rely on.

use super::act_printer::ActPrinter;
use super::ascii::use_ascii;
use super::check_output::FailedLog;
use super::cost::IterationSpend;
use super::escape_filter::EscapeFilter;
use super::key_input::{KeyInput, KeyRequest};
use super::live_area::LiveArea;
use super::live_line;
use super::live_line::{LiveStatus, TimeStyle};
use super::output_queue::{OutputKind, OutputQueue};
use super::own_line::{OwnLines, Requests};
use super::panel::{self, PanelStatus};
use super::print::warn_styled;
use super::tty::{height, in_foreground, is_dumb, is_null_device, is_terminal, use_color, width};
use super::{StyledText, TextStyle, adapt, event_line, styled, truncate_to_width};
use crate::engine::event::Request;
use crate::engine::plain_text::escape_json;
use crate::engine::{Act, Event, Phase, State};
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
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct Console {
    dir: LoopDir,
    mode: ConsoleMode,
    /// Whether standard output is a terminal on which lines can be erased.
    is_interactive: bool,
    /// Whether the console shows a panel, and styles what it prints.
    is_rich: bool,
    own_lines: OwnLines,
    gutter: String,
    acts: ActPrinter,
    /// A reusable buffer for formatted acts. Allocating one per act would cause page faults.
    act_text: Vec<u8>,
    spend: IterationSpend,
    /// The text of the live line. Empty if none is shown.
    live_text: String,
    /// The rows of the panel. Empty if none is shown.
    panel: Vec<StyledText>,
    keys: KeyInput,
    has_keys: bool,
    /// Whether a pause or a stop after this iteration was pending at the last event.
    is_request_pending: bool,
    time_style: TimeStyle,
    last_event: Instant,
    has_warned_closed: bool,
    /// The filter for the agent's screen. `None` while that screen is not shown.
    screen: Option<EscapeFilter>,
    /// Output that is printed once the agent's screen is no longer shown.
    deferred: Vec<u8>,
    output: LiveArea,
}

/// The maximum width of a denial message, in columns. Longer messages are truncated.
const DENIAL_WIDTH: usize = 200;

/// The maximum capacity, in bytes, that `act_text` keeps between acts.
const ACT_TEXT_CAPACITY: usize = 1 << 20;

/// The width of a background window's panel. If a viewer had to break its rows, tmux would scroll
/// what is above them out of sight.
const VIEWER_COLUMNS: usize = 80;

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
        let is_full = matches!(mode, ConsoleMode::Full { .. });
        let is_rich = is_full && is_interactive && color && !use_ascii();
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
            is_rich,
            own_lines: OwnLines {
                name: dir.name().to_owned(),
                is_rich,
                color,
                max_columns: usize::MAX,
                is_wrapped: is_interactive,
                line_end: "\n",
            },
            acts: if is_rich {
                ActPrinter::rich(&gutter, raw)
            } else {
                ActPrinter::new(&gutter, color, raw)
            },
            act_text: Vec::new(),
            spend: IterationSpend::default(),
            gutter,
            live_text: String::new(),
            panel: Vec::new(),
            keys: KeyInput::new(true),
            has_keys: false,
            is_request_pending: false,
            time_style: TimeStyle::Elapsed,
            last_event: Instant::now(),
            has_warned_closed: false,
            screen: None,
            deferred: Vec::new(),
            output: LiveArea::new(if matches!(mode, ConsoleMode::Full { stream: true, .. }) {
                output
            } else {
                output.for_little_output()
            }),
        }
    }

    /// Makes the live line show clock times, which need not be redrawn every second. A background
    /// window often has no viewer.
    pub(crate) fn in_window(mut self) -> Self {
        self.own_lines.max_columns = VIEWER_COLUMNS;
        Self {
            time_style: TimeStyle::Clock,
            // The loop is in the background already.
            keys: KeyInput::default(),
            ..self
        }
    }

    /// Returns whether the console has a use for the user's keys.
    pub(crate) fn wants_keys(&self) -> bool {
        self.is_rich
    }

    /// Sets whether the user's keys can be read.
    pub(crate) fn set_keys_available(&mut self, available: bool) {
        self.has_keys = available;
        self.keys.reset();
        // While an agent's screen is shown, the agent sets the modes of the terminal.
        if self.screen.is_none() && in_foreground() {
            self.output.mark_pastes(available);
        }
    }

    /// Handles keys, and returns what they ask for.
    pub(crate) fn keys(&mut self, keys: &[u8], state: &State) -> Vec<KeyRequest> {
        let requests = self.keys.press(keys, state);
        self.update_live(state, None);
        self.redraw();
        requests
    }

    /// Returns whether the user has asked to continue the loop in the background.
    pub(crate) fn moves_to_background(&self) -> bool {
        self.keys.is_moving
    }

    /// Shows an event that has been applied to `state`.
    pub(crate) fn event(&mut self, line: &JournalLine, state: &State) {
        self.last_event = Instant::now();
        if let Event::Asked {
            request: Request::Go,
            ..
        } = line.event
        {
            self.keys.is_moving = false;
        }
        let mirrors_agent = state.agent().terminal && self.can_mirror();
        self.own_lines.line_end = if mirrors_agent { "\r\n" } else { "\n" };
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
                self.update_live(state, None);
                self.show(&text);
            }
        }
        let is_over = matches!(
            state.phase,
            Phase::Ended(_) | Phase::Paused | Phase::Draining { .. }
        );
        self.is_request_pending = state.request != Request::Go && !is_over;
        if !is_over {
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
        let requests = Requests {
            is_pending: self.is_request_pending,
            is_moving: self.keys.is_moving,
        };
        self.own_lines.event(&line.event, requests, state, &mut out);
        let started = matches!(line.event, Event::Started { .. });
        if started && state.agent().terminal && !mirrors_agent {
            let text = format!(
                "the agent runs in its own terminal; ralph logs {} shows its output",
                self.dir.name()
            );
            self.own_lines.print(&text, TextStyle::Dim, &mut out);
        }
        self.failed_output(&line.event, state, &mut out);
        let next = event_line::next_check(&line.event, state);
        if let Some(text) = next.filter(|_| !self.is_interactive) {
            self.own_lines.print(&text, TextStyle::Dim, &mut out);
        }
        out
    }

    /// Returns whether this console can show an agent's screen.
    pub(crate) fn can_mirror(&self) -> bool {
        self.is_interactive && self.shows_acts()
    }

    /// Appends the output of a red check or a failed SCM task. If lines were left out, also appends
    /// the path of the full log.
    fn failed_output(&self, event: &Event, state: &State, out: &mut Vec<u8>) {
        let Some(log) = FailedLog::of_event(event, state, &self.dir) else {
            return;
        };
        let cut = if self.is_rich {
            log.print_folded(&self.gutter, text_width(), out)
        } else {
            log.print_last_lines(&self.gutter, text_width(), out)
        };
        if cut {
            let text = format!("full output: {}", log.shown_path);
            self.own_lines.print(&text, TextStyle::Dim, out);
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
            self.own_lines.print(
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
            if self.has_keys {
                self.output.mark_pastes(false);
            }
        }
        let shown = self.screen.get_or_insert_default().filter(bytes);
        self.output.write(&shown);
    }

    /// Restores the terminal after an agent's screen, and prints the deferred output.
    fn leave_screen(&mut self) {
        if let Some(screen) = self.screen.take() {
            let deferred = std::mem::take(&mut self.deferred);
            self.output.write(&[screen.restore(), deferred].concat());
        }
    }

    /// Redraws the live line if it has changed. Returns the time until the next call, or `None` if
    /// only an event can change the line.
    pub(crate) fn tick(&mut self, state: &State, silent_for: Option<Duration>) -> Option<Duration> {
        let is_full = matches!(self.mode, ConsoleMode::Full { .. });
        if !self.is_interactive || !is_full || self.output.is_closed() {
            return None;
        }
        self.update_live(state, silent_for);
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
            self.own_lines.print(message, TextStyle::Yellow, &mut out);
            self.deferred.extend(out);
            return;
        }
        self.erase();
        warn_styled(message, self.own_lines.color);
    }

    /// Removes the live line and flushes the output. Nothing may be shown after this call.
    pub(crate) fn close(&mut self) {
        self.leave_screen();
        self.erase();
        if self.has_keys {
            self.output.mark_pastes(false);
        }
        self.output.close();
    }

    fn redraw(&mut self) {
        if !self.output.shows(&self.live_rows()) {
            self.show(b"");
        }
    }

    /// Updates the live line or the panel.
    fn update_live(&mut self, state: &State, silent_for: Option<Duration>) {
        self.live_text.clear();
        self.panel.clear();
        if self.has_just_started_draining(state)
            || matches!(
                state.phase,
                Phase::Ended(_) | Phase::Paused | Phase::NotStarted
            )
        {
            return;
        }
        let since_event = self.last_event.elapsed();
        if self.is_rich {
            self.panel = panel::rows(
                state,
                &PanelStatus {
                    name: self.dir.name(),
                    since_event,
                    silent_for,
                    spent: self.spend.totals(state),
                    times: self.time_style,
                    keys: self.has_keys.then_some(&self.keys),
                    columns: width().unwrap_or(80).min(self.own_lines.max_columns),
                    rows: height().unwrap_or(24),
                },
            );
            return;
        }
        let status = LiveStatus {
            since_event,
            silent_for,
            spend: self.spend.describe(state),
        };
        self.live_text = live_line::text(self.dir.name(), state, status, self.time_style);
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
            self.output.forget();
        }
        let rows = if can_draw {
            self.live_rows()
        } else {
            Vec::new()
        };
        self.output.draw(text, rows);
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

    /// Returns the rows at the bottom: the agent's unfinished line, if any, and the live line or the
    /// panel.
    fn live_rows(&self) -> Vec<StyledText> {
        if self.live_text.is_empty() && self.panel.is_empty() {
            return Vec::new();
        }
        let unfinished = self.acts.unfinished();
        if !self.is_rich {
            return live_line::rows(&self.live_text, unfinished, self.own_lines.color);
        }
        let unfinished = unfinished.map(|text| panel::unfinished_rows(&text));
        let rows = unfinished.into_iter().flatten();
        rows.chain(self.panel.iter().cloned()).collect()
    }

    fn erase(&mut self) {
        let live_text = std::mem::take(&mut self.live_text);
        let panel = std::mem::take(&mut self.panel);
        self.show(b"");
        (self.live_text, self.panel) = (live_text, panel);
    }
}

/// Returns the number of columns to the right of the gutter. Leaves the terminal's last column
/// empty.
pub(super) fn text_width() -> usize {
    width().map_or(usize::MAX, |width| width.saturating_sub(5).max(8))
}
