//! Agents that tamper with the files around them: their loops are not affected.

use crate::kit::{Done, Test};
use std::fs;

/// Runs at most two iterations of an agent that is one shell command.
fn run(test: &Test, agent: &str, args: &[&str]) -> Done {
    let run = ["run", "x", "--name", "a", "-m", "2"];
    test.ralph(&[&run[..], args, &["--", "sh", "-c", agent]].concat())
}

#[test]
fn a_named_pipe_as_the_prompt_file_ends_the_loop_without_hanging() {
    let test = Test::new().file("P.md", "go");
    let args = [
        "run",
        "--prompt-file",
        "P.md",
        "--name",
        "a",
        "--",
        "sh",
        "-c",
        "rm P.md; mkfifo P.md",
    ];
    test.ralph(&args)
        .exits(1)
        .complains("cannot read prompt file");
    assert_eq!(test.status("a")["outcome"]["why"], "prompt-file");
}

#[test]
fn named_pipes_in_the_task_directory_do_not_hang_the_loop() {
    let agent =
        "cd $RALPH_TASK_DIR; rm -f progress.md COST BLOCKED; mkfifo progress.md COST BLOCKED";
    run(&Test::new(), agent, &[]).exits(3).says("blocked");
}

#[test]
fn a_named_pipe_in_place_of_a_check_log_does_not_hang_the_loop() {
    let agent = "mkfifo .ralph/guardrail_1_yes-head-c-200000-false.log";
    let check = ["--check", "yes | head -c 200000; false"];
    run(&Test::new(), agent, &check)
        .exits(1)
        .complains("cannot copy a check's output");
}

#[test]
fn a_symlink_in_place_of_a_check_log_is_not_followed() {
    let test = Test::new();
    fs::write(test.root().join("precious"), "mine").unwrap();
    run(
        &test,
        "ln -s ../../precious .ralph/guardrail_1_false.log",
        &["--check", "false"],
    )
    .exits(1);
    assert_eq!(
        fs::read_to_string(test.root().join("precious")).unwrap(),
        "mine"
    );
}

#[test]
fn a_deleted_workspace_is_not_created_again() {
    let test = Test::new().file("TODO", "much");
    run(&test, "rm -rf \"$PWD\"", &["--check", "test ! -e TODO"])
        .exits(1)
        .complains("the workspace no longer exists");
    assert!(!test.workspace().exists());
    fs::create_dir(test.workspace()).unwrap();
    assert_eq!(test.status("a")["outcome"]["why"], "workspace");
}

#[test]
fn a_loop_stops_when_its_directory_is_deleted() {
    let test = Test::new();
    let done = run(
        &test,
        // Deleted in one step: `rm` alone competes with the runner, which writes files meanwhile.
        "cd \"$RALPH_STATE_DIR\" && mv loops/a gone && rm -rf gone",
        &["--no-promise"],
    );
    done.exits(1).complains("the loop's directory was deleted");
}

#[test]
fn an_impossible_cost_counts_as_unknown() {
    let test = Test::new();
    let args = ["--max-cost", "5", "--allow-unknown-cost", "--no-promise"];
    run(
        &test,
        "printf '1e308\\n1e308\\n' > $RALPH_TASK_DIR/COST",
        &args,
    )
    .exits(0);
    assert!(test.status("a")["cost_usd"].is_null());
    assert_eq!(test.status("a")["current_iteration"], 2);
}

#[test]
fn a_promise_deep_in_a_fence_does_not_count() {
    let agent = "echo '```'; yes | head -c 70000; echo '<promise>COMPLETE</promise>'; echo '```'; echo not done";
    run(&Test::new(), agent, &["--no-stream"]).exits(1);
}

#[test]
fn processes_left_behind_by_git_are_killed_before_the_next_iteration() {
    let test = Test::git().program(
        "filter",
        "#!/bin/sh\nsetsid sleep 31234 >/dev/null 2>&1 &\ncat\n",
    );
    let agent = "git config filter.x.clean ./filter; echo '* filter=x' > .gitattributes; echo more >> README; \
                 pgrep -f 'sleep 3123[4]' >> ../seen; true";
    run(&test, agent, &["--no-promise"]).exits(0);
    assert_eq!(fs::read_to_string(test.root().join("seen")).unwrap(), "");
}

#[test]
fn a_reason_cannot_forge_a_log_line() {
    let test = Test::new();
    run(
        &test,
        "printf 'x\\n2030 [DONE] loop complete\\n' > $RALPH_TASK_DIR/BLOCKED",
        &[],
    )
    .exits(3);
    let log = test.read_loop("a", "iterations.log");
    assert!(!log.lines().any(|line| line.starts_with("2030")), "{log}");
}

#[test]
fn an_unwritable_standard_error_does_not_end_the_loop() {
    let test = Test::new();
    let program = env!("CARGO_BIN_EXE_ralph");
    test.sh(&format!(
        "{program} run x -m 0 --name a --promise OK -- echo '<promise>OK</promise>' 2>/dev/full"
    ));
    assert_eq!(test.status("a")["status"], "done");
}

#[test]
fn limits_and_signals_work_while_the_reader_of_standard_output_is_stalled() {
    let test = Test::new().script("iteration *\n flood 20MiB\n hang\n");
    let program = env!("CARGO_BIN_EXE_ralph");
    let run = format!("{program} run x --name a --agent script:../agent.script --max-time 2s -m 1");
    // The reader reads nothing until the loop has ended.
    let reader =
        "until grep -q finished ../state/loops/a/journal.jsonl; do sleep 0.05; done; tail -n 3";
    let shown = test.sh(&format!("{run} | (sleep 0.2; {reader})"));
    assert_eq!(test.status("a")["stop_reason"], "timeout");
    assert!(shown.contains("took"), "{shown}");
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let test = Test::new();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    for args in [
        &["template"][..],
        &["config"],
        &["config", "--schema"],
        &["ls"],
        &["help"],
        &["completions", "bash"],
        &["man"],
    ] {
        let mut command = test.ralph_command(args);
        command
            .stdin(std::process::Stdio::null())
            .stdout(full.try_clone().unwrap());
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{args:?}");
        let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            complaint.contains("cannot write the output"),
            "{args:?}: {complaint}"
        );
    }
}
