//! The limits that end a loop, and what is reported then.

mod claims;
mod files;
mod prompts;

use crate::crash::{WAITS, crash, crashed};
use crate::kit::{Done, Test, until};

const AGENT: &str = "script:../agent.script";

/// Runs a loop called `a` on this script.
fn run(test: &Test, args: &[&str]) -> Done {
    let backoff: &[&str] = if args.contains(&"--backoff") {
        &[]
    } else {
        &["--backoff", "1ms..2ms"]
    };
    test.ralph(
        &[
            &["run", "work", "--name", "a", "--agent", AGENT],
            backoff,
            args,
        ]
        .concat(),
    )
}

/// Asserts how the loop called `a` ended, and after how many iterations.
#[track_caller]
fn assert_ended(test: &Test, reason: &str, iterations: usize) {
    let status = test.status("a");
    assert_eq!(
        (&status["stop_reason"], &status["current_iteration"]),
        (&reason.into(), &iterations.into()),
        "{status:#}"
    );
    assert_eq!(test.events("a", "started").len(), iterations);
    assert_eq!(
        test.events("a", "finished").last().unwrap()["stop_reason"],
        reason
    );
}

/// Runs the script's first iterations, then one that is killed together with ralph.
fn killed_in(iteration: u32, others: &str) -> Test {
    Test::new().script(&format!(
        "iteration {iteration}\n cost 0.25\n {WAITS}{others}"
    ))
}

#[test]
fn the_iteration_limit_ends_a_loop() {
    let test = Test::new().script("iteration *\n say hello\n");
    run(&test, &["-m", "2"])
        .exits(1)
        .says("[ralph] a: loop ended after 2 iterations: iteration limit reached")
        .says("the work is not proven");
    assert_ended(&test, "max_iterations", 2);
    assert_eq!(test.status("a")["outcome"]["why"], "iterations");
}

#[test]
fn the_iteration_limit_holds_across_a_crash() {
    let test = killed_in(1, "");
    crashed(&test, &["-m", "2"]);
    test.ralph(&["resume", "a"])
        .exits(1)
        .says("starting iteration 2/2");
    assert_ended(&test, "max_iterations", 2);
}

#[test]
fn the_cost_limit_ends_a_loop() {
    let test = Test::new().script("iteration *\n cost 0.25\n cost 0.05\n");
    run(&test, &["--max-cost", "0.50"])
        .exits(1)
        .says("cost limit reached ($0.6000 of $0.5000)");
    assert_ended(&test, "budget_exhausted", 2);
    assert_eq!(test.status("a")["cost_usd"], 0.6);
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("ralph set a max-cost=");
}

#[test]
fn the_cost_limit_holds_across_a_crash() {
    let test = killed_in(2, "iteration *\n cost 0.25\n");
    crashed(&test, &["--max-cost", "0.75"]);
    test.ralph(&["resume", "a"]).exits(1);
    assert_ended(&test, "budget_exhausted", 3);
    assert_eq!(test.status("a")["cost_usd"], 0.75);
}

#[test]
fn no_retry_is_announced_once_the_cost_limit_is_reached() {
    let test = Test::new().script("iteration *\n cost 0.60\n exit 1\n");
    let done = run(&test, &["--max-cost", "0.50", "--backoff", "1s..1s"])
        .exits(1)
        .says("iteration 1 failed (exit: 1)");
    assert!(!done.out.contains("retrying"), "{}", done.out);
}

#[test]
fn every_limit_can_be_set_and_is_named_in_the_help() {
    let test = Test::new().script("iteration *\n say hello\n");
    run(&test, &["-m", "1"]).exits(1);
    let help = test.ralph(&["set", "--help"]).exits(0);
    let refused = test.ralph(&["set", "a", "max-cash=1"]).exits(2);
    for (limit, value) in [
        ("max-iterations", "7"),
        ("max-cost", "2.50"),
        ("max-tokens", "5000"),
        ("max-time", "90s"),
        ("max-failures", "3"),
    ] {
        assert!(help.out.contains(limit), "{}", help.out);
        assert!(refused.err.contains(limit), "{}", refused.err);
        test.ralph(&["set", "a", &format!("{limit}={value}")])
            .exits(0);
    }
}

