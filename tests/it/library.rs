//! The library as a host program uses it: what it reports, and that it does not affect the host.

use crate::kit::{Test, alive, until};
use ralph::event::{Fault, RequestSource};
use ralph::{Act, Error, Event, Loop, Outcome, Report, StopReason, Turn};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

fn loop_in<'a>(test: &Test, task: &str) -> Loop<'a> {
    at_home(Loop::new(task), test)
}

fn at_home<'a>(work: Loop<'a>, test: &Test) -> Loop<'a> {
    work.workspace(test.workspace())
        .state_dir(test.state_dir())
        .name("a")
        .backoff(Duration::ZERO, Duration::ZERO)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A child process of the host that does not belong to any loop.
struct HostChild(Child);

fn host_child() -> HostChild {
    HostChild(
        Command::new("sleep")
            .arg("300")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    )
}

impl Drop for HostChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a child of the host. Asserts that it was alive and still the host's own child.
#[track_caller]
fn assert_still_ours(mut host_child: HostChild) {
    let child = &mut host_child.0;
    assert_eq!(
        child.try_wait().unwrap(),
        None,
        "it is alive, and nobody else has reaped it"
    );
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

/// Reads a process ID that an agent has written to a file.
fn written_pid(test: &Test, file: &str) -> u32 {
    test.read(file).trim().parse().unwrap()
}

// ---- what is reported ------------------------------------------------------------------------------------

#[test]
fn a_function_agent_can_work_in_its_own_worktree() {
    let test = Test::git();
    test.sh(
        "echo dirty >> README && git config user.name host && git config user.email host@localhost",
    );
    let report = loop_in(&test, "Make it.")
        .check("test -f made")
        .worktree()
        .run_with(|turn: &Turn| std::fs::write(turn.workspace().join("made"), "x"))
        .unwrap();
    let place = test.state_dir().join("worktrees/a");
    assert_eq!(
        (report.success, report.worktree.as_deref()),
        (true, Some(place.as_path()))
    );
    assert!(
        report.warnings[0]
            .contains("the worktree will not contain your uncommitted changes: 1 file (README)"),
        "{:?}",
        report.warnings
    );
    assert_eq!(
        test.sh("git log --format=%s ralph/a && git status --porcelain"),
        "Make it.\nfirst\n M README\n"
    );
    let refused = loop_in(&test, "x")
        .name("b")
        .worktree_on("main")
        .run_command(["true"]);
    assert!(
        matches!(refused, Err(Error::Usage { what, .. }) if what.contains("is checked out in"))
    );
}

#[test]
fn a_function_works_until_the_checks_are_green_and_every_iteration_is_reported() {
    let test = Test::new();
    let mut told = Vec::new();
    let report = loop_in(&test, "Count to 23.")
        .check("test $(cat count) -ge 23 || { echo too few; false; }")
        .until_green()
        .max_stalls(0)
        .max_iterations(40)
        .on_event(|event| {
            if let Event::Started { iteration, .. } = event {
                told.push(*iteration);
            }
        })
        .run_with(|turn: &Turn| {
            assert!(turn.prompt().contains("Count to 23."));
            turn.said("working\n");
            turn.used_tool("write", "count", true);
            turn.used_tool("read", "count", false);
            turn.cost(0.25);
            fs::write(turn.workspace().join("count"), turn.iteration().to_string())
        })
        .unwrap();
    assert!(report.success, "{report:?}");
    assert_eq!(
        (report.stop_reason.as_str(), report.exit_code.code()),
        ("all_checks_passed", 0)
    );
    assert_eq!(report.outcome, Some(Outcome::Done { checked: true }));
    assert_eq!(report.total_cost, Some(23.0 * 0.25));
    assert!(
        report.duration
            >= report
                .iterations
                .iter()
                .map(|one| one.duration)
                .sum::<Duration>()
    );
    assert_eq!(report.worktree, None);
    let numbers: Vec<u32> = report.iterations.iter().map(|one| one.iteration).collect();
    assert_eq!(numbers, (1..=23).collect::<Vec<_>>());
    assert_eq!(told, numbers);
    for one in &report.iterations {
        assert_eq!(
            (one.steps, one.cost, one.claimed),
            (Some(2), Some(0.25), false),
            "{one:?}"
        );
        assert_eq!((one.checks.len(), &one.error), (1, &None), "{one:?}");
        assert_eq!(one.checks[0].passed, one.iteration == 23, "{one:?}");
    }
    let first = &report.iterations[0].checks[0];
    assert_eq!((first.output.as_str(), first.timed_out), ("too few", false));
    assert!(first.command.starts_with("test $(cat count)"));
    assert_eq!(report.preflight.len(), 1);
    assert!(!report.preflight[0].passed);
    assert_eq!(
        test.read_loop("a", "iterations/0001/output.log"),
        "working\n"
    );
    let activity = test.read_loop("a", "iterations/0001/activity.jsonl");
    for act in ["text", "tool-finished", "cost"] {
        assert!(
            activity.contains(&format!("\"act\":\"{act}\"")),
            "{activity}"
        );
    }
}

#[test]
fn a_command_gets_its_prompt_on_standard_input_even_if_the_program_would_give_it_a_terminal() {
    let agent = "#!/bin/sh\ntest -t 0 || cat > got\necho '<promise>COMPLETE</promise>'\n";
    let test = Test::new().on_path("claude", agent);
    let claude = test.root().join("bin/claude");
    let report = loop_in(&test, "Do it.")
        .max_iterations(1)
        .run_command([claude.to_str().unwrap()])
        .unwrap();
    assert!(report.success, "{report:?}");
    assert!(test.read("got").contains("Do it."));
}

#[test]
fn a_command_works_until_the_checks_are_green() {
    let test = Test::new();
    let output = Arc::new(Mutex::new(String::new()));
    let printed = output.clone();
    let report = loop_in(&test, "Write it.")
        .check("test $(wc -l < done.txt) -eq 2")
        .until_green()
        .on_act(move |act| {
            if let Act::Text(text) = act {
                printed.lock().unwrap().push_str(text);
            }
        })
        .run_command([
            "sh",
            "-c",
            "grep -c 'Write it' >> done.txt; echo wrote; pwd > where",
        ])
        .unwrap();
    assert!(report.success, "{report:?}");
    assert_eq!((report.iterations.len(), report.total_cost), (2, None));
    assert_eq!(*output.lock().unwrap(), "wrote\nwrote\n");
    assert_eq!(
        test.read("done.txt"),
        "1\n1\n",
        "the prompt is on standard input"
    );
    assert_eq!(
        fs::canonicalize(test.read("where").trim()).unwrap(),
        fs::canonicalize(test.workspace()).unwrap()
    );
}

#[test]
fn the_program_can_inspect_a_loop_run_by_the_library() {
    let test = Test::new();
    let report = loop_in(&test, "x")
        .promise("OK")
        .run_with(|_: &Turn| "<promise>OK</promise>")
        .unwrap();
    assert_eq!(
        (report.name.as_str(), report.directory),
        ("a", test.loop_dir("a"))
    );
    let status = test.status("a");
    assert_eq!(
        (&status["status"], &status["stop_reason"]),
        (&"done".into(), &"completed".into())
    );
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Agent: a function of the host program\n");
    assert!(
        test.read(".ralph/task/a/progress.md")
            .contains("## Iteration 1 — CLAIMED")
    );
    assert!(
        test.read_loop("a", "iterations.log")
            .contains("[START] iteration 1/25")
    );
}

#[test]
fn a_task_file_is_read_again_before_every_iteration() {
    let test = Test::new().file("task.md", "first words");
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let seen = prompts.clone();
    let work = at_home(Loop::from_file("task.md"), &test)
        .no_promise()
        .max_iterations(2);
    let report = work
        .context(ralph::ContextLevel::None)
        .run_with(move |turn: &Turn| {
            seen.lock().unwrap().push(turn.prompt().to_owned());
            fs::write(turn.workspace().join("task.md"), "second words")
        });
    assert!(report.unwrap().success);
    assert_eq!(*prompts.lock().unwrap(), ["first words", "second words"]);
}

#[test]
fn a_promise_a_marker_and_a_pattern_are_claims() {
    let test = Test::new();
    let final_words =
        loop_in(&test, "x").run_with(|_: &Turn| "All is well.\n<promise>COMPLETE</promise>");
    let marker =
        loop_in(&test, "x").run_with(|turn: &Turn| fs::write(turn.task_dir().join("DONE"), ""));
    let pattern = loop_in(&test, "x")
        .done_pattern("^ready$")
        .run_with(|turn: &Turn| {
            turn.said("rea");
            turn.said("dy\n");
            until("the end", || turn.is_cancelled());
        });
    for report in [final_words, marker, pattern].map(Result::unwrap) {
        assert_eq!(
            (report.stop_reason.as_str(), report.iterations.len()),
            ("completed", 1),
            "{report:?}"
        );
        assert!(report.iterations[0].claimed);
    }
    let quoted = loop_in(&test, "x").max_iterations(1);
    let report = quoted
        .run_with(|_: &Turn| "I did not say <promise>COMPLETE</promise> yet")
        .unwrap();
    assert_eq!(
        (report.stop_reason.as_str(), report.success),
        ("max_iterations", false)
    );
}

#[test]
fn the_cost_limit_ends_a_library_loop() {
    let test = Test::new();
    let work = loop_in(&test, "x").max_cost(1.0);
    let report = work.run_with(|turn: &Turn| turn.cost(0.5)).unwrap();
    assert_eq!(
        (report.stop_reason.as_str(), report.total_cost),
        ("budget_exhausted", Some(1.0))
    );
    assert_eq!(report.iterations.len(), 2);
}

#[test]
fn a_denial_is_reported_and_counted() {
    let test = Test::new();
    let mut denied = Vec::new();
    let report = loop_in(&test, "x")
        .max_iterations(1)
        .on_act(|act| {
            if let Act::Denied(what) = act {
                denied.push(what.clone().into_owned());
            }
        })
        .run_with(|turn: &Turn| {
            turn.denied("rm -rf /");
            turn.denied("rm -rf /");
        })
        .unwrap();
    assert_eq!(report.iterations[0].denied, 2);
    assert_eq!(denied, ["rm -rf /"]);
}

#[test]
fn the_host_s_handles_can_be_sent_to_other_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Loop<'_>>();
    is_send::<Report>();
    is_send::<Error>();
    is_send::<ralph::Stopper>();
    is_sync::<ralph::Stopper>();
    is_sync::<Turn>();
}

