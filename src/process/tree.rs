//! Lists, signals and reaps the process tree below this process.

use super::exemptions::ExemptSet;
use crate::engine::{ProcessExit, ProcessIdentity};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::fs;
use std::io::Read;
use std::path::Path;

/// Makes this process a subreaper: orphaned descendants become its children. Has an effect on Linux
/// only.
pub(crate) fn become_subreaper() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        debug_assert!(false, "cannot become a subreaper: {error}");
    }
}

/// Reaps every child that has exited, and passes its exit status to `on_exit`. Returns whether no
/// child is left. For a subreaper, this proves that no descendant is alive.
pub(crate) fn reap(mut on_exit: impl FnMut(Pid, ProcessExit)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => on_exit(pid, exit_of(status)),
            Ok(None) => return false,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// Converts a wait status to a [`ProcessExit`].
pub(crate) fn exit_of(status: WaitStatus) -> ProcessExit {
    ProcessExit {
        code: status.exit_status(),
        signal: status.terminating_signal(),
    }
}

/// The descendants of this process.
pub(crate) struct Descendants {
    /// Those that are not exempt, parents before children.
    pub(crate) found: Vec<Pid>,
    /// Whether there are exempt ones.
    pub(crate) has_exempt: bool,
    /// Those that [are tmux servers](ExemptSet::is_server).
    pub(crate) servers: Vec<Pid>,
}

/// Returns every living descendant of this process except exempt ones, parents before children.
pub(crate) fn descendants(exempt: &ExemptSet) -> Vec<Pid> {
    scan(exempt).found
}

/// Lists the living descendants of this process. Which of them are exempt is decided in the same
/// pass: a process that is reparented meanwhile may be missing from another one.
pub(crate) fn scan(exempt: &ExemptSet) -> Descendants {
    let (mut found, mut servers) = (vec![rustix::process::getpid()], Vec::new());
    let (mut next, mut has_exempt) = (0, false);
    while let Some(pid) = found.get(next).copied() {
        let is_server = next > 0 && exempt.is_server(pid);
        servers.extend(is_server.then_some(pid));
        for child in children(pid) {
            if is_server || exempt.trees.contains(&child) {
                has_exempt = true;
            } else {
                found.push(child);
            }
        }
        next += 1;
    }
    found.remove(0);
    let is_single = |pid: &Pid| exempt.single.contains(pid) || servers.contains(pid);
    has_exempt |= found.iter().any(is_single);
    // Leave out zombies: their parents reap them.
    found.retain(|pid| !is_single(pid) && is_alive(*pid));
    Descendants {
        found,
        has_exempt,
        servers,
    }
}

/// Returns whether a process is alive. A process whose main thread has exited is in state "zombie"
/// while other threads still run, and counts as alive.
fn is_alive(pid: Pid) -> bool {
    // The process name may contain any bytes.
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or(vec![], |(_, rest)| rest.split_whitespace().collect());
    let threads = fields
        .get(THREADS)
        .and_then(|count| count.parse::<u32>().ok())
        .unwrap_or(0);
    fields
        .first()
        .is_some_and(|state| !matches!(*state, "Z" | "X") || threads > 1)
}

/// The index of the thread count among the fields after the process name.
const THREADS: usize = 17;

/// Sends a signal to every descendant of this process that is not exempt.
pub(crate) fn signal_all(exempt: &ExemptSet, signal: Signal) {
    for pid in descendants(exempt) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the direct children of a process; empty if the process has exited.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", parent.as_raw_nonzero());
    let Ok(tasks) = fs::read_dir(tasks) else {
        return vec![];
    };
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let Ok(list) = fs::read_to_string(task.path().join("children")) else {
            // Either the task has exited, or this kernel does not provide the list.
            if Path::new("/proc/thread-self/children").exists() {
                continue;
            }
            return children_by_scan(parent);
        };
        found.extend(
            list.split_whitespace()
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?)),
        );
    }
    found
}

fn children_by_scan(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get().unsigned_abs();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let is_child = self::parent(pid) == Some(parent);
        Pid::from_raw(pid as i32).filter(|_| is_child)
    })
    .collect()
}

/// Returns the ID of a process's parent; `None` if the process has exited.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    // The name in parentheses may contain any bytes. The fields follow the last closing
    // parenthesis.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Maximum number of ancestors to follow.
const ANCESTORS_MAX: usize = 256;

/// Returns the ancestors of this process, nearest first.
pub(crate) fn ancestors() -> Vec<ProcessIdentity> {
    let next = |process: &ProcessIdentity| {
        let pid = parent(process.pid).filter(|pid| *pid > 0)?;
        let start_time = start_time(pid)?;
        Some(ProcessIdentity { pid, start_time })
    };
    let own = ProcessIdentity {
        pid: std::process::id(),
        start_time: 0,
    };
    std::iter::successors(next(&own), next)
        .take(ANCESTORS_MAX)
        .collect()
}

/// Returns whether a process is stopped, by SIGSTOP or a debugger.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, Some("T" | "t"))
}

/// Returns the name of a process's program, cut to 15 bytes; `None` if the process has exited.
pub(crate) fn program_name(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Returns a process's start time, in clock ticks since boot; `None` if the process has exited or
/// is a zombie.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let mut text = [0; 1024];
    let length = fs::File::open(format!("/proc/{pid}/stat"))
        .and_then(|mut stat| stat.read(&mut text))
        .ok()?;
    let stat = String::from_utf8_lossy(&text[..length]);
    // The name in parentheses may contain any bytes. The fields follow the last closing
    // parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    let start_time = fields.nth(18)?.parse().ok()?;
    is_alive.then_some(start_time)
}
