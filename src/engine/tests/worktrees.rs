//! When a loop's own worktree is committed, and what a refusal does to a loop.

use super::kit::Loop;
use crate::engine::event::{Door, Wish};
use crate::engine::excerpt::Excerpt;
use crate::engine::prompt::{Materials, render};
use crate::engine::state::State;
use crate::engine::{Effect, Outcome, Status};

/// A loop in a worktree, with one check that was red at the start, and these tasks.
fn with(tasks: &[&str]) -> Loop {
    Loop::new()
        .checks(1)
        .tasks(tasks)
        .worktree()
        .open()
        .check("r")
}

fn save(iteration: u32, task: usize) -> [Effect; 1] {
    [Effect::Commit { iteration, task }]
}

#[test]
fn every_iteration_is_committed_red_or_green_with_checks_or_without() {
    let work = with(&[]).start().exit(1).check("r");
    assert_eq!(work.orders(), save(1, 0), "red, and a bad exit");
    let work = work.keep("k").after(1000);
    assert_eq!(work.runs(), Some(2));
    let work = work.start().exit(0).check("g");
    assert_eq!(work.orders(), save(2, 0), "before it is done");
    let work = work.keep("k");
    assert!(work.is_done() && !work.state.is_unsaved());
    assert_eq!(work.state.recent[1].saved, work.state.keeping.saved);
    let work = Loop::new().worktree().open().start().exit(0);
    assert_eq!(work.orders(), save(1, 0), "without checks");
    assert_eq!(work.keep("e").runs(), Some(2));
    assert_eq!(
        Loop::new().checks(1).worktree().open().check("g").runs(),
        Some(1),
        "preflight changes nothing"
    );
}

#[test]
fn a_refusal_is_no_failure_and_is_tried_again_after_the_next_iteration() {
    let work = with(&[])
        .start()
        .say("<commit>Add it</commit>")
        .check("r")
        .keep("l");
    assert_eq!(
        (work.runs(), work.state.keeping.failures),
        (Some(2), 0),
        "without a rest"
    );
    assert!(work.state.is_unsaved());
    let work = work.start().exit(0).check("g");
    assert_eq!(work.state.commit_words(), Some("Add it"));
    let lost = work.clone().keep("l");
    assert!(
        lost.is_done() && lost.state.is_unsaved(),
        "the work is proven, and said not to be committed"
    );
    assert!(!work.keep("k").state.is_unsaved());
}

#[test]
fn the_next_agent_is_told_of_a_refusal() {
    let output = (Excerpt::tail("lint: no", 99, 0), "/log".into());
    let materials = Materials {
        task_output: Some(output),
        ..Materials::default()
    };
    let work = with(&[]).start().exit(0).check("r");
    assert!(
        render(&work.state, &materials).contains("what you leave uncommitted is committed for you")
    );
    let work = work.keep("l");
    let text = render(&work.state, &materials);
    assert!(
        text.contains("`git commit` failed (exit 1)") && text.contains("lint: no"),
        "{text}"
    );
    let text = render(&work.start().exit(0).check("r").keep("k").state, &materials);
    assert!(!text.contains("`git commit` failed"), "{text}");
}

#[test]
fn tasks_for_green_work_leave_nothing_to_commit() {
    let green = |tasks: &[&str]| with(tasks).start().exit(0).check("g");
    let work = green(&["commit", "push"]).keep("kk");
    assert!(work.is_done() && !work.state.is_unsaved());
    let work = green(&["commit"]).keep("l");
    assert!(
        work.state.is_unsaved() && !work.is_done(),
        "what was asked for is not done"
    );
    assert_eq!(
        work.after(9000).runs(),
        Some(2),
        "the same commit is not tried twice"
    );
    let work = with(&["commit"]).start().exit(0).check("r");
    assert_eq!(work.orders(), save(1, 1), "red work has no task but this");
    assert_eq!(work.keep("k").runs(), Some(2));
    let work = green(&["fetch", "commit"]).keep("l");
    assert_eq!(work.orders(), save(1, 2), "the commit was skipped");
}

