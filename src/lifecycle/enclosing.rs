//! Finds the loop whose agent started this process, whatever the environment says, and refuses to
//! let the agent control loops that it did not start.
//!
//! A process belongs to a loop if one of its ancestors is the loop's supervisor, or the client in
//! whose session the loop runs. A daemon of the agent belongs to it too: its parent is the
//! supervisor. After the supervisor was killed, the mark that the process inherited identifies its
//! loop.

use super::error::CommandError;
use super::session;
use crate::client::descriptor::clients;
use crate::engine::{Phase, ProcessIdentity, State};
use crate::process::lock_users::open_paths;
use crate::process::mark::Mark;
use crate::process::tree;
use crate::store::{LoopDir, StateDir, cache, is_valid_name};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

/// The loop to which this process belongs.
pub(crate) struct EnclosingLoop {
    dir: LoopDir,
    /// The name of the client in whose session the loop runs; `None` if ralph starts the agent.
    client: Option<String>,
}

impl EnclosingLoop {
    /// Finds the innermost loop to which this process belongs; `None` if it belongs to no loop.
    pub(crate) fn find(state_dir: &StateDir) -> Option<Self> {
        let ancestors = tree::ancestors();
        Self::by_ancestors(state_dir, &ancestors)
            .or_else(|| Self::by_mark(state_dir))
            .or_else(|| Self::by_environment(state_dir))
    }

    fn by_ancestors(state_dir: &StateDir, ancestors: &[ProcessIdentity]) -> Option<Self> {
        // `ralph spawn` may have started a tmux server, in which a person works.
        let is_detached = Mark::inherited() == Some(Mark::DETACHED);
        let sessions = active_sessions(state_dir);
        for (at, ancestor) in ancestors.iter().enumerate() {
            if let Some((dir, client, _)) = sessions.iter().find(|(.., it)| it == ancestor) {
                return Some(Self {
                    dir: dir.clone(),
                    client: Some(client.clone()),
                });
            }
            let dir = Some(ancestor.pid).filter(|_| !is_detached);
            if let Some(dir) = dir.and_then(locked_loop)
                && is_job(&dir, &ancestors[..at], ancestors.get(at + 1))
            {
                return Some(Self { dir, client: None });
            }
        }
        None
    }

    /// Finds the loop by this process's mark.
    fn by_mark(state_dir: &StateDir) -> Option<Self> {
        let mark = Mark::inherited().filter(|mark| *mark != Mark::DETACHED)?;
        let names = state_dir.loop_names().ok()?.into_iter();
        let mut dirs = names.map(|name| state_dir.loop_dir(&name));
        let dir = dirs.find(|dir| {
            cache::read(dir).is_ok_and(|view| {
                Mark::of_loop(&view.header.id) == mark && may_have_job(&view.state)
            })
        })?;
        Some(Self { dir, client: None })
    }

    /// Finds the loop by the variables of an agent, for systems that do not list processes.
    fn by_environment(state_dir: &StateDir) -> Option<Self> {
        // `--notify` commands also have RALPH_LOOP set, but no RALPH_ITERATION.
        variable("RALPH_ITERATION")?;
        let name = variable("RALPH_LOOP").filter(|name| is_valid_name(name))?;
        let dir = state_dir.loop_dir(&name);
        dir.journal().exists().then_some(Self { dir, client: None })
    }

    pub(crate) fn name(&self) -> &str {
        self.dir.name()
    }

    /// Returns whether `dir` is this loop's directory.
    pub(super) fn is(&self, dir: &LoopDir) -> bool {
        let path = |dir: &LoopDir| dir.path().canonicalize().ok();
        path(dir).is_some_and(|target| Some(target) == path(&self.dir))
    }

