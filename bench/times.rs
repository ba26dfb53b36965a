//! `times N COMMAND… [++ COMMAND…]…` runs each command N times, alternating, and prints one line for
//! each: median and 95th percentile in microseconds, then the command. A first argument `<FILE`
//! redirects the command's standard input.

use std::fs::File;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((count, rest)) = args
        .split_first()
        .and_then(|(n, rest)| Some((n.parse::<usize>().ok()?, rest)))
    else {
        eprintln!("usage: times N COMMAND… [++ COMMAND…]…");
        return ExitCode::from(2);
    };
    let commands: Vec<&[String]> = rest
        .split(|arg| arg == "++")
        .filter(|args| !args.is_empty())
        .collect();
    let mut taken = vec![Vec::with_capacity(count); commands.len()];
    for round in 0..count + 3 {
        for (args, taken) in commands.iter().zip(&mut taken) {
            let file = args[0].strip_prefix('<');
            let args = &args[usize::from(file.is_some())..];
            let input = file.map_or_else(Stdio::null, |file| {
                File::open(file).expect("the input can be opened").into()
            });
            let mut command = Command::new(&args[0]);
            command
                .args(&args[1..])
                .stdin(input)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let started = Instant::now();
            let status = command.status();
            let micros = started.elapsed().as_micros();
            if !status.is_ok_and(|status| status.success()) {
                eprintln!("times: failed: {}", args.join(" "));
                return ExitCode::FAILURE;
            }
            // The first rounds only warm the caches.
            if round >= 3 {
                taken.push(micros);
            }
        }
    }
    for (args, taken) in commands.iter().zip(&mut taken) {
        taken.sort_unstable();
        let at = |percent: usize| taken.get(taken.len() * percent / 100).copied().unwrap_or(0);
        println!("{} {} {}", at(50), at(95), args.join(" "));
    }
    ExitCode::SUCCESS
}
