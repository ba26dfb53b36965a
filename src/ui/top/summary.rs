//! What `ralph top` shows about a loop in the list of all loops.

use crate::engine::event::{CheckReport, Request};
use crate::engine::format::dollars;
use crate::engine::iteration::{Iteration, IterationEnd};
use crate::engine::{Liveness, Outcome, Phase, State, Status};
use crate::lifecycle::session;
use crate::store::{EndedLoop, LoopView};
use crate::ui::event_line::verdict;
use crate::ui::{one_line, outcome_text, status};

/// The result of one iteration, as one mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IterationMark {
    /// Every check is green.
    Green,
    /// Some checks are green.
    Partial,
    /// Every check that ran is red.
    Red,
    /// No check ran.
    Unchecked,
    /// The agent failed.
    Failed,
    /// Ralph was killed during the iteration.
    Interrupted,
    Running,
}

impl IterationMark {
    /// Returns the mark of an iteration whose agent has ended.
    pub(super) fn new(record: &Iteration, checks: &[Option<CheckReport>]) -> Self {
        let ran = checks.iter().flatten().count();
        let green = checks.iter().flatten().filter(|one| one.is_green()).count();
        match () {
            () if record.end == IterationEnd::Interrupted => Self::Interrupted,
            () if record.is_failure() => Self::Failed,
            () if ran == 0 => Self::Unchecked,
            () if green == checks.len() => Self::Green,
            () if green == 0 => Self::Red,
            () => Self::Partial,
        }
    }

    /// Returns the mark of an iteration whose agent has not ended.
    pub(super) fn of_open(is_running: bool) -> Self {
        if is_running {
            Self::Running
        } else {
            Self::Interrupted
        }
    }

    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Green => "●",
            Self::Partial => "◐",
            Self::Red => "○",
            Self::Unchecked => "·",
            Self::Failed => "✘",
            Self::Interrupted => "!",
            Self::Running => "▶",
        }
    }
}

/// A check in a loop's details: its command, whether it is green, and its result in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CheckLine {
    pub(super) command: String,
    pub(super) green: Option<bool>,
    pub(super) text: String,
}

/// What only the whole state tells. It is read for loops that have not ended, and for the rows on
/// the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LoopDetails {
    pub(super) task: String,
    pub(super) agent: String,
    /// The last iterations, oldest first.
    pub(super) strip: Vec<IterationMark>,
    pub(super) checks: Vec<CheckLine>,
    /// The line that says why a check is red.
    pub(super) failing_line: Option<String>,
    pub(super) question: Option<String>,
    /// What to do next.
    pub(super) advice: Option<String>,
    /// The limits with larger values, as arguments of `ralph set`.
    pub(super) limits: String,
    /// Whether `ralph resume` would need a terminal.
    pub(super) needs_terminal: bool,
}

/// A loop in the list. All texts are on one line, without control characters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoopSummary {
    pub(super) name: String,
    pub(super) parent: Option<String>,
    /// The top of its repository.
    pub(super) repository: String,
    pub(super) status: Status,
    /// The status in one or two words.
    pub(super) state: String,
    pub(super) iteration: String,
    /// Dollars spent, for display; `None` if unknown.
    pub(super) cost: Option<String>,
    /// The time at which it was created, or at which it ended, in milliseconds since 1970.
    pub(super) since_ms: i64,
    /// What it is doing, or how it ended.
    pub(super) doing: String,
    pub(super) details: Option<LoopDetails>,
    /// Whether a newer loop took its name. Its own name then is that of its directory.
    pub(super) is_archived: bool,
}

/// What a running agent has done since the last event of its journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LiveNumbers {
    /// Dollars that the running iteration has spent; `None` if unknown.
    pub(super) cost_usd: Option<f64>,
    /// The newest tool call or line of text; empty if there is none.
    pub(super) doing: String,
}

impl LoopSummary {
    /// Returns the summary of a loop whose state was read.
    pub(super) fn new(
        view: &LoopView,
        liveness: Liveness,
        repository: String,
        live: &LiveNumbers,
    ) -> Self {
        let LoopView { header, state, .. } = view;
        let status = state.status(liveness);
        let is_running = matches!(status, Status::Running | Status::Starting);
        Self {
            name: header.name.clone(),
            parent: header.parent.clone(),
            repository,
            status,
            state: state_words(state, liveness),
            iteration: short_iteration(&state.iteration_label(state.iteration)),
            cost: cost(state, live.cost_usd),
            since_ms: if is_running {
                header.created_ms
            } else {
                state.wall_ms
            },
            doing: doing(state, liveness, &live.doing),
            details: Some(details(view, liveness)),
            is_archived: false,
        }
    }

    /// Returns the summary of a loop that has ended, without details.
    pub(super) fn ended(ended: EndedLoop, repository: String) -> Self {
        Self {
            name: ended.name,
            parent: ended.parent,
            repository,
            status: ended.status,
            state: ended.status.as_str().to_owned(),
            iteration: short_iteration(&ended.iteration),
            cost: ended.cost.map(|cost| short_cost(&cost)),
            since_ms: ended.ended_ms,
            doing: one_line(&ended.detail),
            details: None,
            is_archived: false,
        }
    }

