use super::super::Baseline;
use super::{Site, absent, names};
use crate::engine::touched::TouchedFiles;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_loop_that_touches_only_sources_has_nothing_to_put_back() {
    let site = Site::new();
    site.write("main.py", "1")
        .write("test_main.py", "1")
        .write("old.py", "1")
        .write("requirements.txt", "a");
    let baseline = site.take();
    site.write("main.py", "2")
        .write("new.py", "1")
        .write("requirements.txt", "b");
    site.remove("old.py");
    let touched = site.touched(&baseline);
    assert!(touched.files.is_sources_only());
    assert_eq!(
        names(&touched.files.sources),
        ["~main.py", "+new.py", "-old.py", "~requirements.txt"]
    );
    assert!(site.view(&baseline, &touched).is_empty());
}

#[test]
fn changed_and_deleted_guards_come_back_and_new_ones_are_absent() {
    let site = Site::new();
    site.write("a.py", "1")
        .write("tests/test_a.py", "assert a")
        .write("tests/data.json", "{}")
        .write("tox.ini", "1");
    let baseline = site.take();
    site.write("tests/test_a.py", "pass")
        .write("conftest.py", "exit")
        .write("pytest.py", "exit")
        .write("pytest.ini", "x");
    site.remove("tox.ini");
    let touched = site.touched(&baseline);
    assert_eq!(
        names(&touched.files.guards),
        [
            "+conftest.py",
            "+pytest.ini",
            "+pytest.py",
            "~tests/test_a.py",
            "-tox.ini"
        ]
    );
    let mut view = absent(&["conftest.py", "pytest.py", "pytest.ini"]);
    view.insert("tests/test_a.py".into(), Some("assert a".into()));
    view.insert("tox.ini".into(), Some("1".into()));
    assert_eq!(site.view(&baseline, &touched), view);
    assert!(!touched.files.is_sources_only());
}

#[test]
fn a_renamed_directory_of_tests_is_noticed() {
    let site = Site::new();
    site.write("a.py", "1")
        .write("tests/test_a.py", "assert a")
        .write("later/test_a.py", "pass");
    let baseline = site.take();
    site.rename("tests", "away");
    site.rename("later", "tests");
    let touched = site.touched(&baseline);
    let guards = names(&touched.files.guards);
    assert_eq!(
        guards,
        ["+away/test_a.py", "-later/test_a.py", "~tests/test_a.py"]
    );
    let view = site.view(&baseline, &touched);
    assert_eq!(view["tests/test_a.py"].as_deref(), Some("assert a"));
    assert_eq!(view["away/test_a.py"], None);
}

#[test]
fn the_first_tests_and_settings_of_a_new_project_are_kept() {
    let site = Site::new();
    site.write("README.md", "1")
        .write("main.go", "package main");
    let baseline = site.take();
    site.write("a.py", "1")
        .write("test_a.py", "1")
        .write("pytest.ini", "1")
        .write("Makefile", "all:");
    site.write("package.json", "{}")
        .write("main_test.go", "1")
        .write(".golangci.yml", "skip: all");
    let touched = site.touched(&baseline);
    assert_eq!(
        names(&touched.files.first_guards),
        [
            "+Makefile",
            "+main_test.go",
            "+package.json",
            "+pytest.ini",
            "+test_a.py"
        ]
    );
    // The workspace has used Go all along, without a linter's settings.
    assert_eq!(names(&touched.files.guards), ["+.golangci.yml"]);
    assert_eq!(site.view(&baseline, &touched), absent(&[".golangci.yml"]));
}

#[test]
fn a_check_script_is_a_guard_if_it_existed_and_kept_if_the_agent_wrote_it() {
    let mut site = Site::new();
    site.checks = vec![
        "./verify && sh -e ci/run x.txt".into(),
        "./later".into(),
        "/nonexistent/x".into(),
    ];
    site.write("verify", "#!/bin/sh\nfalse")
        .write("ci/run", "false")
        .write("x.txt", "1");
    fs::set_permissions(site.path("verify"), fs::Permissions::from_mode(0o755)).unwrap();
    let baseline = site.take();
    site.write("verify", "true")
        .write("ci/run", "true")
        .write("x.txt", "2")
        .write("later", "true");
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.guards), ["~ci/run", "~verify"]);
    assert_eq!(names(&touched.files.first_guards), ["+later"]);
    assert_eq!(names(&touched.files.sources), ["~x.txt"]);
    let changes = baseline.changes_for_view(&touched).unwrap();
    let super::ViewContent::Original(copy) = &changes[1].content else {
        panic!("{changes:?}");
    };
    assert_eq!(
        fs::metadata(copy).unwrap().permissions().mode() & 0o777,
        0o755
    );
}

