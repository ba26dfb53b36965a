//! Changed files outside the workspace: in the user's home, in directories of `PATH`, in parents.

use super::kit::{Case, check};
use crate::proof::view::{ViewKind, Weakness, copy};
use std::fs;
use std::os::unix::fs::symlink;

/// A workspace below a home directory, which contains ralph's state too.
fn home() -> Case {
    Case::at(&std::env::temp_dir(), "code/workspace")
        .agent(
            "cd ../..; mkdir -p .config/pip bin dotfiles; echo edited >.config/pip/pip.conf; \
             echo new >.npmrc; echo new >bin/sh; echo old >bin/make; echo kept >.cache; \
             echo edited >dotfiles/rc; echo new >code/conftest.py",
        )
        .agent("echo edited >test; echo new >added")
        .original("test", "first\n")
        .absent("added")
}

#[test]
fn files_in_the_home_of_a_workspace_are_masked() {
    let case = home()
        .original("~/.config/pip/pip.conf", "first\n")
        .original("~/.config/gone/deep/file", "restored\n")
        .absent("~/.npmrc")
        .absent("~/bin/sh")
        .absent("~/code/conftest.py");
    let view = case.view();
    assert_eq!(view.kind(), ViewKind::Overlay);
    assert_eq!(view.weaknesses(), []);
    let seen = check(
        &view,
        "cat test; ls; cd ../..; cat .config/pip/pip.conf .config/gone/deep/file .cache; ls bin; \
         ls -A . code state/loop/view; echo written >.cache",
    );
    let expected = "first\ntest\nfirst\nrestored\nkept\nmake\n.:\n.cache\n.config\nbin\ncode\n\
                    copy-0\ncopy-2\ncopy-3\ndotfiles\nstate\n\ncode:\nworkspace\n\nstate/loop/view:\n";
    assert_eq!(seen, expected);
    view.remove().unwrap();
    let cache = fs::read_to_string(case.root.join(".cache")).unwrap();
    assert_eq!(cache, "kept\n");
}

#[test]
fn a_file_behind_a_link_is_masked() {
    let case = home().original("~/linked/rc", "first\n");
    symlink(case.root.join("dotfiles"), case.root.join("linked")).unwrap();
    let view = case.view();
    assert_eq!(
        check(&view, "cat ../../linked/rc ../../dotfiles/rc"),
        "first\nfirst\n"
    );
    view.remove().unwrap();
}

#[test]
fn a_file_that_cannot_be_masked_is_reported() {
    for path in ["/ralph-test-absent", "/proc/self/comm", "/proc/version"] {
        let mut case = home().absent("x");
        case.changes.last_mut().unwrap().path = path.into();
        let view = case.view();
        assert_eq!(view.kind(), ViewKind::Overlay);
        let [Weakness::Unmasked(paths)] = view.weaknesses() else {
            panic!("{path}: {:?}", view.weaknesses());
        };
        assert_eq!(paths.len(), 1);
        assert_eq!(check(&view, "cat test"), "first\n");
        view.remove().unwrap();
    }
}

#[test]
fn a_copy_masks_nothing_outside() {
    let mut case = home().absent("x");
    let npmrc = case.root.join(".npmrc");
    case.changes.last_mut().unwrap().path = npmrc.clone();
    fs::create_dir_all(&case.scratch).unwrap();
    let view = copy::prepare(&case.request()).unwrap();
    assert_eq!(view.weaknesses(), [Weakness::Unmasked(vec![npmrc])]);
    assert_eq!(check(&view, "cat test; ls"), "first\ntest\n");
    view.remove().unwrap();
}
