//! Child loops: they record their parent, are waited for or stopped, and are exempt from every sweep.

use crate::crash::kill_now;
use crate::kit::{Live, Test, alive, signal, until};
use crate::spawn::tmux;
use serde_json::Value;
use std::fs;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
const AGENT: &str = "script:../agent.script";
const TERMS: &str = "--no-promise -m 1 --agent script:../child.script";

/// Creates a test for loop `a` whose first agent runs this script, with a script for a child that
/// works until it may exit.
fn parent_and_child(agent: &str) -> Test {
    let child = "iteration *\n fork setsid 10m\n sh touch at-work; until test -e child-may-go; do sleep 0.01; done\n sh echo x >> made-by-child\n";
    let test = Test::new().script(&format!(
        "iteration 1\n {agent}\niteration *\n promise COMPLETE\n"
    ));
    fs::write(test.root().join("child.script"), child).unwrap();
    test
}

fn spawns(name: &str, args: &str) -> String {
    format!("sh {RALPH} spawn child --name {name} --no-tmux {TERMS} {args}")
}

fn run(test: &Test, more: &[&str]) -> Live {
    test.start(&[&["run", "x", "--name", "a", "--agent", AGENT], more].concat())
}

fn until_child_works(test: &Test) {
    until("the child's agent", || {
        test.workspace().join("at-work").exists()
    });
}

fn status_of(test: &Test, name: &str) -> Value {
    test.status(name)["status"].clone()
}

#[test]
fn a_foreground_child_loop_ends_with_its_iteration() {
    let child =
        format!("{RALPH} run child --name b --no-promise -m 2 --agent script:../child.script");
    let test = parent_and_child(&format!(
        "sh {child} & until test -e at-work; do sleep 0.01; done"
    ));
    run(&test, &[]).end().exits(0);
    assert_eq!(test.survivors(), [0; 0], "it died with its iteration");
    let child = test.status("b");
    assert_eq!(
        (&child["parent"], &child["status"]),
        (&"a".into(), &"paused".into()),
        "it was told to go"
    );
    test.ralph(&["status", "b"]).exits(0).says("\nParent: a\n");
    assert_eq!(
        test.events("a", "drained")[0].get("waited"),
        None,
        "so there is nobody to wait for"
    );
}

#[test]
fn a_background_child_loop_is_waited_for_and_the_checks_run_again() {
    let test = parent_and_child(&format!("{}\n sh touch checked-by-a", spawns("b", "")));
    let live = run(
        &test,
        &[
            "--check",
            "test -e checked-by-a && mkdir -p out && echo x >> out/checks",
            "--until-green",
        ],
    );
    until_child_works(&test);
    until("the wait", || {
        test.status("a")["current_iteration"] == 1
            && test
                .ralph(&["status", "a"])
                .out
                .contains("waiting for child loops")
    });
    assert!(alive(warden(&test, "b")), "the sweep has spared it");
    assert_eq!(
        test.events("a", "ended")[0]["report"].get("leftovers"),
        None
    );
    let list = test.ralph(&["ls"]).exits(0).out;
    let names: Vec<&str> = list
        .lines()
        .skip(1)
        .map(|line| line.split("  ").next().unwrap())
        .collect();
    assert_eq!(names, ["a", "└ b"], "{list}");
    let all: Value = serde_json::from_str(&test.ralph(&["ls", "--json"]).exits(0).out).unwrap();
    assert_eq!(
        (&all[0]["parent"], &all[1]["parent"]),
        (&Value::Null, &"a".into())
    );
    test.write("child-may-go", "");
    let done = live
        .end()
        .exits(0)
        .says("child loops ended: b")
        .complains("waiting for child loops, at most 5m: b");
    assert!(
        done.out.contains("done: every check is green"),
        "{}",
        done.out
    );
    let drained = &test.events("a", "drained")[0];
    assert_eq!(
        (&drained["waited"][0], drained.get("stopped")),
        (&"b".into(), None)
    );
    assert_eq!(
        test.read("out/checks").lines().count(),
        2,
        "once for the work, and once more after the child"
    );
    assert_eq!(status_of(&test, "b"), "done");
    assert_eq!(test.survivors(), [0; 0]);
}

