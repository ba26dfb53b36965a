//! Detects check recipes with conventional names in a makefile or a justfile.

use super::{DetectedChecks, ProjectDir};

const NAMES: [&str; 3] = ["test", "check", "lint"];

pub(crate) fn make(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    recipes(
        project,
        project.first(&["GNUmakefile", "makefile", "Makefile"])?,
        "make",
        |head| head.split_whitespace().collect(),
    )
}

pub(crate) fn just(project: &ProjectDir<'_>) -> Option<DetectedChecks> {
    recipes(
        project,
        project.first(&["justfile", "Justfile", ".justfile"])?,
        "just",
        |head| {
            // Parameters follow the name. A recipe with a required parameter cannot run as a check.
            let mut parts = head.trim_start_matches('@').split_whitespace();
            let name = parts.next();
            name.filter(|_| parts.all(|parameter| parameter.starts_with('*')))
                .into_iter()
                .collect()
        },
    )
}

fn recipes(
    project: &ProjectDir<'_>,
    file: &str,
    program: &str,
    names: fn(&str) -> Vec<&str>,
) -> Option<DetectedChecks> {
    let text = project.read(file);
    // A head is the text before the first colon of a line that is not indented, not a comment and
    // not an assignment.
    let heads = text
        .lines()
        .filter(|line| !line.starts_with([' ', '\t', '#']))
        .filter_map(|line| {
            let (head, rest) = line.split_once(':')?;
            (!rest.trim_start_matches(':').starts_with('=') && !head.contains('=')).then_some(head)
        });
    let known: Vec<&str> = heads.flat_map(names).collect();
    let checks: Vec<String> = NAMES
        .iter()
        .filter(|name| known.contains(*name))
        .map(|name| format!("{program} {name}"))
        .collect();
    // Unlike other project files, a makefile or justfile without checks says nothing about the
    // project.
    (!checks.is_empty()).then(|| DetectedChecks {
        file: file.to_owned(),
        checks,
    })
}
