//! Detects optional features of the operating system.

use super::report::SystemFeature;
use crate::engine::plan::{Agent, Sandbox};
use crate::os::features;
use crate::proof::view::View;
use crate::sandbox::{self, SandboxRequest};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

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
        feature(
            "sandbox bwrap",
            probe_sandbox(Sandbox::Bwrap).map(|()| None),
            "--sandbox hides credentials and loops from agents, and ends all their processes",
            "--sandbox does not work",
        ),
        feature(
            "sandbox landlock",
            probe_sandbox(Sandbox::Landlock).map(|()| None),
            "--sandbox=landlock keeps agents from credentials and loops, without namespaces",
            "--sandbox=landlock does not work",
        ),
    ]
}

/// Tries a sandbox in a directory that is removed afterwards.
fn probe_sandbox(kind: Sandbox) -> io::Result<()> {
    let dir = scratch_dir("sandbox")?;
    let probed = sandbox::probe(&SandboxRequest {
        kind,
        workspace: &dir,
        state_dir: &dir.join("state"),
        agent: &Agent::default(),
        files: Vec::new(),
        caches: dir.clone(),
    });
    let _ = std::fs::remove_dir_all(&dir);
    probed.map_err(|failure| io::Error::other(format!("{}: {}", failure.message, failure.hint)))
}

/// Tries to prepare a view, in a directory that is removed afterwards.
fn probe_view() -> io::Result<()> {
    let dir = scratch_dir("view")?;
    let probed = View::probe(&dir);
    let _ = std::fs::remove_dir_all(&dir);
    probed.map_err(|error| io::Error::other(error.to_string()))
}

/// Creates a directory for temporary files.
fn scratch_dir(purpose: &str) -> io::Result<PathBuf> {
    let name = format!("ralph-doctor-{purpose}-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    Ok(dir)
}
