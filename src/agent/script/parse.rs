//! How a script is written: the line format of `docs/scripted-agents.md`.

use super::sleeper::Fork;
use super::{Script, Section, Step, When};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Every word that a line may begin with.
const WORDS: [&str; 23] = [
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

/// Why a text is not a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads a script.
pub fn parse(text: &str) -> Result<Script, ParseError> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim_start();
        let at = |message| ParseError {
            line: number,
            message,
        };
        match line.chars().next() {
            None | Some('#') => {}
            Some(sign @ ('|' | '-' | '+')) => {
                content(sections.last_mut(), sign, &line[1..]).map_err(at)?
            }
            Some(_) => {
                finished(sections.last())?;
                let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                if word == "iteration" {
                    let when = when(rest.trim(), &sections).map_err(at)?;
                    sections.push(Section {
                        when,
                        steps: Vec::new(),
                    });
                    continue;
                }
                let step = step(word, rest.trim()).map_err(at)?;
                let Some(section) = sections.last_mut() else {
                    return Err(at(format!(
                        "`{word}` stands before the first `iteration 1`"
                    )));
                };
                section.steps.push((number, step));
            }
        }
    }
    finished(sections.last())?;
    if sections.is_empty() {
        return Err(ParseError {
            line: 1,
            message: "the script is empty; begin with `iteration 1`".into(),
        });
    }
    Ok(Script { sections })
}

/// Adds a content line to the step before it. One blank after the sign is not content.
fn content(section: Option<&mut Section>, sign: char, text: &str) -> Result<(), String> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let last = section
        .and_then(|section| section.steps.last_mut())
        .map(|(_, step)| step);
    let lines = match (sign, last) {
        ('|', Some(Step::Write { content, .. } | Step::Append { content, .. })) => content,
        ('-', Some(Step::Replace { old, .. })) => old,
        ('+', Some(Step::Replace { new, .. })) => new,
        ('|', _) => {
            return Err(
                "a `|` line is content and needs `write PATH` or `append PATH` before it".into(),
            );
        }
        _ => return Err(format!("a `{sign}` line needs `replace PATH` before it")),
    };
    lines.push_str(text);
    lines.push('\n');
    Ok(())
}

/// Checks that the last step got the content it cannot do without.
fn finished(section: Option<&Section>) -> Result<(), ParseError> {
    match section.and_then(|section| section.steps.last()) {
        Some((line, Step::Replace { old, .. })) if old.is_empty() => {
            let message = "`replace` needs the old text below it: `- old`, then `+ new`".into();
            Err(ParseError {
                line: *line,
                message,
            })
        }
        _ => Ok(()),
    }
}

fn when(text: &str, sections: &[Section]) -> Result<When, String> {
    let number = |text: &str| {
        let number: Option<u32> = text.trim().parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            format!("`{text}` is no iteration; write `iteration 1`, `2-4`, `5-` or `*`")
        })
    };
    let when = match text.split_once('-') {
        _ if text == "*" => When::EveryOther,
        None => number(text).map(|only| When::Between(only, only))?,
        Some((from, "")) => When::Between(number(from)?, u32::MAX),
        Some((from, to)) => When::Between(number(from)?, number(to)?),
    };
    if let When::Between(from, to) = when
        && from > to
    {
        return Err(format!("`iteration {text}` ends before it begins"));
    }
    let clash = |other: &Section| match (when, other.when) {
        (When::Between(from, to), When::Between(other_from, other_to)) => {
            from <= other_to && other_from <= to
        }
        (one, other) => one == other,
    };
    if sections.iter().any(clash) {
        return Err(format!(
            "`iteration {text}` meets an earlier section; each iteration has one"
        ));
    }
    Ok(when)
}

