//! Finds the processes that belong to a job, signals them, and proves that they have exited.

use crate::agent::function::FunctionCall;
use crate::engine::{ProcessExit, ProcessIdentity};
use crate::process::exemptions::{ExemptSet, Exemptions};
use crate::process::mark::Mark;
use crate::process::{orphans, tree};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The set of processes that a job may kill.
#[derive(Clone, Debug)]
pub(super) enum KillScope {
    /// Every descendant of this process, which is a subreaper without other children. The `ralph`
    /// program uses this scope.
    Everything { exemptions: Exemptions },
    /// The processes that the job started: its descendants, its session, and those with this loop's
    /// marker. The library uses this scope, because its process may have other children.
    Marked {
        /// The loop's ID, which is part of the marker.
        id: String,
        exemptions: Exemptions,
    },
}

impl KillScope {
    /// Returns the processes that no sweep may kill.
    pub(super) fn exemptions(&self) -> &Exemptions {
        let (Self::Everything { exemptions } | Self::Marked { exemptions, .. }) = self;
        exemptions
    }

    /// Marks this process, and every process that it will start, as those of the loop `id`. Does
    /// nothing in an embedding program, which has other children.
    pub(super) fn mark_processes(&self, id: &str) {
        if matches!(self, Self::Everything { .. }) {
            Mark::of_loop(id).set();
        }
    }
}

/// A job's processes or its function.
pub(crate) enum ProcessOwner {
    Subtree(Subtree),
    Marked(Marked),
    Function(FunctionCall),
}

/// A job that owns every descendant of the supervisor.
pub(crate) struct Subtree {
    first: Pid,
    /// Whether the first process is a sandbox's, which takes all others with it when it exits.
    is_wrapped: bool,
    exemptions: Exemptions,
    ended: bool,
}

/// A job that owns its descendants, its session, and the processes with its marker.
pub(crate) struct Marked {
    pid: Pid,
    /// As for a [`Subtree`].
    is_wrapped: bool,
    start_time: u64,
    id: String,
    exemptions: Exemptions,
    /// A pidfd that is readable once the first process has exited. `None` if the system has no
    /// pidfds.
    ended: Option<OwnedFd>,
    exit: Option<ProcessExit>,
}

/// The result of scanning a job's processes.
pub(crate) struct ProcessScan {
    /// The exit status of the first process. `None` while it runs.
    pub(crate) exit: Option<ProcessExit>,
    /// Whether all processes have exited.
    pub(crate) empty: bool,
}

/// The interval between checks of a job whose end no signal reports.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

impl ProcessOwner {
    /// Creates the owner of the process `pid`. `is_wrapped` means that this process is a sandbox's
    /// own program, which starts the agent.
    pub(crate) fn new(pid: Pid, scope: &KillScope, is_wrapped: bool) -> Self {
        match scope {
            KillScope::Everything { exemptions } => Self::Subtree(Subtree {
                first: pid,
                is_wrapped,
                exemptions: exemptions.clone(),
                ended: false,
            }),
            KillScope::Marked { id, exemptions } => Self::Marked(Marked {
                pid,
                is_wrapped,
                start_time: tree::start_time(raw(pid)).unwrap_or(0),
                id: id.clone(),
                exemptions: exemptions.clone(),
                ended: notice_end(pid),
                exit: None,
            }),
        }
    }

