//! A loop that a verb is about to look at: found by name, and swept if it crashed.

use super::failure::{Failure, warn};
use super::session;
use crate::engine::Status;
use crate::engine::format::processes;
use crate::process::exemptions::{Friend, Friends};
use crate::process::orphans;
use crate::process::tree::start_time;
use crate::store::{Holder, Home, Lock, LoopDir, View, holder, view_with_inbox};
use std::time::{Duration, Instant};

/// A loop as it stands.
pub(crate) struct Visit {
    pub(crate) home: Home,
    pub(crate) dir: LoopDir,
    pub(crate) view: View,
    /// Whether somebody has it under way: a runner, or a session.
    pub(crate) held: bool,
}

impl Visit {
    /// Finds a loop. If all of its runner's processes were killed at once, what they left is ended now.
    pub(crate) fn to(name: &str) -> Result<Self, Failure> {
        Self::in_home(Home::locate()?, name)
    }

    /// As [`Visit::to`], in this state directory.
    pub(crate) fn in_home(home: Home, name: &str) -> Result<Self, Failure> {
        let dir = home.find(name)?;
        // In this order: what a runner wrote before it let go is then in the view.
        let held = is_held(&dir);
        let view = view_with_inbox(&dir)?;
        let held = held || session::has(&view.state);
        let visit = Self {
            home,
            dir,
            view,
            held,
        };
        let rebooted = orphans::booted_since(visit.view.state.wall_ms);
        if visit.status() == Status::Crashed && !visit.is_inside() && !rebooted {
            visit.sweep()?;
        }
        Ok(visit)
    }

    /// As [`Visit::to`], for a verb that an agent may not use on its own loop.
    pub(crate) fn as_operator(name: &str) -> Result<Self, Failure> {
        let visit = Self::to(name)?;
        if visit.is_inside() {
            return Err(Failure::usage(
                format!("this is the agent of {name:?}: it cannot steer its own loop"),
                "an agent has ralph done and ralph blocked WHY",
            ));
        }
        Ok(visit)
    }

    /// As [`Visit::to`], for a verb that would wait for itself from inside that loop.
    pub(crate) fn as_outsider(name: &str) -> Result<Self, Failure> {
        let visit = Self::to(name)?;
        if visit.is_inside() {
            return Err(Failure::usage(
                format!("this is inside of {name:?}, which cannot end before this does"),
                "only from outside can a loop be waited for",
            ));
        }
        Ok(visit)
    }

    pub(crate) fn status(&self) -> Status {
        self.view.state.status(self.held)
    }

    fn is_inside(&self) -> bool {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // A command that is told of endings knows the loop, too, but is in none of its iterations.
        let by_name = set("RALPH_ITERATION")
            .and(set("RALPH_LOOP"))
            .is_some_and(|name| name == self.view.header.name);
        by_name || orphans::is_inside(&self.view.header.id)
    }

    /// Whether it is a session that has it: nobody holds the lock.
    pub(crate) fn is_in_session(&self) -> bool {
        session::has(&self.view.state) && !is_held(&self.dir)
    }

    fn sweep(&self) -> Result<(), Failure> {
        let me = Holder {
            pid: std::process::id(),
            loop_name: self.dir.name().into(),
            ..Holder::default()
        };
        let _lock = match Lock::take(&self.dir.lock(), &me) {
            Ok(Ok(lock)) => lock,
            Ok(Err(_)) => return Ok(()),
            // Whoever may only read this may still be told where it stands.
            Err(error) if error.is_refused() => {
                warn(format!(
                    "{:?} had crashed, and what it may have left was not looked for: {error}",
                    self.dir.name()
                ));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let (grace, state) = (&self.view.state.plan.grace, &self.view.state);
        let patience = [grace.term_ms, grace.survivor_ms].map(Duration::from_millis);
        let (swept, survivors) = orphans::sweep(
            &self.view.header.id,
            // The process of a session is its client's.
            state.process.filter(|_| !state.is_inside()),
            &friends(&self.home),
            patience[0],
            patience[1],
        );
        if swept > 0 {
            warn(format!(
                "{:?} had crashed: ended {} that it left behind",
                self.dir.name(),
                processes(swept)
            ));
        }
        if !survivors.is_empty() {
            warn(format!(
                "these processes of {:?} cannot be ended: {survivors:?}",
                self.dir.name()
            ));
        }
        Ok(())
    }
}

/// Those who are left alone by every sweep: whoever holds the lock of a loop in the background, with all below, and
/// the process that holds its window.
pub(crate) fn friends(home: &Home) -> Friends {
    let home = home.clone();
    Friends::registered(move || {
        let friend = |(pid, start_time): (u32, u64), with_all_below: bool| Friend {
            pid,
            start_time,
            with_all_below,
        };
        let all = home.in_background().into_iter();
        all.flat_map(|holder| {
            let hosts = holder.host.map(|host| friend(host, false));
            [Some(friend((holder.pid, holder.start_time), true)), hosts]
        })
        .flatten()
        .collect()
    })
}

/// How long the processes of a killed runner may take to die.
const DYING: Duration = Duration::from_secs(1);

/// Whether a runner lives. Where the one who took the lock is dead, those who share it are about to go:
/// they are given the time, so that a loop that was just killed does not seem to run. Nor does one that somebody
/// clears up after.
pub(crate) fn is_held(dir: &LoopDir) -> bool {
    let begun = Instant::now();
    while let Some(holder) = holder(&dir.lock()) {
        let dead = holder.start_time != 0 && start_time(holder.pid) != Some(holder.start_time);
        let passing = holder.is_passing();
        if !(dead || passing) || begun.elapsed() > DYING {
            return !passing;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
