//! `ralph logs`: what the agent printed, also while it prints.

use crate::agent::decode::{Habits, Reader};
use crate::cli::LogsWords;
use crate::engine::Status;
use crate::lifecycle::failure::Failure;
use crate::lifecycle::handle::Visit;
use crate::lifecycle::watch::Ear;
use crate::store::{LoopDir, View, cache};
use crate::ui::act_printer::Deeds;
use crate::ui::console::colours;
use crate::ui::text_stream::Stream;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

/// A log is looked at this often even if nothing was heard.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) fn logs(words: &LogsWords) -> Result<i32, Failure> {
    let visit = Visit::to(&words.name)?;
    let newest = visit.view.state.iteration;
    let mut iteration = words.iteration.unwrap_or(newest);
    if words
        .iteration
        .is_some_and(|wanted| wanted == 0 || wanted > newest)
    {
        return Err(Failure::usage(
            format!(
                "--iteration {iteration}: {:?} has iterations 1 to {newest}",
                words.name
            ),
            "leave it out for the newest",
        ));
    }
    let mut printer = Printer::new(&visit.view, words.raw, iteration);
    let mut open = None;
    let mut ear = words
        .follow
        .then(|| Ear::on(&visit.dir))
        .transpose()
        .map_err(Failure::broken)?;
    loop {
        // Asked before reading: what was printed before an ending is read after it was seen.
        let over = ear.as_ref().is_none_or(Ear::is_gone);
        if let Some(ear) = &mut ear {
            // Listened to before reading, as well: what comes after is then heard of.
            ear.watch(&[
                visit.dir.journal(),
                visit.dir.iteration(iteration).join("output.log"),
            ]);
        }
        let view = words.follow.then(|| cache::read(&visit.dir)).transpose()?;
        let newest = view.as_ref().map_or(iteration, |view| view.state.iteration);
        if printer.copy(&visit.dir, iteration, &mut open).is_err() {
            return Ok(0);
        }
        if newest > iteration && words.iteration.is_none() {
            iteration += 1;
            open = None;
            if printer.head(visit.dir.name(), iteration).is_err() {
                return Ok(0);
            }
            printer = Printer::new(view.as_ref().unwrap_or(&visit.view), words.raw, iteration);
        } else if over || (words.iteration.is_some() && newest > iteration) {
            let _ = printer.close();
            let state = &view.as_ref().unwrap_or(&visit.view).state;
            if words.follow && over && state.status(false) == Status::Crashed {
                let name = visit.dir.name();
                let _ = printer.say(&format!("{name}: crashed; ralph resume {name} goes on"));
            }
            return Ok(0);
        } else if let Some(ear) = &ear {
            ear.wait(LOOK_AGAIN);
        }
    }
}

/// How output is printed.
enum Printer {
    /// As it is, for files and pipes.
    Bytes {
        /// Whether a line has begun and not ended.
        within_line: bool,
    },
    /// Nothing that could reprogram a terminal.
    Text(Stream),
    /// What an agent's stream of events means.
    Acts(Box<(Reader, Deeds)>),
}

impl Printer {
    fn new(view: &View, raw: bool, iteration: u32) -> Self {
        let (state, plan) = (&view.state, &view.state.plan);
        let who = state.recent.iter().find(|known| known.number == iteration);
        let who = who
            .and_then(|known| known.agent.as_ref())
            .unwrap_or(&state.agent().name);
        let agent = plan
            .agents()
            .find(|agent| agent.name == *who)
            .unwrap_or(&plan.agent);
        if agent.dialect.is_stream() && !raw {
            let reader = Habits::of(agent).reader(&plan.workspace, &[], String::new);
            return Self::Acts(Box::new((reader, Deeds::new("", colours(), false))));
        }
        if io::stdout().is_terminal() {
            Self::Text(Stream::new(""))
        } else {
            Self::Bytes { within_line: false }
        }
    }

    fn copy(&mut self, dir: &LoopDir, iteration: u32, open: &mut Option<File>) -> io::Result<()> {
        if open.is_none() {
            *open = File::open(dir.iteration(iteration).join("output.log")).ok();
        }
        let Some(log) = open else { return Ok(()) };
        let (mut buffer, mut out) = (vec![0; 64 * 1024], io::stdout().lock());
        loop {
            let count = log.read(&mut buffer)?;
            if count == 0 {
                return out.flush();
            }
            let bytes = &buffer[..count];
            let mut lines = Vec::new();
            match self {
                Self::Bytes { within_line } => {
                    out.write_all(bytes)?;
                    *within_line = bytes[count - 1] != b'\n';
                }
                Self::Text(stream) => stream.feed(bytes, &mut lines),
                Self::Acts(both) => {
                    let (reader, deeds) = &mut **both;
                    reader.feed(bytes, &mut |act| deeds.act(&act, &mut lines));
                }
            }
            out.write_all(&lines)?;
        }
    }

    /// Says whose output follows.
    fn head(&mut self, name: &str, iteration: u32) -> io::Result<()> {
        self.close()?;
        self.say(&format!("{name}: iteration {iteration}"))
    }

    /// Says something that the agent did not.
    fn say(&self, words: &str) -> io::Result<()> {
        let gap = if matches!(self, Self::Bytes { within_line: true }) {
            "\n"
        } else {
            ""
        };
        writeln!(io::stdout(), "{gap}[ralph] {words}")
    }

    fn close(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        match self {
            Self::Bytes { .. } => {}
            Self::Text(stream) => stream.flush(&mut rest),
            Self::Acts(both) => {
                let (reader, deeds) = &mut **both;
                reader.finish(&mut |act| deeds.act(&act, &mut rest));
                deeds.flush(&mut rest);
            }
        }
        io::stdout().write_all(&rest)
    }
}
