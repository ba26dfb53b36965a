//! Which checks a Python project has, and through whom they are run.

use super::{Found, Place};

/// Files that make a directory a Python project.
const MARKS: [&str; 8] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "pytest.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "Pipfile",
];

/// Lock files, and the words that run a program in the environment that they describe.
const RUNNERS: [(&str, &str); 3] = [
    ("uv.lock", "uv run "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
];

pub(crate) fn look(place: &Place<'_>) -> Option<Found> {
    let file = place.first(&MARKS)?;
    let says = |word: &str| MARKS.iter().any(|mark| place.read(mark).contains(word));
    let tests = place.has("pytest.ini")
        || place.has_dir("tests")
        || place.has_dir("test")
        || says("pytest");
    let ruff = place.first(&["ruff.toml", ".ruff.toml"]).is_some() || says("[tool.ruff");
    let mypy =
        place.first(&["mypy.ini", ".mypy.ini"]).is_some() || says("[tool.mypy") || says("[mypy");
    let runner = RUNNERS
        .iter()
        .find(|(lock, _)| place.has(lock))
        .map_or("", |(_, words)| words);
    let checks = [(tests, "pytest"), (ruff, "ruff check ."), (mypy, "mypy .")];
    let checks = checks
        .iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, check)| format!("{runner}{check}"));
    Some(Found {
        file: file.to_owned(),
        checks: checks.collect(),
    })
}
