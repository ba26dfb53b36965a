//! Hides ralph's files from git with a marked block in the repository's `info/exclude`, for
//! workspaces whose `.ralph/.gitignore` is the project's own.

use super::project::common_git_dir;
use crate::os::regular_file;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

const BEGIN: &str = "# >>> ralph: files of its loops; removed with the last loop";
const END: &str = "# <<< ralph";
const PATTERNS: [&str; 2] = ["**/.ralph/task/", "**/.ralph/guardrail_*.log"];

/// The largest exclude file that is read, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Adds the block to the repository that contains `workspace`, unless it is there. All worktrees of
/// a repository share the file. Does nothing outside a repository.
pub(crate) fn add(workspace: &Path) -> io::Result<()> {
    let Some(path) = exclude_file(workspace) else {
        return Ok(());
    };
    let text = read(&path)?;
    if text.lines().any(|line| line == BEGIN) {
        return Ok(());
    }
    if let Some(info) = path.parent() {
        fs::create_dir_all(info)?;
    }
    let newline = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let block = format!("{newline}{BEGIN}\n{}\n{END}\n", PATTERNS.join("\n"));
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?
        .write_all(block.as_bytes())
}

/// Returns whether the repository that contains `workspace` has the block.
pub(crate) fn is_added(workspace: &Path) -> bool {
    let text = exclude_file(workspace).and_then(|path| read(&path).ok());
    text.is_some_and(|text| text.lines().any(|line| line == BEGIN))
}

/// Removes the block from the repository that contains `workspace`. Other lines stay.
pub(crate) fn remove(workspace: &Path) -> io::Result<()> {
    let Some(path) = exclude_file(workspace) else {
        return Ok(());
    };
    let text = read(&path)?;
    let mut inside = false;
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        match line.trim_end() {
            BEGIN => inside = true,
            END if inside => inside = false,
            // A line that is not ours ends a block whose last line was deleted.
            other if inside && PATTERNS.contains(&other) => {}
            _ => {
                inside = false;
                kept.push_str(line);
            }
        }
    }
    if kept == text {
        return Ok(());
    }
    // Replace the file as a whole: a crash must not lose the user's lines.
    let path = fs::canonicalize(path)?;
    let new = path.with_extension(format!("ralph-{}", std::process::id()));
    fs::write(&new, kept)?;
    fs::set_permissions(&new, fs::metadata(&path)?.permissions())?;
    fs::rename(new, path)
}

fn exclude_file(workspace: &Path) -> Option<PathBuf> {
    Some(common_git_dir(workspace)?.join("info/exclude"))
}

/// Reads the file; a missing one is empty. A file that is too long or not UTF-8 is an error: it must
/// not be rewritten.
fn read(path: &Path) -> io::Result<String> {
    let (bytes, more) = match regular_file::read(path, FILE_MAX, true) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        read => read?,
    };
    match String::from_utf8(bytes) {
        Ok(text) if !more => Ok(text),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_block_is_added_and_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        add(dir).unwrap();
        assert!(!is_added(dir), "not a repository");
        fs::create_dir(dir.join(".git")).unwrap();
        fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let path = dir.join(".git/info/exclude");
        remove(dir).unwrap();
        assert!(!path.exists());
        let block = format!("{BEGIN}\n{}\n{END}\n", PATTERNS.join("\n"));
        for before in ["", "mine\n", "mine"] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, before).unwrap();
            add(dir).unwrap();
            add(dir).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with(before) && text.ends_with(&block), "{text}");
            assert_eq!(text.matches(BEGIN).count(), 1);
            fs::write(&path, text + "later\n").unwrap();
            remove(dir).unwrap();
            let newline = if before == "mine" { "\n" } else { "" };
            let kept = fs::read_to_string(&path).unwrap();
            assert_eq!(kept, format!("{before}{newline}later\n"));
        }
        // The user has deleted the end of the block.
        fs::write(&path, format!("{BEGIN}\n{}\nmine\n", PATTERNS[0])).unwrap();
        remove(dir).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine\n");
    }
}
