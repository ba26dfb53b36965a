//! How one call of git is made: quiet, bounded in time and memory, deaf to terminal and hooks.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long one call may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// So much of git's complaints is kept.
const STDERR_MAX: usize = 4096;

/// Settings that would run programs, write beside the index, or refuse files.
const SETTINGS: [&str; 10] = [
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.hooksPath=/dev/null",
    // A split index would put its shared half into the user's repository.
    "core.splitIndex=false",
    // With it, git refuses to add a file whose line ends do not survive a round trip.
    "core.safecrlf=false",
    // The scratch objects are short-lived: time is dearer than space.
    "core.compression=0",
    "core.looseCompression=0",
    // Larger files count as binary, so that comparing them costs neither time nor memory.
    "core.bigFileThreshold=8m",
    "diff.autoRefreshIndex=true",
    "diff.suppressBlankEmpty=false",
];

/// What git would leave running behind its back, to be swept away half done.
pub(crate) const IN_FRONT: [&str; 6] = [
    "-c",
    "gc.autoDetach=false",
    "-c",
    "maintenance.autoDetach=false",
    "-c",
    "core.fsmonitor=false",
];

/// Why a call gave no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is no git here.
    NotInstalled,
    /// It could not run to its end, in a sentence.
    Failed(String),
}

impl Trouble {
    /// The same as a sentence.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::NotInstalled => "git is not installed (no longer in PATH)".into(),
            Self::Failed(why) => why,
        }
    }
}

/// What a call gave.
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code; none if it was killed.
    pub(crate) code: Option<i32>,
    /// Its output, up to the cap.
    pub(crate) stdout: Vec<u8>,
    /// Whether there was more, and git was killed for it.
    pub(crate) cut: bool,
    /// The head of its complaints.
    pub(crate) stderr: String,
}

impl Output {
    /// What went wrong in `what`, in a sentence.
    pub(crate) fn complaint(&self, what: &str) -> String {
        let said = self
            .stderr
            .lines()
            .find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        let said = said
            .or_else(|| self.stderr.lines().next())
            .unwrap_or("it said nothing")
            .trim();
        match self.code {
            Some(code) => format!("git {what} failed with exit code {code}: {said}"),
            None => format!("git {what} was killed: {said}"),
        }
    }
}

/// A git that runs in `dir`. `GIT_DIR` and its like stay as the user has them.
pub(crate) fn git(dir: &Path) -> Command {
    quiet(Command::new("git"), dir)
}

/// A git that may do in `dir` what it does for the user: run hooks, and fetch what a partial clone lacks. Only
/// questions that nobody is there to answer are not asked.
pub(crate) fn willing(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .args(IN_FRONT)
        .current_dir(dir)
        .envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")]);
    command
}

