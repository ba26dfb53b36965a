//! Builds the next iteration's prompt, and saves every iteration's prompt in its directory.

use super::recorder::Recorder;
use super::task_files::FaultResult;
use crate::engine::display::code_span;
use crate::engine::event::Fault;
use crate::engine::excerpt::Excerpt;
use crate::engine::plain_text::plain;
use crate::engine::plan::{ContextLevel, PROMPT_FILE_MAX, Scm};
use crate::engine::prompt::{PromptInputs, render};
use crate::engine::signals::defang;
use crate::git::DiffBase;
use crate::os::regular_file;
use crate::store::LoopDir;
use crate::store::dir::{create_dir, create_file};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The minimum number of bytes to read from the end of an output. Progress bars print many
/// characters that are then overwritten.
const OUTPUT_READ_MIN: u64 = 64 << 10;
/// Maximum size of the list of an iteration's changes, in bytes.
const CHANGES_MAX: u64 = 4 << 20;
/// Number of files that the history names for one iteration.
const FILES_SHOWN: usize = 5;
const NOT_IN_GIT: &str = "There is no diff: the workspace is not in a git repository.";

/// The loop's newest prompt, and the data for building the next one.
pub(super) struct Prompts {
    /// The base for diffs, or why there is no diff.
    base: Result<DiffBase, String>,
    /// The iteration whose directory contains the newest prompt, or 0 if there is no prompt yet.
    kept_in: u32,
    bytes: Vec<u8>,
    prepared: Option<PreparedPrompt>,
}

/// A hash of each file's changes since the loop began.
type FileHashes = BTreeMap<String, u64>;

/// The files that an iteration changed, and the hashes to compare the next iteration with.
#[derive(Serialize, Deserialize)]
struct IterationChanges {
    changed: Vec<String>,
    hashes: FileHashes,
}

/// A prompt that is ready for an iteration.
struct PreparedPrompt {
    iteration: u32,
    /// The number of the user's answers that the prompt contains.
    answers: usize,
    file: File,
}

impl Prompts {
    pub(super) fn open(rec: &Recorder<'_>) -> Self {
        let base = if rec.state.is_in_session() {
            // Prompts in a session contain no diff, and a hook must not wait for git.
            Err(String::new())
        } else {
            open_base(&rec.dir, &rec.state.plan.workspace)
        };
        Self {
            base,
            kept_in: 0,
            bytes: Vec::new(),
            prepared: None,
        }
    }

    /// Returns the repository's state when the loop began; `None` if it was not captured.
    pub(super) fn base(&self) -> Option<&DiffBase> {
        self.base.as_ref().ok()
    }

    /// Returns the newest prompt.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the path of the newest prompt's file.
    pub(super) fn path(&self, dir: &LoopDir) -> PathBuf {
        prompt_path(dir, self.kept_in)
    }

    /// Builds the next prompt. `bus` is an excerpt from the project's bus.
    pub(super) fn build(&self, rec: &Recorder<'_>, bus: Excerpt) -> FaultResult<Vec<u8>> {
        let (state, plan) = (&rec.state, &rec.state.plan);
        let task = read_task(rec)?;
        if plan.context.level == ContextLevel::None && !state.is_in_session() {
            return Ok(rec.redactor.redact(&task).into_owned());
        }
        let mut inputs = PromptInputs {
            task: String::from_utf8_lossy(&task).into_owned(),
            red: red_outputs(rec),
            scm_output: failed_scm_output(rec),
            bus,
            ..PromptInputs::default()
        };
        if plan.context.level == ContextLevel::Full && !state.is_in_session() {
            match self.diff(rec) {
                Ok((diff, hashes)) => {
                    inputs.diff = diff;
                    inputs.files = changed_files(rec, hashes);
                }
                Err(why) => inputs.diff_missing = why,
            }
        }
        let text = render(state, &inputs);
        Ok(rec.redactor.redact_text(&text).into_owned().into_bytes())
    }

    /// Opens a prompt for the agent to read. If the prompt is unchanged, opens the file of the last
    /// one, so that the iteration does not wait for the disk. [`Prompts::keep`] links that file
    /// later.
    pub(super) fn prepare(
        &mut self,
        rec: &Recorder<'_>,
        iteration: u32,
        prompt: Vec<u8>,
    ) -> FaultResult<()> {
        let is_same = self.kept_in > 0 && self.bytes == prompt;
        let reopened = is_same
            .then(|| regular_file::open(&self.path(&rec.dir), false).ok())
            .flatten();
        let file = if let Some(file) = reopened {
            file
        } else {
            (self.kept_in, self.bytes) = (iteration, prompt);
            self.write(&rec.dir, iteration)
                .map_err(|error| (Fault::Disk, format!("cannot write the prompt: {error}")))?
        };
        self.prepared = Some(PreparedPrompt {
            iteration,
            answers: rec.state.answers.len(),
            file,
        });
        Ok(())
    }

