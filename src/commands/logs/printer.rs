//! Prints the output of one iteration: its acts, or the bytes that its agent printed.

use crate::agent::decode::AgentProfile;
use crate::agent::pipeline::{OutputPipeline, OutputTail};
use crate::agent::redact::Redactor;
use crate::engine::format::plural;
use crate::engine::plan::Agent;
use crate::os::regular_file;
use crate::store::activity::{ActivityItem, ActivityReader};
use crate::store::{LoopDir, LoopView};
use crate::ui::act_printer::ActPrinter;
use crate::ui::gutter::GutterWriter;
use crate::ui::hang;
use crate::ui::print::{copy_raw, write_cleaned, write_json, write_text};
use crate::ui::screen_lines::ScreenLines;
use crate::ui::show_json::act_object;
use crate::ui::tty::{self, is_terminal, use_color};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// How output is printed.
#[derive(Clone, Copy, Default)]
pub(super) struct OutputStyle {
    /// Prints the bytes that the agent printed.
    pub(super) raw: bool,
    /// Prints one JSON object per act.
    pub(super) json: bool,
    /// Leaves out acts before this time, in milliseconds since 1970.
    pub(super) since_ms: Option<i64>,
}

/// Prints the output of one iteration.
pub(super) enum LogPrinter {
    /// Copies the bytes that the agent printed.
    Output(OutputCopy),
    /// Renders the acts of an agent with an event stream.
    Acts(Box<ActLog>),
    /// Prints acts as JSON.
    Json(JsonActs),
}

impl LogPrinter {
    /// Creates the printer for an iteration. `is_held` tells whether a runner holds the loop's lock.
    pub(super) fn new(view: &LoopView, style: OutputStyle, iteration: u32, is_held: bool) -> Self {
        if style.json {
            return Self::Json(JsonActs {
                reader: None,
                iteration,
                since_ms: style.since_ms,
            });
        }
        let (state, plan) = (&view.state, &view.state.plan);
        let record = state.recent.iter().find(|known| known.number == iteration);
        let name = record
            .and_then(|record| record.agent.as_ref())
            .unwrap_or(&state.agent().name);
        let agent = plan
            .agents()
            .find(|agent| agent.name == *name)
            .unwrap_or(&plan.agent);
        if agent.dialect.is_stream() && !style.raw {
            return Self::Acts(Box::new(ActLog {
                agent: agent.clone(),
                workspace: plan.workspace.clone(),
                is_over: !is_held || iteration < state.iteration,
                since_ms: style.since_ms,
                source: None,
                printer: act_printer(),
            }));
        }
        let filter = if agent.terminal && !style.raw {
            OutputFilter::Screen(Box::default())
        } else if is_terminal() {
            OutputFilter::Lines(GutterWriter::new(""))
        } else {
            OutputFilter::None
        };
        Self::Output(OutputCopy {
            log: None,
            filter,
            within_line: false,
        })
    }

    /// Prints the output that the agent has added since the last call.
    pub(super) fn copy(&mut self, dir: &LoopDir, iteration: u32) -> io::Result<()> {
        match self {
            Self::Output(output) => output.copy(dir, iteration),
            Self::Acts(acts) => acts.copy(dir, iteration),
            Self::Json(acts) => acts.copy(dir),
        }
    }

    /// Prints a line of ralph's own, starting on a new line.
    pub(super) fn print_line(&mut self, text: &str) -> io::Result<()> {
        let is_within_line = match self {
            Self::Output(output) => std::mem::take(&mut output.within_line),
            _ => false,
        };
        let newline = if is_within_line { "\n" } else { "" };
        let text = hang(text, tty::width(), "[ralph] ".len(), "[ralph] ".len());
        write_text(&format!("{newline}[ralph] {text}\n"))
    }

    /// Prints the last line of the acts so far, even if it is unfinished.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        if let Self::Acts(acts) = self {
            acts.printer.flush(&mut rest);
        }
        write_cleaned(&rest)
    }

    /// Prints the last line, even if it is unfinished. Nothing can be printed after that.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        match self {
            Self::Output(output) => match &mut output.filter {
                OutputFilter::None => {}
                OutputFilter::Lines(lines) => lines.flush(&mut rest),
                OutputFilter::Screen(lines) => lines.flush(&mut rest),
            },
            Self::Acts(acts) => acts.close(&mut rest),
            Self::Json(_) => {}
        }
        write_cleaned(&rest)
    }
}

/// Copies the output of one iteration.
pub(super) struct OutputCopy {
    /// The output log. `None` until the file exists.
    log: Option<File>,
    filter: OutputFilter,
    /// Whether the last line that was copied unchanged is incomplete.
    within_line: bool,
}

/// What happens to the bytes that an agent printed.
enum OutputFilter {
    /// Files and pipes get them unchanged.
    None,
    /// Escape sequences that could reprogram a terminal are removed.
    Lines(GutterWriter),
    /// What an agent has drawn on its terminal becomes lines of text.
    Screen(Box<ScreenLines>),
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
            let mut lines = Vec::new();
            match &mut self.filter {
                OutputFilter::None => {
                    self.within_line = !bytes.ends_with(b"\n");
                    return copy_raw(bytes);
                }
                OutputFilter::Lines(filter) => filter.feed(bytes, &mut lines),
                OutputFilter::Screen(filter) => filter.feed(bytes, &mut lines),
            }
            write_cleaned(&lines)
        })
    }
}

/// Prints the acts of one iteration as JSON, one object per line.
pub(super) struct JsonActs {
    /// The activity file. `None` until it exists.
    reader: Option<ActivityReader>,
    iteration: u32,
    since_ms: Option<i64>,
}

impl JsonActs {
    fn copy(&mut self, dir: &LoopDir) -> io::Result<()> {
        if self.reader.is_none() {
            self.reader = ActivityReader::open(&dir.activity(self.iteration));
        }
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let mut objects = Vec::new();
        reader.read(&mut |item| match item {
            ActivityItem::Act { at_ms, act }
                if self.since_ms.is_none_or(|since| at_ms >= since) =>
            {
                objects.extend(act_object(at_ms, &act));
            }
            ActivityItem::Act { .. } => {}
            ActivityItem::Dropped(count) => {
                objects.push(serde_json::json!({"act": "dropped", "count": count}));
            }
        })?;
        for mut object in objects {
            object["iteration"] = self.iteration.into();
            write_json(&object.to_string())?;
        }
        Ok(())
    }
}

/// Prints the acts of one iteration.
pub(super) struct ActLog {
    agent: Agent,
    workspace: PathBuf,
    /// Whether the iteration is over. Nothing more is written after that.
    is_over: bool,
    /// Acts before this time are left out.
    since_ms: Option<i64>,
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
                ActivityItem::Act { at_ms, act } => {
                    if self.since_ms.is_none_or(|since| at_ms >= since) {
                        printer.print_at(&act, Some(at_ms), &mut lines);
                    }
                }
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

/// Returns the printer of acts: for people on a terminal, and else for scripts.
fn act_printer() -> ActPrinter {
    let mut printer = ActPrinter::for_view("", use_color());
    if let Some(width) = tty::width().filter(|_| use_color()) {
        printer.set_width(width);
    }
    printer
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
