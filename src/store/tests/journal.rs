//! Tests of the journal: its format, and damage from crashes.

use super::{append_lines, header, line, test_state_dir};
use crate::engine::State;
use crate::engine::event::Event;
use crate::store::{
    FileLock, InboxMessage, Journal, JournalLine, LockHolder, StoreError, cache, dir, inbox, seal,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn files_and_directories_are_accessible_to_their_owner_only() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..2);
    inbox::append(&dir, &InboxMessage::Unknown).unwrap();
    cache::save(
        &dir,
        journal.len(),
        &header("a", "id-1"),
        &State::new(header("a", "").plan),
    )
    .unwrap();
    dir.create_iteration_dir(1).unwrap();
    dir::append_file(&dir.iterations_log()).unwrap();
    let lock = FileLock::acquire(&dir.lock(), &LockHolder::default()).unwrap();
    assert!(lock.is_ok());

    let mut seen = 0;
    let mut open = vec![fixture.state_dir.root().to_owned()];
    while let Some(path) = open.pop() {
        let data = fs::metadata(&path).unwrap();
        let mode = data.permissions().mode() & 0o777;
        assert_eq!(
            mode,
            if data.is_dir() { 0o700 } else { 0o600 },
            "{}",
            path.display()
        );
        if data.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 13, "root, loops, a, iterations, 0001 and eight files");
}

#[test]
fn opening_a_journal_restores_its_header_and_state() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..9);
    journal.sync().unwrap();
    let opened = Journal::open(&dir).unwrap();

    let mut expected = State::new(header("a", "id-1").plan);
    for n in 0..9 {
        expected.step(line(n).now(), &line(n).event);
    }
    assert_eq!(opened.state, expected);
    assert_eq!(opened.header, header("a", "id-1"));
    assert_eq!(
        opened.journal.len(),
        fs::metadata(dir.journal()).unwrap().len()
    );
    assert!(opened.warnings.is_empty());
}

#[test]
fn lines_have_the_documented_format() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    journal
        .append(&JournalLine {
            at_ms: 1_789_000_000_007,
            ms: 3,
            event: Event::Woke,
        })
        .unwrap();
    let text = fs::read_to_string(dir.journal()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with(
            r#"{"ralph":"journal","version":1,"name":"a","id":"id-1","created":"2026-09-10T00:26:40.123Z","created_ms":1789000000123,"parent":null,"background":false,"tmux":null,"plan":{"rules":2,"task":"#
        ),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1],
        r#"{"at":"2026-09-10T00:26:40.007Z","at_ms":1789000000007,"ms":3,"event":"woke"}"#
    );
}

#[test]
fn an_existing_journal_is_not_overwritten() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..3);
    let before = fs::read(dir.journal()).unwrap();
    assert!(matches!(
        Journal::create(&dir, &header("a", "id-2")),
        Err(StoreError::Io { .. })
    ));
    assert_eq!(fs::read(dir.journal()).unwrap(), before);
}

#[test]
fn an_incomplete_last_line_is_cut_off_with_a_warning() {
    for torn in [
        &b"{\"at\":\"2026"[..],
        b"\0\0\0\0",
        b"{\"at\":\xff\n",
        b"\n",
        b"{\"event\":\"woke\"}\n",
    ] {
        let fixture = test_state_dir();
        let (dir, mut journal) = fixture.create_loop("a");
        append_lines(&mut journal, 0..5);
        let whole = fs::read(dir.journal()).unwrap();
        fs::write(dir.journal(), [&whole, torn].concat()).unwrap();

        let mut opened = Journal::open(&dir).unwrap();
        assert_eq!(fs::read(dir.journal()).unwrap(), whole);
        assert_eq!(opened.warnings.len(), 1);
        assert!(
            opened.warnings[0].contains(&format!(" {} bytes", torn.len())),
            "{:?}",
            opened.warnings
        );

        append_lines(&mut opened.journal, 5..6);
        let again = Journal::open(&dir).unwrap();
        opened.state.step(line(5).now(), &line(5).event);
        assert_eq!(again.state, opened.state);
        assert!(again.warnings.is_empty());
    }
}

