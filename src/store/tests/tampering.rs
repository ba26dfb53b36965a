//! Tests of files that other processes change: journal, seal, locks and inbox.

use super::{append_lines, line, test_state_dir};
use crate::engine::event::Request;
use crate::store::{
    InboxMessage, Journal, LockFileGuard, LockHolder, LoopDir, LoopLock, StoreError, cache, inbox,
    loop_holder, seal,
};
use std::fs::{self, OpenOptions};
use std::io::Write;

const FOREIGN: &[u8] = b"{\"at\":\"x\",\"at_ms\":5,\"ms\":1,\"event\":\"woke\"}\n";

fn append_foreign(dir: &LoopDir) {
    let mut file = OpenOptions::new().append(true).open(dir.journal()).unwrap();
    file.write_all(FOREIGN).unwrap();
}

fn aside(dir: &LoopDir, n: u32) -> Vec<u8> {
    fs::read(dir.path().join(format!("journal.jsonl.aside-{n}"))).unwrap()
}

#[test]
fn a_foreign_line_is_removed_before_the_next_one_is_written() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..3);
    let own = fs::read(dir.journal()).unwrap();
    for n in 1..=2 {
        append_foreign(&dir);
        assert_eq!(cache::read(&dir).unwrap().offset, own.len() as u64);
        journal.check_length().unwrap();
        assert_eq!(fs::read(dir.journal()).unwrap(), own);
        assert_eq!(aside(&dir, n), FOREIGN);
        assert_eq!(journal.take_warnings().len(), 1);
    }
    append_foreign(&dir);
    journal.append(&line(3)).unwrap();
    let expected = [&own[..], line(3).to_json().as_bytes(), b"\n"].concat();
    assert_eq!(fs::read(dir.journal()).unwrap(), expected);
    assert_eq!(journal.take_warnings().len(), 1);
    assert!(journal.take_warnings().is_empty());
    assert!(Journal::open(&dir).unwrap().warnings.is_empty());
}

#[test]
fn a_foreign_line_after_the_last_own_one_is_removed_when_the_journal_is_opened() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..3);
    drop(journal);
    let own = fs::read(dir.journal()).unwrap();
    let state = cache::read(&dir).unwrap().state;
    append_foreign(&dir);
    assert_eq!(cache::read(&dir).unwrap().state, state);
    let opened = Journal::open(&dir).unwrap();
    assert_eq!(opened.state, state);
    assert_eq!(opened.warnings.len(), 1, "{:?}", opened.warnings);
    assert_eq!(fs::read(dir.journal()).unwrap(), own);
    assert_eq!(aside(&dir, 1), FOREIGN);
}

#[test]
fn a_foreign_line_in_place_of_the_last_one_does_not_count() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..3);
    let own = fs::read(dir.journal()).unwrap();
    journal.append(&line(u64::from(u32::MAX))).unwrap();
    drop(journal);
    let last = fs::read(dir.journal()).unwrap().len() - own.len();
    assert!(
        FOREIGN.len() < last,
        "it could be what a crash left of the last line"
    );
    fs::write(dir.journal(), [&own, FOREIGN].concat()).unwrap();
    let opened = Journal::open(&dir).unwrap();
    assert_eq!(opened.warnings.len(), 1, "{:?}", opened.warnings);
    assert_eq!(fs::read(dir.journal()).unwrap(), own);
    assert_eq!(aside(&dir, 1), FOREIGN);
}

#[test]
fn a_cut_or_changed_journal_is_an_error() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..5);
    let own = fs::read(dir.journal()).unwrap();
    let before_last = own[..own.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let before_that = own[..before_last - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let mut changed = own.clone();
    let last = own.len() - 3;
    changed[last] ^= 1;
    for (content, is_own) in [
        (&own[..], true),
        // A crash before the last line was written, or while it was written.
        (&own[..before_last], true),
        (&own[..before_last + 10], true),
        (&own[..before_that], false),
        (&own[..10], false),
        (b"", false),
        (&changed, false),
    ] {
        fs::write(dir.journal(), content).unwrap();
        let saved = fs::read(seal::path(&dir)).unwrap();
        let opened = Journal::open(&dir).map(drop);
        let len = content.len();
        if is_own {
            assert!(opened.is_ok(), "{len} bytes");
        } else {
            let error = opened.unwrap_err();
            assert!(
                matches!(error, StoreError::Altered { .. }),
                "{len} bytes: {error}"
            );
            // Without its first line, nothing is left to continue from.
            let hint = error.hint().unwrap();
            assert_eq!(hint.contains("seal"), len > 10, "{hint}");
            assert_eq!(hint.contains("ralph rm a --force"), len <= 10, "{hint}");
            assert_eq!(
                fs::read(dir.journal()).unwrap(),
                content,
                "it is not changed"
            );
        }
        fs::write(seal::path(&dir), saved).unwrap();
        fs::write(dir.journal(), &own).unwrap();
    }
    fs::write(dir.journal(), &own[..before_last]).unwrap();
    assert!(matches!(
        journal.append(&line(5)),
        Err(StoreError::Altered { .. })
    ));
}

#[test]
fn a_seal_of_an_earlier_boot_or_in_another_form_does_not_count() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..2);
    let text = fs::read_to_string(seal::path(&dir)).unwrap();
    assert!(seal::read(&dir).is_some());
    for other in [
        text.replacen(|c: char| c.is_ascii_hexdigit(), "z", 1),
        String::new(),
        "garbage".to_owned(),
    ] {
        fs::write(seal::path(&dir), other).unwrap();
        assert!(seal::read(&dir).is_none());
    }
    append_foreign(&dir);
    assert!(Journal::open(&dir).unwrap().warnings.is_empty());
}