    /// Fails unless the loop in `dir` was started by this loop's agent, or by one of its child
    /// loops.
    pub(crate) fn check_may_control(&self, dir: &LoopDir) -> Result<(), CommandError> {
        let (own, name) = (self.name(), dir.name());
        if self.is(dir) {
            return Err(CommandError::usage(
                format!("an agent cannot control its own loop ({name:?})"),
                self.hint(
                    "use `ralph done` to claim that the task is done, or `ralph blocked WHY` to ask for help",
                ),
            ));
        }
        let (state_dir, other) = (StateDir::containing(&self.dir), StateDir::containing(dir));
        let root = |dir: &StateDir| dir.root().canonicalize().ok();
        if root(&state_dir) == root(&other) && other.is_ancestor(own, other.parent(name)) {
            return Ok(());
        }
        Err(CommandError::usage(
            format!(
                "an agent cannot control loops that it did not start: this command runs inside {own:?}, which did not start {name:?}"
            ),
            self.hint("run the command outside the loop"),
        ))
    }

    /// Fails because the command is for people only.
    pub(crate) fn refuse(&self, command: &str) -> CommandError {
        CommandError::usage(
            format!(
                "an agent cannot run `{command}`: this command runs inside {:?}",
                self.name()
            ),
            self.hint("run the command outside the loop"),
        )
    }

    /// Returns the hint for a refused command. In a session, ralph cannot distinguish commands that
    /// the user types from those that the model runs.
    fn hint(&self, text: &str) -> String {
        let Some(client) = &self.client else {
            return text.to_owned();
        };
        let client = clients().iter().find(|known| known.name == *client);
        let sigil = client.map_or('/', |client| client.sigil);
        format!(
            "type {sigil}cancel-ralph to end the loop of this session, or run the command in another terminal"
        )
    }
}

/// Fails if this process belongs to a loop that did not start the loop in `dir`.
pub(crate) fn check_operator(state_dir: &StateDir, dir: &LoopDir) -> Result<(), CommandError> {
    EnclosingLoop::find(state_dir).map_or(Ok(()), |inside| inside.check_may_control(dir))
}

/// Returns the name of the loop whose agent creates a loop in this process.
pub(super) fn parent_loop(state_dir: &StateDir) -> Option<String> {
    let inside = EnclosingLoop::find(state_dir).map(|inside| inside.name().to_owned());
    inside.or_else(|| variable("RALPH_LOOP").filter(|parent| is_valid_name(parent)))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the loops that run in clients' sessions, with the client's name and process.
fn active_sessions(state_dir: &StateDir) -> Vec<(LoopDir, String, ProcessIdentity)> {
    let prefixes = clients()
        .iter()
        .map(|client| session::loop_name(&client.name, ""));
    let prefixes: Vec<String> = prefixes.collect();
    let entries = fs::read_dir(state_dir.root().join("loops"));
    let entries = entries.into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .filter_map(|name| {
            let dir = state_dir.loop_dir(&name);
            let state = cache::read(&dir).ok()?.state;
            let process = state.process.filter(|_| session::is_active(&state))?;
            let client = session::client_of(&state)?.name.clone();
            Some((dir, client, process))
        })
        .collect()
}

/// Returns the directory of the loop whose lock file a process has open.
fn locked_loop(pid: u32) -> Option<LoopDir> {
    open_paths(pid).find_map(|path| {
        // The kernel's note about a file that was deleted.
        let path = path.to_str().map_or(path.clone(), |text| {
            PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(text))
        });
        let dir = path.parent().filter(|_| path.ends_with("lock"))?;
        let loops = dir.parent()?.file_name();
        (loops == Some(OsStr::new("loops"))).then(|| LoopDir::new(dir.to_owned()))
    })
}

/// Returns whether an agent, check or SCM task may be running. Between iterations and after the end,
/// only the user's `--notify` command is.
fn may_have_job(state: &State) -> bool {
    !matches!(state.phase, Phase::Ended(_) | Phase::Resting { .. })
}

/// Returns whether the processes `below` the holder of a loop's lock are those of an agent, check or
/// SCM task. `parent` is the holder's parent.
fn is_job(dir: &LoopDir, below: &[ProcessIdentity], parent: Option<&ProcessIdentity>) -> bool {
    let Ok(view) = cache::read(dir) else {
        return true;
    };
    if !may_have_job(&view.state) {
        return false;
    }
    // A supervisor has a warden, with the same lock. An embedding program has none, and other
    // children besides the agent.
    let has_warden = parent.is_some_and(|parent| locked_loop(parent.pid).as_ref() == Some(dir));
    has_warden
        || view
            .state
            .process
            .is_some_and(|agent| below.contains(&agent))
}
