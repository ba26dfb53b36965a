//! Workspaces and changes that could confuse a view, in each kind of view.

use super::kit::{Case, check};
use crate::proof::view::{View, ViewKind, copy, exchange};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

#[test]
fn any_path_of_a_workspace_works() {
    let long = ["x".repeat(250).as_str(); 7].join("/");
    let names: [&[u8]; 8] = [
        b"a:b,c\\d=e",
        b"with space\tand\nnewline",
        b"\xff\xfe",
        b"lowerdir=,upperdir=\\,",
        b"'\"$(id)`;*",
        b".hidden/\xe2\x80\xae",
        long.as_bytes(),
        b"0/upper",
    ];
    for name in names {
        let case = Case::at(&std::env::temp_dir(), OsStr::from_bytes(name))
            .agent("echo edited >test; echo new >added")
            .original("test", "first\n")
            .absent("added");
        let view = case.view();
        assert_eq!(view.kind(), ViewKind::Overlay, "{name:?}");
        assert_eq!(check(&view, "cat test; ls"), "first\ntest\n", "{name:?}");
        view.remove().unwrap();
    }
}

#[test]
fn a_view_works_on_a_memory_file_system() {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let case = Case::at(&parent, "workspace")
        .agent("mkdir d; echo new >d/x; echo edited >test")
        .absent("d")
        .original("d/y", "y\n")
        .original("test", "first\n");
    let view = case.view();
    assert_eq!(view.kind(), ViewKind::Overlay);
    assert_eq!(check(&view, "cat test d/*"), "first\ny\n");
    view.remove().unwrap();
}

#[test]
fn a_workspace_can_be_named_by_a_symbolic_link() {
    let mut case = Case::new()
        .agent("echo edited >test")
        .original("test", "first\n");
    let link = case.root.join("link");
    symlink(&case.workspace, &link).unwrap();
    let real = case.workspace.join("test");
    case.workspace = link;
    let view = case.view();
    let script = format!("cat test {}", real.display());
    assert_eq!(check(&view, &script), "first\nfirst\n");
    view.remove().unwrap();
}

#[test]
fn a_workspace_may_contain_the_layers() {
    let mut case = Case::new()
        .agent("echo edited >test; mkdir -p state/loop; echo 1 >state/loop/journal")
        .original("test", "first\n");
    case.scratch = case.workspace.join("state/loop/view");
    let view = case.view();
    assert_eq!(
        check(&view, "cat test state/loop/journal; ls -A state/loop/view"),
        "first\n1\n"
    );
    view.remove().unwrap();
}

/// The agent's script, the changes, and what a check sees.
type Table = [(&'static str, fn(Case) -> Case, &'static str)];

