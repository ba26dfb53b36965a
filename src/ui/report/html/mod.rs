//! Renders a report as one HTML file: no script, nothing fetched from elsewhere, light and dark, and
//! made for paper too.

mod diff;
mod iteration;
mod markup;
mod plots;
mod sections;

use super::{HTML_START, LoopReport, Redact, clock};
use crate::engine::State;
use crate::engine::format::{dollars, duration, iteration_count, plural};
use crate::ui::age::now_ms;
use markup::Html;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("report.css");

/// The bytes that the activity, the diffs and the outputs of all iterations take together.
const DETAILS_MAX: usize = 3_000_000;
/// The bytes that one iteration takes at most.
const ITERATION_MAX: usize = 200_000;
/// Maximum number of iterations with details, of all loops together. Older ones take one line.
const DETAILED_MAX: usize = 300;
/// Maximum number of loops with a section of their own.
const LOOPS_MAX: usize = 50;

/// How much of each loop fits on the page.
#[derive(Clone, Copy)]
struct Budget {
    /// Number of iterations with details, of each loop.
    detailed: usize,
    /// The bytes for the long parts of one iteration.
    bytes: usize,
    /// Number of lines of the timeline.
    timeline: usize,
}

impl Budget {
    fn new(loops: &[LoopReport]) -> Self {
        let detailed = DETAILED_MAX / loops.len().max(1);
        let shown = loops.iter().map(|one| one.iterations().len().min(detailed));
        let bytes = DETAILS_MAX / shown.sum::<usize>().max(1);
        Self {
            detailed,
            bytes: bytes.min(ITERATION_MAX),
            timeline: 1600 / loops.len().max(1),
        }
    }
}

/// Returns the page about these loops. `title` names it if there are several.
pub(crate) fn page(loops: &[LoopReport], title: &str, redact: Redact<'_>) -> String {
    let mut html = Html::default();
    html.tag(HTML_START);
    html.tag("<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.tag("<meta http-equiv=\"Content-Security-Policy\"");
    html.attr("content", policy()).tag(">\n");
    html.tag("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.tag("<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.tag("<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html.text(title).tag("</title>\n<style>").tag(STYLE);
    html.tag("</style>\n</head>\n<body>\n<main>\n");
    let is_single = loops.len() == 1;
    if !is_single {
        overview(&mut html, loops, title);
    }
    let shown = &loops[..loops.len().min(LOOPS_MAX)];
    let budget = Budget::new(shown);
    for (at, report) in shown.iter().enumerate() {
        let html = &mut html;
        html.tag("<article").attr("id", format!("loop-{}", at + 1));
        html.tag(">\n");
        sections::heading(html, report, is_single);
        sections::findings(html, report, at);
        sections::charts(html, report);
        sections::commands(html, report);
        iteration::all(html, report, at, budget, redact);
        sections::receipt(html, report);
        sections::timeline(html, report, budget.timeline);
        html.tag("</article>\n");
    }
    let now = clock(now_ms());
    html.tag("<footer>").text(&format!(
        "Written by ralph {} on {now}. This file needs no network and contains no script.",
        env!("CARGO_PKG_VERSION")
    ));
    html.tag("</footer>\n</main>\n</body>\n</html>\n");
    html.into_string()
}

/// Returns the policy that allows nothing but this page's own style.
fn policy() -> String {
    let hash = base64(&Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (group >> (18 - 6 * digit)) & 63;
            let is_padding = digit > chunk.len();
            text.push(if is_padding {
                '='
            } else {
                char::from(DIGITS[index as usize])
            });
        }
    }
    text
}

/// The table of all loops.
fn overview(html: &mut Html, loops: &[LoopReport], title: &str) {
    html.tag("<header class=\"top\"><p class=\"brand\">ralph report</p><h1>");
    html.text(title).tag("</h1>");
    let done = loops
        .iter()
        .filter(|one| one.tone() == super::facts::Tone::Good);
    let cost: f64 = loops.iter().map(|one| one.state().cost_usd).sum();
    let time: u64 = loops.iter().map(|one| one.state().active_ms).sum();
    let count: u32 = loops.iter().map(|one| one.state().iteration).sum();
    let text = format!(
        "{}, {} done; {}, {}, {}",
        plural(loops.len() as u64, "loop"),
        done.count(),
        iteration_count(count),
        duration(time),
        dollars(cost)
    );
    html.tag("<p class=\"lead\">")
        .text(&text)
        .tag("</p></header>\n");
    if loops.is_empty() {
        return;
    }
    html.tag(
        "<div class=\"wide\"><table class=\"overview\"><thead><tr><th>Loop</th><th>Verdict</th>",
    );
    html.tag("<th>Review</th><th class=\"n\">Iterations</th><th class=\"n\">Time</th>");
    html.tag("<th class=\"n\">Cost</th></tr></thead><tbody>\n");
    for (at, report) in loops.iter().enumerate() {
        let state: &State = report.state();
        html.tag("<tr><td>");
        if at < LOOPS_MAX {
            html.tag("<a").attr("href", format!("#loop-{}", at + 1));
            html.tag(">").text(report.name()).tag("</a>");
        } else {
            html.text(report.name());
        }
        html.tag("</td><td><span")
            .attr("class", report.tone().as_str());
        html.tag(">").text(report.tone().sign()).tag("</span> ");
        html.text_max(&report.verdict(), 400);
        html.tag("</td><td>").text(&report.finding_counts());
        html.tag("</td><td class=\"n\">")
            .text(&state.iteration.to_string());
        html.tag("</td><td class=\"n\">")
            .text(&duration(state.active_ms));
        html.tag("</td><td class=\"n\">");
        html.text(&state.cost_text().unwrap_or_else(|| "unknown".into()));
        html.tag("</td></tr>\n");
    }
    html.tag("</tbody></table></div>\n");
    sections::all_findings(html, &loops[..loops.len().min(LOOPS_MAX)]);
    if loops.len() > LOOPS_MAX {
        let text = format!("Only the first {LOOPS_MAX} loops have a section below.");
        html.tag("<p class=\"muted\">").text(&text).tag("</p>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd, 0xfc]), "//79/A==");
    }

    #[test]
    fn the_style_cannot_end_its_element() {
        assert!(!STYLE.contains("</"));
    }
}
