//! Proves with real repositories what a base sees, and that looking leaves no trace.

mod kinds;

use super::{Base, Changes, Diff};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use tempfile::TempDir;

type Everything = BTreeMap<PathBuf, (Vec<u8>, Option<SystemTime>)>;

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

    /// A repository with one commit: `a.txt`, `b.txt`, `sub/c.txt`.
    fn new() -> Self {
        Self::empty().furnished()
    }

    fn furnished(self) -> Self {
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

    fn base(&self) -> Base {
        Base::take(&self.dir, &self.scratch()).unwrap().unwrap()
    }

    fn diff(&self, base: &Base) -> String {
        self.cut(base, 100_000).text
    }

    fn cut(&self, base: &Base, max: usize) -> Diff {
        base.diff(&self.scratch(), max).unwrap()
    }

    fn changes(&self, base: &Base) -> Changes {
        base.changes(&self.scratch()).unwrap()
    }

    fn assert_untouched(&self, before: &Everything) {
        let after = self.everything();
        let touched: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|path| before.get(*path) != after.get(*path))
            .collect();
        assert!(touched.is_empty(), "{touched:?}");
    }

    /// Everything in the repository's directory, with content and time.
    fn everything(&self) -> Everything {
        let mut all = BTreeMap::new();
        let mut open = vec![self.dir.clone()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let data = entry.metadata().unwrap();
                if data.is_dir() {
                    open.push(entry.path());
                } else {
                    let path = entry.path();
                    let name = path.to_string_lossy();
                    // When it meets a known object or shared index, git makes its time new, so that a
                    // collection of garbage spares it. That is as it should be.
                    let spared =
                        name.contains(".git/objects/") || name.contains(".git/sharedindex.");
                    let time = (!spared).then(|| data.modified().unwrap());
                    all.insert(path.clone(), (fs::read(&path).unwrap(), time));
                }
            }
        }
        all
    }
}

fn counts(changes: &Changes) -> (u32, u64, u64) {
    (changes.files, changes.insertions, changes.deletions)
}

#[test]
fn only_what_happens_after_the_start_shows() {
    let repo = Repo::new();
    repo.write("a.txt", "dirty before\n");
    repo.write("b.txt", "staged before\n");
    repo.git(&["add", "b.txt"]);
    repo.write("old.txt", "untracked before\n");
    let base = repo.base();
    assert_eq!(repo.cut(&base, 5000), Diff::default());
    assert_eq!(repo.changes(&base), Changes::default());

    repo.write("a.txt", "dirty after\n");
    repo.write("new file.txt", "fresh\nlines\n");
    let text = repo.diff(&base);
    assert!(text.contains("-dirty before\n+dirty after\n"), "{text}");
    assert!(text.contains("diff --git a/new file.txt b/new file.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new file.txt\t\n@@ -0,0 +1,2 @@\n+fresh\n+lines\n"), "{text}");
    assert!(
        !text.contains("three") && !text.contains("staged before") && !text.contains("old.txt"),
        "{text}"
    );
    let changes = repo.changes(&base);
    assert_eq!(counts(&changes), (2, 3, 1));
    assert_eq!(changes.paths, ["a.txt", "new file.txt"]);
}

#[test]
fn it_does_not_matter_whether_a_change_is_unstaged_staged_committed_or_amended() {
    let repo = Repo::new();
    let base = repo.base();
    repo.write("a.txt", "one\n2\nthree\n");
    let unstaged = repo.diff(&base);
    assert!(unstaged.contains("-two\n+2\n"), "{unstaged}");
    repo.git(&["add", "-A"]);
    assert_eq!(repo.diff(&base), unstaged);
    repo.git(&["commit", "-qm", "second"]);
    assert_eq!(repo.diff(&base), unstaged);
    repo.git(&["commit", "-q", "--amend", "-m", "other"]);
    assert_eq!(repo.diff(&base), unstaged);
    repo.git(&["checkout", "-q", "-b", "elsewhere", "HEAD~1"]);
    assert_eq!(repo.diff(&base), "", "the other branch is as the base was");
    repo.git(&["checkout", "-q", "main"]);
    assert_eq!(repo.diff(&base), unstaged);
}

#[test]
fn a_stash_takes_the_dirt_of_the_start_away_and_that_shows() {
    let repo = Repo::new();
    repo.write("a.txt", "dirt\n");
    let base = repo.base();
    repo.git(&["stash", "-q"]);
    let text = repo.diff(&base);
    assert!(text.contains("-dirt\n+one\n"), "{text}");
    repo.git(&["stash", "pop", "-q"]);
    assert_eq!(repo.diff(&base), "");
}

