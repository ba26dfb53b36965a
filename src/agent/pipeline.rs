//! Reads an agent's output from any source: a pipe, a terminal, a function, a client's session, or
//! a log that is replayed after a crash.
//!
//! Output is decoded into acts as it arrives. [`OutputPipeline::finish`] turns the run into an
//! [`AgentOutput`]: signals, denials, usage and failure.

use super::decode::{AgentProfile, OutputDecoder};
use super::pattern::PatternScanner;
use super::redact::{ActRedactor, Redactor};
use crate::engine::act::{Tally, error_excerpt};
use crate::engine::event::TextSignals;
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::plain_text::clean;
use crate::engine::{Act, State, screen, signals};
use regex::RegexSet;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How long an agent prints nothing before an unterminated line is taken to be complete.
pub(crate) const QUIET: Duration = Duration::from_secs(2);

/// The source of the agent's final text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FinalText {
    /// The final message of a structured stream.
    Message,
    /// The text on the screen, without the prompt typed there.
    Screen,
    /// Everything printed, without an echoed prompt.
    Output,
}

/// Reads the output of one agent run.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate fact about the output"
)]
pub(crate) struct OutputPipeline {
    profile: AgentProfile,
    decoder: OutputDecoder,
    /// Redacts the decoded acts; `None` if there are no secrets.
    redactor: Option<Box<ActRedactor>>,
    final_text: FinalText,
    prompt: String,
    promises: Vec<String>,
    pattern: Option<PatternScanner>,
    pattern_found: bool,
    pattern_reported: bool,
    /// Whether the unterminated line at the end of the output has been compared with the pattern.
    open_line_tested: bool,
    progress: Option<Progress>,
    tally: Tally,
    /// Whether the agent reported usage since the last call of `take_usage`.
    usage_changed: bool,
}

/// The state of a run according to its structured stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    /// Whether a tool is running. Silence then does not mean inactivity.
    pub(crate) is_busy: bool,
    /// Whether the run has ended and only the process still has to exit.
    pub(crate) has_ended: bool,
}

/// The end of a run's output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputTail<'a> {
    /// The last output; for a terminal, the text on its screen.
    pub(crate) text: &'a str,
    /// Total size of the run's output, in bytes.
    pub(crate) bytes: u64,
}

/// The result of reading a run's output.
pub(crate) struct AgentOutput {
    pub(crate) signals: TextSignals,
    /// What the agent leaves to the next iteration: its `<note>`, or else the end of its final
    /// message. `None` if there is neither.
    pub(crate) note: Option<String>,
    /// The sums of the run's costs, tokens, steps and denials.
    pub(crate) tally: Tally,
    tail: String,
    is_cut: bool,
    reads_stream: bool,
    on_screen: bool,
    profile: AgentProfile,
}

impl OutputPipeline {
    /// Creates a pipeline for the agent that is running according to `state`.
    pub(crate) fn new(
        profile: &AgentProfile,
        state: &State,
        prompt: &[u8],
        redactor: &Redactor,
    ) -> Self {
        let agent = state.agent();
        let prompt = String::from_utf8_lossy(prompt).into_owned();
        let (decoder, final_text) = if agent.terminal {
            (OutputDecoder::Screen, FinalText::Screen)
        } else {
            let decoder = profile.decoder(&state.plan.workspace, &state.session_usage, || {
                prompt.clone()
            });
            let final_text = match decoder {
                OutputDecoder::JsonLines(_) => FinalText::Message,
                _ => FinalText::Output,
            };
            (decoder, final_text)
        };
        let pattern = state.plan.proof.pattern().filter(|_| !agent.terminal);
        let pattern = pattern.and_then(|pattern| RegexSet::new([pattern]).ok());
        Self {
            profile: profile.clone(),
            decoder,
            redactor: ActRedactor::new(redactor).map(Box::new),
            final_text,
            pattern: pattern.map(|pattern| PatternScanner::new(pattern, &prompt)),
            prompt,
            promises: state.promises(),
            pattern_found: false,
            pattern_reported: false,
            open_line_tested: false,
            progress: None,
            tally: Tally::default(),
            usage_changed: false,
        }
    }

    /// Creates a pipeline that only decodes, to replay a log. It reads no signals.
    pub(crate) fn for_log(profile: AgentProfile, workspace: &Path, redactor: &Redactor) -> Self {
        Self {
            decoder: profile.decoder(workspace, &[], String::new),
            redactor: ActRedactor::new(redactor).map(Box::new),
            profile,
            final_text: FinalText::Message,
            prompt: String::new(),
            promises: Vec::new(),
            pattern: None,
            pattern_found: false,
            pattern_reported: false,
            open_line_tested: false,
            progress: None,
            tally: Tally::default(),
            usage_changed: false,
        }
    }

