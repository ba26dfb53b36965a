//! Commits in a loop's worktree, and their failures.

use super::kit::TestLoop;
use crate::engine::event::{Request, RequestSource};
use crate::engine::excerpt::Excerpt;
use crate::engine::prompt::{PromptInputs, render};
use crate::engine::scm::{ScmTaskReport, SkipReason};
use crate::engine::state::State;
use crate::engine::work_elsewhere::{MovedHead, WorkElsewhere};
use crate::engine::{Effect, Event, Liveness, Outcome, Status};

/// Returns a loop in a worktree, with these SCM tasks and one check, which is red at the start.
fn with(tasks: &[&str]) -> TestLoop {
    TestLoop::new()
        .checks(1)
        .no_promise()
        .tasks(tasks)
        .worktree()
        .open()
        .check("r")
}

fn commits(iteration: u32, task: usize) -> [Effect; 1] {
    [Effect::ScmTask { iteration, task }]
}

#[test]
fn every_iteration_is_committed_red_or_green_with_checks_or_without() {
    let work = with(&[]).start().exit(1).check("r");
    assert_eq!(work.orders(), commits(1, 0), "red, with a bad exit");
    let work = work.scm_tasks("s").after(1000);
    assert_eq!(work.runs(), Some(2));
    let work = work.start().exit(0).check("g");
    assert_eq!(work.orders(), commits(2, 0), "before it is done");
    let work = work.scm_tasks("s");
    assert!(work.is_done() && !work.state.has_uncommitted_work());
    assert_eq!(
        work.state.recent[1].worktree_commit,
        work.state.scm.worktree_commit
    );
    let work = TestLoop::new().worktree().open().start().exit(0);
    assert_eq!(work.orders(), commits(1, 0), "without checks");
    assert_eq!(work.scm_tasks("e").runs(), Some(2));
    assert_eq!(
        TestLoop::new()
            .checks(1)
            .worktree()
            .open()
            .check("g")
            .runs(),
        Some(1),
        "preflight changes nothing"
    );
}

#[test]
fn a_failed_commit_is_not_a_failure_and_is_repeated_after_the_next_iteration() {
    let work = with(&[])
        .start()
        .say("<commit>Add it</commit>")
        .check("r")
        .scm_tasks("f");
    assert_eq!(
        (work.runs(), work.state.scm.failures),
        (Some(2), 0),
        "without a rest"
    );
    assert!(work.state.has_uncommitted_work());
    let work = work.start().exit(0).check("g");
    assert_eq!(work.state.requested_commit_message(), Some("Add it"));
    let failed = work.clone().scm_tasks("f");
    assert!(
        failed.is_done() && failed.state.has_uncommitted_work(),
        "done, but not committed"
    );
    assert!(!work.scm_tasks("s").state.has_uncommitted_work());
}

#[test]
fn the_next_prompt_names_a_failed_commit() {
    let output = (Excerpt::tail("lint: no", 99, 0), "/log".into());
    let inputs = PromptInputs {
        scm_output: Some(output),
        ..PromptInputs::default()
    };
    let work = with(&[]).start().exit(0).check("r");
    assert!(
        render(&work.state, &inputs).contains("what you leave uncommitted is committed for you")
    );
    let work = work.scm_tasks("f");
    let text = render(&work.state, &inputs);
    assert!(
        text.contains("`git commit` failed (exit 1)") && text.contains("lint: no"),
        "{text}"
    );
    let text = render(
        &work.start().exit(0).check("r").scm_tasks("s").state,
        &inputs,
    );
    assert!(!text.contains("`git commit` failed"), "{text}");
}

#[test]
fn work_elsewhere_is_kept_until_a_commit_no_longer_finds_it() {
    let work = with(&[]).start().exit(0).check("r");
    let head = MovedHead {
        branch: Some("other".into()),
        ..MovedHead::default()
    };
    let report = ScmTaskReport {
        skipped: Some(SkipReason::Empty),
        elsewhere: WorkElsewhere {
            nested: vec!["app".into()],
            submodules: vec!["<blocked>lib</blocked>".into()],
            head: Some(head),
        },
        ..ScmTaskReport::default()
    };
    let work = work.feed(Event::Committed {
        iteration: 1,
        task: 0,
        report,
    });
    assert_eq!(work.state.worktree_revision(), Some("other"));
    let text = render(&work.state, &PromptInputs::default());
    assert!(
        text.contains("`app` is a git repository of its own"),
        "{text}"
    );
    assert!(!text.contains("`<blocked>lib"), "{text}");
    let work = work.after(1000).start().exit(0).check("r").scm_tasks("f");
    assert_eq!(work.state.worktree_revision(), Some("other"), "not known");
    let work = work.after(1000).start().exit(0).check("r").scm_tasks("e");
    assert!(work.state.scm.elsewhere.is_empty());
    let own = work.state.plan.worktree.as_ref().map(|own| &*own.branch);
    assert_eq!(work.state.worktree_revision(), own);
    let text = render(&work.state, &PromptInputs::default());
    assert!(!text.contains("`app`"), "{text}");
}

