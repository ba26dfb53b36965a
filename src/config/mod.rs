//! Turns embedded defaults, settings files and flags into a complete, validated [`Plan`].
//!
//! Each source is a [`Layer`] of values that were validated against the table in [`keys`]. A
//! [`LayerStack`] merges the layers into [`Settings`], which have a value for every key, and
//! [`build_plan`] makes the plan from those.

pub(crate) mod agents;
pub(crate) mod billing;
pub(crate) mod file;
pub(crate) mod keys;
pub(crate) mod layers;
pub(crate) mod prices;
pub(crate) mod schema;
pub(crate) mod scm;
pub(crate) mod settings;
mod strict_value;
pub(crate) mod task;
pub(crate) mod units;
pub(crate) mod validate;

use crate::agent::decode::dialect::Dialect;
use crate::engine::limits::Limits;
use crate::engine::plan::{Agent, Check, GracePeriods, Plan, PromptContext, Proof, Rest, Signal};
use crate::engine::usage::Prices;
use crate::engine::{prompt, template};
pub(crate) use layers::{Layer, LayerStack, Origin, SettingsPaths};
pub(crate) use settings::Settings;
use std::path::PathBuf;
use units::Millis;

/// The parts of a run that are not settings: the task, the agent's command and the directories.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunRequest {
    /// The task, if it was given on the command line.
    pub(crate) task: Option<String>,
    /// The agent's command, if one was given after `--`.
    pub(crate) command: Vec<String>,
    /// The directory in which the loop works.
    pub(crate) workspace: PathBuf,
    /// The user's configuration directory.
    pub(crate) config_dir: Option<PathBuf>,
}

/// A flag, key or file that cannot be used, and how to fix it.
#[derive(Debug, PartialEq)]
pub(crate) struct ConfigError {
    /// What is wrong; names the flag, key or file.
    pub(crate) message: String,
    /// How to fix it.
    pub(crate) hint: String,
}

fn config_error<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError {
        message: message.into(),
        hint: hint.into(),
    })
}

/// Builds the plan for a request from the merged settings.
pub(crate) fn build_plan(stack: &LayerStack, request: &RunRequest) -> Result<Plan, ConfigError> {
    let settings = Settings::from_layers(stack);
    let proof = build_proof(stack, &settings)?;
    for path in std::iter::once(&request.workspace).chain(&settings.done_file) {
        if path.to_str().is_none() {
            return config_error(
                format!("the path {} is not UTF-8", path.display()),
                "rename it: the journal can only store UTF-8 paths",
            );
        }
    }
    let (agent, fallback) = agents::resolve_agents(stack, &settings, request)?;
    // Without a stream there are no token counts, so the plan needs no prices.
    let has_stream = std::iter::once(&agent)
        .chain(&fallback)
        .any(|agent| agent.dialect.is_stream());
    let known = prices::load_prices(stack, &settings.prices)?;
    let prices = if has_stream { known } else { Prices::default() };
    for agent in std::iter::once(&agent).chain(&fallback) {
        check_limits_measurable(stack, &settings, agent, &prices)?;
    }
    Ok(Plan {
        task: task::resolve_task(stack, &settings, request)?,
        proof,
        limits: Limits {
            unknown_cost: settings.allow_unknown_cost,
            iteration_ms: nonzero_ms(settings.iteration_timeout),
            inactivity_ms: inactivity_ms(&settings, &agent),
            ..settings.limits
        },
        rest: Rest {
            delay_ms: settings.delay.0,
            backoff_ms: settings.backoff.base.0,
            backoff_cap_ms: settings.backoff.cap.0,
            probe_ms: settings.probe.base.0,
            probe_cap_ms: settings.probe.cap.0,
        },
        agent,
        fallback,
        context: PromptContext {
            level: settings.context,
            diff_chars: settings.diff_chars,
            output_chars: settings.output_chars,
            bus: settings.context_bus,
            template: load_prompt_template(request)?,
        },
        grace: GracePeriods {
            term_ms: settings.grace_term.0,
            marker_ms: settings.grace_marker.0,
            survivor_ms: settings.grace_survivor.0,
            ready_ms: settings.grace_ready.0,
            linger_ms: settings.grace_linger.0,
            children_ms: nonzero_ms(settings.wait_timeout),
        },
        prices,
        scm: scm::scm_from_settings(&stack.display_name("scm"), settings.scm.unwrap_or_default())?,
        notify: settings.notify.filter(|command| !command.trim().is_empty()),
        workspace: request.workspace.clone(),
        // Created later: its path and branch depend on the loop's name.
        worktree: None,
        session: None,
        redacted: Vec::new(),
        share_workspace: settings.share_workspace,
        log_cap: settings.log_cap.0,
        min_free: settings.min_free.0,
    })
}

