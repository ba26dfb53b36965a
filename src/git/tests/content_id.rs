//! Tests of the ID of a working tree's content.

use super::Repo;
use crate::git::content::TreeContent;
use std::fs;

fn content(repo: &Repo) -> TreeContent {
    TreeContent::find(&repo.dir, &repo.scratch())
        .unwrap()
        .expect("a working tree")
}

#[test]
fn the_id_depends_on_the_content_alone() {
    let repo = Repo::new();
    let content = content(&repo);
    let start = content.id().unwrap();
    assert_eq!(content.id().unwrap(), start);

    repo.write("new file.txt", "one\n");
    let changed = content.id().unwrap();
    assert_ne!(changed, start);
    repo.git(&["add", "-A"]);
    assert_eq!(content.id().unwrap(), changed, "staged");
    repo.git(&["commit", "-qm", "second"]);
    assert_eq!(content.id().unwrap(), changed, "committed");

    fs::remove_file(repo.dir.join("new file.txt")).unwrap();
    assert_eq!(content.id().unwrap(), start, "back at the start");
}

#[test]
fn ignored_files_and_ralph_s_own_do_not_count() {
    let repo = Repo::new();
    repo.write(".gitignore", "node_modules/\n");
    let content = content(&repo);
    let start = content.id().unwrap();
    for path in [
        "node_modules/a.js",
        ".ralph/task/a/DONE",
        "deep/.ralph/x",
        ".claude/ralph-loop.local.md",
    ] {
        repo.write(path, "x\n");
        assert_eq!(content.id().unwrap(), start, "{path}");
    }
}

#[test]
fn files_in_nested_repositories_count() {
    let repo = Repo::new();
    let content = content(&repo);
    let start = content.id().unwrap();
    fs::create_dir(repo.dir.join("app")).unwrap();
    repo.git(&["init", "-q", "app"]);
    repo.write("app/main.py", "1\n");
    let first = content.id().unwrap();
    assert_ne!(first, start);
    repo.write("app/main.py", "2\n");
    assert_ne!(content.id().unwrap(), first);
}

#[test]
fn a_damaged_private_index_is_replaced() {
    let repo = Repo::new();
    let content = content(&repo);
    let start = content.id().unwrap();
    let index = repo.scratch().join("content/index");
    fs::write(&index, "garbage").unwrap();
    assert_eq!(content.id().unwrap(), start);
    fs::write(index.with_extension("lock"), "").unwrap();
    repo.write("a.txt", "changed\n");
    assert_ne!(content.id().unwrap(), start);
}

#[test]
fn a_file_that_becomes_a_directory_during_a_merge_has_an_id() {
    let repo = Repo::new();
    let content = content(&repo);
    content.id().unwrap();
    repo.git(&["checkout", "-qb", "side"]);
    repo.write("b.txt", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("b.txt", "main\n");
    repo.commit("main");
    repo.git(&["merge", "-q", "--no-commit", "-s", "ours", "side"]);
    content.id().unwrap();
    fs::remove_file(repo.dir.join("a.txt")).unwrap();
    fs::create_dir(repo.dir.join("a.txt")).unwrap();
    repo.write("a.txt/inner", "x\n");
    content.id().unwrap();
}
