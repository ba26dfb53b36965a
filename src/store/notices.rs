//! Remembers which messages were shown, so that a hook that runs again and again shows each of them
//! once.

use super::StateDir;
use super::dir::{create_dir, create_file};
use crate::os::regular_file;
use std::fs;
use std::io::{self, Write};

/// The number of messages that are remembered. An older one may be shown again.
const REMEMBERED: usize = 200;
/// Maximum size of the file, in bytes. A larger file is not ours, and is replaced.
const FILE_MAX: u64 = 1 << 20;

impl StateDir {
    /// Returns whether the message with this key was not shown before, and remembers it. If that
    /// fails, the message is shown again the next time.
    pub(crate) fn is_first_notice(&self, key: &str) -> bool {
        let path = self.root().join("notices.jsonl");
        let line = serde_json::Value::from(key).to_string();
        let known = regular_file::read(&path, FILE_MAX, false)
            .ok()
            .filter(|(_, is_longer)| !is_longer)
            .and_then(|(bytes, _)| String::from_utf8(bytes).ok())
            .unwrap_or_default();
        if known.lines().any(|other| other == line) {
            return false;
        }
        let mut lines: Vec<&str> = known.lines().chain([line.as_str()]).collect();
        lines.drain(..lines.len().saturating_sub(REMEMBERED));
        let _ = self.write_notices(&(lines.join("\n") + "\n"));
        true
    }

    fn write_notices(&self, text: &str) -> io::Result<()> {
        create_dir(self.root())?;
        let draft = self
            .root()
            .join(format!(".notices.{}.new", std::process::id()));
        create_file(&draft)?.write_all(text.as_bytes())?;
        fs::rename(draft, self.root().join("notices.jsonl"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_first_only_once_and_the_file_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path().join("state"));
        assert!(state.is_first_notice("a\nb"));
        assert!(!state.is_first_notice("a\nb"));
        for number in 0..REMEMBERED {
            assert!(state.is_first_notice(&number.to_string()));
        }
        assert!(!state.is_first_notice("0"));
        assert!(state.is_first_notice("a\nb"), "forgotten");
        let entries = fs::read_dir(dir.path().join("state")).unwrap().count();
        assert_eq!(entries, 1, "no draft is left");
    }
}
