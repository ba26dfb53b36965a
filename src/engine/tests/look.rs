//! The second look: when it is taken, what it decides, and how a dispute ends.

use super::kit::{TestLoop, green, red};
use crate::engine::event::{CheckReport, Event, Request, RequestSource};
use crate::engine::look::{LookVerdict, SecondLook};
use crate::engine::plan::SetupCommand;
use crate::engine::prompt::{PromptInputs, render};
use crate::engine::receipt::{Receipt, ReceiptHistory};
use crate::engine::test_counts::TestCounts;
use crate::engine::touched::{FileChange, TouchedFiles};
use crate::engine::{Effect, Limit, Outcome, Phase};

const PROMISE: &str = "<promise>COMPLETE</promise>";

fn touched_test() -> TouchedFiles {
    let mut touched = TouchedFiles::default();
    let path = || "tests/sum.py".into();
    touched.guards.add(path, FileChange::Changed, 1);
    touched
}

impl TestLoop {
    fn second_look(self, mode: SecondLook) -> Self {
        self.with(|plan| plan.proof.second_look = mode)
    }

    fn survey(self, touched: TouchedFiles) -> Self {
        let iteration = self.state.iteration;
        let order = Effect::Survey { iteration };
        assert!(self.orders().contains(&order), "{:?}", self.state.phase);
        self.feed(Event::Surveyed {
            iteration,
            touched,
            weaknesses: vec![],
            failure: None,
        })
    }

    /// Ends the ordered checks in the view one by one: `g` green, `r` red.
    fn recheck(mut self, colors: &str) -> Self {
        for color in colors.chars() {
            let orders = self.orders();
            let [.., Effect::Recheck { iteration, check }] = orders[..] else {
                panic!("no check is ordered in the view: {orders:?}")
            };
            let report = if color == 'g' { green() } else { red() };
            self = self.feed(Event::Rechecked {
                iteration,
                check,
                report,
            });
        }
        self
    }

    fn verdict(&self) -> LookVerdict {
        self.state.look_verdict()
    }
}

/// Returns a loop with two checks whose first iteration claims to be done and is green.
fn claimed(mode: SecondLook) -> TestLoop {
    let work = TestLoop::new().checks(2).second_look(mode);
    work.open().check("rr").start().say(PROMISE).check("gg")
}

#[test]
fn nothing_is_surveyed_without_a_second_look() {
    assert!(claimed(SecondLook::Never).is_done());
}

#[test]
fn a_loop_that_touched_only_sources_runs_no_second_check() {
    let mut sources = TouchedFiles::default();
    sources
        .sources
        .add(|| "src/lib.rs".into(), FileChange::Changed, 3);
    let done = claimed(SecondLook::Auto).survey(sources);
    assert!(done.is_done());
    assert_eq!(done.verdict(), LookVerdict::Untouched);
    let summary = done.state.outcome_summary().unwrap();
    assert_eq!(summary.detail, "every check is green");
}

#[test]
fn always_runs_the_checks_again_although_nothing_was_touched() {
    let work = claimed(SecondLook::Always).survey(TouchedFiles::default());
    assert_eq!(work.verdict(), LookVerdict::Recheck(0));
    let done = work.recheck("gg");
    assert!(done.is_done());
    let summary = done.state.outcome_summary().unwrap();
    assert_eq!(
        summary.detail,
        "every check is green, by the original tests too; red turned green and nothing was changed"
    );
}

#[test]
fn a_touched_test_is_no_dispute_if_the_original_is_green_too() {
    let done = claimed(SecondLook::Auto)
        .survey(touched_test())
        .recheck("gg");
    assert!(done.is_done());
    let summary = done.state.outcome_summary().unwrap();
    assert_eq!(
        summary.detail,
        "every check is green, by the original tests too (1 test or settings file changed); red \
         turned green and no source file changed: only tests/sum.py"
    );
}

#[test]
fn an_iteration_without_a_claim_needs_no_look() {
    let work = TestLoop::new().checks(1).second_look(SecondLook::Always);
    let work = work.open().check("r").start().say("A part.").check("g");
    assert_eq!(work.runs(), Some(2));
}

