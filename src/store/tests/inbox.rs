//! Tests of the inbox: every message arrives once and complete.

use super::test_state_dir;
use crate::engine::event::Request;
use crate::engine::{Amount, Limit, LimitChange};
use crate::store::{InboxMessage, LoopDir, inbox};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;

fn read_messages(dir: &LoopDir, from: u64) -> Vec<InboxMessage> {
    inbox::read(dir, from)
        .unwrap()
        .into_iter()
        .map(|(message, _)| message)
        .collect()
}

#[test]
fn messages_arrive_in_order_and_from_any_offset() {
    let fixture = test_state_dir();
    let dir = fixture.create_dir("a");
    assert_eq!(inbox::read(&dir, 0).unwrap(), [], "an empty inbox");
    let all = [
        InboxMessage::Asked {
            request: Request::StopNow,
        },
        InboxMessage::Answered {
            text: "two\nlines — ü".to_owned(),
        },
        InboxMessage::Changed {
            limit: LimitChange {
                limit: Limit::Iterations,
                max: Some(Amount::Count(200)),
            },
        },
        InboxMessage::Changed {
            limit: LimitChange {
                limit: Limit::Cost,
                max: None,
            },
        },
    ];
    for message in &all {
        inbox::append(&dir, message).unwrap();
    }
    assert_eq!(read_messages(&dir, 0), all);
    for (n, (_, offset)) in inbox::read(&dir, 0).unwrap().into_iter().enumerate() {
        assert_eq!(read_messages(&dir, offset), all[n + 1..]);
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
fn an_incomplete_line_waits_and_a_malformed_one_is_unknown() {
    let fixture = test_state_dir();
    let dir = fixture.create_dir("a");
    let pause = InboxMessage::Asked {
        request: Request::Pause,
    };
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
    let expected = [InboxMessage::Unknown, InboxMessage::Unknown, pause.clone()];
    assert_eq!(read_messages(&dir, 0), expected);
    let (_, offset) = inbox::read(&dir, 0).unwrap().pop().unwrap();
    assert_eq!(read_messages(&dir, offset), []);

    // Only the incomplete message is lost.
    inbox::append(&dir, &pause).unwrap();
    assert_eq!(read_messages(&dir, offset), [InboxMessage::Unknown, pause]);
}

#[test]
fn concurrent_writers_lose_no_message() {
    let fixture = test_state_dir();
    let dir = fixture.create_dir("a");
    let text = |thread: u32, n: u32| format!("{thread}/{n} {}", "x".repeat((n * 7 % 600) as usize));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = &dir;
            scope.spawn(move || {
                for n in 0..200 {
                    inbox::append(
                        dir,
                        &InboxMessage::Answered {
                            text: text(thread, n),
                        },
                    )
                    .unwrap();
                }
            });
        }
    });
    let received: Vec<InboxMessage> = read_messages(&dir, 0)
        .into_iter()
        .filter(|it| *it != InboxMessage::Unknown)
        .collect();
    assert_eq!(received.len(), 1600);
    let received: BTreeSet<String> = received
        .into_iter()
        .filter_map(|message| {
            if let InboxMessage::Answered { text } = message {
                Some(text)
            } else {
                None
            }
        })
        .collect();
    let expected: BTreeSet<String> = (0..8)
        .flat_map(|t| (0..200).map(move |n| text(t, n)))
        .collect();
    assert_eq!(received, expected);
}