    /// Takes the prepared prompt. `None` if it is for another iteration, or lacks some of the
    /// user's answers.
    pub(super) fn take_prepared(&mut self, iteration: u32, answers: usize) -> Option<File> {
        let prepared = self.prepared.take()?;
        let is_current = prepared.iteration == iteration && prepared.answers == answers;
        is_current.then_some(prepared.file)
    }

    fn write(&self, dir: &LoopDir, iteration: u32) -> io::Result<File> {
        let path = prompt_path(dir, iteration);
        create_dir(&dir.iteration_dir(iteration))?;
        // Remove a prompt that a crash left behind: it may be a link to an earlier prompt.
        let _ = fs::remove_file(&path);
        create_file(&path)?.write_all(&self.bytes)?;
        regular_file::open(&path, false)
    }

    /// Ensures that the iteration's directory contains its prompt. An unchanged prompt is a hard
    /// link to the previous one, which is never written to again.
    pub(super) fn keep(&mut self, dir: &LoopDir, iteration: u32) -> io::Result<()> {
        let last = std::mem::replace(&mut self.kept_in, iteration);
        if last == iteration {
            return Ok(());
        }
        create_dir(&dir.iteration_dir(iteration))?;
        match fs::hard_link(prompt_path(dir, last), prompt_path(dir, iteration)) {
            Ok(()) => Ok(()),
            Err(_) => self.write(dir, iteration).map(drop),
        }
    }

    fn diff(&self, rec: &Recorder<'_>) -> Result<(Excerpt, FileHashes), String> {
        let base = self.base.as_ref().map_err(Clone::clone)?;
        let chars = rec.state.plan.context.diff_chars;
        let diff = base.diff(&rec.dir.git_scratch(), chars)?;
        let cut = if diff.at_least {
            "or more later"
        } else {
            "later"
        };
        let text = match diff.dropped_chars {
            0 => rec.redactor.redact_text(&diff.text),
            _ => rec.redactor.redact_cut(&diff.text),
        };
        let mut excerpt = Excerpt::new(&text, diff.dropped_chars, cut);
        if !diff.files.is_empty() {
            let files = defang(&plain(&diff.files.join(", ")));
            excerpt.cut = format!("{} Changed files: {files}.", excerpt.cut);
        }
        match diff.note {
            Some(note) if excerpt.text.is_empty() => return Err(note),
            Some(note) if excerpt.cut.is_empty() => excerpt.cut = note,
            Some(note) => excerpt.cut = format!("{} {note}", excerpt.cut),
            None => {}
        }
        let hashes = diff.hashes.into_iter();
        let hashes =
            hashes.map(|(name, hash)| (rec.redactor.redact_text(&name).into_owned(), hash));
        Ok((excerpt, hashes.collect()))
    }
}

