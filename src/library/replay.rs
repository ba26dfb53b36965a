//! Reads what an agent printed once more, for tests and fuzzers: no part of the interface.

use crate::config::agents;
use crate::drive::read::Habits;
use crate::engine::Act;
use crate::engine::act::Tally;
use crate::engine::event::Report;
use crate::engine::plan::Agent;
use crate::engine::tokens::Prices;
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
        presets.into_iter().map(|(name, preset)| (name, Self(Habits::of(&agent(preset))))).collect()
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
