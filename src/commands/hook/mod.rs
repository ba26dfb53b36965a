//! `ralph hook`: handles the hook events of a client session. On any error the session continues,
//! with a message.

mod start;

use crate::cli::hook::{HookArgs, HookCommand};
use crate::client::descriptor::{Client, TranscriptSpec};
use crate::client::hook::{HookInput, HookResponse};
use crate::client::loop_file;
use crate::client::loop_file::{LoadedLoopFile, LoopFile};
use crate::client::process;
use crate::client::slash;
use crate::client::slash::SlashCommand;
use crate::engine::event::{Request, RequestSource};
use crate::engine::{Amount, ExitCode, Limit, LimitChange, Phase, Plan, State};
use crate::lifecycle::error::{CommandError, redact_message};
use crate::lifecycle::handle::exemptions;
use crate::lifecycle::locks::LoopLocks;
use crate::lifecycle::session::{apply_hook_events, find};
use crate::process::warden;
use crate::runner::HookCaller;
use crate::runner::RunnerExit;
use crate::runner::session::{HookEvent, SessionResult};
use crate::store::{JournalHeader, LoopDir, LoopView, StateDir, view_with_inbox};
use crate::ui::print::{warn, write_json};
use crate::ui::session_text;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum time to wait for the last message to appear in the transcript.
const TRANSCRIPT_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval at which the transcript is read while waiting.
const TRANSCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time before the client's deadline that is reserved for stopping the checks and responding.
const DEADLINE_MARGIN: Duration = Duration::from_secs(20);

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
        let stdin = StdinUntil(deadline(args, start));
        let input = HookInput::read(stdin).map_err(|error| {
            let client = &args.client.title;
            CommandError::broken(format!("cannot read the hook input from {client}: {error}"))
        });
        input.and_then(|input| {
            let call = HookCall::new(args, input, start)?;
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

/// Returns when the hook has to respond; `None` if the client waits without limit.
fn deadline(args: &HookArgs, start: Instant) -> Option<Instant> {
    let timeout = Duration::from_secs(args.within?);
    Some(start + timeout.saturating_sub(DEADLINE_MARGIN.min(timeout / 4)))
}

/// Standard input that ends with an error at a deadline: a client that does not close its end must
/// still get a response.
struct StdinUntil(Option<Instant>);

impl Read for StdinUntil {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let stdin = io::stdin();
            let mut input = [PollFd::new(&stdin, PollFlags::IN)];
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            if rustix::event::poll(&mut input, Some(&left))? == 0 {
                return Err(io::Error::other("it is not complete in time"));
            }
        }
        rustix::io::read(io::stdin(), buffer).map_err(io::Error::from)
    }
}

fn error_response(error: &CommandError) -> HookResponse {
    let message = redact_message(&error.one_line());
    HookResponse::allow_with_message(format!("⚠️ ralph: {message}"))
}

/// Prints a response. Ignores write errors, because they mean that the client no longer waits.
fn respond(response: &HookResponse) {
    if let Some(text) = response.to_json() {
        let _ = write_json(&text);
    }
}

/// One call of a hook by a client.
struct HookCall {
    client: &'static Client,
    input: HookInput,
    caller: HookCaller,
    state_dir: StateDir,
    /// The directory in which the session was opened.
    project: PathBuf,
}

impl HookCall {
    fn new(args: &HookArgs, input: HookInput, start: Instant) -> Result<Self, CommandError> {
        let project = args
            .client
            .project_dir()
            .or_else(|| input.cwd.clone())
            .map_or_else(std::env::current_dir, Ok);
        let project = project.and_then(std::fs::canonicalize);
        let project = project.map_err(|error| {
            CommandError::broken(format!("cannot find the session's directory: {error}"))
        })?;
        let caller = HookCaller {
            process: process::client_process(),
            deadline: deadline(args, start),
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
        find(&self.state_dir, &self.client.name, &self.input.session_id)
    }

    /// Handles a prompt that the user submitted, if it is one of ralph's commands.
    fn handle_prompt(self) -> Result<HookResponse, CommandError> {
        let typed = self.input.prompt.clone().unwrap_or_default();
        match slash::parse_command(&typed) {
            // A subagent received this prompt.
            _ if self.input.agent_id.is_some() => Ok(HookResponse::allow()),
            None => Ok(HookResponse::allow()),
            Some((SlashCommand::Help, _)) => Ok(HookResponse::RejectPrompt {
                reason: session_text::help(self.client.sigil),
            }),
            Some((SlashCommand::Cancel, _)) => self.cancel(),
            Some((SlashCommand::Loop, arguments)) => start::start_loop(&self, arguments),
        }
    }

    fn cancel(&self) -> Result<HookResponse, CommandError> {
        let Some((dir, view)) = self.find_loop() else {
            let reason =
                "no ralph loop is active in this session; run `ralph ls` to list all loops".into();
            return Ok(HookResponse::RejectPrompt { reason });
        };
        let (header, result) = self.apply_events(&dir, &view.state, vec![HookEvent::cancel()])?;
        Ok(HookResponse::RejectPrompt {
            reason: session_text::ended(&header, &result.state),
        })
    }

    /// Handles a stop of the agent: runs the loop until it needs another turn or ends. Subagents
    /// may always stop.
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
        let events = if view.state.phase != Phase::Paused {
            let mut events = self.check_loop_file(&view.state);
            events.push(self.turn_ended(plan.limits.blocks, view.state.transcript_bytes()));
            events
        } else if view_with_inbox(&dir)?.state.phase == Phase::Paused {
            return Ok(HookResponse::allow());
        } else {
            // A person resumed the loop. The turn that ended was not one of its iterations.
            vec![]
        };
        if plan.proof.checks.is_empty() && plan.scm.tasks.is_empty() {
            let (header, result) = self.apply_events(&dir, &view.state, events)?;
            return Ok(self.response(&header, &result));
        }
        let locks = LoopLocks::acquire_own(&dir, plan)?;
        self.respond_guarded(&dir, plan, || {
            let (header, result) = self.apply_locked(&dir, &locks, events)?;
            Ok(self.response(&header, &result))
        })
    }

