//! Settings files: every key takes effect, layers are merged as documented, and errors name the file and key.

use crate::kit::Test;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An agent that records its arguments.
const ECHO: &str = "#!/bin/sh\ncat > stdin.txt\nprintf '%s\\n' \"$@\" > words.txt\n";

/// A key and its value in a file, the field of the plan that it sets, and the expected value.
const KEYS: &[(&str, &str, &str, &str)] = &[
    ("prompt", r#""Write it.""#, "/task/text", r#""Write it.""#),
    ("promptFile", r#""spec.md""#, "/task/file", "null"),
    ("promise", r#""OK NOW""#, "/proof/promise", r#""OK NOW""#),
    ("noPromise", "true", "/proof/fallback", "[]"),
    ("untilGreen", "true", "/proof/until_green", "true"),
    ("maxStalls", "3", "/limits/stalls", "3"),
    (
        "donePattern",
        r#""^all done$""#,
        "/proof/pattern",
        r#""^all done$""#,
    ),
    ("doneFile", r#""out.md""#, "/proof/file", r#""out.md""#),
    (
        "fallbackPromises",
        r#"["YES"]"#,
        "/proof/fallback",
        r#"["YES"]"#,
    ),
    (
        "checks",
        r#"["true"]"#,
        "/proof/checks/0/command",
        r#""true""#,
    ),
    (
        "checkTimeout",
        r#""3m""#,
        "/proof/checks/0/timeout_ms",
        "180000",
    ),
    (
        "onFail",
        r#""PREPEND""#,
        "/proof/checks/0/on_fail",
        r#""prepend""#,
    ),
    ("preflight", "false", "/proof/preflight", "false"),
    ("weakChecks", "true", "/proof/weak_checks", r#""accept""#),
    (
        "secondLook",
        r#""always""#,
        "/proof/second_look",
        r#""always""#,
    ),
    (
        "hiddenChecks",
        r#"["make held-out"]"#,
        "/proof/checks/1/hidden",
        "true",
    ),
    (
        "setup",
        r#""npm ci""#,
        "/proof/setup/command",
        r#""npm ci""#,
    ),
    ("sealed", "true", "/proof/sealed", "true"),
    ("protect", r#"["api/"]"#, "/proof/protect/0", r#""api/""#),
    ("allow", r#"["golden/"]"#, "/proof/allow/0", r#""golden/""#),
    ("checkpoints", "false", "/checkpoints", "null"),
    ("maxIterations", "3", "/limits/iterations", "3"),
    ("maxCost", "1.5", "/limits/cost_usd", "1.5"),
    ("allowUnknownCost", "true", "/limits/cost_usd", "2.0"),
    ("maxTime", r#""2h""#, "/limits/time_ms", "7200000"),
    ("maxFailures", "9", "/limits/failures", "9"),
    ("maxPeeks", "2", "/limits/peeks", "2"),
    ("maxRest", r#""2h""#, "/limits/rest_ms", "7200000"),
    ("iterationTimeout", "90", "/limits/iteration_ms", "90000"),
    (
        "inactivityTimeout",
        r#""5m""#,
        "/limits/inactivity_ms",
        "300000",
    ),
    ("delay", r#""10ms""#, "/rest/delay_ms", "10"),
    ("backoff", r#""2s..9s""#, "/rest/backoff_cap_ms", "9000"),
    ("agent", r#""codex""#, "/agent/name", r#""codex""#),
    ("model", r#""big""#, "/agent/command/2", r#""big""#),
    ("approve", r#""none""#, "/agent/approve", r#""none""#),
    ("exitWaiting", "7", "/agent/exit_waiting", "7"),
    (
        "context",
        r#""feedback""#,
        "/context/level",
        r#""feedback""#,
    ),
    ("diffChars", "11", "/context/diff_chars", "11"),
    ("outputChars", "12", "/context/output_chars", "12"),
    ("contextBus", "4", "/context/bus", "4"),
    (
        "agents",
        r#"{"mine": {"command": "mine"}}"#,
        "/agent/name",
        r#""mine""#,
    ),
    ("worktree", r#""side""#, "/worktree/branch", r#""side""#),
    ("scm", r#"["commit"]"#, "/scm/tasks/0", r#""commit""#),
    ("shareWorkspace", "true", "/share_workspace", "true"),
    ("waitTimeout", r#""7s""#, "/grace/children_ms", "7000"),
    ("notify", r#""true""#, "/notify", r#""true""#),
    ("logCap", r#""1MiB""#, "/log_cap", "1048576"),
    ("minFree", r#""2KiB""#, "/min_free", "2048"),
    ("graceTerm", r#""1s""#, "/grace/term_ms", "1000"),
    ("graceMarker", r#""2s""#, "/grace/marker_ms", "2000"),
    ("graceSurvivor", r#""3s""#, "/grace/survivor_ms", "3000"),
    (
        "prices",
        r#"{"mine": {"input": 1, "output": 2}}"#,
        "/prices/mine/input",
        "1.0",
    ),
    ("graceLinger", r#""4s""#, "/grace/linger_ms", "4000"),
    ("maxTokens", "5000", "/limits/tokens", "5000"),
    ("probe", r#""2s..9s""#, "/rest/probe_cap_ms", "9000"),
    ("graceReady", r#""3s""#, "/grace/ready_ms", "3000"),
    ("pty", "true", "/agent/terminal", "true"),
];

/// Returns other keys that are needed for a key to have a visible effect.
fn companion_keys(key: &str) -> Value {
    match key {
        "checkTimeout" | "onFail" | "scm" | "untilGreen" | "hiddenChecks" => {
            json!({ "checks": ["true"] })
        }
        "maxCost" => json!({ "allowUnknownCost": true }),
        "allowUnknownCost" => json!({ "maxCost": 2.0 }),
        "agents" => json!({ "agent": "mine" }),
        "model" => {
            json!({ "agents": { "claude": { "headless": [], "stream": [], "approve": { "edits": { "words": [] } } } } })
        }
        _ => json!({}),
    }
}

#[test]
fn every_key_of_a_settings_file_takes_effect() {
    let tested: BTreeSet<&str> = KEYS
        .iter()
        .map(|row| row.0)
        .chain([
            "allowApiKey",
            // Need a server: tests/fleet.
            "fleet",
            "fleetAckWait",
            "fleetCa",
            "fleetCert",
            "fleetCreds",
            "fleetHeartbeat",
            "fleetKey",
            "fleetNkey",
            "fleetOfflineGrace",
            "fleetPool",
            "quiet",
            "raw",
            // Needs a system that can confine processes: tests/it/sandbox.
            "sandbox",
            "stream",
            "tmux",
            "tmuxSocket",
        ])
        .collect();
    let test = Test::new();
    let config: Value =
        serde_json::from_str(&test.ralph(&["config", "--json"]).exits(0).out).unwrap();
    let known: BTreeSet<&str> = config
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(known, tested, "every key is tested, and no other");
    std::thread::scope(|scope| {
        for row in KEYS {
            scope.spawn(move || assert_effect(row));
        }
    });
}

fn assert_effect((key, value, place, expected): &(&str, &str, &str, &str)) {
    let test = Test::git().file("spec.md", "a spec\n");
    let test = ["claude", "codex", "mine"]
        .into_iter()
        .fold(test, |test, name| test.on_path(name, ECHO));
    let mut settings = companion_keys(key);
    settings[*key] = serde_json::from_str(value).unwrap();
    test.write(".ralph/settings.json", &settings.to_string());
    let mut args = vec!["run", "--name", "a"];
    args.extend((!key.starts_with("prompt")).then_some("task"));
    // One iteration is enough to record the plan.
    args.extend(
        (*key != "maxIterations")
            .then_some(["-m", "1"])
            .into_iter()
            .flatten(),
    );
    let done = test.ralph(&args);
    assert!(done.code < 2, "{key}: {done:?}");
    let plan = &test.journal("a")[0]["plan"];
    let expected: Value = serde_json::from_str(expected).unwrap();
    let found = plan.pointer(place).cloned().unwrap_or(Value::Null);
    if *key == "promptFile" {
        assert!(found.as_str().unwrap().ends_with("/spec.md"), "{found}");
    } else {
        assert_eq!(found, expected, "{key}");
    }
}

#[test]
fn the_console_s_keys_take_effect() {
    let agent = "#!/bin/sh\ncat > /dev/null\necho words of the agent\n";
    let out = |settings: &str, more: &[&str]| {
        let test = Test::new()
            .on_path("claude", agent)
            .file(".ralph/settings.toml", settings);
        test.ralph(
            &[
                &["run", "task", "-m", "1", "--no-promise", "--name", "a"],
                more,
            ]
            .concat(),
        )
        .exits(0)
        .out
    };
    assert!(out("", &[]).contains("words of the agent"));
    assert!(!out("stream = false", &[]).contains("words of the agent"));
    assert!(!out("streamAgentOutput = false", &[]).contains("words of the agent"));
    assert!(out("stream = false", &["--stream-agent-output"]).contains("words of the agent"));
    assert!(out("quiet = true", &[]).lines().count() <= 2);
    assert!(out("quiet = true", &["--json"]).starts_with('{'));
    let test = Test::new()
        .on_path("claude", agent)
        .file(".ralph/settings.toml", "stream = false");
    test.ralph(&["run", "task", "-m", "1", "--name", "a"])
        .exits(1);
    test.ralph(&["set", "a", "max-iterations=2"]).exits(0);
    let resumed = test
        .ralph(&["resume", "a"])
        .exits(1)
        .says("starting iteration 2/2");
    assert!(
        !resumed.out.contains("words of the agent"),
        "a resumed loop is shown in the same way"
    );
}

#[test]
fn the_example_settings_are_accepted_unchanged() {
    let test = Test::new().on_path(
        "claude",
        &format!("{ECHO}echo '<response>done</response>'\n"),
    );
    let test = test.program(
        "mvnw",
        "#!/bin/sh\ntest -f stdin.txt || { echo 'no build yet'; exit 1; }\n",
    );
    test.write(
        ".ralph/settings.json",
        r#"{
  "maximumIterations": 10,
  "completionResponse": "DONE",
  "outputTruncateChars": 5000,
  "streamAgentOutput": true,
  "agent": {
    "command": "claude",
    "flags": ["--model opus", "--no-auto-compact"]
  },
  "guardrails": [
    {
      "command": "./mvnw clean install -T 2C -q -e",
      "failAction": "APPEND"
    }
  ],
  "scm": {
    "command": "git",
    "tasks": ["commit", "push"]
  }
}"#,
    );
    // SCM tasks need a repository with a remote to push to.
    test.sh("git init -q -b main && git init -q --bare -b main ../there.git && git remote add origin ../there.git");
    test.sh("git config push.autoSetupRemote true && git add -A && git commit -q -m first");
    test.ralph(&["--prompt", "Build it.", "--name", "a"])
        .exits(0)
        .says("loop complete after 1 iteration");
    let args: Vec<String> = test.read("words.txt").lines().map(str::to_owned).collect();
    assert_eq!(args[0], "-p");
    assert!(
        args.ends_with(&["--model", "opus", "--no-auto-compact"].map(str::to_owned)),
        "{args:?}"
    );
    assert!(test.read("stdin.txt").starts_with("Build it.\n"));
    assert!(test.read("stdin.txt").contains("no build yet"));
    let plan = &test.journal("a")[0]["plan"];
    assert_eq!(plan["limits"]["iterations"], 10);
    assert_eq!(plan["proof"]["promise"], "DONE");
    assert_eq!(plan["context"]["output_chars"], 5000);
    assert_eq!(
        test.sh("git -C ../there.git log --oneline | wc -l").trim(),
        "2"
    );
}

#[test]
fn a_ralph_loop_section_in_another_program_s_file_is_read() {
    let yaml = "llm:\n  model: other\nralph_loop:\n  max_iterations: 2        # few\n  max_cost: null\n  \
                max_time: 600\n  completion_tag: \"FIN\"\n  agent: build\n";
    let test = Test::new()
        .on_path("claude", ECHO)
        .file("config.yaml", yaml);
    test.ralph(&["run", "x", "--name", "a", "-c", "config.yaml"])
        .exits(1);
    let plan = &test.journal("a")[0]["plan"];
    assert_eq!(
        plan["agent"]["name"], "claude",
        "build means the default agent"
    );
    assert_eq!(plan["limits"]["iterations"], 2);
    assert_eq!(plan["limits"]["time_ms"], 600_000);
    assert_eq!(plan["limits"]["cost_usd"], Value::Null);
    assert_eq!(plan["proof"]["promise"], "FIN");
}

#[test]
fn later_layers_override_earlier_ones() {
    let test = Test::new();
    test.write(
        "../home/.config/ralph/settings.yaml",
        "max-iterations: 1\ndelay: 1\nmodel: u\nchecks: [a, b]\n",
    );
    test.write(
        ".ralph/settings.toml",
        "max_iterations = 2\nbackoff = '1s..2s'\n[agent]\ncommand = 'p'\n",
    );
    test.write(
        ".ralph/settings.local.json",
        r#"{"maxIterations": 3, "checks": ["c"], "agent": {"flags": ["-l"]}}"#,
    );
    let config = |args: &[&str]| -> Value {
        let all = [&["config", "--json"], args].concat();
        serde_json::from_str(&test.ralph(&all).exits(0).out).unwrap()
    };
    let all = config(&[]);
    let came = |all: &Value, key: &str| {
        let from = all[key]["from"]
            .as_str()
            .unwrap_or("nowhere")
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned();
        (all[key]["value"].clone(), from)
    };
    assert_eq!(
        came(&all, "maxIterations"),
        (json!(3), "settings.local.json".into())
    );
    assert_eq!(came(&all, "delay"), (json!(1), "settings.yaml".into()));
    assert_eq!(
        came(&all, "backoff"),
        (json!("1s..2s"), "settings.toml".into())
    );
    assert_eq!(came(&all, "maxFailures"), (json!(5), "default".into()));
    assert_eq!(
        came(&all, "agent.command"),
        (json!(["p"]), "settings.toml".into()),
        "objects merge"
    );
    assert_eq!(
        came(&all, "agent.flags"),
        (json!(["-l"]), "settings.local.json".into())
    );
    assert_eq!(
        came(&all, "checks[0].command"),
        (json!("c"), "settings.local.json".into()),
        "lists replace"
    );
    assert!(all.get("checks[1].command").is_none());
    test.write("other.json", r#"{"backoff": "3s..4s"}"#);
    let all = config(&["-c", "other.json"]);
    assert_eq!(
        came(&all, "backoff"),
        (json!("3s..4s"), "other.json".into())
    );
    assert_eq!(
        came(&all, "maxIterations"),
        (json!(3), "settings.local.json".into()),
        "the local one still applies"
    );
    assert!(
        all.get("agent.command").is_none(),
        "the project's file does not"
    );
    test.ralph(&["config"])
        .exits(0)
        .says("# Limits\nmaxIterations");
}

#[test]
fn a_null_value_removes_only_its_own_key() {
    let below =
        r#"{"promptFile": "spec.md", "noPromise": true, "agent": {"command": "p", "flags": "-f"}}"#;
    let nothing = r#"{"prompt": null, "promise": null, "agent": {"name": null, "flags": null}}"#;
    let test = Test::new()
        .file(".ralph/settings.json", below)
        .file(".ralph/settings.local.json", nothing);
    let all: Value = serde_json::from_str(&test.ralph(&["config", "--json"]).exits(0).out).unwrap();
    assert_eq!(all["promptFile"]["value"], "spec.md");
    assert_eq!(all["noPromise"]["value"], true);
    assert_eq!(all["agent.command"]["value"], json!(["p"]));
    assert_eq!(
        all["agent.flags"],
        json!({ "value": [], "from": ".ralph/settings.local.json" })
    );
    let null =
        r#"{"agents": {"claude": {"title": null, "approve": {"all": null}}}, "agent": "claude"}"#;
    let test = Test::new()
        .on_path("claude", ECHO)
        .file(".ralph/settings.json", null);
    test.ralph(&["run", "x", "-m", "1", "--no-promise"])
        .exits(0);
}

#[test]
fn flags_override_every_file() {
    let settings = "maxIterations = 7\npromptFile = 'spec.md'\nnoPromise = true\nchecks = ['false']\nagent = 'codex'\n";
    let test = Test::new()
        .file(".ralph/settings.toml", settings)
        .file("spec.md", "x");
    let args = [
        "run",
        "the task",
        "--name",
        "a",
        "-m",
        "1",
        "--check",
        "true",
        "--promise",
        "Y",
        "--",
        "true",
    ];
    test.ralph(&args).exits(1);
    let plan = &test.journal("a")[0]["plan"];
    assert_eq!(plan["limits"]["iterations"], 1);
    assert_eq!(
        plan["task"],
        json!({ "title": null, "text": "the task", "file": null })
    );
    assert_eq!(plan["proof"]["promise"], "Y");
    assert_eq!(plan["proof"]["checks"].as_array().unwrap().len(), 1);
    assert_eq!(plan["proof"]["checks"][0]["command"], "true");
    assert_eq!(plan["agent"]["name"], "true");
}

/// An invalid settings file, what the error names, and what the hint says.
const WRONG: &[(&str, &str, &str, &str)] = &[
    (
        "settings.json",
        "{ \"maxIterations\": ",
        "settings.json: EOF while parsing",
        "fix the file and try again",
    ),
    (
        "settings.toml",
        "a = \n",
        "settings.toml: ",
        "fix the file and try again",
    ),
    (
        "settings.toml",
        "max-time = 5\nmax-time = 6\n",
        "line 2",
        "fix the file and try again",
    ),
    (
        "settings.yaml",
        "a: [1, 2\nb: }",
        "settings.yaml: ",
        "fix the file and try again",
    ),
    (
        "settings.json",
        "[1]",
        "does not contain settings",
        "keys and values",
    ),
    (
        "settings.json",
        r#"{"maxIterations": "ten"}"#,
        "maxIterations must be a whole number",
        "maxIterations: 10",
    ),
    (
        "settings.json",
        r#"{"maxIterations": -1}"#,
        "maxIterations must be",
        "10",
    ),
    (
        "settings.json",
        r#"{"max_time": "soon"}"#,
        "max_time must be a duration, not \"soon\"",
        "5m",
    ),
    (
        "settings.json",
        r#"{"maxCost": true}"#,
        "maxCost must be an amount",
        "2.50",
    ),
    (
        "settings.json",
        r#"{"preflight": "no"}"#,
        "preflight must be true or false",
        "true",
    ),
    (
        "settings.json",
        r#"{"promise": 5}"#,
        "promise must be a string, not 5",
        "promise",
    ),
    (
        "settings.json",
        r#"{"onFail": "explode"}"#,
        "onFail must be one of append, prepend, replace",
        "append",
    ),
    (
        "settings.json",
        r#"{"guardrails": "x"}"#,
        "guardrails must be a list, not \"x\"",
        "command",
    ),
    (
        "settings.json",
        r#"{"guardrails": [{"command": "x", "failActoin": "APPEND"}]}"#,
        "guardrails[0].failActoin is not",
        "failAction",
    ),
    (
        "settings.json",
        r#"{"guardrails": [{"command": 3}]}"#,
        "guardrails[0].command must be a string",
        "command",
    ),
    (
        "settings.json",
        r#"{"maxIteratoins": 5}"#,
        "maxIteratoins is not a setting",
        "did you mean maxIterations?",
    ),
    (
        "settings.json",
        r#"{"zebra": 5}"#,
        "zebra is not a setting",
        "ralph config",
    ),
    (
        "settings.json",
        r#"{"maxIterations": 5, "max_iterations": 6}"#,
        "is set twice",
        "keep one spelling",
    ),
    (
        "settings.json",
        r#"{"agent": {"comand": "x"}}"#,
        "agent.comand is not a setting",
        "did you mean command?",
    ),
    (
        "settings.json",
        r#"{"agent": {"flags": ["--a 'b"]}}"#,
        "agent.flags[0] has an unclosed quotation mark",
        "close it",
    ),
    (
        "settings.json",
        r#"{"agent": {"name": "claude", "command": "x"}}"#,
        "name and command contradict each other",
        "not both",
    ),
    (
        "settings.json",
        r#"{"agent": "cluade"}"#,
        "settings.json: agent \"cluade\": unknown agent",
        "did you mean claude?",
    ),
    (
        "settings.json",
        r#"{"agents": {"mine": {"headless": "x"}}, "agent": "mine"}"#,
        "agents.mine: the required key command is missing",
        "command = ",
    ),
    (
        "settings.json",
        r#"{"agents": {"mine": 5}}"#,
        "agents.mine must be an object",
        "agents has",
    ),
    (
        "settings.json",
        r#"{"agents": {"mine": {"command": "x", "denied": ["("]}}, "agent": "mine"}"#,
        "agents.mine.denied",
        "regex syntax",
    ),
    (
        "settings.json",
        r#"{"promise": "x", "noPromise": true}"#,
        "settings.json: promise and",
        "only one of them",
    ),
    (
        "settings.json",
        r#"{"donePattern": "("}"#,
        "settings.json: donePattern \"(\" is not a valid pattern",
        "backslash",
    ),
    (
        "settings.json",
        r#"{"maxCost": 5, "agent": {"command": "mine"}}"#,
        "settings.json: maxCost is set, but ralph cannot read the cost of `mine`",
        "--allow-unknown-cost",
    ),
    (
        "settings.json",
        r#"{"maxTime": 5, "maxTime": 6}"#,
        "maxTime is set twice",
        "fix the file and try again",
    ),
    (
        "settings.toml",
        "maxCost = inf\n",
        "settings.toml: inf is not a number at line 1",
        "fix the file and try again",
    ),
    (
        "settings.toml",
        "maxTime = 2001-02-03\n",
        "maxTime must be a duration, not a date",
        "1h30m",
    ),
    (
        "settings.yaml",
        "max_time: 5\nmax_time: 6\n",
        "duplicate mapping key: max_time\n",
        "fix the file and try again",
    ),
    (
        "settings.json",
        r#"{"checks": [{"command": null}]}"#,
        "checks[0] has no command",
        "command",
    ),
    (
        "settings.json",
        r#"{"checks": ["true", {}]}"#,
        "checks[1] has no command",
        "command",
    ),
    (
        "settings.json",
        r#"{"checks": ["true", " "]}"#,
        "checks: check number 2 is empty",
        "--check",
    ),
    (
        "settings.json",
        r#"{"checks": [5]}"#,
        "checks[0] must be a string or an object, not 5",
        "checks has",
    ),
    (
        "settings.json",
        r#"{"noPreflight": true}"#,
        "noPreflight is a flag, not a setting",
        "preflight: false",
    ),
    (
        "settings.json",
        r#"{"fallbackPromises": [" "]}"#,
        "fallbackPromises is empty or contains an empty promise",
        "noPromise",
    ),
    (
        "settings.json",
        r#"{"fallbackPromises": []}"#,
        "fallbackPromises is empty or contains an empty promise",
        "noPromise",
    ),
    (
        "settings.json",
        r#"{"doneFile": ""}"#,
        "settings.json: doneFile is empty",
        "path of a file",
    ),
    (
        "settings.json",
        r#"{"agents": {"mine": {"command": "x", "exit": [{"code": null, "means": "login"}]}}}"#,
        "agents.mine.exit[0] has no code",
        "42",
    ),
    (
        "settings.json",
        r#"{"agent": {"command": "cat"}, "model": "big"}"#,
        "settings.json: model: cat is not a known agent",
        "docs/presets.md",
    ),
    (
        "settings.json",
        r#"{"agent": {"name": "script:x", "flags": "-v"}}"#,
        "a script takes no flags",
        "remove the flags",
    ),
    (
        "settings.json",
        r#"{"scm": ["commit"]}"#,
        "settings.json: scm commit needs a git repository",
        "git init",
    ),
    (
        "settings.json",
        r#"{"worktree": 5}"#,
        "worktree must be true, false or the name of a branch, not 5",
        "feature/parser",
    ),
    (
        "settings.json",
        r#"{"scm": 5}"#,
        "scm must be an object or a list",
        "scm has",
    ),
    (
        "settings.yaml",
        "ralph_loop: 5\n",
        "ralph_loop does not contain settings",
        "object",
    ),
    (
        "settings.yaml",
        "ralph_loop:\n  max_iteration: 5\n",
        "ralph_loop.max_iteration is not",
        "did you mean maxIterations?",
    ),
];

#[test]
fn errors_in_a_settings_file_name_the_file_and_the_key() {
    for (file, text, error, hint) in WRONG {
        let test = Test::new()
            .on_path("claude", ECHO)
            .file(&format!(".ralph/{file}"), text);
        let done = test
            .ralph(&["run", "x", "-m", "1"])
            .exits(2)
            .complains(error);
        let (_, given) = done
            .err
            .split_once("hint: ")
            .unwrap_or_else(|| panic!("no hint: {done:?}"));
        assert!(given.contains(hint), "{text}: {hint:?} is not in {given:?}");
        assert!(
            done.err.contains(&format!(".ralph/{file}: ")) || error.contains("does not contain"),
            "{done:?}"
        );
        assert!(
            !test.state_dir().join("loops").exists(),
            "nothing was begun"
        );
    }
}

#[test]
fn an_unreadable_settings_file_is_reported() {
    let test = Test::new().file("a.json", "{}").file(".ralph/b", "");
    let refused = |args: &[&str], error: &str, hint: &str| {
        test.ralph(&[&["run", "x"], args, &["--", "true"]].concat())
            .exits(2)
            .complains(error)
            .complains(hint);
    };
    refused(&["-c", "DONE"], "unknown file type", "--promise TEXT");
    refused(
        &["-c", "missing.json"],
        "settings file not found: missing.json",
        "--promise TEXT",
    );
    refused(&["--settings", "."], "unknown file type", ".json");
    test.sh("mkdir dir.json && mkfifo pipe.json && printf '\\377' > bytes.json && head -c 2000000 /dev/zero > big.json");
    refused(
        &["-c", "dir.json"],
        "cannot read dir.json: not a regular file",
        "fix the file",
    );
    refused(
        &["-c", "pipe.json"],
        "cannot read pipe.json",
        "fix the file",
    );
    refused(
        &["-c", "bytes.json"],
        "bytes.json is not valid UTF-8",
        "UTF-8",
    );
    refused(&["-c", "big.json"], "big.json is too large", "1 MiB");
    test.sh("ln -s nowhere .ralph/settings.json");
    refused(&[], "settings file not found: .ralph/settings.json", "hint");
    test.sh(
        "rm .ralph/settings.json; echo '{}' > .ralph/settings.json; echo > .ralph/settings.yaml",
    );
    refused(&[], "found two settings files", "keep one");
    test.sh("rm -r .ralph && ln -s .ralph .ralph");
    refused(
        &[],
        ".ralph is a link to a directory outside ",
        "remove the link .ralph",
    );
}

#[test]
fn contradicting_flags_are_refused() {
    let test = Test::new().on_path("claude", ECHO);
    for (args, error) in [
        (&["--yolo", "--approve", "none"][..], "--approve"),
        (&["--promise", "x", "--no-promise"], "contradict each other"),
        (&["--prompt", "x"], "TASK and --prompt"),
        (&["--quiet", "--json"], "--quiet"),
        (
            &["--model", "m", "--", "claude"],
            "--model cannot be combined with a command after --",
        ),
        (
            &["--yolo", "--", "claude"],
            "--approve cannot be combined with a command after --",
        ),
        (
            &["--agent", "claude", "--", "claude"],
            "--agent cannot be combined with a command after --",
        ),
        (&["--approve", "most"], "most"),
        (
            &["--agent", "script:x", "--model", "m"],
            "--model: script:x is not a known agent",
        ),
        (
            &["--agent", "script:x", "--yolo"],
            "--approve: script:x is not a known agent",
        ),
        (&["--done-file", ""], "--done-file is empty"),
        (&["--model", " "], "--model is empty"),
        (&["--", "."], "program . not found"),
        (&["--", "./"], "is a directory: ./"),
        (&["--exit-waiting", "300"], "--exit-waiting"),
    ] {
        test.ralph(&[&["run", "x"], args].concat())
            .exits(2)
            .complains(error)
            .complains("hint:");
    }
}

#[test]
fn choices_are_accepted_in_capitals_as_in_files() {
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--check",
        "true",
        "--on-fail",
        "REPLACE",
    ];
    let test = Test::new();
    test.ralph(&[&args[..], &["--", "true"]].concat()).exits(0);
    assert_eq!(
        test.journal("a")[0]["plan"]["proof"]["checks"][0]["on_fail"],
        "replace"
    );
}

#[test]
fn the_schema_is_checked_in() {
    let schema = Test::new().ralph(&["config", "--schema"]).exits(0).out;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.schema.json");
    if std::env::var_os("RALPH_BLESS").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        known == schema,
        "docs/settings.schema.json is not what ralph config --schema prints: RALPH_BLESS=1 writes it"
    );
    let schema: Value = serde_json::from_str(&schema).unwrap();
    for key in KEYS {
        assert!(
            schema["$defs"]["settings"]["properties"][key.0].is_object(),
            "{}",
            key.0
        );
    }
}

/// Returns the rows of the table in the documentation, from the program's own help and schema.
fn documented() -> String {
    let test = Test::new();
    let schema: Value =
        serde_json::from_str(&test.ralph(&["config", "--schema"]).exits(0).out).unwrap();
    let schema = &schema["$defs"]["settings"];
    let help = test.ralph(&["run", "--help"]).exits(0).out;
    let keys = test.ralph(&["config"]).exits(0).out;
    let mut rows =
        vec!["| key | default | needs trust | what it says |\n|---|---|---|---|\n".to_owned()];
    for line in keys
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let key = line.split_whitespace().next().unwrap();
        let entry = &schema["properties"][key];
        let description = entry["description"].as_str().unwrap();
        let (description, trust) = description
            .split_once(" [needs trust: ")
            .map_or((description, ""), |(before, trust)| {
                (before, trust.trim_end_matches(']'))
            });
        let (args, otherwise) = match description.split_once(" [default: ") {
            Some((args, otherwise)) => (args, otherwise.trim_end_matches(']').to_owned()),
            None => (description, format!("`{}`", entry["default"])),
        };
        let aliases: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, other)| other["description"] == format!("The same as {key}"))
            .map(|(alias, _)| format!("`{alias}`"))
            .collect();
        let also = if aliases.is_empty() {
            String::new()
        } else {
            format!(" (also {})", aliases.join(", "))
        };
        let flag: String = key
            .chars()
            .flat_map(|c| {
                let dash = c.is_uppercase().then_some('-');
                dash.into_iter().chain(c.to_lowercase())
            })
            .collect();
        let stem = flag.trim_end_matches('s');
        let flags = ["--{} ", "--{}[", "--no-{} "].map(|form| form.replace("{}", &flag));
        let known =
            flags.iter().any(|flag| help.contains(flag)) || help.contains(&format!("--{stem} "));
        let only = if known { "" } else { " *File only.*" };
        let args = args.trim_end_matches("; repeatable");
        rows.push(format!(
            "| `{key}`{also} | {otherwise} | {trust} | {args}.{only} |\n"
        ));
    }
    rows.concat()
}

#[test]
fn the_documentation_lists_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("cargo nextest run settings -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of keys -->").unwrap();
    let right = format!(
        "{before}cargo nextest run settings -->\n\n{}\n<!-- end of keys -->{after}",
        documented()
    );
    if std::env::var_os("RALPH_BLESS").is_some() {
        std::fs::write(path, &right).unwrap();
    } else {
        assert!(
            page == right,
            "the table of keys in docs/settings.md is old: RALPH_BLESS=1 writes it"
        );
    }
}

#[test]
fn the_documentation_s_examples_are_settings() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md")).unwrap();
    let mut seen = 0;
    for format in ["json", "toml", "yaml"] {
        for block in page.split(&format!("```{format}\n")).skip(1) {
            let example = block.split("```").next().unwrap();
            let test = Test::new().file(&format!(".ralph/settings.{format}"), example);
            test.ralph(&["config"])
                .exits(0)
                .says(&format!(".ralph/settings.{format}"));
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn flags_outweigh_the_settings_of_one_check() {
    let check =
        r#"{"checks": [{"command": "sleep 60", "timeout": "1h", "failAction": "REPLACE"}]}"#;
    let test = Test::new().file(".ralph/settings.json", check);
    let flags = ["--check-timeout", "200ms", "--on-fail", "prepend"];
    let done = test.ralph(&[&["run", "x", "-m", "1"], &flags[..], &["--", "true"]].concat());
    done.exits(1)
        .says("red (timeout after ")
        .says("; --check-timeout sets the limit); its output comes first in the next prompt");
}

#[test]
fn an_empty_agent_command_is_an_error() {
    for command in ["\"\"", "[]", "[\"\"]"] {
        let settings = format!(r#"{{"agent": {{"command": {command}}}}}"#);
        let test = Test::new().file(".ralph/settings.json", &settings);
        test.ralph(&["run", "x"])
            .exits(2)
            .complains(".ralph/settings.json: agent: command is empty")
            .complains("the first installed agent");
    }
}

#[test]
fn the_items_of_a_command_are_its_arguments() {
    for (command, printed) in [
        (
            r#"["sh", "-c", "echo \"$1|$2\"", "x", "a b", "c"]"#,
            "a b|c",
        ),
        (r#"["sh -c 'echo one'"]"#, "one"),
        (r#""sh -c 'echo two'""#, "two"),
    ] {
        let settings = format!(r#"{{"agent": {{"command": {command}}}}}"#);
        let test = Test::new().file(".ralph/settings.json", &settings);
        let args = ["run", "x", "--name", "a", "-m", "1", "--no-promise"];
        test.ralph(&args).exits(0).says(&format!("  | {printed}\n"));
    }
}
