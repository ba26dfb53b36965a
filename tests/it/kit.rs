//! The `Test` builder: a workspace, a state directory, a scripted agent, and the real binary.

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The maximum time that a test waits for a condition before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The version of the agents that [`Test::on_path`] adds.
pub(crate) const VERSION: &str = "9.8.7";

/// Runs a loop called `a` for one iteration, in which its agent does nothing.
pub(crate) const RUN_ONCE: [&str; 9] = [
    "run",
    "x",
    "--name",
    "a",
    "-m",
    "1",
    "--no-promise",
    "--",
    "true",
];

/// A test's own directories. On drop, no process with the test's marker may be alive.
pub(crate) struct Test {
    root: TempDir,
    mark: String,
    trusts: bool,
}

impl Test {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let root = tempfile::Builder::new()
            .prefix("ralph-test-")
            .tempdir()
            .expect("a temporary directory");
        let mark = format!(
            "{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        for dir in ["shop", "state", "home"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        Self {
            root,
            mark,
            trusts: true,
        }
    }

    /// Creates a test with a repository and one commit in its workspace.
    pub(crate) fn git() -> Self {
        let test = Self::new().file("README", "a project\n");
        test.sh("git init -q -b main && git add -A && git commit -q -m first");
        test
    }

    /// Turns off the trust in the workspace's settings, which every other test gives its own with
    /// `--trust`.
    pub(crate) fn untrusting(mut self) -> Self {
        self.trusts = false;
        self
    }

    /// Returns the arguments of a run by a user who trusts the workspace's settings.
    fn trusting<'a>(&self, args: &[&'a str]) -> Vec<&'a str> {
        match args {
            [verb @ ("run" | "spawn"), rest @ ..] if self.trusts => {
                [&[*verb, "--trust"], rest].concat()
            }
            ["-h" | "--help" | "-V" | "--version", ..] => args.to_vec(),
            [flag, ..] if self.trusts && flag.starts_with('-') => [&["--trust"], args].concat(),
            _ => args.to_vec(),
        }
    }

    /// Adds a scripted agent; select it with `--agent script:../agent.script`.
    pub(crate) fn script(self, text: &str) -> Self {
        fs::write(self.root.path().join("agent.script"), text).unwrap();
        self
    }

    /// Adds a file to the workspace.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds an executable file to the workspace.
    pub(crate) fn program(self, path: &str, text: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        self.write(path, text);
        fs::set_permissions(
            self.workspace().join(path),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        self
    }

    /// Adds a program that is found on the PATH before any other of that name.
    pub(crate) fn on_path(self, name: &str, text: &str) -> Self {
        self.program(&format!("../bin/{name}"), &with_version(name, text))
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("shop")
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub(crate) fn loop_dir(&self, name: &str) -> PathBuf {
        self.state_dir().join("loops").join(name)
    }

    /// Reads a file in the workspace.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Reads a file in a loop's directory.
    pub(crate) fn read_loop(&self, name: &str, path: &str) -> String {
        fs::read_to_string(self.loop_dir(name).join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Runs a shell command in the workspace, which must succeed. Returns its output.
    pub(crate) fn sh(&self, command: &str) -> String {
        let done = self
            .command("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            done.status.success(),
            "{command}: {text}{}",
            String::from_utf8_lossy(&done.stderr)
        );
        text
    }

    /// Returns a command that runs in the workspace, with an environment for this test only.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.workspace()).env_clear();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env(
            "PATH",
            format!("{}:{path}", self.root.path().join("bin").display()),
        );
        command.env("HOME", self.root.path().join("home"));
        command.env("RALPH_STATE_DIR", self.state_dir());
        // This test's own tmux server; the path of its socket must stay short.
        command.env("TMUX_TMPDIR", self.root.path());
        command.env("TEST_MARK", &self.mark);
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "tester")
                .env(format!("GIT_{who}_EMAIL"), "tester@localhost");
        }
        command
    }

    /// Returns a command for the real binary.
    pub(crate) fn ralph_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_ralph"));
        command.args(self.trusting(args));
        command
    }

    /// Like `ralph_command`, for a user to whom file modes apply. If the tests run as root, this is
    /// another user, who can read the test's root directory only if its mode allows it.
    pub(crate) fn unprivileged(&self, args: &[&str]) -> Command {
        use std::os::unix::process::CommandExt;
        if !rustix::process::geteuid().is_root() {
            return self.ralph_command(args);
        }
        let program = self.root.path().join("ralph-for-all");
        if !program.exists() {
            // If this process had the file open for writing, a test on another thread could pass the
            // descriptor on to a program it starts, and no process can execute a file in that state.
            let mut copy = Command::new("cp");
            copy.arg(env!("CARGO_BIN_EXE_ralph")).arg(&program);
            assert!(copy.status().unwrap().success());
        }
        let mut command = self.command(program);
        command.args(self.trusting(args)).uid(65534).gid(65534);
        command
    }

    /// Runs the real binary to its end.
    pub(crate) fn ralph(&self, args: &[&str]) -> Done {
        self.start(args).end()
    }

    /// Runs the real binary to its end as from another terminal: it is no descendant of this test,
    /// which may stand for a client.
    pub(crate) fn elsewhere(&self, args: &[&str]) -> Done {
        let files = ["out", "err", "code"].map(|kind| self.scratch(kind));
        let script = r#"(while kill -0 $$ 2>/dev/null; do sleep 0.01; done
            out=$1 err=$2 code=$3; shift 3
            "$@" >"$out" 2>"$err" </dev/null; echo $? >"$code.new"; mv "$code.new" "$code") >/dev/null 2>&1 &"#;
        let mut command = self.command("sh");
        command.args(["-c", script, "sh"]).args(&files);
        command.arg(env!("CARGO_BIN_EXE_ralph")).args(args);
        assert!(command.status().unwrap().success());
        until("its end", || files[2].exists());
        let [out, err, code] = files.map(|file| text(&file));
        let code = code.trim().parse().expect("an exit code");
        Done { code, out, err }
    }

    /// Starts the real binary.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        self.start_command(self.ralph_command(args))
    }

    /// Starts a command and captures its output.
    pub(crate) fn start_command(&self, mut command: Command) -> Live {
        command.stdin(Stdio::null());
        self.launch(command)
    }

    /// Starts the real binary on its own terminal. Tests that use this belong in a module
    /// `needs_script`.
    pub(crate) fn start_on_terminal(&self, args: &[&str]) -> Live {
        self.start_on_terminal_as("", args)
    }

    /// Like `start_on_terminal`, with this value of TERM.
    pub(crate) fn start_on_terminal_as(&self, kind: &str, args: &[&str]) -> Live {
        let kind = if kind.is_empty() {
            String::new()
        } else {
            format!("TERM={kind}")
        };
        self.start_on_terminal_with(&kind, args)
    }

    /// Like `start_on_terminal`, with `setting` before the command in the shell line.
    pub(crate) fn start_on_terminal_with(&self, setting: &str, args: &[&str]) -> Live {
        let args = [&[env!("CARGO_BIN_EXE_ralph")], &self.trusting(args)[..]].concat();
        let line = format!("{setting} exec '{}'", args.join("' '"));
        let mut command = self.command("script");
        command
            .args(["-q", "-e", "-c", &line, "/dev/null"])
            .stdin(Stdio::piped());
        self.launch(command)
    }

    fn launch(&self, mut command: Command) -> Live {
        let (out, err) = (self.scratch("out"), self.scratch("err"));
        command
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&err).unwrap());
        Live {
            child: command.spawn().expect("the binary starts"),
            out,
            err,
        }
    }

    fn scratch(&self, kind: &str) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        self.root
            .path()
            .join(format!("{kind}-{}", COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the journal's lines, header first.
    pub(crate) fn journal(&self, name: &str) -> Vec<Value> {
        let text =
            fs::read_to_string(self.loop_dir(name).join("journal.jsonl")).unwrap_or_default();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Replaces a loop's journal, as if its runner had been killed after these lines.
    pub(crate) fn replace_journal(&self, name: &str, text: &str) {
        let dir = self.loop_dir(name);
        for derived in ["state.json", "seal"] {
            let _ = fs::remove_file(dir.join(derived));
        }
        fs::write(dir.join("journal.jsonl"), text).unwrap();
    }

    /// Returns the journal's events of one kind.
    pub(crate) fn events(&self, name: &str, kind: &str) -> Vec<Value> {
        self.journal(name)
            .into_iter()
            .filter(|line| line["event"] == kind)
            .collect()
    }

    /// Returns the output of `ralph status NAME --json`.
    pub(crate) fn status(&self, name: &str) -> Value {
        let done = self.ralph(&["status", name, "--json"]);
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
    }

    /// Returns an iteration's prompt.
    pub(crate) fn prompt(&self, name: &str, iteration: u32) -> String {
        self.read_loop(name, &format!("iterations/{iteration:04}/prompt.md"))
    }

    /// Returns the living processes with this test's marker.
    pub(crate) fn survivors(&self) -> Vec<u32> {
        let mark = format!("TEST_MARK={}", self.mark);
        let marked = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        };
        pids()
            .into_iter()
            .filter(marked)
            .filter(|pid| alive(*pid))
            .collect()
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        if fs::read_dir(self.root.path())
            .unwrap()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("tmux-"))
        {
            let _ = self
                .command("tmux")
                .args(["-L", "ralph", "kill-server"])
                .output();
        }
        let deadline = Instant::now() + PATIENCE / 3;
        let mut left = self.survivors();
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            left = self.survivors();
        }
        for pid in &left {
            signal(*pid, "KILL");
        }
        assert!(
            left.is_empty() || std::thread::panicking(),
            "processes were left behind: {left:?}"
        );
    }
}

