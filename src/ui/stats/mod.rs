//! Adds up what loops cost, how long they took and how they ended, by day, agent, model or
//! repository.

mod text;

pub(crate) use text::text;

use crate::engine::event::CheckReport;
use crate::engine::iteration::IterationEnd;
use crate::engine::usage::Tokens;
use crate::engine::{Liveness, Outcome, State, Status};
use crate::git::project;
use crate::lifecycle::handle::read_loop;
use crate::lifecycle::history::{LoopHistory, PastIteration};
use crate::store::{LoopDir, Result, StateDir};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;

/// The minimum number of loops per thread that justifies another thread.
const MIN_PER_THREAD: usize = 16;

/// What the groups have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GroupBy {
    Day,
    Agent,
    Model,
    Repository,
}

/// The numbers of many loops. The serialized names are a published format and never change.
#[derive(Debug, Serialize)]
pub(crate) struct Stats {
    /// The earliest time that counts, in RFC 3339 format; `None` for all time.
    pub(crate) since: Option<String>,
    pub(crate) by: GroupBy,
    pub(crate) total: Totals,
    /// The groups: days in order, others by cost, highest first.
    pub(crate) groups: Vec<StatsGroup>,
}

/// The numbers of one group.
#[derive(Debug, Serialize)]
pub(crate) struct StatsGroup {
    pub(crate) key: String,
    #[serde(flatten)]
    pub(crate) totals: Totals,
}

/// Sums over loops and iterations. A loop counts in the group of its last iteration; iterations
/// count in their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Totals {
    pub(crate) loops: u64,
    /// Loops that have ended.
    pub(crate) ended: u64,
    pub(crate) done: u64,
    /// The share of ended loops that are done, from 0 to 1; `None` if none has ended.
    pub(crate) success_rate: Option<f64>,
    pub(crate) iterations: u64,
    /// The median number of iterations of the loops that are done; `None` if none is.
    pub(crate) iterations_to_done: Option<f64>,
    /// Dollars known to be spent.
    pub(crate) cost_usd: f64,
    /// Iterations whose cost is unknown.
    pub(crate) unpriced: u64,
    pub(crate) tokens: Tokens,
    /// The time in which agents and checks ran, in seconds.
    pub(crate) active_s: f64,
    /// How many loops ended for which reason.
    pub(crate) endings: BTreeMap<String, u64>,
    /// How many iterations failed for which reason.
    pub(crate) failures: BTreeMap<String, u64>,
    #[serde(skip)]
    to_done: Vec<u32>,
}

/// What one loop adds to the numbers.
struct LoopNumbers {
    repository: String,
    status: Status,
    ending: Option<String>,
    count: u32,
    last_event_ms: i64,
    iterations: Vec<IterationNumbers>,
}

struct IterationNumbers {
    started_ms: i64,
    agent: String,
    model: String,
    ms: u64,
    cost_usd: Option<f64>,
    is_running: bool,
    tokens: Tokens,
    failure: Option<&'static str>,
}

/// Adds up all loops, also those in the archive. Counts what happened since `since_ms`, in
/// milliseconds since 1970. Also returns a warning for each loop that cannot be read.
pub(crate) fn collect(
    state_dir: &StateDir,
    by: GroupBy,
    since_ms: Option<i64>,
) -> Result<(Stats, Vec<String>)> {
    let names = state_dir.loop_names()?;
    let mut dirs: Vec<LoopDir> = names.iter().map(|name| state_dir.loop_dir(name)).collect();
    dirs.extend(state_dir.archived_loops());
    let start_ms = since_ms.unwrap_or(i64::MIN);
    dirs.retain(|dir| is_newer(dir, start_ms));
    let mut total = Totals::default();
    let mut groups: BTreeMap<String, Totals> = BTreeMap::new();
    let mut warnings = Vec::new();
    for (dir, read) in dirs.iter().zip(read_all(&dirs)) {
        match read {
            Ok(one) => add_loop(&one, by, start_ms, &mut total, &mut groups),
            Err(error) => warnings.push(format!("{}: {error}", dir.name())),
        }
    }
    total.settle();
    let mut groups: Vec<StatsGroup> = groups
        .into_iter()
        .map(|(key, mut totals)| {
            totals.settle();
            StatsGroup { key, totals }
        })
        .collect();
    if by != GroupBy::Day {
        let order = |a: &StatsGroup, b: &StatsGroup| {
            let costs = b.totals.cost_usd.total_cmp(&a.totals.cost_usd);
            costs.then(b.totals.iterations.cmp(&a.totals.iterations))
        };
        groups.sort_by(order);
    }
    let since = since_ms.map(crate::store::rfc3339);
    let stats = Stats {
        since,
        by,
        total,
        groups,
    };
    Ok((stats, warnings))
}

/// Returns whether a loop's journal was written to after this time. This only saves reading old
/// ones: the times in the journal count.
fn is_newer(dir: &LoopDir, start_ms: i64) -> bool {
    let changed = std::fs::metadata(dir.journal()).and_then(|data| data.modified());
    let changed = changed.ok().and_then(|time| Timestamp::try_from(time).ok());
    changed.is_none_or(|time| time.as_millisecond() >= start_ms)
}

