//! `ralph bus`: posts a message, or prints the last messages and follows new ones.

use super::workspace::current_dir;
use crate::agent::outbox;
use crate::agent::redact::Redactor;
use crate::cli::bus::{BusCommand, PostArgs, TailArgs};
use crate::engine::ExitCode;
use crate::git;
use crate::lifecycle::create::random_id;
use crate::lifecycle::error::CommandError;
use crate::process::file_watcher::FileWatcher;
use crate::store::bus;
use crate::store::bus::{Bus, BusBatch, BusMessage};
use crate::store::{LoopDir, StateDir, cache, loop_holder};
use crate::ui::bus_line::line;
use crate::ui::print::{warn, write_json, write_text};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The maximum time to wait while other processes are posting.
const POST_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval at which the bus is read even if no file event arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn bus(command: &BusCommand) -> Result<ExitCode, CommandError> {
    match command {
        BusCommand::Post(args) => post(args),
        BusCommand::Tail(args) => tail(args),
    }
}

fn post(args: &PostArgs) -> Result<ExitCode, CommandError> {
    let redactor = Redactor::from_env();
    let text = redactor.redact_text(&args.text.join(" ")).into_owned();
    let Some(kind) = bus::parse_kind(&redactor.redact_text(&args.kind)) else {
        return Err(CommandError::usage(
            format!(
                "--type {:?} is not a valid type",
                redactor.redact_text(&args.kind)
            ),
            "use one word of letters, digits, _ and -, as in --type note",
        ));
    };
    if text.trim().is_empty() {
        return Err(CommandError::usage(
            "the message is empty",
            "add the text: run `ralph bus post \"what others should know\"`",
        ));
    }
    if text.chars().count() > bus::TEXT_MAX {
        return Err(CommandError::usage(
            format!("the message is longer than {} characters", bus::TEXT_MAX),
            "write the text to a file and post the file's path",
        ));
    }
    if let Some(task_dir) = iteration_variable("RALPH_TASK_DIR") {
        if args.to.is_some() {
            return Err(CommandError::usage(
                "--loop cannot be used inside an iteration",
                "leave out --loop: the loop posts the message to its own bus and its project's",
            ));
        }
        if bus::is_reserved_kind(&kind) {
            return Err(CommandError::usage(
                format!("--type {kind} is reserved for the loop itself"),
                "use another type; to end the loop, use `ralph done` or `ralph blocked WHY`",
            ));
        }
        outbox::enqueue(&PathBuf::from(task_dir), &kind, &text).map_err(CommandError::broken)?;
        return Ok(ExitCode::Success);
    }
    let buses = match &args.to {
        Some(name) => {
            let (state_dir, dir) = find_loop(name)?;
            vec![Bus::for_loop(&dir), project_bus_of(&state_dir, &dir)?]
        }
        None => vec![current_project_bus()?],
    };
    let message = [BusMessage::new(random_id()?, &kind, None, &text)];
    buses
        .iter()
        .try_for_each(|bus| bus.post(&message, POST_TIMEOUT))?;
    Ok(ExitCode::Success)
}

fn tail(args: &TailArgs) -> Result<ExitCode, CommandError> {
    let name = args
        .name
        .clone()
        .or_else(|| iteration_variable("RALPH_LOOP"));
    let found = match &name {
        Some(name) => Some(find_loop(name)?),
        None => None,
    };
    let bus = match &found {
        Some((state_dir, dir)) if args.project => project_bus_of(state_dir, dir)?,
        Some((_, dir)) => Bus::for_loop(dir),
        None => current_project_bus()?,
    };
    let loop_dir = found.filter(|_| !args.project).map(|(_, dir)| dir);
    let mut batch = bus.last(args.count)?;
    let mut watcher = FileWatcher::open();
    loop {
        match print(&bus, &batch, args.json) {
            // A reader such as `head` has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::Success);
            }
            Err(error) => {
                return Err(CommandError::broken(format!(
                    "cannot write output: {error}"
                )));
            }
            Ok(()) if !args.follow => return Ok(ExitCode::Success),
            Ok(()) => {}
        }
        // Check before reading, so that messages posted just before the end are not missed.
        let is_over = loop_dir
            .as_ref()
            .is_some_and(|dir| loop_holder(dir).is_none());
        watcher.watch(bus.path());
        let next = bus.read_after(batch.position)?;
        if next.messages.is_empty() && next.damaged.is_empty() {
            if is_over {
                return Ok(ExitCode::Success);
            }
            watcher.wait(POLL_INTERVAL);
        }
        batch = next;
    }
}

fn print(bus: &Bus, batch: &BusBatch, json: bool) -> io::Result<()> {
    for offset in &batch.damaged {
        warn(format!(
            "{}: skipped an unreadable line at byte {offset}",
            bus.path().display()
        ));
    }
    for message in &batch.messages {
        if json {
            write_json(&serde_json::to_string(message)?)?;
        } else {
            write_text(&format!("{}\n", line(message)))?;
        }
    }
    Ok(())
}

/// Returns the value of an environment variable. `None` if it is empty, or if this process does not
/// run inside an iteration.
fn iteration_variable(name: &str) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable("RALPH_ITERATION").and(variable(name))
}

fn find_loop(name: &str) -> Result<(StateDir, LoopDir), CommandError> {
    let state_dir = StateDir::locate()?;
    let dir = state_dir.find_loop(name)?;
    Ok((state_dir, dir))
}

fn project_bus_of(state_dir: &StateDir, dir: &LoopDir) -> Result<Bus, CommandError> {
    Ok(state_dir.project_bus(&git::project(&cache::read(dir)?.header.plan.workspace)))
}

fn current_project_bus() -> Result<Bus, CommandError> {
    Ok(StateDir::locate()?.project_bus(&git::project(&current_dir()?)))
}
