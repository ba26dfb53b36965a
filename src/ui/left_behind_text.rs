//! Describes what was still running when an agent had exited.

use super::TextStyle;
use crate::engine::event::AgentReport;
use crate::engine::format::{plural, process_count};

/// Returns the lines about processes that were killed, and about windows that are still open.
pub(super) fn lines(report: &AgentReport) -> Vec<(String, TextStyle)> {
    let mut all = Vec::new();
    let killed = (report.orphans as usize).saturating_sub(report.survivors.len());
    if killed > 0 {
        let processes = process_count(killed);
        all.push(format!("killed {processes} left behind by the agent"));
    }
    let pids: Vec<String> = report.windows.iter().map(u32::to_string).collect();
    if !pids.is_empty() {
        all.push(format!(
            "left open in ralph's tmux server, by the agent or by you: {} (process {})",
            plural(pids.len() as u64, "window"),
            pids.join(", ")
        ));
    }
    let yellow = |text| (text, TextStyle::Yellow);
    all.into_iter().map(yellow).collect()
}
