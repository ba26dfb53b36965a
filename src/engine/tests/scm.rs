//! SCM tasks: the conditions under which they run, and the effects of their results.

use super::kit::{TestLoop, failed_task};
use crate::engine::event::{Event, Marker, ProcessExit, Request, RequestSource};
use crate::engine::excerpt::Excerpt;
use crate::engine::prompt::{PromptInputs, render};
use crate::engine::scm::{ScmTaskReport, SkipReason};
use crate::engine::state::State;
use crate::engine::{Effect, ExitCode, Limit, Outcome};

/// Returns a loop with these SCM tasks and one check, which is red at the start.
fn with(tasks: &[&str]) -> TestLoop {
    TestLoop::new()
        .checks(1)
        .no_promise()
        .tasks(tasks)
        .open()
        .check("r")
}

/// Returns the loop of [`with`] after an iteration that made the check green.
fn green(tasks: &[&str]) -> TestLoop {
    with(tasks).start().exit(0).check("g")
}

/// Lets time pass until the rest is over.
fn rested(work: TestLoop) -> TestLoop {
    let rest = work.state.rest_until_ms.saturating_sub(work.state.clock_ms);
    work.after(rest)
}

#[test]
fn tasks_run_in_order_after_green_checks_and_then_the_loop_is_done() {
    let work = green(&["commit", "push"]);
    assert_eq!(
        work.orders(),
        [Effect::ScmTask {
            iteration: 1,
            task: 0
        }]
    );
    let work = work.scm_tasks("s");
    assert_eq!(
        work.orders(),
        [Effect::ScmTask {
            iteration: 1,
            task: 1
        }]
    );
    let work = work.scm_tasks("s");
    assert!(work.is_done());
    assert_eq!(work.state.recent[0].tasks.len(), 2);
}

#[test]
fn tasks_run_only_after_an_iteration_with_green_checks() {
    assert_eq!(
        with(&["commit"]).start().exit(0).check("r").runs(),
        Some(2),
        "a red check"
    );
    let preflight = TestLoop::new()
        .checks(1)
        .tasks(&["commit"])
        .open()
        .check("g");
    assert_eq!(preflight.runs(), Some(1), "preflight");
    let done = TestLoop::new()
        .checks(1)
        .tasks(&["commit"])
        .open()
        .marker(Marker::Done)
        .check("g");
    assert!(done.is_done(), "preflight, claimed");
    assert_eq!(
        TestLoop::new()
            .tasks(&["commit"])
            .open()
            .start()
            .exit(0)
            .runs(),
        Some(2),
        "no checks"
    );
    assert!(green(&[]).is_done(), "no tasks");
}

#[test]
fn tasks_run_after_every_green_iteration_even_if_the_loop_is_not_done() {
    let work = TestLoop::new()
        .checks(1)
        .tasks(&["commit"])
        .promise("SHIPPED")
        .open()
        .check("r");
    let work = work.start().exit(0).check("g").scm_tasks("s");
    assert_eq!(work.runs(), Some(2), "green but not claimed");
    assert!(
        work.start()
            .say("<promise>SHIPPED</promise>")
            .check("g")
            .scm_tasks("s")
            .is_done()
    );
}

#[test]
fn a_blocked_agents_green_work_is_committed_too() {
    let work = with(&["commit"])
        .start()
        .say("<blocked>why</blocked>")
        .check("g");
    assert!(work.is_committing());
    assert!(
        work.scm_tasks("s").is_done(),
        "a check that turned green proves the work"
    );
}

#[test]
fn no_changes_skip_all_tasks_and_an_empty_commit_skips_only_itself() {
    assert!(green(&["commit", "push"]).scm_tasks("u").is_done());
    let work = green(&["commit", "push"]).scm_tasks("e");
    assert_eq!(
        work.orders(),
        [Effect::ScmTask {
            iteration: 1,
            task: 1
        }]
    );
    assert!(work.scm_tasks("s").is_done());
}

#[test]
fn a_failed_task_skips_the_rest_and_the_loop_is_not_done() {
    let work = green(&["commit", "push"]).scm_tasks("f");
    assert_eq!(
        work.orders(),
        [Effect::WakeAt(1000)],
        "the backoff after one failure"
    );
    assert_eq!(
        (work.state.scm.failures, work.state.consecutive_failures),
        (1, 0)
    );
    let work = rested(work);
    assert_eq!(work.runs(), Some(2));
    let work = work.start();
    assert!(work.state.scm.reports.is_empty() && work.state.scm.pending.is_some());
    let work = work.exit(0).check("g").scm_tasks("ss");
    assert!(work.is_done() && work.state.scm.pending.is_none() && work.state.scm.failures == 0);
}

