//! `peak EXE FILE COMMAND ARGS…` runs a command and exits with its exit code. It writes to FILE the
//! elapsed microseconds and the peak resident kB, summed over those of its processes that run EXE.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [exe, file, command, rest @ ..] = args.as_slice() else {
        eprintln!("usage: peak EXE FILE COMMAND ARGS…");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let mut child = Command::new(command)
        .args(rest)
        .spawn()
        .expect("the command starts");
    // By process: its peak, and in how many samples it appeared.
    let mut peaks: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
    let status = loop {
        for pid in family(child.id()) {
            if fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|link| link == Path::new(exe)) {
                let (peak, seen) = peaks.entry(pid).or_default();
                *peak = (*peak).max(high_water(pid));
                *seen += 1;
            }
        }
        if let Some(status) = child.try_wait().expect("the command can be waited for") {
            break status;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let micros = started.elapsed().as_micros();
    // A process seen only once is a child between fork and exec, whose memory is its parent's.
    let sum: u64 = peaks
        .values()
        .filter(|(_, seen)| *seen > 1)
        .map(|(peak, _)| peak)
        .sum();
    fs::write(file, format!("{micros} {sum}\n")).expect("the result can be written");
    ExitCode::from(status.code().map_or(255, |code| code as u8))
}

/// The process and all its descendants.
fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while at < all.len() {
        for task in fs::read_dir(format!("/proc/{}/task", all[at]))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        at += 1;
    }
    all
}

/// `VmHWM` in kB.
fn high_water(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next())
        .and_then(|kb| kb.parse().ok())
        .unwrap_or(0)
}
