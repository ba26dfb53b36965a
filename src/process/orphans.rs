//! Finds and kills processes that a crashed run left behind, by process ID and start time, session,
//! inherited mark, or environment marker.

use super::exemptions::{ExemptSet, Exemptions};
use super::mark::Mark;
use crate::engine::{ProcessIdentity, State};
use crate::os;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// The environment variable that marks every process of a loop.
pub(crate) const MARKER_VAR: &str = "RALPH_ID";

/// Returns the marker's value for the processes of the loop `id`. For a loop started inside another
/// loop's iteration, the value contains both IDs.
pub(crate) fn marker(id: &str) -> String {
    match std::env::var(MARKER_VAR) {
        Ok(outer) if !outer.is_empty() => format!("{outer}/{id}"),
        _ => id.to_owned(),
    }
}

/// Returns whether this process itself belongs to the loop `id`.
pub(crate) fn is_inside(id: &str) -> bool {
    std::env::var(MARKER_VAR).is_ok_and(|marker| marker.split('/').any(|part| part == id))
}

/// Returns whether processes of an earlier run may be alive. None can be if the system has
/// restarted since.
pub(crate) fn may_exist(state: &State) -> bool {
    match (&state.boot, os::boot::boot_id()) {
        (Some(recorded), Some(current)) => *recorded == current,
        _ => true,
    }
}

/// Returns the agent's process, if its ID is still valid: not in a session, where it is the client,
/// and not if the system may have restarted since it was recorded.
fn recorded_process(state: &State) -> Option<ProcessIdentity> {
    let is_valid = state.boot.is_some() && state.boot == os::boot::boot_id();
    state.process.filter(|_| is_valid && !state.is_in_session())
}

/// Kills everything that an earlier run of the loop `id` left behind: SIGTERM, then SIGKILL after
/// the plan's grace period, then another wait. Returns the number of killed processes, and the IDs
/// of those still running.
pub(crate) fn sweep(id: &str, state: &State, exemptions: &Exemptions) -> (usize, Vec<u32>) {
    if !may_exist(state) {
        return (0, Vec::new());
    }
    let grace = &state.plan.grace;
    let grace = [grace.term_ms, grace.survivor_ms].map(Duration::from_millis);
    kill_all(id, recorded_process(state), exemptions, grace)
}

/// Kills everything that is marked as the loop `id`'s, if nothing else is known about the loop.
/// Returns the same as [`sweep`].
#[cfg(feature = "cli")]
pub(crate) fn sweep_by_id(id: &str, exemptions: &Exemptions) -> (usize, Vec<u32>) {
    kill_all(id, None, exemptions, [Duration::from_secs(1); 2])
}

fn kill_all(
    id: &str,
    process: Option<ProcessIdentity>,
    exemptions: &Exemptions,
    [grace, survivor]: [Duration; 2],
) -> (usize, Vec<u32>) {
    let started = Instant::now();
    let (mut signaled, mut empty_scans) = (Vec::new(), 0);
    loop {
        let left = find(id, process, 0, &exemptions.current());
        let elapsed = started.elapsed();
        // A scan can miss a process that forks or execs meanwhile, so a single empty scan proves
        // nothing.
        empty_scans = if left.is_empty() { empty_scans + 1 } else { 0 };
        if empty_scans == 2 || elapsed > grace + survivor {
            return (signaled.len().saturating_sub(left.len()), left);
        }
        let new: Vec<u32> = left
            .iter()
            .copied()
            .filter(|pid| !signaled.contains(pid))
            .collect();
        if elapsed > grace {
            signal(&left, Signal::KILL);
        } else {
            signal(&new, Signal::TERM);
        }
        signaled.extend(new);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
        let _ = kill_process(pid, signal);
    }
}

struct ProcessInfo {
    parent: u32,
    session: u32,
    start_time: u64,
}

