//! Prints the results of a selftest: as rows while it runs, or as one JSON object at its end.

use super::arena::PlayedEnd;
use super::cheat::Cheat;
use crate::engine::ExitCode;
use crate::engine::label::Label;
use crate::lifecycle::error::CommandError;
use crate::ui::one_line;
use crate::ui::print::{print_json, print_text};
use serde_json::json;
use std::collections::BTreeSet;

/// The results so far.
pub(super) struct SelftestReport {
    is_json: bool,
    checks: Vec<LabeledCheck>,
    cheats: Vec<CheatRow>,
}

pub(super) struct LabeledCheck {
    pub(super) command: String,
    pub(super) label: Label,
}

struct CheatRow {
    cheat: &'static Cheat,
    result: &'static str,
}

const ACCEPTED: &str = "accepted";

/// Maximum number of weaknesses that are printed.
const WEAKNESSES_MAX: usize = 5;

impl CheatRow {
    fn is_accepted(&self) -> bool {
        self.result == ACCEPTED
    }
}

impl SelftestReport {
    pub(super) fn new(is_json: bool) -> Self {
        Self {
            is_json,
            checks: Vec::new(),
            cheats: Vec::new(),
        }
    }

    fn print(&self, line: &str) -> Result<(), CommandError> {
        if self.is_json {
            return Ok(());
        }
        print_text(&format!("{line}\n"))
    }

    pub(super) fn check(&mut self, row: LabeledCheck) -> Result<(), CommandError> {
        let Label { label, why, .. } = &row.label;
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {}", one_line(why))
        };
        let command = one_line(&row.command);
        self.print(&format!("check `{command}` is {}{why}", label.as_str()))?;
        self.checks.push(row);
        Ok(())
    }

    pub(super) fn cheat(
        &mut self,
        cheat: &'static Cheat,
        end: PlayedEnd,
    ) -> Result<(), CommandError> {
        let result = match end {
            PlayedEnd::Accepted => ACCEPTED,
            PlayedEnd::Asked => "asked",
            PlayedEnd::Refused | PlayedEnd::Interrupted => "refused",
        };
        if self.cheats.is_empty() {
            self.print("")?;
        }
        let Cheat { class, name, .. } = cheat;
        self.print(&format!("{class:<13} {result:<9} {name}"))?;
        self.cheats.push(CheatRow { cheat, result });
        Ok(())
    }

    /// Prints what got through and what stops it. `note` says why not everything was played, and
    /// `weaknesses` why results may be others than those of a loop. Returns the exit code: 0 if
    /// nothing got through but documented limits.
    pub(super) fn finish(
        &self,
        note: Option<&str>,
        weaknesses: &BTreeSet<String>,
    ) -> Result<ExitCode, CommandError> {
        let accepted: Vec<&CheatRow> = self.cheats.iter().filter(|row| row.is_accepted()).collect();
        let is_fine = accepted.iter().all(|row| row.cheat.limit) && note.is_none();
        if self.is_json {
            let checks: Vec<_> = self
                .checks
                .iter()
                .map(|row| json!({"command": row.command, "label": row.label}))
                .collect();
            let cheats: Vec<_> = self
                .cheats
                .iter()
                .map(|row| {
                    let Cheat { class, name, stop, limit, .. } = row.cheat;
                    json!({
                        "class": class, "name": name, "result": row.result, "stop": stop, "limit": limit,
                    })
                })
                .collect();
            let all = json!({
                "checks": checks, "cheats": cheats, "ok": is_fine, "note": note, "weaknesses": weaknesses,
            });
            print_json(&format!("{all:#}"))?;
        } else {
            self.print_summary(&accepted, note)?;
            self.print_weaknesses(weaknesses)?;
        }
        Ok(if is_fine {
            ExitCode::Success
        } else {
            ExitCode::Failure
        })
    }

    fn print_weaknesses(&self, weaknesses: &BTreeSet<String>) -> Result<(), CommandError> {
        if weaknesses.is_empty() {
            return Ok(());
        }
        self.print("\nweaker here than where views work:")?;
        let mut shown = weaknesses.iter().take(WEAKNESSES_MAX);
        shown.try_for_each(|why| self.print(&format!("  {}", one_line(why))))
    }

    fn print_summary(
        &self,
        accepted: &[&CheatRow],
        note: Option<&str>,
    ) -> Result<(), CommandError> {
        self.print("")?;
        let total = self.cheats.len();
        self.print(&match accepted.len() {
            0 if total == 1 => "1 cheat was played, and did not get through.".to_owned(),
            0 => format!("{total} cheats were played, and none got through."),
            count => format!("{count} of {total} cheats got through:"),
        })?;
        for row in accepted {
            let Cheat {
                class, name, stop, ..
            } = row.cheat;
            let limit = if row.cheat.limit {
                " (a known limit: docs/trust.md)"
            } else {
                ""
            };
            self.print(&format!("  {class}: {name}{limit}\n    what helps: {stop}"))?;
        }
        if let Some(note) = note {
            self.print(note)?;
        }
        Ok(())
    }
}
