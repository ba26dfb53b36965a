//! A loop inside Claude Code sessions only: block cap, service errors, subagents, and the client's own validation of the plugin.

use crate::hooks::{CLAUDE, Client, OLD_CLAUDE, PRINT, Session, done};
use crate::model::{refuse, say, use_tool};
use crate::stage::PATIENCE;
use serde_json::json;

crate::in_sessions! {
    claude CLAUDE: blocks_beyond_the_cap command_with_plugin_name subagent failed_turn validated_by_client uninstalled;
    old_claude OLD_CLAUDE: blocks_beyond_the_cap command_with_plugin_name subagent failed_turn validated_by_client uninstalled;
}

/// The client ignores the hook after eight blocks without a tool call; the plugin disables this
/// cap.
fn blocks_beyond_the_cap(client: &'static Client) {
    let idle = std::iter::repeat_n(say("Not yet."), 12);
    let session = Session::with(client, idle.chain([done()]));
    session.loops("Build it --completion-promise DONE --max-iterations 20");
    session.assert_ended("done", "completed", 13);
    session.stage.model.assert_played(13);
}

/// A plugin's command also works with the plugin's name as its prefix.
fn command_with_plugin_name(client: &'static Client) {
    let session = Session::with(client, [say("One."), done()]);
    session
        .begin("/ralph:ralph-loop Build it --completion-promise DONE")
        .end_within(PATIENCE)
        .exits(0);
    session.assert_ended("done", "completed", 2);
}

/// A cap that the user has set is kept, and the loop ends at the cap with its own stop reason.
#[test]
fn a_block_cap_in_force_ends_the_loop_with_its_own_stop_reason() {
    let idle = std::iter::repeat_n(say("Not yet."), 9);
    let session = Session::bare(&CLAUDE, idle);
    let own = r#"{ "env": { "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "8" } }"#;
    session.stage.home_file(".claude/settings.json", own);
    session
        .install()
        .exits(0)
        .says("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP is \"8\" in your settings");
    let told = session.loops("Build it --completion-promise DONE --max-iterations 20");
    session.assert_ended("failed", "block_cap", 9);
    told.says("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lifts this limit");
    session.stage.model.assert_played(9);
}

/// In one of five stops, the hook runs before the transcript has the last message.
#[test]
fn twenty_promises_in_a_row_are_detected() {
    let session = Session::with(&CLAUDE, []);
    for n in 1..=20 {
        session.stage.model.add([say("One."), done()]);
        session.loops("Build it --completion-promise DONE --max-iterations 5");
        assert_eq!(session.stage.model.asked().len(), 2 * n, "in session {n}");
    }
    let all = session.all();
    let assert_ended = all
        .iter()
        .filter(|each| each["status"] == "done" && each["current_iteration"] == 2)
        .count();
    assert_eq!((all.len(), assert_ended), (20, 20), "{all:?}");
}

/// A loop does not react to the stop of a subagent.
fn subagent(client: &'static Client) {
    let task = json!({ "description": "look", "prompt": "Look around.", "subagent_type": "general-purpose",
        "run_in_background": false });
    let steps = [
        use_tool("Task", task),
        say("I looked."),
        say("It looked."),
        done(),
    ];
    let session = Session::with(client, steps);
    session.loops("Build it --completion-promise DONE --max-iterations 5");
    session.assert_ended("done", "completed", 2);
    assert!(
        session.last_input(2).contains("Look around."),
        "{}",
        session.last_input(2)
    );
    session.stage.model.assert_played(4);
}

/// A service error ends the turn without a stop: ralph records it and says how to continue.
fn failed_turn(client: &'static Client) {
    let refused = refuse(400, "invalid_request_error", "Your credit is used up");
    let steps = [say("One.")]
        .into_iter()
        .chain(std::iter::repeat_n(refused, 20));
    let session = Session::with(client, steps);
    session
        .begin(&format!(
            "{} Build it --completion-promise DONE",
            client.command
        ))
        .end_within(PATIENCE);
    let known = session.status();
    assert_eq!(
        (&known["status"], &known["current_iteration"]),
        (&json!("crashed"), &json!(2)),
        "{known:#}"
    );
    let (name, id) = (
        known["name"].as_str().unwrap(),
        known["session"].as_str().unwrap(),
    );
    let told = session
        .ralph(&["status", name])
        .exits(0)
        .says("Turn failed: API Error")
        .says("credit is used up");
    told.says(&format!("claude --resume {id}"))
        .says(&format!("ralph resume {name}"));
    // Continue in the same session, as the message says.
    session.stage.model.play_instead([say("Three."), done()]);
    let mut again = session.stage.agent();
    again.args(PRINT).args(["--resume", id, "Go on."]);
    session
        .stage
        .test
        .start_command(again)
        .end_within(PATIENCE)
        .exits(0);
    session.assert_ended("done", "completed", 3);
}

/// A loop whose turn failed can also continue outside its session.
#[test]
fn an_overloaded_service_fails_the_turn() {
    let mut session = Session::with(&CLAUDE, [refuse(529, "overloaded_error", "Overloaded")]);
    session.stage.env("CLAUDE_CODE_MAX_RETRIES", "0");
    session.begin("/ralph-loop Build it").end_within(PATIENCE);
    let name = session.status()["name"].as_str().unwrap().to_owned();
    session
        .ralph(&["status", &name])
        .exits(0)
        .says("Turn failed: API Error: 529 Overloaded");
    session
        .stage
        .model
        .add([say("Two."), say("<blocked>It is late.</blocked>")]);
    session.ralph(&["resume", &name]).exits(3);
    session.assert_ended("blocked", "blocked", 3);
}

/// The client's own validation accepts the plugin and its marketplace.
fn validated_by_client(client: &'static Client) {
    let session = Session::with(client, []);
    let plugin = session
        .ralph(&["plugin", "path"])
        .exits(0)
        .out
        .trim()
        .to_owned();
    let market = std::path::Path::new(&plugin)
        .parent()
        .unwrap()
        .display()
        .to_string();
    for dir in [plugin, market] {
        let mut command = session.stage.agent();
        command.args(["plugin", "validate", &dir]);
        session
            .stage
            .test
            .start_command(command)
            .end_within(PATIENCE)
            .exits(0)
            .says("Validation passed");
    }
}

/// Uninstalling leaves nothing behind, neither in the settings nor in the next session.
fn uninstalled(client: &'static Client) {
    let session = Session::bare(client, [done(), say("I know no such command.")]);
    let own = "{\n  \"theme\" : \"dark\",\n\t\"env\": {\"MINE\":\"1\"}\n}";
    session.stage.home_file(".claude/settings.json", own);
    session.install().exits(0);
    session.loops("Build it --completion-promise DONE");
    session.assert_ended("done", "completed", 1);
    session.ralph(&["plugin", "uninstall"]).exits(0);
    assert_eq!(
        session.stage.test.read("../home/.claude/settings.json"),
        own
    );
    let next = session
        .begin(&format!("{} Build it", client.command))
        .end_within(PATIENCE);
    let init = next
        .json_lines()
        .into_iter()
        .find(|line| line["subtype"] == "init")
        .expect("its first words");
    let known = init["plugins"].to_string() + &init["slash_commands"].to_string();
    assert!(
        !known.contains("ralph@") && !known.contains("ralph-loop"),
        "{init:#}"
    );
    assert_eq!(session.all().len(), 1, "no loop has begun");
}
