//! The processes below this one: who they are, how they are told to go, and the proof that they went.

use super::exemptions::Spared;
use crate::engine::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::fs;
use std::io::Read;
use std::path::Path;

/// Makes orphans below this process its own children, wherever the system can.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        debug_assert!(false, "no subreaper: {error}");
    }
}

/// Reaps every child that has ended. True means that there is no child left at all: with orphans
/// adopted, that is the proof that nothing below this process is alive.
pub fn reap(mut ended: impl FnMut(Pid, Exit)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, exit_of(status)),
            Ok(None) => return false,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// How a process ended, by its wait status.
pub fn exit_of(status: WaitStatus) -> Exit {
    Exit {
        code: status.exit_status(),
        signal: status.terminating_signal(),
    }
}

/// Every living process below this one, parents before children, but those that are spared.
pub fn descendants(spared: &Spared) -> Vec<Pid> {
    let mut found = vec![rustix::process::getpid()];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(
            children(pid)
                .into_iter()
                .filter(|pid| !spared.whole.contains(pid)),
        );
        next += 1;
    }
    found.remove(0);
    // The dead below a process that is spared are for that one to bury.
    found.retain(|pid| !spared.alone.contains(pid) && is_alive(*pid));
    found
}

/// Whether a process is more than an entry that waits for its parent to look. One whose first thread has ended, and
/// others have not, looks like one.
fn is_alive(pid: Pid) -> bool {
    // The name may hold anything, also what is no text.
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

/// Where the number of threads stands behind a process's name.
const THREADS: usize = 17;

/// Sends a signal to every process below this one; what is gone by then does not matter.
pub fn signal(spared: &Spared, signal: Signal) {
    for pid in descendants(spared) {
        let _ = kill_process(pid, signal);
    }
}

/// The direct children of a process.
pub fn children(parent: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", parent.as_raw_nonzero());
    let Ok(tasks) = fs::read_dir(tasks) else {
        return vec![];
    };
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let Ok(list) = fs::read_to_string(task.path().join("children")) else {
            // A task that is gone, unless this kernel keeps no such list.
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
    let parent = parent.as_raw_nonzero().get().to_string();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        let is_child = String::from_utf8_lossy(&stat)
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            == parent;
        Pid::from_raw(pid).filter(|_| is_child)
    })
    .collect()
}

/// The kernel's start time of a process, in ticks since boot; none if it is gone or a zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    let mut text = [0; 1024];
    let length = fs::File::open(format!("/proc/{pid}/stat"))
        .and_then(|mut stat| stat.read(&mut text))
        .ok()?;
    let stat = String::from_utf8_lossy(&text[..length]);
    // The name in parentheses may hold anything; what follows the last one is regular.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| alive)
}
