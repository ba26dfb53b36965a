//! Enforces the rules of ARCHITECTURE.md on the source tree. Each finding names a line and a fix.

mod scan;

use scan::{blank, each_line, paths, without_tests, words};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Each module and the other modules it may import. `lib.rs` and `main.rs` may import all of them.
const IMPORTS: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("os", &[]),
    ("store", &["engine", "os"]),
    ("process", &["engine", "os"]),
    ("terminal", &["engine", "os", "process"]),
    ("agent", &["engine", "os", "process"]),
    ("git", &["engine", "os", "process"]),
    ("proof", &["engine", "os", "process", "git"]),
    ("sandbox", &["engine", "os", "git"]),
    ("client", &["engine", "os", "process"]),
    ("config", &["engine", "os", "agent"]),
    (
        "runner",
        &[
            "engine", "os", "store", "process", "terminal", "agent", "git", "proof", "sandbox",
            "client",
        ],
    ),
    (
        "lifecycle",
        &[
            "engine", "os", "store", "process", "terminal", "agent", "git", "proof", "sandbox",
            "client", "config", "runner",
        ],
    ),
    (
        "fleet",
        &[
            "engine",
            "os",
            "store",
            "process",
            "terminal",
            "agent",
            "git",
            "proof",
            "sandbox",
            "client",
            "config",
            "runner",
            "lifecycle",
        ],
    ),
    ("ui", &["engine", "os", "store", "git", "lifecycle"]),
    ("cli", &["client", "config", "engine", "os"]),
    (
        "commands",
        &[
            "engine",
            "os",
            "store",
            "process",
            "terminal",
            "agent",
            "git",
            "proof",
            "sandbox",
            "client",
            "config",
            "runner",
            "lifecycle",
            "fleet",
            "ui",
            "cli",
        ],
    ),
    (
        "library",
        &[
            "engine",
            "os",
            "store",
            "process",
            "terminal",
            "agent",
            "git",
            "proof",
            "sandbox",
            "client",
            "config",
            "runner",
            "lifecycle",
        ],
    ),
];

