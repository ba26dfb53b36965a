//! Handles loops inside a client's session: finds the session's loop, applies hook events to it,
//! and keeps the loop file in the workspace up to date.

use super::error::CommandError;
use super::handle::exemptions;
use super::locks::LoopLocks;
use crate::agent::task_dir::TaskDir;
use crate::client::descriptor::Client;
use crate::client::loop_file;
use crate::client::loop_file::{LoadedLoopFile, LoopFile};
use crate::client::process;
use crate::engine::{Act, Event, Phase, State};
use crate::runner::reactor::Reactor;
use crate::runner::session::{HookEvent, SessionResult};
use crate::runner::{AgentHost, HookCaller, Observer, Runner};
use crate::store::derived_files::DerivedFiles;
use crate::store::{
    Journal, JournalHeader, JournalLine, LoopDir, LoopView, StateDir, cache, rfc3339,
};
use std::time::Duration;

/// The maximum number of characters from the end of a session ID in a loop's name. Some IDs start
/// with a timestamp, so their first characters are not unique.
const ID_TAIL: usize = 8;

/// Returns the name of a session's loop, such as `claude-1a2b3c4d`.
pub(crate) fn loop_name(client: &str, id: &str) -> String {
    let plain = id
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase());
    let plain: Vec<char> = plain.collect();
    let tail: String = plain[plain.len().saturating_sub(ID_TAIL)..]
        .iter()
        .collect();
    format!("{client}-{tail}")
}

/// Returns the client in whose session a loop runs or ran. `None` for other loops, and for clients
/// that only a newer version of ralph supports.
pub(crate) fn client_of(state: &State) -> Option<&'static Client> {
    Client::by_name(&state.plan.session.as_ref()?.client)
}

/// Returns the unfinished loop of a session, or `None` if there is none.
pub(crate) fn find(state_dir: &StateDir, client: &str, id: &str) -> Option<(LoopDir, LoopView)> {
    let dir = state_dir.loop_dir(&loop_name(client, id));
    let view = cache::read(&dir).ok()?;
    let own = view
        .state
        .plan
        .session
        .as_ref()
        .is_some_and(|session| session.id == id);
    (own && view.state.is_in_session() && view.state.outcome().is_none()).then_some((dir, view))
}

/// Returns whether a session is working on the loop. No process holds the lock between turns, so
/// this checks that the client is alive and that the last turn did not fail.
pub(crate) fn is_active(state: &State) -> bool {
    let over = matches!(state.phase, Phase::Paused | Phase::Ended(_));
    state.is_in_session()
        && !over
        && state.turn_failure().is_none()
        && state.process.is_some_and(process::is_alive)
}

/// Returns whether a loop is paused in a session that is still open, where it can be resumed.
pub(crate) fn is_paused(state: &State) -> bool {
    state.is_in_session()
        && state.phase == Phase::Paused
        && state.process.is_some_and(process::is_alive)
}

/// Opens a session's loop and applies hook events to it. The caller must hold the loop's lock.
/// Passes problems that do not stop the loop to `warn`.
pub(crate) fn apply_hook_events(
    dir: &LoopDir,
    _locks: &LoopLocks,
    caller: HookCaller,
    events: Vec<HookEvent>,
    warn: &mut dyn FnMut(&str),
) -> Result<(JournalHeader, SessionResult), CommandError> {
    let opened = Journal::open(dir)?;
    let header = opened.header.clone();
    let task = TaskDir::new(&opened.state.plan.workspace, &header.name);
    let files = DerivedFiles::new(dir, task.path(), &opened.state);
    let mut observer = SessionObserver {
        files,
        header: header.clone(),
        warn,
    };
    let reactor =
        Reactor::open(exemptions(&StateDir::containing(dir))).map_err(CommandError::broken)?;
    let host = AgentHost::Session(caller);
    let runner = Runner::open(dir.clone(), opened, reactor, host, &mut observer)?;
    let result = runner.run_hook(events)?;
    Ok((header, result))
}

/// Updates the loop's files after each event. It displays nothing, because a session has no
/// console.
struct SessionObserver<'a> {
    files: DerivedFiles,
    header: JournalHeader,
    warn: &'a mut dyn FnMut(&str),
}

impl Observer for SessionObserver<'_> {
    fn event(&mut self, line: &JournalLine, state: &State) {
        self.files.record(line, state);
        let workspace = &state.plan.workspace;
        let result = match &line.event {
            Event::Started { .. } => {
                loop_file::save(workspace, &loop_file_for(&self.header, state, true))
            }
            Event::TurnFailed { .. } => {
                loop_file::save(workspace, &loop_file_for(&self.header, state, false))
            }
            Event::Finished { .. } => remove_loop_file(state),
            _ if state.phase == Phase::Paused => remove_loop_file(state),
            _ => return,
        };
        if let Err(error) = result {
            self.warn(&format!(
                "cannot update {}: {error}",
                LoopFile::path(workspace).display()
            ));
        }
    }

    fn act(&mut self, _: &Act<'_>) {}

    fn tick(&mut self, _: &State, _: Option<Duration>) -> Option<Duration> {
        None
    }

    fn warn(&mut self, message: &str) {
        (self.warn)(message);
    }
}

fn loop_file_for(header: &JournalHeader, state: &State, active: bool) -> LoopFile {
    LoopFile {
        active,
        iteration: state.turn_number(),
        max_iterations: state.turn_limit().unwrap_or(0),
        promise: state.expected_promise(),
        started_at: rfc3339(header.created_ms),
        session: state
            .plan
            .session
            .as_ref()
            .map(|session| session.id.clone()),
        name: Some(header.name.clone()),
        prompt: state.plan.task.text.clone().unwrap_or_default(),
    }
}

/// Removes the loop file, unless it belongs to another session.
pub(crate) fn remove_loop_file(state: &State) -> std::io::Result<()> {
    let (workspace, session) = (&state.plan.workspace, state.plan.session.as_ref());
    match loop_file::load(workspace) {
        LoadedLoopFile::Valid(file)
            if file.session.as_ref() == session.map(|session| &session.id) =>
        {
            loop_file::remove(workspace)
        }
        _ => Ok(()),
    }
}
