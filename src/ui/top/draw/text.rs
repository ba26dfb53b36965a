//! Texts of many rows: breaks them into rows, and draws the rows that are visible.

use super::put;
use crate::engine::display::{char_width, display_width, wrap};
use crate::ui::top::theme::Theme;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::borrow::Cow;
use std::ops::Range;

/// A row of text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextRow {
    /// The time in front of it, in milliseconds since 1970; `None` if there is none.
    pub(super) at_ms: Option<i64>,
    pub(super) mark: Cow<'static, str>,
    pub(super) mark_style: Style,
    pub(super) text: String,
    pub(super) style: Style,
    /// Styles of parts of the text, by byte ranges. Later ones are added to earlier ones.
    pub(super) parts: Vec<(Range<usize>, Style)>,
}

impl TextRow {
    pub(super) fn plain(text: impl Into<String>, style: Style) -> Self {
        Self {
            at_ms: None,
            mark: "".into(),
            mark_style: style,
            text: text.into(),
            style,
            parts: Vec::new(),
        }
    }
}

/// Breaks a row into rows of at most `width` columns.
pub(super) fn push_wrapped(rows: &mut Vec<TextRow>, row: TextRow, width: usize) {
    let indent = display_width(&row.mark);
    let width = width.saturating_sub(indent).max(8);
    if display_width(&row.text) <= width {
        rows.push(row);
        return;
    }
    let mark = " ".repeat(indent);
    let pieces = if row.text.starts_with(' ') || !row.parts.is_empty() {
        // The start of an indented line is kept as it is.
        vec![row.text.clone()]
    } else {
        wrap(&row.text, width, 0, 0)
    };
    let (mut is_first, mut start) = (true, 0);
    for piece in pieces.iter().flat_map(|piece| split_to_width(piece, width)) {
        let parts = row.parts.iter().filter_map(|(range, style)| {
            let end = range.end.saturating_sub(start).min(piece.len());
            let range = range.start.saturating_sub(start)..end;
            (range.start < range.end).then_some((range, *style))
        });
        let parts = parts.collect();
        start += piece.len();
        rows.push(TextRow {
            at_ms: row.at_ms.filter(|_| is_first),
            mark: if is_first {
                row.mark.clone()
            } else {
                mark.clone().into()
            },
            mark_style: row.mark_style,
            text: piece,
            style: row.style,
            parts,
        });
        is_first = false;
    }
}

/// Splits a text anywhere into pieces of at most `width` columns.
fn split_to_width(text: &str, width: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut used) = (Vec::new(), String::new(), 0);
    for c in text.chars() {
        let columns = char_width(c);
        if used + columns > width && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push(c);
        used += columns;
    }
    pieces.push(piece);
    pieces
}

/// The number of columns that the times in front of rows take.
pub(super) const TIME_WIDTH: u16 = 9;

/// Draws the rows from `first` on. With `times`, the rows' times are in front of them.
pub(super) fn draw_rows(
    buffer: &mut Buffer,
    area: Rect,
    rows: &[TextRow],
    first: usize,
    zone: Option<&TimeZone>,
    theme: Theme,
) {
    let visible = rows.iter().skip(first).take(usize::from(area.height));
    for (at, row) in visible.enumerate() {
        let at = at as u16;
        let mut column = 0;
        if let Some(zone) = zone {
            if let Some(ms) = row.at_ms {
                put(buffer, area, 0, at, &[(&clock(ms, zone), theme.dim())]);
            }
            column = TIME_WIDTH;
        }
        column = put(buffer, area, column, at, &[(&row.mark, row.mark_style)]);
        put(buffer, area, column, at, &[(&row.text, row.style)]);
        for (range, style) in &row.parts {
            let before = row.text.get(..range.start).unwrap_or_default();
            let text = row.text.get(range.clone()).unwrap_or_default();
            let start = column.saturating_add(display_width(before) as u16);
            put(buffer, area, start, at, &[(text, *style)]);
        }
    }
    draw_position(buffer, area, rows.len(), first, theme);
}

/// Draws on the right border which part of the rows is visible.
fn draw_position(buffer: &mut Buffer, area: Rect, total: usize, first: usize, theme: Theme) {
    let height = usize::from(area.height);
    if total <= height || height == 0 || area.width < 4 {
        return;
    }
    let thumb = (height * height / total).max(1);
    let start = first * (height - thumb) / (total - height).max(1);
    for at in start..(start + thumb).min(height) {
        put(
            buffer,
            area,
            area.width - 1,
            at as u16,
            &[("█", theme.dim())],
        );
    }
}

/// Formats a time of day.
pub(super) fn clock(ms: i64, zone: &TimeZone) -> String {
    let time = Timestamp::from_millisecond(ms).map(|at| at.to_zoned(zone.clone()));
    time.map(|at| at.strftime("%H:%M:%S").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_never_exceed_the_width() {
        let wrapped = |text: &str, mark, width| {
            let mut rows = Vec::new();
            let row = TextRow {
                mark: Cow::Borrowed(mark),
                ..TextRow::plain(text, Style::new())
            };
            push_wrapped(&mut rows, row, width);
            rows.into_iter()
                .map(|row| format!("{}{}", row.mark, row.text))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            wrapped("one two three four", "▸ ", 12),
            ["▸ one two", "  three four"]
        );
        assert_eq!(wrapped("abcdefghijklm", "", 8), ["abcdefgh", "ijklm"]);
        assert_eq!(wrapped("日本語日本語", "", 8), ["日本語日", "本語"]);
        assert_eq!(wrapped("", "", 8), [""]);
        assert_eq!(
            wrapped("    indented code here", "", 12),
            ["    indented", " code here"]
        );
    }
}
