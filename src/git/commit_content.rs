//! Compares a commit with the content of the working tree.

use super::command::GitError;
use super::content::{MEASURED, TreeContent, is_own_file};
use super::working_tree::WorkingTree;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Stdio;

/// If more files than this differ, as with converted line endings, only those that the commit
/// changes are examined.
const EXAMINED_MAX: usize = 2000;

/// A file in which a commit and the content differ.
struct DifferingFile {
    path: Vec<u8>,
    /// The ID of the commit's version; zeros if the commit does not contain the file.
    blob: String,
    is_submodule: bool,
}

impl TreeContent {
    /// Returns the files of the measured content that a commit lacks, or has with other bytes than git
    /// would store for them. `id` identifies the content, which is still in the working tree. With
    /// `converts`, git's conversions of files are trusted.
    pub(crate) fn missing_in_commit(
        &self,
        id: &str,
        commit: &str,
        tree: &WorkingTree,
        converts: bool,
    ) -> Result<Vec<Vec<u8>>, String> {
        let content = id.split('+').next().unwrap_or_default();
        let mut files = self.differing_files(content, commit)?;
        if files.len() > EXAMINED_MAX {
            let parent = format!("{commit}^");
            let changed = self.differing_files(&parent, commit)?;
            let changed: HashSet<Vec<u8>> = changed.into_iter().map(|file| file.path).collect();
            files.retain(|file| changed.contains(&file.path));
        }
        files.retain(|file| !is_own_file(&file.path) && !file.is_submodule);
        // Git may convert a file, and the content lacks secrets and large files.
        let present: Vec<Vec<u8>> = files
            .iter()
            .filter(|file| is_plain_file(&self.join(&file.path)) && !file.path.contains(&b'\n'))
            .map(|file| file.path.clone())
            .collect();
        let list = self.shadow(MEASURED, false)?.input(&present.join(&b'\n'))?;
        let ids = tree.blob_ids(list, converts)?;
        let ids: HashMap<Vec<u8>, String> = present.into_iter().zip(ids).collect();
        files.retain(|file| ids.get(&file.path) != Some(&file.blob));
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn differing_files(&self, from: &str, to: &str) -> Result<Vec<DifferingFile>, String> {
        let shadow = self.shadow(MEASURED, false)?;
        let args = ["diff-tree", "-r", "-z", "--no-renames", from, to, "--"];
        let output = shadow.git(&args)?.stdout;
        let mut parts = output.split(|byte| *byte == 0);
        let mut files = Vec::new();
        while let (Some(line), Some(path)) = (parts.next(), parts.next()) {
            let line = String::from_utf8_lossy(line);
            let mut words = line.trim_start_matches(':').split(' ');
            let modes = [words.next(), words.next()];
            let (before, blob) = (words.next(), words.next().unwrap_or_default());
            if before != Some(blob) {
                files.push(DifferingFile {
                    path: path.to_vec(),
                    blob: blob.to_owned(),
                    is_submodule: modes.contains(&Some("160000")),
                });
            }
        }
        Ok(files)
    }
}

impl WorkingTree {
    /// Returns the IDs that git would give to files of the working tree, after conversion if it
    /// `converts` them. `list` contains their paths, one per line.
    fn blob_ids(&self, list: Stdio, converts: bool) -> Result<Vec<String>, String> {
        let args: &[&str] = if converts {
            &["hash-object", "--stdin-paths"]
        } else {
            &["hash-object", "--no-filters", "--stdin-paths"]
        };
        let output = self.git_with_stdin(args, list).map_err(GitError::message)?;
        if output.code != Some(0) {
            return Err(output.error_message("hash-object"));
        }
        let ids = String::from_utf8_lossy(&output.stdout);
        Ok(ids.lines().map(str::to_owned).collect())
    }
}

fn is_plain_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_file())
}