#[test]
fn the_token_limit_is_in_the_plan_the_prompt_and_the_status() {
    let usage = r#"{"type":"result","subtype":"success","is_error":false,"result":"more","usage":{"input_tokens":3000,"output_tokens":500}}"#;
    let test = Test::new()
        .on_path(
            "mine",
            &format!("#!/bin/sh\ncat > /dev/null\ncat <<'E'\n{usage}\nE\n"),
        )
        .file(
            ".ralph/settings.toml",
            "[agents.mine]\ncommand = 'mine'\ndialect = 'claude'\n",
        );
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "mine",
        "--max-tokens",
        "7000",
    ];
    test.ralph(&[&args[..], &["--dry-run"]].concat())
        .exits(0)
        .says("tokens      at most 7.0k\n");
    test.ralph(&args)
        .exits(1)
        .says("token limit reached (7.0k of 7.0k)");
    assert!(
        test.prompt("a", 2)
            .contains("Used so far: 3.5k of 7.0k tokens.")
    );
    assert_ended(&test, "budget_exhausted", 2);
    assert_eq!(test.status("a")["max_tokens"], 7000);
}

#[test]
fn the_time_limit_kills_the_running_iteration() {
    let test = Test::new().script("iteration *\n hang\n");
    run(&test, &["--max-time", "300ms"])
        .exits(1)
        .says("time limit reached");
    assert_ended(&test, "timeout", 1);
    let active = test.status("a")["active_s"].as_f64().unwrap();
    assert!(active >= 0.3, "{active}");
}

/// Runs a loop called `a` until the file `here` appears, then takes away all of its time.
fn out_of_time(test: &Test, args: &[&str]) -> Done {
    let run = ["run", "work", "--name", "a", "--agent", AGENT];
    let live = test.start(&[&run[..], &["--max-time", "1h"], args].concat());
    until("what takes long", || test.workspace().join("here").exists());
    test.ralph(&["set", "a", "max-time=1ms"]).exits(0);
    live.end()
}

