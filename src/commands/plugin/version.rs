//! Which version of a client is installed: what its plugin may hold depends on it.

use super::Client;
use crate::process::probe::{Answer, ask};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long a client may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client's version; what follows its three numbers is of no interest.
pub(crate) type Version = [u32; 3];

/// Asks all of them at once. An error is a signal that asked this process to go.
pub(crate) fn ask_all(clients: &[Client], here: &Path) -> io::Result<Vec<Option<Version>>> {
    let commands: Vec<Vec<String>> = clients
        .iter()
        .map(|client| vec![client.name().to_owned(), "--version".to_owned()])
        .collect();
    let said = ask(&commands, here, PATIENCE)?
        .into_iter()
        .map(|answer| match answer {
            Answer::Said(exit, text) if exit.code == Some(0) => find(&text),
            _ => None,
        });
    Ok(said.collect())
}

/// The first word that is three numbers: `2.1.34 (Claude Code)`, `codex-cli 0.46.0-alpha.1`.
pub(crate) fn find(text: &str) -> Option<Version> {
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

pub(crate) fn shown(version: Version) -> String {
    version.map(|number| number.to_string()).join(".")
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn versions_are_found_and_compared_by_number() {
        for (text, found) in [
            ("2.1.34 (Claude Code)\n", Some([2, 1, 34])),
            ("codex-cli 0.46.0-alpha.1", Some([0, 46, 0])),
            ("v1.2.3", Some([1, 2, 3])),
            ("1.2", None),
            ("node is too old", None),
            ("99999999999.1.1", None),
            ("", None),
        ] {
            assert_eq!(find(text), found, "{text:?}");
        }
        assert!(find("2.1.1000") > find("2.1.197"));
    }
}
