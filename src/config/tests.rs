//! Tests of plans: the plans that requests and settings become, and rejected settings.

use super::*;
use crate::agent::decode::dialect::DIALECTS;
use crate::engine::limits::Limits;
use crate::engine::plan::{Approve, OnFail, Plan, PromptDelivery, Signal};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn request() -> RunRequest {
    RunRequest {
        task: Some("fix it".into()),
        command: vec!["agent".into()],
        workspace: "/nowhere".into(),
        ..RunRequest::default()
    }
}

/// Returns a stack of the defaults and `flags`.
fn stack_with(flags: &Value) -> LayerStack {
    let mut stack = LayerStack::defaults();
    stack.push(layer(Origin::Flag, flags));
    stack
}

fn build_plan(stack: &LayerStack, request: &RunRequest) -> Result<Plan, ConfigError> {
    let draft = Config::new(stack.clone())?.draft_plan(request)?;
    Ok(draft.into_plan())
}

fn layer(origin: Origin, values: &Value) -> Layer {
    let values = validate::normalize_all(keys::table(), values.as_object().unwrap(), "").unwrap();
    Layer { origin, values }
}

fn rejected(flags: &Value, request: &RunRequest) -> ConfigError {
    build_plan(&stack_with(flags), request).expect_err("an error")
}

#[test]
fn the_defaults_match_the_documentation() {
    let plan = build_plan(&LayerStack::defaults(), &request()).unwrap();
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
        "maxStalls",
        "maxPeeks",
        "maxRest",
        "iterationTimeout",
    ];
    for none in [json!(0), Value::Null] {
        let flags: serde_json::Map<_, _> = keys
            .iter()
            .map(|key| ((*key).to_owned(), none.clone()))
            .collect();
        let plan = build_plan(&stack_with(&Value::Object(flags)), &request()).unwrap();
        assert_eq!(plan.limits, Limits::default());
    }
}

