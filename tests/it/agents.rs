//! Known agents: each is called with its own arguments, and a missing one is reported.

use crate::kit::Test;
use serde_json::Value;

/// Records its arguments, one per line, its environment and its input.
const ECHO: &str = "#!/bin/sh\n\
    printf '%s\\n' \"$@\" > words.txt\nenv > env.txt\n\
    for last; do :; done\n\
    if [ -f \"$last\" ]; then cat \"$last\" > prompt.txt; else cat > prompt.txt; fi\n";

fn presets() -> Vec<(String, toml::Table)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/presets/agents");
    let files = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (
            name,
            std::fs::read_to_string(path).unwrap().parse().unwrap(),
        )
    };
    files.map(read).collect()
}

fn args(value: &toml::Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_known_agent_is_called_with_its_own_arguments() {
    let presets = presets();
    assert_eq!(presets.len(), 12);
    std::thread::scope(|scope| {
        for (name, preset) in &presets {
            for level in ["none", "edits", "all"] {
                scope.spawn(move || assert_called(name, preset, level));
            }
        }
    });
}

fn assert_called(name: &str, preset: &toml::Table, level: &str) {
    let command = args(&preset["command"]);
    let test = Test::new().on_path(&command[0], ECHO);
    let mut given = vec![
        "run",
        "do this",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--agent",
        name,
    ];
    given.extend(["--approve", level]);
    let has_model = !args(&preset["model"]).is_empty();
    given.extend(
        has_model
            .then_some(["--model", "big"])
            .into_iter()
            .flatten(),
    );
    let done = test.ralph(&given).exits(0);
    let approve = &preset["approve"][level];
    let model = args(&preset["model"])
        .into_iter()
        .map(|word| word.replace("{model}", "big"));
    let mut expected: Vec<String> = command[1..].to_vec();
    expected.extend(args(&preset["headless"]));
    expected.extend(args(&preset["stream"]));
    expected.extend(args(&approve["words"]));
    expected.extend(model);
    expected.extend(args(&preset["prompt-words"]));
    let mut called: Vec<String> = test.read("words.txt").lines().map(str::to_owned).collect();
    if preset["prompt"].as_str() != Some("stdin") {
        called.pop();
    }
    called.retain(|word| !word.is_empty());
    assert_eq!(called, expected, "{name} at {level}");
    assert!(test.read("prompt.txt").starts_with("do this\n"), "{name}");
    for (variable, value) in approve["env"].as_table().unwrap() {
        assert!(
            test.read("env.txt")
                .contains(&format!("{variable}={}\n", value.as_str().unwrap()))
        );
    }
    let held = approve != &preset["approve"]["all"];
    assert_eq!(
        !done.out.contains("may do anything without asking"),
        held,
        "{name} at {level}: {}",
        done.out
    );
}

#[test]
fn the_first_installed_agent_is_used() {
    let test = Test::new().on_path("codex", ECHO).on_path("gemini", ECHO);
    let mut command = test.ralph_command(&["run", "x", "--name", "a", "-m", "1", "--no-promise"]);
    // Hide the agents that are installed on this machine.
    let tools = test.root().join("bin");
    for tool in ["sh", "cat", "env", "git"] {
        test.sh(&format!("ln -s \"$(command -v {tool})\" ../bin/{tool}"));
    }
    command.env("PATH", &tools);
    test.start_command(command).end().exits(0);
    assert_eq!(test.journal("a")[0]["plan"]["agent"]["name"], "codex");
    test.sh("rm ../bin/codex ../bin/gemini");
    let mut command = test.ralph_command(&["run", "x"]);
    command.env("PATH", &tools);
    let done = test.start_command(command).end().exits(2);
    done.complains("no known agent is installed")
        .complains("npm install -g @anthropic-ai/claude-code");
}

#[test]
fn an_unknown_or_missing_agent_is_named_in_the_error() {
    let test = Test::new();
    let mut missing = test.ralph_command(&["run", "x", "--agent", "claude"]);
    missing.env("PATH", test.root());
    let done = test.start_command(missing).end().exits(2);
    done.complains("the agent claude is not installed")
        .complains("npm install -g @anthropic-ai/claude-code");
    let mut after = test.ralph_command(&["run", "x", "--", "codex", "exec"]);
    after.env("PATH", test.root());
    test.start_command(after)
        .end()
        .exits(2)
        .complains("codex")
        .complains("npm install -g @openai/codex");
    for (name, hint) in [
        ("cluade", "did you mean claude?"),
        ("nothing-like-it", "claude, codex"),
        ("claude,codx", "did you mean codex?"),
    ] {
        let done = test.ralph(&["run", "x", "--agent", name]).exits(2);
        done.complains("unknown agent").complains(hint);
    }
    test.write(
        ".ralph/settings.toml",
        "[agents.mine]\ncommand = 'no-such-program'\ninstall = 'make me'\nlogin = 'knock'\n",
    );
    let done = test.ralph(&["run", "x", "--agent", "mine"]).exits(2);
    done.complains("program no-such-program not found")
        .complains("install it: make me; then log in: knock");
}

#[test]
fn model_is_refused_for_an_agent_without_a_model_flag() {
    let test = Test::new().on_path("mine", ECHO);
    test.write(
        ".ralph/settings.toml",
        "[agents.mine]\ncommand = 'mine'\nmodelHint = 'set MINE_MODEL'\n",
    );
    let done = test
        .ralph(&["run", "x", "--agent", "mine", "--model", "big"])
        .exits(2);
    done.complains("--model: mine has no flag to choose a model")
        .complains("set MINE_MODEL");
}

#[test]
fn the_prompt_can_be_passed_as_an_argument_or_a_file() {
    let test = Test::new()
        .on_path("by-argument", ECHO)
        .on_path("by-file", "#!/bin/sh\ncat \"$2\" > prompt.txt\n");
    test.write(
        ".ralph/settings.toml",
        "[agents.arg]\ncommand = 'by-argument'\nprompt = 'argument'\npromptWords = ['--say']\n\
         [agents.file]\ncommand = 'by-file'\nprompt = 'file'\npromptWords = '--message-file'\n",
    );
    let run = |agent: &str, name: &str, text: &str| {
        test.ralph(&[
            "run",
            "--prompt",
            text,
            "--name",
            name,
            "-m",
            "2",
            "--no-promise",
            "--context",
            "none",
            "--agent",
            agent,
        ])
    };
    run("arg", "a", "it's $(text) \"quoted\"\nand more").exits(0);
    assert_eq!(
        test.read("words.txt"),
        "--say\nit's $(text) \"quoted\"\nand more\n"
    );
    run("file", "b", "in a file").exits(0);
    assert_eq!(test.read("prompt.txt"), "in a file");
    test.write("long.md", &"x".repeat(200_000));
    let args = [
        "run",
        "--prompt-file",
        "long.md",
        "--name",
        "c",
        "--agent",
        "arg",
    ];
    test.ralph(&args)
        .exits(1)
        .complains("is too long to pass to by-argument as an argument");
    assert_eq!(
        test.events("c", "started").len(),
        1,
        "it is not tried again"
    );
}

#[test]
fn an_exit_code_with_a_special_meaning_stops_the_loop_at_once() {
    for (means, class, error) in [
        (
            "login",
            "login",
            "mine exited with 9: it is not logged in: log in: mine login",
        ),
        (
            "usage",
            "usage",
            "mine exited with 9: it rejected its arguments: read on",
        ),
        (
            "permission",
            "permission",
            "mine exited with 9: it lacks a permission it needs: read on",
        ),
    ] {
        let hint = if means == "login" {
            ""
        } else {
            "hint = 'read on'"
        };
        let settings = format!(
            "[agents.mine]\ncommand = 'mine'\nlogin = 'mine login'\n[[agents.mine.exit]]\ncode = 9\nmeans = '{means}'\n{hint}\n"
        );
        let test = Test::new().on_path("mine", "#!/bin/sh\necho its own words\nexit 9\n");
        let test = test.file(".ralph/settings.toml", &settings);
        let done = test
            .ralph(&["run", "x", "--name", "a", "--agent", "mine"])
            .exits(1);
        done.complains(error).says("its own words");
        assert_eq!(test.events("a", "started").len(), 1);
        assert_eq!(test.status("a")["outcome"]["why"], class);
    }
}

#[test]
fn an_exit_code_can_mean_waiting() {
    let settings =
        "[agents.mine]\ncommand = 'mine'\n[[agents.mine.exit]]\ncode = 8\nmeans = 'waiting'\n";
    let test = Test::new()
        .on_path("mine", "#!/bin/sh\nexit 8\n")
        .file(".ralph/settings.toml", settings);
    let args = [
        "run",
        "x",
        "--agent",
        "mine",
        "--backoff",
        "1ms..1ms",
        "--name",
    ];
    test.ralph(&[&args[..], &["b"]].concat()).exits(3);
    assert_eq!(test.status("b")["status"], "waiting");
    test.ralph(&[&args[..], &["c", "--exit-waiting", "0", "-m", "1"]].concat())
        .exits(1);
    assert_eq!(test.status("c")["outcome"]["kind"], Value::from("limit"));
}

#[test]
fn a_cost_limit_is_refused_if_the_cost_cannot_be_measured() {
    let test = Test::new()
        .on_path("codex", ECHO)
        .on_path("claude", ECHO)
        .on_path("aider", ECHO);
    let run =
        |args: &[&str]| test.ralph(&[&["run", "x", "-m", "1", "--no-promise"], args].concat());
    let cost = ["--max-cost", "2", "--agent"];
    let unknown = run(&[&cost[..], &["aider"]].concat()).exits(2);
    unknown
        .complains("--max-cost is set, but ralph cannot read the cost of `aider`")
        .complains("--allow-unknown-cost");
    let unnamed = run(&[&cost[..], &["codex"]].concat()).exits(2);
    unnamed
        .complains("codex reports tokens without cost or model")
        .complains("--model");
    let unpriced = run(&[&cost[..], &["codex", "--model", "mine"]].concat()).exits(2);
    unpriced
        .complains("the price of mine is unknown")
        .complains("prices.mine");
    run(&[&cost[..], &["codex", "--model", "gpt-5.5"]].concat()).exits(0);
    run(&[&cost[..], &["claude"]].concat()).exits(0);
    run(&[&cost[..], &["aider", "--allow-unknown-cost"]].concat()).exits(0);
    let tokens = run(&["--max-tokens", "5", "--agent", "aider"]).exits(2);
    tokens.complains("--max-tokens is set, but ralph cannot read the token usage of `aider`");
}
