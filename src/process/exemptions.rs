//! Looks up the processes that no sweep may kill: registered background loops, and the windows that
//! host them.

use super::mark::Mark;
use super::tree;
use crate::engine::ProcessIdentity;
use rustix::process::Pid;
use std::fmt;
use std::sync::Arc;

/// A process that no sweep may kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExemptProcess {
    pub process: ProcessIdentity,
    /// Whether the process's descendants are exempt too.
    pub with_descendants: bool,
}

/// Looks up the exempt processes again for every sweep.
#[derive(Clone)]
pub(crate) struct Exemptions {
    registry: Arc<dyn Fn() -> Vec<ExemptProcess> + Send + Sync>,
}

/// The exempt processes that are alive at one point in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExemptSet {
    /// Processes that are exempt together with all their descendants.
    pub trees: Vec<Pid>,
    /// Processes that are exempt, but not their descendants.
    pub single: Vec<Pid>,
    /// The start time before which the windows of ralph's tmux server are exempt. The server itself
    /// is exempt. `None` exempts neither.
    pub windows_before: Option<u64>,
}

impl Exemptions {
    /// Exempts the processes that `registry` returns at the time of a sweep.
    pub(crate) fn new(registry: impl Fn() -> Vec<ExemptProcess> + Send + Sync + 'static) -> Self {
        Self {
            registry: Arc::new(registry),
        }
    }

    /// Returns the processes that are alive now and exempt after a job that began at
    /// `start_time`, in the unit of [`tree::start_time`].
    ///
    /// A tmux server outlives the loop whose window it was started for, and a person may have opened
    /// more windows in it: those that are older than the job are exempt. A window that was opened
    /// during the job may be the agent's.
    pub(crate) fn current_for_job(&self, start_time: u64) -> ExemptSet {
        let mut exempt = ExemptSet {
            windows_before: Some(start_time),
            ..ExemptSet::default()
        };
        for ExemptProcess {
            process,
            with_descendants,
        } in (self.registry)()
        {
            let Some(pid) = Pid::from_raw(process.pid as i32) else {
                continue;
            };
            if process.start_time == 0 || tree::start_time(process.pid) != Some(process.start_time)
            {
                continue;
            }
            if with_descendants {
                exempt.trees.push(pid);
            } else {
                exempt.single.push(pid);
            }
        }
        exempt
    }

    /// Returns the processes that are alive now and exempt when no job runs: the windows that an
    /// agent opened were closed after its job.
    pub(crate) fn current(&self) -> ExemptSet {
        self.current_for_job(u64::MAX)
    }
}

impl ExemptSet {
    /// Returns a set with these processes and their descendants.
    pub(crate) fn trees(pids: &[Pid]) -> Self {
        Self {
            trees: pids.to_vec(),
            ..Self::default()
        }
    }

    /// Returns whether a process is exempt together with its descendants. `parent_is_server` says
    /// whether its parent [is a tmux server](Self::is_server).
    pub(super) fn has_tree(&self, pid: Pid, parent_is_server: bool) -> bool {
        let is_older = || {
            let before = self.windows_before.unwrap_or(0);
            tree::start_time(raw(pid)).is_some_and(|at| at < before)
        };
        self.trees.contains(&pid) || (parent_is_server && is_older())
    }

    /// Returns whether a process is a tmux server that ralph has started for background loops before
    /// the job began: a program named tmux with the mark of no loop. A server that an agent started
    /// itself has the mark of the agent's loop, or a mark that it forged during the job.
    pub(super) fn is_server(&self, pid: Pid) -> bool {
        let is_tmux = || {
            let program = std::fs::read_link(format!("/proc/{}/exe", raw(pid)));
            let program = program.unwrap_or_default();
            program.file_name().is_some_and(|name| name == "tmux")
        };
        let is_detached = || Mark::of_process(raw(pid)) == Some(Mark::DETACHED);
        self.windows_before
            .is_some_and(|before| tree::start_time(raw(pid)).is_some_and(|at| at < before))
            && is_tmux()
            && is_detached()
    }

    /// Adds these processes and their descendants to the set.
    pub(crate) fn with_trees(mut self, pids: &[Pid]) -> Self {
        self.trees.extend_from_slice(pids);
        self
    }
}

fn raw(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Returns whether a process is the supervisor of the background loop `name`: the program ralph,
/// started for this loop. Any process can write itself into a lock file.
#[cfg(target_os = "linux")]
pub(crate) fn is_supervisor(pid: u32, name: &str) -> bool {
    // After an upgrade, the file of a running program is deleted.
    let program = |pid: &str| {
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let path = path.to_string_lossy().into_owned();
        Some(path.trim_end_matches(" (deleted)").to_owned())
    };
    let is_ralph = program(&pid.to_string()).is_some_and(|path| {
        path.ends_with("/ralph") || program("self").is_some_and(|own| own == path)
    });
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut arguments = arguments.split(|byte| *byte == 0).skip(1);
    is_ralph
        && arguments.next() == Some(b"__supervise")
        && arguments.next() == Some(name.as_bytes())
}

/// Elsewhere, the program of another process is not known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_supervisor(_pid: u32, _name: &str) -> bool {
    true
}

impl fmt::Debug for Exemptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exemptions")
    }
}