/// Modules of the standard library that the engine must not import. `clippy.toml` also forbids the
/// calls.
const IMPURE: &[&str] = &[
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

/// Modules that work in directories to which an agent can write.
const EXPOSED: &[&str] = &[
    "store",
    "lifecycle",
    "proof",
    "runner",
    "library",
    "fleet",
    "ui",
];

/// Calls that open a file whatever it is: a FIFO would block them, and a huge file would fill the
/// memory.
const CARELESS_OPENS: &[&str] = &[
    "File::open",
    "File::create",
    "File::options",
    "OpenOptions",
    "fs::read",
    "fs::read_to_string",
    "fs::write",
    "fs::copy",
];

/// Exceptions, each with its reason.
const CAREFUL: &[(&str, &str)] = &[
    // It writes to a pipe on purpose, in a thread of its own and with a timeout.
    ("src/lifecycle/launch.rs", "File::options"),
];

/// The allowed entries of the repository's root directory.
const ROOT: &[&str] = &[
    ".ci",
    ".config", // nextest's settings
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "bench",
    "clippy.toml",
    "deny.toml",
    "docs",
    "examples", // programs that use the library
    "fuzz",     // a workspace of its own
    "justfile",
    "plugin",  // what Claude Code and Codex install
    "presets", // agents, settings, prompts and prices as data
    "rustfmt.toml",
    "src",
    "test.sh",
    "testdata", // output of real agents, and journals of released versions
    "tests",
];

/// The maximum number of lines of a source file. Tests in their own files count like any other
/// file.
const MAX_LINES: usize = 500;

/// Words that must not be used in names, comments, messages and documentation, each with a
/// replacement.
const BANNED: &[(&str, &str)] = &[
    ("anybody", "name the reader or the process"),
    ("bury", "finish, reap"),
    ("farewell", "exit"),
    ("is told of", "receives, is notified of"),
    ("knock", "request, wake"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("nobody", "no process, no one; or turn the sentence around"),
    ("of before", "earlier, previous"),
    ("onlooker", "observer"),
    ("somebody", "name the person or the process"),
    ("tells of", "reports"),
    ("whoever", "name the process or the person"),
];

/// Names of other products, which the source must not contain.
const BRANDS: &[&str] = &["architect", "conductor", "swarm"];

/// Marks of unfinished code, in two halves so that this file does not match.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!"),
    concat!("fix", "me"),
    concat!("db", "g!"),
    concat!("unimple", "mented!"),
];

/// Crates with an async runtime, and the places that may use them: a runner is a single thread.
const ASYNC_CRATES: &[&str] = &["tokio::", "async_nats::", "futures_util::", "axum::"];
const ASYNC_PLACES: &[&str] = &["src/ui/web/", "src/fleet/"];

/// How code gets at standard output and standard error.
const STREAMS: &[&str] = &[
    "print!",
    "println!",
    "stdout()",
    "stderr()",
    "io::stdout",
    "io::stderr",
];

/// The files that may use them, each with a reason. All other files print through `ui/print.rs`,
/// which removes control characters.
const PRINTERS: &[(&str, &str)] = &[
    ("src/agent/script/mod.rs", "a scripted agent's process"),
    ("src/agent/script/sleeper.rs", "a scripted agent's process"),
    ("src/process/termios.rs", "restores the user's terminal"),
    ("src/terminal/guard.rs", "asks for the terminal's size"),
    (
        "src/ui/output_queue.rs",
        "writes the console's cleaned lines",
    ),
    ("src/ui/print.rs", "filters everything else"),
    ("src/ui/tty.rs", "asks for the terminal's properties"),
];

/// Type names that may be declared more than once, because they mean the same thing everywhere.
const SHARED_TYPE_NAMES: &[&str] = &["Result", "Error", "Value", "Err"];

#[test]
fn modules_import_only_what_the_table_allows() {
    report(
        sources("src")
            .iter()
            .flat_map(|file| imports(&file.name, &file.text)),
    );
}

#[test]
fn every_module_is_in_the_import_table() {
    report(sources("src").iter().filter_map(|file| {
        let module = module(&file.name)?;
        let known = IMPORTS.iter().any(|(name, _)| *name == module);
        (!known).then(|| {
            format!(
                "{}:1: add the module `{module}` to IMPORTS and ARCHITECTURE.md",
                file.name
            )
        })
    }));
}

#[test]
fn the_engine_imports_nothing_impure() {
    report(
        sources("src/engine")
            .iter()
            .flat_map(|file| impure(&file.name, &file.text)),
    );
}

#[test]
fn no_source_file_is_too_long() {
    report(sources("src").iter().filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > MAX_LINES).then(|| {
            format!(
                "{}:{lines}: {lines} lines, at most {MAX_LINES}: split it",
                file.name
            )
        })
    }));
}

#[test]
fn a_module_with_children_is_a_directory() {
    report(sources("src").iter().filter_map(|file| {
        let dir = root().join(file.name.trim_end_matches(".rs"));
        let is_both = !file.name.ends_with("/mod.rs") && dir.is_dir();
        is_both.then(|| {
            let name = file.name.trim_end_matches(".rs");
            format!(
                "{}:1: move it to {name}/mod.rs, as every module with children",
                file.name
            )
        })
    }));
}

#[test]
fn nothing_is_left_unfinished() {
    let files = ["src", "tests", "examples", "bench"]
        .into_iter()
        .flat_map(sources);
    report(files.flat_map(|file| unfinished(&file.name, &file.text)));
}

#[test]
fn the_root_holds_only_what_is_listed() {
    report(root_entries().iter().filter(|entry| !ROOT.contains(&entry.as_str())).map(|entry| {
        format!("{entry}:1: remove it, move it, or add it to ROOT in tests/it/house.rs with a reason")
    }));
}

#[test]
fn everything_is_printed_in_one_place() {
    let files = sources("src");
    report(files.iter().flat_map(|file| prints(&file.name, &file.text)));
    let is_used = |name: &str| {
        let mut files = files.iter();
        files.any(|file| file.name == name && !printed(&file.text).is_empty())
    };
    let unused = PRINTERS.iter().filter(|(name, _)| !is_used(name));
    report(unused.map(|(name, _)| format!("{name}:1: remove it from PRINTERS: it prints nothing")));
}

