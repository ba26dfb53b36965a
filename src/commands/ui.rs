//! `ralph ui`: serves a web page that shows all loops.

use super::say::send_message;
use crate::cli::ui::UiArgs;
use crate::engine::{ExitCode, Liveness};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::read_loop;
use crate::os::program;
use crate::os::regular_file;
use crate::store::StateDir;
use crate::ui::print::{print_message, warn};
use crate::ui::web::{SteeringRequest, WebOptions, serve};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of a command's messages that the page shows.
const MESSAGE_MAX: usize = 8 << 10;
/// How often to look whether a command has ended, or a resumed loop runs.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn ui(args: &UiArgs) -> Result<ExitCode, CommandError> {
    let state_dir = StateDir::locate()?;
    if !args.listen.is_loopback() {
        warn(format!(
            "{} is not loopback: other machines can connect, and the connection is not encrypted; \
             an SSH tunnel is safer",
            args.listen
        ));
    }
    let options = WebOptions {
        listen: args.listen,
        port: args.port,
        control: args.control,
    };
    let own = state_dir.clone();
    let steer = move |name: &str, request: &SteeringRequest| steer(&own, name, request);
    let ready = |address: SocketAddr, url: &str| {
        print_message(&format!("{url}\n{}", notes(args, address)));
        if args.open
            && let Err(why) = open_browser(&state_dir, url)
        {
            warn(format!(
                "cannot open a browser: {why}; open the address yourself"
            ));
        }
    };
    serve(&state_dir, options, Arc::new(steer), ready)?;
    Ok(ExitCode::Success)
}

/// Returns what to know about the address.
fn notes(args: &UiArgs, address: SocketAddr) -> String {
    let mut text = String::from("The address contains a token; do not share it. ");
    text.push_str(if args.control {
        "The page can steer loops. "
    } else {
        "The page only shows loops; --control lets it steer them. "
    });
    text.push_str("Press Ctrl-C to end it.\n");
    let is_remote = std::env::var_os("SSH_CONNECTION").is_some();
    if is_remote && address.ip().is_loopback() {
        let port = address.port();
        let _ = writeln!(
            text,
            "From your own machine: ssh -L {port}:{address} HOST, then open the address there."
        );
    }
    text
}

/// Opens the page by a file that leads to it: other users can see a command's arguments, and the
/// address contains the token.
fn open_browser(state_dir: &StateDir, url: &str) -> Result<(), String> {
    let path = state_dir.root().join("ui.html");
    let _ = std::fs::remove_file(&path);
    let html = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url={url}\"><title>ralph</title>\n"
    );
    crate::store::dir::create_dir(state_dir.root())
        .and_then(|()| regular_file::create_new(&path))
        .and_then(|mut file| file.write_all(html.as_bytes()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    let browser = std::env::var("BROWSER")
        .ok()
        .filter(|name| !name.is_empty());
    let mut names = browser
        .into_iter()
        .chain(["xdg-open", "open"].map(str::to_owned));
    let opener = names.find_map(|name| program::find(&name, Path::new("/")));
    let opener = opener.ok_or("neither xdg-open nor open is installed")?;
    let mut child = Command::new(opener)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())?;
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Carries out what the page asks for. What may run a loop, or wait for one, is a process of its own:
/// this one has threads, and must not fork a runner.
fn steer(
    state_dir: &StateDir,
    name: &str,
    request: &SteeringRequest,
) -> Result<String, CommandError> {
    match request {
        SteeringRequest::Pause => run_ralph(state_dir, "pause", name),
        SteeringRequest::Stop => run_ralph(state_dir, "stop", name),
        SteeringRequest::Resume => run_ralph(state_dir, "resume", name),
        // Other users could read the text in a command's arguments.
        SteeringRequest::Say(text) => send_message(name, text),
    }
}

/// Runs `ralph VERB NAME`, and returns what it printed once it has ended or, if it is to resume a loop
/// in the foreground, once the loop runs.
fn run_ralph(state_dir: &StateDir, verb: &str, name: &str) -> Result<String, CommandError> {
    let failed =
        |error: std::io::Error| CommandError::broken(format!("cannot run `ralph {verb}`: {error}"));
    let is_resume = verb == "resume";
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .args([verb, name])
        .env("RALPH_STATE_DIR", state_dir.root())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(if is_resume {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stderr(Stdio::piped())
        // Ctrl-C ends the page, not the loop that it resumed.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let errors = Collector::start(child.stderr.take());
    let output = Collector::start(child.stdout.take());
    let dir = state_dir.loop_dir(name);
    let waiter = std::thread::spawn(move || child.wait());
    while !waiter.is_finished() {
        let is_live = || read_loop(&dir).is_ok_and(|(_, liveness)| liveness == Liveness::Running);
        if is_resume && is_live() {
            return Ok(format!("resumed ralph loop for {name}"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let (output, errors) = (output.text(), errors.text());
    // A resumed loop that has ended already has its own exit code.
    let is_success = matches!(waiter.join(), Ok(Ok(status)) if status.success());
    match errors.strip_prefix("ralph: error: ") {
        Some(error) => {
            let (message, hint) = error.split_once("\nhint: ").unwrap_or((error, ""));
            Err(CommandError::usage(message, hint))
        }
        None if is_success || is_resume => Ok([output, errors].join("\n").trim().to_owned()),
        None => Err(CommandError::broken(format!(
            "`ralph {verb}` failed: {errors}"
        ))),
    }
}

/// Reads a pipe on a thread, and keeps the first bytes.
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: std::thread::JoinHandle<()>,
}

impl Collector {
    fn start(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let Some(mut pipe) = pipe else { return };
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MESSAGE_MAX.saturating_sub(kept.len()).min(count);
                kept.extend(&buffer[..room]);
            }
        });
        Self { bytes, thread }
    }

    /// Returns the text once the pipe is closed. Waits only briefly: a process that was started in
    /// the background may keep it open.
    fn text(&self) -> String {
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(POLL_INTERVAL);
        }
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}
