//! Loops that live in the session of another client: found by it, taken up for a moment, and kept in step with the
//! file that people look at.

use super::failure::{Failure, warn};
use super::handle::friends;
use super::locks::Locks;
use crate::agent::task_dir::TaskDir;
use crate::client::loop_file;
use crate::client::loop_file::{Loaded, Sheet};
use crate::client::process;
use crate::engine::{Act, Event, Phase, State};
use crate::runner::reactor::World;
use crate::runner::session::{Attended, Client, Knock};
use crate::runner::{Runner, Watch};
use crate::store::{Header, Home, Journal, Line, LoopDir, View, cache, rfc3339};
use crate::ui::derived_files::Files;
use std::time::Duration;

/// So much of a session's id tells it from others. Its end: the beginning of some is the time.
const TAIL: usize = 8;

/// What the loop of a session is called.
pub(crate) fn name_of(client: &str, id: &str) -> String {
    let plain = id
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase());
    let plain: Vec<char> = plain.collect();
    let tail: String = plain[plain.len().saturating_sub(TAIL)..].iter().collect();
    format!("{client}-{tail}")
}

/// The loop of this session, if there is one that is not over.
pub(crate) fn find(home: &Home, client: &str, id: &str) -> Option<(LoopDir, View)> {
    let dir = home.loop_dir(&name_of(client, id));
    let view = cache::read(&dir).ok()?;
    let own = view
        .state
        .plan
        .session
        .as_ref()
        .is_some_and(|session| session.id == id);
    (own && view.state.is_inside() && view.state.outcome().is_none()).then_some((dir, view))
}

/// Whether a session has this loop under way: nobody holds its lock, but the client is there, and nothing broke off.
pub(crate) fn has(state: &State) -> bool {
    let over = matches!(state.phase, Phase::Paused | Phase::Ended(_));
    state.is_inside()
        && !over
        && state.stumble().is_none()
        && state.process.is_some_and(process::lives)
}

/// Takes a loop up for its session, whose lock is held, and hears these.
pub(crate) fn attend(
    dir: &LoopDir,
    _locks: &Locks,
    client: Client,
    knocks: Vec<Knock>,
) -> Result<(Header, Attended), Failure> {
    let opened = Journal::open(dir)?;
    let header = opened.header.clone();
    let task = TaskDir::of(&opened.state.plan.workspace, &header.name);
    let files = Files::of(dir, task.path(), &opened.state);
    let mut onlooker = Onlooker {
        files,
        header: header.clone(),
    };
    let world = World::open(friends(&Home::of(dir))).map_err(Failure::broken)?;
    let attended =
        Runner::open(dir.clone(), opened, world, &mut onlooker)?.attend(client, knocks)?;
    Ok((header, attended))
}

/// Whoever looks on at a session's loop: nobody but its files.
struct Onlooker {
    files: Files,
    header: Header,
}

impl Watch for Onlooker {
    fn event(&mut self, line: &Line, state: &State) {
        self.files.event(line, state);
        let workspace = &state.plan.workspace;
        let kept = match &line.event {
            Event::Started { .. } => {
                loop_file::save(workspace, &sheet_of(&self.header, state, true))
            }
            Event::Stumbled { .. } => {
                loop_file::save(workspace, &sheet_of(&self.header, state, false))
            }
            Event::Finished { .. } => take_away(state),
            _ if state.phase == Phase::Paused => take_away(state),
            _ => return,
        };
        if let Err(error) = kept {
            self.warn(&format!("{}: {error}", Sheet::path(workspace).display()));
        }
    }

    fn act(&mut self, _: &Act<'_>) {}

    fn tick(&mut self, _: &State, _: Option<Duration>) -> Option<Duration> {
        None
    }

    fn warn(&mut self, words: &str) {
        warn(words);
    }
}

/// What people look at in the workspace.
fn sheet_of(header: &Header, state: &State, active: bool) -> Sheet {
    Sheet {
        active,
        iteration: state.turn_number(),
        max_iterations: state.turn_limit().unwrap_or(0),
        promise: state.promises().into_iter().next(),
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

/// Removes the file of this loop, and no other's.
pub(crate) fn take_away(state: &State) -> std::io::Result<()> {
    let (workspace, session) = (&state.plan.workspace, state.plan.session.as_ref());
    match loop_file::load(workspace) {
        Loaded::Some(sheet) if sheet.session.as_ref() == session.map(|session| &session.id) => {
            loop_file::remove(workspace)
        }
        _ => Ok(()),
    }
}
