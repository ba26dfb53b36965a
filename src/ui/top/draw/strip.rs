//! Draws the checks' results: a row per check, a column per iteration.

use super::super::model::LoopPage;
use super::super::page_data::{CheckCell, PageData};
use super::super::summary::IterationMark;
use super::put;
use crate::ui::top::theme::Theme;
use crate::ui::truncate_to_width;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Returns the style of an iteration's mark.
pub(super) fn mark_style(mark: IterationMark, theme: Theme) -> Style {
    match mark {
        IterationMark::Green => theme.good(),
        IterationMark::Red | IterationMark::Failed | IterationMark::Interrupted => theme.bad(),
        IterationMark::Partial => theme.attention(),
        IterationMark::Unchecked => theme.dim(),
        IterationMark::Running => theme.bold(),
    }
}

/// Returns the symbol and the style of a check's result.
pub(super) fn result_mark(result: Option<&CheckCell>, theme: Theme) -> (&'static str, Style) {
    match result {
        Some(result) if result.green => ("●", theme.good()),
        Some(_) => ("○", theme.bad()),
        None => ("·", theme.dim()),
    }
}

/// Returns the number of rows that the strip takes of `height`.
pub(super) fn strip_height(past: &PageData, height: usize) -> usize {
    // The numbers of the iterations, the agents' row, and the checks.
    (past.checks.len() + 2).min((height / 2).max(3))
}

/// Draws the strip. The rows around the selected check are visible.
pub(super) fn draw_strip(
    past: &PageData,
    page: &LoopPage,
    buffer: &mut Buffer,
    area: Rect,
    theme: Theme,
) {
    let label_width = (area.width / 3).clamp(8, 40);
    let cells = Rect {
        x: area.x + label_width + 2,
        width: area.width.saturating_sub(label_width + 2),
        ..area
    };
    let room = usize::from(cells.width);
    let step = if past.iterations.len() * 2 <= room {
        2
    } else {
        1
    };
    let count = (room / step).max(1);
    let selected = page.shown_iteration();
    let at = past
        .iterations
        .iter()
        .position(|one| one.number == selected);
    let at = at.unwrap_or(past.iterations.len().saturating_sub(1));
    // Keep the selected iteration visible, and otherwise show the newest.
    let first = past.iterations.len().saturating_sub(count).min(at);
    let shown: Vec<_> = past.iterations.iter().skip(first).take(count).collect();

    put(buffer, area, 0, 0, &[("iteration", theme.dim())]);
    let mut free = 0;
    for (at, one) in shown.iter().enumerate() {
        let column = (at * step) as u16;
        let is_labeled = one.number == 1 || one.number % 5 == 0 || one.number == selected;
        if is_labeled && column >= free {
            let style = if one.number == selected {
                theme.bold()
            } else {
                theme.dim()
            };
            free = put(
                buffer,
                cells,
                column,
                0,
                &[(&one.number.to_string(), style)],
            ) + 1;
        }
    }
    put(buffer, area, 0, 1, &[("whole iteration", theme.dim())]);
    let highlight = |style: Style, is_selected: bool| {
        if is_selected {
            style.patch(theme.selected())
        } else {
            style
        }
    };
    for (at, one) in shown.iter().enumerate() {
        let style = highlight(mark_style(one.mark, theme), one.number == selected);
        put(
            buffer,
            cells,
            (at * step) as u16,
            1,
            &[(one.mark.symbol(), style)],
        );
    }
    let rows = usize::from(area.height).saturating_sub(2);
    let first_check = (page.check + 1).saturating_sub(rows);
    for (row, (index, check)) in past
        .checks
        .iter()
        .enumerate()
        .skip(first_check)
        .take(rows)
        .enumerate()
    {
        let row = row as u16 + 2;
        let label = truncate_to_width(&check.command, usize::from(label_width));
        let style = highlight(Style::new(), index == page.check);
        put(buffer, area, 0, row, &[(&label, style)]);
        for (at, one) in shown.iter().enumerate() {
            let result = one.checks.get(index).and_then(Option::as_ref);
            let (symbol, style) = result_mark(result, theme);
            let is_selected = one.number == selected && index == page.check;
            let style = highlight(style, is_selected);
            put(buffer, cells, (at * step) as u16, row, &[(symbol, style)]);
        }
    }
}
