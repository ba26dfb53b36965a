//! The table of settings, read from `presets/settings.toml`: each setting's name, type, default,
//! flag and help.

use crate::engine::{Amount, Limit};
use serde::Deserialize;
use serde_json::Value;
use std::sync::OnceLock;

/// One row of the table. The header of `presets/settings.toml` describes the fields.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SettingKey {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) heading: String,
    pub(crate) kind: SettingKind,
    #[serde(default)]
    pub(crate) choices: Vec<String>,
    /// The choice that the flag without a value and `true` in a file select. `false` selects the
    /// first choice.
    pub(crate) bare: Option<String>,
    pub(crate) help: String,
    pub(crate) flag_help: Option<String>,
    pub(crate) flag: Option<String>,
    pub(crate) no_flag: Option<String>,
    pub(crate) short: Option<char>,
    pub(crate) value_name: Option<String>,
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    #[serde(default)]
    pub(crate) flag_aliases: Vec<String>,
    pub(crate) default: Option<Value>,
    pub(crate) default_text: Option<String>,
    pub(crate) shorthand: Option<String>,
    #[serde(default)]
    pub(crate) replaces: Vec<String>,
    #[serde(default)]
    pub(crate) required: bool,
    #[serde(default)]
    pub(crate) trust: Vec<String>,
    #[serde(default)]
    pub(crate) children: Vec<SettingKey>,
}

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SettingKind {
    /// A string.
    Text,
    /// A list of strings.
    Texts,
    /// A path, relative to the workspace.
    Path,
    /// A boolean.
    Switch,
    /// A boolean, or the name of a branch.
    Branch,
    /// A whole number; 0 or null means none.
    Count,
    /// An exit code; 0 or null means none.
    Code,
    /// An amount in dollars; 0 or null means none.
    Amount,
    /// A duration; 0 or null means none.
    Duration,
    /// A number of bytes.
    Size,
    /// Two durations, as in `1s..300s`.
    Backoff,
    /// One of the row's `choices`, in any case.
    Choice,
    /// A command with its arguments: a list, or a string that is split as a shell would split it. A
    /// list with one item is split too.
    Command,
    /// Arguments: a string, or a list of strings, each split as a shell would split it.
    Flags,
    /// Environment variables, as an object with strings as values.
    Variables,
    /// An object with the row's children as keys.
    Object,
    /// A list of objects with the row's children as keys.
    Objects,
    /// Objects with the row's children as keys, under names that the user chooses.
    Map,
}

impl SettingKey {
    pub(crate) fn flag(&self) -> Option<&str> {
        match self.flag.as_deref() {
            Some("") => None,
            other => Some(other.unwrap_or(&self.name)),
        }
    }

    /// Returns the largest value of a [count](SettingKind::Count).
    pub(crate) fn count_max(&self) -> u64 {
        match Limit::from_key(&self.name).map(|limit| limit.row().zero) {
            Some(Amount::Tokens(_)) => u64::MAX,
            _ => u32::MAX.into(),
        }
    }

    /// Returns whether the setting has several values. Its flag may then be repeated.
    pub(crate) fn is_list(&self) -> bool {
        match self.kind {
            SettingKind::Texts | SettingKind::Objects => true,
            SettingKind::Object => self.shorthand_key().is_some_and(Self::is_list),
            _ => false,
        }
    }

    /// Returns the child key that a plain value sets if it is written instead of an object; `None`
    /// if the key has no shorthand.
    pub(crate) fn shorthand_key(&self) -> Option<&Self> {
        let name = self.shorthand.as_deref()?;
        Some(find(&self.children, name).expect("`shorthand` names a child"))
    }

    /// Returns whether the value may be null. Required keys and keys with a default may not be
    /// null.
    pub(crate) fn is_nullable(&self) -> bool {
        self.default.is_none() && !self.required
    }

    /// Returns the name in camel case, the spelling used in settings files.
    pub(crate) fn camel_case(&self) -> String {
        camel_case(&self.name)
    }

    /// Returns the default as text for the help; `None` if there is nothing to show, as for a
    /// switch.
    pub(crate) fn describe_default(&self) -> Option<String> {
        match (&self.default_text, &self.default) {
            (Some(text), _) | (None, Some(Value::String(text))) => Some(text.clone()),
            (None, Some(Value::Number(number))) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Describes which values need the user's trust, for people: `yes`, or the values; `None` if none
    /// does.
    #[cfg(feature = "cli")]
    pub(super) fn describe_trust(&self) -> Option<String> {
        let of_child = |child: &Self| {
            let name = child.camel_case();
            child.describe_trust().map(|values| match values.as_str() {
                "yes" => name,
                values => format!("{name} {values}"),
            })
        };
        let parts: Vec<String> = match &self.trust[..] {
            [] => self.children.iter().filter_map(of_child).collect(),
            [all] if all == "*" => vec!["yes".into()],
            values => values.iter().map(|value| value.replace('*', "…")).collect(),
        };
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns whether a value of this key itself, as text, needs the user's trust. The keys inside
    /// an object have their own rows.
    pub(super) fn needs_trust(&self, value: &str) -> bool {
        let matches = |part: &str, pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => part.starts_with(start),
            None => part == pattern,
        };
        // `agent` is a list of names.
        let mut parts = value.split(',').map(str::trim);
        parts.any(|part| self.trust.iter().any(|pattern| matches(part, pattern)))
    }

    fn has_name(&self, kebab: &str) -> bool {
        self.name == kebab
            || self.aliases.iter().any(|alias| alias == kebab)
            || self.flag.as_deref() == Some(kebab) && self.kind != SettingKind::Switch
    }
}

#[derive(Deserialize)]
struct Table {
    key: Vec<SettingKey>,
}

/// Returns all settings, in the order in which the help lists them.
pub(crate) fn table() -> &'static [SettingKey] {
    static TABLE: OnceLock<Vec<SettingKey>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = include_str!("../../presets/settings.toml");
        toml::from_str::<Table>(text)
            .expect("presets/settings.toml is valid")
            .key
    })
}

