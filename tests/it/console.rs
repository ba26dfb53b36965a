//! The output of a loop for users and scripts: console lines, JSON, the terminal, and the commands
//! that show loops.

use crate::kit::{Test, until};
use crate::pty::{Screen, escapes, rows};
use regex::Regex;
use serde_json::Value;
use std::fs;

const AGENT: &str = "script:../agent.script";

/// Replaces every duration with `TIME`.
fn without_times(text: &str) -> String {
    let time = Regex::new(r"\b\d+(\.\d)?(ms|s|m|h)( \d+[sm])?\b").unwrap();
    time.replace_all(text, "TIME").into_owned()
}

/// Asserts that the output has exactly these lines, ignoring times.
#[track_caller]
fn assert_lines(text: &str, expected: &str) {
    assert_eq!(without_times(text).trim_end(), expected.trim_end());
}

// ---- lines -----------------------------------------------------------------------------------------

#[test]
fn the_console_lines_of_a_loop_that_is_done() {
    let test = Test::git().script(
        "iteration 1\n  say one\n  cost 0.5\niteration 2\n  write roof\n  | r\n  cost 0.75\n",
    );
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "-m",
        "9",
        "--until-green",
        "--check",
        "echo no roof; test -f roof",
        "--agent",
        AGENT,
    ];
    let done = test.ralph(&args).exits(0);
    assert_lines(
        &done.out,
        "[ralph] a: checking `echo no roof; test -f roof`
[ralph] a: preflight check `echo no roof; test -f roof`: red (exit 1, TIME); its output goes into the next prompt
  | no roof
[ralph] a: starting iteration 1/9
  | one
[ralph] a: iteration 1 completed (exit: 0, duration: TIME, cost: $0.5000)
[ralph] a: checking `echo no roof; test -f roof`
[ralph] a: check `echo no roof; test -f roof`: red (exit 1, TIME); its output goes into the next prompt
  | no roof
[ralph] a: starting iteration 2/9
[ralph] a: iteration 2 completed (exit: 0, duration: TIME, cost: $0.7500)
[ralph] a: checking `echo no roof; test -f roof`
[ralph] a: check `echo no roof; test -f roof`: green (TIME)
[ralph] a: loop complete after 2 iterations
✔ done: every check is green
  took     2 iterations, TIME, $1.25
  check    echo no roof; test -f roof green (TIME)
  changed  1 file +1 −0: roof
  next     git status · ralph logs a",
    );
    assert_eq!(done.err, "");
}

#[test]
fn the_console_lines_of_consecutive_failures() {
    let test = Test::new().script("iteration *\n  exit 1\n");
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "--backoff",
        "10ms..40ms",
        "--agent",
        AGENT,
    ];
    let done = test.ralph(&args).exits(1);
    let lines: Vec<&str> = done
        .out
        .lines()
        .filter(|line| !line.contains("starting"))
        .collect();
    let expected = [
        "[ralph] a: iteration 1 failed (exit: 1), retrying in 10ms (attempt 1/5)",
        "[ralph] a: iteration 2 failed (exit: 1), retrying in 20ms (attempt 2/5)",
        "[ralph] a: iteration 3 failed (exit: 1), retrying in 40ms (attempt 3/5)",
        "[ralph] a: iteration 4 failed (exit: 1), retrying in 40ms (attempt 4/5)",
        "[ralph] a: iteration 5 failed (exit: 1)",
        "[ralph] a: 5 consecutive failures, stopping loop",
        "[ralph] a: loop ended after 5 iterations: too many failures in a row",
        "✘ failed: too many failures in a row",
    ];
    assert_eq!(lines[..8], expected);
    assert!(
        done.out
            .contains("  next     ralph resume a · ralph logs a\n"),
        "{}",
        done.out
    );
}

#[test]
fn the_console_lines_of_a_loop_that_reaches_its_iteration_limit() {
    let test = Test::new();
    assert_lines(
        &test
            .ralph(&[
                "run", "mend", "--name", "a", "-m", "2", "--", "sh", "-c", "exit 4",
            ])
            .exits(1)
            .out,
        "[ralph] a: starting iteration 1/2
[ralph] a: iteration 1 failed (exit: 4), retrying in TIME (attempt 1/5)
[ralph] a: starting iteration 2/2
[ralph] a: iteration 2 failed (exit: 4)
[ralph] a: loop ended after 2 iterations: iteration limit reached
[ralph] a: the work is not proven: the agent did not promise COMPLETE
✘ failed: iteration limit reached
  took     2 iterations, TIME, cost unknown
  missing  the agent did not promise COMPLETE
  next     ralph set a max-iterations=4 && ralph resume a · ralph logs a",
    );
    test.sh(&format!(
        "PATH={}:$PATH; ralph set a max-iterations=4 && ! ralph resume a",
        bin()
    ));
    assert_eq!(test.status("a")["current_iteration"], 4);
}

/// Returns the directory of the binary.
fn bin() -> String {
    std::path::Path::new(env!("CARGO_BIN_EXE_ralph"))
        .parent()
        .unwrap()
        .display()
        .to_string()
}

