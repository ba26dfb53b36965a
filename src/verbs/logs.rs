//! `ralph logs`: what the agent printed, also while it prints.

use super::failure::Failure;
use super::visit::Visit;
use crate::cli::LogsWords;
use crate::show::stream::Stream;
use crate::store::{LoopDir, cache, holder};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

pub(super) fn logs(words: &LogsWords) -> Result<i32, Failure> {
    let visit = Visit::to(&words.name)?;
    let newest = visit.view.state.iteration;
    let mut iteration = words.iteration.unwrap_or(newest);
    if words.iteration.is_some_and(|wanted| wanted == 0 || wanted > newest) {
        return Err(Failure::usage(
            format!("--iteration {iteration}: {:?} has iterations 1 to {newest}", words.name),
            "leave it out for the newest",
        ));
    }
    let mut printer = Printer::new();
    let mut open = None;
    loop {
        // Asked before reading: what was printed before an ending is read after it was seen.
        let over = !words.follow || holder(&visit.dir.lock()).is_none();
        let newest = if words.follow { cache::read(&visit.dir)?.state.iteration } else { iteration };
        if printer.copy(&visit.dir, iteration, &mut open).is_err() {
            return Ok(0);
        }
        if newest > iteration && words.iteration.is_none() {
            iteration += 1;
            open = None;
            if printer.head(visit.dir.name(), iteration).is_err() {
                return Ok(0);
            }
        } else if over || (words.iteration.is_some() && newest > iteration) {
            let _ = printer.close();
            return Ok(0);
        } else {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Raw bytes for files and pipes; for a terminal, nothing that could reprogram it.
struct Printer {
    stream: Option<Stream>,
    /// Whether a line has begun and not ended.
    within_line: bool,
}

impl Printer {
    fn new() -> Self {
        Self { stream: io::stdout().is_terminal().then(|| Stream::new("")), within_line: false }
    }

    fn copy(&mut self, dir: &LoopDir, iteration: u32, open: &mut Option<File>) -> io::Result<()> {
        if open.is_none() {
            *open = File::open(dir.iteration(iteration).join("output.log")).ok();
        }
        let Some(log) = open else { return Ok(()) };
        let (mut buffer, mut out) = (vec![0; 64 * 1024], io::stdout().lock());
        loop {
            let count = log.read(&mut buffer)?;
            match &mut self.stream {
                _ if count == 0 => return out.flush(),
                None => {
                    out.write_all(&buffer[..count])?;
                    self.within_line = buffer[count - 1] != b'\n';
                }
                Some(stream) => {
                    let mut lines = Vec::new();
                    stream.feed(&buffer[..count], &mut lines);
                    out.write_all(&lines)?;
                }
            }
        }
    }

    /// Says whose output follows.
    fn head(&mut self, name: &str, iteration: u32) -> io::Result<()> {
        self.close()?;
        let gap = if std::mem::take(&mut self.within_line) { "\n" } else { "" };
        writeln!(io::stdout(), "{gap}[ralph] {name}: iteration {iteration}")
    }

    fn close(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        if let Some(stream) = &mut self.stream {
            stream.flush(&mut rest);
        }
        io::stdout().write_all(&rest)
    }
}