#[test]
fn a_commit_task_makes_the_worktree_commit_unnecessary() {
    let green = |tasks: &[&str]| with(tasks).start().exit(0).check("g");
    let work = green(&["commit", "push"]).scm_tasks("ss");
    assert!(work.is_done() && !work.state.has_uncommitted_work());
    let work = green(&["commit"]).scm_tasks("f");
    assert!(
        work.state.has_uncommitted_work() && !work.is_done(),
        "the requested commit failed"
    );
    assert_eq!(
        work.after(9000).runs(),
        Some(2),
        "the commit is not tried twice"
    );
    let work = green(&["commit -m 'Fix it' --no-verify"]);
    assert_eq!(
        work.orders(),
        commits(1, 0),
        "its message and options count"
    );
    assert!(work.scm_tasks("s").is_done());
    let work = with(&["commit"]).start().exit(0).check("r");
    assert_eq!(
        work.orders(),
        commits(1, 1),
        "red work has only the worktree commit"
    );
    assert_eq!(work.scm_tasks("s").runs(), Some(2));
    let work = green(&["fetch", "commit"]).scm_tasks("f");
    assert_eq!(work.orders(), commits(1, 2), "the commit was skipped");
}

#[test]
fn a_push_comes_after_the_commit() {
    let work = with(&["push"]).start().exit(0).check("g");
    assert_eq!(work.orders(), commits(1, 1));
    let work = work.scm_tasks("s");
    assert_eq!(
        work.orders(),
        [Effect::ScmTask {
            iteration: 1,
            task: 0
        }]
    );
    assert!(work.scm_tasks("s").is_done());
}

#[test]
fn an_immediate_request_commits_the_work_first() {
    for request in [Request::StopNow, Request::PauseNow] {
        let work = with(&[])
            .start()
            .ask(request, RequestSource::Inbox)
            .exit(143);
        assert_eq!(work.orders(), commits(1, 0));
        let work = work.scm_tasks("s");
        assert!(!work.state.has_uncommitted_work());
        assert_eq!(
            work.state.status(Liveness::Idle),
            if request == Request::StopNow {
                Status::Stopped
            } else {
                Status::Paused
            }
        );
        let work = with(&[]).start().exit(0).ask(request, RequestSource::Inbox);
        assert_eq!(work.orders(), commits(1, 0), "while its checks run");
        let pressed = work.ask(request, RequestSource::Inbox);
        assert!(
            !pressed.is_committing() && pressed.state.has_uncommitted_work(),
            "a second request does not wait for the commit"
        );
        let work = with(&["push"])
            .start()
            .exit(0)
            .check("g")
            .ask(request, RequestSource::Inbox);
        assert_eq!(work.orders(), commits(1, 1), "the commit is waited for");
        assert!(!work.scm_tasks("s").is_committing(), "nothing is pushed");
        assert_eq!(
            pressed.resume().check("r").orders(),
            commits(1, 0),
            "a resume makes up for it"
        );
    }
}

#[test]
fn the_commit_is_still_due_after_a_crash() {
    let work = with(&[]).start().open();
    assert!(work.is_checking());
    assert_eq!(work.check("r").orders(), commits(1, 0));
    let work = with(&[])
        .start()
        .exit(0)
        .ask(Request::StopNow, RequestSource::Inbox)
        .open();
    assert_eq!(
        work.orders(),
        commits(1, 0),
        "an immediate stop skips the checks"
    );
    let work = with(&[]).start().exit(0).check("g").open();
    assert!(work.is_checking(), "the checks run again");
    assert!(work.check("g").scm_tasks("s").is_done());
}

#[test]
fn a_resume_repeats_a_failed_commit_first() {
    let work = with(&[]).start().exit(0).check("r").fault();
    assert!(matches!(work.outcome(), Outcome::Fatal { .. }) && work.state.has_uncommitted_work());
    assert_eq!(work.resume().check("r").orders(), commits(1, 0));
    let limited = TestLoop::new()
        .checks(1)
        .no_promise()
        .worktree()
        .at_most(1)
        .open()
        .check("r")
        .start()
        .exit(0)
        .check("r");
    let work = limited.scm_tasks("f").resume();
    assert!(work.is_checking(), "a person may have fixed the cause");
    assert_eq!(work.check("r").orders(), commits(1, 0));
}

#[test]
fn a_state_written_before_worktrees_existed_can_be_read() {
    let work = TestLoop::new()
        .checks(1)
        .no_promise()
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
