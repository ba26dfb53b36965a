//! Identifies the content of a working tree: tracked and untracked files, but not ignored ones.
//!
//! The ID is that of a git tree, so it does not depend on what is committed or staged. It is
//! computed with a private index, which saves reading unchanged files again, and without copying
//! files into an object database.

use super::READ_MAX;
use super::command;
use super::command::GitOutput;
use super::diff::find_top;
use super::overlay::{alternates, copy_with_mtime, create_private, git_path};
use super::status::is_ignored;
use super::working_tree::WORK;
use super::{inner, look};
use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The number of levels of repositories inside repositories that are examined.
const DEPTH_MAX: usize = 4;

/// The file in which a client's session shows its loop. It changes with every iteration.
const LOOP_FILE: &str = ":(top,exclude,glob)**/.claude/ralph-loop.local.md";

/// A working tree whose content is identified again and again.
#[derive(Debug)]
pub(crate) struct TreeContent {
    top: PathBuf,
    /// The directory with the private index and the new tree objects.
    scratch: PathBuf,
    /// The number of repositories around this one.
    depth: usize,
    /// The repository's own object directory, as git expects it in the environment.
    alternates: OnceCell<OsString>,
}

impl TreeContent {
    /// Finds the working tree that contains `workspace`; `None` if there is none, if it ignores the
    /// workspace, or if git is not installed. Files are written to `scratch`.
    pub(crate) fn find(workspace: &Path, scratch: &Path) -> Result<Option<Self>, String> {
        let top = find_top(workspace)?.filter(|top| top == workspace || !is_ignored(workspace));
        Ok(top.map(|top| Self {
            top,
            scratch: scratch.join("content"),
            depth: 0,
            alternates: OnceCell::new(),
        }))
    }

    /// Returns the ID of the current content. Equal content has equal IDs within one loop.
    pub(crate) fn id(&self) -> Result<String, String> {
        match self.update_and_write() {
            // A crash may have damaged the private index.
            Err(_) if self.index().exists() => {
                let _ = fs::remove_file(self.index());
                self.update_and_write()
            }
            result => result,
        }
    }

    fn index(&self) -> PathBuf {
        self.scratch.join("index")
    }

    fn update_and_write(&self) -> Result<String, String> {
        let in_scratch =
            |error: io::Error| format!("cannot write to {}: {error}", self.scratch.display());
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private
            .create(self.scratch.join("objects"))
            .map_err(in_scratch)?;
        let index = self.index();
        // Only one process at a time uses the directory, so a lock is left from a crash.
        let _ = fs::remove_file(index.with_extension("lock"));
        if !index.exists() {
            let own = git_path(&self.top, "index")?;
            if own.exists() {
                copy_with_mtime(&own, &index).map_err(in_scratch)?;
            }
        }
        let (nested, changed): (Vec<_>, Vec<_>) = self
            .changed_paths()?
            .into_iter()
            .partition(|path| path.ends_with(b"/"));
        if !changed.is_empty() {
            let list = self.scratch.join("paths");
            create_private(&list)
                .and_then(|mut file| file.write_all(&changed.join(&0)))
                .map_err(in_scratch)?;
            let paths = File::open(&list).map_err(in_scratch)?;
            let update = [
                "update-index",
                "--add",
                "--remove",
                "--replace",
                "--info-only",
                "-z",
                "--stdin",
            ];
            self.git(&update, paths.into())?;
        }
        let tree = self.git(&["write-tree", "--missing-ok"], Stdio::null())?;
        // Git has replaced the index, with a mode that depends on the umask.
        if index.exists() {
            fs::set_permissions(&index, Permissions::from_mode(0o600)).map_err(in_scratch)?;
        }
        let tree = String::from_utf8_lossy(&tree.stdout).trim().to_owned();
        Ok(match self.nested_hash(nested)? {
            None => tree,
            Some(hash) => format!("{tree}+{hash:016x}"),
        })
    }

    /// Returns the paths that differ from the private index: files, and repositories inside this
    /// one, which end with a slash.
    fn changed_paths(&self) -> Result<Vec<Vec<u8>>, String> {
        let mut args = vec![
            "ls-files",
            "-z",
            "--modified",
            "--others",
            "--exclude-standard",
        ];
        args.push("--");
        args.extend(WORK);
        args.push(LOOP_FILE);
        let output = self.git(&args, Stdio::null())?;
        if output.truncated {
            return Err("too many changed files".into());
        }
        let paths = output.stdout.split(|byte| *byte == 0);
        let mut paths: Vec<Vec<u8>> = paths.map(<[u8]>::to_vec).collect();
        paths.retain(|path| !path.is_empty());
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }

    /// Returns a hash of the content of submodules and other repositories inside this one, given
    /// the latter's paths. `None` if there are none.
    fn nested_hash(&self, mut nested: Vec<Vec<u8>>) -> Result<Option<u64>, String> {
        let submodules = inner::submodules(&self.top).into_iter();
        nested.extend(submodules.map(|path| path.into_os_string().into_vec()));
        nested.retain(|path| self.join(path).join(".git").exists());
        if nested.is_empty() || self.depth == DEPTH_MAX {
            return Ok(None);
        }
        nested.sort_unstable();
        let mut all = DefaultHasher::new();
        for path in nested {
            let mut name = DefaultHasher::new();
            path.hash(&mut name);
            let inner = Self {
                top: self.join(&path),
                scratch: self.scratch.join(format!("{:016x}", name.finish())),
                depth: self.depth + 1,
                alternates: OnceCell::new(),
            };
            (&path, inner.id()?).hash(&mut all);
        }
        Ok(Some(all.finish()))
    }

    fn join(&self, path: &[u8]) -> PathBuf {
        self.top.join(OsStr::from_bytes(path))
    }

    fn git(&self, args: &[&str], stdin: Stdio) -> Result<GitOutput, String> {
        let alternates = if let Some(known) = self.alternates.get() {
            known
        } else {
            let objects = git_path(&self.top, "objects")?;
            self.alternates.get_or_init(|| alternates(&objects))
        };
        let mut command = look::git(&self.top, args);
        command
            .env("GIT_INDEX_FILE", self.index())
            .env("GIT_OBJECT_DIRECTORY", self.scratch.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates);
        let output = command::run_with_stdin(&mut command, stdin, READ_MAX, command::TIMEOUT)
            .map_err(command::GitError::message)?;
        if output.code == Some(0) || output.truncated {
            return Ok(output);
        }
        Err(output.error_message(args.first().unwrap_or(&"")))
    }
}
