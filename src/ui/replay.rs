//! Reads journals with any content, as commands and runners do, for tests and fuzzers. Not part of
//! the API.

use super::status::{LoopRow, line, object, table, text};
use crate::engine::{Effect, Liveness};
use crate::store::{Journal, JournalLine, LoopDir, LoopView, cache};
use std::path::{Path, PathBuf};

/// A loop's directory, whose journal may have any content.
pub struct JournalReplay {
    dir: LoopDir,
}

/// The content of a journal: its header, its state, and its length up to the last valid line.
#[derive(Debug, PartialEq)]
pub struct JournalContent(LoopView);

impl JournalReplay {
    /// Wraps the path of a loop's directory.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: LoopDir::new(dir.to_owned()),
        }
    }

    /// Returns the path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.dir.journal()
    }

    /// Reads the journal as commands do.
    pub fn read(&self) -> Result<JournalContent, String> {
        cache::read(&self.dir)
            .map(JournalContent)
            .map_err(|error| error.to_string())
    }

    /// Writes the cache that the runner writes.
    pub fn save_cache(&self, content: &JournalContent) -> Result<(), String> {
        let LoopView {
            header,
            state,
            offset,
        } = &content.0;
        cache::save(&self.dir, *offset, header, state).map_err(|error| error.to_string())
    }

    /// Opens the journal as a runner does, which repairs it, and appends `lines`. Returns the
    /// content before the first of them.
    pub fn open_and_append(&self, lines: &[JournalLine]) -> Result<JournalContent, String> {
        let mut opened = Journal::open(&self.dir).map_err(|error| error.to_string())?;
        let offset = opened.journal.len();
        for line in lines {
            let appended = opened.journal.append(line);
            appended.map_err(|error| error.to_string())?;
        }
        Ok(JournalContent(LoopView {
            header: opened.header,
            state: opened.state,
            offset,
        }))
    }
}

impl JournalContent {
    /// Returns the length of the valid lines, in bytes.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    /// Returns everything that commands show about the loop, and the orders to its runner.
    pub fn show(&self) -> Vec<String> {
        let view = &self.0;
        let orders: Vec<Effect> = view.state.orders();
        let mut shown = vec![format!("{orders:?}")];
        for liveness in [Liveness::Idle, Liveness::Starting, Liveness::Running] {
            shown.push(object(view, liveness, "/loops/a").to_string());
            shown.push(text(view, liveness, "/loops/a", Some(80)));
            shown.push(line(&view.state, liveness));
            shown.push(table(vec![LoopRow::new(view, liveness)], Some(80)));
        }
        shown
    }
}
