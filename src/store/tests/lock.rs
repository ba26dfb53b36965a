//! Tests of locks and their holders.

use super::test_state_dir;
use crate::store::{FileLock, LockHolder, StoreError, lock_holder};
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn holder() -> LockHolder {
    LockHolder {
        pid: 4242,
        start_time: 99,
        loop_name: "a".to_owned(),
        workspace: PathBuf::from("/tmp/work"),
        since: "2026-11-15T22:55:44.123Z".to_owned(),
        ..LockHolder::default()
    }
}

#[test]
fn a_lock_has_one_holder_and_names_it() {
    let fixture = test_state_dir();
    let path = fixture.create_dir("a").lock();
    assert_eq!(lock_holder(&path), None, "no file, no holder");
    let lock = FileLock::acquire(&path, &holder()).unwrap().unwrap();
    assert_eq!(lock_holder(&path), Some(holder()));
    assert_eq!(
        FileLock::acquire(&path, &LockHolder::default())
            .unwrap()
            .unwrap_err(),
        holder()
    );
    assert_eq!(
        lock_holder(&path),
        Some(holder()),
        "a failed attempt does not write its entry"
    );

    drop(lock);
    assert_eq!(lock_holder(&path), None);
    assert!(path.exists(), "the file stays");
    let other = LockHolder {
        pid: 7,
        ..LockHolder::default()
    };
    let lock = FileLock::acquire(&path, &other).unwrap().unwrap();
    assert_eq!(
        lock_holder(&path),
        Some(other),
        "a shorter entry leaves nothing of a longer one"
    );
    drop(lock);
}

#[test]
fn a_copy_of_the_open_file_keeps_the_lock() {
    let fixture = test_state_dir();
    let path = fixture.create_dir("a").lock();
    let lock = FileLock::acquire(&path, &holder()).unwrap().unwrap();
    let copy = lock.file.try_clone().unwrap();
    drop(lock);
    assert_eq!(lock_holder(&path), Some(holder()), "as after a fork");
    drop(copy);
    assert_eq!(lock_holder(&path), None);
}

#[test]
fn an_unreadable_entry_is_an_unknown_holder() {
    let fixture = test_state_dir();
    let path = fixture.create_dir("a").lock();
    let _lock = FileLock::acquire(&path, &holder()).unwrap().unwrap();
    for text in ["", "{\"pid\":", "[]"] {
        fs::write(&path, text).unwrap();
        assert_eq!(lock_holder(&path), Some(LockHolder::default()), "{text}");
    }
    fs::write(&path, "{\"pid\":7,\"color\":\"red\"}").unwrap();
    assert_eq!(
        lock_holder(&path),
        Some(LockHolder {
            pid: 7,
            ..LockHolder::default()
        })
    );
}

#[test]
fn reading_the_holder_does_not_make_an_attempt_fail() {
    let fixture = test_state_dir();
    let path = fixture.create_dir("a").lock();
    let probe = File::create(&path).unwrap();
    probe.try_lock_shared().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(40));
            drop(probe);
        });
        assert!(FileLock::acquire(&path, &holder()).unwrap().is_ok());
    });

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    lock_holder(&path);
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
        }
        let taken = (0..20).all(|_| FileLock::acquire(&path, &holder()).unwrap().is_ok());
        done.store(true, Ordering::Relaxed);
        assert!(taken);
    });
}

#[test]
fn an_archived_lock_does_not_apply_to_a_new_loop() {
    let fixture = test_state_dir();
    let dir = fixture.create_dir("a");
    let old = FileLock::acquire(&dir.lock(), &holder()).unwrap().unwrap();
    let archived = fixture.state_dir.archive("a").unwrap();
    assert_eq!(lock_holder(&dir.lock()), None);
    assert!(
        matches!(
            FileLock::acquire(&dir.lock(), &holder()),
            Err(StoreError::Io { .. })
        ),
        "the loop is gone"
    );
    assert!(
        !dir.path().exists(),
        "acquiring a lock does not create the directory"
    );
    fixture.create_dir("a");
    assert!(FileLock::acquire(&dir.lock(), &holder()).unwrap().is_ok());
    assert_eq!(lock_holder(&archived.join("lock")), Some(holder()));
    drop(old);
}

#[test]
fn only_one_of_many_attempts_gets_the_lock() {
    let fixture = test_state_dir();
    let path = fixture.create_dir("a").lock();
    let taken: Vec<_> = std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| FileLock::acquire(&path, &holder()).unwrap()))
            .collect();
        attempts
            .into_iter()
            .map(|attempt| attempt.join().unwrap())
            .collect()
    });
    assert_eq!(taken.iter().filter(|it| it.is_ok()).count(), 1);
    assert!(
        taken
            .iter()
            .all(|it| it.as_ref().is_ok() || it.as_ref().is_err_and(|other| *other == holder()))
    );
}
