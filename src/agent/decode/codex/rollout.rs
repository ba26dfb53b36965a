//! When is Codex' usage limit over? Its stream tells a time of day; the file in which it keeps the thread, the second.

use crate::agent::decode::tools::{at, text};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The limits stand near the end.
const TAIL: u64 = 256 << 10;
/// A thread that was used just now is in one of the newest days.
const DAYS: usize = 3;

/// When the limits of this thread are over, in seconds since 1970.
pub fn reset(thread: &str) -> Option<i64> {
    let own = std::env::var_os("CODEX_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from);
    let home = own.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".codex")))?;
    in_home(&home, thread)
}

fn in_home(home: &Path, thread: &str) -> Option<i64> {
    let plain = |thread: &str| {
        thread
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if thread.is_empty() || !plain(thread) {
        return None;
    }
    let end = format!("-{thread}.jsonl");
    let mut days = vec![home.join("sessions")];
    for _ in ["year", "month", "day"] {
        days = days.iter().flat_map(|dir| newest(dir)).take(DAYS).collect();
    }
    let files = days.iter().flat_map(|day| newest(day));
    let file = files
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with(&end))?;
    let mut file = File::open(file)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    in_tail(&tail)
}

/// What the end of such a file says.
pub fn in_tail(tail: &[u8]) -> Option<i64> {
    let tail = String::from_utf8_lossy(tail);
    tail.lines()
        .rev()
        .filter(|line| line.contains("resets_at"))
        .find_map(|line| {
            let event: Value = serde_json::from_str(line).ok()?;
            let limits = ["primary", "secondary"]
                .map(|window| at(&event, &["payload", "rate_limits", window]));
            // The one that is used up; where both are, the later one holds.
            let full = limits.iter().filter(|limit| {
                limit["used_percent"]
                    .as_f64()
                    .is_some_and(|used| used >= 100.0)
            });
            let full = full.filter_map(|limit| limit["resets_at"].as_i64()).max();
            full.or_else(|| limits.iter().find_map(|limit| limit["resets_at"].as_i64()))
                .filter(|_| text(&event, &["type"]) == "event_msg")
        })
}

/// What is in a directory, the last names first.
fn newest(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    names.into_iter().map(|name| dir.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(primary: (f64, i64), secondary: (f64, i64)) -> String {
        let window =
            |(used, reset)| serde_json::json!({ "used_percent": used, "resets_at": reset });
        let limits =
            serde_json::json!({ "primary": window(primary), "secondary": window(secondary) });
        let payload = serde_json::json!({ "type": "token_count", "rate_limits": limits });
        serde_json::json!({ "type": "event_msg", "payload": payload }).to_string()
    }

    #[test]
    fn the_last_limits_of_the_thread_count() {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join("sessions/2026/11/15");
        fs::create_dir_all(&day).unwrap();
        fs::create_dir_all(home.path().join("sessions/2026/11/16")).unwrap();
        let lines = [
            "x".repeat(TAIL as usize),
            count((100.0, 1), (5.0, 2)),
            count((100.0, 1_794_783_030), (80.0, 1_794_999_999)),
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
            count((100.0, 5), (100.0, 6)),
        )
        .unwrap();
        fs::write(
            day.join("rollout-2026-11-15T21-00-00-abc-3.jsonl"),
            count((1.0, 8), (1.0, 9)),
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
            assert_eq!(in_home(home.path(), thread), reset, "{thread}");
        }
        assert_eq!(in_home(Path::new("/nowhere"), "abc-1"), None);
    }
}
