//! Which checks a makefile or a justfile has: recipes with a name that everybody uses for one.

use super::{Found, Place};

const NAMES: [&str; 3] = ["test", "check", "lint"];

pub(crate) fn make(place: &Place<'_>) -> Option<Found> {
    recipes(
        place,
        place.first(&["GNUmakefile", "makefile", "Makefile"])?,
        "make",
        |head| head.split_whitespace().collect(),
    )
}

pub(crate) fn just(place: &Place<'_>) -> Option<Found> {
    recipes(
        place,
        place.first(&["justfile", "Justfile", ".justfile"])?,
        "just",
        |head| {
            // What follows the name are parameters; one without a default would be asked for.
            let mut words = head.trim_start_matches('@').split_whitespace();
            let name = words.next();
            name.filter(|_| words.all(|word| word.starts_with('*')))
                .into_iter()
                .collect()
        },
    )
}

fn recipes(
    place: &Place<'_>,
    file: &str,
    program: &str,
    names: fn(&str) -> Vec<&str>,
) -> Option<Found> {
    let text = place.read(file);
    // Before the first colon of a line that is neither indented nor an assignment.
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
    // Such a file may be about anything else.
    (!checks.is_empty()).then(|| Found {
        file: file.to_owned(),
        checks,
    })
}
