//! Turns an agent's acts into lines, and follows the activity of a running iteration.

use super::summary::LiveNumbers;
use crate::engine::act::ChangedLines;
use crate::engine::format::duration;
use crate::engine::plain_text::clean;
use crate::engine::{Act, State, Tally};
use crate::store::LoopDir;
use crate::store::activity::{ActivityItem, ActivityReader};
use crate::ui::tool_line::line_counts;
use crate::ui::{one_line, rest_text};
use std::collections::VecDeque;
use std::num::NonZero;
use std::path::PathBuf;

/// The most lines of an iteration's activity that are kept.
const LINES_MAX: usize = 2000;
/// A line of text that is longer, in bytes, is cut.
const LINE_MAX: usize = 4000;
/// The number of lines among which the end of a final message is looked for.
const RECENT: usize = 50;
/// The size of the screen on which the output of terminal agents is shown.
const SCREEN: (NonZero<u16>, NonZero<u16>) =
    (NonZero::new(40).unwrap(), NonZero::new(132).unwrap());

/// What a line of activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActivityKind {
    Text,
    Thinking,
    /// A tool call that is running.
    ToolRunning,
    ToolDone,
    ToolFailed,
    /// A warning or an error.
    Problem,
    Side,
}

/// A line of activity, without control characters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ActivityRow {
    pub(super) at_ms: i64,
    pub(super) kind: ActivityKind,
    pub(super) text: String,
}

/// Builds lines from acts.
#[derive(Default)]
pub(super) struct ActivityLines {
    lines: VecDeque<ActivityRow>,
    /// The number of lines and acts that were left out.
    pub(super) dropped: u64,
    /// The line of text, or of thought, that is not complete.
    open: Option<ActivityRow>,
    screen: Option<Box<vt100::Parser>>,
}

impl ActivityLines {
    pub(super) fn add(&mut self, at_ms: i64, act: &Act<'_>) {
        match act {
            Act::Text(text) => self.add_text(at_ms, ActivityKind::Text, text),
            Act::Thinking(text) => self.add_text(at_ms, ActivityKind::Thinking, text),
            Act::TerminalOutput(bytes) => {
                let new = || Box::new(vt100::Parser::new(SCREEN.0, SCREEN.1, 0));
                self.screen.get_or_insert_with(new).process(bytes);
            }
            Act::ToolStarted { name, about } => {
                self.push(at_ms, ActivityKind::ToolRunning, &format!("{name} {about}"));
            }
            Act::ToolFinished {
                name,
                about,
                ok,
                error,
                lines,
                ms,
            } => {
                let call = FinishedCall {
                    call: &format!("{name} {about}"),
                    ok: *ok,
                    error,
                    lines: *lines,
                    ms: *ms,
                };
                self.finish_tool(at_ms, &call);
            }
            Act::Denied(what) => {
                self.push(at_ms, ActivityKind::Problem, &format!("denied: {what}"));
            }
            Act::Retrying(why) => {
                self.push(at_ms, ActivityKind::Problem, &format!("retrying: {why}"));
            }
            Act::NearLimit {
                limit,
                used,
                until_ms,
            } => {
                let text = rest_text::near_limit(limit, *used, *until_ms, at_ms);
                self.push(at_ms, ActivityKind::Problem, &text);
            }
            Act::Finished(text) => self.add_final_message(at_ms, text),
            Act::SideOutput(line) => self.push(at_ms, ActivityKind::Side, line),
            Act::Failed { why, .. } => {
                for line in why.lines().filter(|line| !line.trim().is_empty()) {
                    self.push(at_ms, ActivityKind::ToolFailed, line);
                }
            }
            _ => {}
        }
    }

    /// Returns the newest line of any kind; `None` if there is none.
    pub(super) fn newest(&self) -> Option<&ActivityRow> {
        let open = self.open.as_ref();
        let open = open.filter(|line| !line.text.trim().is_empty());
        open.or_else(|| {
            let mut lines = self.lines.iter().rev();
            lines.find(|line| !line.text.trim().is_empty())
        })
    }

    /// Returns all lines, oldest first.
    pub(super) fn all(&self) -> Vec<ActivityRow> {
        let screen = self.screen.as_ref().map(|parser| {
            let text = parser.screen().contents();
            let line = |text: &str| ActivityRow {
                at_ms: 0,
                kind: ActivityKind::Text,
                text: clean(text).into_owned(),
            };
            text.lines().map(line).collect::<Vec<_>>()
        });
        let lines = self.lines.iter().chain(&self.open).cloned();
        lines.chain(screen.into_iter().flatten()).collect()
    }

