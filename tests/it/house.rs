//! The rules of the house (ARCHITECTURE.md), read off the source tree: each finding names a line and a remedy.
//!
//! The scanners know just enough Rust: they blank out comments and literals, skip `#[cfg(test)]` items and
//! follow paths through `use` groups.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Each room and the other rooms it may name. `verbs`, `lib.rs` and `main.rs` may name all of them.
const WALLS: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("os", &[]),
    ("store", &["engine", "os"]),
    ("process", &["engine", "os"]),
    ("terminal", &["engine", "os", "process"]),
    ("agent", &["engine", "os", "process"]),
    ("git", &["engine", "os", "process"]),
    ("client", &["engine", "os", "process"]),
    ("config", &["engine", "os", "agent"]),
    (
        "runner",
        &[
            "engine", "store", "process", "terminal", "agent", "git", "client", "os",
        ],
    ),
    (
        "lifecycle",
        &[
            "engine", "store", "process", "terminal", "agent", "git", "client", "config", "runner",
            "os",
        ],
    ),
    ("ui", &["engine", "store", "git", "lifecycle", "os"]),
    ("cli", &["config", "engine", "os"]),
    (
        "commands",
        &[
            "engine",
            "store",
            "process",
            "terminal",
            "agent",
            "git",
            "client",
            "config",
            "runner",
            "lifecycle",
            "ui",
            "cli",
            "os",
        ],
    ),
    (
        "library",
        &[
            "engine",
            "store",
            "process",
            "terminal",
            "agent",
            "git",
            "client",
            "config",
            "runner",
            "lifecycle",
            "ui",
            "os",
        ],
    ),
];

/// What the engine must not name even in passing; `clippy.toml` forbids the calls, this forbids the imports.
const WORLD: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// What may lie in the root of the repository.
const ROOT: &[&str] = &[
    ".ci",     // `run`: what the continuous integration calls
    ".config", // nextest's settings, where nextest looks for them
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "docs",
    "examples", // programs that use the library
    "fuzz",     // what readers are fed at random; a workspace of its own
    "bench",
    "clippy.toml", // the engine's purity
    "deny.toml",
    "justfile",
    "plugin",  // the plugin for Claude Code
    "presets", // how each agent is called, and the default texts
    "rustfmt.toml",
    "src",
    "test.sh",  // the one command that runs everything
    "testdata", // what real agents printed, and journals of every released version
    "tests",
];

/// A source file grows until somebody has to scroll for its subject; this is where it is split.
const MAX_LINES: usize = 500;

/// Names of other products; ralph's behaviours are rows of data and carry no brand.
const BRANDS: &[&str] = &["architect", "conductor", "swarm"];

/// Left-overs, in two halves so that this file does not find itself.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!"),
    concat!("fix", "me"),
    concat!("db", "g!"),
    concat!("unimple", "mented!"),
];

#[test]
fn rooms_keep_to_their_walls() {
    report(
        sources("src")
            .iter()
            .flat_map(|file| walls(&file.name, &file.text)),
    );
}

#[test]
fn every_room_is_in_the_table() {
    report(sources("src").iter().filter_map(|file| {
        let room = room(&file.name)?;
        let known = WALLS.iter().any(|(name, _)| *name == room);
        (!known).then(|| {
            format!(
                "{}:1: the room `{room}` has no walls: add it to WALLS and to ARCHITECTURE.md",
                file.name
            )
        })
    }));
}

#[test]
fn the_engine_names_nothing_of_the_world() {
    report(
        sources("src/engine")
            .iter()
            .flat_map(|file| worldly(&file.name, &file.text)),
    );
}

#[test]
fn no_source_file_is_too_long() {
    report(sources("src").iter().filter(|file| !is_test_file(&file.name)).filter_map(|file| {
        let lines = own_lines(&file.text);
        (lines > MAX_LINES).then(|| {
            format!("{}:{lines}: {lines} lines without its tests, {MAX_LINES} at most: split it", file.name)
        })
    }));
}

#[test]
fn nothing_is_left_unfinished() {
    let files = sources("src")
        .into_iter()
        .chain(sources("tests"))
        .chain(sources("examples"))
        .chain(sources("bench"));
    report(files.flat_map(|file| leftovers(&file.name, &file.text)));
}

