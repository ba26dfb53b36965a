//! A cluster of three servers, of which some crash, hang or lose their disk.

use crate::servers::Servers;
use ralph::testing::{ExchangeDriver, PieceStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);
const UNREACHABLE: &str = "the fleet cannot be reached";

/// Appends numbered pieces to a journal until it has `count`, as a worker does: what may have happened is tried again.
fn append_all(driver: &ExchangeDriver, count: u64, appended: &AtomicU64) {
    let mut last = 0;
    for number in 0..count {
        last = loop {
            let bytes = number.to_string();
            match driver.append(
                "id",
                PieceStream::Journal,
                1,
                number,
                bytes.as_bytes(),
                Some(last),
            ) {
                Ok(position) => break position,
                Err(error) => assert!(error.starts_with(UNREACHABLE), "{error}"),
            }
        };
        appended.store(number + 1, Ordering::SeqCst);
    }
}

fn wait_until_appended(appended: &AtomicU64, count: u64) {
    crate::servers::wait_for("appended pieces", || {
        (appended.load(Ordering::SeqCst) >= count).then_some(())
    });
}

fn numbers(pieces: Vec<(u64, Vec<u8>)>) -> Vec<u64> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    pieces
        .into_iter()
        .map(|(_, bytes)| text(bytes).parse().unwrap())
        .collect()
}

#[test]
fn reads_see_every_earlier_write_on_any_server() {
    let servers = Servers::start(3);
    let writer = ExchangeDriver::open(&servers.url(0), "p", LEASE).unwrap();
    let reader = ExchangeDriver::open(&servers.url(1), "p", LEASE).unwrap();
    writer.create_record("shop", "id").unwrap();
    let mut stale = 0;
    for _ in 0..500 {
        // Each claim reads what the other driver wrote.
        let (epoch, _) = writer.claim("shop", "w").unwrap();
        stale += usize::from(reader.record("shop").unwrap().unwrap().0 != epoch);
        let (epoch, _) = reader.claim("shop", "r").unwrap();
        stale += usize::from(writer.record("shop").unwrap().unwrap().0 != epoch);
    }
    assert_eq!(stale, 0, "of 1,000 reads");
}

#[test]
fn a_killed_leader_loses_and_doubles_nothing() {
    let mut servers = Servers::start(3);
    let [writer, reader] =
        [(); 2].map(|()| ExchangeDriver::open(&servers.urls(), "p", LEASE).unwrap());
    let appended = AtomicU64::new(0);
    let followed = std::thread::scope(|scope| {
        scope.spawn(|| append_all(&writer, 300, &appended));
        let follows = scope.spawn(|| {
            let mut seen = Vec::new();
            let receive = |position, bytes| {
                seen.push((position, bytes));
                seen.len() < 300
            };
            reader
                .follow("id", PieceStream::Journal, 0, receive)
                .unwrap();
            seen
        });
        wait_until_appended(&appended, 100);
        let leader = servers.leader("ralph-p-journal");
        servers.kill(leader);
        wait_until_appended(&appended, 200);
        servers.restart(leader);
        follows.join().unwrap()
    });
    let all: Vec<u64> = (0..300).collect();
    assert_eq!(numbers(followed), all);
    assert_eq!(
        numbers(reader.read("id", PieceStream::Journal, 0).unwrap()),
        all
    );
}

#[test]
fn servers_that_all_crash_lose_nothing_that_was_confirmed() {
    let mut servers = Servers::start(3);
    let driver = ExchangeDriver::open(&servers.urls(), "p", LEASE).unwrap();
    driver.create_record("shop", "id").unwrap();
    driver.claim("shop", "w").unwrap();
    driver.enqueue("shop", "key").unwrap();
    let job = driver.next_job(LEASE).unwrap().expect("a job");
    let appended = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| append_all(&driver, 150, &appended));
        wait_until_appended(&appended, 50);
        servers.kill_all();
        servers.restart_all();
    });
    let all: Vec<u64> = (0..150).collect();
    assert_eq!(
        numbers(driver.read("id", PieceStream::Journal, 0).unwrap()),
        all
    );
    assert_eq!(driver.record("shop").unwrap().unwrap().0, 1);
    job.extend().unwrap();
    job.finish().unwrap();
}

#[test]
fn a_wiped_server_gets_everything_again() {
    let mut servers = Servers::start(3);
    let driver = ExchangeDriver::open(&servers.urls(), "p", LEASE).unwrap();
    append_all(&driver, 50, &AtomicU64::new(0));
    let leader = servers.leader("ralph-p-journal");
    servers.kill(leader);
    servers.wipe(leader);
    servers.restart(leader);
    // Its copy is needed now.
    servers.kill((leader + 1) % 3);
    let all: Vec<u64> = (0..50).collect();
    let read =
        crate::servers::wait_for("a read", || driver.read("id", PieceStream::Journal, 0).ok());
    assert_eq!(numbers(read), all);
}

#[test]
fn a_frozen_leader_is_replaced() {
    let servers = Servers::start(3);
    let driver = ExchangeDriver::open(&servers.urls(), "p", LEASE).unwrap();
    driver.create_record("shop", "id").unwrap();
    let leader = servers.leader("KV_ralph-p-loops");
    servers.freeze(leader);
    let epoch = crate::servers::wait_for("a write", || driver.claim("shop", "w").ok());
    servers.thaw(leader);
    assert_eq!(epoch.0, driver.record("shop").unwrap().unwrap().0);
}
