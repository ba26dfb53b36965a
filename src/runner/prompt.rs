//! What the next prompt is made of: the task read anew, what changed, and what the red checks said.

use super::Runner;
use crate::engine::event::Fault;
use crate::engine::excerpt::Excerpt;
use crate::engine::plain_text::plain;
use crate::engine::plan::{Level, Scm};
use crate::engine::prompt::{Materials, render};
use crate::engine::{format, signals};
use crate::git;
use crate::git::worktree;
use crate::os::regular;
use crate::store::dir::{create_file, make_dir};
use crate::store::{LoopDir, Post};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(super) type Faulty<T> = Result<T, (Fault, String)>;

/// The state of the repository when the loop began: taken once, found again by every later runner.
pub(super) fn base(dir: &LoopDir, workspace: &Path) -> Result<git::Base, String> {
    let (scratch, path) = (dir.scratch(), dir.base());
    if let Ok(text) = fs::read_to_string(&path) {
        return serde_json::from_str(&text).map_err(|_| OUTSIDE.to_owned());
    }
    let taken = git::Base::take(workspace, &scratch);
    let text = serde_json::to_string(&taken.as_ref().ok()).unwrap_or_default();
    if taken.is_ok()
        && let Ok(mut file) = create_file(&path)
    {
        let _ = file.write_all(text.as_bytes());
    }
    taken?.ok_or_else(|| OUTSIDE.to_owned())
}

/// A prompt file beyond this is no prompt.
const PROMPT_MAX: u64 = 16 << 20;
const OUTSIDE: &str = "There is no diff: the workspace is not in a git repository.";

impl Runner<'_> {
    /// Whether everything is still where it was.
    pub(super) fn in_place(&self) -> Faulty<()> {
        let plan = &self.state.plan;
        if self.journal.is_gone() {
            let gone = self.dir.path().display();
            return Err((
                Fault::Disk,
                format!("the loop's directory was deleted: {gone}"),
            ));
        }
        if let Some(own) = plan
            .worktree
            .as_ref()
            .filter(|own| !worktree::is_there(own))
        {
            return Err((Fault::Workspace, worktree::gone(own)));
        }
        if !plan.workspace.is_dir() {
            return Err((
                Fault::Workspace,
                format!("the workspace is gone: {}", plan.workspace.display()),
            ));
        }
        Ok(())
    }

    /// Whether an iteration can start at all.
    pub(super) fn ready(&mut self) -> Faulty<()> {
        self.in_place()?;
        let plan = &self.state.plan;
        if let Err(error) = self.task.ensure() {
            return Err((
                Fault::Workspace,
                format!("cannot write to the workspace: {error}"),
            ));
        }
        self.world.watch(self.task.path());
        for place in [self.dir.path(), &plan.workspace] {
            let Ok(disk) = rustix::fs::statvfs(place) else {
                continue;
            };
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            if free < plan.min_free {
                let (free, needed) = (format::bytes(free), format::bytes(plan.min_free));
                let detail = format!(
                    "only {free} free on the disk of {}; {needed} are needed",
                    place.display()
                );
                return Err((Fault::Disk, detail));
            }
        }
        Ok(())
    }

    /// The next iteration's prompt.
    pub(super) fn prompt(&self) -> Faulty<Vec<u8>> {
        let plan = &self.state.plan;
        let task = self.task_text()?;
        if plan.context.level == Level::None && !self.state.is_inside() {
            // It is kept in a file like every other.
            return Ok(self.world.mask().cover(&task).into_owned());
        }
        let task = String::from_utf8_lossy(&task).into_owned();
        let mut materials = Materials {
            task,
            red: self.red_outputs(),
            task_output: self.task_output(),
            bus: self.bus_excerpt(),
            ..Materials::default()
        };
        if plan.context.level == Level::Full && !self.state.is_inside() {
            match self.diff() {
                Ok(diff) => materials.diff = diff,
                Err(why) => materials.diff_missing = why,
            }
        }
        let text = render(&self.state, &materials);
        Ok(self
            .world
            .mask()
            .cover_text(&text)
            .into_owned()
            .into_bytes())
    }

    /// Opens the prompt for the agent to read. One that is the same as the last is read from the last one's
    /// file, so that an iteration begins without waiting for the disk; [`Self::keep_prompt`] comes after.
    pub(super) fn open_prompt(&mut self, iteration: u32, prompt: Vec<u8>) -> Faulty<File> {
        let (last, text) = &self.prompt;
        if *last > 0
            && *text == prompt
            && let Ok(file) = regular::open(&self.prompt_path(*last), false)
        {
            return Ok(file);
        }
        self.prompt = (iteration, prompt);
        let written = self.write_prompt(iteration);
        written.map_err(|error| (Fault::Disk, format!("cannot write the prompt: {error}")))
    }

    /// Where an iteration's prompt is kept.
    pub(super) fn prompt_path(&self, iteration: u32) -> PathBuf {
        self.dir.iteration(iteration).join("prompt.md")
    }

    fn write_prompt(&self, iteration: u32) -> io::Result<File> {
        let path = self.prompt_path(iteration);
        make_dir(&self.dir.iteration(iteration))?;
        // A crash may have left one that no iteration was told, and that may be an earlier one's too.
        let _ = fs::remove_file(&path);
        create_file(&path)?.write_all(&self.prompt.1)?;
        regular::open(&path, false)
    }

    /// Makes sure that the iteration's directory has its prompt: the same file as the last one's, if it is
    /// the same; nothing ever writes to it again.
    pub(super) fn keep_prompt(&mut self, iteration: u32) -> io::Result<()> {
        let last = std::mem::replace(&mut self.prompt.0, iteration);
        if last == iteration {
            return Ok(());
        }
        make_dir(&self.dir.iteration(iteration))?;
        match fs::hard_link(self.prompt_path(last), self.prompt_path(iteration)) {
            Ok(()) => Ok(()),
            Err(_) => self.write_prompt(iteration).map(drop),
        }
    }

    pub(super) fn task_text(&self) -> Faulty<Vec<u8>> {
        let task = &self.state.plan.task;
        let Some(path) = &task.file else {
            return Ok(task.text.clone().unwrap_or_default().into_bytes());
        };
        let read = regular::read(path, PROMPT_MAX, true).and_then(|(bytes, more)| {
            if more {
                Err(io::Error::other("it is too long"))
            } else {
                Ok(bytes)
            }
        });
        read.map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::NotFound => "prompt file not found",
                _ => "cannot read prompt file",
            };
            (Fault::PromptFile, format!("{what}: {}", path.display()))
        })
    }

    /// Words of the plan as a person typed them, for whoever has to have them so.
    pub(super) fn uncovered(&self, text: &str) -> String {
        self.world.mask().uncover(text, &self.state.plan.covered)
    }

    fn diff(&self) -> Result<Excerpt, String> {
        let base = self.base.as_ref().map_err(Clone::clone)?;
        let diff = base.diff(&self.dir.scratch(), self.state.plan.context.diff_chars)?;
        let mut excerpt = Excerpt::new(
            &diff.text,
            diff.dropped_chars,
            if diff.at_least {
                "or more later"
            } else {
                "later"
            },
        );
        match diff.note {
            Some(note) if excerpt.text.is_empty() => return Err(note),
            Some(note) if excerpt.cut.is_empty() => excerpt.cut = note,
            Some(note) => excerpt.cut = format!("{} {note}", excerpt.cut),
            None => {}
        }
        Ok(excerpt)
    }

    fn red_outputs(&self) -> Vec<(usize, Excerpt, String)> {
        let (plan, iteration) = (&self.state.plan, self.state.iteration);
        let checks = plan.proof.checks.iter().zip(&self.state.checks).enumerate();
        let red = checks
            .filter(|(_, (_, report))| report.as_ref().is_some_and(|report| !report.is_green()));
        red.map(|(place, (check, _))| {
            let log = self.dir.check_log(iteration, &check.slug);
            let max = plan.context.output_chars;
            let (text, dropped) = tail(&log, max).unwrap_or_default();
            (
                place,
                Excerpt::tail(&text, max, dropped),
                check.guardrail(iteration),
            )
        })
        .collect()
    }
}

