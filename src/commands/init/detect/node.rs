//! Which checks a `package.json` has, and who runs them.

use super::{Found, Place};
use serde_json::Value;

/// Scripts that check something.
const SCRIPTS: [&str; 5] = ["test", "lint", "typecheck", "type-check", "build"];

/// Lock files, and who writes them.
const LOCKS: [(&str, &str); 5] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
];

pub(crate) fn look(place: &Place<'_>) -> Option<Found> {
    let file = place.first(&["package.json"])?;
    let package: Value = serde_json::from_str(&place.read(file)).unwrap_or_default();
    let manager = manager(place, &package);
    let has = |script: &&str| {
        let text = package["scripts"][*script].as_str().unwrap_or_default();
        // What `npm init` writes is red by design.
        !text.trim().is_empty() && !text.contains("no test specified")
    };
    let checks = SCRIPTS
        .into_iter()
        .filter(has)
        .map(|script| match (manager, script) {
            ("npm" | "pnpm" | "yarn", "test") => format!("{manager} test"),
            // `bun test` would be bun's own runner.
            _ => format!("{manager} run {script}"),
        });
    Some(Found {
        file: file.to_owned(),
        checks: checks.collect(),
    })
}

fn manager(place: &Place<'_>, package: &Value) -> &'static str {
    let named = package["packageManager"].as_str().unwrap_or_default();
    let named = named.split('@').next().unwrap_or_default();
    let by_name = LOCKS.iter().find(|(_, manager)| *manager == named);
    let found = by_name.or_else(|| LOCKS.iter().find(|(lock, _)| place.has(lock)));
    found.map_or("npm", |(_, manager)| manager)
}
