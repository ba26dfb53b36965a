//! Builds the proof in a plan: the checks and signals that the settings ask for.

use super::settings::CheckSettings;
use super::{
    ConfigError, LayerStack, Settings, check_pattern, config_error, nonzero_ms, reject_secret,
};
use crate::agent::redact::Redactor;
use crate::engine::label::WeakChecks;
use crate::engine::look::SecondLook;
use crate::engine::plan::{Check, Proof, SetupCommand, Signal, line_pattern};

/// The value for "no timeout", in milliseconds. It is too large to expire, and small enough to add
/// to a clock without overflow.
pub(crate) const NO_TIMEOUT: u64 = u64::MAX / 4;

/// Builds the checks, held-out ones last.
fn build_checks(stack: &LayerStack, settings: &Settings) -> Result<Vec<Check>, ConfigError> {
    let redactor = Redactor::from_env();
    let mut checks: Vec<Check> = Vec::new();
    let hidden = settings.hidden_checks.iter().map(|command| {
        let command = command.clone();
        let check = CheckSettings {
            command,
            ..CheckSettings::default()
        };
        ("hidden-checks", check)
    });
    let shown = settings.checks.iter().cloned();
    let all = shown.map(|check| ("checks", check)).chain(hidden);
    for (number, (key, check)) in all.enumerate() {
        let is_held_out = key == "hidden-checks";
        if check.command.trim().is_empty() {
            let number = if is_held_out {
                number - settings.checks.len() + 1
            } else {
                number + 1
            };
            return config_error(
                format!(
                    "{}: check number {number} is empty",
                    stack.display_name(key)
                ),
                "pass a command, as in --check \"cargo test\"",
            );
        }
        if let Some(pattern) = &check.expect {
            let name = if stack.is_from_flag("checks") {
                "--expect".to_owned()
            } else {
                format!("{}[{number}].expect", stack.display_name("checks"))
            };
            check_expect(&name, pattern)?;
        }
        // A flag outweighs what the settings say about one check.
        let timeout = check
            .timeout
            .filter(|_| !stack.is_from_flag("check-timeout"));
        let on_fail = check.on_fail.filter(|_| !stack.is_from_flag("on-fail"));
        checks.push(Check {
            command: check.command.clone(),
            slug: unique_slug(&redactor.redact_text(&check.command), &checks),
            timeout_ms: nonzero_ms(timeout.unwrap_or(settings.check_timeout)).unwrap_or(NO_TIMEOUT),
            on_fail: on_fail.unwrap_or(settings.on_fail),
            is_held_out,
            expect: check.expect.clone(),
        });
    }
    let shown = checks.iter().filter(|check| !check.is_held_out).count();
    if shown == 0 && !checks.is_empty() {
        return config_error(
            format!(
                "{} needs another check",
                stack.display_name("hidden-checks")
            ),
            "add a check that the agent may know, as in --check \"cargo test\"",
        );
    }
    Ok(checks)
}

/// Builds the command that prepares views.
fn build_setup(
    stack: &LayerStack,
    settings: &Settings,
) -> Result<Option<SetupCommand>, ConfigError> {
    let Some(command) = settings.setup.as_deref().map(str::trim) else {
        return Ok(None);
    };
    if command.is_empty() {
        return config_error(
            format!("{} is empty", stack.display_name("setup")),
            "pass a command, as in --setup \"npm ci\"",
        );
    }
    Ok(Some(SetupCommand {
        command: command.to_owned(),
        timeout_ms: nonzero_ms(settings.check_timeout).unwrap_or(NO_TIMEOUT),
    }))
}

/// Builds the proof. `is_task_implied` means that no task was given, so that the checks are the
/// task.
pub(super) fn build_proof(
    stack: &LayerStack,
    settings: &Settings,
    is_task_implied: bool,
) -> Result<Proof, ConfigError> {
    let checks = build_checks(stack, settings)?;
    for (name, globs) in [("protect", &settings.protect), ("allow", &settings.allow)] {
        for glob in globs {
            check_glob(&stack.display_name(name), glob)?;
        }
    }
    for signal in &settings.signals {
        check_signal(&stack.display_name(signal.key()), signal)?;
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
    if settings
        .prompt_file
        .as_ref()
        .is_some_and(|path| path.as_os_str().is_empty())
    {
        empty_path(&stack.display_name("prompt-file"))?;
    }
    if settings
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty())
    {
        return config_error(
            format!("{} is empty", stack.display_name("model")),
            "name a model, or remove the setting",
        );
    }
    // A higher layer has already replaced the lower one's value, so both come from the same layer.
    let is_promise = |signal: &Signal| matches!(signal, Signal::Promise(_));
    let asks_promise = settings.signals.iter().any(is_promise);
    for (name, is_set) in [
        ("until-green", settings.until_green),
        ("no-promise", settings.no_promise),
    ] {
        if is_set && asks_promise {
            return config_error(
                format!(
                    "{} and {} contradict each other",
                    stack.display_name("promise"),
                    stack.display_name(name)
                ),
                "pass only one of them",
            );
        }
    }
    let setup = build_setup(stack, settings)?;
    reject_useless(stack, settings, setup.is_some(), checks.is_empty())?;
    let wants_no_claim = settings.no_promise || is_task_implied;
    let until_green = settings.until_green
        || (wants_no_claim && !checks.is_empty() && settings.signals.is_empty());
    let fallback = if settings.no_promise && !until_green {
        vec![]
    } else {
        settings.fallback_promises.clone()
    };
    Ok(Proof {
        checks,
        preflight: settings.preflight,
        protect: settings.protect.clone(),
        allow: settings.allow.clone(),
        signals: settings.signals.clone(),
        fallback,
        until_green,
        second_look: settings.second_look,
        setup,
        sealed: settings.sealed,
        weak_checks: WeakChecks::from_setting(settings.weak_checks),
    })
}

