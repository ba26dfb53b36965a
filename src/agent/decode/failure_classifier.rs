//! Classifies failure messages with an agent's patterns, and extracts the time at which a limit
//! resets.

use super::reset_time;
use crate::engine::Act;
use crate::engine::failure::{AgentFailure, FailureKind};
use crate::engine::plan::FailurePattern;
use regex::Regex;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// Only the first `MESSAGE_MAX` characters of a message are matched.
const MESSAGE_MAX: usize = 4000;

/// An agent's failure patterns. Clones share the compiled patterns. Each pattern is compiled on
/// first use, because compiling is slow and most runs do not fail.
#[derive(Clone, Default)]
pub(super) struct FailureClassifier(Arc<[CompiledPattern]>);

struct CompiledPattern {
    source: String,
    regex: OnceLock<Option<Regex>>,
    kind: FailureKind,
}

impl FailureClassifier {
    pub(super) fn new(patterns: &[FailurePattern]) -> Self {
        let compiled = |pattern: &FailurePattern| CompiledPattern {
            source: pattern.pattern.clone(),
            regex: OnceLock::new(),
            kind: pattern.means,
        };
        Self(patterns.iter().map(compiled).collect())
    }

    /// Returns the failure that a message describes; `None` if no pattern matches.
    pub(super) fn classify(&self, message: &str) -> Option<AgentFailure> {
        let message: String = message.chars().take(MESSAGE_MAX).collect();
        self.0.iter().find_map(|pattern| {
            let regex = pattern
                .regex
                .get_or_init(|| Regex::new(&pattern.source).ok());
            let captures = regex.as_ref()?.captures(&message)?;
            let reset = captures
                .name("reset")
                .and_then(|reset| reset_time::parse(reset.as_str(), now_ms()));
            Some(AgentFailure {
                until_ms: reset,
                ..pattern.kind.into()
            })
        })
    }

    /// Adds the failure that its message describes to a failed act. Returns other acts unchanged.
    pub(super) fn complete<'a>(&self, act: Act<'a>) -> Act<'a> {
        let Act::Failed { why, reason } = act else {
            return act;
        };
        // The message is more specific than a status code, which may mean either an exhausted
        // account or too many requests in a minute.
        let reason = match (self.classify(&why), reason) {
            (Some(by_message), known) => {
                let until_ms = known
                    .and_then(|known| known.until_ms)
                    .or(by_message.until_ms);
                Some(AgentFailure {
                    until_ms,
                    ..by_message
                })
            }
            (None, known) => known,
        };
        let reason = reason.map(|reason| AgentFailure {
            until_ms: reason
                .until_ms
                .filter(|ms| reset_time::is_plausible(*ms, now_ms())),
            ..reason
        });
        Act::Failed { why, reason }
    }
}

/// Returns the kind of failure that a model provider's HTTP status indicates; `None` if the status
/// is not specific.
pub(super) fn kind_for_status(status: u64) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::Login),
        402 => Some(FailureKind::Credit),
        404 => Some(FailureKind::Model),
        413 => Some(FailureKind::Context),
        429 => Some(FailureKind::RateLimit),
        503 | 529 => Some(FailureKind::Overloaded),
        500..600 => Some(FailureKind::Unavailable),
        _ => None,
    }
}

/// Returns the time `seconds` from now, in milliseconds since 1970; `None` if the result is
/// implausible.
pub(super) fn ms_after_seconds(seconds: f64) -> Option<i64> {
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
