//! Secrets in the texts of agents that are not processes: functions and clients' sessions.

use super::leaks;
use super::streams::PEM;
use crate::kit::Test;
use ralph::{Loop, Turn};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

const VALUE: &str = "hunter2-of-a-test";
const SECRETS: [(&str, &str); 2] = [("SHOP_TOKEN", VALUE), ("DEPLOY_KEY", PEM)];
const VALUES: [&str; 2] = [VALUE, PEM];

/// The directory in which this test, in a process of its own with secrets, runs a function.
const DIR: &str = "RALPH_TEST_FUNCTION_DIR";

#[test]
fn the_log_of_a_function_is_redacted() {
    if let Some(dir) = std::env::var_os(DIR) {
        return run_function(std::path::Path::new(&dir));
    }
    let test = Test::new();
    // The library redacts the secrets in its host's environment.
    let done = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "secrets::hosts::the_log_of_a_function_is_redacted",
        ])
        .env(DIR, test.root())
        .envs(SECRETS)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stdout)
    );
    leaks::assert_none(&test, &VALUES);
    let log = test.read_loop("a", "iterations/0001/output.log");
    assert!(
        log.contains("I use [SHOP_TOKEN] and\n[DEPLOY_KEY].\n"),
        "{log}"
    );
    let log = test.read_loop("a", "iterations/0002/output.log");
    assert!(log.contains("no [SHOP_TOKEN] here"), "{log}");
    test.ralph(&["logs", "a"]).exits(0).says("[SHOP_TOKEN]");
}

fn run_function(root: &std::path::Path) {
    let report = Loop::new("Try it.")
        .name("a")
        .workspace(root.join("shop"))
        .state_dir(root.join("state"))
        .max_iterations(2)
        .backoff(std::time::Duration::ZERO, std::time::Duration::ZERO)
        .run_with(|turn: &Turn| {
            let message = format!("I use {VALUE} and\n{PEM}.\n");
            let pieces = message.split_inclusive(|c: char| !c.is_alphanumeric());
            pieces.for_each(|piece| turn.said(piece));
            turn.used_tool("write", format!("file-{VALUE}"), true);
            match turn.iteration() {
                1 => Ok(format!("I used {VALUE}.")),
                _ => Err(format!("no {VALUE} here")),
            }
        })
        .unwrap();
    let report = format!("{report:?}");
    assert!(!report.contains(VALUE), "{report}");
}

fn hook(test: &Test, verb: &str, input: &Value) -> Value {
    let mut all = json!({
        "session_id": "6253c6c3-451f-4aa4-ae4d-91ee859fbae3",
        "cwd": test.workspace(),
        "hook_event_name": match verb { "prompt" => "UserPromptSubmit", "stop" => "Stop", _ => "Other" },
    });
    all.as_object_mut()
        .unwrap()
        .extend(input.as_object().unwrap().clone());
    let mut command = test.ralph_command(&["hook", verb, "--client", "claude", "--within", "60"]);
    let mut child = command
        .envs(SECRETS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(all.to_string().as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    for form in VALUES.iter().flat_map(|value| leaks::forms(value)) {
        assert!(!printed.contains(&form), "{form:?} in {printed}");
    }
    serde_json::from_str(&printed).unwrap_or_default()
}

#[test]
fn the_texts_of_a_session_are_redacted() {
    let test = Test::new();
    let message = format!("I use {VALUE} and\n{PEM}.");
    let prompt = format!("/ralph-loop Deploy with {VALUE} --max-iterations 9");
    hook(&test, "prompt", &json!({ "prompt": prompt }));
    let answer = hook(&test, "stop", &json!({ "last_assistant_message": message }));
    assert_eq!(answer["decision"], "block", "{answer}");
    hook(&test, "failure", &json!({ "error": message }));
    let blocked = format!("{message}\n<blocked>who owns {VALUE}?</blocked>");
    let answer = hook(&test, "stop", &json!({ "last_assistant_message": blocked }));
    assert_eq!(answer.get("decision"), None, "{answer}");
    leaks::assert_none(&test, &VALUES);
    let name = "claude-859fbae3";
    assert!(test.prompt(name, 1).contains("Deploy with [SHOP_TOKEN]"));
    let status = test.elsewhere(&["status", name, "--json"]).out;
    assert!(status.contains("who owns [SHOP_TOKEN]?"), "{status}");
    let failures = test.events(name, "turn_failed");
    assert!(
        failures
            .iter()
            .all(|event| event.to_string().contains("[DEPLOY_KEY]")),
        "{failures:?}"
    );
}
