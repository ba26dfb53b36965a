//! What an agent does while it works, as far as it tells, and what an iteration's acts come to.

use super::event::Report;
use super::failure::{Kind, Reason};
use super::plain_text::plain;
use super::signals::fold;
use super::usage::{Prices, Tokens};
use std::borrow::Cow;

/// Something that an agent did. Acts are shown as they come and never written to the journal one by one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Act<'a> {
    /// It said something; a piece of text, not always a whole line.
    Said(Cow<'a, str>),
    /// It thought something.
    Thought(Cow<'a, str>),
    /// It painted on its terminal; a piece of what a terminal understands.
    Painted(Cow<'a, [u8]>),
    /// It began to use a tool.
    BeganTool {
        /// Which.
        name: Cow<'a, str>,
        /// On what, in a few words.
        about: Cow<'a, str>,
    },
    /// It used a tool: one step.
    UsedTool {
        /// Which.
        name: Cow<'a, str>,
        /// On what, in a few words.
        about: Cow<'a, str>,
        /// Whether that went well.
        ok: bool,
    },
    /// It was not allowed something, in its own words.
    Denied(Cow<'a, str>),
    /// It spent so many dollars more.
    Cost(f64),
    /// Its model took so many tokens more.
    Used {
        /// Which model; empty where it does not say.
        model: Cow<'a, str>,
        /// How many.
        tokens: Tokens,
    },
    /// It gave its session this name.
    Session(Cow<'a, str>),
    /// Its service did not answer, and it tries again: neither a failure nor progress.
    Retrying(Cow<'a, str>),
    /// Its account is near a limit of what it may use.
    NearLimit {
        /// Which, in words.
        limit: Cow<'a, str>,
        /// How much of it is used, 1 being all.
        used: Option<f64>,
        /// When it begins anew, in milliseconds since 1970.
        until_ms: Option<i64>,
    },
    /// A line beside its stream, such as a warning. Nobody's words: no signal is read here.
    Noise(Cow<'a, str>),
    /// A piece of its stream as it is, before what it means.
    Raw(Cow<'a, [u8]>),
    /// A line of its stream that this ralph does not understand.
    Strange,
    /// It said its final words: promises are read here.
    Finished(Cow<'a, str>),
    /// It failed.
    Failed {
        /// In its own words.
        why: Cow<'a, str>,
        /// In one word, where that is known.
        reason: Option<Reason>,
    },
    /// Its whole run is over; only its process is still there.
    Over,
}

impl Act<'_> {
    /// It is at work, and there is nothing to show for it yet.
    pub fn sign_of_life() -> Self {
        Self::Thought(Cow::Borrowed(""))
    }

    /// Whether it is more than a sign of life.
    pub fn is_news(&self) -> bool {
        *self != Self::sign_of_life()
    }

    /// Whether it is an event of a stream, and not a line beside it.
    pub fn is_event(&self) -> bool {
        !matches!(
            self,
            Self::Raw(_) | Self::Retrying(_) | Self::Denied(_) | Self::Noise(_) | Self::Strange
        )
    }

    /// Whether it gets on. What only passes the time does not put off the end of patience.
    pub fn is_progress(&self) -> bool {
        !matches!(
            self,
            Self::Retrying(_) | Self::Noise(_) | Self::Raw(_) | Self::Strange
        )
    }
}

/// How many different denials of one iteration are shown.
const DENIALS_SHOWN: usize = 3;
/// Nobody spends more. Sums stay finite, so that a journal can hold them.
pub(super) const COST_MAX: f64 = 1e12;
/// More models than these are not told apart.
const MODELS_MAX: usize = 16;
/// No agent's sessions have longer names.
const SESSION_MAX: usize = 200;
/// A denial is a line; what is longer is cut.
const DENIAL_MAX: usize = 300;
/// More than this is no longer a reason, but a log.
const ERROR_MAX: usize = 500;
/// How many of an agent's last lines tell why it failed.
const ERROR_LINES: usize = 5;

/// What the acts of one iteration come to.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Tally {
    /// Whether there was any event: one that prints none speaks in plain text.
    spoke: bool,
    cost_usd: Option<f64>,
    tokens: Vec<(String, Tokens)>,
    /// Those since its last figure of dollars.
    unbilled: Vec<(String, Tokens)>,
    steps: Option<u32>,
    /// Whether a tool did something that an agent may be kept from.
    worked: bool,
    denied: u32,
    denials: Vec<String>,
    session: Option<String>,
    strange: u32,
    final_words: Option<String>,
    error: Option<String>,
    reason: Option<Reason>,
    finished: bool,
    over: bool,
}

impl Tally {
    /// Counts an act; false if it is not worth a word, because it was said before or too often.
    pub fn count(&mut self, act: &Act<'_>) -> bool {
        self.spoke |= act.is_event();
        match act {
            Act::Said(_)
            | Act::Thought(_)
            | Act::Painted(_)
            | Act::Raw(_)
            | Act::BeganTool { .. }
            | Act::Retrying(_)
            | Act::NearLimit { .. }
            | Act::Noise(_) => {}
            Act::UsedTool { name, ok, .. } => {
                self.steps = Some(self.steps.unwrap_or(0).saturating_add(1));
                self.worked |= *ok && !only_reads(name);
            }
            Act::Denied(line) => return self.deny(line),
            Act::Cost(usd) if usd.is_finite() && *usd >= 0.0 => {
                self.cost_usd = Some((self.cost_usd.unwrap_or(0.0) + usd).min(COST_MAX));
                self.unbilled.clear();
            }
            Act::Cost(_) => return false,
            Act::Used { model, tokens } => self.use_tokens(model, *tokens),
            Act::Session(id) => self.session = Some(plain(id).chars().take(SESSION_MAX).collect()),
            Act::Strange => self.strange = self.strange.saturating_add(1),
            Act::Finished(words) => {
                self.final_words = Some(words.clone().into_owned());
                // Whatever went wrong before was mended: an agent may come to several ends.
                (self.finished, self.error, self.reason) = (true, None, None);
            }
            Act::Failed { why, reason } => {
                // Final words are those of a run that ended well.
                (self.finished, self.final_words) = (false, None);
                self.error = Some(last_words(why));
                self.reason = *reason;
            }
            Act::Over => self.over = true,
        }
        true
    }

    fn use_tokens(&mut self, model: &str, more: Tokens) {
        for list in [&mut self.tokens, &mut self.unbilled] {
            let known = list.iter().position(|(known, _)| known == model);
            // Past so many, a model is not told from the last one.
            match known.or_else(|| (list.len() >= MODELS_MAX).then_some(MODELS_MAX - 1)) {
                Some(at) => list[at].1 += more,
                None => list.push((model.to_owned(), more)),
            }
        }
    }

    fn deny(&mut self, line: &str) -> bool {
        self.denied = self.denied.saturating_add(1);
        let line: String = plain(&fold(line)).chars().take(DENIAL_MAX).collect();
        let news = self.denials.len() < DENIALS_SHOWN && !self.denials.contains(&line);
        if news {
            self.denials.push(line);
        }
        news
    }

    /// Whether there was any event of a stream.
    pub fn spoke(&self) -> bool {
        self.spoke
    }

    /// The final words, if they were told apart from the rest.
    pub fn final_words(&self) -> Option<&str> {
        self.final_words
            .as_deref()
            .filter(|words| !words.trim().is_empty())
    }

    /// Dollars so far: by the agent's own figure, and by their price for tokens since then. Without such a figure, one
    /// model without a price makes the whole unknown.
    pub fn cost(&self, prices: &Prices, model: &str) -> Option<f64> {
        let dollars = |(own, tokens): &(String, Tokens)| {
            prices.cost(if own.is_empty() { model } else { own }, tokens)
        };
        let since = self.unbilled.iter().map(dollars).sum::<Option<f64>>();
        match self.cost_usd {
            Some(told) => Some(told + since.unwrap_or(0.0)),
            None => since.filter(|_| !self.unbilled.is_empty()),
        }
    }

    /// Tokens so far, of all models; none where nobody counts them.
    pub fn tokens(&self) -> Option<Tokens> {
        let mut all = Tokens::default();
        self.tokens.iter().for_each(|(_, tokens)| all += *tokens);
        (!self.tokens.is_empty()).then_some(all)
    }

    /// Adds what the acts came to. What the report has already comes from elsewhere, and stays.
    pub fn add_to(self, report: &mut Report, prices: &Prices, model: &str) {
        report.cost_usd = match (report.cost_usd, self.cost(prices, model)) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        report.tokens = self.tokens();
        report.steps = self.steps;
        report.denied = self.denied;
        report.strange = self.strange;
        report.over = self.over;
        let failed = self.error.is_some();
        // A stream tells of every tool that was used; words for people may keep silent.
        let told_all = self.steps.is_some() || self.over;
        let kept_from_all = self.denied > 0 && !self.worked && told_all;
        report.reason = match self.reason {
            None if failed => Some(Kind::Crashed.into()),
            None if kept_from_all => Some(Kind::Denied.into()),
            reason => reason,
        };
        report.finished = self.finished && report.reason.is_none();
        report.session = self.session;
        report.denial = self.denials.into_iter().next();
        report.error = self.error.or(report.error.take());
    }
}

/// Words in the names of tools that change nothing.
const READING: [&str; 12] = [
    "read", "grep", "glob", "ls", "list", "search", "view", "find", "fetch", "todo", "plan",
    "think",
];

/// Whether a tool of this name changes nothing, as far as names tell.
fn only_reads(name: &str) -> bool {
    let name = name.to_lowercase();
    READING.iter().any(|word| name.contains(word))
}

/// Words by which programs say what is wrong.
const TELLING: [&str; 12] = [
    "error",
    "unknown",
    "unrecognized",
    "invalid",
    "denied",
    "not found",
    "not valid",
    "unauthorized",
    "forbidden",
    "expired",
    "refused",
    "cannot",
];

/// The last lines of a text that say something: why an agent failed, as a rule. Where a help or a trace of the
/// stack comes after the reason, the reason comes first here.
pub fn last_words(text: &str) -> String {
    let lines = text.lines().map(|line| plain(line.trim_end()).into_owned());
    let mut lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
    let last = lines.split_off(lines.len().saturating_sub(ERROR_LINES));
    let is_telling = |line: &&String| {
        TELLING
            .iter()
            .any(|word| line.to_lowercase().contains(word))
    };
    let reason = lines
        .iter()
        .rev()
        .find(is_telling)
        .filter(|_| !last.iter().any(|line| is_telling(&line)));
    match reason {
        None => end_of(&last.join("\n"), ERROR_MAX),
        Some(reason) => {
            let reason: String = reason.chars().take(ERROR_MAX / 2).collect();
            format!(
                "{reason}\n…\n{}",
                end_of(&last[1..].join("\n"), ERROR_MAX / 2)
            )
        }
    }
}

/// The end of a text, with a mark where it was cut.
fn end_of(text: &str, max: usize) -> String {
    match text.chars().count().saturating_sub(max) {
        0 => text.to_owned(),
        dropped => std::iter::once('…')
            .chain(text.chars().skip(dropped + 1))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(acts: &[Act<'_>]) -> (Tally, Vec<bool>) {
        let mut tally = Tally::default();
        let shown = acts.iter().map(|act| tally.count(act)).collect();
        (tally, shown)
    }

    fn report(acts: &[Act<'_>]) -> Report {
        let mut report = Report::default();
        tally(acts).0.add_to(&mut report, &Prices::default(), "");
        report
    }

    #[test]
    fn an_agent_that_tells_nothing_leaves_cost_and_steps_unknown() {
        assert_eq!(report(&[Act::Said("hello".into())]), Report::default());
    }

    #[test]
    fn costs_and_steps_add_up() {
        let tool = || Act::UsedTool {
            name: "edit".into(),
            about: "a.rs".into(),
            ok: true,
        };
        let sum = report(&[Act::Cost(0.25), tool(), Act::Cost(0.5), tool()]);
        assert_eq!((sum.cost_usd, sum.steps), (Some(0.75), Some(2)));
        let mut report = Report {
            cost_usd: Some(1.0),
            ..Report::default()
        };
        tally(&[Act::Cost(0.5)])
            .0
            .add_to(&mut report, &Prices::default(), "");
        assert_eq!(
            report.cost_usd,
            Some(1.5),
            "what the task directory says is beside it"
        );
    }

    #[test]
    fn tokens_since_the_last_figure_are_counted_by_their_price() {
        let price = super::super::usage::Price {
            input: 1.0,
            output: 2.0,
            ..Default::default()
        };
        let prices = Prices([("m".to_owned(), price)].into());
        let used = || Act::Used {
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
            "its own figure holds"
        );
        assert_eq!(
            cost(&[used(), Act::Cost(0.5), used()]),
            Some(1.5),
            "and what came after is not free"
        );
        let other = Act::Used {
            model: "n".into(),
            tokens: Tokens::default(),
        };
        assert_eq!(cost(&[used(), other]), None);
    }

    #[test]
    fn a_cost_that_is_none_does_not_count() {
        for usd in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(report(&[Act::Cost(usd)]).cost_usd, None, "{usd}");
        }
        let most = [Act::Cost(f64::MAX), Act::Cost(f64::MAX)];
        assert_eq!(
            report(&most).cost_usd,
            Some(COST_MAX),
            "the journal cannot hold what is without end"
        );
    }

    #[test]
    fn a_denial_is_news_once_and_all_are_counted() {
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
        let mut report = Report::default();
        sum.add_to(&mut report, &Prices::default(), "");
        assert_eq!(
            (report.denied, report.denial.as_deref()),
            (6, Some("no Bash"))
        );
    }

    #[test]
    fn who_was_kept_from_all_that_it_tried_did_nothing() {
        let denied = || Act::Denied("no edit".into());
        let kept = |acts: &[Act<'static>]| report(acts).reason == Some(Kind::Denied.into());
        let edit = |ok| Act::UsedTool {
            name: "edit".into(),
            about: "a.rs".into(),
            ok,
        };
        assert!(kept(&[denied(), edit(false), Act::Finished("no".into())]));
        assert!(
            kept(&[denied(), Act::Finished("no".into()), Act::Over]),
            "a tool that never began"
        );
        assert!(!kept(&[
            denied(),
            edit(true),
            Act::Finished("yes".into()),
            Act::Over
        ]));
        assert!(!kept(&[denied(), Act::Said("words for people".into())]));
    }

    #[test]
    fn final_words_that_say_nothing_are_none() {
        assert_eq!(tally(&[Act::Finished(" \n".into())]).0.final_words(), None);
        assert_eq!(
            tally(&[Act::Finished("bye".into())]).0.final_words(),
            Some("bye")
        );
    }

    #[test]
    fn the_last_end_counts() {
        let failed = || Act::Failed {
            why: "limit".into(),
            reason: Some(Kind::UsageLimit.into()),
        };
        let (sum, _) = tally(&[Act::Finished("done".into()), failed()]);
        assert_eq!(sum.final_words(), None);
        let ended = report(&[Act::Finished("done".into()), failed()]);
        assert_eq!(
            (ended.finished, ended.reason),
            (false, Some(Kind::UsageLimit.into()))
        );
        let mended = report(&[failed(), Act::Finished("done".into())]);
        assert_eq!(
            (mended.finished, mended.reason, mended.error),
            (true, None, None)
        );
    }

    #[test]
    fn last_words_are_few_plain_and_end_where_the_text_ends() {
        for (text, words) in [
            ("", ""),
            ("one\n\n  \ntwo\r\n", "one\ntwo"),
            ("1\n2\n3\n4\n5\n6\n", "2\n3\n4\n5\n6"),
            (
                "\x1b[31mError:\x1b[0m no such flag\n",
                "Error: no such flag",
            ),
            (
                "noise\nUnknown argument: x\n\nUsage:\n1\n2\n3\n4\n5\n",
                "Unknown argument: x\n…\n2\n3\n4\n5",
            ),
            (
                "error: early\n1\n2\n3\n4\nerror: late\n",
                "1\n2\n3\n4\nerror: late",
            ),
        ] {
            assert_eq!(last_words(text), words, "{text:?}");
        }
        let long = format!("{}end", "é".repeat(600));
        assert_eq!(last_words(&long).chars().count(), ERROR_MAX);
        assert!(last_words(&long).ends_with("éend"));
    }

    #[test]
    fn an_error_that_was_told_outweighs_the_last_lines() {
        let mut report = Report {
            error: Some("last lines".into()),
            ..Report::default()
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