#[test]
fn an_async_runtime_stays_in_its_places() {
    let outside = |file: &&Source| {
        let mut places = ASYNC_PLACES.iter();
        !places.any(|place| file.name.starts_with(place)) && !is_test_file(&file.name)
    };
    report(sources("src").iter().filter(outside).flat_map(|file| {
        let text = without_tests(&blank(&file.text));
        let lines = text.lines().enumerate();
        let found = lines.filter(|(_, line)| ASYNC_CRATES.iter().any(|name| line.contains(name)));
        let found = found.map(|(line, _)| {
            format!(
                "{}:{}: an async runtime is only for ui/web and fleet",
                file.name,
                line + 1
            )
        });
        found.collect::<Vec<_>>()
    }));
}

#[test]
fn unsafe_code_stays_in_its_module() {
    let outside = |file: &&Source| module(&file.name).as_deref() != Some("os");
    report(
        sources("src")
            .iter()
            .filter(outside)
            .flat_map(|file| unsafety(&file.name, &file.text)),
    );
}

#[test]
fn files_that_an_agent_can_replace_are_opened_with_care() {
    let exposed = |file: &&Source| {
        module(&file.name).is_some_and(|module| EXPOSED.contains(&module.as_str()))
            && !is_test_file(&file.name)
    };
    report(
        sources("src")
            .iter()
            .filter(exposed)
            .flat_map(|file| careless_opens(&file.name, &file.text)),
    );
}

#[test]
fn every_source_file_opens_with_its_purpose() {
    let undocumented = |file: &&Source| !file.text.starts_with("//! ") && !is_test_file(&file.name);
    report(sources("src").iter().filter(undocumented).map(|file| {
        format!(
            "{}:1: open the file with a `//!` sentence that says what it does",
            file.name
        )
    }));
}

#[test]
fn no_source_file_names_another_product() {
    report(
        sources("src")
            .iter()
            .flat_map(|file| brands(&file.name, &file.text)),
    );
}

#[test]
fn names_comments_messages_and_docs_use_plain_words() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ];
    let pages = pages.into_iter().map(|name| page(&root().join(name)));
    let docs = fs::read_dir(root().join("docs")).unwrap().flatten();
    let docs = docs
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"));
    let files = sources("src")
        .into_iter()
        .chain(pages)
        .chain(docs.map(|path| page(&path)));
    report(files.flat_map(|file| banned(&file.name, &file.text)));
}

#[test]
fn no_type_name_is_declared_twice() {
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources("src")
        .iter()
        .filter(|file| !is_test_file(&file.name))
    {
        for (line, name) in type_names(&without_tests(&blank(&file.text))) {
            declared
                .entry(name)
                .or_default()
                .push(format!("{}:{line}", file.name));
        }
    }
    report(
        declared
            .into_iter()
            .filter(|(name, at)| at.len() > 1 && !SHARED_TYPE_NAMES.contains(&name.as_str()))
            .map(|(name, at)| {
                format!(
                    "{}: `{name}` is declared in {}: give each its own name",
                    at[0],
                    at.join(", ")
                )
            }),
    );
}

#[test]
fn the_architecture_page_lists_every_file() {
    let text = page(&root().join("ARCHITECTURE.md")).text;
    report(
        sources("src")
            .iter()
            .filter(|file| !is_test_file(&file.name))
            .filter_map(|file| {
                let listed = text.contains(&format!("`{}`", file.name.trim_start_matches("src/")));
                (!listed).then(|| {
                    format!(
                        "{}:1: add a line to the index in ARCHITECTURE.md",
                        file.name
                    )
                })
            }),
    );
}

// ---------------------------------------------------------------- the rules

fn imports(name: &str, text: &str) -> Vec<String> {
    let Some(module) = module(name).filter(|_| !is_test_file(name)) else {
        return Vec::new();
    };
    let Some((_, allowed)) = IMPORTS.iter().find(|(known, _)| *known == module) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (line, path) in paths(&without_tests(&blank(text))) {
        let Some(other) = imported_module(&path, module_depth(name)) else {
            continue;
        };
        if other == module || allowed.contains(&other) {
            continue;
        }
        if IMPORTS.iter().any(|(known, _)| *known == other) {
            found.push(format!(
                "{name}:{line}: `{module}` must not import `{other}`: pass the value in, or move this code \
                 (the table is in ARCHITECTURE.md)"
            ));
        } else if path.starts_with("crate::") {
            found.push(format!("{name}:{line}: `crate::{other}` is not a module: import it from where it is declared"));
        }
    }
    found
}

