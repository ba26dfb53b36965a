//! `times N COMMAND… [++ COMMAND…]…` runs each command N times, in turns, and prints one line for each:
//! median and 95th percentile in microseconds, then the command. A first word `<FILE` is a command's standard input.

use std::fs::File;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((count, rest)) = args.split_first().and_then(|(n, rest)| Some((n.parse::<usize>().ok()?, rest)))
    else {
        eprintln!("usage: times N COMMAND… [++ COMMAND…]…");
        return ExitCode::from(2);
    };
    let commands: Vec<&[String]> =
        rest.split(|word| word == "++").filter(|words| !words.is_empty()).collect();
    let mut taken = vec![Vec::with_capacity(count); commands.len()];
    for round in 0..count + 3 {
        for (words, taken) in commands.iter().zip(&mut taken) {
            let file = words[0].strip_prefix('<');
            let words = &words[usize::from(file.is_some())..];
            let input = file.map_or_else(Stdio::null, |file| File::open(file).expect("the input is there").into());
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            let status = command.status();
            let micros = started.elapsed().as_micros();
            if !status.is_ok_and(|status| status.success()) {
                eprintln!("times: failed: {}", words.join(" "));
                return ExitCode::FAILURE;
            }
            // The first rounds fill caches.
            if round >= 3 {
                taken.push(micros);
            }
        }
    }
    for (words, taken) in commands.iter().zip(&mut taken) {
        taken.sort_unstable();
        let at = |percent: usize| taken.get(taken.len() * percent / 100).copied().unwrap_or(0);
        println!("{} {} {}", at(50), at(95), words.join(" "));
    }
    ExitCode::SUCCESS
}