/// So much of one message, and of all together, goes into a prompt, in characters.
const MESSAGE_CHARS: usize = 500;
const BUS_CHARS: usize = 8000;

impl Runner<'_> {
    /// What was said on the project's bus of late; what cannot be read is no reason against an iteration.
    fn bus_excerpt(&self) -> Excerpt {
        let count = self.state.plan.context.bus;
        let posts = if count == 0 {
            vec![]
        } else {
            self.buses[1].last(count).unwrap_or_default().posts
        };
        let lines: Vec<String> = posts.iter().map(bus_line).collect();
        Excerpt::tail(&lines.join("\n"), BUS_CHARS, 0)
    }

    /// What the task that failed last printed.
    fn task_output(&self) -> Option<(Excerpt, String)> {
        let (owed, max) = (
            self.state.keeping.newest_failure()?,
            self.state.plan.context.output_chars,
        );
        let (text, dropped) = tail(&self.dir.task_log(owed.iteration, owed.task), max).ok()?;
        Some((
            Excerpt::tail(&text, max, dropped),
            Scm::guardrail(owed.iteration, owed.task),
        ))
    }
}

/// A message as an agent reads it: one line, whatever it holds.
fn bus_line(post: &Post) -> String {
    let words = signals::fold(&post.text);
    let mut text: String = words.chars().take(MESSAGE_CHARS).collect();
    if text.len() < words.len() {
        text.push('…');
    }
    plain(&format!(
        "{} {} {}: {text}",
        post.time,
        post.kind,
        post.sender()
    ))
    .into_owned()
}

/// The end of a file: as many bytes as so many characters can take, and how many came before.
fn tail(path: &Path, max_chars: usize) -> io::Result<(String, u64)> {
    let mut file = regular::open(path, false)?;
    let wanted = (max_chars as u64).saturating_mul(4);
    let before = file.metadata()?.len().saturating_sub(wanted);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), before))
}
