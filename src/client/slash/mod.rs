//! Parses the slash commands that a user types in a session.
//!
//! No shell is involved: dollars, backticks and line ends are text. Quotes matter in three places
//! only: around a flag's value, around text that contains no flags, and around the whole prompt.

mod cursor;

use super::descriptor::clients;
use super::quote_short;
use crate::engine::signals;
use cursor::{ArgCursor, close_gap, closing_quote, parse_quoted, strip_outer_quotes};

/// One of ralph's slash commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashCommand {
    /// `/ralph-loop`: start a loop in this session, or show help.
    Loop,
    /// `/cancel-ralph`: cancel this session's loop.
    Cancel,
    /// `/ralph-help`: show help.
    Help,
}

/// The action that the arguments of `/ralph-loop` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopCommand {
    /// Show the help of `/ralph-loop`.
    Help,
    /// Start a loop with these arguments.
    Start(LoopArgs),
}

/// The arguments of `/ralph-loop`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopArgs {
    /// The task that the agent works on.
    pub prompt: String,
    /// The iteration limit: `None` if the flag is missing, 0 for unlimited.
    pub max_iterations: Option<u32>,
    /// The promise that the agent has to make, with whitespace folded; `None` if the flag is
    /// missing.
    pub promise: Option<String>,
    /// Commands that ralph runs as checks.
    pub checks: Vec<String>,
}

/// An error in the arguments of a slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    /// A description of the error, with the flag and its value.
    pub error: String,
    /// Hints for fixing the error, one line each.
    pub hint: Vec<String>,
}

const ITERATIONS: &str = "--max-iterations";
const PROMISE: &str = "--completion-promise";
const CHECK: &str = "--check";
const HELP: &str = "--help";
const FLAGS: [&str; 4] = [ITERATIONS, PROMISE, CHECK, HELP];

/// Maximum length of a misspelled flag, in bytes. Longer words are part of the prompt.
const MISSPELLING_MAX: usize = 40;

/// Parses the command at the start of a prompt. Also returns the rest of the prompt. Returns `None`
/// if the prompt does not start with one of ralph's commands.
pub fn parse_command(prompt: &str) -> Option<(SlashCommand, &str)> {
    let text = prompt.trim_start();
    let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let name = word.strip_prefix(|c| clients().iter().any(|client| client.sigil == c))?;
    let mut namespaces = clients().iter().flat_map(|client| &client.namespaces);
    let name = namespaces
        .find_map(|namespace| name.strip_prefix(namespace.as_str()))
        .unwrap_or(name);
    let command = match name {
        "ralph-loop" => SlashCommand::Loop,
        "cancel-ralph" => SlashCommand::Cancel,
        "ralph-help" => SlashCommand::Help,
        _ => return None,
    };
    Some((command, rest))
}

/// Parses the arguments of `/ralph-loop`.
pub fn parse_loop_args(arguments: &str) -> Result<LoopCommand, ArgError> {
    let mut cursor = ArgCursor::new(arguments);
    let mut args = LoopArgs::default();
    let mut prompt = String::new();
    loop {
        prompt.push_str(cursor.space());
        let word = cursor.word();
        if word.is_empty() {
            break;
        }
        match classify(word)? {
            ArgKind::Prompt => {
                prompt.push_str(word);
                continue;
            }
            ArgKind::Help => return Ok(LoopCommand::Help),
            ArgKind::EndOfFlags => {}
            ArgKind::Iterations => parse_iterations(&mut args, &mut cursor, word)?,
            ArgKind::Promise => parse_promise(&mut args, &mut cursor, word)?,
            ArgKind::Check => parse_check(&mut args, &mut cursor, word)?,
        }
        close_gap(&mut prompt, &mut cursor);
        if word == "--" {
            prompt.push_str(cursor.rest());
            break;
        }
    }
    let prompt = prompt.trim();
    args.prompt = strip_outer_quotes(prompt).unwrap_or_else(|| prompt.to_owned());
    if args.prompt.is_empty() {
        Err(no_prompt())
    } else {
        Ok(LoopCommand::Start(args))
    }
}

// ---------------------------------------------------------------- flags

enum ArgKind {
    Prompt,
    Help,
    EndOfFlags,
    Iterations,
    Promise,
    Check,
}