    /// Runs `work`, which may run checks, and prints its response. The warden ends the checks'
    /// processes if this one is killed.
    fn respond_guarded(
        &self,
        dir: &LoopDir,
        plan: &Plan,
        work: impl FnOnce() -> Result<HookResponse, CommandError>,
    ) -> Result<HookResponse, CommandError> {
        let work = || {
            respond(&work().unwrap_or_else(|error| error_response(&error)));
            ExitCode::Success
        };
        let grace = Duration::from_millis(plan.grace.term_ms);
        match warden::run_guarded(work, grace, &exemptions(&self.state_dir))
            .map_err(CommandError::broken)?
        {
            warden::SupervisorExit::Exited(_) => Ok(HookResponse::allow()),
            warden::SupervisorExit::Killed { signal, .. } => Err(CommandError::broken(format!(
                "the process that runs the checks was killed by signal {signal}"
            ))
            .with_hint(format!(
                "run `ralph status {}` to see the state of the loop",
                dir.name()
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
        self.apply_locked(dir, &locks, events)
    }

    fn apply_locked(
        &self,
        dir: &LoopDir,
        locks: &LoopLocks,
        events: Vec<HookEvent>,
    ) -> Result<(JournalHeader, SessionResult), CommandError> {
        apply_hook_events(dir, locks, self.caller, events, &mut |message| {
            warn(message);
        })
    }

    /// Turns the user's edits of the loop file into events: a deleted file cancels the loop, a new
    /// limit applies at once, and an invalid file ends the loop.
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

    /// Returns the event for the turn that just ended. Its last message comes from the hook input
    /// or, if that has none, from the transcript, of which the first `read_bytes` belong to earlier
    /// turns.
    fn turn_ended(&self, cap: Option<u32>, read_bytes: u64) -> HookEvent {
        let transcript = self.transcript();
        let last_message = || {
            let (spec, path) = transcript?;
            spec.format
                .last_message(path, TRANSCRIPT_TIMEOUT)
                .ok()
                .flatten()
        };
        let text = self
            .input
            .last_assistant_message
            .clone()
            .or_else(last_message);
        let used_tool = transcript
            .filter(|_| cap.is_some())
            .and_then(|(spec, path)| spec.format.used_tool(path));
        HookEvent::TurnEnded {
            text,
            steps: used_tool.map(u32::from),
            usage: self
                .input
                .transcript_path
                .as_deref()
                .and_then(|path| self.client.usage.usage_since(path, read_bytes).ok()),
        }
    }

    /// Returns the format and the path of the session's transcript. `None` if there is no
    /// transcript or its format is unknown.
    fn transcript(&self) -> Option<(&'static TranscriptSpec, &Path)> {
        let spec = self.client.transcript.as_ref()?;
        Some((spec, self.input.transcript_path.as_deref()?))
    }

    /// Returns the service error that ended the turn, or `None` if there was none. Older clients
    /// report such a turn as a normal stop, and another turn would only fail again. If the last
    /// message looks like an error, waits for the transcript, which may lag behind.
    fn service_error(&self) -> Option<String> {
        let (
            TranscriptSpec {
                format,
                error_prefix,
            },
            path,
        ) = self.transcript()?;
        let Some(last) = &self.input.last_assistant_message else {
            return format.service_error(path);
        };
        let start = Instant::now();
        loop {
            let error = format
                .service_error(path)
                .filter(|error| last.trim() == error.trim());
            let may_be_late =
                last.starts_with(error_prefix) && start.elapsed() <= TRANSCRIPT_TIMEOUT;
            if error.is_some() || !may_be_late {
                return error;
            }
            std::thread::sleep(TRANSCRIPT_POLL_INTERVAL);
        }
    }

    /// Handles a failed turn, or a session that ended before its loop did. `why` is the reason to
    /// record if the transcript contains none. If `why` is `None`, the reason comes from the hook
    /// input.
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
        // have that hook.
        let from_transcript = || {
            let (spec, path) = self.transcript()?;
            spec.format.service_error(path)
        };
        let why = match why {
            Some(why) => from_transcript().unwrap_or_else(|| why.to_owned()),
            None => last
                .cloned()
                .or_else(from_transcript)
                .unwrap_or_else(|| "unknown error".into()),
        };
        // If the session is closed after a failed turn, that failure is the reason to keep.
        if view.state.turn_failure().is_none() {
            self.apply_events(&dir, &view.state, vec![HookEvent::TurnFailed(why)])?;
        }
        Ok(HookResponse::allow())
    }

    /// Returns the response to the client: the prompt for another turn, or a message about the end
    /// of the loop.
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
                let reason = match self.client.prompt_max {
                    Some(max) if prompt.len() > max => {
                        session_text::shortened(&prompt, max, &prompt_file)
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
}

/// Renames an invalid loop file. Returns a message that contains `reason`.
fn move_loop_file_aside(workspace: &Path, reason: &str) -> String {
    let path = LoopFile::path(workspace);
    match loop_file::move_aside(workspace) {
        Ok(moved) => format!(
            "cannot read {}: {reason}; the file was renamed to {}",
            path.display(),
            moved.display()
        ),
        Err(error) => format!(
            "cannot read {}: {reason}; renaming the file failed: {error}",
            path.display()
        ),
    }
}
