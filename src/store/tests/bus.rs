//! Tests of the bus: concurrent writers, duplicates, rotation and damage.

use crate::store::bus::{Bus, BusMessage, TEXT_MAX, parse_kind, stable_hash};
use crate::store::{LoopDir, StateDir};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

fn message(id: &str) -> BusMessage {
    BusMessage::new(id.into(), "note", Some(("a", 3)), &format!("text of {id}"))
}

fn ids(bus: &Bus, count: usize) -> Vec<String> {
    bus.last(count)
        .unwrap()
        .messages
        .into_iter()
        .map(|message| message.id)
        .collect()
}

fn project_bus(root: &Path) -> Bus {
    StateDir::new(root.to_owned()).project_bus(Path::new("/home/me/shop"))
}

#[test]
fn the_first_line_names_the_project_and_the_others_are_messages() {
    let temp = tempfile::tempdir().unwrap();
    let bus = project_bus(temp.path());
    assert_eq!(ids(&bus, 9), [""; 0], "an empty bus");
    bus.post(&[message("1"), message("2")], TIMEOUT).unwrap();
    let text = fs::read_to_string(bus.path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"ralph":"bus","version":1,"of":{"project":"/home/me/shop"}}"#
    );
    assert!(lines[1].starts_with(r#"{"id":"1","time":"20"#), "{text}");
    assert!(
        lines[1].ends_with(r#"","type":"note","loop":"a","iteration":3,"text":"text of 1"}"#),
        "{text}"
    );
    assert_eq!(
        bus.last(9).unwrap().messages[0],
        serde_json::from_str::<BusMessage>(lines[1]).unwrap()
    );
    assert_eq!(ids(&bus, 1), ["2"]);
    assert_eq!(
        bus.path().parent().unwrap().file_name().unwrap(),
        stable_hash("/home/me/shop").as_str()
    );
    assert_eq!(
        stable_hash("/home/me/shop"),
        "e4cfd71e62c87a11",
        "the hash never changes"
    );
}

#[test]
fn posting_does_not_recreate_a_removed_loop() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LoopDir::new(temp.path().join("loops/a"));
    assert!(Bus::for_loop(&dir).post(&[message("1")], TIMEOUT).is_err());
    dir.create().unwrap();
    Bus::for_loop(&dir).post(&[message("1")], TIMEOUT).unwrap();
    let first = fs::read_to_string(dir.path().join("bus.jsonl")).unwrap();
    assert!(
        first.starts_with(r#"{"ralph":"bus","version":1,"of":{"loop":"a"}}"#),
        "{first}"
    );
    assert_eq!(
        StateDir::containing(&dir),
        StateDir::new(temp.path().to_owned())
    );
}

#[test]
fn a_message_is_not_posted_twice() {
    let temp = tempfile::tempdir().unwrap();
    let bus = project_bus(temp.path());
    bus.post(&[message("1")], TIMEOUT).unwrap();
    bus.post(&[message("1"), message("2")], TIMEOUT).unwrap();
    bus.post(&[message("2")], TIMEOUT).unwrap();
    assert_eq!(ids(&bus, 9), ["1", "2"]);
}

#[test]
fn concurrent_writers_lose_no_message() {
    let temp = tempfile::tempdir().unwrap();
    let bus = project_bus(temp.path());
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let bus = bus.clone();
            scope.spawn(move || {
                for number in 0..25 {
                    bus.post(&[message(&format!("{writer}-{number}"))], TIMEOUT)
                        .unwrap();
                }
            });
        }
    });
    let batch = bus.last(1000).unwrap();
    assert_eq!((batch.messages.len(), batch.damaged), (400, vec![]));
    for writer in 0..16 {
        let own: Vec<_> = batch
            .messages
            .iter()
            .filter(|message| message.id.starts_with(&format!("{writer}-")))
            .collect();
        let expected: Vec<String> = (0..25).map(|number| format!("{writer}-{number}")).collect();
        assert_eq!(
            own.iter()
                .map(|message| message.id.clone())
                .collect::<Vec<_>>(),
            expected,
            "in order"
        );
    }
}