#[test]
fn deleted_renamed_binary_and_executable_files_are_told() {
    let repo = Repo::new();
    let base = repo.base();
    fs::remove_file(repo.dir.join("b.txt")).unwrap();
    repo.git(&["mv", "a.txt", "z.txt"]);
    repo.write("sub/c.txt", b"sea\0\n");
    repo.write("blob", b"\x7fELF\0");
    repo.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(repo.dir.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("z.txt", repo.dir.join("link")).unwrap();
    let text = repo.diff(&base);
    for expected in [
        "deleted file mode 100644",
        "rename from a.txt\nrename to z.txt\n",
        "Binary files a/sub/c.txt and b/sub/c.txt differ\n",
        "Binary files /dev/null and b/blob differ\n",
        "new file mode 100755\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n",
        "new file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+z.txt\n\\ No newline at end of file\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let changes = repo.changes(&base);
    assert_eq!(
        changes.paths,
        ["b.txt", "blob", "link", "run.sh", "sub/c.txt", "z.txt"]
    );
    assert_eq!(counts(&changes), (6, 2, 1));
}

#[test]
fn our_new_file_diffs_read_as_gits_own() {
    for content in [
        "x\n",
        "x",
        "a\nb\n",
        "a\nb",
        "",
        "\n",
        "c\r\nd\r\n",
        "žluťoučký\n",
    ] {
        let repo = Repo::new();
        let base = repo.base();
        repo.write("new file", content);
        let ours = repo.diff(&base);
        repo.git(&["add", "-A"]);
        let theirs = repo.diff(&base);
        let theirs: String = theirs
            .split_inclusive('\n')
            .filter(|line| !line.starts_with("index "))
            .collect();
        assert_eq!(ours, theirs);
    }
}

#[test]
fn files_untracked_at_the_start_show_only_if_they_change() {
    let repo = Repo::new();
    repo.write("kept", "same\n");
    repo.write("grown", "small\n");
    repo.write("lost", "x\n");
    let base = repo.base();
    repo.write("grown", "small\nlarger\n");
    fs::remove_file(repo.dir.join("lost")).unwrap();
    let text = repo.diff(&base);
    assert!(
        text.contains("shown whole") && text.contains("+larger\n"),
        "{text}"
    );
    assert!(
        text.contains("diff --git a/lost b/lost\ndeleted file"),
        "{text}"
    );
    assert!(!text.contains("kept"), "{text}");
    assert_eq!(repo.changes(&base).paths, ["grown", "lost"]);
    // An agent that commits everything did not write everything.
    repo.commit("all of it");
    let text = repo.diff(&base);
    assert!(
        text.contains("+larger\n") && !text.contains("kept"),
        "{text}"
    );
    assert_eq!(repo.changes(&base).paths, ["grown", "lost"]);
}

#[test]
fn looking_leaves_no_trace() {
    let repo = Repo::new();
    repo.write("a.txt", "dirty\n");
    repo.write("b.txt", "staged\n");
    repo.git(&["add", "b.txt"]);
    repo.write("new", "new\n");
    // The same content with another time would make git refresh the index.
    repo.write("sub/c.txt", "sea\n");
    repo.git(&["config", "core.splitIndex", "true"]);
    let tell = || {
        repo.git(&["count-objects", "-v"])
            + &repo.git(&["for-each-ref"])
            + &repo.git(&["status", "--porcelain"])
    };
    let (told, before) = (tell(), repo.everything());
    let base = repo.base();
    repo.diff(&base);
    repo.changes(&base);
    repo.assert_untouched(&before);
    assert_eq!(told, tell());
    let left: Vec<_> = fs::read_dir(repo.scratch())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["objects"]);
}

#[test]
fn a_split_index_is_read_and_stays_split() {
    let repo = Repo::new();
    repo.git(&["update-index", "--split-index"]);
    let before = repo.everything();
    let base = repo.base();
    assert_eq!(repo.diff(&base), "");
    repo.assert_untouched(&before);
    repo.write("a.txt", "new\n");
    assert!(repo.diff(&base).contains("+new\n"));
}

#[test]
fn hostile_settings_change_nothing() {
    let repo = Repo::new();
    let base = repo.base();
    repo.write("a.txt", "one\ntwo\n3\n");
    repo.write("b.txt", "bee\r\n");
    let plain = repo.diff(&base);
    let witness = repo.root.path().join("witness");
    let program = repo.root.path().join("program");
    fs::write(
        &program,
        format!("#!/bin/sh\necho >> '{}'\n", witness.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    repo.write(".git/info/attributes", "*.txt diff=evil\n");
    fs::create_dir_all(repo.dir.join(".git/hooks")).unwrap();
    fs::copy(&program, repo.dir.join(".git/hooks/post-index-change")).unwrap();
    repo.write(".git/order", "b.txt\na.txt\n");
    let program = program.to_str().unwrap();
    for (key, value) in [
        ("diff.external", program),
        ("diff.evil.command", program),
        ("diff.evil.textconv", program),
        ("core.fsmonitor", program),
        ("core.pager", program),
        ("color.ui", "always"),
        ("color.diff", "always"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.orderFile", ".git/order"),
        ("diff.context", "0"),
        ("diff.interHunkContext", "9"),
        ("diff.relative", "true"),
        ("diff.renames", "false"),
        ("diff.submodule", "log"),
        ("diff.autoRefreshIndex", "false"),
        ("diff.suppressBlankEmpty", "true"),
        ("core.quotePath", "true"),
        ("core.safecrlf", "true"),
        ("core.autocrlf", "input"),
    ] {
        repo.git(&["config", key, value]);
    }
    // Line ends are content, and this setting is about content: leave that one line out.
    let without_b = |text: &str| text.split("diff --git a/b.txt").next().unwrap().to_owned();
    assert_eq!(without_b(&repo.diff(&base)), without_b(&plain));
    let again = repo.base();
    assert_eq!(repo.diff(&again), "");
    assert!(!witness.exists());
}

#[test]
fn odd_names_are_quoted_and_ignored_files_stay_out() {
    let repo = Repo::new();
    repo.write(".ralph/.gitignore", "*\n");
    repo.write(OsStr::from_bytes(b"old\xff"), "same\n");
    let base = repo.base();
    repo.write(".ralph/task/x", "secret\n");
    repo.write("two\nlines", "a\n");
    repo.write("say \"hi\"", "b\n");
    repo.write(OsStr::from_bytes(b"raw\xffname"), b"c\xff\n");
    repo.write("žába", "d\n");
    let text = repo.diff(&base);
    for expected in [
        r#"+++ "b/two\nlines""#,
        r#"+++ "b/say \"hi\"""#,
        r#"+++ "b/raw\377name""#,
        "+++ b/žába\n@@ -0,0 +1 @@\n+d\n",
        "+c\u{fffd}\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!text.contains("secret") && !text.contains("old"), "{text}");
    assert_eq!(repo.changes(&base).files, 4);
    repo.git(&["add", "-A"]);
    assert_eq!(
        repo.changes(&base).files,
        5,
        "a quoted name is not recognised once it is tracked"
    );
}

#[test]
fn the_head_is_kept_and_the_rest_counted() {
    let repo = Repo::new();
    let base = repo.base();
    repo.write("a.txt", "🦀".repeat(100) + "\n");
    repo.write("new", "x\n");
    let whole = repo.diff(&base);
    let total = whole.chars().count();
    let crab = whole.chars().position(|char| char == '🦀').unwrap();
    for max in [0, 1, crab + 1, crab + 50, total - 1, total, total + 1] {
        let cut = repo.cut(&base, max);
        assert_eq!(cut.text, whole.chars().take(max).collect::<String>());
        assert_eq!(cut.dropped_chars, total.saturating_sub(max) as u64);
        assert!(!cut.at_least);
    }
}

#[test]
fn huge_files_are_named_and_endless_diffs_are_more_than() {
    let repo = Repo::new();
    let base = repo.base();
    repo.write("huge", vec![b'x'; 2 << 20]);
    let text = repo.diff(&base);
    assert!(
        text.contains("b/huge\nnew file mode 100644\n(2097152 bytes; too large to show)\n"),
        "{text}"
    );
    for file in 0..5 {
        repo.write(
            format!("long{file}.txt"),
            "0123456789abcde\n".repeat(128 << 10),
        );
    }
    repo.git(&["add", "-A"]);
    let cut = repo.cut(&base, 1000);
    assert_eq!(cut.text.chars().count(), 1000);
    assert!(cut.at_least);
    assert_eq!(cut.dropped_chars, (8 << 20) - 1000);
    assert_eq!(repo.changes(&base).insertions, 5 * (128 << 10) + 1);
}

#[test]
fn a_crowd_of_untracked_files_is_only_counted() {
    let repo = Repo::new();
    let fill = |dir: &str, count: u32| {
        fs::create_dir(repo.dir.join(dir)).unwrap();
        for file in 0..count {
            fs::write(repo.dir.join(format!("{dir}/{file}")), "").unwrap();
        }
    };
    let small = repo.base();
    fill("crowd", 20_001);
    let base = repo.base();
    repo.write("new", "n\n");
    let diff = repo.cut(&base, 1000);
    assert_eq!(diff.text, "");
    assert_eq!(
        diff.note.unwrap(),
        "untracked files are not shown: there were more than 20000 at the start"
    );
    let diff = repo.cut(&small, 1000);
    assert!(diff.at_least && diff.note.unwrap().contains("first 20000"));
    assert_eq!(repo.changes(&small).files, 20_000);
}

#[test]
fn a_base_survives_being_stored() {
    let repo = Repo::new();
    repo.write(OsStr::from_bytes(b"raw\xff"), "x");
    let base = repo.base();
    let stored = serde_json::to_string(&base).unwrap();
    let base: Base = serde_json::from_str(&stored).unwrap();
    assert_eq!(repo.diff(&base), "");
    // Without its objects it says so.
    repo.write("a.txt", "dirt\n");
    let base = repo.base();
    fs::remove_dir_all(repo.scratch()).unwrap();
    let error = base.diff(&repo.scratch(), 10).unwrap_err();
    assert!(
        error.starts_with("git diff failed with exit code 128: fatal: "),
        "{error}"
    );
}

#[test]
fn a_change_in_the_same_moment_as_the_index_is_seen() {
    for _ in 0..20 {
        let repo = Repo::new();
        let base = repo.base();
        repo.write("b.txt", "bed\n");
        repo.git(&["add", "b.txt"]);
        repo.write("b.txt", "bet\n");
        assert!(repo.diff(&base).contains("+bet\n"));
    }
}
