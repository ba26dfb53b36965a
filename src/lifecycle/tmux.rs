//! tmux as a window for a loop in the background: a few calls, and nothing is ever read from a pane.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The session that holds every loop's window.
pub const SESSION: &str = "ralph";

/// The oldest tmux that is known to do what is asked of it here.
const OLDEST: (u32, u32) = (3, 0);

/// A tmux server of ralph's own, by the name of its socket.
#[derive(Clone, Debug)]
pub struct Tmux {
    /// The socket's name.
    pub socket: String,
}

/// Why there is no tmux to be used.
#[derive(Debug, PartialEq)]
pub enum Trouble {
    /// It is not installed.
    Missing,
    /// It is this version, which is too old.
    Old(String),
}

/// How often a window is tried for, and how far apart.
const TRIES: u32 = 20;
const AGAIN: Duration = Duration::from_millis(50);

/// The variables that a server needs. It outlives the loop that happened to start it, so that loop's own, which
/// may hold secrets, are none of its business.
const KNOWN: [&str; 12] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMUX_TMPDIR",
    "TMPDIR",
    "USER",
    "XDG_RUNTIME_DIR",
];

/// What every window of this server has: no way for a program to reach the clipboard or the terminal around it.
const OPTIONS: [(&str, &str); 5] = [
    ("set-clipboard", "off"),
    ("allow-rename", "off"),
    ("escape-time", "10"),
    ("history-limit", "20000"),
    ("default-terminal", "screen-256color"),
];

impl Tmux {
    /// Whether there is a tmux that can be used.
    pub fn look() -> Result<(), Trouble> {
        let version = Command::new("tmux").arg("-V").stdin(Stdio::null()).output();
        let Ok(version) = version else {
            return Err(Trouble::Missing);
        };
        let words = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let number = words.trim_start_matches(|c: char| !c.is_ascii_digit());
        let mut parts = number
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse().unwrap_or(0));
        let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        // A version without a number is one that is being worked on.
        if number.is_empty() || found >= OLDEST {
            Ok(())
        } else {
            Err(Trouble::Old(words))
        }
    }

    /// Opens a window of this name for a program.
    pub fn open_window(&self, name: &str, program: &[OsString]) -> Result<(), String> {
        let window = |first: &[&str]| {
            let mut words: Vec<OsString> = first.iter().map(OsString::from).collect();
            words.extend(["-n", name, "--"].map(OsString::from));
            words.extend_from_slice(program);
            words
        };
        let session = format!("={SESSION}:");
        let in_session = window(&["new-window", "-d", "-t", &session]);
        let mut with_session: Vec<OsString> = vec!["start-server".into()];
        for (option, value) in OPTIONS {
            with_session.extend([";", "set-option", "-g", option, value].map(OsString::from));
        }
        with_session.push(";".into());
        with_session.extend(window(&[
            "new-session",
            "-d",
            "-x",
            "160",
            "-y",
            "48",
            "-s",
            SESSION,
        ]));
        // Another loop may open the session in the meantime, or be the last one in it and take it along.
        let mut trouble = String::new();
        for _ in 0..TRIES {
            for words in [&in_session, &with_session] {
                let made = self.call(words).map_err(|error| error.to_string())?;
                if made.status.success() {
                    return Ok(());
                }
                trouble = complaint(&made);
            }
            std::thread::sleep(AGAIN);
        }
        Err(trouble)
    }

    /// What shows a loop's window in this terminal, and no other. It is linked into a session of this viewer's own,
    /// which goes with its only window or with its viewer: where all look at one session, whoever changes the window
    /// changes it for all, and the end of one loop would put its viewer, and the next key, before another.
    pub fn attach(&self, name: &str) -> Command {
        let view = format!("view-{}", std::process::id());
        let (window, own, first) = (
            format!("={SESSION}:={name}"),
            format!("={view}"),
            format!("={view}:0"),
        );
        let mut command = self.command();
        // The first window only keeps the session until it is replaced.
        command.args(["new-session", "-d", "-s", &view, "--", "sleep", "60"]);
        command.args([";", "link-window", "-k", "-s", &window, "-t", &first]);
        command.args([";", "attach-session", "-t", &own]);
        // Not before: a session that nobody looks at would go at once.
        command.args([";", "set-option", "-t", &view, "destroy-unattached", "on"]);
        // Inside the user's own tmux it is a window like any other.
        command.env_remove("TMUX");
        command
    }

    fn call(&self, words: &[OsString]) -> io::Result<Output> {
        let mut command = self.command();
        let known = KNOWN
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.env_clear().envs(known);
        command
            .args(words.iter().map(AsRef::<OsStr>::as_ref))
            .stdin(Stdio::null())
            .output()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null"]);
        command
    }
}

fn complaint(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if words.is_empty() {
        format!("it ended with {}", output.status)
    } else {
        words
    }
}
