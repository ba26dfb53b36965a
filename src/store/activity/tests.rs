//! Tests of the activity: kept and dropped acts, and readers that see the same as the writer.

use super::*;
use crate::engine::act::ChangedLines;
use crate::engine::failure::FailureKind;
use crate::engine::usage::Tokens;
use std::os::unix::fs::PermissionsExt;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("activity.jsonl")
    }

    fn writer(&self) -> ActivityWriter {
        ActivityWriter::create(&self.path(), 3)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn reader(&self) -> ActivityReader {
        ActivityReader::open(&self.path()).unwrap()
    }

    fn items(&self) -> Vec<ActivityItem> {
        items(&mut self.reader())
    }
}

fn items(reader: &mut ActivityReader) -> Vec<ActivityItem> {
    let mut items = Vec::new();
    reader.read(&mut |item| items.push(item)).unwrap();
    items
}

fn text(text: &str) -> Act<'static> {
    Act::Text(text.to_owned().into())
}

/// Returns the acts' text, with a note for dropped acts.
fn texts(items: &[ActivityItem]) -> String {
    let text = |item: &ActivityItem| match item {
        ActivityItem::Act {
            act: Act::Text(text),
            ..
        } => text.clone().into_owned(),
        ActivityItem::Act { act, .. } => format!("{act:?}"),
        ActivityItem::Dropped(count) => format!("<{count} dropped>"),
    };
    items.iter().map(text).collect()
}

fn every_act() -> Vec<Act<'static>> {
    vec![
        text("a \"line\"\n"),
        Act::Thinking("hm".into()),
        Act::ToolStarted {
            name: "Bash".into(),
            about: "ls".into(),
        },
        Act::ToolFinished {
            name: "Bash".into(),
            about: "ls".into(),
            ok: false,
            error: "exit 1".into(),
            lines: Some(ChangedLines {
                added: 3,
                removed: 1,
            }),
            ms: Some(40),
        },
        Act::Denied("no".into()),
        Act::Cost(0.25),
        Act::TokensUsed {
            model: "m".into(),
            tokens: Tokens {
                input: 1,
                ..Tokens::default()
            },
        },
        Act::SessionId("s".into()),
        Act::Retrying("busy".into()),
        Act::NearLimit {
            limit: "5-hour".into(),
            used: Some(0.9),
            until_ms: None,
        },
        Act::SideOutput("warning".into()),
        Act::Unparsed,
        Act::Finished("all done".into()),
        Act::Failed {
            why: "no login".into(),
            reason: Some(FailureKind::Login.into()),
        },
        Act::RunEnded,
    ]
}

