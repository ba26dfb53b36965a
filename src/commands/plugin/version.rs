//! Finds the version of an installed client, which decides what its plugin may contain.

use super::ClientKind;
use crate::process::probe::{ProbeResult, run_probes};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long a client may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The three numbers of a client's version; a suffix is ignored.
pub(super) type ClientVersion = [u32; 3];

/// Runs all clients at once to get their versions. The error is an interrupt.
pub(super) fn installed_versions(
    clients: &[ClientKind],
    here: &Path,
) -> io::Result<Vec<Option<ClientVersion>>> {
    let commands: Vec<Vec<String>> = clients
        .iter()
        .map(|client| vec![client.name().to_owned(), "--version".to_owned()])
        .collect();
    let versions = run_probes(&commands, here, VERSION_TIMEOUT)?
        .into_iter()
        .map(|result| match result {
            ProbeResult::Exited(exit, text) if exit.code == Some(0) => parse(&text),
            _ => None,
        });
    Ok(versions.collect())
}

/// Parses the first word with three numbers, as in `2.1.34 (Claude Code)` or `codex-cli
/// 0.46.0-alpha.1`.
pub(super) fn parse(text: &str) -> Option<ClientVersion> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.trim_start_matches('v').splitn(3, '.');
        let mut next = || {
            let number = numbers.next()?;
            let digits = number
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(number.len());
            number[..digits].parse().ok()
        };
        Some([next()?, next()?, next()?])
    })
}

pub(super) fn display(version: ClientVersion) -> String {
    version.map(|number| number.to_string()).join(".")
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn versions_are_parsed_and_compared_as_numbers() {
        for (text, found) in [
            ("2.1.34 (Claude Code)\n", Some([2, 1, 34])),
            ("codex-cli 0.46.0-alpha.1", Some([0, 46, 0])),
            ("v1.2.3", Some([1, 2, 3])),
            ("1.2", None),
            ("node is too old", None),
            ("99999999999.1.1", None),
            ("", None),
        ] {
            assert_eq!(parse(text), found, "{text:?}");
        }
        assert!(parse("2.1.1000") > parse("2.1.197"));
    }
}
