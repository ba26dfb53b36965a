//! Formats statistics for a terminal: a table with bars, and bars for the reasons of failures.

use super::{GroupBy, Stats, Totals};
use crate::engine::format::{dollars, duration, plural, thousands};
use crate::ui::{StyledText, TextStyle, display_width, hang, one_line, truncate_to_width};
use std::collections::BTreeMap;

/// The width of the output if it is not a terminal.
const COLUMNS: usize = 100;
/// The smallest and the largest width of a bar.
const BAR_MIN: usize = 6;
const BAR_MAX: usize = 40;
/// The smallest width of the first column.
const KEY_MIN: usize = 10;

/// A column of the table.
struct Column {
    name: &'static str,
    value: fn(&Totals) -> String,
    /// Columns with a higher rank are left out first where the terminal is narrow.
    rank: u8,
}

const TABLE: [Column; 7] = [
    Column {
        name: "loops",
        value: |totals| totals.loops.to_string(),
        rank: 2,
    },
    Column {
        name: "done",
        value: |totals| totals.success_rate.map(percent).unwrap_or_default(),
        rank: 1,
    },
    Column {
        name: "iterations",
        value: |totals| totals.iterations.to_string(),
        rank: 3,
    },
    Column {
        name: "to done",
        value: |totals| {
            totals
                .iterations_to_done
                .map(|n| n.to_string())
                .unwrap_or_default()
        },
        rank: 6,
    },
    Column {
        name: "time",
        value: |totals| duration((totals.active_s * 1000.0) as u64),
        rank: 4,
    },
    Column {
        name: "tokens",
        value: |totals| thousands(totals.tokens.total()),
        rank: 5,
    },
    Column {
        name: "cost",
        value: cost,
        rank: 0,
    },
];

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn cost(totals: &Totals) -> String {
    match totals.unpriced {
        0 => dollars(totals.cost_usd),
        _ if totals.cost_usd > 0.0 => format!(">{}", dollars(totals.cost_usd)),
        _ => "unknown".into(),
    }
}

/// Formats statistics for a terminal of this width.
pub(crate) fn text(stats: &Stats, width: Option<usize>, color: bool) -> StyledText {
    let width = width.unwrap_or(COLUMNS);
    let mut text = StyledText::new(color);
    if stats.total.loops == 0 {
        text.push("no loops");
        text.push(if stats.since.is_some() {
            " in this time\n"
        } else {
            " yet\n"
        });
        return text;
    }
    headline(&mut text, &stats.total, width);
    text.push("\n");
    table(&mut text, stats, width);
    reasons(&mut text, "How loops ended", &stats.total.endings, width);
    reasons(
        &mut text,
        "Why iterations failed",
        &stats.total.failures,
        width,
    );
    text
}

fn headline(text: &mut StyledText, total: &Totals, width: usize) {
    let mut first = plural(total.loops, "loop");
    if let Some(rate) = total.success_rate {
        let done = format!(
            ", {} done ({} of those that ended)",
            total.done,
            percent(rate)
        );
        first.push_str(&done);
    }
    let hang = |line: &str| hang(line, Some(width), 0, 2).into_owned();
    text.push_styled(&hang(&first), TextStyle::Bold).push("\n");
    let effort = [
        plural(total.iterations, "iteration"),
        duration((total.active_s * 1000.0) as u64),
        cost(total),
        format!("{} tokens", thousands(total.tokens.total())),
    ];
    text.push(&hang(&effort.join(" · "))).push("\n");
    if let Some(median) = total.iterations_to_done {
        let line = format!("a loop that is done took {median} iterations (median)");
        text.push(&hang(&line)).push("\n");
    }
}

