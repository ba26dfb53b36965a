//! NATS servers on the loopback: one, or a cluster of three. They can be killed, stopped, restarted and wiped, and end
//! with the test, also if it fails.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest time to wait for a condition. Slow machines may need much of it; no test depends on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `condition` returns a value.
pub(crate) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the path of the server program.
pub(crate) fn server_program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = std::env::var_os("RALPH_TEST_NATS").map_or_else(
        || root.join("target/nats/bin/nats-server"),
        |path| root.join(path),
    );
    assert!(path.exists(), "run tests/fleet/install.sh first");
    path
}

/// Returns a free port below those that the system gives to clients, so that no connection takes it in between.
fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(18_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

struct ServerNode {
    child: Option<Child>,
    dir: PathBuf,
    port: u16,
    monitor_port: u16,
}

/// One server, or a cluster.
pub(crate) struct Servers {
    nodes: Vec<ServerNode>,
    // Deleted last.
    dir: TempDir,
}

impl Servers {
    pub(crate) fn start(count: usize) -> Self {
        Self::with_config(count, "")
    }

    /// Starts servers with more settings.
    pub(crate) fn with_config(count: usize, settings: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let ports: Vec<[u16; 3]> = (0..count).map(|_| [(); 3].map(|()| free_port())).collect();
        let routes: Vec<String> = ports
            .iter()
            .map(|[_, _, route]| format!("nats://127.0.0.1:{route}"))
            .collect();
        let routes = routes.join(", ");
        let nodes = ports.iter().enumerate().map(|(number, [port, monitor, route])| {
            let home = dir.path().join(number.to_string());
            fs::create_dir(&home).unwrap();
            let cluster = format!(
                "cluster {{ name: test, listen: \"127.0.0.1:{route}\", routes: [{routes}] }}\n"
            );
            let config = format!(
                "server_name: n{number}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
                 jetstream {{ store_dir: \"{}\", sync_interval: always }}\n{}{settings}\n",
                home.join("store").display(),
                if count > 1 { cluster } else { String::new() },
            );
            fs::write(home.join("nats.conf"), config).unwrap();
            ServerNode {
                child: None,
                dir: home,
                port: *port,
                monitor_port: *monitor,
            }
        });
        let mut servers = Self {
            nodes: nodes.collect(),
            dir,
        };
        for number in 0..count {
            servers.start_node(number);
        }
        for number in 0..count {
            servers.wait_until_healthy(number);
        }
        servers
    }

    fn start_node(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let log = fs::File::create(node.dir.join("log")).unwrap();
        let child = Command::new(server_program())
            .arg("-c")
            .arg(node.dir.join("nats.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        node.child = Some(child.unwrap());
    }

    fn wait_until_healthy(&self, number: usize) {
        wait_for("a healthy server", || {
            self.monitor(number, "/healthz")
                .filter(|answer| answer.contains("\"ok\""))
        });
    }

    /// Starts a server again.
    pub(crate) fn restart(&mut self, number: usize) {
        self.start_node(number);
        self.wait_until_healthy(number);
    }

    /// Starts all servers again, at the same time.
    pub(crate) fn restart_all(&mut self) {
        for number in 0..self.nodes.len() {
            self.start_node(number);
        }
        for number in 0..self.nodes.len() {
            self.wait_until_healthy(number);
        }
    }

    /// Kills a server at once, as a crash would.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut child) = self.nodes[number].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn kill_all(&mut self) {
        for number in 0..self.nodes.len() {
            self.kill(number);
        }
    }

    /// Deletes everything that a killed server stored.
    pub(crate) fn wipe(&mut self, number: usize) {
        assert!(self.nodes[number].child.is_none(), "kill it first");
        fs::remove_dir_all(self.nodes[number].dir.join("store")).unwrap();
    }

    /// Stops a server without ending it, as a machine that hangs would.
    pub(crate) fn freeze(&self, number: usize) {
        self.signal(number, "-STOP");
    }

    pub(crate) fn thaw(&self, number: usize) {
        self.signal(number, "-CONT");
    }

    fn signal(&self, number: usize, signal: &str) {
        let child = self.nodes[number].child.as_ref().unwrap();
        let sent = Command::new("kill")
            .arg(signal)
            .arg(child.id().to_string())
            .status();
        assert!(sent.unwrap().success());
    }

    /// Returns the addresses of all servers.
    pub(crate) fn urls(&self) -> String {
        let urls = self
            .nodes
            .iter()
            .map(|node| format!("nats://127.0.0.1:{}", node.port));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Returns the address of one server.
    pub(crate) fn url(&self, number: usize) -> String {
        format!("nats://127.0.0.1:{}", self.nodes[number].port)
    }

    /// Returns the address of one server with a user and the password `secret-USER`.
    pub(crate) fn url_of(&self, user: &str) -> String {
        format!(
            "nats://{user}:secret-{user}@127.0.0.1:{}",
            self.nodes[0].port
        )
    }

    /// Returns the monitoring port of a server, as `HOST:PORT`.
    pub(crate) fn monitor_address(&self, number: usize) -> String {
        format!("127.0.0.1:{}", self.nodes[number].monitor_port)
    }

    /// Returns the server that leads a stream.
    pub(crate) fn leader(&self, stream: &str) -> usize {
        wait_for("a leader", || {
            let running = (0..self.nodes.len()).filter(|at| self.nodes[*at].child.is_some());
            let mut answers =
                running.filter_map(|at| self.monitor(at, "/jsz?accounts=1&streams=1"));
            answers.find_map(|answer| {
                let answer: serde_json::Value = serde_json::from_str(&answer).ok()?;
                let account = &answer["account_details"][0]["stream_detail"];
                let mut streams = account.as_array()?.iter();
                let found = streams.find(|found| found["name"] == stream)?;
                let leader: usize = found["cluster"]["leader"]
                    .as_str()?
                    .strip_prefix('n')?
                    .parse()
                    .ok()?;
                self.nodes[leader].child.is_some().then_some(leader)
            })
        })
    }

    /// Asks a monitoring port, and returns the body of the answer.
    fn monitor(&self, number: usize, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.nodes[number].monitor_port)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.split_once("\r\n\r\n")?.1.to_owned())
    }

    /// Returns a directory for the test's own files.
    pub(crate) fn scratch(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for node in &self.nodes {
                let log = fs::read_to_string(node.dir.join("log")).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(5).collect();
                println!("{}: {tail:#?}", node.dir.display());
            }
        }
        self.kill_all();
    }
}
