//! Detects a Python project's checks and the tool that runs them.

use super::ProjectDir;
use crate::os::program;

/// Lock files, and the command prefix that runs a program in the environment of each.
const RUNNERS: [(&str, &str); 3] = [
    ("uv.lock", "uv run "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
];

/// Virtual environments in the project.
const ENVIRONMENTS: [&str; 3] = [".venv/bin/", "venv/bin/", "env/bin/"];

/// Returns the checks; `files` are those that identify a Python project.
pub(super) fn checks(project: &ProjectDir<'_>, files: &[String]) -> Vec<String> {
    let mentions = |text: &str| files.iter().any(|file| project.read(file).contains(text));
    let has_any = |names: &[&str]| names.iter().any(|name| project.has(name));
    let installed = ENVIRONMENTS
        .iter()
        .any(|bin| project.is_executable(&format!("{bin}pytest")));
    let pytest = installed || has_any(&["pytest.ini", "conftest.py"]) || mentions("pytest");
    let ruff = has_any(&["ruff.toml", ".ruff.toml"]) || mentions("[tool.ruff");
    let mypy = has_any(&["mypy.ini", ".mypy.ini"]) || mentions("[tool.mypy") || mentions("[mypy");
    let tox = project.has("tox.toml")
        || mentions("[tox]")
        || mentions("[testenv]")
        || mentions("[tool.tox");
    let run = |program: &str| in_environment(project, program);

    let mut checks = Vec::new();
    if pytest && run("pytest").is_some() {
        checks.extend(run("pytest"));
    } else if tox {
        // The environment of the Python that is installed: the others may not be.
        checks.push(format!("{} -e py", run("tox").unwrap_or("tox".into())));
    } else if project.has("noxfile.py") {
        checks.push(run("nox").unwrap_or("nox".into()));
    } else if project.has("manage.py") && !pytest {
        let python = run("python").unwrap_or_else(|| system_python().to_owned());
        checks.push(format!("{python} manage.py test"));
    } else if pytest || has_any(&["tests/", "test/"]) {
        checks.push(run("pytest").unwrap_or("pytest".into()));
    }
    for (wanted, program, args) in [(ruff, "ruff", "check ."), (mypy, "mypy", ".")] {
        if wanted {
            checks.push(format!("{} {args}", run(program).unwrap_or(program.into())));
        }
    }
    checks
}

/// Returns the command that runs a program in the project's own environment; `None` if the project
/// has none, or the program is not in it.
fn in_environment(project: &ProjectDir<'_>, name: &str) -> Option<String> {
    let runner = RUNNERS.iter().find(|(lock, _)| project.has(lock));
    let environment = || {
        let mut paths = ENVIRONMENTS.iter().map(|bin| format!("{bin}{name}"));
        paths.find(|path| project.is_executable(path))
    };
    runner
        .map(|(_, prefix)| format!("{prefix}{name}"))
        .or_else(environment)
}

/// Returns the name of the system's Python: many systems have only `python3`.
fn system_python() -> &'static str {
    match program::find("python", std::path::Path::new("/")) {
        Some(_) => "python",
        None => "python3",
    }
}
