//! How a loop begins in a session: typed there, or taken over from the file that another plugin left.

use super::{Call, set_aside};
use crate::cli::hook::Client as Program;
use crate::client::hook::Answer;
use crate::client::loop_file;
use crate::client::loop_file::{Loaded, Sheet};
use crate::client::slash;
use crate::client::slash::{Asked, Errand};
use crate::commands::run::places;
use crate::config;
use crate::config::keys::key;
use crate::config::validate::settle;
use crate::config::{Layer, Origin, Stack};
use crate::engine::plan::{Plan, Task};
use crate::engine::session::Session;
use crate::lifecycle::create::{Place, Prepared, prepare};
use crate::lifecycle::failure::{Failure, warn};
use crate::lifecycle::session::{attend, has, name_of};
use crate::runner::session::{Attended, Knock};
use crate::store::{Header, cache};
use crate::ui::session_text as words;
use serde_json::{Map, Value, json};

/// A person has typed `/ralph-loop` and this.
pub(crate) fn typed(call: &Call, arguments: &str) -> Answer {
    let wanted = match slash::parse(arguments) {
        Ok(Asked::Help) => {
            return Answer::Refuse {
                reason: words::help(call.program.name()),
            };
        }
        Ok(Asked::Loop(wanted)) => wanted,
        Err(wrong) => {
            let lines = [format!("❌ {}", wrong.error)]
                .into_iter()
                .chain(wrong.hint);
            return Answer::Refuse {
                reason: lines.collect::<Vec<_>>().join("\n"),
            };
        }
    };
    let begun = set_up(call, &wanted, 0, false);
    let (header, attended) = match begun {
        Ok(begun) => begun,
        Err(failure) => {
            return Answer::Refuse {
                reason: format!("❌ {}", failure.in_words()),
            };
        }
    };
    let state = &attended.state;
    if !state.is_lent() {
        return Answer::Refuse {
            reason: words::over(&header, state),
        };
    }
    let told = words::activated(&header, state, wanted.max_iterations.is_none());
    Answer::Context {
        text: format!("{told}\n\n{}", words::rules(state)),
        message: Some(told),
    }
}

/// A session without a loop stops where another plugin's file says that there is one: it is this session's now.
pub(crate) fn taken_over(call: &Call) -> Result<Answer, Failure> {
    let sheet = match loop_file::load(&call.project) {
        Loaded::None => return Ok(Answer::go()),
        // That of another session is its loop's business.
        Loaded::Broken(_) if !is_mine(call) => return Ok(Answer::go()),
        Loaded::Broken(wrong) => {
            return Ok(Answer::told(format!(
                "⚠️ ralph: {}",
                set_aside(&call.project, &wrong)
            )));
        }
        Loaded::Some(sheet) => sheet,
    };
    if !sheet.active || !is_ours(call, sheet.session.as_deref()) {
        return Ok(Answer::go());
    }
    let wanted = Errand {
        prompt: sheet.prompt,
        max_iterations: Some(sheet.max_iterations),
        promise: sheet.promise,
        checks: vec![],
    };
    let before = sheet.iteration.saturating_sub(1);
    let (header, attended) = set_up(call, &wanted, before, true)?;
    Ok(call.answer(&header, &attended))
}

/// Whether a file that cannot be read may be this session's: it names no other.
fn is_mine(call: &Call) -> bool {
    let text = std::fs::read_to_string(Sheet::path(&call.project)).unwrap_or_default();
    let named = text
        .lines()
        .find_map(|line| line.strip_prefix("session_id:"));
    is_ours(call, named.map(|named| named.trim().trim_matches('"')))
}

/// Whether a file with this session in it is for this one. The plugin that names none is one of Claude Code.
fn is_ours(call: &Call, named: Option<&str>) -> bool {
    named.map_or(call.program == Program::Claude, |named| {
        named == call.input.session_id
    })
}

/// Begins a loop; `over` says that the turn in which that happens is over as well.
fn set_up(
    call: &Call,
    wanted: &Errand,
    before: u32,
    over: bool,
) -> Result<(Header, Attended), Failure> {
    let plan = plan(call, wanted, before)?;
    nobody_else(call)?;
    if let Some((dir, view)) = call.find() {
        // One loop a session: the new one takes the place of the old.
        call.attend(&dir, &view.state, vec![Knock::cancel()])?;
    }
    if let Loaded::Broken(wrong) = loop_file::load(&call.project) {
        warn(set_aside(&call.project, &wrong));
    }
    let name = name_of(call.program.name(), &call.input.session_id);
    let Prepared { dir, locks, .. } = prepare(&call.home, Some(&name), plan, Place::default())?;
    let knocks = over
        .then(|| call.turn_over(call.cap()))
        .into_iter()
        .collect();
    attend(&dir, &locks, call.client, knocks)
}

/// The workspace has one file that stands for a loop: two sessions cannot share it.
fn nobody_else(call: &Call) -> Result<(), Failure> {
    let Loaded::Some(Sheet {
        session: Some(session),
        name: Some(name),
        ..
    }) = loop_file::load(&call.project)
    else {
        return Ok(());
    };
    if session == call.input.session_id {
        return Ok(());
    }
    let other = call
        .home
        .find(&name)
        .ok()
        .and_then(|dir| cache::read(&dir).ok());
    if other.is_some_and(|view| has(&view.state)) {
        return Err(Failure::usage(
            format!("the loop {name:?} of another session works in this directory"),
            format!("ralph stop {name} ends it; or open this session in a worktree of its own"),
        ));
    }
    Ok(())
}

/// What is wanted, in this directory with its settings, inside of the session.
fn plan(call: &Call, wanted: &Errand, before: u32) -> Result<Plan, Failure> {
    let mut stack = Stack::load(&places(call.project.clone(), None))?;
    let mut values = Map::new();
    let mut set = |name: &str, value: Value| -> Result<(), Failure> {
        let settled = settle(key(name), &value, name)
            .map_err(|flaw| Failure::usage(format!("{} {}", flaw.place, flaw.error), flaw.hint))?;
        values.insert(name.to_owned(), settled);
        Ok(())
    };
    set("agent", json!(call.program.name()))?;
    if let Some(max) = wanted.max_iterations {
        set("max-iterations", json!(max))?;
    }
    if let Some(promise) = &wanted.promise {
        set("promise", json!(promise))?;
    }
    if !wanted.checks.is_empty() {
        let checks: Vec<Value> = wanted
            .checks
            .iter()
            .map(|command| json!({ "command": command }))
            .collect();
        set("checks", json!(checks))?;
    }
    stack.push(Layer {
        origin: Origin::Flag,
        values,
    });
    let errand = config::Errand {
        task: Some(wanted.prompt.clone()),
        workspace: call.project.clone(),
        config_dir: places(call.project.clone(), None).user,
        ..config::Errand::default()
    };
    let plan = config::plan(&stack, &errand)?;
    let session = Session {
        client: call.program.name().to_owned(),
        id: call.input.session_id.clone(),
        before,
    };
    let mut plan = plan.inside(session);
    plan.task = Task {
        title: None,
        text: Some(wanted.prompt.clone()),
        file: None,
    };
    plan.limits.blocks = call.cap();
    Ok(plan)
}
