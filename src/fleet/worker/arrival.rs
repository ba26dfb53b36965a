//! Rebuilds a loop on this machine: its directory from the fleet's streams, its code from a remote and
//! bundles, and its files from the newest checkpoint.

use super::setup::run_setup;
use crate::engine::checkpoint::StoredFiles;
use crate::engine::event::Event;
use crate::engine::moved::NewPlace;
use crate::engine::plan::Worktree;
use crate::engine::{Now, State};
use crate::fleet::exchange::{CodeSource, LoopRecord, Piece};
use crate::git::checkpoint::Checkpoint;
use crate::git::transfer;
use crate::git::worktree::WorktreeSource;
use crate::git::{DiffBase, TreeContent};
use crate::proof::Baseline;
use crate::runner::start_record::StartRecord;
use crate::store::dir::{create_dir, create_file};
use crate::store::{Journal, JournalLine, LoopDir, StateDir};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Returns the name of the checkpoint that the owner of an epoch takes when it hands a loop back in the
/// middle of an iteration.
pub(super) fn handover_checkpoint(epoch: u64) -> String {
    format!("handover-{epoch}")
}

/// What the fleet has of a loop.
pub(super) struct LoopFiles<'a> {
    pub(super) journal: &'a [u8],
    pub(super) inbox: &'a [u8],
    pub(super) files: &'a [Piece],
    /// The bundles with the loop's commits, in order, the code that it begins with first if it comes
    /// in one.
    pub(super) bundles: &'a [PathBuf],
}

/// A loop that has arrived and can be launched.
pub(super) struct ArrivedLoop {
    pub(super) dir: LoopDir,
    pub(super) state: State,
    pub(super) repository: PathBuf,
    /// The length of the journal before it arrived, in bytes. What follows is not published yet.
    pub(super) published: u64,
}

/// Rebuilds a loop in an empty state directory.
pub(super) fn arrive(
    state_dir: &StateDir,
    record: &LoopRecord,
    files: &LoopFiles<'_>,
    host: &str,
) -> Result<ArrivedLoop, String> {
    let dir = state_dir.loop_dir(&record.name);
    write_directory(&dir, files)?;
    let opened = Journal::open(&dir).map_err(|error| error.to_string())?;
    let (mut journal, mut state) = (opened.journal, opened.state);
    if opened.header.id != record.id {
        return Err("the journal belongs to another loop".to_owned());
    }
    let published = journal.len();
    let repository = state_dir.root().join("repository");
    let worktree = check_out(state_dir, record, &repository, files.bundles)?;
    let workspace: PathBuf = worktree
        .path
        .join(relative(&record.checkout.prefix)?)
        .components()
        .collect();
    create_dir_all(&workspace)?;
    let mut place = NewPlace {
        host: host.to_owned(),
        epoch: record.epoch,
        workspace,
        worktree: Some(worktree),
        homes: record.checkout.home.clone().zip(std::env::home_dir()),
        baseline: None,
    };
    let had_baseline = state.look.baseline.is_some();
    let line = |place: &NewPlace| JournalLine {
        at_ms: jiff::Timestamp::now().as_millisecond(),
        ms: 0,
        event: Event::Moved {
            place: Box::new(place.clone()),
        },
    };
    // Only the plan matters here: the baseline needs its new paths.
    let mut moved = state.clone();
    moved.step(Now::default(), &line(&place).event);
    let handover = handover_checkpoint(state.epoch);
    place.baseline = restore_files(&dir, &record.id, &moved, (had_baseline, &handover))?;
    let line = line(&place);
    journal.append(&line).map_err(|error| error.to_string())?;
    journal.sync().map_err(|error| error.to_string())?;
    let now = Now {
        wall_ms: line.at_ms,
        delta_ms: 0,
    };
    state.step(now, &line.event);
    Ok(ArrivedLoop {
        dir,
        state,
        repository,
        published,
    })
}

