//! Rests when the wall clock is set back, and while the system sleeps.

use super::fallback::{bad, rest_end, running};
use super::kit::TestLoop;
use crate::engine::Now;
use crate::engine::event::Event;
use crate::engine::failure::FailureKind;

/// Lets time pass while the wall clock is set back, then wakes the engine.
fn set_back(mut work: TestLoop, elapsed_ms: u64, set_back_ms: i64) -> TestLoop {
    let now = Now {
        wall_ms: work.state.wall_ms + elapsed_ms as i64 - set_back_ms,
        delta_ms: elapsed_ms,
    };
    work.state.step(now, &Event::Woke);
    work
}

#[test]
fn a_clock_that_is_set_back_does_not_lengthen_a_rest() {
    for (elapsed_ms, set_back_ms) in [(0, 3_600_000), (2000, 1000), (4999, 86_400_000)] {
        let work = running().end(bad(FailureKind::UsageLimit, Some(5000)));
        let work = set_back(work, elapsed_ms, set_back_ms);
        let left_ms = 5000 - elapsed_ms;
        assert_eq!(rest_end(&work) - work.state.wall_ms, left_ms as i64);
        assert_eq!(work.after(left_ms).runs(), Some(2));
    }
    let work = running().end(bad(FailureKind::UsageLimit, Some(5000)));
    assert_eq!(set_back(work, 5000, 86_400_000).runs(), Some(2));
}

#[test]
fn a_rest_goes_on_while_the_system_sleeps() {
    let mut work = running().end(bad(FailureKind::UsageLimit, Some(5000)));
    // The loop's clock stops while the system sleeps.
    let now = Now {
        wall_ms: work.state.wall_ms + 5000,
        delta_ms: 10,
    };
    work.state.step(now, &Event::Woke);
    assert_eq!(work.runs(), Some(2));
}