#[test]
fn the_root_holds_only_what_is_listed() {
    report(root_entries().iter().filter(|entry| !ROOT.contains(&entry.as_str())).map(|entry| {
        format!(
            "{entry}:1: not listed: remove it, move it, or add it to ROOT in tests/it/house.rs with a reason"
        )
    }));
}

#[test]
fn unsafe_code_stays_in_its_room() {
    report(
        sources("src")
            .iter()
            .filter(|file| room(&file.name).as_deref() != Some("os"))
            .flat_map(|file| unsafety(&file.name, &file.text)),
    );
}

#[test]
fn every_source_file_says_what_it_knows() {
    report(
        sources("src")
            .iter()
            .filter(|file| !file.text.starts_with("//! "))
            .map(|file| {
                format!(
                    "{}:1: open the file with a `//!` sentence that says what it alone knows",
                    file.name
                )
            }),
    );
}

#[test]
fn no_source_file_names_another_product() {
    report(
        sources("src")
            .iter()
            .flat_map(|file| brands(&file.name, &file.text)),
    );
}

// ---------------------------------------------------------------- the checks

fn walls(name: &str, text: &str) -> Vec<String> {
    let Some(room) = room(name).filter(|_| !is_test_file(name)) else {
        return Vec::new();
    };
    if room == "lib" || room == "main" {
        return Vec::new();
    }
    let Some((_, allowed)) = WALLS.iter().find(|(known, _)| *known == room) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (line, path) in paths(&without_tests(&blank(text))) {
        let Some(other) = named_room(&path, module_depth(name)) else {
            continue;
        };
        let is_room = WALLS.iter().any(|(known, _)| *known == other);
        if other == room || allowed.contains(&other) {
            continue;
        }
        found.push(if is_room {
            format!(
                "{name}:{line}: `{room}` may not use `{other}`: hand the value in from a room that may, \
                 or move this code (the table is in ARCHITECTURE.md)"
            )
        } else if path.starts_with("crate::") {
            format!("{name}:{line}: `crate::{other}` is no room: name the room that it comes from")
        } else {
            continue;
        });
    }
    found
}

fn worldly(name: &str, text: &str) -> Vec<String> {
    if is_test_file(name) {
        return Vec::new();
    }
    let starts = |path: &str, banned: &str| {
        path.strip_prefix(banned)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let all = paths(&without_tests(&blank(text)));
    let hits = all.iter().filter_map(|(line, path)| {
        let banned = WORLD.iter().find(|banned| starts(path, banned))?;
        Some(format!(
            "{name}:{line}: the engine may not name `{banned}`: let an event bring it, or an effect order it"
        ))
    });
    hits.collect()
}

fn leftovers(name: &str, text: &str) -> Vec<String> {
    each_line(text, |line| {
        let lower = line.to_lowercase();
        let found = LEFTOVERS.iter().find(|word| lower.contains(**word))?;
        Some(format!(
            "`{found}` is left over: finish the work or say in the commit why not"
        ))
    })
    .map(|(line, what)| format!("{name}:{line}: {what}"))
    .collect()
}

fn unsafety(name: &str, text: &str) -> Vec<String> {
    let code = blank(text);
    each_line(&code, |line| {
        words(line).any(|word| word == "unsafe").then_some(())
    })
    .map(|(line, ())| {
        format!("{name}:{line}: unsafe code: wrap it in a safe function in src/os.rs")
    })
    .collect()
}

fn brands(name: &str, text: &str) -> Vec<String> {
    each_line(text, |line| {
        let lower = line.to_lowercase();
        let found = lower
            .split(|c: char| !c.is_alphanumeric())
            .find(|word| BRANDS.contains(word));
        found.map(str::to_owned)
    })
    .map(|(line, brand)| {
        format!("{name}:{line}: `{brand}` names another product: say what the behaviour is")
    })
    .collect()
}

fn own_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let tests = |at: &usize| {
        lines[*at] == "#[cfg(test)]"
            && lines
                .get(at + 1)
                .is_some_and(|l| l.starts_with("mod tests"))
    };
    (0..lines.len()).find(tests).unwrap_or(lines.len())
}

// ---------------------------------------------------------------- the tree

