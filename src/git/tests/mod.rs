//! Tests of diffs with real repositories.

mod checkpoints;
mod content;
mod content_id;
mod isolation;
mod limits;
mod repositories;

use super::diff::{Diff, DiffBase, DiffStat};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use tempfile::TempDir;

/// The content and modification time of all files in a repository.
type RepoFiles = BTreeMap<PathBuf, (Vec<u8>, Option<SystemTime>)>;

struct Repo {
    root: TempDir,
    dir: PathBuf,
}

impl Repo {
    fn empty() -> Self {
        Self::init(&[])
    }

    fn init(args: &[&str]) -> Self {
        let root = TempDir::new().unwrap();
        // A colon separates paths in git's environment.
        let dir = root.path().join("re:po");
        fs::create_dir(&dir).unwrap();
        let repo = Self { root, dir };
        repo.git(&[&["init", "-q", "-b", "main"], args].concat());
        repo
    }

    /// Creates a repository with one commit of `a.txt`, `b.txt` and `sub/c.txt`.
    fn new() -> Self {
        Self::empty().with_first_commit()
    }

    fn with_first_commit(self) -> Self {
        self.write("a.txt", "one\ntwo\nthree\n");
        self.write("b.txt", "bee\n");
        self.write("sub/c.txt", "sea\n");
        self.commit("first");
        self
    }

    fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.org",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(args)
            .current_dir(dir)
            .env("HOME", self.root.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.dir, args)
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", message]);
    }

    fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn scratch(&self) -> PathBuf {
        self.root.path().join("scratch")
    }

    fn base(&self) -> DiffBase {
        DiffBase::capture(&self.dir, &self.scratch())
            .unwrap()
            .unwrap()
    }

    fn diff(&self, base: &DiffBase) -> String {
        self.diff_up_to(base, 100_000).text
    }

    fn diff_up_to(&self, base: &DiffBase, max: usize) -> Diff {
        base.diff(&self.scratch(), max).unwrap()
    }

    fn stat(&self, base: &DiffBase) -> DiffStat {
        base.stat(&self.scratch()).unwrap()
    }

    fn assert_untouched(&self, before: &RepoFiles) {
        let after = self.all_files();
        let touched: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|path| before.get(*path) != after.get(*path))
            .collect();
        assert!(touched.is_empty(), "{touched:?}");
    }

    /// Reads all files in the repository's directory.
    fn all_files(&self) -> RepoFiles {
        let mut all = BTreeMap::new();
        let mut dirs = vec![self.dir.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let data = entry.metadata().unwrap();
                if data.is_dir() {
                    dirs.push(entry.path());
                } else {
                    let path = entry.path();
                    let name = path.to_string_lossy();
                    // Git updates the modification time of objects and shared indexes that it uses,
                    // to protect them from garbage collection.
                    let is_touched =
                        name.contains(".git/objects/") || name.contains(".git/sharedindex.");
                    let time = (!is_touched).then(|| data.modified().unwrap());
                    all.insert(path.clone(), (fs::read(&path).unwrap(), time));
                }
            }
        }
        all
    }
}

fn counts(stat: &DiffStat) -> (u32, u64, u64) {
    (stat.files, stat.insertions, stat.deletions)
}
