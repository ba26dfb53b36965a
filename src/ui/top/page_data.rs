//! What the page of one loop shows, in the form in which it is drawn.

use super::activity::ActivityRow;
use super::code::{CodeSyntax, PatchLine, highlight};
use super::summary::IterationMark;
use crate::engine::event::CheckReport;
use crate::engine::format::{dollars, duration};
use crate::engine::plain_text::plain_lines;
use crate::engine::{Event, Liveness};
use crate::lifecycle::handle::with_session;
use crate::lifecycle::history::{LoopHistory, PastIteration};
use crate::store::{LoopDir, Result};
use crate::ui::event_line::{self, verdict};
use crate::ui::{TextStyle, one_line};
use std::sync::Arc;

/// The most lines of a timeline, of notes, or of a prompt or log that are kept.
const LINES_MAX: usize = 3000;
/// The most lines of a patch that are kept.
const PATCH_MAX: usize = 40_000;

/// The result of one check in one iteration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CheckCell {
    pub(super) green: bool,
    /// The result in words.
    pub(super) text: String,
    /// The line that says why it is red.
    pub(super) line: Option<String>,
}

/// An iteration on a loop's page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IterationRow {
    pub(super) number: u32,
    pub(super) mark: IterationMark,
    pub(super) agent: String,
    pub(super) started_ms: i64,
    /// How long its agent ran, in milliseconds; `None` while it runs.
    pub(super) ms: Option<u64>,
    pub(super) cost_usd: Option<f64>,
    /// The results of its checks, in the plan's order; `None` for a check that did not run.
    pub(super) checks: Vec<Option<CheckCell>>,
}

impl IterationRow {
    /// Returns how many checks are red; `None` if none ran.
    pub(super) fn failing(&self) -> Option<usize> {
        let ran = || self.checks.iter().flatten();
        (ran().count() > 0).then(|| ran().filter(|check| !check.green).count())
    }
}

/// A check's command, and the name of its logs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PageCheck {
    pub(super) command: String,
    pub(super) slug: String,
}

/// A line with the time at which it was written, in milliseconds since 1970; 0 for none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimedLine {
    pub(super) at_ms: i64,
    pub(super) text: String,
    pub(super) style: Option<TextStyle>,
}

/// A loop's past, as its page shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PageData {
    /// Whether a process works on the loop.
    pub(super) is_running: bool,
    pub(super) iterations: Vec<IterationRow>,
    pub(super) checks: Vec<PageCheck>,
    pub(super) timeline: Vec<TimedLine>,
    pub(super) notes: Vec<TimedLine>,
    /// The trees at the start and at the newest checkpoint.
    pub(super) trees: Option<(String, String)>,
    /// The iteration of the newest checkpoint.
    pub(super) newest_tree: u32,
}

impl PageData {
    /// Returns the newest iteration's number; 0 if there is none.
    pub(super) fn newest(&self) -> u32 {
        self.iterations.last().map_or(0, |one| one.number)
    }
}

/// A file in a patch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DiffFile {
    pub(super) path: String,
    pub(super) insertions: u64,
    pub(super) deletions: u64,
    /// The file's part of the patch, without its header.
    pub(super) lines: Vec<PatchLine>,
}

/// The changes since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DiffData {
    pub(super) files: Vec<DiffFile>,
    /// Why something is missing.
    pub(super) note: Option<String>,
}

/// Which part of a loop its page shows. The reader keeps this part up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageRequest {
    pub(super) name: String,
    /// The iteration whose activity, prompt or log is shown; `None` for the newest.
    pub(super) iteration: Option<u32>,
    /// The check whose log is shown.
    pub(super) check: usize,
    pub(super) part: PagePart,
}

/// What a page's tab needs besides the loop's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PagePart {
    Activity,
    CheckLog,
    Diff,
    Prompt,
    /// Nothing else.
    Past,
}

