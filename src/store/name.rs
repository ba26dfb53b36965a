//! What a loop may be called, and which name was probably meant.

/// Room for `-` and a number after a slug.
const SLUG: usize = 50;

/// Whether a loop may be called this: `[a-z0-9][a-z0-9_-]{0,62}`.
pub fn valid_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(|&b| plain(b))
        && bytes.iter().all(|&b| plain(b) || b == b'_' || b == b'-')
}

/// The beginning of a valid name, made of any words.
pub(super) fn slug(words: &str) -> String {
    let mut slug = String::new();
    for c in words.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            '_' if !slug.is_empty() => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.truncate(SLUG);
    slug.truncate(slug.trim_end_matches(['-', '_']).len());
    if slug.is_empty() {
        "loop".to_owned()
    } else {
        slug
    }
}

/// The name nearest to `asked`, if at most two slips of the finger lie between them.
pub(super) fn nearest(asked: &str, names: &[String]) -> Option<String> {
    names
        .iter()
        .map(|name| (strsim::osa_distance(asked, name), name))
        .filter(|(distance, name)| *distance <= 2 && *distance < name.chars().count())
        .min()
        .map(|(_, name)| name.clone())
}
