//! Runs git commands with limits on time and output, and without prompts.

use crate::engine::plain_text::clean;
use crate::os::program;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for a git command, unless the caller passes another one.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum size of a list of files, in bytes.
pub(super) const LIST_MAX: usize = 64 << 20;

/// Maximum size of standard error that is kept, in bytes.
const STDERR_MAX: usize = 4096;

/// Options that keep git from starting background processes, which would be killed before they
/// finish when the iteration's processes are cleaned up. A maintenance that is killed leaves a lock
/// in the user's repository, and git then never runs another.
pub(super) const FOREGROUND_OPTIONS: [&str; 4] =
    ["-c", "maintenance.auto=false", "-c", "core.fsmonitor=false"];

/// An error that kept git from running to completion.
#[derive(Debug)]
pub(super) enum GitError {
    NotInstalled,
    /// Git failed. The text is a message for the user.
    Failed(String),
}

impl GitError {
    /// Returns the error as a message for the user.
    pub(super) fn message(self) -> String {
        match self {
            Self::NotInstalled => "git was not found in PATH".into(),
            Self::Failed(why) => why,
        }
    }
}

/// The exit code and output of a git command.
#[derive(Debug)]
pub(super) struct GitOutput {
    /// The exit code; `None` if git was killed.
    pub(super) code: Option<i32>,
    /// Standard output, up to the caller's limit.
    pub(super) stdout: Vec<u8>,
    /// Whether git was killed because it printed more than the limit.
    pub(super) truncated: bool,
    /// The first `STDERR_MAX` bytes of standard error.
    pub(super) stderr: String,
}

impl GitOutput {
    /// Returns an error message for the subcommand `what`. The message quotes git's own error.
    pub(super) fn error_message(&self, what: &str) -> String {
        let detail = self
            .stderr
            .lines()
            .find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        let detail = detail
            .or_else(|| self.stderr.lines().next())
            .unwrap_or("no error output")
            .trim();
        match self.code {
            Some(code) => format!("git {what} failed with exit code {code}: {detail}"),
            None => format!("git {what} was killed: {detail}"),
        }
    }
}

/// Returns a git command that behaves as it does for the user: it may run hooks, and fetch objects
/// missing from a partial clone. Only prompts are disabled.
pub(super) fn git_with_hooks(dir: &Path) -> Command {
    let mut command = Command::new(program::git());
    command
        .args(FOREGROUND_OPTIONS)
        .current_dir(dir)
        .envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")]);
    command
}

/// Returns whether git failed because the directory is, or is inside, a bare repository.
pub(super) fn is_bare(output: &GitOutput) -> bool {
    output.stderr.contains("cannot use bare repository")
}

/// Converts a line that git printed into a path.
pub(super) fn parse_path(line: &[u8]) -> PathBuf {
    OsStr::from_bytes(line.strip_suffix(b"\n").unwrap_or(line)).into()
}

/// Runs `command` until it exits. Kills it after `max_bytes` of output, or after `timeout`, which
/// is an error.
pub(super) fn run(
    command: &mut Command,
    max_bytes: usize,
    timeout: Duration,
) -> Result<GitOutput, GitError> {
    run_with_stdin(command, Stdio::null(), max_bytes, timeout)
}

/// Runs a command that lists files, and returns what it prints. Failure is an error.
pub(super) fn run_list(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = run(command, LIST_MAX, TIMEOUT).map_err(GitError::message)?;
    match output.code {
        Some(0) => Ok(output.stdout),
        _ if output.truncated => Err("too many files".into()),
        _ => Err(output.error_message("ls-files")),
    }
}

/// Runs `command` like [`run`], with this standard input.
pub(super) fn run_with_stdin(
    command: &mut Command,
    stdin: Stdio,
    max_bytes: usize,
    timeout: Duration,
) -> Result<GitOutput, GitError> {
    let streams = (stdin, Stdio::piped());
    spawn_and_capture(command, streams, max_bytes, timeout, &|| false)
}

/// Runs `command` like [`run_with_stdin`], with its standard output in a file of any length.
pub(super) fn run_to_file(
    command: &mut Command,
    stdin: Stdio,
    file: File,
    timeout: Duration,
) -> Result<GitOutput, GitError> {
    spawn_and_capture(command, (stdin, file.into()), 0, timeout, &|| false)
}

/// Runs `command` like [`run`], but also kills it as soon as `is_canceled` returns true.
pub(super) fn run_cancellable(
    command: &mut Command,
    max_bytes: usize,
    timeout: Duration,
    is_canceled: &dyn Fn() -> bool,
) -> Result<GitOutput, GitError> {
    let streams = (Stdio::null(), Stdio::piped());
    spawn_and_capture(command, streams, max_bytes, timeout, is_canceled)
}

