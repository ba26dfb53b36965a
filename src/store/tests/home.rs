//! What loops are called, and where they are found.

use super::{header, place};
use crate::store::{Error, Home, Journal, LoopDir, cache, valid_name};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn a_name_is_short_plain_and_lower_case() {
    for good in ["a", "0", "a-b_c", "api-1", &"x".repeat(63)] {
        assert!(valid_name(good), "{good}");
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
        assert!(!valid_name(bad), "{bad:?}");
        let error = place().home.find(bad).unwrap_err();
        assert!(matches!(error, Error::BadName { .. }), "{bad:?}");
        assert!(
            matches!(place().home.archive(bad), Err(Error::BadName { .. })),
            "{bad:?}"
        );
    }
}

#[test]
fn only_directories_with_a_journal_are_loops() {
    let place = place();
    assert_eq!(place.home.names().unwrap(), [] as [&str; 0]);
    place.loop_called("b");
    place.loop_called("a");
    place.dir("half-made");
    fs::write(place.home.root().join("loops/file"), "").unwrap();
    assert_eq!(place.home.names().unwrap(), ["a", "b"]);
    assert_eq!(place.home.find("b").unwrap().name(), "b");
    assert!(matches!(
        place.home.find("half-made"),
        Err(Error::NoSuchLoop { .. })
    ));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let place = place();
    for name in ["api-1", "api-2", "website"] {
        place.loop_called(name);
    }
    for (asked, expected) in [
        ("websit", Some("website")),
        ("wbsiet", Some("website")),
        ("wbseit", None),
        ("webiste", Some("website")),
        ("api-3", Some("api-1")),
        ("apo-2", Some("api-2")),
        ("zebra", None),
    ] {
        let error = place.home.find(asked).unwrap_err();
        let hint = error.hint().unwrap();
        let Error::NoSuchLoop { nearest, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(nearest.as_deref(), expected, "{asked}");
        assert_eq!(hint.contains("did you mean"), expected.is_some());
    }
}

#[test]
fn a_loop_is_named_after_its_directory_with_the_smallest_free_number() {
    let place = place();
    let free = |path: &str| {
        place
            .home
            .free_name(Path::new(path), &["taken-1".to_owned()])
            .unwrap()
    };
    assert_eq!(free("/no/such/My Project (v2)!"), "my-project-v2-1");
    place.loop_called("api-1");
    place.dir("api-2");
    place.loop_called("api-4");
    assert_eq!(free("/no/such/api"), "api-3");
    for (path, expected) in [
        ("/", "loop-1"),
        ("/no/such/___", "loop-1"),
        ("/no/such/Übung", "bung-1"),
        ("/no/such/.a_b.c", "a_b-c-1"),
    ] {
        assert_eq!(free(path), expected, "{path}");
    }
    assert_eq!(
        free("/no/such/taken"),
        "taken-2",
        "somebody else has that one"
    );
    assert!(valid_name(&free(&format!(
        "/no/such/{}",
        "long ".repeat(40)
    ))));
    let here = tempfile::Builder::new().prefix("here").tempdir().unwrap();
    assert!(free(here.path().join(".").to_str().unwrap()).starts_with("here"));
}

#[test]
fn an_archived_loop_makes_room_and_is_never_overwritten() {
    let place = place();
    let archive = |stamp| place.home.archive_at("a", stamp);
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(matches!(
        archive("20261115T225544Z"),
        Err(Error::NoSuchLoop { .. })
    ));
    let mut seen = Vec::new();
    for id in ["1", "2", "3"] {
        let dir = place.dir("a");
        Journal::create(&dir, &header("a", id)).unwrap();
        let path = archive("20261115T225544Z").unwrap();
        assert!(!dir.path().exists());
        let view = cache::read(&LoopDir::at(path.clone())).unwrap();
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

    place.dir("a");
    let stamp = name(place.home.archive("a").unwrap());
    assert_eq!(
        (stamp.len(), &stamp[10..11], &stamp[17..]),
        (18, "T", "Z"),
        "{stamp}"
    );
}

#[test]
fn a_workspace_has_one_lock_by_any_name() {
    let place = place();
    let temp = tempfile::tempdir().unwrap();
    let real = temp.path().join("real");
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, temp.path().join("link")).unwrap();
    let lock = |path: &Path| place.home.workspace_lock_path(path).unwrap();
    assert_eq!(lock(&real), lock(&temp.path().join("link")));
    assert_eq!(lock(&real), lock(&real.join("../real/.")));
    assert_ne!(lock(&real), lock(temp.path()));
    assert!(lock(&real).parent().unwrap().ends_with("workspaces"));
    assert!(place.home.workspace_lock_path(&real.join("gone")).is_err());
}

#[test]
fn the_setting_is_made_absolute_and_an_empty_one_is_none() {
    let at = |set: Option<&str>| {
        Home::from_setting(set.map(Into::into))
            .unwrap()
            .root()
            .to_owned()
    };
    assert_eq!(at(Some("/x/y")), Path::new("/x/y"));
    assert!(at(Some("x/y")).is_absolute());
    assert!(at(Some("x/y")).ends_with("x/y"));
    assert_eq!(at(Some("")), at(None));
    assert!(at(None).ends_with("ralph"));
}

#[test]
fn iterations_have_four_digits_at_least() {
    let dir = place().home.loop_dir("a");
    for (n, expected) in [(0, "0000"), (1, "0001"), (12_345, "12345")] {
        assert_eq!(
            dir.iteration(n),
            dir.path().join("iterations").join(expected)
        );
    }
}