// ---- what goes wrong -------------------------------------------------------------------------------------

#[test]
fn an_error_from_the_function_is_a_failed_iteration_with_its_message() {
    let test = Test::new();
    let work = loop_in(&test, "x").max_failures(2);
    let report = work
        .run_with(|_: &Turn| Err::<(), _>("the model is gone"))
        .unwrap();
    assert_eq!(
        (report.stop_reason.as_str(), report.iterations.len()),
        ("failures", 2)
    );
    assert_eq!(
        report.iterations[1].error.as_deref(),
        Some("the model is gone")
    );
    let report = loop_in(&test, "x")
        .max_failures(1)
        .run_command(["sh", "-c", "echo no login; exit 3"])
        .unwrap();
    assert_eq!(report.iterations[0].error.as_deref(), Some("no login"));
    assert_eq!(
        report.warnings.len(),
        1,
        "the loop of before was put away: {:?}",
        report.warnings
    );
}

#[test]
fn a_panic_is_a_failed_iteration_and_the_loop_continues() {
    let test = Test::new();
    let mut calls = 0;
    let report = loop_in(&test, "x").run_with(move |turn: &Turn| {
        calls += 1;
        assert!(turn.iteration() > 1, "not in the first");
        format!("after {calls} calls\n<promise>COMPLETE</promise>")
    });
    let report = report.unwrap();
    assert!(report.success);
    assert_eq!(
        report.iterations[0].error.as_deref(),
        Some("the agent function panicked: not in the first")
    );
    assert_eq!(report.iterations[1].error, None);
    assert!(
        test.read_loop("a", "iterations/0002/output.log")
            .contains("after 2 calls")
    );
}