    fn add_text(&mut self, at_ms: i64, kind: ActivityKind, text: &str) {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close();
        }
        for piece in text.split_inclusive('\n') {
            let open = self.open.get_or_insert_with(|| ActivityRow {
                at_ms,
                kind,
                text: String::new(),
            });
            let room = LINE_MAX.saturating_sub(open.text.len());
            open.text.push_str(cut(piece.trim_end_matches('\n'), room));
            if piece.ends_with('\n') {
                self.close();
            }
        }
    }

    /// Adds the agent's final message, unless its text was shown when it arrived.
    fn add_final_message(&mut self, at_ms: i64, text: &str) {
        self.close();
        let text = text.trim();
        let last = clean(text.lines().next_back().unwrap_or_default()).into_owned();
        let recent = self.lines.iter().rev().take(RECENT).rev();
        let mut texts = recent.filter(|line| line.kind == ActivityKind::Text);
        if !last.is_empty() && !texts.any(|line| line.text.trim() == last.trim()) {
            self.add_text(at_ms, ActivityKind::Text, text);
            self.close();
        }
    }

    /// Completes the open line.
    fn close(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.text = clean(&open.text).replace('\t', "    ");
            self.keep(open);
        }
    }

    fn push(&mut self, at_ms: i64, kind: ActivityKind, text: &str) {
        self.close();
        let text = one_line(cut(text, LINE_MAX));
        self.keep(ActivityRow { at_ms, kind, text });
    }

    fn keep(&mut self, line: ActivityRow) {
        self.lines.push_back(line);
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
            self.dropped += 1;
        }
    }

    /// Replaces the line of a running tool call with its result.
    fn finish_tool(&mut self, at_ms: i64, finished: &FinishedCall<'_>) {
        self.close();
        let call = one_line(cut(finished.call, LINE_MAX));
        let started = self.lines.iter().rposition(|line| {
            line.kind == ActivityKind::ToolRunning && (line.text == call || call.is_empty())
        });
        let started_ms = started
            .and_then(|at| self.lines.remove(at))
            .map(|line| line.at_ms);
        let took = started_ms.map(|ms| at_ms.saturating_sub(ms).max(0) as u64);
        let took = match finished.ms.or(took) {
            Some(took @ 1000..) => format!("  {}", duration(took)),
            _ => String::new(),
        };
        let lines = line_counts(finished.lines.unwrap_or_default());
        let lines = lines.map(|(text, _)| text).concat();
        let error = match finished.error {
            "" => String::new(),
            error => format!(": {}", one_line(error)),
        };
        let kind = if finished.ok {
            ActivityKind::ToolDone
        } else {
            ActivityKind::ToolFailed
        };
        self.keep(ActivityRow {
            at_ms,
            kind,
            text: format!("{call}{error}{lines}{took}"),
        });
    }
}

/// A tool call that has ended.
struct FinishedCall<'a> {
    /// The tool and its target.
    call: &'a str,
    ok: bool,
    error: &'a str,
    lines: Option<ChangedLines>,
    ms: Option<u64>,
}

/// Cuts a text to at most `max` bytes, between two characters.
fn cut(text: &str, max: usize) -> &str {
    let mut ends = (0..=max.min(text.len())).rev();
    let end = ends.find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Follows the activity of a loop's running iteration, for the list.
#[derive(Default)]
pub(super) struct ActivityTail {
    iteration: u32,
    reader: Option<ActivityReader>,
    tally: Tally,
    lines: ActivityLines,
}

impl ActivityTail {
    /// Reads the acts since the last call. Returns whether there were any.
    pub(super) fn read(&mut self, dir: &LoopDir, state: &State) -> bool {
        if self.iteration != state.iteration {
            *self = Self {
                iteration: state.iteration,
                ..Self::default()
            };
        }
        if self.reader.is_none() {
            self.reader = ActivityReader::open(&dir.activity(self.iteration));
        }
        let (tally, lines, mut is_new) = (&mut self.tally, &mut self.lines, false);
        if let Some(reader) = &mut self.reader {
            let _ = reader.read(&mut |item| {
                is_new = true;
                if let ActivityItem::Act { at_ms, act } = item {
                    tally.add(&act);
                    lines.add(at_ms, &act);
                }
            });
        }
        // The list shows only the newest line.
        while lines.lines.len() > 16 {
            lines.lines.pop_front();
        }
        is_new
    }

    pub(super) fn numbers(&self, state: &State) -> LiveNumbers {
        let model = state.agent().model.as_deref().unwrap_or_default();
        LiveNumbers {
            cost_usd: self.tally.cost(&state.plan.prices, model),
            doing: self.lines.newest().map_or(String::new(), |line| {
                let mark = match line.kind {
                    ActivityKind::ToolRunning => "▸ ",
                    ActivityKind::ToolFailed => "✘ ",
                    _ => "",
                };
                format!("{mark}{}", one_line(&line.text))
            }),
        }
    }

    /// Returns the file that is read; `None` if it does not exist yet.
    pub(super) fn path(&self, dir: &LoopDir) -> Option<PathBuf> {
        self.reader.as_ref().map(|_| dir.activity(self.iteration))
    }
}
