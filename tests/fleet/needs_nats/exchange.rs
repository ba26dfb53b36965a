//! What every exchange promises, on one server.

use crate::servers::{Servers, wait_for};
use ralph::testing::{ExchangeDriver, PieceStream};
use std::fs;
use std::time::{Duration, Instant};

const FENCED: &str = "another machine owns the loop now";
const LEASE: Duration = Duration::from_secs(30);
const NOW: Duration = Duration::ZERO;

fn open(servers: &Servers, pool: &str) -> ExchangeDriver {
    ExchangeDriver::open(&servers.urls(), pool, LEASE).unwrap()
}

#[test]
fn eight_writers_lose_no_change_of_a_record() {
    let servers = Servers::start(1);
    let first = open(&servers, "p");
    first.create_record("shop", "id1").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let servers = &servers;
            scope.spawn(move || {
                let driver = open(servers, "p");
                let mut done = 0;
                while done < 10 {
                    match driver.claim("shop", &format!("w{writer}")) {
                        Ok(_) => done += 1,
                        Err(error) => assert_eq!(error, FENCED),
                    }
                }
            });
        }
    });
    assert_eq!(first.record("shop").unwrap().unwrap().0, 80);
}

#[test]
fn a_name_belongs_to_one_loop_until_that_is_deleted() {
    let servers = Servers::start(1);
    let driver = open(&servers, "p");
    let revision = driver.create_record("shop", "id1").unwrap();
    assert_eq!(
        driver.create_record("shop", "id1").unwrap(),
        revision,
        "a retry"
    );
    let taken = driver.create_record("shop", "id2").unwrap_err();
    assert_eq!(taken, "the fleet has a loop of this name already");
    driver.create_record("bank", "id3").unwrap();
    assert_eq!(driver.record_names().unwrap(), ["bank", "shop"]);
    for id in ["id1", "id3"] {
        driver
            .append(id, PieceStream::Journal, 1, 0, b"line\n", None)
            .unwrap();
        let file = servers.scratch().join(id);
        fs::write(&file, id).unwrap();
        driver.put_blob(&format!("{id}/code"), &file).unwrap();
    }
    driver.delete_loop("shop").unwrap();
    assert_eq!(driver.record_names().unwrap(), ["bank"]);
    assert_eq!(driver.record("shop").unwrap(), None);
    assert_eq!(driver.read("id1", PieceStream::Journal, 0).unwrap(), []);
    assert_eq!(
        driver.read("id3", PieceStream::Journal, 0).unwrap().len(),
        1
    );
    let file = servers.scratch().join("out");
    assert!(!driver.get_blob("id1/code", &file).unwrap());
    assert!(driver.get_blob("id3/code", &file).unwrap());
    driver.create_record("shop", "id4").unwrap();
    assert_eq!(driver.record_names().unwrap(), ["bank", "shop"]);
}

#[test]
fn an_earlier_owner_cannot_append() {
    let servers = Servers::start(1);
    let (old, new) = (open(&servers, "p"), open(&servers, "p"));
    let journal = PieceStream::Journal;
    let first = old.append("id", journal, 1, 0, b"a\n", Some(0)).unwrap();
    let second = old
        .append("id", journal, 1, 2, b"b\n", Some(first))
        .unwrap();
    let again = old
        .append("id", journal, 1, 2, b"b\n", Some(first))
        .unwrap();
    assert_eq!(again, second, "a retry of the newest piece");
    let moved = new
        .append("id", journal, 2, 4, b"moved\n", Some(second))
        .unwrap();
    let late = old.append("id", journal, 1, 4, b"c\n", Some(second));
    assert_eq!(late.unwrap_err(), FENCED);
    let same_bytes = old.append("id", journal, 1, 4, b"moved\n", Some(second));
    assert_eq!(same_bytes.unwrap_err(), FENCED, "the epoch differs");
    let early = old.append("id", journal, 1, 0, b"a\n", Some(0));
    assert_eq!(early.unwrap_err(), FENCED, "not the newest piece");
    let pieces = new.read("id", journal, first).unwrap();
    assert_eq!(
        pieces,
        [(second, b"b\n".to_vec()), (moved, b"moved\n".to_vec())]
    );
    assert_eq!(new.read("other", journal, 0).unwrap(), []);
}

