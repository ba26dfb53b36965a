//! Runs a loop whose agent runs in a session of Claude Code or Codex.
//!
//! ralph does not start the agent: an iteration starts when a hook returns its prompt to the
//! client, and ends when the client calls the next hook. In between, no process holds the lock.

use super::clock::wall_ms;
use super::reconcile::Flow;
use super::{Runner, RunnerError, RunnerExit};
use crate::agent::pipeline::{OutputPipeline, OutputTail};
use crate::client::transcript::TranscriptUsage;
use crate::engine::event::{AgentReport, Fault, Marker, ProcessExit, Request, RequestSource};
use crate::engine::plain_text::clean;
use crate::engine::{Act, Event, LimitChange, Phase, State, signals};
use crate::os;
use crate::process::orphans;
use crate::store::dir::create_file;
use std::io::Write;

/// An event in a client's session.
#[derive(Clone, Debug)]
pub(crate) enum HookEvent {
    /// The agent's turn has ended.
    TurnEnded {
        /// The agent's final message. `None` if it contains no text.
        text: Option<String>,
        /// The number of tool calls in the turn. `None` if unknown.
        steps: Option<u32>,
        /// What the transcript says about the turn's usage; `None` if it cannot be read.
        usage: Option<TranscriptUsage>,
    },
    /// The turn failed with this error message.
    TurnFailed(String),
    Requested(Request, RequestSource),
    /// The user changed a limit.
    LimitChanged(LimitChange),
    /// The loop cannot continue in the session, for this reason.
    Fault(String),
}

impl HookEvent {
    /// Returns the event for a user who cancels the loop in the session.
    pub(crate) fn cancel() -> Self {
        Self::Requested(Request::StopNow, RequestSource::Session)
    }
}

/// The result of a hook, which determines its response to the client.
pub(crate) struct SessionResult {
    pub(crate) exit: RunnerExit,
    pub(crate) state: State,
    /// The prompt for the agent's next turn. Valid only if `exit` is [`RunnerExit::AwaitingTurn`].
    pub(crate) prompt: Vec<u8>,
}

