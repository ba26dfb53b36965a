//! Which processes belong to a job, and how they are signaled and proven to have exited.

use crate::agent::function::FunctionCall;
use crate::engine::{ProcessExit, ProcessIdentity};
use crate::process::exemptions::Exemptions;
use crate::process::{orphans, tree};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Which processes a job may kill.
#[derive(Clone, Debug)]
pub(super) enum KillScope {
    /// Everything below this process, which is a subreaper and has no other children. The binary uses this.
    Everything { exemptions: Exemptions },
    /// What the job itself has started: its descendants, its session, and whatever carries this loop's marker.
    /// This process may have other children. The library uses this.
    Marked {
        /// The loop's id, which the marker contains.
        id: String,
        exemptions: Exemptions,
    },
}

/// The processes or the function of a job.
pub(crate) enum ProcessOwner {
    Subtree(Subtree),
    Marked(Marked),
    Function(FunctionCall),
}

/// A first process, and everything below the supervisor.
pub(crate) struct Subtree {
    first: Pid,
    exemptions: Exemptions,
    ended: bool,
}

/// A first process, and everything found by its session and marker.
pub(crate) struct Marked {
    pid: Pid,
    start_time: u64,
    id: String,
    exemptions: Exemptions,
    /// Readable once the first process has exited. `None` where there are no pidfds.
    ended: Option<OwnedFd>,
    exit: Option<ProcessExit>,
}

/// What a check of a job's processes finds.
pub(crate) struct ProcessScan {
    /// The exit of its first process, if it has exited.
    pub(crate) exit: Option<ProcessExit>,
    /// Whether no process is left.
    pub(crate) empty: bool,
}

/// How often to check a job whose end is not signaled.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

impl ProcessOwner {
    pub(crate) fn new(pid: Pid, scope: &KillScope) -> Self {
        match scope {
            KillScope::Everything { exemptions } => Self::Subtree(Subtree {
                first: pid,
                exemptions: exemptions.clone(),
                ended: false,
            }),
            KillScope::Marked { id, exemptions } => Self::Marked(Marked {
                pid,
                start_time: tree::start_time(raw(pid)).unwrap_or(0),
                id: id.clone(),
                exemptions: exemptions.clone(),
                ended: notice_end(pid),
                exit: None,
            }),
        }
    }

    /// The pid of its first process, 0 for a function.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Subtree(Subtree { first: pid, .. }) | Self::Marked(Marked { pid, .. }) => {
                raw(*pid)
            }
            Self::Function(_) => 0,
        }
    }

    /// A file descriptor that reports the exit of the first process.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            // It stays readable, so it is not polled again after the exit.
            Self::Marked(marked) if marked.exit.is_none() => marked.ended.as_ref().map(AsFd::as_fd),
            _ => None,
        }
    }

    /// How soon to check again without a signal.
    pub(crate) fn check_interval(&self) -> Option<Duration> {
        match self {
            Self::Marked(marked) if marked.exit.is_some() || marked.ended.is_none() => {
                Some(CHECK_INTERVAL)
            }
            _ => None,
        }
    }

    pub(crate) fn scan(&mut self) -> ProcessScan {
        match self {
            Self::Subtree(subtree) => subtree.scan(),
            Self::Marked(marked) => marked.scan(),
            Self::Function(call) => ProcessScan {
                exit: call.exit(),
                empty: call.exit().is_some(),
            },
        }
    }

    /// Sends a signal to everything that belongs to the job.
    pub(crate) fn signal(&self, signal: Signal) {
        match self {
            // Without a subreaper, only the process group is known.
            Self::Subtree(subtree) if cfg!(target_os = "linux") => {
                tree::signal_all(&subtree.exemptions.current(), signal);
            }
            Self::Subtree(subtree) => drop(kill_process_group(subtree.first, signal)),
            Self::Marked(marked) => marked.signal(signal),
            Self::Function(call) => call.cancel(),
        }
    }

    /// The processes that are left.
    pub(crate) fn remaining(&self) -> Vec<u32> {
        match self {
            Self::Subtree(subtree) => subtree.remaining(),
            Self::Marked(marked) => marked.remaining(),
            Self::Function(_) => vec![],
        }
    }

    /// Reaps the first process. Returns whether a function is left that has not returned.
    pub(crate) fn release(self) -> bool {
        match self {
            Self::Subtree(_) => false,
            Self::Marked(marked) => {
                if !cfg!(target_os = "linux") {
                    marked.signal(Signal::KILL);
                }
                if marked.owns_its_pid() {
                    let _ = waitpid(Some(marked.pid), WaitOptions::NOHANG);
                }
                false
            }
            Self::Function(call) => call.exit().is_none(),
        }
    }
}

impl Subtree {
    fn scan(&mut self) -> ProcessScan {
        let mut exit = None;
        let first = self.first;
        let no_children = tree::reap(|pid, how| exit = exit.or((pid == first).then_some(how)));
        self.ended |= exit.is_some();
        ProcessScan {
            exit,
            empty: no_children || (self.ended && self.only_exempt_left()),
        }
    }

    /// Exempt processes may run forever. A scan can miss a process that forks meanwhile, so it takes two.
    fn only_exempt_left(&self) -> bool {
        let exempt = self.exemptions.current();
        let is_empty = || tree::descendants(&exempt).is_empty();
        !exempt.is_empty() && is_empty() && is_empty()
    }

    fn remaining(&self) -> Vec<u32> {
        tree::descendants(&self.exemptions.current())
            .into_iter()
            .map(raw)
            .collect()
    }
}

impl Marked {
    /// Does not reap the first process: while it is a zombie, its pid, group and session cannot be reused.
    fn scan(&mut self) -> ProcessScan {
        if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.exit = match waitid(WaitId::Pid(self.pid), options) {
                Ok(Some(status)) => Some(ProcessExit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                }),
                Ok(None) | Err(Errno::INTR) => None,
                // The embedding program has reaped it, so its exit status is lost.
                Err(_) => Some(ProcessExit::default()),
            };
        }
        // A scan can miss a process that forks meanwhile, so it takes two.
        let empty =
            self.exit.is_some() && self.remaining().is_empty() && self.remaining().is_empty();
        ProcessScan {
            exit: self.exit,
            empty,
        }
    }

    fn remaining(&self) -> Vec<u32> {
        let process = ProcessIdentity {
            pid: raw(self.pid),
            start_time: self.start_time,
        };
        orphans::of_job(&self.id, process, &self.exemptions)
    }

    /// Whether the pid is still this job's. If the embedding program reaped it, it may have been reused.
    fn owns_its_pid(&self) -> bool {
        self.exit != Some(ProcessExit::default())
    }

    fn signal(&self, signal: Signal) {
        if self.owns_its_pid() {
            let _ = kill_process_group(self.pid, signal);
        }
        for pid in self
            .remaining()
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