/// Saves which files the newest iteration changed, and returns the files that each of the last
/// iterations changed. An iteration changed a file if the file's part of the diff differs from the
/// one after the previous iteration.
fn changed_files(rec: &Recorder<'_>, hashes: FileHashes) -> BTreeMap<u32, Vec<String>> {
    let path = |iteration| rec.dir.iteration_dir(iteration).join("changes.json");
    let read = |iteration| -> Option<IterationChanges> {
        let (bytes, _) = regular_file::read(&path(iteration), CHANGES_MAX, false).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    let newest = rec.state.iteration;
    let before = match newest {
        0 => return BTreeMap::new(),
        1 => Some(FileHashes::new()),
        _ => read(newest - 1).map(|before| before.hashes),
    };
    if let Some(before) = before {
        let names = before.keys().chain(hashes.keys()).collect::<BTreeSet<_>>();
        let changed = names
            .into_iter()
            .filter(|name| before.get(*name) != hashes.get(*name));
        let changed = changed.cloned().collect();
        let record = IterationChanges { changed, hashes };
        let text = serde_json::to_string(&record).unwrap_or_default();
        // Ignore errors: the history then lacks the files.
        let _ = create_file(&path(newest)).and_then(|mut file| file.write_all(text.as_bytes()));
    }
    let recent = rec.state.recent.iter().map(|iteration| iteration.number);
    recent
        .filter_map(|number| Some((number, file_names(&read(number)?.changed))))
        .collect()
}

/// Returns the first names as code spans.
fn file_names(changed: &[String]) -> Vec<String> {
    let mut names: Vec<String> = changed
        .iter()
        .take(FILES_SHOWN)
        .map(|name| code_span(name))
        .collect();
    if changed.len() > FILES_SHOWN {
        names.push(format!("{} more", changed.len() - FILES_SHOWN));
    }
    names
}

fn prompt_path(dir: &LoopDir, iteration: u32) -> PathBuf {
    dir.iteration_dir(iteration).join("prompt.md")
}

/// Returns the state of the repository when the loop started, or why there is none.
/// The state is captured once and saved for later runners.
fn open_base(dir: &LoopDir, workspace: &Path) -> Result<DiffBase, String> {
    let path = dir.diff_base();
    if let Ok(text) = regular_file::read_text(&path, false) {
        return serde_json::from_str(&text).map_err(|_| NOT_IN_GIT.to_owned());
    }
    let base = DiffBase::capture(workspace, &dir.git_scratch())?;
    let text = serde_json::to_string(&base).unwrap_or_default();
    if let Ok(mut file) = create_file(&path) {
        let _ = file.write_all(text.as_bytes());
    }
    base.ok_or_else(|| NOT_IN_GIT.to_owned())
}

/// Returns the task: the plan's text, or the current content of the prompt file.
pub(super) fn read_task(rec: &Recorder<'_>) -> FaultResult<Vec<u8>> {
    let task = &rec.state.plan.task;
    let Some(path) = &task.file else {
        return Ok(task.text.clone().unwrap_or_default().into_bytes());
    };
    let read = regular_file::read(path, PROMPT_FILE_MAX, true).and_then(|(bytes, more)| {
        if more {
            Err(io::Error::other("it is larger than 16 MiB"))
        } else {
            Ok(bytes)
        }
    });
    read.map_err(|error| {
        let path = path.display();
        let detail = match error.kind() {
            io::ErrorKind::NotFound => format!("prompt file not found: {path}"),
            _ => format!("cannot read prompt file: {path}: {error}"),
        };
        (Fault::PromptFile, detail)
    })
}

/// Returns, for each red check, its index, the end of its output, and the path of the full output.
fn red_outputs(rec: &Recorder<'_>) -> Vec<(usize, Excerpt, String)> {
    let (plan, iteration) = (&rec.state.plan, rec.state.checked_iteration());
    let checks = plan.proof.checks.iter().zip(&rec.state.checks).enumerate();
    let red =
        checks.filter(|(_, (_, report))| report.as_ref().is_some_and(|report| !report.is_green()));
    red.map(|(index, (check, _))| {
        let log = rec.dir.check_log(iteration, &check.slug);
        let max = plan.context.output_chars;
        let (text, dropped) = read_tail(&log, max).unwrap_or_default();
        let excerpt = Excerpt::tail(&text, max, dropped);
        (index, excerpt, plan.guardrail_log(iteration, &check.slug))
    })
    .collect()
}

/// Returns the end of the output of the last failed SCM task, and the path of the full output.
fn failed_scm_output(rec: &Recorder<'_>) -> Option<(Excerpt, String)> {
    let pending = rec.state.scm.pending_task()?;
    let max = rec.state.plan.context.output_chars;
    let log = rec.dir.scm_task_log(pending.iteration, pending.task);
    let (text, dropped) = read_tail(&log, max).ok()?;
    Some((
        Excerpt::tail(&text, max, dropped),
        rec.state
            .plan
            .guardrail_log(pending.iteration, &Scm::slug(pending.task)),
    ))
}

/// Returns the end of a program's output, long enough for `max_chars` visible characters, and the
/// number of bytes before it.
fn read_tail(path: &Path, max_chars: usize) -> io::Result<(String, u64)> {
    let wanted = (max_chars as u64).saturating_mul(4).max(OUTPUT_READ_MIN);
    read_end(path, wanted)
}

/// Returns the last `max` bytes of a file as text, and how many bytes precede them.
pub(super) fn read_end(path: &Path, max: u64) -> io::Result<(String, u64)> {
    let mut file = regular_file::open(path, false)?;
    let before = file.metadata()?.len().saturating_sub(max);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), before))
}
