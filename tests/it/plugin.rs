//! `ralph plugin`, through the binary, with stub clients: what it writes, and that uninstalling restores every byte.

use crate::kit::{Done, Test};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

mod clients;
mod codex;

const NEW: &str = "#!/bin/sh\necho '2.1.325 (Claude Code)'\n";
const OLD: &str = "#!/bin/sh\necho '2.1.50 (Claude Code)'\n";

/// Simulates a machine on which only this Claude Code and a shell are installed.
fn machine(claude: &str) -> Test {
    Test::new().program("../bin/claude", claude)
}

fn plugin(test: &Test, args: &[&str]) -> Done {
    plugin_with(test, args, &[])
}

fn plugin_with(test: &Test, args: &[&str], variables: &[(&str, &Path)]) -> Done {
    let mut command = test.ralph_command(args);
    command.env(
        "PATH",
        format!("{}:/usr/bin:/bin", test.root().join("bin").display()),
    );
    command.envs(variables.iter().copied());
    test.start_command(command).end()
}

fn install(test: &Test) -> Done {
    plugin(test, &["plugin", "install", "claude"])
}

fn uninstall(test: &Test) -> Done {
    plugin(test, &["plugin", "uninstall"])
}

fn home(test: &Test, path: &str) -> PathBuf {
    test.root().join("home").join(path)
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parsed(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// Returns every file below a directory with its content, and every symlink with its target.
fn tree(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(tree(&path));
        } else if kind.is_symlink() {
            found.insert(
                path.clone(),
                format!("link to {}", fs::read_link(path).unwrap().display()),
            );
        } else {
            found.insert(path.clone(), read(&path));
        }
    }
    found
}

fn everything(test: &Test) -> BTreeMap<PathBuf, String> {
    let mut all = tree(&home(test, ""));
    all.extend(tree(&test.state_dir()));
    all
}

const SETTINGS: &str = ".claude/settings.json";

#[test]
fn uninstalling_removes_the_directories_that_installing_created() {
    let test = machine(NEW);
    let data = test.root().join("data");
    let with_data = |args: &[&str]| plugin_with(&test, args, &[("RALPH_STATE_DIR", &data)]);
    let clients = ["plugin", "install", "claude", "codex"];
    with_data(&clients).exits(0);
    assert!(home(&test, ".claude/plugins").is_dir());
    with_data(&["plugin", "uninstall"]).exits(0);
    for path in [home(&test, ".claude"), home(&test, ".codex"), data.clone()] {
        assert!(!path.exists(), "{}", path.display());
    }
    // A directory that is the user's own, or is used by now, stays.
    fs::create_dir_all(home(&test, ".codex")).unwrap();
    with_data(&clients).exits(0);
    put(&home(&test, ".claude/own"), "");
    with_data(&["plugin", "uninstall"]).exits(0);
    assert!(home(&test, ".codex").is_dir());
    assert!(home(&test, ".claude/own").is_file());
    assert!(!home(&test, ".claude/plugins").exists());
}

