//! Tests of the summaries of ended loops: one is used only while it is what reading the loop gives.

use super::{TestStateDir, append_lines, header, test_state_dir};
use crate::engine::event::Request;
use crate::engine::{Outcome, Phase, State, Status};
use crate::store::{EndedLoop, InboxMessage, Journal, LoopDir, cache, inbox};
use std::fs;

/// Creates a loop that has ended, and returns its directory, its journal and its state.
fn ended_loop(fixture: &TestStateDir) -> (LoopDir, Journal, State) {
    let (dir, mut journal) = fixture.create_loop("a");
    append_lines(&mut journal, 0..3);
    let mut state = State::new(header("a", "id-1").plan);
    state.phase = Phase::Ended(Outcome::Done { checked: true });
    save(&dir, &journal, &state);
    (dir, journal, state)
}

fn save(dir: &LoopDir, journal: &Journal, state: &State) {
    cache::save(dir, journal.len(), &header("a", "id-1"), state).unwrap();
}

#[test]
fn an_ended_loop_has_a_summary() {
    let fixture = test_state_dir();
    let (dir, _journal, state) = ended_loop(&fixture);
    let ended = EndedLoop::read(&dir).unwrap();
    assert_eq!((&ended.name[..], ended.status), ("a", Status::Done));
    assert_eq!(ended.iteration, state.iteration_label(0));
    assert_eq!(ended.workspace, state.plan.workspace);
    assert_eq!(cache::read(&dir).unwrap().state, state);
}

#[test]
fn a_loop_that_has_not_ended_has_no_summary() {
    let fixture = test_state_dir();
    let (dir, journal, mut state) = ended_loop(&fixture);
    state.phase = Phase::Paused;
    save(&dir, &journal, &state);
    assert_eq!(EndedLoop::read(&dir), None);
}

#[test]
fn a_summary_is_not_used_once_the_loop_has_changed() {
    type Change = fn(&LoopDir, &mut Journal);
    let changes: [(&str, Change); 6] = [
        ("a line was appended", |_, journal| {
            append_lines(journal, 3..4);
        }),
        ("the journal was cut", |dir, journal| {
            let file = fs::File::options().write(true).open(dir.journal()).unwrap();
            file.set_len(journal.len() - 1).unwrap();
        }),
        ("the journal belongs to another loop", |dir, _| {
            let text = fs::read_to_string(dir.journal()).unwrap();
            fs::write(dir.journal(), text.replace("id-1", "id-2")).unwrap();
        }),
        ("a message is unread", |dir, _| {
            let request = Request::Stop;
            inbox::append(dir, &InboxMessage::Asked { request }).unwrap();
        }),
        ("another version wrote it", |dir, _| {
            let text = fs::read_to_string(dir.state()).unwrap();
            let by = format!(r#""by":"{}""#, cache::WRITER);
            assert!(text.contains(&by));
            fs::write(dir.state(), text.replace(&by, r#""by":"0.0.1""#)).unwrap();
        }),
        ("it is cut", |dir, _| {
            let text = fs::read_to_string(dir.state()).unwrap();
            fs::write(dir.state(), &text[..40]).unwrap();
        }),
    ];
    for (name, change) in changes {
        let fixture = test_state_dir();
        let (dir, mut journal, _) = ended_loop(&fixture);
        assert!(EndedLoop::read(&dir).is_some(), "{name}");
        change(&dir, &mut journal);
        assert_eq!(EndedLoop::read(&dir), None, "{name}");
    }
}
