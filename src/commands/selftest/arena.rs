//! Plays one agent at a time in a view of the workspace: a real loop, whose writes are thrown away.
//!
//! The view covers the workspace, its git directory and the home directory. The loop has its own
//! state directory and settings; the user's settings files are hidden, because they could push or
//! notify.

use super::cheat::PREAMBLE;
use crate::engine::Event;
use crate::engine::event::CheckReport;
use crate::engine::format::shell_quote;
use crate::lifecycle::error::CommandError;
use crate::os;
use crate::process::signals::{SignalEvent, SignalListener};
use crate::proof::view::{View, ViewRequest};
use crate::proof::{SourceFiles, ViewChange, ViewContent};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{fs, io};

/// How often a loop that is running is looked at.
const POLL: Duration = Duration::from_millis(10);

/// The name of each loop.
const NAME: &str = "selftest";

/// The directory and the settings with which agents are played.
pub(super) struct Arena {
    workspace: PathBuf,
    /// A temporary directory, which is removed on drop.
    root: PathBuf,
    /// Hides the user's settings, and makes the view cover everything that an agent may write.
    changes: Vec<ViewChange>,
    checks: Vec<String>,
    signals: SignalListener,
    was_interrupted: bool,
    pub(super) files: SourceFiles,
}

/// How a loop with a played agent ended.
pub(super) struct Played {
    pub(super) end: PlayedEnd,
    /// The results of the checks, by iteration; 0 is preflight.
    reports: Vec<(u32, usize, CheckReport)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayedEnd {
    /// The loop was done.
    Accepted,
    /// The loop ended with a question to a person.
    Asked,
    Refused,
    /// The user stopped the selftest.
    Interrupted,
}

impl Arena {
    /// Prepares a temporary directory. `settings` are those of the loops, and `masks` the settings
    /// files that they must not read.
    pub(super) fn create(
        workspace: &Path,
        settings: &Value,
        checks: Vec<String>,
        masks: Vec<PathBuf>,
    ) -> Result<Self, CommandError> {
        let failed = |error: io::Error| CommandError::broken(format!("cannot prepare: {error}"));
        let root = std::env::temp_dir().join(format!("ralph-selftest-{}", std::process::id()));
        let home = std::env::home_dir().filter(|home| home.is_dir());
        let mut covered = vec![workspace.to_owned()];
        covered.extend(home);
        covered.extend(crate::git::git_dirs_of(workspace));
        if let Some(dir) = covered.iter().find(|dir| root.starts_with(dir)) {
            return Err(CommandError::usage(
                format!(
                    "the temporary directory {} is in {}",
                    root.display(),
                    dir.display()
                ),
                "set TMPDIR to a directory outside the workspace and your home directory",
            ));
        }
        fs::create_dir(&root).map_err(failed)?;
        let mut changes: Vec<ViewChange> = masks.into_iter().map(absent).collect();
        changes.extend(
            covered
                .iter()
                .map(|dir| absent(dir.join(".ralph-selftest"))),
        );
        let arena = Self {
            workspace: workspace.to_owned(),
            root,
            changes,
            checks,
            signals: SignalListener::listen().map_err(failed)?,
            was_interrupted: false,
            files: SourceFiles::list(workspace).map_err(failed)?,
        };
        arena.write_lists(settings).map_err(failed)?;
        Ok(arena)
    }

    fn write_lists(&self, settings: &Value) -> io::Result<()> {
        fs::create_dir(self.root.join("bin"))?;
        fs::write(self.root.join("settings.json"), settings.to_string())?;
        let programs = self.checks.iter().filter_map(|check| {
            let program = check.split_whitespace().next()?;
            let is_plain = program
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
            // Ralph runs the checks with a shell that it finds itself.
            (is_plain && os::program::find(program, &self.workspace).is_some()).then_some(program)
        });
        let programs: Vec<&str> = programs.collect();
        fs::write(self.root.join("programs"), lines_text(&programs))?;
        for (name, paths) in [
            ("sources", &self.files.sources),
            ("tests", &self.files.tests),
        ] {
            let lines = paths.iter().filter_map(|path| path.to_str());
            let lines = lines.filter(|path| !path.contains('\n'));
            let lines: Vec<&str> = lines.collect();
            fs::write(self.root.join(name), lines_text(&lines))?;
        }
        Ok(())
    }

