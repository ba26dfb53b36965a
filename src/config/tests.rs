//! What words become, and which are refused.

use super::*;
use crate::engine::plan::{Approve, Delivery, OnFail};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn errand() -> Errand {
    Errand {
        task: Some("fix it".into()),
        command: vec!["agent".into()],
        workspace: "/nowhere".into(),
        ..Errand::default()
    }
}

/// The defaults with these flags on top.
fn with(flags: &Value) -> Stack {
    let mut stack = Stack::defaults();
    stack.push(layer(Origin::Flag, flags));
    stack
}

fn layer(origin: Origin, values: &Value) -> Layer {
    let values = validate::settle_all(keys::table(), values.as_object().unwrap(), "").unwrap();
    Layer { origin, values }
}

fn refused(flags: &Value, errand: &Errand) -> Wrong {
    plan(&with(flags), errand).expect_err("this must be refused")
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let plan = plan(&Stack::defaults(), &errand()).unwrap();
    assert_eq!(plan.limits.iterations, Some(25));
    assert_eq!(plan.limits.failures, Some(5));
    assert_eq!(plan.limits.cost_usd, None);
    assert_eq!(plan.limits.time_ms, None);
    assert_eq!(plan.limits.iteration_ms, Some(7_200_000));
    assert_eq!(plan.limits.inactivity_ms, None);
    assert_eq!(
        (plan.rest.backoff_ms, plan.rest.backoff_cap_ms),
        (1000, 300_000)
    );
    assert_eq!(
        (plan.context.diff_chars, plan.context.output_chars),
        (5000, 2000)
    );
    assert_eq!(plan.agent.exit_waiting, Some(42));
    assert_eq!(plan.log_cap, 64 << 20);
    assert_eq!(plan.proof.fallback, ["COMPLETE", "DONE"]);
    assert!(plan.proof.preflight);
}

#[test]
fn zero_and_null_mean_no_limit() {
    let keys = [
        "maxIterations",
        "maxCost",
        "maxTime",
        "maxFailures",
        "iterationTimeout",
    ];
    for none in [json!(0), Value::Null] {
        let flags: serde_json::Map<_, _> = keys
            .iter()
            .map(|key| ((*key).to_owned(), none.clone()))
            .collect();
        let plan = plan(&with(&Value::Object(flags)), &errand()).unwrap();
        assert_eq!(plan.limits, Limits::default());
    }
}

