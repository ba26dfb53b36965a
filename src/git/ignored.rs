//! Lists what git ignores in a workspace.

use super::{command, look};
use std::path::Path;

/// Maximum size of the list, in bytes.
const LIST_MAX: usize = 64 << 20;

/// Returns the untracked paths below `workspace` that git ignores, relative to it. A directory in
/// which everything is ignored is one path. Returns `None` outside a repository, or if git fails.
pub(crate) fn ignored_paths(workspace: &Path) -> Option<Vec<Vec<u8>>> {
    let args = [
        "ls-files",
        "-z",
        "--others",
        "--ignored",
        "--exclude-standard",
        "--directory",
    ];
    let mut command = look::git(workspace, &args);
    let output = command::run(&mut command, LIST_MAX, command::TIMEOUT).ok()?;
    if output.code != Some(0) || output.truncated {
        return None;
    }
    let paths = output.stdout.split(|byte| *byte == 0);
    let paths = paths.map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec());
    Some(paths.filter(|path| !path.is_empty()).collect())
}