fn classify(word: &str) -> Result<ArgKind, ArgError> {
    Ok(match word {
        "--" => ArgKind::EndOfFlags,
        "-h" | HELP => ArgKind::Help,
        ITERATIONS => ArgKind::Iterations,
        PROMISE => ArgKind::Promise,
        CHECK => ArgKind::Check,
        _ => match misspelled_flag(word) {
            None => ArgKind::Prompt,
            Some((typed, flag)) => {
                return fail(
                    format!("/ralph-loop has no flag {typed}; did you mean {flag}?"),
                    [
                        format!("for example: {}", example(flag)),
                        format!(
                            "if {typed} is part of the prompt, quote the prompt or put -- before it"
                        ),
                    ],
                );
            }
        },
    })
}

/// Returns the word as typed and the flag that was probably meant; `None` if the word is part of
/// the prompt, as any other word that starts with dashes is.
fn misspelled_flag(word: &str) -> Option<(&str, &'static str)> {
    // Accept a dash too many or too few, and dashes that an editor replaced with longer ones.
    let bare = word.trim_start_matches(['-', '–', '—', '−']);
    let dashes = &word[..word.len() - bare.len()];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = &bare[..bare.find(|c| !is_name(c)).unwrap_or(bare.len())];
    if dashes.is_empty() || name.is_empty() || name.len() > MISSPELLING_MAX {
        return None;
    }
    let typed = normalize(name);
    let is_meant = |(flag, distance): &(&str, usize)| {
        let is_near = || {
            typed.len().abs_diff(flag.len()) <= *distance
                && strsim::osa_distance(&typed, flag) <= *distance
        };
        let is_prefix = || typed.len() >= 7 && flag.starts_with(&typed);
        typed == *flag || dashes == "--" && (is_near() || is_prefix())
    };
    if dashes == "--"
        && let Some(flag) = FLAGS.iter().find(|flag| is_abbreviation(name, flag))
    {
        return Some((&word[..dashes.len() + name.len()], flag));
    }
    // `ralph run` calls this flag `--promise`.
    let known = [
        ("maxiterations", 2),
        ("completionpromise", 2),
        ("check", 1),
        ("help", 0),
        ("promise", 0),
    ];
    let flag = [ITERATIONS, PROMISE, CHECK, HELP, PROMISE][known.iter().position(is_meant)?];
    Some((&word[..dashes.len() + name.len()], flag))
}

/// Returns whether a name shortens each part of a flag that has several, as in `max-iters`.
fn is_abbreviation(name: &str, flag: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let typed: Vec<&str> = name.split(['-', '_']).collect();
    let parts: Vec<&str> = flag.trim_start_matches('-').split('-').collect();
    let is_short = |(typed, part): (&&str, &&str)| {
        let typed = typed.trim_end_matches(|c: char| c.is_ascii_digit());
        let singular = typed.strip_suffix('s').unwrap_or(typed);
        singular.len() >= 3 && part.starts_with(singular)
    };
    parts.len() > 1 && typed.len() == parts.len() && typed.iter().zip(&parts).all(is_short)
}