#[test]
fn equal_slugs_get_a_number() {
    let checks = json!({ "checks": ["cargo test --all", "cargo  test, all", "…", "!"] });
    let plan = build_plan(&stack_with(&checks), &request()).unwrap();
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
fn contradictory_input_is_rejected() {
    let error = |flags: Value, request: &RunRequest| rejected(&flags, request).message;
    assert!(error(json!({ "prompt": "x" }), &request()).contains("TASK and --prompt"));
    let no_task = RunRequest {
        task: None,
        ..request()
    };
    let both = json!({ "prompt": "x", "promptFile": "y" });
    assert!(error(both, &no_task).contains("--prompt and --prompt-file"));
    assert!(
        error(
            json!({}),
            &RunRequest {
                task: Some("  ".into()),
                ..request()
            }
        )
        .contains("the task is empty")
    );
    let missing = error(json!({ "promptFile": "missing.md" }), &no_task);
    assert_eq!(missing, "prompt file not found: missing.md");
    assert!(error(json!({ "checks": [" "] }), &request()).contains("empty"));
    let ConfigError { message, hint } = rejected(&json!({ "donePattern": "(?=x)" }), &request());
    assert!(
        message.contains("--done-pattern") && hint.contains("look-around"),
        "{message} {hint}"
    );
    let both = json!({ "promise": "x", "noPromise": true });
    assert!(error(both, &request()).contains("contradict"));
    assert!(
        rejected(&json!({ "maxCost": 1 }), &request())
            .hint
            .contains("--allow-unknown-cost")
    );
    for flag in ["agent", "model", "approve"] {
        let value = if flag == "approve" { "all" } else { "claude" };
        assert!(
            error(json!({ flag: value }), &request())
                .contains(&format!("--{flag} cannot be combined"))
        );
    }
}

#[test]
fn a_higher_layer_replaces_conflicting_keys_of_lower_ones() {
    let mut stack = LayerStack::defaults();
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
    let all = Settings::from_layers(&stack);
    assert_eq!(all.signals, [Signal::Promise("x".into())]);
    assert!(!all.no_promise);
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
fn every_preset_has_a_command_for_every_approval_level() {
    let presets = agents::presets(&BTreeMap::default()).unwrap();
    assert_eq!(presets.len(), 12);
    for (name, preset) in presets {
        for level in ["none", "edits", "all"] {
            let no_command = RunRequest {
                command: vec![],
                ..request()
            };
            let flags = json!({ "agent": name, "approve": level });
            let agent = build_plan(&stack_with(&flags), &no_command).unwrap().agent;
            assert_eq!(agent.command[0], preset.command[0]);
            assert!(
                agent.command.ends_with(&preset.prompt_args),
                "{name}: {:?}",
                agent.command
            );
            assert_eq!(agent.exit_waiting, None);
        }
    }
}

#[test]
fn user_flags_come_after_the_headless_arguments() {
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
    let agent = build_plan(
        &stack_with(&flags),
        &RunRequest {
            command: vec![],
            ..request()
        },
    )
    .unwrap()
    .agent;
    let expected = [
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
    assert_eq!(agent.command, expected);
    assert_eq!(
        (agent.prompt, agent.approve),
        (PromptDelivery::File, Some(Approve::All))
    );
    assert_eq!(agent.env.get("MODE").map(String::as_str), Some("auto"));
}

#[test]
fn a_check_can_have_its_own_timeout_and_fail_action() {
    let checks = json!({ "guardrails": [{ "command": "a", "failAction": "REPLACE", "timeout": "1h" }, "b"] });
    let checks = build_plan(&stack_with(&checks), &request())
        .unwrap()
        .proof
        .checks;
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
fn a_model_applies_only_to_the_agent_it_was_set_with() {
    let mut stack = LayerStack::defaults();
    stack.push(layer(
        Origin::File("project".into()),
        &json!({ "agent": "claude", "model": "opus" }),
    ));
    let command = |stack: &LayerStack| {
        build_plan(
            stack,
            &RunRequest {
                command: vec![],
                ..request()
            },
        )
        .unwrap()
        .agent
        .command
        .join(" ")
    };
    assert!(command(&stack).contains("--model opus"));
    stack.push(layer(
        Origin::File("local".into()),
        &json!({ "agent": { "flags": ["-x"] } }),
    ));
    assert!(
        command(&stack).contains("--model opus"),
        "the agent is the same"
    );
    stack.push(layer(Origin::Flag, &json!({ "agent": "claude" })));
    assert!(
        command(&stack).ends_with("--model opus -x"),
        "the agent is still the same"
    );
    let mut other = stack.clone();
    other.push(layer(
        Origin::Flag,
        &json!({ "agent": { "command": "/opt/bin/codex" } }),
    ));
    assert!(
        !command(&other).contains("opus") && !command(&other).contains("-x"),
        "{}",
        command(&other)
    );
    stack.push(layer(Origin::Flag, &json!({ "agent": "codex" })));
    assert!(
        !command(&stack).contains("opus"),
        "the model of one agent is not used for another"
    );
    assert_eq!(
        *stack.origin(&["model"]),
        Origin::Default,
        "no layer sets a model"
    );
    let mut stack = LayerStack::defaults();
    stack.push(layer(
        Origin::File("user".into()),
        &json!({ "model": "opus" }),
    ));
    stack.push(layer(
        Origin::File("project".into()),
        &json!({ "agent": "claude" }),
    ));
    assert!(
        command(&stack).contains("--model opus"),
        "a model set without an agent applies to any agent"
    );
}

#[test]
fn null_is_accepted_or_rejected_for_every_key_without_a_panic() {
    let named = |key: &keys::SettingKey, value: &Value| json!({ key.name.clone(): value });
    for key in keys::table() {
        let inner = key.children.iter().map(|inner| named(inner, &Value::Null));
        let inner: Vec<Value> = match key.kind {
            keys::SettingKind::Objects => inner.map(|one| json!([one])).collect(),
            keys::SettingKind::Map => inner.map(|one| json!({ "claude": one })).collect(),
            _ => inner.collect(),
        };
        for value in [Value::Null].iter().chain(&inner) {
            let settings = named(key, value);
            let normalized =
                validate::normalize_all(keys::table(), settings.as_object().unwrap(), "");
            if let Ok(values) = normalized {
                let mut stack = LayerStack::defaults();
                stack.push(Layer {
                    origin: Origin::Flag,
                    values,
                });
                // The plan may be rejected, but building it must not panic.
                let _ = build_plan(&stack, &request());
                if key.name == "agents"
                    && let Err(error) =
                        agents::load_presets(&stack, &Settings::from_layers(&stack).agents)
                {
                    assert_eq!(
                        error.message,
                        "agents.claude: the required key command is missing"
                    );
                }
            }
        }
    }
}

#[test]
fn a_known_agent_without_headless_flags_gets_a_terminal() {
    let terminal = |command: &str, flags: Value| {
        let command = command.split(' ').map(str::to_owned).collect();
        let plan = build_plan(
            &stack_with(&flags),
            &RunRequest {
                command,
                ..request()
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
fn on_a_terminal_a_known_agent_gets_all_but_its_headless_arguments() {
    let request = RunRequest {
        command: vec![],
        ..request()
    };
    let called = |flags: Value| build_plan(&stack_with(&flags), &request).unwrap().agent;
    let agent = called(json!({ "pty": true, "agent": "codex", "model": "m", "approve": "all" }));
    assert_eq!(
        agent.command.join(" "),
        "codex --dangerously-bypass-approvals-and-sandbox --model m"
    );
    assert!(agent.terminal);
    let agent = called(json!({ "pty": true, "agent": "aider" }));
    assert_eq!(
        agent.prompt,
        PromptDelivery::Stdin,
        "the prompt is typed, not passed as a file"
    );
    assert!(!agent.command.iter().any(|word| word == "--message-file"));
    assert!(!called(json!({ "agent": "codex" })).terminal);
}

#[test]
fn the_ready_pattern_is_validated() {
    let own = |ready: &str| json!({ "agent": "mine", "agents": { "mine": { "command": "x", "ready": ready } } });
    let request = RunRequest {
        command: vec![],
        ..request()
    };
    let error = rejected(&own("("), &request);
    assert!(
        error.message.contains("agents.mine.ready"),
        "{}",
        error.message
    );
    let command = RunRequest {
        command: vec!["x".into()],
        ..request.clone()
    };
    let flags = json!({ "pty": true, "agents": { "mine": { "command": "x", "ready": "> $" } } });
    assert_eq!(
        build_plan(&stack_with(&flags), &command)
            .unwrap()
            .agent
            .ready
            .as_deref(),
        Some("> $")
    );
}

#[test]
fn every_dialect_can_be_chosen_in_the_settings() {
    let agents = keys::key("agents");
    let dialect = keys::find(&agents.children, "dialect").unwrap();
    let known = DIALECTS.iter().map(|dialect| dialect.name);
    let known: Vec<&str> = std::iter::once("text").chain(known).collect();
    assert_eq!(dialect.choices, known);
}
