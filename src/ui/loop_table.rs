//! Formats the table of `ralph ls`: running loops first, then by age, each child loop below its parent.

use super::age::{age, short_path};
use super::loop_order;
use super::status::{activity, short_status, status_style};
use super::table::{TableCell, TableColumn, TextTable};
use super::{StyledText, TextStyle, one_line};
use crate::engine::{Act, Liveness, Phase, Status};
use crate::lifecycle::history::IterationActivity;
use crate::store::{EndedLoop, FleetPlacement, LoopDir, LoopView};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// The cost of a loop if no agent reported one.
const UNKNOWN_COST: &str = "?";
/// The fewest columns for names.
const NAME_MIN: usize = 8;
/// The fewest columns that are worth a column of repositories.
const COLUMN_MIN: usize = 12;

/// Where the column with the machine is, in a table of loops of the fleet.
const HOST_COLUMN: usize = 2;

/// A loop in the table.
pub(crate) struct LoopRow {
    name: String,
    parent: Option<String>,
    pub(crate) status: Status,
    status_text: String,
    iteration: String,
    cost: String,
    /// The start of a loop that runs, the last event of any other.
    since_ms: i64,
    /// The top of the repository.
    pub(crate) repository: PathBuf,
    now: String,
    is_archived: bool,
    /// The machine that runs the loop, or ran it last; `None` if this is not a loop of the fleet.
    host: Option<String>,
}

impl LoopRow {
    pub(crate) fn new(dir: &LoopDir, view: &LoopView, liveness: Liveness) -> Self {
        let LoopView { header, state, .. } = view;
        let is_live = liveness != Liveness::Idle && state.outcome().is_none();
        let now = current_text(dir, view, liveness);
        let placement = FleetPlacement::read(dir.path());
        let waiting_for = placement.as_ref().and_then(FleetPlacement::waiting_for);
        let status_text = match waiting_for {
            Some(_) => "queued".to_owned(),
            None => short_status(state, liveness),
        };
        Self {
            name: header.name.clone(),
            parent: header.parent.clone(),
            status: state.status(liveness),
            status_text,
            iteration: state.iteration_label(state.iteration),
            cost: state.cost_text().unwrap_or_else(|| UNKNOWN_COST.into()),
            since_ms: if is_live {
                header.created_ms
            } else {
                state.wall_ms
            },
            repository: state.plan.repository().to_owned(),
            now: waiting_for.unwrap_or(now),
            is_archived: false,
            host: placement.map(|_| state.host.clone().unwrap_or_default()),
        }
    }

    /// Returns the row of a loop that has ended.
    pub(crate) fn ended(ended: EndedLoop) -> Self {
        Self {
            name: ended.name,
            parent: ended.parent,
            status: ended.status,
            status_text: ended.status.as_str().to_owned(),
            iteration: ended.iteration,
            cost: ended.cost.unwrap_or_else(|| UNKNOWN_COST.into()),
            since_ms: ended.ended_ms,
            repository: ended.repository,
            now: ended.detail,
            is_archived: false,
            host: None,
        }
    }

    /// Marks the loop as archived, under the name of its directory in the archive.
    pub(crate) fn archived(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self.status_text.push_str(", archived");
        self.is_archived = true;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn is_live(&self) -> bool {
        matches!(self.status, Status::Running | Status::Starting)
    }

    fn cells(&self, depth: usize, is_terminal: bool, now_ms: i64) -> Vec<TableCell> {
        let path = |path: &Path| {
            if is_terminal {
                short_path(path)
            } else {
                path.display().to_string()
            }
        };
        let dim = self.is_archived.then_some(TextStyle::Dim);
        let style = dim.unwrap_or_else(|| status_style(self.status));
        let mut cells = vec![
            TableCell::new(&loop_order::indented(&self.name, depth), dim),
            TableCell::new(&self.status_text, Some(style)),
            TableCell::new(&self.iteration, dim),
            TableCell::new(&self.cost, dim),
            TableCell::new(&age(self.since_ms, now_ms), dim),
            TableCell::new(&path(&self.repository), dim),
            TableCell::new(&self.now, Some(TextStyle::Dim)),
        ];
        if let Some(host) = &self.host {
            cells.insert(HOST_COLUMN, TableCell::new(host, dim));
        }
        cells
    }
}

/// Says what a loop does, or why it does nothing.
pub(super) fn current_text(dir: &LoopDir, view: &LoopView, liveness: Liveness) -> String {
    let state = &view.state;
    match state.outcome_summary() {
        Some(outcome) => outcome.detail,
        None if liveness != Liveness::Idle => now_doing(dir, view).unwrap_or_default(),
        None if state.status(liveness) == Status::Crashed => {
            format!("killed in iteration {}", state.iteration)
        }
        None => String::new(),
    }
}

/// Says what a running loop does: its agent's last tool or words, or its checks, its rest.
fn now_doing(dir: &LoopDir, view: &LoopView) -> Option<String> {
    let state = &view.state;
    let text = activity(state)?;
    if !matches!(state.phase, Phase::Running { started: true, .. }) {
        return Some(text);
    }
    let acts = IterationActivity::read(dir, state.iteration).acts;
    let last = acts.iter().rev().find_map(|(_, act)| match act {
        Act::ToolStarted { name, about } | Act::ToolFinished { name, about, .. } => {
            Some(format!("{name} {about}"))
        }
        Act::Text(text) => text
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .map(one_line),
        _ => None,
    });
    let suffix = text
        .strip_prefix("the agent is running")
        .unwrap_or_default();
    Some(last.map_or_else(|| text.clone(), |last| format!("{last}{suffix}")))
}

/// Returns the table of loops for a terminal of `columns` columns, or for a file. In a terminal, the
/// last column is cut first, then the repositories lose their beginning and the names their end; in
/// a narrow one, these columns are left out.
pub(crate) fn table(
    mut loops: Vec<LoopRow>,
    columns: Option<usize>,
    color: bool,
    now_ms: i64,
) -> StyledText {
    loops.sort_by_cached_key(|row| {
        let name = loop_order::natural_key(&row.name);
        (
            !row.is_live(),
            row.is_archived,
            Reverse(row.since_ms / 1000),
            name,
        )
    });
    let names: Vec<_> = loops
        .iter()
        .map(|row| (&row.name[..], row.parent.as_deref()))
        .collect();
    let mut titles = vec![
        ("NAME", TableColumn::CutEnd(NAME_MIN)),
        ("STATUS", TableColumn::Left),
        ("ITERATION", TableColumn::Left),
        ("COST", TableColumn::Left),
        ("AGE", TableColumn::Left),
        ("REPOSITORY", TableColumn::CutStart(COLUMN_MIN)),
        ("NOW", TableColumn::Rest),
    ];
    if loops.iter().any(|row| row.host.is_some()) {
        titles.insert(HOST_COLUMN, ("HOST", TableColumn::Left));
    }
    let mut table = TextTable::new(&titles);
    for (depth, at) in loop_order::in_order(&names) {
        table.push(loops[at].cells(depth, columns.is_some(), now_ms));
    }
    let mut out = StyledText::new(color);
    table.print(0, columns, &mut out);
    out
}
