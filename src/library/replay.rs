//! Reads any bytes as a loop would, for tests and fuzzers: no part of the interface.

use crate::agent::decode::{Habits, codex, reset_time};
use crate::agent::redact::{Mask, Veil};
use crate::config::agents;
use crate::engine::Act;
use crate::engine::act::Tally;
use crate::engine::event::Report;
use crate::engine::plan::Agent;
use crate::engine::usage::Prices;
use std::collections::BTreeMap;
use std::path::Path;

/// A known agent whose output is read.
pub struct Replay(Habits);

impl Replay {
    /// All known agents, by their names.
    pub fn all() -> BTreeMap<String, Self> {
        let presets = agents::presets(&BTreeMap::new()).unwrap_or_default();
        let agent = |preset: agents::Preset| Agent {
            dialect: preset.dialect,
            reasons: preset.reason,
            denied: preset.denied,
            ..Agent::default()
        };
        presets
            .into_iter()
            .map(|(name, preset)| (name, Self(Habits::of(&agent(preset)))))
            .collect()
    }

    /// Reads its output in these pieces: all acts are told, and what they come to is the result, with the final words.
    pub fn read<'p>(
        &self,
        workspace: &Path,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        tell: &mut dyn FnMut(&Act<'_>),
    ) -> (Report, Option<String>) {
        let mut reader = self.0.reader(workspace, &[], String::new);
        let mut tally = Tally::default();
        let mut take = |act: Act<'_>| {
            if !matches!(act, Act::Raw(_)) {
                tally.count(&act);
                tell(&act);
            }
        };
        for piece in pieces {
            reader.feed(piece, &mut take);
        }
        reader.finish(&mut take);
        let final_words = tally.final_words().map(str::to_owned);
        let mut report = Report::default();
        tally.add_to(&mut report, &Prices::default(), "");
        (report, final_words)
    }
}

/// The time in milliseconds since 1970 that words of an agent name.
pub fn reset_time(words: &str, now_ms: i64) -> Option<i64> {
    reset_time::time(words, now_ms)
}

/// When limits are over, in seconds since 1970, by the end of the file in which Codex keeps a thread.
pub fn reset_in_thread(tail: &[u8]) -> Option<i64> {
    codex::rollout::in_tail(tail)
}

/// Output in which these secrets, by their names, are covered: at once, and as it comes in pieces.
pub fn covered(
    secrets: &[(String, String)],
    terminal: bool,
    pieces: &[impl AsRef<[u8]>],
) -> (Vec<u8>, Vec<u8>) {
    let mask = Mask::of(
        secrets
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    let mut veil = Veil::new(&mask, terminal);
    let (mut whole, mut shown) = (Vec::new(), Vec::new());
    for piece in pieces.iter().map(AsRef::as_ref) {
        whole.extend_from_slice(piece);
        shown.extend_from_slice(&veil.feed(piece));
    }
    shown.extend_from_slice(&veil.finish());
    (mask.cover(&whole).into_owned(), shown)
}