    /// Returns the summary of a loop that cannot be read.
    pub(super) fn unreadable(name: &str, error: &str, changed_ms: i64) -> Self {
        Self {
            name: name.to_owned(),
            parent: None,
            repository: "unreadable".into(),
            status: Status::Crashed,
            state: "unreadable".into(),
            iteration: "?".into(),
            cost: None,
            since_ms: changed_ms,
            doing: one_line(error),
            details: None,
            is_archived: false,
        }
    }

    /// Returns the summary of an archived loop, whose directory has this name.
    pub(super) fn archived(self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_archived: true,
            ..self
        }
    }

    /// Returns whether a process works on the loop.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.status, Status::Starting | Status::Running)
    }

    /// Returns whether the loop waits for a person.
    pub(super) fn needs_person(&self) -> bool {
        let waits = matches!(
            self.status,
            Status::Paused | Status::Blocked | Status::Waiting | Status::Crashed
        );
        waits && !self.is_archived
    }
}

/// Returns the iteration without the number that counts against the limit.
fn short_iteration(label: &str) -> String {
    match label.split_once(", counted ") {
        Some((number, counted)) => {
            let max = counted.split_once('/').map_or("", |(_, max)| max);
            format!("{number}/{max}")
        }
        None => label.to_owned(),
    }
}

fn short_cost(cost: &str) -> String {
    cost.replacen("at least ", "≥", 1)
}

/// Returns the cost with that of the running iteration.
fn cost(state: &State, live_usd: Option<f64>) -> Option<String> {
    match live_usd.filter(|usd| *usd > 0.0) {
        Some(usd) if state.cost_unknown => {
            Some(short_cost(&format!("≥{}", dollars(state.cost_usd + usd))))
        }
        Some(usd) => Some(dollars(state.cost_usd + usd)),
        None => state.cost_text().map(|cost| short_cost(&cost)),
    }
}

fn state_words(state: &State, liveness: Liveness) -> String {
    let status = state.status(liveness);
    let words = match (status, &state.phase, state.request) {
        (Status::Running, _, Request::Pause | Request::PauseNow) => "pausing",
        (Status::Running, _, Request::Stop | Request::StopNow) => "stopping",
        (
            Status::Running,
            Phase::Resting {
                wall_ms: Some(_), ..
            },
            _,
        ) => "resting",
        _ => status.as_str(),
    };
    words.to_owned()
}

/// Says what a running loop is doing, or why one is not running.
fn doing(state: &State, liveness: Liveness, live: &str) -> String {
    let text = match (state.status(liveness), &state.phase) {
        (Status::Running, Phase::Running { .. }) if !live.is_empty() => live.to_owned(),
        (Status::Running, _) => status::activity(state).unwrap_or_default(),
        (Status::Crashed, _) => format!("killed in iteration {}", state.iteration),
        _ => state
            .outcome_summary()
            .map(|outcome| outcome.detail)
            .unwrap_or_default(),
    };
    one_line(&text)
}

/// Returns what a blocked agent asks; `None` if it asks nothing.
fn question(state: &State) -> Option<String> {
    match state.outcome() {
        Some(Outcome::Blocked { .. }) => state.outcome_summary().map(|outcome| outcome.why),
        _ => state.question.clone(),
    }
}

fn details(view: &LoopView, liveness: Liveness) -> LoopDetails {
    let LoopView { header, state, .. } = view;
    let mut strip: Vec<_> = state
        .recent
        .iter()
        .map(|one| IterationMark::new(one, &one.checks))
        .collect();
    let is_open = state.recent.back().map(|one| one.number) != Some(state.iteration);
    if is_open && state.iteration > 0 {
        strip.push(IterationMark::of_open(liveness == Liveness::Running));
    }
    let checks = state.plan.proof.checks.iter().zip(&state.checks);
    let mut red = state.checks.iter().flatten().filter(|one| !one.is_green());
    LoopDetails {
        task: status::task(state),
        agent: one_line(&state.agent().name),
        strip,
        checks: checks
            .map(|(check, report)| CheckLine {
                command: one_line(&check.command),
                green: report.as_ref().map(CheckReport::is_green),
                text: report
                    .as_ref()
                    .map_or_else(|| "not run yet".into(), |report| one_line(&verdict(report))),
            })
            .collect(),
        failing_line: red.find_map(|report| report.line.as_deref()).map(one_line),
        question: question(state).map(|text| one_line(&text)),
        advice: outcome_text::advice(header, state, liveness).map(|text| one_line(&text)),
        limits: state.raised_limits().unwrap_or_else(|| {
            let max = state.plan.limits.iterations.unwrap_or(state.counted);
            format!("max-iterations={}", max.saturating_add(10))
        }),
        needs_terminal: !header.background
            && liveness == Liveness::Idle
            && !session::is_paused(state),
    }
}
