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
    Config, Layer, Origin, PlanDraft, RunRequest, SessionRequest, Settings, SettingsFiles,
    reject_parent_settings,
};
use crate::engine::session::ClientSession;
use crate::engine::{Limit, Liveness, Plan, Status};
use crate::git;
use crate::lifecycle::create::{Placement, PreparedLoop, create_loop};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::preconditions::check_commands;
use crate::lifecycle::session::{is_active, loop_name};
use crate::lifecycle::trust::TrustRecords;
use crate::os::regular_file;
use crate::runner::session::{HookEvent, SessionResult};
use crate::store::{JournalHeader, LoopDir, cache};
use crate::ui::print::warn;
use crate::ui::{session_text, trust_text};
use serde_json::{Map, Value, json};

/// Maximum size of the front matter of a loop file, in bytes.
const FRONT_MATTER_MAX: u64 = 64 << 10;

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
    let skipped = created.skipped.clone();
    created.apply(call, vec![], |header, result| {
        let state = &result.state;
        if state.awaiting_turn() {
            let mut message = session_text::activated(header, state, is_default_limit);
            message.extend(skipped.iter().flat_map(|note| ["\n", note]));
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
/// that file's loop becomes the loop of this session. A file that git tracks came with the
/// repository: it would make this session work on a stranger's prompt.
pub(super) fn adopt_loop_file(call: &HookCall) -> Result<HookResponse, CommandError> {
    let loaded = loop_file::load(&call.project);
    let is_candidate = match &loaded {
        LoadedLoopFile::Missing => false,
        LoadedLoopFile::Invalid(_) => may_be_of_session(call),
        LoadedLoopFile::Valid(file) => file.active && is_for_session(call, file.session.as_deref()),
    };
    if !is_candidate {
        return Ok(HookResponse::allow());
    }
    if let Some(response) = reject_tracked_file(call) {
        return Ok(response);
    }
    let file = match loaded {
        LoadedLoopFile::Valid(file) => file,
        LoadedLoopFile::Invalid(reason) => {
            return Ok(HookResponse::allow_with_message(format!(
                "⚠️ ralph: {}",
                move_loop_file_aside(&call.project, &reason)
            )));
        }
        LoadedLoopFile::Missing => return Ok(HookResponse::allow()),
    };
    let args = LoopArgs {
        prompt: file.prompt,
        max_iterations: Some(adopted_limit(file.max_iterations)),
        promise: file.promise,
        checks: vec![],
    };
    let iterations_before = file.iteration.saturating_sub(1);
    let turn_ended = call.turn_ended(call.client.block_cap(), transcript_bytes(call));
    let created = create(call, &args, iterations_before)?;
    let skipped = created.skipped.clone();
    created.apply(call, vec![turn_ended], |header, result| {
        let response = call.response(header, result);
        if !result.state.awaiting_turn() {
            return response;
        }
        let adopted = session_text::adopted(&result.state);
        let notes = [Some(adopted), skipped].into_iter().flatten();
        response.with_notes(&notes.collect::<Vec<_>>().join("\n"))
    })
}

/// Returns the response for a loop file that git tracks, or for which that is unknown; `None` if the
/// file can be adopted. The user gets one message per session.
fn reject_tracked_file(call: &HookCall) -> Option<HookResponse> {
    let path = LoopFile::path(&call.project);
    let message = match git::is_tracked(&path) {
        Ok(false) => return None,
        Ok(true) => session_text::tracked_loop_file(),
        Err(why) => format!(
            "⚠️ ralph: {} is ignored, because git cannot say whether it tracks the file: {why}",
            path.display()
        ),
    };
    let key = format!("loop file {} {}", call.input.session_id, path.display());
    Some(if call.state_dir.is_first_notice(&key) {
        HookResponse::allow_with_message(message)
    } else {
        HookResponse::allow()
    })
}

/// Returns the limit of a loop whose file says `max`: at most the default, because the user of this
/// session did not choose it.
fn adopted_limit(max: u32) -> u32 {
    let default = key("max-iterations").default.as_ref();
    let default = default.and_then(Value::as_u64).unwrap_or_default() as u32;
    match max {
        0 => default,
        max => max.min(default),
    }
}

/// Returns whether an invalid loop file may belong to this session, because it names no other
/// session.
fn may_be_of_session(call: &HookCall) -> bool {
    let path = LoopFile::path(&call.project);
    let (bytes, _) = regular_file::read(&path, FRONT_MATTER_MAX, true).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
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
    /// The note about settings that do not apply because they are not trusted; `None` if all do.
    skipped: Option<String>,
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
    let (draft, skipped) = draft_plan(call, args, iterations_before)?;
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
    let PreparedLoop {
        dir, locks, plan, ..
    } = create_loop(
        &call.state_dir,
        Some(&name),
        draft,
        Placement::default(),
        &mut |warning| warn(warning),
    )?;
    Ok(CreatedLoop {
        dir,
        locks,
        plan,
        skipped,
    })
}

/// Returns the keys of the limits in the project's settings that cannot act in this session, because
/// it has no transcript.
fn unmeasured_limits(call: &HookCall) -> Vec<&'static str> {
    let files = SettingsFiles::read(&settings_paths(call.project.clone(), None));
    let Some(files) = files.ok().filter(|_| call.input.transcript_path.is_none()) else {
        return Vec::new();
    };
    let limits = Settings::from_layers(&files.into_stack()).limits;
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

/// Drafts the plan from the arguments and the project's settings. A hook cannot ask: it leaves out
/// what the user does not trust, and returns a note about it.
fn draft_plan(
    call: &HookCall,
    args: &LoopArgs,
    iterations_before: u32,
) -> Result<(PlanDraft, Option<String>), CommandError> {
    reject_parent_settings(&call.project)?;
    let paths = settings_paths(call.project.clone(), None);
    let mut files = SettingsFiles::read(&paths)?;
    let records = TrustRecords::new(paths.user_dir.as_deref());
    let untrusted = records.remove_untrusted(&mut files, &call.project);
    let skipped = (!untrusted.is_empty()).then(|| trust_text::skipped(&untrusted));
    let mut stack = files.into_stack();
    let sandbox = Settings::from_layers(&stack).sandbox.kind();
    let unconfined = sandbox.map(|_| session_text::no_sandbox(&call.client.title));
    let notes: Vec<String> = skipped.into_iter().chain(unconfined).collect();
    let skipped = (!notes.is_empty()).then(|| notes.join("\n"));
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
        config_dir: paths.user_dir,
        ..RunRequest::default()
    };
    Ok((Config::new(stack)?.draft_plan(&request)?, skipped))
}