#[test]
fn a_damaged_line_in_the_middle_is_an_error_and_not_changed() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..5);
    let text = fs::read_to_string(dir.journal()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "{\"at\":\"20";
    let damaged = lines.join("\n") + "\n{\"torn";
    fs::write(dir.journal(), &damaged).unwrap();
    fs::remove_file(seal::path(&dir)).unwrap();
    for error in [
        Journal::open(&dir).map(|_| ()).unwrap_err(),
        cache::read(&dir).map(|_| ()).unwrap_err(),
    ] {
        assert!(
            matches!(error, StoreError::Damaged { line: 3, .. }),
            "{error}"
        );
        assert!(error.hint().is_some());
    }
    assert_eq!(fs::read_to_string(dir.journal()).unwrap(), damaged);
}

#[test]
fn a_journal_of_a_newer_version_is_an_error_and_not_changed() {
    let fixture = test_state_dir();
    let dir = fixture.create_dir("a");
    let newer =
        b"{\"ralph\":\"journal\",\"version\":2,\"pages\":[]}\nsomething else\nand a torn li";
    fs::write(dir.journal(), newer).unwrap();
    assert!(matches!(
        Journal::open(&dir),
        Err(StoreError::NewerVersion { version: 2, .. })
    ));
    assert!(matches!(
        cache::read(&dir),
        Err(StoreError::NewerVersion { version: 2, .. })
    ));
    assert_eq!(fs::read(dir.journal()).unwrap(), newer);
}

#[test]
fn every_prefix_opens_to_the_state_of_its_complete_lines() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    let mut state = State::new(header("a", "id-1").plan);
    let mut known = vec![(journal.len() as usize, state.clone())];
    for n in 0..5 {
        journal.append(&line(n)).unwrap();
        state.step(line(n).now(), &line(n).event);
        known.push((journal.len() as usize, state.clone()));
    }
    let whole = fs::read(dir.journal()).unwrap();
    for cut in 0..=whole.len() {
        // Some file systems wait for the disk when a file is truncated and written again.
        fs::remove_file(dir.journal()).unwrap();
        fs::write(dir.journal(), &whole[..cut]).unwrap();
        let _ = fs::remove_file(seal::path(&dir));
        for copy in 1..=20 {
            let _ = fs::remove_file(dir.path().join(format!("journal.jsonl.aside-{copy}")));
        }
        let Some((len, expected)) = known.iter().rev().find(|(len, _)| *len <= cut) else {
            assert!(
                matches!(
                    Journal::open(&dir),
                    Err(StoreError::NotAJournal { .. } | StoreError::Damaged { line: 1, .. })
                ),
                "a first line of {cut} bytes"
            );
            assert_eq!(fs::read(dir.journal()).unwrap(), &whole[..cut]);
            continue;
        };
        assert_eq!(
            &cache::read(&dir).unwrap().state,
            expected,
            "a reader at {cut}"
        );
        assert_eq!(
            fs::metadata(dir.journal()).unwrap().len(),
            cut as u64,
            "a reader cuts nothing"
        );
        let opened = Journal::open(&dir).unwrap();
        assert_eq!(&opened.state, expected, "a runner at {cut}");
        assert_eq!(opened.journal.len(), *len as u64);
        assert_eq!(opened.warnings.len(), usize::from(cut > *len));
        assert_eq!(fs::read(dir.journal()).unwrap(), &whole[..*len]);
    }
}

#[test]
fn an_event_of_a_newer_version_is_unknown() {
    let text = r#"{"at":"x","at_ms":5,"ms":1,"event":"danced","with":{"whom":["you"]}}"#;
    assert_eq!(
        JournalLine::parse(text).unwrap(),
        JournalLine {
            at_ms: 5,
            ms: 1,
            event: Event::Unknown
        }
    );
}

#[test]
fn every_line_parses_to_what_was_written() {
    for n in 0..8 {
        assert_eq!(JournalLine::parse(&line(n).to_json()).unwrap(), line(n));
    }
}
