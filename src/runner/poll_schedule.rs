//! Schedules polls of watched files: soon after something happened, then less and less often.

use std::time::{Duration, Instant};

/// The interval after activity, and whenever file changes may go unreported.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest interval while a job runs. Each poll also saves the loop's clock, so a crash loses
/// at most this much time.
const LONGEST_BUSY: Duration = Duration::from_secs(16);
/// The longest interval while no job runs.
const LONGEST_IDLE: Duration = Duration::from_secs(64);

/// The runner's situation, which determines how often files must be polled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WatchMode {
    /// File changes may go unreported.
    Unreliable,
    /// A job is running, and file changes are reported.
    Busy,
    /// No job is running, and file changes are reported.
    Idle,
}

/// Schedules the next poll of watched files.
pub(crate) struct PollSchedule {
    at: Instant,
    /// The interval after the next poll.
    interval: Duration,
    /// Whether the last poll followed a period without activity.
    quiet: bool,
}

impl PollSchedule {
    /// Creates a schedule whose first poll is due now.
    pub(crate) fn new() -> Self {
        Self {
            at: Instant::now(),
            interval: SHORTEST,
            quiet: false,
        }
    }

    /// Returns the time at which the next poll is due.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Schedules a poll at most `time` from now.
    pub(crate) fn look_within(&mut self, time: Duration) {
        self.at = self.at.min(Instant::now() + time);
    }

    /// Returns to the shortest interval after activity.
    pub(crate) fn reset(&mut self) {
        self.interval = SHORTEST;
        self.look_within(SHORTEST);
    }

    /// Returns whether a poll is due. If one is, schedules the next.
    pub(crate) fn take_due(&mut self, mode: WatchMode) -> bool {
        let due = self.at <= Instant::now();
        if due {
            self.quiet = self.interval > SHORTEST;
            let at_most = match mode {
                WatchMode::Unreliable => SHORTEST,
                WatchMode::Busy => LONGEST_BUSY,
                WatchMode::Idle => LONGEST_IDLE,
            };
            self.at = Instant::now() + self.interval.min(at_most);
            self.interval = (2 * self.interval).min(LONGEST_IDLE);
        }
        due
    }

    /// Returns true once after each poll that followed a period without activity.
    pub(crate) fn take_quiet(&mut self) -> bool {
        std::mem::take(&mut self.quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seconds between polls while nothing happens, and whether each poll was quiet.
    fn intervals(schedule: &mut PollSchedule, mode: WatchMode) -> Vec<(u64, bool)> {
        let mut all = Vec::new();
        for _ in 0..8 {
            schedule.at = Instant::now();
            assert!(schedule.take_due(mode));
            assert!(!schedule.take_due(mode));
            let seconds = (schedule.at - Instant::now()).as_millis().div_ceil(1000) as u64;
            all.push((seconds, schedule.take_quiet()));
            assert!(!schedule.take_quiet());
        }
        all
    }

    #[test]
    fn looks_become_rare_while_nothing_happens() {
        let mut schedule = PollSchedule::new();
        for (mode, seconds) in [
            (WatchMode::Busy, [1, 2, 4, 8, 16, 16, 16, 16]),
            (WatchMode::Idle, [1, 2, 4, 8, 16, 32, 64, 64]),
            (WatchMode::Unreliable, [1; 8]),
        ] {
            schedule.reset();
            let expected: Vec<_> = seconds
                .iter()
                .enumerate()
                .map(|(n, s)| (*s, n > 0))
                .collect();
            assert_eq!(intervals(&mut schedule, mode), expected, "{mode:?}");
        }
        assert!(schedule.at() > Instant::now() + SHORTEST / 2);
        schedule.look_within(Duration::ZERO);
        assert!(schedule.at() <= Instant::now());
    }
}
