//! Draws a value per iteration as bars.

use super::put;
use crate::ui::top::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Bars of an eighth of a row to a whole row.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A value per iteration.
pub(super) struct Bars<'a> {
    pub(super) title: &'a str,
    /// What is shown to the right of the title, such as the sum.
    pub(super) note: &'a str,
    /// The iterations' numbers and values; `None` if a value is unknown.
    pub(super) values: &'a [(u32, Option<f64>)],
    pub(super) style: Style,
}

impl Bars<'_> {
    /// Draws a title, the bars, and the numbers of the iterations below them.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect, theme: Theme) {
        if area.height < 3 || area.width < 8 {
            return;
        }
        let note = format!("  {}", self.note);
        let title = [(self.title, theme.bold()), (&note[..], theme.dim())];
        put(buffer, area, 0, 0, &title);
        let (width, height) = (usize::from(area.width), usize::from(area.height) - 2);
        let step = match self.values.len() {
            count if count * 3 <= width => 3,
            count if count * 2 <= width => 2,
            _ => 1,
        };
        let count = (width / step).min(self.values.len());
        let shown = &self.values[self.values.len() - count..];
        let max = shown.iter().filter_map(|(_, value)| *value);
        let max = max.filter(|value| value.is_finite()).fold(0.0, f64::max);
        for (at, (_, value)) in shown.iter().enumerate() {
            let column = (at * step) as u16;
            let bar = if step == 3 { 2 } else { 1 };
            self.draw_bar(buffer, area, column, bar, height, *value, max, theme);
        }
        let axis = area.height - 1;
        let mut free = 0;
        for (at, (number, _)) in shown.iter().enumerate() {
            let column = (at * step) as u16;
            let is_labeled = *number == 1 || number % 5 == 0;
            if is_labeled && column >= free {
                free = put(
                    buffer,
                    area,
                    column,
                    axis,
                    &[(&number.to_string(), theme.dim())],
                ) + 1;
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they describe one bar")]
    fn draw_bar(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        column: u16,
        width: usize,
        height: usize,
        value: Option<f64>,
        max: f64,
        theme: Theme,
    ) {
        let bottom = height as u16;
        let mut cell = |row: u16, symbol: &str, style| {
            let text = symbol.repeat(width);
            put(buffer, area, column, row, &[(&text, style)]);
        };
        let value = value.filter(|value| value.is_finite());
        let eighths = match value {
            None => return cell(bottom, "?", theme.dim()),
            Some(value) if value <= 0.0 || max <= 0.0 => return cell(bottom, "·", theme.dim()),
            Some(value) => ((value / max) * (height * 8) as f64).round().max(1.0) as usize,
        };
        for row in 0..height {
            let filled = eighths.saturating_sub(row * 8).min(8);
            if filled > 0 {
                cell(bottom - row as u16, EIGHTHS[filled], self.style);
            }
        }
    }
}
