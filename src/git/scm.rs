//! How the tasks for green work are put to git, and what they need to know of the repository.

use super::command;
use super::command::{IN_FRONT, Output, Trouble};
use super::untracked::quote;
use super::{PATHS_SHOWN, READ_MAX};
use crate::engine::scm::COMMIT;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything in the repository but what ralph itself writes.
const WORK: [&str; 3] = [
    ":/",
    ":(top,exclude,glob)**/.ralph",
    ":(top,exclude,glob)**/.ralph/**",
];

/// The variable that names the file with a commit's message.
const MESSAGE: &str = "RALPH_COMMIT_MESSAGE";

/// A working tree, and how git is called there.
#[derive(Debug)]
pub struct Tree {
    command: Vec<String>,
    workspace: PathBuf,
    top: PathBuf,
}

/// Why there is no working tree.
#[derive(Debug, PartialEq)]
pub enum NoTree {
    /// Git is not installed.
    NoGit,
    /// There is no repository.
    Outside,
    /// The repository has no files beside it.
    Bare,
    /// Git says something else.
    Broken(String),
}

/// A task as it is started.
#[derive(Debug)]
pub struct Order {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where.
    pub dir: PathBuf,
    /// What to add to the environment.
    pub env: Vec<(String, String)>,
}

/// What a commit holds.
#[derive(Debug, Default, PartialEq)]
pub struct Contents {
    /// How many files.
    pub files: u32,
    /// The first few.
    pub paths: Vec<String>,
    /// The first line of its message.
    pub subject: String,
}

impl Tree {
    /// The working tree around `workspace`.
    pub fn around(command: &[String], workspace: &Path) -> Result<Self, NoTree> {
        let words = if command.is_empty() {
            vec!["git".to_owned()]
        } else {
            command.to_vec()
        };
        let mut tree = Self {
            command: words,
            workspace: workspace.to_owned(),
            top: workspace.to_owned(),
        };
        let output = match tree.call(&["rev-parse", "--is-inside-work-tree", "--show-toplevel"]) {
            Ok(output) => output,
            Err(Trouble::NotInstalled) => return Err(NoTree::NoGit),
            Err(Trouble::Failed(why)) => return Err(NoTree::Broken(why)),
        };
        match output.stdout.strip_prefix(b"true\n") {
            Some(top) if output.code == Some(0) => tree.top = command::path_of(top),
            _ if output.stdout.starts_with(b"false") => return Err(NoTree::Bare),
            _ if output.stderr.contains("not a git repository") => return Err(NoTree::Outside),
            _ => return Err(NoTree::Broken(output.complaint("rev-parse"))),
        }
        Ok(tree)
    }

    /// The newest commit; none before the first.
    pub fn head(&self) -> Result<Option<String>, String> {
        let output = self
            .call(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])
            .map_err(Trouble::sentence)?;
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Some(id).filter(|id| output.code == Some(0) && !id.is_empty()))
    }

    /// The files that are not as the newest commit has them, but those that ralph itself writes.
    pub fn changed(&self) -> Result<Vec<String>, String> {
        let mut words = vec![
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
        ];
        // What is uncommitted inside a submodule cannot be committed from outside.
        words.extend(["--ignore-submodules=dirty", "--"]);
        words.extend(WORK);
        let output = self.call(&words).map_err(Trouble::sentence)?;
        if output.code != Some(0) && !output.cut {
            return Err(output.complaint("status"));
        }
        let entries = output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|entry| entry.len() > 3);
        Ok(entries.map(|entry| quote(&entry[3..])).collect())
    }

    /// The commit that carries this trailer, looked for among those that came after `since`.
    pub fn commit_with(&self, trailer: &str, since: Option<&str>) -> Option<String> {
        let grep = format!("--grep={trailer}");
        let range = since.map_or_else(|| "HEAD".to_owned(), |since| format!("{since}..HEAD"));
        let words = [
            "log",
            "--no-show-signature",
            "--max-count=1",
            "--format=%H",
            "--fixed-strings",
            &grep,
            &range,
            "--",
        ];
        let output = self
            .call(&words)
            .ok()
            .filter(|output| output.code == Some(0))?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|id| !id.is_empty())
    }

    /// What a commit holds.
    pub fn contents(&self, commit: &str) -> Contents {
        let log = |words: &[&str]| {
            let words = [
                &["log", "--no-show-signature", "--max-count=1"],
                words,
                &[commit, "--"],
            ]
            .concat();
            self.call(&words)
                .map(|output| output.stdout)
                .unwrap_or_default()
        };
        // A merge is told by what it brings to the branch that it is made on.
        let names = log(&[
            "--format=",
            "--name-only",
            "-z",
            "-M",
            "-m",
            "--first-parent",
            "--root",
        ]);
        let paths: Vec<String> = names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(quote)
            .collect();
        let subject = log(&["--format=%s"]);
        Contents {
            files: u32::try_from(paths.len()).unwrap_or(u32::MAX),
            paths: paths.into_iter().take(PATHS_SHOWN).collect(),
            subject: String::from_utf8_lossy(&subject).trim().to_owned(),
        }
    }

    /// How a task is started. Only a commit has a message, and is made from the top of the repository: an agent
    /// may have changed files outside the workspace. Nothing may ask questions that nobody is there to answer.
    pub fn order(&self, task: &str, message: &Path) -> Order {
        let git = self
            .command
            .iter()
            .map(String::as_str)
            .chain(IN_FRONT)
            .map(str::to_owned);
        let mut env = vec![("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned())];
        if std::env::var_os("SSH_ASKPASS_REQUIRE").is_none() {
            env.push(("SSH_ASKPASS_REQUIRE".to_owned(), "never".to_owned()));
        }
        if task == COMMIT {
            env.push((MESSAGE.to_owned(), message.to_string_lossy().into_owned()));
            let shell = ["sh", "-c", include_str!("commit.sh"), "commit"].map(str::to_owned);
            return Order {
                command: shell.into_iter().chain(git).collect(),
                dir: self.top.clone(),
                env,
            };
        }
        let words = shlex::split(task).unwrap_or_default();
        Order {
            command: git.chain(words).collect(),
            dir: self.workspace.clone(),
            env,
        }
    }

    /// Whether this is its top.
    pub fn is_at(&self, path: &Path) -> bool {
        std::fs::canonicalize(path).is_ok_and(|path| path == self.top)
    }

    /// The top of the working tree.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    pub(crate) fn call(&self, words: &[&str]) -> Result<Output, Trouble> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        let mut command = command::quiet(command, &self.top);
        command.args(words);
        command::run(&mut command, READ_MAX, command::PATIENCE)
    }
}
