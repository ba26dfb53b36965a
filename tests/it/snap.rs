//! Snapshots: texts stored next to the tests and compared exactly. `RALPH_BLESS=1` rewrites them.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots")
}

pub(crate) fn is_blessing() -> bool {
    std::env::var_os("RALPH_BLESS").is_some_and(|set| set == "1")
}

/// Compares a text with the snapshot of this name.
#[track_caller]
pub(crate) fn assert_snapshot(name: &str, text: &str) {
    let path = dir().join(format!("{name}.txt"));
    if is_blessing() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(text.lines())
        .position(|(one, other)| one != other);
    let line = differs.unwrap_or_else(|| kept.lines().count().min(text.lines().count())) + 1;
    assert!(
        kept == text,
        "{}:{line} differs; if that is meant, RALPH_BLESS=1 writes it anew\n--- kept\n{kept}--- now\n{text}---",
        path.display()
    );
}