fn impure(name: &str, text: &str) -> Vec<String> {
    if is_test_file(name) {
        return Vec::new();
    }
    let starts = |path: &str, banned: &str| {
        path.strip_prefix(banned)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let all = paths(&without_tests(&blank(text)));
    let hits = all.iter().filter_map(|(line, path)| {
        let banned = IMPURE.iter().find(|banned| starts(path, banned))?;
        Some(format!(
            "{name}:{line}: the engine must not import `{banned}`: pass it in with an event"
        ))
    });
    hits.collect()
}

fn unfinished(name: &str, text: &str) -> Vec<String> {
    each_line(text, |line| {
        let lower = line.to_lowercase();
        let found = UNFINISHED.iter().find(|word| lower.contains(**word))?;
        Some(format!("`{found}`: finish the work"))
    })
    .map(|(line, what)| format!("{name}:{line}: {what}"))
    .collect()
}

fn unsafety(name: &str, text: &str) -> Vec<String> {
    let code = blank(text);
    each_line(&code, |line| {
        words(line).any(|word| word == "unsafe").then_some(())
    })
    .map(|(line, ())| format!("{name}:{line}: unsafe code: wrap it in a safe function in src/os"))
    .collect()
}

fn prints(name: &str, text: &str) -> Vec<String> {
    if is_test_file(name) || PRINTERS.iter().any(|(printer, _)| *printer == name) {
        return Vec::new();
    }
    let found = printed(text).into_iter();
    found
        .map(|(line, stream)| {
            format!("{name}:{line}: `{stream}`: print through ui/print.rs, or return the text")
        })
        .collect()
}

fn careless_opens(name: &str, text: &str) -> Vec<String> {
    let code = without_tests(&blank(text));
    let calls = |line: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let call = CARELESS_OPENS.iter().find(|call| {
            line.split(|c: char| !is_part(c))
                .any(|path| path == **call || path.ends_with(&format!("::{call}")))
        })?;
        (!CAREFUL.contains(&(name, *call))).then_some(*call)
    };
    each_line(&code, calls)
        .map(|(line, call)| {
            format!(
                "{name}:{line}: `{call}` blocks on a FIFO: use a function of src/os/regular_file.rs"
            )
        })
        .collect()
}

fn printed(text: &str) -> Vec<(usize, &'static str)> {
    let code = without_tests(&blank(text));
    each_line(&code, |line| {
        STREAMS.iter().copied().find(|stream| line.contains(stream))
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
        format!("{name}:{line}: `{brand}` names another product: describe the behavior")
    })
    .collect()
}

fn banned(name: &str, text: &str) -> Vec<String> {
    each_line(text, |line| {
        let spaced = line
            .to_lowercase()
            .replace(|c: char| !c.is_alphanumeric(), " ");
        let spaced = format!(
            " {} ",
            spaced.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        BANNED
            .iter()
            .find(|(word, _)| spaced.contains(&format!(" {word} ")))
    })
    .map(|(line, (word, instead))| format!("{name}:{line}: \"{word}\": {instead}"))
    .collect()
}

/// Returns the types that a file declares, without associated types, with their line numbers.
fn type_names(code: &str) -> Vec<(usize, String)> {
    each_line(code, |line| {
        let item = line.trim_start();
        let is_indented = item.len() < line.len();
        let mut words = item
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty());
        let mut word = words.next()?;
        if word == "pub" {
            word = words.next()?;
            if matches!(word, "crate" | "super" | "self") {
                word = words.next()?;
            } else if word == "in" {
                word = words
                    .find(|word| matches!(*word, "struct" | "enum" | "trait" | "type" | "union"))?;
            }
        }
        let is_type = matches!(word, "struct" | "enum" | "trait" | "union")
            || (word == "type" && !is_indented);
        is_type.then(|| words.next().map(str::to_owned)).flatten()
    })
    .collect()
}

