//! Starts a loop in a session: from `/ralph-loop`, or from a loop file that the original plugin
//! wrote.

use super::{HookCall, move_loop_file_aside};
use crate::client::hook::HookResponse;
use crate::client::loop_file;
use crate::client::loop_file::{LoadedLoopFile, LoopFile};
use crate::client::slash;
use crate::client::slash::{LoopArgs, LoopCommand};
use crate::commands::run::settings_paths;
use crate::config::agents::load_presets;
use crate::config::keys::key;
use crate::config::validate::normalize;
use crate::config::{
    Config, Layer, LayerStack, Origin, PlanDraft, RunRequest, SessionRequest, Settings,
    reject_parent_settings,
};
use crate::engine::session::ClientSession;
use crate::engine::{Limit, Liveness, Plan, Status};
use crate::lifecycle::create::{Placement, PreparedLoop, create_loop};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::preconditions::check_commands;
use crate::lifecycle::session::{is_active, loop_name};
use crate::runner::session::{HookEvent, SessionResult};
use crate::store::{JournalHeader, LoopDir, cache};
use crate::ui::print::warn;
use crate::ui::session_text;
use serde_json::{Map, Value, json};

/// Handles `/ralph-loop`: starts a loop, or rejects the prompt with help or an error.
pub(super) fn start_loop(call: &HookCall, arguments: &str) -> Result<HookResponse, CommandError> {
    let args = match slash::parse_loop_args(arguments) {
        Ok(LoopCommand::Help) => {
            return Ok(HookResponse::RejectPrompt {
                reason: session_text::help(call.client.sigil),
            });
        }
        Ok(LoopCommand::Start(args)) => args,
        Err(error) => {
            let lines = [format!("❌ {}", error.error)]
                .into_iter()
                .chain(error.hint);
            return Ok(HookResponse::RejectPrompt {
                reason: lines.collect::<Vec<_>>().join("\n"),
            });
        }
    };
    let is_default_limit = args.max_iterations.is_none();
    let created = match create(call, &args, 0) {
        Ok(created) => created,
        Err(error) => {
            return Ok(HookResponse::RejectPrompt {
                reason: format!("❌ {}", error.one_line()),
            });
        }
    };
    created.apply(call, vec![], |header, result| {
        let state = &result.state;
        if state.awaiting_turn() {
            let mut message = session_text::activated(header, state, is_default_limit);
            for key in unmeasured_limits(call) {
                message.push_str(&session_text::unmeasured_limit(key));
            }
            return HookResponse::AddContext {
                text: format!("{message}\n\n{}", session_text::rules(state)),
                message: Some(message),
            };
        }
        if state.iteration == 0 && state.status(Liveness::Idle) == Status::Done {
            // There is nothing to do, so no loop was started.
            let dir = call.state_dir.loop_dir(&header.name);
            let _ = std::fs::remove_dir_all(dir.path());
        }
        HookResponse::RejectPrompt {
            reason: session_text::ended(header, state),
        }
    })
}

/// Handles a stop in a session without a loop. If the original plugin left an active loop file,
/// that file's loop becomes the loop of this session.
pub(super) fn adopt_loop_file(call: &HookCall) -> Result<HookResponse, CommandError> {
    let file = match loop_file::load(&call.project) {
        LoadedLoopFile::Missing => return Ok(HookResponse::allow()),
        // The file belongs to another session.
        LoadedLoopFile::Invalid(_) if !may_be_of_session(call) => {
            return Ok(HookResponse::allow());
        }
        LoadedLoopFile::Invalid(reason) => {
            return Ok(HookResponse::allow_with_message(format!(
                "⚠️ ralph: {}",
                move_loop_file_aside(&call.project, &reason)
            )));
        }
        LoadedLoopFile::Valid(file) => file,
    };
    if !file.active || !is_for_session(call, file.session.as_deref()) {
        return Ok(HookResponse::allow());
    }
    let args = LoopArgs {
        prompt: file.prompt,
        max_iterations: Some(file.max_iterations),
        promise: file.promise,
        checks: vec![],
    };
    let iterations_before = file.iteration.saturating_sub(1);
    let turn_ended = call.turn_ended(call.client.block_cap(), transcript_bytes(call));
    create(call, &args, iterations_before)?.apply(call, vec![turn_ended], |header, result| {
        call.response(header, result)
    })
}

/// Returns whether an invalid loop file may belong to this session, because it names no other
/// session.
fn may_be_of_session(call: &HookCall) -> bool {
    let text = std::fs::read_to_string(LoopFile::path(&call.project)).unwrap_or_default();
    let session = text
        .lines()
        .find_map(|line| line.strip_prefix("session_id:"));
    is_for_session(call, session.map(|id| id.trim().trim_matches('"')))
}

/// Returns whether a loop file with this session ID belongs to this session. A file without an ID
/// was written by the original plugin.
fn is_for_session(call: &HookCall, session: Option<&str>) -> bool {
    session.map_or(call.client.had_original_plugin, |id| {
        id == call.input.session_id
    })
}

/// A loop that was created for a session and has not run.
struct CreatedLoop {
    dir: LoopDir,
    locks: LoopLocks,
    plan: Plan,
}

