//! Every client in presets/clients.toml: its plugin is installed, a loop runs in its session, and uninstalling leaves nothing.

use super::{Test, everything, plugin};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use toml::Table;

fn clients() -> Vec<Table> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/presets/clients.toml");
    let table: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let rows = table["client"].as_array().unwrap().iter();
    rows.map(|row| row.as_table().unwrap().clone()).collect()
}

/// Calls a hook as the client does, and returns its answer.
fn hook(test: &Test, client: &str, event: &str, more: &Value) -> Value {
    let mut input = json!({
        "session_id": "5d2c7f00-0000-4000-8000-00000000000a",
        "cwd": test.workspace(),
        "hook_event_name": if event == "stop" { "Stop" } else { "UserPromptSubmit" },
    });
    let more = more.as_object().unwrap().clone();
    input.as_object_mut().unwrap().extend(more);
    let mut command = test.ralph_command(&["hook", event, "--client", client]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap_or_default()
}

#[test]
fn the_plugin_of_every_client_is_installed_and_uninstalled() {
    for client in clients() {
        let field = |key: &str| client[key].as_str().unwrap().to_owned();
        let (name, title, sigil) = (field("name"), field("title"), field("sigil"));
        let test = Test::new().program(&format!("../bin/{name}"), "#!/bin/sh\necho 99.1.0\n");
        let before = everything(&test);
        plugin(&test, &["plugin", "install"])
            .exits(0)
            .says(&format!("{title} 99.1.0\n"))
            .says(&format!("type {sigil}ralph-loop in {title}.\n"));
        let installed = everything(&test);
        let own = env!("CARGO_BIN_EXE_ralph");
        assert!(
            installed
                .values()
                .any(|text| text.contains(&format!("{own} hook stop "))),
            "{installed:?}"
        );
        assert!(
            installed.values().all(|text| !text.contains("{{")),
            "every tag is filled in: {installed:?}"
        );
        plugin(&test, &["plugin", "install"])
            .exits(0)
            .says("nothing to change");
        plugin(&test, &["plugin", "uninstall", &name]).exits(0);
        assert_eq!(everything(&test), before, "{name}");
    }
}

#[test]
fn a_loop_runs_in_a_session_of_every_client() {
    for client in clients() {
        let field = |key: &str| client[key].as_str().unwrap().to_owned();
        let (name, sigil) = (field("name"), field("sigil"));
        let test = Test::new();
        let typed = format!("{sigil}ralph-loop Do it --completion-promise DONE");
        let answer = hook(&test, &name, "prompt", &json!({ "prompt": typed }));
        let context = answer["hookSpecificOutput"]["additionalContext"].as_str();
        assert!(
            context.is_some_and(|text| text.contains(&format!("{sigil}cancel-ralph"))),
            "{name}: {answer}"
        );
        test.ralph(&["ls"])
            .exits(0)
            .says(&format!("{name}-0000000a"));
        let stop = |message: &str| {
            let message = json!({ "last_assistant_message": message });
            hook(&test, &name, "stop", &message)
        };
        assert_eq!(stop("not yet")["reason"], "Do it", "{name}");
        let answer = stop("<promise>DONE</promise>");
        assert!(
            answer["systemMessage"]
                .as_str()
                .is_some_and(|text| text.starts_with("✅")),
            "{name}: {answer}"
        );
    }
}
