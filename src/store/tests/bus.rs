//! A bus: many write at once and nothing is lost, nothing is said twice, and damage stays where it is.

use crate::store::bus::{Bus, Post, TEXT_MAX, digest, kind};
use crate::store::{Home, LoopDir};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn post(id: &str) -> Post {
    Post::new(id.into(), "note", Some(("a", 3)), &format!("words of {id}"))
}

fn ids(bus: &Bus, count: usize) -> Vec<String> {
    bus.last(count)
        .unwrap()
        .posts
        .into_iter()
        .map(|post| post.id)
        .collect()
}

fn project_bus(place: &Path) -> Bus {
    Home::at(place.to_owned()).project_bus(Path::new("/home/me/shop"))
}

#[test]
fn the_first_line_names_the_project_and_the_others_are_messages() {
    let place = tempfile::tempdir().unwrap();
    let bus = project_bus(place.path());
    assert_eq!(ids(&bus, 9), [""; 0], "nobody has said anything");
    bus.post(&[post("1"), post("2")], PATIENCE).unwrap();
    let text = fs::read_to_string(bus.path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"ralph":"bus","version":1,"of":{"project":"/home/me/shop"}}"#
    );
    assert!(lines[1].starts_with(r#"{"id":"1","time":"20"#), "{text}");
    assert!(
        lines[1].ends_with(r#"","type":"note","loop":"a","iteration":3,"text":"words of 1"}"#),
        "{text}"
    );
    assert_eq!(
        bus.last(9).unwrap().posts[0],
        serde_json::from_str::<Post>(lines[1]).unwrap()
    );
    assert_eq!(ids(&bus, 1), ["2"]);
    assert_eq!(
        bus.path().parent().unwrap().file_name().unwrap(),
        digest("/home/me/shop").as_str()
    );
    assert_eq!(
        digest("/home/me/shop"),
        "e4cfd71e62c87a11",
        "it never changes"
    );
}

#[test]
fn a_loop_that_is_gone_is_not_made_anew() {
    let place = tempfile::tempdir().unwrap();
    let dir = LoopDir::at(place.path().join("loops/a"));
    assert!(Bus::of_loop(&dir).post(&[post("1")], PATIENCE).is_err());
    dir.create().unwrap();
    Bus::of_loop(&dir).post(&[post("1")], PATIENCE).unwrap();
    let first = fs::read_to_string(dir.path().join("bus.jsonl")).unwrap();
    assert!(
        first.starts_with(r#"{"ralph":"bus","version":1,"of":{"loop":"a"}}"#),
        "{first}"
    );
    assert_eq!(Home::of(&dir), Home::at(place.path().to_owned()));
}

#[test]
fn nothing_is_said_twice() {
    let place = tempfile::tempdir().unwrap();
    let bus = project_bus(place.path());
    bus.post(&[post("1")], PATIENCE).unwrap();
    bus.post(&[post("1"), post("2")], PATIENCE).unwrap();
    bus.post(&[post("2")], PATIENCE).unwrap();
    assert_eq!(ids(&bus, 9), ["1", "2"]);
}

#[test]
fn many_writers_lose_nothing() {
    let place = tempfile::tempdir().unwrap();
    let bus = project_bus(place.path());
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let bus = bus.clone();
            scope.spawn(move || {
                for number in 0..25 {
                    bus.post(&[post(&format!("{writer}-{number}"))], PATIENCE)
                        .unwrap();
                }
            });
        }
    });
    let heard = bus.last(1000).unwrap();
    assert_eq!((heard.posts.len(), heard.damaged), (400, vec![]));
    for writer in 0..16 {
        let own: Vec<_> = heard
            .posts
            .iter()
            .filter(|post| post.id.starts_with(&format!("{writer}-")))
            .collect();
        let expected: Vec<String> = (0..25).map(|number| format!("{writer}-{number}")).collect();
        assert_eq!(
            own.iter().map(|post| post.id.clone()).collect::<Vec<_>>(),
            expected,
            "in order"
        );
    }
}

#[test]
fn a_torn_line_swallows_no_other_and_is_named() {
    let place = tempfile::tempdir().unwrap();
    let bus = project_bus(place.path());
    bus.post(&[post("1")], PATIENCE).unwrap();
    let torn_at = fs::metadata(bus.path()).unwrap().len();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(bus.path())
        .unwrap();
    file.write_all(br#"{"id":"torn","ti"#).unwrap();
    assert_eq!(bus.last(9).unwrap().damaged, [0; 0], "it may be on its way");
    bus.post(&[post("2")], PATIENCE).unwrap();
    let heard = bus.last(9).unwrap();
    assert_eq!(heard.damaged, [torn_at]);
    assert_eq!(ids(&bus, 9), ["1", "2"]);
}

#[test]
fn whoever_holds_a_bus_for_ever_is_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let bus = project_bus(place.path());
    bus.post(&[post("1")], PATIENCE).unwrap();
    let file = fs::File::open(bus.path()).unwrap();
    file.lock().unwrap();
    let error = bus
        .post(&[post("2")], Duration::from_millis(20))
        .unwrap_err()
        .to_string();
    assert!(error.contains("does not let go"), "{error}");
    assert_eq!(ids(&bus, 9), ["1"], "who only reads does not mind");
}

#[test]
fn a_long_bus_is_put_aside_and_still_heard() {
    let place = tempfile::tempdir().unwrap();
    let bus = project_bus(place.path());
    bus.post(&[post("1")], PATIENCE).unwrap();
    let place = bus.last(0).unwrap().place;
    let filler = format!("{}\n", "x".repeat(1 << 20));
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(bus.path())
        .unwrap();
    (0..9).for_each(|_| file.write_all(filler.as_bytes()).unwrap());
    let line = serde_json::to_string(&post("2")).unwrap() + "\n";
    file.write_all(line.as_bytes()).unwrap();
    bus.post(&[post("3")], PATIENCE).unwrap();
    assert!(fs::metadata(bus.path()).unwrap().len() < 1000);
    assert_eq!(ids(&bus, 2), ["2", "3"]);
    let after = bus.after(place).unwrap();
    assert_eq!(
        after
            .posts
            .iter()
            .map(|post| post.id.as_str())
            .collect::<Vec<_>>(),
        ["2", "3"]
    );
    assert_eq!(bus.after(after.place).unwrap().posts, []);
    bus.post(&[post("4")], PATIENCE).unwrap();
    assert_eq!(bus.after(after.place).unwrap().posts[0].id, "4");
}

#[test]
fn a_bus_of_a_later_version_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let bus = project_bus(place.path());
    fs::create_dir_all(bus.path().parent().unwrap()).unwrap();
    fs::write(bus.path(), "{\"ralph\":\"bus\",\"version\":2}\n").unwrap();
    assert!(bus.last(9).unwrap_err().to_string().contains("version 2"));
}

#[test]
fn texts_and_types_are_kept_in_bounds() {
    let long = Post::new("1".into(), "note", None, &"é".repeat(TEXT_MAX + 5));
    assert_eq!(long.text.chars().count(), TEXT_MAX + 1);
    assert!(long.text.ends_with('…'));
    for (word, is) in [
        ("Note", Some("note")),
        ("wait_without_restart", Some("wait_without_restart")),
        ("", None),
    ] {
        assert_eq!(kind(word).as_deref(), is);
    }
    for word in ["two words", "é", "a\nb", "../x", &"x".repeat(41)] {
        assert_eq!(kind(word), None, "{word}");
    }
}
