//! Formats ralph's own lines on the console.

use super::event_line;
use super::rest_text::clock;
use super::tty::width;
use super::{
    StyledText, TextStyle, adapt, display_width, hang, one_line, styled, truncate_to_width,
};
use crate::engine::display::wrap;
use crate::engine::event::Request;
use crate::engine::plain_text::visible;
use crate::engine::{Event, State};

/// What a row starts with that continues a `[ralph]` line.
const INDENT: &str = "        ";

/// The maximum number of columns of a line. Longer lines are hard to read.
const MEASURE: usize = 120;

/// How ralph's own lines look.
pub(super) struct OwnLines {
    /// The name of the loop.
    pub(super) name: String,
    /// Whether lines begin with a mark instead of the name.
    pub(super) is_rich: bool,
    pub(super) color: bool,
    /// The maximum width of a heading, in columns.
    pub(super) max_columns: usize,
    /// Whether to break lines at the terminal's width.
    pub(super) is_wrapped: bool,
    /// The line ending: `"\r\n"` while an agent has the terminal in raw mode, else `"\n"`.
    pub(super) line_end: &'static str,
}

impl OwnLines {
    /// Appends the lines of an event. In a rich console, an iteration starts with a heading, and a
    /// check's line with the mark of its result.
    pub(super) fn event(
        &self,
        event: &Event,
        requests: Requests,
        state: &State,
        out: &mut Vec<u8>,
    ) {
        match event {
            Event::Started {
                iteration, agent, ..
            } if self.is_rich => {
                let agent = agent.as_ref().unwrap_or(&state.agent().name);
                return self.heading(*iteration, agent, state, out);
            }
            Event::Asked { .. } if self.is_rich => {
                if let Some((text, style)) = asked(event, requests, state) {
                    self.print(&text, style, out);
                }
                return;
            }
            _ => {}
        }
        let is_check = matches!(event, Event::Checked { .. } | Event::Rechecked { .. });
        for (text, style) in event_line::lines(event, state) {
            match style {
                TextStyle::Green if is_check && self.is_rich => self.marked("●", &text, style, out),
                TextStyle::Red if is_check && self.is_rich => self.marked("○", &text, style, out),
                _ => self.print(&text, style, out),
            }
        }
    }

    /// Appends a line.
    pub(super) fn print(&self, text: &str, style: TextStyle, out: &mut Vec<u8>) {
        if !self.is_rich {
            return self.named(text, style, out);
        }
        let mark = match style {
            TextStyle::Green => "✔",
            TextStyle::Red => "✘",
            TextStyle::Yellow => "!",
            TextStyle::Cyan | TextStyle::Dim | TextStyle::Bold => "·",
        };
        self.marked(mark, text, style, out);
    }

    /// Appends a plain line: `[ralph] NAME: TEXT`.
    fn named(&self, text: &str, style: TextStyle, out: &mut Vec<u8>) {
        let prefix = format!("[ralph] {}:", self.name);
        let text = adapt(one_line(text));
        let columns = width().filter(|_| self.is_wrapped);
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

    /// Appends a line of a rich console, which begins with a mark.
    fn marked(&self, mark: &str, text: &str, style: TextStyle, out: &mut Vec<u8>) {
        let columns = width().unwrap_or(80).saturating_sub(1).min(MEASURE);
        let text = one_line(text);
        let text = hang(&text, Some(columns), 2, 2);
        let mut start = styled(mark, style, true) + " ";
        for row in text.split('\n') {
            let row = match style {
                TextStyle::Dim | TextStyle::Yellow => styled(row, style, true),
                _ => visible(row).into_owned(),
            };
            out.extend_from_slice(format!("{start}{row}{}", self.line_end).as_bytes());
            start.clear();
        }
    }

    /// Appends the heading of an iteration: `━━ Iteration 2/25 · claude · 14:03 ━━━━`.
    fn heading(&self, iteration: u32, agent: &str, state: &State, out: &mut Vec<u8>) {
        let columns = width()
            .unwrap_or(80)
            .min(self.max_columns)
            .saturating_sub(1);
        let title = format!("Iteration {}", state.iteration_label(iteration));
        let agent = truncate_to_width(&one_line(agent), columns / 2);
        let facts = format!(" · {agent} · {}", clock(state.wall_ms, state.wall_ms));
        let left = columns.saturating_sub(display_width(&title) + 4);
        let mut line = StyledText::new(true);
        line.push_styled("━━ ", TextStyle::Cyan)
            .push_styled(&title, TextStyle::Bold)
            .push(&truncate_to_width(&facts, left))
            .push(" ");
        let rule = "━".repeat(columns.saturating_sub(line.columns()));
        line.push_styled(&rule, TextStyle::Cyan);
        let end = self.line_end;
        out.extend_from_slice(format!("{end}{}{end}", line.as_str()).as_bytes());
    }
}

/// What the rich console knows about the user's requests.
#[derive(Clone, Copy, Default)]
pub(super) struct Requests {
    /// Whether a pause or a stop was pending before the newest request.
    pub(super) is_pending: bool,
    /// Whether the loop continues in the background after a pause.
    pub(super) is_moving: bool,
}

/// Returns the rich console's line for a request: also that one was taken back, and where the loop
/// continues.
fn asked(event: &Event, requests: Requests, state: &State) -> Option<(String, TextStyle)> {
    if requests.is_pending && state.request == Request::Go {
        let text = "continuing: the request was taken back";
        return Some((text.into(), TextStyle::Dim));
    }
    let (text, style) = event_line::lines(event, state).into_iter().next()?;
    let text = if requests.is_moving {
        text.replace("pausing", "continuing in the background")
    } else {
        text
    };
    Some((text, style))
}