const REPLACED: &Table = &[
    // A directory of tests became a link to other tests.
    (
        "mkdir evil; echo evil >evil/a; ln -s evil tests",
        |case| case.original("tests/a", "first\n"),
        "./\n./evil/\n./evil/a: evil\n./tests/\n./tests/a: first",
    ),
    // A file became a directory, and a directory became a file.
    (
        "mkdir test; echo >test/x; echo >tests",
        |case| case.original("test", "first\n").original("tests/a", "a\n"),
        "./\n./test: first\n./tests/\n./tests/a: a",
    ),
    // A file became a link to a file that must not be written through.
    (
        "echo code >code; ln -s code test",
        |case| case.original("test", "first\n"),
        "./\n./code: code\n./test: first",
    ),
    // The agent added a directory, and deleted another.
    (
        "mkdir -p new/deep; echo >new/deep/x; echo >y",
        |case| case.absent("new").original("old/deep/x", "x\n").absent("y"),
        "./\n./old/\n./old/deep/\n./old/deep/x: x",
    ),
    // A directory with new files, of which the view has only an old one.
    (
        "mkdir d; echo >d/new; echo edited >d/old",
        |case| case.absent("d").original("d/old", "old\n"),
        "./\n./d/\n./d/old: old",
    ),
    // A device that an overlay would take for a deleted file, and the attribute of a hidden one.
    (
        "echo edited >test; mknod gone c 0 0; mkdir opaque; echo 1 >opaque/x",
        |case| case.original("test", "first\n").absent("gone"),
        "./\n./opaque/\n./opaque/x: 1\n./test: first",
    ),
    // Many new files, beside an old file, one that was restored and a directory that was deleted.
    (
        "mkdir d; seq 20 | sed 's/^/d\\//' | xargs touch; echo kept >d/kept; echo edited >d/a",
        |case| {
            many_absent(case)
                .original("d/a", "a\n")
                .original("d/deep/x", "x\n")
        },
        "./\n./d/\n./d/a: a\n./d/deep/\n./d/deep/x: x\n./d/kept: kept",
    ),
    // Many new files beside a directory, and in one that was not there.
    (
        "mkdir -p d/sub; seq 20 | sed 's/^/d\\//' | xargs touch; echo 1 >d/sub/x",
        |case| (1..=20).fold(many_absent(case), |case, n| case.absent(&format!("e/{n}"))),
        "./\n./d/\n./d/sub/\n./d/sub/x: 1",
    ),
    // A directory with many new files became a link to another one.
    (
        "mkdir ../evil; ln -s ../evil d; cd ../evil; seq 20 | xargs touch; echo evil >a; echo >b",
        |case| many_absent(case).original("d/a", "a\n"),
        "./\n./d/\n./d/a: a",
    ),
    // A directory of tests became a file, among many new files.
    (
        "mkdir d; seq 20 | sed 's/^/d\\//' | xargs touch; echo file >d/tests",
        |case| many_absent(case).original("d/tests/a", "a\n"),
        "./\n./d/\n./d/tests/\n./d/tests/a: a",
    ),
    // Names that need quoting.
    (
        "echo edited >'a b,c:d\\q'; echo >'-n'",
        |case| case.original("a b,c:d\\q", "first\n").absent("-n"),
        "./\n./a b,c:d\\q: first",
    ),
];

/// The files `d/1` to `d/20` are absent: so many that the whole directory is hidden if that is
/// possible.
fn many_absent(case: Case) -> Case {
    (1..=20).fold(case, |case, n| case.absent(&format!("d/{n}")))
}

const TREE: &str = "find . | sort | while read -r f; do [ -d \"$f\" ] && [ ! -L \"$f\" ] && \
    echo \"$f/\" || echo \"$f: $(cat \"$f\")\"; done";

#[test]
fn replaced_files_and_directories_are_as_they_were() {
    for (agent, changes, expected) in REPLACED {
        let case = changes(Case::new().agent(agent));
        let before = case.tree();
        let seen = |view: &View| check(view, TREE).replace("./\n", "").trim_end().to_owned();
        let expected = expected.replace("./\n", "");
        let view = case.view();
        assert_eq!(view.kind(), ViewKind::Overlay);
        assert_eq!(seen(&view), expected, "an overlay after {agent}");
        view.remove().unwrap();
        assert_eq!(case.tree(), before, "after {agent}");
        fs::create_dir_all(&case.scratch).unwrap();
        let view = copy::prepare(&case.request()).unwrap();
        assert_eq!(seen(&view), expected, "a copy after {agent}");
        view.remove().unwrap();
        fs::create_dir_all(&case.scratch).unwrap();
        if let Ok(view) = exchange::prepare(&case.request()) {
            assert_eq!(seen(&view), expected, "an exchange after {agent}");
            view.remove().unwrap();
        }
        assert_eq!(case.tree(), before, "after {agent}");
    }
}

#[test]
fn a_copy_reports_what_names_the_workspace() {
    let case = Case::new().agent(
        "mkdir -p venv/bin; printf '#!%s/venv/bin/python\\n' \"$PWD\" >venv/bin/pytest; \
         ln -s \"$PWD/venv\" link; ln -s venv relative; echo other >file; \
         head -c 1048570 /dev/zero >large; echo \"$PWD/x\" >>large",
    );
    fs::create_dir_all(&case.scratch).unwrap();
    let view = copy::prepare(&case.request()).unwrap();
    assert_ne!(view.dir(), case.workspace);
    let [crate::proof::view::Weakness::NamesWorkspace(named)] = view.weaknesses() else {
        panic!("{:?}", view.weaknesses());
    };
    let mut named = named.clone();
    named.sort();
    let expected = ["large", "link", "venv/bin/pytest"].map(PathBuf::from);
    assert_eq!(named, expected);
    view.remove().unwrap();
}