fn holder() -> LockHolder {
    LockHolder {
        pid: 4242,
        loop_name: "a".to_owned(),
        since: "2026-11-15T22:55:44.123Z".to_owned(),
        ..LockHolder::default()
    }
}

#[test]
fn the_journal_s_lock_outlives_the_lock_file() {
    let fixture = test_state_dir();
    let dir = fixture.create_dir("a");
    let mut lock = LoopLock::acquire(&dir, &holder()).unwrap().unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    let (dir, journal) = fixture.create_loop("a");
    drop(journal);
    assert_eq!(loop_holder(&dir), None, "the lock of a deleted directory");
    lock.add_journal(&dir).unwrap();
    assert!(loop_holder(&dir).is_some_and(|holder| !holder.is_transient()));
    assert!(LoopLock::acquire(&dir, &holder()).unwrap().is_err());
    assert!(!dir.lock().exists(), "a failed attempt writes no entry");
    drop(lock);
    assert_eq!(loop_holder(&dir), None);

    let lock = LoopLock::acquire(&dir, &holder()).unwrap().unwrap();
    let mut guard = LockFileGuard::new(&dir);
    assert_eq!(guard.restore().unwrap(), None);
    fs::remove_file(dir.lock()).unwrap();
    assert!(guard.restore().unwrap().is_some());
    assert_eq!(loop_holder(&dir), Some(holder()));
    assert_eq!(guard.restore().unwrap(), None);
    fs::remove_file(dir.lock()).unwrap();
    fs::create_dir(dir.lock()).unwrap();
    assert!(guard.restore().unwrap().is_some());
    drop((lock, guard));
    assert_eq!(loop_holder(&dir), None);
}

#[test]
fn a_message_is_written_where_the_runner_reads() {
    let fixture = test_state_dir();
    let dir = fixture.create_dir("a");
    let pause = InboxMessage::Asked {
        request: Request::Pause,
    };
    let mut consumed = 0;
    for _ in 0..3 {
        consumed = inbox::append(&dir, &pause).unwrap();
    }
    assert_eq!(inbox::restore(&dir, consumed).unwrap(), None);
    assert!(inbox::still_has(&dir, consumed));
    let read = |from| -> Vec<InboxMessage> {
        let messages = inbox::read(&dir, from).unwrap().into_iter();
        let messages = messages.map(|(message, _)| message);
        messages.filter(|it| *it != InboxMessage::Unknown).collect()
    };
    for obstacle in ["missing", "cut", "directory"] {
        let _ = fs::remove_file(dir.inbox());
        match obstacle {
            "cut" => fs::write(dir.inbox(), "{\"mess").unwrap(),
            "directory" => fs::create_dir(dir.inbox()).unwrap(),
            _ => {}
        }
        assert!(
            inbox::restore(&dir, consumed).unwrap().is_some(),
            "{obstacle}"
        );
        assert_eq!(inbox::restore(&dir, consumed).unwrap(), None);
        assert_eq!(read(consumed), []);
        inbox::append(&dir, &pause).unwrap();
        assert_eq!(read(consumed), std::slice::from_ref(&pause), "{obstacle}");
    }
    fs::remove_file(dir.inbox()).unwrap();
    let file = fs::File::create(dir.inbox()).unwrap();
    file.set_len(1 << 30).unwrap();
    assert!(inbox::restore(&dir, consumed).unwrap().is_some(), "a flood");
    inbox::append(&dir, &pause).unwrap();
    assert_eq!(read(consumed), [pause]);
}