#[test]
fn the_ending_says_what_was_missing() {
    for (last_words, flags, missing) in [
        (
            "say done",
            "--check true",
            "the checks are green, but the agent did not promise COMPLETE; with --until-green, green checks are enough",
        ),
        (
            "say It is <promise>COMPLETE</promise> I think",
            "--check true",
            "the checks are green, but the promise was inside a sentence, where it does not count",
        ),
        (
            "promise COMPLETE",
            "--check false --promise COMPLETE",
            "the agent claimed to be done, but not every check was green",
        ),
        (
            "say done",
            "--done-pattern ^All --done-file report.md",
            "the agent did not print a line that matches `^All` or create report.md",
        ),
    ] {
        let test = Test::new().script(&format!("iteration *\n  {last_words}\n"));
        let args = [
            &["run", "mend", "--name", "a", "-m", "1", "--agent", AGENT][..],
            &split(flags),
        ]
        .concat();
        test.ralph(&args)
            .exits(1)
            .says(&format!("[ralph] a: the work is not proven: {missing}\n"))
            .says(&format!("\n  missing  {missing}\n"));
        test.ralph(&["status", "a"])
            .exits(0)
            .says(&format!("\nMissing: {missing}\n"));
    }
    let test = Test::new().script("iteration *\n  say done\n");
    let args = [
        "run", "mend", "--name", "a", "-m", "1", "--check", "false", "--agent", AGENT,
    ];
    let out = test
        .ralph(&args)
        .exits(1)
        .says("[ralph] a: the work is not proven\n")
        .out;
    assert!(!out.contains("missing"), "{out}");
}

fn split(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn a_success_at_the_iteration_limit_gives_no_advice() {
    let test = Test::new();
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "true",
    ];
    test.ralph(&args)
        .exits(0)
        .says("\n  next     ralph logs a\n");
    let status = test.ralph(&["status", "a"]).exits(0).out;
    assert!(
        !status.contains("Next: ") && !status.contains("Now: "),
        "{status}"
    );
}

#[test]
fn an_agent_that_exits_to_wait_has_not_failed() {
    let test = Test::new();
    let done = test
        .ralph(&["run", "mend", "--name", "a", "--", "sh", "-c", "exit 42"])
        .exits(3);
    assert_lines(
        &done.out,
        "[ralph] a: starting iteration 1/25
[ralph] a: iteration 1 completed (exit: 42, duration: TIME)
[ralph] a: loop ended after 1 iteration: the agent asked to wait: exit 42
■ waiting: the agent asked to wait: exit 42
  took     1 iteration, TIME, cost unknown
  next     ralph resume a · ralph logs a",
    );
    let log = test.read_loop("a", "iterations.log");
    assert!(
        log.contains("[END] iteration 1 exit=42") && !log.contains("FAIL"),
        "{log}"
    );
}

#[test]
fn a_changed_limit_is_shown() {
    let test = Test::new().script("iteration 1\n  say one\n  sleep 800ms\n  promise COMPLETE\n");
    let live = test.start(&["run", "mend", "--name", "a", "--agent", AGENT]);
    live.until_out("  | one\n");
    test.ralph(&[
        "set",
        "a",
        "max-iterations=5",
        "max-time=2h",
        "max-cost=1.5",
        "max-failures=0",
    ])
    .exits(0);
    let expected = "[ralph] a: max-iterations is now 5
[ralph] a: max-time is now 2h
[ralph] a: max-cost is now $1.50
[ralph] a: max-failures: no limit\n";
    live.end().exits(0).says(expected);
}

#[test]
fn a_loop_s_cost_is_shown_as_far_as_it_is_known() {
    let test = Test::new().script("iteration 1\n  cost 0.12\niteration 2\n  say nothing of it\n");
    test.ralph(&["run", "mend", "--name", "a", "-m", "2", "--agent", AGENT])
        .exits(1)
        .says(", at least $0.1200\n");
    test.ralph(&["status", "a"])
        .exits(0)
        .says("\nCost: at least $0.1200\n");
    test.ralph(&["ls"]).exits(0).says("  at least $0.1200  ");
    assert_eq!(test.status("a")["cost_usd"], Value::Null);

    let live = test.start(&[
        "run",
        "mend",
        "--name",
        "b",
        "--",
        "sh",
        "-c",
        "echo ready; exec sleep 60",
    ]);
    live.until_out("  | ready\n");
    test.ralph(&["status", "b"])
        .exits(0)
        .says("\nCost: unknown\n");
    assert_eq!(test.status("b")["cost_usd"], Value::Null);
    test.ralph(&["stop", "b"]).exits(0);
    live.end()
        .exits(130)
        .says("■ stopped by a person (ralph stop)\n");
    test.ralph(&["status", "b"])
        .exits(0)
        .says("\nStatus: stopped by a person (ralph stop)\n");
}

#[test]
fn the_console_line_of_a_silent_agent() {
    let test =
        Test::new().script("iteration 1\n  say waiting\n  hang\niteration 2\n  promise COMPLETE\n");
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "--inactivity-timeout",
        "1",
        "--agent",
        AGENT,
    ];
    test.ralph(&args).exits(0).says(
        "[ralph] a: inactivity timeout (1s), restarting\n[ralph] a: starting iteration 2/25\n",
    );
    let args = [
        "run",
        "mend",
        "--name",
        "b",
        "-m",
        "1",
        "--inactivity-timeout",
        "1",
        "--agent",
        AGENT,
    ];
    let out = without_times(&test.ralph(&args).exits(1).out);
    let line =
        "[ralph] b: iteration 1 stopped: it was silent for too long (signal: 15, duration: TIME)\n";
    assert!(out.contains(line) && !out.contains("restarting"), "{out}");
}

#[test]
fn the_console_lines_of_a_done_pattern() {
    let test = Test::new().script("iteration 1\n  say All tasks complete\n  hang\n");
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "--done-pattern",
        "All tasks complete",
        "--agent",
        AGENT,
    ];
    assert_lines(
        &test.ralph(&args).exits(0).out,
        "[ralph] a: starting iteration 1/25
  | All tasks complete
[ralph] a: done pattern matched, stopping the agent
[ralph] a: iteration 1 stopped at the done pattern (signal: 15, duration: TIME)
[ralph] a: done pattern matched, stopping loop
[ralph] a: loop complete after 1 iteration
✔ done: the agent claimed it; there are no checks
  took     1 iteration, TIME, cost unknown
  next     ralph logs a",
    );
}

