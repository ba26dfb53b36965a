//! Plays one agent at a time: a real loop in a view or a copy of the workspace, whose writes are
//! thrown away.
//!
//! The loop has its own state directory and settings. The user's settings files are hidden, because
//! they could push or notify.

use super::cheat::PREAMBLE;
use super::leftovers;
use super::place::{Place, Scene, cannot_prepare, unavailable};
use crate::engine::Event;
use crate::engine::event::CheckReport;
use crate::engine::format::shell_quote;
use crate::lifecycle::error::CommandError;
use crate::os;
use crate::process::signals::{SignalEvent, SignalListener};
use crate::proof::SourceFiles;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{fs, io};

/// How often a loop that is running is looked at.
const POLL: Duration = Duration::from_millis(10);

/// The name of each loop.
const NAME: &str = "selftest";

/// A loop in a view can often not make another view, although a loop in the workspace can.
const WEAKER: &str = "the second look was weaker than that of a loop in the workspace may be";

/// Lets git commit without the user's identity and keys.
const COMMITTER: [(&str, &str); 7] = [
    ("GIT_AUTHOR_NAME", NAME),
    ("GIT_AUTHOR_EMAIL", "selftest@localhost"),
    ("GIT_COMMITTER_NAME", NAME),
    ("GIT_COMMITTER_EMAIL", "selftest@localhost"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "commit.gpgSign"),
    ("GIT_CONFIG_VALUE_0", "false"),
];

/// The directory and the settings with which agents are played.
pub(super) struct Arena {
    scene: Scene,
    checks: Vec<String>,
    signals: SignalListener,
    was_interrupted: bool,
    files: SourceFiles,
    /// Why results may be others than those of a loop in the workspace itself.
    pub(super) weaknesses: BTreeSet<String>,
    /// What agents can write to without harm: the home directory, and the repository.
    pub(super) covers_home: bool,
    pub(super) has_git: bool,
}

/// An agent to play.
#[derive(Clone, Copy, Default)]
pub(super) struct Part<'a> {
    /// The shell script that it runs.
    pub(super) script: &'a str,
    /// Whether it then claims to be done.
    pub(super) claims: bool,
    /// Whether the loop commits its work.
    pub(super) commits: bool,
    pub(super) iterations: u32,
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

impl<'a> Part<'a> {
    /// Returns an agent that runs this script once, and claims to be done.
    pub(super) fn cheat(script: &'a str) -> Self {
        Self {
            script,
            claims: true,
            commits: false,
            iterations: 1,
        }
    }
}

impl Arena {
    /// Prepares the temporary directory of a scene, which exists. `settings` are those of the loops.
    pub(super) fn create(
        scene: Scene,
        settings: &Value,
        checks: Vec<String>,
    ) -> Result<Self, CommandError> {
        let mut files = SourceFiles::list(&scene.workspace, &checks).map_err(cannot_prepare)?;
        if files.sources.is_empty() {
            files.sources = std::mem::take(&mut files.others);
        }
        let arena = Self {
            checks,
            signals: SignalListener::listen().map_err(cannot_prepare)?,
            was_interrupted: false,
            files,
            weaknesses: BTreeSet::new(),
            covers_home: false,
            has_git: false,
            scene,
        };
        arena.write_lists(settings).map_err(cannot_prepare)?;
        Ok(arena)
    }

    pub(super) fn has_sources(&self) -> bool {
        !self.files.sources.is_empty()
    }

    fn root(&self) -> &Path {
        &self.scene.root
    }