#[test]
fn a_function_past_its_timeout_is_asked_to_return() {
    let test = Test::new();
    let work = loop_in(&test, "x")
        .iteration_timeout(Duration::from_millis(50))
        .max_iterations(1);
    let report = work
        .run_with(|turn: &Turn| until("the end", || turn.is_cancelled()))
        .unwrap();
    assert_eq!(report.iterations.len(), 1);
    assert!(report.iterations[0].error.is_some(), "{report:?}");
    let work = loop_in(&test, "x").max_time(Duration::from_secs(1));
    let report = work
        .run_with(|turn: &Turn| until("the end", || turn.is_cancelled()))
        .unwrap();
    assert_eq!(
        (report.stop_reason.as_str(), &report.iterations[0].error),
        ("timeout", &None)
    );
}

#[test]
fn a_function_that_reports_endlessly_is_asked_to_return_and_uses_bounded_memory() {
    let test = Test::new();
    let printed = Arc::new(AtomicU32::new(0));
    let waiting = Arc::new(AtomicU32::new(0));
    let (so_far, most) = (printed.clone(), waiting.clone());
    let work = loop_in(&test, "x")
        .iteration_timeout(Duration::from_millis(100))
        .max_iterations(1);
    let work = work.on_act(move |_| {
        printed.fetch_add(1, SeqCst);
        std::thread::yield_now();
    });
    let report = work.run_with(move |turn: &Turn| {
        let (begun, mut told) = (Instant::now(), 0u32);
        while !turn.is_cancelled() && begun.elapsed() < seconds(30) {
            turn.said("word ");
            told += 1;
            most.fetch_max(told.saturating_sub(so_far.load(SeqCst)), SeqCst);
        }
        assert!(turn.is_cancelled(), "nobody hears anything else");
    });
    let report = report.unwrap();
    assert_eq!(
        report.iterations[0].error.as_deref(),
        Some("stopped: it took too long")
    );
    assert!(
        waiting.load(SeqCst) < 2000,
        "{waiting:?} words were waiting"
    );
}

