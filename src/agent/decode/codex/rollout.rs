//! Reads the time at which Codex's usage limit resets, from a thread's rollout file.
//!
//! The event stream contains at most a time of day; the rollout file has the exact second.

use crate::agent::decode::json_path::{str_at, value_at};
use crate::os::regular_file;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Only the last `TAIL_BYTES` bytes of the file are searched for limits.
const TAIL_BYTES: u64 = 256 << 10;
/// Maximum number of directories to search at each level (years, months, days), newest first.
const NEWEST_DIRS: usize = 3;

/// Returns the time at which this thread's limits reset, in seconds since 1970; `None` if unknown.
pub(super) fn limit_reset(thread: &str) -> Option<i64> {
    let codex_home = std::env::var_os("CODEX_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from);
    let home =
        codex_home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".codex")))?;
    limit_reset_in(&home, thread)
}

fn limit_reset_in(codex_home: &Path, thread: &str) -> Option<i64> {
    let is_plain = |thread: &str| {
        thread
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if thread.is_empty() || !is_plain(thread) {
        return None;
    }
    let suffix = format!("-{thread}.jsonl");
    let mut dirs = vec![codex_home.join("sessions")];
    for _ in ["year", "month", "day"] {
        dirs = dirs
            .iter()
            .flat_map(|dir| newest_first(dir))
            .take(NEWEST_DIRS)
            .collect();
    }
    let files = dirs.iter().flat_map(|dir| newest_first(dir));
    let file = files
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(&suffix))?;
    let mut file = regular_file::open(&file, true).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))
        .ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    limit_reset_in_tail(&tail)
}

/// Returns the last reset time in the end of a rollout file, in seconds since 1970; `None` if it
/// contains none.
pub(crate) fn limit_reset_in_tail(tail: &[u8]) -> Option<i64> {
    let tail = String::from_utf8_lossy(tail);
    tail.lines()
        .rev()
        .filter(|line| line.contains("resets_at"))
        .find_map(|line| {
            let event: Value = serde_json::from_str(line).ok()?;
            let limits = ["primary", "secondary"]
                .map(|window| value_at(&event, &["payload", "rate_limits", window]));
            // If both limits are exhausted, the later reset applies.
            let exhausted = limits.iter().filter(|limit| {
                limit["used_percent"]
                    .as_f64()
                    .is_some_and(|used| used >= 100.0)
            });
            let exhausted = exhausted
                .filter_map(|limit| limit["resets_at"].as_i64())
                .max();
            exhausted
                .or_else(|| limits.iter().find_map(|limit| limit["resets_at"].as_i64()))
                .filter(|_| str_at(&event, &["type"]) == "event_msg")
        })
}

/// Lists a directory in descending order of names. Codex names its directories by date, so the
/// newest come first.
fn newest_first(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    names.into_iter().map(|name| dir.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_count(primary: (f64, i64), secondary: (f64, i64)) -> String {
        let window =
            |(used, reset)| serde_json::json!({ "used_percent": used, "resets_at": reset });
        let limits =
            serde_json::json!({ "primary": window(primary), "secondary": window(secondary) });
        let payload = serde_json::json!({ "type": "token_count", "rate_limits": limits });
        serde_json::json!({ "type": "event_msg", "payload": payload }).to_string()
    }

    #[test]
    fn the_reset_time_comes_from_the_last_limits_of_the_thread() {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join("sessions/2026/11/15");
        fs::create_dir_all(&day).unwrap();
        fs::create_dir_all(home.path().join("sessions/2026/11/16")).unwrap();
        let lines = [
            "x".repeat(TAIL_BYTES as usize),
            token_count((100.0, 1), (5.0, 2)),
            token_count((100.0, 1_794_783_030), (80.0, 1_794_999_999)),
            r#"{"type":"response_item","payload":{"text":"resets_at 7"}}"#.into(),
            "{ torn resets_at".into(),
        ];
        fs::write(
            day.join("rollout-2026-11-15T20-00-00-abc-1.jsonl"),
            lines.join("\n"),
        )
        .unwrap();
        fs::write(
            day.join("rollout-2026-11-15T21-00-00-abc-2.jsonl"),
            token_count((100.0, 5), (100.0, 6)),
        )
        .unwrap();
        fs::write(
            day.join("rollout-2026-11-15T21-00-00-abc-3.jsonl"),
            token_count((1.0, 8), (1.0, 9)),
        )
        .unwrap();
        for (thread, reset) in [
            ("abc-1", Some(1_794_783_030)),
            ("abc-2", Some(6)),
            ("abc-3", Some(8)),
            ("abc-4", None),
            ("", None),
            ("../abc-1", None),
        ] {
            assert_eq!(limit_reset_in(home.path(), thread), reset, "{thread}");
        }
        assert_eq!(limit_reset_in(Path::new("/nowhere"), "abc-1"), None);
    }
}