struct Source {
    /// Relative to the repository's root, with `/`.
    name: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(under: &str) -> Vec<Source> {
    let mut dirs: Vec<PathBuf> = vec![root().join(under)];
    let mut found = Vec::new();
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text =
                    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let name = path
                    .strip_prefix(root())
                    .unwrap_or(&path)
                    .to_string_lossy()
                    .replace('\\', "/");
                found.push(Source { name, text });
            }
        }
    }
    assert!(
        under == "bench" || !found.is_empty(),
        "no source file under {under}: the checks would prove nothing"
    );
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// What git has or would add; without git, what can be seen.
fn root_entries() -> Vec<String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    let listed = git
        .output()
        .ok()
        .filter(|out| out.status.success() && !out.stdout.is_empty());
    let mut entries: Vec<String> = match listed {
        Some(out) => String::from_utf8_lossy(&out.stdout)
            .split('\0')
            .filter(|path| !path.is_empty() && root().join(path).exists())
            .filter_map(|path| path.split('/').next().map(str::to_owned))
            .collect(),
        None => fs::read_dir(root())
            .expect("the repository's root can be read")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.') && name != "target")
            .collect(),
    };
    entries.sort();
    entries.dedup();
    entries
}

fn report(findings: impl IntoIterator<Item = String>) {
    let mut text = String::new();
    for finding in findings {
        writeln!(text, "{finding}").expect("a string takes every line");
    }
    assert!(text.is_empty(), "the house rules are broken:\n{text}");
}

/// `src/store/journal.rs` is in `store`, `src/run.rs` is `run`; the crate's two roots are no rooms.
fn room(name: &str) -> Option<String> {
    let inner = name.strip_prefix("src/")?;
    let first = inner.split('/').next()?.trim_end_matches(".rs");
    (!matches!(inner, "lib.rs" | "main.rs")).then(|| first.to_owned())
}

fn is_test_file(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

/// How many `super` lead from this file to the root of the crate.
fn module_depth(name: &str) -> usize {
    let parts = name.trim_start_matches("src/").split('/').count();
    if name.ends_with("/mod.rs") {
        parts - 1
    } else {
        parts
    }
}

/// The first name below the crate's root, if the path goes there.
fn named_room(path: &str, depth: usize) -> Option<&str> {
    if let Some(rest) = path.strip_prefix("crate::") {
        return rest.split("::").next();
    }
    let supers = path.split("::").take_while(|part| *part == "super").count();
    if supers == 0 || supers < depth {
        None
    } else {
        path.split("::").nth(supers)
    }
}

// ---------------------------------------------------------------- the scanners

fn each_line<'a, T>(
    text: &'a str,
    mut find: impl FnMut(&str) -> Option<T> + 'a,
) -> impl Iterator<Item = (usize, T)> + 'a {
    text.lines()
        .enumerate()
        .filter_map(move |(at, line)| find(line).map(|found| (at + 1, found)))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty())
}

/// The same text with comments and the insides of literals turned into spaces; lines stay where they are.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// Where the comment or literal that starts at `at` ends; `at` itself if none starts there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let get = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let find = |from: usize, end: &[char]| {
        (from..chars.len())
            .find(|i| chars[*i..].starts_with(end))
            .map_or(chars.len(), |i| i + end.len())
    };
    match (get(at), get(at + 1)) {
        ('/', '/') => (at..chars.len())
            .find(|i| chars[*i] == '\n')
            .unwrap_or(chars.len()),
        ('/', '*') => {
            let (mut depth, mut i) = (1, at + 2);
            while depth > 0 && i < chars.len() {
                match (get(i), get(i + 1)) {
                    ('/', '*') => (depth, i) = (depth + 1, i + 2),
                    ('*', '/') => (depth, i) = (depth - 1, i + 2),
                    _ => i += 1,
                }
            }
            i.min(chars.len())
        }
        ('r', '"' | '#')
            if at == 0 || !is_word(get(at - 1)) || matches!(get(at - 1), 'b' | 'c') =>
        {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            if get(at + 1 + hashes) != '"' {
                return at;
            }
            let mut end = vec!['"'];
            end.resize(hashes + 1, '#');
            find(at + hashes + 2, &end)
        }
        ('"', _) => {
            let mut i = at + 1;
            while i < chars.len() && chars[i] != '"' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            (i + 1).min(chars.len())
        }
        // A character, not a lifetime: `'x'` or `'\…'`.
        ('\'', '\\') => find(at + 3, &['\'']),
        ('\'', _) if get(at + 2) == '\'' => at + 3,
        _ => at,
    }
}