#[test]
fn the_agent_is_told_once_and_then_a_person_decides() {
    let work = claimed(SecondLook::Auto)
        .survey(touched_test())
        .recheck("gr");
    assert_eq!(work.runs(), Some(2), "{:?}", work.state.phase);
    let prompt = render(&work.state, &PromptInputs::default());
    assert!(prompt.contains("red with the tests and settings"));
    assert!(prompt.contains("- `make test1` (exit 1)"), "{prompt}");
    assert!(!prompt.contains("- `make test0` (exit"), "{prompt}");
    assert!(prompt.contains("- `tests/sum.py`"), "{prompt}");

    let again = work.start().say(PROMISE).check("gg");
    let ended = again.survey(touched_test()).recheck("gr");
    let files = vec!["tests/sum.py".to_owned()];
    assert_eq!(ended.outcome(), Outcome::Disputed { files, why: None });
}

#[test]
fn lost_tests_are_disputed_although_every_check_is_green() {
    let lost = || {
        let mut touched = TouchedFiles::default();
        for list in [&mut touched.guards, &mut touched.lost_tests] {
            list.add(|| "src/one.rs".into(), FileChange::Deleted, 1);
        }
        touched
    };
    for sealed in [false, true] {
        let work = TestLoop::new().checks(2).second_look(SecondLook::Auto);
        let work = work.with(|plan| plan.proof.sealed = sealed);
        let work = work.open().check("rr");
        let iterate = |work: TestLoop| {
            let work = work.start().say(PROMISE);
            if sealed {
                work.survey(lost()).check("gg")
            } else {
                work.check("gg").survey(lost()).recheck("gg")
            }
        };
        let work = iterate(work);
        assert_eq!(work.verdict(), LookVerdict::Disputed);
        assert_eq!(work.runs(), Some(2), "{:?}", work.state.phase);
        let prompt = render(&work.state, &PromptInputs::default());
        assert!(prompt.contains("no other source has the tests"), "{prompt}");
        assert!(prompt.contains("- `src/one.rs`"), "{prompt}");
        assert!(!prompt.contains("were restored"), "{prompt}");
        let Outcome::Disputed { files, why } = iterate(work).outcome() else {
            panic!("not disputed");
        };
        assert_eq!(files, ["src/one.rs"]);
        let expected = "the tests that were in src/one.rs are in no other source";
        assert_eq!(why.as_deref(), Some(expected));
    }
}

#[test]
fn an_agent_that_is_told_can_fix_the_code() {
    let work = claimed(SecondLook::Auto)
        .survey(touched_test())
        .recheck("rg");
    let work = work.start().say(PROMISE).check("gg");
    assert!(work.survey(touched_test()).recheck("gg").is_done());
}

#[test]
fn a_reason_for_the_change_ends_the_loop_at_once() {
    let work = TestLoop::new().checks(1).second_look(SecondLook::Auto);
    let work = work.open().check("r").start();
    let said = format!("<changed>the task renames the test</changed>\n\n{PROMISE}");
    let ended = work
        .say(&said)
        .check("g")
        .survey(touched_test())
        .recheck("r");
    let Outcome::Disputed { why, .. } = ended.outcome() else {
        panic!("{:?}", ended.outcome())
    };
    assert_eq!(why.as_deref(), Some("the task renames the test"));
}

#[test]
fn without_an_iteration_left_the_ending_is_disputed_and_not_the_limit() {
    let work = TestLoop::new().checks(1).second_look(SecondLook::Auto);
    let work = work.at_most(1).open().check("r").start();
    let ended = work.say(PROMISE).check("g").survey(touched_test());
    assert!(matches!(
        ended.recheck("r").outcome(),
        Outcome::Disputed { .. }
    ));
}

#[test]
fn a_look_that_is_not_possible_asks_a_person() {
    let work = claimed(SecondLook::Auto);
    let ended = work.feed(Event::Surveyed {
        iteration: 1,
        touched: touched_test(),
        weaknesses: vec![],
        failure: Some("the copies of the tests are missing".into()),
    });
    let summary = ended.state.outcome_summary().unwrap();
    assert_eq!(
        (&*summary.kind, &*summary.why),
        ("disputed", "tests/sum.py")
    );
    assert!(
        summary
            .detail
            .ends_with("; the copies of the tests are missing")
    );
}

fn disputed() -> TestLoop {
    let work = claimed(SecondLook::Auto)
        .survey(touched_test())
        .recheck("rr");
    let again = work.start().say(PROMISE).check("gg");
    again.survey(touched_test()).recheck("rr")
}

