//! Restarts of a spawned loop's agent, and reasons not to restart it: markers, exit codes, rests,
//! timeouts, waiting.

use super::{ends_with, iterations, spawn, until_window};
use crate::kit::{Test, alive, until};

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
const SCRIPT: [&str; 2] = ["--agent", "script:../agent.script"];

/// Returns the type and text of each message on the project's bus.
fn project_bus(test: &Test) -> Vec<(String, String)> {
    let all = test.ralph(&["bus", "tail", "--json"]).exits(0).json_lines();
    let word = |one: &serde_json::Value, field: &str| one[field].as_str().unwrap().to_owned();
    all.iter()
        .map(|one| (word(one, "type"), word(one, "text")))
        .collect()
}

/// A DONE marker that exists before the first agent ends the loop without one; one that an agent
/// leaves ends it afterwards. Both are posted to the project's bus.
#[test]
fn the_done_marker_ends_the_loop_before_or_after_a_run() {
    for (before, count) in [(true, 0), (false, 2)] {
        let test = Test::new().script("iteration 2\n mark DONE\n exit 1\n");
        if before {
            test.write(".ralph/task/agent/DONE", "");
        }
        spawn(&test, &[&["go"], &SCRIPT[..]].concat()).exits(0);
        ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
        assert_eq!(iterations(&test), count);
        assert_eq!(project_bus(&test).last().unwrap().0, "done");
    }
}

/// A loop that reaches its iteration limit has failed, and posts that to the project's bus.
#[test]
fn a_loop_that_used_all_its_iterations_fails_and_says_so() {
    let test = Test::new().script("iteration *\n exit 1\n");
    spawn(
        &test,
        &[
            &["go", "-m", "3", "--max-failures", "0", "--backoff", "0..0"],
            &SCRIPT[..],
        ]
        .concat(),
    )
    .exits(0);
    ends_with(&test, 1, "failed (iteration limit reached)");
    assert_eq!(iterations(&test), 3);
    let told = (
        "failed".to_owned(),
        "failed after 3 iterations: iteration limit reached".to_owned(),
    );
    assert_eq!(project_bus(&test), [told]);
}

/// A canceled loop starts nothing more and is stopped.
#[test]
fn a_canceled_loop_is_stopped() {
    let test = Test::new().script("iteration *\n sh touch here\n hang\n");
    spawn(&test, &[&["go"], &SCRIPT[..]].concat()).exits(0);
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["stop", "agent"]).exits(0);
    ends_with(&test, 130, "stopped by a person (ralph stop)");
    assert_eq!(iterations(&test), 1);
}

/// Whatever the agent's exit code, 0 included, the next one starts; only a claim ends the loop.
#[test]
fn any_exit_code_starts_the_next_agent() {
    let script = "iteration 1\n exit 0\niteration 2\n exit 1\niteration 3\n exit 255\niteration 4\n crash\niteration 5\n mark DONE\n";
    let test = Test::new().script(script);
    spawn(&test, &[&["go", "--backoff", "0..0"], &SCRIPT[..]].concat()).exits(0);
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    let exits: Vec<String> = test
        .events("agent", "ended")
        .iter()
        .map(|line| line["report"]["exit"].to_string())
        .collect();
    let expected = [
        r#"{"code":0}"#,
        r#"{"code":1}"#,
        r#"{"code":255}"#,
        r#"{"signal":9}"#,
        r#"{"code":0}"#,
    ];
    assert_eq!(exits, expected);
}

/// The delay applies between any two iterations, also after a success, and a resting loop shows
/// until when it rests.
#[test]
fn a_delay_separates_successful_iterations() {
    let test = Test::new().script("iteration *\n say at it\n");
    spawn(&test, &[&["go", "--delay", "10h"], &SCRIPT[..]].concat()).exits(0);
    until("the rest", || {
        test.status("agent")["resting_until"].is_string()
    });
    assert_eq!(iterations(&test), 1);
    until_window(&test, "iteration 1 completed (exit: 0");
    test.ralph(&["stop", "agent"]).exits(0);
    let test = Test::new().script("iteration 2\n promise COMPLETE\n");
    spawn(&test, &[&["go", "--delay", "300ms"], &SCRIPT[..]].concat()).exits(0);
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    let at =
        |kind: &str, which: usize| test.events("agent", kind)[which]["at_ms"].as_i64().unwrap();
    assert!(
        at("started", 1) - at("ended", 0) >= 299,
        "times are cut to whole milliseconds"
    );
}

