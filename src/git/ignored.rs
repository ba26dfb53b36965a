//! Lists what git ignores in a workspace.

use super::{command, look};
use std::path::Path;

/// Maximum size of the list, in bytes.
const LIST_MAX: usize = 64 << 20;

/// Paths that git ignores, relative to a workspace. A directory in which everything is ignored is
/// one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IgnoredPaths {
    /// In the order of their bytes, because there can be tens of thousands.
    sorted: Vec<Vec<u8>>,
}

impl IgnoredPaths {
    pub(crate) fn new(mut paths: Vec<Vec<u8>>) -> Self {
        paths.sort_unstable();
        Self { sorted: paths }
    }

    /// Returns whether a path, or a directory above it, is one of the paths.
    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        let ends = memchr::memchr_iter(b'/', path).chain([path.len()]);
        let mut parts = ends.map(|end| &path[..end]);
        let is_listed = |part: &[u8]| self.sorted.binary_search_by(|path| path[..].cmp(part));
        parts.any(|part| is_listed(part).is_ok())
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.sorted.iter().map(Vec::as_slice)
    }
}

/// Returns the untracked paths below `workspace` that git ignores. Returns `None` outside a
/// repository, or if git fails.
pub(crate) fn ignored_paths(workspace: &Path) -> Option<IgnoredPaths> {
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
    let paths = paths.filter(|path| !path.is_empty());
    Some(IgnoredPaths::new(paths.collect()))
}