fn step(word: &str, rest: &str) -> Result<Step, String> {
    let bare = |step: Step| {
        if rest.is_empty() {
            Ok(step)
        } else {
            Err(format!("`{word}` takes nothing after it"))
        }
    };
    let needs = |example: &str| {
        if rest.is_empty() {
            Err(format!(
                "`{word}` needs something after it: `{word} {example}`"
            ))
        } else {
            Ok(rest)
        }
    };
    Ok(match word {
        "say" => Step::Print(format!("{rest}\n")),
        "print" => Step::Print(needs("TEXT")?.to_owned()),
        "write" => Step::Write {
            path: path(needs("PATH")?)?,
            content: String::new(),
        },
        "append" => Step::Append {
            path: path(needs("PATH")?)?,
            content: String::new(),
        },
        "replace" => Step::Replace {
            path: path(needs("PATH")?)?,
            old: String::new(),
            new: String::new(),
        },
        "delete" => Step::Delete(path(needs("PATH")?)?),
        "sleep" => Step::Sleep(duration(needs("300ms")?)?),
        "echo-prompt" => bare(Step::EchoPrompt)?,
        "read-prompt" => bare(Step::ReadPrompt)?,
        "flood" => match needs("64MiB")?.split_once(' ') {
            None => Step::Flood {
                bytes: size(rest)?,
                oneline: false,
            },
            Some((bytes, "oneline")) => Step::Flood {
                bytes: size(bytes)?,
                oneline: true,
            },
            Some((_, other)) => return Err(format!("`flood` knows `oneline`, not `{other}`")),
        },
        "promise" => Step::Print(format!("<promise>{}</promise>\n", needs("TEXT")?)),
        "blocked" => Step::Print(format!("<blocked>{}</blocked>\n", needs("WHY")?)),
        "mark" => mark(needs("DONE")?)?,
        "cost" => match needs("0.12")?.parse::<f64>() {
            Ok(cost) if cost.is_finite() && cost >= 0.0 => Step::Cost(rest.to_owned()),
            _ => {
                return Err(format!(
                    "`{rest}` is no cost; write dollars, like `cost 0.12`"
                ));
            }
        },
        "ignore" => Step::Ignore(match needs("TERM")? {
            "TERM" => SIGTERM,
            "INT" => SIGINT,
            "HUP" => SIGHUP,
            other => return Err(format!("`ignore` knows TERM, INT and HUP, not `{other}`")),
        }),
        "sh" => Step::Shell(needs("COMMAND")?.to_owned()),
        "fork" => Step::Fork(fork(needs("60s")?)?),
        "refork" => Step::Fork(Fork {
            chain: true,
            time: duration(needs("60s")?)?,
            ..Fork::default()
        }),
        "hang" => bare(Step::Hang)?,
        "exit" => {
            let code: Result<u8, _> = needs("1")?.parse();
            Step::Exit(
                code.map_err(|_| format!("`{rest}` is no exit code; they go from 0 to 255"))?
                    .into(),
            )
        }
        "crash" => bare(Step::Crash)?,
        _ => return Err(unknown(word)),
    })
}

