//! What stands on the screen of an agent that is gone: its own words, and what it was not allowed.

use super::Runner;
use super::job::Gone;
use crate::engine::act::Act;
use crate::engine::screen;
use std::collections::BTreeSet;

impl Runner<'_> {
    /// The text of a screen without the prompt that was typed there; none if there was no screen.
    pub(super) fn own_words(&self, gone: &Gone) -> Option<String> {
        let on_screen = self.state.agent().terminal;
        on_screen.then(|| screen::own(&gone.last_text, &String::from_utf8_lossy(&self.prompt.1)))
    }

    /// Tells of what a screen says was not allowed. A screen is painted again and again: each line counts once.
    pub(super) fn read_denials(&mut self, own: Option<&str>) {
        let (habits, mut seen) = (&self.habits[self.state.using], BTreeSet::new());
        let lines = own.unwrap_or_default().lines();
        for line in lines.filter(|line| habits.denies(line) && seen.insert(*line)) {
            let act = Act::Denied(line.into());
            if self.tally.count(&act) {
                self.watch.act(&act);
            }
        }
    }
}
