//! Tests of full disks and inaccessible directories.

use super::{append_lines, test_state_dir};
use crate::engine::event::Event;
use crate::store::{Journal, JournalLine, StoreError, cache};
use std::fs;
use std::io;
use std::process::Command;

#[test]
fn the_disk_reserve_is_written_and_can_be_released_twice() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    assert_eq!(fs::read(dir.disk_reserve()).unwrap(), vec![0; 64 * 1024]);
    journal.release_disk_reserve().unwrap();
    assert!(!dir.disk_reserve().exists());
    journal.release_disk_reserve().unwrap();
    Journal::open(&dir).unwrap();
    assert_eq!(
        fs::metadata(dir.disk_reserve()).unwrap().len(),
        64 * 1024,
        "the next runner creates it again"
    );
}

#[test]
fn all_errors_of_a_full_disk_are_recognized() {
    for (errno, full) in [
        (rustix::io::Errno::NOSPC, true),
        (rustix::io::Errno::DQUOT, true),
        (rustix::io::Errno::FBIG, true),
        (rustix::io::Errno::IO, false),
    ] {
        let source = io::Error::from_raw_os_error(errno.raw_os_error());
        let error = StoreError::Io {
            action: "write /x".to_owned(),
            source,
        };
        assert_eq!(error.is_disk_full(), full, "{error}");
        assert_eq!(error.hint().is_some(), full);
        assert!(error.to_string().starts_with("cannot write /x: "));
    }
}

#[test]
fn all_errors_of_an_inaccessible_directory_are_recognized() {
    use rustix::io::Errno;
    for (errno, expected) in [
        (Errno::ACCESS, true),
        (Errno::PERM, true),
        (Errno::ROFS, true),
        (Errno::NOTDIR, true),
        (Errno::ISDIR, true),
        (Errno::NOENT, false),
        (Errno::NOSPC, false),
    ] {
        let source = io::Error::from_raw_os_error(errno.raw_os_error());
        let error = StoreError::Io {
            action: "write /x".to_owned(),
            source,
        };
        assert_eq!(error.is_inaccessible(), expected, "{error}");
        assert_eq!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("RALPH_STATE_DIR")),
            expected
        );
    }
}

/// Runs itself again under a file size limit, which makes the kernel write only part of a line.
#[test]
fn a_line_that_does_not_fit_is_removed_again() {
    const INSIDE: &str = "RALPH_TEST_FILE_SIZE_LIMIT";
    if std::env::var_os(INSIDE).is_none() {
        let test = "store::tests::disk_full::a_line_that_does_not_fit_is_removed_again";
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 256; exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && stdout.contains("1 passed"),
            "{output:?}"
        );
        return;
    }
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..3);
    let long = JournalLine {
        at_ms: 1,
        ms: 0,
        event: Event::Answered {
            text: "x".repeat(60_001),
            inbox: None,
        },
    };
    let error = loop {
        if let Err(error) = journal.append(&long) {
            break error;
        }
    };
    assert!(error.is_disk_full(), "{error}");
    let bytes = fs::read(dir.journal()).unwrap();
    assert_eq!(bytes.len() as u64, journal.len());
    assert_eq!(bytes.last(), Some(&b'\n'));
    append_lines(&mut journal, 3..4);
    let opened = Journal::open(&dir).unwrap();
    assert!(opened.warnings.is_empty());
    assert_eq!(cache::read(&dir).unwrap().state, opened.state);
}
