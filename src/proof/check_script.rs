//! Finds the scripts that a check's command executes: its command words, and the first operands of
//! shells. Other operands may be the very files that the agent should write.

use crate::os::regular_file;
use std::path::{Path, PathBuf};

/// How deeply `sh -c` commands are followed.
const NESTING_MAX: usize = 4;

const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "mksh"];

/// Words before a command that do not change which script it is.
const KEYWORDS: [&str; 14] = [
    "!", "{", "(", "if", "then", "else", "elif", "while", "until", "do", "time", "exec", "command",
    "nohup",
];

/// Programs that run the command in their arguments, and how many operands of theirs come first.
const WRAPPERS: [(&str, usize); 9] = [
    ("env", 0),
    ("nice", 0),
    ("ionice", 0),
    ("setsid", 0),
    ("stdbuf", 0),
    ("sudo", 0),
    ("timeout", 1),
    ("xvfb-run", 0),
    ("chronic", 0),
];

/// Options of the wrappers and of shells that take the next word as their value.
const VALUE_OPTIONS: [&str; 9] = ["-n", "-k", "-s", "-u", "-C", "-S", "-o", "-O", "--rcfile"];

/// Returns the paths of the scripts that a command executes in `dir`. They need not exist.
pub(super) fn scripts(command: &str, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(command, dir, 0, &mut found);
    found.sort();
    found.dedup();
    found
}

/// The longest script in which sourced scripts are looked for, in bytes.
const SCRIPT_MAX: u64 = 256 << 10;

/// Adds the scripts that shell scripts of a check read with `.` or `source`: they are parts of the
/// check. `dir` is the directory in which the check runs.
pub(super) fn add_sourced(scripts: &mut Vec<PathBuf>, dir: &Path) {
    let mut at = 0;
    while at < scripts.len() && at < SOURCED_MAX {
        let own_dir = scripts[at].parent().unwrap_or(dir).to_owned();
        let read = regular_file::read(&scripts[at], SCRIPT_MAX, false);
        let text = read.map_or(Vec::new(), |(text, _)| text);
        let text = String::from_utf8_lossy(&text);
        if is_shell_script(&scripts[at], &text) {
            for path in sourced(&text, &own_dir, dir) {
                if !scripts.contains(&path) {
                    scripts.push(path);
                }
            }
        }
        at += 1;
    }
}

/// Number of scripts after which no more are read.
const SOURCED_MAX: usize = 64;

fn is_shell_script(path: &Path, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").unwrap_or_default();
    let mut words = interpreter.split([' ', '/']);
    words.any(|word| SHELLS.contains(&word)) || path.extension().is_some_and(|end| end == "sh")
}

/// Returns the files that a script reads as shell commands.
fn sourced(text: &str, own_dir: &Path, dir: &Path) -> Vec<PathBuf> {
    const OWN_DIRS: [&str; 4] = [
        "$(dirname \"$0\")",
        "$(dirname $0)",
        "${0%/*}",
        "$(dirname \"${BASH_SOURCE[0]}\")",
    ];
    let mut text = text.to_owned();
    for expression in OWN_DIRS {
        text = text.replace(expression, &own_dir.to_string_lossy());
    }
    let commands = simple_commands(&text).into_iter();
    commands
        .filter_map(|words| match without_prefix(&words) {
            [program, path, ..] if program == "." || program == "source" => Some(join(dir, path)),
            _ => None,
        })
        .filter(|path| path.is_file())
        .collect()
}

fn collect(command: &str, dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth > NESTING_MAX {
        return;
    }
    let mut dir = dir.to_owned();
    for words in simple_commands(command) {
        let words = without_prefix(&words);
        let Some((program, args)) = words.split_first() else {
            continue;
        };
        let base = program.rsplit('/').next().unwrap_or_default();
        if program == "cd" {
            if let Some(to) = args.iter().find(|arg| !arg.starts_with('-')) {
                dir = join(&dir, to);
            }
        } else if program == "." || program == "source" {
            found.extend(args.first().map(|script| join(&dir, script)));
        } else if SHELLS.contains(&base) {
            match shell_operand(args) {
                Some((true, text)) => collect(text, &dir, depth + 1, found),
                Some((false, script)) => found.push(join(&dir, script)),
                None => {}
            }
        }
        if program.contains('/') {
            found.push(join(&dir, program));
        }
    }
}

/// Returns a shell's first operand, and whether it is a command instead of a script.
fn shell_operand(args: &[String]) -> Option<(bool, &str)> {
    let mut is_command = false;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if VALUE_OPTIONS.contains(&arg.as_str()) {
            rest.next();
        } else if arg == "--" {
            return rest.next().map(|operand| (is_command, operand.as_str()));
        } else if let Some(flags) = arg
            .strip_prefix(['-', '+'])
            .filter(|flags| !flags.is_empty())
        {
            is_command |= !flags.starts_with('-') && flags.contains('c');
            // `-euo pipefail`: the last letter takes the next word.
            if !flags.starts_with('-') && flags.len() > 1 && flags.ends_with('o') {
                rest.next();
            }
        } else {
            return Some((is_command, arg));
        }
    }
    None
}