#[test]
fn every_act_is_read_as_it_was_written() {
    let dir = Dir::new();
    let mut writer = dir.writer();
    for act in every_act() {
        writer.push(&act);
        writer.push(&Act::RawOutput(b"raw".as_slice().into()));
    }
    drop(writer);
    let items = dir.items().into_iter();
    let acts: Vec<_> = items
        .map(|item| match item {
            ActivityItem::Act { act, .. } => act,
            ActivityItem::Dropped(count) => panic!("{count} were dropped"),
        })
        .collect();
    assert_eq!(acts, every_act());
    let mode = fs::metadata(dir.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_format_is_as_published() {
    let dir = Dir::new();
    let mut writer = dir.writer();
    for act in every_act() {
        writer.push(&act);
    }
    drop(writer);
    let text = dir.text();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(r#"{"ralph":"activity","version":1,"iteration":3}"#)
    );
    let without_time = |line: &str| {
        let (n, rest) = line.split_once(",\"at_ms\":").unwrap();
        format!("{n},{}", rest.split_once(',').unwrap().1)
    };
    let lines: Vec<_> = lines.map(without_time).collect();
    assert_eq!(
        lines,
        [
            r#"{"n":1,"act":"text","text":"a \"line\"\n"}"#,
            r#"{"n":2,"act":"thinking","text":"hm"}"#,
            r#"{"n":3,"act":"tool-started","tool":"Bash","about":"ls"}"#,
            r#"{"n":4,"act":"tool-finished","tool":"Bash","about":"ls","ok":false,"error":"exit 1","added":3,"removed":1,"ms":40}"#,
            r#"{"n":5,"act":"denied","text":"no"}"#,
            r#"{"n":6,"act":"cost","usd":0.25}"#,
            r#"{"n":7,"act":"tokens","model":"m","tokens":{"input":1,"cache_read":0,"cache_write":0,"output":0}}"#,
            r#"{"n":8,"act":"session","id":"s"}"#,
            r#"{"n":9,"act":"retrying","text":"busy"}"#,
            r#"{"n":10,"act":"near-limit","limit":"5-hour","used":0.9,"until_ms":null}"#,
            r#"{"n":11,"act":"side-output","text":"warning"}"#,
            r#"{"n":12,"act":"unparsed"}"#,
            r#"{"n":13,"act":"finished","text":"all done"}"#,
            r#"{"n":14,"act":"failed","text":"no login","reason":{"kind":"login"}}"#,
            r#"{"n":15,"act":"run-ended"}"#,
            r#"{"n":16,"act":"end"}"#,
        ]
    );
}

#[test]
fn text_is_joined_and_cleaned_however_it_is_split() {
    let whole = "one \x1b[31mred\x1b[0m\n10%\r90%\r\nnul\0 é\nlast";
    let clean = "one red\n90%\nnul é\nlast";
    for size in 1..whole.len() {
        let dir = Dir::new();
        let mut writer = dir.writer();
        let mut rest = whole;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(char_boundary(rest, size.max(2).min(rest.len())));
            writer.push(&text(piece));
            writer.flush(false);
            rest = more;
        }
        drop(writer);
        assert_eq!(texts(&dir.items()), clean, "{size}");
    }
}

#[test]
fn the_beginning_of_a_line_waits_for_its_end() {
    let dir = Dir::new();
    let mut writer = dir.writer();
    writer.push(&text("begin"));
    assert_eq!(writer.next_flush(), None);
    writer.push(&text("ning\nand"));
    writer.flush_if_due();
    let mut reader = dir.reader();
    assert_eq!(texts(&items(&mut reader)), "beginning\n");
    writer.push(&text(" more"));
    writer.push(&Act::RunEnded);
    assert!(writer.next_flush().is_some());
    drop(writer);
    assert_eq!(texts(&items(&mut reader)), "and moreRunEnded");
}

#[test]
fn a_long_file_keeps_its_head_and_its_tail() {
    let dir = Dir::new();
    let mut writer = dir.writer();
    let mut reader = dir.reader();
    let mut followed = String::new();
    for n in 1..=40_000 {
        let tool = format!("{n:0>40}");
        writer.push(&Act::Denied(tool.into()));
        if n % 100 == 0 {
            writer.flush(false);
            followed.push_str(&texts(&items(&mut reader)));
        }
        assert!(dir.text().len() <= FILE_MAX + 2 * PENDING_MAX || n % 1000 != 0);
    }
    drop(writer);
    followed.push_str(&texts(&items(&mut reader)));
    let all = dir.items();
    let dropped: Vec<u64> = all
        .iter()
        .filter_map(|item| match item {
            ActivityItem::Dropped(count) => Some(*count),
            ActivityItem::Act { .. } => None,
        })
        .collect();
    assert_eq!(dropped.len(), 1);
    assert_eq!(all.len() as u64 - 1 + dropped[0], 40_000);
    assert!(dropped[0] > 20_000 && dropped[0] < 39_000, "{dropped:?}");
    assert!(dir.text().len() <= FILE_MAX);
    assert!(texts(&all[..1]).contains("0001") && texts(&all[all.len() - 1..]).contains("40000"));
    // A reader that has followed from the start has missed nothing.
    assert!(!followed.contains("dropped"));
    assert_eq!(followed.matches("Denied").count(), 40_000);
}

#[test]
fn a_flood_is_bounded_and_its_end_is_kept() {
    let dir = Dir::new();
    let mut writer = dir.writer();
    let line = "x".repeat(79) + "\n";
    for _ in 0..200 {
        writer.push(&text(&line.repeat(3000)));
    }
    writer.push(&text("the end\n"));
    writer.push(&Act::Finished("é".repeat(TEXT_MAX).into()));
    drop(writer);
    assert!(dir.text().len() <= FILE_MAX + 2 * TEXT_MAX);
    let shown = texts(&dir.items());
    assert!(shown.starts_with(&line) && shown.contains(" dropped>"));
    assert!(shown.contains("\nthe end\n"));
    assert!(shown.contains("[32768 bytes cut]"));
}

#[test]
fn a_torn_or_unknown_line_is_skipped() {
    let dir = Dir::new();
    let mut writer = dir.writer();
    writer.push(&text("one\n"));
    drop(writer);
    let mut file = super::super::dir::append_file(&dir.path()).unwrap();
    file.write_all(b"{\"n\":2,\"at_ms\":1,\"act\":\"new\",\"x\":[1]}\nnoise\n{\"n\":3,\"at_ms\":1,\"act\":\"te")
        .unwrap();
    let mut reader = dir.reader();
    assert_eq!(texts(&items(&mut reader)), "one\n");
    file.write_all(b"xt\",\"text\":\"two\"}\n").unwrap();
    assert_eq!(texts(&items(&mut reader)), "two");
}

#[test]
fn an_error_loses_only_the_activity() {
    let dir = Dir::new();
    fs::create_dir(dir.path()).unwrap();
    let mut writer = dir.writer();
    writer.push(&text("one\n"));
    assert_eq!(writer.next_flush(), None);
    drop(writer);
}
