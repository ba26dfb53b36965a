//! In which order loops are listed: each below the one whose agent started it.

use crate::store::View;

/// Every loop once, with how many others stand above it as its elders.
pub fn in_order(loops: &[(View, bool)]) -> Vec<(usize, &(View, bool))> {
    let name = |at: usize| loops[at].0.header.name.as_str();
    let parent = |at: usize| loops[at].0.header.parent.as_deref();
    let children = |of: Option<usize>| {
        (0..loops.len()).rev().filter(move |at| match of {
            Some(elder) => parent(*at) == Some(name(elder)) && *at != elder,
            None => {
                parent(*at).is_none_or(|parent| !loops.iter().any(|(view, _)| view.header.name == parent))
            }
        })
    };
    let (mut listed, mut seen) = (Vec::new(), vec![false; loops.len()]);
    let mut next: Vec<(usize, usize)> = children(None).map(|at| (0, at)).collect();
    let mut rest = 0..loops.len();
    // Names may go round in a circle, as that of an elder can have been used again: such loops come last.
    while let Some((depth, at)) = next.pop().or_else(|| rest.find(|at| !seen[*at]).map(|at| (0, at))) {
        if !std::mem::replace(&mut seen[at], true) {
            listed.push((depth, &loops[at]));
            next.extend(children(Some(at)).map(|child| (depth + 1, child)));
        }
    }
    listed
}

/// A name as it stands below its elders.
pub fn indented(name: &str, depth: usize) -> String {
    if depth == 0 { name.to_owned() } else { format!("{}└ {name}", "  ".repeat(depth - 1)) }
}