    fn write_lists(&self, settings: &Value) -> io::Result<()> {
        fs::create_dir(self.root().join("bin"))?;
        fs::write(self.root().join("settings.json"), settings.to_string())?;
        let programs = self.checks.iter().filter_map(|check| {
            let program = check.split_whitespace().next()?;
            let is_plain = program
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
            // Ralph runs the checks with a shell that it finds itself.
            (is_plain && os::program::find(program, &self.scene.workspace).is_some())
                .then_some(program)
        });
        let programs: Vec<&str> = programs.collect();
        fs::write(self.root().join("programs"), lines_text(&programs))?;
        for (name, paths) in [
            ("sources", &self.files.sources),
            ("tests", &self.files.tests),
        ] {
            // Relative paths: the agent may work in a copy.
            let workspace = fs::canonicalize(&self.scene.workspace)?;
            let paths = paths
                .iter()
                .filter_map(|path| path.strip_prefix(&workspace).ok());
            let lines = paths.filter_map(Path::to_str);
            let lines = lines.filter(|path| !path.contains('\n'));
            let lines: Vec<&str> = lines.collect();
            fs::write(self.root().join(name), lines_text(&lines))?;
        }
        Ok(())
    }

    /// Returns whether a shell condition of the table of cheats is true.
    pub(super) fn is_true(&self, condition: &str) -> bool {
        let status = Command::new(os::program::shell())
            .args(["-c", &self.script(condition)])
            .current_dir(&self.scene.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    fn script(&self, text: &str) -> String {
        let root = shell_quote(&self.root().to_string_lossy());
        let checks = shell_quote(&self.checks.join("\n"));
        format!("SELFTEST={root}\nCHECKS={checks}\n{PREAMBLE}\n{text}\n")
    }

    /// Runs a loop with this agent.
    pub(super) fn play(&mut self, part: Part<'_>) -> Result<Played, CommandError> {
        let failed = |error: io::Error| CommandError::broken(format!("cannot play: {error}"));
        let state = leftovers::state_dir(self.root());
        for dir in [&state, &self.root().join("bin")] {
            let _ = fs::remove_dir_all(dir);
            fs::create_dir(dir).map_err(failed)?;
        }
        let promise = if part.claims {
            "echo '<promise>COMPLETE</promise>'"
        } else {
            ""
        };
        let agent = self.root().join("agent.sh");
        let text = self.script(&format!("{}\n{promise}", part.script));
        fs::write(&agent, text).map_err(failed)?;
        let place = self.scene.prepare()?;
        (self.covers_home, self.has_git) = (place.covers_home, place.has_git);
        self.weaknesses.extend(place.weaknesses.iter().cloned());
        let status = self.run(&place, &agent, part).map_err(failed)?;
        let journal = state.join("loops").join(NAME).join("journal.jsonl");
        let journal = fs::read_to_string(journal).unwrap_or_default();
        place.remove()?;
        self.played(status, &journal)
    }

    fn run(&mut self, place: &Place, agent: &Path, part: Part<'_>) -> io::Result<ExitStatus> {
        let mut path = self.root().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let output = fs::File::create(self.root().join("output"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["run", "selftest", "--here", "--quiet", "--name", NAME])
            .args(["--max-iterations", &part.iterations.to_string()])
            .arg("--config")
            .arg(self.root().join("settings.json"));
        if part.commits {
            command.args(["--scm", "commit"]).envs(COMMITTER);
        }
        command
            .args(["--", "sh"])
            .arg(agent)
            .env("RALPH_STATE_DIR", leftovers::state_dir(self.root()))
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        place.confine(&mut command)?;
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

    fn played(&mut self, status: ExitStatus, journal: &str) -> Result<Played, CommandError> {
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
                    failure: Some(why), ..
                } => return Err(unavailable(&why)),
                Event::Surveyed { weaknesses, .. } => {
                    let weak = weaknesses.into_iter();
                    let weak = weak.map(|why| format!("{WEAKER}: {why}"));
                    self.weaknesses.extend(weak);
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
                let output = fs::read_to_string(self.root().join("output")).unwrap_or_default();
                let message = format!("a loop could not run ({status})\n{}", output.trim_end());
                return Err(CommandError::broken(message));
            }
        };
        Ok(Played { end, reports })
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
