//! A named loop in its window, from start to end: iterations, inactivity, claims, limits, failures, pause, status.

use super::{ends_with, gated, iterations, let_go, spawn, until_window, until_works, window};
use crate::kit::{Test, until};
use crate::spawn::{tmux, until_status};

const SCRIPT: [&str; 2] = ["--agent", "script:../agent.script"];

/// A spawned loop has a window of its name by default, its agent reads the prompt file, and its
/// state is on disk.
#[test]
fn a_basic_loop_runs_in_a_window() {
    let test = gated();
    let args = [
        "--prompt-file",
        "./PROMPT.md",
        "-m",
        "10",
        "--context",
        "none",
        "--",
        "./agent",
    ];
    let line = "spawned agent (tmux: ralph:agent) [ralph mode: iteration 1/10]\n";
    assert_eq!(spawn(&test, &args).exits(0).out, line);
    until_works(&test, 1);
    assert_eq!(test.read("got-1"), "Do task A\n");
    assert_eq!(
        tmux(&test, &["list-windows", "-a", "-F", "#S:#W"]),
        "ralph:agent\n"
    );
    assert!(test.loop_dir("agent").join("journal.jsonl").is_file());
    test.ralph(&["stop", "agent"]).exits(0);
}

/// When the agent exits, the next iteration starts in the same window, with the current prompt and
/// the next number.
#[test]
fn an_agent_is_restarted_with_the_current_prompt() {
    let test = gated();
    let args = [
        "--prompt-file",
        "PROMPT.md",
        "-m",
        "10",
        "--context",
        "none",
        "--",
        "./agent",
    ];
    spawn(&test, &args).exits(0);
    until_works(&test, 1);
    test.write("PROMPT.md", "Do task B\n");
    let_go(&test, 1);
    until_works(&test, 2);
    assert_eq!(
        (&test.read("got-1")[..], &test.read("got-2")[..]),
        ("Do task A\n", "Do task B\n")
    );
    until_window(
        &test,
        "[ralph] agent: iteration 1 completed (exit: 0, duration: ",
    );
    until_window(&test, "[ralph] agent: starting iteration 2/10\n");
    assert_eq!(test.status("agent")["current_iteration"], 2);
    assert_eq!(
        tmux(&test, &["list-windows", "-a", "-F", "#S:#W"]),
        "ralph:agent\n"
    );
    test.ralph(&["stop", "agent"]).exits(0);
}

/// An agent whose screen does not change for too long is stopped, and the next one starts; so is
/// one without a screen that prints nothing.
#[test]
fn an_inactive_agent_is_replaced() {
    for terminal in ["--pty", "--no-pty"] {
        let test = Test::new().program(
            "agent",
            "#!/bin/sh\ntest -t 0 && { echo ready; read -r prompt; }\ntouch at-$RALPH_ITERATION\nexec sleep 600\n",
        );
        spawn(
            &test,
            &[
                "go",
                "-m",
                "3",
                "--inactivity-timeout",
                "1s",
                terminal,
                "--",
                "./agent",
            ],
        )
        .exits(0);
        until("the second agent", || {
            test.workspace().join("at-2").exists()
        });
        assert_eq!(
            test.events("agent", "noticed")[0]["notice"],
            "silence",
            "why is in the journal"
        );
        assert_eq!(test.status("agent")["total_failures"], 0, "{terminal}");
        let log = test.read_loop("agent", "iterations.log");
        assert!(log.contains("[START] iteration 2/3"), "{log}");
        if terminal == "--no-pty" {
            until_window(&test, "[ralph] agent: inactivity timeout (1s), restarting");
        }
        test.ralph(&["stop", "agent"]).exits(0);
        until("the end of all", || test.survivors().is_empty());
    }
}

/// A line that matches the done pattern ends the loop successfully, even if the agent would have
/// continued.
#[test]
fn the_done_pattern_stops_the_loop() {
    let test = Test::new()
        .script("iteration 1\n say one is left\niteration 2\n say All tasks complete\n hang\n");
    spawn(
        &test,
        &[&["go", "--done-pattern", "All tasks complete"], &SCRIPT[..]].concat(),
    )
    .exits(0);
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    assert_eq!(iterations(&test), 2);
    assert_eq!(test.status("agent")["stop_reason"], "completed");
    assert_eq!(test.events("agent", "noticed")[0]["notice"], "pattern");
}

/// A loop ends at its limit: successfully if no claim was asked for, as a failure otherwise.
#[test]
fn the_iteration_limit_ends_the_loop() {
    for (more, code, line) in [
        (
            &["--no-promise"][..],
            0,
            "done (ran to its iteration limit)",
        ),
        (&[], 1, "failed (iteration limit reached)"),
    ] {
        let test = Test::new().script("iteration *\n say at it\n");
        spawn(&test, &[&["go", "-m", "3"], more, &SCRIPT].concat()).exits(0);
        ends_with(&test, code, line);
        assert_eq!(iterations(&test), 3);
        let log = test.read_loop("agent", "iterations.log");
        assert!(log.contains("[END] iteration 3 exit=0"), "{log}");
    }
}

/// After each consecutive failure the loop rests twice as long, starting with one second, and says
/// so.
#[test]
fn consecutive_failures_lead_to_longer_rests() {
    let test = Test::new().script("iteration 1-2\n exit 1\niteration *\n hang\n");
    spawn(&test, &[&["go"], &SCRIPT[..]].concat()).exits(0);
    until("the third iteration", || iterations(&test) == 3);
    until_window(
        &test,
        "[ralph] agent: iteration 1 failed (exit: 1), retrying in 1s (attempt 1/5)",
    );
    until_window(
        &test,
        "[ralph] agent: iteration 2 failed (exit: 1), retrying in 2s (attempt 2/5)",
    );
    let status = test.status("agent");
    assert_eq!(
        (&status["consecutive_failures"], &status["total_failures"]),
        (&2.into(), &2.into())
    );
    test.ralph(&["stop", "agent"]).exits(0);
}

