//! Tests of diffs in all kinds of repositories.

use super::{DiffBase, Repo, counts};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn a_repository_without_commit_and_index_has_a_base() {
    let repo = Repo::empty();
    assert!(!repo.dir.join(".git/index").exists());
    repo.write("before", "x\n");
    let base = repo.base();
    assert_eq!(repo.diff(&base), "");
    repo.write("after", "y\n");
    repo.git(&["add", "after"]);
    let text = repo.diff(&base);
    assert!(
        text.contains("+++ b/after") && !text.contains("before"),
        "{text}"
    );
    repo.git(&["commit", "-qm", "first"]);
    assert_eq!(repo.diff(&base), text);
}

#[test]
fn a_base_of_a_subdirectory_covers_the_whole_repository() {
    let repo = Repo::new();
    let base = DiffBase::capture(&repo.dir.join("sub"), &repo.scratch())
        .unwrap()
        .unwrap();
    assert_eq!(base.top, fs::canonicalize(&repo.dir).unwrap());
    repo.write("b.txt", "bumble\n");
    repo.write("other/new", "n\n");
    let text = repo.diff(&base);
    assert!(
        text.contains("a/b.txt") && text.contains("b/other/new"),
        "{text}"
    );
}

#[test]
fn there_is_no_base_without_a_working_tree() {
    let root = TempDir::new().unwrap();
    let scratch = root.path().join("scratch");
    assert_eq!(DiffBase::capture(root.path(), &scratch), Ok(None));
    let bare = Repo::init(&["--bare"]);
    assert_eq!(DiffBase::capture(&bare.dir, &scratch), Ok(None));
    let repo = Repo::new();
    assert_eq!(
        DiffBase::capture(&repo.dir.join(".git"), &scratch),
        Ok(None)
    );
    assert!(!scratch.exists());
    let missing = DiffBase::capture(&root.path().join("missing"), &scratch).unwrap_err();
    assert!(missing.contains("is not a directory"), "{missing}");
}

#[test]
fn a_conflict_at_the_start_is_part_of_the_base() {
    let repo = Repo::new();
    repo.git(&["checkout", "-qb", "side"]);
    repo.write("b.txt", "wasp\n");
    repo.commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("b.txt", "ant\n");
    repo.commit("main");
    let clean = repo.base();
    let merge = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "merge",
            "-q",
            "side",
        ])
        .current_dir(&repo.dir)
        .output()
        .unwrap();
    assert!(!merge.status.success());
    let base = repo.base();
    repo.write("b.txt", "both\n");
    let text = repo.diff(&base);
    assert!(
        text.contains("-<<<<<<<") && text.contains("+both\n"),
        "{text}"
    );
    assert_eq!(repo.stat(&clean).files, 1);
    assert!(repo.git(&["status", "--porcelain"]).starts_with("UU"));
}

#[test]
fn other_kinds_of_repositories_work() {
    // SHA-256.
    let repo = Repo::init(&["--object-format=sha256"]).with_first_commit();
    let base = repo.base();
    repo.write("a.txt", "sha256\n");
    assert!(repo.diff(&base).contains("+sha256\n"));

    // A linked worktree, and a clone that shares its objects.
    let repo = Repo::new();
    let linked = repo.root.path().join("linked");
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let clone = repo.root.path().join("clone");
    repo.git(&[
        "clone",
        "-qs",
        repo.dir.to_str().unwrap(),
        clone.to_str().unwrap(),
    ]);
    for dir in [linked, clone] {
        fs::write(dir.join("b.txt"), "before\n").unwrap();
        let base = DiffBase::capture(&dir, &repo.scratch()).unwrap().unwrap();
        fs::write(dir.join("b.txt"), "after\n").unwrap();
        let text = repo.diff(&base);
        assert!(text.contains("-before\n+after\n"), "{text}");
    }

    // A sparse checkout.
    let repo = Repo::new();
    repo.git(&[
        "sparse-checkout",
        "set",
        "--cone",
        "--sparse-index",
        "elsewhere",
    ]);
    assert!(!repo.dir.join("sub").exists());
    let before = repo.all_files();
    let base = repo.base();
    assert_eq!(repo.diff(&base), "");
    repo.assert_untouched(&before);
    repo.write("a.txt", "sparse\n");
    assert!(repo.diff(&base).contains("+sparse\n"));
}

