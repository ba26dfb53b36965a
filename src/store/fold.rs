//! Folds the bytes of a journal into a state, and finds where an incomplete last line starts.

use super::error::IoContext;
use super::journal_line::{FormatMarker, VERSION};
use super::lines::{LINE_MAX, read_line};
use super::{JournalHeader, JournalLine, Result, StoreError};
use crate::engine::State;
use crate::engine::plan::RULES;
use crate::os::regular_file;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A state, and how far into the journal it reaches.
pub(super) struct FoldResult {
    pub(super) state: State,
    /// The byte offset at which the last valid line ends.
    pub(super) offset: u64,
    /// Number of bytes after the last valid line; 0 if the journal is not torn.
    pub(super) torn: u64,
}

/// The first line of a journal. Only the ID is parsed, because parsing the long plan takes time.
pub(super) struct RawHeader {
    raw: Vec<u8>,
    /// The loop's ID; empty if the line has none.
    pub(super) id: String,
}

impl RawHeader {
    /// Parses the whole header, including the plan. `path` is for error messages.
    pub(super) fn parse(&self, path: &Path) -> Result<JournalHeader> {
        let damaged = |e: serde_json::Error| StoreError::Damaged {
            path: path.to_owned(),
            line: 1,
            detail: e.to_string(),
        };
        let header: JournalHeader = serde_json::from_slice(&self.raw).map_err(damaged)?;
        if header.plan.rules > RULES {
            return Err(StoreError::NewerVersion {
                path: path.to_owned(),
                version: header.plan.rules.into(),
            });
        }
        Ok(header)
    }

    /// Returns the line's length in bytes, including the newline. This is the offset of the second
    /// line.
    pub(super) fn len(&self) -> u64 {
        self.raw.len() as u64
    }
}

/// Opens a journal for reading.
pub(super) fn open_journal(path: &Path) -> Result<BufReader<File>> {
    match regular_file::open(path, false) {
        Err(error) if regular_file::is_not_regular(&error) => Err(StoreError::NotAJournal {
            path: path.to_owned(),
        }),
        file => Ok(BufReader::new(file.context("open", path)?)),
    }
}

/// Reads the first line and checks that this version can read the journal. No caller may change the
/// file before this check has passed.
pub(super) fn read_header(reader: &mut impl BufRead, path: &Path) -> Result<RawHeader> {
    let mut raw = Vec::new();
    // A file without line ends must not fill the memory.
    let mut bounded = reader.by_ref().take(LINE_MAX as u64);
    bounded.read_until(b'\n', &mut raw).context("read", path)?;
    let not_a_journal = || StoreError::NotAJournal {
        path: path.to_owned(),
    };
    let marker: FormatMarker = serde_json::from_slice(&raw).map_err(|_| not_a_journal())?;
    if marker.ralph != "journal" {
        return Err(not_a_journal());
    }
    if marker.version > VERSION {
        return Err(StoreError::NewerVersion {
            path: path.to_owned(),
            version: marker.version,
        });
    }
    if raw.last() != Some(&b'\n') {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            line: 1,
            detail: "the line does not end with a newline".to_owned(),
        });
    }
    Ok(RawHeader { raw, id: marker.id })
}

/// The part of a journal to fold.
#[derive(Clone, Copy)]
pub(super) struct FoldRange {
    /// The offset of the first line, where the reader is positioned.
    pub(super) start: u64,
    /// The number of lines before `start`, for error messages.
    pub(super) lines_before: usize,
    /// The offset at which to stop, even if the file is longer.
    pub(super) end: u64,
}

/// Folds the lines of a range, or up to the end of the file if that comes first. Passes each line to
/// `visit`, with the state after it.
pub(super) fn fold_lines(
    reader: &mut impl BufRead,
    path: &Path,
    mut state: State,
    range: FoldRange,
    visit: &mut dyn FnMut(&JournalLine, &State),
) -> Result<FoldResult> {
    let mut offset = range.start;
    let mut raw = Vec::new();
    for number in range.lines_before + 1.. {
        if offset >= range.end {
            break;
        }
        let line = read_line(reader, &mut raw).context("read", path)?;
        if line.len == 0 {
            break;
        }
        // Stop at an incomplete line, even if more data arrives meanwhile: a runner may be writing
        // it.
        if !line.is_complete {
            return Ok(FoldResult {
                state,
                offset,
                torn: line.len,
            });
        }
        let parsed = if line.is_cut {
            Err("the line is too long".to_owned())
        } else {
            parse_line(&raw)
        };
        match parsed {
            Ok(event) => {
                state.step(event.now(), &event.event);
                visit(&event, &state);
            }
            // A crash can only damage the last line.
            Err(_) if reader.fill_buf().context("read", path)?.is_empty() => {
                return Ok(FoldResult {
                    state,
                    offset,
                    torn: line.len,
                });
            }
            Err(detail) => {
                return Err(StoreError::Damaged {
                    path: path.to_owned(),
                    line: number,
                    detail,
                });
            }
        }
        offset += line.len;
    }
    Ok(FoldResult {
        state,
        offset,
        torn: 0,
    })
}

fn parse_line(raw: &[u8]) -> Result<JournalLine, String> {
    let text = std::str::from_utf8(raw).map_err(|e| e.to_string())?;
    JournalLine::parse(text).map_err(|e| e.to_string())
}
