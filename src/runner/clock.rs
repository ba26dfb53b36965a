//! The loop's monotonic clock, which continues across runners, and the runner's timers.

use crate::engine::{Phase, State};
use crate::store::{Heartbeat, LoopDir};
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// The interval at which the clock is written to disk while the runner is awake. A crash loses at
/// most this much of the loop's time, plus the time that the runner slept.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(900);
/// How much later than the wall clock allows a saved time may be. The wall clock can be set back a
/// little while a runner works.
const HEARTBEAT_TOLERANCE_MS: u64 = 60_000;
/// The interval at which a wall-clock alarm is compared with the clock, because the clock can be
/// set. A monotonic timer is not enough: it stops while the machine sleeps.
const WALL_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Counts the milliseconds during which a runner has supervised the loop.
pub(super) struct Clock {
    started: Instant,
    /// The clock's value at `started`, in milliseconds.
    offset_ms: u64,
    heartbeat: Heartbeat,
    beat_at: Instant,
}

impl Clock {
    /// Continues a loop's clock from its state or, after a crash, from the heartbeat file. Also
    /// returns a warning if the file's value is not plausible.
    pub(super) fn open(dir: &LoopDir, state: &State) -> io::Result<(Self, Option<String>)> {
        let (reached_ms, heartbeat) = Heartbeat::open(dir)?;
        // The clock of a runner that has crashed cannot have advanced further than the wall clock.
        let elapsed_ms = wall_ms().saturating_sub(state.wall_ms).max(0) as u64;
        let latest_ms = state.clock_ms.saturating_add(elapsed_ms);
        let is_plausible = reached_ms <= latest_ms.saturating_add(HEARTBEAT_TOLERANCE_MS);
        let crashed = !matches!(
            state.phase,
            Phase::NotStarted | Phase::Paused | Phase::Ended(_)
        );
        let offset_ms = if crashed && is_plausible {
            state.clock_ms.max(reached_ms)
        } else {
            state.clock_ms
        };
        let warning = (crashed && !is_plausible).then(|| {
            format!(
                "{}: ralph ignores the saved time, which is later than the clock allows",
                heartbeat.path().display()
            )
        });
        let clock = Self {
            started: Instant::now(),
            offset_ms,
            heartbeat,
            beat_at: Instant::now(),
        };
        Ok((clock, warning))
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.offset_ms
            .saturating_add(self.started.elapsed().as_millis() as u64)
    }

    /// Sets the clock to `clock_ms`, to add time that passed without a runner.
    pub(super) fn set(&mut self, clock_ms: u64) {
        self.offset_ms = clock_ms;
    }

    /// Returns the instant at which the clock will reach `clock_ms`.
    pub(super) fn instant_at(&self, clock_ms: u64) -> Instant {
        self.started + millis(clock_ms.saturating_sub(self.offset_ms))
    }

    /// Writes the clock to disk if a heartbeat is due. Errors are ignored: they only make the clock
    /// lag after a crash.
    pub(super) fn beat(&mut self) {
        if self.beat_at.elapsed() >= HEARTBEAT_INTERVAL {
            self.beat_at = Instant::now();
            let _ = self.heartbeat.write(self.now_ms());
        }
    }
}

/// The times at which the runner must wake up.
#[derive(Default)]
pub(super) struct Alarms {
    /// The time on the loop's clock for which the engine ordered a wakeup. `None` if it ordered
    /// none.
    pub(super) wake_at: Option<Instant>,
    /// The wall-clock time for which the engine ordered a wakeup, in Unix milliseconds. `None` if
    /// it ordered none.
    pub(super) wake_at_wall_ms: Option<i64>,
    /// When to call the observer's `tick` next. `None` means now.
    pub(super) tick_at: Option<Instant>,
}

impl Alarms {
    /// Removes the engine's alarms. The next reconciliation sets them again from the orders.
    pub(super) fn clear_orders(&mut self) {
        (self.wake_at, self.wake_at_wall_ms) = (None, None);
    }

    /// Returns the time of the earliest alarm, or `None` if no alarm is set.
    pub(super) fn next(&self) -> Option<Instant> {
        let wall = self.wake_at_wall_ms.map(|at| {
            let left = at.saturating_sub(wall_ms()).max(0) as u64;
            Instant::now() + millis(left).min(WALL_CHECK_INTERVAL)
        });
        [self.wake_at, wall, self.tick_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns whether the engine's alarm on the loop's clock is due.
    pub(super) fn is_due(&self) -> bool {
        self.wake_at.is_some_and(|at| at <= Instant::now())
    }

    /// Removes the engine's alarms that are due, and returns whether there were any.
    pub(super) fn take_due(&mut self) -> bool {
        let clock = self.wake_at.take_if(|at| *at <= Instant::now()).is_some();
        let wall = self
            .wake_at_wall_ms
            .take_if(|at| *at <= wall_ms())
            .is_some();
        clock || wall
    }

    /// Returns whether the observer's tick is due.
    pub(super) fn is_tick_due(&self) -> bool {
        self.tick_at.is_none_or(|at| at <= Instant::now())
    }
}

pub(super) fn wall_ms() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as i64
}

pub(super) fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
