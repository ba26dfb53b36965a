//! Reads a loop's state without folding the whole journal: `state.json` caches the fold of its
//! beginning.
//!
//! The cache can be deleted at any time. It is used only if this version of ralph wrote it for the
//! same journal.

use super::dir::create_file;
use super::error::IoContext;
use super::fold::FoldRange;
use super::{EndedLoop, JournalHeader, JournalLine, LoopDir, Result, fold, seal};
use crate::engine::limits::Limits;
use crate::engine::{Plan, State};
use crate::os::regular_file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const VERSION: u64 = 3;
/// A longer cache is ignored. A state is bounded; the longest contain a task of 16 MiB.
const SIZE_MAX: u64 = 64 << 20;

/// The content of a journal at the time it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoopView {
    pub(crate) header: JournalHeader,
    /// The state after all lines of the journal.
    pub(crate) state: State,
    /// The byte offset just past the last journal line that the state includes.
    pub(crate) offset: u64,
}

/// The cache in the form in which it is written.
#[derive(Serialize)]
struct CachedStateRef<'a> {
    /// The summary of a loop that has ended. It must be the first field.
    ended: Option<EndedLoop>,
    version: u64,
    by: &'a str,
    offset: u64,
    name: &'a str,
    id: &'a str,
    created_ms: i64,
    parent: Option<&'a str>,
    background: bool,
    tmux: Option<&'a str>,
    /// The limits in the journal's header. The rest of the plan is the same in the header and the
    /// state, and is saved once.
    limits: &'a Limits,
    state: &'a State,
}

/// The cache in the form in which it is read.
#[derive(Deserialize)]
struct CachedState {
    version: u64,
    by: String,
    offset: u64,
    name: String,
    id: String,
    created_ms: i64,
    parent: Option<String>,
    background: bool,
    tmux: Option<String>,
    limits: Limits,
    state: State,
}

impl CachedState {
    fn header(&self) -> JournalHeader {
        JournalHeader {
            name: self.name.clone(),
            id: self.id.clone(),
            created_ms: self.created_ms,
            parent: self.parent.clone(),
            background: self.background,
            tmux: self.tmux.clone(),
            plan: Plan {
                limits: self.limits.clone(),
                ..self.state.plan.clone()
            },
        }
    }
}

/// The version of ralph that writes the cache. A different version may fold the same lines into a
/// different state.
pub(super) const WRITER: &str = env!("CARGO_PKG_VERSION");

/// Saves the fold of the journal's first `offset` bytes. The process must hold the loop's lock.
pub(crate) fn save(
    dir: &LoopDir,
    offset: u64,
    header: &JournalHeader,
    state: &State,
) -> Result<()> {
    let path = dir.state();
    let new = path.with_extension("json.new");
    let write = || {
        let saved = CachedStateRef {
            ended: EndedLoop::new(WRITER, offset, header, state),
            version: VERSION,
            by: WRITER,
            offset,
            name: &header.name,
            id: &header.id,
            created_ms: header.created_ms,
            parent: header.parent.as_deref(),
            background: header.background,
            tmux: header.tmux.as_deref(),
            limits: &header.plan.limits,
            state,
        };
        create_file(&new)?.write_all(&serde_json::to_vec(&saved)?)?;
        // Not synced: in the worst case, the file is unreadable after a power failure, and ignored.
        fs::rename(&new, &path)
    };
    write().context("write", &path)
}

/// Returns the ID of a loop whose journal is damaged: from the journal's first line or, if that is
/// damaged too, from the cache. `None` if neither is readable.
pub(crate) fn id_of_damaged_loop(dir: &LoopDir) -> Option<String> {
    let path = dir.journal();
    let journal = fold::open_journal(&path).ok();
    let header = journal.and_then(|mut reader| fold::read_header(&mut reader, &path).ok());
    let id = header.map(|header| header.id);
    let id = id.or_else(|| load(&dir.state()).map(|cached| cached.id));
    id.filter(|id| !id.is_empty())
}