#[test]
fn a_function_whose_thread_dies_is_a_failed_iteration() {
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            panic!("while a panic is told");
        }
    }
    let test = Test::new();
    let report = loop_in(&test, "x")
        .max_failures(1)
        .run_with(|_: &Turn| -> () {
            std::panic::panic_any(Grenade);
        });
    let report = report.unwrap();
    assert_eq!(report.stop_reason, StopReason::Failures);
    assert_eq!(
        report.iterations[0].error.as_deref(),
        Some("the agent function ended without a result")
    );
}

#[test]
fn a_tiny_timeout_does_not_mean_no_timeout() {
    let test = Test::new();
    let work = loop_in(&test, "x")
        .check_timeout(Duration::from_nanos(1))
        .max_iterations(1);
    let report = work.check("sleep 60").run_with(|_: &Turn| ()).unwrap();
    assert!(report.preflight[0].timed_out, "{report:?}");
}

#[test]
fn a_function_that_never_returns_ends_the_loop_with_an_error() {
    let test = Test::new();
    let let_go = Arc::new(AtomicBool::new(false));
    let (held, begun) = (let_go.clone(), Instant::now());
    let work = loop_in(&test, "x").iteration_timeout(Duration::from_millis(50));
    let work = work.grace(Duration::from_millis(50), Duration::from_millis(50));
    let report = work
        .run_with(move |_: &Turn| until("the test's end", || held.load(SeqCst)))
        .unwrap();
    let_go.store(true, SeqCst);
    assert!(begun.elapsed() < seconds(20));
    assert_eq!(report.stop_reason, StopReason::Fatal);
    let Some(Outcome::Fatal {
        class: Fault::Survivors,
        detail,
    }) = &report.outcome
    else {
        panic!("{report:?}")
    };
    assert_eq!(
        detail,
        "the agent function was cancelled, but did not return"
    );
    assert_eq!(report.iterations.len(), 1);
}

