//! Draws dialogs over everything else.

use super::super::model::{Dialog, LinePurpose};
use super::put;
use crate::engine::display::{char_width, display_width, wrap};
use crate::ui::top::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// The keys, with what they do. Empty keys are headings.
const HELP: &[(&str, &str)] = &[
    ("", "Everywhere"),
    ("p", "pause after this iteration"),
    ("r", "resume"),
    ("x", "stop, after a question"),
    ("s", "say it in the next prompt"),
    ("a", "answer, and resume"),
    ("l", "change the limits"),
    ("t", "attach to its terminal"),
    ("o", "open the report"),
    ("/", "search; Esc ends it"),
    ("q, Esc", "back; q quits the list"),
    ("", "List"),
    ("↑ ↓ Enter", "select and open"),
    ("Space ← →", "fold, unfold"),
    ("f, A", "filter by state; archived"),
    ("", "Loop"),
    ("Tab, 1-7", "switch tabs"),
    ("← →", "iteration, or file"),
    ("↑ ↓ PgUp", "scroll, or select a check"),
    ("", "Marks"),
    ("● ◐ ○", "all, some, no checks pass"),
    ("✘ !", "agent failed, crash"),
    ("· ▶", "no checks ran, running"),
];

/// The number of rows in the left of two columns.
const HELP_LEFT: usize = 11;

/// Draws a dialog. Returns the position of the cursor; `None` if there is none.
pub(super) fn draw(
    dialog: &Dialog,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    match dialog {
        Dialog::Help => {
            let two_columns = area.height < HELP.len() as u16 + 4 && area.width >= 78;
            let left = if two_columns { HELP_LEFT } else { HELP.len() };
            let rows = left.max(HELP.len() - left);
            let width = if two_columns { 78 } else { 56 };
            let inner = frame(buffer, area, width, rows as u16, "Keys", theme);
            for (at, (key, what)) in HELP.iter().enumerate() {
                let (column, row) = match at.checked_sub(left) {
                    Some(row) => (38, row as u16),
                    None => (0, at as u16),
                };
                if key.is_empty() {
                    put(buffer, inner, column, row, &[(what, theme.bold())]);
                } else {
                    put(buffer, inner, column + 1, row, &[(key, theme.good())]);
                    put(buffer, inner, column + 11, row, &[(what, Style::new())]);
                }
            }
            None
        }
        Dialog::Confirm { question, .. } => {
            let width = area.width.saturating_sub(4).min(70);
            let rows = wrap(question, usize::from(width.saturating_sub(4)), 0, 0);
            let inner = frame(buffer, area, width, rows.len() as u16 + 2, "Stop", theme);
            for (at, row) in rows.iter().enumerate() {
                put(buffer, inner, 0, at as u16, &[(row, Style::new())]);
            }
            let keys = [
                ("y", theme.bold()),
                (" yes   ", Style::new()),
                ("any other key", theme.bold()),
                (" no", Style::new()),
            ];
            put(buffer, inner, 0, rows.len() as u16 + 1, &keys);
            None
        }
        Dialog::Line {
            purpose: LinePurpose::Search,
            line,
            ..
        } => {
            // The matches stay visible above the line.
            let row = area.height - 1;
            let blank = " ".repeat(usize::from(area.width));
            put(buffer, area, 0, row, &[(&blank, Style::new())]);
            let column = put(buffer, area, 1, row, &[("/", theme.bold())]);
            let rest = Rect {
                x: area.x + column,
                y: area.y + row,
                width: area.width.saturating_sub(column),
                height: 1,
            };
            Some(draw_line(buffer, rest, &line.text, line.cursor))
        }
        Dialog::Line {
            purpose,
            name,
            about,
            line,
            ..
        } => {
            let title = match purpose {
                LinePurpose::Say => format!("Say to {name}, in its next prompt"),
                LinePurpose::Answer => format!("Answer {name}, and resume it"),
                _ => format!("Limits of {name}"),
            };
            let width = area.width.saturating_sub(4).min(100);
            let mut rows = Vec::new();
            if !about.is_empty() {
                rows = wrap(about, usize::from(width.saturating_sub(4)), 0, 0);
                rows.truncate(usize::from(area.height.saturating_sub(8)));
            }
            let inner = frame(buffer, area, width, rows.len() as u16 + 3, &title, theme);
            for (at, row) in rows.iter().enumerate() {
                put(buffer, inner, 0, at as u16, &[(row, theme.attention())]);
            }
            let row = rows.len() as u16;
            let keys = [
                ("Enter", theme.bold()),
                (" send   ", theme.dim()),
                ("Esc", theme.bold()),
                (" cancel", theme.dim()),
            ];
            put(buffer, inner, 0, row + 2, &keys);
            let rest = Rect {
                y: inner.y + row,
                height: 1,
                ..inner
            };
            put(buffer, rest, 0, 0, &[("> ", theme.bold())]);
            let rest = Rect {
                x: rest.x + 2,
                width: rest.width.saturating_sub(2),
                ..rest
            };
            Some(draw_line(buffer, rest, &line.text, line.cursor))
        }
    }
}

/// Draws a typed line so that the cursor is visible, and returns the cursor's position.
fn draw_line(buffer: &mut Buffer, area: Rect, text: &str, cursor: usize) -> Position {
    let room = usize::from(area.width.saturating_sub(1));
    let mut start = 0;
    let mut before = display_width(&text[..cursor]);
    for c in text[..cursor].chars() {
        if before <= room {
            break;
        }
        before -= char_width(c);
        start += c.len_utf8();
    }
    put(buffer, area, 0, 0, &[(&text[start..], Style::new())]);
    Position {
        x: area.x + before as u16,
        y: area.y,
    }
}

/// Draws a frame in the middle, and returns the area inside.
fn frame(
    buffer: &mut Buffer,
    area: Rect,
    width: u16,
    rows: u16,
    title: &str,
    theme: Theme,
) -> Rect {
    let width = width.min(area.width);
    let height = (rows + 2).min(area.height);
    let outer = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let bar = "─".repeat(usize::from(width.saturating_sub(2)));
    let blank = " ".repeat(usize::from(width.saturating_sub(2)));
    for row in 0..height {
        let (left, middle, right) = match row {
            0 => ("╭", &bar, "╮"),
            row if row + 1 == height => ("╰", &bar, "╯"),
            _ => ("│", &blank, "│"),
        };
        let style = theme.dim();
        for x in outer.x..outer.right() {
            if let Some(cell) = buffer.cell_mut((x, outer.y + row)) {
                cell.reset();
            }
        }
        put(
            buffer,
            outer,
            0,
            row,
            &[(left, style), (middle, style), (right, style)],
        );
    }
    let title = format!(" {title} ");
    let room = usize::from(width.saturating_sub(4));
    let title = crate::ui::truncate_to_width(&title, room);
    put(buffer, outer, 2, 0, &[(&title, theme.bold())]);
    Rect {
        x: outer.x + 2,
        y: outer.y + 1,
        width: width.saturating_sub(4),
        height: height.saturating_sub(2),
    }
}
