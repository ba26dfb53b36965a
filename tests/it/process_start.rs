//! The start of agents and checks, the detection of their exit, and commands that cannot start.

use crate::kit::{Done, Test, alive};
use crate::process::{AGENT, agent, forked, output};
use std::time::{Duration, Instant};

const RUN: [&str; 4] = ["run", "t", "--name", "a"];
const SCRIPTED: [&str; 8] = ["run", "t", "--name", "a", "--agent", AGENT, "-m", "1"];

/// Runs a loop whose agent is this shell script.
fn run_shell(test: &Test, program: &str, flags: &[&str]) -> Done {
    test.write("agent.sh", program);
    test.ralph(&[&RUN[..], flags, &["--", "sh", "./agent.sh"]].concat())
}

/// Returns the value of the first agent's output line that starts with `key`.
fn output_value(test: &Test, key: &str) -> String {
    let output = output(test);
    let line = output.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_else(|| panic!("no {key} in {output}"))
        .trim()
        .to_owned()
}

#[test]
fn an_iteration_ends_with_its_agent_not_with_its_output() {
    let test = Test::new().script("iteration 1\n fork setsid hold 10m\n say bye\n");
    let begun = Instant::now();
    test.ralph(&SCRIPTED)
        .exits(1)
        .says("killed 1 process left behind by the agent");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert!(!alive(forked(&test)[0]));
    assert!(output(&test).ends_with("bye\n"));
    let report = &test.events("a", "ended")[0]["report"];
    assert_eq!(
        (&report["exit"]["code"], &report["leftovers"]),
        (&0.into(), &1.into())
    );
}

#[test]
fn a_check_ends_with_its_shell_not_with_its_output_and_leaves_nothing() {
    let test = Test::new().script("iteration 1\n write x\n");
    let check = "mkdir -p out; sleep 600 & echo $! >> out/pids; \
                 setsid sleep 600 & echo $! >> out/pids; test -e x";
    let begun = Instant::now();
    test.ralph(&[&SCRIPTED[..], &["--check", check, "--until-green"]].concat())
        .exits(0);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let pids: Vec<u32> = test
        .read("out/pids")
        .lines()
        .map(|pid| pid.parse().unwrap())
        .collect();
    assert_eq!(pids.len(), 4, "two by preflight, two after the iteration");
    assert!(!pids.into_iter().any(alive));
}

#[test]
fn a_check_that_ignores_term_past_its_timeout_is_killed_and_red() {
    let test = Test::new().script("iteration 1\n say nothing\n");
    let check = "trap '' TERM; echo $$ > pid; sleep 600; sleep 600";
    let flags = ["--no-preflight", "--check-timeout", "2s", "--check", check];
    test.ralph(&[&SCRIPTED[..], &flags].concat())
        .exits(1)
        .says("red (timeout after")
        .says("--check-timeout");
    assert!(!alive(test.read("pid").trim().parse().unwrap()));
    let report = &test.events("a", "checked")[0]["report"];
    assert_eq!(
        (&report["timed_out"], &report["exit"]["signal"]),
        (&true.into(), &9.into())
    );
}

#[test]
fn a_check_that_exits_well_after_its_timeout_is_still_red() {
    let test = Test::new().script("iteration 1\n say nothing\n");
    let check = "trap 'exit 0' TERM; sleep 600 & wait";
    test.ralph(
        &[
            &SCRIPTED[..],
            &["--no-preflight", "--check-timeout", "2s", "--check", check],
        ]
        .concat(),
    )
    .exits(1);
    let report = &test.events("a", "checked")[0]["report"];
    assert_eq!(
        (&report["timed_out"], &report["exit"]["code"]),
        (&true.into(), &0.into())
    );
}

