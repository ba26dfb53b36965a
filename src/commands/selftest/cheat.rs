//! The table of cheats, read from `presets/cheats.toml`.

use serde::Deserialize;
use std::sync::OnceLock;

/// The functions that every cheat can use.
pub(super) const PREAMBLE: &str = include_str!("../../../presets/cheat.sh");

/// A way to turn checks green, or keep them green, without doing the work. The header of
/// `presets/cheats.toml` describes the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a column of the table"
)]
pub(super) struct Cheat {
    pub(super) class: String,
    pub(super) name: String,
    pub(super) when: String,
    pub(super) script: String,
    pub(super) stop: String,
    #[serde(default)]
    pub(super) limit: bool,
    #[serde(default)]
    pub(super) own: bool,
    #[serde(default)]
    pub(super) red: bool,
    #[serde(default)]
    pub(super) green: bool,
    #[serde(default)]
    pub(super) home: bool,
    #[serde(default)]
    pub(super) commits: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheatRows {
    cheat: Vec<Cheat>,
}

/// Returns all cheats, in the order in which they are played.
pub(super) fn table() -> &'static [Cheat] {
    static ROWS: OnceLock<CheatRows> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        toml::from_str(include_str!("../../../presets/cheats.toml"))
            .expect("the embedded table is valid")
    });
    &rows.cheat
}

/// Returns the classes of cheats, in the order of the table.
pub(super) fn classes() -> Vec<&'static str> {
    let mut classes: Vec<&str> = Vec::new();
    for cheat in table() {
        if !classes.contains(&cheat.class.as_str()) {
            classes.push(&cheat.class);
        }
    }
    classes
}
