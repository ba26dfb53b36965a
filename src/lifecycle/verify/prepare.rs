//! Prepares a verification: the recorded files, and the original tests on top of them.

use crate::engine::State;
use crate::engine::receipt::Receipt;
use crate::engine::review::Review;
use crate::git::checkpoint::Checkpoints;
use crate::git::recorded::TreeFiles;
use crate::git::{TreeContent, path_name};
use crate::proof::review::review;
use crate::proof::{Baseline, BaselineSpec, RecordedState, VariablePaths, ViewChange, ViewContent};
use crate::store::LoopDir;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Maximum number of files that a note names.
const NAMED_MAX: usize = 3;

/// What the checks run in.
pub(super) struct Prepared {
    pub(super) workspace: PathBuf,
    pub(super) changes: Vec<ViewChange>,
    pub(super) altered_guards: Vec<String>,
    pub(super) review: Option<Review>,
    pub(super) notes: Vec<String>,
}

/// Why something cannot be verified, and what to do.
type Refusal = (String, String);

fn refuse(why: impl Into<String>, hint: impl Into<String>) -> Refusal {
    (why.into(), hint.into())
}

fn failed(why: impl Display) -> Refusal {
    refuse(
        why.to_string(),
        "the files of the loop or of its repository are damaged",
    )
}

/// Prepares a verification in the loop's own workspace. Its current files do not matter, except for
/// those that git ignores.
pub(super) fn in_workspace(
    receipt: &Receipt,
    dir: &LoopDir,
    state: &State,
    scratch: &Path,
) -> Result<Prepared, Refusal> {
    let workspace = fs::canonicalize(&state.plan.workspace).map_err(|error| {
        let workspace = state.plan.workspace.display();
        refuse(
            format!("its workspace {workspace}: {error}"),
            format!(
                "in another clone, run `ralph verify {}`",
                dir.receipt().display()
            ),
        )
    })?;
    let repository = RecordedTrees::open(&workspace, receipt, scratch)?;
    let files = repository.recorded_files(scratch)?;
    let (recorded, mut changes) = split(files, repository.content.top(), &workspace);
    let recorded = RecordedState {
        touched: receipt.touched.as_ref(),
        ..recorded
    };
    let mut restores = Vec::new();
    if receipt.touched.is_some() {
        let digest = state.look.baseline.as_deref().unwrap_or_default();
        let baseline = Baseline::open(dir.path(), digest).map_err(failed)?;
        let baseline =
            baseline.ok_or_else(|| failed("the record of the loop's start was deleted"))?;
        let touched = baseline
            .touched_in(&recorded, &receipt.allow, &[])
            .map_err(failed)?;
        restores = baseline.changes_for_view(&touched).map_err(failed)?;
    }
    changes.extend(recorded.view_changes(&workspace, restores));
    let mut notes = repository.notes.clone();
    notes.extend(unrecorded(dir, state));
    Ok(Prepared {
        review: repository.review(receipt),
        altered_guards: Vec::new(),
        workspace,
        changes,
        notes,
    })
}

/// Prepares a verification in a clone: the originals come from the start's files in git, and must
/// be those of the receipt.
pub(super) fn in_clone(receipt: &Receipt, top: &Path, scratch: &Path) -> Result<Prepared, Refusal> {
    let workspace = top.join(&receipt.directory);
    if !workspace.is_dir() {
        return Err(refuse(
            format!("{} does not exist", workspace.display()),
            "check out a commit that has this directory",
        ));
    }
    let repository = RecordedTrees::open(top, receipt, scratch)?;
    let (recorded, mut changes) = split(
        repository.recorded_files(scratch)?,
        repository.content.top(),
        &workspace,
    );
    let mut prepared = Prepared {
        review: repository.review(receipt),
        altered_guards: Vec::new(),
        changes: Vec::new(),
        notes: repository.notes.clone(),
        workspace,
    };
    let mut restores = Vec::new();
    if receipt.touched.is_some() {
        let Some(start) = &repository.start else {
            let base = receipt.base.as_deref().unwrap_or_default();
            return Err(refuse(
                "this repository does not have the files of the loop's start",
                fetch_hint(
                    receipt
                        .start
                        .as_ref()
                        .and_then(|start| start.reference.as_deref()),
                    base,
                ),
            ));
        };
        let copy = scratch.join("tree");
        let written = repository.content.write_tree_to(&copy, None, start);
        written.map_err(failed)?;
        let copy = fs::canonicalize(&copy).map_err(failed)?;
        let inner = copy.join(&receipt.directory);
        fs::create_dir_all(&inner).map_err(failed)?;
        let baseline = Baseline::take_of_tree(
            &BaselineSpec {
                workspace: &inner,
                home: None,
                path_dirs: Vec::new(),
                settings: VariablePaths::default(),
                checks: receipt
                    .checks
                    .iter()
                    .map(|check| check.command.as_str())
                    .collect(),
                protect: &receipt.protect,
                own: Vec::new(),
                copies_sources: false,
            },
            scratch,
        );
        let baseline = baseline.map_err(failed)?;
        prepared.compare_guards(receipt, &baseline);
        let graded = &repository.graded;
        let written = repository.content.write_tree_to(&copy, Some(start), graded);
        written.map_err(failed)?;
        let touched = baseline.touched(&receipt.allow, &[]).map_err(failed)?;
        restores = baseline.changes_for_view(&touched).map_err(failed)?;
        for restore in &mut restores {
            if let Ok(path) = restore.path.strip_prefix(&inner) {
                restore.path = prepared.workspace.join(path);
            }
        }
    }
    changes.extend(recorded.view_changes(&prepared.workspace, restores));
    prepared.changes = changes;
    Ok(prepared)
}

