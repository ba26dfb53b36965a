//! Many loops at once, and loops that wait for a long time.

use crate::kit::{Test, until};
use serde_json::Value;
use std::process::Command;

const TERMS: [&str; 4] = [
    "--no-promise",
    "--share-workspace",
    "--agent",
    "script:../agent.script",
];

fn spawn(test: &Test, name: &str, args: &[&str]) {
    test.ralph(&[&["spawn", "work", "--name", name], &TERMS[..], args].concat())
        .exits(0);
}

/// Returns the number of loops that `ls` shows with this status. Asserts that the table has a row
/// per loop.
fn listed(test: &Test, status: &str) -> usize {
    let done = test.ralph(&["ls", "--json"]).exits(0);
    let all: Vec<Value> = serde_json::from_str(&done.out).unwrap();
    let table = test.ralph(&["ls"]).exits(0);
    assert_eq!(table.out.lines().count(), all.len() + 1, "{}", table.out);
    all.iter().filter(|one| one["status"] == status).count()
}

#[test]
fn a_dozen_loops_at_once_are_listed_and_all_end() {
    let test =
        Test::new().script("iteration *\n sh until test -e go; do sleep 0.02; done\n say over\n");
    let names: Vec<String> = (0..12).map(|n| format!("loop-{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        spawn(
            &test,
            name,
            if n % 2 == 0 {
                &["-m", "1"]
            } else {
                &["-m", "1", "--no-tmux"]
            },
        );
    }
    assert_eq!(listed(&test, "running"), 12);
    test.write("go", "");
    for name in &names {
        test.ralph(&["wait", name]).exits(0);
        assert_eq!(test.events(name, "finished").len(), 1, "{name}");
        test.ralph(&["logs", name]).exits(0).says("over");
    }
    assert_eq!(listed(&test, "done"), 12);
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    test.ralph(&[&["rm"], &all[..]].concat()).exits(0);
    test.ralph(&["ls"]).exits(0).says("no loops yet");
    until("the end of all", || test.survivors().is_empty());
}

fn window(test: &Test, name: &str) -> String {
    let mut tmux: Command = test.command("tmux");
    let output = tmux
        .args([
            "-L",
            "ralph",
            "capture-pane",
            "-p",
            "-t",
            &format!("ralph:{name}"),
        ])
        .output();
    String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
}

#[test]
fn a_window_shows_clock_times_and_stop_ends_a_long_rest() {
    let test = Test::new().script("iteration 1\n say over\niteration 2\n hang\n");
    spawn(&test, "a", &["-m", "2", "--delay", "5h"]);
    until("the rest", || {
        window(&test, "a").contains("── a · resting until ")
    });
    spawn(&test, "b", &["-m", "2", "--delay", "1ms"]);
    until("the agent", || {
        window(&test, "b").contains("── b · iteration 2/2 · since ")
    });
    for name in ["a", "b"] {
        test.ralph(&["stop", name]).exits(0);
        until("the end", || test.status(name)["status"] == "stopped");
    }
}

#[test]
fn a_marker_is_noticed_in_a_recreated_task_directory() {
    let test = Test::new().script(
        "iteration 1\n sh rm -rf .ralph\n sleep 300ms\n sh mkdir -p \"$RALPH_TASK_DIR\"; echo why > \"$RALPH_TASK_DIR/BLOCKED\"\n hang\n",
    );
    spawn(&test, "a", &["-m", "1", "--no-tmux"]);
    until("the marker", || !test.events("a", "noticed").is_empty());
    assert_eq!(test.events("a", "noticed")[0]["words"], "why");
    test.ralph(&["stop", "a"]).exits(0);
    until("the end", || test.status("a")["status"] != "running");
}

mod needs_limits {
    use super::*;

    #[test]
    fn a_loop_works_without_inotify_watches() {
        let test = Test::new().script("iteration *\n say over\n");
        let ralph = test.ralph_command(&[
            "spawn",
            "work",
            "--name",
            "a",
            "-m",
            "2",
            "--delay",
            "5h",
            "--no-tmux",
        ]);
        let mut command = test.command("unshare");
        let set = "echo 0 > /proc/sys/user/max_inotify_instances; exec \"$@\"";
        command
            .args(["-Ur", "sh", "-c", set, "sh"])
            .arg(ralph.get_program())
            .args(ralph.get_args())
            .args(TERMS);
        assert!(command.status().unwrap().success());
        until("the rest", || test.status("a")["resting_until"].is_string());
        let holder: Value = serde_json::from_str(&test.read_loop("a", "lock")).unwrap();
        let supervisor =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", holder["pid"])).unwrap();
        let open = std::fs::read_dir(format!("/proc/{}/fd", supervisor.trim()))
            .unwrap()
            .flatten();
        let open: Vec<_> = open
            .filter_map(|fd| std::fs::read_link(fd.path()).ok())
            .collect();
        assert!(
            !open
                .iter()
                .any(|link| link.to_string_lossy().contains("inotify")),
            "{open:?}"
        );
        test.ralph(&["stop", "a"]).exits(0);
        until("the end", || test.status("a")["status"] == "stopped");
        assert_eq!(test.status("a")["outcome"]["why"], "ralph stop");
    }
}

#[cfg(target_os = "linux")]
mod needs_ptrace {
    use crate::chaos::traced;
    use crate::chaos::tracer::{Counted, Fault};
    use crate::kit::Test;
    use std::fs;

    /// Creates ended loops: copies of one, each in a workspace of its own.
    fn ended(count: usize) -> Test {
        let test = Test::git().script("iteration *\n promise COMPLETE\n");
        test.ralph(&[
            "run",
            "x",
            "--name",
            "a",
            "--agent",
            "script:../agent.script",
        ])
        .exits(0);
        let journal = test.read_loop("a", "journal.jsonl");
        let workspace = test.workspace().display().to_string();
        for n in 0..count {
            let dir = test.loop_dir(&format!("a{n}"));
            let own = format!("{workspace}/{n}");
            fs::create_dir(&dir).unwrap();
            fs::create_dir(&own).unwrap();
            let journal = journal.replace("\"name\":\"a\"", &format!("\"name\":\"a{n}\""));
            let journal = journal.replace(
                &format!("\"workspace\":\"{workspace}\""),
                &format!("\"workspace\":\"{own}\""),
            );
            fs::write(dir.join("journal.jsonl"), journal).unwrap();
        }
        test
    }

    #[test]
    fn the_work_of_rm_ended_grows_with_the_number_of_loops_and_not_with_its_square() {
        let calls = |count: usize| {
            let test = ended(count);
            let calls = traced(&test, &["rm", "--ended"], Counted::All, Fault::None).calls;
            test.ralph(&["ls"]).exits(0).says("no loops yet");
            calls
        };
        let (few, many) = (calls(10), calls(100));
        assert!(many < 11 * few, "{few} calls for 10 loops, {many} for 100");
    }
}