#[test]
fn invalid_options_are_refused_before_anything_starts() {
    let test = Test::new();
    let usage = |result: Result<Report, Error>| match result {
        Err(Error::Usage { what, hint }) => {
            assert!(!hint.is_empty(), "{what}");
            what
        }
        other => panic!("{other:?}"),
    };
    let never = |_: &Turn| -> () { panic!("it is not called") };
    let gone = loop_in(&test, "x").workspace(test.root().join("nowhere"));
    assert!(usage(gone.run_with(never)).contains("is not a directory"));
    assert!(usage(loop_in(&test, " ").run_with(never)).contains("the task is empty"));
    assert!(
        usage(loop_in(&test, "x").name("No Name").run_with(never))
            .contains("is not a valid loop name")
    );
    assert!(usage(loop_in(&test, "x").check(" ").run_with(never)).contains("is empty"));
    assert!(
        usage(loop_in(&test, "x").check("no-such-command").run_with(never))
            .contains("no-such-command")
    );
    for no_amount in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(
            usage(loop_in(&test, "x").max_cost(no_amount).run_with(never)).contains("max-cost")
        );
    }
    assert!(usage(loop_in(&test, "x").done_pattern("(").run_with(never)).contains("pattern"));
    assert!(usage(loop_in(&test, "x").run_command(["no-such-agent"])).contains("no-such-agent"));
    assert!(usage(loop_in(&test, "x").run_command([""; 0])).contains("command is empty"));
    assert!(usage(loop_in(&test, "x").run_agent("no-such-agent")).contains("unknown agent"));
    assert!(usage(loop_in(&test, "x").run_command(["script:a.script"])).contains("scripted agent"));
    let dear = loop_in(&test, "x").max_cost(1.0).run_command(["true"]);
    assert!(usage(dear).contains("cannot read"));
    assert!(!test.loop_dir("a").exists());
}

// ---- stopping --------------------------------------------------------------------------------------------

#[test]
fn another_thread_stops_a_loop_after_its_iteration_or_at_once() {
    let test = Test::new();
    for now in [false, true] {
        let work = loop_in(&test, "x").no_promise();
        let stopper = work.stopper();
        let report = work.run_with(move |turn: &Turn| {
            if now {
                stopper.stop_now();
                until("the end", || turn.is_cancelled());
            } else {
                stopper.stop();
                assert!(!turn.is_cancelled());
            }
        });
        let report = report.unwrap();
        assert_eq!(
            (report.stop_reason.as_str(), report.exit_code.code()),
            ("stopped", 130)
        );
        assert_eq!(
            report.outcome,
            Some(Outcome::Stopped {
                by: RequestSource::Host
            })
        );
        assert_eq!(report.iterations.len(), 1);
    }
}

#[test]
fn a_stop_before_the_start_takes_effect() {
    let test = Test::new();
    let work = loop_in(&test, "x").check("true");
    work.stopper().stop();
    let report = work
        .run_with(|_: &Turn| -> () { panic!("it is not called") })
        .unwrap();
    assert_eq!(
        (report.stop_reason.as_str(), report.iterations.len()),
        ("stopped", 0)
    );
}

#[test]
fn the_program_can_resume_a_paused_command_loop() {
    let test = Test::new();
    let work = loop_in(&test, "x").max_iterations(3).no_promise();
    let stopper = work.stopper();
    let report = work
        .on_event(move |_| stopper.pause())
        .run_command(["sh", "-c", "echo >> runs"])
        .unwrap();
    assert_eq!(
        (report.stop_reason.as_str(), report.outcome, report.success),
        ("paused", None, false)
    );
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(test.read("runs").lines().count(), 3);
}

#[test]
fn the_program_refuses_to_resume_a_paused_function_loop() {
    let test = Test::new();
    let work = loop_in(&test, "x").no_promise();
    let stopper = work.stopper();
    let report = work.run_with(move |_: &Turn| stopper.pause()).unwrap();
    assert_eq!(
        (report.stop_reason.as_str(), report.iterations.len()),
        ("paused", 1)
    );
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("its agent is a function of the host program");
    assert_eq!(test.status("a")["status"], "paused", "nothing is lost");
    test.ralph(&["stop", "a"]).exits(0);
    assert_eq!(test.status("a")["status"], "stopped");
}