#[test]
fn an_agent_leads_its_own_session_and_process_group() {
    let test = Test::new();
    run_shell(
        &test,
        "echo self $$ $(ps -o pid=,sid=,pgid= -p $$)\n",
        &["-m", "1"],
    )
    .exits(1);
    let pid = agent(&test).to_string();
    assert_eq!(
        output_value(&test, "self ")
            .split_whitespace()
            .collect::<Vec<_>>(),
        [&pid[..]; 4]
    );
}

#[test]
fn an_agent_has_its_loop_and_task_directory_in_its_environment() {
    let test = Test::new();
    run_shell(&test, "env\n", &["-m", "1"]).exits(1);
    let task = test
        .workspace()
        .canonicalize()
        .unwrap()
        .join(".ralph/task/a")
        .display()
        .to_string();
    for (name, value) in [
        ("RALPH_LOOP=", "a"),
        ("RALPH_ITERATION=", "1"),
        ("RALPH_TASK_DIR=", &task),
        ("TASK_FOLDER=", &task),
    ] {
        assert_eq!(output_value(&test, name), value);
    }
}

#[test]
fn an_agent_reads_the_prompt_and_then_end_of_file() {
    let test = Test::new();
    run_shell(&test, "cat > got; echo over\n", &["-m", "1"])
        .exits(1)
        .says("over");
    assert_eq!(test.read("got"), test.prompt("a", 1));
    assert!(test.read("got").contains('t'));
}

#[test]
fn an_agent_starts_with_default_signal_handling() {
    let test = Test::new();
    // Like `nohup`, or a shell that has put the command in the background.
    let mut command = test.command("sh");
    command.args([
        "-c",
        "trap '' INT TERM HUP TTOU PIPE; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_ralph"),
    ]);
    command.args([&RUN[..], &["-m", "1", "--", "cat", "/proc/self/status"]].concat());
    test.start_command(command).end().exits(1);
    // SIGQUIT is inherited from the test runner; signals above 31 are real-time signals.
    let bits = ["SigBlk:", "SigIgn:", "SigPnd:"]
        .map(|key| u64::from_str_radix(&output_value(&test, key), 16).unwrap() & 0x7fff_fffb);
    assert_eq!(bits, [0; 3], "{bits:x?}");
}

#[test]
fn every_iteration_has_its_own_process() {
    let test = Test::new();
    run_shell(
        &test,
        "test -z \"$CARRIED\"; echo $? $$ >> seen; CARRIED=1; export CARRIED; cd /\n",
        &["-m", "3"],
    )
    .exits(1);
    let seen = test.read("seen");
    let mut lines: Vec<&str> = seen.lines().collect();
    lines.dedup();
    assert!(
        lines.len() == 3 && lines.iter().all(|line| line.starts_with("0 ")),
        "{seen}"
    );
}

#[test]
fn a_command_missing_before_the_first_iteration_is_a_usage_error() {
    let test = Test::new();
    for command in ["no-such-agent", "./no-such-agent"] {
        test.ralph(&[&RUN[..], &["--", command]].concat())
            .exits(2)
            .complains(command);
    }
    assert!(!test.loop_dir("a").exists());
}

#[test]
fn a_command_that_is_deleted_during_a_loop_is_fatal_at_once() {
    let test = Test::new().program("agent", "#!/bin/sh\nrm agent\n");
    test.ralph(&[&RUN[..], &["--", "./agent"]].concat())
        .exits(1)
        .complains("cannot start ./agent");
    let status = test.status("a");
    let outcome = &status["outcome"];
    assert_eq!(
        (&outcome["kind"], &outcome["why"]),
        (&"fatal".into(), &"not-found".into())
    );
    assert_eq!(
        (test.events("a", "started").len(), &status["total_failures"]),
        (2, &0.into())
    );
    // Once the program exists again, the loop continues.
    let test = test.program("agent", "#!/bin/sh\necho '<promise>COMPLETE</promise>'\n");
    test.ralph(&["resume", "a"]).exits(0);
}

