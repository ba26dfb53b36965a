//! What an agent that is gone leaves behind: its words, its markers, what it cost, and why it ended.

use super::job::Gone;
use super::{Error, Runner};
use crate::engine::act::{Tally, last_words};
use crate::engine::event::{Event, Fault, Report, Said};
use crate::engine::failure::Reason;
use crate::engine::plain_text::plain;
use crate::engine::signals;

impl Runner<'_> {
    pub(super) fn agent_gone(
        &mut self,
        iteration: u32,
        gone: Gone,
        matched: bool,
    ) -> Result<(), Error> {
        self.relay()?;
        let found = self.task.look(self.state.plan.proof.file.as_deref());
        let found_something = !found.markers.is_empty() || found.cost_usd.is_some();
        let own = self.own_words(&gone);
        self.read_denials(own.as_deref());
        let tally = std::mem::take(&mut self.tally);
        let mut said = self.read_words(&gone, own.as_deref(), &tally);
        said.matched = matched;
        said.blocked = said.blocked.or(found.blocked);
        let by_itself = !gone.exit.is_good() && !gone.stopped;
        let mut report = Report {
            exit: gone.exit,
            ms: gone.ms,
            said,
            markers: found.markers,
            cost_usd: found.cost_usd,
            bytes: gone.bytes,
            error: by_itself
                .then(|| self.complaint(&gone))
                .filter(|words| !words.is_empty()),
            leftovers: gone.leftovers,
            survivors: gone.survivors,
            ..Report::default()
        };
        let model = self.state.agent().model.as_deref().unwrap_or_default();
        tally.add_to(&mut report, &self.state.plan.prices, model);
        if by_itself && report.reason.is_none() && !report.finished {
            report.reason = self.reason_of_text(&gone.last_text);
        }
        if gone.stuck {
            let detail = "the agent's function was told to return, and did not".to_owned();
            self.tell(Event::Faulted {
                class: Fault::Survivors,
                detail,
            })?;
        }
        self.tell(Event::Ended { iteration, report })?;
        if let Some(error) = gone.log_error {
            let detail = format!("cannot write the output's log: {error}");
            self.tell(Event::Faulted {
                class: Fault::Disk,
                detail,
            })?;
        }
        if let Some(detail) = found.wrong {
            self.tell(Event::Faulted {
                class: Fault::Marker,
                detail,
            })?;
        }
        if found_something {
            self.take_markers_away()?;
        }
        Ok(())
    }

    /// The last that an agent said of its bad end: of a stream, what stands beside its events.
    fn complaint(&self, gone: &Gone) -> String {
        if !self.state.agent().dialect.is_stream() {
            return last_words(&gone.last_text);
        }
        // Of a long output, the first line here is the end of one.
        let torn = usize::from(gone.bytes > gone.last_text.len() as u64);
        let lines = gone.last_text.lines().skip(torn);
        let beside: Vec<&str> = lines
            .filter(|line| !line.trim_start().starts_with('{'))
            .collect();
        last_words(&beside.join("\n"))
    }

    /// What the last line means that the agent printed, apart from its events: it alone may be the program's own word
    /// on its end.
    fn reason_of_text(&self, text: &str) -> Option<Reason> {
        let agent = self.state.agent();
        let lines = text.lines().rev().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !agent.terminal);
        let last = lines.find(|line| !(agent.dialect.is_stream() && line.starts_with('{')))?;
        self.habits[self.state.using].reason(&plain(last))
    }

    /// Reads the signals: in the final words where those are told apart, else in all that is the agent's own.
    fn read_words(&self, gone: &Gone, on_screen: Option<&str>, tally: &Tally) -> Said {
        if let Some(words) = tally.final_words().or(on_screen) {
            return signals::read(words, &self.state.promises());
        }
        let text = &gone.last_text;
        // Of a stream, the final words alone are the agent's. What has no events is none, whatever was asked for.
        if (self.state.agent().dialect.is_stream() && tally.spoke()) || !text.contains('<') {
            return Said::default();
        }
        let own = signals::Echo::of(&String::from_utf8_lossy(&self.prompt.1)).cut(text);
        let read = if gone.bytes > signals::TAIL as u64 {
            signals::read_end
        } else {
            signals::read
        };
        read(&own, &self.state.promises())
    }
}
