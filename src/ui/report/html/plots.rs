//! Draws plots over the iterations of a loop, as SVG without script.

use super::markup::Html;
use crate::engine::State;
use crate::engine::format::{dollars, duration, plural};
use crate::lifecycle::history::LoopHistory;

/// Maximum number of bars. More iterations are grouped, and a bar shows the largest of its group.
const BARS_MAX: usize = 100;
/// Maximum number of columns in the strip of checks.
const COLUMNS_MAX: usize = 150;
/// The size of a plot, in its own units.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 90.0;
/// The size of a cell in the strip of checks, and of one of few cells.
const CELL: f64 = 12.0;
const LARGE_CELL: f64 = 20.0;
/// The most cells that are large: they fit beside the name of the check.
const LARGE_MAX: usize = 35;

/// One plot: a value for each iteration.
struct Plot {
    title: &'static str,
    class: &'static str,
    values: Vec<Option<f64>>,
    format: fn(f64) -> String,
}

/// Draws the plots of a loop. Draws nothing for fewer than two iterations.
pub(super) fn plots(html: &mut Html, history: &LoopHistory) {
    if history.iterations.len() < 2 {
        return;
    }
    let numbers: Vec<u32> = history.iterations.iter().map(|one| one.number).collect();
    let records = || history.iterations.iter().map(|one| one.record.as_ref());
    let failing = history.iterations.iter().map(|one| {
        let (green, ran) = one.green_checks();
        (ran > 0).then(|| (ran - green) as f64)
    });
    let all = [
        Plot {
            title: "Red checks",
            class: "bar red",
            values: failing.collect(),
            format: |count| plural(count as u64, "red check"),
        },
        Plot {
            title: "Cost",
            class: "bar cost",
            values: records().map(|record| record?.cost_usd).collect(),
            format: dollars,
        },
        Plot {
            title: "Duration",
            class: "bar time",
            values: records().map(|record| Some(record?.ms as f64)).collect(),
            format: |ms| duration(ms as u64),
        },
    ];
    html.tag("<div class=\"plots\">");
    for plot in all {
        if plot.values.iter().flatten().next().is_some() {
            draw(html, &plot, &numbers);
        }
    }
    html.tag("</div>");
}

fn draw(html: &mut Html, plot: &Plot, numbers: &[u32]) {
    let size = plot.values.len().div_ceil(BARS_MAX).max(1);
    let groups: Vec<(Option<f64>, &[u32])> = plot
        .values
        .chunks(size)
        .zip(numbers.chunks(size))
        .map(|(values, numbers)| (values.iter().flatten().copied().reduce(f64::max), numbers))
        .collect();
    let max = plot.values.iter().flatten().copied().fold(0.0, f64::max);
    let step = WIDTH / groups.len() as f64;
    html.tag("<figure><figcaption><b>")
        .text(plot.title)
        .tag("</b> ");
    let highest = format!("up to {}", (plot.format)(max));
    html.span("muted", &highest).tag("</figcaption>");
    let view = format!("0 0 {WIDTH} {}", HEIGHT + 14.0);
    html.tag("<svg role=\"img\"").attr("viewBox", view);
    let label = format!("{} by iteration, {highest}", plot.title);
    html.attr("aria-label", label).tag(">");
    html.tag("<line class=\"axis\" x1=\"0\"").attr("x2", WIDTH);
    html.attr("y1", HEIGHT).attr("y2", HEIGHT).tag("/>");
    for (at, (value, numbers)) in groups.iter().enumerate() {
        let Some(value) = value else { continue };
        let share = if max > 0.0 { value / max } else { 0.0 };
        // A value of zero is visible as a line, unlike one that is unknown.
        let height = (share * (HEIGHT - 4.0)).max(1.0);
        let gap = (step * 0.2).min(3.0);
        html.tag("<rect").attr("class", plot.class);
        let width = (step - gap).min(28.0);
        html.attr("x", fixed(at as f64 * step + (step - width) / 2.0));
        html.attr("y", fixed(HEIGHT - height));
        html.attr("width", fixed(width));
        html.attr("height", fixed(height)).tag("><title>");
        let text = match numbers {
            [first, .., last] => {
                format!("iterations {first}–{last}: up to {}", (plot.format)(*value))
            }
            [number] => format!("iteration {number}: {}", (plot.format)(*value)),
            [] => String::new(),
        };
        html.text(&text).tag("</title></rect>");
    }
    let ends = [numbers.first(), numbers.last()];
    if let [Some(first), Some(last)] = ends {
        // Below the middle of the first and the last bar, but not beyond the edge.
        let middle = (step / 2.0).max(10.0);
        for (number, x) in [(first, middle), (last, WIDTH - middle)] {
            html.tag("<text class=\"tick\" text-anchor=\"middle\"")
                .attr("x", fixed(x));
            html.attr("y", HEIGHT + 12.0).tag(">");
            html.text(&number.to_string()).tag("</text>");
        }
    }
    html.tag("</svg></figure>");
}

