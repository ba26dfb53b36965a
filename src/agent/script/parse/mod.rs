//! Parses scripts. The format is documented in `docs/scripted-agents.md`.

use super::sleeper::ForkOptions;
use super::{IterationRange, Script, ScriptSection, ScriptStep};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// All keywords with which a line may begin.
const KEYWORDS: [&str; 23] = [
    "iteration",
    "say",
    "print",
    "write",
    "append",
    "replace",
    "delete",
    "sleep",
    "echo-prompt",
    "read-prompt",
    "flood",
    "promise",
    "blocked",
    "mark",
    "cost",
    "ignore",
    "sh",
    "fork",
    "refork",
    "hang",
    "exit",
    "crash",
    "#",
];

/// An error in a script, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptError {
    /// The line number, counted from 1.
    pub(crate) line: usize,
    /// A description of the error, with a fix.
    pub(crate) message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

pub(crate) fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut sections: Vec<ScriptSection> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim_start();
        let at = |message| ScriptError {
            line: number,
            message,
        };
        match line.chars().next() {
            None | Some('#') => {}
            Some(sign @ ('|' | '-' | '+')) => {
                add_content(sections.last_mut(), sign, &line[1..]).map_err(at)?;
            }
            Some(_) => {
                require_content(sections.last())?;
                let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                if keyword == "iteration" {
                    let range = iteration_range(rest.trim(), &sections).map_err(at)?;
                    sections.push(ScriptSection {
                        range,
                        steps: Vec::new(),
                    });
                    continue;
                }
                let step = step(keyword, rest.trim()).map_err(at)?;
                let Some(section) = sections.last_mut() else {
                    return Err(at(format!(
                        "`{keyword}` must come after a line such as `iteration 1`"
                    )));
                };
                section.steps.push((number, step));
            }
        }
    }
    require_content(sections.last())?;
    if sections.is_empty() {
        return Err(ScriptError {
            line: 1,
            message: "the script is empty; start with `iteration 1`".into(),
        });
    }
    Ok(Script { sections })
}

/// Adds a content line to the previous step. The first space after `sign` is not content.
fn add_content(section: Option<&mut ScriptSection>, sign: char, text: &str) -> Result<(), String> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let last = section
        .and_then(|section| section.steps.last_mut())
        .map(|(_, step)| step);
    let lines = match (sign, last) {
        ('|', Some(ScriptStep::Write { content, .. } | ScriptStep::Append { content, .. })) => {
            content
        }
        ('-', Some(ScriptStep::Replace { old, .. })) => old,
        ('+', Some(ScriptStep::Replace { new, .. })) => new,
        ('|', _) => {
            return Err(
                "a `|` line is content and must follow `write PATH` or `append PATH`".into(),
            );
        }
        _ => return Err(format!("a `{sign}` line must follow `replace PATH`")),
    };
    lines.push_str(text);
    lines.push('\n');
    Ok(())
}

/// Checks that the last step of the section has the content it requires.
fn require_content(section: Option<&ScriptSection>) -> Result<(), ScriptError> {
    match section.and_then(|section| section.steps.last()) {
        Some((line, ScriptStep::Replace { old, .. })) if old.is_empty() => {
            let message = "`replace` needs the old text below it: `- old`, then `+ new`".into();
            Err(ScriptError {
                line: *line,
                message,
            })
        }
        _ => Ok(()),
    }
}

fn iteration_range(text: &str, sections: &[ScriptSection]) -> Result<IterationRange, String> {
    let number = |text: &str| {
        let number: Option<u32> = text.trim().parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            format!("`{text}` is not an iteration; write `iteration 1`, `2-4`, `5-` or `*`")
        })
    };
    let range = match text.split_once('-') {
        _ if text == "*" => IterationRange::Rest,
        None => number(text).map(|only| IterationRange::Between(only, only))?,
        Some((from, "")) => IterationRange::Between(number(from)?, u32::MAX),
        Some((from, to)) => IterationRange::Between(number(from)?, number(to)?),
    };
    if let IterationRange::Between(from, to) = range
        && from > to
    {
        return Err(format!(
            "`iteration {text}` ends before it starts; write the smaller number first"
        ));
    }
    let overlaps = |other: &ScriptSection| match (range, other.range) {
        (IterationRange::Between(from, to), IterationRange::Between(other_from, other_to)) => {
            from <= other_to && other_from <= to
        }
        (one, other) => one == other,
    };
    if sections.iter().any(overlaps) {
        return Err(format!(
            "`iteration {text}` overlaps an earlier section; an iteration has only one"
        ));
    }
    Ok(range)
}

