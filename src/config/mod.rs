//! What did the user mean? Embedded defaults, settings files and words become a [`Plan`]: validated, complete.
//!
//! What was typed or written is a [`Layer`] of values that were held against one table; laid over one another and
//! over the defaults they are [`Settings`], which say everything, and only then is there a plan.

pub mod agents;
pub mod billing;
pub mod file;
pub mod keys;
pub mod layers;
pub mod prices;
pub mod schema;
pub mod scm;
pub mod settings;
mod strict_value;
pub mod task;
pub mod units;
pub mod validate;

use crate::engine::plan::{Agent, Check, Context, Grace, Limits, Plan, Proof, Rest};
use crate::engine::usage::Prices;
use crate::engine::{prompt, template};
pub use layers::{Layer, Origin, Places, Stack};
pub use settings::Settings;
use std::path::PathBuf;
use units::Span;

/// Which work, where and by whom: what no layer of settings holds.
#[derive(Clone, Debug, Default)]
pub struct Errand {
    /// The words of the task.
    pub task: Option<String>,
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
    Err(Wrong {
        error: error.into(),
        hint: hint.into(),
    })
}

/// The plan that a stack of settings makes of an errand.
pub fn plan(stack: &Stack, errand: &Errand) -> Result<Plan, Wrong> {
    let all = Settings::of(stack);
    let proof = proof(stack, &all)?;
    for path in std::iter::once(&errand.workspace).chain(&proof.file) {
        if path.to_str().is_none() {
            return wrong(
                format!("the path {} is not UTF-8", path.display()),
                "the journal cannot hold it: rename it",
            );
        }
    }
    let (agent, fallback) = agents::team(stack, &all, errand)?;
    // A command that says nothing of tokens needs no prices.
    let streams = std::iter::once(&agent)
        .chain(&fallback)
        .any(|agent| agent.dialect.is_stream());
    let known = prices::prices(stack, &all.prices)?;
    let prices = if streams { known } else { Prices::default() };
    let max_cost = Some(all.max_cost).filter(|max| *max > 0.0);
    for agent in std::iter::once(&agent).chain(&fallback) {
        limits_can_be_known(stack, &all, agent, &prices)?;
    }
    Ok(Plan {
        task: task::task(stack, &all, errand)?,
        proof,
        limits: Limits {
            iterations: Some(all.max_iterations).filter(|max| *max > 0),
            cost_usd: max_cost,
            unknown_cost: all.allow_unknown_cost,
            tokens: Some(all.max_tokens).filter(|max| *max > 0),
            time_ms: never_if_zero(all.max_time),
            failures: Some(all.max_failures).filter(|max| *max > 0),
            iteration_ms: never_if_zero(all.iteration_timeout),
            inactivity_ms: inactivity(&all, &agent),
            blocks: None,
        },
        rest: Rest {
            delay_ms: all.delay.0,
            backoff_ms: all.backoff.base.0,
            backoff_cap_ms: all.backoff.cap.0,
            probe_ms: all.probe.base.0,
            probe_cap_ms: all.probe.cap.0,
        },
        agent,
        fallback,
        context: Context {
            level: all.context,
            diff_chars: all.diff_chars,
            output_chars: all.output_chars,
            bus: all.context_bus,
            template: prompt_template(errand)?,
        },
        grace: Grace {
            term_ms: all.grace_term.0,
            marker_ms: all.grace_marker.0,
            survivor_ms: all.grace_survivor.0,
            ready_ms: all.grace_ready.0,
            linger_ms: all.grace_linger.0,
            children_ms: never_if_zero(all.wait_timeout),
        },
        prices,
        scm: scm::scm(&stack.name("scm"), all.scm.unwrap_or_default())?,
        notify: all.notify.filter(|command| !command.trim().is_empty()),
        workspace: errand.workspace.clone(),
        // It is made when the loop has its name.
        worktree: None,
        session: None,
        covered: Vec::new(),
        share_workspace: all.share_workspace,
        log_cap: all.log_cap.0,
        min_free: all.min_free.0,
    })
}

/// A limit that nobody can know never acts: nobody should rely on it.
fn limits_can_be_known(
    stack: &Stack,
    all: &Settings,
    agent: &Agent,
    prices: &Prices,
) -> Result<(), Wrong> {
    let counts = agent.dialect.counts_tokens();
    if all.max_tokens > 0 && !counts {
        return wrong(
            format!(
                "{} is set, but the tokens of `{}` cannot be read",
                stack.name("max-tokens"),
                agent.name
            ),
            "limit its iterations or its time",
        );
    }
    let model = agent.model.as_deref();
    let has_price = counts && model.is_some_and(|model| prices.of(model).is_some());
    if all.max_cost <= 0.0 || agent.reports_cost || has_price || all.allow_unknown_cost {
        return Ok(());
    }
    let (limit, name) = (stack.name("max-cost"), &agent.name);
    match model {
        Some(model) if counts => wrong(
            format!("{limit} is set, but nobody knows what {model} costs"),
            format!(
                "give its price in the settings, as prices.{model}; or add --allow-unknown-cost"
            ),
        ),
        _ if counts => wrong(
            format!("{limit} is set, but {name} tells tokens alone, and not of which model"),
            "name the model with --model, so that its price is known; or add --allow-unknown-cost",
        ),
        _ => wrong(
            format!("{limit} is set, but the cost of `{name}` cannot be read"),
            "add --allow-unknown-cost (and let the agent append dollars to $RALPH_TASK_DIR/COST if it can)",
        ),
    }
}

