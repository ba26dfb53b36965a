//! Draws the list of all loops, and the details of the selected one below it.

use super::super::model::{ListRow, StateFilter, TopModel};
use super::super::summary::{LoopDetails, LoopSummary};
use super::strip::mark_style;
use super::{put, rule};
use crate::engine::Status;
use crate::engine::format::plural;
use crate::ui::age::age;
use crate::ui::top::theme::Theme;
use crate::ui::{display_width, truncate_to_width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The rows above the list: the title and the columns' names.
const HEAD_ROWS: u16 = 2;

/// Returns the number of rows for the details of the selected loop, with the line above them.
fn details_height(height: u16) -> u16 {
    match height {
        0..16 => 0,
        16..36 => 3,
        _ => 11,
    }
}

/// Returns the number of rows of the list.
pub(in super::super) fn list_height(model: &TopModel) -> usize {
    let height = model.size.1;
    usize::from(height.saturating_sub(HEAD_ROWS + 1 + details_height(height)))
}

/// Returns the index of the list's row at a row of the screen.
pub(in super::super) fn list_row_at(model: &TopModel, row: u16) -> Option<usize> {
    let at = usize::from(row.checked_sub(HEAD_ROWS)?);
    let index = model.first + at;
    (at < list_height(model) && index < model.rows.len()).then_some(index)
}

/// The widths of the list's columns.
struct Columns {
    name: usize,
    state: usize,
    iteration: usize,
    strip: usize,
    cost: usize,
    age: usize,
    doing: usize,
}

impl Columns {
    fn new(width: usize, rows: &[ListRow]) -> Self {
        let (mut name, mut iteration, mut cost) = (8, 4, 4);
        for row in rows {
            if let ListRow::Loop { summary, depth, .. } = row {
                name = name.max(display_width(&summary.name) + 2 * depth);
                iteration = iteration.max(display_width(&summary.iteration));
                cost = cost.max(summary.cost.as_deref().map_or(1, display_width));
            }
        }
        let mut columns = Self {
            name: name.min(width * 3 / 10).max(8),
            state: 10,
            iteration: iteration.min(9),
            strip: match width {
                0..60 => 0,
                60..100 => 8,
                100..140 => 12,
                _ => 21,
            },
            cost: cost.min(9),
            age: 4,
            doing: 0,
        };
        // Two columns for the border and the status, and a space after each column.
        let used = 4 + columns.name + columns.state + columns.iteration + columns.strip;
        let used = used + columns.cost + columns.age + 7;
        columns.doing = width.saturating_sub(used);
        columns
    }
}

/// Draws the list.
pub(super) fn draw(model: &TopModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    draw_title(model, theme, area, buffer);
    let height = list_height(model);
    let shown: Vec<_> = model.rows.iter().skip(model.first).take(height).collect();
    let columns = Columns::new(usize::from(area.width), &model.rows);
    draw_heads(&columns, theme, area, buffer);
    for (at, row) in shown.iter().enumerate() {
        let y = HEAD_ROWS + at as u16;
        draw_row(row, &columns, model.now_ms, theme, area, y, buffer);
        if model.first + at == model.selected {
            let line = Rect {
                y: area.y + y,
                height: 1,
                ..area
            };
            buffer.set_style(line, theme.selected());
        }
    }
    if model.rows.is_empty() {
        let text = match &model.loops {
            None => "reading loops …",
            Some(loops) if loops.is_empty() => "no loops yet; run `ralph run` to start one",
            Some(_) => "no loop matches; press f for another filter, or Esc to end the search",
        };
        put(buffer, area, 2, HEAD_ROWS + 1, &[(text, theme.dim())]);
    }
    let rows = details_height(model.size.1);
    if rows > 0 {
        let below = Rect {
            y: area.y + area.height - 1 - rows,
            height: rows,
            ..area
        };
        draw_details(model, theme, below, buffer);
    }
}

fn draw_title(model: &TopModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let loops = model.loops.as_deref().unwrap_or_default();
    let count = |test: &dyn Fn(&LoopSummary) -> bool| loops.iter().filter(|one| test(one)).count();
    let counts = [
        (count(&|one| one.is_running()), Status::Running, "running"),
        (
            count(&|one| one.needs_person()),
            Status::Blocked,
            "waiting for you",
        ),
        (
            count(&|one| one.status == Status::Done),
            Status::Done,
            "done",
        ),
        (
            count(&|one| one.status == Status::Failed),
            Status::Failed,
            "failed",
        ),
    ];
    let mut column = put(buffer, area, 1, 0, &[("ralph top", theme.bold())]);
    // The counts may be cut, but not why loops are missing.
    let mut notes = Vec::new();
    if model.filter != StateFilter::All {
        notes.push(format!("only {}", model.filter.as_str()));
    }
    if model.archived {
        notes.push("with archived".into());
    }
    if !model.search.is_empty() {
        notes.push(format!("search: {}", model.search));
    }
    if !notes.is_empty() {
        let text = format!("  {}", notes.join(" · "));
        column = put(buffer, area, column, 0, &[(&text, theme.attention())]);
    }
    for (count, status, words) in counts {
        let (symbol, style) = theme.status(status);
        let style = if count == 0 { theme.dim() } else { style };
        let text = format!("  {symbol} {count} {words}");
        column = put(buffer, area, column, 0, &[(&text, style)]);
    }
}

fn draw_heads(columns: &Columns, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut column = 4;
    for (name, width) in [
        ("NAME", columns.name),
        ("STATE", columns.state),
        ("ITER", columns.iteration),
        ("CHECKS", columns.strip),
        ("COST", columns.cost),
        ("AGE", columns.age),
        ("NOW", columns.doing),
    ] {
        if width > 0 {
            let name = truncate_to_width(name, width);
            put(buffer, area, column as u16, 1, &[(&name, theme.dim())]);
            column += width + 1;
        }
    }
}

fn draw_row(
    row: &ListRow,
    columns: &Columns,
    now_ms: i64,
    theme: Theme,
    area: Rect,
    y: u16,
    buffer: &mut Buffer,
) {
    let (summary, depth, hidden, has_children) = match row {
        ListRow::Repository {
            name,
            count,
            is_folded,
        } => {
            let mark = if *is_folded { "▸ " } else { "▾ " };
            let count = format!("  {}", plural(*count as u64, "loop"));
            let parts = [
                (mark, theme.dim()),
                (name, theme.bold()),
                (&count, theme.dim()),
            ];
            put(buffer, area, 1, y, &parts);
            return;
        }
        ListRow::Loop {
            summary,
            depth,
            hidden,
            has_children,
        } => (summary, *depth, *hidden, *has_children),
    };
    let (symbol, style) = theme.status(summary.status);
    put(buffer, area, 2, y, &[(symbol, style)]);
    let mut column = 4;
    let mut next = |text: &str, width: usize, style: Style| {
        if width > 0 {
            let text = truncate_to_width(text, width);
            put(buffer, area, column as u16, y, &[(&text, style)]);
            column += width + 1;
        }
        (column - width.max(1) - 1) as u16
    };
    let branch = match depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    let more = match (hidden, has_children) {
        (0, _) => String::new(),
        (hidden, _) => format!(" +{hidden}"),
    };
    let name_style = if summary.is_running() || summary.needs_person() {
        theme.bold()
    } else {
        Style::new()
    };
    next(
        &format!("{branch}{}{more}", summary.name),
        columns.name,
        name_style,
    );
    let state = if summary.is_archived {
        "archived"
    } else {
        &summary.state
    };
    next(state, columns.state, style);
    next(&summary.iteration, columns.iteration, Style::new());
    let strip_at = next("", columns.strip, Style::new());
    next(
        summary.cost.as_deref().unwrap_or("?"),
        columns.cost,
        Style::new(),
    );
    next(&age(summary.since_ms, now_ms), columns.age, theme.dim());
    next(&summary.doing, columns.doing, Style::new());
    if let Some(details) = &summary.details
        && columns.strip > 0
    {
        draw_marks(details, columns.strip, theme, area, strip_at, y, buffer);
    }
}

/// Draws the marks of the last iterations.
fn draw_marks(
    details: &LoopDetails,
    width: usize,
    theme: Theme,
    area: Rect,
    column: u16,
    y: u16,
    buffer: &mut Buffer,
) {
    let first = details.strip.len().saturating_sub(width);
    let parts: Vec<_> = details.strip[first..]
        .iter()
        .map(|mark| (mark.symbol(), mark_style(*mark, theme)))
        .collect();
    put(buffer, area, column, y, &parts);
}

/// Draws what is known about the selected loop.
fn draw_details(model: &TopModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(one) = model.current() else {
        rule(buffer, area, 0, "", theme);
        return;
    };
    rule(buffer, area, 0, &one.name, theme);
    let mut rows: Vec<(&str, String, Style)> = Vec::new();
    let mut add = |label, text: Option<&str>, style| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            rows.push((label, text.to_owned(), style));
        }
    };
    let details = one.details.as_ref();
    let is_small = area.height <= 3;
    let doing = if one.is_running() { "now" } else { "result" };
    let task = details.map(|details| &details.task[..]);
    let question = details.and_then(|details| details.question.as_deref());
    let failing = details.and_then(|details| details.failing_line.as_deref());
    if is_small {
        add("asks", question, theme.attention());
        add("failing", failing, theme.bad());
        add(doing, Some(&one.doing), Style::new());
        add("task", task, Style::new());
        add(
            "next",
            details.and_then(|one| one.advice.as_deref()),
            theme.dim(),
        );
    } else {
        add("task", task, Style::new());
        add("asks", question, theme.attention());
        add(doing, Some(&one.doing), Style::new());
        add(
            "next",
            details.and_then(|one| one.advice.as_deref()),
            theme.dim(),
        );
        add("agent", details.map(|one| &one.agent[..]), Style::new());
        add("failing", failing, theme.bad());
        for check in details.iter().flat_map(|details| &details.checks) {
            let (mark, style) = match check.green {
                Some(true) => ("●", theme.good()),
                Some(false) => ("○", theme.bad()),
                None => ("·", theme.dim()),
            };
            let text = format!("{mark} {}  {}", check.command, check.text);
            add("check", Some(&text), style);
        }
    }
    for (at, (label, text, style)) in rows.iter().enumerate() {
        let y = 1 + at as u16;
        if y >= area.height {
            break;
        }
        put(buffer, area, 2, y, &[(label, theme.dim())]);
        put(buffer, area, 11, y, &[(text, *style)]);
    }
}
