//! Whose a job's processes are: how they are known, told to go, and proven to be gone.

use crate::agent::function::Call;
use crate::engine::Exit;
use crate::process::exemptions::Friends;
use crate::process::{orphans, tree};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How far a job reaches.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Everything below this process, which adopts orphans and has no other children: the binary's way.
    Everything {
        /// Who of them is none of the job's.
        friends: Friends,
    },
    /// What the job itself has started: its descendants, its session, and whatever carries this loop's mark.
    /// This process may have other children, and they are none of ralph's business: the library's way.
    Own {
        /// The loop's id, which is in the mark.
        id: String,
        /// Who of them is none of the job's.
        friends: Friends,
    },
}

/// What a job consists of.
pub(crate) enum Life {
    Everything(All),
    Own(Own),
    Call(Call),
}

/// A first process, and everything below this one.
pub(crate) struct All {
    first: Pid,
    friends: Friends,
    ended: bool,
}

/// A first process that is waited for alone.
pub(crate) struct Own {
    pid: Pid,
    start_time: u64,
    id: String,
    friends: Friends,
    /// Readable once the first process has ended; none where the system has no such thing.
    ended: Option<OwnedFd>,
    exit: Option<Exit>,
}

/// What a look at a job finds.
pub(crate) struct Look {
    /// How its first process ended, if it did.
    pub(crate) exit: Option<Exit>,
    /// Whether nothing of it is left.
    pub(crate) empty: bool,
}

/// How often a job is looked at whose end nobody tells.
const PACE: Duration = Duration::from_millis(20);

impl Life {
    pub(crate) fn of(pid: Pid, reach: &Reach) -> Self {
        match reach {
            Reach::Everything { friends } => Self::Everything(All {
                first: pid,
                friends: friends.clone(),
                ended: false,
            }),
            Reach::Own { id, friends } => Self::Own(Own {
                pid,
                start_time: tree::start_time(raw(pid)).unwrap_or(0),
                id: id.clone(),
                friends: friends.clone(),
                ended: notice_end(pid),
                exit: None,
            }),
        }
    }

    /// Its first process; a function has none.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Everything(All { first: pid, .. }) | Self::Own(Own { pid, .. }) => raw(*pid),
            Self::Call(_) => 0,
        }
    }

    /// What to poll besides the output.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            // It stays readable: once it has told, it is not asked again.
            Self::Own(own) if own.exit.is_none() => own.ended.as_ref().map(AsFd::as_fd),
            _ => None,
        }
    }

    /// How soon it must be looked at, though nobody tells of a change.
    pub(crate) fn pace(&self) -> Option<Duration> {
        match self {
            Self::Own(own) if own.exit.is_some() || own.ended.is_none() => Some(PACE),
            _ => None,
        }
    }

    pub(crate) fn look(&mut self) -> Look {
        match self {
            Self::Everything(all) => all.look(),
            Self::Own(own) => own.look(),
            Self::Call(call) => Look {
                exit: call.exit(),
                empty: call.exit().is_some(),
            },
        }
    }

    /// Sends a signal to everything that belongs to it.
    pub(crate) fn signal(&self, signal: Signal) {
        match self {
            // Everything below is the whole of it where orphans are adopted; elsewhere its group has to do.
            Self::Everything(all) if cfg!(target_os = "linux") => {
                tree::signal(&all.friends.now(), signal)
            }
            Self::Everything(all) => drop(kill_process_group(all.first, signal)),
            Self::Own(own) => own.signal(signal),
            Self::Call(call) => call.cancel(),
        }
    }

    /// The processes that are left of it.
    pub(crate) fn left(&self) -> Vec<u32> {
        match self {
            Self::Everything(all) => all.left(),
            Self::Own(own) => own.left(),
            Self::Call(_) => vec![],
        }
    }

    /// Lets go of it; says whether a function has been left behind that never returned.
    pub(crate) fn let_go(self) -> bool {
        match self {
            Self::Everything(_) => false,
            Self::Own(own) => {
                if !cfg!(target_os = "linux") {
                    own.signal(Signal::KILL);
                }
                if own.has_its_number() {
                    let _ = waitpid(Some(own.pid), WaitOptions::NOHANG);
                }
                false
            }
            Self::Call(call) => call.exit().is_none(),
        }
    }
}

impl All {
    fn look(&mut self) -> Look {
        let mut exit = None;
        let first = self.first;
        let nobody = tree::reap(|pid, how| exit = exit.or((pid == first).then_some(how)));
        self.ended |= exit.is_some();
        Look {
            exit,
            empty: nobody || (self.ended && self.only_friends_are_left()),
        }
    }

    /// A friend may stay for good. A look can miss what was born in the middle of it: one proves nothing.
    fn only_friends_are_left(&self) -> bool {
        let spared = self.friends.now();
        let nobody = || tree::descendants(&spared).is_empty();
        !spared.is_empty() && nobody() && nobody()
    }

    fn left(&self) -> Vec<u32> {
        tree::descendants(&self.friends.now())
            .into_iter()
            .map(raw)
            .collect()
    }
}

impl Own {
    /// The first process is not reaped until the job is over: as long as it is a zombie, its number, and that
    /// of its group and session, cannot become somebody else's.
    fn look(&mut self) -> Look {
        if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.exit = match waitid(WaitId::Pid(self.pid), options) {
                Ok(Some(status)) => Some(Exit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                }),
                Ok(None) | Err(Errno::INTR) => None,
                // The host has reaped it, and keeps how it ended to itself.
                Err(_) => Some(Exit::default()),
            };
        }
        // A look can miss what was born in the middle of it: one proves nothing.
        let empty = self.exit.is_some() && self.left().is_empty() && self.left().is_empty();
        Look {
            exit: self.exit,
            empty,
        }
    }

    fn left(&self) -> Vec<u32> {
        orphans::of_job(&self.id, (raw(self.pid), self.start_time), &self.friends)
    }

    /// Whether the number is still this job's. If the host has reaped it, it may be anybody's by now.
    fn has_its_number(&self) -> bool {
        self.exit != Some(Exit::default())
    }

    fn signal(&self, signal: Signal) {
        if self.has_its_number() {
            let _ = kill_process_group(self.pid, signal);
        }
        for pid in self
            .left()
            .into_iter()
            .filter_map(|pid| Pid::from_raw(pid as i32))
        {
            let _ = kill_process(pid, signal);
        }
    }
}

fn raw(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get() as u32
}

#[cfg(target_os = "linux")]
fn notice_end(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn notice_end(_: Pid) -> Option<OwnedFd> {
    None
}
