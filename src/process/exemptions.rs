//! Who is left alone by every sweep: loops in the background that have registered, and who was there before.

use super::tree;
use rustix::process::Pid;
use std::fmt;
use std::sync::Arc;

/// A process that is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Friend {
    /// Its number.
    pub pid: u32,
    /// The kernel's start time of it: a number alone may be another's by now.
    pub start_time: u64,
    /// Whether everything below it is left alone, too.
    pub with_all_below: bool,
}

/// Where friends are asked for, anew for every sweep.
#[derive(Clone)]
pub struct Friends {
    registry: Arc<dyn Fn() -> Vec<Friend> + Send + Sync>,
}

/// The friends that are alive, at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spared {
    /// Each with everything below it.
    pub whole: Vec<Pid>,
    /// Each without what is below it.
    pub alone: Vec<Pid>,
}

impl Friends {
    /// Whoever this finds.
    pub fn registered(registry: impl Fn() -> Vec<Friend> + Send + Sync + 'static) -> Self {
        Self {
            registry: Arc::new(registry),
        }
    }

    /// Those of them that are alive.
    pub fn now(&self) -> Spared {
        let mut spared = Spared::default();
        for friend in (self.registry)() {
            let Some(pid) = Pid::from_raw(friend.pid as i32) else {
                continue;
            };
            if friend.start_time == 0 || tree::start_time(friend.pid) != Some(friend.start_time) {
                continue;
            }
            if friend.with_all_below {
                spared.whole.push(pid);
            } else {
                spared.alone.push(pid);
            }
        }
        spared
    }
}

impl Spared {
    /// These, with everything below them.
    pub fn whole(pids: &[Pid]) -> Self {
        Self {
            whole: pids.to_vec(),
            alone: Vec::new(),
        }
    }

    /// Whether nobody is.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.alone.is_empty()
    }

    /// These as well.
    pub fn and(mut self, pids: &[Pid]) -> Self {
        self.whole.extend_from_slice(pids);
        self
    }
}

impl fmt::Debug for Friends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Friends")
    }
}
