//! Who may step, and who is told.

use super::place;
use crate::store::{Error, Holder, Lock, holder};
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn me() -> Holder {
    Holder {
        pid: 4242,
        start_time: 99,
        loop_name: "a".to_owned(),
        workspace: PathBuf::from("/tmp/work"),
        since: "2026-11-15T22:55:44.123Z".to_owned(),
        ..Holder::default()
    }
}

#[test]
fn a_lock_has_one_holder_and_says_who() {
    let place = place();
    let path = place.dir("a").lock();
    assert_eq!(holder(&path), None, "no file, no holder");
    let lock = Lock::take(&path, &me()).unwrap().unwrap();
    assert_eq!(holder(&path), Some(me()));
    assert_eq!(
        Lock::take(&path, &Holder::default()).unwrap().unwrap_err(),
        me()
    );
    assert_eq!(holder(&path), Some(me()), "who was refused does not sign");

    drop(lock);
    assert_eq!(holder(&path), None);
    assert!(path.exists(), "the file stays");
    let other = Holder {
        pid: 7,
        ..Holder::default()
    };
    let lock = Lock::take(&path, &other).unwrap().unwrap();
    assert_eq!(
        holder(&path),
        Some(other),
        "a shorter signature leaves nothing of a longer one"
    );
    drop(lock);
}

#[test]
fn a_copy_of_the_open_file_keeps_the_lock() {
    let place = place();
    let path = place.dir("a").lock();
    let lock = Lock::take(&path, &me()).unwrap().unwrap();
    let copy = lock.file.try_clone().unwrap();
    drop(lock);
    assert_eq!(holder(&path), Some(me()), "as after a fork");
    drop(copy);
    assert_eq!(holder(&path), None);
}

#[test]
fn an_unreadable_signature_is_an_unknown_holder() {
    let place = place();
    let path = place.dir("a").lock();
    let _lock = Lock::take(&path, &me()).unwrap().unwrap();
    for text in ["", "{\"pid\":", "[]"] {
        fs::write(&path, text).unwrap();
        assert_eq!(holder(&path), Some(Holder::default()), "{text}");
    }
    fs::write(&path, "{\"pid\":7,\"color\":\"red\"}").unwrap();
    assert_eq!(
        holder(&path),
        Some(Holder {
            pid: 7,
            ..Holder::default()
        })
    );
}

#[test]
fn a_reader_that_probes_does_not_keep_a_runner_out() {
    let place = place();
    let path = place.dir("a").lock();
    let probe = File::create(&path).unwrap();
    probe.try_lock_shared().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(40));
            drop(probe);
        });
        assert!(Lock::take(&path, &me()).unwrap().is_ok());
    });

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    holder(&path);
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
        }
        let taken = (0..20).all(|_| Lock::take(&path, &me()).unwrap().is_ok());
        done.store(true, Ordering::Relaxed);
        assert!(taken);
    });
}

#[test]
fn a_lock_that_was_archived_guards_nothing() {
    let place = place();
    let dir = place.dir("a");
    let old = Lock::take(&dir.lock(), &me()).unwrap().unwrap();
    let archived = place.home.archive("a").unwrap();
    assert_eq!(holder(&dir.lock()), None);
    assert!(
        matches!(Lock::take(&dir.lock(), &me()), Err(Error::Io { .. })),
        "the loop is gone"
    );
    assert!(!dir.path().exists(), "asking for a lock makes no loop");
    place.dir("a");
    assert!(Lock::take(&dir.lock(), &me()).unwrap().is_ok());
    assert_eq!(holder(&archived.join("lock")), Some(me()));
    drop(old);
}

#[test]
fn of_many_who_race_for_a_lock_one_wins() {
    let place = place();
    let path = place.dir("a").lock();
    let taken: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| Lock::take(&path, &me()).unwrap()))
            .collect();
        racers
            .into_iter()
            .map(|racer| racer.join().unwrap())
            .collect()
    });
    assert_eq!(taken.iter().filter(|it| it.is_ok()).count(), 1);
    assert!(
        taken
            .iter()
            .all(|it| it.as_ref().is_ok() || it.as_ref().is_err_and(|who| *who == me()))
    );
}
