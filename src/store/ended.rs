//! Reads what lists show about a loop that has ended, from the first bytes of its cache: parsing the
//! states of thousands of ended loops would take longer than everything else.

use super::LoopDir;
use super::journal_line::header_prefix;
use crate::engine::{State, Status};
use crate::os::regular_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The cache begins with these bytes, and the summary follows.
const PREFIX: &[u8] = br#"{"ended":"#;
/// A summary that does not fit into this many bytes is not used.
const SIZE_MAX: u64 = 8 << 10;

/// The summary of a loop that has ended. It begins the cache, so that it can be read alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndedLoop {
    by: String,
    /// The length of the journal, and of the part of the inbox that was read.
    offset: u64,
    inbox_offset: u64,
    id: String,
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) status: Status,
    pub(crate) iteration: String,
    /// The cost for display; `None` if it is unknown.
    pub(crate) cost: Option<String>,
    pub(crate) workspace: PathBuf,
    /// The top of the repository, even if the loop worked in a worktree.
    pub(crate) repository: PathBuf,
    /// The time of the last event, in milliseconds since 1970.
    pub(crate) ended_ms: i64,
    /// The reason for the outcome, for people.
    pub(crate) detail: String,
}

/// The most characters of a reason that are kept.
const DETAIL_MAX: usize = 200;

impl EndedLoop {
    /// Returns the summary of a state; `None` if the loop has not ended.
    pub(super) fn new(
        by: &str,
        offset: u64,
        header: &super::JournalHeader,
        state: &State,
    ) -> Option<Self> {
        let detail = state.outcome_summary()?.detail;
        Some(Self {
            by: by.to_owned(),
            offset,
            inbox_offset: state.inbox_offset,
            id: header.id.clone(),
            name: header.name.clone(),
            parent: header.parent.clone(),
            status: state.outcome()?.status(),
            iteration: state.iteration_label(state.iteration),
            cost: state.cost_text(),
            workspace: state.plan.workspace.clone(),
            repository: state.plan.repository().to_owned(),
            ended_ms: state.wall_ms,
            detail: detail.chars().take(DETAIL_MAX).collect(),
        })
    }

    /// Reads the summary of a loop; `None` if there is none, or if the loop's files have changed
    /// since it was written. The caller then has to read the whole state.
    pub(crate) fn read(dir: &LoopDir) -> Option<Self> {
        let (bytes, _) = regular_file::read(&dir.state(), SIZE_MAX, false).ok()?;
        let mut values =
            serde_json::Deserializer::from_slice(bytes.strip_prefix(PREFIX)?).into_iter();
        let ended: Self = values.next()?.ok()?;
        (ended.by == super::cache::WRITER && ended.is_of_journal(dir) && ended.has_read_inbox(dir))
            .then_some(ended)
    }

    /// Returns whether the loop's journal has the ID and the length of the one that was folded.
    fn is_of_journal(&self, dir: &LoopDir) -> bool {
        let Ok(journal) = regular_file::open(&dir.journal(), false) else {
            return false;
        };
        let expected = header_prefix(&self.name, &self.id);
        let mut begin = vec![0; expected.len()];
        journal
            .metadata()
            .is_ok_and(|data| data.len() == self.offset)
            && journal.read_exact_at(&mut begin, 0).is_ok()
            && begin == expected.as_bytes()
    }

    fn has_read_inbox(&self, dir: &LoopDir) -> bool {
        match fs::symlink_metadata(dir.inbox()) {
            Ok(data) => data.is_file() && data.len() == self.inbox_offset,
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }
}
