//! Adds and removes the entries in Codex's `config.toml` that mark a hook as trusted by the user.
//!
//! `toml_edit` locates and renders the entries, and edits replace ranges of the text. Printing the
//! whole document would change its line endings.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::ops::Range;
use toml_edit::{Document, DocumentMut, Item, Table, value};

/// A trusted hook: the key under which Codex stores it, and the hash of its definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrustedHook {
    pub(crate) key: String,
    pub(crate) hash: String,
}

impl TrustedHook {
    /// Computes the key and hash of a hook in `file`. `group` is the index of the hook's group
    /// under `event`.
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

    /// Returns whether a configuration already trusts the hook.
    pub(crate) fn is_in(&self, config: &str) -> bool {
        Document::parse(config).is_ok_and(|config| self.is_trusted(&config))
    }

    fn is_trusted(&self, config: &Document<&str>) -> bool {
        self.entry(config).is_some_and(|entry| {
            let hash = entry.get("trusted_hash").and_then(Item::as_str);
            let enabled = entry.get("enabled").and_then(Item::as_bool);
            hash == Some(&self.hash) && enabled != Some(false)
        })
    }

    fn entry<'a>(&self, config: &'a Document<&str>) -> Option<&'a Item> {
        config.get("hooks")?.get("state")?.get(&self.key)
    }

    /// Returns the byte range of the lines of the hook's entry. `None` if the entry has no table
    /// header of its own.
    fn lines(&self, config: &Document<&str>) -> Option<Range<usize>> {
        let text = config.raw();
        let table = self.entry(config)?.as_table()?;
        let header = table.span()?;
        let values = table.iter().filter_map(|(_, item)| item.span());
        let end = values.map(|span| span.end).fold(header.end, usize::max);
        let start = text[..header.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
        Some(start..end)
    }

    /// Returns the text of the hook's entry.
    fn to_toml(&self) -> String {
        let mut parent = Table::new();
        parent.set_implicit(true);
        let mut entry = Table::new();
        entry["trusted_hash"] = value(&self.hash);
        let mut state = parent.clone();
        state.insert(&self.key, Item::Table(entry));
        parent.insert("state", Item::Table(state));
        let mut config = DocumentMut::new();
        config.insert("hooks", Item::Table(parent));
        config.to_string()
    }
}

/// The result of an earlier call of [`add_trust`] on a configuration.
#[derive(Clone, Copy)]
pub(crate) struct EarlierTrust {
    /// Whether the configuration did not end with a newline, so that one was added as well.
    pub(crate) lacked_newline: bool,
}

/// Adds entries that trust the hooks to a configuration. Returns the new text and the part that was
/// appended. Replaces the entries that an `earlier` call added.
pub(crate) fn add_trust(
    text: &str,
    hooks: &[TrustedHook],
    earlier: Option<EarlierTrust>,
) -> Result<(String, String), String> {
    let config = Document::parse(text).map_err(|error| error.message().to_owned())?;
    let (mut lines, mut added) = (text.to_owned(), String::new());
    if hooks.iter().all(|hook| hook.is_trusted(&config)) {
        return Ok((lines, added));
    }
    for hook in hooks
        .iter()
        .filter(|hook| earlier.is_some() || !hook.is_trusted(&config))
    {
        lines = remove_trust(&lines, hook);
        added.extend(["\n", &hook.to_toml()]);
    }
    if earlier.is_some_and(|earlier| earlier.lacked_newline) && lines.ends_with('\n') {
        lines.pop();
    }
    if !lines.is_empty() && !lines.ends_with('\n') {
        added.insert(0, '\n');
    }
    lines.push_str(&added);
    if hooks.iter().all(|hook| hook.is_in(&lines)) {
        Ok((lines, added))
    } else {
        Err("its [hooks.state] has an unsupported form".to_owned())
    }
}

/// Removes a hook's entry from a configuration. Returns text that is not TOML unchanged.
pub(crate) fn remove_trust(text: &str, hook: &TrustedHook) -> String {
    let lines = Document::parse(text)
        .ok()
        .and_then(|config| hook.lines(&config));
    let Some(lines) = lines else {
        return text.to_owned();
    };
    let (before, after) = (&text[..lines.start], &text[lines.end..]);
    // The empty line before the header was added together with the header.
    let before = match before.strip_suffix('\n') {
        Some(shorter) if shorter.is_empty() || shorter.ends_with('\n') => shorter,
        _ => before,
    };
    format!("{before}{after}")
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
            "a = 1\r\n\r\n[b]\r\nc = 2\r\n# the end\r\n",
            "[hooks.state.\"/other:stop:0:0\"]\ntrusted_hash = \"x\" # theirs\n\n# [model]\n",
        ] {
            let (with, added) = add_trust(text, from_ref(&hook), None).unwrap();
            assert!(hook.is_in(&with), "{with}");
            assert_eq!(with, format!("{text}{added}"));
            assert_eq!(
                add_trust(&with, from_ref(&hook), None).unwrap(),
                (with.clone(), String::new()),
                "adding it again changes nothing"
            );
            let left = remove_trust(&with, &hook);
            assert_eq!(left.trim_end(), text.trim_end());
            let stale = with
                .replace(&hook.hash, "sha256:old")
                .replace("\n[hooks", "\n[hooks.state]\n\n[hooks")
                + "enabled = false\n[x]\n";
            let (again, _) = add_trust(&stale, from_ref(&hook), None).unwrap();
            assert!(
                hook.is_in(&again) && again.contains("[x]\n") && !again.contains("old"),
                "{again}"
            );
        }
        for text in ["[hooks\n", "hooks.state = { }", "[hooks]\nstate = {}\n"] {
            assert!(add_trust(text, from_ref(&hook), None).is_err(), "{text}");
        }
    }
}