/// Removes assignments, keywords and wrappers before the command.
fn without_prefix(mut words: &[String]) -> &[String] {
    while let Some((first, rest)) = words.split_first() {
        if KEYWORDS.contains(&first.as_str()) || is_assignment(first) {
            words = rest;
            continue;
        }
        let base = first.rsplit('/').next().unwrap_or_default();
        let Some((_, operands)) = WRAPPERS.iter().find(|(name, _)| *name == base) else {
            return words;
        };
        words = rest;
        while let Some(option) = words.first().filter(|word| word.starts_with('-')) {
            let skip = if VALUE_OPTIONS.contains(&option.as_str()) {
                2
            } else {
                1
            };
            words = words.get(skip..).unwrap_or_default();
        }
        words = words.get(*operands..).unwrap_or_default();
    }
    words
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn join(dir: &Path, path: &str) -> PathBuf {
    let mut joined = PathBuf::new();
    for part in dir.join(path).components() {
        match part {
            std::path::Component::ParentDir => {
                joined.pop();
            }
            std::path::Component::CurDir => {}
            part => joined.push(part),
        }
    }
    joined
}

/// Splits a command line into its simple commands, each a list of words without quotes. Words that
/// only the shell can expand stay as they are; no file has such a name.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut drop_next = false;
    let mut chars = text.chars().peekable();
    let finish = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>, drop: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(drop)
        {
            commands.last_mut().expect("there is one").push(word);
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' => word
                .get_or_insert_default()
                .extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match c {
                        '\\' => word.extend(chars.next()),
                        c => word.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') => {}
                next => word.get_or_insert_default().extend(next),
            },
            '#' if word.is_none() => {
                chars.by_ref().take_while(|c| *c != '\n').for_each(drop);
                commands.push(Vec::new());
            }
            '<' | '>' => {
                // The digits before it are a descriptor; the word after it is a file.
                if word
                    .as_ref()
                    .is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()))
                {
                    word = None;
                }
                finish(&mut word, &mut commands, &mut drop_next);
                while chars
                    .next_if(|c| matches!(c, '<' | '>' | '&' | '|'))
                    .is_some()
                {}
                drop_next = true;
            }
            ';' | '&' | '|' | '\n' | '(' | ')' => {
                finish(&mut word, &mut commands, &mut drop_next);
                drop_next = false;
                commands.push(Vec::new());
            }
            c if c.is_whitespace() => finish(&mut word, &mut commands, &mut drop_next),
            c => word.get_or_insert_default().push(c),
        }
    }
    finish(&mut word, &mut commands, &mut drop_next);
    commands.retain(|words| !words.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_command_words_and_first_operands_of_shells() {
        let cases: &[(&str, &[&str])] = &[
            ("./check.sh", &["/w/check.sh"]),
            ("./check.sh src/main.c", &["/w/check.sh"]),
            ("scripts/../check", &["/w/check"]),
            ("/opt/check", &["/opt/check"]),
            ("sh check.sh", &["/w/check.sh"]),
            ("bash -euo pipefail ci/test --fast", &["/w/ci/test"]),
            ("bash -x -o pipefail ci/test", &["/w/ci/test"]),
            ("/bin/sh -e -- check.sh", &["/bin/sh", "/w/check.sh"]),
            ("sh -c './a.sh && ./b.sh'", &["/w/a.sh", "/w/b.sh"]),
            ("bash -ec \"cd sub && ./a.sh\"", &["/w/sub/a.sh"]),
            ("cd sub && ./a.sh", &["/w/sub/a.sh"]),
            ("cd sub; cd ..; . ./env; ./a", &["/w/a", "/w/env"]),
            ("source env.sh && pytest -q", &["/w/env.sh"]),
            ("A=1 B='x y' ./t", &["/w/t"]),
            ("env -u HOME A=1 ./t", &["/w/t"]),
            ("timeout -k 5 60 ./t arg", &["/w/t"]),
            ("nice -n 5 sh t.sh", &["/w/t.sh"]),
            ("! ./t | tee log", &["/w/t"]),
            ("if ./t; then ./u; fi", &["/w/t", "/w/u"]),
            ("(cd a && ./t) && ./u", &["/w/a/t", "/w/a/u"]),
            ("./run > out.txt 2>&1", &["/w/run"]),
            (">log ./run", &["/w/run"]),
            ("'./with space' x", &["/w/with space"]),
            ("./back\\ slash", &["/w/back slash"]),
            ("pytest tests/test_a.py", &[]),
            ("python check.py", &[]),
            ("make test", &[]),
            ("diff <(./out) expected", &["/w/out"]),
            ("# ./nothing\n./t # ./no", &["/w/t"]),
            ("", &[]),
            ("sh", &[]),
            ("'unclosed", &[]),
        ];
        for (command, expected) in cases {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(scripts(command, Path::new("/w")), expected, "{command}");
        }
    }

    #[test]
    fn sourced_scripts_are_parts_of_a_script() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        std::fs::create_dir(dir.path().join("ci")).unwrap();
        write(
            "ci/check",
            "#!/usr/bin/env bash\n. ./a.sh\nsource \"${0%/*}/b\"\n./total\n",
        );
        write(
            "a.sh",
            ". \"$(dirname \"$0\")/c.sh\"; . ./a.sh; . ./missing\n",
        );
        write("ci/b", "true\n");
        write("c.sh", "true\n");
        write("total", "#!/bin/sh\n. ./lib\n");
        write("lib", "true\n");
        let mut found = vec![dir.path().join("ci/check")];
        add_sourced(&mut found, dir.path());
        let names = ["ci/check", "a.sh", "ci/b", "c.sh"];
        assert_eq!(found, names.map(|name| dir.path().join(name)));
    }

    #[test]
    fn any_command_can_be_read() {
        let mut random = fastrand::Rng::with_seed(7);
        let parts = [
            "sh", "-c", "'", "\"", "\\", " ", "\n", "cd", "./a", "..", "<", ">", "2", "&", "|",
            "(", "$x", "é",
        ];
        for _ in 0..20_000 {
            let count = random.usize(0..12);
            let command: String = (0..count)
                .map(|_| parts[random.usize(0..parts.len())])
                .collect();
            scripts(&command, Path::new("/w"));
        }
    }
}
