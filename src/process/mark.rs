//! Marks the processes of a loop with a resource limit. Every descendant inherits the limit: a new
//! session, a second fork, a cleared environment and an exec all keep it.
//!
//! The limit is `RLIMIT_LOCKS`, which Linux has stored, but not applied, since 2.4.25. A process
//! without privileges can lower it but not raise it. A mark therefore consists of a level, which
//! decreases with every mark set inside another, and the hash of a loop's ID.

use crate::engine::fnv;
use crate::os;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// The number of bits for the hash of a loop's ID.
const HASH_BITS: u32 = 48;
/// The level of a mark that is set outside any loop.
const LEVEL_MAX: u64 = 63;

/// Identifies a loop in a mark: the hash of its ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// The mark of a process that was started by a loop's process but belongs to no loop.
    pub(crate) const DETACHED: Self = Self(0);

    /// Returns the mark of the loop `id`.
    pub(crate) fn of_loop(id: &str) -> Self {
        // 0 means detached.
        Self((fnv::hash(id.as_bytes()) >> (64 - HASH_BITS)).max(1))
    }

    /// Returns the mark in the value of a limit; `None` if the value is not a mark.
    fn from_limit(limit: u64) -> Option<Self> {
        let level = limit >> HASH_BITS;
        (1..=LEVEL_MAX)
            .contains(&level)
            .then_some(Self(limit & ((1 << HASH_BITS) - 1)))
    }

    /// Returns the highest limit with this mark that a process with the limit `current` may set;
    /// `None` if there are too many marks inside each other.
    fn limit_below(self, current: u64) -> Option<u64> {
        let limits = (1..=LEVEL_MAX)
            .rev()
            .map(|level| level << HASH_BITS | self.0);
        limits.into_iter().find(|limit| *limit <= current)
    }

    /// Returns the mark with which this process was started; `None` if it had none.
    pub(crate) fn inherited() -> Option<Self> {
        static INHERITED: OnceLock<Option<Mark>> = OnceLock::new();
        *INHERITED.get_or_init(|| Self::from_limit(current_limit()))
    }

    /// Returns the mark of the process `pid`; `None` if it has none.
    pub(crate) fn of_process(pid: u32) -> Option<Self> {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max file locks"))?;
        Self::from_limit(line.split_whitespace().nth(1)?.parse().ok()?)
    }

    /// Marks this process and everything it will start. Does nothing if the system refuses: the
    /// environment marks most processes too.
    pub(crate) fn set(self) {
        Self::inherited();
        if let Some(limit) = self.limit_below(current_limit()) {
            set_limit(limit);
        }
    }

    /// Marks a command and everything it will start, but not this process.
    pub(crate) fn set_for(self, command: &mut Command) {
        if let Some(limit) = self.limit_below(current_limit()) {
            os::set_ignored_limit(command, limit);
        }
    }

    /// Takes this process, and everything it will start, out of the loop that it inherited its mark
    /// from.
    pub(crate) fn detach() {
        if Self::inherited().is_some() {
            Self::DETACHED.set();
        }
    }
}

#[cfg(target_os = "linux")]
fn current_limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Locks);
    limit.maximum.unwrap_or(u64::MAX)
}

#[cfg(target_os = "linux")]
fn set_limit(limit: u64) {
    let value = rustix::process::Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Locks, value);
}

#[cfg(not(target_os = "linux"))]
fn current_limit() -> u64 {
    u64::MAX
}

#[cfg(not(target_os = "linux"))]
fn set_limit(_: u64) {}

#[cfg(test)]
mod tests {
    use super::Mark;

    #[test]
    fn a_mark_inside_a_mark_needs_no_higher_limit() {
        let mut limit = u64::MAX;
        for id in ["0123456789abcdef", "fedcba9876543210", "0123456789abcdef"] {
            let mark = Mark::of_loop(id);
            let next = mark.limit_below(limit).unwrap();
            assert!(next <= limit, "{id}");
            assert_eq!(Mark::from_limit(next), Some(mark));
            limit = next;
        }
        let detached = Mark::DETACHED.limit_below(limit).unwrap();
        assert_eq!(Mark::from_limit(detached), Some(Mark::DETACHED));
    }

    #[test]
    fn limits_that_ralph_did_not_set_are_no_marks() {
        for limit in [u64::MAX, 0, 1024, 1 << 48 >> 1, 64 << 48] {
            assert_eq!(Mark::from_limit(limit), None, "{limit}");
        }
        assert_eq!(Mark::of_loop("a").limit_below(1024), None);
    }
}