fn spawn_and_capture(
    command: &mut Command,
    (stdin, stdout): (Stdio, Stdio),
    max_bytes: usize,
    timeout: Duration,
    is_canceled: &dyn Fn() -> bool,
) -> Result<GitOutput, GitError> {
    let deadline = Instant::now() + timeout;
    // Use a separate process group, so that filters and helpers are killed as well.
    command
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound
            if Path::new(command.get_current_dir().unwrap_or(Path::new("."))).is_dir() =>
        {
            GitError::NotInstalled
        }
        _ => GitError::Failed(format!("cannot start git: {error}")),
    })?;
    // Keep the pipes open until git is killed. Closing them first would make git exit on its own,
    // with an exit code.
    let mut streams = (child.stdout.take(), child.stderr.take());
    let captured = capture(&mut child, &mut streams, max_bytes, deadline, is_canceled);
    if !matches!(captured, Ok(CapturedOutput { ended: true, .. })) {
        // The child has not been reaped, so no other process can have its ID.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait();
    let captured =
        captured.map_err(|error| GitError::Failed(format!("cannot read from git: {error}")))?;
    let status =
        status.map_err(|error| GitError::Failed(format!("cannot wait for git: {error}")))?;
    if captured.timed_out {
        let args: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        let settings = args.chunks(2).take_while(|pair| pair[0] == "-c").count();
        let subcommand = args.get(settings * 2).map_or("", |arg| arg);
        return Err(GitError::Failed(format!(
            "git {subcommand} took longer than {} s and was killed",
            timeout.as_secs_f32()
        )));
    }
    let stderr = clean(&String::from_utf8_lossy(&captured.stderr)).into_owned();
    Ok(GitOutput {
        code: status.code(),
        stdout: captured.stdout,
        truncated: captured.truncated,
        stderr,
    })
}

#[derive(Default)]
struct CapturedOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    truncated: bool,
    timed_out: bool,
    /// Whether the child has exited.
    ended: bool,
}

/// Reads both streams until the child exits. Does not wait for the streams to end, because a helper
/// that the child leaves behind may hold them open forever.
fn capture(
    child: &mut Child,
    (out, err): &mut (Option<ChildStdout>, Option<ChildStderr>),
    max_bytes: usize,
    deadline: Instant,
    is_canceled: &dyn Fn() -> bool,
) -> std::io::Result<CapturedOutput> {
    let mut captured = CapturedOutput::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if Instant::now() >= deadline {
            captured.timed_out = true;
            return Ok(captured);
        }
        if is_canceled() {
            return Err(ErrorKind::Interrupted.into());
        }
        let (out_ready, err_ready) = {
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
            fds.extend(out.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            fds.extend(err.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            // Once both streams are closed, the child is about to exit, so check again soon.
            let wait = Duration::from_millis(if fds.is_empty() { 1 } else { 50 });
            let wait = wait.min(deadline.saturating_duration_since(Instant::now()));
            match poll(&mut fds, Timespec::try_from(wait).ok().as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            (
                out.is_some() && ready.next() == Some(true),
                err.is_some() && ready.next() == Some(true),
            )
        };
        if out_ready && read_once(out, &mut buffer, &mut captured.stdout, max_bytes)? {
            captured.truncated = true;
            return Ok(captured);
        }
        if err_ready {
            read_once(err, &mut buffer, &mut captured.stderr, STDERR_MAX)?;
        }
        if !out_ready && !err_ready && child.try_wait()?.is_some() {
            captured.ended = true;
            return Ok(captured);
        }
    }
}

/// Reads once from the stream into `output`, and closes the stream when it ends. Returns whether
/// the output exceeded `max_bytes`.
fn read_once<R: Read>(
    stream: &mut Option<R>,
    buffer: &mut [u8],
    output: &mut Vec<u8>,
    max_bytes: usize,
) -> std::io::Result<bool> {
    let Some(open) = stream else { return Ok(false) };
    match open.read(buffer) {
        Ok(0) => *stream = None,
        Ok(count) => {
            let remaining = max_bytes.saturating_sub(output.len());
            output.extend_from_slice(&buffer[..count.min(remaining)]);
            return Ok(count > remaining);
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, max_bytes: usize, timeout: Duration) -> Result<GitOutput, GitError> {
        run(Command::new("sh").args(["-c", script]), max_bytes, timeout)
    }

    #[test]
    fn a_command_is_killed_with_its_children_after_the_timeout() {
        let start = Instant::now();
        let error = sh("sleep 30 & sleep 30", 100, Duration::from_millis(200)).unwrap_err();
        assert!(error.message().contains("took longer than 0.2 s"));
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn endless_output_is_truncated_and_the_child_is_reaped() {
        let output = sh("yes", 1000, Duration::from_secs(20)).unwrap();
        assert!(output.truncated);
        assert_eq!(output.stdout.len(), 1000);
        assert_eq!(output.code, None);
    }

    #[test]
    fn a_helper_that_holds_the_pipe_open_is_not_waited_for() {
        let start = Instant::now();
        let output = sh(
            "echo said; echo why >&2; sleep 3 & exit 7",
            1000,
            Duration::from_secs(20),
        )
        .unwrap();
        assert!(start.elapsed() < Duration::from_secs(2));
        assert_eq!(
            (output.code, output.stdout.as_slice()),
            (Some(7), b"said\n".as_slice())
        );
        assert_eq!(
            output.error_message("x"),
            "git x failed with exit code 7: why"
        );
    }

    #[test]
    fn a_missing_program_is_reported_as_not_installed() {
        let missing = run(&mut Command::new("/nonexistent/git"), 1, TIMEOUT);
        assert!(matches!(missing, Err(GitError::NotInstalled)));
    }
}
