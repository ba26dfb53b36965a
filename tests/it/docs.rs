//! The documentation holds: every command in it runs, every example line is what it claims to be.

use crate::kit::{Test, until};
use ralph::Event;
use ralph::testing::{InboxMessage, JournalHeader, JournalLine};
use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block: the file and line it stands at, and its lines.
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

/// All blocks of one language.
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

/// Programs that behave well enough: agents that mend what the checks look for, and promise what is asked.
const AGENT: &str = r#"#!/bin/sh
if test -t 0; then echo ready && read -r prompt; else prompt=$(cat); fi
touch .mended report.md roof.md
echo 'All tasks done'
echo "$prompt" | sed -n 's:.*\(<promise>[^<]*</promise>\).*:\1:p' | head -n 1
"#;
const CHECK: &str = "#!/bin/sh\ntest -f .mended\n";
const CARGO: &str = r#"#!/bin/sh
case "$*" in
"run --release -- "*) shift 3 && exec ralph "$@" ;;
"install --path .") exit 0 ;;
"run --example "*) exec "$EXAMPLES/$3" ;;
*) test -f .mended ;;
esac
"#;

/// A repository in which every recipe makes sense.
fn place() -> Test {
    let test = Test::git()
        .file("PROMPT.md", "Mend it.\n")
        .file("spec.md", "What is wanted.\n")
        .file("PLAN.md", "- mend\n");
    let test = test
        .program("my-agent", AGENT)
        .program("test.sh", "#!/bin/sh\n");
    let test = test
        .program("../bin/claude", AGENT)
        .program("../bin/codex", AGENT)
        .program("../bin/cargo", CARGO);
    let test = test
        .program("../bin/npm", CHECK)
        .program("../bin/pytest", CHECK)
        .program(
            "../bin/just",
            "#!/bin/sh
",
        );
    test.sh("git init -q --bare -b main ../remote.git && git remote add origin ../remote.git && git push -q -u origin main");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ralph"), test.root().join("bin/ralph")).unwrap();
    test.script(
        "iteration 1\n  say working\n  sleep 400ms\niteration 2\n  say done\n  promise COMPLETE\n",
    )
}

/// Loops that a command speaks of: `nightly` runs, `api` is blocked.
fn with_loops<T>(test: &Test, command: &str, then: impl FnOnce() -> T) -> T {
    let speaks_of = |name: &str| {
        command.split_whitespace().any(|word| word == name) && !command.contains("--name")
    };
    if speaks_of("old") {
        let words = [
            "run",
            "mend",
            "--name",
            "old",
            "-m",
            "1",
            "--no-promise",
            "--",
            "true",
        ];
        with_path(test, test.ralph_command(&words)).exits(0);
    }
    if speaks_of("api") {
        let agent =
            "test -f .asked && exec claude; touch .asked; echo '<blocked>Which port?</blocked>'";
        let words = ["run", "serve", "--name", "api", "--", "sh", "-c", agent];
        with_path(test, test.ralph_command(&words)).exits(3);
    }
    if !speaks_of("nightly") {
        return then();
    }
    let live = test.start(&[
        "run",
        "mend",
        "--name",
        "nightly",
        "--agent",
        "script:../agent.script",
    ]);
    live.until_out("working");
    let result = then();
    drop(live.end());
    result
}

/// Where the examples are built to: beside the binary, together with the tests.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_ralph")).with_file_name("examples")
}

#[test]
fn every_example_of_the_library_runs_and_proves_its_work() {
    for (name, words) in [
        ("function_agent", "all_checks_passed: "),
        ("command_agent", "all_checks_passed after 3 "),
    ] {
        let test = Test::new();
        let mut command = test.command(examples().join(name));
        command.env("TMPDIR", test.root().join("home"));
        test.start_command(command).end().exits(0).says(words);
        assert_eq!(
            fs::read_dir(test.root().join("home")).unwrap().count(),
            0,
            "{name} cleans up"
        );
    }
}

fn with_path(test: &Test, mut command: std::process::Command) -> crate::kit::Done {
    let path = format!(
        "{}:{}",
        test.root().join("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    command.env("PATH", path).env("EXAMPLES", examples());
    test.start_command(command).end()
}

#[test]
fn every_command_of_the_documentation_runs() {
    let blocks: Vec<Block> = pages().iter().flat_map(|page| blocks(page, "sh")).collect();
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = blocks
            .iter()
            .map(|block| scope.spawn(|| run_block(block)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let wrong: Vec<&str> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .map(String::as_str)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count: usize = results.into_iter().flatten().sum();
    assert!(count > 25, "only {count} commands were found");
}

/// Runs every line of a block, each in a place of its own; how many there were, or what went wrong.
fn run_block(block: &Block) -> Result<usize, String> {
    let joined = block.lines.join("\n").replace("\\\n", " ");
    let lines: Vec<&str> = joined
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    for line in &lines {
        let test = place();
        if *line == "ralph init" {
            // The one command for those who have no prompt yet.
            fs::remove_file(test.workspace().join("PROMPT.md")).unwrap();
        }
        let mut command = test.command("sh");
        command.args(["-c", line]);
        let done = with_loops(&test, line, || with_path(&test, command));
        if line.ends_with('&') || line.starts_with("ralph spawn") {
            until("the end of what was left in the background", || {
                test.survivors().is_empty()
            });
        }
        if done.code != 0 {
            return Err(format!(
                "{}: {line}\n  exit {}\n{}{}",
                block.place, done.code, done.out, done.err
            ));
        }
    }
    Ok(lines.len())
}

#[test]
fn the_readme_begins_with_two_commands() {
    let readme = &pages()[0];
    let first: Vec<String> = blocks(readme, "sh")
        .into_iter()
        .take(2)
        .flat_map(|block| block.lines)
        .collect();
    assert_eq!(first, ["cargo run --release -- demo", "./test.sh"]);
}

#[test]
fn the_demo_s_transcript_is_what_the_demo_prints() {
    let test = Test::new();
    let out = test.ralph(&["demo"]).exits(0).out;
    let known = |text: &str| {
        let time = regex::Regex::new(r"\d+(\.\d)?(ms|s)\b").unwrap();
        time.replace_all(&text.replace('│', "|"), "TIME")
            .trim()
            .to_owned()
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
fn every_example_of_the_journal_s_page_is_what_it_claims() {
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
        } else {
            let parsed = JournalLine::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_ne!(parsed.event, Event::Unknown, "{line}");
            assert_eq!(parsed.to_json(), *line, "the line is written like this");
            let name: serde_json::Value = serde_json::from_str(line).unwrap();
            events.push(name["event"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!((headers, messages), (1, 4));
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
    let names = all.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?.trim_end_matches([' ', '{', ',']);
        name.starts_with(char::is_uppercase)
            .then(|| name.to_lowercase())
    });
    for name in names.filter(|name| name != "unknown") {
        assert!(events.contains(&name), "{name} is not described");
    }
}

#[test]
fn every_name_of_a_template_is_described() {
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
fn every_link_between_pages_leads_somewhere() {
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
