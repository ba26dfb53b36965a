//! Looks up the processes that no sweep may kill: registered background loops, and ralph's tmux
//! servers with their windows.

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
    /// Whether the tmux servers that ralph started are exempt, with all their windows.
    pub has_servers: bool,
}

impl Exemptions {
    /// Exempts the processes that `registry` returns at the time of a sweep.
    pub(crate) fn new(registry: impl Fn() -> Vec<ExemptProcess> + Send + Sync + 'static) -> Self {
        Self {
            registry: Arc::new(registry),
        }
    }

    /// Returns the processes that are alive now and exempt.
    ///
    /// A tmux server that `ralph spawn` started in an agent outlives the agent, and a person may work
    /// in its windows. tmux does not record which client opened a window, and starts its program
    /// itself, so a person's window and an agent's look alike. All are exempt: losing a person's
    /// work is worse than keeping a process that the agent could have hidden in any other server of
    /// the user. [`windows_since`](Self::windows_since) finds it.
    pub(crate) fn current(&self) -> ExemptSet {
        let mut exempt = ExemptSet {
            has_servers: true,
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

    /// Returns the first processes of the windows that were opened since `start_time`, in the unit of
    /// [`tree::start_time`], except those of background loops. Looks into the servers that host
    /// background loops, and into those among the descendants of this process.
    pub(crate) fn windows_since(&self, start_time: u64) -> Vec<u32> {
        let exempt = self.current();
        let mut servers = tree::scan(&exempt).servers;
        for host in exempt.single.iter().filter(|pid| is_tmux(**pid)) {
            if !servers.contains(host) {
                servers.push(*host);
            }
        }
        let windows = servers.into_iter().flat_map(tree::children);
        windows
            .filter(|pid| !exempt.trees.contains(pid))
            .map(raw)
            .filter(|pid| tree::start_time(*pid).is_some_and(|at| at >= start_time))
            .collect()
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

    /// Returns whether a process is a tmux server that ralph has started for background loops: a
    /// program named tmux with the mark of no loop. A server that an agent starts itself has the mark
    /// of the agent's loop.
    pub(super) fn is_server(&self, pid: Pid) -> bool {
        self.has_servers && is_tmux(pid) && Mark::of_process(raw(pid)) == Some(Mark::DETACHED)
    }

    /// Adds these processes and their descendants to the set.
    pub(crate) fn with_trees(mut self, pids: &[Pid]) -> Self {
        self.trees.extend_from_slice(pids);
        self
    }
}

/// Returns whether a process runs a program named tmux.
fn is_tmux(pid: Pid) -> bool {
    let program = std::fs::read_link(format!("/proc/{}/exe", raw(pid)));
    let program = program.unwrap_or_default();
    program.file_name().is_some_and(|name| name == "tmux")
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
