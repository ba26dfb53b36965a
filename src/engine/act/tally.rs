//! Adds up the acts of one iteration.

use super::{Act, error_excerpt};
use crate::engine::event::AgentReport;
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::signals::fold_whitespace;
use crate::engine::usage::{Prices, Tokens, rounded_usd};

/// Maximum sum, in dollars. JSON cannot represent infinity.
pub(in crate::engine) const COST_MAX: f64 = 1e12;
/// Maximum number of distinct denials shown per iteration.
const DENIALS_SHOWN: usize = 3;
/// Maximum number of models counted separately. Tokens of further models are added to the last one.
const MODELS_MAX: usize = 16;
/// Maximum length of a session ID, in characters. Longer IDs are cut.
const SESSION_ID_MAX: usize = 200;
/// Maximum length of a denial's text, in characters. Longer texts are cut.
const DENIAL_MAX: usize = 300;

/// The cost, tokens, steps, denials and result of one iteration's acts.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct Tally {
    /// Whether any act was a stream event. If none was, the agent's output is plain text.
    has_events: bool,
    cost_usd: Option<f64>,
    tokens: Vec<(String, Tokens)>,
    /// Tokens used since the agent last reported a cost, by model.
    unbilled: Vec<(String, Tokens)>,
    steps: Option<u32>,
    /// Whether the model did anything.
    has_model_acts: bool,
    /// Whether the model called a tool.
    has_tool_calls: bool,
    /// Why the agent last retried a request.
    retry: Option<String>,
    /// Whether a tool call succeeded, other than the agent's own bookkeeping.
    has_worked: bool,
    denied: u32,
    denials: Vec<String>,
    session: Option<String>,
    unparsed: u32,
    final_message: Option<String>,
    error: Option<String>,
    reason: Option<AgentFailure>,
    finished: bool,
    run_ended: bool,
}

impl Tally {
    /// Adds an act to the sum. Returns `false` if the act should not be shown: a repeated or excess
    /// denial, or an invalid cost.
    pub(crate) fn add(&mut self, act: &Act<'_>) -> bool {
        self.has_events |= act.is_stream_event();
        self.has_model_acts |= act.is_by_model();
        self.has_tool_calls |= matches!(act, Act::ToolStarted { .. } | Act::ToolFinished { .. });
        match act {
            Act::Text(_)
            | Act::Thinking(_)
            | Act::TerminalOutput(_)
            | Act::RawOutput(_)
            | Act::ToolStarted { .. }
            | Act::NearLimit { .. }
            | Act::OtherEvent
            | Act::SideOutput(_) => {}
            Act::Retrying(why) => self.retry = Some(error_excerpt(why)),
            Act::ToolFinished { name, ok, .. } => {
                self.steps = Some(self.steps.unwrap_or(0).saturating_add(1));
                self.has_worked |= *ok && !is_bookkeeping(name);
            }
            Act::Denied(line) => return self.add_denial(line),
            Act::Cost(usd) if usd.is_finite() && *usd >= 0.0 => {
                self.cost_usd = Some((self.cost_usd.unwrap_or(0.0) + usd).min(COST_MAX));
                self.unbilled.clear();
            }
            Act::Cost(_) => return false,
            Act::TokensUsed { model, tokens } => self.add_tokens(model, *tokens),
            Act::SessionId(id) => {
                self.session = Some(id.chars().take(SESSION_ID_MAX).collect());
            }
            Act::Unparsed => self.unparsed = self.unparsed.saturating_add(1),
            Act::Finished(message) => {
                self.final_message = Some(message.clone().into_owned());
                // An agent may report more than one end. The last one counts, so drop an earlier
                // failure.
                (self.finished, self.error, self.reason) = (true, None, None);
            }
            Act::Failed { why, reason } => {
                // Only a successful run has a final message.
                (self.finished, self.final_message) = (false, None);
                self.error = Some(error_excerpt(why));
                self.reason = *reason;
            }
            Act::RunEnded => self.run_ended = true,
        }
        true
    }

