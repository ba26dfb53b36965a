//! Decides when to look at files: soon after something happened, then ever more rarely.

use std::time::{Duration, Instant};

/// The interval where file changes may go unreported, and the first one after something happened.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest interval while a job runs. The loop's clock is saved at every look, so a crash loses at most this much.
const LONGEST_BUSY: Duration = Duration::from_secs(16);
/// The longest interval while no job runs.
const LONGEST_IDLE: Duration = Duration::from_secs(64);

/// What the runner waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WatchMode {
    /// File changes may go unreported.
    Unreliable,
    /// A job runs.
    Busy,
    /// No job runs.
    Idle,
}

/// When the next look at files is due.
pub(crate) struct PollSchedule {
    at: Instant,
    /// The interval after the next look.
    interval: Duration,
    /// Whether nothing had happened for a while at the last look.
    quiet: bool,
}

impl PollSchedule {
    /// A schedule with a look due now.
    pub(crate) fn new() -> Self {
        Self {
            at: Instant::now(),
            interval: SHORTEST,
            quiet: false,
        }
    }

    /// When the next look is due.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Schedules a look within this time.
    pub(crate) fn look_within(&mut self, time: Duration) {
        self.at = self.at.min(Instant::now() + time);
    }

    /// Goes back to the shortest interval, because something happened.
    pub(crate) fn reset(&mut self) {
        self.interval = SHORTEST;
        self.look_within(SHORTEST);
    }

    /// Whether a look is due. If so, schedules the next one.
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

    /// Whether nothing happens. Reported once per look.
    pub(crate) fn take_quiet(&mut self) -> bool {
        std::mem::take(&mut self.quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds between looks while nothing happens, and which of them found it quiet.
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