/// Finds a key by its name or an alias, in any spelling; `None` if no key matches.
pub(crate) fn find<'a>(keys: &'a [SettingKey], name: &str) -> Option<&'a SettingKey> {
    let kebab = kebab_case(name);
    keys.iter().find(|key| key.has_name(&kebab))
}

/// Returns the setting with this name.
///
/// Panics if there is no such setting.
pub(crate) fn key(name: &str) -> &'static SettingKey {
    find(table(), name).expect("the key is in the table")
}

/// Returns the known word most similar to `word`; `None` if no word is similar enough to suggest.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let scored = known.map(|other| {
        let lower = other.to_lowercase();
        // Swapped letters of a short word make it dissimilar to Jaro-Winkler: `rnu`. A wrong letter
        // is more likely than one too many: `rum` is `run`, not `rm`.
        let is_slip = word.len() > 2 && strsim::osa_distance(&word, &lower) == 1;
        let score = strsim::jaro_winkler(&word, &lower);
        let score = match is_slip {
            true if word.len() == lower.len() => score.max(0.95),
            true => score.max(0.9),
            false => score,
        };
        (score, other)
    });
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score >= 0.8)
        .map(|(_, word)| word)
}

/// Converts `maxIterations` and `max_iterations` to `max-iterations`.
pub(crate) fn kebab_case(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 2);
    let mut after_lowercase = false;
    for c in name.chars() {
        if c.is_uppercase() && after_lowercase {
            kebab.push('-');
        }
        after_lowercase = c.is_lowercase() || c.is_ascii_digit();
        kebab.extend(if c == '_' { '-' } else { c }.to_lowercase());
    }
    kebab
}

/// Converts `max-iterations` to `maxIterations`.
pub(crate) fn camel_case(kebab: &str) -> String {
    let mut words = kebab.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let (head, tail) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        camel + &head.to_uppercase() + tail
    })
}

/// Returns the syntax of the arguments for `ralph set`: `max-cost=USD, …; 0 means no limit`.
pub(crate) fn limit_syntax() -> String {
    let keys = table().iter();
    let limits: Vec<String> = keys
        .filter(|key| Limit::from_key(&key.name).is_some())
        .map(|key| format!("{}={}", key.name, key.value_name.as_deref().unwrap_or("N")))
        .collect();
    let (last, others) = limits.split_last().expect("there are limits");
    format!("{} or {last}; 0 means no limit", others.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_that_users_can_set_is_a_setting() {
        for key in crate::engine::limits::LIMITS
            .iter()
            .filter_map(|row| row.key)
        {
            assert!(table().iter().any(|setting| setting.name == key), "{key}");
        }
    }

    #[test]
    fn a_name_can_be_spelled_in_several_ways() {
        for spelled in [
            "maxIterations",
            "max_iterations",
            "max-iterations",
            "MaxIterations",
            "MAX_ITERATIONS",
        ] {
            assert_eq!(kebab_case(spelled), "max-iterations");
        }
        assert_eq!(camel_case("max-iterations"), "maxIterations");
        assert_eq!(camel_case("scm"), "scm");
    }

    #[test]
    fn only_a_similar_word_is_suggested() {
        let known = || ["claude", "codex", "gemini"].into_iter();
        assert_eq!(nearest("cluade", known()), Some("claude"));
        assert_eq!(nearest("Codx", known()), Some("codex"));
        assert_eq!(nearest("zebra", known()), None);
        let short = || ["rm", "run", "say"].into_iter();
        assert_eq!(nearest("rnu", short()), Some("run"));
        assert_eq!(nearest("rum", short()), Some("run"));
        assert_eq!(nearest("xy", short()), None);
    }

    #[test]
    fn a_setting_with_a_program_its_arguments_or_its_environment_needs_trust() {
        fn check(keys: &[SettingKey], is_guarded: bool) {
            for key in keys {
                let is_guarded = is_guarded || key.trust == ["*"];
                let runs = matches!(
                    key.kind,
                    SettingKind::Command | SettingKind::Flags | SettingKind::Variables
                );
                assert!(is_guarded || !runs, "{}", key.name);
                check(&key.children, is_guarded);
            }
        }
        check(table(), false);
        assert!(key("approve").needs_trust("all") && !key("approve").needs_trust("edits"));
        let name = &key("agent").children[0];
        assert!(name.needs_trust("claude, script:evil") && !name.needs_trust("claude,codex"));
        assert!(key("model").needs_trust("--yolo") && !key("model").needs_trust("opus"));
        assert!(!key("prompt").needs_trust("anything"));
    }

    #[test]
    fn no_two_settings_share_a_name() {
        fn check(keys: &[SettingKey]) {
            for key in keys {
                let names = std::iter::once(&key.name).chain(&key.aliases);
                for name in names {
                    let owners = keys.iter().filter(|other| other.has_name(name)).count();
                    assert_eq!(owners, 1, "{name}");
                }
                assert!(
                    key.help.ends_with(|c: char| c != '.'),
                    "{}: no full stop",
                    key.name
                );
                check(&key.children);
            }
        }
        check(table());
    }
}
