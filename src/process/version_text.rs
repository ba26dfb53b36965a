//! Finds a version in what a program prints.

/// Returns the first word that looks like a version, such as 2.43.0 in `git version 2.43.0`; `None`
/// if there is none.
pub(crate) fn find_version(text: &str) -> Option<&str> {
    let words = text.split_whitespace().map(|word| {
        word.trim_start_matches(['v', 'V'])
            .trim_end_matches([',', ')'])
    });
    let mut versions = words.filter(|word| {
        let numbers: Vec<&str> = word.splitn(3, '.').collect();
        numbers.len() > 1
            && numbers[0].bytes().all(|c| c.is_ascii_digit())
            && numbers[1].starts_with(|c: char| c.is_ascii_digit())
    });
    versions.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.len() <= 40)
}

#[cfg(test)]
mod tests {
    use super::find_version;

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        for (text, found) in [
            ("git version 2.43.0\n", Some("2.43.0")),
            ("tmux 3.4", Some("3.4")),
            ("tmux 3.3a\n", Some("3.3a")),
            ("2.1.34 (Claude Code)\n", Some("2.1.34")),
            ("codex-cli 0.46.0-alpha.1", Some("0.46.0-alpha.1")),
            ("tool v1.2.3, built today", Some("1.2.3")),
            ("(1.2)", None),
            ("hello. reactor", None),
            ("", None),
        ] {
            assert_eq!(find_version(text), found, "{text:?}");
        }
    }
}
