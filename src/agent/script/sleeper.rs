//! The processes that `fork` and `refork` steps leave behind. They test whether ralph finds and
//! kills everything that an agent started.

use crate::engine::ExitCode;
use rustix::process::{getpid, setsid};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Running time of each process in a chain.
const CHAIN_STEP: Duration = Duration::from_millis(10);

/// The kind of process to leave behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the options are independent of each other"
)]
pub(crate) struct ForkOptions {
    /// Start the process in its own session.
    pub(crate) setsid: bool,
    /// Start the process from one that exits at once, so that it is reparented.
    pub(crate) daemon: bool,
    /// Start the process with an empty environment.
    pub(crate) clearenv: bool,
    /// Make the process ignore SIGTERM.
    pub(crate) ignore_term: bool,
    /// Keep the agent's standard output open in the process.
    pub(crate) hold: bool,
    /// Start a chain of short-lived processes instead of one process.
    pub(crate) chain: bool,
    /// Running time of the process.
    pub(crate) lifetime: Duration,
}

impl ForkOptions {
    /// Starts the process and waits until it is set up. Returns its process ID.
    pub(crate) fn start(&self, ralph: &Path) -> io::Result<u32> {
        let mut command = Command::new(ralph);
        command.arg("__sleeper");
        let flags = [
            ("setsid", self.setsid),
            ("daemon", self.daemon),
            ("ignore-term", self.ignore_term),
            ("chain", self.chain),
        ];
        command.args(flags.into_iter().filter(|flag| flag.1).map(|flag| flag.0));
        command.arg((now() + self.lifetime).as_millis().to_string());
        if self.clearenv {
            command.env_clear();
        }
        command.stdin(Stdio::null()).stdout(if self.hold {
            Stdio::inherit()
        } else {
            Stdio::null()
        });
        // The sleeper reports its process ID on standard error when it is ready; its standard
        // output may be the agent's.
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let mut pid = String::new();
        if let Some(stderr) = child.stderr.take() {
            BufReader::new(stderr).read_line(&mut pid)?;
        }
        if self.daemon {
            child.wait()?;
        }
        pid.trim()
            .parse()
            .map_err(|_| io::Error::other(format!("the process did not start: {}", pid.trim())))
    }
}

/// Runs the hidden subcommand `__sleeper`, the process that a `fork` or `refork` step leaves
/// behind. The last argument is the time at which the process exits, in milliseconds since 1970.
pub(crate) fn run_sleeper(args: &[String]) -> ExitCode {
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let Some(end) = args
        .last()
        .and_then(|end| end.parse().ok())
        .map(Duration::from_millis)
    else {
        return ExitCode::Usage;
    };
    if has("daemon") {
        return ExitCode::from_result(&respawn(args, "daemon", Stdio::inherit()));
    }
    // `setsid` fails only for a group leader, which a new child is not.
    if (has("setsid") || has("chain")) && setsid().is_err() {
        return ExitCode::Failure;
    }
    if has("ignore-term")
        && signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::default()).is_err()
    {
        return ExitCode::Failure;
    }
    // Ignore errors: only the first process of a chain has a reader.
    let _ = writeln!(io::stderr(), "{}", getpid());
    if !has("chain") {
        std::thread::sleep(end.saturating_sub(now()));
        return ExitCode::Success;
    }
    std::thread::sleep(CHAIN_STEP);
    if now() >= end {
        return ExitCode::Success;
    }
    ExitCode::from_result(&respawn(args, "", Stdio::null()))
}

/// Starts this program again with `args`, but without the argument `without`.
fn respawn(args: &[String], without: &str, stderr: Stdio) -> io::Result<Child> {
    let args = args.iter().filter(|arg| *arg != without);
    Command::new(std::env::current_exe()?)
        .arg("__sleeper")
        .args(args)
        .stdin(Stdio::null())
        .stderr(stderr)
        .spawn()
}

/// Returns the wall-clock time since 1970, because all processes in a chain exit at the same time.
fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
