//! Runs a loop whose agent is a command, and stops it from another thread if it takes too long.
//!
//! `cargo run --example command_agent` needs no account: the agent is a shell script that works in a
//! temporary directory. Replace it with the command of a coding agent.

use ralph::{Act, Loop};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, process, thread};

/// Reads its prompt, as a coding agent would, and does one part of the work per iteration.
const AGENT: &str = "
cat > /dev/null
for part in walls roof door; do
    if ! test -e $part.txt; then
        echo \"building the $part\"
        echo built > $part.txt
        exit
    fi
done";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = env::temp_dir().join(format!("ralph-example-command-{}", process::id()));
    fs::create_dir_all(place.join("work"))?;
    let result = run(&place);
    fs::remove_dir_all(&place)?;
    result
}

fn run(place: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let house = Loop::new("Build a house: walls, roof and door.")
        .workspace(place.join("work"))
        .state_dir(place.join("state"))
        .check("test -e walls.txt")
        .check("test -e roof.txt -a -e door.txt")
        .until_green()
        .max_iterations(10)
        .iteration_timeout(Duration::from_secs(60))
        .on_act(|act| {
            if let Act::Text(text) = act {
                print!("  {text}");
            }
        });

    // Any thread can stop the loop. This one stops it after five minutes.
    let (over, wait) = mpsc::channel::<()>();
    let stopper = house.stopper();
    let watchdog = thread::spawn(move || {
        if wait.recv_timeout(Duration::from_secs(300)) == Err(mpsc::RecvTimeoutError::Timeout) {
            stopper.stop_now();
        }
    });
    let report = house.run_command(["sh", "-c", AGENT]);
    drop(over);
    watchdog.join().map_err(|_| "the watchdog panicked")?;

    let report = report?;
    println!(
        "{} after {} iterations",
        report.stop_reason,
        report.iterations.len()
    );
    for check in report.iterations.iter().flat_map(|one| &one.checks) {
        println!(
            "  {} {}",
            if check.passed { "green" } else { "red  " },
            check.command
        );
    }
    if report.success {
        Ok(())
    } else {
        Err("the house is not built".into())
    }
}
