//! Tests of the contents of a diff.

use super::{Repo, counts};
use crate::git::diff::{Diff, DiffBase, DiffStat};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

#[test]
fn only_changes_since_the_base_show() {
    let repo = Repo::new();
    repo.write("a.txt", "dirty before\n");
    repo.write("b.txt", "staged before\n");
    repo.git(&["add", "b.txt"]);
    repo.write("old.txt", "untracked before\n");
    let base = repo.base();
    assert_eq!(repo.diff_up_to(&base, 5000), Diff::default());
    assert_eq!(repo.stat(&base), DiffStat::default());

    repo.write("a.txt", "dirty after\n");
    repo.write("new file.txt", "fresh\nlines\n");
    let text = repo.diff(&base);
    assert!(text.contains("-dirty before\n+dirty after\n"), "{text}");
    assert!(text.contains("diff --git a/new file.txt b/new file.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new file.txt\t\n@@ -0,0 +1,2 @@\n+fresh\n+lines\n"), "{text}");
    assert!(
        !text.contains("three") && !text.contains("staged before") && !text.contains("old.txt"),
        "{text}"
    );
    let stat = repo.stat(&base);
    assert_eq!(counts(&stat), (2, 3, 1));
    assert_eq!(stat.paths, ["a.txt", "new file.txt"]);
}

#[test]
fn tabs_and_spaces_do_not_confuse_the_statistics() {
    let repo = Repo::new();
    repo.write("main.go", "func main() {\n\tprintln(1)\n}\n");
    repo.write("two words", "a\tb\tc\n");
    repo.commit("code");
    let base = repo.base();
    repo.write("main.go", "func main() {\n\tprintln(1)\n\tprintln(2)\n}\n");
    repo.write("two words", "a\tb\td\n");
    repo.write("z", "");
    let stat = repo.stat(&base);
    assert_eq!(counts(&stat), (3, 2, 1));
    assert_eq!(stat.paths, ["main.go", "two words", "z"]);
}

#[test]
fn a_change_shows_alike_unstaged_staged_committed_and_amended() {
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
    assert_eq!(
        repo.diff(&base),
        "",
        "the other branch is equal to the base"
    );
    repo.git(&["checkout", "-q", "main"]);
    assert_eq!(repo.diff(&base), unstaged);
}

#[test]
fn stashing_changes_made_before_the_base_shows() {
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
fn deleted_renamed_binary_and_executable_files_show() {
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
    let stat = repo.stat(&base);
    assert_eq!(
        stat.paths,
        ["b.txt", "blob", "link", "run.sh", "sub/c.txt", "z.txt"]
    );
    assert_eq!(counts(&stat), (6, 2, 1));
}

#[test]
fn untracked_files_render_like_gits_own_diff() {
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
fn files_untracked_at_the_base_show_only_if_they_change() {
    let repo = Repo::new();
    repo.write("kept", "same\n");
    repo.write("grown", "small\n");
    repo.write("lost", "x\n");
    let base = repo.base();
    repo.write("grown", "small\nlarger\n");
    fs::remove_file(repo.dir.join("lost")).unwrap();
    let text = repo.diff(&base);
    assert!(
        text.contains("shown in full") && text.contains("+larger\n"),
        "{text}"
    );
    assert!(
        text.contains("diff --git a/lost b/lost\ndeleted file"),
        "{text}"
    );
    assert!(!text.contains("kept"), "{text}");
    assert_eq!(repo.stat(&base).paths, ["grown", "lost"]);
    // Committing a file does not count as changing it.
    repo.commit("all of it");
    let text = repo.diff(&base);
    assert!(
        text.contains("+larger\n") && !text.contains("kept"),
        "{text}"
    );
    assert_eq!(repo.stat(&base).paths, ["grown", "lost"]);
}

#[test]
fn unusual_names_are_quoted_and_ignored_files_excluded() {
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
    assert_eq!(repo.stat(&base).files, 4);
    repo.git(&["add", "-A"]);
    assert_eq!(
        repo.stat(&base).files,
        5,
        "a quoted name is not recognized once it is tracked"
    );
}

#[test]
fn a_base_can_be_serialized() {
    let repo = Repo::new();
    repo.write(OsStr::from_bytes(b"raw\xff"), "x");
    let base = repo.base();
    let stored = serde_json::to_string(&base).unwrap();
    let base: DiffBase = serde_json::from_str(&stored).unwrap();
    assert_eq!(repo.diff(&base), "");
    // Without the base's objects, the diff fails.
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
fn a_change_right_after_the_index_was_written_shows() {
    for _ in 0..20 {
        let repo = Repo::new();
        let base = repo.base();
        repo.write("b.txt", "bed\n");
        repo.git(&["add", "b.txt"]);
        repo.write("b.txt", "bet\n");
        assert!(repo.diff(&base).contains("+bet\n"));
    }
}