#[test]
fn a_push_comes_after_the_commit() {
    let work = with(&["push"]).start().exit(0).check("g");
    assert_eq!(work.orders(), save(1, 1));
    let work = work.keep("k");
    assert_eq!(
        work.orders(),
        [Effect::Commit {
            iteration: 1,
            task: 0
        }]
    );
    assert!(work.keep("k").is_done());
}

#[test]
fn who_does_not_wait_for_the_agent_has_its_work_committed_first() {
    for wish in [Wish::StopNow, Wish::PauseNow] {
        let work = with(&[]).start().ask(wish, Door::Inbox).exit(143);
        assert_eq!(work.orders(), save(1, 0));
        let work = work.keep("k");
        assert!(!work.state.is_unsaved());
        assert_eq!(
            work.state.status(false),
            if wish == Wish::StopNow {
                Status::Stopped
            } else {
                Status::Paused
            }
        );
        let work = with(&[]).start().exit(0).ask(wish, Door::Inbox);
        assert_eq!(work.orders(), save(1, 0), "in the middle of its checks");
        let pressed = work.ask(wish, Door::Inbox);
        assert!(
            !pressed.is_committing() && pressed.state.is_unsaved(),
            "once more, and nothing is waited for"
        );
        let work = with(&["push"])
            .start()
            .exit(0)
            .check("g")
            .ask(wish, Door::Inbox);
        assert_eq!(
            work.orders(),
            save(1, 1),
            "what is being committed is waited for"
        );
        assert!(!work.keep("k").is_committing(), "and nothing is pushed");
        assert_eq!(
            pressed.resume().check("r").orders(),
            save(1, 0),
            "it is made good"
        );
    }
}

#[test]
fn a_crash_leaves_the_commit_due_and_a_stop_then_makes_it() {
    let work = with(&[]).start().open();
    assert!(work.is_checking());
    assert_eq!(work.check("r").orders(), save(1, 0));
    let work = with(&[])
        .start()
        .exit(0)
        .ask(Wish::StopNow, Door::Inbox)
        .open();
    assert_eq!(
        work.orders(),
        save(1, 0),
        "no check is run for one who stops"
    );
    let work = with(&[]).start().exit(0).check("g").open();
    assert!(work.is_checking(), "what was under way is judged anew");
    assert!(work.check("g").keep("k").is_done());
}

#[test]
fn a_fault_is_fatal_and_a_resume_tries_a_refused_commit_first() {
    let work = with(&[]).start().exit(0).check("r").fault();
    assert!(matches!(work.outcome(), Outcome::Fatal { .. }) && work.state.is_unsaved());
    assert_eq!(work.resume().check("r").orders(), save(1, 0));
    let limited = Loop::new()
        .checks(1)
        .worktree()
        .at_most(1)
        .open()
        .check("r")
        .start()
        .exit(0)
        .check("r");
    let work = limited.keep("l").resume();
    assert!(
        work.is_checking(),
        "a person may have mended what was complained of"
    );
    assert_eq!(work.check("r").orders(), save(1, 0));
}

#[test]
fn a_state_of_before_there_were_worktrees_is_understood() {
    let work = Loop::new()
        .checks(1)
        .open()
        .check("r")
        .start()
        .exit(0)
        .check("r");
    let mut old = serde_json::to_value(&work.state).unwrap();
    old["plan"]
        .as_object_mut()
        .unwrap()
        .remove("worktree")
        .unwrap();
    for name in ["saved", "unsaved"] {
        old["keeping"]
            .as_object_mut()
            .unwrap()
            .remove(name)
            .unwrap();
    }
    assert_eq!(serde_json::from_value::<State>(old).unwrap(), work.state);
}