fn proof(stack: &Stack, all: &Settings) -> Result<Proof, Wrong> {
    let mut checks: Vec<Check> = Vec::new();
    for (number, check) in all.checks.iter().enumerate() {
        if check.command.trim().is_empty() {
            return wrong(
                format!(
                    "{}: a check is empty (number {})",
                    stack.name("checks"),
                    number + 1
                ),
                "give it a command, as in --check \"cargo test\"",
            );
        }
        checks.push(Check {
            command: check.command.clone(),
            slug: free_slug(&check.command, &checks),
            timeout_ms: never_if_zero(check.timeout.unwrap_or(all.check_timeout))
                .unwrap_or(NO_TIMEOUT),
            on_fail: check.on_fail.unwrap_or(all.on_fail),
        });
    }
    if let Some(pattern) = &all.done_pattern {
        pattern_is_sound(&stack.name("done-pattern"), pattern)?;
    }
    if let Some(promise) = all
        .promise
        .as_ref()
        .filter(|promise| promise.trim().is_empty())
    {
        return wrong(
            format!("{} {promise:?} is empty", stack.name("promise")),
            "give the words that the agent is to promise",
        );
    }
    let promises = &all.fallback_promises;
    if promises.is_empty() || promises.iter().any(|promise| promise.trim().is_empty()) {
        return wrong(
            format!(
                "{}: a promise is empty, or there is none",
                stack.name("fallback-promises")
            ),
            "give words, or noPromise: true if none is to be asked for",
        );
    }
    for (name, path) in [
        ("done-file", &all.done_file),
        ("prompt-file", &all.prompt_file),
    ] {
        if path
            .as_ref()
            .is_some_and(|path| path.as_os_str().is_empty())
        {
            return wrong(format!("{} is empty", stack.name(name)), "name a file");
        }
    }
    if all
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty())
    {
        return wrong(
            format!("{} is empty", stack.name("model")),
            "name one, or leave it out",
        );
    }
    // Of two layers the higher one has taken the other's away; so it is one layer that says both.
    if all.no_promise && all.promise.is_some() {
        return wrong(
            format!(
                "{} and {} contradict each other",
                stack.name("promise"),
                stack.name("no-promise")
            ),
            "give one of the two",
        );
    }
    let fallback = if all.no_promise {
        vec![]
    } else {
        all.fallback_promises.clone()
    };
    Ok(Proof {
        checks,
        preflight: all.preflight,
        promise: all.promise.clone(),
        pattern: all.done_pattern.clone(),
        file: all.done_file.clone(),
        fallback,
    })
}

/// A screen that stands still for so long is one that waits for somebody.
const STILL: Span = Span(60_000);

/// An agent whose events are read, and that does nothing for so long, hangs.
const IDLE: Span = Span(900_000);

fn inactivity(all: &Settings, agent: &Agent) -> Option<u64> {
    let otherwise = || match agent {
        agent if agent.terminal => Some(STILL),
        agent => agent.dialect.is_stream().then_some(IDLE),
    };
    never_if_zero(all.inactivity_timeout.or_else(otherwise)?)
}

fn never_if_zero(span: Span) -> Option<u64> {
    Some(span.0).filter(|ms| *ms > 0)
}

fn pattern_is_sound(place: &str, pattern: &str) -> Result<(), Wrong> {
    let Err(error) = regex::Regex::new(pattern) else {
        return Ok(());
    };
    let words = error.to_string();
    let reason = words
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let hint = if words.contains("look-around") {
        "patterns are Rust regular expressions, which have no look-around: describe what matches instead"
    } else {
        "patterns are Rust regular expressions; put a backslash before . ( [ { * + ? to mean them"
    };
    wrong(
        format!("{place} {pattern:?} is not a pattern: {reason}"),
        hint,
    )
}

/// A timeout so late that it never comes, and that can still be added to a clock.
pub const NO_TIMEOUT: u64 = u64::MAX / 4;

fn prompt_template(errand: &Errand) -> Result<String, Wrong> {
    let own = [
        Some(errand.workspace.join(".ralph")),
        errand.config_dir.clone(),
    ];
    for path in own.into_iter().flatten().map(|dir| dir.join("template.md")) {
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return wrong(
                    format!("cannot read {}: {error}", path.display()),
                    "it must be a text file",
                );
            }
            Ok(text) => {
                return match template::unknown(&text, &prompt::NAMES) {
                    None => Ok(text),
                    Some(tag) => wrong(
                        format!("{}: {tag} means nothing there", path.display()),
                        format!(
                            "a template knows {}; sections close in order",
                            prompt::NAMES.join(", ")
                        ),
                    ),
                };
            }
        }
    }
    Ok(include_str!("../../presets/prompt.md").to_owned())
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
    std::iter::once(slug.to_owned())
        .chain(numbered)
        .find(|slug| !taken(slug))
        .expect("numbers do not end")
}

#[cfg(test)]
mod tests;