#[test]
fn the_program_can_stop_a_library_loop() {
    let test = Test::new();
    let report = std::thread::scope(|scope| {
        let work = loop_in(&test, "x");
        let runs = scope.spawn(|| {
            work.run_with(|turn: &Turn| {
                fs::write(turn.workspace().join("ready"), "").unwrap();
                until("the end", || turn.is_cancelled());
            })
        });
        until("the agent", || test.workspace().join("ready").exists());
        test.ralph(&["stop", "a"])
            .exits(0)
            .says("stopped ralph loop for a");
        runs.join().unwrap().unwrap()
    });
    assert_eq!(
        report.outcome,
        Some(Outcome::Stopped {
            by: RequestSource::Inbox
        })
    );
}

#[test]
fn a_command_is_stopped_with_everything_that_it_started() {
    let test = Test::new();
    let work = loop_in(&test, "x");
    let (stopper, workspace) = (work.stopper(), test.workspace());
    let waiter = std::thread::spawn(move || {
        until("the agent", || workspace.join("ready").exists());
        stopper.stop_now();
    });
    let agent = "setsid sleep 300 & echo $! > pid; echo $$ > first; touch ready; wait";
    let report = work.run_command(["sh", "-c", agent]).unwrap();
    waiter.join().unwrap();
    assert_eq!(report.stop_reason, StopReason::Stopped);
    assert!(!alive(written_pid(&test, "pid")) && !alive(written_pid(&test, "first")));
}

// ---- the host is left alone ------------------------------------------------------------------------------

#[test]
fn the_host_keeps_its_own_children() {
    let test = Test::new();
    let before = host_child();
    let during = Arc::new(Mutex::new(Vec::new()));
    let mut quick = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
    let (from_agent, from_observer) = (during.clone(), during.clone());
    let report = loop_in(&test, "x")
        .check("test $(wc -l < runs) -ge 2")
        .until_green()
        .on_event(move |event| {
            if matches!(event, Event::Checked { .. }) {
                from_observer.lock().unwrap().push(host_child());
            }
        })
        .run_with(move |turn: &Turn| {
            from_agent.lock().unwrap().push(host_child());
            let runs = turn.workspace().join("runs");
            let so_far = fs::read_to_string(&runs).unwrap_or_default();
            fs::write(runs, so_far + "run\n")
        });
    assert!(report.unwrap().success);
    assert_eq!(
        quick.wait().unwrap().code(),
        Some(7),
        "its status was not taken by anybody else"
    );
    let during = std::mem::take(&mut *during.lock().unwrap());
    assert_eq!(during.len(), 5);
    assert_still_ours(before);
    during.into_iter().for_each(assert_still_ours);
}

#[test]
fn processes_left_by_a_command_or_a_check_are_killed_but_the_host_s_children_are_not() {
    let test = Test::new();
    let host_child = host_child();
    let agent = "setsid sleep 300 >/dev/null 2>&1 & echo $! > escaped; sleep 300 & echo $! > child";
    let check = "setsid sleep 300 >/dev/null 2>&1 & echo $! > checked; test -e escaped";
    let work = loop_in(&test, "x").grace(Duration::from_millis(500), seconds(10));
    let report = work
        .check(check)
        .until_green()
        .run_command(["sh", "-c", agent])
        .unwrap();
    assert!(report.success, "{report:?}");
    for left in ["escaped", "child", "checked"] {
        assert!(!alive(written_pid(&test, left)), "{left}");
    }
    assert_eq!(test.events("a", "ended")[0]["report"]["leftovers"], 2);
    assert_still_ours(host_child);
}

