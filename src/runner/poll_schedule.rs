//! When files are looked at: soon after something happened, and ever more rarely while nothing does.

use std::time::{Duration, Instant};

/// Files are looked at this often where nobody tells of them, as on some file systems.
const OFTEN: Duration = Duration::from_secs(1);
/// Where everything is told, so often at least while a job is under way: the clock of a loop is kept at every look,
/// and a crash gives back what came after it.
const AT_WORK: Duration = Duration::from_secs(16);
/// And so often while none is.
const AT_REST: Duration = Duration::from_secs(64);

/// What there is to look for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mood {
    /// Nobody tells of a change.
    Deaf,
    /// A job is under way.
    Work,
    /// Nothing is.
    Rest,
}

/// When the next look is due.
pub(crate) struct Looks {
    at: Instant,
    /// How long after the next look comes the one after it.
    pace: Duration,
    /// Whether the last look found that nothing had happened for a while.
    quiet: bool,
}

impl Looks {
    /// One is due now.
    pub(crate) fn new() -> Self {
        Self {
            at: Instant::now(),
            pace: OFTEN,
            quiet: false,
        }
    }

    /// When the next one is due.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Has one within this time.
    pub(crate) fn within(&mut self, time: Duration) {
        self.at = self.at.min(Instant::now() + time);
    }

    /// Something happened.
    pub(crate) fn stir(&mut self) {
        self.pace = OFTEN;
        self.within(OFTEN);
    }

    /// Whether one is due; if so, the next one is set.
    pub(crate) fn take_due(&mut self, mood: Mood) -> bool {
        let due = self.at <= Instant::now();
        if due {
            self.quiet = self.pace > OFTEN;
            let at_most = match mood {
                Mood::Deaf => OFTEN,
                Mood::Work => AT_WORK,
                Mood::Rest => AT_REST,
            };
            self.at = Instant::now() + self.pace.min(at_most);
            self.pace = (2 * self.pace).min(AT_REST);
        }
        due
    }

    /// Whether it has become quiet; said once a look.
    pub(crate) fn take_quiet(&mut self) -> bool {
        std::mem::take(&mut self.quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds between the looks at a world where nothing happens, and which of them found it quiet.
    fn paces(looks: &mut Looks, mood: Mood) -> Vec<(u64, bool)> {
        let mut all = Vec::new();
        for _ in 0..8 {
            looks.at = Instant::now();
            assert!(looks.take_due(mood));
            assert!(!looks.take_due(mood));
            let seconds = (looks.at - Instant::now()).as_millis().div_ceil(1000) as u64;
            all.push((seconds, looks.take_quiet()));
            assert!(!looks.take_quiet());
        }
        all
    }

    #[test]
    fn looks_become_rare_unless_something_happens() {
        let mut looks = Looks::new();
        for (mood, seconds) in [
            (Mood::Work, [1, 2, 4, 8, 16, 16, 16, 16]),
            (Mood::Rest, [1, 2, 4, 8, 16, 32, 64, 64]),
            (Mood::Deaf, [1; 8]),
        ] {
            looks.stir();
            let expected: Vec<_> = seconds
                .iter()
                .enumerate()
                .map(|(n, s)| (*s, n > 0))
                .collect();
            assert_eq!(paces(&mut looks, mood), expected, "{mood:?}");
        }
        assert!(looks.at() > Instant::now() + OFTEN / 2);
        looks.within(Duration::ZERO);
        assert!(looks.at() <= Instant::now());
    }
}
