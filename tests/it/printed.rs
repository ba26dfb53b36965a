//! Text from files and arguments cannot control the terminal: no command prints control characters,
//! characters that reorder text, or invisible ones.

use crate::kit::{Done, Test};
use serde_json::{Value, json};

/// Sets a window title, clears the screen, colors and reorders text, and contains characters
/// without width.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{9d}0;x\u{9c}\u{202e}\u{2066}\u{200b}\u{200d}\u{feff}\u{7f}\u{8}\u{e0041}seen";

#[track_caller]
fn assert_clean(done: &Done, what: &str) {
    for (stream, text) in [("stdout", &done.out), ("stderr", &done.err)] {
        let hidden = text.chars().find(|c| {
            let is_format = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
            is_format || (c.is_control() && !matches!(c, '\n' | '\t'))
        });
        assert_eq!(hidden, None, "{what}: {stream}:\n{text:?}");
    }
}

/// Runs each command. Nothing hidden is printed, and the hostile text is shown by at least one of
/// them.
#[track_caller]
fn assert_all_clean(test: &Test, what: &str, commands: &[&[&str]]) {
    let mut is_shown = false;
    for args in commands {
        let done = test.ralph(args);
        assert_clean(&done, &format!("{what}: {args:?}"));
        let shown = done.out + &done.err;
        is_shown |= shown.contains("owned") || shown.contains("seen");
    }
    assert!(is_shown, "{what}: the hostile text was not printed at all");
}

#[test]
fn settings_files_cannot_control_the_terminal() {
    let commands: &[&[&str]] = &[
        &["config"],
        &["config", "--json"],
        &["run", "x", "--dry-run"],
        &["run", "x", "-m", "1", "--name", "a"],
        &["spawn", "x", "-m", "1", "--name", "b", "--no-tmux"],
        &[
            "run",
            "x",
            "-m",
            "1",
            "--name",
            "c",
            "--config",
            "evil.json",
        ],
    ];
    let evil = |text: &str| text.replace("EVIL", EVIL);
    for settings in [
        json!({ evil("EVIL"): 1 }),
        json!({ "agents": { evil("EVIL"): { evil("EVIL"): 1 } } }),
        json!({ "agents": { evil("EVIL"): { "title": evil("EVIL") } } }),
        json!({ "agent": evil("EVIL") }),
        json!({ "agent": { "command": [evil("EVIL")] } }),
        json!({ "agent": { "name": evil("EVIL"), "command": ["true"] } }),
        json!({ "agent": { "command": ["true", evil("EVIL\nagent EVIL")] } }),
        json!({ "checks": [evil("EVIL")] }),
        json!({ "checks": [{ "command": "true", "timeout": evil("EVIL") }] }),
        json!({ "checks": [{ "command": "true", evil("EVIL"): "x" }] }),
        json!({ "max-iterations": evil("EVIL") }),
        json!({ "max-time": evil("EVIL") }),
        json!({ "on-fail": evil("EVIL") }),
        json!({ "approve": evil("EVIL") }),
        json!({ "promise": evil("EVIL") }),
        json!({ "done-pattern": evil("EVIL[") }),
        json!({ "done-file": evil("EVIL") }),
        json!({ "prompt": evil("EVIL") }),
        json!({ "prompt-file": evil("EVIL") }),
        json!({ "scm": evil("EVIL") }),
        json!({ "notify": evil("EVIL") }),
        json!({ "prices": { evil("EVIL"): { "input": evil("EVIL") } } }),
    ] {
        let test = Test::new();
        let settings = settings.to_string();
        test.write(".ralph/settings.json", &settings);
        test.write("evil.json", &settings);
        assert_all_clean(&test, &settings, commands);
    }
}

#[test]
fn a_settings_file_that_is_not_valid_cannot_control_the_terminal() {
    let commands: &[&[&str]] = &[
        &["config"],
        &["run", "x", "--dry-run"],
        &["run", "x"],
        &["doctor"],
        &["doctor", "--json"],
        &["init", "--settings"],
    ];
    for (name, text) in [
        ("settings.toml", format!("prompt = {EVIL}\n")),
        ("settings.toml", format!("prompt = \"{EVIL}\"\n{EVIL}")),
        (
            "settings.toml",
            "\"\\u001b[2J\\u009b\\u202eseen\" = 1\n".into(),
        ),
        ("settings.json", format!("{{\"prompt\": {EVIL}}}")),
        ("settings.json", format!("{{\"{EVIL}\": 1}}")),
    ] {
        let test = Test::new().file(&format!(".ralph/{name}"), &text);
        for args in commands {
            assert_clean(&test.ralph(args), &format!("{name} {text:?}: {args:?}"));
        }
    }
}