/// Reads loops on several threads, and returns them in their order.
fn read_all(dirs: &[LoopDir]) -> Vec<Result<LoopNumbers>> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let chunk_len = dirs.len().div_ceil(threads).max(MIN_PER_THREAD);
    let read_chunk = |chunk: &[LoopDir]| chunk.iter().map(read).collect::<Vec<_>>();
    if dirs.len() <= chunk_len {
        return read_chunk(dirs);
    }
    std::thread::scope(|scope| {
        let read_chunk = &read_chunk;
        let handles = dirs.chunks(chunk_len);
        let handles: Vec<_> = handles
            .map(|chunk| scope.spawn(move || read_chunk(chunk)))
            .collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().unwrap_or_default())
            .collect()
    })
}

fn read(dir: &LoopDir) -> Result<LoopNumbers> {
    let history = LoopHistory::read(dir, Liveness::Idle, &mut |_, _| {})?;
    let state = &history.view.state;
    let status = match state.outcome() {
        Some(outcome) => outcome.status(),
        None => state.status(read_loop(dir)?.1),
    };
    Ok(LoopNumbers {
        repository: repository(state),
        status,
        ending: state.outcome().map(ending),
        count: state.iteration,
        last_event_ms: history.last_event_ms,
        iterations: history.iterations.iter().map(numbers).collect(),
    })
}

/// Returns the path of a loop's repository, or of its workspace outside any.
fn repository(state: &State) -> String {
    let workspace: &Path = match &state.plan.worktree {
        Some(worktree) => &worktree.repository,
        None => &state.plan.workspace,
    };
    project(workspace).display().to_string()
}

fn ending(outcome: &Outcome) -> String {
    outcome.stop_reason().to_string()
}

fn numbers(one: &PastIteration) -> IterationNumbers {
    let record = one.record.as_ref();
    let reports = one.checks.iter().chain(&one.second_look).flatten();
    let checks_ms: u64 = reports.map(|report: &CheckReport| report.ms).sum();
    let failure = record.and_then(|record| match record.end {
        IterationEnd::Interrupted => Some("interrupted"),
        _ if !record.is_failure() && !record.refunded => None,
        _ => Some(
            record
                .reason
                .map_or_else(|| record.end.as_str(), |reason| reason.kind.as_str()),
        ),
    });
    IterationNumbers {
        started_ms: one.started_ms,
        agent: one.agent.clone(),
        model: match &one.model {
            Some(model) => model.clone(),
            None => format!("default of {}", one.agent),
        },
        ms: record.map_or(0, |record| record.ms) + checks_ms,
        cost_usd: record.and_then(|record| record.cost_usd),
        is_running: record.is_none(),
        tokens: record.and_then(|record| record.tokens).unwrap_or_default(),
        failure,
    }
}

fn add_loop(
    one: &LoopNumbers,
    by: GroupBy,
    start_ms: i64,
    total: &mut Totals,
    groups: &mut BTreeMap<String, Totals>,
) {
    if one.last_event_ms < start_ms {
        return;
    }
    for iteration in one.iterations.iter().filter(|it| it.started_ms >= start_ms) {
        let group = groups.entry(key(one, Some(iteration), by)).or_default();
        for totals in [&mut *total, group] {
            totals.add_iteration(iteration);
        }
    }
    let group = groups
        .entry(key(one, one.iterations.last(), by))
        .or_default();
    for totals in [total, group] {
        totals.add_loop(one);
    }
}

fn key(one: &LoopNumbers, iteration: Option<&IterationNumbers>, by: GroupBy) -> String {
    match (by, iteration) {
        (GroupBy::Repository, _) => one.repository.clone(),
        (GroupBy::Day, Some(iteration)) => day(iteration.started_ms),
        (GroupBy::Day, None) => day(one.last_event_ms),
        (GroupBy::Agent, Some(iteration)) => iteration.agent.clone(),
        (GroupBy::Model, Some(iteration)) => iteration.model.clone(),
        (GroupBy::Agent | GroupBy::Model, None) => "none".into(),
    }
}

/// Returns the local day of a time: `2026-11-18`.
fn day(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.to_zoned(TimeZone::system()).date().to_string()
}

impl Totals {
    fn add_iteration(&mut self, one: &IterationNumbers) {
        self.iterations += 1;
        self.cost_usd += one.cost_usd.unwrap_or(0.0);
        self.unpriced += u64::from(one.cost_usd.is_none() && !one.is_running);
        self.tokens += one.tokens;
        self.active_s += one.ms as f64 / 1000.0;
        if let Some(failure) = one.failure {
            *self.failures.entry(failure.to_owned()).or_default() += 1;
        }
    }

    fn add_loop(&mut self, one: &LoopNumbers) {
        self.loops += 1;
        if let Some(ending) = &one.ending {
            self.ended += 1;
            *self.endings.entry(ending.clone()).or_default() += 1;
        }
        if one.status == Status::Done {
            self.done += 1;
            self.to_done.push(one.count);
        }
    }

    /// Computes what is no sum.
    fn settle(&mut self) {
        self.success_rate = (self.ended > 0).then(|| self.done as f64 / self.ended as f64);
        self.to_done.sort_unstable();
        let middle = self.to_done.len() / 2;
        self.iterations_to_done = match self.to_done.len() {
            0 => None,
            len if len % 2 == 1 => Some(f64::from(self.to_done[middle])),
            _ => Some(f64::from(self.to_done[middle - 1] + self.to_done[middle]) / 2.0),
        };
        // The sum of many amounts in binary is not exact.
        self.cost_usd = (self.cost_usd * 1e6).round() / 1e6;
        self.active_s = (self.active_s * 1e3).round() / 1e3;
    }
}