#[test]
fn accepted_changes_repeat_the_checks_without_an_agent() {
    let work = disputed().feed(Event::Accepted {
        globs: vec!["tests/*".into()],
        inbox: None,
    });
    let work = work.resume();
    assert!(work.is_checking(), "{:?}", work.state.phase);
    assert_eq!(work.state.look.accepted, ["tests/*"]);
    let done = work.check("gg").survey(TouchedFiles::default());
    assert!(done.is_done());
    assert_eq!(done.state.iteration, 2);
}

#[test]
fn a_loop_resumed_without_accepting_goes_on_with_its_agent() {
    let work = disputed().resume();
    assert_eq!(work.runs(), Some(3));
    let prompt = render(&work.state, &PromptInputs::default());
    assert!(prompt.contains("red with the tests and settings"));
    // The count begins anew: the agent is told once more before a person is asked again.
    let work = work.start().say(PROMISE).check("gg");
    let work = work.survey(touched_test()).recheck("rr");
    assert!(matches!(work.outcome(), Outcome::Disputed { .. }));
}

#[test]
fn nothing_is_committed_before_the_look() {
    let work = TestLoop::new().checks(1).tasks(&["commit", "push"]);
    let work = work.second_look(SecondLook::Auto).open().check("r").start();
    let work = work.say("A part.").check("g");
    assert_eq!(work.state.phase, Phase::Looking);
    let agreed = work.clone().survey(touched_test()).recheck("g");
    assert!(agreed.is_committing());
    let red = work.survey(touched_test()).recheck("r");
    assert_eq!(red.runs(), Some(2), "{:?}", red.state.phase);
    assert!(red.state.scm.reports.is_empty());
}

#[test]
fn the_worktree_is_committed_although_the_work_is_disputed() {
    let work = TestLoop::new().checks(1).worktree();
    let work = work.second_look(SecondLook::Auto).open().check("r").start();
    let work = work.say(PROMISE).check("g").survey(touched_test());
    assert!(work.recheck("r").is_committing());
}

#[test]
fn a_crash_during_the_look_begins_again_with_the_checks() {
    for work in [
        claimed(SecondLook::Auto),
        claimed(SecondLook::Auto).survey(touched_test()),
        claimed(SecondLook::Auto)
            .survey(touched_test())
            .recheck("g"),
    ] {
        let work = work.open();
        assert!(work.is_checking());
        let work = work.check("gg").survey(touched_test());
        assert!(work.recheck("gg").is_done());
    }
}

#[test]
fn an_immediate_stop_ends_the_look() {
    let work = claimed(SecondLook::Auto).survey(touched_test());
    let stopped = work.ask(Request::StopNow, RequestSource::Inbox);
    assert!(matches!(stopped.outcome(), Outcome::Stopped { .. }));
    let paused = claimed(SecondLook::Auto).ask(Request::PauseNow, RequestSource::Inbox);
    assert!(paused.is_paused());
}

#[test]
fn the_look_counts_against_the_time_limit() {
    let work = TestLoop::new().checks(1).second_look(SecondLook::Auto);
    let work = work.with(|plan| plan.limits.time_ms = Some(1000));
    let work = work.open().check("r").start().say(PROMISE).check("g");
    let ended = work.survey(touched_test()).after(1000);
    assert_eq!(ended.limit(), Limit::Time);
}

fn counted(passed: u64) -> CheckReport {
    let tests = TestCounts {
        passed,
        ..TestCounts::default()
    };
    CheckReport {
        tests: Some(tests),
        ..green()
    }
}

/// Ends the first check of an iteration.
fn check(work: TestLoop, iteration: u32, report: CheckReport) -> TestLoop {
    work.feed(Event::Checked {
        iteration,
        check: 0,
        report,
        tree: None,
        written: vec![],
    })
}

#[test]
fn a_check_that_ran_fewer_tests_than_at_the_start_is_disputed() {
    let work = TestLoop::new().checks(1).second_look(SecondLook::Auto);
    let work = check(work.open(), 0, counted(5)).start().say(PROMISE);
    let fewer = check(work.clone(), 1, counted(4)).survey(TouchedFiles::default());
    let red = fewer.feed(Event::Rechecked {
        iteration: 1,
        check: 0,
        report: counted(4),
    });
    let prompt = render(&red.state, &PromptInputs::default());
    assert!(prompt.contains("(4 tests ran, 5 at the start)"), "{prompt}");
    let as_many = check(work, 1, counted(5)).survey(TouchedFiles::default());
    assert!(as_many.is_done());
}

