//! Formats a fleet for a terminal: its workers, its queue, and where loops run.

use super::table::{TableCell, TableColumn, TextTable};
use super::{StyledText, TextStyle};
use crate::engine::format::{bytes, duration, plural};

/// A pool of a fleet.
pub(crate) struct FleetView {
    pub(crate) pool: String,
    /// Jobs that no worker has taken.
    pub(crate) queued: u64,
    pub(crate) workers: Vec<FleetWorkerRow>,
    pub(crate) loops: Vec<FleetLoopRow>,
}

/// A worker.
pub(crate) struct FleetWorkerRow {
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) version: String,
    pub(crate) used: usize,
    pub(crate) slots: usize,
    pub(crate) seen_ms_ago: i64,
    pub(crate) agents: String,
    pub(crate) labels: String,
}

/// A loop.
pub(crate) struct FleetLoopRow {
    pub(crate) name: String,
    pub(crate) state: &'static str,
    pub(crate) owner: String,
    pub(crate) epoch: u64,
    /// How far the owner's published journals are behind.
    pub(crate) lag_bytes: Option<u64>,
    /// Why workers leave the loop to others.
    pub(crate) note: String,
}

/// Formats a fleet for a terminal of this width.
pub(crate) fn fleet_text(view: &FleetView, width: Option<usize>, color: bool) -> StyledText {
    let mut out = StyledText::new(color);
    let slots: usize = view.workers.iter().map(|worker| worker.slots).sum();
    let used: usize = view.workers.iter().map(|worker| worker.used).sum();
    let workers = plural(view.workers.len() as u64, "worker");
    out.push(&format!(
        "pool {}: {workers}, {used} of {slots} slots in use, {} queued\n",
        view.pool, view.queued
    ));
    if !view.workers.is_empty() {
        out.push("\n");
        worker_table(&view.workers).print(0, width, &mut out);
    }
    if !view.loops.is_empty() {
        out.push("\n");
        loop_table(&view.loops).print(0, width, &mut out);
    }
    out
}

fn worker_table(workers: &[FleetWorkerRow]) -> TextTable {
    let mut table = TextTable::new(&[
        ("WORKER", TableColumn::CutEnd(10)),
        ("HOST", TableColumn::CutEnd(8)),
        ("SLOTS", TableColumn::Right),
        ("SEEN", TableColumn::Right),
        ("VERSION", TableColumn::Left),
        ("AGENTS", TableColumn::CutEnd(8)),
        ("LABELS", TableColumn::Rest),
    ]);
    for worker in workers {
        table.push(vec![
            worker.id.clone().into(),
            worker.host.clone().into(),
            format!("{}/{}", worker.used, worker.slots).into(),
            duration(worker.seen_ms_ago.unsigned_abs()).into(),
            worker.version.clone().into(),
            worker.agents.clone().into(),
            worker.labels.clone().into(),
        ]);
    }
    table
}

fn loop_table(loops: &[FleetLoopRow]) -> TextTable {
    let mut table = TextTable::new(&[
        ("LOOP", TableColumn::CutEnd(10)),
        ("STATE", TableColumn::Left),
        ("WORKER", TableColumn::CutEnd(10)),
        ("EPOCH", TableColumn::Right),
        ("LAG", TableColumn::Right),
        ("NOTE", TableColumn::Rest),
    ]);
    for row in loops {
        let style = match row.state {
            "running" => Some(TextStyle::Green),
            "lost" => Some(TextStyle::Red),
            _ => None,
        };
        table.push(vec![
            row.name.clone().into(),
            TableCell::new(row.state, style),
            row.owner.clone().into(),
            row.epoch.to_string().into(),
            row.lag_bytes.map(bytes).unwrap_or_default().into(),
            row.note.clone().into(),
        ]);
    }
    table
}
