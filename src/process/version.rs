//! Finds the versions of installed programs in the output of `PROGRAM --version`.

use super::probe::{ProbeResult, run_probes};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Maximum time that a program may take to print its version.
pub(crate) const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The three numbers in a version, without a suffix such as `-alpha.1`.
pub(crate) type VersionNumbers = [u32; 3];

/// Runs all programs at once with `--version` and returns their versions; `None` for a program that
/// did not print a version with three numbers. Fails only if a signal interrupts it.
pub(crate) fn installed_versions(
    programs: &[&str],
    dir: &Path,
) -> io::Result<Vec<Option<VersionNumbers>>> {
    let commands: Vec<Vec<String>> = programs
        .iter()
        .map(|program| vec![(*program).to_owned(), "--version".to_owned()])
        .collect();
    let results = run_probes(&commands, dir, VERSION_TIMEOUT)?;
    let versions = results.into_iter().map(|result| match result {
        ProbeResult::Exited(exit, text) if exit.code == Some(0) => numbers(&text),
        _ => None,
    });
    Ok(versions.collect())
}

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

/// Returns the numbers of the first version in `text`; `None` if it has fewer than three.
pub(crate) fn numbers(text: &str) -> Option<VersionNumbers> {
    let mut parts = find_version(text)?.splitn(3, '.');
    let mut next = || {
        let part = parts.next()?;
        let digits = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        part[..digits].parse().ok()
    };
    Some([next()?, next()?, next()?])
}

pub(crate) fn display(version: VersionNumbers) -> String {
    version.map(|number| number.to_string()).join(".")
}

#[cfg(test)]
mod tests {
    use super::{find_version, numbers};

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

    #[test]
    fn versions_are_compared_as_numbers() {
        for (text, found) in [
            ("2.1.34 (Claude Code)\n", Some([2, 1, 34])),
            ("codex-cli 0.46.0-alpha.1", Some([0, 46, 0])),
            ("v1.2.3", Some([1, 2, 3])),
            ("1.2", None),
            ("node is too old", None),
            ("99999999999.1.1", None),
            ("", None),
        ] {
            assert_eq!(numbers(text), found, "{text:?}");
        }
        assert!(numbers("2.1.1000") > numbers("2.1.197"));
    }
}
