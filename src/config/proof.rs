//! Builds the proof: the checks and the signals that the settings ask for.

use super::{ConfigError, LayerStack, Settings, check_pattern, config_error, nonzero_ms};
use crate::engine::plan::{Check, Proof, Signal};

/// The value for "no timeout": too large to expire, small enough to add to a clock without
/// overflow.
pub(crate) const NO_TIMEOUT: u64 = u64::MAX / 4;

pub(super) fn build_proof(stack: &LayerStack, settings: &Settings) -> Result<Proof, ConfigError> {
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
