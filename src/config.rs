//! What did the user mean? Embedded defaults and words become a [`Plan`]: validated, complete.
//!
//! What was typed or written is a [`Settings`], each value optional; laid over one another and over the
//! defaults they say everything, and only then is there a plan.

pub mod units;

use crate::engine::plan::{
    Agent, Check, Context, Grace, Level, Limits, OnFail, Plan, Proof, Rest, SCRIPT, Scm, Task,
};
use crate::engine::{prompt, template};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use units::{Backoff, Size, Span};

/// What one layer says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each is the setting of that name, and the help says what it does")]
pub struct Settings {
    pub max_iterations: Option<u32>,
    pub max_cost: Option<f64>,
    pub max_time: Option<Span>,
    pub max_failures: Option<u32>,
    pub iteration_timeout: Option<Span>,
    pub inactivity_timeout: Option<Span>,
    pub check: Option<Vec<String>>,
    pub check_timeout: Option<Span>,
    pub on_fail: Option<OnFail>,
    pub preflight: Option<bool>,
    pub promise: Option<String>,
    pub no_promise: Option<bool>,
    pub done_pattern: Option<String>,
    pub done_file: Option<PathBuf>,
    pub delay: Option<Span>,
    pub backoff: Option<Backoff>,
    pub context: Option<Level>,
    pub diff_chars: Option<usize>,
    pub output_chars: Option<usize>,
    pub exit_waiting: Option<i32>,
    pub allow_unknown_cost: Option<bool>,
    pub share_workspace: Option<bool>,
    pub log_cap: Option<Size>,
    pub min_free: Option<Size>,
    pub fallback_promises: Option<Vec<String>>,
    pub grace_term: Option<Span>,
    pub grace_marker: Option<Span>,
    pub grace_survivor: Option<Span>,
}

/// Which work, where and by whom: what no layer of settings holds.
#[derive(Clone, Debug, Default)]
pub struct Errand {
    /// The words of the task.
    pub task: Option<String>,
    /// The prompt, given as words.
    pub prompt: Option<String>,
    /// The prompt, given as a file.
    pub prompt_file: Option<PathBuf>,
    /// The agent's name, if one was given.
    pub agent: Option<String>,
    /// The agent's command, if one was given.
    pub command: Vec<String>,
    /// Where the loop works.
    pub workspace: PathBuf,
    /// Where the user's own configuration lies.
    pub config_dir: Option<PathBuf>,
}

/// What is wrong with the words, and what would be right.
#[derive(Debug, PartialEq)]
pub struct Wrong {
    /// What is wrong, naming the flag, key or file.
    pub error: String,
    /// What to do.
    pub hint: String,
}

fn wrong<T>(error: impl Into<String>, hint: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { error: error.into(), hint: hint.into() })
}

impl Settings {
    /// The embedded defaults.
    pub fn defaults() -> Self {
        toml::from_str(include_str!("../presets/defaults.toml")).expect("the embedded defaults are right")
    }