/// The fifth consecutive failure ends the loop as failed.
#[test]
fn five_consecutive_failures_end_the_loop() {
    let test = Test::new().script("iteration *\n exit 1\n");
    spawn(
        &test,
        &[&["go", "--backoff", "1ms..2ms"], &SCRIPT[..]].concat(),
    )
    .exits(0);
    ends_with(&test, 1, "failed (too many failures in a row)");
    assert_eq!(
        (iterations(&test), &test.status("agent")["status"]),
        (5, &"failed".into())
    );
}

/// A paused loop lets its agent finish and starts no other; after a resume, the numbers continue.
#[test]
fn a_paused_loop_continues_with_the_next_iteration_number() {
    let test = gated();
    spawn(&test, &["-m", "10", "--", "./agent"]).exits(0);
    until_works(&test, 1);
    test.ralph(&["pause", "agent"])
        .exits(0)
        .says("paused ralph loop for agent\n");
    until_window(&test, "pausing");
    assert_eq!(test.events("agent", "ended").len(), 0, "the agent works on");
    let_go(&test, 1);
    ends_with(&test, 3, "paused");
    assert_eq!(
        test.events("agent", "ended")[0]["report"]["exit"]["code"],
        0
    );
    assert_eq!(
        test.ralph(&["resume", "agent"]).exits(0).out,
        "resumed ralph loop for agent\n"
    );
    until_works(&test, 2);
    until_window(&test, "Iteration 2/10 · agent");
    assert!(
        !window(&test).contains("starting iteration 1/10"),
        "it is a new window"
    );
    test.ralph(&["stop", "agent"]).exits(0);
}

/// A pause that is canceled while the agent still works has no effect.
#[test]
fn a_pause_can_be_canceled_before_the_agent_has_exited() {
    let test = gated();
    spawn(&test, &["-m", "2", "--no-promise", "--", "./agent"]).exits(0);
    until_works(&test, 1);
    test.ralph(&["pause", "agent"]).exits(0);
    assert_eq!(
        test.ralph(&["resume", "agent"]).exits(0).out,
        "resumed ralph loop for agent\n"
    );
    let_go(&test, 1);
    until_works(&test, 2);
    assert_eq!(
        test.events("agent", "opened").len(),
        1,
        "by the same runner"
    );
    let_go(&test, 2);
    ends_with(&test, 0, "done (ran to its iteration limit)");
}

/// `status` shows the same seven lines for every running loop.
#[test]
fn status_shows_a_loop_that_runs_in_a_window() {
    let test = Test::new().script("iteration 1\n exit 1\niteration *\n hang\n");
    spawn(
        &test,
        &[&["go", "-m", "10", "--backoff", "1ms..1ms"], &SCRIPT[..]].concat(),
    )
    .exits(0);
    until("the second iteration", || iterations(&test) == 2);
    let shown = test.ralph(&["status", "agent"]).exits(0).out;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..3],
        ["Ralph Loop: agent", "Status: running", "Iteration: 2/10"]
    );
    assert!(
        lines[3].starts_with("Started: 2") && lines[4].starts_with("Current iteration started: 2"),
        "{shown}"
    );
    assert_eq!(
        lines[5..7],
        ["Consecutive failures: 1", "Total failures: 1"]
    );
    test.ralph(&["stop", "agent"]).exits(0);
}

/// A high iteration limit, or none, triggers a warning, but the loop is spawned.
#[test]
fn a_high_iteration_limit_triggers_a_warning() {
    for (limit, warning, first) in [
        (
            "100",
            "high iteration count (>50) may consume significant resources",
            "1/100",
        ),
        (
            "0",
            "no iteration limit: the loop may consume significant resources",
            "1",
        ),
    ] {
        let test = Test::new().script("iteration 1\n promise COMPLETE\n");
        let done = spawn(&test, &[&["go", "-m", limit], &SCRIPT[..]].concat()).exits(0);
        assert_eq!(done.err, format!("ralph: warning: {warning}\n"));
        assert_eq!(
            done.out,
            format!("spawned agent (tmux: ralph:agent) [ralph mode: iteration {first}]\n")
        );
        until_status(&test, "agent", "done");
    }
}

/// A missing prompt file is reported before anything starts.
#[test]
fn a_missing_prompt_file_is_reported_and_nothing_starts() {
    let test = Test::new();
    let done = spawn(
        &test,
        &["--prompt-file", "./missing.md", "-m", "10", "--", "true"],
    )
    .exits(2);
    done.complains("ralph: error: prompt file not found: ")
        .complains("missing.md")
        .complains("\n  hint: ");
    assert_eq!(std::fs::read_dir(test.state_dir()).unwrap().count(), 0);
    assert_eq!(tmux(&test, &["ls"]), "");
}

/// A prompt file that is deleted while the loop runs ends the loop; the error names the file.
#[test]
fn a_deleted_prompt_file_ends_the_loop() {
    let test = gated();
    spawn(&test, &["--prompt-file", "PROMPT.md", "--", "./agent"]).exits(0);
    until_works(&test, 1);
    test.sh("rm PROMPT.md");
    let_go(&test, 1);
    let path = test.workspace().canonicalize().unwrap().join("PROMPT.md");
    ends_with(
        &test,
        1,
        &format!("failed (prompt file not found: {})", path.display()),
    );
    assert_eq!(test.status("agent")["outcome"]["why"], "prompt-file");
}
