//! Views as root and as an ordinary user, and where the kernel allows no namespaces.

use super::kit::{Case, check, sh};
use crate::proof::view::{View, ViewKind, Weakness};
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

#[test]
fn a_check_can_neither_find_the_layers_nor_remove_the_view() {
    let case = Case::new()
        .agent("echo edited >test")
        .original("test", "first\n");
    let view = case.view();
    let script = format!(
        "cd /; umount {0} 2>/dev/null; umount -l {0} 2>/dev/null; ls -A {1}; cat {0}/test",
        case.workspace.display(),
        case.scratch.display(),
    );
    assert_eq!(check(&view, &script), "first\n");
    // In a namespace of its own it has every privilege, but these mounts are locked.
    let nested = format!("unshare -Urm sh -c '{script}'");
    assert_eq!(check(&view, &nested), "first\n");
    view.remove().unwrap();
}

#[test]
fn the_user_keeps_their_identity() {
    let case = Case::new()
        .agent("echo edited >test")
        .original("test", "first\n");
    let view = case.view();
    let identity = "id -u; id -g; stat -c '%u %g' test";
    let outside = sh(identity).current_dir(&case.workspace).output().unwrap();
    assert_eq!(
        check(&view, identity),
        String::from_utf8_lossy(&outside.stdout)
    );
    view.remove().unwrap();
}

/// The variable that tells a test that another one has started it, in the surroundings it needs.
const INNER: &str = "TEST_INNER";

fn is_inner() -> bool {
    env::var_os(INNER).is_some()
}

/// Runs a test of this program under another program, from a directory that every user can read.
fn run_again(wrapper: &[&str], tests: &[&str]) {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = temp.path().join("tests");
    fs::copy(env::current_exe().unwrap(), &copy).unwrap();
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(&copy)
        .args(tests)
        .current_dir(temp.path())
        .env_remove("TMPDIR")
        .env(INNER, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(!text.contains("running 0 tests"), "{text}{errors}");
}

/// Needs a kernel that refuses namespaces.
fn without_namespaces() {
    let tampered = || {
        let case = Case::new().agent("echo edited >test; echo new >added");
        case.original("test", "first\n").absent("added")
    };
    let case = tampered();
    let view = case.view();
    assert_eq!(view.kind(), ViewKind::Copy);
    assert!(matches!(view.weaknesses(), [Weakness::NoOverlay(_)]));
    assert_eq!(check(&view, "cat test; ls"), "first\ntest\n");
    view.remove().unwrap();
    let mut case = tampered();
    case.is_own_worktree = true;
    let view = case.view();
    assert_eq!(view.kind(), ViewKind::Exchange);
    assert!(matches!(view.weaknesses(), [Weakness::NoOverlay(_)]));
    let script = format!("cat {}/test; ls", case.workspace.display());
    assert_eq!(check(&view, &script), "first\ntest\n");
    view.remove().unwrap();
    assert!(View::probe(&case.root.join("probe")).is_err());
}

/// Needs a namespace that may mount.
fn with_a_file_system_below_the_workspace() {
    let case = Case::new()
        .agent("mkdir -p 'm n/inner' other; mount -t tmpfs tmpfs 'm n'")
        .agent("echo edited >'m n/test'; echo kept >'m n/kept'; echo edited >test")
        .original("m n/test", "first\n")
        .original("test", "first\n");
    let view = case.view();
    assert_eq!(view.kind(), ViewKind::Overlay, "{:?}", view.weaknesses());
    assert_eq!(
        check(&view, "cat test 'm n/test' 'm n/kept'"),
        "first\nfirst\nkept\n"
    );
    view.remove().unwrap();
    // An ordinary user may not look below mounts that root made.
    let view = {
        let mut command = Command::new("unshare");
        command.args(["-Urm"]).arg(env::current_exe().unwrap());
        command.args(["--exact", MOUNTS]);
        command.env(WORKSPACE, &case.workspace).output().unwrap()
    };
    let text = String::from_utf8_lossy(&view.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

/// The test that mounts, and the variable with the workspace that it passes to itself.
const MOUNTS: &str =
    "proof::view::tests::privileges::needs_mounts::file_systems_below_the_workspace_stay_visible";
const WORKSPACE: &str = "TEST_WORKSPACE";

/// Needs a workspace below which another user has mounted a file system.
fn below_a_locked_mount(workspace: PathBuf) {
    let mut case = Case::new();
    case.workspace = workspace;
    let view = case.view();
    assert_eq!(view.kind(), ViewKind::Copy);
    let [Weakness::NoOverlay(why)] = view.weaknesses() else {
        panic!("{:?}", view.weaknesses());
    };
    assert!(why.contains("m n"), "{why}");
    view.remove().unwrap();
}

mod needs_limits {
    use super::{is_inner, run_again, without_namespaces};

    #[test]
    fn a_view_falls_back_where_namespaces_are_shut() {
        if is_inner() {
            return without_namespaces();
        }
        let shut = "echo 0 >/proc/sys/user/max_user_namespaces; \
                    echo 0 >/proc/sys/user/max_mnt_namespaces; exec \"$@\"";
        let own = "proof::view::tests::privileges::needs_limits::a_view_falls_back_where_namespaces_are_shut";
        let wrapper = ["unshare", "-Ur", "sh", "-c", shut, "sh"];
        run_again(&wrapper, &["--exact", own]);
    }
}

mod needs_mounts {
    use super::*;

    #[test]
    fn file_systems_below_the_workspace_stay_visible() {
        if let Some(workspace) = env::var_os(WORKSPACE) {
            return below_a_locked_mount(workspace.into());
        }
        if is_inner() {
            return with_a_file_system_below_the_workspace();
        }
        run_again(&["unshare", "-Urm"], &["--exact", MOUNTS]);
    }
}

mod needs_setpriv {
    use super::run_again;

    #[test]
    fn every_view_works_for_an_ordinary_user() {
        let user = [
            "setpriv",
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
        ];
        run_again(&user, &["proof::view::tests::", "--skip", "needs_"]);
    }
}