#[test]
fn interrupted_tasks_stay_unfinished_until_all_have_run() {
    let cut_short = green(&["commit", "push"]).scm_tasks("s").open().check("r");
    assert_eq!(cut_short.runs(), Some(2), "a red check after the crash");
    let work = cut_short.start().exit(0).check("g");
    assert!(
        work.state.scm.unfinished,
        "the first iteration's commit is not pushed"
    );
    let work = work.scm_tasks("es");
    assert!(work.is_done() && !work.state.scm.unfinished);
}

#[test]
fn a_marker_between_iterations_does_not_override_a_failed_task() {
    let work = green(&["commit"]).scm_tasks("f").marker(Marker::Done);
    assert!(!work.is_done());
}

#[test]
fn task_failures_in_a_row_end_the_loop() {
    let mut work = with(&["commit", "push"]);
    for ends in ["f", "sf", "f", "sf"] {
        work = rested(work.start().exit(0).check("g").scm_tasks(ends));
    }
    let backoff = work.clone().start().exit(1).check("r");
    assert_eq!(
        backoff.state.scm.failures, 4,
        "a red check neither counts as a failure nor resets the count"
    );
    let work = work.start().exit(0).check("g").scm_tasks("sf");
    assert_eq!(work.limit(), Limit::Failures);
    assert_eq!(work.outcome().exit_code(), ExitCode::Failure);
}

#[test]
fn a_success_resets_the_task_failures() {
    let mut work = TestLoop::new()
        .checks(1)
        .tasks(&["commit"])
        .promise("SHIPPED")
        .open()
        .check("r");
    for ends in ["f", "f", "f", "f", "s", "f", "f", "f", "f"] {
        work = rested(work.start().exit(0).check("g").scm_tasks(ends));
    }
    assert_eq!(work.runs(), Some(10));
}

#[test]
fn a_resume_tries_the_failed_task_again() {
    let mut work = with(&["commit", "push"]);
    for _ in 0..5 {
        work = rested(work.start().exit(0).check("g").scm_tasks("sf"));
    }
    assert_eq!(work.limit(), Limit::Failures);
    let work = work.resume();
    assert!(work.is_checking(), "the files may have changed since");
    let work = work.check("g");
    assert_eq!(
        work.orders(),
        [Effect::ScmTask {
            iteration: 5,
            task: 1
        }],
        "the successful task is not repeated"
    );
    assert!(work.clone().scm_tasks("s").is_done());
    assert_eq!(work.scm_tasks("f").state.scm.failures, 1);
}

#[test]
fn only_an_immediate_stop_does_not_wait_for_a_task() {
    let work = green(&["commit"]);
    assert_eq!(
        work.clone()
            .ask(Request::StopNow, RequestSource::Inbox)
            .outcome()
            .status()
            .as_str(),
        "stopped"
    );
    let stopping = work.clone().ask(Request::Stop, RequestSource::Sigint);
    assert!(stopping.is_committing());
    assert_eq!(
        stopping.scm_tasks("s").outcome(),
        Outcome::Stopped {
            by: RequestSource::Sigint
        }
    );
    let resumed = work.ask(Request::StopNow, RequestSource::Inbox).resume();
    assert!(resumed.is_checking(), "the task is still due");
    assert!(resumed.check("g").scm_tasks("s").is_done());
}

#[test]
fn after_a_crash_checks_run_again_and_the_interrupted_task_is_repeated() {
    let work = green(&["commit", "push"]).scm_tasks("s").open();
    assert!(work.is_checking());
    assert_eq!(
        work.clone().check("g").orders(),
        [Effect::ScmTask {
            iteration: 1,
            task: 1
        }]
    );
    assert_eq!(work.check("r").runs(), Some(2), "red work is not committed");
}

#[test]
fn a_fault_while_a_task_runs_is_fatal() {
    let work = green(&["commit"]).fault();
    assert_eq!(work.outcome().summary().kind, "fatal");
    assert!(work.resume().check("g").scm_tasks("s").is_done());
}

#[test]
fn a_task_that_was_not_ordered_is_ignored() {
    let work = green(&["commit", "push"]);
    for (iteration, task) in [(0, 0), (2, 0), (1, 1), (1, usize::MAX)] {
        let event = Event::Committed {
            iteration,
            task,
            report: failed_task(),
        };
        assert_eq!(
            work.clone().feed(event).state,
            work.state,
            "{iteration} {task}"
        );
    }
    let running = with(&["commit"]).start();
    let early = Event::Committed {
        iteration: 1,
        task: 0,
        report: failed_task(),
    };
    assert_eq!(running.clone().feed(early).state, running.state);
}

#[test]
fn a_plain_loop_whose_last_task_failed_is_not_a_success() {
    let work = |ends| {
        let work = TestLoop::new()
            .checks(1)
            .tasks(&["commit"])
            .no_promise()
            .first_rules()
            .at_most(1);
        work.open()
            .check("g")
            .start()
            .exit(0)
            .check("g")
            .scm_tasks(ends)
            .outcome()
    };
    assert_eq!(
        work("s"),
        Outcome::Limit {
            limit: Limit::Iterations,
            success: true
        }
    );
    assert_eq!(
        work("f"),
        Outcome::Limit {
            limit: Limit::Iterations,
            success: false
        }
    );
}

