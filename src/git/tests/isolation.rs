//! Tests that a diff neither changes the repository nor depends on the user's settings.

use super::Repo;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_diff_leaves_no_trace_in_the_repository() {
    let repo = Repo::new();
    repo.write("a.txt", "dirty\n");
    repo.write("b.txt", "staged\n");
    repo.git(&["add", "b.txt"]);
    repo.write("new", "new\n");
    // The same content with a newer time would make git refresh the index.
    repo.write("sub/c.txt", "sea\n");
    repo.git(&["config", "core.splitIndex", "true"]);
    let describe = || {
        repo.git(&["count-objects", "-v"])
            + &repo.git(&["for-each-ref"])
            + &repo.git(&["status", "--porcelain"])
    };
    let (description, before) = (describe(), repo.all_files());
    let base = repo.base();
    repo.diff(&base);
    repo.stat(&base);
    repo.assert_untouched(&before);
    assert_eq!(description, describe());
    let files: Vec<_> = fs::read_dir(repo.scratch())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(files, ["objects"]);
}

#[test]
fn a_split_index_is_read_and_stays_split() {
    let repo = Repo::new();
    repo.git(&["update-index", "--split-index"]);
    let before = repo.all_files();
    let base = repo.base();
    assert_eq!(repo.diff(&base), "");
    repo.assert_untouched(&before);
    repo.write("a.txt", "new\n");
    assert!(repo.diff(&base).contains("+new\n"));
}

#[test]
fn user_settings_do_not_change_the_diff() {
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
    // `core.autocrlf` changes the content of b.txt itself, so leave that file out.
    let without_b = |text: &str| text.split("diff --git a/b.txt").next().unwrap().to_owned();
    assert_eq!(without_b(&repo.diff(&base)), without_b(&plain));
    let again = repo.base();
    assert_eq!(repo.diff(&again), "");
    assert!(!witness.exists());
}

#[test]
fn index_copies_of_killed_processes_are_removed() {
    let repo = Repo::new();
    let base = repo.base();
    // Larger than any process ID.
    let left = ["index-1073741824-0", "index-1073741824-1.lock"];
    let own = format!("index-{}-99", std::process::id());
    for name in left.into_iter().chain([own.as_str()]) {
        fs::write(repo.scratch().join(name), "").unwrap();
    }
    repo.diff(&base);
    for name in left {
        assert!(!repo.scratch().join(name).exists(), "{name}");
    }
    assert!(repo.scratch().join(own).exists(), "its process is alive");
}