/// Blanked code with every item under `#[cfg(test)]` blanked as well.
fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..start]);
        let item = &rest[start..];
        let mut depth = 0usize;
        let end = item.char_indices().find_map(|(at, c)| match c {
            '{' => {
                depth += 1;
                None
            }
            '}' => {
                depth = depth.saturating_sub(1);
                (depth == 0).then_some(at + 1)
            }
            ';' => (depth == 0).then_some(at + 1),
            _ => None,
        });
        let end = end.unwrap_or(item.len());
        out.extend(
            item[..end]
                .chars()
                .map(|c| if c == '\n' { '\n' } else { ' ' }),
        );
        rest = &item[end..];
    }
    out.push_str(rest);
    out
}

/// Every path in blanked code that starts at `crate`, `super` or `std`, groups written out, with its line.
fn paths(code: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let starts = is_word(chars[at]) && (at == 0 || !is_word(chars[at - 1]));
        if !starts {
            at += 1;
            continue;
        }
        let end = at + chars[at..].iter().take_while(|c| is_word(**c)).count();
        let word: String = chars[at..end].iter().collect();
        let inside = at >= 2
            && chars[at - 1] == ':'
            && chars[at - 2] == ':'
            && at >= 3
            && is_word(chars[at - 3]);
        at = if !inside && matches!(word.as_str(), "crate" | "super" | "std") {
            tree(&chars, at, String::new(), &mut found)
        } else {
            end
        };
    }
    found.retain(|(_, path)| path.contains("::"));
    found
}

/// Follows one path or `use` tree from `at`; returns where it ends.
fn tree(chars: &[char], mut at: usize, prefix: String, found: &mut Vec<(usize, String)>) -> usize {
    let line = |at: usize| 1 + chars[..at].iter().filter(|c| **c == '\n').count();
    let skip = |mut at: usize| {
        while chars.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        at
    };
    let mut path = prefix;
    loop {
        at = skip(at);
        match chars.get(at) {
            Some('{') => {
                at += 1;
                while at < chars.len() && chars[at] != '}' {
                    at = tree(chars, at, path.clone(), found);
                    // Past `as name` and the comma.
                    while at < chars.len() && !matches!(chars[at], ',' | '}') {
                        at += 1;
                    }
                    at = if chars.get(at) == Some(&',') {
                        skip(at + 1)
                    } else {
                        at
                    };
                }
                return at + 1;
            }
            Some(c) if is_word(*c) || *c == '*' => {
                let end = at
                    + chars[at..]
                        .iter()
                        .take_while(|c| is_word(**c))
                        .count()
                        .max(1);
                path.extend(&chars[at..end]);
                let next = skip(end);
                if chars[next.min(chars.len())..].starts_with(&[':', ':']) {
                    path.push_str("::");
                    at = next + 2;
                } else {
                    found.push((line(at), path));
                    return end;
                }
            }
            // `crate::engine::f::<T>` and the like: what was read so far is the path.
            _ => {
                found.push((
                    line(at.min(chars.len())),
                    path.trim_end_matches("::").to_owned(),
                ));
                return at;
            }
        }
    }
}

// ---------------------------------------------------------------- the checks can fail

#[test]
fn a_wall_is_seen_through_every_way_of_naming_a_room() {
    let seen = |name: &str, text: &str| walls(name, text).len();
    assert_eq!(seen("src/store/journal.rs", "use crate::drive::git;"), 1);
    assert_eq!(
        seen(
            "src/store/journal.rs",
            "use crate::{engine::{Plan, Event}, drive::git as g, show};"
        ),
        2
    );
    assert_eq!(
        seen(
            "src/store/journal.rs",
            "fn f() { crate::drive::git::<u8>() }"
        ),
        1
    );
    assert_eq!(seen("src/store/journal.rs", "use super::super::run;"), 1);
    assert_eq!(
        seen(
            "src/store/mod.rs",
            "use super::{\n    run,\n    engine,\n};"
        ),
        1
    );
    assert_eq!(seen("src/run.rs", "use super::show;"), 1);
    assert_eq!(seen("src/config.rs", "use crate::*;"), 1);
    assert_eq!(seen("src/engine/plan.rs", "use crate::os;"), 1);
    assert_eq!(seen("src/drive/git.rs", "use crate::Failure;"), 1);
}