#[test]
fn work_in_a_submodule_shows_and_a_new_nested_repository_shows_as_its_name() {
    let library = Repo::new();
    let repo = Repo::new();
    repo.git(&[
        "submodule",
        "--quiet",
        "add",
        library.dir.to_str().unwrap(),
        "lib",
    ]);
    repo.commit("with a submodule");
    let lib = repo.dir.join("lib");
    fs::write(lib.join("a.txt"), "dirty\n").unwrap();
    let base = repo.base();
    assert_eq!(repo.diff(&base), "");
    fs::write(lib.join("a.txt"), "dirtier\n").unwrap();
    fs::write(lib.join("new"), "new\n").unwrap();
    let text = repo.diff(&base);
    for expected in [
        "--- a/lib/a.txt\n+++ b/lib/a.txt\n@@ -1 +1 @@\n-dirty\n+dirtier\n",
        "diff --git a/lib/new b/lib/new\nnew file mode 100644\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let stat = repo.stat(&base);
    assert_eq!(counts(&stat), (2, 2, 1));
    assert_eq!(stat.paths, ["lib/a.txt", "lib/new"]);
    fs::write(lib.join("a.txt"), "dirty\n").unwrap();
    fs::remove_file(lib.join("new")).unwrap();
    assert_eq!(repo.diff(&base), "");
    repo.git_in(&lib, &["commit", "-qam", "inside"]);
    let text = repo.diff(&base);
    assert!(
        text.contains("-Subproject commit ") && text.contains("+Subproject commit "),
        "{text}"
    );
    fs::create_dir(repo.dir.join("nest")).unwrap();
    repo.git_in(&repo.dir.join("nest"), &["init", "-q"]);
    fs::write(repo.dir.join("nest/x"), "x\n").unwrap();
    repo.git_in(&repo.dir.join("nest"), &["add", "x"]);
    repo.git_in(&repo.dir.join("nest"), &["commit", "-qm", "x"]);
    let text = repo.diff(&base);
    assert!(
        text.contains("b/nest/\n") && text.contains("a nested git repository"),
        "{text}"
    );
}

#[test]
fn work_in_a_submodule_that_was_checked_out_later_shows() {
    let library = Repo::new();
    let repo = Repo::new();
    repo.git(&[
        "submodule",
        "--quiet",
        "add",
        library.dir.to_str().unwrap(),
        "lib",
    ]);
    repo.commit("with a submodule");
    repo.git(&["submodule", "--quiet", "deinit", "--force", "lib"]);
    let base = repo.base();
    assert_eq!(repo.diff(&base), "");
    repo.git(&["submodule", "--quiet", "update", "--init"]);
    assert_eq!(repo.diff(&base), "");
    fs::write(repo.dir.join("lib/b.txt"), "wasp\n").unwrap();
    assert_eq!(repo.stat(&base).paths, ["lib/b.txt"]);
}

#[test]
fn work_in_a_nested_repository_that_was_there_before_shows() {
    let repo = Repo::new();
    let nest = repo.dir.join("nest");
    fs::create_dir(&nest).unwrap();
    repo.git_in(&nest, &["init", "-q"]);
    fs::write(nest.join("x"), "x\n").unwrap();
    let base = repo.base();
    assert_eq!(repo.diff(&base), "");
    fs::write(nest.join("x"), "longer\n").unwrap();
    fs::write(nest.join("y"), "y\n").unwrap();
    assert_eq!(repo.stat(&base).paths, ["nest/x", "nest/y"]);
    fs::remove_dir_all(nest.join(".git")).unwrap();
    assert_eq!(repo.stat(&base).paths, ["nest/x", "nest/y"]);
}

#[test]
fn only_settings_in_the_ralph_directory_count_as_changed() {
    let repo = Repo::new();
    repo.write(".ralph/state.json", "1\n");
    repo.write(".ralph/settings.toml", "delay = 1\n");
    repo.commit("another tool's directory");
    let base = repo.base();
    for path in [
        ".ralph/state.json",
        ".ralph/task/a/progress.md",
        "deep/.ralph/guardrail_1_x.log",
    ] {
        repo.write(path, "new\n");
    }
    assert_eq!(repo.diff(&base), "");
    repo.write(".ralph/settings.toml", "delay = 2\n");
    repo.write("deep/.ralph/template.md", "{{task}}\n");
    let text = repo.diff(&base);
    assert!(text.contains("-delay = 1\n+delay = 2\n"), "{text}");
    assert_eq!(
        repo.stat(&base).paths,
        [".ralph/settings.toml", "deep/.ralph/template.md"]
    );
}
