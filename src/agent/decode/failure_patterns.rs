//! What the words mean by which an agent fails: its preset's patterns, and the time that stands in them.

use super::reset_time;
use crate::engine::Act;
use crate::engine::failure::{Kind, Reason};
use crate::engine::plan::ReasonRule;
use regex::Regex;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// Longer words than these are a log, and no reason.
const WORDS_MAX: usize = 4000;

/// An agent's patterns, made once for all of a loop's iterations, and not before one is needed: that takes its time.
#[derive(Clone, Default)]
pub struct Reasons(Arc<[Rule]>);

struct Rule {
    text: String,
    pattern: OnceLock<Option<Regex>>,
    means: Kind,
}

impl Reasons {
    /// These rules.
    pub fn new(rules: &[ReasonRule]) -> Self {
        let rule = |rule: &ReasonRule| Rule {
            text: rule.pattern.clone(),
            pattern: OnceLock::new(),
            means: rule.means,
        };
        Self(rules.iter().map(rule).collect())
    }

    /// What these words mean, and when the trouble is over.
    pub fn of(&self, words: &str) -> Option<Reason> {
        let words: String = words.chars().take(WORDS_MAX).collect();
        self.0.iter().find_map(|rule| {
            let pattern = rule.pattern.get_or_init(|| Regex::new(&rule.text).ok());
            let found = pattern.as_ref()?.captures(&words)?;
            let reset = found
                .name("reset")
                .and_then(|reset| reset_time::time(reset.as_str(), now_ms()));
            Some(Reason {
                until_ms: reset,
                ..rule.means.into()
            })
        })
    }

    /// A failure with its reason, as far as the words tell what the event did not.
    pub(crate) fn explain<'a>(&self, act: Act<'a>) -> Act<'a> {
        let Act::Failed { why, reason } = act else {
            return act;
        };
        // Words are more exact than the kinds of a service: a used-up account and a busy minute are one status there.
        let reason = match (self.of(&why), reason) {
            (Some(by_words), known) => {
                let until_ms = known.and_then(|known| known.until_ms).or(by_words.until_ms);
                Some(Reason {
                    until_ms,
                    ..by_words
                })
            }
            (None, known) => known,
        };
        let until = |reason: Reason| reason.until_ms.filter(|ms| reset_time::is_in_calendar(*ms));
        let reason = reason.map(|reason| Reason {
            until_ms: until(reason),
            ..reason
        });
        Act::Failed { why, reason }
    }
}

/// What a service means by a status of HTTP.
pub(crate) fn of_status(status: u64) -> Option<Kind> {
    match status {
        401 | 403 => Some(Kind::Login),
        402 => Some(Kind::Credit),
        404 => Some(Kind::Model),
        413 => Some(Kind::Context),
        429 => Some(Kind::RateLimit),
        503 | 529 => Some(Kind::Overloaded),
        _ => None,
    }
}

/// When so many seconds are over, in milliseconds since 1970.
pub(crate) fn in_seconds(seconds: f64) -> Option<i64> {
    (0.0..1e9)
        .contains(&seconds)
        .then(|| now_ms().saturating_add((seconds * 1000.0) as i64))
}

fn now_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    now.as_millis() as i64
}