    fn add_tokens(&mut self, model: &str, more: Tokens) {
        for list in [&mut self.tokens, &mut self.unbilled] {
            let known = list.iter().position(|(known, _)| known == model);
            match known.or_else(|| (list.len() >= MODELS_MAX).then_some(MODELS_MAX - 1)) {
                Some(at) => list[at].1 += more,
                None => list.push((model.to_owned(), more)),
            }
        }
    }

    fn add_denial(&mut self, line: &str) -> bool {
        self.denied = self.denied.saturating_add(1);
        let line = fold_whitespace(line).chars().take(DENIAL_MAX).collect();
        let is_new = self.denials.len() < DENIALS_SHOWN && !self.denials.contains(&line);
        if is_new {
            self.denials.push(line);
        }
        is_new
    }

    /// Returns whether any act came from a structured event stream.
    pub(crate) fn has_events(&self) -> bool {
        self.has_events
    }

    /// Returns whether the model called no tool.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_tool_calls
    }

    /// Returns whether the model did nothing at all.
    pub(crate) fn is_silent(&self) -> bool {
        !self.has_model_acts
    }

    /// Returns why the agent last retried a request; `None` if it did not.
    pub(crate) fn last_retry(&self) -> Option<&str> {
        self.retry.as_deref()
    }

    /// Returns the agent's final message; `None` if the event stream marked none or the message is
    /// blank.
    pub(crate) fn final_message(&self) -> Option<&str> {
        self.final_message
            .as_deref()
            .filter(|message| !message.trim().is_empty())
    }

    /// Returns the dollars spent so far: the cost that the agent reported, plus the price of the
    /// tokens used since that report.
    ///
    /// `model` is the model for tokens reported without one. Returns `None` if the agent reported
    /// no cost and a model it used has no price.
    pub(crate) fn cost(&self, prices: &Prices, model: &str) -> Option<f64> {
        let dollars = |(own, tokens): &(String, Tokens)| {
            prices.cost(if own.is_empty() { model } else { own }, tokens)
        };
        let since = self.unbilled.iter().map(dollars).sum::<Option<f64>>();
        let cost = match self.cost_usd {
            Some(reported) => Some(reported + since.unwrap_or(0.0)),
            None => since.filter(|_| !self.unbilled.is_empty()),
        };
        cost.map(rounded_usd)
    }

    /// Returns the total tokens of all models so far; `None` if the agent does not report tokens.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        let mut all = Tokens::default();
        self.tokens.iter().for_each(|(_, tokens)| all += *tokens);
        (!self.tokens.is_empty()).then_some(all)
    }

    /// Adds the sums to `report`. The cost is added to a cost that `report` already contains. The
    /// error is replaced only if an act reported one.
    pub(crate) fn add_to(self, report: &mut AgentReport, prices: &Prices, model: &str) {
        report.cost_usd = match (report.cost_usd, self.cost(prices, model)) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        report.tokens = self.tokens();
        report.steps = self.steps;
        report.denied = self.denied;
        report.unparsed = self.unparsed;
        report.run_ended = self.run_ended;
        let failed = self.error.is_some();
        // An event stream reports every tool call. Plain text may not, so a missing tool call
        // proves nothing there.
        let reports_tools = self.steps.is_some() || self.run_ended;
        let denied_everything = self.denied > 0 && !self.has_worked && reports_tools;
        // Some agents end their run at the first denial. If they worked before it, nothing failed.
        let ended_by_denial = self.has_worked
            && self
                .reason
                .is_some_and(|reason| reason.kind == FailureKind::Denied);
        report.reason = match self.reason {
            _ if ended_by_denial => None,
            None if failed => Some(FailureKind::Crashed.into()),
            None if denied_everything => Some(FailureKind::Denied.into()),
            reason => reason,
        };
        report.finished = (self.finished && report.reason.is_none()) || ended_by_denial;
        report.session = self.session;
        report.denial = self.denials.first().cloned();
        report.denials = self.denials;
        report.error = self.error.or(report.error.take());
    }
}

