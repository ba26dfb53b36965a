//! Submits a loop to the fleet: its plan, the code that it begins with, and what a worker needs.

use super::error::FleetError;
use super::exchange::{
    Checkout, CodeSource, Exchange, LoopRecord, Needs, PIECE_MAX, Piece, StreamKind,
};
use crate::engine::plan::Plan;
use crate::git::TreeContent;
use crate::git::transfer::{self, LoopRefs};
use crate::git::worktree::WorktreeSource;
use crate::store::JournalHeader;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The checkpoint of the start, which contains uncommitted changes.
const START: &str = "0";
/// The name, beside the checkpoints, of the commit that a bundle must contain.
const BASE: &str = "base";
/// How many names to try before giving up.
const NAME_TRIES: u32 = 1000;

/// A loop to submit.
pub(crate) struct Submission {
    pub(crate) plan: Plan,
    pub(crate) id: String,
    /// The user's name for the loop; `None` to use the directory's name and a number.
    pub(crate) name: Option<String>,
    /// The first part of the name if the user gave none.
    pub(crate) name_base: String,
    /// The branch that the loop works on; `None` for `ralph/<name>`.
    pub(crate) branch: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) commit_timeout_ms: u64,
    pub(crate) submitted_by: String,
}

/// The code that a loop begins with.
pub(crate) struct PackedCode {
    commit: String,
    base_branch: Option<String>,
    prefix: PathBuf,
    identity: Option<transfer::Identity>,
    /// The remote that has the commit, and its branch.
    remote: Option<(String, String)>,
    /// The bundle to upload; `None` if the remote has everything.
    bundle: Option<PathBuf>,
}

/// Why code cannot be submitted.
pub(crate) enum CodeError {
    /// The workspace is not in a git repository with a commit.
    NotInGit(String),
    /// These files differ from the commit.
    Dirty(Vec<String>),
    Failed(String),
}

impl PackedCode {
    /// Packs the workspace's commit, and its uncommitted changes if `include_dirty`. Writes a bundle to
    /// `scratch` unless a remote has everything. The repository is as before afterwards.
    pub(crate) fn pack(
        workspace: &Path,
        loop_id: &str,
        include_dirty: bool,
        scratch: &Path,
    ) -> Result<Self, CodeError> {
        let source = WorktreeSource::find(workspace)
            .map_err(|error| CodeError::NotInGit(format!("{error:?}")))?;
        let head = source.head.clone();
        let commit = head.ok_or_else(|| CodeError::NotInGit("there is no commit yet".into()))?;
        let dirty = source.changed_files().map_err(CodeError::Failed)?;
        if !dirty.is_empty() && !include_dirty {
            return Err(CodeError::Dirty(dirty));
        }
        let remote = transfer::remote_with(workspace, &commit);
        let mut packed = Self {
            commit,
            base_branch: source.branch.clone(),
            prefix: source.prefix.clone(),
            identity: transfer::identity(workspace),
            remote,
            bundle: None,
        };
        if packed.remote.is_none() || !dirty.is_empty() {
            let bundle = packed.write_bundle(workspace, loop_id, !dirty.is_empty(), scratch);
            packed.bundle = Some(bundle.map_err(CodeError::Failed)?);
        }
        Ok(packed)
    }

    fn write_bundle(
        &self,
        workspace: &Path,
        loop_id: &str,
        with_changes: bool,
        scratch: &Path,
    ) -> Result<PathBuf, String> {
        let refs = LoopRefs::new(workspace, loop_id);
        refs.set(BASE, &self.commit)?;
        if with_changes {
            let content = TreeContent::find(workspace, scratch)?;
            let content = content.ok_or("git does not recognize the workspace")?;
            content.take_checkpoint(loop_id, START)?;
        }
        let file = scratch.join("code.bundle");
        let known: Vec<String> = self.remote.iter().map(|_| self.commit.clone()).collect();
        transfer::write_bundle(workspace, &file, &refs.names()?, &known)?;
        Ok(file)
    }
}

impl Submission {
    /// Stores the loop in the fleet and queues it. Returns its record.
    pub(crate) async fn submit(
        &self,
        exchange: &impl Exchange,
        code: &PackedCode,
    ) -> Result<LoopRecord, FleetError> {
        let blob = format!("{}/code.bundle", self.id);
        if let Some(bundle) = &code.bundle {
            exchange.put_blob(&blob, bundle).await?;
        }
        let mut tries = 1..=NAME_TRIES;
        loop {
            let number = tries.next().unwrap_or(NAME_TRIES);
            let name = self.name.clone();
            let name = name.unwrap_or_else(|| format!("{}-{number}", self.name_base));
            let header = self.header(&name);
            let record = self.record(&name, &blob, code);
            match exchange.create_record(&record).await {
                Err(FleetError::NameTaken) if self.name.is_none() && number < NAME_TRIES => {}
                Err(error) => return Err(error),
                Ok(_) => {
                    // Uncommitted changes come on top of a remote's commit.
                    let is_extra = code.remote.is_some() && code.bundle.is_some();
                    let extra = if is_extra { blob.as_str() } else { "" };
                    self.publish(exchange, &header, extra).await?;
                    exchange.enqueue(&name, &format!("{}-0", self.id)).await?;
                    return Ok(record);
                }
            }
        }
    }

    fn header(&self, name: &str) -> String {
        let header = JournalHeader {
            name: name.to_owned(),
            id: self.id.clone(),
            created_ms: jiff::Timestamp::now().as_millisecond(),
            parent: None,
            background: true,
            tmux: None,
            plan: self.plan.clone(),
        };
        header.to_json() + "\n"
    }

    fn record(&self, name: &str, blob: &str, code: &PackedCode) -> LoopRecord {
        let programs = self.plan.agents().filter_map(|agent| agent.command.first());
        let branch = self.branch.clone();
        LoopRecord {
            name: name.to_owned(),
            id: self.id.clone(),
            submitted_ms: jiff::Timestamp::now().as_millisecond(),
            submitted_by: self.submitted_by.clone(),
            needs: Needs {
                agents: programs.cloned().collect(),
                labels: self.labels.clone(),
                secrets: self.plan.redacted.clone(),
            },
            code: match &code.remote {
                Some((url, branch)) => CodeSource::Remote {
                    url: url.clone(),
                    commit: code.commit.clone(),
                    branch: Some(branch.clone()),
                },
                None => CodeSource::Bundle {
                    blob: blob.to_owned(),
                    commit: code.commit.clone(),
                },
            },
            checkout: Checkout {
                branch: branch.unwrap_or_else(|| format!("ralph/{name}")),
                base_branch: code.base_branch.clone(),
                prefix: code.prefix.clone(),
                identity: code.identity.clone(),
                home: std::env::home_dir(),
                commit_timeout_ms: self.commit_timeout_ms,
            },
            epoch: 0,
            owner: None,
            wanted: true,
            refused: None,
        }
    }

    /// Publishes the journal's first line.
    async fn publish(
        &self,
        exchange: &impl Exchange,
        header: &str,
        blob: &str,
    ) -> Result<(), FleetError> {
        let (mut last, mut offset) = (0, 0);
        for bytes in header.as_bytes().chunks(PIECE_MAX) {
            let is_first = offset == 0;
            let piece = Piece {
                file: if is_first { blob } else { "" }.to_owned(),
                offset,
                bytes: bytes.to_vec(),
                ..Piece::default()
            };
            let stream = StreamKind::Journal;
            last = exchange
                .append(&self.id, stream, &piece, Some(last))
                .await?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }
}
