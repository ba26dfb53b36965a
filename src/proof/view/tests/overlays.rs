//! What a check sees and leaves behind in a view by an overlay.

use super::kit::{Case, check, sh};
use crate::proof::view::{View, ViewKind};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;

/// The agent edited a test and a manifest, deleted a test and added a file.
fn tampered() -> Case {
    Case::new()
        .agent(
            "mkdir tests; echo edited >tests/a; echo new >tests/c; echo 1 >code; echo m >manifest",
        )
        .original("tests/a", "first\n")
        .original("tests/b", "second\n")
        .text("manifest", "merged\n")
        .absent("tests/c")
        .absent("never/there")
}

#[test]
fn a_check_sees_the_changes_at_the_workspaces_own_path() {
    let case = tampered();
    let before = case.tree();
    let view = case.view();
    assert_eq!(view.kind(), ViewKind::Overlay);
    assert_eq!(view.weaknesses(), []);
    let script = format!(
        "cd {}; ls; cat code tests/* manifest; pwd",
        case.workspace.display()
    );
    let seen = check(&view, &script);
    let expected = "code\nmanifest\ntests\n1\nfirst\nsecond\nmerged\n";
    assert_eq!(seen, format!("{expected}{}\n", case.workspace.display()));
    view.remove().unwrap();
    assert_eq!(case.tree(), before);
}

#[test]
fn writes_are_shared_by_checks_and_vanish_with_the_view() {
    let case = tampered();
    let before = case.tree();
    let view = case.view();
    let script =
        "rm -r tests; mkdir -p build/x; echo 2 >code; echo o >build/x/o; chmod 555 build/x build";
    assert_eq!(check(&view, script), "");
    assert_eq!(
        check(&view, "cat code build/x/o; ls"),
        "2\no\nbuild\ncode\nmanifest\n"
    );
    view.remove().unwrap();
    assert_eq!(case.tree(), before);
    assert!(!case.scratch.exists());
}

#[test]
fn modes_of_originals_texts_and_directories_are_kept() {
    let case = Case::new()
        .agent("mkdir -m 711 d; echo >d/run; echo >d/text; chmod 640 d/text; chmod 600 d/run")
        .original("d/run", "#!/bin/sh\necho ran\n")
        .text("d/text", "t");
    fs::set_permissions(case.root.join("copy-0"), fs::Permissions::from_mode(0o755)).unwrap();
    let view = case.view();
    assert_eq!(
        check(&view, "./d/run; stat -c %a d d/run d/text"),
        "ran\n711\n755\n640\n"
    );
    view.remove().unwrap();
    let mode = fs::metadata(case.workspace.join("d")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o711);
}

#[test]
fn an_original_is_newer_than_what_was_built_before() {
    let case = Case::new()
        .agent("echo edited >test; touch -d 2001-01-01 built")
        .original("test", "first\n");
    let view = case.view();
    assert_eq!(check(&view, "find test -newer built"), "test\n");
    view.remove().unwrap();
}

#[test]
fn a_killed_check_leaves_nothing_mounted() {
    let case = tampered();
    let view = case.view();
    let mut command = sh("echo started; exec sleep 1000");
    view.confine(&mut command).unwrap();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut started = [0; 8];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut started).unwrap();
    let mounts = |pid: &str| fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let scratch = case.scratch.to_str().unwrap();
    assert!(mounts(&child.id().to_string()).contains(scratch));
    assert!(!mounts("self").contains(scratch));
    child.kill().unwrap();
    child.wait().unwrap();
    // The process that made the view was killed too: the next command removes it.
    View::recover(&case.scratch).unwrap();
    assert!(!case.scratch.exists());
}

#[test]
fn a_view_replaces_what_a_killed_process_left() {
    let case = tampered();
    let killed = case.view();
    check(&killed, "echo left >code; mkdir -m 0 locked");
    let view = case.view();
    assert_eq!(check(&view, "cat code; ls -d locked 2>/dev/null"), "1\n");
    view.remove().unwrap();
}

#[test]
fn a_probe_succeeds_and_leaves_nothing() {
    let case = Case::new();
    let scratch = case.root.join("probe");
    View::probe(&scratch).unwrap();
    assert!(!scratch.exists());
}

#[test]
fn files_beside_many_absent_ones_are_as_they_are() {
    let case = Case::new().agent(
        "mkdir -m 750 new; cd new; seq 100 | xargs touch; \
         echo one >run; chmod 751 run; touch -d 2001-02-03 run; ln -s run link; \
         echo secret >locked; chmod 0 locked",
    );
    let case = (1..=100).fold(case, |case, n| case.absent(&format!("new/{n}")));
    let state = "ls new; stat -c '%a %u %g' new; stat -c '%a %u %g %s %Y' new/run; readlink new/link; \
                 stat -c %a new/locked; cat new/link";
    let view = case.view();
    let hidden = (1..=100).map(|n| format!("{n}")).collect::<Vec<_>>();
    let outside = sh(state).current_dir(&case.workspace).output().unwrap();
    let outside = String::from_utf8(outside.stdout).unwrap();
    let is_shown = |line: &&str| !hidden.iter().any(|name| name == line);
    let expected: Vec<&str> = outside.lines().filter(is_shown).collect();
    assert_eq!(check(&view, state).lines().collect::<Vec<_>>(), expected);
    // What a check writes to such a file stays in the view.
    assert_eq!(
        check(&view, "echo two >>new/run; cat new/run"),
        "one\ntwo\n"
    );
    let text = fs::read_to_string(case.workspace.join("new/run")).unwrap();
    assert_eq!(text, "one\n");
    view.remove().unwrap();
}

#[test]
fn thousands_of_absent_files_are_hidden() {
    let case = Case::new().agent("mkdir new; cd new; seq 3000 | xargs touch; touch kept");
    let case = (1..=3000).fold(case, |case, n| case.absent(&format!("new/{n}")));
    let view = case.view();
    assert_eq!(check(&view, "ls new"), "kept\n");
    view.remove().unwrap();
}
