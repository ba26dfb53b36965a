//! How a journal is read without reading all of it: `state.json` holds the fold of its beginning.
//!
//! It may be deleted at any time. It counts only if this very ralph made it from this very journal.

use super::dir::create_file;
use super::error::Doing;
use super::line::Header;
use super::{LoopDir, Result, fold};
use crate::engine::plan::Limits;
use crate::engine::{Plan, State};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

const VERSION: u64 = 2;

/// What a journal says, as far as it was written when it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its first line.
    pub header: Header,
    /// The fold of all others.
    pub state: State,
    /// Where the last folded line ends.
    pub offset: u64,
}

#[derive(Serialize)]
struct Saved<'a> {
    version: u64,
    by: &'a str,
    offset: u64,
    name: &'a str,
    id: &'a str,
    created_ms: i64,
    parent: Option<&'a str>,
    background: bool,
    tmux: Option<&'a str>,
    /// The state's plan is the header's, but for limits that were changed since: so it is kept once.
    limits: &'a Limits,
    state: &'a State,
}

#[derive(Deserialize)]
struct Loaded {
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

impl Loaded {
    fn header(&self) -> Header {
        Header {
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

/// Another ralph may fold the same lines into another state.
const BY: &str = env!("CARGO_PKG_VERSION");

/// Saves the fold of the journal's first `offset` bytes. Only who holds the loop's lock may.
pub fn save(dir: &LoopDir, offset: u64, header: &Header, state: &State) -> Result<()> {
    let path = dir.state();
    let new = path.with_extension("json.new");
    let write = || {
        let saved = Saved {
            version: VERSION,
            by: BY,
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
        // Not synced: what a power cut leaves of it is unreadable, and then it is as good as deleted.
        fs::rename(&new, &path)
    };
    write().doing("write", &path)
}

/// Reads what has happened, without changing anything. A torn last line has not happened.
pub fn read(dir: &LoopDir) -> Result<View> {
    // Loaded before the journal is opened: so the journal is at least as long as the cache says.
    let loaded = load(&dir.state());
    let path = dir.journal();
    let mut reader = BufReader::new(File::open(&path).doing("open", &path)?);
    let first = fold::first(&mut reader, &path)?;
    let start = first.end();

    // The plan in the first line is long; where the cache has it, it is not read again.
    if let Some(loaded) = loaded.filter(|it| it.id == first.id && it.offset >= start)
        && ends_a_line(&mut reader, loaded.offset).unwrap_or(false)
    {
        let (header, offset) = (loaded.header(), loaded.offset);
        // Damage is found again, and counted right, by reading everything.
        let Ok(folded) = fold::tail(&mut reader, &path, loaded.state, offset, 0) else {
            return read_whole(dir);
        };
        return Ok(View {
            header,
            state: folded.state,
            offset: folded.offset,
        });
    }

    read_whole(dir)
}

fn read_whole(dir: &LoopDir) -> Result<View> {
    let path = dir.journal();
    let mut reader = BufReader::new(File::open(&path).doing("open", &path)?);
    let first = fold::first(&mut reader, &path)?;
    let start = first.end();
    let header = first.header(&path)?;
    reader.seek(SeekFrom::Start(start)).doing("read", &path)?;
    let fresh = State::new(header.plan.clone());
    let folded = fold::tail(&mut reader, &path, fresh, start, 1)?;
    Ok(View {
        header,
        state: folded.state,
        offset: folded.offset,
    })
}

fn load(path: &Path) -> Option<Loaded> {
    let loaded: Loaded = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (loaded.version == VERSION && loaded.by == BY).then_some(loaded)
}

/// Whether a line ends at `offset`; the reader then stands there.
fn ends_a_line(reader: &mut (impl Read + Seek), offset: u64) -> io::Result<bool> {
    let mut last = [0];
    reader.seek(SeekFrom::Start(offset - 1))?;
    Ok(reader.read(&mut last)? == 1 && last == *b"\n")
}
