//! The sheet that tells people of the loop in a session: `.claude/ralph-loop.local.md`, front matter and prompt.
//!
//! Whoever deletes it cancels the loop. Another plugin writes the same file with fewer fields and without escapes;
//! its sheets are read as it meant them.

mod files;

pub use files::{Loaded, load, remove, save, set_aside};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The line before and after the front matter.
const FENCE: &str = "---";

/// The fields; people and other programs may add theirs.
const KEYS: [&str; 7] = [
    "active",
    "iteration",
    "max_iterations",
    "completion_promise",
    "started_at",
    "session_id",
    "loop",
];

/// What stands on the sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// Whether the loop goes on.
    pub active: bool,
    /// Which iteration is under way.
    pub iteration: u32,
    /// The limit; 0 is none.
    pub max_iterations: u32,
    /// The claim asked of the agent.
    pub promise: Option<String>,
    /// When it began, in RFC 3339.
    pub started_at: String,
    /// Whose loop it is.
    pub session: Option<String>,
    /// What the loop is called.
    pub name: Option<String>,
    /// The work.
    pub prompt: String,
}

impl Sheet {
    /// Where it lies.
    pub fn path(workspace: &Path) -> PathBuf {
        workspace.join(".claude").join("ralph-loop.local.md")
    }

    /// What a sheet's text says, or what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (first, rest) = line_of(text);
        if first.trim_end() != FENCE {
            return Err(format!("it does not begin with a line {FENCE}"));
        }
        let (front, body) = Front::read(rest)?;
        let prompt = if first.ends_with('\r') {
            body.replace("\r\n", "\n")
        } else {
            body.to_owned()
        };
        let prompt = prompt.strip_prefix('\n').unwrap_or(&prompt);
        let prompt = prompt.strip_suffix('\n').unwrap_or(prompt);
        if prompt.trim().is_empty() {
            return Err("it has no prompt behind the front matter".into());
        }
        Ok(Self {
            active: front.switch("active")?,
            iteration: front.count("iteration")?,
            max_iterations: front.count("max_iterations")?,
            promise: front.words("completion_promise")?,
            started_at: front.words("started_at")?.unwrap_or_default(),
            session: front.words("session_id")?,
            name: front.words("loop")?,
            prompt: prompt.to_owned(),
        })
    }

    /// Its text.
    pub fn text(&self) -> String {
        let words = |words: &Option<String>| words.as_deref().map_or_else(|| "null".into(), quoted);
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
            words(&self.promise),
            quoted(&self.started_at),
            words(&self.session),
            words(&self.name),
        )
    }
}

/// In quotes, as JSON and YAML have it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The first line without its `\n`, and what follows.
fn line_of(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

/// The fields between the fences.
struct Front<'a> {
    fields: BTreeMap<&'a str, &'a str>,
    /// Whether the texts in it are escaped: the other plugin knows neither these fields nor escapes.
    is_ours: bool,
}

impl<'a> Front<'a> {
    /// The fields, and what stands behind the fence.
    fn read(mut text: &'a str) -> Result<(Self, &'a str), String> {
        let mut fields = BTreeMap::new();
        while !text.is_empty() {
            let (line, rest) = line_of(text);
            text = rest;
            if line.trim_end() == FENCE {
                let is_ours = fields.contains_key("session_id") || fields.contains_key("loop");
                return Ok((Self { fields, is_ours }, rest));
            }
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            if KEYS.contains(&key) && fields.insert(key, value.trim()).is_some() {
                return Err(format!("its front matter has `{key}` twice"));
            }
        }
        Err(format!(
            "its front matter has no end: there is no second line {FENCE}"
        ))
    }

    fn switch(&self, key: &str) -> Result<bool, String> {
        match self.fields.get(key).copied() {
            // The other plugin does not look at it either.
            None | Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(format!(
                "`{key}` must be true or false, and is {}",
                brief(other)
            )),
        }
    }

    fn count(&self, key: &str) -> Result<u32, String> {
        let value = self
            .fields
            .get(key)
            .ok_or_else(|| format!("it has no `{key}`"))?;
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let number = value.parse().ok().filter(|_| digits);
        let what = if digits {
            "is too big a number:"
        } else {
            "must be a whole number, and is"
        };
        number.ok_or_else(|| format!("`{key}` {what} {}", brief(value)))
    }

    fn words(&self, key: &str) -> Result<Option<String>, String> {
        let value = self.fields.get(key).copied().unwrap_or("null");
        let between = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
        let words = if self.is_ours && value.starts_with('"') {
            serde_json::from_str(value).map_err(|_| {
                format!(
                    "`{key}` must be one text in quotes, and is {}",
                    brief(value)
                )
            })?
        } else if value.starts_with('"') {
            between('"')
                .ok_or_else(|| {
                    format!(
                        "`{key}` begins with a quote and has no closing one: {}",
                        brief(value)
                    )
                })?
                .to_owned()
        } else if let Some(inner) = between('\'') {
            inner.replace("''", "'")
        } else if matches!(value, "null" | "~") {
            String::new()
        } else {
            value.to_owned()
        };
        Ok(Some(words).filter(|words| !words.trim().is_empty()))
    }
}

/// A value of any length in one line.
fn brief(value: &str) -> String {
    let short: String = value.chars().take(60).collect();
    let more = if short.len() < value.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

#[cfg(test)]
mod tests;
