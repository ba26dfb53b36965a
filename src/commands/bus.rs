//! `ralph bus`: a message is posted, or the last ones are printed, also as more come.

use super::run::workspace;
use crate::agent::outbox;
use crate::cli::bus::{BusVerb, PostWords, TailWords};
use crate::git;
use crate::lifecycle::create::new_id;
use crate::lifecycle::failure::{Failure, warn};
use crate::process::file_watcher::Notices;
use crate::store::bus;
use crate::store::bus::{Bus, Heard, Post};
use crate::store::{Home, LoopDir, cache, holder};
use crate::ui::bus_line::line;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// How long a person waits for others who are posting.
const PATIENCE: Duration = Duration::from_secs(30);
/// A bus is looked at this often even if nothing was noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) fn bus(verb: &BusVerb) -> Result<i32, Failure> {
    match verb {
        BusVerb::Post(words) => post(words),
        BusVerb::Tail(words) => tail(words),
    }
}

fn post(words: &PostWords) -> Result<i32, Failure> {
    let text = words.text.join(" ");
    let Some(kind) = bus::kind(&words.kind) else {
        return Err(Failure::usage(
            format!("--type {:?} is no type", words.kind),
            "one word of letters, digits, _ and -, as in --type note",
        ));
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(
            "there are no words",
            "ralph bus post \"what others should know\"",
        ));
    }
    if text.chars().count() > bus::TEXT_MAX {
        return Err(Failure::usage(
            format!(
                "the message is too long: {} characters are the most",
                bus::TEXT_MAX
            ),
            "put it into a file, and post where that is",
        ));
    }
    if let Some(task_dir) = inside("RALPH_TASK_DIR") {
        if words.to.is_some() {
            return Err(Failure::usage(
                "--loop is for people: this is inside an iteration",
                "leave it out: the loop passes the message on to its own bus and its project's",
            ));
        }
        if bus::LEAVING.contains(&kind.as_str()) {
            return Err(Failure::usage(
                format!("--type {kind} is how the loop itself says that it leaves"),
                "post it as another type; ralph done and ralph blocked WHY speak to the loop",
            ));
        }
        outbox::leave(&PathBuf::from(task_dir), &kind, &text).map_err(Failure::broken)?;
        return Ok(0);
    }
    let buses = match &words.to {
        Some(name) => {
            let (home, dir) = found(name)?;
            vec![Bus::of_loop(&dir), project_of(&home, &dir)?]
        }
        None => vec![project_here()?],
    };
    let message = [Post::new(new_id()?, &kind, None, &text)];
    buses
        .iter()
        .try_for_each(|bus| bus.post(&message, PATIENCE))?;
    Ok(0)
}

fn tail(words: &TailWords) -> Result<i32, Failure> {
    let name = words.name.clone().or_else(|| inside("RALPH_LOOP"));
    let dir = match &name {
        Some(name) => Some(found(name)?),
        None => None,
    };
    let bus = match &dir {
        Some((home, dir)) if words.project => project_of(home, dir)?,
        Some((_, dir)) => Bus::of_loop(dir),
        None => project_here()?,
    };
    let whose = dir.filter(|_| !words.project).map(|(_, dir)| dir);
    let mut heard = bus.last(words.count)?;
    let mut notices = Notices::open();
    loop {
        match print(&bus, &heard, words.json) {
            // A reader that has heard enough is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
            Err(error) => return Err(Failure::broken(format!("cannot write the answer: {error}"))),
            Ok(()) if !words.follow => return Ok(0),
            Ok(()) => {}
        }
        // Asked before reading: what was posted before an ending is read after it was seen.
        let over = whose
            .as_ref()
            .is_some_and(|dir| holder(&dir.lock()).is_none());
        notices.watch(bus.path());
        let more = bus.after(heard.place)?;
        if more.posts.is_empty() && more.damaged.is_empty() {
            if over {
                return Ok(0);
            }
            notices.wait(LOOK_AGAIN);
        }
        heard = more;
    }
}

fn print(bus: &Bus, heard: &Heard, json: bool) -> io::Result<()> {
    for at in &heard.damaged {
        warn(format!(
            "{}: the line at byte {at} cannot be read, and is skipped",
            bus.path().display()
        ));
    }
    let mut out = io::stdout().lock();
    for post in &heard.posts {
        let text = if json {
            serde_json::to_string(post)?
        } else {
            line(post)
        };
        writeln!(out, "{text}")?;
    }
    out.flush()
}

/// A variable that only an agent in an iteration has.
fn inside(name: &str) -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    set("RALPH_ITERATION").and(set(name))
}

fn found(name: &str) -> Result<(Home, LoopDir), Failure> {
    let home = Home::locate()?;
    let dir = home.find(name)?;
    Ok((home, dir))
}

fn project_of(home: &Home, dir: &LoopDir) -> Result<Bus, Failure> {
    Ok(home.project_bus(&git::project(&cache::read(dir)?.header.plan.workspace)))
}

fn project_here() -> Result<Bus, Failure> {
    Ok(Home::locate()?.project_bus(&git::project(&workspace()?)))
}