#[test]
fn a_command_without_execute_permission_is_fatal_at_once() {
    let test = Test::new().file("agent", "#!/bin/sh\n");
    test.ralph(&[&RUN[..], &["--", "./agent"]].concat())
        .exits(2)
        .complains("is not executable")
        .complains("chmod +x");
    let test = test.program("agent", "#!/bin/sh\nchmod -x agent\n");
    test.ralph(&[&RUN[..], &["--", "./agent"]].concat())
        .exits(1)
        .complains("cannot start ./agent");
    assert_eq!(test.status("a")["outcome"]["why"], "permission");
    assert_eq!(test.status("a")["total_failures"], 0);
}

#[test]
fn an_iteration_timeout_is_a_failure_but_an_inactivity_timeout_is_not() {
    for (flag, failures, status) in [
        ("--iteration-timeout", 1, "failures"),
        ("--inactivity-timeout", 0, "max_iterations"),
    ] {
        let test = Test::new().script("iteration *\n hang\n");
        let flags = [flag, "300ms", "--max-failures", "1", "--backoff", "0..0"];
        test.ralph(&[&SCRIPTED[..6], &["-m", "2"], &flags].concat())
            .exits(1);
        let found = test.status("a");
        assert_eq!(
            (&found["total_failures"], &found["stop_reason"]),
            (&failures.into(), &status.into()),
            "{flag}"
        );
    }
}

const NO_INTERPRETER: &str = "#! /no/such/interpreter -x\necho hi\n";
const NAMED: &str =
    "its first line names the interpreter /no/such/interpreter, which does not exist";

#[test]
fn a_missing_interpreter_is_named_before_the_first_iteration() {
    let test = Test::new()
        .program("agent", NO_INTERPRETER)
        .program("windows", "#!/bin/sh\r\necho hi\r\n")
        .program("good", "#!/bin/sh\necho '<promise>COMPLETE</promise>'\n");
    test.ralph(&[&RUN[..], &["--", "./agent"]].concat())
        .exits(2)
        .complains(&format!(
            "the agent's command ./agent cannot start: {NAMED}\n"
        ))
        .complains("hint: correct the first line of ");
    test.ralph(&[&RUN[..], &["--", "./windows"]].concat())
        .exits(2)
        .complains("its first line ends with a carriage return after /bin/sh\n");
    let check = ["--check", "./agent all", "--", "./good"];
    test.ralph(&[&RUN[..], &check].concat())
        .exits(2)
        .complains(&format!(
            "the check \"./agent all\" cannot run: ./agent cannot start: {NAMED}\n"
        ));
    assert!(!test.loop_dir("a").exists());
    let check = ["--check", "./good", "--", "./good"];
    test.ralph(&[&RUN[..], &check].concat()).exits(0);
}

#[test]
fn an_interpreter_that_disappears_during_a_loop_is_named() {
    let breaks =
        format!("#!/bin/sh\nprintf '{NO_INTERPRETER}' > new; chmod +x new; mv new agent\n");
    let test = Test::new().program("agent", &breaks);
    let why = format!("cannot start ./agent: {NAMED}");
    test.ralph(&[&RUN[..], &["--", "./agent"]].concat())
        .exits(1)
        .says(&format!(
            "[ralph] a: loop ended after 2 iterations: {why}\n"
        ))
        .complains(&format!("ralph: error: {why}\n"));
    assert_eq!(test.status("a")["outcome"]["why"], "not-found");
}

#[test]
fn the_output_of_a_check_without_interpreter_names_it() {
    let test = Test::new().program("test.sh", NO_INTERPRETER);
    let flags = ["--check", "./test.sh", "--no-preflight", "-m", "2"];
    test.ralph(&[&RUN[..], &flags, &["--", "true"]].concat())
        .exits(1)
        .says(&format!("  | ralph: ./test.sh: {NAMED}\n"));
    let prompt = test.prompt("a", 2);
    assert!(prompt.contains(NAMED), "{prompt}");
}
