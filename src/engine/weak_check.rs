//! Recognizes checks whose result means nothing: they cannot run, or exit with 0 whatever happens.
//!
//! Both are read from one run. A check that only fails is red, even if its script does not exist
//! yet: the task may be to write it.

use super::event::CheckReport;
use super::label::{CheckLabel, Label};
use regex::Regex;
use std::sync::LazyLock;

/// Number of lines at the end of the output in which a runner's last words are looked for.
const LAST_LINES: usize = 10;

/// Runners whose usage errors are the check's fault and not the code's.
const RUNNERS: [&str; 26] = [
    "pytest", "py.test", "python", "python3", "tox", "nox", "ruff", "flake8", "mypy", "pylint",
    "cargo", "go", "node", "npm", "npx", "pnpm", "yarn", "bun", "deno", "jest", "vitest", "mocha",
    "eslint", "tsc", "make", "ctest",
];

/// `sh: 1: jest: not found` or `bash: line 1: jest: command not found`, for a program in `PATH`.
static NOT_FOUND: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|: )(?P<program>[\w.+-]+): (?:command )?not found$").expect("valid")
});

/// `sh: 1: ./check.sh: Permission denied`.
static NOT_EXECUTABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|: )(?P<program>[^\s:]+): (?:Permission denied|cannot execute.*)$")
        .expect("valid")
});

/// `sh: 1: Syntax error: end of file unexpected`, in the check's own command.
static SYNTAX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:/\S*/)?(?:ba|da|k|z)?sh: (?:-c: )?(?:line )?\d+: (?:(?i)syntax error|unexpected EOF)",
    )
    .expect("valid")
});

static USAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:unrecognized (?:arguments?|options?|subcommand)|unexpected argument|",
        r"unknown (?:option|argument|flag|shorthand flag)|invalid option|",
        r"flag provided but not defined|no such (?:command|subcommand|option)|bad option:)"
    ))
    .expect("valid")
});

/// `/usr/bin/python3: No module named pytest`.
static NO_MODULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\S*python\S*: No module named (?:pytest|nose2|tox|nox|ruff|flake8|mypy|pylint|coverage)$",
    )
    .expect("valid")
});

/// Last lines of runners and builds that have failed.
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:FAILED(?: \(.*\))?$|FAIL(?:\t.*)?$|BUILD FAILED\b|BUILD FAILURE$|\[ERROR\] BUILD FAILURE|",
        r"error: could not compile |error: test failed|error: aborting due to |",
        r"Found [1-9]\d* errors?\b|make(?:\[\d+\])?: \*\*\* |",
        r"✖ \d+ problems? \([1-9]\d* errors?|npm (?:ERR!|error) |",
        r"Test Suites: [1-9]\d* failed|Tests: +[1-9]\d* failed|test result: FAILED|",
        r"=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$)"
    ))
    .expect("valid")
});

/// Programs at the end of a pipe that succeed whatever they read.
const FILTERS: [&str; 12] = [
    "tail", "head", "cat", "tee", "less", "more", "nl", "ts", "wc", "tr", "cut", "column",
];

/// Commands that always succeed.
const SUCCESSES: [&str; 4] = ["true", ":", "echo", "printf"];

/// Returns the label of a check that one run is enough for: broken or swallowed. `output` must be
/// cleaned. `None` if the result means what it says.
pub(crate) fn label_by_one_run(command: &str, report: &CheckReport, output: &str) -> Option<Label> {
    if report.is_green() {
        let why = swallowed_failure(report, output).or_else(|| swallowing_shape(command))?;
        return Some(Label::new(CheckLabel::Swallowed, why));
    }
    if report.timed_out {
        // The task may be to end a hang.
        return None;
    }
    let why = broken(command, report, output)?;
    Some(Label::new(CheckLabel::Broken, why))
}

/// Returns what the output of a check that exited with 0 says about failures.
fn swallowed_failure(report: &CheckReport, output: &str) -> Option<String> {
    let failed = report.tests.map_or(0, |tests| tests.failed);
    if failed > 0 {
        return Some(format!(
            "it exits with 0, but its output says that {failed} failed"
        ));
    }
    let line = last_lines(output).find(|line| FAILED.is_match(line))?;
    Some(format!("it exits with 0, but its output says: {line}"))
}

