//! Tells the agent why its green checks do not count: they are red by the original tests, or tests are
//! gone.

use super::display::code_span;
use super::look::{LookVerdict, NAMED_MAX};
use super::prompt::describe_red_check;
use super::signals::defang;
use super::state::State;
use super::touched::TouchedFiles;

impl State {
    /// Returns what the agent of a sealed loop has to know about red checks; `None` if it has changed
    /// only sources.
    fn seal_note(&self) -> Option<String> {
        let touched = self.look.touched.as_ref()?;
        if !self.is_sealed() || !self.has_red_check() || touched.is_sources_only() {
            return None;
        }
        Some(format!(
            "The checks always run with the tests and settings that the loop began with, so your \
             versions of these files were not used:\n{}\nIf the task itself requires the change of \
             a test or a setting, write <changed>the reason</changed> alone on a line of your final \
             message; a person then decides.",
            defang(&list_names(touched))
        ))
    }

    /// Returns what the agent has to know about a dispute; `None` if there is none.
    pub(super) fn dispute_note(&self) -> Option<String> {
        if self.look.reason_against().is_some() {
            return None;
        }
        if self.look_verdict() != LookVerdict::Disputed {
            return self.seal_note();
        }
        let mut red: Vec<String> = self
            .red_in_view()
            .map(|(check, why)| {
                let planned = &self.plan.proof.checks[check];
                let report = self.view_results()[check].as_ref();
                let line = report.filter(|_| !planned.is_held_out());
                let line = line.and_then(|report| report.line.as_deref().map(code_span));
                let line = line.map(|line| format!(": {line}")).unwrap_or_default();
                // A held-out check's tests are as secret as the check.
                let why = if planned.is_held_out() { "red" } else { &why };
                format!("- {} ({why}){line}", planned.label())
            })
            .collect();
        if let (Some(setup), Some(report)) = (&self.plan.proof.setup, &self.look.setup)
            && !report.is_green()
        {
            let command = code_span(&setup.command);
            let why = describe_red_check(report);
            red.push(format!("- {command}, which prepares the checks ({why})"));
        }
        let touched = self.look.touched.as_ref();
        let mut parts = Vec::new();
        if !red.is_empty() {
            let problem = if self.is_sealed() {
                "The checks always run with the tests and settings that the loop began with, and do \
                 not prove the work there, so it does not count as done"
            } else {
                "The checks are green as you left the files, but red with the tests and settings \
                 that the loop began with, so the work does not count as done"
            };
            let restored = match touched.map(list_names).unwrap_or_default() {
                names if names.is_empty() => String::new(),
                names => format!("These files were restored for that:\n{}\n", defang(&names)),
            };
            parts.push(format!(
                "{problem}:\n{}\n{restored}Change the code so that the original checks pass too.",
                defang(&red.join("\n")),
            ));
        }
        if let Some(lost) = touched.map(|touched| &touched.lost_tests)
            && !lost.is_empty()
        {
            parts.push(format!(
                "You deleted these files, and no other source has the tests that were in them, so \
                 the work does not count as done:\n{}\nPut the same tests into the source that \
                 has the code now.",
                defang(&list(lost.names()))
            ));
        }
        let reason = "If the task itself requires the change of a test or a setting, leave it and \
                      write <changed>the reason</changed> alone on a line of your final message; \
                      a person then decides.";
        parts.push(reason.into());
        Some(parts.join(" "))
    }
}

/// Lists the first touched files that can turn a check green, one per line.
fn list_names(touched: &TouchedFiles) -> String {
    list(touched.names())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names = names.take(NAMED_MAX);
    let names: Vec<String> = names.map(|name| format!("- {}", code_span(name))).collect();
    names.join("\n")
}
