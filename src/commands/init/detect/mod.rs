//! Detects a project's checks from the files in its top directory.

mod node;
mod python;
mod recipes;

use crate::engine::ProcessExit;
use crate::os::{program, regular_file};
use crate::process::probe::{ProbeResult, run_probes};
use std::path::Path;
use std::time::Duration;

/// The checks that one project file implies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DetectedChecks {
    pub(crate) file: String,
    pub(crate) checks: Vec<String>,
}

/// Detects the checks in a directory.
pub(crate) fn detect(path: &Path) -> Vec<DetectedChecks> {
    let project = ProjectDir { path };
    let all = [
        cargo(&project),
        node::detect(&project),
        python::detect(&project),
        go(&project),
        maven(&project),
        gradle(&project),
    ];
    all.into_iter()
        .chain([recipes::make(&project), recipes::just(&project)])
        .flatten()
        .collect()
}

/// The directory to inspect.
struct ProjectDir<'a> {
    path: &'a Path,
}

/// The maximum number of bytes to read from a file.
const READ_MAX: u64 = 1 << 20;

impl ProjectDir<'_> {
    fn has(&self, name: &str) -> bool {
        self.path.join(name).is_file()
    }

    fn has_dir(&self, name: &str) -> bool {
        self.path.join(name).is_dir()
    }

    /// Returns the first name in `names` that exists as a file. `None` if none does.
    fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// Returns the text of a file. Empty if it cannot be read.
    fn read(&self, name: &str) -> String {
        let bytes =
            regular_file::read(&self.path.join(name), READ_MAX, true).map(|(bytes, _)| bytes);
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }
}

fn detected(file: &str, checks: &[&str]) -> DetectedChecks {
    DetectedChecks {
        file: file.to_owned(),
        checks: checks.iter().map(|check| (*check).to_owned()).collect(),
    }
}

fn cargo(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    let file = project.first(&["Cargo.toml"])?;
    let lints = [
        ("clippy", "cargo clippy -- -D warnings"),
        ("fmt", "cargo fmt --check"),
    ];
    let mut checks = vec!["cargo test"];
    checks.extend(
        lints
            .iter()
            .filter(|(subcommand, _)| cargo_has(subcommand))
            .map(|(_, check)| *check),
    );
    Some(detected(file, &checks))
}

/// Returns whether a cargo subcommand is installed. Runs the subcommand, because rustup's launcher
/// may exist without it. Does not run it in the project, where a `rust-toolchain` file could make
/// the launcher download another toolchain.
fn cargo_has(subcommand: &str) -> bool {
    let command = ["cargo", subcommand, "--version"]
        .map(str::to_owned)
        .to_vec();
    let results = program::find("cargo", Path::new("/"))
        .map(|_| run_probes(&[command], Path::new("/"), Duration::from_secs(5)));
    let result = results
        .and_then(Result::ok)
        .and_then(|mut results| results.pop());
    matches!(
        result,
        Some(ProbeResult::Exited(ProcessExit { code: Some(0), .. }, _))
    )
}

fn go(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    Some(detected(
        project.first(&["go.mod"])?,
        &["go test ./...", "go vet ./..."],
    ))
}

fn maven(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    let program = if project.has("mvnw") { "./mvnw" } else { "mvn" };
    Some(detected(
        project.first(&["pom.xml"])?,
        &[&format!("{program} -q verify")],
    ))
}

fn gradle(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    let files = [
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
    ];
    let program = if project.has("gradlew") {
        "./gradlew"
    } else {
        "gradle"
    };
    Some(detected(
        project.first(&files)?,
        &[&format!("{program} check")],
    ))
}

#[cfg(test)]
mod tests;