#[test]
fn a_loop_is_not_done_if_its_child_has_broken_a_check() {
    let test = parent_and_child(&format!("{}\n sh touch ready", spawns("b", "")));
    let live = run(
        &test,
        &[
            "--check",
            "test -e ready && ! test -e made-by-child",
            "--until-green",
            "-m",
            "1",
        ],
    );
    until_child_works(&test);
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    test.write("child-may-go", "");
    live.end().exits(1);
    assert_eq!(test.status("a")["outcome"]["why"], "iterations");
}

#[test]
fn a_child_that_takes_too_long_is_stopped_and_listed_and_the_outcome_stays_done() {
    let test = parent_and_child(&format!("{}\n promise COMPLETE", spawns("b", "")));
    let live = run(&test, &["--wait-timeout", "1s"]);
    until_child_works(&test);
    live.end()
        .exits(0)
        .says("stopped child loops: b")
        .says("loop complete after 1 iteration");
    assert_eq!(test.events("a", "drained")[0]["stopped"][0], "b");
    let child = test.status("b");
    assert_eq!(
        (&child["status"], &child["outcome"]["why"]),
        (&"stopped".into(), &"its parent loop".into())
    );
    assert_eq!(test.survivors(), [0; 0]);
}

#[test]
fn no_child_outlives_its_parent_however_the_parent_ends() {
    for (agent, kind, code) in [
        ("say over", "limit", 1),
        ("blocked no key", "blocked", 3),
        ("exit 42", "waiting", 3),
        ("sh mkdir .ralph/task/a/DONE", "fatal", 1),
    ] {
        let test = parent_and_child(&format!(
            "{}\n sh until test -e at-work; do sleep 0.01; done\n {agent}",
            spawns("b", "")
        ));
        let live = run(
            &test,
            &["-m", "1", "--wait-timeout", "1s", "--exit-waiting", "42"],
        );
        let done = live.end();
        assert_eq!(test.status("a")["outcome"]["kind"], kind, "{done:?}");
        done.exits(code)
            .says("stopped child loops: b")
            .complains("waiting for child loops, at most 1s: b");
        assert_eq!(status_of(&test, "b"), "stopped", "{kind}");
        assert_eq!(test.survivors(), [0; 0], "{kind}");
    }
}

#[test]
fn a_child_s_work_can_complete_a_parent_that_is_at_its_limit() {
    let test = parent_and_child(&spawns("b", ""));
    let check = ["--check", "test -e made-by-child", "--until-green"];
    let live = run(&test, &[&["-m", "1"], &check[..]].concat());
    until_child_works(&test);
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    test.write("child-may-go", "");
    live.end().exits(0).says("done: every check is green");
}

#[test]
fn a_claim_over_a_red_check_waits_for_the_child_before_another_iteration() {
    let agent = format!("{}\n sh {RALPH} done", spawns("b", ""));
    let test = parent_and_child(&agent);
    let live = run(&test, &["-m", "3", "--check", "test -e made-by-child"]);
    until_child_works(&test);
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    test.write("child-may-go", "");
    live.end().exits(0).says("child loops ended: b");
    assert_eq!(test.events("a", "started").len(), 1, "one iteration");
}

#[test]
fn a_child_s_changes_after_its_parent_s_commit_are_committed_too() {
    let test = Test::git().file(".gitignore", "at-work\nchild-may-go\n");
    test.sh("git add -A && git commit -q -m ignore");
    let child = "iteration *\n sh touch at-work; until test -e child-may-go; do sleep 0.01; done\n sh echo x > made-by-child\n";
    fs::write(test.root().join("child.script"), child).unwrap();
    let test = test.script(&format!(
        "iteration *\n {}\n sh echo x > made-by-a\n",
        spawns("b", "")
    ));
    let scm = [
        "--check",
        "test -e made-by-a",
        "--until-green",
        "--scm",
        "commit",
        "--scm",
        "tag first",
    ];
    let live = run(&test, &scm);
    until_child_works(&test);
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    assert_eq!(test.sh("git log --format=%s main | wc -l").trim(), "3");
    test.sh("git tag -d first");
    test.write("child-may-go", "");
    live.end().exits(0);
    assert_eq!(test.sh("git status --porcelain"), "");
    assert_eq!(
        test.sh("git show --format= --name-only HEAD").trim(),
        "made-by-child"
    );
    assert_eq!(
        test.sh("git log --format=%b main | grep -c '^Ralph-Iteration: a 1$'")
            .trim(),
        "2"
    );
    assert_eq!(
        test.sh("git rev-parse first"),
        test.sh("git rev-parse HEAD"),
        "and so are the tasks after it"
    );
}

