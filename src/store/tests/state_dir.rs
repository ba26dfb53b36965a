//! Tests of the state directory: loop names, lookup and the archive.

use super::{header, test_state_dir};
use crate::store::{Journal, LoopDir, StateDir, StoreError, cache, is_valid_name};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn names_are_short_and_lower_case() {
    for good in ["a", "0", "a-b_c", "api-1", &"x".repeat(63)] {
        assert!(is_valid_name(good), "{good}");
    }
    for bad in [
        "",
        "-a",
        "_a",
        "A",
        "aB",
        "a b",
        "a/b",
        "..",
        ".",
        "a.b",
        "ä",
        "a\n",
        "a\0",
        &"x".repeat(64),
    ] {
        assert!(!is_valid_name(bad), "{bad:?}");
        let error = test_state_dir().state_dir.find_loop(bad).unwrap_err();
        assert!(matches!(error, StoreError::InvalidName { .. }), "{bad:?}");
        assert!(
            matches!(
                test_state_dir().state_dir.archive(bad),
                Err(StoreError::InvalidName { .. })
            ),
            "{bad:?}"
        );
    }
}

#[test]
fn only_directories_with_a_journal_are_loops() {
    let fixture = test_state_dir();
    assert_eq!(fixture.state_dir.loop_names().unwrap(), [] as [&str; 0]);
    fixture.create_loop("b");
    fixture.create_loop("a");
    fixture.create_dir("incomplete");
    fs::write(fixture.state_dir.root().join("loops/file"), "").unwrap();
    assert_eq!(fixture.state_dir.loop_names().unwrap(), ["a", "b"]);
    assert_eq!(fixture.state_dir.find_loop("b").unwrap().name(), "b");
    assert!(matches!(
        fixture.state_dir.find_loop("incomplete"),
        Err(StoreError::NoSuchLoop { .. })
    ));
}

#[test]
fn an_unknown_name_suggests_the_nearest_one() {
    let fixture = test_state_dir();
    for name in ["api-1", "api-2", "website"] {
        fixture.create_loop(name);
    }
    for (wanted, expected) in [
        ("websit", Some("website")),
        ("wbsiet", Some("website")),
        ("wbseit", None),
        ("webiste", Some("website")),
        ("api-3", Some("api-1")),
        ("apo-2", Some("api-2")),
        ("zebra", None),
    ] {
        let error = fixture.state_dir.find_loop(wanted).unwrap_err();
        let hint = error.hint().unwrap();
        let StoreError::NoSuchLoop { nearest, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(nearest.as_deref(), expected, "{wanted}");
        assert_eq!(hint.contains("did you mean"), expected.is_some());
    }
}

#[test]
fn a_loop_is_named_after_its_directory_with_the_smallest_free_number() {
    let fixture = test_state_dir();
    let free = |path: &str| {
        fixture
            .state_dir
            .free_name(Path::new(path), &["taken-1".to_owned()])
            .unwrap()
    };
    assert_eq!(free("/no/such/My Project (v2)!"), "my-project-v2-1");
    fixture.create_loop("api-1");
    fixture.create_dir("api-2");
    fixture.create_loop("api-4");
    assert_eq!(free("/no/such/api"), "api-3");
    for (path, expected) in [
        ("/", "loop-1"),
        ("/no/such/___", "loop-1"),
        ("/no/such/Übung", "bung-1"),
        ("/no/such/.a_b.c", "a_b-c-1"),
    ] {
        assert_eq!(free(path), expected, "{path}");
    }
    assert_eq!(free("/no/such/taken"), "taken-2", "the other name is taken");
    assert!(is_valid_name(&free(&format!(
        "/no/such/{}",
        "long ".repeat(40)
    ))));
    let here = tempfile::Builder::new().prefix("here").tempdir().unwrap();
    assert!(free(here.path().join(".").to_str().unwrap()).starts_with("here"));
}

#[test]
fn archiving_frees_the_name_and_overwrites_nothing() {
    let fixture = test_state_dir();
    let archive = |stamp| fixture.state_dir.archive_at("a", stamp);
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(matches!(
        archive("20261115T225544Z"),
        Err(StoreError::NoSuchLoop { .. })
    ));
    let mut seen = Vec::new();
    for id in ["1", "2", "3"] {
        let dir = fixture.create_dir("a");
        Journal::create(&dir, &header("a", id)).unwrap();
        let path = archive("20261115T225544Z").unwrap();
        assert!(!dir.path().exists());
        let view = cache::read(&LoopDir::new(path.clone())).unwrap();
        assert_eq!(view.header.id, id);
        seen.push(name(path));
    }
    assert_eq!(
        seen,
        [
            "a-20261115T225544Z",
            "a-20261115T225544Z-2",
            "a-20261115T225544Z-3"
        ]
    );

    fixture.create_dir("a");
    let stamp = name(fixture.state_dir.archive("a").unwrap());
    assert_eq!(
        (stamp.len(), &stamp[10..11], &stamp[17..]),
        (18, "T", "Z"),
        "{stamp}"
    );
}

#[test]
fn a_workspace_has_one_lock_by_all_its_paths() {
    let fixture = test_state_dir();
    let temp = tempfile::tempdir().unwrap();
    let real = temp.path().join("real");
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, temp.path().join("link")).unwrap();
    let lock = |path: &Path| fixture.state_dir.workspace_lock_path(path).unwrap();
    assert_eq!(lock(&real), lock(&temp.path().join("link")));
    assert_eq!(lock(&real), lock(&real.join("../real/.")));
    assert_ne!(lock(&real), lock(temp.path()));
    assert!(lock(&real).parent().unwrap().ends_with("workspaces"));
    assert!(
        fixture
            .state_dir
            .workspace_lock_path(&real.join("gone"))
            .is_err()
    );
}

#[test]
fn the_setting_becomes_absolute_and_an_empty_one_is_ignored() {
    let root = |setting: Option<&str>| {
        StateDir::from_setting(setting.map(Into::into))
            .unwrap()
            .root()
            .to_owned()
    };
    assert_eq!(root(Some("/x/y")), Path::new("/x/y"));
    assert!(root(Some("x/y")).is_absolute());
    assert!(root(Some("x/y")).ends_with("x/y"));
    assert_eq!(root(Some("")), root(None));
    assert!(root(None).ends_with("ralph"));
}

#[test]
fn iteration_directories_have_at_least_four_digits() {
    let dir = test_state_dir().state_dir.loop_dir("a");
    for (n, expected) in [(0, "0000"), (1, "0001"), (12_345, "12345")] {
        assert_eq!(
            dir.iteration_dir(n),
            dir.path().join("iterations").join(expected)
        );
    }
}