#[test]
fn the_console_lines_of_pause_and_resume() {
    let test = Test::new()
        .script("iteration 1\n  say one\n  sleep 600ms\niteration 2\n  promise COMPLETE\n");
    let live = test.start(&["run", "mend", "--name", "a", "-m", "4", "--agent", AGENT]);
    live.until_out("  | one\n");
    let paused = test.ralph(&["pause", "a"]).exits(0);
    assert_eq!(
        paused.out,
        "paused ralph loop for a\nthe running agent finishes first\n"
    );
    test.ralph(&["pause", "a"])
        .exits(0)
        .complains("ralph: warning: \"a\" is already paused");
    assert_lines(
        &live.end().exits(3).out,
        "[ralph] a: starting iteration 1/4
  | one
[ralph] a: pausing after this iteration
[ralph] a: iteration 1 completed (exit: 0, duration: TIME)
■ paused
  took     1 iteration, TIME, cost unknown
  next     ralph resume a · ralph logs a",
    );
    assert_eq!(test.status("a")["status"], "paused");
    let resumed = test.ralph(&["resume", "a"]).exits(0).out;
    assert!(
        resumed.starts_with("resumed ralph loop for a\n[ralph] a: starting iteration 2/4\n"),
        "{resumed}"
    );
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("\"a\" is done");
}

#[test]
fn a_fatal_ending_is_reported_on_standard_error_in_every_output_mode() {
    for flags in [&[][..], &["--quiet"], &["--json"]] {
        let test = Test::new()
            .file("PROMPT.md", "mend")
            .script("iteration 1\n  delete PROMPT.md\n");
        let mut args = vec!["run", "--name", "a", "--agent", AGENT];
        args.extend(flags);
        let path = test.workspace().canonicalize().unwrap().join("PROMPT.md");
        let error = format!(
            "ralph: error: prompt file not found: {}\n  hint: fix the problem, then run `ralph resume a`\n",
            path.display()
        );
        let done = test.ralph(&args).exits(1);
        assert_eq!(done.err, error);
        if flags.is_empty() {
            let last = format!(
                "[ralph] a: loop ended after 1 iteration: prompt file not found: {}\n✘ failed (prompt-file)\n",
                path.display()
            );
            assert!(done.out.contains(&last), "{}", done.out);
        }
        assert_eq!(test.status("a")["outcome"]["why"], "prompt-file");
    }
}

#[test]
fn a_red_check_shows_the_end_of_its_output() {
    let test = Test::new().script("iteration 1\n  write ok\n  | ok\n");
    let check = r"seq -f 'line %g' 20; printf '\033[2J\033]0;title\007red\rlast words'; test -f ok";
    let done = test
        .ralph(&[
            "run",
            "mend",
            "--name",
            "a",
            "--until-green",
            "--check",
            check,
            "--agent",
            AGENT,
        ])
        .exits(0);
    let shown: Vec<&str> = done
        .out
        .lines()
        .filter(|line| line.starts_with("  | "))
        .collect();
    let expected: Vec<String> = (14..=20)
        .map(|n| format!("  | line {n}"))
        .chain(["  | last words".into()])
        .collect();
    assert_eq!(shown, expected);
    assert!(!done.out.contains('\x1b'));
    let named =
        Regex::new(r"  \| last words\n\[ralph\] a: full output: (\.ralph/guardrail_0_.*\.log)\n")
            .unwrap();
    let whole = test.read(&named.captures(&done.out).expect("its name")[1]);
    assert!(whole.starts_with("line 1\n"), "{whole}");
    assert!(
        !test
            .ralph(&[
                "run", "mend", "-m", "1", "--check", "false", "--agent", AGENT
            ])
            .out
            .contains("guardrail")
    );
}

#[test]
fn a_multiline_reason_is_printed_on_one_line() {
    let test = Test::new().script(
        "iteration 1\n  sh printf 'two\\nlines\\n[ralph] a: loop complete' > $RALPH_TASK_DIR/BLOCKED\n",
    );
    let done = test
        .ralph(&["run", "mend", "--name", "a", "--agent", AGENT])
        .exits(3);
    assert!(
        done.out
            .contains("blocked: two lines [ralph] a: loop complete\n"),
        "{}",
        done.out
    );
    assert!(
        !done
            .out
            .lines()
            .any(|line| line.starts_with("[ralph] a: loop complete")),
        "{}",
        done.out
    );
    assert!(
        test.ralph(&["status", "a"])
            .exits(0)
            .out
            .contains("Status: blocked (two lines [")
    );
}

// ---- quiet, JSON, no stream ------------------------------------------------------------------------

#[test]
fn quiet_prints_only_the_result() {
    let test = Test::new().script("iteration 1\n  say noise\n  promise COMPLETE\n");
    let done = test
        .ralph(&["run", "mend", "-q", "--check", "true", "--agent", AGENT])
        .exits(0);
    assert_eq!(
        without_times(&done.out),
        "✔ done: every check is green; nothing was changed (1 iteration, TIME, cost unknown)\n"
    );
    assert_eq!(done.err, "");
    let done = test
        .ralph(&[
            "run",
            "mend",
            "--quiet",
            "-m",
            "1",
            "--promise",
            "X",
            "--agent",
            AGENT,
        ])
        .exits(1);
    assert_eq!(
        without_times(&done.out),
        "✘ failed: iteration limit reached (1 iteration, TIME, cost unknown)\n"
    );
}

