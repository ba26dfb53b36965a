//! Runs a loop whose agent is a function that sorts a list, one step per iteration, until a real
//! check is green.
//!
//! `cargo run --example function_agent` needs no account: the agent is the code below, and it works
//! in a temporary directory.

use ralph::{Act, Event, Loop, Turn};
use std::path::Path;
use std::{env, fs, process};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = env::temp_dir().join(format!("ralph-example-function-{}", process::id()));
    fs::create_dir_all(place.join("work"))?;
    let result = run(&place);
    fs::remove_dir_all(&place)?;
    result
}

fn run(place: &Path) -> Result<(), Box<dyn std::error::Error>> {
    fs::write(
        place.join("work/names.txt"),
        "Walter\nGrace\nEdsger\nBarbara\nAda\n",
    )?;

    let report = Loop::new("Sort names.txt. Swap one pair of neighbours at a time.")
        .workspace(place.join("work"))
        .state_dir(place.join("state"))
        .check("LC_ALL=C sort -c names.txt")
        .until_green()
        .max_iterations(20)
        .max_cost(1.0)
        .on_event(|event| {
            if let Event::Started { iteration, .. } = event {
                println!("iteration {iteration}");
            }
        })
        .on_act(|act| {
            if let Act::ToolFinished { name, about, .. } = act {
                println!("  {name}: {about}");
            }
        })
        .run_with(swap_one_pair)?;

    println!(
        "{}: {} iterations",
        report.stop_reason,
        report.iterations.len()
    );
    println!("cost: ${:.2}", report.total_cost.unwrap_or_default());
    for one in &report.iterations {
        let verdict = if one.checks.iter().all(|check| check.passed) {
            "green"
        } else {
            "red"
        };
        println!(
            "  {}: {verdict}, {} steps",
            one.iteration,
            one.steps.unwrap_or_default()
        );
    }
    if report.success {
        Ok(())
    } else {
        Err("the list is not sorted".into())
    }
}

/// The agent. A real one would send `turn.prompt()` to a model and carry out its response.
fn swap_one_pair(turn: &Turn) -> Result<String, std::io::Error> {
    let path = turn.workspace().join("names.txt");
    let text = fs::read_to_string(&path)?;
    let mut names: Vec<&str> = text.lines().collect();
    let Some(at) = names.windows(2).position(|pair| pair[0] > pair[1]) else {
        return Ok("There is nothing left to swap.".into());
    };
    names.swap(at, at + 1);
    fs::write(&path, names.join("\n") + "\n")?;
    turn.used_tool("swap", format!("{} and {}", names[at], names[at + 1]), true);
    turn.cost(0.01);
    Ok(format!("I put {} before {}.", names[at], names[at + 1]))
}