#[test]
fn a_wall_has_doors() {
    let none = |name: &str, text: &str| assert_eq!(walls(name, text), Vec::<String>::new());
    none(
        "src/store/journal.rs",
        "use crate::engine::Plan;\nuse super::drive;\nuse crate::store::lock;",
    );
    none(
        "src/store/journal.rs",
        "// use crate::drive;\n/* crate::drive */\nlet x = \"crate::drive\";",
    );
    none(
        "src/store/journal.rs",
        "#[cfg(test)]\nmod tests {\n    use crate::drive;\n}",
    );
    none("src/store/tests.rs", "use crate::drive;");
    none(
        "src/verbs/run.rs",
        "use crate::{cli, config, drive, engine, os, run, show, store, verbs};",
    );
    none("src/lib.rs", "pub use crate::drive;");
    none("src/run.rs", "pub(crate) fn run() { super_thing::show() }");
}

#[test]
fn a_finding_names_its_line() {
    let found = walls(
        "src/show/line.rs",
        "//! x\nuse crate::engine::{\n    Plan,\n};\n\nuse crate::run;\n",
    );
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("src/show/line.rs:6: `show` may not use `run`"),
        "{found:?}"
    );
    assert!(leftovers("a.rs", &format!("\n\n{}(x)", LEFTOVERS[2]))[0].starts_with("a.rs:3: "));
}

#[test]
fn code_after_a_test_module_is_read_again() {
    let text = "#[cfg(test)]\nmod tests;\nuse crate::drive;\n#[cfg(test)]\nmod more { fn f() {} }\nuse crate::run;";
    assert_eq!(walls("src/store/mod.rs", text).len(), 2);
}

#[test]
fn the_engine_is_caught_naming_the_world() {
    let seen = |text: &str| worldly("src/engine/state.rs", text).len();
    assert_eq!(seen("use std::{fs, env as e, collections::BTreeMap};"), 2);
    assert_eq!(seen("use std::time::{Duration, Instant};"), 1);
    assert_eq!(seen("fn f() { ::std::process::exit(1) }"), 1);
    assert_eq!(
        seen("use std::time::Duration;\nuse std::fmt;\nlet envy = std::envy::x;"),
        0
    );
}

#[test]
fn literals_and_comments_hide_nothing_but_themselves() {
    assert_eq!(blank("a // b\nc"), "a     \nc");
    assert_eq!(blank("a /* b /* c */ d */ e"), "a                   e");
    assert_eq!(
        blank(r#"f("x\"y", 'z', '\'', 'a)"#),
        "f(      ,    ,     , 'a)"
    );
    assert_eq!(blank("r#\"a\"b\"# c").trim(), "c");
    assert_eq!(blank("r#type"), "r#type");
    assert_eq!(blank("for r in x { r\"q\" }"), "for r in x {      }");
}

#[test]
fn unsafe_is_a_word_of_code() {
    let seen = |text: &str| unsafety("src/run.rs", text).len();
    assert_eq!(
        seen("let x = unsafe { f() };\nunsafe fn g() {}\nunsafe impl Send for X {}"),
        3
    );
    assert_eq!(seen("// unsafe { }\nlet unsafe_code = \"unsafe {\";"), 0);
}

#[test]
fn leftovers_and_brands_are_found_in_any_case() {
    for word in LEFTOVERS {
        assert_eq!(
            leftovers("x.rs", &format!("// {}", word.to_uppercase())).len(),
            1,
            "{word}"
        );
    }
    assert_eq!(
        brands(
            "x.rs",
            "// as Swarm does\nlet architecture = 1;\nlet a_conductor = 2;"
        )
        .len(),
        2
    );
}

#[test]
fn only_a_file_s_own_lines_are_counted() {
    assert_eq!(own_lines("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
    assert_eq!(own_lines("a\n#[cfg(test)]\nfn helper() {}\nb\n"), 4);
    assert_eq!(own_lines(&"x\n".repeat(501)), 501);
}

#[test]
fn a_file_knows_its_room() {
    assert_eq!(room("src/run.rs").as_deref(), Some("run"));
    assert_eq!(room("src/drive/git.rs").as_deref(), Some("drive"));
    assert_eq!(room("src/main.rs"), None);
    assert_eq!(module_depth("src/run.rs"), 1);
    assert_eq!(module_depth("src/store/mod.rs"), 1);
    assert_eq!(module_depth("src/store/journal.rs"), 2);
}
