//! Draws the page of one loop.

use super::super::activity::{ActivityKind, ActivityRow};
use super::super::code::PatchLine;
use super::super::model::{LoopPage, TAB_GAP, Tab, TopModel, tab_label};
use super::super::page_data::{DiffFile, PageData, TimedLine, describe};
use super::plots::{draw_plots, draw_side};
use super::strip::{draw_strip, result_mark, strip_height};
use super::text::{TIME_WIDTH, TextRow, draw_rows, push_wrapped};
use super::{put, rule};
use crate::ui::age::age;
use crate::ui::top::theme::Theme;
use crate::ui::{one_line, truncate_to_width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The row of the tabs.
pub(in super::super) const TABS_ROW: u16 = 1;
/// The rows above the content.
const HEAD_ROWS: u16 = 3;
/// From this width on, the plots are next to the activity.
const WIDE: u16 = 120;
const SIDE_WIDTH: u16 = 40;
/// From this width on, times are in front of lines.
const TIMES_WIDE: u16 = 60;
/// From this width on, the lines of a patch have numbers.
const NUMBERS_WIDE: usize = 60;

/// Returns the area of the current tab's content.
fn content_area(area: Rect) -> Rect {
    Rect {
        y: area.y + HEAD_ROWS,
        height: area.height.saturating_sub(HEAD_ROWS + 1),
        ..area
    }
}

/// Returns the part of the content that scrolls.
fn text_area(page: &LoopPage, content: Rect) -> Rect {
    let inner = Rect {
        x: content.x + 1,
        width: content.width.saturating_sub(2),
        ..content
    };
    match page.tab {
        Tab::Activity if content.width >= WIDE => Rect {
            width: inner.width - SIDE_WIDTH - 2,
            y: inner.y + 1,
            height: inner.height.saturating_sub(1),
            ..inner
        },
        Tab::Activity | Tab::Prompt => Rect {
            y: inner.y + 1,
            height: inner.height.saturating_sub(1),
            ..inner
        },
        Tab::Checks => {
            let past = page.past.as_deref();
            let strip = past.map_or(0, |past| strip_height(past, usize::from(inner.height)));
            // A line, the iteration, the check's result and the line that says why it is red.
            let above = strip as u16 + 4;
            Rect {
                y: inner.y + above.min(inner.height),
                height: inner.height.saturating_sub(above),
                ..inner
            }
        }
        Tab::Diff => {
            let files = files_width(inner.width);
            Rect {
                x: inner.x + files + 2,
                width: inner.width.saturating_sub(files + 2),
                y: inner.y + 1,
                height: inner.height.saturating_sub(1),
            }
        }
        Tab::Notes | Tab::Timeline | Tab::Plots => inner,
    }
}

/// Returns the width of the diff's list of files.
fn files_width(width: u16) -> u16 {
    (width / 3).min(44)
}

/// Returns the rows of the current tab's text.
fn text_rows(page: &LoopPage, theme: Theme, width: u16) -> Vec<TextRow> {
    // The position is drawn in the last column.
    let width = usize::from(width.saturating_sub(1));
    let time = if width >= usize::from(TIMES_WIDE) {
        usize::from(TIME_WIDTH)
    } else {
        0
    };
    let mut rows = Vec::new();
    match page.tab {
        Tab::Activity => {
            let (_, lines, dropped) = page
                .activity
                .as_ref()
                .map_or((0, &[][..], 0), |one| (one.0, &one.1[..], one.2));
            if dropped > 0 {
                let text = format!("… {dropped} earlier lines are not shown");
                rows.push(TextRow::plain(text, theme.dim()));
            }
            for line in lines {
                push_wrapped(&mut rows, activity_row(line, theme), width - time);
            }
        }
        Tab::Checks => {
            for line in page.check_log.iter().flatten() {
                push_wrapped(&mut rows, TextRow::plain(line, Style::new()), width);
            }
        }
        Tab::Diff => {
            let file = page
                .diff
                .as_ref()
                .and_then(|diff| diff.files.get(page.file));
            let lines = file.map_or(&[][..], |file| &file.lines);
            let last = lines.iter().filter_map(|line| line.number).max();
            let digits = last.filter(|_| width >= NUMBERS_WIDE);
            let digits = digits.map(|last| last.to_string().len());
            for line in lines {
                push_wrapped(&mut rows, patch_row(line, digits, theme), width);
            }
        }
        Tab::Prompt => {
            for line in page.prompt.iter().flat_map(|(_, lines)| lines) {
                let style = if line.starts_with('#') {
                    theme.bold()
                } else {
                    Style::new()
                };
                push_wrapped(&mut rows, TextRow::plain(line, style), width);
            }
        }
        Tab::Notes | Tab::Timeline => {
            let past = page.past.as_deref();
            let lines = past.map_or(&[][..], |past| match page.tab {
                Tab::Notes => &past.notes,
                _ => &past.timeline,
            });
            for line in lines {
                push_wrapped(&mut rows, timed_row(line, theme), width - time);
            }
        }
        Tab::Plots => {}
    }
    rows
}

fn activity_row(line: &ActivityRow, theme: Theme) -> TextRow {
    let (mark, mark_style, style) = match line.kind {
        ActivityKind::Text => ("", Style::new(), Style::new()),
        ActivityKind::Thinking | ActivityKind::Side => ("· ", theme.dim(), theme.dim()),
        ActivityKind::ToolRunning => ("▸ ", theme.bold(), theme.bold()),
        ActivityKind::ToolDone => ("✔ ", theme.good(), theme.dim()),
        ActivityKind::ToolFailed => ("✘ ", theme.bad(), theme.bad()),
        ActivityKind::Problem => ("! ", theme.attention(), theme.attention()),
    };
    TextRow {
        at_ms: (line.at_ms > 0).then_some(line.at_ms),
        mark: mark.into(),
        mark_style,
        ..TextRow::plain(&line.text, style)
    }
}

fn timed_row(line: &TimedLine, theme: Theme) -> TextRow {
    let style = line.style.map_or(Style::new(), |style| theme.of(style));
    TextRow {
        at_ms: (line.at_ms > 0).then_some(line.at_ms),
        ..TextRow::plain(&line.text, style)
    }
}

/// Returns a line of a patch, with its number in the new file if that has this many digits. The
/// color of a line says the same as its first character.
fn patch_row(line: &PatchLine, digits: Option<usize>, theme: Theme) -> TextRow {
    let style = match line.text.as_bytes().first() {
        Some(b'+') => theme.good(),
        Some(b'-') => theme.bad(),
        Some(b'@') => theme.dim(),
        _ => Style::new(),
    };
    let parts = line.parts.iter();
    let parts = parts.map(|(range, part)| (range.clone(), theme.code(*part, style)));
    let number = digits.map(|digits| match line.number {
        Some(number) => format!("{number:>digits$} "),
        None => " ".repeat(digits + 1),
    });
    TextRow {
        mark: number.unwrap_or_default().into(),
        mark_style: theme.dim(),
        parts: parts.collect(),
        ..TextRow::plain(&line.text, style)
    }
}

/// Returns the number of rows of the current tab's text, and of the area in which it scrolls.
pub(in super::super) fn page_rows(model: &TopModel) -> (usize, usize) {
    let Some(page) = &model.page else {
        return (0, 0);
    };
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let text = text_area(page, content_area(area));
    let theme = Theme::PLAIN;
    let rows = text_rows(page, theme, text.width);
    (rows.len(), usize::from(text.height))
}

/// Draws the page.
pub(super) fn draw(model: &TopModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(page) = &model.page else { return };
    draw_head(model, page, theme, area, buffer);
    let content = content_area(area);
    if let Some(error) = &page.error {
        let text = one_line(error);
        put(
            buffer,
            content,
            2,
            1,
            &[("✘ ", theme.bad()), (&text, theme.bad())],
        );
        return;
    }
    let Some(past) = page.past.as_deref() else {
        put(
            buffer,
            content,
            2,
            1,
            &[("reading the loop …", theme.dim())],
        );
        return;
    };
    match page.tab {
        Tab::Activity => {
            draw_iteration(past, page, theme, content, buffer);
            if content.width >= WIDE {
                let side = Rect {
                    x: content.right() - SIDE_WIDTH - 1,
                    width: SIDE_WIDTH,
                    ..content
                };
                draw_side(past, theme, side, buffer);
            }
        }
        Tab::Prompt => draw_iteration(past, page, theme, content, buffer),
        Tab::Checks => draw_checks(past, page, theme, content, buffer),
        Tab::Diff => draw_files(past, page, theme, content, buffer),
        Tab::Plots => draw_plots(past, theme, content, buffer),
        Tab::Notes | Tab::Timeline => {}
    }
    let text = text_area(page, content);
    let rows = text_rows(page, theme, text.width);
    let first = page.scroll.first(rows.len(), usize::from(text.height));
    let has_times =
        matches!(page.tab, Tab::Activity | Tab::Notes | Tab::Timeline) && text.width > TIMES_WIDE;
    let zone = has_times.then_some(&model.zone);
    draw_rows(buffer, text, &rows, first, zone, theme);
    if rows.is_empty()
        && let Some(empty) = empty_text(page)
    {
        put(buffer, text, 0, 0, &[(empty, theme.dim())]);
    }
}

/// Returns what an empty tab says.
fn empty_text(page: &LoopPage) -> Option<&'static str> {
    match page.tab {
        Tab::Activity if page.activity.is_some() => Some("no activity yet"),
        Tab::Checks if page.check_log.is_some() => Some("no output"),
        Tab::Prompt if page.prompt.is_some() => Some("no prompt"),
        Tab::Notes => Some("no notes, messages or questions yet"),
        _ => None,
    }
}

