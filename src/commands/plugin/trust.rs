//! How Codex writes down that a person trusts a hook, in its `config.toml`.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toml::Table;

/// A hook that is to be trusted: what Codex calls it, and the hash of what it does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trusted {
    pub(crate) key: String,
    pub(crate) hash: String,
}

impl Trusted {
    /// A hook of this file: its event, the place of its group there, and how it is called.
    pub(crate) fn new(file: &str, event: &str, group: usize, hook: &Value) -> Self {
        let event = snake(event);
        let what = json!({ "type": "command", "command": hook["command"], "async": false, "timeout": hook["timeout"] });
        let identity = json!({ "event_name": event, "hooks": [what] }).to_string();
        let digits: Vec<String> = Sha256::digest(identity)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            key: format!("{file}:{event}:{group}:0"),
            hash: format!("sha256:{}", digits.concat()),
        }
    }

    /// Whether the settings say so already.
    pub(crate) fn is_in(&self, config: &Table) -> bool {
        let state = config
            .get("hooks")
            .and_then(|hooks| hooks.get("state"))
            .and_then(|state| state.get(&self.key));
        let is =
            |key: &str, value: toml::Value| state.and_then(|state| state.get(key)) == Some(&value);
        is("trusted_hash", self.hash.clone().into()) && !is("enabled", false.into())
    }

    fn header(&self) -> String {
        format!("[hooks.state.{}]", Value::from(self.key.as_str()))
    }

    fn line(&self) -> String {
        format!("trusted_hash = \"{}\"", self.hash)
    }
}

/// The settings with these hooks trusted, and what had to be added at their end.
pub(crate) fn trust(text: &str, hooks: &[Trusted]) -> Result<(String, String), String> {
    let config: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let (mut lines, mut added) = (text.to_owned(), String::new());
    for hook in hooks.iter().filter(|hook| !hook.is_in(&config)) {
        lines = without(&lines, hook);
        added.extend(["\n", &hook.header(), "\n", &hook.line(), "\n"]);
    }
    if !lines.is_empty() && !lines.ends_with('\n') && !added.is_empty() {
        added.insert(0, '\n');
    }
    lines.push_str(&added);
    let is_done = |config: &Table| hooks.iter().all(|hook| hook.is_in(config));
    let other = || "its [hooks.state] is written in another way".to_owned();
    lines
        .parse()
        .ok()
        .filter(is_done)
        .map(|_| (lines, added))
        .ok_or_else(other)
}

/// The settings without a word of this hook.
pub(crate) fn without(text: &str, hook: &Trusted) -> String {
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
            // The empty line before it was made with it.
            if kept.ends_with("\n\n") {
                kept.pop();
            }
            continue;
        }
        kept.push_str(line);
    }
    kept
}

/// `UserPromptSubmit` is `user_prompt_submit`.
fn snake(event: &str) -> String {
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

    fn stop() -> Trusted {
        let hook = json!({ "type": "command", "command": "/abs/hook \"ü\" <&>", "timeout": 86400 });
        Trusted::new("/home/me/.codex/hooks.json", "UserPromptSubmit", 2, &hook)
    }

    #[test]
    fn a_hook_is_known_by_its_place_and_by_what_it_does() {
        let hook = stop();
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
    fn trust_comes_and_goes_and_leaves_the_rest() {
        let hook = stop();
        for text in [
            "",
            "model = \"x\"",
            "model = \"x\"\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
            "a = 1\n\n\n",
        ] {
            let (with, added) = trust(text, from_ref(&hook)).unwrap();
            assert!(hook.is_in(&with.parse().unwrap()), "{with}");
            assert_eq!(with, format!("{text}{added}"));
            assert_eq!(
                trust(&with, from_ref(&hook)).unwrap(),
                (with.clone(), String::new()),
                "twice is once"
            );
            let left = without(&with, &hook);
            assert_eq!(left.trim_end(), text.trim_end());
            let stale = with
                .replace(&hook.hash, "sha256:old")
                .replace("\n[hooks", "\n[hooks.state]\n\n[hooks")
                + "enabled = false\n[x]\n";
            let (again, _) = trust(&stale, from_ref(&hook)).unwrap();
            assert!(
                hook.is_in(&again.parse().unwrap())
                    && again.contains("[x]\n")
                    && !again.contains("old"),
                "{again}"
            );
        }
        for text in ["[hooks\n", "hooks.state = { }", "[hooks]\nstate = {}\n"] {
            assert!(trust(text, from_ref(&hook)).is_err(), "{text}");
        }
    }
}
