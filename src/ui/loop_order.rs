//! In which order loops are listed: each below the one whose agent started it.

use std::collections::BTreeMap;

/// Every loop once, by its place, with how many others stand above it as its elders. A loop is its name, and the name of
/// the one whose agent started it.
pub fn in_order(loops: &[(&str, Option<&str>)]) -> Vec<(usize, usize)> {
    let places: BTreeMap<&str, usize> = loops
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (*name, at))
        .collect();
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, (_, parent)) in loops.iter().enumerate().rev() {
        let elder = parent
            .and_then(|parent| places.get(parent))
            .copied()
            .filter(|elder| *elder != at);
        children.entry(elder).or_default().push(at);
    }
    let mut below = |of: Option<usize>| children.remove(&of).unwrap_or_default();
    let (mut listed, mut seen) = (Vec::new(), vec![false; loops.len()]);
    let mut next: Vec<(usize, usize)> = below(None).into_iter().map(|at| (0, at)).collect();
    let mut rest = 0..loops.len();
    // Names may go round in a circle, as that of an elder can have been used again: such loops come last.
    while let Some((depth, at)) = next
        .pop()
        .or_else(|| rest.find(|at| !seen[*at]).map(|at| (0, at)))
    {
        if !std::mem::replace(&mut seen[at], true) {
            listed.push((depth, at));
            next.extend(below(Some(at)).into_iter().map(|child| (depth + 1, child)));
        }
    }
    listed
}

/// A name as it stands below its elders.
pub fn indented(name: &str, depth: usize) -> String {
    if depth == 0 {
        name.to_owned()
    } else {
        format!("{}└ {name}", "  ".repeat(depth - 1))
    }
}
