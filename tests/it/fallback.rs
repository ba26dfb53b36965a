//! Agents at a usage limit: the loop waits, can be hurried, recovers from a crash, and falls back to another agent.

use crate::kit::{Test, until};

/// Creates two custom agents; while the file `gate` exists, the first is at a limit or not logged
/// in.
fn two(means: &str, probe: &str) -> Test {
    let settings = format!(
        "probe = '{probe}'\n\
         [agents.first]\ncommand = 'first'\nlogin = 'first login'\n\
         [[agents.first.exit]]\ncode = 7\nmeans = '{means}'\n\
         [agents.second]\ncommand = 'second'\n"
    );
    Test::new()
        .on_path(
            "first",
            "#!/bin/sh\ntest -e gate && exit 7\necho '<promise>COMPLETE</promise>'\n",
        )
        .on_path("second", "#!/bin/sh\nsleep 1.2\nrm -f gate\n")
        .file(".ralph/settings.toml", &settings)
        .file("gate", "")
}

fn names(test: &Test) -> Vec<String> {
    let started = test.events("a", "started");
    started
        .iter()
        .map(|line| line["agent"].as_str().unwrap_or("-").to_owned())
        .collect()
}

#[test]
fn the_second_agent_takes_over_until_the_first_is_available_again() {
    for (means, expected) in [
        ("limit", ["first", "second", "first"]),
        ("login", ["first", "second", "second"]),
    ] {
        let test = two(means, "1s..1s");
        // The second agent takes long enough for the first one's rest to end, and does not end the
        // loop.
        let args = [
            "run",
            "x",
            "--name",
            "a",
            "--agent",
            "first,second",
            "-m",
            "2",
        ];
        let code = i32::from(means != "limit");
        let done = test
            .ralph(&args)
            .exits(code)
            .says("iteration 1 is not counted: first:");
        done.says("starting iteration 2, counted 1/2 (second)");
        assert_eq!(names(&test), expected, "{means}");
        test.ralph(&["status", "a"])
            .exits(0)
            .says("\nIteration: 3, counted 2/2\n");
        assert_eq!(test.status("a")["consecutive_failures"], 0);
        assert!(
            test.read(".ralph/task/a/progress.md")
                .contains("- Agent: second, exit 0")
        );
    }
}

#[test]
fn red_checks_do_not_cause_a_switch_to_another_agent() {
    let test = two("limit", "1s..1s");
    test.sh("rm gate");
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "first,second",
        "-m",
        "2",
        "--check",
        "false",
    ];
    test.ralph(&args).exits(1);
    assert_eq!(names(&test), ["first", "first"]);
}

#[test]
fn a_limit_without_a_reset_time_is_probed_and_costs_no_iteration() {
    let test = two("limit", "100ms..100ms");
    let live = test.start(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "first",
        "-m",
        "1",
        "--max-failures",
        "1",
    ]);
    until("it was tried again", || {
        test.events("a", "started").len() > 2
    });
    test.sh("rm gate");
    live.end()
        .exits(0)
        .says("is not counted: first: usage limit reached, resting until");
    assert_eq!(test.status("a")["total_failures"], 0);
}

#[test]
fn resume_now_ends_a_rest() {
    let test = two("limit", "1h..1h");
    let live = test.start(&["run", "x", "--name", "a", "--agent", "first"]);
    until("it rests", || !test.events("a", "ended").is_empty());
    assert!(test.status("a")["resting_until"].is_string());
    let status = test.ralph(&["status", "a"]).exits(0);
    status
        .says("Now: first: usage limit reached")
        .says("ralph resume a --now");
    test.sh("rm gate");
    test.ralph(&["resume", "a", "--now"])
        .exits(0)
        .says("resumed ralph loop for a");
    live.end().exits(0).says("retrying now");
    assert_eq!(test.events("a", "hurried").len(), 1);
}

#[test]
fn a_rest_continues_after_its_runner_is_killed() {
    let test = two("limit", "1h..1h");
    let live = test.start(&["run", "x", "--name", "a", "--agent", "first"]);
    until("it rests", || !test.events("a", "ended").is_empty());
    assert!(test.status("a")["resting_until"].is_string());
    let before = test.status("a")["resting_until"].clone();
    live.signal("KILL");
    drop(live);
    until("nobody runs it", || test.status("a")["status"] == "crashed");
    let live = test.start(&["resume", "a"]);
    until("it rests again", || test.status("a")["status"] == "running");
    assert_eq!(test.status("a")["resting_until"], before);
    assert_eq!(
        test.events("a", "started").len(),
        1,
        "it was not tried before its time"
    );
    live.signal("KILL");
    drop(live);
    until("nobody runs it", || test.status("a")["status"] == "crashed");
    test.sh("rm gate");
    test.ralph(&["resume", "a", "--now"]).exits(0);
}

#[test]
fn a_missing_login_stops_the_loop_at_once_and_says_how_to_log_in() {
    let test = two("login", "1s..1s");
    let done = test
        .ralph(&["run", "x", "--name", "a", "--agent", "first"])
        .exits(1);
    done.complains("first exited with 7: it is not logged in: log in: first login");
    assert_eq!(test.status("a")["outcome"]["why"], "login");
    test.sh("rm gate");
    test.ralph(&["resume", "a"]).exits(0);
}

#[test]
fn arguments_for_a_single_agent_are_refused_with_several() {
    let test = two("limit", "1s..1s");
    let run = |more: &[&str]| {
        test.ralph(&[&["run", "x", "--agent", "first,second"], more].concat())
            .exits(2)
    };
    run(&["--model", "big"])
        .complains("--model applies to one agent, but several are named")
        .complains("headless");
    let twice = test.ralph(&["run", "x", "--agent", "first,first"]).exits(2);
    twice.complains("names first twice");
    let unknown = test.ralph(&["run", "x", "--agent", "first,secnd"]).exits(2);
    unknown
        .complains("\"secnd\": unknown agent")
        .complains("did you mean second?");
}
