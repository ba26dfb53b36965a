//! What happens when no more bytes fit.

use super::{place, write};
use crate::engine::event::Event;
use crate::store::{Error, Journal, Line, cache};
use std::fs;
use std::io;
use std::process::Command;

#[test]
fn the_reserve_is_real_and_can_be_spent_once_or_twice() {
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    assert_eq!(fs::read(dir.reserve()).unwrap(), vec![0; 64 * 1024]);
    journal.spend_reserve().unwrap();
    assert!(!dir.reserve().exists());
    journal.spend_reserve().unwrap();
    Journal::open(&dir).unwrap();
    assert_eq!(
        fs::metadata(dir.reserve()).unwrap().len(),
        64 * 1024,
        "the next runner has one again"
    );
}

#[test]
fn a_full_disk_is_known_by_all_its_names() {
    for (errno, full) in [
        (rustix::io::Errno::NOSPC, true),
        (rustix::io::Errno::DQUOT, true),
        (rustix::io::Errno::FBIG, true),
        (rustix::io::Errno::IO, false),
    ] {
        let source = io::Error::from_raw_os_error(errno.raw_os_error());
        let error = Error::Io {
            what: "write /x".to_owned(),
            source,
        };
        assert_eq!(error.is_disk_full(), full, "{error}");
        assert_eq!(error.hint().is_some(), full);
        assert!(error.to_string().starts_with("cannot write /x: "));
    }
}

#[test]
fn a_place_that_will_not_do_is_known_by_all_its_names() {
    use rustix::io::Errno;
    for (errno, refused) in [
        (Errno::ACCESS, true),
        (Errno::PERM, true),
        (Errno::ROFS, true),
        (Errno::NOTDIR, true),
        (Errno::ISDIR, true),
        (Errno::NOENT, false),
        (Errno::NOSPC, false),
    ] {
        let source = io::Error::from_raw_os_error(errno.raw_os_error());
        let error = Error::Io {
            what: "write /x".to_owned(),
            source,
        };
        assert_eq!(error.is_refused(), refused, "{error}");
        assert_eq!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("RALPH_STATE_DIR")),
            refused
        );
    }
}

/// Runs itself again under a file size limit, which makes the kernel write only a part of a line.
#[test]
fn a_line_that_does_not_fit_leaves_nothing_behind() {
    const INSIDE: &str = "RALPH_TEST_FILE_SIZE_LIMIT";
    if std::env::var_os(INSIDE).is_none() {
        let test = "store::tests::space::a_line_that_does_not_fit_leaves_nothing_behind";
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 256; exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{output:?}"
        );
        return;
    }
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    write(&mut journal, 0..3);
    let long = Line {
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
    write(&mut journal, 3..4);
    let opened = Journal::open(&dir).unwrap();
    assert!(opened.warnings.is_empty());
    assert_eq!(cache::read(&dir).unwrap().state, opened.state);
}
