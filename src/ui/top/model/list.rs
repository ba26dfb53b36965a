//! The list of loops: filtered, grouped by repository, each child loop below its parent.

use super::super::summary::LoopSummary;
use crate::engine::Status;
use crate::ui::loop_order::{in_order, natural_key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which loops are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum StateFilter {
    #[default]
    All,
    Running,
    NeedsPerson,
    Ended,
}

impl StateFilter {
    pub(in super::super) fn next(self) -> Self {
        match self {
            Self::All => Self::Running,
            Self::Running => Self::NeedsPerson,
            Self::NeedsPerson => Self::Ended,
            Self::Ended => Self::All,
        }
    }

    pub(in super::super) fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Running => "running",
            Self::NeedsPerson => "waiting for you",
            Self::Ended => "ended",
        }
    }

    fn contains(self, one: &LoopSummary) -> bool {
        match self {
            Self::All => true,
            Self::Running => one.is_running(),
            Self::NeedsPerson => one.needs_person(),
            Self::Ended => !one.is_running() && !one.needs_person(),
        }
    }
}

/// A row of the list.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum ListRow {
    /// A repository, with the number of its loops.
    Repository {
        name: String,
        count: usize,
        is_folded: bool,
    },
    Loop {
        summary: Arc<LoopSummary>,
        /// How many parents it has in the list.
        depth: usize,
        /// The number of child loops that are not shown.
        hidden: usize,
        has_children: bool,
    },
}

impl ListRow {
    /// Returns what identifies the row while the list changes.
    pub(in super::super) fn key(&self) -> String {
        match self {
            Self::Repository { name, .. } => repository_key(name),
            Self::Loop { summary, .. } => summary.name.clone(),
        }
    }
}

/// Returns the key of a repository. No loop's name contains a slash.
fn repository_key(name: &str) -> String {
    format!("/{name}")
}

/// The order of loops: those that run, those that wait for a person, then all others.
fn rank(one: &LoopSummary) -> u8 {
    match one.status {
        Status::Starting | Status::Running => 0,
        _ if one.needs_person() => 1,
        _ => 2,
    }
}

/// Returns the rows of the list.
pub(in super::super) fn rows(
    loops: &[Arc<LoopSummary>],
    filter: StateFilter,
    search: &str,
    folded: &BTreeSet<String>,
) -> Vec<ListRow> {
    let search = search.to_lowercase();
    let is_listed = |one: &&Arc<LoopSummary>| filter.contains(one) && matches(one, &search);
    let mut listed: Vec<&Arc<LoopSummary>> = loops.iter().filter(is_listed).collect();
    listed.sort_by_cached_key(|one| (rank(one), -one.since_ms, natural_key(&one.name)));
    let names: Vec<(&str, Option<&str>)> = listed
        .iter()
        .map(|one| (&one.name[..], one.parent.as_deref()))
        .collect();
    // A child loop belongs to the group of the loop at the top of its tree.
    let mut groups: Vec<(&str, Vec<(usize, usize)>)> = Vec::new();
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    let mut group = 0;
    for (depth, at) in in_order(&names) {
        if depth == 0 {
            let repository = &listed[at].repository[..];
            group = *by_name.entry(repository).or_insert_with(|| {
                groups.push((repository, Vec::new()));
                groups.len() - 1
            });
        }
        groups[group].1.push((depth, at));
    }
    let mut rows = Vec::new();
    for (name, members) in groups {
        let is_folded = folded.contains(&repository_key(name));
        rows.push(ListRow::Repository {
            name: name.to_owned(),
            count: members.len(),
            is_folded,
        });
        if !is_folded {
            add_members(&mut rows, &listed, &members, folded);
        }
    }
    rows
}

fn add_members(
    rows: &mut Vec<ListRow>,
    listed: &[&Arc<LoopSummary>],
    members: &[(usize, usize)],
    folded: &BTreeSet<String>,
) {
    let mut at = 0;
    while let Some((depth, index)) = members.get(at) {
        let below = members[at + 1..].iter();
        let descendants = below.take_while(|(other, _)| other > depth).count();
        let summary = listed[*index];
        let hidden = if folded.contains(&summary.name) {
            descendants
        } else {
            0
        };
        rows.push(ListRow::Loop {
            summary: Arc::clone(summary),
            depth: *depth,
            hidden,
            has_children: descendants > 0,
        });
        at += 1 + hidden;
    }
}

/// Returns whether a loop contains what the user searches for, in any case.
fn matches(one: &LoopSummary, search: &str) -> bool {
    let contains = |text: &str| text.to_lowercase().contains(search);
    let details = one.details.as_ref();
    search.is_empty()
        || [&one.name, &one.repository, &one.state, &one.doing]
            .into_iter()
            .any(|text| contains(text))
        || details.is_some_and(|details| contains(&details.task))
}