/// Returns why a red check cannot run. If it has run tests, it can: they may print anything.
fn broken(command: &str, report: &CheckReport, output: &str) -> Option<String> {
    let code = report.exit.code?;
    let find = |pattern: &Regex| last_lines(output).find(|line| pattern.is_match(line));
    let says = |line: &str| format!("it cannot run: {line}");
    match code {
        127 => find(&NOT_FOUND).map(says),
        126 => find(&NOT_EXECUTABLE).map(says),
        _ => {
            let syntax = (code == 2).then(|| find(&SYNTAX)).flatten();
            let program = command.split_whitespace().next().unwrap_or_default();
            let ran_tests = report.tests.is_some();
            let is_usage = matches!(code, 1 | 2 | 4 | 9 | 64) && RUNNERS.contains(&program);
            let usage = (is_usage && !ran_tests).then(|| find(&USAGE)).flatten();
            let is_module = code == 1 && !ran_tests;
            let module = is_module.then(|| find(&NO_MODULE)).flatten();
            syntax.or(usage).or(module).map(says)
        }
    }
}

fn last_lines(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.lines().rev().map(str::trim);
    lines.filter(|line| !line.is_empty()).take(LAST_LINES)
}

/// Returns how a command hides the exit code of what it runs, by its last parts; `None` if it does
/// not, or if that cannot be told.
fn swallowing_shape(command: &str) -> Option<String> {
    let (parts, operators) = split(command)?;
    let words: Vec<&str> = parts.last()?.split_whitespace().collect();
    let (program, args) = words.split_first()?;
    if words.contains(&"--exit-zero") {
        return Some("--exit-zero hides its exit code".into());
    }
    let always_succeeds = SUCCESSES.contains(program) || (*program == "exit" && args == ["0"]);
    let leaves_early = |part: &String| part.split_whitespace().next() == Some("exit");
    if parts.iter().rev().skip(1).any(leaves_early) {
        return None;
    }
    match *operators.last()? {
        "|" if FILTERS.contains(program) && !command.contains("pipefail") => Some(format!(
            "the exit code is that of {program}, at the end of a pipe"
        )),
        "||" | ";" if always_succeeds => {
            let operator = operators.last()?;
            Some(format!(
                "`{operator} {}` hides its exit code",
                words.join(" ")
            ))
        }
        _ => None,
    }
}

/// Splits a command line at its operators; `None` if it has parts that only a shell can read, such
/// as conditions, subshells and substitutions.
fn split(command: &str) -> Option<(Vec<String>, Vec<&'static str>)> {
    let (mut parts, mut operators) = (vec![String::new()], Vec::new());
    let mut chars = command
        .trim_end_matches([';', '\n', ' '])
        .chars()
        .peekable();
    while let Some(c) = chars.next() {
        let operator = match c {
            '\'' | '"' => {
                // What is quoted is an argument: its text does not matter.
                let mut quoted = chars.by_ref().take_while(|quote| *quote != c);
                if c == '"' && quoted.any(|c| matches!(c, '\\' | '`' | '$')) {
                    return None;
                }
                quoted.for_each(drop);
                parts.last_mut()?.push('_');
                continue;
            }
            '|' if chars.next_if_eq(&'|').is_some() => "||",
            '|' => {
                chars.next_if_eq(&'&');
                "|"
            }
            '&' if chars.next_if_eq(&'&').is_some() => "&&",
            // A redirection such as 2>&1.
            '&' if parts.last()?.ends_with(['>', '<']) => {
                parts.last_mut()?.push(c);
                continue;
            }
            '&' | '(' | ')' | '{' | '}' | '`' | '$' | '\\' | '#' => return None,
            ';' | '\n' => ";",
            c => {
                parts.last_mut()?.push(c);
                continue;
            }
        };
        operators.push(operator);
        parts.push(String::new());
    }
    let is_compound = |part: &String| {
        let first = part.split_whitespace().next().unwrap_or_default();
        ["if", "while", "until", "for", "case", "!", "set", "exec"].contains(&first)
    };
    (!parts.iter().any(is_compound)).then_some((parts, operators))
}