/// Returns the IDs of a job's living processes. Processes older than `process`, the job's first
/// one, are skipped without reading their environment.
pub(crate) fn of_job(id: &str, process: ProcessIdentity, exemptions: &Exemptions) -> Vec<u32> {
    find(id, Some(process), process.start_time, &exemptions.current())
}

/// Returns the IDs of the living processes of the loop `id`. `process` is the loop's agent, if any.
/// A session ID is not reused while a member is alive, so the agent's session identifies its
/// members even after the agent has exited.
fn find(
    id: &str,
    process: Option<ProcessIdentity>,
    marker_since: u64,
    exempt: &ExemptSet,
) -> Vec<u32> {
    // A function agent has no process, and session 0 belongs to the kernel.
    let process = process.filter(|process| process.pid != 0);
    let all = processes();
    let agent = process.map(|process| process.pid);
    let is_agent = |pid: u32, seen: &ProcessInfo| {
        let start_time = seen.start_time;
        process == Some(ProcessIdentity { pid, start_time })
    };
    // An older process in a session with this ID belongs to a different session.
    let is_not_older =
        |seen: &ProcessInfo| process.is_some_and(|process| seen.start_time >= process.start_time);
    let mark = Mark::of_loop(id);
    let session_is_ours =
        agent.is_none_or(|pid| all.get(&pid).is_none_or(|seen| is_agent(pid, seen)));
    let mut found: Vec<u32> = all
        .iter()
        .filter(|(pid, seen)| {
            is_agent(**pid, seen)
                || (session_is_ours && Some(seen.session) == agent && is_not_older(seen))
                || (seen.start_time >= marker_since
                    && (has_marker(**pid, id) || Mark::of_process(**pid) == Some(mark)))
        })
        .map(|(pid, _)| *pid)
        .collect();
    add_descendants(&mut found, &all);
    let raw = |pid: &Pid| pid.as_raw_nonzero().get() as u32;
    let mut exempt_pids: Vec<u32> = exempt.trees.iter().map(raw).collect();
    add_descendants(&mut exempt_pids, &all);
    exempt_pids.extend(exempt.single.iter().map(raw));
    found.retain(|pid| *pid != std::process::id() && !exempt_pids.contains(pid));
    found
}

fn add_descendants(found: &mut Vec<u32>, all: &BTreeMap<u32, ProcessInfo>) {
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        for (pid, _) in all.iter().filter(|(_, seen)| seen.parent == parent) {
            if !found.contains(pid) {
                found.push(*pid);
            }
        }
        next += 1;
    }
}

fn has_marker(pid: u32, id: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let marker = environment.split(|byte| *byte == 0).find_map(|entry| {
        entry
            .strip_prefix(MARKER_VAR.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
    });
    marker.is_some_and(|marker| {
        marker
            .split(|byte| *byte == b'/')
            .any(|part| part == id.as_bytes())
    })
}

/// The indexes of the flags, the thread count and the start time among the fields after the process
/// name.
const FLAGS: usize = 6;
const THREADS: usize = 17;
const START_TIME: usize = 19;
/// The flag of a process that is exiting.
const EXITING: u64 = 4;

fn processes() -> BTreeMap<u32, ProcessInfo> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // The process name may contain any bytes.
        let stat = fs::read(entry.path().join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or(vec![], |(_, rest)| rest.split_whitespace().collect());
        let [state, parent, _, session, ..] = fields[..] else {
            continue;
        };
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        // A process whose main thread has exited is a zombie while its other threads still run.
        let is_exiting =
            matches!(state, "Z" | "X") || number(FLAGS).is_some_and(|flags| flags & EXITING != 0);
        if is_exiting && number(THREADS).is_none_or(|threads| threads <= 1) {
            continue;
        }
        let start_time = number(START_TIME);
        if let (Ok(parent), Ok(session), Some(start_time)) =
            (parent.parse(), session.parse(), start_time)
        {
            all.insert(
                pid,
                ProcessInfo {
                    parent,
                    session,
                    start_time,
                },
            );
        }
    }
    all
}
