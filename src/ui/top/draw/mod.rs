//! Draws the model of `ralph top` on a buffer. Nothing here changes the model.

mod bars;
mod dialog;
mod list;
mod page;
mod plots;
mod strip;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::iteration;
mod text;

pub(super) use list::{list_height, list_row_at};
pub(super) use page::{TABS_ROW, page_rows};

use super::model::{Tab, TopModel};
use super::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// The smallest terminal on which something useful fits.
const COLUMNS_MIN: u16 = 30;
const ROWS_MIN: u16 = 8;

/// Draws the model. Returns the position of the cursor; `None` if there is none.
pub(super) fn draw(
    model: &TopModel,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        let message = "the terminal is too small";
        put(buffer, area, 0, 0, &[(message, Style::new())]);
        return None;
    }
    if model.page.is_some() {
        page::draw(model, theme, area, buffer);
    } else {
        list::draw(model, theme, area, buffer);
    }
    draw_footer(model, theme, area, buffer);
    let cursor = model
        .dialog
        .as_ref()
        .and_then(|dialog| dialog::draw(dialog, theme, area, buffer));
    theme.filter(buffer);
    cursor
}

/// Writes pieces of text from a column on, and cuts them at the right border of the area. Returns
/// the column after the text.
fn put(buffer: &mut Buffer, area: Rect, column: u16, row: u16, parts: &[(&str, Style)]) -> u16 {
    let mut x = area.x.saturating_add(column);
    let y = area.y.saturating_add(row);
    if row >= area.height || y >= buffer.area.bottom() {
        return column;
    }
    for (text, style) in parts {
        let room = area.right().min(buffer.area.right()).saturating_sub(x);
        if room == 0 {
            break;
        }
        (x, _) = buffer.set_stringn(x, y, text, usize::from(room), *style);
    }
    x - area.x
}

/// Draws a horizontal line with a title.
fn rule(buffer: &mut Buffer, area: Rect, row: u16, title: &str, theme: Theme) {
    let line = "─".repeat(usize::from(area.width));
    put(buffer, area, 0, row, &[(&line, theme.dim())]);
    if !title.is_empty() {
        let title = format!(" {title} ");
        put(buffer, area, 1, row, &[(&title, theme.bold())]);
    }
}

/// The keys that the last row lists, most useful first.
const LIST_KEYS: &[(&str, &str)] = &[
    ("Enter", "open"),
    ("p", "pause"),
    ("r", "resume"),
    ("x", "stop"),
    ("s", "say"),
    ("/", "search"),
    ("f", "filter"),
    ("a", "answer"),
    ("l", "limits"),
    ("t", "attach"),
    ("o", "report"),
    ("Space", "fold"),
];
const PAGE_KEYS: &[(&str, &str)] = &[
    ("↑↓", "scroll"),
    ("p", "pause"),
    ("r", "resume"),
    ("x", "stop"),
    ("s", "say"),
    ("a", "answer"),
    ("l", "limits"),
    ("t", "attach"),
    ("o", "report"),
];

/// Draws the message, or else the keys.
fn draw_footer(model: &TopModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let row = area.height - 1;
    if let Some(message) = &model.message {
        let (mark, style) = if message.is_error {
            ("✘ ", theme.bad())
        } else {
            ("", theme.bold())
        };
        put(
            buffer,
            area,
            1,
            row,
            &[(mark, style), (&message.text, style)],
        );
        return;
    }
    let (keys, last) = if let Some(page) = &model.page {
        let item = match page.tab {
            Tab::Diff => "file",
            _ => "iteration",
        };
        let keys = [&[("Tab", "next"), ("←→", item)][..], PAGE_KEYS].concat();
        (keys, [("?", "help"), ("q", "back")])
    } else {
        (LIST_KEYS.to_vec(), [("?", "help"), ("q", "quit")])
    };
    let width = |(key, what): &(&str, &str)| (key.chars().count() + 1 + what.len() + 2) as u16;
    let reserved: u16 = last.iter().map(width).sum();
    let mut column = 1;
    let fit = keys.iter().take_while(|key| {
        column += width(key);
        column + reserved <= area.width
    });
    let fit: Vec<_> = fit.chain(&last).collect();
    column = 1;
    for (key, what) in fit {
        let what = format!(" {what}  ");
        column = put(
            buffer,
            area,
            column,
            row,
            &[(key, theme.bold()), (&what, theme.dim())],
        );
    }
}
