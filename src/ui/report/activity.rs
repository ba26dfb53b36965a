//! Turns the acts of one iteration into the rows of a report.

use super::super::{one_line, rest_text, truncate_to_width};
use crate::engine::Act;
use crate::engine::plain_text::clean;
use crate::lifecycle::history::IterationActivity;

/// Maximum width of a row that is not the agent's text.
const WIDTH_MAX: usize = 300;
/// Maximum number of bytes of one text. A longer one is most likely data.
const TEXT_MAX: usize = 16 << 10;

/// One row of what an agent did.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    pub(super) kind: RowKind,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// What the agent wrote.
    Text,
    /// A tool call that succeeded.
    Tool,
    /// A tool call that failed, or the agent's failure.
    Failure,
    /// Anything else.
    Note,
}

/// Returns the rows for an iteration's acts.
pub(super) fn rows(activity: &IterationActivity) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut text = String::new();
    let mut screen = Vec::new();
    for (at_ms, act) in &activity.acts {
        let (kind, line) = match act {
            Act::Text(piece) => {
                push_cut(&mut text, piece);
                continue;
            }
            Act::TerminalOutput(bytes) => {
                let room = TEXT_MAX.saturating_sub(screen.len());
                screen.extend_from_slice(&bytes[..bytes.len().min(room)]);
                continue;
            }
            Act::ToolFinished {
                name,
                about,
                ok,
                error,
                ..
            } => {
                let error = if error.is_empty() {
                    String::new()
                } else {
                    format!(": {error}")
                };
                let about = truncate_to_width(&one_line(about), WIDTH_MAX / 2);
                let kind = if *ok { RowKind::Tool } else { RowKind::Failure };
                (kind, format!("{name} {about}{error}"))
            }
            Act::Denied(what) => (RowKind::Failure, format!("denied: {what}")),
            Act::Failed { why, .. } => (RowKind::Failure, why.to_string()),
            Act::Retrying(why) => (RowKind::Note, format!("retrying: {why}")),
            Act::SideOutput(line) => (RowKind::Note, line.to_string()),
            Act::NearLimit {
                limit,
                used,
                until_ms,
            } => {
                let text = rest_text::near_limit(limit, *used, *until_ms, *at_ms);
                (RowKind::Note, text)
            }
            _ => continue,
        };
        flush(&mut text, &mut rows);
        let line = truncate_to_width(&one_line(&line), WIDTH_MAX);
        if !line.is_empty() {
            rows.push(Row { kind, text: line });
        }
    }
    flush(&mut text, &mut rows);
    push_cut(&mut text, &screen_text(&screen));
    flush(&mut text, &mut rows);
    rows
}

fn push_cut(text: &mut String, piece: &str) {
    let room = TEXT_MAX.saturating_sub(text.len());
    let (start, left) = super::cut(piece, room);
    text.push_str(start);
    if left > 0 && !text.ends_with('…') {
        text.push('…');
    }
}

/// Adds the collected text as a row.
fn flush(text: &mut String, rows: &mut Vec<Row>) {
    let whole = std::mem::take(text);
    let cleaned = clean(&whole);
    let text = cleaned.trim_matches('\n');
    if !text.trim().is_empty() {
        rows.push(Row {
            kind: RowKind::Text,
            text: text.to_owned(),
        });
    }
}

/// Returns the text that was on a terminal. Lines that a program drew again and again are kept once.
fn screen_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let cleaned = clean(&text);
    let mut lines: Vec<&str> = cleaned.lines().map(str::trim_end).collect();
    lines.dedup();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_text_are_one_row_and_each_tool_call_is_one() {
        let acts = [
            Act::Text("I ".into()),
            Act::Text("look.\u{1b}[2J".into()),
            Act::Thinking("hm".into()),
            Act::ToolFinished {
                name: "Bash".into(),
                about: "ls\n-l".into(),
                ok: false,
                error: "exit 1".into(),
                lines: None,
                ms: None,
            },
            Act::Text("x".repeat(TEXT_MAX * 3).into()),
        ];
        let activity = IterationActivity {
            acts: acts.map(|act| (0, act)).to_vec(),
            dropped: 0,
        };
        let rows = rows(&activity);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].text, "I look.");
        assert_eq!(rows[1].kind, RowKind::Failure);
        assert_eq!(rows[1].text, "Bash ls -l: exit 1");
        assert!(rows[2].text.len() <= TEXT_MAX + '…'.len_utf8());
    }
}