    /// Reads the next bytes. Passes acts that should be shown to `emit`.
    pub(crate) fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(&Act<'_>)) {
        self.open_line_tested = false;
        if self.final_text == FinalText::Output {
            scan(&mut self.pattern, &mut self.pattern_found, bytes);
        }
        let mut decoder = std::mem::replace(&mut self.decoder, OutputDecoder::Screen);
        decoder.feed(bytes, &mut |act| self.redact(act.cleaned(), emit));
        self.decoder = decoder;
    }

    /// Reads an act that a function agent reported.
    pub(crate) fn feed_act(&mut self, act: Act<'_>, emit: &mut dyn FnMut(&Act<'_>)) {
        let act = act.cleaned();
        if let Act::Text(text) = &act {
            self.open_line_tested = false;
            scan(&mut self.pattern, &mut self.pattern_found, text.as_bytes());
        }
        if let Act::Finished(text) = &act {
            scan(&mut self.pattern, &mut self.pattern_found, text.as_bytes());
            scan(&mut self.pattern, &mut self.pattern_found, b"\n");
        }
        self.redact(act, emit);
    }

    /// Redacts an act before anything else reads it.
    fn redact(&mut self, act: Act<'_>, emit: &mut dyn FnMut(&Act<'_>)) {
        match self.redactor.take() {
            None => self.push(&act, emit),
            Some(mut redactor) => {
                redactor.redact(act, &mut |act| self.push(&act, emit));
                self.redactor = Some(redactor);
            }
        }
    }

    fn push(&mut self, act: &Act<'_>, emit: &mut dyn FnMut(&Act<'_>)) {
        match act {
            // If there is a final message, the pattern is searched for only there.
            Act::Finished(text) if self.final_text == FinalText::Message => {
                scan(&mut self.pattern, &mut self.pattern_found, text.as_bytes());
                scan(&mut self.pattern, &mut self.pattern_found, b"\n");
            }
            // A structured agent that prints no event is read as plain text.
            Act::SideOutput(line) if !self.tally.has_events() => {
                scan(&mut self.pattern, &mut self.pattern_found, line.as_bytes());
                scan(&mut self.pattern, &mut self.pattern_found, b"\n");
            }
            _ => {}
        }
        if self.final_text == FinalText::Message && act.is_progress() {
            self.progress = Some(Progress {
                is_busy: false,
                has_ended: *act == Act::RunEnded,
            });
        }
        self.usage_changed |= matches!(act, Act::Cost(_) | Act::TokensUsed { .. });
        if self.tally.add(act) && act.has_content() {
            emit(act);
        }
    }

    /// Returns whether output ends in the middle of a line, which is compared with the done pattern
    /// after [`QUIET`] without further output.
    pub(crate) fn awaits_line_end(&self) -> bool {
        let pattern = self.pattern.as_ref().filter(|_| !self.pattern_found);
        !self.open_line_tested && pattern.is_some_and(PatternScanner::has_open_line)
    }

    /// Returns true once, after the done pattern was found. `silent_for` is how long the agent has
    /// printed nothing.
    pub(crate) fn take_pattern(&mut self, silent_for: Duration) -> bool {
        if silent_for >= QUIET && self.awaits_line_end() {
            self.open_line_tested = true;
            let pattern = self.pattern.as_ref();
            self.pattern_found = pattern.is_some_and(PatternScanner::open_line_matches);
        }
        let is_new = self.pattern_found && !self.pattern_reported;
        self.pattern_reported |= is_new;
        is_new
    }

    /// Returns the run's sums so far if the agent reported usage since the last call.
    pub(crate) fn take_usage(&mut self) -> Option<&Tally> {
        std::mem::take(&mut self.usage_changed).then_some(&self.tally)
    }

    /// Returns the progress since the last call; `None` if the stream reported none.
    pub(crate) fn take_progress(&mut self) -> Option<Progress> {
        let progress = self.progress.take()?;
        Some(Progress {
            is_busy: self.decoder.is_busy(),
            ..progress
        })
    }

    /// Reads the remaining output, then the signals of the whole run.
    pub(crate) fn finish(
        mut self,
        tail: OutputTail<'_>,
        emit: &mut dyn FnMut(&Act<'_>),
    ) -> AgentOutput {
        let mut decoder = std::mem::replace(&mut self.decoder, OutputDecoder::Screen);
        decoder.finish(&mut |act| self.redact(act.cleaned(), emit));
        if let Some(mut redactor) = self.redactor.take() {
            redactor.finish(&mut |act| self.push(&act, emit));
        }
        if let Some(scanner) = self.pattern.as_mut().filter(|_| !self.pattern_found) {
            scanner.finish(&mut |_| self.pattern_found = true);
        }
        let tail_text = clean(tail.text).into_owned();
        let on_screen = self.final_text == FinalText::Screen;
        let screen_text = on_screen.then(|| screen::strip_prompt(&tail_text, &self.prompt));
        if let Some(text) = &screen_text {
            self.read_denials(text, emit);
        }
        let is_cut = tail.bytes > tail.text.len() as u64;
        let own_text = self.own_text(&tail_text, screen_text.as_deref());
        let mut signals = own_text
            .as_deref()
            .map(|text| self.read_signals(text, is_cut))
            .unwrap_or_default();
        // The end of a screen is rarely a message.
        let end = own_text.as_deref().filter(|_| !on_screen);
        let note = own_text
            .as_deref()
            .and_then(signals::read_note)
            .or_else(|| end.and_then(signals::end_of_message));
        signals.matched = self.pattern_found;
        AgentOutput {
            signals,
            note,
            tally: self.tally,
            tail: tail_text,
            is_cut,
            reads_stream: self.final_text == FinalText::Message,
            on_screen,
            profile: self.profile,
        }
    }

    /// Reports the denials on a screen. A screen is redrawn often, so each line counts once.
    fn read_denials(&mut self, text: &str, emit: &mut dyn FnMut(&Act<'_>)) {
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            if self.profile.is_denial(line) && seen.insert(line) {
                let act = Act::Denied(line.into());
                if self.tally.add(&act) {
                    emit(&act);
                }
            }
        }
    }

    /// Returns the text in which the agent's signals are read: its final message, its screen, or
    /// its output without an echoed prompt. `None` if it has no final message.
    fn own_text<'a>(&'a self, tail: &'a str, screen: Option<&'a str>) -> Option<Cow<'a, str>> {
        if let Some(message) = self.tally.final_message() {
            return Some(message.into());
        }
        if let Some(screen) = screen {
            return Some(screen.into());
        }
        let reads_stream = self.final_text == FinalText::Message;
        let has_message = !(reads_stream && self.tally.has_events());
        has_message.then(|| signals::EchoFilter::new(&self.prompt).strip(tail).into())
    }

    fn read_signals(&self, text: &str, is_cut: bool) -> TextSignals {
        let is_output =
            self.tally.final_message().is_none() && self.final_text != FinalText::Screen;
        let read = if is_cut && is_output {
            signals::read_tail
        } else {
            signals::read
        };
        read(text, &self.promises)
    }
}

