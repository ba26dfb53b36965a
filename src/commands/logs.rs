//! `ralph logs`: prints the agent's output and follows it.

use super::open_loop::open;
use crate::agent::decode::{AgentProfile, OutputDecoder};
use crate::cli::LogsArgs;
use crate::engine::{ExitCode, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::watcher::LoopWatcher;
use crate::store::{LoopDir, LoopView, cache};
use crate::ui::act_printer::ActPrinter;
use crate::ui::gutter::GutterWriter;
use crate::ui::tty::use_color;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

/// How often to read the log even without a file event.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn logs(args: &LogsArgs) -> Result<ExitCode, CommandError> {
    let handle = open(&args.name)?;
    let newest = handle.view.state.iteration;
    let mut iteration = args.iteration.unwrap_or(newest);
    if args
        .iteration
        .is_some_and(|wanted| wanted == 0 || wanted > newest)
    {
        return Err(CommandError::usage(
            format!(
                "--iteration {iteration}: {:?} has iterations 1 to {newest}",
                args.name
            ),
            "leave --iteration out for the newest",
        ));
    }
    let mut printer = LogPrinter::new(&handle.view, args.raw, iteration);
    let mut log_file = None;
    let mut watcher = args
        .follow
        .then(|| LoopWatcher::new(&handle.dir))
        .transpose()
        .map_err(CommandError::broken)?;
    loop {
        // Check before reading, so that output printed just before the end is not missed.
        let is_over = watcher.as_mut().is_none_or(LoopWatcher::is_over);
        if let Some(watcher) = &mut watcher {
            // Watch before reading, so that later changes are noticed.
            watcher.watch(&[
                handle.dir.journal(),
                handle.dir.iteration_dir(iteration).join("output.log"),
            ]);
        }
        let view = args.follow.then(|| cache::read(&handle.dir)).transpose()?;
        let newest = view.as_ref().map_or(iteration, |view| view.state.iteration);
        if printer.copy(&handle.dir, iteration, &mut log_file).is_err() {
            return Ok(ExitCode::Success);
        }
        if newest > iteration && args.iteration.is_none() {
            iteration += 1;
            log_file = None;
            if printer.print_header(handle.dir.name(), iteration).is_err() {
                return Ok(ExitCode::Success);
            }
            printer = LogPrinter::new(view.as_ref().unwrap_or(&handle.view), args.raw, iteration);
        } else if is_over || (args.iteration.is_some() && newest > iteration) {
            let _ = printer.close();
            let state = &view.as_ref().unwrap_or(&handle.view).state;
            if args.follow && is_over && state.status(false) == Status::Crashed {
                let name = handle.dir.name();
                let _ = printer.print_line(&format!(
                    "{name}: crashed; ralph resume {name} continues it"
                ));
            }
            return Ok(ExitCode::Success);
        } else if let Some(watcher) = &mut watcher {
            watcher.wait(POLL_INTERVAL);
        }
    }
}

/// Prints the output of one iteration.
enum LogPrinter {
    /// Unchanged, for files and pipes.
    Bytes {
        /// Whether the last line is still incomplete.
        within_line: bool,
    },
    /// Without escape sequences that could reprogram a terminal.
    Text(GutterWriter),
    /// The agent's event stream, rendered for people.
    Acts(Box<(OutputDecoder, ActPrinter)>),
}

impl LogPrinter {
    fn new(view: &LoopView, raw: bool, iteration: u32) -> Self {
        let (state, plan) = (&view.state, &view.state.plan);
        let record = state.recent.iter().find(|known| known.number == iteration);
        let name = record
            .and_then(|record| record.agent.as_ref())
            .unwrap_or(&state.agent().name);
        let agent = plan
            .agents()
            .find(|agent| agent.name == *name)
            .unwrap_or(&plan.agent);
        if agent.dialect.is_stream() && !raw {
            let decoder = AgentProfile::new(agent).decoder(&plan.workspace, &[], String::new);
            return Self::Acts(Box::new((decoder, ActPrinter::new("", use_color(), false))));
        }
        if io::stdout().is_terminal() {
            Self::Text(GutterWriter::new(""))
        } else {
            Self::Bytes { within_line: false }
        }
    }

    fn copy(&mut self, dir: &LoopDir, iteration: u32, open: &mut Option<File>) -> io::Result<()> {
        if open.is_none() {
            *open = File::open(dir.iteration_dir(iteration).join("output.log")).ok();
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
                    let (decoder, printer) = &mut **both;
                    decoder.feed(bytes, &mut |act| printer.print(&act, &mut lines));
                }
            }
            out.write_all(&lines)?;
        }
    }

    /// Prints which iteration's output follows.
    fn print_header(&mut self, name: &str, iteration: u32) -> io::Result<()> {
        self.close()?;
        self.print_line(&format!("{name}: iteration {iteration}"))
    }

    /// Prints a line of ralph's own, on a new line.
    fn print_line(&self, text: &str) -> io::Result<()> {
        let newline = if matches!(self, Self::Bytes { within_line: true }) {
            "\n"
        } else {
            ""
        };
        writeln!(io::stdout(), "{newline}[ralph] {text}")
    }

    fn close(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        match self {
            Self::Bytes { .. } => {}
            Self::Text(stream) => stream.flush(&mut rest),
            Self::Acts(both) => {
                let (decoder, printer) = &mut **both;
                decoder.finish(&mut |act| printer.print(&act, &mut rest));
                printer.flush(&mut rest);
            }
        }
        io::stdout().write_all(&rest)
    }
}