impl Runner<'_> {
    /// Records the events of the session, then runs the loop until the agent's next turn or the
    /// loop's end.
    pub(crate) fn run_hook(mut self, events: Vec<HookEvent>) -> Result<SessionResult, RunnerError> {
        let exit = self.record_hook_events(events);
        if exit.is_err() {
            self.stop_job();
        }
        self.rec.save_cache();
        Ok(SessionResult {
            exit: exit?,
            state: self.rec.state,
            prompt: self.prompts.into_bytes(),
        })
    }

    fn record_hook_events(&mut self, events: Vec<HookEvent>) -> Result<RunnerExit, RunnerError> {
        let state = &self.rec.state;
        if state.awaiting_turn() {
            // Count the time since the last hook, because the session was working.
            let elapsed = wall_ms().saturating_sub(state.wall_ms).max(0) as u64;
            self.rec.clock.set(state.clock_ms.saturating_add(elapsed));
        }
        let state = &self.rec.state;
        if matches!(
            state.phase,
            Phase::Checking | Phase::Looking | Phase::Committing
        ) {
            // The last hook was killed. Kill the processes that it left behind, but not the agent,
            // which belongs to the client.
            orphans::sweep(
                &self.rec.header.id,
                state,
                self.reactor.scope().exemptions(),
            );
        }
        self.reactor.scope().mark_processes(&self.rec.header.id);
        self.remove_view();
        self.read_inbox()?;
        self.rec.record(Event::Opened {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cost_usd: None,
            tokens: None,
            in_session: true,
            boot: os::boot::boot_id(),
        })?;
        let _ = self.create_task_dir();
        let plan = &self.rec.state.plan;
        if plan.proof.checks.is_empty() && plan.scm.tasks.is_empty() {
            self.reactor.stop_watching();
        }
        self.watch_files();
        let mut exit = self.run_until_exit()?;
        for event in events {
            if matches!(exit, RunnerExit::Ended(_) | RunnerExit::HungUp) {
                break;
            }
            self.record_hook_event(event)?;
            exit = self.run_until_exit()?;
        }
        Ok(exit)
    }

    fn record_hook_event(&mut self, event: HookEvent) -> Result<(), RunnerError> {
        let iteration = self.rec.state.iteration;
        match event {
            HookEvent::TurnEnded { text, steps, usage } => {
                let text = text.unwrap_or_default();
                let text = self.rec.redactor.redact_text(&text).into_owned();
                self.turn_ended(iteration, &text, steps, usage)
            }
            HookEvent::TurnFailed(error) => self.rec.record(Event::TurnFailed {
                iteration,
                message: clean(&self.rec.redactor.redact_text(&error)).into_owned(),
            }),
            HookEvent::Requested(request, by) => self.rec.record_request(request, by),
            HookEvent::LimitChanged(limit) => {
                self.rec.record(Event::Changed { limit, inbox: None })
            }
            HookEvent::Fault(detail) => self.rec.record_fault(Fault::Session, detail),
        }
    }

    fn turn_ended(
        &mut self,
        iteration: u32,
        text: &str,
        steps: Option<u32>,
        usage: Option<TranscriptUsage>,
    ) -> Result<(), RunnerError> {
        self.relay_messages()?;
        let state = &self.rec.state;
        let found = self
            .task_dir
            .scan(&state.plan.proof.signals, &self.rec.redactor);
        let mut pipeline = OutputPipeline::new(
            &self.profiles[state.agent_index],
            state,
            self.prompts.bytes(),
            &self.rec.redactor,
        );
        for (model, tokens) in usage.iter().flat_map(|usage| &usage.used) {
            let (model, tokens) = (model.into(), *tokens);
            pipeline.feed_act(Act::TokensUsed { model, tokens }, &mut |_| {});
        }
        pipeline.feed_act(Act::Finished(text.into()), &mut |_| {});
        let output = pipeline.finish(OutputTail::default(), &mut |_| {});
        let mut said = output.signals;
        let blocked = found.texts.get(&Marker::Blocked).cloned();
        said.blocked = said.blocked.or(blocked);
        let session = state.plan.session.as_ref();
        let spent = match &usage {
            Some(usage) if usage.used.is_empty() => Some(0.0),
            _ => output.tally.cost(&state.plan.prices, ""),
        };
        let cost_usd = match (found.cost_usd, spent) {
            (Some(own), Some(spent)) => Some(own + spent),
            (own, spent) => own.or(spent),
        };
        let report = AgentReport {
            exit: ProcessExit::from_code(0),
            ms: self.turn_ms(),
            signals: said,
            markers: found.markers,
            marker_texts: found.texts,
            cost_usd,
            tokens: output.tally.tokens(),
            transcript_bytes: usage.map(|usage| usage.end),
            steps,
            bytes: text.len() as u64,
            finished: true,
            // The session remembers everything else that the agent wrote.
            note: signals::read_note(&clean(text)),
            session: session.map(|session| session.id.clone()),
            ..AgentReport::default()
        };
        // Ignore errors: only people read these files.
        let _ = self.save_message(iteration, text);
        self.rec.record(Event::Ended { iteration, report })?;
        if let Some(detail) = found.invalid_marker {
            return self.rec.record_fault(Fault::Marker, detail);
        }
        self.archive_markers()
    }

    /// Writes the agent's final message to the iteration's log and activity.
    fn save_message(&mut self, iteration: u32, text: &str) -> std::io::Result<()> {
        self.rec
            .dir
            .create_iteration_dir(iteration)
            .map_err(std::io::Error::other)?;
        self.rec.begin_activity(iteration);
        self.rec
            .keep(&Act::Text(format!("{}\n", text.trim_end()).into()));
        self.rec.keep(&Act::Finished(text.into()).cleaned());
        self.rec.end_activity();
        let path = self.rec.dir.output_log(iteration);
        writeln!(create_file(&path)?, "{}", text.trim_end())
    }

    fn turn_ms(&self) -> u64 {
        let started = self.rec.state.iteration_wall_ms.unwrap_or_else(wall_ms);
        wall_ms().saturating_sub(started).max(0) as u64
    }

    /// Records the end of a turn that ralph cannot stop, because the agent belongs to the client.
    pub(super) fn end_turn(&mut self, iteration: u32) -> Result<Flow, RunnerError> {
        let report = AgentReport {
            ms: self.turn_ms(),
            ..AgentReport::default()
        };
        self.rec.record(Event::Ended { iteration, report })?;
        Ok(Flow::Again)
    }
}