/// Something new for the page of a loop.
#[derive(Clone, Debug)]
pub(super) enum PageUpdate {
    Past(Arc<PageData>),
    Activity {
        iteration: u32,
        lines: Vec<ActivityRow>,
        dropped: u64,
    },
    /// The log of a check.
    CheckLog(Vec<String>),
    Diff(DiffData),
    Prompt {
        iteration: u32,
        lines: Vec<String>,
    },
    /// The loop cannot be read.
    Unreadable(String),
}

/// Reads a loop's past.
pub(super) fn read_past(dir: &LoopDir, liveness: Liveness) -> Result<(PageData, LoopHistory)> {
    let (mut timeline, mut notes) = (Vec::new(), Vec::new());
    let mut asked = None;
    let mut history = LoopHistory::read(dir, liveness, &mut |line, state| {
        for (text, style) in event_line::lines(&line.event, state) {
            let text = one_line(&text);
            push(&mut timeline, line.at_ms, &text, Some(style));
        }
        if let Event::Answered { text, .. } = &line.event {
            note(&mut notes, line.at_ms, "you", text, TextStyle::Bold);
        }
        if let Event::Ended { .. } = &line.event
            && let Some(newest) = state.recent.back()
            && let Some(text) = &newest.note
        {
            let by = format!("iteration {}", newest.number);
            note(&mut notes, line.at_ms, &by, text, TextStyle::Dim);
        }
        if state.question.is_some() && state.question != asked {
            let text = state.question.as_deref().unwrap_or_default();
            note(&mut notes, line.at_ms, "question", text, TextStyle::Yellow);
        }
        asked.clone_from(&state.question);
    })?;
    history.liveness = with_session(liveness, &history.view.state);
    let all = || history.iterations.iter();
    let state = &history.view.state;
    let checks = state.plan.proof.checks.iter();
    let data = PageData {
        is_running: history.liveness == Liveness::Running,
        checks: checks
            .map(|check| PageCheck {
                command: one_line(&check.command),
                slug: check.slug.clone(),
            })
            .collect(),
        iterations: all().map(|one| iteration_row(&history, one)).collect(),
        trees: history
            .trees_of_all()
            .map(|(from, to)| (from.to_owned(), to.to_owned())),
        newest_tree: all()
            .rev()
            .find(|one| one.tree.is_some())
            .map_or(0, |one| one.number),
        timeline,
        notes,
    };
    Ok((data, history))
}

fn push(lines: &mut Vec<TimedLine>, at_ms: i64, text: &str, style: Option<TextStyle>) {
    if lines.len() >= LINES_MAX {
        lines.drain(..LINES_MAX / 10);
    }
    lines.push(TimedLine {
        at_ms,
        text: text.to_owned(),
        style,
    });
}

/// Adds a heading and a text of several lines.
fn note(lines: &mut Vec<TimedLine>, at_ms: i64, by: &str, text: &str, style: TextStyle) {
    push(lines, at_ms, by, Some(style));
    for line in plain_lines(text).trim().lines() {
        push(lines, 0, &line.replace('\t', "    "), None);
    }
    push(lines, 0, "", None);
}

fn iteration_row(history: &LoopHistory, one: &PastIteration) -> IterationRow {
    let result = |report: &CheckReport| CheckCell {
        green: report.is_green(),
        text: one_line(&verdict(report)),
        line: report.line.as_deref().map(one_line),
    };
    IterationRow {
        number: one.number,
        mark: match &one.record {
            Some(record) => IterationMark::new(record, &one.checks),
            None => IterationMark::of_open(history.is_running(one)),
        },
        agent: one_line(&one.agent),
        started_ms: one.started_ms,
        ms: one.record.as_ref().map(|record| record.ms),
        cost_usd: one.record.as_ref().and_then(|record| record.cost_usd),
        checks: one
            .checks
            .iter()
            .map(|report| report.as_ref().map(result))
            .collect(),
    }
}