#[test]
fn two_loops_run_at_once_in_two_threads() {
    let (one, other) = (Test::new(), Test::new());
    let meeting = Arc::new(Barrier::new(2));
    let host_child = host_child();
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let threads = [&one, &other].map(|test| {
            let meeting = meeting.clone();
            scope.spawn(move || {
                loop_in(test, "x")
                    .check("test -e met")
                    .until_green()
                    .run_with(move |turn: &Turn| {
                        // Both threads have to arrive here.
                        meeting.wait();
                        fs::write(turn.workspace().join("met"), "")
                    })
            })
        });
        threads.map(|thread| thread.join().unwrap().unwrap()).into()
    });
    assert!(
        reports
            .iter()
            .all(|report| report.success && report.iterations.len() == 1),
        "{reports:?}"
    );
    assert_still_ours(host_child);
}

#[test]
fn two_command_loops_at_once_each_kill_only_their_own_processes() {
    let (short, long) = (Test::new(), Test::new());
    let long_path = long.workspace();
    std::thread::scope(|scope| {
        let agent = "sleep 300 & echo $! > pid; touch ready; until test -e go; do sleep 0.01; done; touch ok";
        let waits = scope.spawn(|| {
            loop_in(&long, "x")
                .check("test -e ok")
                .until_green()
                .run_command(["sh", "-c", agent])
        });
        until("the other's agent", || long_path.join("ready").exists());
        let report = loop_in(&short, "x")
            .check("test -e ok")
            .until_green()
            .run_command(["sh", "-c", "setsid sleep 300 & touch ok"]);
        assert!(report.unwrap().success);
        let pid = written_pid(&long, "pid");
        assert!(alive(pid), "it belongs to the other loop");
        fs::write(long_path.join("go"), "").unwrap();
        assert!(waits.join().unwrap().unwrap().success);
        assert!(!alive(pid));
    });
}

#[test]
fn two_loops_of_one_host_cannot_share_a_workspace() {
    let test = Test::new();
    let inner = Arc::new(Mutex::new(None));
    let (found, again) = (inner.clone(), loop_in(&test, "y").name("b"));
    let again = Mutex::new(Some(again));
    let report = loop_in(&test, "x")
        .max_iterations(1)
        .run_with(move |_: &Turn| {
            let again = again.lock().unwrap().take().expect("one iteration");
            *found.lock().unwrap() = Some(again.run_with(|_: &Turn| ()));
        });
    assert_eq!(report.unwrap().iterations.len(), 1);
    let refused = inner.lock().unwrap().take().unwrap().unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("is already running in this workspace"),
        "{refused}"
    );
}

#[test]
fn an_observer_that_panics_leaves_no_agent_behind() {
    let test = Test::new();
    let workspace = test.workspace();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let work = loop_in(&test, "x").on_act(|_| panic!("the host has a fault of its own"));
        work.run_command(["sh", "-c", "echo $$ > pid; echo ready; exec sleep 300"])
    }));
    assert!(panicked.is_err());
    assert!(workspace.join("pid").exists());
    assert!(!alive(written_pid(&test, "pid")));
}

/// Returns the process's signal state, whether it is a subreaper, its current directory and its
/// environment.
fn process_state() -> (Vec<String>, bool, std::path::PathBuf, Vec<(String, String)>) {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let signals = status
        .lines()
        .filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ"));
    let adopts = rustix::process::child_subreaper().unwrap().is_some();
    let mut environment: Vec<_> = std::env::vars().collect();
    environment.sort();
    (
        signals.map(str::to_owned).collect(),
        adopts,
        std::env::current_dir().unwrap(),
        environment,
    )
}

#[test]
fn the_library_changes_nothing_in_the_host_s_process() {
    let test = Test::new();
    let before = process_state();
    let during = Arc::new(AtomicU32::new(0));
    let (count, expected) = (during.clone(), before.clone());
    let report = loop_in(&test, "x")
        .check("test -e done")
        .until_green()
        .on_event(move |_| {
            assert_eq!(process_state(), expected);
            count.fetch_add(1, SeqCst);
        })
        .run_command(["touch", "done"]);
    assert!(report.unwrap().success);
    assert!(during.load(SeqCst) > 4);
    assert_eq!(process_state(), before);
}
