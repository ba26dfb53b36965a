//! What a crash left behind: found again by pid and start time, session, or mark in the environment.

use super::exemptions::{Friends, Spared};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant, SystemTime};

/// The variable that every process of a loop carries.
pub const MARK: &str = "RALPH_ID";

/// The mark for a loop's processes; a loop inside another's iteration carries both ids.
pub fn mark(id: &str) -> String {
    match std::env::var(MARK) {
        Ok(outer) if !outer.is_empty() => format!("{outer}/{id}"),
        _ => id.to_owned(),
    }
}

/// Whether this process itself belongs to the loop.
pub fn is_inside(id: &str) -> bool {
    std::env::var(MARK).is_ok_and(|mark| mark.split('/').any(|part| part == id))
}

/// Ends everything that an earlier run of this loop left behind: TERM, grace, KILL. Returns how many
/// it ended and which outlived it.
pub fn sweep(
    id: &str,
    process: Option<(u32, u64)>,
    friends: &Friends,
    grace: Duration,
    survivor: Duration,
) -> (usize, Vec<u32>) {
    let begun = Instant::now();
    let (mut told, mut empty_looks) = (Vec::new(), 0);
    loop {
        let left = find(id, process, 0, &friends.now());
        let late = begun.elapsed();
        // A look can miss what was born, or changed its program, in the middle of it: one proves nothing.
        empty_looks = if left.is_empty() { empty_looks + 1 } else { 0 };
        if empty_looks == 2 || late > grace + survivor {
            return (told.len().saturating_sub(left.len()), left);
        }
        let new: Vec<u32> = left
            .iter()
            .copied()
            .filter(|pid| !told.contains(pid))
            .collect();
        if late > grace {
            signal(&left, Signal::KILL);
        } else {
            signal(&new, Signal::TERM);
        }
        told.extend(new);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether the machine was started after this time: then nothing from before is left.
pub fn booted_since(wall_ms: i64) -> bool {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let Some(seconds) = uptime
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
    else {
        return false;
    };
    let booted = SystemTime::now().checked_sub(Duration::from_secs_f64(seconds));
    let booted = booted.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    booted.is_some_and(|at| at.as_millis() as i64 > wall_ms)
}

struct Seen {
    parent: u32,
    session: u32,
    start_time: u64,
}

/// The living processes of one job of a loop. None is older than its first, so that few environments are read.
pub(crate) fn of_job(id: &str, process: (u32, u64), friends: &Friends) -> Vec<u32> {
    find(id, Some(process), process.1, &friends.now())
}

/// The living processes of a loop. A session's number is not given away while one of it lives, so the
/// session of the agent tells its members even when the agent itself is gone.
fn find(id: &str, process: Option<(u32, u64)>, marked_since: u64, spared: &Spared) -> Vec<u32> {
    // An agent that is a function of its host has no process, and the kernel's own are in session 0.
    let process = process.filter(|(pid, _)| *pid != 0);
    let all = processes();
    let agent = process.map(|(pid, _)| pid);
    let is_agent = |pid: u32, seen: &Seen| process == Some((pid, seen.start_time));
    // A session of the same number from before the agent is somebody else's.
    let is_younger = |seen: &Seen| process.is_some_and(|(_, start)| seen.start_time >= start);
    let agent_gone_or_ours =
        agent.is_none_or(|pid| all.get(&pid).is_none_or(|seen| is_agent(pid, seen)));
    let mut found: Vec<u32> = all
        .iter()
        .filter(|(pid, seen)| {
            is_agent(**pid, seen)
                || (agent_gone_or_ours && Some(seen.session) == agent && is_younger(seen))
                || (seen.start_time >= marked_since && is_marked(**pid, id))
        })
        .map(|(pid, _)| *pid)
        .collect();
    with_all_below(&mut found, &all);
    let raw = |pid: &Pid| pid.as_raw_nonzero().get() as u32;
    let mut friends: Vec<u32> = spared.whole.iter().map(raw).collect();
    with_all_below(&mut friends, &all);
    friends.extend(spared.alone.iter().map(raw));
    found.retain(|pid| *pid != std::process::id() && !friends.contains(pid));
    found
}

fn with_all_below(found: &mut Vec<u32>, all: &BTreeMap<u32, Seen>) {
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

fn is_marked(pid: u32, id: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = environment.split(|byte| *byte == 0).find_map(|entry| {
        entry
            .strip_prefix(MARK.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
    });
    mark.is_some_and(|mark| {
        mark.split(|byte| *byte == b'/')
            .any(|part| part == id.as_bytes())
    })
}

/// Where the start time stands behind a process's name.
const START_TIME: usize = 19;

fn processes() -> BTreeMap<u32, Seen> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // Its name may hold anything, also what is no text.
        let stat = fs::read(entry.path().join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or(vec![], |(_, rest)| rest.split_whitespace().collect());
        let [state, parent, _, session, ..] = fields[..] else {
            continue;
        };
        if matches!(state, "Z" | "X") {
            continue;
        }
        let start_time = fields.get(START_TIME).and_then(|ticks| ticks.parse().ok());
        if let (Ok(parent), Ok(session), Some(start_time)) =
            (parent.parse(), session.parse(), start_time)
        {
            all.insert(
                pid,
                Seen {
                    parent,
                    session,
                    start_time,
                },
            );
        }
    }
    all
}
