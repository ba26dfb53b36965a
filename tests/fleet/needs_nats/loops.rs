//! Loops that are submitted to the fleet and run by worker processes.

use crate::servers::{Servers, wait_for};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A repository, a person who submits loops, and workers with homes of their own.
struct Team {
    servers: Servers,
    dir: TempDir,
    workers: Vec<(String, Child)>,
}

impl Team {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let team = Self {
            servers: Servers::start(1),
            dir,
            workers: Vec::new(),
        };
        let repo = team.path("repo");
        fs::create_dir(&repo).unwrap();
        fs::write(repo.join("notes"), "first\n").unwrap();
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["config", "user.name", "Ada"],
            &["config", "user.email", "ada@example.org"],
            &["add", "-A"],
            &["commit", "-q", "-m", "first"],
        ] {
            team.git(args);
        }
        team
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.path("repo"));
        let output = command.env("HOME", self.dir.path()).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns a command of the user with this home.
    fn command(&self, user: &str, args: &[&str]) -> Command {
        let home = self.path(user);
        let config = home.join("config/ralph");
        if !config.exists() {
            fs::create_dir_all(&config).unwrap();
            let settings = format!(
                "fleet = \"{}\"\nfleetAckWait = \"6s\"\nfleetHeartbeat = \"1s\"\n",
                self.servers.urls()
            );
            fs::write(config.join("settings.toml"), settings).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
        command
            .args(args)
            .current_dir(self.path("repo"))
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("RALPH_STATE_DIR", home.join("state"))
            .env("NO_COLOR", "1")
            .env("LEDGER", self.path("ledger"))
            .env("GATE", self.path("gate"))
            .env_remove("CI")
            .stdin(Stdio::null());
        command
    }

    fn ralph(&self, args: &[&str]) -> Output {
        self.command("person", args).output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.ralph(args);
        let all = [output.stdout.as_slice(), &output.stderr].concat();
        let text = String::from_utf8(all).unwrap();
        assert!(output.status.success(), "ralph {args:?}: {text}");
        text
    }

    fn start_worker(&mut self, name: &str) {
        let mut command = self.command(name, &["worker", "--slots", "4"]);
        let log = fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        // A group of its own, so that a signal to it reaches only it.
        command.process_group(0);
        self.workers
            .push((name.to_owned(), command.spawn().unwrap()));
    }

    fn log_of(&self, worker: &str) -> String {
        fs::read_to_string(self.path(&format!("{worker}.log"))).unwrap_or_default()
    }

    fn signal(&self, worker: &str, signal: &str) {
        let (_, child) = self
            .workers
            .iter()
            .find(|(name, _)| name == worker)
            .unwrap();
        let pid = child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    fn status(&self, name: &str) -> Value {
        let shown = self.ok(&["status", name, "--fleet", "--json"]);
        serde_json::from_str(shown.lines().last().unwrap()).unwrap()
    }

    /// Returns the numbers of the iterations that agents began, in order.
    fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Submits a loop whose agent writes its iteration to the ledger and to a file in the repository,
    /// and then waits at the gate.
    fn submit(&self, name: &str, more: &[&str]) {
        let agent = "echo $RALPH_ITERATION >>\"$LEDGER\"; echo $RALPH_ITERATION >>log; \
            while test -e \"$GATE\"; do sleep 0.05; done; echo '<promise>COMPLETE</promise>'";
        let args = ["spawn", "Count.", "--fleet", "--name", name, "-m", "9"];
        let check = ["--check", "test $(wc -l <log) -ge 3", "--backoff=0"];
        let agent = ["--", "sh", "-c", agent];
        self.ok(&[&args[..], &check, more, &agent].concat());
    }

    fn wait_until_done(&self, name: &str) {
        let code = self.ralph(&["wait", name, "--fleet"]).status.code();
        let logs: Vec<String> = self
            .workers
            .iter()
            .map(|(name, _)| self.log_of(name))
            .collect();
        assert_eq!(code, Some(0), "{logs:?}");
    }

    /// Opens the gate, and ends all workers.
    fn end(mut self) {
        let _ = fs::remove_file(self.path("gate"));
        for (name, child) in &mut self.workers {
            let pid = child.id().to_string();
            let _ = Command::new("kill").args(["-TERM", &pid]).status();
            child.wait().unwrap();
            let left = fs::read_dir(self.dir.path().join(&*name).join("state/fleet/work"));
            let left: Vec<_> = left.into_iter().flatten().flatten().collect();
            // Only a worker that was killed, or lost a loop, keeps a directory.
            assert!(left.len() <= 1, "{name}: {left:?}");
        }
        self.workers.clear();
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path("gate"));
        for (_, child) in &mut self.workers {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_loop_runs_on_a_worker_and_its_branch_comes_home() {
    let mut team = Team::new();
    team.submit("count", &[]);
    assert!(team.ok(&["ls", "--fleet"]).contains("queued"));
    team.start_worker("alice");
    team.wait_until_done("count");
    assert_eq!(team.ledger(), ["1", "2", "3"]);
    let status = team.status("count");
    assert_eq!(status["status"], "done");
    assert_eq!(status["current_iteration"], 3);
    assert!(team.ok(&["diff", "count", "--fleet"]).contains("+3"));
    assert!(team.ok(&["show", "count", "--fleet"]).contains("done"));
    assert!(team.ok(&["logs", "count", "--fleet"]).contains("COMPLETE"));
    team.ok(&["fetch", "count"]);
    assert_eq!(team.git(&["show", "ralph/count:log"]), "1\n2\n3\n");
    assert_eq!(team.git(&["status", "--porcelain"]), "");
    team.ok(&["rm", "count", "--fleet"]);
    assert!(!team.ok(&["ls", "--fleet"]).contains("count"));
    team.end();
}

#[test]
fn uncommitted_changes_are_sent_only_on_request() {
    let team = Team::new();
    fs::write(team.path("repo/notes"), "second\n").unwrap();
    let refused = team.ralph(&["spawn", "x", "--fleet", "--name", "a", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        message.contains("notes") && message.contains("--include-dirty"),
        "{message}"
    );
    let mut team = team;
    team.submit("count", &["--include-dirty"]);
    assert!(team.git(&["for-each-ref", "refs/ralph"]).is_empty());
    team.start_worker("alice");
    team.wait_until_done("count");
    team.ok(&["fetch", "count"]);
    assert_eq!(team.git(&["show", "ralph/count:notes"]), "second\n");
    team.end();
}

#[test]
fn another_worker_continues_after_kill_9() {
    let mut team = Team::new();
    team.submit("count", &[]);
    team.start_worker("alice");
    wait_for("two iterations", || {
        fs::write(team.path("gate"), "").unwrap();
        (team.ledger().len() == 1).then_some(())
    });
    team.signal("alice", "-KILL");
    team.start_worker("bob");
    wait_for("bob", || {
        team.log_of("bob")
            .contains("count: continued")
            .then_some(())
    });
    fs::remove_file(team.path("gate")).unwrap();
    team.wait_until_done("count");
    // The first iteration was cut short, and its number is not used again.
    assert_eq!(team.ledger(), ["1", "2", "3", "4"]);
    let status = team.status("count");
    assert_eq!(status["current_iteration"], 4);
    team.end();
}

#[test]
fn a_worker_that_hangs_loses_its_loop_and_its_agent() {
    let mut team = Team::new();
    fs::write(team.path("gate"), "").unwrap();
    team.submit("count", &[]);
    team.start_worker("alice");
    wait_for("the first iteration", || {
        (team.ledger().len() == 1).then_some(())
    });
    team.signal("alice", "-STOP");
    // The supervisor watches the lease itself, so nothing else needs to be alive.
    wait_for("the end of the agent", || {
        let state = team.path("alice/state");
        let found = Command::new("pgrep")
            .arg("-f")
            .arg(&state)
            .output()
            .unwrap();
        found.stdout.is_empty().then_some(())
    });
    team.start_worker("bob");
    wait_for("bob", || (team.ledger().len() == 2).then_some(()));
    team.signal("alice", "-CONT");
    wait_for("alice", || {
        team.log_of("alice")
            .contains("another worker has it")
            .then_some(())
    });
    fs::remove_file(team.path("gate")).unwrap();
    team.wait_until_done("count");
    assert_eq!(team.ledger(), ["1", "2", "3", "4"]);
    team.end();
}

#[test]
fn a_worker_that_is_asked_to_stop_hands_its_loop_over_at_once() {
    let mut team = Team::new();
    fs::write(team.path("gate"), "").unwrap();
    team.submit("count", &[]);
    team.start_worker("alice");
    wait_for("the first iteration", || {
        (team.ledger().len() == 1).then_some(())
    });
    team.signal("alice", "-TERM");
    wait_for("alice", || {
        team.log_of("alice").contains("handed back").then_some(())
    });
    fs::remove_file(team.path("gate")).unwrap();
    team.start_worker("bob");
    team.wait_until_done("count");
    // What the interrupted iteration wrote moved with the loop.
    assert_eq!(team.ledger(), ["1", "2", "3"]);
    team.ok(&["fetch", "count"]);
    assert_eq!(team.git(&["show", "ralph/count:log"]), "1\n2\n3\n");
    team.end();
}
