//! Who pays for an agent's work: its own login, or a key in the environment? And which variables it must not see.

use super::agents::Preset;
use std::path::{Path, PathBuf};

/// Who pays, and what the agent does not see.
#[derive(Debug, Default, PartialEq)]
pub struct Bill {
    /// In words; none where nobody knows.
    pub payer: Option<String>,
    /// Keys that would pay instead of its own login.
    pub held_back: Vec<String>,
}

/// What is looked at.
struct Purse<'a> {
    /// A variable's value.
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The user's home.
    home: Option<&'a Path>,
    /// Whether keys may pay where a login could.
    allow_keys: bool,
}

/// Who pays for the work of this agent in this process's environment.
pub fn bill_here(preset: &Preset, allow_keys: bool) -> Bill {
    let home = std::env::home_dir();
    bill(
        preset,
        &Purse {
            variable: &|name| std::env::var(name).ok(),
            home: home.as_deref(),
            allow_keys,
        },
    )
}

/// Who pays for the work of this agent.
fn bill(preset: &Preset, purse: &Purse<'_>) -> Bill {
    let is_set = |name: &&String| (purse.variable)(name).is_some_and(|value| !value.is_empty());
    let key = preset.keys.iter().find(is_set);
    let by_variable = preset
        .login_variables
        .iter()
        .find(is_set)
        .map(|name| format!("its own login ({name})"));
    let login = by_variable.or_else(|| {
        let file = preset
            .login_files
            .iter()
            .find(|file| path(file, purse).is_some_and(|path| path.is_file()));
        file.map(|file| format!("its own login ({file})"))
    });
    match (login, key) {
        (Some(login), Some(_)) if !purse.allow_keys => {
            let held_back = preset.keys.iter().filter(is_set).cloned().collect();
            Bill {
                payer: Some(login),
                held_back,
            }
        }
        (_, Some(key)) => Bill {
            payer: Some(format!("the key in {key}")),
            held_back: Vec::new(),
        },
        (payer, None) => Bill {
            payer,
            held_back: Vec::new(),
        },
    }
}

/// `~/.claude/x`, or `$CLAUDE_CONFIG_DIR/x` where that is set.
fn path(file: &str, purse: &Purse<'_>) -> Option<PathBuf> {
    let (first, rest) = file.split_once('/')?;
    match first.strip_prefix('$') {
        Some(name) => Some(Path::new(&(purse.variable)(name)?).join(rest)),
        None => Some(purse.home?.join(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn billed(variables: &[(&str, &str)], login: bool, allow_keys: bool) -> Bill {
        let home = tempfile::tempdir().unwrap();
        let preset = Preset {
            keys: vec!["THE_KEY".into(), "OTHER_KEY".into()],
            login_variables: vec!["THE_TOKEN".into()],
            login_files: vec!["$THE_DIR/login".into(), "~/.the/login".into()],
            ..Preset::default()
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
        bill(
            &preset,
            &Purse {
                variable: &find,
                home: Some(home.path()),
                allow_keys,
            },
        )
    }

    #[test]
    fn a_login_pays_and_no_key_in_its_place() {
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
            let bill = billed(variables, login, allow);
            assert_eq!(bill.payer.as_deref(), payer);
            assert_eq!(bill.held_back, held_back);
        }
    }
}