/// Returns whether another version of ralph wrote the cache.
pub(super) fn is_by_other_version(dir: &LoopDir) -> bool {
    #[derive(Deserialize)]
    struct Writer {
        by: String,
    }
    read_bytes(&dir.state())
        .and_then(|bytes| serde_json::from_slice::<Writer>(&bytes).ok())
        .is_some_and(|cached| cached.by != WRITER)
}

/// Reads the journal without changing any file. An incomplete last line is ignored.
pub(crate) fn read(dir: &LoopDir) -> Result<LoopView> {
    // Load the cache before opening the journal, so that the journal is at least as long as the
    // cache says.
    let cached = load(&dir.state());
    let path = dir.journal();
    let mut reader = fold::open_journal(&path)?;
    let raw_header = fold::read_header(&mut reader, &path)?;
    let start = raw_header.len();

    // The cache contains the header too, which saves parsing the long plan in the first line.
    if let Some(cached) = cached.filter(|it| it.id == raw_header.id && it.offset >= start)
        && seek_to_line_end(&mut reader, cached.offset).unwrap_or(false)
    {
        let (header, offset) = (cached.header(), cached.offset);
        // If a line is damaged, read everything, so that the error names the right line number.
        let range = FoldRange {
            start: offset,
            lines_before: 0,
            end: end_of_own_lines(dir, reader.get_ref(), offset),
        };
        let Ok(folded) = fold::fold_lines(&mut reader, &path, cached.state, range, &mut |_, _| {})
        else {
            return replay(dir, &mut |_, _| {});
        };
        return Ok(LoopView {
            header,
            state: folded.state,
            offset: folded.offset,
        });
    }

    replay(dir, &mut |_, _| {})
}

/// Reads the journal from its beginning. Passes each line to `visit`, with the state after it.
pub(crate) fn replay(
    dir: &LoopDir,
    visit: &mut dyn FnMut(&JournalLine, &State),
) -> Result<LoopView> {
    let path = dir.journal();
    let mut reader = fold::open_journal(&path)?;
    let raw_header = fold::read_header(&mut reader, &path)?;
    let start = raw_header.len();
    let header = raw_header.parse(&path)?;
    reader.seek(SeekFrom::Start(start)).context("read", &path)?;
    let initial = State::new(header.plan.clone());
    let range = FoldRange {
        start,
        lines_before: 1,
        end: end_of_own_lines(dir, reader.get_ref(), start),
    };
    let folded = fold::fold_lines(&mut reader, &path, initial, range, visit)?;
    Ok(LoopView {
        header,
        state: folded.state,
        offset: folded.offset,
    })
}

/// Returns the offset at which the lines that ralph wrote end, so that readers ignore lines of other
/// processes. `read` bytes are known to be ralph's own.
fn end_of_own_lines(dir: &LoopDir, journal: &File, read: u64) -> u64 {
    // Usually the cache covers the whole journal, and the seal need not be read.
    let is_complete = journal.metadata().is_ok_and(|data| data.len() == read);
    if is_complete || is_by_other_version(dir) {
        return u64::MAX;
    }
    seal::read(dir).map_or(u64::MAX, |seal| seal.next.len)
}

fn load(path: &Path) -> Option<CachedState> {
    let cached: CachedState = serde_json::from_slice(&read_bytes(path)?).ok()?;
    (cached.version == VERSION && cached.by == WRITER).then_some(cached)
}

fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    let (bytes, more) = regular_file::read(path, SIZE_MAX, false).ok()?;
    (!more).then_some(bytes)
}

/// Moves the reader to `offset`, and returns whether a line ends at that offset.
fn seek_to_line_end(reader: &mut (impl Read + Seek), offset: u64) -> io::Result<bool> {
    let mut last = [0];
    reader.seek(SeekFrom::Start(offset - 1))?;
    Ok(reader.read(&mut last)? == 1 && last == *b"\n")
}
