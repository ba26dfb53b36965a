//! What an agent that is gone leaves behind: its words, its markers, what it cost, and why it ended.

use super::{Error, Runner};
use crate::drive::job::Gone;
use crate::engine::act::last_words;
use crate::engine::event::{Event, Fault, Report, Said};
use crate::engine::{screen, signal};

impl Runner<'_> {
    pub(super) fn agent_gone(&mut self, iteration: u32, gone: Gone, matched: bool) -> Result<(), Error> {
        self.relay()?;
        let found = self.task.look(self.state.plan.proof.file.as_deref());
        let found_something = !found.markers.is_empty() || found.cost_usd.is_some();
        let tally = std::mem::take(&mut self.tally);
        let mut said = self.read_words(&gone, tally.final_words());
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
            error: by_itself.then(|| last_words(&gone.last_text)).filter(|words| !words.is_empty()),
            leftovers: gone.leftovers,
            survivors: gone.survivors,
            ..Report::default()
        };
        let model = self.state.agent().model.as_deref().unwrap_or_default();
        tally.add_to(&mut report, &self.state.plan.prices, model);
        if by_itself && report.reason.is_none() && !report.finished {
            // Of plain text, the last line alone may be the program's own word on its end.
            let last = report.error.as_deref().and_then(|words| words.lines().last());
            report.reason = last.and_then(|line| self.habits[self.state.using].reason(line));
        }
        if gone.stuck {
            let detail = "the agent's function was told to return, and did not".to_owned();
            self.tell(Event::Faulted { class: Fault::Survivors, detail })?;
        }
        self.tell(Event::Ended { iteration, report })?;
        if let Some(error) = gone.log_error {
            let detail = format!("cannot write the output's log: {error}");
            self.tell(Event::Faulted { class: Fault::Disk, detail })?;
        }
        if let Some(detail) = found.wrong {
            self.tell(Event::Faulted { class: Fault::Marker, detail })?;
        }
        if found_something {
            self.take_markers_away()?;
        }
        Ok(())
    }

    fn read_words(&self, gone: &Gone, final_words: Option<&str>) -> Said {
        if let Some(words) = final_words {
            return signal::read(words, &self.state.promises());
        }
        let text = &gone.last_text;
        // Of a stream, the final words alone are the agent's.
        if self.state.agent().dialect.is_stream() || !text.contains('<') {
            return Said::default();
        }
        let prompt = String::from_utf8_lossy(&self.prompt.1);
        if self.state.agent().terminal {
            return signal::read(&screen::own(text, &prompt), &self.state.promises());
        }
        let own = signal::Echo::of(&prompt).cut(text);
        let read = if gone.bytes > signal::TAIL as u64 { signal::read_end } else { signal::read };
        read(&own, &self.state.promises())
    }
}