/// A process that has exited, and its output.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "\n--- out\n{}\n--- err\n{}",
            self.out, self.err
        );
        self
    }

    /// Asserts that standard output contains this text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(
            self.out.contains(text),
            "{text:?} is not in\n--- out\n{}\n--- err\n{}",
            self.out,
            self.err
        );
        self
    }

    /// Asserts that standard error contains this text.
    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Self {
        assert!(
            self.err.contains(text),
            "{text:?} is not in\n--- err\n{}\n--- out\n{}",
            self.err,
            self.out
        );
        self
    }

    /// Parses standard output as JSON lines.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }
}

/// A running process.
pub(crate) struct Live {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Live {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns what it has printed so far.
    pub(crate) fn out(&self) -> String {
        text(&self.out)
    }

    /// Waits until standard output contains this text.
    #[track_caller]
    pub(crate) fn until_out(&self, text: &str) {
        until(&format!("{text:?} in {:?}", self.out()), || {
            self.out().contains(text)
        });
    }

    /// Types keys at its terminal.
    pub(crate) fn type_in(&self, keys: &str) {
        self.child
            .stdin
            .as_ref()
            .expect("a terminal")
            .write_all(keys.as_bytes())
            .unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits until it exits.
    #[track_caller]
    pub(crate) fn end(self) -> Done {
        self.end_within(PATIENCE)
    }

    /// Like `end`, with another timeout.
    #[track_caller]
    pub(crate) fn end_within(mut self, patience: Duration) -> Done {
        let begun = Instant::now();
        let status: ExitStatus = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if begun.elapsed() > patience => {
                    let _ = self.child.kill();
                    panic!(
                        "it does not end\n--- out\n{}\n--- err\n{}",
                        self.out(),
                        text(&self.err)
                    );
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let code = status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Done {
            code,
            out: text(&self.out),
            err: text(&self.err),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let _ = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Adds to the script of a known agent what a loop asks it for first: its version.
fn with_version(name: &str, text: &str) -> String {
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("presets/agents");
    let is_agent = preset.join(name).with_extension("toml").exists();
    match text.strip_prefix("#!/bin/sh\n") {
        Some(rest) if is_agent && !rest.contains("--version") => {
            format!("#!/bin/sh\ntest \"$*\" = --version && echo '{VERSION} (fake)' && exit\n{rest}")
        }
        _ => text.to_owned(),
    }
}

/// Waits until `is_true` returns true; panics with `what` on a timeout.
#[track_caller]
pub(crate) fn until(what: &str, is_true: impl FnMut() -> bool) {
    until_within(PATIENCE, what, is_true);
}

/// Like [`until`], with another timeout.
#[track_caller]
pub(crate) fn until_within(patience: Duration, what: &str, mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < patience, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Kills a process and its child, which watch each other: none can react to the death of the other.
/// `pids` begins with the parent, whose death would continue a child that is stopped.
pub(crate) fn kill_together(pids: &[u32]) {
    for pid in pids {
        signal(*pid, "STOP");
    }
    let is_stopped = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    until("them to stop", || pids.iter().all(is_stopped));
    for pid in pids.iter().rev() {
        signal(*pid, "KILL");
    }
    until("them to exit", || !pids.iter().any(|pid| alive(*pid)));
}

pub(crate) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