fn draw_head(model: &TopModel, page: &LoopPage, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut column = 1;
    if let Some(one) = model.current() {
        let (symbol, style) = theme.status(one.status);
        let cost = one.cost.clone().unwrap_or_else(|| "cost unknown".into());
        let age = age(one.since_ms, model.now_ms);
        let age = match (&age[..], one.is_running()) {
            ("now", true) => "just started".to_owned(),
            ("now", false) => "just now".to_owned(),
            (age, true) => format!("for {age}"),
            (age, false) => format!("{age} ago"),
        };
        let facts = format!("  iteration {}  {cost}  {age}", one.iteration);
        let parts = [
            (symbol, style),
            (" ", style),
            (&page.name[..], theme.bold()),
            ("  ", style),
            (&one.state[..], style),
            (&facts[..], Style::new()),
        ];
        column = put(buffer, area, column, 0, &parts);
        let doing = format!("  {}", one.doing);
        put(buffer, area, column, 0, &[(&doing, theme.dim())]);
    } else {
        put(buffer, area, column, 0, &[(&page.name, theme.bold())]);
    }
    column = 1;
    for (at, tab) in Tab::ALL.into_iter().enumerate() {
        let style = if tab == page.tab {
            theme.selected()
        } else {
            Style::new()
        };
        column = put(
            buffer,
            area,
            column,
            TABS_ROW,
            &[(&tab_label(at, tab), style)],
        );
        column += TAB_GAP as u16;
    }
    rule(buffer, area, 2, "", theme);
}

