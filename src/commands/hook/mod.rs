//! `ralph hook`: handles the hook events of a client session. On any error the session continues,
//! with a message.

mod start;

use crate::cli::hook::{ClientKind, HookArgs, HookCommand};
use crate::client::hook::{HookInput, HookResponse};
use crate::client::loop_file;
use crate::client::loop_file::{LoadedLoopFile, LoopFile};
use crate::client::slash;
use crate::client::slash::SlashCommand;
use crate::client::{process, transcript};
use crate::engine::event::{Request, RequestSource};
use crate::engine::{Amount, ExitCode, Limit, LimitChange, State};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::handle::exemptions;
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::session::{apply_hook_events, find};
use crate::process::warden;
use crate::runner::HookCaller;
use crate::runner::RunnerExit;
use crate::runner::session::{HookEvent, SessionResult};
use crate::store::{JournalHeader, LoopDir, LoopView, StateDir};
use crate::ui::print::warn;
use crate::ui::session_text;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for the last message to appear in the transcript.
const TRANSCRIPT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often to read the transcript meanwhile.
const TRANSCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The prefix of most service errors in the client's messages. An agent could write the same.
const ERROR_PREFIX: &str = "API Error";
/// The time reserved before the client's deadline to stop the checks and respond.
const DEADLINE_MARGIN: Duration = Duration::from_secs(20);
/// The longest prompt to send to Codex, in bytes. Codex cuts the middle out of texts from ten
/// thousand bytes on, and counts some characters several times.
const CODEX_PROMPT_MAX: usize = 8000;
/// How many stops in a row without a tool call Claude Code lets a hook block by default.
const DEFAULT_BLOCK_CAP: u32 = 8;
/// The variable that changes this cap; 0 means no cap.
const BLOCK_CAP_VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";

pub(crate) fn hook(command: &HookCommand) -> ExitCode {
    let start = Instant::now();
    let (HookCommand::Prompt(args)
    | HookCommand::Stop(args)
    | HookCommand::Failure(args)
    | HookCommand::End(args)) = command;
    // An agent that ralph itself started is already in a loop.
    let response = if std::env::var_os("RALPH_ITERATION").is_some() {
        Ok(HookResponse::allow())
    } else {
        let input = HookInput::read(std::io::stdin().lock()).map_err(|error| {
            CommandError::broken(format!("cannot read the client's input: {error}"))
        });
        input.and_then(|input| {
            let call = HookCall::new(*args, input, start)?;
            match command {
                HookCommand::Prompt(_) => call.handle_prompt(),
                HookCommand::Stop(_) => call.handle_stop(),
                HookCommand::Failure(_) => call.handle_failure(None),
                HookCommand::End(_) => call.handle_failure(Some("the session was closed")),
            }
        })
    };
    respond(&response.unwrap_or_else(|error| error_response(&error)));
    ExitCode::Success
}

fn error_response(error: &CommandError) -> HookResponse {
    HookResponse::allow_with_message(format!("⚠️ ralph: {}", error.one_line()))
}