#[test]
fn the_time_limit_stops_preflight_checks_and_scm_tasks() {
    let assert_stopped = |test: &Test, done: Done, iterations: usize| {
        done.exits(1).says("time limit reached");
        assert_ended(test, "timeout", iterations);
    };
    let test = Test::new().script("iteration *\n say over\n");
    let done = out_of_time(&test, &["--check", "touch here; sleep 600"]);
    assert_stopped(&test, done, 0);
    let later = "test ! -e x || { touch here; sleep 600; }";
    let test = Test::new().script("iteration *\n sh touch x\n");
    let done = out_of_time(&test, &["--check", later, "--promise", "X"]);
    assert_stopped(&test, done, 1);
    let test = Test::git().script("iteration *\n sh touch x\n");
    test.sh(
        "printf '#!/bin/sh\\ntouch here; sleep 600\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    );
    let done = out_of_time(&test, &["--check", "test -e x", "--scm", "commit"]);
    assert_stopped(&test, done, 1);
}

#[test]
fn the_time_limit_holds_across_a_crash() {
    let test = killed_in(2, "iteration 1\n sleep 1500ms\niteration *\n hang\n");
    crashed(&test, &["--max-time", "1h"]);
    let active_ms = || (test.status("a")["active_s"].as_f64().unwrap() * 1000.0) as u64;
    let used = active_ms();
    assert!(used >= 1500, "{used} ms");
    let limit = used + 500;
    test.ralph(&["set", "a", &format!("max-time={limit}ms")])
        .exits(0);
    test.ralph(&["resume", "a"]).exits(1);
    assert_ended(&test, "timeout", 3);
    assert!(active_ms() < limit + used, "only what was left");
}

#[test]
fn the_time_of_an_interrupted_iteration_still_counts() {
    let test = Test::new().script(&format!("iteration 1\n {WAITS}iteration *\n hang\n"));
    let live = test.start(&[
        "run",
        "work",
        "--name",
        "a",
        "--agent",
        AGENT,
        "--max-time",
        "1h",
    ]);
    let pulse = || std::fs::read_to_string(test.loop_dir("a").join("pulse")).unwrap_or_default();
    until("a second of work", || {
        pulse().trim().parse::<u64>().is_ok_and(|ms| ms >= 900)
    });
    crash(live);
    test.ralph(&["set", "a", "max-time=900ms"]).exits(0);
    test.ralph(&["resume", "a"])
        .exits(1)
        .says("time limit reached");
    assert_ended(&test, "timeout", 1);
}

#[test]
fn the_failure_limit_holds_across_a_crash() {
    let test = killed_in(3, "iteration *\n exit 1\n");
    crashed(&test, &["--max-failures", "3", "--backoff", "1ms..2ms"]);
    test.ralph(&["resume", "a"])
        .exits(1)
        .says("3 consecutive failures, stopping loop");
    assert_ended(&test, "failures", 4);
    assert_eq!(
        test.status("a")["total_failures"],
        3,
        "the interrupted one is nobody's failure"
    );
}

#[test]
fn five_consecutive_failures_end_a_loop_and_the_rests_grow() {
    let test = Test::new().script("iteration *\n exit 3\n");
    let done = run(&test, &["--backoff", "20ms..100ms"]).exits(1);
    for text in [
        "20ms (attempt 1/5)",
        "40ms (attempt 2/5)",
        "80ms (attempt 3/5)",
        "100ms (attempt 4/5)",
    ] {
        assert!(
            done.out
                .contains(&format!("failed (exit: 3), retrying in {text}")),
            "{text}: {}",
            done.out
        );
    }
    done.says("[ralph] a: 5 consecutive failures, stopping loop");
    assert_ended(&test, "failures", 5);
    let at = |event: &str| {
        test.events("a", event)
            .iter()
            .map(|line| line["at_ms"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    let rests: Vec<i64> = at("ended")
        .iter()
        .zip(&at("started")[1..])
        .map(|(assert_ended, started)| started - assert_ended)
        .collect();
    for (rest, least) in rests.iter().zip([20, 40, 80, 100]) {
        // Wall time is rounded down to milliseconds at both ends; the upper bound allows for a busy
        // machine.
        assert!((least - 1..least + 2000).contains(rest), "{rests:?}");
    }
}

#[test]
fn a_successful_exit_resets_the_failure_count() {
    let test = Test::new()
        .script("iteration 3\n say good\niteration 6\n promise COMPLETE\niteration *\n exit 1\n");
    run(&test, &["--max-failures", "3"]).exits(0);
    assert_ended(&test, "completed", 6);
    let status = test.status("a");
    assert_eq!(
        (&status["consecutive_failures"], &status["total_failures"]),
        (&0.into(), &4.into())
    );
}

#[test]
fn inactivity_neither_counts_as_a_failure_nor_resets_the_count() {
    let test = Test::new().script("iteration 2\n hang\niteration *\n exit 1\n");
    run(
        &test,
        &["--max-failures", "2", "--inactivity-timeout", "1s"],
    )
    .exits(1)
    .says("[ralph] a: inactivity timeout (1s), restarting");
    assert_ended(&test, "failures", 3);
    assert_eq!(test.status("a")["total_failures"], 2);
}

#[test]
fn an_iteration_timeout_counts_as_a_failure() {
    let test = Test::new().script("iteration *\n hang\n");
    run(
        &test,
        &["--max-failures", "2", "--iteration-timeout", "200ms"],
    )
    .exits(1);
    assert_ended(&test, "failures", 2);
}

#[test]
fn a_missing_or_high_iteration_limit_triggers_a_warning() {
    let test = Test::new().script("iteration 1\n promise COMPLETE\n");
    run(&test, &["-m", "0"])
        .exits(0)
        .complains("ralph: warning: no iteration limit");
    assert_eq!(test.status("a")["max_iterations"], serde_json::Value::Null);
    run(&test, &["-m", "51"])
        .exits(0)
        .complains("ralph: warning: high iteration count (>50) may consume significant resources");
    let quiet = run(&test, &["-m", "50"]).exits(0);
    assert_eq!(quiet.err, "");
}
