//! That a cache changes how fast something is read, and never what.

use super::{header, line, place, write};
use crate::engine::State;
use crate::engine::event::{Change, Door, Event, Wish};
use crate::store::journal::Line;
use crate::store::{Journal, cache, inbox, pending, view_with_inbox};
use inbox::Message;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_cache_and_the_tail_are_the_whole_at_every_offset() {
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
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
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    write(&mut journal, 0..3);
    let mut told = State::new(header("a", "id-1").plan);
    told.inbox_offset = 4242;
    cache::save(&dir, journal.len(), &header("a", "id-1"), &told).unwrap();
    assert_eq!(cache::read(&dir).unwrap().state.inbox_offset, 4242);
}

#[test]
fn deleting_the_cache_loses_nothing() {
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    write(&mut journal, 0..6);
    let before = cache::read(&dir).unwrap();
    cache::save(&dir, before.offset, &before.header, &before.state).unwrap();
    assert_eq!(cache::read(&dir).unwrap(), before);
    fs::remove_file(dir.state()).unwrap();
    assert_eq!(cache::read(&dir).unwrap(), before);
}

#[test]
fn a_cache_that_cannot_be_right_is_ignored() {
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    write(&mut journal, 0..6);
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
    assert!(text.starts_with(r#"{"version":2,"#));
    for bad in [
        "",
        "{",
        "null",
        &text.replacen(":2,", ":1,", 1),
        &text[..text.len() / 2],
    ] {
        fs::write(dir.state(), bad).unwrap();
        assert_eq!(cache::read(&dir).unwrap(), truth, "{bad}");
    }
}

#[test]
fn a_cache_of_lines_that_a_power_cut_took_back_does_not_outlive_the_next_runner() {
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    write(&mut journal, 0..2);
    let kept = fs::read(dir.journal()).unwrap();
    write(&mut journal, 2..4);
    let ahead = cache::read(&dir).unwrap();
    cache::save(&dir, ahead.offset, &ahead.header, &ahead.state).unwrap();
    fs::write(dir.journal(), &kept).unwrap();

    let mut opened = Journal::open(&dir).unwrap();
    write(&mut opened.journal, 6..20);
    assert_eq!(
        cache::read(&dir).unwrap().state,
        Journal::open(&dir).unwrap().state
    );
}

#[test]
fn unread_messages_show_before_the_runner_has_read_them() {
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    inbox::append(&dir, &Message::Asked { wish: Wish::Pause }).unwrap();
    let (message, offset) = inbox::read(&dir, 0).unwrap().remove(0);
    let event = pending::event_of(message, offset).unwrap();
    assert_eq!(
        event,
        Event::Asked {
            wish: Wish::Pause,
            by: Door::Inbox,
            inbox: Some(offset)
        }
    );
    journal
        .append(&Line {
            at_ms: 1,
            ms: 0,
            event,
        })
        .unwrap();
    assert_eq!(
        view_with_inbox(&dir).unwrap(),
        cache::read(&dir).unwrap(),
        "what was read is not read twice"
    );

    let bytes = fs::read(dir.journal()).unwrap();
    inbox::append(
        &dir,
        &Message::Changed {
            limit: Change::MaxIterations(Some(200)),
        },
    )
    .unwrap();
    inbox::append(&dir, &Message::Unknown).unwrap();
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
fn who_reads_while_a_runner_writes_sees_whole_lines_only() {
    let place = place();
    let (dir, mut journal) = place.loop_called("a");
    let head = header("a", "id-1");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = 0;
                while !done.load(Ordering::Relaxed) {
                    let view = cache::read(&dir).unwrap();
                    assert!(view.offset >= before, "what has happened has happened");
                    before = view.offset;
                }
            });
        }
        let mut state = State::new(head.plan.clone());
        for n in 0..400 {
            let version = "x".repeat(fastrand::usize(..20_000));
            let line = Line {
                at_ms: n,
                ms: 1,
                event: Event::Opened {
                    pid: 7,
                    version,
                    cost_usd: None,
                    tokens: None,
                    inside: false,
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