/// Writes the loop's directory.
fn write_directory(dir: &LoopDir, files: &LoopFiles<'_>) -> Result<(), String> {
    let write = |path: &Path, bytes: &[u8]| {
        create_file(path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    dir.create().map_err(|error| error.to_string())?;
    write(&dir.inbox(), files.inbox)?;
    for (file, bytes) in latest_files(files.files) {
        let path = dir.path().join(relative(Path::new(&file))?);
        if let Some(parent) = path.parent() {
            create_dir_all(parent)?;
        }
        write(&path, &bytes)?;
    }
    // Last, because a directory with a journal is a loop.
    write(&dir.journal(), files.journal)
}

/// Puts the pieces of files together. Pieces of an owner that another one had replaced are ignored.
pub(crate) fn latest_files(pieces: &[Piece]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::<String, Vec<u8>>::new();
    let mut epoch = 0;
    for piece in pieces {
        if piece.epoch >= epoch {
            epoch = piece.epoch;
            piece.apply_to(files.entry(piece.file.clone()).or_default());
        }
    }
    files
}

/// Returns the path if it stays inside the directory that it is relative to.
pub(crate) fn relative(path: &Path) -> Result<&Path, String> {
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    is_inside.then_some(path).ok_or_else(|| {
        format!(
            "the fleet names a file outside the loop: {}",
            path.display()
        )
    })
}

/// Creates the repository and the loop's worktree.
fn check_out(
    state_dir: &StateDir,
    record: &LoopRecord,
    repository: &Path,
    bundles: &[PathBuf],
) -> Result<Worktree, String> {
    let checkout = &record.checkout;
    transfer::create_repository(repository, checkout.identity.as_ref())?;
    let commit = match &record.code {
        CodeSource::Remote {
            url,
            commit,
            branch,
        } => {
            transfer::fetch_commit(repository, url, commit, branch.as_deref())?;
            commit
        }
        CodeSource::Bundle { commit, .. } => commit,
    };
    for bundle in bundles {
        transfer::fetch_bundle(repository, bundle)?;
    }
    transfer::detach_head(repository, commit)?;
    transfer::ensure_branch(repository, &checkout.branch, commit)?;
    let source = WorktreeSource::find(repository)
        .map_err(|error| format!("cannot use the repository: {error:?}"))?;
    let worktree = Worktree {
        path: state_dir.worktree_path(&record.name),
        branch: checkout.branch.clone(),
        new_branch: false,
        repository: source.repository.clone(),
        from: repository.to_owned(),
        base: commit.clone(),
        base_branch: checkout.base_branch.clone(),
        commit_timeout_ms: checkout.commit_timeout_ms,
    };
    state_dir
        .create_worktrees_dir()
        .map_err(|error| error.to_string())?;
    source.add_worktree(&worktree, &|| false)?;
    Ok(worktree)
}

/// Puts the files where the loop's newest checkpoint has them. On the way, with the files of its
/// start, records what later iterations are compared with. Returns the digest of that record.
fn restore_files(
    dir: &LoopDir,
    loop_id: &str,
    state: &State,
    (had_baseline, handover): (bool, &str),
) -> Result<Option<String>, String> {
    let plan = &state.plan;
    let Some(content) = TreeContent::find(&plan.workspace, &dir.git_scratch())? else {
        return Err("the loop's code is not in git".to_owned());
    };
    let checkpoints = content.checkpoints(loop_id)?;
    let start = checkpoints.get("0")?;
    if let Some(start) = &start {
        content.restore(start)?;
    }
    if let Some(setup) = &plan.proof.setup {
        run_setup(plan, setup, &dir.path().join("setup.log"))?;
    }
    let base = DiffBase::capture(&plan.workspace, &dir.git_scratch())?;
    let text = serde_json::to_string(&base).unwrap_or_default();
    create_file(&dir.diff_base())
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| error.to_string())?;
    let baseline = had_baseline
        .then(|| {
            let record = StartRecord::new(dir, state);
            Baseline::take(&record.spec(), dir.path())
                .map(|baseline| baseline.digest().to_owned())
                .map_err(|error| format!("cannot record the loop's start: {error}"))
        })
        .transpose()?;
    let stored = |files: &StoredFiles| Checkpoint {
        commit: files.commit.clone(),
        tree: files.tree.clone(),
        skipped: BTreeMap::new(),
    };
    let newest = checkpoints
        .get(handover)?
        .or_else(|| state.checkpoint.stored.as_ref().map(stored));
    if let Some(newest) = newest.filter(|newest| start.as_ref() != Some(newest)) {
        content.restore(&newest)?;
    }
    Ok(baseline)
}

fn create_dir_all(path: &Path) -> Result<(), String> {
    create_dir(path).map_err(|error| format!("cannot create {}: {error}", path.display()))
}