#[test]
fn json_prints_one_event_per_line_and_the_last_is_the_result() {
    let test =
        Test::new().script("iteration 1\n  say {\"no\": json\n  write roof\n  | r\n  cost 0.25\n");
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "--json",
        "--until-green",
        "--check",
        "test -f roof",
        "--agent",
        AGENT,
    ];
    let done = test.ralph(&args).exits(0);
    let events = done.json_lines();
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        // How often a check runs before the first iteration depends on the machine.
        .filter(|name| *name != "probed")
        .collect();
    assert_eq!(
        names,
        [
            "opened",
            "checkpointed",
            "checked",
            "labeled",
            "started",
            "spawned",
            "ended",
            "checked",
            "surveyed",
            "drained",
            "finished"
        ]
    );
    assert!(
        events.iter().all(|event| event["at"].is_string()
            && event["at_ms"].is_i64()
            && event["ms"].is_u64())
    );
    assert!(
        done.out
            .lines()
            .all(|line| line.starts_with(r#"{"loop":"a","at":"#)),
        "{}",
        done.out
    );
    let journal = test.journal("a").split_off(1).into_iter().map(|mut line| {
        line["loop"] = "a".into();
        line
    });
    assert!(
        events.iter().cloned().eq(journal),
        "the console and the journal say the same"
    );

    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["kind"], "done");
    assert_eq!(last["outcome"]["why"], "all_checks_passed");
    assert_eq!(last["stop_reason"], "all_checks_passed");
    assert_eq!(last["success"], true);
    assert_eq!(last["exit_code"], 0);
    assert_eq!(last["iterations"], 1);
    assert_eq!(last["cost_usd"], 0.25);
    assert!(
        last["duration_s"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.0)
    );
    assert!(last.as_object().unwrap().contains_key("worktree"));
    assert_eq!(done.err, "");
}

