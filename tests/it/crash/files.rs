//! A loop's directory: its layout, its permissions, and which of its files may be lost.

use super::{AGENT, WAITS};
use crate::kit::{Test, until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const SCRIPT: &str = "iteration 1\n say looking\niteration 2\n write fixed\n  | yes\n";
const RUN: [&str; 11] = [
    "run",
    "fix",
    "it",
    "--name",
    "a",
    "--check",
    "test -f fixed",
    "--until-green",
    "--agent",
    AGENT,
    "--no-stream",
];

#[test]
fn a_journal_of_a_newer_version_is_refused_and_left_unchanged() {
    let test = Test::new().script(SCRIPT);
    test.ralph(&RUN).exits(0);
    let newer = "{\"ralph\":\"journal\",\"version\":2,\"name\":\"later\",\"soul\":42}\n{\"what\":\"ever\"}\n{\"tor";
    fs::create_dir(test.loop_dir("later")).unwrap();
    let path = test.loop_dir("later").join("journal.jsonl");
    fs::write(&path, newer).unwrap();
    for args in [
        &["status", "later"][..],
        &["resume", "later"],
        &["stop", "later"],
        &["pause", "later"],
        &["logs", "later"],
        &["set", "later", "max-iterations=9"],
        &["run", "x", "--name", "later", "--agent", AGENT],
    ] {
        let done = test
            .ralph(args)
            .exits(2)
            .complains("has format version 2, but this ralph reads version 1");
        done.complains("upgrade");
        assert_eq!(fs::read_to_string(&path).unwrap(), newer, "{args:?}");
    }
    let done = test
        .ralph(&["ls", "--json"])
        .exits(0)
        .complains("ralph: warning: later: ")
        .complains("version 2");
    let loops = done.json_lines();
    assert_eq!(
        (loops[0].as_array().unwrap().len(), &loops[0][0]["name"]),
        (1, &"a".into())
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

#[test]
fn a_damaged_line_in_the_middle_of_a_journal_is_reported() {
    let test = Test::new().script(SCRIPT);
    test.ralph(&RUN).exits(0);
    let path = test.loop_dir("a").join("journal.jsonl");
    let good = fs::read_to_string(&path).unwrap();
    for line in [3, 5] {
        let mut lines: Vec<&str> = good.lines().collect();
        lines[line - 1] = "{\"at\":\"half";
        let bad = lines.join("\n") + "\n";
        fs::write(&path, &bad).unwrap();
        fs::remove_file(test.loop_dir("a").join("state.json")).unwrap_or_default();
        for verb in ["status", "resume", "stop"] {
            test.ralph(&[verb, "a"])
                .exits(2)
                .complains(&format!("is damaged at line {line}: "));
        }
        test.ralph(&["ls"])
            .exits(0)
            .complains(&format!("is damaged at line {line}: "));
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
}

#[test]
fn a_missing_or_damaged_state_file_changes_nothing() {
    let test = Test::new().script(&format!("iteration 1\n exit 1\niteration 2\n {WAITS}"));
    let live = test.start(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        AGENT,
        "--backoff",
        "1ms..1ms",
        "-m",
        "2",
    ]);
    until("the agent", || test.workspace().join("here").exists());
    let path = test.loop_dir("a").join("state.json");
    let same = |when: &str| {
        // The active time of a running loop grows.
        let without_time = |mut status: Value| {
            status.as_object_mut().unwrap().remove("active_s");
            status
        };
        let status = || without_time(test.status("a"));
        let ls = || {
            let out = test.ralph(&["ls", "--json"]).exits(0).out;
            let loops: Vec<Value> = serde_json::from_str(&out).unwrap();
            loops.into_iter().map(without_time).collect::<Vec<_>>()
        };
        let (status_before, ls_before) = (status(), ls());
        let saved = fs::read(&path).unwrap();
        for broken in [
            None,
            Some(&b""[..]),
            Some(b"{\"version\":1,"),
            Some(b"\xff\0garbage"),
            Some(&saved[..saved.len() / 2]),
        ] {
            match broken {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            assert_eq!(status(), status_before, "{when}: {broken:?}");
            assert_eq!(ls(), ls_before, "{when}: {broken:?}");
        }
        fs::write(&path, saved).unwrap();
    };
    until("the journal's line", || {
        test.events("a", "spawned").len() == 2
    });
    same("while it runs");
    test.write("go", "");
    live.end().exits(1);
    same("after its end");
    assert_eq!(test.status("a")["total_failures"], 1);
}

fn walk(path: &Path, seen: &mut dyn FnMut(&Path)) {
    seen(path);
    // git's objects have git's own modes, inside a directory that only the owner can enter.
    let is_git_s = path.ends_with("git/objects") || path.ends_with("git/content/objects");
    let open = path.is_dir() && !is_git_s;
    for entry in open
        .then(|| fs::read_dir(path).unwrap())
        .into_iter()
        .flatten()
    {
        walk(&entry.unwrap().path(), seen);
    }
}

#[test]
fn only_the_owner_can_read_the_state_directory() {
    let test = Test::git()
        .script("iteration 1\n cost 1\n mark BLOCKED why\niteration 2\n write fixed\n  | yes\n");
    test.ralph(&RUN).exits(3);
    test.ralph(&["resume", "a", "--answer", "so"]).exits(0);
    test.sh("rm fixed");
    test.ralph(&RUN).exits(3);
    let mut count = 0;
    walk(&test.state_dir(), &mut |path| {
        // This test created the state directory itself.
        let right = if path.is_dir() { 0o700 } else { 0o600 };
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert!(
            mode == right || path == test.state_dir(),
            "{}: {mode:o}",
            path.display()
        );
        count += 1;
    });
    assert!(count > 30, "{count}");
}

#[test]
fn a_loop_directory_is_laid_out_as_documented() {
    let test = Test::new().script(SCRIPT);
    test.ralph(&RUN).exits(0);
    let dir = test.loop_dir("a");
    for name in [
        "journal.jsonl",
        "inbox.jsonl",
        "lock",
        "state.json",
        "iterations.log",
    ] {
        assert!(dir.join(name).is_file(), "{name}");
    }
    for name in [
        "0000/check-test-f-fixed.log",
        "0001/prompt.md",
        "0001/output.log",
        "0001/check-test-f-fixed.log",
    ] {
        assert!(dir.join("iterations").join(name).is_file(), "{name}");
    }
    assert_eq!(
        test.read_loop("a", "iterations/0001/output.log"),
        "looking\n"
    );
    assert!(test.prompt("a", 1).contains("fix it"));
}