    /// Returns the pid of the first process, or 0 for a function.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Subtree(Subtree { first: pid, .. }) | Self::Marked(Marked { pid, .. }) => {
                raw(*pid)
            }
            Self::Function(_) => 0,
        }
    }

    /// Returns whether the first process is a sandbox's own program.
    pub(crate) fn is_wrapped(&self) -> bool {
        match self {
            Self::Subtree(Subtree { is_wrapped, .. }) | Self::Marked(Marked { is_wrapped, .. }) => {
                *is_wrapped
            }
            Self::Function(_) => false,
        }
    }

    /// Returns a file descriptor that becomes readable when the first process exits. `None` if the
    /// job has none or the process has exited.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            // A pidfd stays readable after the exit, so polling it would spin.
            Self::Marked(marked) if marked.exit.is_none() => marked.ended.as_ref().map(AsFd::as_fd),
            _ => None,
        }
    }

    /// Returns the time until the next check, or `None` if a signal will report the change.
    pub(crate) fn check_interval(&self) -> Option<Duration> {
        match self {
            Self::Marked(marked) if marked.exit.is_some() || marked.ended.is_none() => {
                Some(CHECK_INTERVAL)
            }
            _ => None,
        }
    }

    pub(crate) fn scan(&mut self) -> ProcessScan {
        let is_wrapped = self.is_wrapped();
        let mut scan = match self {
            Self::Subtree(subtree) => subtree.scan(),
            Self::Marked(marked) => marked.scan(),
            Self::Function(call) => ProcessScan {
                exit: call.exit(),
                empty: call.exit().is_some(),
            },
        };
        if is_wrapped {
            scan.exit = scan.exit.map(unwrap_exit);
        }
        scan
    }

    /// Sends a signal to all of the job's processes, or cancels its function.
    pub(crate) fn signal(&self, signal: Signal) {
        match self {
            // Without a subreaper, descendants that left the process group cannot be found.
            Self::Subtree(subtree) if cfg!(target_os = "linux") => {
                let mut exempt = subtree.exempt();
                if subtree.is_wrapped && signal != Signal::KILL {
                    // Otherwise it would exit, and the agent be killed without its grace period.
                    exempt.single.push(subtree.first);
                }
                tree::signal_all(&exempt, signal);
            }
            Self::Subtree(subtree) => drop(kill_process_group(subtree.first, signal)),
            Self::Marked(marked) => marked.signal(signal),
            Self::Function(call) => call.cancel(),
        }
    }

    /// Returns the pids of the job's processes that are alive.
    pub(crate) fn remaining(&self) -> Vec<u32> {
        match self {
            Self::Subtree(subtree) => subtree.remaining(),
            Self::Marked(marked) => marked.remaining(),
            Self::Function(_) => vec![],
        }
    }

    /// Reaps the first process. Returns true if the job is a function that has not returned.
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

    /// Returns whether only exempt processes are left; those may run forever. Scans twice, because
    /// one scan can miss a process that forks meanwhile.
    fn only_exempt_left(&self) -> bool {
        let exempt = self.exempt();
        let is_rest_exempt = || {
            let all = tree::scan(&exempt);
            all.found.is_empty() && all.has_exempt
        };
        is_rest_exempt() && is_rest_exempt()
    }

    fn exempt(&self) -> ExemptSet {
        self.exemptions.current()
    }

    fn remaining(&self) -> Vec<u32> {
        tree::descendants(&self.exempt())
            .into_iter()
            .map(raw)
            .collect()
    }
}

impl Marked {
    /// Scans without reaping the first process: while it is a zombie, its pid, group and session
    /// cannot be reused.
    fn scan(&mut self) -> ProcessScan {
        if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.exit = match waitid(WaitId::Pid(self.pid), options) {
                Ok(Some(status)) => Some(ProcessExit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                }),
                Ok(None) | Err(Errno::INTR) => None,
                // The embedding program reaped the process, so the exit status is unknown.
                Err(_) => Some(ProcessExit::default()),
            };
        }
        // Scan twice: one scan can miss a process that forks meanwhile.
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

    /// Returns whether the first process's pid still belongs to this job. The pid may have been
    /// reused if the embedding program reaped the process.
    fn owns_its_pid(&self) -> bool {
        self.exit != Some(ProcessExit::default())
    }

    fn signal(&self, signal: Signal) {
        let spares_first = self.is_wrapped && signal != Signal::KILL;
        if self.owns_its_pid() && !spares_first {
            let _ = kill_process_group(self.pid, signal);
        }
        for pid in self
            .remaining()
            .into_iter()
            .filter_map(|pid| Pid::from_raw(pid as i32))
            .filter(|pid| !spares_first || *pid != self.pid)
        {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns the exit status of the agent, from that of bwrap: like a shell, it adds 128 to the signal
/// that killed the agent.
fn unwrap_exit(exit: ProcessExit) -> ProcessExit {
    match exit.code {
        Some(code @ 129..=192) => ProcessExit {
            code: None,
            signal: Some(code - 128),
        },
        _ => exit,
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