#[test]
fn patterns_of_the_user_extend_and_narrow_the_guards() {
    let mut site = Site::new();
    site.protect = vec!["api/*.proto".into(), "frozen/".into()];
    site.allow = vec![
        "tests/golden/**".into(),
        "*.snap".into(),
        "node_modules/**".into(),
    ];
    site.write("api/a.proto", "1")
        .write("frozen/x/y", "1")
        .write("tests/golden/a", "1")
        .write("a.snap", "1")
        .write("tests/t", "1");
    let baseline = site.take();
    for path in [
        "api/a.proto",
        "api/b.proto",
        "frozen/x/y",
        "tests/golden/a",
        "a.snap",
        "tests/t",
        "node_modules/a",
    ] {
        site.write(path, "2");
    }
    let touched = site.touched(&baseline);
    assert_eq!(
        names(&touched.files.guards),
        ["~api/a.proto", "+api/b.proto", "~frozen/x/y", "~tests/t"]
    );
    assert_eq!(
        names(&touched.files.sources),
        ["~a.snap", "+node_modules/a", "~tests/golden/a"]
    );
    assert!(touched.files.ignored.is_empty());
}

#[test]
fn ignored_files_that_appeared_or_changed_are_absent() {
    let site = Site::new().with_git();
    site.write(".gitignore", "out/\n*.log\nnode_modules\n")
        .write("a.js", "1")
        .write("out/old", "1")
        .write("out/same", "1");
    site.write("node_modules/jest/index.js", "1")
        .write("node_modules/jest/test/a.test.js", "1")
        .write("gone.log", "1");
    let baseline = site.take();
    site.write("out/old", "2")
        .write("out/new/a", "1")
        .write("out/new/b/c", "1")
        .write("b.log", "1");
    site.write("node_modules/jest/index.js", "process.exit(0)")
        .write("sub/node_modules/x/y.js", "1");
    site.remove("gone.log");
    let touched = site.touched(&baseline);
    assert_eq!(
        names(&touched.files.ignored),
        [
            "+b.log",
            "-gone.log",
            "~node_modules/jest/index.js",
            "+out/new/",
            "~out/old",
            "+sub/"
        ]
    );
    assert_eq!(touched.files.ignored.total, 7);
    assert!(touched.files.guards.is_empty() && touched.files.sources.is_empty());
    let view = absent(&[
        "b.log",
        "node_modules/jest/index.js",
        "out/new",
        "out/old",
        "sub",
    ]);
    assert_eq!(site.view(&baseline, &touched), view);
}

#[test]
fn new_rules_of_git_do_not_hide_anything() {
    let site = Site::new().with_git();
    site.write(".gitignore", "node_modules\n")
        .write("a.js", "1")
        .write("a.test.js", "1")
        .write("node_modules/x", "1");
    let baseline = site.take();
    // The tests become ignored, and the dependencies no longer are.
    site.write(".gitignore", "*.test.js\n")
        .write("a.test.js", "2")
        .write("node_modules/x", "2")
        .write("pkg/node_modules/y", "1");
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.guards), ["~.gitignore", "~a.test.js"]);
    assert_eq!(
        names(&touched.files.ignored),
        ["~node_modules/x", "+pkg/node_modules/"]
    );
}

#[test]
fn without_git_directories_of_dependencies_are_known_by_name() {
    let site = Site::new();
    site.write("a.py", "1")
        .write("target/x", "1")
        .write(".venv/lib/tests/test_a.py", "1");
    let baseline = site.take();
    site.write("target/x", "2")
        .write(".venv/lib/tests/test_a.py", "2");
    let touched = site.touched(&baseline);
    assert_eq!(
        names(&touched.files.ignored),
        ["~.venv/lib/tests/test_a.py", "~target/x"]
    );
}

#[test]
fn files_of_git_and_ralph_are_left_out() {
    let site = Site::new().with_git();
    site.write("a.py", "1").write("sub/.git/x", "1");
    let baseline = site.take();
    site.write(".git/objects/x", "1")
        .write("sub/.git/x", "2")
        .write(".ralph/loops/x", "1")
        .write("sub/.ralph", "1");
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.sources), ["+sub/.ralph"]);
    assert_eq!(touched.files.outside.total, 0);
}

