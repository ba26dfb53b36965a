//! `crowd EXE` prints one line for each loop whose supervisor runs EXE, summed over the loop's own
//! processes: name, processes, threads, resident kB, proportional kB, clock ticks, microseconds of
//! CPU time, wake-ups.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

#[derive(Default)]
struct Sum {
    processes: u64,
    threads: u64,
    resident: u64,
    proportional: u64,
    ticks: u64,
    micros: u64,
    wakes: u64,
}

fn main() -> ExitCode {
    let Some(exe) = std::env::args().nth(1) else {
        eprintln!("usage: crowd EXE");
        return ExitCode::from(2);
    };
    let mut loops: BTreeMap<String, Sum> = BTreeMap::new();
    for entry in fs::read_dir("/proc").expect("/proc can be read").flatten() {
        let place = entry.path();
        if !fs::read_link(place.join("exe")).is_ok_and(|link| link == Path::new(&exe)) {
            continue;
        }
        let args = fs::read(place.join("cmdline")).unwrap_or_default();
        let mut args = args.split(|byte| *byte == 0);
        if args.nth(1) != Some(b"__supervise") {
            continue;
        }
        let Some(name) = args
            .next()
            .map(|name| String::from_utf8_lossy(name).into_owned())
        else {
            continue;
        };
        add(loops.entry(name).or_default(), &place);
    }
    for (name, sum) in loops {
        let Sum {
            processes,
            threads,
            resident,
            proportional,
            ticks,
            micros,
            wakes,
        } = sum;
        println!("{name} {processes} {threads} {resident} {proportional} {ticks} {micros} {wakes}");
    }
    ExitCode::SUCCESS
}

fn add(sum: &mut Sum, process: &Path) {
    let read = |place: &Path| fs::read_to_string(place).unwrap_or_default();
    let rollup = read(&process.join("smaps_rollup"));
    sum.processes += 1;
    sum.resident += field(&rollup, "Rss:");
    sum.proportional += field(&rollup, "Pss:");
    let stat = read(&process.join("stat"));
    // The process name may contain spaces and parentheses; the fields after it do not.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let times = after_name.split_whitespace().skip(11).take(2);
    sum.ticks += times
        .filter_map(|time| time.parse::<u64>().ok())
        .sum::<u64>();
    for task in fs::read_dir(process.join("task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        sum.threads += 1;
        sum.wakes += field(
            &read(&task.path().join("status")),
            "voluntary_ctxt_switches:",
        );
        let on_processor = read(&task.path().join("schedstat"));
        let nanos = on_processor
            .split_whitespace()
            .next()
            .and_then(|nanos| nanos.parse::<u64>().ok());
        sum.micros += nanos.unwrap_or(0) / 1000;
    }
}

/// The number after `name` on the line that starts with it, or 0.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