#[test]
fn a_job_goes_to_another_worker_unless_its_lease_is_extended() {
    let servers = Servers::start(1);
    let lease = Duration::from_secs(1);
    // An earlier worker had another lease: the setting applies to the existing queue.
    let earlier = open(&servers, "p");
    assert!(earlier.next_job(NOW).unwrap().is_none());
    let drivers = [(); 2].map(|()| ExchangeDriver::open(&servers.urls(), "p", lease).unwrap());
    let [one, two] = &drivers;
    one.enqueue("shop", "key").unwrap();
    one.enqueue("shop", "key").unwrap();
    assert_eq!(one.queued().unwrap(), 1, "the same key twice");
    let job = one.next_job(lease).unwrap().expect("a job");
    assert_eq!(job.loop_name(), "shop");
    assert_eq!(one.queued().unwrap(), 0);
    let until = Instant::now() + lease * 3;
    while Instant::now() < until {
        job.extend().unwrap();
        assert!(
            two.next_job(lease / 5).unwrap().is_none(),
            "the lease was extended"
        );
    }
    let stolen = wait_for("a second delivery", || two.next_job(lease).unwrap());
    assert_eq!(stolen.loop_name(), "shop");
    // The first worker must not remove the job of the second.
    assert_eq!(job.finish().unwrap_err(), FENCED);
    assert_eq!(job.extend().unwrap_err(), FENCED);
    stolen.release(Duration::from_millis(700)).unwrap();
    let released = Instant::now();
    assert!(
        two.next_job(NOW).unwrap().is_none(),
        "released with a delay"
    );
    let job = wait_for("a third delivery", || two.next_job(lease).unwrap());
    assert!(released.elapsed() >= Duration::from_millis(600));
    job.finish().unwrap();
    std::thread::sleep(lease + lease / 2);
    assert!(two.next_job(NOW).unwrap().is_none(), "finished");
}

#[test]
fn a_worker_that_waits_longer_than_a_lease_gets_a_whole_one() {
    let servers = Servers::start(1);
    let lease = Duration::from_secs(1);
    let driver = ExchangeDriver::open(&servers.urls(), "p", lease).unwrap();
    let job = std::thread::scope(|scope| {
        let waits = scope.spawn(|| driver.next_job(Duration::from_secs(30)).unwrap());
        std::thread::sleep(lease + lease / 2);
        driver.enqueue("shop", "key").unwrap();
        waits.join().unwrap().expect("a job")
    });
    job.extend().unwrap();
    job.finish().unwrap();
}

#[test]
fn a_large_blob_returns_unchanged_and_can_be_replaced() {
    let servers = Servers::start(1);
    let driver = open(&servers, "p");
    let (file, out) = (servers.scratch().join("in"), servers.scratch().join("out"));
    let mut bytes = vec![0; 20 << 20];
    fastrand::Rng::with_seed(7).fill(&mut bytes);
    fs::write(&file, &bytes).unwrap();
    assert!(!driver.get_blob("id/code", &out).unwrap());
    assert!(!out.exists());
    driver.put_blob("id/code", &file).unwrap();
    assert!(driver.get_blob("id/code", &out).unwrap());
    assert!(fs::read(&out).unwrap() == bytes, "20 MiB are the same");
    fs::write(&file, b"").unwrap();
    driver.put_blob("id/code", &file).unwrap();
    assert!(driver.get_blob("id/code", &out).unwrap());
    assert_eq!(fs::read(&out).unwrap(), b"");
}

#[test]
fn pieces_are_followed_as_they_arrive() {
    let servers = Servers::start(1);
    let (writer, reader) = (open(&servers, "p"), open(&servers, "p"));
    let first = writer
        .append("id", PieceStream::Inbox, 0, 0, b"0", None)
        .unwrap();
    std::thread::scope(|scope| {
        let follows = scope.spawn(|| {
            let mut seen = Vec::new();
            let receive = |_, bytes: Vec<u8>| {
                seen.push(String::from_utf8(bytes).unwrap());
                seen.len() < 20
            };
            reader
                .follow("id", PieceStream::Inbox, first, receive)
                .unwrap();
            seen
        });
        for number in 1..=20 {
            let bytes = number.to_string();
            writer
                .append("id", PieceStream::Inbox, 0, 0, bytes.as_bytes(), None)
                .unwrap();
        }
        let expected: Vec<String> = (1..=20).map(|number: u32| number.to_string()).collect();
        assert_eq!(follows.join().unwrap(), expected);
    });
}

#[test]
fn announcements_expire_or_are_withdrawn() {
    let servers = Servers::start(1);
    let driver = open(&servers, "p");
    // As an administrator could: the announcements shall expire sooner than a test may take.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(servers.url(0)).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let stream = context.get_stream("KV_ralph-p-workers").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        assert_eq!(config.max_age, Duration::from_secs(30));
        config.max_age = Duration::from_secs(2);
        config.duplicate_window = config.max_age;
        context.update_stream(config).await.unwrap();
    });
    driver.announce("one", 0).unwrap();
    driver.announce("two", 0).unwrap();
    assert_eq!(driver.workers().unwrap(), ["one", "two"]);
    driver.withdraw("one").unwrap();
    assert_eq!(driver.workers().unwrap(), ["two"]);
    wait_for("an expired announcement", || {
        driver.workers().unwrap().is_empty().then_some(())
    });
}