#[test]
fn no_scm_task_runs_twice_for_a_child_that_changed_nothing() {
    let test = Test::git().file(".gitignore", "at-work\nchild-may-go\n");
    test.sh("git add -A && git commit -q -m ignore");
    let child = "iteration *\n sh touch at-work; until test -e child-may-go; do sleep 0.01; done\n";
    fs::write(test.root().join("child.script"), child).unwrap();
    let test = test.script(&format!(
        "iteration *\n {}\n sh echo x > made-by-a\n",
        spawns("b", "")
    ));
    let live = run(
        &test,
        &[
            "--check",
            "test -e made-by-a",
            "--until-green",
            "--scm",
            "commit",
            "--scm",
            "tag first",
        ],
    );
    until_child_works(&test);
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    test.write("child-may-go", "");
    live.end().exits(0);
    assert_eq!(test.sh("git log --format=%s main | wc -l").trim(), "3");
}

#[test]
fn a_child_is_stopped_with_its_parent() {
    let test = parent_and_child(&format!("{}\n hang", spawns("b", "")));
    let live = run(&test, &[]);
    until_child_works(&test);
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130).says("stopped child loops: b");
    assert_eq!(
        (status_of(&test, "a"), status_of(&test, "b")),
        ("stopped".into(), "stopped".into())
    );
    assert_eq!(test.survivors(), [0; 0]);
}

#[test]
fn a_loop_started_from_outside_with_ralph_loop_set_is_a_child_too() {
    let test = parent_and_child("sh until test -e at-work; do sleep 0.01; done\n promise COMPLETE");
    let live = run(&test, &[]);
    until("the agent", || !test.events("a", "spawned").is_empty());
    let mut command = test.ralph_command(&["run", "child", "--name", "b"]);
    command
        .args(TERMS.split_whitespace())
        .env("RALPH_LOOP", "a");
    let child = test.start_command(command);
    until_child_works(&test);
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    test.write("child-may-go", "");
    child.end().exits(0);
    live.end().exits(0).says("child loops ended: b");
}

/// Returns the process that holds a loop's lock.
fn warden(test: &Test, name: &str) -> u32 {
    let holder: Value = serde_json::from_str(&test.read_loop(name, "lock")).unwrap();
    assert_eq!(holder["background"], true, "{holder}");
    holder["pid"].as_u64().unwrap() as u32
}

#[test]
fn a_background_loop_and_windows_outlive_the_iteration_but_no_daemon_does() {
    let agent = format!(
        "sh {RALPH} spawn child --name b {TERMS}\n sh until test -e at-work; do sleep 0.01; done\n \
         sh tmux -L ralph new-window -d -n stray 'sleep 600'; sleep 0.2\n fork setsid daemon 10m\n say over"
    );
    let test = parent_and_child(&agent);
    let live = run(&test, &["-m", "1"]);
    live.until_out("killed ");
    // Nothing distinguishes the agent's own window from a person's, so it is only named.
    live.until_out("left open in ralph's tmux server, by the agent or by you: 1 window");
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    assert_eq!(status_of(&test, "b"), "running");
    let windows = test
        .command("tmux")
        .args([
            "-L",
            "ralph",
            "list-windows",
            "-t",
            "ralph",
            "-F",
            "#{window_name}",
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&windows.stdout), "b\nstray\n");
    test.write("child-may-go", "");
    test.ralph(&["wait", "b"]).exits(0);
    live.end().exits(1).says("child loops ended: b");
    tmux(&test, &["kill-server"]);
    until("the end of all", || test.survivors().is_empty());
}

#[test]
fn registered_background_loops_keep_running_when_the_supervisor_is_killed() {
    let test = parent_and_child(&format!(
        "{}\n fork setsid 10m\n say ready\n hang",
        spawns("b", "")
    ));
    let live = run(&test, &[]);
    until_child_works(&test);
    crate::process::ready(&test);
    signal(crate::process::supervisor(&test), "KILL");
    live.end().exits(137);
    assert_eq!(
        (status_of(&test, "a"), status_of(&test, "b")),
        ("crashed".into(), "running".into())
    );
    assert!(alive(warden(&test, "b")));
    test.ralph(&["stop", "b"]).exits(0);
    until("the end of all", || test.survivors().is_empty());
}

