//! Tests of checkpoints and rewinds with real repositories.

use super::Repo;
use crate::git::checkpoint::{Checkpoint, Checkpoints};
use crate::git::content::TreeContent;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

const ID: &str = "0123abc";

impl Repo {
    fn content(&self) -> TreeContent {
        TreeContent::find(&self.dir, &self.scratch())
            .unwrap()
            .expect("a working tree")
    }

    fn checkpoint(&self, name: &str) -> Checkpoint {
        self.content().take_checkpoint(ID, name).unwrap()
    }

    fn rewind(&self, to: &Checkpoint) -> (Vec<String>, Vec<String>) {
        let rewound = self.content().rewind(ID, to).unwrap();
        let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
        let changed = rewound.changed.iter();
        (
            changed
                .map(|(kind, path)| format!("{kind} {}", text(path)))
                .collect(),
            rewound.kept.keys().map(text).collect(),
        )
    }

    /// Returns the files outside `.git`: their bytes, or the target of a link, and their mode.
    fn files(&self) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
        let mut all = BTreeMap::new();
        let mut dirs = vec![self.dir.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let (path, data) = (entry.path(), entry.metadata().unwrap());
                if data.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    all.insert(path, (target.as_os_str().as_bytes().to_vec(), 0));
                } else if data.is_dir() {
                    if entry.file_name() != ".git" {
                        dirs.push(path);
                    }
                } else {
                    let mode = data.permissions().mode() & 0o100;
                    all.insert(path.clone(), (fs::read(path).unwrap(), mode));
                }
            }
        }
        all
    }
}

/// Changes the files, and checks that a rewind puts back every byte and can be undone.
fn assert_round_trip(repo: &Repo, change: impl FnOnce(&Repo)) {
    let before = repo.files();
    let start = repo.checkpoint("0");
    change(repo);
    let after = repo.files();
    assert_ne!(before, after);
    repo.checkpoint("1");
    let index = fs::read(repo.dir.join(".git/index")).ok();
    let (changed, _) = repo.rewind(&start);
    assert!(!changed.is_empty());
    assert_eq!(repo.files(), before);
    let undo = Checkpoints::find(&repo.scratch()).unwrap();
    let undo = undo.get("undo").unwrap().expect("what was there before");
    repo.rewind(&undo);
    assert_eq!(repo.files(), after);
    assert_eq!(fs::read(repo.dir.join(".git/index")).ok(), index);
}

