//! Feeds bytes to decoders and redactors as a loop would, for tests and fuzzers. Not part of the
//! API.

use crate::agent::decode::{AgentProfile, codex, reset_time};
use crate::agent::redact::{Redactor, StreamRedactor};
use crate::config::agents;
use crate::engine::Act;
use crate::engine::act::Tally;
use crate::engine::event::AgentReport;
use crate::engine::plan::Agent;
use crate::engine::usage::Prices;
use std::collections::BTreeMap;
use std::path::Path;

/// Decodes recorded output of a known agent.
pub struct Replay(AgentProfile);

impl Replay {
    /// Returns a decoder for each known agent, by name.
    pub fn all() -> BTreeMap<String, Self> {
        let presets = agents::presets(&BTreeMap::new()).unwrap_or_default();
        let agent = |preset: agents::AgentPreset| Agent {
            dialect: preset.dialect,
            failure_patterns: preset.failure_patterns,
            denied: preset.denied,
            ..Agent::default()
        };
        presets
            .into_iter()
            .map(|(name, preset)| (name, Self(AgentProfile::new(&agent(preset)))))
            .collect()
    }

    /// Classifies an error message. Returns the kind of failure, and whether the message says when
    /// the limit resets; `None` if the failure is not a known one.
    pub fn classify(&self, message: &str) -> Option<(&'static str, bool)> {
        let failure = self.0.failure_reason(message)?;
        Some((failure.kind.as_str(), failure.until_ms.is_some()))
    }

    /// Decodes output that arrives in `pieces` and calls `on_act` with each act. Returns the report
    /// and the final message, if there is one.
    pub fn decode<'p>(
        &self,
        workspace: &Path,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        on_act: &mut dyn FnMut(&Act<'_>),
    ) -> (AgentReport, Option<String>) {
        let mut decoder = self.0.decoder(workspace, &[], String::new);
        let mut tally = Tally::default();
        let mut handle = |act: Act<'_>| {
            let act = act.cleaned();
            tally.add(&act);
            if !matches!(act, Act::RawOutput(_) | Act::OtherEvent) {
                on_act(&act);
            }
        };
        for piece in pieces {
            decoder.feed(piece, &mut handle);
        }
        decoder.finish(&mut handle);
        let final_message = tally.final_message().map(str::to_owned);
        let mut report = AgentReport::default();
        tally.add_to(&mut report, &Prices::default(), "");
        (report, final_message)
    }
}

/// Parses the reset time in an agent's message, or returns `None` if it has none. `now_ms` and the
/// result are in Unix milliseconds.
pub fn reset_time(text: &str, now_ms: i64) -> Option<i64> {
    reset_time::parse(text, now_ms)
}

/// Finds the reset time of a usage limit at the end of a Codex rollout file. Returns it in Unix
/// seconds, or `None` if the file has none.
pub fn codex_rollout_reset(tail: &[u8]) -> Option<i64> {
    codex::rollout::limit_reset_in_tail(tail)
}

/// Redacts these named secrets twice, in one go and piece by piece. Returns both results.
pub fn redact_both_ways(
    secrets: &[(String, String)],
    terminal: bool,
    pieces: &[impl AsRef<[u8]>],
) -> (Vec<u8>, Vec<u8>) {
    let redactor = Redactor::from_vars(
        secrets
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    let mut stream_redactor = StreamRedactor::new(&redactor, terminal);
    let (mut whole, mut shown) = (Vec::new(), Vec::new());
    for piece in pieces.iter().map(AsRef::as_ref) {
        whole.extend_from_slice(piece);
        shown.extend_from_slice(&stream_redactor.feed(piece));
    }
    shown.extend_from_slice(&stream_redactor.finish());
    (redactor.redact(&whole).into_owned(), shown)
}