/// Draws which iteration is shown.
fn draw_iteration(past: &PageData, page: &LoopPage, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let shown = page.shown_iteration();
    let row = past.iterations.iter().find(|one| one.number == shown);
    let mut text = row.map_or_else(|| "before the first iteration".into(), describe);
    if page.iteration.is_none() && past.is_running && row.is_some_and(|row| row.ms.is_none()) {
        text.push_str(" · live");
    }
    put(buffer, area, 1, 0, &[(&text, theme.bold())]);
}

fn draw_checks(past: &PageData, page: &LoopPage, theme: Theme, content: Rect, buffer: &mut Buffer) {
    let inner = Rect {
        x: content.x + 1,
        width: content.width.saturating_sub(2),
        ..content
    };
    let height = strip_height(past, usize::from(inner.height)) as u16;
    let strip = Rect { height, ..inner };
    draw_strip(past, page, buffer, strip, theme);
    rule(buffer, content, height, "", theme);
    let shown = page.shown_iteration();
    let Some(row) = past.iterations.iter().find(|one| one.number == shown) else {
        return;
    };
    put(
        buffer,
        inner,
        0,
        height + 1,
        &[(&describe(row), theme.bold())],
    );
    let Some(check) = past.checks.get(page.check) else {
        let text = "this loop has no checks";
        put(buffer, inner, 0, height + 2, &[(text, theme.dim())]);
        return;
    };
    let result = row.checks.get(page.check).and_then(Option::as_ref);
    let (symbol, style) = result_mark(result, theme);
    let words = result.map_or("did not run", |result| &result.text);
    let text = format!(" {}  {words}", check.command);
    put(
        buffer,
        inner,
        0,
        height + 2,
        &[(symbol, style), (&text, Style::new())],
    );
    if let Some(line) = result.and_then(|result| result.line.as_deref()) {
        put(buffer, inner, 2, height + 3, &[(line, theme.bad())]);
    }
}