/// Rejects limits that cannot be measured for this agent; they would never trigger.
fn check_limits_measurable(
    stack: &LayerStack,
    settings: &Settings,
    agent: &Agent,
    prices: &Prices,
) -> Result<(), ConfigError> {
    let reports_tokens =
        Dialect::find(&agent.dialect).is_some_and(|dialect| dialect.reports_tokens);
    if settings.limits.tokens.is_some() && !reports_tokens {
        return config_error(
            format!(
                "{} is set, but ralph cannot read the token usage of `{}`",
                stack.display_name("max-tokens"),
                agent.name
            ),
            "limit iterations or time instead",
        );
    }
    let model = agent.model.as_deref();
    let has_price = reports_tokens && model.is_some_and(|model| prices.price_of(model).is_some());
    let has_cost_limit = settings.limits.cost_usd.is_some();
    if !has_cost_limit || agent.reports_cost || has_price || settings.allow_unknown_cost {
        return Ok(());
    }
    let (limit, name) = (stack.display_name("max-cost"), &agent.name);
    match model {
        Some(model) if reports_tokens => config_error(
            format!("{limit} is set, but the price of {model} is unknown"),
            format!("set prices.{model} in the settings, or add --allow-unknown-cost"),
        ),
        _ if reports_tokens => config_error(
            format!("{limit} is set, but {name} reports tokens without cost or model"),
            "name the model with --model, so that its price is known; or add --allow-unknown-cost",
        ),
        _ => config_error(
            format!("{limit} is set, but ralph cannot read the cost of `{name}`"),
            "add --allow-unknown-cost; the agent can append dollars to $RALPH_TASK_DIR/COST",
        ),
    }
}

fn build_proof(stack: &LayerStack, settings: &Settings) -> Result<Proof, ConfigError> {
    let mut checks: Vec<Check> = Vec::new();
    for (number, check) in settings.checks.iter().enumerate() {
        if check.command.trim().is_empty() {
            return config_error(
                format!(
                    "{}: check number {} is empty",
                    stack.display_name("checks"),
                    number + 1
                ),
                "give it a command, as in --check \"cargo test\"",
            );
        }
        checks.push(Check {
            command: check.command.clone(),
            slug: unique_slug(&check.command, &checks),
            timeout_ms: nonzero_ms(check.timeout.unwrap_or(settings.check_timeout))
                .unwrap_or(NO_TIMEOUT),
            on_fail: check.on_fail.unwrap_or(settings.on_fail),
        });
    }
    if let Some(pattern) = &settings.done_pattern {
        check_pattern(&stack.display_name("done-pattern"), pattern)?;
    }
    if let Some(promise) = settings
        .promise
        .as_ref()
        .filter(|promise| promise.trim().is_empty())
    {
        return config_error(
            format!("{} {promise:?} is empty", stack.display_name("promise")),
            "give the text that the agent has to promise",
        );
    }
    let promises = &settings.fallback_promises;
    if promises.is_empty() || promises.iter().any(|promise| promise.trim().is_empty()) {
        return config_error(
            format!(
                "{} is empty or contains an empty promise",
                stack.display_name("fallback-promises")
            ),
            "list at least one promise, or set noPromise: true to ask for none",
        );
    }
    for (name, path) in [
        ("done-file", &settings.done_file),
        ("prompt-file", &settings.prompt_file),
    ] {
        if path
            .as_ref()
            .is_some_and(|path| path.as_os_str().is_empty())
        {
            return config_error(
                format!("{} is empty", stack.display_name(name)),
                "give the path of a file",
            );
        }
    }
    if settings
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty())
    {
        return config_error(
            format!("{} is empty", stack.display_name("model")),
            "name a model, or leave it out",
        );
    }
    // Between layers, the higher one has already replaced the lower; so both come from one layer.
    if settings.no_promise && settings.promise.is_some() {
        return config_error(
            format!(
                "{} and {} contradict each other",
                stack.display_name("promise"),
                stack.display_name("no-promise")
            ),
            "give only one of them",
        );
    }
    let fallback = if settings.no_promise {
        vec![]
    } else {
        settings.fallback_promises.clone()
    };
    let signals = [
        settings.promise.clone().map(Signal::Promise),
        settings.done_pattern.clone().map(Signal::Pattern),
        settings.done_file.clone().map(Signal::File),
    ];
    Ok(Proof {
        checks,
        preflight: settings.preflight,
        signals: signals.into_iter().flatten().collect(),
        fallback,
    })
}

