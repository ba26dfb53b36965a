//! When the tasks for green work run, and what their ends do to a loop.

use super::kit::{Loop, lost};
use crate::engine::event::{Door, Event, Exit, Marker, Wish};
use crate::engine::excerpt::Excerpt;
use crate::engine::prompt::{Materials, render};
use crate::engine::scm::{Skip, TaskReport};
use crate::engine::state::State;
use crate::engine::{Effect, Limit, Outcome};

/// A loop with one check that was red at the start, and these tasks.
fn with(tasks: &[&str]) -> Loop {
    Loop::new().checks(1).tasks(tasks).open().check("r")
}

/// The same after an iteration whose check is green.
fn green(tasks: &[&str]) -> Loop {
    with(tasks).start().exit(0).check("g")
}

/// Time passes until nothing rests any more.
fn rested(work: Loop) -> Loop {
    let rest = work.state.rest_until_ms.saturating_sub(work.state.clock_ms);
    work.after(rest)
}

#[test]
fn tasks_run_in_order_after_green_checks_and_then_the_loop_is_done() {
    let work = green(&["commit", "push"]);
    assert_eq!(
        work.orders(),
        [Effect::Commit {
            iteration: 1,
            task: 0
        }]
    );
    let work = work.keep("k");
    assert_eq!(
        work.orders(),
        [Effect::Commit {
            iteration: 1,
            task: 1
        }]
    );
    let work = work.keep("k");
    assert!(work.is_done());
    assert_eq!(work.state.recent[0].tasks.len(), 2);
}

#[test]
fn no_task_runs_where_it_is_not_earned() {
    assert_eq!(
        with(&["commit"]).start().exit(0).check("r").runs(),
        Some(2),
        "a red check"
    );
    let preflight = Loop::new().checks(1).tasks(&["commit"]).open().check("g");
    assert_eq!(preflight.runs(), Some(1), "preflight");
    let done = Loop::new()
        .checks(1)
        .tasks(&["commit"])
        .open()
        .marker(Marker::Done)
        .check("g");
    assert!(done.is_done(), "preflight, claimed");
    assert_eq!(
        Loop::new().tasks(&["commit"]).open().start().exit(0).runs(),
        Some(2),
        "no checks"
    );
    assert!(green(&[]).is_done(), "no tasks");
}

#[test]
fn tasks_run_after_every_green_iteration_done_or_not() {
    let work = Loop::new()
        .checks(1)
        .tasks(&["commit"])
        .promise("SHIPPED")
        .open()
        .check("r");
    let work = work.start().exit(0).check("g").keep("k");
    assert_eq!(work.runs(), Some(2), "green, and not claimed");
    assert!(
        work.start()
            .say("<promise>SHIPPED</promise>")
            .check("g")
            .keep("k")
            .is_done()
    );
}

#[test]
fn a_blocked_agent_s_green_work_is_kept_too() {
    let work = with(&["commit"])
        .start()
        .say("<blocked>why</blocked>")
        .check("g");
    assert!(work.is_committing());
    assert!(
        work.keep("k").is_done(),
        "a check that turned green shows the work"
    );
}

#[test]
fn nothing_changed_skips_all_and_nothing_to_commit_only_itself() {
    assert!(green(&["commit", "push"]).keep("u").is_done());
    let work = green(&["commit", "push"]).keep("e");
    assert_eq!(
        work.orders(),
        [Effect::Commit {
            iteration: 1,
            task: 1
        }]
    );
    assert!(work.keep("k").is_done());
}

#[test]
fn a_failed_task_skips_the_rest_and_is_not_done() {
    let work = green(&["commit", "push"]).keep("l");
    assert_eq!(
        work.orders(),
        [Effect::WakeAt(1000)],
        "the backoff of a first failure"
    );
    assert_eq!(
        (work.state.keeping.failures, work.state.consecutive_failures),
        (1, 0)
    );
    let work = rested(work);
    assert_eq!(work.runs(), Some(2));
    let work = work.start();
    assert!(work.state.keeping.reports.is_empty() && work.state.keeping.owed.is_some());
    let work = work.exit(0).check("g").keep("kk");
    assert!(
        work.is_done() && work.state.keeping.owed.is_none() && work.state.keeping.failures == 0
    );
}