/// Prints a response. A write error is ignored: the client no longer waits for it.
fn respond(response: &HookResponse) {
    if let Some(text) = response.to_json() {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

/// One hook call of a client.
struct HookCall {
    client: ClientKind,
    input: HookInput,
    caller: HookCaller,
    state_dir: StateDir,
    /// The directory in which the session was opened.
    project: PathBuf,
}

impl HookCall {
    fn new(args: HookArgs, input: HookInput, start: Instant) -> Result<Self, CommandError> {
        let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        let project = project
            .or_else(|| input.cwd.clone())
            .map_or_else(std::env::current_dir, Ok);
        let project = project.and_then(std::fs::canonicalize);
        let project = project.map_err(|error| {
            CommandError::broken(format!("cannot find the session's directory: {error}"))
        })?;
        let deadline = args.within.map(|seconds| {
            let timeout = Duration::from_secs(seconds);
            start + timeout.saturating_sub(DEADLINE_MARGIN.min(timeout / 4))
        });
        let caller = HookCaller {
            process: process::client_process(),
            deadline,
        };
        Ok(Self {
            client: args.client,
            input,
            caller,
            state_dir: StateDir::locate()?,
            project,
        })
    }

    fn find_loop(&self) -> Option<(LoopDir, LoopView)> {
        find(&self.state_dir, self.client.name(), &self.input.session_id)
    }

    /// The user submitted a prompt: handle it if it is one of ralph's commands.
    fn handle_prompt(self) -> Result<HookResponse, CommandError> {
        let typed = self.input.prompt.clone().unwrap_or_default();
        match slash::parse_command(&typed) {
            // The prompt of a subagent.
            _ if self.input.agent_id.is_some() => Ok(HookResponse::allow()),
            None => Ok(HookResponse::allow()),
            Some((SlashCommand::Help, _)) => Ok(HookResponse::RejectPrompt {
                reason: session_text::help(self.client.name()),
            }),
            Some((SlashCommand::Cancel, _)) => self.cancel(),
            Some((SlashCommand::Loop, arguments)) => Ok(start::start_loop(&self, arguments)),
        }
    }

    fn cancel(&self) -> Result<HookResponse, CommandError> {
        let Some((dir, view)) = self.find_loop() else {
            let reason = "no ralph loop is active in this session; ralph ls lists all loops".into();
            return Ok(HookResponse::RejectPrompt { reason });
        };
        let (header, result) = self.apply_events(&dir, &view.state, vec![HookEvent::cancel()])?;
        Ok(HookResponse::RejectPrompt {
            reason: session_text::ended(&header, &result.state),
        })
    }

    /// The agent wants to stop: run the loop until it needs another turn or ends. Subagents may
    /// always stop.
    fn handle_stop(self) -> Result<HookResponse, CommandError> {
        if self.input.hook_event_name.as_deref() != Some("Stop") || self.input.agent_id.is_some() {
            return Ok(HookResponse::allow());
        }
        let Some((dir, view)) = self.find_loop() else {
            return start::adopt_loop_file(&self);
        };
        if let Some(error) = self.service_error() {
            let message = session_text::turn_failed(&view.header, &view.state, &error);
            return self
                .handle_failure(Some(&error))
                .map(|_| HookResponse::allow_with_message(message));
        }
        let plan = &view.state.plan;
        let mut events = self.check_loop_file(&view.state);
        events.push(self.turn_ended(plan.limits.blocks));
        if plan.proof.checks.is_empty() && plan.scm.tasks.is_empty() {
            let (header, result) = self.apply_events(&dir, &view.state, events)?;
            return Ok(self.response(&header, &result));
        }
        // Checks may run long, and none of their processes may outlive this one.
        let locks = LoopLocks::acquire_own(&dir, plan)?;
        let work = || {
            let result = apply_hook_events(&dir, &locks, self.caller, events, &mut |message| {
                warn(message);
            });
            let response = result.map(|(header, result)| self.response(&header, &result));
            respond(&response.unwrap_or_else(|error| error_response(&error)));
            ExitCode::Success
        };
        let grace = Duration::from_millis(plan.grace.term_ms);
        match warden::run_guarded(work, grace, &exemptions(&self.state_dir))
            .map_err(CommandError::broken)?
        {
            warden::SupervisorExit::Exited(_) => Ok(HookResponse::allow()),
            warden::SupervisorExit::Killed { signal, .. } => Err(CommandError::broken(format!(
                "the process that runs the checks was killed by signal {signal}"
            ))),
        }
    }

    fn apply_events(
        &self,
        dir: &LoopDir,
        state: &State,
        events: Vec<HookEvent>,
    ) -> Result<(JournalHeader, SessionResult), CommandError> {
        let locks = LoopLocks::acquire_own(dir, &state.plan)?;
        apply_hook_events(dir, &locks, self.caller, events, &mut |message| {
            warn(message);
        })
    }

    /// Turns edits of the loop file into events: deleting it cancels the loop, and its limit can be
    /// changed.
    fn check_loop_file(&self, state: &State) -> Vec<HookEvent> {
        let workspace = &state.plan.workspace;
        match loop_file::load(workspace) {
            LoadedLoopFile::Valid(file)
                if file.session.as_ref() == Some(&self.input.session_id) =>
            {
                let max = Some(file.max_iterations).filter(|max| *max > 0);
                let before = state.turn_number().saturating_sub(state.iteration);
                let is_changed = max != state.turn_limit();
                let change = LimitChange {
                    limit: Limit::Iterations,
                    max: max.map(|max| Amount::Count(max.saturating_sub(before))),
                };
                is_changed
                    .then_some(HookEvent::LimitChanged(change))
                    .into_iter()
                    .collect()
            }
            LoadedLoopFile::Invalid(reason) => {
                vec![HookEvent::Fault(move_loop_file_aside(workspace, &reason))]
            }
            _ => vec![HookEvent::Requested(
                Request::StopNow,
                RequestSource::LoopFile,
            )],
        }
    }

    /// The event of the turn that ended, with its last message from the client's input or its
    /// transcript.
    fn turn_ended(&self, cap: Option<u32>) -> HookEvent {
        let HookInput {
            transcript_path,
            last_assistant_message,
            ..
        } = &self.input;
        let text = match (last_assistant_message, transcript_path) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(path)) => transcript::last_message(path, TRANSCRIPT_TIMEOUT)
                .ok()
                .flatten(),
            (None, None) => None,
        };
        let used_tool = transcript_path
            .as_ref()
            .filter(|_| cap.is_some())
            .and_then(|path| transcript::used_tool(path));
        HookEvent::TurnEnded {
            text,
            steps: used_tool.map(u32::from),
        }
    }

    /// Returns the service error that ended the turn, if any. Older clients report such a turn as a
    /// normal stop, and continuing would only fail again. The transcript may lag behind: wait for
    /// it if the message looks like an error.
    fn service_error(&self) -> Option<String> {
        let path = self.input.transcript_path.as_deref()?;
        let Some(last) = &self.input.last_assistant_message else {
            return transcript::service_error(path);
        };
        let start = Instant::now();
        loop {
            let error = transcript::service_error(path).filter(|error| last.trim() == error.trim());
            let may_be_late =
                last.starts_with(ERROR_PREFIX) && start.elapsed() <= TRANSCRIPT_TIMEOUT;
            if error.is_some() || !may_be_late {
                return error;
            }
            std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
        }
    }

    /// The turn failed, or the session ended before the loop did.
    fn handle_failure(self, why: Option<&str>) -> Result<HookResponse, CommandError> {
        let awaiting_turn = |(_, view): &(_, LoopView)| view.state.awaiting_turn();
        let Some((dir, view)) = self.find_loop().filter(awaiting_turn) else {
            return Ok(HookResponse::allow());
        };
        let last = self
            .input
            .last_assistant_message
            .as_ref()
            .or(self.input.error.as_ref());
        // A client that exits may kill the failure hook before it starts, and older clients do not
        // have it.
        let from_transcript = || {
            self.input
                .transcript_path
                .as_deref()
                .and_then(transcript::service_error)
        };
        let why = match why {
            Some(why) => from_transcript().unwrap_or_else(|| why.to_owned()),
            None => last
                .cloned()
                .or_else(from_transcript)
                .unwrap_or_else(|| "for no known reason".into()),
        };
        // If the session is closed after a failed turn, that failure is the reason.
        if view.state.turn_failure().is_none() {
            self.apply_events(&dir, &view.state, vec![HookEvent::TurnFailed(why)])?;
        }
        Ok(HookResponse::allow())
    }

    /// The response to the client: another turn, or the end of the loop.
    fn response(&self, header: &JournalHeader, result: &SessionResult) -> HookResponse {
        let state = &result.state;
        match &result.exit {
            RunnerExit::AwaitingTurn => {
                let prompt = String::from_utf8_lossy(&result.prompt);
                let prompt_file = self
                    .state_dir
                    .loop_dir(&header.name)
                    .iteration_dir(state.iteration)
                    .join("prompt.md");
                let reason = match self.client {
                    ClientKind::Codex if prompt.len() > CODEX_PROMPT_MAX => {
                        session_text::shortened(&prompt, CODEX_PROMPT_MAX, &prompt_file)
                    }
                    _ => prompt.trim_end().to_owned(),
                };
                HookResponse::Block {
                    reason,
                    message: Some(session_text::turn(state)),
                }
            }
            // The client no longer waits for a response.
            RunnerExit::HungUp => HookResponse::allow(),
            RunnerExit::Ended(_) | RunnerExit::Paused => {
                HookResponse::allow_with_message(session_text::ended(header, state))
            }
        }
    }

    /// How many stops in a row without a tool call the client lets a hook block; `None` means no
    /// cap.
    fn block_cap(&self) -> Option<u32> {
        if self.client != ClientKind::Claude {
            return None;
        }
        let configured = std::env::var(BLOCK_CAP_VARIABLE)
            .ok()
            .and_then(|value| value.trim().parse().ok());
        // Versions that do not set these variables are older than the cap.
        let has_cap = || {
            ["CLAUDE_PID", "CLAUDE_CODE_SESSION_ID"]
                .iter()
                .any(|name| std::env::var_os(name).is_some())
        };
        configured
            .or_else(|| has_cap().then_some(DEFAULT_BLOCK_CAP))
            .filter(|cap| *cap > 0)
    }
}

/// Renames an invalid loop file and returns the message about it.
fn move_loop_file_aside(workspace: &Path, reason: &str) -> String {
    let path = LoopFile::path(workspace);
    match loop_file::move_aside(workspace) {
        Ok(moved) => format!(
            "{} cannot be read: {reason}; it was renamed to {}",
            path.display(),
            moved.display()
        ),
        Err(error) => format!(
            "{} cannot be read: {reason}; renaming it failed: {error}",
            path.display()
        ),
    }
}
