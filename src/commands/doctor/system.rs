//! What the system can do for a loop, and what is weaker where it cannot.

use super::report::Feature;
use crate::os::features;
use std::io;

pub(crate) fn look() -> Vec<Feature> {
    let feature = |name, found: io::Result<Option<u32>>, with: &str, without: &str| {
        let (available, version, note) = match found {
            Ok(version) => (true, version, with.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                (false, None, without.to_owned())
            }
            Err(error) => (false, None, format!("{without} ({error})")),
        };
        Feature {
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
            "whatever an agent starts is ended with it",
            "what leaves an agent's process group may outlive it",
        ),
        feature(
            "pidfd",
            features::pidfd().map(|()| None),
            "sure handles on processes",
            "no handles on processes",
        ),
        feature(
            "landlock",
            features::landlock().map(Some),
            "a process can wall itself in",
            "a process cannot wall itself in",
        ),
        feature(
            "user namespaces",
            features::user_namespaces().map(|()| None),
            "walls can be built without root",
            "walls cannot be built without root",
        ),
    ]
}