    /// Returns whether a shell condition of the table of cheats is true.
    pub(super) fn is_true(&self, condition: &str) -> bool {
        let status = Command::new(os::program::shell())
            .args(["-c", &self.script(condition)])
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    fn script(&self, text: &str) -> String {
        let root = shell_quote(&self.root.to_string_lossy());
        let checks = shell_quote(&self.checks.join("\n"));
        format!("SELFTEST={root}\nCHECKS={checks}\n{PREAMBLE}\n{text}\n")
    }

    /// Runs a loop whose agent is this script. With `claims`, the agent then claims to be done.
    pub(super) fn play(
        &mut self,
        script: &str,
        claims: bool,
        iterations: u32,
    ) -> Result<Played, CommandError> {
        let failed = |error: io::Error| CommandError::broken(format!("cannot play: {error}"));
        let state = self.root.join("state");
        for dir in [&state, &self.root.join("bin")] {
            let _ = fs::remove_dir_all(dir);
            fs::create_dir(dir).map_err(failed)?;
        }
        let promise = if claims {
            "echo '<promise>COMPLETE</promise>'"
        } else {
            ""
        };
        let agent = self.root.join("agent.sh");
        let text = self.script(&format!("{script}\n{promise}"));
        fs::write(&agent, text).map_err(failed)?;
        let view = View::prepare_overlay(&ViewRequest {
            workspace: &self.workspace,
            scratch: &self.root.join("view"),
            changes: &self.changes,
            is_own_worktree: false,
        });
        let view = view.map_err(|error| unavailable(&error.to_string()))?;
        if let Some(weakness) = view.weaknesses().first() {
            return Err(unavailable(&weakness.to_string()));
        }
        let status = self.run(&view, &agent, iterations).map_err(failed)?;
        let journal = state.join("loops").join(NAME).join("journal.jsonl");
        let journal = fs::read_to_string(journal).unwrap_or_default();
        let removed = view.remove();
        removed.map_err(|error| CommandError::broken(format!("cannot remove a view: {error}")))?;
        self.played(status, &journal)
    }

    fn run(&mut self, view: &View, agent: &Path, iterations: u32) -> io::Result<ExitStatus> {
        let mut path = self.root.join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let output = fs::File::create(self.root.join("output"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["run", "selftest", "--here", "--quiet", "--name", NAME])
            .args(["--max-iterations", &iterations.to_string()])
            .arg("--config")
            .arg(self.root.join("settings.json"))
            .args(["--", "sh"])
            .arg(agent)
            .env("RALPH_STATE_DIR", self.root.join("state"))
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        view.confine(&mut command)?;
        // A selftest that is killed leaves no loop behind.
        os::set_parent_death_signal(&mut command);
        self.wait(command.spawn()?)
    }

    /// Waits until a loop ends. Stops it if the user wants to stop.
    fn wait(&mut self, mut child: Child) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            self.was_interrupted |= self.signals.take().iter().any(|signal| {
                matches!(
                    signal,
                    SignalEvent::Interrupt | SignalEvent::Terminate | SignalEvent::HangUp
                )
            });
            if self.was_interrupted {
                // The second one stops a loop at once.
                let pid = Pid::from_child(&child);
                let _ = kill_process(pid, Signal::INT);
            }
            std::thread::sleep(POLL);
        }
    }

    fn played(&self, status: ExitStatus, journal: &str) -> Result<Played, CommandError> {
        let events = journal
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let mut reports = Vec::new();
        for event in events {
            match event {
                Event::Checked {
                    iteration,
                    check,
                    report,
                    ..
                } => reports.push((iteration, check, report)),
                Event::Surveyed {
                    weaknesses,
                    failure,
                    ..
                } => {
                    if let Some(why) = failure.or(weaknesses.into_iter().next()) {
                        return Err(unavailable(&why));
                    }
                }
                _ => {}
            }
        }
        let end = match status.code() {
            _ if self.was_interrupted => PlayedEnd::Interrupted,
            Some(0) => PlayedEnd::Accepted,
            Some(3) => PlayedEnd::Asked,
            Some(1) => PlayedEnd::Refused,
            Some(130) => PlayedEnd::Interrupted,
            _ => {
                let output = fs::read_to_string(self.root.join("output")).unwrap_or_default();
                let message = format!("a loop could not run ({status})\n{}", output.trim_end());
                return Err(CommandError::broken(message));
            }
        };
        Ok(Played { end, reports })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let _ = View::recover(&self.root.join("view"));
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Played {
    /// Returns the results of a check, oldest first.
    pub(super) fn runs(&self, check: usize) -> Vec<&CheckReport> {
        let reports = self.reports.iter().filter(|(_, index, _)| *index == check);
        reports.map(|(.., report)| report).collect()
    }

    /// Returns the result of a check after the agent has run.
    pub(super) fn after_agent(&self, check: usize) -> Option<&CheckReport> {
        let mut reports = self.reports.iter();
        let found = reports.find(|(iteration, index, _)| *iteration == 1 && *index == check);
        found.map(|(.., report)| report)
    }
}

/// Returns a text with each line ended, which is empty without lines.
fn lines_text(lines: &[&str]) -> String {
    let mut text = lines.join("\n");
    if !lines.is_empty() {
        text.push('\n');
    }
    text
}

fn absent(path: PathBuf) -> ViewChange {
    ViewChange {
        path,
        content: ViewContent::Absent,
    }
}

fn unavailable(why: &str) -> CommandError {
    CommandError::usage(
        format!("cannot play cheats here: {why}"),
        "the selftest works in views of the workspace, within which each loop makes its own; \
         `ralph doctor` shows whether views work here",
    )
}