    /// This layer over another: what it says counts.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        macro_rules! lay {
            ($($field:ident),* $(,)?) => { Self { $($field: self.$field.or(below.$field)),* } };
        }
        lay!(
            max_iterations,
            max_cost,
            max_time,
            max_failures,
            iteration_timeout,
            inactivity_timeout,
            check,
            check_timeout,
            on_fail,
            preflight,
            promise,
            no_promise,
            done_pattern,
            done_file,
            delay,
            backoff,
            context,
            diff_chars,
            output_chars,
            exit_waiting,
            allow_unknown_cost,
            share_workspace,
            log_cap,
            min_free,
            fallback_promises,
            grace_term,
            grace_marker,
            grace_survivor,
        )
    }

    /// The plan that these settings, laid over the defaults, make of an errand.
    pub fn plan(self, errand: &Errand) -> Result<Plan, Wrong> {
        let all = self.over(Self::defaults());
        let proof = all.proof()?;
        for path in std::iter::once(&errand.workspace).chain(&proof.file) {
            if path.to_str().is_none() {
                return wrong(
                    format!("the path {} is not UTF-8", path.display()),
                    "the journal cannot hold it: rename it",
                );
            }
        }
        let agent = agent(&all, errand)?;
        if let Some(max) = all.max_cost.filter(|max| !max.is_finite() || *max < 0.0) {
            return wrong(
                format!("--max-cost {max} is not an amount"),
                "give dollars, as in --max-cost 2.50",
            );
        }
        let max_cost = all.max_cost.filter(|max| *max > 0.0);
        if max_cost.is_some() && !agent.reports_cost && all.allow_unknown_cost != Some(true) {
            return wrong(
                format!("--max-cost is set, but the cost of `{}` cannot be read", agent.name),
                "let it append dollars to $RALPH_TASK_DIR/COST and add --allow-unknown-cost",
            );
        }
        let backoff = all.backoff.unwrap_or_default();
        Ok(Plan {
            task: task(errand)?,
            proof,
            limits: Limits {
                iterations: all.max_iterations.filter(|max| *max > 0),
                cost_usd: max_cost,
                time_ms: never_if_zero(all.max_time),
                failures: all.max_failures.filter(|max| *max > 0),
                iteration_ms: never_if_zero(all.iteration_timeout),
                inactivity_ms: never_if_zero(all.inactivity_timeout),
            },
            rest: Rest {
                delay_ms: all.delay.unwrap_or_default().0,
                backoff_ms: backoff.base.0,
                backoff_cap_ms: backoff.cap.0,
            },
            agent,
            context: Context {
                level: all.context.unwrap_or_default(),
                diff_chars: all.diff_chars.unwrap_or_default(),
                output_chars: all.output_chars.unwrap_or_default(),
                template: prompt_template(errand)?,
            },
            grace: Grace {
                term_ms: all.grace_term.unwrap_or_default().0,
                marker_ms: all.grace_marker.unwrap_or_default().0,
                survivor_ms: all.grace_survivor.unwrap_or_default().0,
            },
            scm: Scm::default(),
            notify: None,
            workspace: errand.workspace.clone(),
            share_workspace: all.share_workspace.unwrap_or(false),
            log_cap: all.log_cap.unwrap_or_default().0,
            min_free: all.min_free.unwrap_or_default().0,
        })
    }

    fn proof(&self) -> Result<Proof, Wrong> {
        let mut checks: Vec<Check> = Vec::new();
        for command in self.check.iter().flatten() {
            if command.trim().is_empty() {
                return wrong("a check is empty", "give --check a command, as in --check \"cargo test\"");
            }
            checks.push(Check {
                command: command.clone(),
                slug: free_slug(command, &checks),
                timeout_ms: never_if_zero(self.check_timeout).unwrap_or(NO_TIMEOUT),
                on_fail: self.on_fail.unwrap_or_default(),
            });
        }
        if let Some(pattern) = &self.done_pattern {
            pattern_is_sound(pattern)?;
        }
        if let Some(promise) = self.promise.as_ref().filter(|promise| promise.trim().is_empty()) {
            return wrong(
                format!("--promise {promise:?} is empty"),
                "give the words that the agent is to promise",
            );
        }
        let no_promise = self.no_promise == Some(true);
        if no_promise && self.promise.is_some() {
            return wrong("--promise and --no-promise contradict each other", "give one of the two");
        }
        let fallback = if no_promise { None } else { self.fallback_promises.clone() };
        Ok(Proof {
            checks,
            preflight: self.preflight.unwrap_or(true),
            promise: self.promise.clone(),
            pattern: self.done_pattern.clone(),
            file: self.done_file.clone(),
            fallback: fallback.unwrap_or_default(),
        })
    }
}

fn never_if_zero(span: Option<Span>) -> Option<u64> {
    span.map(|span| span.0).filter(|ms| *ms > 0)
}

fn pattern_is_sound(pattern: &str) -> Result<(), Wrong> {
    let Err(error) = regex::Regex::new(pattern) else { return Ok(()) };
    let words = error.to_string();
    let reason = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let hint = if words.contains("look-around") {
        "patterns are Rust regular expressions, which have no look-around: describe what matches instead"
    } else {
        "patterns are Rust regular expressions; put a backslash before . ( [ { * + ? to mean them"
    };
    wrong(format!("--done-pattern {pattern:?} is not a pattern: {reason}"), hint)
}