/// Rejects settings that would do nothing.
fn reject_useless(
    stack: &LayerStack,
    settings: &Settings,
    has_setup: bool,
    is_unchecked: bool,
) -> Result<(), ConfigError> {
    // Settings files are also for loops that do not need them.
    let is_flag = |name: &str, is_set: bool| is_set && stack.is_from_flag(name);
    let has_setup_flag = is_flag("setup", has_setup);
    for (name, is_set) in [("sealed", settings.sealed), ("setup", has_setup_flag)] {
        if is_set && settings.second_look == SecondLook::Never {
            return config_error(
                format!(
                    "{} and {} never contradict each other",
                    stack.display_name(name),
                    stack.display_name("second-look")
                ),
                "pass only one of them",
            );
        }
    }
    for (name, is_set) in [
        ("until-green", settings.until_green),
        ("sealed", is_flag("sealed", settings.sealed)),
        ("setup", has_setup_flag),
    ] {
        if is_set && is_unchecked {
            return config_error(
                format!("{} needs checks", stack.display_name(name)),
                "add one, as in --check \"cargo test\"",
            );
        }
    }
    Ok(())
}

/// Rejects a pattern of a check's output that cannot be read, or would match any output.
fn check_expect(name: &str, pattern: &str) -> Result<(), ConfigError> {
    check_pattern(name, pattern)?;
    if line_pattern(pattern).is_ok_and(|regex| regex.is_match("")) {
        return config_error(
            format!("{name} {pattern:?} matches empty output, so any output would match"),
            "give a text that the check prints only if it has passed",
        );
    }
    Ok(())
}

/// Rejects a pattern of paths that could never match, or would match almost everything.
pub(crate) fn check_glob(name: &str, glob: &str) -> Result<(), ConfigError> {
    let problem = if glob.trim().is_empty() {
        "it is empty".to_owned()
    } else if glob.starts_with('!') {
        "a pattern cannot be negated".to_owned()
    } else if let Err(error) = fast_glob::validate(glob) {
        error.to_string()
    } else {
        return reject_secret(name, glob);
    };
    config_error(
        format!("{name}: `{glob}` is not a valid pattern: {problem}"),
        "write a name such as *.snap, a directory such as golden/, or a path such as tests/api/**",
    )
}

/// Rejects a signal that the agent could never give. `name` is the flag or setting, for messages.
fn check_signal(name: &str, signal: &Signal) -> Result<(), ConfigError> {
    match signal {
        Signal::Promise(text) if text.trim().is_empty() => config_error(
            format!("{name} {text:?} is empty"),
            "pass the text that the agent must write in <promise>…</promise>",
        ),
        Signal::Promise(text) => match tagged(text) {
            Some(inner) => config_error(
                format!("{name} {text:?} contains the tag itself, so it can never be met"),
                format!("give only the text inside the tag: --promise {inner:?}"),
            ),
            None => Ok(()),
        },
        Signal::Pattern(text) => {
            check_pattern(name, text)?;
            if regex::Regex::new(text).is_ok_and(|pattern| pattern.is_match("")) {
                return config_error(
                    format!("{name} {text:?} matches an empty line, so any output would match"),
                    "give a text that the agent prints only when the task is done",
                );
            }
            Ok(())
        }
        Signal::File(path) if path.as_os_str().is_empty() => empty_path(name),
        Signal::File(path) => reject_secret(name, &path.to_string_lossy()),
    }
}

/// Returns the text of a promise without the tags in it; `None` if it contains no tag.
fn tagged(promise: &str) -> Option<String> {
    let tag = regex::Regex::new("(?i)</?(promise|response)>").expect("a valid pattern");
    let inner = tag.replace_all(promise, "");
    (inner != promise).then(|| inner.trim().to_owned())
}

fn empty_path(name: &str) -> Result<(), ConfigError> {
    config_error(
        format!("{name} is empty"),
        "pass the path of a file, as in out/DONE",
    )
}

/// Returns a slug for a check's command that is safe in file names and differs from the slugs of
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