/// As [`git`], called by other words.
pub(crate) fn quiet(mut command: Command, dir: &Path) -> Command {
    command.current_dir(dir);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.envs([
        ("LC_ALL", "C"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // Asking what changed must not go to the network.
        ("GIT_NO_LAZY_FETCH", "1"),
    ]);
    for name in [
        "GIT_DIFF_OPTS",
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
    ] {
        command.env_remove(name);
    }
    if cfg!(test) {
        command
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("XDG_CONFIG_HOME");
    }
    command
}

/// The path that git printed with a newline after it.
pub(crate) fn path_of(printed: &[u8]) -> PathBuf {
    OsStr::from_bytes(printed.strip_suffix(b"\n").unwrap_or(printed)).into()
}

/// Runs `command` until it ends, has printed `cap` bytes, or `patience` is over; it never outlives this.
pub(crate) fn run(
    command: &mut Command,
    cap: usize,
    patience: Duration,
) -> Result<Output, Trouble> {
    run_unless(command, cap, patience, &|| false)
}

/// The same, and it is killed as soon as this says so.
pub(crate) fn run_unless(
    command: &mut Command,
    cap: usize,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Output, Trouble> {
    let deadline = Instant::now() + patience;
    // A group of its own, so that filters and helpers die with it.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound
            if Path::new(command.get_current_dir().unwrap_or(Path::new("."))).is_dir() =>
        {
            Trouble::NotInstalled
        }
        _ => Trouble::Failed(format!("cannot start git: {error}")),
    })?;
    // Open until it is killed: git would end by itself, with a code of its own, if its reader went first.
    let mut streams = (child.stdout.take(), child.stderr.take());
    let heard = hear(&mut child, &mut streams, cap, deadline, stop);
    if !matches!(heard, Ok(Heard { ended: true, .. })) {
        // Not reaped yet, so the number still belongs to this child.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait();
    let heard = heard.map_err(|error| Trouble::Failed(format!("cannot read from git: {error}")))?;
    let status =
        status.map_err(|error| Trouble::Failed(format!("cannot wait for git: {error}")))?;
    if heard.late {
        let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        let settings = words.chunks(2).take_while(|pair| pair[0] == "-c").count();
        let verb = words.get(settings * 2).map_or("", |word| word);
        return Err(Trouble::Failed(format!(
            "git {verb} took longer than {} s and was killed",
            patience.as_secs_f32()
        )));
    }
    let stderr = String::from_utf8_lossy(&heard.stderr).into_owned();
    Ok(Output {
        code: status.code(),
        stdout: heard.stdout,
        cut: heard.cut,
        stderr,
    })
}

#[derive(Default)]
struct Heard {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    cut: bool,
    late: bool,
    /// Whether the child has exited, or has closed its output and is about to.
    ended: bool,
}

/// Reads both streams until the child is gone. A helper that it leaves behind may hold them open for
/// ever, so their end is not waited for.
fn hear(
    child: &mut Child,
    (out, err): &mut (Option<ChildStdout>, Option<ChildStderr>),
    cap: usize,
    deadline: Instant,
    stop: &dyn Fn() -> bool,
) -> std::io::Result<Heard> {
    let mut heard = Heard::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if Instant::now() >= deadline {
            heard.late = true;
            return Ok(heard);
        }
        if stop() {
            return Err(ErrorKind::Interrupted.into());
        }
        let (out_ready, err_ready) = {
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
            fds.extend(out.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            fds.extend(err.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            // With both closed, the child is about to exit: look again soon.
            let nap = Duration::from_millis(if fds.is_empty() { 1 } else { 50 });
            let nap = nap.min(deadline.saturating_duration_since(Instant::now()));
            match poll(&mut fds, Timespec::try_from(nap).ok().as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            (
                out.is_some() && ready.next() == Some(true),
                err.is_some() && ready.next() == Some(true),
            )
        };
        if out_ready && take(out, &mut buffer, &mut heard.stdout, cap)? {
            heard.cut = true;
            return Ok(heard);
        }
        if err_ready {
            take(err, &mut buffer, &mut heard.stderr, STDERR_MAX)?;
        }
        if !out_ready && !err_ready && child.try_wait()?.is_some() {
            heard.ended = true;
            return Ok(heard);
        }
    }
}

/// Reads once; closes the stream at its end. Whether there was more than fits.
fn take<R: Read>(
    stream: &mut Option<R>,
    buffer: &mut [u8],
    into: &mut Vec<u8>,
    cap: usize,
) -> std::io::Result<bool> {
    let Some(open) = stream else { return Ok(false) };
    match open.read(buffer) {
        Ok(0) => *stream = None,
        Ok(count) => {
            let room = cap.saturating_sub(into.len());
            into.extend_from_slice(&buffer[..count.min(room)]);
            return Ok(count > room);
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, cap: usize, patience: Duration) -> Result<Output, Trouble> {
        run(Command::new("sh").args(["-c", script]), cap, patience)
    }

    #[test]
    fn a_call_past_its_time_is_killed_with_its_children() {
        let start = Instant::now();
        let trouble = sh("sleep 30 & sleep 30", 100, Duration::from_millis(200)).unwrap_err();
        assert!(trouble.sentence().contains("took longer than 0.2 s"));
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn endless_output_is_cut_and_the_child_reaped() {
        let output = sh("yes", 1000, Duration::from_secs(20)).unwrap();
        assert!(output.cut);
        assert_eq!(output.stdout.len(), 1000);
        assert_eq!(output.code, None);
    }

    #[test]
    fn a_helper_that_holds_the_pipe_does_not_hold_the_call() {
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
        assert_eq!(output.complaint("x"), "git x failed with exit code 7: why");
    }

    #[test]
    fn a_program_that_is_not_there_is_told_apart() {
        let missing = run(&mut Command::new("/nonexistent/git"), 1, PATIENCE);
        assert!(matches!(missing, Err(Trouble::NotInstalled)));
    }
}
