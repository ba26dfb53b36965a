use super::super::encoding::{ManifestReader, put_manifest};
use super::super::manifest::{Manifest, compare_paths};
use super::Site;
use crate::proof::view::tests::figures::Timed;
use crate::proof::view::{View, ViewRequest};
use std::fs;
use std::time::Instant;

fn walk(site: &Site) -> Manifest {
    Manifest::walk(&site.workspace(), |_, _, _| true).unwrap()
}

fn changed(site: &Site, before: &Manifest) -> Vec<String> {
    let now = walk(site);
    let changes = before.changes(&now);
    let changes = changes.iter().filter(|change| !change.is_dir());
    changes
        .map(|change| {
            format!(
                "{:?} {}",
                change.kind(),
                String::from_utf8_lossy(change.path())
            )
        })
        .collect()
}

#[test]
fn entries_are_in_the_order_of_their_components() {
    let site = Site::new();
    for path in ["a/b/c", "a.b", "a-b/x", "a/z", "b", "é/ü", "a/b.c"] {
        site.write(path, "");
    }
    let all = walk(&site);
    assert!(
        all.entries
            .is_sorted_by(|a, b| compare_paths(&a.path, &b.path).is_lt())
    );
    let kind = |path: &[u8]| {
        let entry = all.entries.iter().find(|entry| entry.path == path);
        entry.map(super::super::manifest::Entry::is_dir)
    };
    assert_eq!(kind(b"a/b/c"), Some(false));
    assert_eq!(kind(b"a/b"), Some(true));
}

#[test]
fn a_file_is_the_same_only_if_path_inode_and_ctime_are() {
    let site = Site::new();
    site.write("one/a", "1")
        .write("two/a", "1")
        .write("keep", "1")
        .write("edit", "1")
        .write("gone", "1");
    let before = walk(&site);
    assert_eq!(changed(&site, &before), [""; 0]);
    // Both files keep their ctime, size and mtime, and swap their inodes.
    site.rename("one", "three");
    site.rename("two", "one");
    site.rename("three", "two");
    site.write("edit", "2");
    site.remove("gone");
    assert_eq!(
        changed(&site, &before),
        [
            "Changed edit",
            "Deleted gone",
            "Changed one/a",
            "Changed two/a"
        ]
    );
}

#[test]
fn a_file_with_its_old_time_is_still_changed() {
    let site = Site::new();
    site.write("a", "1");
    let before = walk(&site);
    let file = fs::File::options()
        .write(true)
        .open(site.path("a"))
        .unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    fs::write(site.path("a"), "2").unwrap();
    file.set_modified(time).unwrap();
    assert_eq!(changed(&site, &before), ["Changed a"]);
}

#[test]
fn links_are_not_followed() {
    let site = Site::new();
    site.write("dir/a", "1");
    std::os::unix::fs::symlink("dir", site.path("link")).unwrap();
    std::os::unix::fs::symlink("..", site.path("up")).unwrap();
    let before = walk(&site);
    let paths: Vec<_> = before.entries.iter().map(|entry| &entry.path[..]).collect();
    assert_eq!(paths, [&b"dir"[..], b"dir/a", b"link", b"up"]);
    site.remove("link");
    std::os::unix::fs::symlink("up", site.path("link")).unwrap();
    assert_eq!(changed(&site, &before), ["Changed link"]);
}

#[test]
fn a_stored_manifest_is_the_same() {
    let site = Site::new();
    for path in ["a/b/c", "a/b/d", "x", "deep/er/and/deeper/still"] {
        site.write(path, path);
    }
    let all = walk(&site);
    let mut bytes = Vec::new();
    put_manifest(&mut bytes, &all);
    let mut from = ManifestReader::new(&bytes);
    assert_eq!(from.manifest().unwrap(), all);
    assert!(from.is_at_end());
    for length in 0..bytes.len() {
        assert!(
            ManifestReader::new(&bytes[..length]).manifest().is_err(),
            "cut at {length}"
        );
    }
}

#[test]
fn damaged_bytes_are_an_error_or_another_manifest() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..5000 {
        let length = random.usize(0..60);
        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let _ = ManifestReader::new(&bytes).manifest();
    }
}

/// Measures a walk of a few files; with `FILES=50000`, of many:
/// `FILES=50000 cargo test --release --lib -- --nocapture a_walk_is_measured`.
#[test]
fn a_walk_is_measured() {
    let site = Site::new();
    let files: usize = std::env::var("FILES").map_or(200, |files| files.parse().unwrap());
    for dir in 0..files / 100 {
        let text = "fn main() {}\n".repeat(40);
        for file in 0..100 {
            let kind = if file % 10 == 0 {
                "tests/test_"
            } else {
                "src/"
            };
            site.write(&format!("part{dir}/{kind}{file}.py"), &text);
        }
    }
    let start = Instant::now();
    let all = walk(&site);
    let walked = start.elapsed();
    let start = Instant::now();
    let baseline = site.take_with_cap(256 << 20);
    let taken = start.elapsed();
    let start = Instant::now();
    let touched = site.touched(&baseline);
    let compared = start.elapsed();
    assert!(touched.files.is_sources_only());
    let stored = fs::metadata(site.root.join("loop/baseline/manifest"))
        .unwrap()
        .len();
    eprintln!(
        "{} entries: walk {walked:?}, baseline {taken:?}, touched {compared:?}, manifest {stored} bytes",
        all.entries.len()
    );
}

/// Measures a second look in which single ignored files are absent, on few files. `bench/view` runs
/// it on many, with `FILES`.
#[test]
fn single_ignored_files_are_measured() {
    let files: usize = std::env::var("FILES").map_or(200, |files| files.parse().unwrap());
    // Ignored files in directories of their own, but for one file, and between as many sources.
    for sources in [1, 50] {
        let site = Site::new().with_git();
        site.write(".gitignore", "*.o\n");
        for dir in 0..files / 100 {
            for file in 0..sources {
                site.write(&format!("part{dir}/{file}.c"), "int x;\n");
            }
        }
        let baseline = site.take_with_cap(256 << 20);
        let ignored = 100 - sources;
        for dir in 0..files / 100 {
            for file in 0..ignored {
                site.write(&format!("part{dir}/{file}.o"), "");
            }
        }
        let count = ignored * (files / 100);
        let print = |what: &str, time: Timed| {
            time.print(&format!("{what}, {count} of {files} files ignored and new"));
        };
        let (_, time) = Timed::run(|| walk(&site));
        print("walk", time);
        let (changes, time) = Timed::run(|| {
            let touched = site.touched(&baseline);
            baseline.changes_for_view(&touched).unwrap()
        });
        print("comparison with the start", time);
        assert_eq!(changes.len(), count);
        let (view, time) = Timed::run(|| {
            View::prepare(&ViewRequest {
                workspace: &site.workspace(),
                scratch: &site.root.join("loop/view"),
                changes: &changes,
                is_own_worktree: false,
            })
        });
        print("set-up", time);
        view.unwrap().remove().unwrap();
    }
}