// ---------------------------------------------------------------- the tree

struct Source {
    /// The path relative to the repository's root, with `/`.
    name: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let name = path
        .strip_prefix(root())
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/");
    Source { name, text }
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
                found.push(page(&path));
            }
        }
    }
    assert!(
        under == "bench" || !found.is_empty(),
        "no source file under {under}: nothing was checked"
    );
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Returns the root's entries that git tracks or would add; without git, all visible ones.
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
    assert!(
        text.is_empty(),
        "the rules of ARCHITECTURE.md are broken:\n{text}"
    );
}

/// Returns a file's top-level module. `None` for the crate's two roots.
fn module(name: &str) -> Option<String> {
    let inner = name.strip_prefix("src/")?;
    let first = inner.split('/').next()?.trim_end_matches(".rs");
    (!matches!(inner, "lib.rs" | "main.rs")).then(|| first.to_owned())
}

fn is_test_file(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

/// Returns the number of `super` segments that lead from this file to the crate's root.
fn module_depth(name: &str) -> usize {
    let parts = name.trim_start_matches("src/").split('/').count();
    if name.ends_with("/mod.rs") {
        parts - 1
    } else {
        parts
    }
}

/// Returns the top-level module that a path names; `None` if the path does not lead to one.
fn imported_module(path: &str, depth: usize) -> Option<&str> {
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

// ---------------------------------------------------------------- the rules can fail

#[test]
fn an_import_is_found_however_it_is_written() {
    let seen = |name: &str, text: &str| imports(name, text).len();
    assert_eq!(seen("src/store/journal.rs", "use crate::runner::git;"), 1);
    assert_eq!(
        seen(
            "src/store/journal.rs",
            "use crate::{engine::{Plan, Event}, runner::git as g, ui};"
        ),
        2
    );
    assert_eq!(
        seen(
            "src/store/journal.rs",
            "fn f() { crate::runner::git::<u8>() }"
        ),
        1
    );
    assert_eq!(seen("src/store/journal.rs", "use super::super::runner;"), 1);
    assert_eq!(
        seen(
            "src/store/mod.rs",
            "use super::{\n    runner,\n    engine,\n};"
        ),
        1
    );
    assert_eq!(seen("src/runner.rs", "use super::ui;"), 1);
    assert_eq!(seen("src/config.rs", "use crate::*;"), 1);
    assert_eq!(seen("src/engine/plan.rs", "use crate::os;"), 1);
    assert_eq!(seen("src/runner/git.rs", "use crate::CommandError;"), 1);
}

#[test]
fn allowed_imports_and_text_are_not_reported() {
    let none = |name: &str, text: &str| assert_eq!(imports(name, text), Vec::<String>::new());
    none(
        "src/store/journal.rs",
        "use crate::engine::Plan;\nuse super::runner;\nuse crate::store::lock;",
    );
    none(
        "src/store/journal.rs",
        "// use crate::runner;\n/* crate::runner */\nlet x = \"crate::runner\";",
    );
    none(
        "src/store/journal.rs",
        "#[cfg(test)]\nmod tests {\n    use crate::runner;\n}",
    );
    none("src/store/tests.rs", "use crate::runner;");
    none(
        "src/commands/run.rs",
        "use crate::{cli, config, runner, engine, os, ui, store, commands};",
    );
    none("src/lib.rs", "pub use crate::runner;");
    none("src/runner.rs", "pub(crate) fn run() { super_thing::ui() }");
}

#[test]
fn a_finding_names_its_line() {
    let found = imports(
        "src/ui/line.rs",
        "//! x\nuse crate::engine::{\n    Plan,\n};\n\nuse crate::runner;\n",
    );
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("src/ui/line.rs:6: `ui` must not import `runner`"),
        "{found:?}"
    );
    assert!(unfinished("a.rs", &format!("\n\n{}(x)", UNFINISHED[2]))[0].starts_with("a.rs:3: "));
}

#[test]
fn printing_is_found_however_it_is_written() {
    let seen = |name: &str, text: &str| prints(name, text).len();
    for text in [
        "fn f() { println!(\"x\"); }",
        "fn f() { eprint!(\"x\"); }",
        "fn f() { writeln!(stdout().lock(), \"x\"); }",
        "use std::io::stderr;",
        "fn f() { rustix::io::write(rustix::stdio::stdout(), b\"x\"); }",
    ] {
        assert_eq!(seen("src/commands/ls.rs", text), 1, "{text}");
        assert_eq!(seen("src/ui/print.rs", text), 0, "{text}");
    }
    for text in [
        "// println!\nfn f() { command.stdout(Stdio::null()); }",
        "#[cfg(test)]\nmod tests { fn f() { println!(); } }",
    ] {
        assert_eq!(seen("src/commands/ls.rs", text), 0, "{text}");
    }
}

#[test]
fn code_after_a_test_module_is_checked() {
    let text = "#[cfg(test)]\nmod tests;\nuse crate::runner;\n#[cfg(test)]\nmod more { fn f() {} }\nuse crate::runner;";
    assert_eq!(imports("src/store/mod.rs", text).len(), 2);
}

#[test]
fn an_impure_import_of_the_engine_is_found() {
    let seen = |text: &str| impure("src/engine/state.rs", text).len();
    assert_eq!(seen("use std::{fs, env as e, collections::BTreeMap};"), 2);
    assert_eq!(seen("use std::time::{Duration, Instant};"), 1);
    assert_eq!(seen("fn f() { ::std::process::exit(1) }"), 1);
    assert_eq!(
        seen("use std::time::Duration;\nuse std::fmt;\nlet envy = std::envy::x;"),
        0
    );
}

#[test]
fn only_comments_and_literals_are_blanked() {
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
fn only_careless_opens_are_reported() {
    let seen = |text: &str| careless_opens("src/store/x.rs", text).len();
    assert_eq!(
        seen(
            "let a = File::open(p);\nstd::fs::read(p);\nuse std::fs::{File, OpenOptions};\nfs::read_to_string(p)"
        ),
        4
    );
    assert_eq!(
        seen(
            "regular_file::open(p)\nfs::read_dir(p)\n// File::open\n#[cfg(test)]\nmod tests { fn f() { fs::write(p, q) } }"
        ),
        0
    );
    assert!(careless_opens("src/lifecycle/launch.rs", "File::options()").is_empty());
}

#[test]
fn only_unsafe_code_is_reported() {
    let seen = |text: &str| unsafety("src/runner.rs", text).len();
    assert_eq!(
        seen("let x = unsafe { f() };\nunsafe fn g() {}\nunsafe impl Send for X {}"),
        3
    );
    assert_eq!(seen("// unsafe { }\nlet unsafe_code = \"unsafe {\";"), 0);
}

#[test]
fn unfinished_code_and_brands_are_found_in_any_case() {
    for word in UNFINISHED {
        assert_eq!(
            unfinished("x.rs", &format!("// {}", word.to_uppercase())).len(),
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
fn a_file_s_module_and_depth_follow_from_its_path() {
    assert_eq!(module("src/runner.rs").as_deref(), Some("runner"));
    assert_eq!(module("src/runner/job.rs").as_deref(), Some("runner"));
    assert_eq!(module("src/main.rs"), None);
    assert_eq!(module_depth("src/runner.rs"), 1);
    assert_eq!(module_depth("src/store/mod.rs"), 1);
    assert_eq!(module_depth("src/store/journal.rs"), 2);
}

#[test]
fn banned_words_are_found_in_prose_and_names_but_not_inside_words() {
    let seen = |text: &str| banned("x.rs", text).len();
    assert_eq!(
        seen("// Whoever holds it\nfn mend_it() {}\n// the loop, of before"),
        3
    );
    assert_eq!(seen("// recommended, amendment, of beforehand"), 0);
}

#[test]
fn declared_types_are_found_however_visible_they_are() {
    let code = "pub(crate) struct A<T>;\n    enum B {\npub trait C\ntype D = u8;\n    type E = u8;\npub(in crate::x) union F\nlet structure = 1;";
    let names: Vec<String> = type_names(code).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["A", "B", "C", "D", "F"]);
}
