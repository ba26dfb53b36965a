//! Describes a job's process, with its command, environment, input and limits, and starts it.

use super::clock::millis;
use super::owner::KillScope;
use crate::engine::Plan;
use crate::os;
use crate::process::mark::Mark;
use crate::process::pty::{self, ScreenSize};
use crate::proof::view::View;
use crate::sandbox::Confinement;
use crate::terminal::emulator::TerminalOptions;
use rustix::process::Pid;
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The description of a process to start.
pub(super) struct ProcessSpec<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [String],
    /// The working directory.
    pub(super) dir: &'a Path,
    /// Environment variables to set.
    pub(super) env: &'a [(String, String)],
    /// Environment variables to remove.
    pub(super) unset: &'a [String],
    /// The file to use as standard input. `None` means `/dev/null`.
    pub(super) stdin: Option<File>,
    /// The terminal to run the process on. If `None`, the process gets pipes.
    pub(super) terminal: Option<TerminalOptions>,
    /// The view to run the process in. It determines the working directory.
    pub(super) view: Option<&'a View>,
    /// The sandbox to run the process in. The command contains the sandbox's own program.
    pub(super) sandbox: Option<&'a Confinement>,
    pub(super) limits: JobLimits,
}

/// The log file and the time limits of a job.
pub(super) struct JobLimits {
    /// The path of the file that receives the job's output.
    pub(super) log: PathBuf,
    /// The maximum size of the log file, in bytes.
    pub(super) log_cap: u64,
    /// The time after which the job is stopped. `None` means no limit.
    pub(super) timeout: Option<Duration>,
    /// The duration of silence after which the job is reported as inactive. `None` means never.
    pub(super) inactivity: Option<Duration>,
    /// The time that the process may take to exit after its output stream has reported the end of
    /// the run. `None` if its output is not an event stream. In an event stream, only progress ends
    /// a silence.
    pub(super) linger: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
    /// The time to wait for processes to exit after SIGKILL.
    pub(super) survivor: Duration,
}

impl JobLimits {
    /// Creates limits from the plan's settings, with no timeouts set. Output goes to `log`.
    pub(super) fn new(plan: &Plan, log: PathBuf) -> Self {
        Self {
            log,
            log_cap: plan.log_cap,
            timeout: None,
            inactivity: None,
            linger: None,
            grace: millis(plan.grace.term_ms),
            survivor: millis(plan.grace.survivor_ms),
        }
    }

    pub(super) fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }
}

impl ProcessSpec<'_> {
    /// Starts the process in its own session. Returns its pid and the file descriptor to read its
    /// output from.
    pub(super) fn spawn(
        &mut self,
        scope: &KillScope,
        size: ScreenSize,
        answers: bool,
    ) -> io::Result<(Pid, OwnedFd)> {
        if self.terminal.is_some() {
            return self.spawn_on_terminal(scope, size, answers);
        }
        let (output, child_end) = io::pipe()?;
        let (output, child_end) = (OwnedFd::from(output), OwnedFd::from(child_end));
        rustix::io::ioctl_fionbio(&output, true)?;
        #[cfg(target_os = "linux")]
        if matches!(scope, KillScope::Everything { .. }) && !self.needs_fork() {
            let stdin = match self.stdin.take() {
                Some(file) => file,
                None => os::open_null()?,
            };
            let pid = os::spawn::SessionProcess {
                command: self.command,
                dir: self.dir,
                env: &self.environment(),
                stdin: stdin.as_fd(),
                output: child_end.as_fd(),
            }
            .spawn()?;
            return Ok((Pid::from_raw(pid).expect("a child has a pid"), output));
        }
        let mut command = self.command(scope)?;
        command.stdin(self.stdin.take().map_or_else(Stdio::null, Stdio::from));
        os::set_new_session(&mut command);
        command.stdout(child_end.try_clone()?).stderr(child_end);
        Ok((spawn(&mut command)?, output))
    }

    fn spawn_on_terminal(
        &self,
        scope: &KillScope,
        size: ScreenSize,
        answers: bool,
    ) -> io::Result<(Pid, OwnedFd)> {
        let (output, child_end) = pty::open(size)?;
        let mut command = self.command(scope)?;
        command
            .stdin(child_end.try_clone()?)
            .env_remove("COLUMNS")
            .env_remove("LINES");
        // The emulator implements this terminal type, and most programs support it.
        if answers {
            command.env("TERM", "xterm-256color");
        }
        os::set_controlling_terminal(&mut command);
        command.stdout(child_end.try_clone()?).stderr(child_end);
        Ok((spawn(&mut command)?, output))
    }

    /// Returns whether the new process must do something before it executes its program.
    #[cfg(target_os = "linux")]
    fn needs_fork(&self) -> bool {
        self.view.is_some() || self.sandbox.is_some_and(Confinement::restricts_itself)
    }

    fn command(&self, scope: &KillScope) -> io::Result<Command> {
        let [program, arguments @ ..] = self.command else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.dir);
        for name in self.unset {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        // Before the parent death signal, which the kernel resets when privileges change.
        if let Some(view) = self.view {
            view.confine(&mut command)?;
        }
        if let Some(sandbox) = self.sandbox {
            sandbox.restrict(&mut command);
        }
        if let KillScope::Marked { id, .. } = scope {
            os::set_parent_death_signal(&mut command);
            Mark::of_loop(id).set_for(&mut command);
        }
        Ok(command)
    }

    /// Returns the complete environment: this process's variables, without those to remove, plus
    /// those to set.
    #[cfg(target_os = "linux")]
    fn environment(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let is_set = |name: &std::ffi::OsStr| self.env.iter().any(|(set, _)| name == set.as_str());
        let is_removed =
            |name: &std::ffi::OsStr| self.unset.iter().any(|gone| name == gone.as_str());
        let inherited = std::env::vars_os().filter(|(name, _)| !is_set(name) && !is_removed(name));
        // If a variable is set twice, the last value wins.
        let set =
            self.env.iter().enumerate().filter(|(at, (name, _))| {
                self.env[at + 1..].iter().all(|(later, _)| later != name)
            });
        let set = set.map(|(_, (name, value))| (name.into(), value.into()));
        inherited.chain(set).collect()
    }
}

fn spawn(command: &mut Command) -> io::Result<Pid> {
    let child = command.spawn()?;
    Ok(Pid::from_raw(child.id() as i32).expect("a child has a pid"))
}