/// Removes common mistakes from the name of a flag: case, dashes, and a number typed right after
/// it.
fn normalize(name: &str) -> String {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Parses the value after `flag`; `None` if there is no value.
fn parse_value(cursor: &mut ArgCursor<'_>, flag: &str) -> Result<Option<String>, ArgError> {
    let is_joined = cursor.rest().starts_with('=');
    if is_joined {
        cursor.take(1);
    } else {
        cursor.space();
    }
    let rest = cursor.rest();
    let Some(quote) = rest
        .chars()
        .next()
        .filter(|c| matches!(c, '\'' | '"' | '“' | '‘'))
    else {
        let next = cursor.clone().word();
        let is_flag = !is_joined && (next == "--" || FLAGS.contains(&next));
        let value = if is_flag { "" } else { cursor.bare_word() };
        return Ok((!value.is_empty()).then(|| value.to_owned()));
    };
    let Some((value, len)) = parse_quoted(rest, quote) else {
        let close = closing_quote(quote);
        return fail(
            format!(
                "the value of {flag} starts with {quote} but has no closing {close}: {}",
                quote_short(rest)
            ),
            [
                format!("put the closing {close} before whitespace or at the end"),
                format!("for example: {}", example(flag)),
            ],
        );
    };
    cursor.take(len);
    Ok(Some(value))
}

fn parse_iterations(
    args: &mut LoopArgs,
    cursor: &mut ArgCursor<'_>,
    flag: &str,
) -> Result<(), ArgError> {
    let invalid = |error: String| {
        let examples = ["10", "50", "0   (unlimited)"];
        fail(
            error,
            examples.map(|number| format!("for example: {flag} {number}")),
        )
    };
    let Some(given) = parse_value(cursor, flag)? else {
        return invalid(format!("{flag} needs a number after it"));
    };
    if given.is_empty() || !given.bytes().all(|byte| byte.is_ascii_digit()) {
        let given = quote_short(&given);
        return invalid(format!("{flag} must be a whole number, 0 or more: {given}"));
    }
    let Ok(number) = given.parse() else {
        return invalid(format!(
            "{flag} is too large: {}; the maximum is {}",
            quote_short(&given),
            u32::MAX
        ));
    };
    match args.max_iterations.replace(number) {
        Some(earlier) => given_twice(flag, &earlier.to_string(), &number.to_string()),
        None => Ok(()),
    }
}

fn parse_promise(
    args: &mut LoopArgs,
    cursor: &mut ArgCursor<'_>,
    flag: &str,
) -> Result<(), ArgError> {
    let given = parse_text(
        cursor,
        flag,
        &["'DONE'", "'TASK COMPLETE'", "'All tests passing'"],
    )?;
    let promise = signals::fold_whitespace(&given);
    let signals = signals::read(
        &format!("<promise>{promise}</promise>"),
        std::slice::from_ref(&promise),
    );
    if !signals.promised {
        return fail(
            format!(
                "{flag} contains a tag, so no message from the agent could match it: {}",
                quote_short(&given)
            ),
            [
                "pass only the text: ralph tells the agent to put it in <promise> tags".into(),
                format!("for example: {}", example(flag)),
            ],
        );
    }
    match args.promise.replace(promise.clone()) {
        Some(earlier) => given_twice(flag, &quote_short(&earlier), &quote_short(&promise)),
        None => Ok(()),
    }
}

fn parse_check(
    args: &mut LoopArgs,
    cursor: &mut ArgCursor<'_>,
    flag: &str,
) -> Result<(), ArgError> {
    args.checks.push(parse_text(
        cursor,
        flag,
        &["'cargo test'", "\"npm test\"", "./check.sh"],
    )?);
    Ok(())
}

/// Parses the value of `flag`, which takes text. `examples` are shown in the error message.
fn parse_text(
    cursor: &mut ArgCursor<'_>,
    flag: &str,
    examples: &[&str],
) -> Result<String, ArgError> {
    let error = match parse_value(cursor, flag)? {
        Some(text) if !text.trim().is_empty() => return Ok(text),
        Some(blank) => format!("{flag} must not be empty: {}", quote_short(&blank)),
        None => format!("{flag} needs text after it"),
    };
    let hint = examples
        .iter()
        .map(|text| format!("for example: {flag} {text}"));
    Err(ArgError {
        error,
        hint: hint
            .chain(["quote text that contains spaces".into()])
            .collect(),
    })
}

// ---------------------------------------------------------------- errors

fn fail<T>(error: String, hint: impl Into<Vec<String>>) -> Result<T, ArgError> {
    Err(ArgError {
        error,
        hint: hint.into(),
    })
}

fn given_twice<T>(flag: &str, first: &str, second: &str) -> Result<T, ArgError> {
    fail(
        format!("{flag} is set twice: {first}, then {second}"),
        [format!("set it once: {}", example(flag))],
    )
}

fn no_prompt() -> ArgError {
    ArgError {
        error: "no prompt: tell /ralph-loop what to do".into(),
        hint: vec![
            "for example: /ralph-loop Build a REST API for todos".into(),
            format!("for example: /ralph-loop Fix the auth bug {ITERATIONS} 20"),
            format!("for example: /ralph-loop {PROMISE} 'DONE' Refactor the cache"),
            "all options: /ralph-loop --help".into(),
        ],
    }
}

fn example(flag: &str) -> String {
    let value = match flag {
        ITERATIONS => " 20",
        PROMISE => " 'ALL TESTS PASS'",
        CHECK => " 'cargo test'",
        _ => "",
    };
    format!("{flag}{value}")
}

#[cfg(test)]
mod tests;
