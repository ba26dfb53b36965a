//! Tests that need more than git and tmux are skipped where that is missing; none passes without running.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the text of every source file below a directory.
fn sources(dir: PathBuf) -> Vec<String> {
    let paths = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => sources(path),
            Some(end) if end == "rs" => vec![fs::read_to_string(path).unwrap()],
            _ => Vec::new(),
        })
        .collect()
}

/// Returns what follows `word` at the start of a line, up to the next space.
fn after<'a>(text: &'a str, word: &str) -> BTreeSet<&'a str> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix(word)?.split(' ').next())
        .collect()
}

#[test]
fn test_sh_lists_what_each_test_needs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = ["tests/it", "tests/fleet", "src"]
        .map(|dir| root.join(dir))
        .map(sources)
        .concat();
    let needed: BTreeSet<&str> = tests
        .iter()
        .flat_map(|text| after(text, "mod needs_"))
        .collect();
    let script = read("test.sh");
    assert_eq!(
        after(&script, "tests_need "),
        needed,
        "in test.sh, and as modules of tests"
    );
}

#[test]
fn no_test_passes_by_skipping_itself() {
    for dir in ["tests/it", "tests/cli", "tests/fleet"] {
        for text in sources(Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)) {
            let found = text
                .lines()
                .find(|line| line.trim_start().starts_with("eprintln!"));
            assert_eq!(found, None, "put the test into a module `needs_…` instead");
        }
    }
}