#[test]
fn the_sweep_after_a_crash_spares_only_registered_loops() {
    let test = parent_and_child(&format!(
        "{}\n fork setsid 10m\n say ready\n hang",
        spawns("b", "")
    ));
    let live = run(&test, &[]);
    until_child_works(&test);
    crate::process::ready(&test);
    kill_now(&[crate::process::supervisor(&test), live.pid()]);
    live.end().exits(137);
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Status: crashed")
        .complains("the loop \"a\" crashed; killed 2 processes");
    assert_eq!(status_of(&test, "b"), "running");
    // The resumed loop waits for its child.
    let live = test.start(&["resume", "a"]);
    until("the wait", || {
        test.ralph(&["status", "a"])
            .out
            .contains("waiting for child loops")
    });
    test.write("child-may-go", "");
    live.end().exits(0).says("child loops ended: b");
    assert_eq!(test.survivors(), [0; 0]);
}

#[test]
fn a_loop_that_only_claims_to_be_registered_is_swept() {
    // The lock is held, and its content is that of a background loop, but names another process.
    let lies = "sh mkdir -p ../state/loops/b; (setsid flock ../state/loops/b/lock sleep 600 & echo forked $!); \
                printf '{\"pid\":%s,\"start_time\":1,\"background\":true,\"loop_name\":\"b\"}' $$ > ../state/loops/b/lock; sleep 0.1";
    let test = parent_and_child(lies);
    run(&test, &["-m", "1"]).end().exits(1);
    assert_eq!(test.survivors(), [0; 0]);
}

#[test]
fn a_parent_is_not_removed_while_a_child_is_running() {
    let test = parent_and_child(&format!("{}\n say ready\n hang", spawns("b", "")));
    let live = run(&test, &[]);
    until_child_works(&test);
    crate::process::ready(&test);
    signal(crate::process::supervisor(&test), "KILL");
    live.end().exits(137);
    test.ralph(&["rm", "a"])
        .exits(2)
        .complains("cannot remove \"a\": its child loops are still running: b")
        .complains("ralph stop b");
    assert_eq!(status_of(&test, "b"), "running");
    test.ralph(&["stop", "a"]).exits(0);
    assert_eq!(status_of(&test, "b"), "stopped");
    test.ralph(&["rm", "a"]).exits(0);
    test.ralph(&["rm", "b"]).exits(0);
}

#[test]
fn a_parent_and_its_child_are_removed_together() {
    let test = parent_and_child(&format!("{}\n hang", spawns("0-child", "")));
    let live = run(&test, &[]);
    until("the child is at work", || {
        !test.events("0-child", "spawned").is_empty()
    });
    test.ralph(&["rm", "a", "0-child"]).exits(2);
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    let done = test.ralph(&["rm", "a", "0-child"]).exits(0);
    done.says("removed ralph loop a")
        .says("removed ralph loop 0-child");
}

#[test]
fn only_a_child_may_share_its_parent_s_workspace_without_a_flag() {
    let test = parent_and_child(&format!("{}\n hang", spawns("b", "")));
    let live = run(&test, &[]);
    until_child_works(&test);
    test.ralph(&["run", "y", "--name", "c", "--agent", AGENT])
        .exits(2)
        .complains("the loop \"a\" is already running in this workspace");
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
}

#[test]
fn a_failed_child_is_listed_when_its_parent_ends() {
    let test = parent_and_child("sh true");
    let spawn = |name: &str, args: &str| {
        format!(
            "sh {RALPH} spawn child --name {name} --no-tmux --agent script:../child.script {args}"
        )
    };
    let script = format!(
        "iteration *\n {}\n {}\n promise COMPLETE\n",
        spawn("b", "-m 1"),
        spawn("c", "--no-promise -m 1")
    );
    fs::write(test.root().join("agent.script"), script).unwrap();
    fs::write(test.root().join("child.script"), "iteration *\n say no\n").unwrap();
    let done = run(&test, &["--share-workspace"]).end().exits(0);
    let children: Vec<&str> = done
        .out
        .lines()
        .filter(|line| line.starts_with("  child "))
        .collect();
    assert_eq!(
        children,
        ["  child    b failed (iteration limit reached)"],
        "{}",
        done.out
    );
}
