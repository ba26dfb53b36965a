//! Confines an agent's processes: what they can see and write. Both kinds of sandbox carry out the
//! same layout.

mod bwrap;
mod git_dirs;
pub(crate) mod hooks;
mod landlock;
mod layout;
mod probe;
mod table;

pub(crate) use probe::probe;

use crate::engine::plan::{Agent, Sandbox};
use crate::os::program;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use table::table;

/// The variable that tells the commands of ralph that they run in a sandbox. It only improves their
/// messages: without it they fail too.
pub(crate) const VARIABLE: &str = "RALPH_SANDBOX";

/// What a sandbox must provide for one agent.
pub(crate) struct SandboxRequest<'a> {
    pub(crate) kind: Sandbox,
    pub(crate) workspace: &'a Path,
    /// The directory with all loops and their worktrees.
    pub(crate) state_dir: &'a Path,
    pub(crate) agent: &'a Agent,
    /// Files that the agent must be able to read: its program and its prompt.
    pub(crate) files: Vec<PathBuf>,
    /// A directory of the loop's own in the workspace, for caches where the sandbox has no private
    /// directory for temporary files.
    pub(crate) caches: PathBuf,
}

impl SandboxRequest<'_> {
    /// Creates the directories without which an agent could not save its login or use its caches. An
    /// error is reported by the agent itself.
    pub(crate) fn create_dirs(&self) {
        let own = self.agent.own_paths.iter();
        for path in own.filter(|path| path.ends_with('/')) {
            let _ = fs::create_dir_all(path);
        }
        if self.kind == Sandbox::Landlock {
            let _ = fs::DirBuilder::new().mode(0o700).create(&self.caches);
        }
    }
}

/// A sandbox for the processes of one iteration.
#[derive(Debug)]
pub(crate) struct Confinement {
    method: Method,
    /// Environment variables to set.
    pub(crate) env: Vec<(String, String)>,
    /// Environment variables to remove.
    pub(crate) unset: &'static [String],
}

#[derive(Debug)]
enum Method {
    /// The program and its arguments, before those of the agent.
    Bwrap(Vec<String>),
    Landlock(landlock::Rules),
}

/// Why there is no sandbox.
#[derive(Debug)]
pub(crate) enum SandboxError {
    /// The program bwrap is not installed.
    NoBwrap,
    /// The kernel does not support Landlock, or an old version of it.
    NoLandlock(io::Error),
    /// Landlock cannot hide the first path, because it lies in the second, which the agent may write.
    HiddenInside(PathBuf, PathBuf),
    /// The path is not valid UTF-8, so that it cannot be passed on.
    NotUtf8(PathBuf),
    Io(io::Error),
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBwrap => f.write_str("bwrap is not installed"),
            Self::NoLandlock(error) => write!(f, "this kernel has no usable Landlock: {error}"),
            Self::HiddenInside(hidden, outer) => write!(
                f,
                "Landlock cannot hide {} inside {}",
                hidden.display(),
                outer.display()
            ),
            Self::NotUtf8(path) => write!(f, "the path {} is not valid UTF-8", path.display()),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<SandboxError> for io::Error {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Io(error) => error,
            other => Self::other(format!("no sandbox: {other}")),
        }
    }
}

impl Confinement {
    /// Prepares a sandbox. Nothing is created: see [`SandboxRequest::create_dirs`].
    pub(crate) fn prepare(request: &SandboxRequest<'_>) -> Result<Self, SandboxError> {
        let layout = layout::build(request);
        let method = match request.kind {
            Sandbox::Bwrap => {
                let program = program::bwrap().ok_or(SandboxError::NoBwrap)?;
                Method::Bwrap(bwrap::arguments(program, &layout, request.workspace)?)
            }
            Sandbox::Landlock => Method::Landlock(landlock::compose(&layout, request.workspace)?),
        };
        let temp = PathBuf::from(&table().temp[0]);
        let caches = match request.kind {
            Sandbox::Bwrap => &temp,
            // Other processes of the user share the directory for temporary files.
            Sandbox::Landlock => &request.caches,
        };
        Ok(Self {
            method,
            env: variables(request.kind, &temp, caches),
            unset: &table().unset,
        })
    }

    /// Returns the command that starts `command` in the sandbox.
    pub(crate) fn wrap(&self, command: Vec<String>) -> Vec<String> {
        match &self.method {
            Method::Bwrap(prefix) => [prefix.clone(), command].concat(),
            Method::Landlock(_) => command,
        }
    }

    /// Returns whether the first process is not the agent but bwrap, which exits with the agent and
    /// takes every process in the sandbox with it.
    pub(crate) fn has_wrapper(&self) -> bool {
        matches!(self.method, Method::Bwrap(_))
    }

    /// Returns whether the process must restrict itself before it executes the agent.
    pub(crate) fn restricts_itself(&self) -> bool {
        matches!(self.method, Method::Landlock(_))
    }

    /// Makes a command restrict itself before it executes its program, if this kind needs that.
    pub(crate) fn restrict(&self, command: &mut Command) {
        if let Method::Landlock(rules) = &self.method {
            rules.restrict(command);
        }
    }
}

/// Returns the variables that a sandbox sets: caches and temporary files go where the agent can
/// write.
fn variables(kind: Sandbox, temp: &Path, caches: &Path) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let rows = table().caches.iter();
    let caches = rows.map(|(name, dir)| (name.clone(), text(&caches.join(dir))));
    let temps = table().temp_variables.iter();
    let temps = temps
        .filter(|name| kind == Sandbox::Bwrap && std::env::var_os(name).is_some())
        .map(|name| (name.clone(), text(temp)));
    let own = (VARIABLE.to_owned(), kind.as_str().to_owned());
    caches.chain(temps).chain([own]).collect()
}
