//! What a person typed behind a slash in a session: which command, and which words of it are flags.
//!
//! No shell ever sees these words. Quotes, dollars, backticks and line ends are text; quotes matter in three places
//! only: around a flag's value, around words that hold no flags, and around a whole prompt.

mod tokens;

use crate::engine::signals;
use tokens::{Text, heal, other_side, quoted, unquoted_whole};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Begin a loop in this session.
    Loop,
    /// End it.
    Cancel,
    /// Explain it.
    Help,
}

/// What a loop command means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Explain it.
    Help,
    /// Begin a loop.
    Loop(Errand),
}

/// The loop that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errand {
    /// The work.
    pub prompt: String,
    /// The limit: none if nothing was said, 0 if there is to be none.
    pub max_iterations: Option<u32>,
    /// The claim asked of the agent, white space folded.
    pub promise: Option<String>,
    /// The commands that prove the work.
    pub checks: Vec<String>,
}

/// What is wrong with the words, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What is wrong, naming the flag and what was given.
    pub error: String,
    /// What to do, a line each.
    pub hint: Vec<String>,
}

const ITERATIONS: &str = "--max-iterations";
const PROMISE: &str = "--completion-promise";
const CHECK: &str = "--check";
const HELP: &str = "--help";
const FLAGS: [&str; 4] = [ITERATIONS, PROMISE, CHECK, HELP];

/// A longer word is nobody's slip of the fingers.
const SLIP_MAX: usize = 40;

/// The command that a prompt begins with, and all that stands behind it.
pub fn command(prompt: &str) -> Option<(Command, &str)> {
    let text = prompt.trim_start();
    let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let name = word.strip_prefix(['/', '$'])?;
    let name = ["ralph:", "prompts:"]
        .iter()
        .find_map(|space| name.strip_prefix(space))
        .unwrap_or(name);
    let command = match name {
        "ralph-loop" => Command::Loop,
        "cancel-ralph" => Command::Cancel,
        "ralph-help" => Command::Help,
        _ => return None,
    };
    Some((command, rest))
}

/// What the words behind a loop command mean.
pub fn parse(arguments: &str) -> Result<Asked, Wrong> {
    let mut text = Text::of(arguments);
    let mut errand = Errand::default();
    let mut prompt = String::new();
    loop {
        prompt.push_str(text.space());
        let word = text.word();
        if word.is_empty() {
            break;
        }
        match meaning(word)? {
            Meaning::Prompt => {
                prompt.push_str(word);
                continue;
            }
            Meaning::Help => return Ok(Asked::Help),
            Meaning::EndOfFlags => {}
            Meaning::Iterations => iterations(&mut errand, &mut text, word)?,
            Meaning::Promise => promise(&mut errand, &mut text, word)?,
            Meaning::Check => check(&mut errand, &mut text, word)?,
        }
        heal(&mut prompt, &mut text);
        if word == "--" {
            prompt.push_str(text.rest());
            break;
        }
    }
    let prompt = prompt.trim();
    errand.prompt = unquoted_whole(prompt).unwrap_or_else(|| prompt.to_owned());
    if errand.prompt.is_empty() {
        Err(no_prompt())
    } else {
        Ok(Asked::Loop(errand))
    }
}

// ---------------------------------------------------------------- flags

enum Meaning {
    Prompt,
    Help,
    EndOfFlags,
    Iterations,
    Promise,
    Check,
}

fn meaning(word: &str) -> Result<Meaning, Wrong> {
    Ok(match word {
        "--" => Meaning::EndOfFlags,
        "-h" | HELP => Meaning::Help,
        ITERATIONS => Meaning::Iterations,
        PROMISE => Meaning::Promise,
        CHECK => Meaning::Check,
        _ => match near_miss(word) {
            None => Meaning::Prompt,
            Some((typed, flag)) => {
                return wrong(
                    format!("{typed} is no flag of /ralph-loop; {flag} is"),
                    [
                        format!("if that was meant: {}", example(flag)),
                        "if it is part of the prompt: put the prompt in quotes, or -- before it"
                            .into(),
                    ],
                );
            }
        },
    })
}

