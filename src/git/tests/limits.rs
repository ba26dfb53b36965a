//! Tests of the limits on the size of a diff.

use super::Repo;
use std::fs;

#[test]
fn a_long_diff_is_cut_and_the_rest_counted() {
    let repo = Repo::new();
    let base = repo.base();
    repo.write("a.txt", "🦀".repeat(100) + "\n");
    repo.write("new", "x\n");
    let whole = repo.diff(&base);
    let total = whole.chars().count();
    let crab = whole.chars().position(|char| char == '🦀').unwrap();
    for max in [0, 1, crab + 1, crab + 50, total - 1, total, total + 1] {
        let cut = repo.diff_up_to(&base, max);
        assert_eq!(cut.text, whole.chars().take(max).collect::<String>());
        assert_eq!(cut.dropped_chars, total.saturating_sub(max) as u64);
        assert!(!cut.at_least);
    }
}

#[test]
fn huge_files_are_only_named_and_huge_diffs_are_a_lower_bound() {
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
    let cut = repo.diff_up_to(&base, 1000);
    assert_eq!(cut.text.chars().count(), 1000);
    assert!(cut.at_least);
    assert_eq!(cut.dropped_chars, (8 << 20) - 1000);
    assert_eq!(repo.stat(&base).insertions, 5 * (128 << 10) + 1);
}

#[test]
fn too_many_untracked_files_are_only_counted() {
    let repo = Repo::new();
    let fill = |dir: &str, count: u32| {
        fs::create_dir(repo.dir.join(dir)).unwrap();
        for file in 0..count {
            fs::write(repo.dir.join(format!("{dir}/{file}")), "").unwrap();
        }
    };
    let small = repo.base();
    fill("many", 20_001);
    let base = repo.base();
    repo.write("new", "n\n");
    let diff = repo.diff_up_to(&base, 1000);
    assert_eq!(diff.text, "");
    assert_eq!(
        diff.note.unwrap(),
        "untracked files are not shown, because there were more than 20000 at the start"
    );
    let diff = repo.diff_up_to(&small, 1000);
    assert!(diff.at_least && diff.note.unwrap().contains("first 20000"));
    assert_eq!(repo.stat(&small).files, 20_000);
}
