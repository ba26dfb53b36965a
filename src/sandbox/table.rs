//! The table of paths and variables that a sandbox hides, shows or replaces: `presets/sandbox.toml`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SandboxTable {
    pub(super) temp: Vec<String>,
    pub(super) temp_variables: Vec<String>,
    pub(super) caches: BTreeMap<String, String>,
    pub(super) unset: Vec<String>,
    pub(super) hide: Vec<String>,
    pub(super) show: Vec<String>,
    pub(super) devices: Vec<String>,
}

pub(super) fn table() -> &'static SandboxTable {
    static TABLE: OnceLock<SandboxTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = include_str!("../../presets/sandbox.toml");
        toml::from_str(text).expect("presets/sandbox.toml is valid")
    })
}

/// Expands `~/x` and `$VARIABLE/x` with this process's home directory and variables; `None` if the
/// variable is not set, or if the path is not absolute.
pub(super) fn expand(path: &str) -> Option<PathBuf> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let dir = match first {
        "" => PathBuf::from("/"),
        "~" => std::env::home_dir()?,
        _ => PathBuf::from(std::env::var_os(first.strip_prefix('$')?)?),
    };
    Some(dir.join(rest)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_the_table_can_be_expanded_or_depends_on_a_variable() {
        let table = table();
        for path in [&table.temp, &table.hide, &table.show, &table.devices]
            .into_iter()
            .flatten()
        {
            let first = path.chars().next();
            assert!(matches!(first, Some('~' | '/' | '$')), "{path}");
            assert!(!path.ends_with('/'), "{path}");
        }
    }
}
