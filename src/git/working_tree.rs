//! The working tree that SCM tasks run in: its changes, its commits, and the command for each task.

use super::command::{FOREGROUND_OPTIONS, GitError, GitOutput};
use super::untracked::quote;
use super::{PATHS_SHOWN, READ_MAX};
use super::{command, look};
use crate::engine::format::shell_quote;
use crate::engine::plain_text::plain;
use crate::engine::scm::CommitTask;
use crate::os::program;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Pathspecs for everything in the repository except ralph's own files.
pub(super) const WORK: [&str; 3] = [
    ":/",
    ":(top,exclude,glob)**/.ralph",
    ":(top,exclude,glob)**/.ralph/**",
];

/// The environment variable that names the file with the commit message.
const MESSAGE_VAR: &str = "RALPH_COMMIT_MESSAGE";

/// The variable with the options of `git commit`, quoted for a shell.
const OPTIONS_VAR: &str = "RALPH_COMMIT_OPTIONS";

/// The environment variable that names the file with the pathspecs of what to commit.
const PATHSPECS_VAR: &str = "RALPH_COMMIT_PATHSPECS";

/// A working tree, and the command that runs git there.
#[derive(Debug)]
pub(crate) struct WorkingTree {
    command: Vec<String>,
    workspace: PathBuf,
    top: PathBuf,
    /// Whether the repository's filters convert files that are compared with a commit.
    runs_filters: bool,
}

/// Why there is no working tree.
#[derive(Debug, PartialEq)]
pub(crate) enum WorkingTreeError {
    GitNotInstalled,
    NotARepository,
    /// The repository is bare.
    Bare,
    /// Git failed for another reason. The text is its error message.
    GitFailed(String),
}

/// A command that carries out an SCM task.
#[derive(Debug)]
pub(crate) struct ScmCommand {
    /// The program and its arguments, such as `git push origin main`.
    pub(crate) command: Vec<String>,
    /// The directory in which to run the command.
    pub(crate) dir: PathBuf,
    /// Environment variables to set, by name and value.
    pub(crate) env: Vec<(String, String)>,
}

/// The changed files and the subject of a commit.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CommitSummary {
    /// Number of files the commit changes.
    pub(crate) files: u32,
    /// Paths of the first few files that the commit changes.
    pub(crate) paths: Vec<String>,
    /// The first line of the commit message.
    pub(crate) subject: String,
}

impl WorkingTree {
    /// Finds the working tree that contains `workspace`. `command` is the program that runs git,
    /// with its first arguments; if empty, `git` is used.
    pub(crate) fn find(command: &[String], workspace: &Path) -> Result<Self, WorkingTreeError> {
        let command = if command.is_empty() {
            vec!["git".to_owned()]
        } else {
            command.to_vec()
        };
        let mut tree = Self {
            command,
            workspace: workspace.to_owned(),
            top: workspace.to_owned(),
            runs_filters: false,
        };
        let output = match tree.git(&["rev-parse", "--is-inside-work-tree", "--show-toplevel"]) {
            Ok(output) => output,
            Err(GitError::NotInstalled) => return Err(WorkingTreeError::GitNotInstalled),
            Err(GitError::Failed(why)) => return Err(WorkingTreeError::GitFailed(why)),
        };
        match output.stdout.strip_prefix(b"true\n") {
            Some(top) if output.code == Some(0) => tree.top = command::parse_path(top),
            _ if output.stdout.starts_with(b"false") || command::is_bare(&output) => {
                return Err(WorkingTreeError::Bare);
            }
            _ if output.stderr.contains("not a git repository") => {
                return Err(WorkingTreeError::NotARepository);
            }
            _ => {
                return Err(WorkingTreeError::GitFailed(
                    output.error_message("rev-parse"),
                ));
            }
        }
        Ok(tree)
    }

    /// Returns the names of all git commands, including the user's aliases; `None` if this version
    /// of git cannot list them.
    pub(crate) fn command_names(&self) -> Option<Vec<String>> {
        let output = self.git(&["--list-cmds=main,others,alias"]).ok()?;
        let names = String::from_utf8_lossy(&output.stdout);
        (output.code == Some(0)).then(|| names.lines().map(str::to_owned).collect())
    }

    /// Lets the repository's filters convert files, as in the commits that the user asked for.
    /// Without them, a file that was written in the same second as the index looks changed if it has
    /// a filter.
    #[must_use]
    pub(crate) fn with_filters(mut self) -> Self {
        self.runs_filters = true;
        self
    }