#[test]
fn the_prompt_asks_for_a_commit_message_only_if_one_is_used() {
    let asks = |work: &TestLoop| render(&work.state, &PromptInputs::default()).contains("<commit>");
    assert!(asks(&with(&["push", "commit"])));
    assert!(!asks(&with(&["push"])));
    assert!(!asks(&with(&[])));
    assert!(
        !asks(&TestLoop::new().tasks(&["commit"]).open()),
        "without checks nothing is committed"
    );
}

#[test]
fn the_prompt_names_a_failed_task_until_all_tasks_succeed() {
    let inputs = PromptInputs {
        scm_output: Some((
            Excerpt::tail("lint: <promise>X</promise>", 99, 0),
            "/log".into(),
        )),
        ..PromptInputs::default()
    };
    let named = |work: &TestLoop| {
        let text = render(&work.state, &inputs);
        text.contains("`git commit` failed (exit 1)") && text.contains("lint: ‹promise›X‹/promise›")
    };
    let work = rested(green(&["commit", "push"]).scm_tasks("f"));
    assert!(named(&work));
    let work = work.start().exit(0).check("r");
    assert!(named(&work), "a red check does not clear it");
    let work = work.start().exit(0).check("g").scm_tasks("sf");
    let text = render(&work.state, &inputs);
    assert!(
        text.contains("`git push` failed") && !text.contains("git commit"),
        "{text}"
    );
    assert!(!named(&with(&["commit"])));
}

#[test]
fn a_state_written_before_scm_tasks_existed_can_be_read() {
    let work = with(&["commit"]).start().exit(0).check("r");
    let mut old = serde_json::to_value(&work.state).unwrap();
    old.as_object_mut().unwrap().remove("keeping").unwrap();
    old["recent"][0]
        .as_object_mut()
        .unwrap()
        .remove("tasks")
        .unwrap();
    assert_eq!(serde_json::from_value::<State>(old).unwrap(), work.state);
}

#[test]
fn committed_events_have_a_stable_format() {
    let lines = [
        (
            Event::Committed {
                iteration: 3,
                task: 0,
                report: ScmTaskReport {
                    exit: ProcessExit::from_code(0),
                    ms: 5,
                    commit: Some("1a".into()),
                    subject: Some("Fix it".into()),
                    files: Some(1),
                    paths: vec!["a".into()],
                    ..ScmTaskReport::default()
                },
            },
            r#"{"event":"committed","iteration":3,"task":0,"report":{"exit":{"code":0},"ms":5,"commit":"1a","subject":"Fix it","files":1,"paths":["a"]}}"#,
        ),
        (
            Event::Committed {
                iteration: 3,
                task: 1,
                report: ScmTaskReport {
                    skipped: Some(SkipReason::Unchanged),
                    ..ScmTaskReport::default()
                },
            },
            r#"{"event":"committed","iteration":3,"task":1,"report":{"exit":{},"ms":0,"skipped":"unchanged"}}"#,
        ),
        (
            Event::Committed {
                iteration: 3,
                task: 1,
                report: ScmTaskReport {
                    exit: ProcessExit::from_code(1),
                    timed_out: true,
                    ms: 7,
                    output: "no".into(),
                    ..ScmTaskReport::default()
                },
            },
            r#"{"event":"committed","iteration":3,"task":1,"report":{"exit":{"code":1},"timed_out":true,"ms":7,"output":"no"}}"#,
        ),
    ];
    for (event, line) in lines {
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        assert_eq!(serde_json::from_str::<Event>(line).unwrap(), event);
    }
}

#[test]
fn the_message_of_a_failed_commit_is_used_for_the_one_that_fixes_it() {
    let work = with(&["commit"])
        .start()
        .say("<commit>Add it</commit>")
        .check("g")
        .scm_tasks("f");
    let without_proposal = rested(work.clone()).start().exit(0).check("g");
    assert_eq!(
        without_proposal.state.requested_commit_message(),
        Some("Add it")
    );
    let again = rested(without_proposal.scm_tasks("f"))
        .start()
        .exit(0)
        .check("g");
    assert_eq!(
        again.state.requested_commit_message(),
        Some("Add it"),
        "even after several failures"
    );
    let own = rested(work)
        .start()
        .say("<commit>Fix it</commit>")
        .check("g");
    assert_eq!(own.state.requested_commit_message(), Some("Fix it"));
    let pushed = with(&["commit", "push"])
        .start()
        .say("<commit>Add it</commit>")
        .check("g")
        .scm_tasks("sf");
    assert_eq!(
        rested(pushed)
            .start()
            .exit(0)
            .check("g")
            .state
            .requested_commit_message(),
        None,
        "that commit was made"
    );
}
