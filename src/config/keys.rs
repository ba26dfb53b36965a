//! The table of settings: which there are, how each is written, and what holds where nobody says otherwise.

use serde::Deserialize;
use serde_json::Value;
use std::sync::OnceLock;

/// One row of the table. See the head of `presets/settings.toml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Key {
    pub name: String,
    #[serde(default)]
    pub axis: String,
    pub kind: Kind,
    #[serde(default)]
    pub choices: Vec<String>,
    pub help: String,
    pub flag_help: Option<String>,
    pub flag: Option<String>,
    pub no_flag: Option<String>,
    pub short: Option<char>,
    pub shown: Option<String>,
    #[serde(default)]
    pub aliases: Vec<String>,
    #[serde(default)]
    pub flag_aliases: Vec<String>,
    pub default: Option<Value>,
    pub otherwise: Option<String>,
    pub bare: Option<String>,
    #[serde(default)]
    pub replaces: Vec<String>,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub inner: Vec<Key>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Any text.
    Text,
    /// A list of them.
    Texts,
    /// A path, from the workspace.
    Path,
    /// Yes or no.
    Switch,
    /// Yes, no, or the name of a branch.
    Branch,
    /// A whole number; 0 or nothing is none.
    Count,
    /// An exit code; 0 or nothing is none.
    Code,
    /// Dollars; 0 or nothing is none.
    Amount,
    /// A time; 0 or nothing is none.
    Duration,
    /// Bytes.
    Size,
    /// Two durations.
    Backoff,
    /// One of a few words, in any case.
    Choice,
    /// Words of a command: a list, or a text that is split as a shell would.
    Command,
    /// Variables of an environment.
    Variables,
    /// The inner keys.
    Object,
    /// A list of objects.
    Objects,
    /// Objects by names of the user's choice.
    Map,
}

impl Key {
    /// Its flag, if it has one.
    pub fn flag(&self) -> Option<&str> {
        match self.flag.as_deref() {
            Some("") => None,
            other => Some(other.unwrap_or(&self.name)),
        }
    }

    /// Whether it holds several values, so that its flag may be given several times.
    pub fn is_list(&self) -> bool {
        match self.kind {
            Kind::Texts | Kind::Objects => true,
            Kind::Object => self.bare_key().is_some_and(Self::is_list),
            _ => false,
        }
    }

    /// The inner key that a value without the object around it stands for.
    pub fn bare_key(&self) -> Option<&Self> {
        let name = self.bare.as_deref()?;
        Some(find(&self.inner, name).expect("the table names an inner key"))
    }

    /// Whether a text may be left out: one that has a default, or without which nothing makes sense, may not.
    pub fn may_be_nothing(&self) -> bool {
        self.default.is_none() && !self.required
    }

    /// Its name as files spell it.
    pub fn camel(&self) -> String {
        camel(&self.name)
    }

    /// Its default in words, for people; none of a switch.
    pub fn default_words(&self) -> Option<String> {
        match (&self.otherwise, &self.default) {
            (Some(words), _) => Some(words.clone()),
            (None, Some(Value::String(text))) => Some(text.clone()),
            (None, Some(Value::Number(number))) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Whether a name, in any spelling, is this key's.
    fn is_called(&self, kebab: &str) -> bool {
        self.name == kebab
            || self.aliases.iter().any(|alias| alias == kebab)
            || self.flag.as_deref() == Some(kebab) && self.kind != Kind::Switch
    }
}

#[derive(Deserialize)]
struct Table {
    key: Vec<Key>,
}

/// All settings, in the order of the help.
pub fn table() -> &'static [Key] {
    static TABLE: OnceLock<Vec<Key>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = include_str!("../../presets/settings.toml");
        toml::from_str::<Table>(text)
            .expect("the table of settings is right")
            .key
    })
}

/// The key that a name means, in any spelling.
pub fn find<'a>(keys: &'a [Key], name: &str) -> Option<&'a Key> {
    let kebab = kebab(name);
    keys.iter().find(|key| key.is_called(&kebab))
}

/// The setting of this name, which must exist.
pub fn key(name: &str) -> &'static Key {
    find(table(), name).expect("the table has every key that is asked for")
}

/// The word that was probably meant.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|other| {
        (
            strsim::jaro_winkler(&word.to_lowercase(), &other.to_lowercase()),
            other,
        )
    });
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score >= 0.8)
        .map(|(_, word)| word)
}

/// `maxIterations` and `max_iterations` as `max-iterations`.
pub fn kebab(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 2);
    let mut after_small = false;
    for c in name.chars() {
        if c.is_uppercase() && after_small {
            kebab.push('-');
        }
        after_small = c.is_lowercase() || c.is_ascii_digit();
        kebab.extend(if c == '_' { '-' } else { c }.to_lowercase());
    }
    kebab
}

/// `max-iterations` as `maxIterations`.
pub fn camel(kebab: &str) -> String {
    let mut words = kebab.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let (head, tail) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        camel + &head.to_uppercase() + tail
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_spelled_in_three_ways() {
        for spelled in [
            "maxIterations",
            "max_iterations",
            "max-iterations",
            "MaxIterations",
            "MAX_ITERATIONS",
        ] {
            assert_eq!(kebab(spelled), "max-iterations");
        }
        assert_eq!(camel("max-iterations"), "maxIterations");
        assert_eq!(camel("scm"), "scm");
    }

    #[test]
    fn the_nearest_word_is_near() {
        let known = || ["claude", "codex", "gemini"].into_iter();
        assert_eq!(nearest("cluade", known()), Some("claude"));
        assert_eq!(nearest("Codx", known()), Some("codex"));
        assert_eq!(nearest("zebra", known()), None);
    }

    #[test]
    fn no_two_settings_share_a_name() {
        fn check(keys: &[Key]) {
            for key in keys {
                let names = std::iter::once(&key.name).chain(&key.aliases);
                for name in names {
                    let owners = keys.iter().filter(|other| other.is_called(name)).count();
                    assert_eq!(owners, 1, "{name}");
                }
                assert!(
                    key.help.ends_with(|c: char| c != '.'),
                    "{}: no full stop",
                    key.name
                );
                check(&key.inner);
            }
        }
        check(table());
    }
}