/// A path that stays inside the workspace.
fn path(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    let inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside || path.file_name().is_none() {
        return Err(format!(
            "`{text}` leaves the workspace; write a path below it, without `/` in front and without `..`"
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
        .ok_or_else(|| format!("`{text}` is no time; write `300ms`, `2s` or `5m`"))
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
    bytes.ok_or_else(|| format!("`{text}` is no size; write `500B`, `64KiB` or `64MiB`"))
}

fn mark(rest: &str) -> Result<Step, String> {
    let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !matches!(name, "DONE" | "BLOCKED" | "WAIT") {
        return Err(format!(
            "`{name}` is no marker; they are DONE, BLOCKED and WAIT"
        ));
    }
    let text = if text.is_empty() {
        String::new()
    } else {
        format!("{}\n", text.trim())
    };
    Ok(Step::Mark {
        name: name.into(),
        text,
    })
}

fn fork(rest: &str) -> Result<Fork, String> {
    let mut fork = Fork::default();
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    fork.time = duration(words.pop().unwrap_or_default())?;
    for word in words {
        *match word {
            "setsid" => &mut fork.setsid,
            "daemon" => &mut fork.daemon,
            "clearenv" => &mut fork.clearenv,
            "ignore-term" => &mut fork.ignore_term,
            "hold" => &mut fork.hold,
            _ => {
                return Err(format!(
                    "`fork` knows setsid, daemon, clearenv, ignore-term and hold, not `{word}`"
                ));
            }
        } = true;
    }
    Ok(fork)
}

fn unknown(word: &str) -> String {
    let near = WORDS
        .iter()
        .map(|known| (distance(word, known), known))
        .min()
        .filter(|near| near.0 <= 2);
    match near {
        Some((_, near)) => format!("unknown step `{word}`; did you mean `{near}`?"),
        None => format!("unknown step `{word}`; every step is listed in docs/scripted-agents.md"),
    }
}

/// How many letters must be changed, added or taken away to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.chars().enumerate() {
            let change = corner + usize::from(a != b);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_named_with_its_line() {
        let long = "z".repeat(5000);
        let table: &[(&str, usize, &str)] = &[
            ("", 1, "the script is empty"),
            ("# only\n\n# comments\n", 1, "the script is empty"),
            (
                "say hello",
                1,
                "`say` stands before the first `iteration 1`",
            ),
            (
                "iteration 1\n  sya hello",
                2,
                "unknown step `sya`; did you mean `say`?",
            ),
            (
                "iteration 1\n  echo_prompt",
                2,
                "did you mean `echo-prompt`?",
            ),
            ("iterations 1", 1, "did you mean `iteration`?"),
            ("iteration 1\n  juggle", 2, "every step is listed"),
            (&format!("iteration 1\n{long}"), 2, "unknown step"),
            (
                "iteration 1\n  write",
                2,
                "`write` needs something after it: `write PATH`",
            ),
            ("iteration 1\n  print", 2, "needs something"),
            ("iteration 1\n  sleep", 2, "`sleep 300ms`"),
            ("iteration 1\n  sleep 3 s", 2, "`3 s` is no time"),
            (
                "iteration 1\n  sleep 99999999999999999999s",
                2,
                "is no time",
            ),
            ("iteration 1\n  sleep s", 2, "is no time"),
            ("iteration 1\n  flood 64MB", 2, "`64MB` is no size"),
            (
                "iteration 1\n  flood 64MiB twoline",
                2,
                "`oneline`, not `twoline`",
            ),
            ("iteration 1\n  say x\n  | content", 3, "needs `write PATH`"),
            ("| content", 1, "needs `write PATH`"),
            ("iteration 1\n  write a\n  - old", 3, "needs `replace PATH`"),
            ("iteration 1\n  replace a\n  | old", 3, "needs `write PATH`"),
            ("iteration 1\n  replace a\n  say x", 2, "needs the old text"),
            (
                "iteration 1\n  replace a\n  + new\niteration 2",
                2,
                "needs the old text",
            ),
            ("iteration 1\n  replace a", 2, "needs the old text"),
            ("iteration", 1, "is no iteration"),
            ("iteration 0", 1, "is no iteration"),
            ("iteration one", 1, "`one` is no iteration"),
            ("iteration -3", 1, "is no iteration"),
            ("iteration 4-2", 1, "ends before it begins"),
            (
                "iteration 1\niteration 2\niteration 1",
                3,
                "meets an earlier section",
            ),
            (
                "iteration 1-3\niteration 3-5",
                2,
                "meets an earlier section",
            ),
            ("iteration 5-\niteration 9", 2, "meets an earlier section"),
            ("iteration *\niteration *", 2, "meets an earlier section"),
            (
                "iteration 1\n  write /etc/passwd",
                2,
                "leaves the workspace",
            ),
            ("iteration 1\n  append a/../../b", 2, "leaves the workspace"),
            ("iteration 1\n  delete .", 2, "leaves the workspace"),
            ("iteration 1\n  delete ..", 2, "leaves the workspace"),
            ("iteration 1\n  mark READY", 2, "`READY` is no marker"),
            ("iteration 1\n  cost free", 2, "`free` is no cost"),
            ("iteration 1\n  cost -1", 2, "is no cost"),
            ("iteration 1\n  cost NaN", 2, "is no cost"),
            ("iteration 1\n  ignore KILL", 2, "TERM, INT and HUP"),
            ("iteration 1\n  fork", 2, "`fork 60s`"),
            ("iteration 1\n  fork setsid", 2, "`setsid` is no time"),
            ("iteration 1\n  fork nohup 5s", 2, "not `nohup`"),
            ("iteration 1\n  refork", 2, "needs something"),
            ("iteration 1\n  hang 5s", 2, "`hang` takes nothing"),
            ("iteration 1\n  exit 256", 2, "from 0 to 255"),
            ("iteration 1\n\n# x\n  exit -1", 4, "from 0 to 255"),
        ];
        for (text, line, message) in table {
            let error = parse(text).expect_err(text);
            assert_eq!(error.line, *line, "{text:?}: {error}");
            assert!(error.message.contains(message), "{text:?}: {error}");
        }
    }

    #[test]
    fn every_documented_step_is_read() {
        let text = include_str!("../../../docs/scripted-agents.md");
        let examples: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
        let scripts: Vec<&str> = examples
            .iter()
            .filter_map(|example| example.strip_prefix("script\n"))
            .collect();
        assert!(!scripts.is_empty());
        for script in &scripts {
            parse(script).unwrap_or_else(|error| panic!("{error}\n{script}"));
        }
        for word in WORDS {
            assert!(
                text.contains(&format!("`{word}")),
                "{word} is not documented"
            );
        }
    }

    #[test]
    fn a_fork_has_its_kinds() {
        let parsed = parse("iteration 1\r\n  fork setsid hold clearenv 5m\r\n").unwrap();
        let expected = Fork {
            setsid: true,
            hold: true,
            clearenv: true,
            time: Duration::from_secs(300),
            ..Fork::default()
        };
        assert_eq!(parsed.sections[0].steps, [(2, Step::Fork(expected))]);
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..5000 {
            let words = (0..random.usize(..12)).map(|_| match random.u8(..5) {
                0 => "\n".to_owned(),
                1 => random
                    .choice(["iteration 1\n", "é", "| ", "- ", "+", "1-", "5ms", "*"])
                    .unwrap()
                    .to_owned(),
                2 => random.char(..).to_string(),
                _ => format!("{} ", random.choice(WORDS).unwrap()),
            });
            let _ = parse(&words.collect::<String>());
        }
    }
}
