//! How a script leaves processes behind: sleepers that test whether the whole tree is swept.

use rustix::process::{getpid, setsid};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long each process of a chain lives.
const HOP: Duration = Duration::from_millis(10);

/// What kind of process is left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of its own, and all go together"
)]
pub(crate) struct Fork {
    /// In a session of its own.
    pub(crate) setsid: bool,
    /// Started by a process that is gone, so that nobody is its parent.
    pub(crate) daemon: bool,
    /// With an empty environment.
    pub(crate) clearenv: bool,
    /// Deaf to SIGTERM.
    pub(crate) ignore_term: bool,
    /// With the agent's standard output open.
    pub(crate) hold: bool,
    /// A chain of short-lived processes instead of one.
    pub(crate) chain: bool,
    /// How long it lives.
    pub(crate) time: Duration,
}

impl Fork {
    /// Starts it; its process number, once it is as it should be.
    pub(crate) fn start(&self, ralph: &Path) -> io::Result<u32> {
        let mut command = Command::new(ralph);
        command.arg("__sleeper");
        let words = [
            ("setsid", self.setsid),
            ("daemon", self.daemon),
            ("ignore-term", self.ignore_term),
            ("chain", self.chain),
        ];
        command.args(words.into_iter().filter(|word| word.1).map(|word| word.0));
        command.arg((now() + self.time).as_millis().to_string());
        if self.clearenv {
            command.env_clear();
        }
        command.stdin(Stdio::null()).stdout(if self.hold {
            Stdio::inherit()
        } else {
            Stdio::null()
        });
        // The sleeper says its number there when it is ready; standard output may be the one it holds.
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let mut said = String::new();
        if let Some(stderr) = child.stderr.take() {
            BufReader::new(stderr).read_line(&mut said)?;
        }
        if self.daemon {
            child.wait()?;
        }
        said.trim()
            .parse()
            .map_err(|_| io::Error::other(format!("the sleeper did not start: {}", said.trim())))
    }
}

/// The process that a `fork` or `refork` step leaves behind: the hidden verb `__sleeper` calls this with
/// the words after it. The last one is the time of its end, in milliseconds of the Unix clock.
pub fn sleeper(args: &[String]) -> i32 {
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let Some(end) = args
        .last()
        .and_then(|end| end.parse().ok())
        .map(Duration::from_millis)
    else {
        return 2;
    };
    if has("daemon") {
        return i32::from(again(args, "daemon", Stdio::inherit()).is_err());
    }
    // It fails only for the leader of a group, which a fresh child is not.
    if (has("setsid") || has("chain")) && setsid().is_err() {
        return 1;
    }
    if has("ignore-term")
        && signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::default()).is_err()
    {
        return 1;
    }
    // Only the first of a chain has somebody who listens.
    let _ = writeln!(io::stderr(), "{}", getpid());
    if !has("chain") {
        std::thread::sleep(end.saturating_sub(now()));
        return 0;
    }
    std::thread::sleep(HOP);
    if now() >= end {
        return 0;
    }
    i32::from(again(args, "", Stdio::null()).is_err())
}

/// Starts this program once more, without one of its words.
fn again(args: &[String], without: &str, stderr: Stdio) -> io::Result<Child> {
    let args = args.iter().filter(|arg| *arg != without);
    Command::new(std::env::current_exe()?)
        .arg("__sleeper")
        .args(args)
        .stdin(Stdio::null())
        .stderr(stderr)
        .spawn()
}

/// Wall time, because a chain hands its end on from process to process.
fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
