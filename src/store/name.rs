//! Validates, derives and suggests loop names.

/// Maximum length of a slug, in characters. A name of 63 characters leaves room for `-` and a
/// number.
const SLUG_MAX: usize = 50;

/// Returns whether a loop may have this name: `[a-z0-9][a-z0-9_-]{0,62}`.
pub(crate) fn is_valid_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(|&b| plain(b))
        && bytes.iter().all(|&b| plain(b) || b == b'_' || b == b'-')
}

/// Converts `text` to the start of a valid loop name; `loop` if it has no usable character.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            '_' if !slug.is_empty() => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.truncate(SLUG_MAX);
    slug.truncate(slug.trim_end_matches(['-', '_']).len());
    if slug.is_empty() {
        "loop".to_owned()
    } else {
        slug
    }
}

/// Returns the name closest to `wanted`; `None` if every name differs by more than two typos.
pub(super) fn nearest(wanted: &str, names: &[String]) -> Option<String> {
    names
        .iter()
        .map(|name| (strsim::osa_distance(wanted, name), name))
        .filter(|(distance, name)| *distance <= 2 && *distance < name.chars().count())
        .min()
        .map(|(_, name)| name.clone())
}