#[test]
fn a_touched_guard_without_a_copy_needs_a_person() {
    let site = Site::new();
    site.write("tests/big", &"x".repeat(5000))
        .write("tests/small", "1")
        .write("tests/other", &"x".repeat(5000));
    let baseline = site.take_with_cap(5500);
    site.write("tests/small", "2");
    let touched = site.touched(&baseline);
    assert!(
        touched.files.unknown.is_empty(),
        "the guard that was touched has a copy"
    );
    site.write("tests/big", "2").write("tests/other", "2");
    let touched = site.touched(&baseline);
    assert_eq!(touched.files.unknown.len(), 1);
    assert!(touched.files.unknown[0].contains("no copy of the original"));
    assert_eq!(touched.files.guards.total, 3);
}

#[test]
fn a_link_comes_back_as_a_link() {
    let site = Site::new();
    site.write("real.py", "1");
    std::os::unix::fs::symlink("real.py", site.path("test_a.py")).unwrap();
    let baseline = site.take();
    site.remove("test_a.py");
    site.write("test_a.py", "pass");
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.guards), ["~test_a.py"]);
    assert_eq!(
        site.view(&baseline, &touched)["test_a.py"].as_deref(),
        Some("-> real.py")
    );
}

#[test]
fn a_file_in_the_place_of_a_directory_and_back() {
    let site = Site::new();
    site.write("tests/sub/test_a.py", "1")
        .write("tests/test_b.py", "1");
    let baseline = site.take();
    site.remove("tests/sub/test_a.py");
    fs::remove_dir(site.path("tests/sub")).unwrap();
    site.write("tests/sub", "x");
    site.remove("tests/test_b.py");
    site.write("tests/test_b.py/x", "x");
    let touched = site.touched(&baseline);
    let view = site.view(&baseline, &touched);
    assert_eq!(view["tests/sub"], None);
    assert_eq!(view["tests/sub/test_a.py"].as_deref(), Some("1"));
    assert_eq!(view["tests/test_b.py"].as_deref(), Some("1"));
    assert_eq!(view["tests/test_b.py/x"], None);
}

#[test]
fn a_baseline_survives_a_crash_and_knows_when_it_was_changed() {
    let site = Site::new().with_git();
    site.write("a.rs", "#[test]\nfn a() {}\n")
        .write("tests/t", "1")
        .write("b", "1")
        .write("/home/.npmrc", "1");
    let taken = site.take();
    let dir = site.root.join("loop");
    site.write("tests/t", "2")
        .write("b", "2")
        .write("/home/.npmrc", "2");
    let opened = Baseline::open(&dir, taken.digest()).unwrap().unwrap();
    let (before, after) = (site.touched(&taken), site.touched(&opened));
    assert_eq!(before.files, after.files);
    assert_eq!(site.view(&taken, &before), site.view(&opened, &after));
    for name in ["manifest", "copies"] {
        let mode = fs::metadata(dir.join("baseline").join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // An agent that changes the copies, or the manifest, is noticed.
    let copies = dir.join("baseline/copies");
    let bytes = fs::read(&copies).unwrap();
    fs::write(&copies, vec![b'x'; bytes.len()]).unwrap();
    let error = opened.changes_for_view(&after).unwrap_err().to_string();
    assert!(error.contains("was changed"), "{error}");
    let manifest = dir.join("baseline/manifest");
    let mut bytes = fs::read(&manifest).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&manifest, bytes).unwrap();
    assert!(Baseline::open(&dir, taken.digest()).is_err());
    fs::remove_dir_all(dir.join("baseline")).unwrap();
    assert!(Baseline::open(&dir, taken.digest()).unwrap().is_none());
}

#[test]
fn a_new_baseline_replaces_the_old_one() {
    let site = Site::new();
    site.write("tests/t", "1");
    let first = site.take();
    site.write("tests/t", "2")
        .write("/loop/baseline.new/left", "by a crash");
    let second = site.take();
    assert_ne!(first.digest(), second.digest());
    assert!(site.touched(&second).files.is_sources_only());
    assert!(!site.root.join("loop/baseline.new").exists());
}

#[test]
fn the_report_is_bounded_and_can_be_stored() {
    let site = Site::new();
    site.write("tests/t", "1");
    let baseline = site.take();
    for index in 0..50 {
        site.write(&format!("tests/new{index}"), "1");
    }
    let files = site.touched(&baseline).files;
    assert_eq!(files.guards.total, 50);
    assert_eq!(files.guards.files.len(), 20);
    let text = serde_json::to_string(&files).unwrap();
    assert!(
        text.starts_with(r#"{"guards":{"total":50,"files":[{"path":"tests/new0","change":"new"}"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<TouchedFiles>(&text).unwrap(), files);
    assert_eq!(
        serde_json::from_str::<TouchedFiles>("{}").unwrap(),
        TouchedFiles::default()
    );
}