/// Describes an iteration in one line.
pub(super) fn describe(row: &IterationRow) -> String {
    let ms = row.ms.map(duration);
    let cost = row.cost_usd.map(dollars);
    let checks = row.failing().map(|red| match red {
        0 => "all checks green".to_owned(),
        red => format!("{red} of {} red", row.checks.len()),
    });
    let agent = Some(row.agent.clone()).filter(|agent| !agent.is_empty());
    let parts = [
        Some(format!("iteration {}", row.number)),
        agent,
        ms,
        cost,
        checks,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Splits a patch into files.
pub(super) fn split_patch(patch: &str) -> DiffData {
    let mut data = DiffData::default();
    let mut in_hunk = false;
    for (count, line) in patch.lines().enumerate() {
        if count >= PATCH_MAX {
            data.note = Some(format!("only the first {PATCH_MAX} lines are shown"));
            break;
        }
        if let Some(names) = line.strip_prefix("diff --git ") {
            in_hunk = false;
            data.files.push(DiffFile {
                path: one_line(path_of(names)),
                insertions: 0,
                deletions: 0,
                lines: Vec::new(),
            });
            continue;
        }
        let Some(file) = data.files.last_mut() else {
            continue;
        };
        in_hunk |= line.starts_with("@@");
        match line.as_bytes().first() {
            Some(b'+') if in_hunk => file.insertions += 1,
            Some(b'-') if in_hunk => file.deletions += 1,
            _ => {}
        }
        // The file's name is shown above.
        let is_header = ["index ", "--- ", "+++ "]
            .iter()
            .any(|start| line.starts_with(start));
        if in_hunk || !is_header {
            file.lines.push(PatchLine {
                text: plain_lines(line).replace('\t', "    "),
                ..PatchLine::default()
            });
        }
    }
    for file in &mut data.files {
        highlight(&mut file.lines, CodeSyntax::of_file(&file.path));
    }
    data
}

/// Returns the path in `a/PATH b/PATH`.
fn path_of(names: &str) -> &str {
    let half = names.len().div_ceil(2);
    names
        .get(half..)
        .map(|second| second.trim_start_matches([' ', '"']))
        .and_then(|second| second.strip_prefix("b/"))
        .map_or(names, |path| path.trim_end_matches('"'))
}

/// Returns the lines of a text of unknown content, and a note if it was cut.
pub(super) fn text_lines(bytes: &[u8], is_cut: bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = plain_lines(&text);
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.replace('\t', "    "))
        .collect();
    if lines.len() > LINES_MAX {
        lines.drain(..lines.len() - LINES_MAX);
        lines.insert(0, "…".into());
    } else if is_cut {
        lines.push("…".into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_split_into_files_with_their_numbers_of_lines() {
        let patch = "diff --git a/src/a b.rs b/src/a b.rs\nindex 1..2 100644\n--- a/src/a b.rs\n+++ b/src/a b.rs\n\
            @@ -1 +1,2 @@\n-old\n+new\n+\tmore\n context\ndiff --git a/x b/x\nnew file mode 100755\nBinary files differ\n";
        let data = split_patch(patch);
        let files: Vec<_> = data
            .files
            .iter()
            .map(|file| (&file.path[..], file.insertions, file.deletions))
            .collect();
        assert_eq!(files, [("src/a b.rs", 2, 1), ("x", 0, 0)]);
        let texts = |at: usize| -> Vec<&str> {
            let lines = data.files[at].lines.iter();
            lines.map(|line| &line.text[..]).collect()
        };
        assert_eq!(
            texts(0),
            ["@@ -1 +1,2 @@", "-old", "+new", "+    more", " context"]
        );
        assert_eq!(texts(1), ["new file mode 100755", "Binary files differ"]);
    }

    #[test]
    fn odd_patches_and_texts_are_shown_as_far_as_possible() {
        assert_eq!(split_patch("no patch\n").files, []);
        assert_eq!(split_patch("diff --git \nx").files[0].path, "");
        assert_eq!(split_patch("diff --git é\nx").files[0].lines.len(), 1);
        assert_eq!(
            text_lines(b"a\x1b[31mb\xff\n\tc", true),
            ["ab\u{fffd}", "    c", "…"]
        );
        let long = "x\n".repeat(LINES_MAX + 5);
        assert_eq!(text_lines(long.as_bytes(), false).len(), LINES_MAX + 1);
    }
}