fn draw_files(past: &PageData, page: &LoopPage, theme: Theme, content: Rect, buffer: &mut Buffer) {
    let Some(diff) = &page.diff else {
        put(
            buffer,
            content,
            1,
            0,
            &[("reading the diff …", theme.dim())],
        );
        return;
    };
    let (added, removed) = diff.files.iter().fold((0, 0), |(added, removed), file| {
        (added + file.insertions, removed + file.deletions)
    });
    let files = crate::engine::format::plural(diff.files.len() as u64, "file");
    let mut title = format!(
        "{files}, +{added} −{removed}, from the start to iteration {}",
        past.newest_tree
    );
    if let Some(note) = &diff.note {
        title = if diff.files.is_empty() {
            note.clone()
        } else {
            format!("{title} · {note}")
        };
    }
    put(buffer, content, 1, 0, &[(&one_line(&title), theme.bold())]);
    let list = Rect {
        x: content.x + 1,
        y: content.y + 1,
        width: files_width(content.width.saturating_sub(2)),
        height: content.height.saturating_sub(1),
    };
    let height = usize::from(list.height).max(1);
    let first = (page.file + 1).saturating_sub(height);
    let shown = diff.files.iter().enumerate().skip(first).take(height);
    for (at, (index, file)) in shown.enumerate() {
        draw_file(file, index == page.file, theme, list, at as u16, buffer);
    }
    let border_height = if diff.files.is_empty() {
        0
    } else {
        list.height
    };
    for row in 0..border_height {
        let border = Rect {
            x: list.right(),
            y: list.y,
            width: 1,
            height: list.height,
        };
        put(buffer, border, 0, row, &[("│", theme.dim())]);
    }
}

fn draw_file(
    file: &DiffFile,
    is_selected: bool,
    theme: Theme,
    area: Rect,
    row: u16,
    buffer: &mut Buffer,
) {
    let counts = format!("+{} −{}", file.insertions, file.deletions);
    let room = usize::from(area.width).saturating_sub(counts.chars().count() + 2);
    let path = keep_end(&file.path, room);
    let style = if is_selected {
        theme.selected()
    } else {
        Style::new()
    };
    put(buffer, area, 0, row, &[(&path, style)]);
    let column = area.width.saturating_sub(counts.chars().count() as u16 + 1);
    let added = format!("+{} ", file.insertions);
    let removed = format!("−{}", file.deletions);
    let parts = [(&added[..], theme.good()), (&removed[..], theme.bad())];
    put(buffer, area, column, row, &parts);
}

/// Cuts the beginning of a path, because its end says more.
fn keep_end(path: &str, width: usize) -> String {
    let count = path.chars().count();
    if count <= width {
        return path.to_owned();
    }
    let end: String = path.chars().skip(count + 1 - width.max(1)).collect();
    truncate_to_width(&format!("…{end}"), width.max(1))
}