#[test]
fn a_rewind_puts_back_bytes_links_modes_and_odd_names() {
    let repo = Repo::new();
    let odd = Path::new(OsStr::from_bytes(b"odd\n\xff \\name"));
    repo.write(odd, "odd\n");
    repo.write("run.sh", "#!/bin/sh\n");
    symlink("a.txt", repo.dir.join("link")).unwrap();
    repo.write("dir/file", "x\n");
    repo.write("was-file", "x\n");
    repo.commit("second");
    repo.write("untracked", "u\n");
    assert_round_trip(&repo, |repo| {
        let run = repo.dir.join("run.sh");
        fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(repo.dir.join("link")).unwrap();
        symlink("b.txt", repo.dir.join("link")).unwrap();
        repo.write(odd, "changed\n");
        fs::remove_file(repo.dir.join("a.txt")).unwrap();
        fs::remove_dir_all(repo.dir.join("dir")).unwrap();
        repo.write("dir", "a file now\n");
        fs::remove_file(repo.dir.join("was-file")).unwrap();
        repo.write("was-file/inner", "x\n");
        repo.write("untracked", "changed\n");
        repo.write("new/deep/file", "n\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "by the agent"]);
    });
}

#[test]
fn files_that_git_converts_are_stored_byte_for_byte() {
    let repo = Repo::empty();
    let attributes =
        "*.txt text eol=lf\n*.enc filter=rot\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n";
    repo.write(".gitattributes", attributes);
    repo.git(&["config", "filter.rot.clean", "tr a-z b-za"]);
    repo.git(&["config", "filter.rot.smudge", "tr b-za a-z"]);
    repo.write("crlf.txt", "one\r\ntwo\r\n");
    repo.write("secret.enc", "abc\n");
    repo.write("x.id", "$Id: local $\n");
    repo.write("wide.u16", b"a\0b\0");
    repo.commit("first");
    assert_round_trip(&repo, |repo| {
        repo.write("crlf.txt", "one\r\ntwo\r\nthree\n");
        repo.write("secret.enc", "xyz\n");
        fs::remove_file(repo.dir.join("x.id")).unwrap();
        fs::remove_file(repo.dir.join("wide.u16")).unwrap();
    });
    repo.git(&["config", "core.autocrlf", "true"]);
    fs::remove_dir_all(repo.scratch()).unwrap();
    repo.write("plain", "a\r\n");
    repo.commit("second");
    assert_round_trip(&repo, |repo| {
        fs::remove_file(repo.dir.join("plain")).unwrap();
    });
}

#[test]
fn repositories_of_every_kind_have_checkpoints() {
    let sha256 = Repo::init(&["--object-format=sha256"]).with_first_commit();
    let unborn = Repo::empty();
    unborn.write("a.txt", "one\n");
    let split = Repo::new();
    split.git(&["update-index", "--split-index"]);
    for repo in [sha256, unborn, split] {
        assert_round_trip(&repo, |repo| {
            repo.write("a.txt", "changed\n");
            repo.write("new", "n\n");
        });
    }
}

#[test]
fn a_linked_worktree_and_a_shallow_clone_have_checkpoints() {
    let repo = Repo::new();
    repo.git(&["worktree", "add", "-q", "../linked"]);
    let source = format!("file://{}", repo.dir.display());
    repo.git(&["clone", "-q", "--depth=1", &source, "../shallow"]);
    for name in ["linked", "shallow"] {
        let dir = repo.root.path().join(name);
        let scratch = repo.root.path().join(format!("scratch-{name}"));
        let content = TreeContent::find(&dir, &scratch).unwrap().unwrap();
        let start = content.take_checkpoint(ID, "0").unwrap();
        fs::write(dir.join("a.txt"), "changed\n").unwrap();
        content.rewind(ID, &start).unwrap();
        assert_eq!(
            fs::read_to_string(dir.join("a.txt")).unwrap(),
            "one\ntwo\nthree\n"
        );
        assert_eq!(Checkpoints::find(&scratch).unwrap().delete(), Ok(2));
    }
    assert_eq!(repo.git(&["for-each-ref", "refs/ralph"]), "");
}

#[test]
fn secrets_and_large_files_are_skipped_and_left_alone() {
    let repo = Repo::new();
    repo.write(".env", "TOKEN=1\n");
    repo.write("big.bin", vec![b'x'; (10 << 20) + 1]);
    repo.write("grows", "small\n");
    repo.write("server.key", "tracked\n");
    repo.git(&["add", "server.key"]);
    repo.git(&["commit", "-qm", "key"]);
    let start = repo.checkpoint("0");
    let names: Vec<_> = start.skipped.keys().map(Vec::as_slice).collect();
    assert_eq!(names, [&b".env"[..], b"big.bin"]);
    let listed = repo.git(&["ls-tree", "-r", "--name-only", &start.tree]);
    assert!(
        !listed.contains("env") && !listed.contains("big"),
        "{listed}"
    );
    repo.write(".env", "TOKEN=2\n");
    repo.write("big.bin", "small now\n");
    repo.write("grows", vec![b'x'; (10 << 20) + 1]);
    repo.write("server.key", "changed\n");
    repo.write("a.txt", "changed\n");
    let (changed, kept) = repo.rewind(&start);
    assert_eq!(changed, ["M a.txt"]);
    assert_eq!(kept, [".env", "big.bin", "grows", "server.key"]);
    assert_eq!(fs::read(repo.dir.join(".env")).unwrap(), b"TOKEN=2\n");
    assert_eq!(fs::read(repo.dir.join("big.bin")).unwrap(), b"small now\n");
    let stored = repo.git(&["cat-file", "--batch-all-objects", "--batch", "--unordered"]);
    assert!(!stored.contains("TOKEN"), "a secret was stored");
}

#[test]
fn ignored_files_survive_a_rewind_whatever_the_agent_does_to_the_rules() {
    let repo = Repo::new();
    repo.write(".gitignore", "cache/\n*.log\n");
    repo.write("gen/out", "stored\n");
    repo.commit("rules");
    repo.write("cache/deep/file", "c\n");
    repo.write("a.log", "l\n");
    let start = repo.checkpoint("0");
    repo.write(".gitignore", "out\n");
    fs::remove_dir_all(repo.dir.join("gen")).unwrap();
    repo.write("new", "n\n");
    repo.checkpoint("1");
    repo.write("gen/out", "ignored now\n");
    fs::remove_file(repo.scratch().join("content/stored-index")).unwrap();
    repo.git(&["rm", "-q", "--cached", "gen/out"]);
    let (changed, kept) = repo.rewind(&start);
    assert_eq!(changed, ["M .gitignore", "D new"]);
    assert_eq!(kept, ["a.log", "cache/deep/file", "gen/out"]);
    assert_eq!(fs::read(repo.dir.join("a.log")).unwrap(), b"l\n");
    assert_eq!(
        fs::read(repo.dir.join("gen/out")).unwrap(),
        b"ignored now\n"
    );
}

#[test]
fn repositories_inside_are_left_alone() {
    let library = Repo::new();
    let repo = Repo::new();
    let source = library.dir.display().to_string();
    repo.git(&["submodule", "add", "-q", &source, "lib"]);
    repo.commit("submodule");
    fs::create_dir(repo.dir.join("nested")).unwrap();
    repo.git(&["init", "-q", "nested"]);
    repo.write("nested/main.py", "1\n");
    let start = repo.checkpoint("0");
    repo.write("nested/main.py", "2\n");
    repo.write("lib/a.txt", "changed\n");
    repo.git_in(&repo.dir.join("lib"), &["commit", "-qam", "inside"]);
    repo.write("a.txt", "changed\n");
    repo.checkpoint("1");
    let (changed, _) = repo.rewind(&start);
    assert_eq!(changed, ["M a.txt"]);
    assert_eq!(fs::read(repo.dir.join("nested/main.py")).unwrap(), b"2\n");
    assert_eq!(fs::read(repo.dir.join("lib/a.txt")).unwrap(), b"changed\n");
}

#[test]
fn a_lock_that_a_killed_git_left_does_not_stop_checkpoints() {
    let repo = Repo::new();
    repo.checkpoint("0");
    let refs = repo.dir.join(".git/refs/ralph").join(ID);
    fs::write(refs.join("1.lock"), "").unwrap();
    fs::write(repo.scratch().join("content/stored-index.lock"), "").unwrap();
    repo.write("a.txt", "changed\n");
    repo.checkpoint("1");
    fs::write(repo.scratch().join("content/stored-index"), "garbage").unwrap();
    repo.write("a.txt", "again\n");
    repo.checkpoint("2");
    fs::write(refs.join("0.lock"), "").unwrap();
    let all = Checkpoints::find(&repo.scratch()).unwrap();
    assert_eq!(all.numbers().unwrap(), [0, 1, 2]);
    assert_eq!(all.delete(), Ok(3));
    assert!(!repo.dir.join(".git/refs/ralph").exists());
    assert_eq!(all.delete(), Ok(0));
}

#[test]
fn the_id_after_the_checks_is_that_of_the_checkpoint_if_they_write_nothing() {
    let repo = Repo::new();
    let content = repo.content();
    let stored = content.take_checkpoint(ID, "0").unwrap();
    assert_eq!(content.id().unwrap(), stored.tree);
    repo.write("written by a check", "x\n");
    let id = content.id().unwrap();
    assert_ne!(id, stored.tree);
    assert_eq!(content.take_checkpoint(ID, "1").unwrap().tree, id);
    repo.write(".env", "A=1\n");
    let with_secret = content.id().unwrap();
    assert_ne!(with_secret, id);
    repo.write(".env", "A=2\n");
    assert_ne!(content.id().unwrap(), with_secret);
    repo.write(".env", "A=1\n");
    assert_eq!(content.id().unwrap(), with_secret);
}

#[test]
fn lists_and_patches_of_any_length_are_read() {
    let repo = Repo::new();
    repo.checkpoint("0");
    let content = repo.content();
    let shadow = content.stored_shadow().unwrap();
    let count = 70_000;
    let record = [vec![b'x'; 999], vec![0]].concat();
    let input = record.repeat(count);
    let args = ["hash-object", "-w", "--stdin"];
    let made = shadow.git_with_input(&args, &input).unwrap().stdout;
    let id = String::from_utf8(made).unwrap();
    let show = ["cat-file", "blob", id.trim()];
    assert!(shadow.git(&show).is_err(), "more than is kept in memory");
    let mut found = 0;
    let mut add = |record: &[u8]| found += usize::from(record.len() == 999);
    shadow.for_each_record(&show, &mut add).unwrap();
    assert_eq!(found, count);
}

#[test]
fn a_rewind_looks_up_what_the_rules_of_the_target_ignore() {
    let repo = Repo::new();
    repo.write("ignored", "");
    repo.write(".gitignore", "ignored\n");
    repo.write("changed", "before");
    let start = repo.checkpoint("0");
    repo.write("changed", "after");
    repo.write(".gitignore", "");
    let (changed, kept) = repo.rewind(&start);
    assert_eq!(changed, ["M .gitignore", "M changed"]);
    assert_eq!(kept, ["ignored"]);
}
