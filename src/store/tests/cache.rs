//! Tests of the cache: it never changes the result of reading a loop.

use super::{append_lines, header, line, test_state_dir};
use crate::engine::State;
use crate::engine::event::{Event, Request, RequestSource};
use crate::engine::{Amount, Limit, LimitChange};
use crate::store::{
    InboxMessage, Journal, JournalLine, cache, inbox, pending, seal, view_with_inbox,
};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_cache_at_any_offset_gives_the_same_state() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    let head = header("a", "id-1");
    let mut state = State::new(head.plan.clone());
    let mut saved = vec![(journal.len(), state.clone())];
    for n in 0..12 {
        journal.append(&line(n)).unwrap();
        state.step(line(n).now(), &line(n).event);
        saved.push((journal.len(), state.clone()));
    }
    for (offset, at) in saved {
        cache::save(&dir, offset, &head, &at).unwrap();
        let view = cache::read(&dir).unwrap();
        assert_eq!((&view.state, view.offset), (&state, journal.len()));
        assert_eq!(view.header, head);
    }
}

#[test]
fn the_cache_is_used() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..3);
    let mut cached = State::new(header("a", "id-1").plan);
    cached.inbox_offset = 4242;
    cache::save(&dir, journal.len(), &header("a", "id-1"), &cached).unwrap();
    assert_eq!(cache::read(&dir).unwrap().state.inbox_offset, 4242);
}

#[test]
fn deleting_the_cache_loses_nothing() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..6);
    let before = cache::read(&dir).unwrap();
    cache::save(&dir, before.offset, &before.header, &before.state).unwrap();
    assert_eq!(cache::read(&dir).unwrap(), before);
    fs::remove_file(dir.state()).unwrap();
    assert_eq!(cache::read(&dir).unwrap(), before);
}

#[test]
fn an_invalid_cache_is_ignored() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..6);
    let truth = cache::read(&dir).unwrap();
    let mut wrong = truth.state.clone();
    wrong.inbox_offset = 4242;
    for (offset, id) in [
        (truth.offset, "id-0"),
        (truth.offset + 1, "id-1"),
        (truth.offset - 3, "id-1"),
        (0, "id-1"),
        (u64::MAX, "id-1"),
    ] {
        cache::save(&dir, offset, &header("a", id), &wrong).unwrap();
        assert_eq!(cache::read(&dir).unwrap(), truth, "{id} at {offset}");
    }
    cache::save(&dir, truth.offset, &truth.header, &wrong).unwrap();
    let text = fs::read_to_string(dir.state()).unwrap();
    assert!(text.starts_with(r#"{"ended":null,"version":3,"#));
    for bad in [
        "",
        "{",
        "null",
        &text.replacen(":3,", ":1,", 1),
        &text[..text.len() / 2],
    ] {
        fs::write(dir.state(), bad).unwrap();
        assert_eq!(cache::read(&dir).unwrap(), truth, "{bad}");
    }
}

#[test]
fn opening_the_journal_discards_a_cache_of_lines_lost_in_a_power_failure() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..2);
    let kept = fs::read(dir.journal()).unwrap();
    append_lines(&mut journal, 2..4);
    let ahead = cache::read(&dir).unwrap();
    cache::save(&dir, ahead.offset, &ahead.header, &ahead.state).unwrap();
    fs::write(dir.journal(), &kept).unwrap();
    // After a restart, the seal no longer counts.
    fs::remove_file(seal::path(&dir)).unwrap();

    let mut opened = Journal::open(&dir).unwrap();
    append_lines(&mut opened.journal, 6..20);
    assert_eq!(
        cache::read(&dir).unwrap().state,
        Journal::open(&dir).unwrap().state
    );
}

#[test]
fn unread_inbox_messages_show_in_the_view() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    inbox::append(
        &dir,
        &InboxMessage::Asked {
            request: Request::Pause,
        },
    )
    .unwrap();
    let (message, offset) = inbox::read(&dir, 0).unwrap().remove(0);
    let event = pending::event_from_message(message, offset).unwrap();
    assert_eq!(
        event,
        Event::Asked {
            request: Request::Pause,
            by: RequestSource::Inbox,
            inbox: Some(offset)
        }
    );
    journal
        .append(&JournalLine {
            at_ms: 1,
            ms: 0,
            event,
        })
        .unwrap();
    assert_eq!(
        view_with_inbox(&dir).unwrap(),
        cache::read(&dir).unwrap(),
        "a message is not applied twice"
    );

    let bytes = fs::read(dir.journal()).unwrap();
    inbox::append(
        &dir,
        &InboxMessage::Changed {
            limit: LimitChange {
                limit: Limit::Iterations,
                max: Some(Amount::Count(200)),
            },
        },
    )
    .unwrap();
    inbox::append(&dir, &InboxMessage::Unknown).unwrap();
    let view = view_with_inbox(&dir).unwrap();
    assert_ne!(view.state, cache::read(&dir).unwrap().state);
    assert!(view.state.inbox_offset > offset);
    assert_eq!(
        fs::read(dir.journal()).unwrap(),
        bytes,
        "a reader writes nothing"
    );
}

#[test]
fn concurrent_readers_see_only_complete_lines() {
    let fixture = test_state_dir();
    let (dir, mut journal) = fixture.create_loop("a");
    let head = header("a", "id-1");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = 0;
                while !done.load(Ordering::Relaxed) {
                    let view = cache::read(&dir).unwrap();
                    assert!(view.offset >= before, "the view never goes back");
                    before = view.offset;
                }
            });
        }
        let mut state = State::new(head.plan.clone());
        for n in 0..400 {
            let version = "x".repeat(fastrand::usize(..20_000));
            let line = JournalLine {
                at_ms: n,
                ms: 1,
                event: Event::Opened {
                    pid: 7,
                    version,
                    cost_usd: None,
                    tokens: None,
                    in_session: false,
                    boot: None,
                },
            };
            journal.append(&line).unwrap();
            state.step(line.now(), &line.event);
            if n % 5 == 0 {
                cache::save(&dir, journal.len(), &head, &state).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(cache::read(&dir).unwrap().offset, journal.len());
}
