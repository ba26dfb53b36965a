//! The documentation is correct: every command in it runs, and every example is valid.

mod commands;

use crate::kit::Test;
use crate::pty::{Screen, rows};
use ralph::Event;
use ralph::testing::{InboxMessage, JournalHeader, JournalLine};
use std::fs;
use std::path::{Path, PathBuf};

/// A fenced code block: its file, its line number and its lines.
struct Block {
    place: String,
    lines: Vec<String>,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    pages.extend(
        fs::read_dir(root.join("docs"))
            .unwrap()
            .map(|entry| entry.unwrap().path()),
    );
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    pages.sort();
    pages
}

/// Returns all code blocks of one language.
fn blocks(page: &Path, language: &str) -> Vec<Block> {
    let text = fs::read_to_string(page).unwrap();
    let mut blocks = Vec::new();
    let mut inside = None;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut inside) {
            (Some(_), Some(_)) => {
                blocks.extend(
                    inside
                        .take()
                        .filter(|(is_wanted, _)| *is_wanted)
                        .map(|(_, block)| block),
                );
            }
            (Some(name), None) => {
                assert!(
                    !name.is_empty(),
                    "{}:{}: a block without a language",
                    page.display(),
                    number + 1
                );
                let place = format!("{}:{}", page.file_name().unwrap().display(), number + 2);
                inside = Some((
                    name == language,
                    Block {
                        place,
                        lines: Vec::new(),
                    },
                ));
            }
            (None, Some((_, block))) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    assert!(
        inside.is_none(),
        "{}: a block without an end",
        page.display()
    );
    blocks
}

/// Returns the directory in which the examples are built.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_ralph")).with_file_name("examples")
}

#[test]
fn every_example_of_the_library_runs_and_proves_its_work() {
    for (name, text) in [
        ("function_agent", "all_checks_passed: "),
        ("command_agent", "all_checks_passed after 3 "),
    ] {
        let test = Test::new();
        let mut command = test.command(examples().join(name));
        command.env("TMPDIR", test.root().join("home"));
        test.start_command(command).end().exits(0).says(text);
        assert_eq!(
            fs::read_dir(test.root().join("home")).unwrap().count(),
            0,
            "{name} cleans up"
        );
    }
}

#[test]
fn the_readme_starts_with_two_commands() {
    let readme = &pages()[0];
    let first: Vec<String> = blocks(readme, "sh")
        .into_iter()
        .take(2)
        .flat_map(|block| block.lines)
        .collect();
    assert_eq!(first, ["cargo run --release -- demo", "./test.sh"]);
    let lines = fs::read_to_string(readme).unwrap().lines().count();
    assert!(lines <= 150, "{lines} lines: move details to docs");
}

#[test]
fn the_readme_s_transcript_is_what_the_demo_prints() {
    let test = Test::new();
    let (code, bytes) = Screen::start(test.ralph_command(&["demo"]), 100).end();
    assert_eq!(code, 0);
    let out = rows(&bytes).join("\n");
    let known = |text: &str| {
        let time = r"\d+(\.\d)?(ms|s)\b|\d\d:\d\d:\d\d";
        let line = regex::Regex::new(time).unwrap().replace_all(text, "TIME");
        line.trim_end_matches('━').trim().to_owned()
    };
    let printed: Vec<String> = out.lines().map(known).collect();
    let transcript = &blocks(&pages()[0], "text")[0];
    let mut rest = printed.iter();
    for line in transcript
        .lines
        .iter()
        .map(|line| known(line))
        .filter(|line| line != "…")
    {
        assert!(
            rest.any(|printed| *printed == line),
            "{}: {line:?} is not, or not there, in\n{out}",
            transcript.place
        );
    }
}

#[test]
fn every_example_in_the_journal_page_is_valid() {
    let page = pages()
        .into_iter()
        .find(|page| page.ends_with("docs/journal.md"))
        .unwrap();
    let text = fs::read_to_string(&page).unwrap();
    let mut events = Vec::new();
    let (mut headers, mut messages) = (0, 0);
    for line in blocks(&page, "json").iter().flat_map(|block| &block.lines) {
        if line.starts_with("{\"ralph\"") {
            let header: JournalHeader = serde_json::from_str(line).unwrap();
            assert_eq!(header.to_json(), *line, "the header is written like this");
            headers += 1;
        } else if line.starts_with("{\"message\"") {
            let message: InboxMessage = serde_json::from_str(line).unwrap();
            assert_ne!(message, InboxMessage::Unknown, "{line}");
            assert_eq!(serde_json::to_string(&message).unwrap(), *line);
            messages += 1;
        } else if line.starts_with("{\"n\"") {
            let act: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = act["act"].as_str().unwrap();
            assert!(text.contains(&format!("\n| `{name}` | ")), "{name}");
        } else {
            let parsed = JournalLine::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_ne!(parsed.event, Event::Unknown, "{line}");
            assert_eq!(parsed.to_json(), *line, "the line is written like this");
            let name: serde_json::Value = serde_json::from_str(line).unwrap();
            events.push(name["event"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!((headers, messages), (1, 6));
    events.dedup();
    let described: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'))
        .collect();
    assert_eq!(
        events, described,
        "each event has its heading and its example, in order"
    );
    let all = include_str!("../../src/engine/event/mod.rs");
    let all = all
        .split("pub enum Event {")
        .nth(1)
        .and_then(|rest| rest.split("\n}").next())
        .unwrap();
    let mut renamed = None;
    let names = all.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        if let Some(name) = line.strip_prefix("#[serde(rename = \"") {
            renamed = name.strip_suffix("\")]").map(str::to_owned);
        }
        let name = line.trim_end_matches([' ', '{', ',']);
        let is_variant = name.starts_with(char::is_uppercase);
        is_variant.then(|| renamed.take().unwrap_or_else(|| name.to_lowercase()))
    });
    for name in names.filter(|name| name != "unknown") {
        assert!(events.contains(&name), "{name} is not described");
    }
}

#[test]
fn every_template_name_is_documented() {
    let page = pages()
        .into_iter()
        .find(|page| page.ends_with("docs/prompt.md"))
        .unwrap();
    let text = fs::read_to_string(&page).unwrap();
    for name in ralph::testing::TEMPLATE_FIELDS {
        assert!(text.contains(&format!("\n| `{name}` |")), "{name}");
    }
    let template = blocks(&page, "markdown").remove(0).lines.join("\n");
    assert_eq!(
        ralph::testing::find_invalid_tag(&template, &ralph::testing::TEMPLATE_FIELDS),
        None
    );
}

#[test]
fn every_link_between_pages_has_a_target() {
    let link = regex::Regex::new(r"\]\(([^)#]+)").unwrap();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in link
            .captures_iter(&text)
            .map(|found| found[1].to_owned())
            .filter(|to| !to.contains("://"))
        {
            assert!(
                page.parent().unwrap().join(&target).exists(),
                "{}: {target}",
                page.display()
            );
        }
    }
}
