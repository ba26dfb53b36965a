//! What the API returns about many loops: their statistics, over days, agents, models or repositories.

use crate::store::{StateDir, StoreError};
use crate::ui::age::{now_ms, short_path};
use crate::ui::stats::{GroupBy, collect};
use serde_json::{Value, json};
use std::path::Path;

/// Groups that are returned: the last days, or the most expensive others.
const GROUPS_MAX: usize = 400;
const HOUR_MS: i64 = 3_600_000;

/// What to add up.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatsQuery {
    by: GroupBy,
    /// Only what happened in the last hours counts; `None` for all time.
    hours: Option<u32>,
}

impl StatsQuery {
    /// Reads `by=day&hours=24`; `None` if a value is unknown.
    pub(super) fn parse(query: &str) -> Option<Self> {
        let mut parsed = Self {
            by: GroupBy::Day,
            hours: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=')? {
                ("by", "day") => parsed.by = GroupBy::Day,
                ("by", "agent") => parsed.by = GroupBy::Agent,
                ("by", "model") => parsed.by = GroupBy::Model,
                ("by", "repository") => parsed.by = GroupBy::Repository,
                ("hours", hours) => parsed.hours = Some(hours.parse().ok()?),
                _ => return None,
            }
        }
        Some(parsed)
    }
}

/// Returns the statistics as `ralph stats --json` prints them, with a short label of each group, and with the number of loops that cannot
/// be read and of groups that are left out.
pub(super) fn stats(state_dir: &StateDir, query: StatsQuery) -> Result<Value, StoreError> {
    let since_ms = query
        .hours
        .map(|hours| now_ms().saturating_sub(i64::from(hours) * HOUR_MS));
    let (mut stats, warnings) = collect(state_dir, query.by, since_ms)?;
    let omitted = stats.groups.len().saturating_sub(GROUPS_MAX);
    if query.by == GroupBy::Day {
        stats.groups.drain(..omitted);
    } else {
        stats.groups.truncate(GROUPS_MAX);
    }
    let mut value = serde_json::to_value(&stats).unwrap_or_default();
    for (group, shown) in stats
        .groups
        .iter()
        .zip(value["groups"].as_array_mut().into_iter().flatten())
    {
        shown["label"] = match query.by {
            GroupBy::Repository => json!(short_path(Path::new(&group.key))),
            _ => json!(group.key),
        };
    }
    value["groups_omitted"] = json!(omitted);
    value["unreadable"] = json!(warnings.len());
    Ok(value)
}