#[test]
fn unknown_values_are_null_in_json() {
    let test = Test::new();
    let done = test
        .ralph(&["run", "mend", "--json", "-m", "1", "--", "true"])
        .exits(1);
    let last = done.json_lines().pop().unwrap();
    assert_eq!(last["event"], "finished");
    assert_eq!(
        (&last["cost_usd"], &last["worktree"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(last["outcome"]["kind"], "limit");
    assert_eq!(last["outcome"]["why"], "iterations");
    assert_eq!(last["stop_reason"], "max_iterations");
    assert_eq!(
        (&last["success"], &last["exit_code"]),
        (&Value::from(false), &Value::from(1))
    );
}

#[test]
fn no_stream_keeps_the_agent_s_output_only_in_the_log() {
    let test = Test::new().script("iteration 1\n  say a secret\n  promise COMPLETE\n");
    for flag in ["--no-stream", "--no-stream-agent-output"] {
        let done = test
            .ralph(&["run", "mend", "--name", "a", flag, "--agent", AGENT])
            .exits(0);
        assert!(
            !done.out.contains("secret") && done.out.contains("loop complete"),
            "{}",
            done.out
        );
        assert_eq!(
            test.ralph(&["logs", "a"]).exits(0).out,
            "a secret\n<promise>COMPLETE</promise>\n"
        );
    }
    let done = test.ralph(&[
        "run",
        "mend",
        "--no-stream",
        "--stream-agent-output",
        "--agent",
        AGENT,
    ]);
    done.exits(0).says("  | a secret\n");
}

#[test]
fn a_reader_that_closes_the_pipe_does_not_end_the_loop() {
    let test = Test::new().script(
        "iteration 1\n  say one\n  sleep 200ms\n  say two\niteration 2\n  flood 1MiB\n  say\n  promise COMPLETE\n",
    );
    let ralph = env!("CARGO_BIN_EXE_ralph");
    for (name, flags) in [
        ("a", ""),
        ("b", "--quiet"),
        ("c", "--json"),
        ("d", "--no-stream"),
    ] {
        let run = format!(
            "'{ralph}' run mend --name {name} {flags} --agent {AGENT} 2> err; echo $? > code"
        );
        test.sh(&format!("{{ {run}; }} | head -n 0"));
        until("the loop's end", || test.workspace().join("code").exists());
        let warning = format!(
            "ralph: warning: standard output was closed; the loop continues (ralph status {name})\n"
        );
        let expected_warning = if flags == "--quiet" { "" } else { &warning };
        assert_eq!(
            (test.read("code").as_str(), test.read("err").as_str()),
            ("0\n", expected_warning),
            "{flags}"
        );
        assert_eq!(test.status(name)["status"], "done");
        fs::remove_file(test.workspace().join("code")).unwrap();
    }
    for args in [
        "status a",
        "ls",
        "ls --json",
        "ls --names",
        "logs b",
        "logs -f b",
        "--help",
        "run x --dry-run -- true",
    ] {
        test.sh(&format!(
            "{{ '{ralph}' {args} 2> err; echo $? > code; }} | head -n 0"
        ));
        until("its end", || test.workspace().join("code").exists());
        assert_eq!(
            (test.read("code").as_str(), test.read("err").as_str()),
            ("0\n", ""),
            "{args}"
        );
        fs::remove_file(test.workspace().join("code")).unwrap();
    }
}

#[test]
fn a_closed_standard_output_does_not_end_the_loop() {
    let test = Test::new().script("iteration 1\n  say one\n  promise COMPLETE\n");
    let ralph = env!("CARGO_BIN_EXE_ralph");
    test.sh(&format!(
        "'{ralph}' run mend --name a --agent {AGENT} >&- 2>&- <&-"
    ));
    assert_eq!(
        test.ralph(&["logs", "a"]).out,
        "one\n<promise>COMPLETE</promise>\n"
    );
}

// ---- the verbs that look ---------------------------------------------------------------------------

/// Asserts that an object has exactly these keys, with values of these types.
#[track_caller]
fn has_keys(object: &Value, keys: &[(&str, &[&str])]) {
    let object = object.as_object().expect("an object");
    for (key, kinds) in keys {
        let kind = match object
            .get(*key)
            .unwrap_or_else(|| panic!("{key} is not in {object:?}"))
        {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        assert!(kinds.contains(&kind), "{key} is {kind}: {object:?}");
    }
}

const STATUS_KEYS: [(&str, &[&str]); 19] = [
    ("name", &["string"]),
    ("status", &["string"]),
    ("outcome", &["null", "object"]),
    ("stop_reason", &["null", "string"]),
    ("current_iteration", &["number"]),
    ("max_iterations", &["null", "number"]),
    ("started", &["string"]),
    ("last_iteration_started", &["null", "string"]),
    ("resting_until", &["null", "string"]),
    ("consecutive_failures", &["number"]),
    ("total_failures", &["number"]),
    ("cost_usd", &["null", "number"]),
    ("done_pattern", &["null", "string"]),
    ("inactivity_timeout", &["null", "number"]),
    ("prompt_file", &["null", "string"]),
    ("workspace", &["string"]),
    ("worktree", &["null", "string"]),
    ("directory", &["string"]),
    ("parent", &["null", "string"]),
];

#[test]
fn json_status_has_every_documented_field() {
    let test = Test::new()
        .file("PROMPT.md", "mend")
        .script("iteration 1\n  exit 1\niteration 2\n  say two\n  hang\n");
    let args = [
        "run",
        "--name",
        "a",
        "-m",
        "9",
        "--done-pattern",
        "All set",
        "--inactivity-timeout",
        "60",
        "--backoff",
        "1ms..1ms",
        "--agent",
        AGENT,
    ];
    let live = test.start(&args);
    live.until_out("  | two\n");
    let running = test.status("a");
    has_keys(&running, &STATUS_KEYS);
    assert_eq!(running["status"], "running");
    assert_eq!(
        (&running["outcome"], &running["stop_reason"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&running["current_iteration"], &running["max_iterations"]),
        (&Value::from(2), &Value::from(9))
    );
    assert_eq!(
        (&running["consecutive_failures"], &running["total_failures"]),
        (&Value::from(1), &Value::from(1))
    );
    assert_eq!(
        (&running["done_pattern"], &running["inactivity_timeout"]),
        (&Value::from("All set"), &Value::from(60.0))
    );
    assert!(
        running["prompt_file"]
            .as_str()
            .unwrap()
            .ends_with("/shop/PROMPT.md")
    );
    assert_eq!(
        running["directory"],
        test.loop_dir("a").display().to_string()
    );

    let shown = test.ralph(&["status", "a"]).exits(0).out;
    let time = Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").unwrap();
    let lines: Vec<String> = shown
        .lines()
        .map(|line| time.replace(line, "WHEN").into_owned())
        .collect();
    let expected = [
        "Ralph Loop: a",
        "Status: running",
        "Iteration: 2/9",
        "Started: WHEN",
        "Current iteration started: WHEN",
        "Consecutive failures: 1",
        "Total failures: 1",
        "Inactivity timeout: 60s",
        "Done pattern: All set",
    ];
    assert_eq!(lines[..9], expected);
    assert_eq!(lines[9], "Now: the agent is running");
    let shown = shown.replace(
        &test.root().canonicalize().unwrap().display().to_string(),
        "ROOT",
    );
    let rest = shown
        .lines()
        .skip_while(|line| !line.starts_with("Task: "))
        .collect::<Vec<_>>()
        .join("\n");
    let expected = "Task: ROOT/shop/PROMPT.md
Agent: script:ROOT/shop/../agent.script
Workspace: ROOT/shop
Logs: ROOT/state/loops/a
Next: ralph logs a -f";
    assert_eq!(rest, expected);

    test.ralph(&["stop", "a"])
        .exits(0)
        .says("stopped ralph loop for a\n");
    live.end().exits(130);
    let ended = test.status("a");
    has_keys(&ended, &STATUS_KEYS);
    has_keys(
        &ended["outcome"],
        &[("kind", &["string"]), ("why", &["string"])],
    );
    assert_eq!(
        (&ended["status"], &ended["outcome"]["kind"]),
        (&Value::from("stopped"), &Value::from("stopped"))
    );
}

#[test]
fn status_shows_until_when_a_loop_rests() {
    let test = Test::new().script("iteration *\n  exit 1\n");
    let live = test.start(&[
        "run",
        "mend",
        "--name",
        "a",
        "--backoff",
        "30s..30s",
        "--agent",
        AGENT,
    ]);
    live.until_out("retrying in 30s (attempt 1/5)\n");
    let status = test.status("a");
    assert_eq!(status["status"], "running");
    assert!(
        status["resting_until"].as_str() > status["last_iteration_started"].as_str(),
        "{status}"
    );
    test.ralph(&["status", "a"])
        .exits(0)
        .says("\nResting until: ")
        .says("\nNow: resting\n");
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
}

#[test]
fn status_shows_the_running_check_and_the_task() {
    let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
    let task = format!("\nMend the {}roof\nand the door", "very ".repeat(20));
    let live = test.start(
        &[
            "run",
            &task,
            "--name",
            "a",
            "--check",
            "touch on; until test -f go; do sleep 0.01; done",
        ]
        .into_iter()
        .chain(["--agent", AGENT])
        .collect::<Vec<_>>(),
    );
    until("the check", || test.workspace().join("on").exists());
    let shown = test.ralph(&["status", "a"]).exits(0).out;
    assert!(
        shown.contains("\nNow: checking `touch on; until test -f go; do sleep 0.01; done`\n"),
        "{shown}"
    );
    let task = shown
        .lines()
        .find_map(|line| line.strip_prefix("Task: "))
        .unwrap();
    assert!(
        task.starts_with("Mend the very") && task.ends_with('…') && task.chars().count() == 80,
        "{task}"
    );
    test.write("go", "");
    live.end().exits(0);
    test.ralph(&["status", "a"])
        .exits(0)
        .says("\nLast iteration started: ");
}

#[test]
fn ls_lists_every_loop() {
    let test = Test::new();
    test.ralph(&["ls"]).exits(0).says("no loops yet");
    assert_eq!(test.ralph(&["ls", "--json"]).exits(0).out, "[]\n");
    assert_eq!(test.ralph(&["ls", "--names"]).exits(0).out, "");
    test.ralph(&[
        "run",
        "mend",
        "--name",
        "long-name",
        "-m",
        "1",
        "--no-promise",
        "--",
        "true",
    ])
    .exits(0);
    test.ralph(&[
        "run",
        "mend",
        "--name",
        "b",
        "-m",
        "3",
        "--",
        "sh",
        "-c",
        "echo '<blocked>x</blocked>'",
    ])
    .exits(3);
    assert_eq!(
        test.ralph(&["ls", "--names"]).exits(0).out,
        "b\nlong-name\n"
    );
    let table = test.ralph(&["ls"]).exits(0).out;
    let cells: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        cells[0],
        [
            "NAME",
            "STATUS",
            "ITERATION",
            "COST",
            "AGE",
            "REPOSITORY",
            "NOW"
        ]
    );
    assert_eq!(cells[1][..4], ["b", "blocked", "1/3", "?"]);
    assert_eq!(cells[2][..4], ["long-name", "done", "1/1", "?"]);
    let columns: Vec<_> = table
        .lines()
        .map(|line| line.rfind("  ").unwrap())
        .collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
    for name in ["b", "long-name"] {
        fs::remove_file(test.loop_dir(name).join("state.json")).unwrap();
    }
    let without_cache = test.ralph(&["ls"]).exits(0).out;
    assert_eq!(without_cache, table, "deleting a cache changes nothing");
    let all: Value = serde_json::from_str(&test.ralph(&["ls", "--json"]).exits(0).out).unwrap();
    for (entry, name) in all.as_array().unwrap().iter().zip(["b", "long-name"]) {
        assert_eq!(*entry, test.status(name));
    }
}

#[test]
fn logs_print_what_the_agent_printed() {
    let test = Test::new().script(
        "iteration 1\n  say \x1b[31mone\x1b[0m\niteration 2\n  say two\n  print no newline\n",
    );
    test.ralph(&["run", "mend", "--name", "a", "-m", "2", "--agent", AGENT])
        .exits(1);
    assert_eq!(test.ralph(&["logs", "a"]).exits(0).out, "two\nno newline");
    assert_eq!(
        test.ralph(&["logs", "a", "--iteration", "1"]).exits(0).out,
        "\x1b[31mone\x1b[0m\n"
    );
    test.ralph(&["logs", "a", "-f"])
        .exits(0)
        .says("two\nno newline\n[ralph] a: iteration 2 completed (")
        .says("[ralph] a: loop ended after 2 iterations: iteration limit reached\n");
    for wrong in ["0", "3"] {
        test.ralph(&["logs", "a", "--iteration", wrong])
            .exits(2)
            .complains("\"a\" has only iterations 1 to 2");
    }
}

#[test]
fn logs_follow_a_loop_to_its_end() {
    let script = "iteration 1\n  say one\n  sh until test -e go; do sleep 0.01; done\n  say still one\niteration 2\n  print two, and no newline\niteration 3\n  say three\n  promise COMPLETE\n";
    let test = Test::new().script(script);
    let live = test.start(&["run", "mend", "--name", "a", "--agent", AGENT]);
    live.until_out("  | one\n");
    let first = test.start(&["logs", "a", "--follow", "--iteration", "1"]);
    let follower = test.start(&["logs", "a", "-f"]);
    follower.until_out("one\n");
    first.until_out("one\n");
    assert_eq!(test.status("a")["status"], "running");
    test.write("go", "");
    live.end().exits(0);
    let out = follower.end().exits(0).out;
    let shown: Vec<&str> = out
        .lines()
        .filter(|line| !line.contains("completed ("))
        .collect();
    assert_eq!(
        shown,
        [
            "one",
            "still one",
            "[ralph] a: iteration 2",
            "two, and no newline",
            "[ralph] a: iteration 3",
            "three",
            "<promise>COMPLETE</promise>",
            "[ralph] a: loop complete after 3 iterations",
        ]
    );
    assert_eq!(first.end().exits(0).out, "one\nstill one\n");
}

// ---- a terminal ------------------------------------------------------------------------------------

/// Makes the console print plain lines on a terminal.
const PLAIN: [(&str, &str); 1] = [("NO_COLOR", "1")];

/// Runs the binary on a terminal to its end. Returns the exit code and the output.
fn on_a_terminal(test: &Test, args: &[&str], env: &[(&str, &str)]) -> (i32, Vec<u8>) {
    let mut command = test.ralph_command(args);
    command.envs(env.iter().copied());
    Screen::start(command, 100).end()
}

#[test]
fn on_a_terminal_a_live_line_is_drawn_at_the_bottom_and_erased_at_the_end() {
    let test = Test::git().script(
        "iteration 1\n  say one\n  print unfinished\n  sleep 1500ms\n  say , now it is\n  promise COMPLETE\n",
    );
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "--check",
        "echo checked",
        "--agent",
        AGENT,
    ];
    let (code, bytes) = on_a_terminal(&test, &args, &PLAIN);
    assert_eq!(code, 0);
    let shown = String::from_utf8(bytes.clone()).unwrap();
    assert!(
        shown.contains("▸ a · preflight: `echo checked` ·"),
        "{shown}"
    );
    assert!(shown.contains("▸ a · iteration 1/25 · 1s"), "{shown}");
    assert!(shown.contains("│ unfinished"), "{shown}");
    let expected = "[ralph] a: preflight check `echo checked`: green (TIME)
[ralph] a: starting iteration 1/25
  │ one
  │ unfinished, now it is
  │ <promise>COMPLETE</promise>
[ralph] a: iteration 1 completed (exit: 0, duration: TIME)
[ralph] a: check `echo checked`: green (TIME)
[ralph] a: loop complete after 1 iteration
✔ done: every check is green; nothing was changed
  took     1 iteration, TIME, cost unknown
  check    echo checked green (TIME)
  changed  nothing
  next     git status · ralph logs a";
    assert_lines(&rows(&bytes).join("\n"), expected);
}

#[test]
fn color_is_used_only_on_terminals_that_allow_it() {
    let test = Test::new().script("iteration 1\n  say one\n  promise COMPLETE\n");
    let args = [
        "run", "mend", "--name", "a", "--check", "true", "--agent", AGENT,
    ];
    let coloured = |env: &[(&str, &str)]| {
        let (code, bytes) = on_a_terminal(&test, &args, env);
        assert_eq!(code, 0);
        escapes(&String::from_utf8(bytes).unwrap())
            .iter()
            .any(|sequence| sequence.ends_with('m'))
    };
    assert!(coloured(&[]));
    assert!(coloured(&[("NO_COLOR", "")]));
    assert!(!coloured(&[("NO_COLOR", "1")]));
    let (code, bytes) = on_a_terminal(&test, &args, &[("TERM", "dumb")]);
    assert_eq!((code, bytes.contains(&0x1b)), (0, false));
    assert!(!String::from_utf8(bytes).unwrap().contains('▸'));
    assert!(!test.ralph(&args).out.contains('\x1b'));
}

#[test]
fn a_background_job_draws_no_live_line() {
    let test = Test::new()
        .script("iteration 1\n  say one\n  sleep 1200ms\n  say two\n  promise COMPLETE\n");
    let ralph = format!("'{}' run mend --agent {AGENT}", env!("CARGO_BIN_EXE_ralph"));
    let background = format!("set -m; {ralph} & wait $!");
    for (line, plain, painted) in [
        (&ralph, "1", true),
        (&background, "1", false),
        (&ralph, "", true),
        (&background, "", false),
    ] {
        let mut command = test.command("setsid");
        command.args(["--ctty", "sh", "-c", line]);
        command.env("NO_COLOR", plain);
        let (code, bytes) = Screen::start_with_keys(command, 100).end();
        let shown = String::from_utf8(bytes).unwrap();
        assert_eq!(code, 0, "{shown}");
        assert!(
            rows(shown.as_bytes()).contains(&"  │ one".to_owned()),
            "{shown:?}"
        );
        let live = if plain.is_empty() { "── " } else { "▸" };
        assert_eq!(
            (shown.contains(live), shown.contains("\x1b[2K")),
            (painted, painted),
            "{line}\n{shown:?}"
        );
    }
}

#[test]
fn a_suspended_terminal_does_not_stall_the_loop() {
    let test = Test::new()
        .script("iteration 1\n  say one\n  sh until test -f go; do sleep 0.01; done\n  flood 3MiB\n  say\niteration 2\n  promise COMPLETE\n");
    let args = ["run", "mend", "--name", "a", "--agent", AGENT];
    let screen = Screen::start(test.ralph_command(&args), 100);
    until("a line", || screen.seen().contains("one\r\n"));
    screen.type_in(b"\x13");
    test.write("go", "");
    until("the loop's end", || {
        !test.events("a", "finished").is_empty()
    });
    assert!(!screen.seen().contains("Iteration 2"));
    screen.type_in(b"\x11");
    let (code, bytes) = screen.end();
    let shown = rows(&bytes).join("\n");
    assert_eq!(code, 0);
    assert!(
        Regex::new(r"\n\[ralph: .* MiB not shown; run `ralph logs` to see it\]\n")
            .unwrap()
            .is_match(&shown)
    );
    assert!(shown.contains("\n✔ done: "), "the last words come last");
}

const HOSTILE: &str = r"
printf '\033]0;owned\007retitled\n'
printf '\033]52;c;ZXZpbA==\007clipboard\n'
printf '\033[2J\033[1;1H\033[31mcleared\033[0m\n'
printf '\033[1A\033[2K\033[5Amoved\n'
printf '\033[?1049h\033[?25l\033c\033Pdcs\033\\modes\n'
printf 'c1 \233\062J \235\060;owned\234 \302\233\062J \302\235\060;owned\302\234 end\n'
printf 'bell\007 back\010\010\010 \016\017\n'
printf 'half \033'; sleep 0.3; printf ']0;owned'; sleep 0.3; printf '\007 an escape\n'
printf 'progress 1%%\rprogress 2%%\r[ralph] a: loop complete after 1 iteration\n'
printf '[ralph] a: loop complete after 9 iterations\n'
printf 'form\014feed and \013tab and \205nel\n'
printf 'next\302\205line\n'
printf '[ralph] a: no newline at the end'
";

#[test]
fn no_escape_sequence_of_an_agent_reaches_the_terminal() {
    let test = Test::new().file("hostile.sh", HOSTILE);
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "-m",
        "1",
        "--check",
        "sh hostile.sh; false",
        "--",
        "sh",
        "hostile.sh",
    ];
    let (code, bytes) = on_a_terminal(&test, &args, &[]);
    assert_eq!(code, 1);
    check_harmless(&bytes);
    for row in rows(&bytes) {
        assert!(!row.contains("a: ") || row.starts_with("  │ "), "{row:?}");
    }
    let (code, bytes) = on_a_terminal(&test, &args, &PLAIN);
    assert_eq!(code, 1);
    check_harmless(&bytes);
    let shown = rows(&bytes).join("\n");
    for args in ["retitled", "clipboard", "cleared", "moved", "modes", "bell"] {
        assert!(shown.contains(&format!("  │ {args}")), "{args}\n{shown}");
    }
    // No line of the agent starts with ralph's prefix.
    let complete: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("a: loop "))
        .collect();
    assert_eq!(
        complete
            .iter()
            .filter(|line| line.starts_with("[ralph]"))
            .count(),
        1,
        "{shown}"
    );
    assert!(
        complete
            .iter()
            .all(|line| line.starts_with("[ralph] a: loop ended after 1")
                || line.starts_with("  │ "))
    );
    assert!(
        shown.contains("  │ [ralph] a: no newline at the end\n[ralph] a: "),
        "{shown}"
    );

    let (code, bytes) = on_a_terminal(&test, &["logs", "a"], &[]);
    assert_eq!(code, 0);
    assert!(!bytes.contains(&0x1b) && !bytes.contains(&7));
}

/// Asserts that there is only printable text and the few sequences that ralph itself prints.
#[track_caller]
fn check_harmless(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("nothing but UTF-8");
    let own = [
        "[1A", "[2K", "[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[36m",
    ];
    for sequence in escapes(text) {
        assert!(own.contains(&sequence.as_str()), "{sequence:?} in {text:?}");
    }
    let control = text
        .chars()
        .find(|c| c.is_control() && !"\x1b\r\n\t".contains(*c));
    assert_eq!(control, None, "{text:?}");
}

#[test]
fn a_long_line_stays_behind_the_gutter() {
    let test = Test::new();
    let agent =
        r"printf '%96s%s\n' '' '[ralph] a: loop complete after 9 iterations'; printf '%500s' .";
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "sh",
        "-c",
        agent,
    ];
    let (code, bytes) = on_a_terminal(&test, &args, &[]);
    assert_eq!(code, 0);
    for row in rows(&bytes) {
        assert!(row.chars().count() < 100, "{row:?}");
        assert!(
            !row.contains("9 iterations") || row.starts_with("  │ "),
            "{row:?}"
        );
    }
    assert!(
        test.ralph(&["logs", "a"])
            .exits(0)
            .out
            .contains("[ralph] a: loop complete after 9 iterations\n")
    );
}

