//! Opens tmux windows for background loops. ralph never reads from a pane.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The name of the tmux session that contains the window of every loop.
pub(crate) const SESSION: &str = "ralph";

/// The oldest tmux version, as major and minor number, that supports the features ralph uses.
const MIN_VERSION: (u32, u32) = (3, 0);

/// The tmux server that ralph uses, separate from the user's own.
#[derive(Clone, Debug)]
pub(crate) struct Tmux {
    pub(crate) socket: String,
}

/// Why tmux cannot be used.
#[derive(Debug, PartialEq)]
pub(crate) enum TmuxError {
    NotInstalled,
    /// The installed version is too old. The value is the output of `tmux -V`.
    TooOld(String),
}

/// The number of attempts to open a window, and the delay between them.
const TRIES: u32 = 20;
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// The environment variables that a tmux server inherits. The server outlives the loop that starts
/// it, so it must not get that loop's other variables, which may contain secrets.
const SERVER_ENVIRONMENT: [&str; 12] = [
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

/// tmux server options that stop programs from accessing the clipboard and the outer terminal.
const OPTIONS: [(&str, &str); 5] = [
    ("set-clipboard", "off"),
    ("allow-rename", "off"),
    ("escape-time", "10"),
    ("history-limit", "20000"),
    ("default-terminal", "screen-256color"),
];

impl Tmux {
    /// Checks that tmux is installed and recent enough.
    pub(crate) fn check_version() -> Result<(), TmuxError> {
        let version = Command::new("tmux").arg("-V").stdin(Stdio::null()).output();
        let Ok(version) = version else {
            return Err(TmuxError::NotInstalled);
        };
        let text = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let number = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let mut parts = number
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse().unwrap_or(0));
        let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        // A version without a number is a development build, assumed to be recent.
        if number.is_empty() || found >= MIN_VERSION {
            Ok(())
        } else {
            Err(TmuxError::TooOld(text))
        }
    }

    /// Runs `program` in a new window named `name`. On failure, returns tmux's error message.
    pub(crate) fn open_window(&self, name: &str, program: &[OsString]) -> Result<(), String> {
        let window = |command: &[&str]| {
            let mut args: Vec<OsString> = command.iter().map(OsString::from).collect();
            args.extend(["-n", name, "--"].map(OsString::from));
            args.extend_from_slice(program);
            args
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
        // Retry: another loop may create the session in between, or end it by closing its last
        // window.
        let mut error = String::new();
        for _ in 0..TRIES {
            for args in [&in_session, &with_session] {
                let output = self.run(args).map_err(|error| error.to_string())?;
                if output.status.success() {
                    return Ok(());
                }
                error = error_text(&output);
            }
            std::thread::sleep(RETRY_DELAY);
        }
        Err(error)
    }

    /// Returns whether the server has a window with this name. Unlike [`Tmux::attach`], never starts
    /// a server.
    pub(crate) fn has_window(&self, name: &str) -> io::Result<bool> {
        let window = format!("={SESSION}:={name}");
        let args = ["list-panes", "-t", &window].map(OsString::from);
        Ok(self.run(&args)?.status.success())
    }

    /// Returns the keys that detach a viewer, with the prefix of the user's configuration.
    pub(crate) fn detach_keys(&self) -> String {
        let args = ["show-options", "-gv", "prefix"].map(OsString::from);
        let prefix = self.run(&args).ok().filter(|out| out.status.success());
        let prefix = prefix.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
        let prefix = prefix.filter(|prefix| !prefix.is_empty());
        let prefix = prefix.unwrap_or_else(|| "C-b".into());
        match prefix.strip_prefix("C-") {
            Some(letter) => format!("Ctrl-{} d", letter.to_uppercase()),
            None => format!("{prefix} d"),
        }
    }

    /// Returns the command that shows a loop's window in this terminal, with `note` in the status
    /// line.
    ///
    /// The window is linked into a separate session, which ends with the window or the viewer. In a
    /// shared session, switching windows would switch them for every viewer, and a viewer whose
    /// loop ended would be shown another loop and type into it.
    pub(crate) fn attach(&self, name: &str, note: &str) -> Command {
        let view = format!("view-{}", std::process::id());
        let (window, own, first) = (
            format!("={SESSION}:={name}"),
            format!("={view}"),
            format!("={view}:0"),
        );
        let mut command = self.command();
        // The first window only keeps the session alive until it is replaced.
        command.args(["new-session", "-d", "-s", &view, "--", "sleep", "60"]);
        command.args([";", "link-window", "-k", "-s", &window, "-t", &first]);
        // tmux expands formats in the status line.
        let note = format!(" {} ", note.replace('#', "##"));
        command.args([";", "set-option", "-t", &view, "status-right-length", "80"]);
        command.args([";", "set-option", "-t", &view, "status-right", &note]);
        command.args([";", "attach-session", "-t", &own]);
        // Set this last: a session without a viewer would be destroyed at once.
        command.args([";", "set-option", "-t", &view, "destroy-unattached", "on"]);
        // Without this, tmux refuses to attach from inside the user's own tmux.
        command.env_remove("TMUX");
        command
    }

    fn run(&self, args: &[OsString]) -> io::Result<Output> {
        let mut command = self.command();
        let environment = SERVER_ENVIRONMENT
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.env_clear().envs(environment);
        command
            .args(args.iter().map(AsRef::<OsStr>::as_ref))
            .stdin(Stdio::null())
            .output()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null"]);
        command
    }
}

fn error_text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if text.is_empty() {
        format!("tmux failed with {}", output.status)
    } else {
        text
    }
}