#[test]
fn a_check_that_does_not_count_its_tests_any_more_is_judged_by_the_original_runner() {
    let work = TestLoop::new().checks(1).second_look(SecondLook::Auto);
    let work = check(work.open(), 0, counted(5)).start().say(PROMISE);
    let work = check(work, 1, green()).survey(TouchedFiles::default());
    assert_eq!(work.verdict(), LookVerdict::Recheck(0));
    let end = |report| {
        work.clone().feed(Event::Rechecked {
            iteration: 1,
            check: 0,
            report,
        })
    };
    assert!(end(counted(5)).is_done());
    let prompt = render(&end(green()).state, &PromptInputs::default());
    let why = "(its output has no number of tests, 5 ran at the start)";
    assert!(prompt.contains(why), "{prompt}");
    assert!(!prompt.contains("These files were restored"), "{prompt}");
}

/// Returns a sealed loop whose check ran five tests at the start, in its first iteration.
fn sealed() -> TestLoop {
    let work = TestLoop::new().checks(1).second_look(SecondLook::Auto);
    let work = work.with(|plan| plan.proof.sealed = true).open();
    let work = check(work, 0, counted(5)).start().say(PROMISE);
    work.survey(touched_test())
}

#[test]
fn a_sealed_loop_is_disputed_if_its_checks_prove_less_than_at_the_start() {
    assert!(check(sealed(), 1, counted(5)).is_done());
    let mut history = ReceiptHistory::default();
    let work = check(sealed(), 1, counted(4));
    history.add(
        &Event::Checked {
            iteration: 1,
            check: 0,
            report: counted(4),
            tree: None,
            written: vec![],
        },
        &work.state,
        String::new,
    );
    assert_eq!(history.disputes[0].files, ["tests/sum.py"]);
    let receipt = Receipt::new(&work.state, history);
    assert_eq!(receipt.checks[0].result, None);
    let original = receipt.checks[0].original.as_ref().expect("it ran");
    assert_eq!(original.tests.map(|tests| tests.passed), Some(4));

    assert_eq!(work.runs(), Some(2), "{:?}", work.state.phase);
    let prompt = render(&work.state, &PromptInputs::default());
    assert!(prompt.contains("(4 tests ran, 5 at the start)"), "{prompt}");
    assert!(prompt.contains("always run with the tests"), "{prompt}");
    let again = work.start().say(PROMISE).survey(touched_test());
    let ended = check(again, 2, green());
    assert!(matches!(ended.outcome(), Outcome::Disputed { .. }));
}

#[test]
fn a_dispute_by_a_red_setup_is_part_of_the_receipt() {
    let setup = SetupCommand {
        command: "npm ci".into(),
        timeout_ms: 1000,
    };
    let work = TestLoop::new().checks(1).second_look(SecondLook::Auto);
    let work = work.with(|plan| plan.proof.setup = Some(setup)).open();
    let work = work.check("r").start().say(PROMISE).check("g");
    let event = Event::SetUp {
        iteration: 1,
        report: red(),
    };
    let work = work.survey(touched_test()).feed(event.clone());
    let mut history = ReceiptHistory::default();
    history.add(&event, &work.state, String::new);
    assert_eq!(history.disputes.len(), 1);
}

#[test]
fn a_held_out_check_that_is_red_only_in_the_view_counts_as_a_peek() {
    let work = TestLoop::new().checks(2).second_look(SecondLook::Auto);
    let work = work.with(|plan| plan.proof.checks[1].is_held_out = true);
    let work = work.open().check("r").start().say(PROMISE).check("gg");
    let work = work.survey(touched_test());
    let known = work.clone().recheck("rg").start();
    assert_eq!(known.state.peeks_used(), 0);
    let told = work.recheck("gr");
    assert_eq!(told.state.peeks_used(), 1);
    assert_eq!(told.start().state.peeks_used(), 1);
}

#[test]
fn stale_results_change_nothing() {
    let work = claimed(SecondLook::Auto).survey(touched_test());
    let stale = work
        .clone()
        .feed(Event::Rechecked {
            iteration: 0,
            check: 0,
            report: red(),
        })
        .feed(Event::Rechecked {
            iteration: 1,
            check: 1,
            report: red(),
        })
        .feed(Event::Surveyed {
            iteration: 1,
            touched: TouchedFiles::default(),
            weaknesses: vec![],
            failure: None,
        });
    assert_eq!(stale.state, work.state);
}