fn step(keyword: &str, rest: &str) -> Result<ScriptStep, String> {
    let without_argument = |step: ScriptStep| {
        if rest.is_empty() {
            Ok(step)
        } else {
            Err(format!("`{keyword}` takes no argument"))
        }
    };
    let argument = |example: &str| {
        if rest.is_empty() {
            Err(format!(
                "`{keyword}` needs an argument: `{keyword} {example}`"
            ))
        } else {
            Ok(rest)
        }
    };
    Ok(match keyword {
        "say" => ScriptStep::Print(format!("{rest}\n")),
        "print" => ScriptStep::Print(argument("TEXT")?.to_owned()),
        "write" => ScriptStep::Write {
            path: path(argument("PATH")?)?,
            content: String::new(),
        },
        "append" => ScriptStep::Append {
            path: path(argument("PATH")?)?,
            content: String::new(),
        },
        "replace" => ScriptStep::Replace {
            path: path(argument("PATH")?)?,
            old: String::new(),
            new: String::new(),
        },
        "delete" => ScriptStep::Delete(path(argument("PATH")?)?),
        "sleep" => ScriptStep::Sleep(duration(argument("300ms")?)?),
        "echo-prompt" => without_argument(ScriptStep::EchoPrompt)?,
        "read-prompt" => without_argument(ScriptStep::ReadPrompt)?,
        "flood" => match argument("64MiB")?.split_once(' ') {
            None => ScriptStep::Flood {
                bytes: size(rest)?,
                oneline: false,
            },
            Some((bytes, "oneline")) => ScriptStep::Flood {
                bytes: size(bytes)?,
                oneline: true,
            },
            Some((_, other)) => return Err(format!("`flood` accepts `oneline`, not `{other}`")),
        },
        "promise" => ScriptStep::Print(format!("<promise>{}</promise>\n", argument("TEXT")?)),
        "blocked" => ScriptStep::Print(format!("<blocked>{}</blocked>\n", argument("WHY")?)),
        "mark" => mark(argument("DONE")?)?,
        "cost" => match argument("0.12")?.parse::<f64>() {
            Ok(cost) if cost.is_finite() && cost >= 0.0 => ScriptStep::Cost(rest.to_owned()),
            _ => {
                return Err(format!(
                    "`{rest}` is not a cost; write dollars, such as `cost 0.12`"
                ));
            }
        },
        "ignore" => ScriptStep::Ignore(match argument("TERM")? {
            "TERM" => SIGTERM,
            "INT" => SIGINT,
            "HUP" => SIGHUP,
            other => return Err(format!("`ignore` accepts TERM, INT and HUP, not `{other}`")),
        }),
        "sh" => ScriptStep::Shell(argument("COMMAND")?.to_owned()),
        "fork" => ScriptStep::Fork(fork(argument("60s")?)?),
        "refork" => ScriptStep::Fork(ForkOptions {
            chain: true,
            lifetime: duration(argument("60s")?)?,
            ..ForkOptions::default()
        }),
        "hang" => without_argument(ScriptStep::Hang)?,
        "exit" => {
            let code: Result<u8, _> = argument("1")?.parse();
            ScriptStep::Exit(
                code.map_err(|_| format!("`{rest}` is not an exit code from 0 to 255"))?
                    .into(),
            )
        }
        "crash" => without_argument(ScriptStep::Crash)?,
        _ => return Err(unknown_step(keyword)),
    })
}

/// Parses a path. The path must stay inside the workspace.
fn path(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    let inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside || path.file_name().is_none() {
        return Err(format!(
            "`{text}` is outside the workspace; write a relative path without `..`"
        ));
    }
    Ok(path.into())
}

fn duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let scale = match &text[split..] {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let number: Option<u64> = text[..split].parse().ok();
    let millis = number
        .zip(scale)
        .and_then(|(number, scale)| number.checked_mul(scale));
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| format!("`{text}` is not a duration; write `300ms`, `2s` or `5m`"))
}

fn size(text: &str) -> Result<u64, String> {
    let split = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let scale = match &text[split..] {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = text[..split].parse().ok();
    let bytes = number
        .zip(scale)
        .and_then(|(number, scale)| number.checked_mul(scale));
    bytes.ok_or_else(|| format!("`{text}` is not a size; write `500B`, `64KiB` or `64MiB`"))
}

fn mark(rest: &str) -> Result<ScriptStep, String> {
    let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !matches!(name, "DONE" | "BLOCKED" | "WAIT") {
        return Err(format!(
            "`{name}` is not a marker; write DONE, BLOCKED or WAIT"
        ));
    }
    let text = if text.is_empty() {
        String::new()
    } else {
        format!("{}\n", text.trim())
    };
    Ok(ScriptStep::Mark {
        name: name.into(),
        text,
    })
}

fn fork(rest: &str) -> Result<ForkOptions, String> {
    let mut fork = ForkOptions::default();
    let mut args: Vec<&str> = rest.split_whitespace().collect();
    fork.lifetime = duration(args.pop().unwrap_or_default())?;
    for option in args {
        *match option {
            "setsid" => &mut fork.setsid,
            "daemon" => &mut fork.daemon,
            "clearenv" => &mut fork.clearenv,
            "ignore-term" => &mut fork.ignore_term,
            "hold" => &mut fork.hold,
            _ => {
                return Err(format!(
                    "`fork` accepts setsid, daemon, clearenv, ignore-term and hold, not `{option}`"
                ));
            }
        } = true;
    }
    Ok(fork)
}

fn unknown_step(keyword: &str) -> String {
    let nearest = KEYWORDS
        .iter()
        .map(|known| (strsim::levenshtein(keyword, known), known))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    match nearest {
        Some((_, known)) => format!("unknown step `{keyword}`; did you mean `{known}`?"),
        None => {
            format!("unknown step `{keyword}`; docs/scripted-agents.md lists all steps")
        }
    }
}

#[cfg(test)]
mod tests;