/// A tool whose name contains one of these words only keeps the agent's own notes. Permissions do
/// not apply to it, so its success does not show that the agent was allowed anything.
const BOOKKEEPING_TOOLS: [&str; 3] = ["todo", "plan", "think"];

fn is_bookkeeping(tool: &str) -> bool {
    let tool = tool.to_lowercase();
    BOOKKEEPING_TOOLS.iter().any(|part| tool.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(acts: &[Act<'_>]) -> (Tally, Vec<bool>) {
        let mut tally = Tally::default();
        let shown = acts.iter().map(|act| tally.add(act)).collect();
        (tally, shown)
    }

    fn report(acts: &[Act<'_>]) -> AgentReport {
        let mut report = AgentReport::default();
        tally(acts).0.add_to(&mut report, &Prices::default(), "");
        report
    }

    #[test]
    fn an_agent_that_reports_nothing_leaves_cost_and_steps_unknown() {
        assert_eq!(report(&[Act::Text("hello".into())]), AgentReport::default());
    }

    #[test]
    fn costs_and_steps_add_up() {
        let tool = || Act::ToolFinished {
            name: "edit".into(),
            about: "a.rs".into(),
            ok: true,
            error: "".into(),
            lines: None,
            ms: None,
        };
        let sum = report(&[Act::Cost(0.25), tool(), Act::Cost(0.5), tool()]);
        assert_eq!((sum.cost_usd, sum.steps), (Some(0.75), Some(2)));
        let mut report = AgentReport {
            cost_usd: Some(1.0),
            ..AgentReport::default()
        };
        tally(&[Act::Cost(0.5)])
            .0
            .add_to(&mut report, &Prices::default(), "");
        assert_eq!(
            report.cost_usd,
            Some(1.5),
            "a cost from the task directory is added"
        );
    }

    #[test]
    fn tokens_used_since_the_last_reported_cost_are_priced() {
        let price = crate::engine::usage::Price {
            input: 1.0,
            output: 2.0,
            ..Default::default()
        };
        let prices = Prices([("m".to_owned(), price)].into());
        let used = || Act::TokensUsed {
            model: "m".into(),
            tokens: Tokens {
                input: 1_000_000,
                ..Tokens::default()
            },
        };
        let cost = |acts: &[Act<'_>]| tally(acts).0.cost(&prices, "");
        assert_eq!(cost(&[used()]), Some(1.0));
        assert_eq!(
            cost(&[used(), Act::Cost(0.5)]),
            Some(0.5),
            "the reported cost replaces the price"
        );
        assert_eq!(
            cost(&[used(), Act::Cost(0.5), used()]),
            Some(1.5),
            "later tokens are priced"
        );
        let other = Act::TokensUsed {
            model: "n".into(),
            tokens: Tokens::default(),
        };
        assert_eq!(cost(&[used(), other]), None);
    }

    #[test]
    fn an_invalid_cost_is_ignored_and_a_huge_one_is_capped() {
        for usd in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(report(&[Act::Cost(usd)]).cost_usd, None, "{usd}");
        }
        let most = [Act::Cost(f64::MAX), Act::Cost(f64::MAX)];
        assert_eq!(
            report(&most).cost_usd,
            Some(COST_MAX),
            "JSON cannot hold infinity"
        );
    }

    #[test]
    fn a_denial_is_shown_once_and_every_denial_is_counted() {
        let denied = |line: &'static str| Act::Denied(line.into());
        let acts = [
            denied("no\tBash"),
            denied("no Bash"),
            denied("b"),
            denied("c"),
            denied("d"),
            denied("b"),
        ];
        let (sum, shown) = tally(&acts);
        assert_eq!(shown, [true, false, true, true, false, false]);
        let mut report = AgentReport::default();
        sum.add_to(&mut report, &Prices::default(), "");
        assert_eq!(
            (report.denied, report.denial.as_deref()),
            (6, Some("no Bash"))
        );
    }

    #[test]
    fn an_agent_denied_everything_it_tried_has_failed() {
        let denied = || Act::Denied("no edit".into());
        let denied_everything =
            |acts: &[Act<'static>]| report(acts).reason == Some(FailureKind::Denied.into());
        let tool = |name: &'static str, ok| Act::ToolFinished {
            name: name.into(),
            about: "a.rs".into(),
            ok,
            error: "".into(),
            lines: None,
            ms: None,
        };
        let edit = |ok| tool("edit", ok);
        assert!(denied_everything(&[
            denied(),
            edit(false),
            Act::Finished("no".into())
        ]));
        assert!(
            denied_everything(&[denied(), Act::Finished("no".into()), Act::RunEnded]),
            "the tool never started"
        );
        assert!(!denied_everything(&[
            denied(),
            edit(true),
            Act::Finished("yes".into()),
            Act::RunEnded
        ]));
        assert!(!denied_everything(&[
            denied(),
            Act::Text("plain text".into())
        ]));
        assert!(
            !denied_everything(&[tool("Read", true), denied(), Act::RunEnded]),
            "it was allowed to read"
        );
        assert!(
            denied_everything(&[tool("TodoWrite", true), denied(), Act::RunEnded]),
            "its own list needs no permission"
        );
    }

    #[test]
    fn an_agent_that_worked_until_a_denial_ended_its_run_has_not_failed() {
        let edit = Act::ToolFinished {
            name: "edit".into(),
            about: "a.rs".into(),
            ok: true,
            error: "".into(),
            lines: None,
            ms: None,
        };
        let ended = || Act::Failed {
            why: "insufficient permission".into(),
            reason: Some(FailureKind::Denied.into()),
        };
        let worked = report(&[edit, Act::Denied("ls".into()), ended()]);
        assert_eq!((worked.finished, worked.reason), (true, None));
        let idle = report(&[Act::Denied("ls".into()), ended()]);
        assert_eq!(idle.reason, Some(FailureKind::Denied.into()));
    }

    #[test]
    fn a_blank_final_message_is_none() {
        assert_eq!(
            tally(&[Act::Finished(" \n".into())]).0.final_message(),
            None
        );
        assert_eq!(
            tally(&[Act::Finished("bye".into())]).0.final_message(),
            Some("bye")
        );
    }

    #[test]
    fn the_last_of_several_ends_counts() {
        let failed = || Act::Failed {
            why: "limit".into(),
            reason: Some(FailureKind::UsageLimit.into()),
        };
        let (sum, _) = tally(&[Act::Finished("done".into()), failed()]);
        assert_eq!(sum.final_message(), None);
        let ended = report(&[Act::Finished("done".into()), failed()]);
        assert_eq!(
            (ended.finished, ended.reason),
            (false, Some(FailureKind::UsageLimit.into()))
        );
        let recovered = report(&[failed(), Act::Finished("done".into())]);
        assert_eq!(
            (recovered.finished, recovered.reason, recovered.error),
            (true, None, None)
        );
    }

    #[test]
    fn a_reported_error_replaces_the_last_lines() {
        let mut report = AgentReport {
            error: Some("last lines".into()),
            ..AgentReport::default()
        };
        tally(&[]).0.add_to(&mut report, &Prices::default(), "");
        assert_eq!(report.error.as_deref(), Some("last lines"));
        tally(&[Act::Failed {
            why: "no login".into(),
            reason: None,
        }])
        .0
        .add_to(&mut report, &Prices::default(), "");
        assert_eq!(report.error.as_deref(), Some("no login"));
    }
}