impl AgentOutput {
    /// Returns the last lines that the agent printed, to explain a failure that it did not report.
    pub(crate) fn last_lines(&self) -> String {
        if !self.reads_stream {
            return error_excerpt(&self.tail);
        }
        let beside: Vec<&str> = self
            .tail
            .lines()
            .skip(usize::from(self.is_cut))
            .filter(|line| !line.trim_start().starts_with('{'))
            .collect();
        error_excerpt(&beside.join("\n"))
    }

    /// Returns whether the agent's event stream contains no tool call. `false` if ralph does not
    /// read a stream.
    pub(crate) fn is_idle(&self) -> bool {
        self.reads_stream && self.tally.is_idle()
    }

    /// Returns whether the agent's event stream contains nothing that its model did. `false` if
    /// ralph does not read a stream.
    pub(crate) fn is_silent(&self) -> bool {
        self.reads_stream && self.tally.is_silent()
    }

    /// Returns the error that a plain-text agent reported although it exits with 0, and its class;
    /// `None` if it reported none.
    pub(crate) fn reported_error(&self) -> Option<(String, AgentFailure)> {
        if self.reads_stream || self.on_screen {
            return None;
        }
        let line = self.profile.reported_error(&self.tail)?;
        let reason = self.profile.failure_reason(line);
        Some((
            error_excerpt(line),
            reason.unwrap_or(FailureKind::Crashed.into()),
        ))
    }

    /// Classifies the failure by why the agent last retried a request.
    pub(crate) fn classify_retry(&self) -> Option<AgentFailure> {
        self.profile.failure_reason(self.tally.last_retry()?)
    }

    /// Classifies the failure by the last line that the agent printed outside its event stream;
    /// `None` if no pattern matches.
    pub(crate) fn classify_last_line(&self) -> Option<AgentFailure> {
        if self.on_screen {
            return None;
        }
        let mut lines = self
            .tail
            .lines()
            .rev()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let last = lines.find(|line| !(self.reads_stream && line.starts_with('{')))?;
        self.profile.failure_reason(last)
    }
}

fn scan(pattern: &mut Option<PatternScanner>, found: &mut bool, bytes: &[u8]) {
    if let Some(scanner) = pattern.as_mut().filter(|_| !*found) {
        scanner.feed(bytes, &mut |_| *found = true);
    }
}
