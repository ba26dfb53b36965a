//! The commits of a loop of the fleet, in a repository of the mirror's own.

use super::loop_copy::broken;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::{CodeSource, Exchange, LoopRecord};
use crate::git::transfer;
use std::path::{Path, PathBuf};

/// Downloads the blobs with a loop's commits, in order, into a directory.
pub(crate) async fn download(
    exchange: &impl Exchange,
    blobs: &[String],
    directory: &Path,
) -> Result<Vec<PathBuf>, FleetError> {
    std::fs::create_dir_all(directory).map_err(|error| broken(&error))?;
    let mut files = Vec::new();
    for (index, blob) in blobs.iter().enumerate() {
        let file = directory.join(format!("{index}.bundle"));
        if !exchange.get_blob(blob, &file).await? {
            return Err(FleetError::Other(format!(
                "the fleet has lost the commits in {blob}"
            )));
        }
        files.push(file);
    }
    Ok(files)
}

/// Creates a repository with a loop's branch and checkpoints. The commit that the loop began with
/// comes from the user's repository if that has it.
pub(crate) fn fill_repository(
    repository: &Path,
    record: &LoopRecord,
    bundles: &[PathBuf],
    users: Option<&Path>,
) -> Result<(), String> {
    transfer::create_repository(repository, None)?;
    let commit = match &record.code {
        CodeSource::Bundle { commit, .. } => commit,
        CodeSource::Remote {
            url,
            commit,
            branch,
        } => {
            let local = users.filter(|users| transfer::has_commit(users, commit));
            let local = local.and_then(Path::to_str);
            match local.map(|users| transfer::fetch_commit(repository, users, commit, None)) {
                Some(Ok(())) => {}
                _ => transfer::fetch_commit(repository, url, commit, branch.as_deref())?,
            }
            commit
        }
    };
    for bundle in bundles {
        transfer::fetch_bundle(repository, bundle)?;
    }
    transfer::detach_head(repository, commit)?;
    transfer::ensure_branch(repository, &record.checkout.branch, commit).map(drop)
}
