//! Proves the result of a loop again: runs its checks on the recorded files, in a view with the
//! original tests, and compares the results.

mod prepare;
mod receipt_file;

pub(crate) use receipt_file::read_receipt;

use super::error::CommandError;
use super::handle::exemptions;
use crate::agent::redact::Redactor;
use crate::engine::State;
use crate::engine::event::CheckReport;
use crate::engine::receipt::{CheckRecord, Receipt, RecordedResult, SetupRecord};
use crate::engine::review::Review;
use crate::process::orphans;
use crate::process::tree::start_time;
use crate::proof::view::{View, ViewRequest, Weakness};
use crate::runner::rerun::{CheckEnd, CheckRun, CheckRunner};
use crate::store::dir::create_dir;
use crate::store::{LoopDir, StateDir};
use prepare::Prepared;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is verified, and where.
pub(crate) struct Verification {
    pub(crate) receipt: Receipt,
    pub(crate) target: VerifyTarget,
    state_dir: StateDir,
    /// A directory that only this verification uses.
    scratch: PathBuf,
    /// The ID with which its processes are marked.
    id: String,
    redactor: Redactor,
}

/// Where the recorded files and the originals come from.
pub(crate) enum VerifyTarget {
    /// The loop's own workspace, checkpoints and copies.
    Loop(LoopDir, Box<State>),
    /// A clone, given by its top.
    Clone(PathBuf),
}

/// The result of a verification.
pub(crate) struct VerifyReport {
    pub(crate) checks: Vec<VerifiedCheck>,
    /// Original tests or settings that are not those of the receipt.
    pub(crate) altered_guards: Vec<String>,
    pub(crate) review: Option<Review>,
    /// What limits the result's meaning.
    pub(crate) notes: Vec<String>,
}

/// A check that ran again.
pub(crate) struct VerifiedCheck {
    pub(crate) record: CheckRecord,
    pub(crate) now: RecordedResult,
    /// The line of the output that says why the check is red.
    pub(crate) line: Option<String>,
}

impl VerifiedCheck {
    pub(crate) fn is_same(&self) -> bool {
        let recorded = self.record.decisive();
        recorded.is_some_and(|recorded| recorded.agrees_with(&self.now))
    }
}

impl VerifyReport {
    pub(crate) fn is_verified(&self) -> bool {
        self.altered_guards.is_empty() && self.checks.iter().all(VerifiedCheck::is_same)
    }
}

impl Verification {
    /// Prepares the verification of a loop. The caller holds its locks.
    pub(crate) fn of_loop(
        state_dir: &StateDir,
        dir: &LoopDir,
        state: &State,
        receipt: Receipt,
    ) -> Result<Self, CommandError> {
        let verification = Self {
            id: receipt.id.clone(),
            redactor: Redactor::for_plan(&state.plan),
            scratch: dir.verify_scratch(),
            target: VerifyTarget::Loop(dir.clone(), Box::new(state.clone())),
            state_dir: state_dir.clone(),
            receipt,
        };
        verification.check_receipt()?;
        remove_abandoned(state_dir, &receipts_dir(state_dir));
        verification.clean_up();
        orphans::sweep_by_id(&verification.id, &exemptions(state_dir));
        Ok(verification)
    }

    /// Prepares the verification of a receipt in the clone whose top is `top`.
    pub(crate) fn of_receipt(
        state_dir: &StateDir,
        top: PathBuf,
        receipt: Receipt,
    ) -> Result<Self, CommandError> {
        let all = receipts_dir(state_dir);
        remove_abandoned(state_dir, &all);
        let pid = std::process::id();
        let id = format!("verify-{pid}-{}", start_time(pid).unwrap_or(0));
        let verification = Self {
            redactor: Redactor::from_env(),
            scratch: all.join(&id),
            target: VerifyTarget::Clone(top),
            state_dir: state_dir.clone(),
            id,
            receipt,
        };
        verification.check_receipt()?;
        Ok(verification)
    }

    /// Checks that there is something to verify.
    fn check_receipt(&self) -> Result<(), CommandError> {
        let receipt = &self.receipt;
        let name = &receipt.name;
        let checks = &receipt.checks;
        if checks.is_empty() || checks.iter().any(|check| check.decisive().is_none()) {
            return Err(CommandError::usage(
                format!("{name:?} cannot be verified: not every check has a result"),
                "only a loop whose checks have run at its end can be verified",
            ));
        }
        if receipt.graded.is_none() {
            return Err(CommandError::usage(
                format!(
                    "{name:?} cannot be verified: the files that its checks ran on were not recorded"
                ),
                "ralph records files as checkpoints, in git repositories and without --no-checkpoints",
            ));
        }
        Ok(())
    }

