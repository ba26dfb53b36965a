//! Publishes what a loop's supervisor writes: the journal with the commits that it names, and the
//! files that people read.

use super::arrival::ArrivedLoop;
use super::lease::LeaseFile;
use crate::engine::plan::Worktree;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{Exchange, PIECE_MAX, Piece, StreamKind};
use crate::git::transfer;
use crate::os::regular_file;
use crate::store::LoopDir;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait before a piece that was not confirmed is sent again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// The most bytes of one file that are published. More would be of little use to a reader.
const FILE_MAX: u64 = 4 << 20;
/// Files of a loop, besides those of its iterations, that are published.
const LOOP_FILES: [&str; 3] = ["iterations.log", "receipt.json", "console.log"];
/// How the names of published files in an iteration's directory begin.
const ITERATION_FILES: [&str; 5] = [
    "prompt.md",
    "activity.jsonl",
    "output.log",
    "check-",
    "scm-",
];

/// Publishes one loop.
pub(super) struct Relay<'a, E> {
    exchange: &'a E,
    lease: LeaseFile,
    dir: LoopDir,
    loop_id: String,
    epoch: u64,
    worktree: Worktree,
    /// The position of the newest piece of the journal.
    last: u64,
    /// The length of the published part of the journal, in bytes.
    published: u64,
    /// Commits that are in the exchange.
    known: BTreeSet<String>,
    /// The published lengths of the other files.
    files: BTreeMap<String, u64>,
}

impl<'a, E: Exchange> Relay<'a, E> {
    /// Prepares to publish a loop whose newest piece of the journal has the position `last`.
    pub(super) fn new(
        exchange: &'a E,
        lease: LeaseFile,
        arrived: &ArrivedLoop,
        (loop_id, epoch, last): (&str, u64, u64),
    ) -> Result<Self, String> {
        let worktree = arrived.state.plan.worktree.clone();
        let worktree = worktree.ok_or("the loop has no worktree")?;
        let refs = transfer::loop_refs(&arrived.repository, &worktree.branch, loop_id)?;
        let commits = refs.into_iter().map(|(_, commit)| commit);
        Ok(Self {
            exchange,
            lease,
            dir: arrived.dir.clone(),
            loop_id: loop_id.to_owned(),
            epoch,
            last,
            published: arrived.published,
            known: commits.chain([worktree.base.clone()]).collect(),
            worktree,
            files: BTreeMap::new(),
        })
    }

    /// Publishes everything that was written since the last call. Fails if another machine owns the
    /// loop. Tries again as long as the exchange does not answer.
    pub(super) async fn publish(&mut self) -> Result<(), FleetError> {
        self.publish_journal().await?;
        self.publish_files().await
    }

    async fn publish_journal(&mut self) -> Result<(), FleetError> {
        let added = read_from(&self.dir.journal(), self.published, u64::MAX);
        let added = added.map_err(|error| broken(&error))?;
        let end = added.iter().rposition(|byte| *byte == b'\n');
        let lines = &added[..end.map_or(0, |end| end + 1)];
        if lines.is_empty() {
            return Ok(());
        }
        // The commits first: a reader must be able to fetch what an event names.
        let blob = if names_commits(lines) {
            self.publish_commits().await?
        } else {
            String::new()
        };
        let count = lines.chunks(PIECE_MAX).count();
        for (index, bytes) in lines.chunks(PIECE_MAX).enumerate() {
            let is_last = index + 1 == count;
            let piece = Piece {
                epoch: self.epoch,
                file: if is_last { blob.clone() } else { String::new() },
                offset: self.published,
                bytes: bytes.to_vec(),
                position: 0,
            };
            self.last = self
                .append(StreamKind::Journal, &piece, Some(self.last))
                .await?;
            self.published += bytes.len() as u64;
        }
        self.lease.set_published(self.published);
        Ok(())
    }

    async fn append(
        &self,
        stream: StreamKind,
        piece: &Piece,
        last: Option<u64>,
    ) -> Result<u64, FleetError> {
        loop {
            match self
                .exchange
                .append(&self.loop_id, stream, piece, last)
                .await
            {
                Err(FleetError::Unreachable(_)) => tokio::time::sleep(RETRY_INTERVAL).await,
                result => return result,
            }
        }
    }

