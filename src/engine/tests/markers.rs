//! Markers that appear while the agent runs.

use super::kit::TestLoop;
use crate::engine::event::Marker;
use crate::engine::iteration::IterationEnd;
use crate::engine::{Effect, Phase};

#[test]
fn a_marker_gives_the_running_agent_time_to_exit() {
    let work = TestLoop::new()
        .open()
        .after(1000)
        .start()
        .after(500)
        .marker(Marker::Done);
    assert_eq!(
        work.orders(),
        [Effect::Run { iteration: 1 }, Effect::WakeAt(31_500)]
    );
    let again = work.clone().after(1000).marker(Marker::Blocked);
    assert_eq!(
        again.orders()[1],
        Effect::WakeAt(31_500),
        "a second marker grants no more time"
    );
    assert!(
        work.clone().after(29_999).exit(0).is_done(),
        "it exited by itself"
    );
    let killed = work.after(30_000);
    assert_eq!(killed.kills(), Some(false));
    let killed = killed.exit(143);
    assert!(killed.is_done());
    assert_eq!(killed.state.recent[0].end, IterationEnd::MarkerSeen);
}

#[test]
fn every_marker_but_the_done_file_stops_the_agent() {
    let stops_at = |marker: Marker| match TestLoop::new().open().start().marker(marker).state.phase
    {
        Phase::Running {
            started: true,
            stop_at_ms,
            ..
        } => stop_at_ms,
        other => panic!("{other:?}"),
    };
    for marker in [Marker::Done, Marker::Blocked, Marker::Wait] {
        assert!(stops_at(marker).is_some(), "{marker:?}");
    }
    assert_eq!(
        stops_at(Marker::File),
        None,
        "it may be from an earlier iteration"
    );
}
