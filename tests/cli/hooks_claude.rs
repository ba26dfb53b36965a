//! A loop inside sessions of Claude Code alone: its patience, its failures, its helpers, and its own look at the plugin.

use crate::hooks::{CLAUDE, Client, OLD_CLAUDE, Session, done};
use crate::model::{Step, refuse, say, use_tool};
use crate::stage::PATIENCE;
use serde_json::json;

crate::in_sessions! {
    claude CLAUDE: many_blocks helper broke_off valid uninstalled;
    old_claude OLD_CLAUDE: many_blocks helper broke_off valid uninstalled;
}

/// After eight blocks without a tool the client would let go; the plugin has set that aside.
fn many_blocks(client: &'static Client) {
    let idle = std::iter::repeat_n(say("Not yet."), 12);
    let Some(session) = Session::with(client, idle.chain([done()])) else { return };
    session.loops("Build it --completion-promise DONE --max-iterations 20");
    session.ended("done", "completed", 13);
    session.stage.model.is_played(13);
}

/// Whoever wants the client to let go keeps that, and the ending has a name.
#[test]
fn a_cap_in_force_is_an_ending_with_a_name() {
    let idle = std::iter::repeat_n(say("Not yet."), 9);
    let Some(session) = Session::bare(&CLAUDE, idle) else { return };
    let own = r#"{ "env": { "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "8" } }"#;
    session.stage.home_file(".claude/settings.json", own);
    session.install().exits(0).says("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP is \"8\" in your settings");
    let told = session.loops("Build it --completion-promise DONE --max-iterations 20");
    session.ended("failed", "block_cap", 9);
    told.says("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lifts that");
    session.stage.model.is_played(9);
}

/// One stop in five comes before the transcript has the last message.
#[test]
fn twenty_promises_are_heard() {
    let Some(session) = Session::with(&CLAUDE, []) else { return };
    for n in 1..=20 {
        session.stage.model.add([say("One."), done()]);
        session.loops("Build it --completion-promise DONE --max-iterations 5");
        assert_eq!(session.stage.model.asked().len(), 2 * n, "in session {n}");
    }
    let all = session.all();
    let ended = all.iter().filter(|each| each["status"] == "done" && each["current_iteration"] == 2).count();
    assert_eq!((all.len(), ended), (20, 20), "{all:?}");
}

/// The stop of a helper that the agent has started is none of the loop's.
fn helper(client: &'static Client) {
    let task = json!({ "description": "look", "prompt": "Look around.", "subagent_type": "general-purpose",
        "run_in_background": false });
    let steps = [use_tool("Task", task), say("I looked."), say("It looked."), done()];
    let Some(session) = Session::with(client, steps) else { return };
    session.loops("Build it --completion-promise DONE --max-iterations 5");
    session.ended("done", "completed", 2);
    assert!(session.heard(2).contains("Look around."), "{}", session.heard(2));
    session.stage.model.is_played(4);
}

/// An error of the service ends the turn without a stop: that is noted, and so is how to go on.
fn broke_off(client: &'static Client) {
    let steps = [say("One."), refuse(529, "overloaded_error", "Overloaded")];
    let Some(mut session) = Session::with(client, steps) else { return };
    session.stage.env("CLAUDE_CODE_MAX_RETRIES", "0");
    session.begin(&format!("{} Build it", client.command)).end_within(PATIENCE);
    let known = session.status();
    assert_eq!(known["status"], "crashed", "{known:#}");
    let name = known["name"].as_str().unwrap().to_owned();
    // Older versions tell no hook of it: what they tell is that the session is over.
    let why = if client.command == CLAUDE.command { "Overloaded" } else { "the session was closed" };
    let stumbled = known["stumbled"].as_str().unwrap_or_default();
    assert!(stumbled.contains(why), "{known:#}");
    let told = session.ralph(&["status", &name]).exits(0).says("Broke off: ").says("claude --resume ");
    told.says(&format!("ralph resume {name}"));
    // And so it goes on.
    session.stage.model.add([done()]);
}

/// The client itself finds nothing wrong with the plugin, nor with where it is sold.
fn valid(client: &'static Client) {
    let Some(session) = Session::with(client, []) else { return };
    let plugin = session.ralph(&["plugin", "path"]).exits(0).out.trim().to_owned();
    let market = std::path::Path::new(&plugin).parent().unwrap().display().to_string();
    for dir in [plugin, market] {
        let mut command = session.stage.agent();
        command.args(["plugin", "validate", &dir]);
        session.stage.test.start_command(command).end_within(PATIENCE).exits(0).says("Validation passed");
    }
}

/// Nothing is left: not in the settings, not in the next session.
fn uninstalled(client: &'static Client) {
    let Some(session) = Session::bare(client, [done(), say("I know no such command.")]) else { return };
    let own = "{\n  \"theme\" : \"dark\",\n\t\"env\": {\"MINE\":\"1\"}\n}";
    session.stage.home_file(".claude/settings.json", own);
    session.install().exits(0);
    session.loops("Build it --completion-promise DONE");
    session.ended("done", "completed", 1);
    session.ralph(&["plugin", "uninstall"]).exits(0);
    assert_eq!(session.stage.test.read("../home/.claude/settings.json"), own);
    let next = session.begin(&format!("{} Build it", client.command)).end_within(PATIENCE);
    assert!(!next.out.contains("ralph:ralph-loop\""), "{}", next.out);
    session.status();
    let _: &[Step] = &[];
}
