//! Minimal scanners for Rust source: they blank out comments and literals, skip `#[cfg(test)]` items,
//! and follow paths through `use` groups.

pub(super) fn each_line<'a, T>(
    text: &'a str,
    mut find: impl FnMut(&str) -> Option<T> + 'a,
) -> impl Iterator<Item = (usize, T)> + 'a {
    text.lines()
        .enumerate()
        .filter_map(move |(at, line)| find(line).map(|found| (at + 1, found)))
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty())
}

/// Replaces comments and literals with spaces. Line numbers do not change.
pub(super) fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// Returns the end of the comment or literal that starts at `at`, or `at` if none starts there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let get = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let find = |from: usize, end: &[char]| {
        (from..chars.len())
            .find(|i| chars[*i..].starts_with(end))
            .map_or(chars.len(), |i| i + end.len())
    };
    match (get(at), get(at + 1)) {
        ('/', '/') => (at..chars.len())
            .find(|i| chars[*i] == '\n')
            .unwrap_or(chars.len()),
        ('/', '*') => {
            let (mut depth, mut i) = (1, at + 2);
            while depth > 0 && i < chars.len() {
                match (get(i), get(i + 1)) {
                    ('/', '*') => (depth, i) = (depth + 1, i + 2),
                    ('*', '/') => (depth, i) = (depth - 1, i + 2),
                    _ => i += 1,
                }
            }
            i.min(chars.len())
        }
        ('r', '"' | '#')
            if at == 0 || !is_word(get(at - 1)) || matches!(get(at - 1), 'b' | 'c') =>
        {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            if get(at + 1 + hashes) != '"' {
                return at;
            }
            let mut end = vec!['"'];
            end.resize(hashes + 1, '#');
            find(at + hashes + 2, &end)
        }
        ('"', _) => {
            let mut i = at + 1;
            while i < chars.len() && chars[i] != '"' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            (i + 1).min(chars.len())
        }
        // A character literal, not a lifetime: `'x'` or `'\…'`.
        ('\'', '\\') => find(at + 3, &['\'']),
        ('\'', _) if get(at + 2) == '\'' => at + 3,
        _ => at,
    }
}

/// Replaces every item under `#[cfg(test)]` with spaces.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..start]);
        let item = &rest[start..];
        let mut depth = 0usize;
        let end = item.char_indices().find_map(|(at, c)| match c {
            '{' => {
                depth += 1;
                None
            }
            '}' => {
                depth = depth.saturating_sub(1);
                (depth == 0).then_some(at + 1)
            }
            ';' => (depth == 0).then_some(at + 1),
            _ => None,
        });
        let end = end.unwrap_or(item.len());
        out.extend(
            item[..end]
                .chars()
                .map(|c| if c == '\n' { '\n' } else { ' ' }),
        );
        rest = &item[end..];
    }
    out.push_str(rest);
    out
}

/// Returns every path in blanked code that starts with `crate`, `super` or `std`, with its line.
/// Groups are expanded.
pub(super) fn paths(code: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let starts = is_word(chars[at]) && (at == 0 || !is_word(chars[at - 1]));
        if !starts {
            at += 1;
            continue;
        }
        let end = at + chars[at..].iter().take_while(|c| is_word(**c)).count();
        let word: String = chars[at..end].iter().collect();
        let inside = at >= 2
            && chars[at - 1] == ':'
            && chars[at - 2] == ':'
            && at >= 3
            && is_word(chars[at - 3]);
        at = if !inside && matches!(word.as_str(), "crate" | "super" | "std") {
            tree(&chars, at, String::new(), &mut found)
        } else {
            end
        };
    }
    found.retain(|(_, path)| path.contains("::"));
    found
}

/// Follows one path or `use` tree from `at`. Returns where it ends.
fn tree(chars: &[char], mut at: usize, prefix: String, found: &mut Vec<(usize, String)>) -> usize {
    let line = |at: usize| 1 + chars[..at].iter().filter(|c| **c == '\n').count();
    let skip = |mut at: usize| {
        while chars.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        at
    };
    let mut path = prefix;
    loop {
        at = skip(at);
        match chars.get(at) {
            Some('{') => {
                at += 1;
                while at < chars.len() && chars[at] != '}' {
                    at = tree(chars, at, path.clone(), found);
                    // Skip `as name` and the comma.
                    while at < chars.len() && !matches!(chars[at], ',' | '}') {
                        at += 1;
                    }
                    at = if chars.get(at) == Some(&',') {
                        skip(at + 1)
                    } else {
                        at
                    };
                }
                return at + 1;
            }
            Some(c) if is_word(*c) || *c == '*' => {
                let end = at
                    + chars[at..]
                        .iter()
                        .take_while(|c| is_word(**c))
                        .count()
                        .max(1);
                path.extend(&chars[at..end]);
                let next = skip(end);
                if chars[next.min(chars.len())..].starts_with(&[':', ':']) {
                    path.push_str("::");
                    at = next + 2;
                } else {
                    found.push((line(at), path));
                    return end;
                }
            }
            // `crate::engine::f::<T>` and similar: the path ends here.
            _ => {
                found.push((
                    line(at.min(chars.len())),
                    path.trim_end_matches("::").to_owned(),
                ));
                return at;
            }
        }
    }
}