#[test]
fn json_output_keeps_the_values() {
    let settings = json!({ "prompt": EVIL, "notify": EVIL });
    let test = Test::new().file("evil.json", &settings.to_string());
    let done = test
        .ralph(&["config", "--json", "--config", "evil.json"])
        .exits(0);
    assert_clean(&done, "config");
    let shown: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(shown["prompt"]["value"], EVIL);
    assert_eq!(shown["notify"]["value"], EVIL);
}

#[test]
fn a_prompt_file_or_template_cannot_control_the_terminal() {
    let test = Test::new()
        .file("PROMPT.md", &format!("do {EVIL}\r\nthen this\n"))
        .file(
            ".ralph/template.md",
            &format!("{EVIL} {{{{task}}}} {{{{{EVIL}}}}}"),
        );
    let dry: &[&str] = &[
        "run",
        "--dry-run",
        "--prompt-file",
        "PROMPT.md",
        "--",
        "true",
    ];
    assert_all_clean(
        &test,
        "template",
        &[dry, &["run", "--prompt-file", "PROMPT.md", "--", "true"]],
    );
    test.write(".ralph/template.md", &format!("{EVIL} {{{{task}}}}"));
    assert_all_clean(&test, "prompt", &[dry]);
    let missing = format!("{EVIL}.md");
    let commands: &[&[&str]] = &[
        &["run", "--prompt-file", &missing],
        &["run", "--dry-run", "--prompt-file", &missing],
        &["spawn", "--prompt-file", &missing],
    ];
    assert_all_clean(&test, "name", commands);
    // Line ends of other systems are no control characters.
    test.ralph(&["run", "one\r\ntwo", "--dry-run", "--", "true"])
        .exits(0)
        .says("one\ntwo");
}

#[test]
fn a_loop_with_hostile_names_cannot_control_the_terminal() {
    let settings = json!({
        "agents": { EVIL: { "command": ["sh", "-c", format!("echo hi; printf x > 'file{EVIL}'; exit 3 # {EVIL}")] } },
        "agent": EVIL,
        "checks": [format!("echo red {EVIL}; false # {EVIL}")],
        "promise": EVIL,
        "notify": format!("echo {EVIL} >&2; false"),
    });
    let test = Test::git().file("../evil.json", &settings.to_string());
    let run = |name: &'static str| {
        let args = [
            "run",
            EVIL,
            "-m",
            "1",
            "--backoff",
            "0",
            "--config",
            "../evil.json",
        ];
        [&args[..], &["--name", name]].concat()
    };
    let events = [&run("b")[..], &["--json"]].concat();
    let quiet = [&run("c")[..], &["--quiet"]].concat();
    let dry = [&run("d")[..], &["--dry-run"]].concat();
    let commands: &[&[&str]] = &[
        &run("a"),
        &events,
        &quiet,
        &dry,
        &["status", "a"],
        &["status", "a", "--json"],
        &["ls"],
        &["ls", "--json"],
        &["ls", "--names"],
        &["logs", "a"],
        &["wait", "a"],
        &["doctor"],
        &["doctor", "--json"],
        &["say", "a", EVIL],
        &["set", "a", "max-iterations=3"],
        &["bus", "post", EVIL],
        &["bus", "post", EVIL, "--loop", "a"],
        &["bus", "tail"],
        &["bus", "tail", "--json"],
        &["bus", "tail", "a"],
        &["resume", "a"],
        &["pause", "a"],
        &["stop", "a"],
        &["attach", "a"],
        &["rm", "a"],
        &["rm", "--ended"],
    ];
    assert_all_clean(&test, "loop", commands);
}