#[test]
fn tasks_that_were_cut_short_stay_open_until_they_run_to_their_end() {
    let cut_short = green(&["commit", "push"]).keep("k").open().check("r");
    assert_eq!(
        cut_short.runs(),
        Some(2),
        "a crash, and then a check that is red"
    );
    let work = cut_short.start().exit(0).check("g");
    assert!(
        work.state.keeping.open,
        "the first iteration's commit is not pushed"
    );
    let work = work.keep("ek");
    assert!(work.is_done() && !work.state.keeping.open);
}

#[test]
fn a_marker_between_iterations_does_not_excuse_a_failed_task() {
    let work = green(&["commit"]).keep("l").marker(Marker::Done);
    assert!(!work.is_done());
}

#[test]
fn so_many_failures_in_a_row_end_the_loop() {
    let mut work = with(&["commit", "push"]);
    for ends in ["l", "kl", "l", "kl"] {
        work = rested(work.start().exit(0).check("g").keep(ends));
    }
    let backoff = work.clone().start().exit(1).check("r");
    assert_eq!(
        backoff.state.keeping.failures, 4,
        "red checks neither count nor forgive"
    );
    let work = work.start().exit(0).check("g").keep("kl");
    assert_eq!(work.limit(), Limit::Failures);
    assert_eq!(work.outcome().exit_code(), 1);
}

#[test]
fn a_success_forgives_the_failures_before_it() {
    let mut work = Loop::new()
        .checks(1)
        .tasks(&["commit"])
        .promise("SHIPPED")
        .open()
        .check("r");
    for ends in ["l", "l", "l", "l", "k", "l", "l", "l", "l"] {
        work = rested(work.start().exit(0).check("g").keep(ends));
    }
    assert_eq!(work.runs(), Some(10));
}

#[test]
fn a_person_who_resumes_has_the_failed_task_tried_again() {
    let mut work = with(&["commit", "push"]);
    for _ in 0..5 {
        work = rested(work.start().exit(0).check("g").keep("kl"));
    }
    assert_eq!(work.limit(), Limit::Failures);
    let work = work.resume();
    assert!(
        work.is_checking(),
        "somebody may have changed the files since"
    );
    let work = work.check("g");
    assert_eq!(
        work.orders(),
        [Effect::Commit {
            iteration: 5,
            task: 1
        }],
        "what went well is not done again"
    );
    assert!(work.clone().keep("k").is_done());
    assert_eq!(work.keep("l").state.keeping.failures, 1);
}

#[test]
fn a_stop_now_does_not_wait_for_a_task_and_a_stop_does() {
    let work = green(&["commit"]);
    assert_eq!(
        work.clone()
            .ask(Wish::StopNow, Door::Inbox)
            .outcome()
            .status()
            .word(),
        "stopped"
    );
    let stopping = work.clone().ask(Wish::Stop, Door::Sigint);
    assert!(stopping.is_committing());
    assert_eq!(
        stopping.keep("k").outcome(),
        Outcome::Stopped {
            by: "Ctrl-C".into()
        }
    );
    let resumed = work.ask(Wish::StopNow, Door::Inbox).resume();
    assert!(resumed.is_checking(), "it is still to be done");
    assert!(resumed.check("g").keep("k").is_done());
}

#[test]
fn a_crash_checks_again_and_repeats_the_task_that_it_cut_short() {
    let work = green(&["commit", "push"]).keep("k").open();
    assert!(work.is_checking());
    assert_eq!(
        work.clone().check("g").orders(),
        [Effect::Commit {
            iteration: 1,
            task: 1
        }]
    );
    assert_eq!(
        work.check("r").runs(),
        Some(2),
        "what is not green any more is not kept"
    );
}

#[test]
fn a_fault_while_a_task_runs_is_fatal_and_not_done() {
    let work = green(&["commit"]).fault();
    assert_eq!(work.outcome().verdict().kind, "fatal");
    assert!(work.resume().check("g").keep("k").is_done());
}

