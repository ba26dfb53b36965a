//! Decides which files a checkpoint skips: those whose name suggests a secret, and large ones.

use std::fs;
use std::path::Path;

/// The largest file that a checkpoint stores, in bytes.
const SIZE_MAX: u64 = 10 << 20;

/// File names that suggest a secret.
const SECRET_NAMES: [&str; 13] = [
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".pgpass",
    ".pypirc",
    "_netrc",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "secrets.json",
];

/// Ends of file names that suggest a key.
const SECRET_ENDS: [&str; 8] = [
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".p12",
    ".pem",
    ".pfx",
    ".ppk",
];

/// Ends of the names of `.env` files that are examples.
const EXAMPLE_ENDS: [&str; 4] = [".dist", ".example", ".sample", ".template"];

/// Why a checkpoint skips a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SkipCause {
    Secret,
    Large,
}

impl SkipCause {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "its name suggests a secret",
            Self::Large => "larger than 10 MiB",
        }
    }

    /// Returns why the file at `path` is skipped; `None` if it is not, or if there is no such file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let data = fs::symlink_metadata(path)
            .ok()
            .filter(fs::Metadata::is_file)?;
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        if is_secret(&name) {
            Some(Self::Secret)
        } else {
            (data.len() > SIZE_MAX).then_some(Self::Large)
        }
    }
}

fn is_secret(name: &str) -> bool {
    let ends_with = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let is_env = name == ".env" || name.starts_with(".env.");
    (is_env && !ends_with(&EXAMPLE_ENDS)) || SECRET_NAMES.contains(&name) || ends_with(&SECRET_ENDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_suggest_a_secret() {
        for name in [
            ".env",
            ".env.local",
            "server.key",
            "id_rsa",
            "a.pem",
            ".netrc",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            ".env.example",
            "env.rs",
            "id_rsa.pub",
            "keys.rs",
            ".envoy",
            "key",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
