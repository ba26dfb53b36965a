//! How a journal's bytes become a state, and where a torn end begins.

use super::error::Doing;
use super::line::{Header, Line, Mark, VERSION};
use super::{Error, Result};
use crate::engine::State;
use std::io::BufRead;
use std::path::Path;

/// A fold, and how far it got.
pub(super) struct Folded {
    pub(super) state: State,
    /// Where the last good line ends.
    pub(super) offset: u64,
    /// Bytes after it that are no line.
    pub(super) torn: u64,
}

/// The first line, as far as it takes to know whose journal this is.
pub(super) struct First {
    raw: Vec<u8>,
    /// The loop's id; empty where it says none.
    pub(super) id: String,
}

impl First {
    /// All that it says.
    pub(super) fn header(&self, path: &Path) -> Result<Header> {
        let damaged = |e: serde_json::Error| Error::Damaged {
            path: path.to_owned(),
            line: 1,
            detail: e.to_string(),
        };
        serde_json::from_slice(&self.raw).map_err(damaged)
    }

    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.raw.len() as u64
    }
}

/// Reads the first line. Nothing may be changed in a journal before it, and its header, are good.
pub(super) fn first(reader: &mut impl BufRead, path: &Path) -> Result<First> {
    let mut raw = Vec::new();
    reader.read_until(b'\n', &mut raw).doing("read", path)?;
    let not_a_journal = || Error::NotAJournal {
        path: path.to_owned(),
    };
    let mark: Mark = serde_json::from_slice(&raw).map_err(|_| not_a_journal())?;
    if mark.ralph != "journal" {
        return Err(not_a_journal());
    }
    if mark.version > VERSION {
        return Err(Error::Newer {
            path: path.to_owned(),
            version: mark.version,
        });
    }
    if raw.last() != Some(&b'\n') {
        let detail = "it has no end".to_owned();
        return Err(Error::Damaged {
            path: path.to_owned(),
            line: 1,
            detail,
        });
    }
    Ok(First { raw, id: mark.id })
}

/// Folds the lines from `offset`, where the reader stands, to the end. `above` lines stand before them.
pub(super) fn tail(
    reader: &mut impl BufRead,
    path: &Path,
    mut state: State,
    mut offset: u64,
    above: usize,
) -> Result<Folded> {
    let mut raw = Vec::new();
    for number in above + 1.. {
        raw.clear();
        let read = reader.read_until(b'\n', &mut raw).doing("read", path)? as u64;
        if read == 0 {
            break;
        }
        // A runner may be writing the rest of it right now: what follows is not asked for.
        if raw.pop() != Some(b'\n') {
            return Ok(Folded {
                state,
                offset,
                torn: read,
            });
        }
        match parse(&raw) {
            Ok(line) => state.step(line.now(), &line.event),
            // A crash tears the end of a file, and nothing else does.
            Err(_) if reader.fill_buf().doing("read", path)?.is_empty() => {
                return Ok(Folded {
                    state,
                    offset,
                    torn: read,
                });
            }
            Err(detail) => {
                return Err(Error::Damaged {
                    path: path.to_owned(),
                    line: number,
                    detail,
                });
            }
        }
        offset += read;
    }
    Ok(Folded {
        state,
        offset,
        torn: 0,
    })
}

fn parse(raw: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(raw).map_err(|e| e.to_string())?;
    Line::parse(text).map_err(|e| e.to_string())
}
