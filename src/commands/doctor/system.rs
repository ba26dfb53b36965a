//! Detects optional features of the operating system.

use super::report::SystemFeature;
use crate::os::features;
use std::io;

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
    ]
}
