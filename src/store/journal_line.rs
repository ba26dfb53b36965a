//! Journal lines: a header, then one JSON object per event, with its time.

use crate::engine::{Event, Now, Plan};
use serde::{Deserialize, Serialize};

/// The format version that is written, and the latest version that can be read.
pub(super) const VERSION: u64 = 1;

/// The first line: the loop's identity and plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// The loop's name.
    pub(crate) name: String,
    /// A random ID that distinguishes loops of the same name.
    pub(crate) id: String,
    /// The time at which the loop was created, in milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// The name of the loop whose agent started this one; `None` if no agent did.
    #[serde(default)]
    pub(crate) parent: Option<String>,
    /// Whether the loop was started in the background.
    #[serde(default)]
    pub(crate) background: bool,
    /// The path of the tmux server's socket; `None` if the loop does not run in a tmux window.
    #[serde(default)]
    pub(crate) tmux: Option<String>,
    /// The loop's plan.
    pub(crate) plan: Plan,
}

#[derive(Serialize)]
struct HeaderLine<'a> {
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

impl JournalHeader {
    /// Returns the line as JSON, without its newline.
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
        json(&HeaderLine {
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

/// Returns the first bytes of the header line of a journal that this version has created.
pub(super) fn header_prefix(name: &str, id: &str) -> String {
    let (name, id) = (json(&name), json(&id));
    format!(r#"{{"ralph":"journal","version":{VERSION},"name":{name},"id":{id},"#)
}

/// The fields of a header that exist in every format version.
#[derive(Deserialize)]
pub(super) struct FormatMarker {
    pub(super) ralph: String,
    pub(super) version: u64,
    #[serde(default)]
    pub(super) id: String,
}

/// A line after the header: an event and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalLine {
    /// The time of the event, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Monotonic milliseconds since the same runner's previous line.
    pub(crate) ms: u64,
    /// The event that happened.
    pub event: Event,
}

#[derive(Deserialize)]
struct LineStamp {
    at_ms: i64,
    ms: u64,
}

impl JournalLine {
    /// Returns the line as JSON, without its newline.
    ///
    /// The line is one flat object: the time is inserted before the event's own fields, none of
    /// which is ever called `at`, `at_ms` or `ms`.
    pub fn to_json(&self) -> String {
        let Self { at_ms, ms, event } = self;
        let event = json(event);
        format!(
            r#"{{"at":"{}","at_ms":{at_ms},"ms":{ms},{}"#,
            rfc3339(*at_ms),
            &event[1..]
        )
    }

    /// Parses a line, with or without its newline.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let LineStamp { at_ms, ms } = serde_json::from_str(text)?;
        Ok(Self {
            at_ms,
            ms,
            event: serde_json::from_str(text)?,
        })
    }

    /// Returns the event's time in the form that the engine expects.
    pub(crate) fn now(&self) -> Now {
        Now {
            wall_ms: self.at_ms,
            delta_ms: self.ms,
        }
    }
}

/// Formats a time in milliseconds since 1970: `2026-11-15T22:55:44.123Z`.
pub(crate) fn rfc3339(ms: i64) -> String {
    // Only a broken clock is outside jiff's range of 20,000 years, so any fallback will do.
    format!(
        "{:.3}",
        jiff::Timestamp::from_millisecond(ms).unwrap_or_default()
    )
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .expect("structs and enums with named fields are always JSON objects")
}