fn table(text: &mut StyledText, stats: &Stats, width: usize) {
    let name = match stats.by {
        GroupBy::Day => "day",
        GroupBy::Agent => "agent",
        GroupBy::Model => "model",
        GroupBy::Repository => "repository",
    };
    let keys: Vec<String> = stats
        .groups
        .iter()
        .map(|group| one_line(&group.key))
        .collect();
    let longest = keys.iter().map(|key| display_width(key)).max().unwrap_or(0);
    let longest = longest.max(name.len());
    let mut columns: Vec<(&Column, Vec<String>, usize)> = TABLE
        .iter()
        .map(|column| {
            let values: Vec<String> = stats
                .groups
                .iter()
                .map(|one| (column.value)(&one.totals))
                .collect();
            let widest = values.iter().map(String::len).max().unwrap_or(0);
            let widest = widest.max(column.name.len());
            (column, values, widest)
        })
        .collect();
    let taken = |columns: &[(&Column, Vec<String>, usize)]| -> usize {
        columns.iter().map(|(_, _, width)| width + 2).sum()
    };
    while taken(&columns) + longest.min(KEY_MIN.max(width / 3)) > width && columns.len() > 1 {
        let last = columns.iter().map(|(column, ..)| column.rank).max();
        columns.retain(|(column, ..)| Some(column.rank) != last);
    }
    let room = width.saturating_sub(taken(&columns));
    // The end of a path says more than its beginning.
    let key_width = longest.min(room.max(1));
    let bar_width = room.saturating_sub(key_width + 2).min(BAR_MAX);
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(display_width(text)));
    let mut head = format!("{name}{}", pad(name, key_width));
    for (column, _, width) in &columns {
        head.extend(["  ", &pad(column.name, *width), column.name]);
    }
    text.push_styled(head.trim_end(), TextStyle::Dim).push("\n");
    let amounts: Vec<f64> = amounts(stats);
    let max = amounts.iter().copied().fold(0.0, f64::max);
    for (at, key) in keys.iter().enumerate() {
        let key = shorten(key, key_width);
        text.push(&key).push(&pad(&key, key_width));
        for (_, values, width) in &columns {
            text.push("  ")
                .push(&pad(&values[at], *width))
                .push(&values[at]);
        }
        if bar_width >= BAR_MIN && max > 0.0 {
            text.push("  ");
            text.push_styled(&bar(amounts[at] / max, bar_width), TextStyle::Green);
        }
        text.push("\n");
    }
}

/// Returns what the bars show: the cost or, if there is none, the iterations.
fn amounts(stats: &Stats) -> Vec<f64> {
    let has_cost = stats.total.cost_usd > 0.0;
    let groups = stats.groups.iter().map(|group| &group.totals);
    groups
        .map(|totals| {
            if has_cost {
                totals.cost_usd
            } else {
                totals.iterations as f64
            }
        })
        .collect()
}

/// Cuts a key to this width, and keeps its end.
fn shorten(key: &str, width: usize) -> String {
    if display_width(key) <= width {
        return key.to_owned();
    }
    let mut start = key.len();
    for (at, _) in key.char_indices().rev() {
        if display_width(&key[at..]) + 1 > width {
            break;
        }
        start = at;
    }
    truncate_to_width(&format!("…{}", &key[start..]), width)
}

/// Draws a bar. A share above zero is at least half a block.
fn bar(share: f64, width: usize) -> String {
    let halves = (share * width as f64 * 2.0).round() as usize;
    let halves = if share > 0.0 { halves.max(1) } else { 0 };
    let half = if halves % 2 == 1 { "▌" } else { "" };
    format!("{}{half}", "█".repeat(halves / 2))
}

fn reasons(text: &mut StyledText, title: &str, counts: &BTreeMap<String, u64>, width: usize) {
    if counts.is_empty() {
        return;
    }
    let mut sorted: Vec<(String, u64)> = counts
        .iter()
        .map(|(reason, count)| (reason.replace(['_', '-'], " "), *count))
        .collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let max = sorted.first().map_or(1, |(_, count)| *count).max(1);
    let longest = sorted
        .iter()
        .map(|(reason, _)| reason.len())
        .max()
        .unwrap_or(0);
    let digits = max.to_string().len();
    let room = width.saturating_sub(longest + digits + 4).min(BAR_MAX);
    text.push("\n")
        .push_styled(title, TextStyle::Dim)
        .push("\n");
    for (reason, count) in sorted {
        text.push(&format!("{reason:<longest$}  {count:>digits$}"));
        if room >= BAR_MIN {
            let bar = bar(count as f64 / max as f64, room);
            text.push("  ").push_styled(&bar, TextStyle::Yellow);
        }
        text.push("\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_and_never_empty_above_zero() {
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(0.001, 10), "▌");
        assert_eq!(bar(0.5, 10), "█████");
        assert_eq!(bar(1.0, 4), "████");
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        assert_eq!(shorten("/home/me/code/shop", 10), "…code/shop");
        assert_eq!(shorten("shop", 10), "shop");
    }
}
