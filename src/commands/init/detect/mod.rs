//! Which checks a directory asks for, by the files at its top.

mod node;
mod python;
mod recipes;

use crate::engine::Exit;
use crate::os::{program, regular};
use crate::process::probe::{Answer, ask};
use std::path::Path;
use std::time::Duration;

/// A file that speaks of checks, and which.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) file: String,
    pub(crate) checks: Vec<String>,
}

/// Everything that is found at the top of this directory.
pub(crate) fn detect(here: &Path) -> Vec<Found> {
    let place = Place { here };
    let all = [
        cargo(&place),
        node::look(&place),
        python::look(&place),
        go(&place),
        maven(&place),
        gradle(&place),
    ];
    all.into_iter()
        .chain([recipes::make(&place), recipes::just(&place)])
        .flatten()
        .collect()
}

/// A directory that is asked for its files.
struct Place<'a> {
    here: &'a Path,
}

/// No file of a project's own words is longer.
const READ_MAX: u64 = 1 << 20;

impl Place<'_> {
    fn has(&self, name: &str) -> bool {
        self.here.join(name).is_file()
    }

    fn has_dir(&self, name: &str) -> bool {
        self.here.join(name).is_dir()
    }

    /// The first of these files that is there.
    fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// What a file says; nothing if it cannot be read.
    fn read(&self, name: &str) -> String {
        let bytes = regular::read(&self.here.join(name), READ_MAX, true).map(|(bytes, _)| bytes);
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }
}

fn found(file: &str, checks: &[&str]) -> Found {
    Found {
        file: file.to_owned(),
        checks: checks.iter().map(|check| (*check).to_owned()).collect(),
    }
}

fn cargo(place: &Place<'_>) -> Option<Found> {
    let file = place.first(&["Cargo.toml"])?;
    let lints = [
        ("clippy", "cargo clippy -- -D warnings"),
        ("fmt", "cargo fmt --check"),
    ];
    let mut checks = vec!["cargo test"];
    checks.extend(
        lints
            .iter()
            .filter(|(part, _)| cargo_has(part))
            .map(|(_, check)| *check),
    );
    Some(found(file, &checks))
}

/// Whether a part of the tool chain is installed. Its launcher may be there without it, so it is asked, and
/// not from the project: a file there could make the launcher download another tool chain.
fn cargo_has(part: &str) -> bool {
    let words = ["cargo", part, "--version"].map(str::to_owned).to_vec();
    let answers = program::find("cargo", Path::new("/"))
        .map(|_| ask(&[words], Path::new("/"), Duration::from_secs(5)));
    let answer = answers
        .and_then(Result::ok)
        .and_then(|mut answers| answers.pop());
    matches!(answer, Some(Answer::Said(Exit { code: Some(0), .. }, _)))
}

fn go(place: &Place<'_>) -> Option<Found> {
    Some(found(
        place.first(&["go.mod"])?,
        &["go test ./...", "go vet ./..."],
    ))
}

fn maven(place: &Place<'_>) -> Option<Found> {
    let program = if place.has("mvnw") { "./mvnw" } else { "mvn" };
    Some(found(
        place.first(&["pom.xml"])?,
        &[&format!("{program} -q verify")],
    ))
}

fn gradle(place: &Place<'_>) -> Option<Found> {
    let files = [
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
    ];
    let program = if place.has("gradlew") {
        "./gradlew"
    } else {
        "gradle"
    };
    Some(found(place.first(&files)?, &[&format!("{program} check")]))
}

#[cfg(test)]
mod tests;
