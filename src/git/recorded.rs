//! Writes the files of stored trees to directories of ralph's own, byte for byte.

use super::command::{self, GitError};
use super::content::TreeContent;
use super::shadow::ShadowRepository;
use super::{READ_MAX, look};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How a tree differs from the working tree, by paths in the repository: a file with the content in
/// the tree, or `None` if the tree has no such file.
pub(crate) type TreeFiles = BTreeMap<Vec<u8>, Option<PathBuf>>;

/// The mode of a submodule in a tree.
const SUBMODULE: &[u8] = b"160000";

impl TreeContent {
    /// Returns the top of the working tree.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Compares a stored tree with the working tree, and writes the files that differ to the
    /// directory `to`. Submodules are left out.
    pub(crate) fn compare_with(&self, tree: &str, to: &Path) -> Result<TreeFiles, String> {
        let id = self.id()?;
        let present = id.split('+').next().unwrap_or(&id);
        let shadow = self.recorded_shadow(&self.top)?;
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            present,
            tree,
        ];
        let output = shadow.git(&args)?.stdout;
        let mut parts = output
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty());
        let mut files = TreeFiles::new();
        let mut list = Vec::new();
        while let (Some(info), Some(path)) = (parts.next(), parts.next()) {
            // `:100644 100755 <id> <id> M`
            let mut fields = info.split(|byte| *byte == b' ');
            let (old, new) = (fields.next().unwrap_or(b""), fields.next().unwrap_or(b""));
            if old.ends_with(SUBMODULE) || new == SUBMODULE {
                continue;
            }
            let is_deleted = info.ends_with(b"D");
            if !is_deleted {
                list.extend([path, b"\0"].concat());
            }
            let file = (!is_deleted).then(|| to.join(OsStr::from_bytes(path)));
            files.insert(path.to_vec(), file);
        }
        if !list.is_empty() {
            fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
            let prefix = format!("--prefix={}/", to.display());
            shadow.git(&["read-tree", tree])?;
            shadow.git_with_input(&["checkout-index", "-z", "--stdin", "-f", &prefix], &list)?;
        }
        Ok(files)
    }

    /// Writes all files of a tree to an empty directory, or changes those of the tree `from`, which
    /// were written there before.
    pub(crate) fn write_tree_to(
        &self,
        dir: &Path,
        from: Option<&str>,
        tree: &str,
    ) -> Result<(), String> {
        fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let shadow = self.recorded_shadow(dir)?;
        let update = ["read-tree", "-m", "-u", "--no-recurse-submodules"];
        let args = match from {
            Some(from) => [&update[..], &[from, tree]].concat(),
            None => vec![
                "read-tree",
                "--reset",
                "-u",
                "--no-recurse-submodules",
                tree,
            ],
        };
        shadow.git(&args).map(drop)
    }

    /// Returns the changes between two trees as in [`super::checkpoint::Checkpoints::patch`].
    pub(crate) fn patch(&self, from: &str, to: &str) -> Result<(Vec<u8>, bool), String> {
        self.recorded_shadow(&self.top)?.patch(from, to)
    }

    /// Returns the ID of the tree of a commit or tree; `None` if the repository does not have it.
    pub(crate) fn find_tree(&self, object: &str) -> Result<Option<String>, String> {
        let name = format!("{object}^{{tree}}");
        let args = [
            "rev-parse",
            "--quiet",
            "--verify",
            "--end-of-options",
            &name,
        ];
        let mut command = look::git(&self.top, &args);
        let output = command::run(&mut command, READ_MAX, command::TIMEOUT);
        let output = output.map_err(GitError::message)?;
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Some(id).filter(|id| output.code == Some(0) && !id.is_empty()))
    }

    /// Opens a shadow with an index of its own, whose new objects stay out of the repository.
    fn recorded_shadow<'a>(&'a self, top: &'a Path) -> Result<ShadowRepository<'a>, String> {
        let index = if top == self.top {
            "compared-index"
        } else {
            "written-index"
        };
        ShadowRepository::open(top, &self.scratch, self.settings()?, index, false)
    }
}