#[test]
fn branches_directories_and_files_cannot_control_the_terminal() {
    let test = Test::git();
    // Git allows no ASCII control characters in the name of a branch.
    test.sh("git checkout -q -b 'seen\u{202e}\u{9b}2J\u{200b}'");
    let agent = format!("printf x > 'f{EVIL}'; git checkout -q -b 'other\u{202e}'");
    let commands: &[&[&str]] = &[
        &[
            "run",
            "x",
            "-m",
            "1",
            "--worktree",
            "--",
            "sh",
            "-c",
            &agent,
        ],
        &[
            "run",
            "x",
            "-m",
            "1",
            "--name",
            "b",
            "--worktree=w\u{202e}\u{9b}seen",
            "--",
            "true",
        ],
        &[
            "run",
            "x",
            "--dry-run",
            "--worktree=w\u{202e}\u{9b}seen",
            "--",
            "true",
        ],
        &[
            "run", "x", "-m", "1", "--name", "d", "--", "sh", "-c", &agent,
        ],
        &["doctor"],
        &["doctor", "--json"],
        &["status", "d"],
        &["status", "d", "--json"],
        &["ls"],
        &["rm", "--ended", "--worktree"],
    ];
    assert_all_clean(&test, "branch", commands);
    let dir = test.workspace().join(format!("d{EVIL}"));
    std::fs::create_dir(&dir).unwrap();
    for args in [
        &["run", "x", "-m", "1", "--here", "--name", "e", "--", "true"][..],
        &["status", "e"],
        &["ls"],
        &["ls", "--json"],
        &["doctor", "--here"],
        &["init"],
        &["init", "--settings"],
        &["config"],
        &["run", "x", "--here", "--dry-run", "--", "true"],
    ] {
        let mut command = test.ralph_command(args);
        command.current_dir(&dir);
        assert_clean(&test.start_command(command).end(), &format!("{args:?}"));
    }
}

#[test]
fn hostile_entries_in_the_state_directory_cannot_control_the_terminal() {
    let test = Test::new();
    test.ralph(&["run", "x", "-m", "1", "--name", "a", "--", "true"]);
    let dir = test.state_dir().join("loops").join(format!("seen{EVIL}"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("journal.jsonl"), EVIL).unwrap();
    std::fs::write(test.loop_dir("a").join("journal.jsonl"), EVIL).unwrap();
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["ls", "--names"],
        &["status", "a"],
        &["logs", "a"],
        &["resume", "--all"],
        &["doctor"],
        &["rm", "--ended"],
        &["rm", "a"],
    ] {
        assert_clean(&test.ralph(args), &format!("{args:?}"));
    }
}

#[test]
fn arguments_cannot_control_the_terminal() {
    let test = Test::new();
    let flag = format!("--{EVIL}");
    let setting = format!("max-iterations={EVIL}");
    let mut commands = vec![
        vec![EVIL],
        vec![&flag],
        vec!["plugin", EVIL],
        vec!["bus", EVIL],
    ];
    commands.extend([
        vec!["run", "x", &flag],
        vec!["set", "a", &setting],
        vec!["help", EVIL],
    ]);
    commands.extend([
        vec!["run", "x", "--agent", EVIL],
        vec!["run", "x", "--config", EVIL],
    ]);
    commands.extend([
        vec!["run", "x", "--name", EVIL],
        vec!["run", "x", "--scm", EVIL],
    ]);
    for command in [
        "attach",
        "resume",
        "status",
        "logs",
        "pause",
        "stop",
        "set",
        "say",
        "wait",
        "rm",
        "man",
        "completions",
        "config",
        "init",
        "template",
        "doctor",
        "demo",
        "ls",
        "done",
        "hook",
    ] {
        commands.push(vec![command, EVIL]);
        commands.push(vec![command, EVIL, EVIL]);
    }
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    assert_all_clean(&test, "argument", &commands);
}

#[test]
fn later_lines_of_a_message_are_indented() {
    let test = Test::new();
    let done = test.ralph(&["status", "a\nralph: error: faked"]).exits(2);
    assert!(!done.err.contains("\nralph:"), "{}", done.err);
}

mod needs_script {
    use super::{EVIL, Test, json};

    #[test]
    fn files_cannot_control_a_terminal_in_color() {
        let settings = json!({ "prompt": EVIL, "checks": [EVIL], "notify": EVIL, "agent": { "command": ["true", EVIL] } });
        let test = Test::git().file("evil.json", &settings.to_string());
        for args in [
            &["config", "--config", "evil.json"][..],
            &["run", "--dry-run", "--config", "evil.json"],
            &["run", "-m", "1", "--config", "evil.json", "--name", "a"],
            &["status", "a"],
            &["logs", "a"],
            &["doctor"],
        ] {
            let done = test.start_on_terminal_as("xterm", args).end();
            let bad = [
                "\u{1b}]",
                "\u{1b}[2J",
                "\u{9b}",
                "\u{9d}",
                "\u{202e}",
                "\u{7}",
                "\u{200b}",
            ];
            let found = bad.iter().find(|bad| done.out.contains(**bad));
            assert_eq!(found, None, "{args:?}: {:?}", done.out);
        }
    }
}