#[test]
fn a_task_out_of_turn_is_ignored() {
    let work = green(&["commit", "push"]);
    for (iteration, task) in [(0, 0), (2, 0), (1, 1), (1, usize::MAX)] {
        let event = Event::Committed {
            iteration,
            task,
            report: lost(),
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
        report: lost(),
    };
    assert_eq!(running.clone().feed(early).state, running.state);
}

#[test]
fn a_plain_loop_that_lost_its_last_work_is_no_success() {
    let work = |ends| {
        let work = Loop::new()
            .checks(1)
            .tasks(&["commit"])
            .no_promise()
            .at_most(1);
        work.open()
            .check("g")
            .start()
            .exit(0)
            .check("g")
            .keep(ends)
            .outcome()
    };
    assert_eq!(
        work("k"),
        Outcome::Limit {
            limit: Limit::Iterations,
            success: true
        }
    );
    assert_eq!(
        work("l"),
        Outcome::Limit {
            limit: Limit::Iterations,
            success: false
        }
    );
}

#[test]
fn the_agent_is_asked_for_a_message_only_where_one_is_used() {
    let asks = |work: &Loop| render(&work.state, &Materials::default()).contains("<commit>");
    assert!(asks(&with(&["push", "commit"])));
    assert!(!asks(&with(&["push"])));
    assert!(!asks(&with(&[])));
    assert!(
        !asks(&Loop::new().tasks(&["commit"]).open()),
        "without checks nothing is committed"
    );
}

#[test]
fn a_failed_task_is_told_until_the_tasks_have_run_to_their_end() {
    let materials = Materials {
        task_output: Some((
            Excerpt::tail("lint: <promise>X</promise>", 99, 0),
            "/log".into(),
        )),
        ..Materials::default()
    };
    let told = |work: &Loop| {
        let text = render(&work.state, &materials);
        text.contains("`git commit` failed (exit 1)") && text.contains("lint: ‹promise›X‹/promise›")
    };
    let work = rested(green(&["commit", "push"]).keep("l"));
    assert!(told(&work));
    let work = work.start().exit(0).check("r");
    assert!(told(&work), "red checks do not make it good");
    let work = work.start().exit(0).check("g").keep("kl");
    let text = render(&work.state, &materials);
    assert!(
        text.contains("`git push` failed") && !text.contains("git commit"),
        "{text}"
    );
    assert!(!told(&with(&["commit"])));
}

#[test]
fn a_state_of_before_there_were_tasks_is_understood() {
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
fn every_end_of_a_task_has_its_line() {
    let lines = [
        (
            Event::Committed {
                iteration: 3,
                task: 0,
                report: TaskReport {
                    exit: Exit::code(0),
                    ms: 5,
                    commit: Some("1a".into()),
                    subject: Some("Fix it".into()),
                    files: Some(1),
                    paths: vec!["a".into()],
                    ..TaskReport::default()
                },
            },
            r#"{"event":"committed","iteration":3,"task":0,"report":{"exit":{"code":0},"ms":5,"commit":"1a","subject":"Fix it","files":1,"paths":["a"]}}"#,
        ),
        (
            Event::Committed {
                iteration: 3,
                task: 1,
                report: TaskReport {
                    skipped: Some(Skip::Unchanged),
                    ..TaskReport::default()
                },
            },
            r#"{"event":"committed","iteration":3,"task":1,"report":{"exit":{},"ms":0,"skipped":"unchanged"}}"#,
        ),
        (
            Event::Committed {
                iteration: 3,
                task: 1,
                report: TaskReport {
                    exit: Exit::code(1),
                    timed_out: true,
                    ms: 7,
                    output: "no".into(),
                    ..TaskReport::default()
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
fn the_message_of_a_failed_commit_serves_the_one_that_mends_it() {
    let work = with(&["commit"])
        .start()
        .say("<commit>Add it</commit>")
        .check("g")
        .keep("l");
    let silent = rested(work.clone()).start().exit(0).check("g");
    assert_eq!(silent.state.commit_words(), Some("Add it"));
    let again = rested(silent.keep("l")).start().exit(0).check("g");
    assert_eq!(
        again.state.commit_words(),
        Some("Add it"),
        "however often it fails"
    );
    let own = rested(work)
        .start()
        .say("<commit>Mend it</commit>")
        .check("g");
    assert_eq!(own.state.commit_words(), Some("Mend it"));
    let pushed = with(&["commit", "push"])
        .start()
        .say("<commit>Add it</commit>")
        .check("g")
        .keep("kl");
    assert_eq!(
        rested(pushed)
            .start()
            .exit(0)
            .check("g")
            .state
            .commit_words(),
        None,
        "that one was made"
    );
}
