//! Detects a Python project's checks and the tool that runs them.

use super::{DetectedChecks, ProjectDir};

/// Files that identify a Python project.
const PROJECT_FILES: [&str; 8] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "pytest.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "Pipfile",
];

/// Lock files, and the command prefix that runs a program in the environment of each.
const RUNNERS: [(&str, &str); 3] = [
    ("uv.lock", "uv run "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
];

pub(super) fn detect(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    let file = project.first(&PROJECT_FILES)?;
    let mentions = |text: &str| {
        PROJECT_FILES
            .iter()
            .any(|file| project.read(file).contains(text))
    };
    let tests = project.has("pytest.ini")
        || project.has_dir("tests")
        || project.has_dir("test")
        || mentions("pytest");
    let ruff = project.first(&["ruff.toml", ".ruff.toml"]).is_some() || mentions("[tool.ruff");
    let mypy = project.first(&["mypy.ini", ".mypy.ini"]).is_some()
        || mentions("[tool.mypy")
        || mentions("[mypy");
    let runner = RUNNERS
        .iter()
        .find(|(lock, _)| project.has(lock))
        .map_or("", |(_, prefix)| prefix);
    let checks = [(tests, "pytest"), (ruff, "ruff check ."), (mypy, "mypy .")];
    let checks = checks
        .iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, check)| format!("{runner}{check}"));
    Some(DetectedChecks {
        file: file.to_owned(),
        checks: checks.collect(),
    })
}