#[test]
fn equal_slugs_get_a_number() {
    let checks = json!({ "checks": ["cargo test --all", "cargo  test, all", "…", "!"] });
    let plan = plan(&with(&checks), &errand()).unwrap();
    let slugs: Vec<&str> = plan
        .proof
        .checks
        .iter()
        .map(|check| check.slug.as_str())
        .collect();
    assert_eq!(
        slugs,
        ["cargo-test-all", "cargo-test-all-2", "check", "check-2"]
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let error = |flags: Value, errand: &Errand| refused(&flags, errand).error;
    assert!(error(json!({ "prompt": "x" }), &errand()).contains("TASK and --prompt"));
    let no_task = Errand {
        task: None,
        ..errand()
    };
    let both = json!({ "prompt": "x", "promptFile": "y" });
    assert!(error(both, &no_task).contains("--prompt and --prompt-file"));
    assert!(
        error(
            json!({}),
            &Errand {
                task: Some("  ".into()),
                ..errand()
            }
        )
        .contains("no task")
    );
    let missing = error(json!({ "promptFile": "missing.md" }), &no_task);
    assert_eq!(missing, "prompt file not found: missing.md");
    assert!(error(json!({ "checks": [" "] }), &errand()).contains("empty"));
    let Wrong { error: words, hint } = refused(&json!({ "donePattern": "(?=x)" }), &errand());
    assert!(
        words.contains("--done-pattern") && hint.contains("look-around"),
        "{words} {hint}"
    );
    let both = json!({ "promise": "x", "noPromise": true });
    assert!(error(both, &errand()).contains("contradict"));
    assert!(
        refused(&json!({ "maxCost": 1 }), &errand())
            .hint
            .contains("--allow-unknown-cost")
    );
    for flag in ["agent", "model", "approve"] {
        let value = if flag == "approve" { "all" } else { "claude" };
        assert!(
            error(json!({ flag: value }), &errand()).contains(&format!("--{flag} and a command"))
        );
    }
}

#[test]
fn a_higher_layer_takes_away_what_it_leaves_no_room_for() {
    let mut stack = Stack::defaults();
    let below = json!({
        "noPromise": true,
        "promptFile": "spec.md",
        "agent": { "command": "claude", "flags": ["--verbose"] },
        "scm": { "command": "/opt/git", "tasks": ["commit"] },
    });
    stack.push(layer(Origin::File("project".into()), &below));
    stack.push(layer(
        Origin::Flag,
        &json!({ "promise": "x", "prompt": "words", "agent": "codex", "scm": ["push"] }),
    ));
    let all = Settings::of(&stack);
    assert_eq!((all.promise.as_deref(), all.no_promise), (Some("x"), false));
    assert_eq!(
        (all.prompt.as_deref(), all.prompt_file),
        (Some("words"), None)
    );
    let agent = all.agent.unwrap();
    assert_eq!(
        (
            agent.name.as_deref(),
            agent.command.len(),
            agent.flags.len()
        ),
        (Some("codex"), 0, 0)
    );
    let scm = all.scm.unwrap();
    assert_eq!(
        (scm.command, scm.tasks),
        (vec!["/opt/git".to_owned()], vec!["push".to_owned()])
    );
    assert_eq!(stack.origin(&["scm", "command"]).to_string(), "project");
    assert_eq!(*stack.origin(&["scm", "tasks"]), Origin::Flag);
}

#[test]
fn every_preset_makes_a_command_at_every_level() {
    let presets = agents::presets(&BTreeMap::default()).unwrap();
    assert_eq!(presets.len(), 12);
    for (name, preset) in presets {
        for level in ["none", "edits", "all"] {
            let no_command = Errand {
                command: vec![],
                ..errand()
            };
            let flags = json!({ "agent": name, "approve": level });
            let agent = plan(&with(&flags), &no_command).unwrap().agent;
            assert_eq!(agent.command[0], preset.command[0]);
            assert!(
                agent.command.ends_with(&preset.prompt_words),
                "{name}: {:?}",
                agent.command
            );
            assert_eq!(agent.exit_waiting, None);
        }
    }
}

#[test]
fn words_of_the_user_come_after_the_headless_ones() {
    let flags = json!({
        "agents": { "mine": {
            "command": "my-agent --fast",
            "headless": ["run"],
            "promptWords": ["--message-file"],
            "prompt": "file",
            "model": "-m {model}",
            "approve": { "all": { "words": "--yes", "env": { "MODE": "auto" } } },
        } },
        "agent": { "name": "mine", "flags": ["--a 'b c'", "--d"] },
        "approve": "ALL",
        "model": "big one",
    });
    let agent = plan(
        &with(&flags),
        &Errand {
            command: vec![],
            ..errand()
        },
    )
    .unwrap()
    .agent;
    let words = [
        "my-agent",
        "--fast",
        "run",
        "--yes",
        "-m",
        "big one",
        "--a",
        "b c",
        "--d",
        "--message-file",
    ];
    assert_eq!(agent.command, words);
    assert_eq!(
        (agent.prompt, agent.approve),
        (Delivery::File, Some(Approve::All))
    );
    assert_eq!(agent.env.get("MODE").map(String::as_str), Some("auto"));
}

#[test]
fn a_check_may_have_a_timeout_and_an_action_of_its_own() {
    let checks = json!({ "guardrails": [{ "command": "a", "failAction": "REPLACE", "timeout": "1h" }, "b"] });
    let checks = plan(&with(&checks), &errand()).unwrap().proof.checks;
    assert_eq!(
        (checks[0].on_fail, checks[0].timeout_ms),
        (OnFail::Replace, 3_600_000)
    );
    assert_eq!(
        (checks[1].on_fail, checks[1].timeout_ms),
        (OnFail::Append, 600_000)
    );
}

#[test]
fn a_model_belongs_to_the_agent_that_it_was_named_with() {
    let mut stack = Stack::defaults();
    stack.push(layer(
        Origin::File("project".into()),
        &json!({ "agent": "claude", "model": "opus" }),
    ));
    let words = |stack: &Stack| {
        plan(
            stack,
            &Errand {
                command: vec![],
                ..errand()
            },
        )
        .unwrap()
        .agent
        .command
        .join(" ")
    };
    assert!(words(&stack).contains("--model opus"));
    stack.push(layer(
        Origin::File("local".into()),
        &json!({ "agent": { "flags": ["-x"] } }),
    ));
    assert!(
        words(&stack).contains("--model opus"),
        "the agent is the same"
    );
    stack.push(layer(Origin::Flag, &json!({ "agent": "claude" })));
    assert!(words(&stack).ends_with("--model opus -x"), "and still is");
    let mut other = stack.clone();
    other.push(layer(
        Origin::Flag,
        &json!({ "agent": { "command": "/opt/bin/codex" } }),
    ));
    assert!(
        !words(&other).contains("opus") && !words(&other).contains("-x"),
        "{}",
        words(&other)
    );
    stack.push(layer(Origin::Flag, &json!({ "agent": "codex" })));
    assert!(
        !words(&stack).contains("opus"),
        "a model of one is none of another"
    );
    assert_eq!(
        *stack.origin(&["model"]),
        Origin::Default,
        "and it is seen that nobody names one"
    );
    let mut stack = Stack::defaults();
    stack.push(layer(
        Origin::File("user".into()),
        &json!({ "model": "opus" }),
    ));
    stack.push(layer(
        Origin::File("project".into()),
        &json!({ "agent": "claude" }),
    ));
    assert!(
        words(&stack).contains("--model opus"),
        "a model that was named with no agent is anybody's"
    );
}

#[test]
fn nothing_is_refused_or_understood_for_every_key() {
    let named = |key: &keys::Key, value: &Value| json!({ key.name.clone(): value });
    for key in keys::table() {
        let inner = key.inner.iter().map(|inner| named(inner, &Value::Null));
        let inner: Vec<Value> = match key.kind {
            keys::Kind::Objects => inner.map(|one| json!([one])).collect(),
            keys::Kind::Map => inner.map(|one| json!({ "claude": one })).collect(),
            _ => inner.collect(),
        };
        for value in [Value::Null].iter().chain(&inner) {
            let settings = named(key, value);
            let settled = validate::settle_all(keys::table(), settings.as_object().unwrap(), "");
            if let Ok(values) = settled {
                let mut stack = Stack::defaults();
                stack.push(Layer {
                    origin: Origin::Flag,
                    values,
                });
                // What it comes to may be wrong, but not a surprise.
                let _ = plan(&stack, &errand());
                if let Err(wrong) = agents::all(&stack, &Settings::of(&stack).agents) {
                    assert_eq!(wrong.error, "agents.claude: command is missing");
                }
            }
        }
    }
}

#[test]
fn a_known_agent_called_as_a_person_would_gets_a_terminal() {
    let terminal = |command: &str, flags: Value| {
        let command = command.split(' ').map(str::to_owned).collect();
        let plan = plan(
            &with(&flags),
            &Errand {
                command,
                ..errand()
            },
        )
        .unwrap();
        (plan.agent.terminal, plan.limits.inactivity_ms)
    };
    let (yes, no) = ((true, Some(60_000)), (false, None));
    for (command, flags, expected) in [
        ("claude", json!({}), yes),
        ("/opt/bin/claude --model opus", json!({}), yes),
        ("codex --full-auto", json!({}), yes),
        ("claude -p", json!({}), no),
        ("claude --model opus --print", json!({}), no),
        ("codex -c x=y exec -", json!({}), no),
        ("gemini --prompt=x", json!({}), no),
        ("sh -c claude", json!({}), no),
        ("agent", json!({}), no),
        ("agent", json!({ "pty": true }), yes),
        ("claude", json!({ "pty": false }), no),
        ("claude", json!({ "inactivityTimeout": 0 }), (true, None)),
        (
            "claude",
            json!({ "inactivityTimeout": "5m" }),
            (true, Some(300_000)),
        ),
        (
            "agent",
            json!({ "inactivityTimeout": 5 }),
            (false, Some(5000)),
        ),
    ] {
        assert_eq!(
            terminal(command, flags.clone()),
            expected,
            "{command} {flags}"
        );
    }
}

#[test]
fn on_a_terminal_a_known_agent_loses_its_headless_words_and_keeps_the_others() {
    let errand = Errand {
        command: vec![],
        ..errand()
    };
    let called = |flags: Value| plan(&with(&flags), &errand).unwrap().agent;
    let agent = called(json!({ "pty": true, "agent": "codex", "model": "m", "approve": "all" }));
    assert_eq!(
        agent.command.join(" "),
        "codex --dangerously-bypass-approvals-and-sandbox --model m"
    );
    assert!(agent.terminal);
    let agent = called(json!({ "pty": true, "agent": "aider" }));
    assert_eq!(
        agent.prompt,
        Delivery::Stdin,
        "it is typed, and no file is named"
    );
    assert!(!agent.command.iter().any(|word| word == "--message-file"));
    assert!(!called(json!({ "agent": "codex" })).terminal);
}

#[test]
fn the_pattern_of_a_screen_that_is_ready_is_looked_at_first() {
    let own = |ready: &str| json!({ "agent": "mine", "agents": { "mine": { "command": "x", "ready": ready } } });
    let errand = Errand {
        command: vec![],
        ..errand()
    };
    let wrong = refused(&own("("), &errand);
    assert!(wrong.error.contains("agents.mine.ready"), "{}", wrong.error);
    let command = Errand {
        command: vec!["x".into()],
        ..errand.clone()
    };
    let flags = json!({ "pty": true, "agents": { "mine": { "command": "x", "ready": "> $" } } });
    assert_eq!(
        plan(&with(&flags), &command)
            .unwrap()
            .agent
            .ready
            .as_deref(),
        Some("> $")
    );
}