fn task(errand: &Errand) -> Result<Task, Wrong> {
    let words = errand.task.clone().filter(|task| !task.trim().is_empty());
    if words.is_some() && errand.prompt.is_some() {
        return wrong("TASK and --prompt are both given", "give the words once");
    }
    if errand.prompt.is_some() && errand.prompt_file.is_some() {
        return wrong("--prompt and --prompt-file are both given", "give one of the two");
    }
    let text = |text| Ok(Task { title: None, text: Some(text), file: None });
    if let Some(prompt) = &errand.prompt {
        if prompt.trim().is_empty() {
            return wrong("--prompt is empty", "say what to do");
        }
        return text(prompt.clone());
    }
    if let Some(path) = &errand.prompt_file {
        return from_file(errand, path, words);
    }
    match words {
        Some(words) => text(words),
        None if errand.workspace.join("PROMPT.md").exists() => {
            from_file(errand, Path::new("PROMPT.md"), None)
        }
        None => wrong(
            "there is no task",
            "say what to do (ralph run \"fix the tests\" …), name a file with --prompt-file, or write PROMPT.md",
        ),
    }
}

fn from_file(errand: &Errand, path: &Path, title: Option<String>) -> Result<Task, Wrong> {
    let full = errand.workspace.join(path);
    match std::fs::metadata(&full) {
        Ok(data) if !data.is_file() => wrong(
            format!("cannot read prompt file: {}", path.display()),
            "it is read anew for every iteration, and must be a regular file",
        ),
        Ok(_) if full.to_str().is_none() => wrong(
            format!("cannot use the prompt file: {}", path.display()),
            "its path is not UTF-8: rename it",
        ),
        Ok(_) if std::fs::File::open(&full).is_err() => wrong(
            format!("cannot read prompt file: {}", path.display()),
            "you may not read it: see its permissions",
        ),
        Ok(_) => Ok(Task { title, text: None, file: Some(full) }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            wrong(format!("prompt file not found: {}", path.display()), "write it, or name another file")
        }
        Err(error) => wrong(format!("cannot read prompt file: {}", path.display()), error.to_string()),
    }
}

fn agent(all: &Settings, errand: &Errand) -> Result<Agent, Wrong> {
    let command = match (&errand.agent, &errand.command[..]) {
        (Some(_), [_, ..]) => {
            return wrong("--agent and a command after -- are both given", "give one of the two");
        }
        (None, [_, ..]) => errand.command.clone(),
        (Some(name), []) if name.starts_with(SCRIPT) => vec![name.clone()],
        (Some(name), []) => {
            return wrong(
                format!("the agent {name:?} is not known"),
                "give its command after --, as in -- claude -p",
            );
        }
        (None, []) => {
            return wrong(
                "there is no agent",
                "give its command at the end, as in: ralph run \"…\" -- claude -p",
            );
        }
    };
    let scripted = command[0].strip_prefix(SCRIPT);
    Ok(Agent {
        name: command[0].rsplit('/').next().unwrap_or_default().to_owned(),
        command: match scripted {
            Some(file) => vec![format!("{SCRIPT}{}", errand.workspace.join(file).display())],
            None => command.clone(),
        },
        exit_waiting: all.exit_waiting,
        reports_cost: scripted.is_some(),
        ..Agent::default()
    })
}

/// A timeout so late that it never comes, and that can still be added to a clock.
pub const NO_TIMEOUT: u64 = u64::MAX / 4;

fn prompt_template(errand: &Errand) -> Result<String, Wrong> {
    let own = [Some(errand.workspace.join(".ralph")), errand.config_dir.clone()];
    for path in own.into_iter().flatten().map(|dir| dir.join("template.md")) {
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return wrong(format!("cannot read {}: {error}", path.display()), "it must be a text file");
            }
            Ok(text) => {
                return match template::unknown(&text, &prompt::NAMES) {
                    None => Ok(text),
                    Some(tag) => wrong(
                        format!("{}: {tag} means nothing there", path.display()),
                        format!("a template knows {}; sections close in order", prompt::NAMES.join(", ")),
                    ),
                };
            }
        }
    }
    Ok(include_str!("../presets/prompt.md").to_owned())
}

/// A file-name-safe word for a command; equal ones get a number.
fn free_slug(command: &str, others: &[Check]) -> String {
    let mut slug = String::new();
    for c in command.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(40);
    let slug = slug.trim_end_matches('-');
    let slug = if slug.is_empty() { "check" } else { slug };
    let taken = |slug: &str| others.iter().any(|check| check.slug == slug);
    let numbered = (2..).map(|number| format!("{slug}-{number}"));
    std::iter::once(slug.to_owned()).chain(numbered).find(|slug| !taken(slug)).expect("numbers do not end")
}

#[cfg(test)]
mod tests;