impl CreatedLoop {
    /// Opens the loop and applies its first events. `respond` makes the response to the client.
    fn apply(
        self,
        call: &HookCall,
        events: Vec<HookEvent>,
        respond: impl FnOnce(&JournalHeader, &SessionResult) -> HookResponse,
    ) -> Result<HookResponse, CommandError> {
        let work = || {
            let (header, result) = call.apply_locked(&self.dir, &self.locks, events)?;
            Ok(respond(&header, &result))
        };
        if self.plan.proof.checks.is_empty() && self.plan.scm.tasks.is_empty() {
            work()
        } else {
            call.respond_guarded(&self.dir, &self.plan, work)
        }
    }
}

fn create(
    call: &HookCall,
    args: &LoopArgs,
    iterations_before: u32,
) -> Result<CreatedLoop, CommandError> {
    let draft = draft_plan(call, args, iterations_before)?;
    check_commands(draft.plan())?;
    check_no_other_session(call)?;
    if let Some((dir, view)) = call.find_loop() {
        // A session has only one loop, so the new loop replaces the old one.
        call.apply_events(&dir, &view.state, vec![HookEvent::cancel()])?;
    }
    if let LoadedLoopFile::Invalid(reason) = loop_file::load(&call.project) {
        warn(move_loop_file_aside(&call.project, &reason));
    }
    let name = loop_name(&call.client.name, &call.input.session_id);
    let plan = draft.plan().clone();
    let PreparedLoop { dir, locks, .. } = create_loop(
        &call.state_dir,
        Some(&name),
        draft,
        Placement::default(),
        &mut |warning| warn(warning),
    )?;
    Ok(CreatedLoop { dir, locks, plan })
}

/// Returns the keys of the limits in the project's settings that cannot act in this session, because
/// it has no transcript.
fn unmeasured_limits(call: &HookCall) -> Vec<&'static str> {
    let stack = LayerStack::load(&settings_paths(call.project.clone(), None));
    let Some(stack) = stack.ok().filter(|_| call.input.transcript_path.is_none()) else {
        return Vec::new();
    };
    let limits = Settings::from_layers(&stack).limits;
    let rows = [Limit::Cost, Limit::Tokens].map(Limit::row);
    let set = rows.into_iter().filter(|row| row.max(&limits).is_some());
    set.filter_map(|row| row.key).collect()
}

/// Returns how long the session's transcript is, in bytes.
fn transcript_bytes(call: &HookCall) -> u64 {
    let path = call.input.transcript_path.as_deref();
    path.map_or(0, |path| call.client.usage.len(path))
}

/// Returns an error if another session's loop is running in this workspace, because a workspace has
/// only one loop file.
fn check_no_other_session(call: &HookCall) -> Result<(), CommandError> {
    let LoadedLoopFile::Valid(LoopFile {
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
        .state_dir
        .find_loop(&name)
        .ok()
        .and_then(|dir| cache::read(&dir).ok());
    if other.is_some_and(|view| is_active(&view.state)) {
        return Err(CommandError::usage(
            format!("the loop {name:?} of another session is running in this directory"),
            format!("stop it with `ralph stop {name}`, or open this session in its own worktree"),
        ));
    }
    Ok(())
}

/// Drafts the plan from the arguments and the project's settings.
fn draft_plan(
    call: &HookCall,
    args: &LoopArgs,
    iterations_before: u32,
) -> Result<PlanDraft, CommandError> {
    reject_parent_settings(&call.project)?;
    let mut stack = LayerStack::load(&settings_paths(call.project.clone(), None))?;
    let presets = load_presets(&stack, &Settings::from_layers(&stack).agents)?;
    let mut values = Map::new();
    let mut set = |name: &str, value: Value| -> Result<(), CommandError> {
        let value = normalize(key(name), &value, name).map_err(|error| {
            CommandError::usage(
                format!("{} {}", error.path, error.message),
                error.hint.text(false),
            )
        })?;
        values.insert(name.to_owned(), value);
        Ok(())
    };
    // If the client has no agent preset, the loop runs it by its name alone once it leaves the
    // session.
    let name = &call.client.name;
    let mut command = Vec::new();
    if presets.iter().any(|(known, _)| known == name) {
        set("agent", json!(name))?;
    } else {
        command.push(name.clone());
    }
    if let Some(max) = args.max_iterations {
        set("max-iterations", json!(max))?;
    }
    if let Some(promise) = &args.promise {
        set("promise", json!(promise))?;
    }
    if !args.checks.is_empty() {
        let checks: Vec<Value> = args
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
    let request = RunRequest {
        task: Some(args.prompt.clone()),
        command,
        session: Some(SessionRequest {
            session: ClientSession {
                client: call.client.name.clone(),
                id: call.input.session_id.clone(),
                iterations_before,
                transcript_bytes: transcript_bytes(call),
            },
            block_cap: call.client.block_cap(),
            reports_usage: call.input.transcript_path.is_some(),
        }),
        workspace: call.project.clone(),
        config_dir: settings_paths(call.project.clone(), None).user_dir,
        ..RunRequest::default()
    };
    Ok(Config::new(stack)?.draft_plan(&request)?)
}
