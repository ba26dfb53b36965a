//! `ralph logs`: prints the agent's output and follows it.

use super::open_loop::open;
use crate::agent::decode::AgentProfile;
use crate::agent::pipeline::{OutputPipeline, OutputTail};
use crate::agent::redact::Redactor;
use crate::cli::LogsArgs;
use crate::engine::format::plural;
use crate::engine::plan::Agent;
use crate::engine::{ExitCode, Liveness, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::watcher::LoopWatcher;
use crate::os::regular_file;
use crate::store::activity::{ActivityItem, ActivityReader};
use crate::store::{LoopDir, LoopView, cache};
use crate::ui::act_printer::ActPrinter;
use crate::ui::gutter::GutterWriter;
use crate::ui::print::{copy_raw, write_cleaned, write_text};
use crate::ui::tty::{is_terminal, use_color};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

/// The interval at which the log is read even if no file event arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn logs(args: &LogsArgs) -> Result<ExitCode, CommandError> {
    let handle = open(&args.name)?;
    let newest = handle.view.state.iteration;
    let mut iteration = args.iteration.unwrap_or(newest);
    if args
        .iteration
        .is_some_and(|wanted| wanted == 0 || wanted > newest)
    {
        let existing = match newest {
            0 => "no iteration yet".to_owned(),
            _ => format!("only iterations 1 to {newest}"),
        };
        return Err(CommandError::usage(
            format!("--iteration {iteration}: {:?} has {existing}", args.name),
            "leave out --iteration to print the newest one",
        ));
    }
    let mut printer = LogPrinter::new(&handle.view, args.raw, iteration, handle.is_live());
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
                handle.dir.output_log(iteration),
                handle.dir.activity(iteration),
            ]);
        }
        let view = args.follow.then(|| cache::read(&handle.dir)).transpose()?;
        let newest = view.as_ref().map_or(iteration, |view| view.state.iteration);
        if printer.copy(&handle.dir, iteration).is_err() {
            return Ok(ExitCode::Success);
        }
        if newest > iteration && args.iteration.is_none() {
            iteration += 1;
            if printer.print_header(handle.dir.name(), iteration).is_err() {
                return Ok(ExitCode::Success);
            }
            let view = view.as_ref().unwrap_or(&handle.view);
            printer = LogPrinter::new(view, args.raw, iteration, !is_over);
        } else if is_over || (args.iteration.is_some() && newest > iteration) {
            let _ = printer.close();
            let state = &view.as_ref().unwrap_or(&handle.view).state;
            if args.follow && is_over && state.status(Liveness::Idle) == Status::Crashed {
                let name = handle.dir.name();
                let _ = printer.print_line(&format!(
                    "{name}: crashed; run `ralph resume {name}` to continue it"
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
    /// Copies the bytes that the agent printed.
    Output(OutputCopy),
    /// Renders the acts of an agent with an event stream.
    Acts(Box<ActLog>),
}

impl LogPrinter {
    /// Creates the printer for an iteration. `raw` selects the output as printed. `is_held` tells
    /// whether a runner holds the loop's lock.
    fn new(view: &LoopView, raw: bool, iteration: u32, is_held: bool) -> Self {
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
            return Self::Acts(Box::new(ActLog {
                agent: agent.clone(),
                workspace: plan.workspace.clone(),
                is_over: !is_held || iteration < state.iteration,
                source: None,
                printer: ActPrinter::new("", use_color(), false),
            }));
        }
        Self::Output(OutputCopy {
            log: None,
            terminal: is_terminal().then(|| GutterWriter::new("")),
            within_line: false,
        })
    }

    /// Prints the output that the agent has added since the last call.
    fn copy(&mut self, dir: &LoopDir, iteration: u32) -> io::Result<()> {
        match self {
            Self::Output(output) => output.copy(dir, iteration),
            Self::Acts(acts) => acts.copy(dir, iteration),
        }
    }

    /// Prints a header that names the iteration.
    fn print_header(&mut self, name: &str, iteration: u32) -> io::Result<()> {
        self.close()?;
        self.print_line(&format!("{name}: iteration {iteration}"))
    }

    /// Prints a line of ralph's own, starting on a new line.
    fn print_line(&self, text: &str) -> io::Result<()> {
        let newline = match self {
            Self::Output(output) if output.within_line => "\n",
            _ => "",
        };
        write_text(&format!("{newline}[ralph] {text}\n"))
    }

    fn close(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        match self {
            Self::Output(output) => {
                if let Some(lines) = &mut output.terminal {
                    lines.flush(&mut rest);
                }
            }
            Self::Acts(acts) => acts.close(&mut rest),
        }
        write_cleaned(&rest)
    }
}

/// Copies the output of one iteration.
struct OutputCopy {
    /// The output log. `None` until the file exists.
    log: Option<File>,
    /// The filter that removes escape sequences that could reprogram a terminal. `None` for files
    /// and pipes, which get the bytes unchanged.
    terminal: Option<GutterWriter>,
    /// Whether the last line that was copied unchanged is incomplete.
    within_line: bool,
}

impl OutputCopy {
    fn copy(&mut self, dir: &LoopDir, iteration: u32) -> io::Result<()> {
        if self.log.is_none() {
            self.log = regular_file::open(&dir.output_log(iteration), false).ok();
        }
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        read_pieces(log, &mut |bytes| {
            let Some(terminal) = &mut self.terminal else {
                self.within_line = !bytes.ends_with(b"\n");
                return copy_raw(bytes);
            };
            let mut lines = Vec::new();
            terminal.feed(bytes, &mut lines);
            write_cleaned(&lines)
        })
    }
}

/// Prints the acts of one iteration.
struct ActLog {
    agent: Agent,
    workspace: PathBuf,
    /// Whether the iteration is over. Nothing more is written after that.
    is_over: bool,
    /// The source of acts. `None` until the activity file or the output log exists.
    source: Option<ActSource>,
    printer: ActPrinter,
}

/// The file from which acts are read.
enum ActSource {
    Activity(ActivityReader),
    /// The agent's own output. Used if an older version of ralph ran the iteration, or if a crash
    /// or a full disk cut its activity file short.
    Output(File, Box<OutputPipeline>),
}

impl ActSource {
    /// Opens the iteration's activity file or, if it is missing, the output log. Returns `None` if
    /// neither exists. The activity file is created first, so a log without one is from an older
    /// version.
    fn open(acts: &ActLog, dir: &LoopDir, iteration: u32) -> Option<Self> {
        let log = regular_file::open(&dir.output_log(iteration), false).ok();
        let activity = ActivityReader::open(&dir.activity(iteration));
        let is_usable =
            |activity: &ActivityReader| !acts.is_over || log.is_none() || activity.is_complete();
        if let Some(activity) = activity.filter(is_usable) {
            return Some(Self::Activity(activity));
        }
        let pipeline = OutputPipeline::for_log(
            AgentProfile::new(&acts.agent),
            &acts.workspace,
            &Redactor::from_env(),
        );
        Some(Self::Output(log?, Box::new(pipeline)))
    }
}

impl ActLog {
    fn copy(&mut self, dir: &LoopDir, iteration: u32) -> io::Result<()> {
        if self.source.is_none() {
            self.source = ActSource::open(self, dir, iteration);
        }
        let printer = &mut self.printer;
        let mut lines = Vec::new();
        match &mut self.source {
            None => return Ok(()),
            Some(ActSource::Activity(activity)) => activity.read(&mut |item| match item {
                ActivityItem::Act { act, .. } => printer.print(&act, &mut lines),
                ActivityItem::Dropped(count) => {
                    printer.flush(&mut lines);
                    let (name, acts) = (dir.name(), plural(count, "act"));
                    let note = format!(
                        "[ralph] {name}: {acts} dropped here; --raw prints the agent's complete output\n"
                    );
                    lines.extend_from_slice(note.as_bytes());
                }
            })?,
            Some(ActSource::Output(log, pipeline)) => read_pieces(log, &mut |bytes| {
                pipeline.feed(bytes, &mut |act| printer.print(act, &mut lines));
                write_cleaned(&std::mem::take(&mut lines))
            })?,
        }
        write_cleaned(&lines)
    }

    fn close(&mut self, rest: &mut Vec<u8>) {
        let printer = &mut self.printer;
        if let Some(ActSource::Output(_, pipeline)) = self.source.take() {
            pipeline.finish(OutputTail::default(), &mut |act| printer.print(act, rest));
        }
        printer.flush(rest);
    }
}

/// Reads a file to its end, in pieces.
fn read_pieces(file: &mut File, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => each(&buffer[..count])?,
        }
    }
}
