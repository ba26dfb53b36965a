//! Prints iterations one after another, and between them what ralph did: checks, rests, commits and the outcome.

use super::printer::{LogPrinter, OutputStyle};
use crate::engine::{Event, Liveness, Status};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::LoopHandle;
use crate::store::{JournalLine, LoopDir, LoopView, cache};
use crate::ui::event_line;
use crate::ui::print::write_json;
use std::fs;
use std::io;

/// The log of a loop, from one iteration on.
pub(super) struct LogStream<'a> {
    dir: &'a LoopDir,
    style: OutputStyle,
    /// The first iteration that is printed; 0 for everything.
    first: u32,
    view: LoopView,
    /// The iteration whose output is printed, and its printer.
    current: Option<(u32, LogPrinter)>,
    /// Whether an iteration has been printed.
    has_printed: bool,
    /// How many lines of the journal have been read, and its length then.
    lines_read: usize,
    length: u64,
}

/// A line of the journal, and what the console would say about it.
struct LogLine {
    line: JournalLine,
    texts: Vec<String>,
}

impl<'a> LogStream<'a> {
    pub(super) fn new(handle: &'a LoopHandle, first: u32, style: OutputStyle) -> Self {
        Self {
            dir: &handle.dir,
            style,
            first,
            view: handle.view.clone(),
            current: None,
            has_printed: false,
            lines_read: 0,
            length: 0,
        }
    }

    /// Returns the iteration whose output is printed.
    pub(super) fn iteration(&self) -> u32 {
        self.current.as_ref().map_or(1, |(iteration, _)| *iteration)
    }

    /// Prints what is new. `is_held` tells whether a runner holds the loop's lock. Returns whether
    /// the newest iteration is being watched already.
    pub(super) fn advance(&mut self, is_held: bool) -> Result<io::Result<bool>, CommandError> {
        let before = self.iteration();
        for line in self.read_journal()? {
            if let Err(error) = self.print(&line, is_held) {
                return Ok(Err(error));
            }
        }
        let copied = self.copy();
        Ok(copied.map(|()| before == self.iteration()))
    }

    /// Returns the lines that were added to the journal.
    fn read_journal(&mut self) -> Result<Vec<LogLine>, CommandError> {
        let length = fs::metadata(self.dir.journal()).map_or(0, |data| data.len());
        if length == self.length {
            return Ok(Vec::new());
        }
        let (mut number, mut lines) = (0, Vec::new());
        let read = self.lines_read;
        self.view = cache::replay(self.dir, &mut |line, state| {
            number += 1;
            if number > read {
                let texts = event_line::lines(&line.event, state).into_iter();
                lines.push(LogLine {
                    line: line.clone(),
                    texts: texts.map(|(text, _)| text).collect(),
                });
            }
        })?;
        (self.lines_read, self.length) = (number, length);
        Ok(lines)
    }

    fn print(&mut self, LogLine { line, texts }: &LogLine, is_held: bool) -> io::Result<()> {
        let is_shown = self.style.since_ms.is_none_or(|since| line.at_ms >= since);
        if let Event::Started { iteration, .. } = line.event {
            self.close()?;
            if iteration < self.first {
                return Ok(());
            }
            if self.style.json {
                print_event(line, is_shown)?;
            } else if self.has_printed || self.first == 0 {
                let header = format!("{}: iteration {iteration}", self.dir.name());
                self.print_text(&header, is_shown)?;
            }
            let printer = LogPrinter::new(&self.view, self.style, iteration, is_held);
            self.current = Some((iteration, printer));
            self.has_printed = true;
            return Ok(());
        }
        if self.first > 0 && self.current.is_none() {
            return Ok(());
        }
        if self.style.json {
            self.copy()?;
            return print_event(line, is_shown);
        }
        if texts.is_empty() {
            return Ok(());
        }
        self.copy()?;
        if let Some((_, printer)) = &mut self.current {
            printer.flush()?;
        }
        for text in texts {
            self.print_text(&format!("{}: {text}", self.dir.name()), is_shown)?;
        }
        Ok(())
    }

    fn print_text(&mut self, text: &str, is_shown: bool) -> io::Result<()> {
        if !is_shown {
            return Ok(());
        }
        match &mut self.current {
            Some((_, printer)) => printer.print_line(text),
            None => LogPrinter::new(&self.view, self.style, 0, false).print_line(text),
        }
    }

    fn copy(&mut self) -> io::Result<()> {
        let Some((iteration, printer)) = &mut self.current else {
            return Ok(());
        };
        printer.copy(self.dir, *iteration)
    }

    fn close(&mut self) -> io::Result<()> {
        self.copy()?;
        match self.current.take() {
            Some((_, mut printer)) => printer.close(),
            None => Ok(()),
        }
    }

    /// Prints the rest. If the loop was followed and has not ended, says how to continue it.
    pub(super) fn finish(&mut self, followed: bool) -> io::Result<()> {
        self.close()?;
        let status = self.view.state.status(Liveness::Idle);
        let is_open = matches!(status, Status::Crashed | Status::Paused);
        if followed && !self.style.json && is_open {
            let (name, status) = (self.dir.name(), status.as_str());
            let text = format!("{name}: {status}; run `ralph resume {name}` to continue it");
            self.print_text(&text, true)?;
        }
        Ok(())
    }
}

fn print_event(line: &JournalLine, is_shown: bool) -> io::Result<()> {
    if is_shown {
        write_json(&line.to_json())
    } else {
        Ok(())
    }
}