impl Prepared {
    /// Compares the originals with the hashes in the receipt.
    fn compare_guards(&mut self, receipt: &Receipt, baseline: &Baseline) {
        let hashes = baseline.hashes();
        let mut missing = Vec::new();
        for (path, hash) in &receipt.guards.files {
            match hashes.get(path) {
                Some(other) if other == hash => {}
                Some(_) => self.altered_guards.push(path.clone()),
                // A file that git ignores is in no tree.
                None => missing.push(path.as_str()),
            }
        }
        if !missing.is_empty() {
            let names = name_some(&missing);
            self.notes
                .push(format!("not in the repository, and not compared: {names}"));
        }
    }
}

/// The trees of a receipt in a repository.
struct RecordedTrees {
    content: TreeContent,
    graded: String,
    start: Option<String>,
    notes: Vec<String>,
}

impl RecordedTrees {
    fn open(workspace: &Path, receipt: &Receipt, scratch: &Path) -> Result<Self, Refusal> {
        let content = TreeContent::find(workspace, &scratch.join("git")).map_err(failed)?;
        let content = content.ok_or_else(|| {
            refuse(
                format!("{} is not in a git repository", workspace.display()),
                "run this command in a clone of the loop's repository",
            )
        })?;
        let find = |object: &str| content.find_tree(object).map_err(failed);
        let recorded = receipt.graded.clone().unwrap_or_default();
        let Some(graded) = find(&recorded.tree)? else {
            let commit = receipt.commit.as_deref().filter(|_| receipt.is_committed);
            return Err(refuse(
                "this repository does not have the files that the checks ran on",
                fetch_hint(recorded.reference.as_deref(), commit.unwrap_or_default()),
            ));
        };
        let mut notes = Vec::new();
        let mut start = match &receipt.start {
            Some(start) => find(&start.tree)?,
            None => None,
        };
        if let Some(base) = receipt.base.as_deref().filter(|_| start.is_none()) {
            start = find(base)?;
            if start.is_some() {
                notes.push(format!("the originals are those of the commit {base}"));
            }
        }
        Ok(Self {
            content,
            graded,
            start,
            notes,
        })
    }

    fn recorded_files(&self, scratch: &Path) -> Result<TreeFiles, Refusal> {
        let files = self
            .content
            .compare_with(&self.graded, &scratch.join("files"));
        files.map_err(failed)
    }

    fn review(&self, receipt: &Receipt) -> Option<Review> {
        receipt.review.as_ref()?;
        let (patch, _) = self
            .content
            .patch(self.start.as_ref()?, &self.graded)
            .ok()?;
        Some(review(&patch))
    }
}

fn fetch_hint(reference: Option<&str>, commit: &str) -> String {
    match reference {
        _ if !commit.is_empty() => format!("run `git fetch origin {commit}`"),
        Some(reference) => format!(
            "fetch them from the repository in which the loop ran: `git fetch PATH {reference}`"
        ),
        None => "run this command in the repository in which the loop ran".into(),
    }
}

/// Separates the files of the workspace from others in the repository.
fn split(
    files: TreeFiles,
    top: &Path,
    workspace: &Path,
) -> (RecordedState<'static>, Vec<ViewChange>) {
    let (mut recorded, mut others) = (RecordedState::default(), Vec::new());
    let top = fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
    for (path, file) in files {
        let full = top.join(OsStr::from_bytes(&path));
        match full.strip_prefix(workspace) {
            Ok(path) => {
                let path = path.as_os_str().to_owned().into_vec();
                recorded.files.insert(path, file);
            }
            Err(_) => others.push(ViewChange {
                path: full,
                content: file.map_or(ViewContent::Absent, ViewContent::Original),
            }),
        }
    }
    (recorded, others)
}

/// Describes the files that no checkpoint contains.
fn unrecorded(dir: &LoopDir, state: &State) -> Option<String> {
    let number = state.checkpoint.newest?.to_string();
    let checkpoint = Checkpoints::find(&dir.git_scratch())?.get(&number).ok()??;
    let names: Vec<String> = checkpoint
        .skipped
        .keys()
        .map(|path| path_name(path))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        let names = name_some(&names);
        format!("not recorded, and as they are now: {names}")
    })
}

fn name_some(names: &[&str]) -> String {
    let more = if names.len() > NAMED_MAX { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(NAMED_MAX)].join(", "))
}
