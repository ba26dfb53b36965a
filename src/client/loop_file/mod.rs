//! The loop file, `.claude/ralph-loop.local.md`, which shows the state of a session's loop to
//! people, as front matter and prompt.
//!
//! Deleting the file cancels the loop. The original plugin writes the same file with fewer fields
//! and without escapes, and its files are accepted too.

mod files;

pub use files::{LoadedLoopFile, load, move_aside, remove, save};

use super::quote_short;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The line before and after the front matter.
const FENCE: &str = "---";

/// The known fields. Other fields, added by people or programs, are ignored.
const KEYS: [&str; 7] = [
    "active",
    "iteration",
    "max_iterations",
    "completion_promise",
    "started_at",
    "session_id",
    "loop",
];

/// The content of a loop file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopFile {
    /// Whether the loop is active; `false` after a failed turn.
    pub active: bool,
    /// The number of the current iteration, counted from 1.
    pub iteration: u32,
    /// The iteration limit; 0 for unlimited.
    pub max_iterations: u32,
    /// The promise that the agent has to make; `None` if the loop requires no promise.
    pub promise: Option<String>,
    /// The start time, in RFC 3339 format; empty if unknown.
    pub started_at: String,
    /// The ID of the session that the loop belongs to; `None` in the original plugin's files.
    pub session: Option<String>,
    /// The loop's name; `None` in the original plugin's files.
    pub name: Option<String>,
    /// The task that the agent works on.
    pub prompt: String,
}

impl LoopFile {
    /// Returns the path of a workspace's loop file.
    pub fn path(workspace: &Path) -> PathBuf {
        workspace.join(".claude").join("ralph-loop.local.md")
    }

    /// Parses the text of a loop file. An error is a message that describes what is wrong with the
    /// text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (first, rest) = split_line(text);
        if first.trim_end() != FENCE {
            return Err(format!("its first line is not {FENCE}"));
        }
        let (front, body) = FrontMatter::parse(rest)?;
        let prompt = if first.ends_with('\r') {
            body.replace("\r\n", "\n")
        } else {
            body.to_owned()
        };
        let prompt = prompt.strip_prefix('\n').unwrap_or(&prompt);
        let prompt = prompt.strip_suffix('\n').unwrap_or(prompt);
        if prompt.trim().is_empty() {
            return Err("it has no prompt after the front matter".into());
        }
        Ok(Self {
            active: front.bool("active")?,
            iteration: front.number("iteration")?,
            max_iterations: front.number("max_iterations")?,
            promise: front.text("completion_promise")?,
            started_at: front.text("started_at")?.unwrap_or_default(),
            session: front.text("session_id")?,
            name: front.text("loop")?,
            prompt: prompt.to_owned(),
        })
    }

    /// Formats the content as the text of a loop file.
    pub fn to_text(&self) -> String {
        let optional = |text: &Option<String>| match text {
            Some(text) => quote(text),
            None => "null".into(),
        };
        let Self {
            active,
            iteration,
            max_iterations,
            prompt,
            ..
        } = self;
        format!(
            "{FENCE}\nactive: {active}\niteration: {iteration}\nmax_iterations: {max_iterations}\n\
             completion_promise: {}\nstarted_at: {}\nsession_id: {}\nloop: {}\n{FENCE}\n\n{prompt}\n",
            optional(&self.promise),
            quote(&self.started_at),
            optional(&self.session),
            optional(&self.name),
        )
    }
}

/// Quotes a string in a form that is valid in both JSON and YAML.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Splits off the first line. Returns it without its newline, and the rest.
fn split_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// The fields between the fences.
struct FrontMatter<'a> {
    fields: BTreeMap<&'a str, &'a str>,
    /// Whether ralph wrote the file, in which case its strings are escaped. The original plugin
    /// writes neither escapes nor the fields `session_id` and `loop`.
    is_ours: bool,
}

impl<'a> FrontMatter<'a> {
    /// Parses the fields after the opening fence. Also returns the text after the closing fence.
    fn parse(mut text: &'a str) -> Result<(Self, &'a str), String> {
        let mut fields = BTreeMap::new();
        while !text.is_empty() {
            let (line, rest) = split_line(text);
            text = rest;
            if line.trim_end() == FENCE {
                let is_ours = fields.contains_key("session_id") || fields.contains_key("loop");
                return Ok((Self { fields, is_ours }, rest));
            }
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            if KEYS.contains(&key) && fields.insert(key, value.trim()).is_some() {
                return Err(format!("`{key}` occurs twice in the front matter"));
            }
        }
        Err(format!("its front matter has no closing {FENCE} line"))
    }

    fn bool(&self, key: &str) -> Result<bool, String> {
        match self.fields.get(key).copied() {
            // The original plugin does not check this field, so a missing field means `true`.
            None | Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(format!(
                "`{key}` must be true or false, not {}",
                quote_short(other)
            )),
        }
    }

    fn number(&self, key: &str) -> Result<u32, String> {
        let value = self
            .fields
            .get(key)
            .ok_or_else(|| format!("`{key}` is missing"))?;
        let is_digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits {
            return Err(format!(
                "`{key}` must be a whole number, not {}",
                quote_short(value)
            ));
        }
        value
            .parse()
            .map_err(|_| format!("`{key}` is too large: {}", quote_short(value)))
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let value = self.fields.get(key).copied().unwrap_or("null");
        let between = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
        let text = if self.is_ours && value.starts_with('"') {
            serde_json::from_str(value)
                .map_err(|_| format!("`{key}` must be a quoted text, not {}", quote_short(value)))?
        } else if value.starts_with('"') {
            between('"')
                .ok_or_else(|| format!("`{key}` has no closing quote: {}", quote_short(value)))?
                .to_owned()
        } else if let Some(inner) = between('\'') {
            inner.replace("''", "'")
        } else if matches!(value, "null" | "~") {
            String::new()
        } else {
            value.to_owned()
        };
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }
}

#[cfg(test)]
mod tests;