/// A terminal screen that has not changed for this long is probably waiting for input.
const TERMINAL_INACTIVITY: Millis = Millis(60_000);

/// An agent whose event stream has been silent for this long probably hangs.
const STREAM_INACTIVITY: Millis = Millis(900_000);

fn inactivity_ms(settings: &Settings, agent: &Agent) -> Option<u64> {
    let default = || match agent {
        agent if agent.terminal => Some(TERMINAL_INACTIVITY),
        agent => agent.dialect.is_stream().then_some(STREAM_INACTIVITY),
    };
    nonzero_ms(settings.inactivity_timeout.or_else(default)?)
}

fn nonzero_ms(duration: Millis) -> Option<u64> {
    Some(duration.0).filter(|ms| *ms > 0)
}

fn check_pattern(name: &str, pattern: &str) -> Result<(), ConfigError> {
    let Err(error) = regex::Regex::new(pattern) else {
        return Ok(());
    };
    let text = error.to_string();
    let reason = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let hint = if text.contains("look-around") {
        "Rust regular expressions have no look-around: describe what matches instead"
    } else {
        "use Rust regex syntax; put a backslash before a literal . ( [ { * + or ?"
    };
    config_error(
        format!("{name} {pattern:?} is not a valid pattern: {reason}"),
        hint,
    )
}

/// The value for "no timeout": too large to expire, small enough to add to a clock without
/// overflow.
pub(crate) const NO_TIMEOUT: u64 = u64::MAX / 4;

fn load_prompt_template(request: &RunRequest) -> Result<String, ConfigError> {
    let dirs = [
        Some(request.workspace.join(".ralph")),
        request.config_dir.clone(),
    ];
    for path in dirs
        .into_iter()
        .flatten()
        .map(|dir| dir.join("template.md"))
    {
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return config_error(
                    format!("cannot read {}: {error}", path.display()),
                    "it must be a UTF-8 text file",
                );
            }
            Ok(text) => {
                return match template::find_invalid_tag(&text, &prompt::TEMPLATE_FIELDS) {
                    None => Ok(text),
                    Some(tag) => config_error(
                        format!("{}: invalid tag {tag}", path.display()),
                        format!(
                            "a template can use {}; close sections in order",
                            prompt::TEMPLATE_FIELDS.join(", ")
                        ),
                    ),
                };
            }
        }
    }
    Ok(include_str!("../../presets/prompt.md").to_owned())
}

/// Makes a slug for a check's command that is safe in file names and differs from those of
/// `others`.
fn unique_slug(command: &str, others: &[Check]) -> String {
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
