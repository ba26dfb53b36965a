//! Finds the versions of installed programs in the output of `PROGRAM --version`.

use super::probe::{ProbeResult, run_probes};
use super::version_text::find_version;
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
    use super::numbers;

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
