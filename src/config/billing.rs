//! Detects the payer for an agent's work, its own login or an API key, and the keys to withhold
//! from the agent.

use super::agents::AgentPreset;
use std::path::{Path, PathBuf};

/// The payer for an agent's work, and the keys to withhold from the agent.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Billing {
    /// The login or key that pays, as text for people; `None` if unknown.
    pub(crate) payer: Option<String>,
    /// Environment variables to withhold from the agent, because their keys would be charged
    /// instead of its own login.
    pub(crate) held_back: Vec<String>,
}

/// The environment in which to look for logins and keys.
struct BillingEnv<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    home: Option<&'a Path>,
    /// Whether a key may be charged even if the agent has a login.
    allow_keys: bool,
}

/// Detects the payer for an agent's work, from this process's environment and home directory.
/// `allow_keys` permits charging a key even if the agent has a login.
pub(crate) fn detect_billing(preset: &AgentPreset, allow_keys: bool) -> Billing {
    let home = std::env::home_dir();
    billing(
        preset,
        &BillingEnv {
            variable: &|name| std::env::var(name).ok(),
            home: home.as_deref(),
            allow_keys,
        },
    )
}

fn billing(preset: &AgentPreset, env: &BillingEnv<'_>) -> Billing {
    let is_set = |name: &&String| (env.variable)(name).is_some_and(|value| !value.is_empty());
    let key = preset.api_key_variables.iter().find(is_set);
    let by_variable = preset
        .login_variables
        .iter()
        .find(is_set)
        .map(|name| format!("its own login ({name})"));
    let login = by_variable.or_else(|| {
        let file = preset
            .login_files
            .iter()
            .find(|file| expand_path(file, env).is_some_and(|path| path.is_file()));
        file.map(|file| format!("its own login ({file})"))
    });
    match (login, key) {
        (Some(login), Some(_)) if !env.allow_keys => {
            let held_back = preset
                .api_key_variables
                .iter()
                .filter(is_set)
                .cloned()
                .collect();
            Billing {
                payer: Some(login),
                held_back,
            }
        }
        (_, Some(key)) => Billing {
            payer: Some(format!("the key in {key}")),
            held_back: Vec::new(),
        },
        (payer, None) => Billing {
            payer,
            held_back: Vec::new(),
        },
    }
}

/// Expands `~/.claude/x` and `$CLAUDE_CONFIG_DIR/x`; `None` if the variable is not set.
fn expand_path(path: &str, env: &BillingEnv<'_>) -> Option<PathBuf> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let dir = match first.strip_prefix('$') {
        Some(name) => PathBuf::from((env.variable)(name).filter(|value| !value.is_empty())?),
        None => env.home?.to_owned(),
    };
    Some(if rest.is_empty() { dir } else { dir.join(rest) })
}

/// Directories of the home directory that variables may replace. Not every program follows these.
const XDG_DIRS: [(&str, &str); 4] = [
    ("~/.config/", "$XDG_CONFIG_HOME/"),
    ("~/.local/share/", "$XDG_DATA_HOME/"),
    ("~/.local/state/", "$XDG_STATE_HOME/"),
    ("~/.cache/", "$XDG_CACHE_HOME/"),
];

/// Returns the paths outside the workspace that the agent writes for itself, with this process's
/// variables and home directory. Directories end with a slash.
pub(crate) fn own_paths(preset: &AgentPreset) -> Vec<String> {
    let expand_text = |path: String| {
        let text = expand(&path)?.into_os_string().into_string().ok()?;
        // A slash at the end marks a directory.
        let slash = path.ends_with('/') && !text.ends_with('/');
        Some(text + if slash { "/" } else { "" })
    };
    let paths = preset.own_paths.iter().flat_map(|path| {
        let moved = XDG_DIRS.iter().filter_map(|(usual, variable)| {
            let rest = path.strip_prefix(usual)?;
            Some(format!("{variable}{rest}"))
        });
        moved.chain([path.clone()]).collect::<Vec<_>>()
    });
    paths.filter_map(expand_text).collect()
}

/// Expands a path with this process's variables and home directory; `None` if the variable is not
/// set, or if the path is not absolute.
pub(super) fn expand(path: &str) -> Option<PathBuf> {
    let home = std::env::home_dir();
    let env = BillingEnv {
        variable: &|name| std::env::var(name).ok(),
        home: home.as_deref(),
        allow_keys: false,
    };
    expand_path(path, &env).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn billing_with(variables: &[(&str, &str)], login: bool, allow_keys: bool) -> Billing {
        let home = tempfile::tempdir().unwrap();
        let preset = AgentPreset {
            api_key_variables: vec!["THE_KEY".into(), "OTHER_KEY".into()],
            login_variables: vec!["THE_TOKEN".into()],
            login_files: vec!["$THE_DIR/login".into(), "~/.the/login".into()],
            ..AgentPreset::default()
        };
        if login {
            std::fs::create_dir(home.path().join(".the")).unwrap();
            std::fs::write(home.path().join(".the/login"), "x").unwrap();
        }
        let find = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        billing(
            &preset,
            &BillingEnv {
                variable: &find,
                home: Some(home.path()),
                allow_keys,
            },
        )
    }

    #[test]
    fn a_login_pays_and_keys_are_held_back() {
        let key = [("OTHER_KEY", "k"), ("THE_KEY", "")];
        for (variables, login, allow, payer, held_back) in [
            (&[][..], false, false, None, &[][..]),
            (&[], true, false, Some("its own login (~/.the/login)"), &[]),
            (&key, false, false, Some("the key in OTHER_KEY"), &[]),
            (
                &key,
                true,
                false,
                Some("its own login (~/.the/login)"),
                &["OTHER_KEY"],
            ),
            (&key, true, true, Some("the key in OTHER_KEY"), &[]),
            (
                &[("THE_TOKEN", "t"), ("THE_KEY", "k")],
                false,
                false,
                Some("its own login (THE_TOKEN)"),
                &["THE_KEY"],
            ),
        ] {
            let billing = billing_with(variables, login, allow);
            assert_eq!(billing.payer.as_deref(), payer);
            assert_eq!(billing.held_back, held_back);
        }
    }
}
