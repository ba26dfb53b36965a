//! That what is said to a loop arrives, once and whole.

use super::place;
use crate::engine::event::{Change, Wish};
use crate::store::{LoopDir, Message, inbox};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;

fn said(dir: &LoopDir, from: u64) -> Vec<Message> {
    inbox::read(dir, from)
        .unwrap()
        .into_iter()
        .map(|(message, _)| message)
        .collect()
}

#[test]
fn messages_arrive_in_order_and_from_any_offset() {
    let place = place();
    let dir = place.dir("a");
    assert_eq!(
        inbox::read(&dir, 0).unwrap(),
        [],
        "nobody has said anything"
    );
    let all = [
        Message::Asked {
            wish: Wish::StopNow,
        },
        Message::Answered {
            text: "two\nlines — ü".to_owned(),
        },
        Message::Changed {
            limit: Change::MaxIterations(Some(200)),
        },
        Message::Changed {
            limit: Change::MaxCost(None),
        },
    ];
    for message in &all {
        inbox::append(&dir, message).unwrap();
    }
    assert_eq!(said(&dir, 0), all);
    for (n, (_, offset)) in inbox::read(&dir, 0).unwrap().into_iter().enumerate() {
        assert_eq!(said(&dir, offset), all[n + 1..]);
    }
    let text = fs::read_to_string(dir.inbox()).unwrap();
    assert_eq!(
        text.lines().next(),
        Some(r#"{"message":"asked","wish":"stop_now"}"#)
    );
    assert_eq!(
        text.lines().nth(2),
        Some(r#"{"message":"changed","limit":{"name":"max-iterations","value":200}}"#)
    );
}

#[test]
fn an_incomplete_line_waits_and_a_malformed_one_is_passed_over() {
    let place = place();
    let dir = place.dir("a");
    let pause = Message::Asked { wish: Wish::Pause };
    fs::write(
        dir.inbox(),
        "nonsense \u{fffd}\n{\"message\":\"sung\",\"song\":[1]}\n",
    )
    .unwrap();
    inbox::append(&dir, &pause).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(dir.inbox())
        .unwrap()
        .write_all(b"{\"message\":\"as")
        .unwrap();
    let expected = [Message::Unknown, Message::Unknown, pause.clone()];
    assert_eq!(said(&dir, 0), expected);
    let (_, offset) = inbox::read(&dir, 0).unwrap().pop().unwrap();
    assert_eq!(said(&dir, offset), []);

    // The one that was cut short is lost; the next is not.
    inbox::append(&dir, &pause).unwrap();
    assert_eq!(said(&dir, offset), [Message::Unknown, pause]);
}

#[test]
fn what_many_say_at_once_is_all_heard() {
    let place = place();
    let dir = place.dir("a");
    let text = |thread: u32, n: u32| format!("{thread}/{n} {}", "x".repeat((n * 7 % 600) as usize));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = &dir;
            scope.spawn(move || {
                for n in 0..200 {
                    inbox::append(
                        dir,
                        &Message::Answered {
                            text: text(thread, n),
                        },
                    )
                    .unwrap();
                }
            });
        }
    });
    let heard: Vec<Message> = said(&dir, 0)
        .into_iter()
        .filter(|it| *it != Message::Unknown)
        .collect();
    assert_eq!(heard.len(), 1600);
    let heard: BTreeSet<String> = heard
        .into_iter()
        .filter_map(|message| {
            if let Message::Answered { text } = message {
                Some(text)
            } else {
                None
            }
        })
        .collect();
    let expected: BTreeSet<String> = (0..8)
        .flat_map(|t| (0..200).map(move |n| text(t, n)))
        .collect();
    assert_eq!(heard, expected);
}
