//! The plugin for Codex: hooks next to existing ones, skills, and trust.

use super::{
    Done, Test, Value, everything, fs, home, json, parsed, plugin, plugin_with, put, read,
};

const CODEX: &str = "#!/bin/sh\necho codex-cli 0.166.0\n";
const OTHER: &str = "{ \"hooks\": { \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"theirs\"}]}] } }\n";
const CONFIG: &str = "model = \"x\"\n[projects.\"/x\"]\ntrust_level = \"trusted\"";

fn machine() -> Test {
    Test::new().program("../bin/codex", CODEX)
}

fn install(test: &Test, args: &[&str]) -> Done {
    plugin(test, &[&["plugin", "install"], args].concat())
}

fn command_of(hooks: &Value, event: &str, at: usize) -> String {
    hooks["hooks"][event][at]["hooks"][0]["command"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn hooks_are_added_to_existing_ones_and_removed_again() {
    for (hooks, config) in [
        (None, None),
        (Some(OTHER), Some(CONFIG)),
        (Some("{}"), Some("")),
        (Some("\n"), None),
    ] {
        let test = machine();
        for (name, text) in [("hooks.json", hooks), ("config.toml", config)] {
            if let Some(text) = text {
                put(&home(&test, &format!(".codex/{name}")), text);
            }
        }
        let before = everything(&test);
        install(&test, &["--trust", "--dry-run"])
            .exits(0)
            .says("trusts ");
        assert_eq!(everything(&test), before);
        let done = install(&test, &[])
            .exits(0)
            .says("Codex 0.166.0\n")
            .says("Installed. In a new session, type $ralph-loop in Codex.");
        done.says("start codex and press t when it asks");
        let now = parsed(&home(&test, ".codex/hooks.json"));
        let place = usize::from(hooks == Some(OTHER));
        assert_eq!(
            command_of(&now, "Stop", place),
            format!(
                "{} hook stop --client codex --within 86400",
                env!("CARGO_BIN_EXE_ralph")
            )
        );
        assert_eq!(
            command_of(&now, "UserPromptSubmit", 0),
            format!(
                "{} hook prompt --client codex --within 3600",
                env!("CARGO_BIN_EXE_ralph")
            )
        );
        assert_eq!(now["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"], 3);
        for skill in ["ralph-loop", "cancel-ralph", "ralph-help"] {
            assert!(
                read(&home(&test, &format!(".codex/skills/{skill}/SKILL.md")))
                    .contains(&format!("name: {skill}\n"))
            );
            let policy = read(&home(
                &test,
                &format!(".codex/skills/{skill}/agents/openai.yaml"),
            ));
            assert_eq!(policy, "policy:\n  allow_implicit_invocation: false\n");
        }
        plugin(&test, &["doctor"])
            .says("✘ codex")
            .says("$ralph-loop installed")
            .says("does not trust the hooks yet");
        install(&test, &["--trust"]).exits(0);
        let trusted = read(&home(&test, ".codex/config.toml"));
        let key = format!(
            "[hooks.state.\"{}:stop:{place}:0\"]\ntrusted_hash = \"sha256:",
            home(&test, ".codex/hooks.json").display()
        );
        assert!(
            trusted.starts_with(config.unwrap_or_default()) && trusted.contains(&key),
            "{trusted}"
        );
        let report: Value =
            serde_json::from_str(&plugin(&test, &["doctor", "--json"]).out).unwrap();
        assert_eq!(report["plugins"][0]["trouble"], Value::Null);
        let installed = everything(&test);
        for args in [&[][..], &["--trust"]] {
            install(&test, args).exits(0).says("nothing to change");
            assert_eq!(everything(&test), installed);
        }
        let stale = trusted.replacen("\"sha256:", "\"sha256:0000", 1);
        fs::write(home(&test, ".codex/config.toml"), stale).unwrap();
        install(&test, &["--trust"]).exits(0).says("trusts ");
        plugin(&test, &["plugin", "uninstall", "codex"]).exits(0);
        assert_eq!(everything(&test), before);
    }
}

#[test]
fn another_ralph_binary_replaces_the_first_and_must_be_trusted_again() {
    let test = machine();
    let hooks = home(&test, ".codex/hooks.json");
    put(&hooks, OTHER);
    let before = everything(&test);
    install(&test, &["--trust"]).exits(0);
    let now = read(&hooks);
    let own = env!("CARGO_BIN_EXE_ralph");
    // The file as an earlier ralph at another path left it, with other hooks added after it.
    let mut earlier: Value = serde_json::from_str(&now.replace(own, "/old/ralph")).unwrap();
    earlier["hooks"]["Stop"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "hooks": [] }));
    put(&hooks, &earlier.to_string());
    plugin(&test, &["doctor"])
        .says("✘ codex")
        .says("ralph plugin install codex");
    install(&test, &[]).exits(0);
    let now = parsed(&hooks);
    assert_eq!(command_of(&now, "Stop", 0), "theirs");
    assert_eq!(
        command_of(&now, "Stop", 1),
        format!("{own} hook stop --client codex --within 86400")
    );
    assert_eq!(now["hooks"]["Stop"].as_array().unwrap().len(), 3);
    plugin(&test, &["plugin", "uninstall"])
        .exits(0)
        .says("removing ralph's hooks moves your later hooks up");
    assert_eq!(
        parsed(&hooks)["hooks"]["Stop"],
        json!([{ "hooks": [{ "type": "command", "command": "theirs" }] }, { "hooks": [] }])
    );
    put(&hooks, OTHER);
    assert_eq!(everything(&test), before);
}

#[test]
fn entries_that_are_not_ralphs_are_left_alone() {
    let test = machine();
    put(
        &home(&test, ".codex/skills/ralph-loop/SKILL.md"),
        "---\nname: ralph-loop\n---\nMine.\n",
    );
    let before = everything(&test);
    install(&test, &[])
        .exits(2)
        .complains("already exists and was not written by ralph");
    plugin(&test, &["plugin", "uninstall"]).exits(0);
    assert_eq!(everything(&test), before);
    for (file, text, args, wrong) in [
        (
            "hooks.json",
            "{ nope",
            &[][..],
            "hooks.json is not a JSON object",
        ),
        (
            "hooks.json",
            "{\"hooks\": {\"Stop\": {}}}",
            &[],
            "hooks.Stop is not an array",
        ),
        ("config.toml", "model = ", &["--trust"], "cannot change "),
        (
            "config.toml",
            "hooks.state = {}\n",
            &["--trust"],
            "cannot change ",
        ),
    ] {
        let test = machine();
        put(&home(&test, &format!(".codex/{file}")), text);
        let before = everything(&test);
        install(&test, args)
            .exits(2)
            .complains(wrong)
            .complains("hint: ");
        assert_eq!(everything(&test), before, "{text}");
    }
}

#[test]
fn codex_home_is_resolved_to_its_real_path() {
    let test = machine();
    let real = home(&test, "real codex");
    fs::create_dir(&real).unwrap();
    let link = home(&test, "link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    plugin_with(
        &test,
        &["plugin", "install", "codex", "--trust"],
        &[("CODEX_HOME", &link)],
    )
    .exits(0);
    let key = format!(
        "[hooks.state.\"{}:stop:0:0\"]",
        fs::canonicalize(&real)
            .unwrap()
            .join("hooks.json")
            .display()
    );
    assert!(read(&real.join("config.toml")).contains(&key));
    plugin_with(&test, &["plugin", "uninstall"], &[("CODEX_HOME", &link)]).exits(0);
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0, "nothing is left");
}