    /// Runs the checks again. Calls `show` after each of them. Returns `None` if a signal interrupted
    /// it. The caller is a subreaper without other children.
    pub(crate) fn run(
        &self,
        show: &mut dyn FnMut(&VerifiedCheck),
    ) -> Result<Option<VerifyReport>, CommandError> {
        let broken = |error: std::io::Error| CommandError::broken(error);
        let exemptions = exemptions(&self.state_dir);
        let mut runner =
            CheckRunner::open(&self.id, exemptions, self.redactor.clone()).map_err(broken)?;
        create_dir(&self.scratch).map_err(broken)?;
        let prepared = self.prepare()?;
        let view = View::prepare(&ViewRequest {
            workspace: &prepared.workspace,
            scratch: &self.scratch.join("view"),
            changes: &prepared.changes,
            is_own_worktree: false,
        });
        let view = view.map_err(|error| {
            CommandError::usage(
                format!("cannot prepare the view: {error}"),
                "`ralph doctor` shows whether views work here",
            )
        })?;
        let mut report = VerifyReport {
            checks: Vec::new(),
            altered_guards: prepared.altered_guards,
            review: prepared.review,
            notes: prepared.notes,
        };
        report
            .notes
            .extend(view.weaknesses().iter().map(weakness_note));
        if let Some(setup) = &self.receipt.setup {
            let ended = self.run_in(&view, &mut runner, &prepared.workspace, setup, None)?;
            match ended {
                CheckEnd::Ended(result) if result.is_green() => {}
                CheckEnd::Ended(_) => {
                    let command = &setup.command;
                    return Err(CommandError::usage(
                        format!("the setup command `{command}` failed"),
                        "it prepares the files that git ignores, such as dependencies",
                    ));
                }
                CheckEnd::Interrupted => return Ok(None),
            }
        }
        for record in &self.receipt.checks {
            let command = SetupRecord {
                command: record.command.clone(),
                timeout_s: record.timeout_s,
            };
            let expect = record.expect.as_deref();
            let ended = self.run_in(&view, &mut runner, &prepared.workspace, &command, expect)?;
            let CheckEnd::Ended(result) = ended else {
                return Ok(None);
            };
            let CheckReport { line, .. } = &*result;
            let check = VerifiedCheck {
                record: record.clone(),
                now: RecordedResult::from(&*result),
                line: line.clone(),
            };
            show(&check);
            report.checks.push(check);
        }
        view.remove().map_err(CommandError::broken)?;
        Ok(Some(report))
    }

    /// Runs a command in the view.
    fn run_in(
        &self,
        view: &View,
        runner: &mut CheckRunner,
        workspace: &Path,
        run: &SetupRecord,
        expect: Option<&str>,
    ) -> Result<CheckEnd, CommandError> {
        let command = &run.command;
        let ended = runner.run(&CheckRun {
            command: &self.redactor.restore(command, &self.receipt.secrets),
            expect,
            timeout: Duration::try_from_secs_f64(run.timeout_s).unwrap_or(Duration::MAX / 8),
            dir: workspace,
            view,
            log: self.scratch.join("output.log"),
        });
        ended.map_err(|error| CommandError::broken(format!("cannot run `{command}`: {error}")))
    }

    fn prepare(&self) -> Result<Prepared, CommandError> {
        let prepared = match &self.target {
            VerifyTarget::Loop(dir, state) => {
                prepare::in_workspace(&self.receipt, dir, state, &self.scratch)
            }
            VerifyTarget::Clone(top) => prepare::in_clone(&self.receipt, top, &self.scratch),
        };
        prepared.map_err(|(why, hint)| {
            let name = &self.receipt.name;
            CommandError::usage(format!("{name:?} cannot be verified: {why}"), hint)
        })
    }

    /// Deletes everything that the verification has written.
    pub(crate) fn clean_up(&self) {
        remove(&self.scratch);
    }
}

fn weakness_note(weakness: &Weakness) -> String {
    format!("the recorded files were not fully restored: {weakness}")
}

fn remove(scratch: &Path) {
    // What cannot be deleted now is deleted by the next verification.
    let _ = View::recover(scratch);
}

/// Returns the directory of the verifications of receipts.
fn receipts_dir(state_dir: &StateDir) -> PathBuf {
    state_dir.root().join("verify")
}

/// Deletes what verifications left whose processes were all killed, and kills what they started.
fn remove_abandoned(state_dir: &StateDir, all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut parts = name.rsplit('-');
        let started = parts.next().and_then(|text| text.parse::<u64>().ok());
        let pid = parts.next().and_then(|text| text.parse::<u32>().ok());
        let is_alive = pid.is_some_and(|pid| start_time(pid) == started && started.is_some());
        if !is_alive {
            orphans::sweep_by_id(&name, &exemptions(state_dir));
            remove(&entry.path());
        }
    }
}