#[test]
fn the_plugin_is_previewed_installed_and_uninstalled() {
    let test = machine(NEW);
    put(&home(&test, SETTINGS), "{\n  \"model\": \"opus\"\n}\n");
    let before = everything(&test);
    let shown = plugin(&test, &["plugin", "install", "--dry-run"])
        .exits(0)
        .says("Claude Code 2.1.325\n");
    assert_eq!(everything(&test), before, "a dry run writes nothing");
    let done = install(&test)
        .exits(0)
        .says("Installed. In a new session, type /ralph-loop in Claude Code.\n");
    let bare = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.contains("lastUpdated"))
            .map(str::to_owned);
        lines.collect()
    };
    assert!(
        bare(&done.out).starts_with(&bare(&shown.out)),
        "{}\n{}",
        shown.out,
        done.out
    );
    let dir = test.state_dir().join("plugin/claude");
    let settings = parsed(&home(&test, SETTINGS));
    assert_eq!(
        settings["extraKnownMarketplaces"]["ralph"]["source"],
        json!({ "source": "directory", "path": dir })
    );
    assert_eq!(settings["enabledPlugins"], json!({ "ralph@ralph": true }));
    assert_eq!(
        settings["env"],
        json!({ "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0" })
    );
    let known = parsed(&home(&test, ".claude/plugins/known_marketplaces.json"));
    assert_eq!(known["ralph"]["installLocation"], json!(dir));
    let hooks = parsed(&dir.join("ralph/hooks/hooks.json"));
    for (event, verb, timeout) in [
        ("UserPromptSubmit", "prompt --within 3600", 3600),
        ("Stop", "stop --within 86400", 86400),
        ("SessionEnd", "end", 60),
    ] {
        let hook = &hooks["hooks"][event][0]["hooks"][0];
        assert_eq!(
            hook["command"],
            format!("{} hook {verb}", env!("CARGO_BIN_EXE_ralph"))
        );
        assert_eq!(hook["timeout"], timeout);
    }
    let manifest = parsed(&dir.join("ralph/.claude-plugin/plugin.json"));
    let version = manifest["version"].as_str().unwrap();
    assert!(
        version.starts_with(&format!("{}+", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
    assert!(
        dir.join(format!("ralph/{}", manifest["hooks"].as_str().unwrap()))
            .is_file()
    );
    let installed = everything(&test);
    install(&test)
        .exits(0)
        .says("nothing to change: already installed");
    assert_eq!(everything(&test), installed, "twice is once");
    plugin(&test, &["plugin", "uninstall", "--dry-run"])
        .exits(0)
        .says("enabledPlugins.ralph@ralph (removed)");
    assert_eq!(everything(&test), installed, "a dry run takes nothing");
    uninstall(&test).exits(0);
    assert_eq!(everything(&test), before);
    uninstall(&test)
        .exits(0)
        .says("nothing to remove: not installed");
    assert_eq!(everything(&test), before);
}

#[test]
fn uninstalling_restores_settings_of_every_style_byte_for_byte() {
    for text in [
        "",
        " \n",
        "{}",
        "{ }\n\n",
        "{\"env\":{},\"enabledPlugins\":{}}",
        "{\"env\":{\"A\":\"1\"},\"x\":[1,2]}",
        "{\r\n    \"env\": { },\r\n    \"z\": \"\\u00e9 \u{1f600} // no comment\"\r\n}\r\n",
        "{\n\t\"enabledPlugins\": {\n\t\t\"a@b\": false,\n\t\t\"ralph@ralph\": false\n\t}}",
        "{\n  \"extraKnownMarketplaces\": {\"other\": {\"source\": {\"source\": \"github\", \"repo\": \"a/b\"}}},\n  \"n\": 1e400000\n}",
    ] {
        let test = machine(NEW);
        put(&home(&test, SETTINGS), text);
        put(
            &home(&test, ".claude/plugins/known_marketplaces.json"),
            "{ \"other\": {} }",
        );
        if text.contains("1e400000") {
            install(&test)
                .exits(2)
                .complains("settings.json is not a JSON object");
            continue;
        }
        let before = everything(&test);
        install(&test).exits(0);
        assert_ne!(everything(&test), before);
        let old: Value = serde_json::from_str(text).unwrap_or(json!({}));
        let new = parsed(&home(&test, SETTINGS));
        for (key, value) in old.as_object().unwrap() {
            assert!(new[key] == *value || value.is_object(), "{key} of {text}");
        }
        uninstall(&test).exits(0);
        assert_eq!(everything(&test), before, "{text}");
    }
}

#[test]
fn changes_made_by_others_since_the_installation_are_kept() {
    let test = machine(NEW);
    let settings = home(&test, SETTINGS);
    put(&settings, "{\n  \"model\": \"opus\"\n}\n");
    install(&test).exits(0);
    // The client rewrites the settings in its own style, and the user adds another plugin and
    // disables ralph's.
    let mut now = parsed(&settings);
    now["enabledPlugins"]["other@market"] = true.into();
    now["enabledPlugins"]["ralph@ralph"] = false.into();
    now["env"]["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = "20".into();
    put(&settings, &now.to_string());
    let known = home(&test, ".claude/plugins/known_marketplaces.json");
    put(
        &known,
        &read(&known).replace("lastUpdated\": \"2", "lastUpdated\": \"3"),
    );
    put(
        &home(&test, ".claude/plugins/installed_plugins.json"),
        "{\"version\":2,\"plugins\":{\"ralph@ralph\":[],\"o@m\":[]}}",
    );
    put(
        &home(&test, ".claude/plugins/cache/ralph/ralph/0.1.0/x"),
        "a copy",
    );
    put(&home(&test, ".claude/plugins/cache/other/x"), "not ours");
    uninstall(&test).exits(0);
    let env = json!({ "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "20" });
    assert_eq!(
        parsed(&settings),
        json!({ "model": "opus", "enabledPlugins": { "other@market": true }, "env": env })
    );
    assert!(!known.exists());
    assert_eq!(
        parsed(&home(&test, ".claude/plugins/installed_plugins.json")),
        json!({ "version": 2, "plugins": { "o@m": [] } })
    );
    assert!(!home(&test, ".claude/plugins/cache/ralph").exists());
    assert!(home(&test, ".claude/plugins/cache/other/x").exists());
}

#[test]
fn another_marketplace_of_the_same_name_is_left_alone() {
    let test = machine(NEW);
    install(&test).exits(0);
    let theirs = json!({ "source": { "source": "github", "repo": "a/ralph" } });
    let enabled = json!({ "ralph@ralph": true });
    let now = json!({ "extraKnownMarketplaces": { "ralph": theirs }, "enabledPlugins": enabled });
    put(&home(&test, SETTINGS), &now.to_string());
    put(
        &home(&test, ".claude/plugins/known_marketplaces.json"),
        &json!({ "ralph": theirs }).to_string(),
    );
    put(
        &home(&test, ".claude/plugins/cache/ralph/ralph/9/x"),
        "theirs",
    );
    let before = tree(&home(&test, ""));
    uninstall(&test).exits(0);
    assert_eq!(tree(&home(&test, "")), before);
    assert!(!test.state_dir().join("plugin").exists());
}

#[test]
fn without_a_record_only_entries_that_are_certainly_ralphs_are_removed() {
    let test = machine(NEW);
    put(&home(&test, SETTINGS), "{\n  \"model\": \"opus\"\n}\n");
    install(&test).exits(0);
    fs::remove_file(test.state_dir().join("plugin/record.json")).unwrap();
    uninstall(&test).exits(0);
    let env = json!({ "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0" });
    assert_eq!(
        parsed(&home(&test, SETTINGS)),
        json!({ "model": "opus", "env": env })
    );
    assert_eq!(
        parsed(&home(&test, ".claude/plugins/known_marketplaces.json")),
        json!({})
    );
    assert!(!test.state_dir().join("plugin").exists());
}

#[test]
fn settings_that_cannot_be_edited_safely_are_left_alone() {
    for (text, wrong) in [
        ("{ // mine\n}", "settings.json is not a JSON object"),
        ("{\"a\": 1,}", "settings.json is not a JSON object"),
        ("[]", "not an object"),
        ("{\"env\": \"A=1\"}", "settings.json: env is not an object"),
        (
            "{\"enabledPlugins\": []}",
            "settings.json: enabledPlugins is not an object",
        ),
        (
            "{\"extraKnownMarketplaces\": {\"ralph\": {\"source\": {\"repo\": \"a/b\"}}}}",
            "another marketplace named ralph",
        ),
    ] {
        let test = machine(NEW);
        put(&home(&test, SETTINGS), text);
        let before = everything(&test);
        install(&test).exits(2).complains(wrong).complains("hint: ");
        assert_eq!(everything(&test), before, "{text}");
    }
    let test = machine(NEW);
    let settings = home(&test, SETTINGS);
    put(&settings, "{}");
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o444)).unwrap();
    let before = everything(&test);
    install(&test)
        .exits(2)
        .complains("settings.json is read-only");
    assert_eq!(everything(&test), before);
    fs::remove_file(&settings).unwrap();
    symlink("nowhere", &settings).unwrap();
    install(&test).exits(2).complains("a broken link");
    fs::remove_file(&settings).unwrap();
    test.sh("mkfifo ../home/.claude/settings.json");
    install(&test).exits(2).complains("not a regular file");
    assert!(!test.state_dir().join("plugin").exists());
}

#[test]
fn settings_behind_a_symlink_are_written_to_the_link_s_target() {
    let test = machine(NEW);
    let real = home(&test, "dotfiles/claude settings.json");
    put(&real, "{\"model\": \"opus\"}");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(home(&test, ".claude")).unwrap();
    symlink(&real, home(&test, SETTINGS)).unwrap();
    let before = everything(&test);
    install(&test).exits(0);
    assert_eq!(parsed(&real)["enabledPlugins"]["ralph@ralph"], true);
    assert!(
        fs::symlink_metadata(home(&test, SETTINGS))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
    uninstall(&test).exits(0);
    assert_eq!(everything(&test), before);
}

#[test]
fn the_long_command_names_are_shown_for_an_old_client() {
    let test = machine("#!/bin/sh\necho '2.1.49 (Claude Code)'\n");
    install(&test)
        .exits(0)
        .says("note    in this version of Claude Code, the command is /ralph:ralph-loop");
}

#[test]
fn an_old_client_gets_an_unsupported_hook_only_after_an_update() {
    let test = machine(OLD);
    let failure = test
        .state_dir()
        .join("plugin/claude/ralph/hooks/failure.json");
    let version = |test: &Test| {
        parsed(
            &test
                .state_dir()
                .join("plugin/claude/ralph/.claude-plugin/plugin.json"),
        )["version"]
            .clone()
    };
    let told = install(&test).exits(0).out;
    assert!(
        !told.contains("/ralph:ralph-loop"),
        "it knows the short name: {told}"
    );
    assert!(!failure.exists());
    let old = version(&test);
    let doctor = |test: &Test| {
        let report: Value = serde_json::from_str(&plugin(test, &["doctor", "--json"]).out).unwrap();
        report["plugins"][0].clone()
    };
    let about = doctor(&test);
    assert_eq!(
        (&about["client"], &about["installed"], &about["current"]),
        (&json!("claude"), &json!(true), &json!(true))
    );
    let test = test.program("../bin/claude", NEW);
    assert_eq!(doctor(&test)["current"], false);
    plugin(&test, &["doctor"])
        .says("✘ claude")
        .says("ralph plugin install claude");
    install(&test).exits(0).says("2 files");
    assert!(failure.exists());
    assert_ne!(
        version(&test),
        old,
        "a client that copies a plugin for each version takes the new one"
    );
    assert_eq!(doctor(&test)["current"], true);
    let test = test.program("../bin/claude", OLD);
    install(&test).exits(0);
    assert!(!failure.exists());
    assert_eq!(version(&test), old);
    // A client that does not report its version is treated as an old one.
    let test = test.program("../bin/claude", "#!/bin/sh\nexit 1\n");
    install(&test)
        .exits(0)
        .says("claude did not print its version");
    uninstall(&test).exits(0);
    assert_eq!(doctor(&test)["installed"], false);
}

#[test]
fn missing_clients_are_reported() {
    let test = Test::new().file("../bin/.keep", "");
    plugin(&test, &["plugin", "install"])
        .exits(2)
        .complains("neither claude nor codex")
        .complains("hint: ");
    plugin(&test, &["plugin", "install", "emacs"])
        .exits(2)
        .complains("emacs");
    plugin(&test, &["plugin"]).exits(2);
    plugin(&test, &["plugin", "instal"])
        .exits(2)
        .complains("use `ralph plugin install`, `path` or `uninstall`");
    assert!(everything(&test).is_empty());
    install(&test)
        .exits(0)
        .says("is not in your PATH")
        .says("Installed.");
    assert!(home(&test, SETTINGS).exists());
    uninstall(&test).exits(0);
    assert!(everything(&test).is_empty());
}

#[test]
fn another_configuration_directory_is_used_and_remembered() {
    let test = machine(NEW);
    let elsewhere = test.root().join("home/it's \"elsewhere\"");
    plugin_with(
        &test,
        &["plugin", "install"],
        &[("CLAUDE_CONFIG_DIR", &elsewhere)],
    )
    .exits(0);
    assert!(elsewhere.join("settings.json").exists() && !home(&test, SETTINGS).exists());
    install(&test).exits(0);
    plugin_with(
        &test,
        &["plugin", "install"],
        &[("CLAUDE_CONFIG_DIR", &elsewhere)],
    )
    .says("nothing to change");
    uninstall(&test).exits(0).says("elsewhere").says(SETTINGS);
    assert!(everything(&test).is_empty(), "{:?}", everything(&test));
}

#[test]
fn the_user_s_own_value_is_kept_and_reported() {
    let test = machine(NEW);
    let own = "{\n  \"env\": {\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": \"3\"},\n  \"enabledPlugins\": {\"ralph-wiggum@market\": true}\n}";
    put(&home(&test, SETTINGS), own);
    let done = install(&test)
        .exits(0)
        .says("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP is \"3\" in your settings");
    done.says("claude plugin disable ralph-wiggum@market");
    assert_eq!(
        parsed(&home(&test, SETTINGS))["env"]["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"],
        "3"
    );
    plugin(&test, &["doctor"]).says("ralph-wiggum@market reacts to the same stop events");
    uninstall(&test).exits(0);
    assert_eq!(read(&home(&test, SETTINGS)), own);
}

#[test]
fn plugin_path_prints_the_directory_and_refreshes_its_files() {
    let test = machine(NEW);
    let dir = test.state_dir().join("plugin/claude/ralph");
    for _ in 0..2 {
        assert_eq!(
            plugin(&test, &["plugin", "path"]).exits(0).out,
            format!("{}\n", dir.display())
        );
        let loop_command = read(&dir.join("commands/ralph-loop.md"));
        assert!(
            loop_command.contains("disable-model-invocation: true\n")
                && loop_command.contains("\n$ARGUMENTS\n")
        );
        fs::write(dir.join("commands/ralph-loop.md"), "spoiled").unwrap();
    }
    assert!(!home(&test, ".claude").exists(), "nothing is registered");
    uninstall(&test).exits(0);
    assert!(everything(&test).is_empty());
}

#[test]
fn hooks_call_ralph_by_the_path_found_on_path() {
    let test = machine(NEW);
    let place = test.root().join("it's \"here\" $HOME");
    fs::create_dir(&place).unwrap();
    symlink(env!("CARGO_BIN_EXE_ralph"), place.join("ralph")).unwrap();
    let mut command = test.ralph_command(&["plugin", "install"]);
    command.env(
        "PATH",
        format!(
            "{}:{}:/usr/bin:/bin",
            test.root().join("bin").display(),
            place.display()
        ),
    );
    test.start_command(command).end().exits(0);
    let hooks = parsed(
        &test
            .state_dir()
            .join("plugin/claude/ralph/hooks/hooks.json"),
    );
    let command = hooks["hooks"]["Stop"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    assert!(command.contains("here"), "{command}");
    let version = test.sh(&command.replace(" hook stop --within 86400", " --version"));
    assert_eq!(version, format!("ralph {}\n", env!("CARGO_PKG_VERSION")));
    uninstall(&test).exits(0);
}

#[test]
fn the_files_in_the_repository_are_a_complete_plugin() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin/claude");
    let manifest = parsed(&dir.join("ralph/.claude-plugin/plugin.json"));
    assert_eq!(
        (&manifest["name"], &manifest["version"]),
        (&json!("ralph"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(manifest["license"], env!("CARGO_PKG_LICENSE"));
    assert_eq!(
        parsed(&dir.join(".claude-plugin/marketplace.json"))["plugins"][0]["source"],
        "./ralph"
    );
    assert!(
        read(&dir.join("ralph/README.md"))
            .split_whitespace()
            .count()
            >= 40
    );
    for command in ["ralph-loop", "cancel-ralph", "ralph-help"] {
        let text = read(&dir.join(format!("ralph/commands/{command}.md")));
        assert!(
            // With this name, the command needs no plugin prefix.
            text.starts_with(&format!("---\nname: {command}\ndescription: "))
                && text.contains("\ndisable-model-invocation: true\n---\n"),
            "{text}"
        );
        assert!(!text.contains("!`"), "nothing is run by the client: {text}");
    }
}
