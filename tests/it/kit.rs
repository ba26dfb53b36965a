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

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place of its own for one test. When it goes away, no process that carries its mark may be alive.
pub(crate) struct Test {
    root: TempDir,
    mark: String,
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
        Self { root, mark }
    }

    /// With a repository in the workspace, and one commit.
    pub(crate) fn git() -> Self {
        let test = Self::new().file("README", "a project\n");
        test.sh("git init -q -b main && git add -A && git commit -q -m first");
        test
    }

    /// With a scripted agent; `--agent script:../agent.script` in the words names it.
    pub(crate) fn script(self, text: &str) -> Self {
        fs::write(self.root.path().join("agent.script"), text).unwrap();
        self
    }

    /// With a file in the workspace.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// With an executable file in the workspace.
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

    /// With a program of this name that is found before any other.
    pub(crate) fn on_path(self, name: &str, text: &str) -> Self {
        self.program(&format!("../bin/{name}"), text)
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

    /// A file of the workspace.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A file of a loop's directory.
    pub(crate) fn read_loop(&self, name: &str, path: &str) -> String {
        fs::read_to_string(self.loop_dir(name).join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A shell command in the workspace that must succeed; its output.
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

    /// A command in the workspace, with an environment of this test alone.
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
        // A tmux of this test alone; its socket's path must stay short.
        command.env("TMUX_TMPDIR", self.root.path());
        command.env("RALPH_TEST", &self.mark);
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "tester")
                .env(format!("GIT_{who}_EMAIL"), "tester@localhost");
        }
        command
    }

    /// The real binary, not started yet.
    pub(crate) fn ralph_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_ralph"));
        command.args(args);
        command
    }

    /// The same for a user who is bound by the modes of files: where the tests run as root, that is another one, who
    /// can read the root directory of this test only if its mode says so.
    pub(crate) fn unprivileged(&self, args: &[&str]) -> Command {
        use std::os::unix::process::CommandExt;
        if !rustix::process::geteuid().is_root() {
            return self.ralph_command(args);
        }
        let program = self.root.path().join("ralph-for-all");
        if !program.exists() {
            fs::copy(env!("CARGO_BIN_EXE_ralph"), &program).unwrap();
        }
        let mut command = self.command(program);
        command.args(args).uid(65534).gid(65534);
        command
    }

    /// Runs the real binary to its end.
    pub(crate) fn ralph(&self, args: &[&str]) -> Done {
        self.start(args).end()
    }

    /// Starts the real binary.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        self.start_command(self.ralph_command(args))
    }

    /// Starts a command with its output caught.
    pub(crate) fn start_command(&self, mut command: Command) -> Live {
        command.stdin(Stdio::null());
        self.launch(command)
    }

    /// Starts the real binary on a terminal of its own. Tests that do so belong into a module `needs_script`.
    pub(crate) fn start_on_terminal(&self, args: &[&str]) -> Live {
        self.start_on_terminal_as("", args)
    }

    /// The same, on a terminal of this kind.
    pub(crate) fn start_on_terminal_as(&self, kind: &str, args: &[&str]) -> Live {
        let kind = if kind.is_empty() {
            String::new()
        } else {
            format!("TERM={kind}")
        };
        self.start_on_terminal_with(&kind, args)
    }

    /// The same, with this before it, as a shell understands it.
    pub(crate) fn start_on_terminal_with(&self, setting: &str, args: &[&str]) -> Live {
        let args = [&[env!("CARGO_BIN_EXE_ralph")], args].concat();
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

    /// The journal's lines, header first.
    pub(crate) fn journal(&self, name: &str) -> Vec<Value> {
        let text =
            fs::read_to_string(self.loop_dir(name).join("journal.jsonl")).unwrap_or_default();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The journal's events of one kind.
    pub(crate) fn events(&self, name: &str, kind: &str) -> Vec<Value> {
        self.journal(name)
            .into_iter()
            .filter(|line| line["event"] == kind)
            .collect()
    }

    /// `ralph status NAME --json`.
    pub(crate) fn status(&self, name: &str) -> Value {
        let done = self.ralph(&["status", name, "--json"]);
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
    }

    /// The prompt of an iteration.
    pub(crate) fn prompt(&self, name: &str, iteration: u32) -> String {
        self.read_loop(name, &format!("iterations/{iteration:04}/prompt.md"))
    }

    /// Living processes that carry this test's mark.
    pub(crate) fn survivors(&self) -> Vec<u32> {
        let mark = format!("RALPH_TEST={}", self.mark);
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
        let deadline = Instant::now() + Duration::from_secs(2);
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

/// A run that is over.
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

    /// Asserts that standard output holds this.
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

    /// Asserts that standard error holds this.
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

    /// The lines of `--json`.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }
}

/// A run under way.
pub(crate) struct Live {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Live {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it printed so far.
    pub(crate) fn out(&self) -> String {
        text(&self.out)
    }

    /// Waits until it has printed this.
    #[track_caller]
    pub(crate) fn until_out(&self, text: &str) {
        until(&format!("{text:?} in {:?}", self.out()), || {
            self.out().contains(text)
        });
    }

    /// Types at its terminal.
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

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(self) -> Done {
        self.end_within(PATIENCE)
    }

    /// The same, with other patience.
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

/// Waits until something is true.
#[track_caller]
pub(crate) fn until(what: &str, is_true: impl FnMut() -> bool) {
    until_within(PATIENCE, what, is_true);
}

/// The same, with other patience.
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

/// Whether a process is there and no zombie.
pub(crate) fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