/// The flag that a word was probably meant to be, and what was typed of it. Anything else in dashes is text.
fn near_miss(word: &str) -> Option<(&str, &'static str)> {
    // One dash too many or too few, or one that an editor made longer.
    let bare = word.trim_start_matches(['-', '–', '—', '−']);
    let dashes = &word[..word.len() - bare.len()];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = &bare[..bare.find(|c| !is_name(c)).unwrap_or(bare.len())];
    if dashes.is_empty() || name.is_empty() || name.len() > SLIP_MAX {
        return None;
    }
    let typed = letters(name);
    let is_meant = |(flag, slips): &(&str, usize)| {
        let is_near = || {
            typed.len().abs_diff(flag.len()) <= *slips
                && strsim::osa_distance(&typed, flag) <= *slips
        };
        let is_begun = || typed.len() >= 7 && flag.starts_with(&typed);
        typed == *flag || dashes == "--" && (is_near() || is_begun())
    };
    // Where there is no session, the promise goes by a shorter name.
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

/// A name without what people get wrong: case, dashes, and a number that hangs on.
fn letters(name: &str) -> String {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// The value of a flag that was just read; none if there is none.
fn value(text: &mut Text<'_>, flag: &str) -> Result<Option<String>, Wrong> {
    let joined = text.rest().starts_with('=');
    if joined {
        text.take(1);
    } else {
        text.space();
    }
    let rest = text.rest();
    let Some(quote) = rest
        .chars()
        .next()
        .filter(|c| matches!(c, '\'' | '"' | '“' | '‘'))
    else {
        let next = text.clone().word();
        let is_flag = !joined && (next == "--" || FLAGS.contains(&next));
        let bare = if is_flag { "" } else { text.bare() };
        return Ok((!bare.is_empty()).then(|| bare.to_owned()));
    };
    let Some((inner, length)) = quoted(rest, quote) else {
        let close = other_side(quote);
        return wrong(
            format!(
                "{flag} has a value that begins with {quote} and has no closing {close}: {}",
                brief(rest)
            ),
            [
                format!("close it, with white space or nothing behind the {close}"),
                format!("for example: {}", example(flag)),
            ],
        );
    };
    text.take(length);
    Ok(Some(inner))
}

fn iterations(errand: &mut Errand, text: &mut Text<'_>, flag: &str) -> Result<(), Wrong> {
    let examples = || {
        ["10", "50", "0   (unlimited)"]
            .map(|number| format!("valid: {flag} {number}"))
            .into_iter()
            .collect()
    };
    let fail = |error: String| {
        Err(Wrong {
            error,
            hint: examples(),
        })
    };
    let Some(given) = value(text, flag)? else {
        return fail(format!(
            "{flag} needs a number, and there is none behind it"
        ));
    };
    if given.is_empty() || !given.bytes().all(|byte| byte.is_ascii_digit()) {
        let given = brief(&given);
        return fail(format!(
            "{flag} must be a whole number from 0 up, not a decimal, negative or text: {given}"
        ));
    }
    let Ok(number) = given.parse() else {
        return fail(format!(
            "{flag} is too big: {}; the most is {}",
            brief(&given),
            u32::MAX
        ));
    };
    match errand.max_iterations.replace(number) {
        Some(before) => twice(flag, &before.to_string(), &number.to_string()),
        None => Ok(()),
    }
}

fn promise(errand: &mut Errand, text: &mut Text<'_>, flag: &str) -> Result<(), Wrong> {
    let given = worded(
        text,
        flag,
        &["'DONE'", "'TASK COMPLETE'", "'All tests passing'"],
    )?;
    let words = signals::fold(&given);
    let said = signals::read(
        &format!("<promise>{words}</promise>"),
        std::slice::from_ref(&words),
    );
    if !said.promised {
        return wrong(
            format!(
                "{flag} has a tag in it that no message of the agent could ever match: {}",
                brief(&given)
            ),
            [
                "give the words alone; ralph asks the agent to put them into <promise> and </promise>".into(),
                format!("for example: {}", example(flag)),
            ],
        );
    }
    match errand.promise.replace(words.clone()) {
        Some(before) => twice(flag, &brief(&before), &brief(&words)),
        None => Ok(()),
    }
}

fn check(errand: &mut Errand, text: &mut Text<'_>, flag: &str) -> Result<(), Wrong> {
    errand.checks.push(worded(
        text,
        flag,
        &["'cargo test'", "\"npm test\"", "./check.sh"],
    )?);
    Ok(())
}

/// The value of a flag that takes words.
fn worded(text: &mut Text<'_>, flag: &str, examples: &[&str]) -> Result<String, Wrong> {
    let given = value(text, flag)?;
    let error = match given {
        Some(words) if !words.trim().is_empty() => return Ok(words),
        Some(blank) => format!("{flag} needs words, and these are empty: {}", brief(&blank)),
        None => format!("{flag} needs words, and there are none behind it"),
    };
    let hint = examples
        .iter()
        .map(|words| format!("valid: {flag} {words}"));
    Err(Wrong {
        error,
        hint: hint
            .chain(["several words must be in quotes".into()])
            .collect(),
    })
}

// ---------------------------------------------------------------- refusals

fn wrong<T>(error: String, hint: impl Into<Vec<String>>) -> Result<T, Wrong> {
    Err(Wrong {
        error,
        hint: hint.into(),
    })
}

fn twice<T>(flag: &str, before: &str, now: &str) -> Result<T, Wrong> {
    wrong(
        format!("{flag} is given twice: {before}, then {now}"),
        [format!("give it once: {}", example(flag))],
    )
}

fn no_prompt() -> Wrong {
    Wrong {
        error: "there is no prompt: /ralph-loop needs to be told the work".into(),
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

/// Words of any length in one line, in quotes where that shows what they are.
fn brief(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

#[cfg(test)]
mod tests;