fn fixed(value: f64) -> String {
    format!("{value:.1}")
}

/// Draws a strip for each check: one cell for each iteration.
pub(super) fn strips(html: &mut Html, history: &LoopHistory, state: &State) {
    let checks = &state.plan.proof.checks;
    let iterations = &history.iterations;
    if checks.is_empty() || iterations.is_empty() {
        return;
    }
    let shown = &iterations[iterations.len().saturating_sub(COLUMNS_MAX)..];
    let has_preflight = history.preflight.iter().any(Option::is_some);
    let preflight = has_preflight.then_some((0, &history.preflight, None));
    let columns: Vec<_> = preflight
        .into_iter()
        .chain(
            shown
                .iter()
                .map(|one| (one.number, &one.checks, Some(&one.second_look))),
        )
        .collect();
    let cell = if columns.len() > LARGE_MAX {
        CELL
    } else {
        LARGE_CELL
    };
    let width = columns.len() as f64 * cell;
    let mut has_doubts = false;
    html.tag("<table class=\"strips\"><tbody>");
    for at in 0..checks.len() {
        let name = super::super::findings::check_name(state, at);
        html.tag("<tr><th scope=\"row\">").code(&name);
        html.tag("</th><td><svg role=\"img\"")
            .attr("viewBox", format!("0 0 {width} {cell}"));
        html.attr("width", width).attr("height", cell);
        html.attr("aria-label", format!("{name} by iteration"))
            .tag(">");
        for (column, (number, reports, second)) in columns.iter().enumerate() {
            let report = reports.get(at).and_then(Option::as_ref);
            let second = second.and_then(|reports| reports.get(at)?.as_ref());
            let is_doubted = second.is_some_and(|report| !report.is_green());
            has_doubts |= is_doubted;
            let (class, word) = match report {
                Some(report) if report.is_green() && is_doubted => {
                    ("cell doubted", "green, but not by the original tests")
                }
                Some(report) if report.is_green() => ("cell green", "green"),
                Some(_) => ("cell failed", "red"),
                None => ("cell none", "not run"),
            };
            html.tag("<rect").attr("class", class);
            html.attr("x", fixed(column as f64 * cell + 1.0))
                .attr("y", 1);
            html.attr("width", cell - 2.0).attr("height", cell - 2.0);
            html.tag(" rx=\"2\"><title>");
            let when = match number {
                0 => "before the first iteration".to_owned(),
                number => format!("iteration {number}"),
            };
            html.text(&format!("{when}: {word}")).tag("</title></rect>");
            // The results differ in shape too: a bar across, a bar down, and none.
            let slot = match class {
                "cell failed" => Some((cell / 2.0, 2.0)),
                "cell doubted" => Some((2.0, cell / 2.0)),
                _ => None,
            };
            if let Some((slot_width, slot_height)) = slot {
                let middle = column as f64 * cell + cell / 2.0;
                html.tag("<rect class=\"slot\"")
                    .attr("x", fixed(middle - slot_width / 2.0));
                html.attr("y", fixed((cell - slot_height) / 2.0));
                html.attr("width", slot_width)
                    .attr("height", slot_height)
                    .tag("/>");
            }
        }
        html.tag("</svg></td></tr>");
    }
    html.tag("</tbody></table>");
    if has_doubts {
        html.tag("<p class=\"muted legend\">A bar down: green, but not by the original tests.</p>");
    }
    if shown.len() < iterations.len() {
        let text = format!("the last {} iterations", shown.len());
        html.tag("<p class=\"muted\">").text(&text).tag("</p>");
    }
}