    /// Stores the commits of the loop's branch and checkpoints that the exchange does not have.
    /// Returns the name of the blob; empty if it has all.
    pub(super) async fn publish_commits(&mut self) -> Result<String, FleetError> {
        let refs = transfer::loop_refs(
            &self.worktree.repository,
            &self.worktree.branch,
            &self.loop_id,
        )
        .map_err(FleetError::Other)?;
        if refs.iter().all(|(_, commit)| self.known.contains(commit)) {
            return Ok(String::new());
        }
        let file = self.dir.path().join("commits.bundle");
        let (repository, known) = (self.worktree.repository.clone(), self.known.clone());
        let names: Vec<String> = refs.iter().map(|(name, _)| name.clone()).collect();
        let (written, file) = tokio::task::spawn_blocking(move || {
            let known: Vec<String> = known.into_iter().collect();
            let written = transfer::write_bundle(&repository, &file, &names, &known);
            (written, file)
        })
        .await
        .map_err(|error| broken(&error))?;
        let is_written = written.map_err(FleetError::Other)?;
        self.known
            .extend(refs.into_iter().map(|(_, commit)| commit));
        if !is_written {
            return Ok(String::new());
        }
        let blob = format!("{}/{}-{}.bundle", self.loop_id, self.epoch, self.published);
        loop {
            match self.exchange.put_blob(&blob, &file).await {
                Err(FleetError::Unreachable(_)) => tokio::time::sleep(RETRY_INTERVAL).await,
                result => break result?,
            }
        }
        let _ = fs::remove_file(&file);
        Ok(blob)
    }

    /// Publishes commits that no line of the journal names.
    pub(super) async fn publish_handover(&mut self) -> Result<(), FleetError> {
        let blob = self.publish_commits().await?;
        if blob.is_empty() {
            return Ok(());
        }
        let piece = Piece {
            epoch: self.epoch,
            file: blob,
            offset: self.published,
            ..Piece::default()
        };
        self.last = self
            .append(StreamKind::Journal, &piece, Some(self.last))
            .await?;
        Ok(())
    }

    async fn publish_files(&mut self) -> Result<(), FleetError> {
        for file in self.readable_files() {
            let path = self.dir.path().join(&file);
            let len = fs::symlink_metadata(&path).map_or(0, |data| data.len().min(FILE_MAX));
            let mut done = self.files.get(&file).copied().unwrap_or(0);
            if len < done {
                done = 0;
            }
            while done < len {
                let bytes = read_from(&path, done, PIECE_MAX as u64).unwrap_or_default();
                if bytes.is_empty() {
                    break;
                }
                let piece = Piece {
                    epoch: self.epoch,
                    file: file.clone(),
                    offset: done,
                    bytes,
                    position: 0,
                };
                self.append(StreamKind::Files, &piece, None).await?;
                done += piece.bytes.len() as u64;
                self.files.insert(file.clone(), done);
            }
        }
        Ok(())
    }

    /// Returns the names of the files to publish: those of the loop, and of its newest iterations.
    fn readable_files(&self) -> Vec<String> {
        let mut files: Vec<String> = LOOP_FILES.map(str::to_owned).to_vec();
        let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
        let names = |path: PathBuf| {
            let mut names: Vec<String> = entries(path)
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect();
            names.sort_unstable();
            names
        };
        let root = self.dir.path().join("iterations");
        // Earlier iterations do not change.
        for iteration in names(root.clone()).iter().rev().take(2).rev() {
            let is_published =
                |name: &String| ITERATION_FILES.iter().any(|start| name.starts_with(start));
            let found = names(root.join(iteration));
            let found = found.into_iter().filter(is_published);
            files.extend(found.map(|name| format!("iterations/{iteration}/{name}")));
        }
        files
    }

    pub(super) fn worktree(&self) -> &Worktree {
        &self.worktree
    }

    /// Returns how much of the journal is not published yet, in bytes.
    pub(super) fn lag(&self) -> u64 {
        let len = fs::metadata(self.dir.journal()).map_or(0, |data| data.len());
        len.saturating_sub(self.published)
    }
}

/// Returns whether lines of a journal may name commits that the exchange does not have.
fn names_commits(lines: &[u8]) -> bool {
    let contains = |text: &str| memchr::memmem::find(lines, text.as_bytes()).is_some();
    contains("\"event\":\"checkpointed\"") || contains("\"event\":\"committed\"")
}

/// Reads a file from an offset on, at most `max` bytes.
fn read_from(path: &Path, offset: u64, max: u64) -> std::io::Result<Vec<u8>> {
    let mut file = regular_file::open(path, false)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn broken(error: &dyn std::fmt::Display) -> FleetError {
    FleetError::Other(error.to_string())
}
