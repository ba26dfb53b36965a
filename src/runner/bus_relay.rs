//! Posts to the buses of a loop and its project: the agent's messages, and how the runner exits.

use super::input::JobKey;
use super::recorder::Recorder;
use super::{Runner, RunnerError};
use crate::agent::outbox::{self, OutboxMessage};
use crate::engine::event::{Fault, Notice};
use crate::engine::excerpt::Excerpt;
use crate::engine::format::iteration_count;
use crate::engine::plain_text::plain;
use crate::engine::signals::fold_whitespace;
use crate::engine::{Liveness, Marker};
use crate::git;
use crate::store::bus;
use crate::store::{Bus, BusMessage, StateDir};
use std::time::Duration;

/// The maximum time to wait for a bus's lock. After a timeout, the message is posted later.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The delay before posting again after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The maximum number of characters in a prompt for one message, and for all messages together.
const MESSAGE_CHARS: usize = 500;
const EXCERPT_CHARS: usize = 8000;

/// The default type of a message.
const NOTE: &str = "note";
/// The type of a message with which an agent asks to wait instead of being restarted.
const WAIT: &str = "wait_without_restart";

/// Posts to the loop's own bus and to its project's bus.
pub(super) struct BusRelay {
    own: Bus,
    project: Bus,
    has_warned: bool,
}

impl BusRelay {
    pub(super) fn open(rec: &Recorder<'_>) -> Self {
        let project = git::project(&rec.state.plan.workspace);
        Self {
            own: Bus::for_loop(&rec.dir),
            project: StateDir::containing(&rec.dir).project_bus(&project),
            has_warned: false,
        }
    }

    /// Returns the last messages on the project's bus, to include in a prompt. Empty if the bus
    /// cannot be read.
    pub(super) fn excerpt(&self, rec: &Recorder<'_>) -> Excerpt {
        let messages = match rec.state.plan.context.bus {
            0 => vec![],
            count => self.project.last(count).unwrap_or_default().messages,
        };
        let lines: Vec<String> = messages.iter().map(excerpt_line).collect();
        Excerpt::tail(&lines.join("\n"), EXCERPT_CHARS, 0)
    }

    /// Posts the loop's status and its reason when the runner exits.
    pub(super) fn publish_exit(&mut self, rec: &mut Recorder<'_>) {
        let (state, header) = (&rec.state, &rec.header);
        let after = format!("after {}", iteration_count(state.iteration));
        let status = state.status(Liveness::Idle).as_str();
        let text = match state.outcome_summary() {
            Some(outcome) => format!("{status} {after}: {}", outcome.detail),
            None => format!("paused {after}"),
        };
        // The active time does not change until the loop continues, so a repeated post has the same
        // ID.
        let id = bus::stable_hash(&format!("{}/left/{}/{text}", header.id, state.active_ms));
        let sender = Some((header.name.as_str(), state.iteration));
        let message = BusMessage::new(id, status, sender, &text);
        self.publish(rec, &[message]);
    }

    /// Posts messages to both buses. Returns false if that failed. Only the first failure causes a
    /// warning.
    fn publish(&mut self, rec: &mut Recorder<'_>, messages: &[BusMessage]) -> bool {
        // If the loop's directory was moved, posting would create a new state directory.
        if messages.is_empty() || !rec.is_in_place() {
            return true;
        }
        let posted = [&self.own, &self.project]
            .into_iter()
            .try_for_each(|bus| bus.post(messages, LOCK_TIMEOUT));
        if let Err(error) = &posted
            && !std::mem::replace(&mut self.has_warned, true)
        {
            rec.warn(&format!("cannot post to the bus: {error}"));
        }
        posted.is_ok()
    }
}

impl Runner<'_> {
    /// Posts the messages in the agent's outbox: a batch of them while the agent runs, else all.
    pub(super) fn relay_messages(&mut self) -> Result<(), RunnerError> {
        let dir = outbox::dir(self.task_dir.path());
        if !dir.is_dir() {
            return Ok(());
        }
        // Watch before reading, so that a message that arrives in between is noticed.
        self.reactor.watch(&dir);
        let agent_runs = matches!(self.reactor.running(), Some(JobKey::Agent(_)));
        // If this was the last iteration, messages that are left now would never be posted.
        while self.relay_batch(agent_runs)? && !agent_runs {}
        Ok(())
    }

    /// Posts the oldest messages. If a message is also a claim, its file is removed only after the
    /// claim is durable in the journal. Returns whether others can be posted at once.
    fn relay_batch(&mut self, agent_runs: bool) -> Result<bool, RunnerError> {
        let Some(mut outbox) = outbox::read(self.task_dir.path(), agent_runs) else {
            return Ok(false);
        };
        for message in &mut outbox.messages {
            self.rec.redactor.redact_string(&mut message.kind);
            self.rec.redactor.redact_string(&mut message.text);
        }
        let wait = outbox.messages.iter().find(|message| kind(message) == WAIT);
        if let Some(message) = wait
            && !self.rec.state.claims.markers.contains(&Marker::Bus)
        {
            let iteration = self.rec.state.iteration;
            let text = plain(&fold_whitespace(&message.text)).into_owned();
            let text = Some(text).filter(|text| !text.is_empty());
            self.rec
                .record_notice(iteration, Notice::Marker(Marker::Bus), text)?;
            self.rec.sync()?;
        }
        let messages: Vec<BusMessage> = outbox
            .messages
            .iter()
            .filter(|message| !message.text.is_empty())
            .map(|message| bus_message(&self.rec, message))
            .collect();
        if !self.bus.publish(&mut self.rec, &messages) {
            self.reactor.look_within(RETRY_DELAY);
            return Ok(false);
        }
        if let Some(delay) = outbox.retry_after {
            self.reactor.look_within(delay);
        }
        for message in &outbox.messages {
            if let Err(detail) = outbox.remove(message) {
                self.rec.record_fault(Fault::Marker, detail)?;
                return Ok(false);
            }
        }
        Ok(outbox.retry_after == Some(Duration::ZERO))
    }
}

fn bus_message(rec: &Recorder<'_>, message: &OutboxMessage) -> BusMessage {
    let (header, iteration) = (&rec.header, rec.state.iteration);
    // The ID is stable, so readers recognize a message that is posted again after a crash.
    let id = bus::stable_hash(&format!("{}/{iteration}/{}", header.id, message.key));
    let sender = Some((header.name.as_str(), iteration));
    BusMessage::new(id, &kind(message), sender, &message.text)
}

fn kind(message: &OutboxMessage) -> String {
    let kind = bus::parse_kind(&message.kind);
    kind.filter(|kind| !bus::is_reserved_kind(kind))
        .unwrap_or_else(|| NOTE.to_owned())
}

/// Formats a message as one line of a prompt.
fn excerpt_line(message: &BusMessage) -> String {
    let whole = fold_whitespace(&message.text);
    let mut text: String = whole.chars().take(MESSAGE_CHARS).collect();
    if text.len() < whole.len() {
        text.push('…');
    }
    let (time, kind, sender) = (&message.time, &message.kind, message.sender());
    plain(&format!("{time} {kind} {sender}: {text}")).into_owned()
}
