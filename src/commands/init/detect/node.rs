//! Detects the check scripts in `package.json` and the package manager that runs them.

use super::{DetectedChecks, ProjectDir};
use serde_json::Value;

/// The names of scripts that are checks.
const SCRIPTS: [&str; 5] = ["test", "lint", "typecheck", "type-check", "build"];

/// Lock files and the package managers that write them.
const LOCKS: [(&str, &str); 5] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
];

pub(super) fn detect(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    let file = project.first(&["package.json"])?;
    let package: Value = serde_json::from_str(&project.read(file)).unwrap_or_default();
    let manager = manager(project, &package);
    let has = |script: &&str| {
        let text = package["scripts"][*script].as_str().unwrap_or_default();
        // The placeholder that `npm init` writes always fails.
        !text.trim().is_empty() && !text.contains("no test specified")
    };
    let checks = SCRIPTS
        .into_iter()
        .filter(has)
        .map(|script| match (manager, script) {
            ("npm" | "pnpm" | "yarn", "test") => format!("{manager} test"),
            // `bun test` would run bun's own test runner instead of the script.
            _ => format!("{manager} run {script}"),
        });
    Some(DetectedChecks {
        file: file.to_owned(),
        checks: checks.collect(),
    })
}

fn manager(project: &ProjectDir<'_>, package: &Value) -> &'static str {
    let named = package["packageManager"].as_str().unwrap_or_default();
    let named = named.split('@').next().unwrap_or_default();
    let by_name = LOCKS.iter().find(|(_, manager)| *manager == named);
    let found = by_name.or_else(|| LOCKS.iter().find(|(lock, _)| project.has(lock)));
    found.map_or("npm", |(_, manager)| manager)
}
