//! Detects optional features of the operating system.

use super::report::SystemFeature;
use crate::os::features;
use crate::proof::view::View;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;

pub(super) fn inspect() -> Vec<SystemFeature> {
    let feature = |name, found: io::Result<Option<u32>>, with: &str, without: &str| {
        let (available, version, note) = match found {
            Ok(version) => (true, version, with.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                (false, None, without.to_owned())
            }
            Err(error) => (false, None, format!("{without} ({error})")),
        };
        SystemFeature {
            name,
            available,
            version,
            note,
        }
    };
    vec![
        feature(
            "subreaper",
            features::subreaper().map(|()| None),
            "when an agent exits, every process it started is terminated too",
            "processes that leave an agent's process group may keep running when it exits",
        ),
        feature(
            "pidfd",
            features::pidfd().map(|()| None),
            "reliable process handles",
            "no process handles",
        ),
        feature(
            "landlock",
            features::landlock().map(Some),
            "processes can sandbox themselves",
            "processes cannot sandbox themselves",
        ),
        feature(
            "user namespaces",
            features::user_namespaces().map(|()| None),
            "sandboxes work without root",
            "sandboxes need root",
        ),
        feature(
            "views",
            probe_view().map(|()| None),
            "the second look restores the original tests at their own path",
            "the second look restores the original tests in a copy elsewhere, which is weaker",
        ),
    ]
}

/// Tries to prepare a view, in a directory that is removed afterwards.
fn probe_view() -> io::Result<()> {
    let dir = std::env::temp_dir().join(format!("ralph-doctor-{}", std::process::id()));
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    let probed = View::probe(&dir);
    let _ = std::fs::remove_dir_all(&dir);
    probed.map_err(|error| io::Error::other(error.to_string()))
}