#[test]
fn no_escape_sequence_in_a_path_or_check_reaches_the_terminal() {
    let test = Test::git();
    let agent = r#"printf x > "$(printf 'a\033]0;owned\007b')"; printf '\033]0;owned\007' > "$RALPH_TASK_DIR/BLOCKED""#;
    let check = "true # \x1b]0;owned\x07\n[ralph] a: faked";
    let args = [
        "run", "mend", "--name", "a", "--check", check, "--", "sh", "-c", agent,
    ];
    let (code, bytes) = on_a_terminal(&test, &args, &[]);
    assert_eq!(code, 3);
    check_harmless(&bytes);
    assert!(
        !rows(&bytes)
            .iter()
            .any(|row| row.starts_with("[ralph] a: faked"))
    );
    for args in [&["status", "a"][..], &["ls"]] {
        check_harmless(&on_a_terminal(&test, args, &[]).1);
    }
}

#[test]
fn the_live_line_fits_on_one_row_of_a_narrow_terminal() {
    let test = Test::new().script(
        "iteration 1\n  print 日本語のとても長い行 and more\n  sleep 1200ms\n  say\n  promise COMPLETE\n",
    );
    let args = [
        "run",
        "mend",
        "--name",
        "a",
        "--max-time",
        "1h",
        "--agent",
        AGENT,
    ];
    let mut command = test.ralph_command(&args);
    command.envs(PLAIN);
    let screen = Screen::start(command, 24);
    until("the live line", || screen.seen().contains("▸ a"));
    screen.resize(12);
    let (code, bytes) = screen.end();
    assert_eq!(code, 0);
    let shown = String::from_utf8(bytes).unwrap();
    let live: Vec<&str> = shown
        .split(['\n', '\r'])
        .filter(|row| row.contains('▸'))
        .collect();
    assert!(live.iter().all(|row| {
        row.replace("\x1b[1m", "")
            .replace("\x1b[0m", "")
            .replace("\x1b[2K", "")
            .chars()
            .count()
            <= 23
    }));
    assert!(live.iter().any(|row| row.contains('…')), "{live:?}");
    assert!(
        shown.contains("\x1b[1A"),
        "two live rows were erased: {shown:?}"
    );
}

#[test]
fn a_pause_or_stop_during_preflight_names_the_preflight_checks() {
    let check = "touch here; until test -e go; do sleep 0.02; done; false";
    let start = |name: &'static str| {
        let test = Test::new();
        let args = ["run", "x", "--name", name, "--check", check, "--", "true"];
        let live = test.start(&args);
        until("the check", || test.workspace().join("here").exists());
        (test, live)
    };
    let (test, live) = start("a");
    assert_eq!(
        test.ralph(&["pause", "a"]).exits(0).out,
        "paused ralph loop for a\nthe preflight checks finish first\n"
    );
    live.until_out("[ralph] a: pausing after the preflight checks\n");
    test.write("go", "");
    live.end().exits(3).says("took     0 iterations");
    let (test, live) = start("b");
    live.signal("INT");
    live.until_out("[ralph] b: stopping after the preflight checks; Ctrl-C again ends them now\n");
    test.write("go", "");
    live.end().exits(130).says("took     0 iterations");
}
