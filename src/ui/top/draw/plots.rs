//! Draws the plots of a loop: cost, failing checks and duration of each iteration.

use super::super::page_data::PageData;
use super::bars::Bars;
use super::put;
use crate::engine::format::{dollars, duration};
use crate::ui::top::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the plots one below the other.
pub(super) fn draw_plots(past: &PageData, theme: Theme, content: Rect, buffer: &mut Buffer) {
    let count: u16 = if content.height >= 24 { 3 } else { 2 };
    let height = content.height / count;
    for at in 0..count {
        let area = Rect {
            x: content.x + 1,
            y: content.y + at * height,
            width: content.width.saturating_sub(2),
            height: height.saturating_sub(u16::from(at + 1 < count)),
        };
        draw_plot(past, at, theme, area, buffer);
    }
}

/// Draws the plots next to the activity.
pub(super) fn draw_side(past: &PageData, theme: Theme, area: Rect, buffer: &mut Buffer) {
    for row in 0..area.height {
        put(buffer, area, 0, row, &[("│", theme.dim())]);
    }
    let inner = Rect {
        x: area.x + 2,
        width: area.width.saturating_sub(2),
        ..area
    };
    let height = (inner.height / 3).min(12);
    for at in 0..3 {
        let plot = Rect {
            y: inner.y + at * height,
            height: height.saturating_sub(1),
            ..inner
        };
        draw_plot(past, at, theme, plot, buffer);
    }
}

fn draw_plot(past: &PageData, which: u16, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let values: Vec<(u32, Option<f64>)> = past
        .iterations
        .iter()
        .filter(|one| one.ms.is_some())
        .map(|one| {
            let value = match which {
                0 => one.cost_usd,
                1 => one.failing().map(|red| red as f64),
                _ => one.ms.map(|ms| ms as f64),
            };
            (one.number, value)
        })
        .collect();
    let known = || values.iter().filter_map(|(_, value)| *value);
    let sum: f64 = known().sum();
    let max = known().fold(0.0, f64::max);
    let (title, note) = match which {
        0 if known().count() == 0 => ("cost", "unknown".to_owned()),
        0 => (
            "cost",
            format!("max {} · sum {}", dollars(max), dollars(sum)),
        ),
        1 => ("failing checks", format!("max {max}")),
        _ => {
            let text = |ms: f64| duration(ms as u64);
            ("duration", format!("max {} · sum {}", text(max), text(sum)))
        }
    };
    let style = match which {
        1 => theme.bad(),
        _ => theme.good(),
    };
    let bars = Bars {
        title,
        note: &note,
        values: &values,
        style,
    };
    bars.draw(buffer, area, theme);
}
