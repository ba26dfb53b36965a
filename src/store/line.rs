//! What a line of the journal looks like: a stamp, then the event's own words.

use crate::engine::{Event, Now, Plan};
use serde::{Deserialize, Serialize};

/// The version of the journal's format that is written, and the latest that is read.
pub(super) const VERSION: u64 = 1;

/// The first line: which loop this is and what it was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The loop's name.
    pub name: String,
    /// What tells it from every other loop of that name.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// The loop whose agent started it.
    #[serde(default)]
    pub parent: Option<String>,
    /// Whether it was started in the background.
    #[serde(default)]
    pub background: bool,
    /// The socket of the tmux whose window it lives in, if it does.
    #[serde(default)]
    pub tmux: Option<String>,
    /// What it was asked to do.
    pub plan: Plan,
}

#[derive(Serialize)]
struct FirstLine<'a> {
    ralph: &'static str,
    version: u64,
    name: &'a str,
    id: &'a str,
    created: String,
    created_ms: i64,
    parent: Option<&'a str>,
    background: bool,
    tmux: Option<&'a str>,
    plan: &'a Plan,
}

impl Header {
    /// The first line, without its newline.
    pub fn to_json(&self) -> String {
        let Self {
            name,
            id,
            created_ms,
            parent,
            background,
            tmux,
            plan,
        } = self;
        json(&FirstLine {
            ralph: "journal",
            version: VERSION,
            name,
            id,
            created: rfc3339(*created_ms),
            created_ms: *created_ms,
            parent: parent.as_deref(),
            background: *background,
            tmux: tmux.as_deref(),
            plan,
        })
    }
}

/// What every first line of every version says of itself.
#[derive(Deserialize)]
pub(super) struct Mark {
    pub(super) ralph: String,
    pub(super) version: u64,
    #[serde(default)]
    pub(super) id: String,
}

/// Any other line: an event and when it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Monotonic milliseconds since the line before, of the same runner.
    pub ms: u64,
    /// What happened.
    pub event: Event,
}

#[derive(Deserialize)]
struct Stamp {
    at_ms: i64,
    ms: u64,
}

impl Line {
    /// The line, without its newline.
    ///
    /// The stamp is spliced in before the event's own fields, none of which is ever called `at`, `at_ms` or
    /// `ms`: so the line is one flat object.
    pub fn to_json(&self) -> String {
        let Self { at_ms, ms, event } = self;
        let event = json(event);
        format!(
            r#"{{"at":"{}","at_ms":{at_ms},"ms":{ms},{}"#,
            rfc3339(*at_ms),
            &event[1..]
        )
    }

    /// Reads a line, with or without its newline.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let Stamp { at_ms, ms } = serde_json::from_str(text)?;
        Ok(Self {
            at_ms,
            ms,
            event: serde_json::from_str(text)?,
        })
    }

    /// When it happened, as the engine is told.
    pub fn now(&self) -> Now {
        Now {
            wall_ms: self.at_ms,
            delta_ms: self.ms,
        }
    }
}

/// A time as scripts read it: `2026-11-15T22:55:44.123Z`.
pub fn rfc3339(ms: i64) -> String {
    // A time outside of jiff's range of 20,000 years is a broken clock's; any answer is as good.
    format!(
        "{:.3}",
        jiff::Timestamp::from_millisecond(ms).unwrap_or_default()
    )
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .expect("structs and enums with named fields are always JSON objects")
}
