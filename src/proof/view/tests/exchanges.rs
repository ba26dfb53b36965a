//! Views by an exchange, and what is left of them when a process is killed.

use super::kit::{Case, check};
use crate::proof::view::exchange;
use crate::proof::view::{View, ViewKind};
use std::fs;

fn tampered() -> Case {
    let case = Case::new()
        .agent(
            "mkdir tests d new; echo edited >tests/a; echo new >tests/c; echo 1 >code; \
             echo n >d/new; echo o >d/old; ln -s code new/link",
        )
        .original("tests/a", "first\n")
        .original("deleted/dir/b", "second\n")
        .text("code", "merged\n")
        .absent("tests/c")
        .absent("d")
        .original("d/old", "old\n")
        .absent("new");
    fs::create_dir_all(&case.scratch).unwrap();
    case
}

#[test]
fn files_are_exchanged_until_the_view_is_removed() {
    let case = tampered();
    let before = case.tree();
    let view = exchange::prepare(&case.request()).unwrap();
    assert_eq!(view.kind(), ViewKind::Exchange);
    assert_eq!(view.dir(), case.workspace);
    let seen = check(&view, "find . -type f | sort | xargs cat; ls");
    assert_eq!(
        seen,
        "merged\nold\nsecond\nfirst\ncode\nd\ndeleted\ntests\n"
    );
    view.remove().unwrap();
    assert_eq!(case.tree(), before);
    assert!(!case.scratch.exists());
}

#[test]
fn the_agents_files_are_put_back_whatever_a_check_has_written() {
    let case = tampered();
    let before = case.tree();
    let view = exchange::prepare(&case.request()).unwrap();
    let script = "rm -r tests d deleted; echo f >d; mkdir -p tests/a/x code2 new; echo >new/y; \
                  echo over >code.tmp; mv code.tmp code; rmdir code2";
    assert_eq!(check(&view, script), "");
    view.remove().unwrap();
    assert_eq!(case.tree(), before);
}

#[test]
fn an_exchange_that_was_cut_short_is_undone() {
    // The record is complete before the first exchange, so every number of exchanges can be done.
    for done in 0..=7 {
        let case = tampered();
        let before = case.tree();
        exchange::prepare_up_to(&case.request(), done).unwrap();
        assert_eq!(case.tree() == before, done == 0, "{done}");
        View::recover(&case.scratch).unwrap();
        assert_eq!(case.tree(), before, "{done}");
        assert!(!case.scratch.exists());
    }
}

#[test]
fn an_undo_that_was_cut_short_is_repeated() {
    for done in 0..=7 {
        let case = tampered();
        let before = case.tree();
        exchange::prepare(&case.request()).unwrap();
        exchange::undo_up_to(&case.scratch, done).unwrap();
        View::recover(&case.scratch).unwrap();
        assert_eq!(case.tree(), before, "{done}");
    }
}
