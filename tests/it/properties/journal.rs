//! Any bytes in place of a journal are read, or rejected with a short reason. A journal that can be
//! read stays readable, with the same content, when it is cut, cached, repaired or appended to.
//!
//! The first two bytes of an input select where the journal is cut.

use ralph::testing::{JournalLine, JournalReplay};
use std::fs;
use std::path::{Path, PathBuf};

const NEXT: &str = r#"{"at":"2026-11-15T22:55:44.123Z","at_ms":1763247344123,"ms":5,"event":"asked","wish":"stop_now","by":"inbox","inbox":38}"#;

pub fn check(input: &[u8]) {
    let [high, low, journal @ ..] = input else {
        return;
    };
    let temp = tempfile::tempdir().expect("a directory can be created");
    let replay = |name: &str, journal: &[u8]| {
        let dir = temp.path().join(name);
        fs::create_dir(&dir).expect("a directory can be created");
        let replay = JournalReplay::new(&dir);
        fs::write(replay.journal(), journal).expect("a journal can be written");
        replay
    };
    let whole = replay("a", journal);
    let content = match whole.read() {
        Ok(content) => content,
        Err(error) => {
            assert!(!error.is_empty() && error.len() < 2000, "{error}");
            assert!(whole.open_and_append(&[]).is_err());
            assert_eq!(
                fs::read(whole.journal()).ok().as_deref(),
                Some(journal),
                "a journal that cannot be read is not changed"
            );
            return;
        }
    };
    let shown = content.show();
    assert!(shown.iter().all(|text| !text.is_empty()));
    let valid = usize::try_from(content.offset()).expect("it fits into memory");

    let header = journal
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let cut = usize::from(u16::from_be_bytes([*high, *low])) % (journal.len() + 1);
    let part = replay("b", &journal[..cut]);
    match part.read() {
        Err(error) => assert!(cut < header, "cut at {cut}: {error}"),
        Ok(part) => assert!(cut >= header && part.offset() <= cut.min(valid) as u64),
    }
    // A cache of the first lines changes nothing about what is read of all of them.
    if let Ok(part_content) = part.read() {
        whole
            .save_cache(&part_content)
            .expect("a cache can be written");
        assert_eq!(whole.read().as_ref(), Ok(&content), "cached at {cut}");
    }
    let valid_lines = replay("c", &journal[..valid]);
    assert_eq!(valid_lines.read().as_ref(), Ok(&content));

    let next = JournalLine::parse(NEXT).expect("a valid line");
    let opened = whole.open_and_append(&[next.clone(), next]);
    assert_eq!(
        opened.as_ref(),
        Ok(&content),
        "a runner sees what commands see"
    );
    let written = fs::read(whole.journal()).expect("it can be read");
    assert!(written.starts_with(&journal[..valid]));
    let appended = whole.read().expect("it can still be read");
    assert_eq!(appended.offset(), written.len() as u64);
    drop(appended.show());
}

/// The journals of every released version.
pub fn seeds() -> Vec<Vec<u8>> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|dir| dir.join("testdata/golden"))
        .find(|dir| dir.is_dir())
        .expect("the repository has journals");
    let mut found = Vec::new();
    find_journals(&golden, &mut found);
    found.sort();
    found
        .iter()
        .map(|path| [&[0xff, 0x7f], &fs::read(path).expect("it can be read")[..]].concat())
        .collect()
}

fn find_journals(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_journals(&path, found);
        } else if path.ends_with("journal.jsonl") {
            found.push(path);
        }
    }
}