#[test]
fn an_incomplete_line_is_reported_and_damages_no_other() {
    let temp = tempfile::tempdir().unwrap();
    let bus = project_bus(temp.path());
    bus.post(&[message("1")], TIMEOUT).unwrap();
    let torn_at = fs::metadata(bus.path()).unwrap().len();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(bus.path())
        .unwrap();
    file.write_all(br#"{"id":"torn","ti"#).unwrap();
    assert_eq!(
        bus.last(9).unwrap().damaged,
        [0; 0],
        "it may still be being written"
    );
    bus.post(&[message("2")], TIMEOUT).unwrap();
    let batch = bus.last(9).unwrap();
    assert_eq!(batch.damaged, [torn_at]);
    assert_eq!(ids(&bus, 9), ["1", "2"]);
}

#[test]
fn posting_gives_up_when_the_bus_stays_locked() {
    let temp = tempfile::tempdir().unwrap();
    let bus = project_bus(temp.path());
    bus.post(&[message("1")], TIMEOUT).unwrap();
    let file = fs::File::open(bus.path()).unwrap();
    file.lock().unwrap();
    let error = bus
        .post(&[message("2")], Duration::from_millis(20))
        .unwrap_err()
        .to_string();
    assert!(error.contains("holds its lock"), "{error}");
    assert_eq!(ids(&bus, 9), ["1"], "reading needs no lock");
}

#[test]
fn a_rotated_file_is_still_read() {
    let temp = tempfile::tempdir().unwrap();
    let bus = project_bus(temp.path());
    bus.post(&[message("1")], TIMEOUT).unwrap();
    let position = bus.last(0).unwrap().position;
    let filler = format!("{}\n", "x".repeat(1 << 20));
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(bus.path())
        .unwrap();
    (0..9).for_each(|_| file.write_all(filler.as_bytes()).unwrap());
    let line = serde_json::to_string(&message("2")).unwrap() + "\n";
    file.write_all(line.as_bytes()).unwrap();
    bus.post(&[message("3")], TIMEOUT).unwrap();
    assert!(fs::metadata(bus.path()).unwrap().len() < 1000);
    assert_eq!(ids(&bus, 2), ["2", "3"]);
    let after = bus.read_after(position).unwrap();
    assert_eq!(
        after
            .messages
            .iter()
            .map(|message| message.id.as_str())
            .collect::<Vec<_>>(),
        ["2", "3"]
    );
    assert_eq!(bus.read_after(after.position).unwrap().messages, []);
    bus.post(&[message("4")], TIMEOUT).unwrap();
    assert_eq!(bus.read_after(after.position).unwrap().messages[0].id, "4");
}

#[test]
fn a_bus_of_a_newer_version_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let bus = project_bus(temp.path());
    fs::create_dir_all(bus.path().parent().unwrap()).unwrap();
    fs::write(bus.path(), "{\"ralph\":\"bus\",\"version\":2}\n").unwrap();
    assert!(bus.last(9).unwrap_err().to_string().contains("version 2"));
}

#[test]
fn long_texts_are_cut_and_invalid_types_rejected() {
    let long = BusMessage::new("1".into(), "note", None, &"é".repeat(TEXT_MAX + 5));
    assert_eq!(long.text.chars().count(), TEXT_MAX + 1);
    assert!(long.text.ends_with('…'));
    for (text, expected) in [
        ("Note", Some("note")),
        ("wait_without_restart", Some("wait_without_restart")),
        ("", None),
    ] {
        assert_eq!(parse_kind(text).as_deref(), expected);
    }
    for text in ["two words", "é", "a\nb", "../x", &"x".repeat(41)] {
        assert_eq!(parse_kind(text), None, "{text}");
    }
}