/// An agent has its own session and process group, and no terminal but its own. Everything it
/// leaves behind is killed before the next one starts, even if it ignores SIGTERM or has left the
/// session.
#[test]
fn no_process_of_one_agent_runs_next_to_the_next_agent() {
    let script = "iteration 1\n sh ps -o pid=,sid=,pgid=,tty= -p $PPID > who\n fork 10m\n fork setsid daemon clearenv hold ignore-term 10m\n\
                  iteration 2\n sh touch second; until test -e go; do sleep 0.01; done\n";
    let test = Test::new().script(script);
    spawn(
        &test,
        &[&["go", "-m", "2", "--no-promise"], &SCRIPT[..]].concat(),
    )
    .exits(0);
    until("the second agent", || {
        test.workspace().join("second").exists()
    });
    let who = test.read("who");
    let who: Vec<&str> = who.split_whitespace().collect();
    let agent = test.events("agent", "spawned")[0]["pid"].to_string();
    assert_eq!(who, [&agent[..], &agent, &agent, "?"]);
    let output = test.read_loop("agent", "iterations/0001/output.log");
    let left: Vec<u32> = output
        .lines()
        .filter_map(|line| line.strip_prefix("forked ")?.parse().ok())
        .collect();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|pid| !alive(*pid)), "{left:?}");
    assert_eq!(test.events("agent", "ended")[0]["report"]["leftovers"], 2);
    test.write("go", "");
    ends_with(&test, 0, "done (ran to its iteration limit)");
}

/// An iteration that takes too long is killed with everything it started, even if it ignores
/// SIGTERM; it is a failure, and the next one starts.
#[test]
fn an_iteration_past_its_timeout_is_killed_and_counts_as_a_failure() {
    let test = Test::new().script(
        "iteration 1\n ignore TERM\n fork setsid ignore-term 10m\n hang\niteration 2\n promise COMPLETE\n",
    );
    spawn(
        &test,
        &[
            &["go", "--iteration-timeout", "500ms", "--backoff", "0..0"],
            &SCRIPT[..],
        ]
        .concat(),
    )
    .exits(0);
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    assert_eq!(
        test.events("agent", "ended")[0]["report"]["exit"]["signal"],
        9,
        "TERM was not enough"
    );
    assert_eq!(
        (iterations(&test), &test.status("agent")["total_failures"]),
        (2, &1.into())
    );
}

/// An agent can ask not to be restarted with its exit code, a marker of either name, or a bus
/// message. The loop is then waiting, which is not a failure, until it is resumed.
#[test]
fn an_agent_can_ask_not_to_be_restarted() {
    let bus = format!("sh {RALPH} bus post --type wait_without_restart 'for the key'");
    for (how, why) in [
        ("exit 42", "exit 42"),
        ("mark WAIT", "WAIT marker"),
        ("sh touch $TASK_FOLDER/WAIT_WITHOUT_RESTART", "WAIT marker"),
        (&bus, "message on the bus; the agent says: for the key"),
    ] {
        let test = Test::new().script(&format!(
            "iteration 1\n {how}\niteration 2\n promise COMPLETE\n"
        ));
        spawn(&test, &[&["go"], &SCRIPT[..]].concat()).exits(0);
        ends_with(
            &test,
            3,
            &format!("waiting (the agent asked to wait: {why})"),
        );
        let status = test.status("agent");
        assert_eq!(
            (&status["status"], &status["total_failures"]),
            (&"waiting".into(), &0.into())
        );
        assert_eq!(iterations(&test), 1);
        test.ralph(&["resume", "agent"]).exits(0);
        ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
        assert_eq!(iterations(&test), 2);
    }
}
