//! Pipes, links, directories and huge files in place of a loop's files: no command hangs, runs out
//! of memory or fails to reach the other loops, and the loop can be removed.

use crate::kit::{Done, RUN_ONCE, Test};
use std::fs;
use std::time::Duration;

/// How long a command may take. It is generous for a busy machine: a blocked open never ends.
const DEADLINE: Duration = Duration::from_secs(30);
/// The virtual memory of a command, in KiB: too little to read a file of a gigabyte.
const MEMORY: &str = "700000";

/// Every file that ralph opens in a loop's directory.
const FILES: [&str; 15] = [
    "journal.jsonl",
    "lock",
    "state.json",
    "inbox.jsonl",
    "bus.jsonl",
    "pulse",
    "base.json",
    "seal",
    "state.json.new",
    "starting",
    "start.jsonl",
    "reserve",
    "iterations.log",
    "iterations/0001/activity.jsonl",
    "iterations/0001/output.log",
];
/// The number of files with which every command is tried.
const IMPORTANT: usize = 7;

/// Shell commands that put an obstacle in place of `$f`.
const OBSTACLES: [(&str, &str); 5] = [
    ("a FIFO", "mkfifo $f"),
    ("a link to a device", "ln -s /dev/zero $f"),
    ("a link to nothing", "ln -s nowhere $f"),
    ("a directory", "mkdir $f"),
    ("a line of a gigabyte", "truncate -s 1G $f; echo >> $f"),
];

fn bounded(test: &Test, args: &[&str]) -> Done {
    let mut command = test.command("sh");
    let program = env!("CARGO_BIN_EXE_ralph");
    command.args([
        "-c",
        &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\""),
        program,
    ]);
    command.args(args);
    let done = test.start_command(command).end_within(DEADLINE);
    assert!(
        done.code < 100 && !done.err.contains("panicked"),
        "{args:?}: {done:?}"
    );
    done
}

fn place(test: &Test, name: &str, file: &str, obstacle: &str) {
    let dir = test.loop_dir(name);
    test.sh(&format!(
        "f={}/{file}; mkdir -p $(dirname $f); rm -rf $f; {obstacle}",
        dir.display()
    ));
}

/// Returns a test with the loops `other` and `zz`, which is blocked.
fn two_loops() -> Test {
    let test = Test::git();
    let blocked = "echo why > $RALPH_TASK_DIR/BLOCKED";
    for name in ["other", "zz"] {
        let args = ["run", "x", "--name", name, "--", "sh", "-c", blocked];
        test.ralph(&args).exits(3);
    }
    test.sh("cp -a ../state ../saved");
    test
}

/// Puts each obstacle in place of each file, and runs each command.
fn every_command_ends(files: &[&str], obstacles: &[(&str, &str)], commands: &[&[&str]]) {
    let test = two_loops();
    for file in files {
        for (what, obstacle) in obstacles {
            let case = format!("{what} in place of {file}");
            place(&test, "zz", file, obstacle);
            let ls = bounded(&test, &["ls"]).exits(0);
            assert!(ls.out.contains("other"), "{case}: {ls:?}");
            for args in commands {
                let done = bounded(&test, args);
                assert!(
                    done.code == 0 || !done.err.is_empty() || !done.out.is_empty(),
                    "{case}: {args:?} failed without a word: {done:?}"
                );
            }
            let rm = bounded(&test, &["rm", "zz"]);
            if rm.code != 0 {
                let forced = bounded(&test, &["rm", "zz", "--force"]);
                assert_eq!(forced.code, 0, "{case}: {rm:?} {forced:?}");
            }
            assert!(!test.loop_dir("zz").exists(), "{case}");
            test.sh("rm -rf ../state && cp -a ../saved ../state");
        }
    }
}

const READ_AND_RESUME: [&[&str]; 3] = [&["status", "zz"], &["logs", "zz"], &["resume", "zz"]];

#[test]
fn obstacles_in_place_of_a_journal_a_lock_or_a_cache_stop_no_command() {
    let more: [&[&str]; 4] = [
        &["say", "zz", "hello"],
        &["stop", "zz"],
        &["resume", "other"],
        &["stop", "other"],
    ];
    let commands = [&READ_AND_RESUME[..], &more[..]].concat();
    every_command_ends(&FILES[..3], &OBSTACLES, &commands);
}

#[test]
fn obstacles_in_place_of_messages_or_clocks_stop_no_command() {
    let more: [&[&str]; 4] = [
        &["bus", "log", "zz"],
        &["say", "zz", "hello"],
        &["set", "zz", "max-iterations=9"],
        &["stop", "zz"],
    ];
    let commands = [&READ_AND_RESUME[..], &more[..]].concat();
    every_command_ends(&FILES[3..IMPORTANT], &OBSTACLES, &commands);
}

#[test]
fn obstacles_in_place_of_other_files_stop_no_command() {
    every_command_ends(&FILES[IMPORTANT..], &OBSTACLES[..2], &READ_AND_RESUME);
}

#[test]
fn obstacles_that_an_agent_places_do_not_hang_its_loop() {
    for file in &FILES[..IMPORTANT] {
        for (what, obstacle) in OBSTACLES {
            let test = Test::new();
            let agent = format!("f=$RALPH_STATE_DIR/loops/a/{file}; rm -rf $f; {obstacle}");
            let args = [
                "run",
                "x",
                "--name",
                "a",
                "-m",
                "2",
                "--no-promise",
                "--",
                "sh",
                "-c",
            ];
            let done = bounded(&test, &[&args[..], &[&agent]].concat());
            let case = format!("{what} in place of {file}: {done:?}");
            let ended = done.out.contains("loop ended") || done.out.contains("loop complete");
            assert!(ended || done.err.contains("ralph: error:"), "{case}");
            assert!(
                done.code == 0 || done.err.contains("ralph: error:"),
                "{case}"
            );
            assert!(*file == "journal.jsonl" || done.code == 0, "{case}");
        }
    }
}

#[test]
fn obstacles_in_place_of_a_workspace_lock_do_not_stop_a_new_loop() {
    for (what, obstacle) in OBSTACLES {
        let test = Test::new();
        test.ralph(&RUN_ONCE).exits(0);
        let locks: Vec<_> = fs::read_dir(test.state_dir().join("workspaces"))
            .unwrap()
            .collect();
        let mut paths = locks.into_iter().flatten().map(|entry| entry.path());
        let lock = paths.find(|path| path.extension().is_some()).unwrap();
        test.sh(&format!("f={}; rm -f $f; {obstacle}", lock.display()));
        let done = bounded(
            &test,
            &[
                "run",
                "x",
                "--name",
                "b",
                "-m",
                "1",
                "--no-promise",
                "--",
                "true",
            ],
        );
        assert_eq!(done.code, 0, "{what}: {done:?}");
    }
}
