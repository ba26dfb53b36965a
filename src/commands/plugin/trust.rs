//! The entries in Codex's `config.toml` that mark a hook as trusted by the user.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toml::Table;

/// A trusted hook: the key under which Codex stores it, and the hash of its definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrustedHook {
    pub(crate) key: String,
    pub(crate) hash: String,
}

impl TrustedHook {
    /// Computes key and hash of a hook in `file`; `group` is the index of its group under the
    /// event.
    pub(crate) fn new(file: &str, event: &str, group: usize, hook: &Value) -> Self {
        let event = snake_case(event);
        let definition = json!({ "type": "command", "command": hook["command"], "async": false, "timeout": hook["timeout"] });
        let identity = json!({ "event_name": event, "hooks": [definition] }).to_string();
        let digits: Vec<String> = Sha256::digest(identity)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            key: format!("{file}:{event}:{group}:0"),
            hash: format!("sha256:{}", digits.concat()),
        }
    }

    /// Returns whether the configuration already trusts the hook.
    pub(crate) fn is_in(&self, config: &Table) -> bool {
        let state = config
            .get("hooks")
            .and_then(|hooks| hooks.get("state"))
            .and_then(|state| state.get(&self.key));
        let has =
            |key: &str, value: toml::Value| state.and_then(|state| state.get(key)) == Some(&value);
        has("trusted_hash", self.hash.clone().into()) && !has("enabled", false.into())
    }

    fn header(&self) -> String {
        format!("[hooks.state.{}]", Value::from(self.key.as_str()))
    }

    fn hash_line(&self) -> String {
        format!("trusted_hash = \"{}\"", self.hash)
    }
}

/// Adds trust for the hooks to a configuration. Returns the new text and the part that was
/// appended.
pub(crate) fn add_trust(text: &str, hooks: &[TrustedHook]) -> Result<(String, String), String> {
    let config: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let (mut lines, mut added) = (text.to_owned(), String::new());
    for hook in hooks.iter().filter(|hook| !hook.is_in(&config)) {
        lines = remove_trust(&lines, hook);
        added.extend(["\n", &hook.header(), "\n", &hook.hash_line(), "\n"]);
    }
    if !lines.is_empty() && !lines.ends_with('\n') && !added.is_empty() {
        added.insert(0, '\n');
    }
    lines.push_str(&added);
    let trusts_all = |config: &Table| hooks.iter().all(|hook| hook.is_in(config));
    let unsupported = || "its [hooks.state] has an unsupported form".to_owned();
    lines
        .parse()
        .ok()
        .filter(trusts_all)
        .map(|_| (lines, added))
        .ok_or_else(unsupported)
}

/// Removes the entries of a hook from a configuration.
pub(crate) fn remove_trust(text: &str, hook: &TrustedHook) -> String {
    let header = hook.header();
    let mut kept = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if inside && (bare.starts_with("trusted_hash") || bare.starts_with("enabled")) {
            continue;
        }
        inside = bare == header;
        if inside {
            // The empty line before the header was added with it.
            if kept.ends_with("\n\n") {
                kept.pop();
            }
            continue;
        }
        kept.push_str(line);
    }
    kept
}

/// Converts `UserPromptSubmit` to `user_prompt_submit`.
fn snake_case(event: &str) -> String {
    let mut name = String::new();
    for c in event.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    fn example_hook() -> TrustedHook {
        let hook = json!({ "type": "command", "command": "/abs/hook \"ü\" <&>", "timeout": 86400 });
        TrustedHook::new("/home/me/.codex/hooks.json", "UserPromptSubmit", 2, &hook)
    }

    #[test]
    fn the_key_has_the_position_of_the_hook_and_the_hash_its_definition() {
        let hook = example_hook();
        assert_eq!(
            hook.key,
            "/home/me/.codex/hooks.json:user_prompt_submit:2:0"
        );
        assert_eq!(
            hook.hash,
            "sha256:9ebd636947e34a5b26b82711373e905aa6a3878f618ec2d37610979290e7adba"
        );
    }

    #[test]
    fn trust_is_added_and_removed_without_other_changes() {
        let hook = example_hook();
        for text in [
            "",
            "model = \"x\"",
            "model = \"x\"\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
            "a = 1\n\n\n",
        ] {
            let (with, added) = add_trust(text, from_ref(&hook)).unwrap();
            assert!(hook.is_in(&with.parse().unwrap()), "{with}");
            assert_eq!(with, format!("{text}{added}"));
            assert_eq!(
                add_trust(&with, from_ref(&hook)).unwrap(),
                (with.clone(), String::new()),
                "adding it again changes nothing"
            );
            let left = remove_trust(&with, &hook);
            assert_eq!(left.trim_end(), text.trim_end());
            let stale = with
                .replace(&hook.hash, "sha256:old")
                .replace("\n[hooks", "\n[hooks.state]\n\n[hooks")
                + "enabled = false\n[x]\n";
            let (again, _) = add_trust(&stale, from_ref(&hook)).unwrap();
            assert!(
                hook.is_in(&again.parse().unwrap())
                    && again.contains("[x]\n")
                    && !again.contains("old"),
                "{again}"
            );
        }
        for text in ["[hooks\n", "hooks.state = { }", "[hooks]\nstate = {}\n"] {
            assert!(add_trust(text, from_ref(&hook)).is_err(), "{text}");
        }
    }
}