    /// Returns the ID of the HEAD commit; `None` before the first commit.
    pub(crate) fn head_commit(&self) -> Result<Option<String>, String> {
        let output = self
            .git(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])
            .map_err(GitError::message)?;
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Some(id).filter(|id| output.code == Some(0) && !id.is_empty()))
    }

    /// Returns the files that differ from the HEAD commit and that a commit would contain.
    pub(crate) fn changed_files(&self) -> Result<Vec<String>, String> {
        Ok(self.changes()?.files)
    }

    /// Returns the ID of the newest commit after `since` whose message contains `trailer`; `None`
    /// if no commit does. If `since` is `None`, searches all commits.
    pub(crate) fn find_commit_with_trailer(
        &self,
        trailer: &str,
        since: Option<&str>,
    ) -> Option<String> {
        let grep = format!("--grep={trailer}");
        let range = since.map_or_else(|| "HEAD".to_owned(), |since| format!("{since}..HEAD"));
        let args = [
            "log",
            "--max-count=1",
            "--format=%H",
            "--fixed-strings",
            &grep,
            &range,
            "--",
        ];
        let output = self
            .git(&args)
            .ok()
            .filter(|output| output.code == Some(0))?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|id| !id.is_empty())
    }

    /// Summarizes a commit. Fields that git does not return are left empty.
    pub(crate) fn commit_summary(&self, commit: &str) -> CommitSummary {
        let log = |options: &[&str]| {
            let args = [&["log", "--max-count=1"], options, &[commit, "--"]].concat();
            self.git(&args)
                .map(|output| output.stdout)
                .unwrap_or_default()
        };
        // A merge counts as the changes it makes to its first parent.
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
        CommitSummary {
            files: u32::try_from(paths.len()).unwrap_or(u32::MAX),
            paths: paths.into_iter().take(PATHS_SHOWN).collect(),
            subject: plain(String::from_utf8_lossy(&subject).trim()).into_owned(),
        }
    }

    /// Returns the pathspecs of what a commit contains, each terminated by NUL: everything but
    /// ralph's own files and nested repositories, whose files git would not commit.
    pub(crate) fn commit_pathspecs(&self) -> Vec<u8> {
        let nested = self.changes().map(|changes| changes.nested);
        let mut pathspecs: Vec<Vec<u8>> = WORK.iter().map(|spec| spec.as_bytes().into()).collect();
        for path in nested.unwrap_or_default() {
            pathspecs.push([b":(top,exclude,literal)", &path[..]].concat());
        }
        pathspecs
            .iter()
            .flat_map(|spec| [spec, &b"\0"[..]].concat())
            .collect()
    }

    /// Returns the command for an SCM task, with prompts disabled. `message` and `pathspecs` are the
    /// files with the commit message and with [what to commit](Self::commit_pathspecs). A commit runs at the top of the working tree, because the agent may have
    /// changed files outside the workspace.
    pub(crate) fn task_command(&self, task: &str, message: &Path, pathspecs: &Path) -> ScmCommand {
        let (program, first_args) = match self.command.split_first() {
            Some((program, args)) => (Some(OsStr::new(program)), args),
            None => (None, &[][..]),
        };
        let program = look::resolve(program).to_string_lossy();
        let git = std::iter::once(&*program)
            .chain(first_args.iter().map(String::as_str))
            .chain(FOREGROUND_OPTIONS)
            .map(str::to_owned);
        let mut env = vec![("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned())];
        if std::env::var_os("SSH_ASKPASS_REQUIRE").is_none() {
            env.push(("SSH_ASKPASS_REQUIRE".to_owned(), "never".to_owned()));
        }
        if let Some(commit) = CommitTask::parse(task) {
            let options: Vec<String> = commit.options.iter().map(|arg| shell_quote(arg)).collect();
            env.push((OPTIONS_VAR.to_owned(), options.join(" ")));
            for (name, file) in [(MESSAGE_VAR, message), (PATHSPECS_VAR, pathspecs)] {
                env.push((name.to_owned(), file.to_string_lossy().into_owned()));
            }
            let script = include_str!("commit.sh");
            let shell = [&*program::shell().to_string_lossy(), "-c", script, "commit"];
            let shell = shell.map(str::to_owned);
            return ScmCommand {
                command: shell.into_iter().chain(git).collect(),
                dir: self.top.clone(),
                env,
            };
        }
        let args = shlex::split(task).unwrap_or_default();
        ScmCommand {
            command: git.chain(args).collect(),
            dir: self.workspace.clone(),
            env,
        }
    }

    /// Returns whether `path` is the top of this working tree.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        std::fs::canonicalize(path).is_ok_and(|path| path == self.top)
    }

    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// Runs git at the top of the working tree.
    pub(super) fn git(&self, args: &[&str]) -> Result<GitOutput, GitError> {
        self.git_with_stdin(args, Stdio::null())
    }

    /// Runs git like [`Self::git`], with this standard input.
    pub(super) fn git_with_stdin(
        &self,
        args: &[&str],
        stdin: Stdio,
    ) -> Result<GitOutput, GitError> {
        let mut command = look::git_as(&self.command, &self.top, args, self.runs_filters);
        command::run_with_stdin(&mut command, stdin, READ_MAX, command::TIMEOUT)
    }
}
