//! Orders loops for a list: each child loop below the loop whose agent started it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Orders `loops`, each a loop's name and its parent's name. Returns the depth and index of each
/// loop. Loops at depth 0 have no listed parent.
pub(super) fn in_order(loops: &[(&str, Option<&str>)]) -> Vec<(usize, usize)> {
    let indexes: BTreeMap<&str, usize> = loops
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (*name, at))
        .collect();
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, (_, parent)) in loops.iter().enumerate().rev() {
        let parent = parent
            .and_then(|parent| indexes.get(parent))
            .copied()
            .filter(|parent| *parent != at);
        children.entry(parent).or_default().push(at);
    }
    let mut children_of = |parent: Option<usize>| children.remove(&parent).unwrap_or_default();
    let (mut listed, mut seen) = (Vec::new(), vec![false; loops.len()]);
    let mut next: Vec<(usize, usize)> = children_of(None).into_iter().map(|at| (0, at)).collect();
    let mut rest = 0..loops.len();
    // Parents can form a cycle, because a name can be reused. Loops in a cycle come last.
    while let Some((depth, at)) = next
        .pop()
        .or_else(|| rest.find(|at| !seen[*at]).map(|at| (0, at)))
    {
        if !std::mem::replace(&mut seen[at], true) {
            listed.push((depth, at));
            next.extend(
                children_of(Some(at))
                    .into_iter()
                    .map(|child| (depth + 1, child)),
            );
        }
    }
    listed
}

/// Returns a key that sorts names as people read them: `b-2` comes before `b-10`.
pub(super) fn natural_key(name: &str) -> String {
    let mut key = String::with_capacity(name.len() + 20);
    let mut rest = name;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = &rest[start..];
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        key.push_str(&rest[..start]);
        let number = digits[..end].trim_start_matches('0');
        let _ = write!(key, "{number:0>20}");
        rest = &digits[end..];
    }
    key + rest
}

/// Indents a name according to its depth.
pub(super) fn indented(name: &str, depth: usize) -> String {
    if depth == 0 {
        name.to_owned()
    } else {
        format!("{}└ {name}", "  ".repeat(depth - 1))
    }
}
