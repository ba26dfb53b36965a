//! When checkpoints are taken, and which iteration is the best.

use super::kit::{TestLoop, red};
use crate::engine::event::{CheckReport, Event};
use crate::engine::test_counts::TestCounts;
use crate::engine::{Effect, Phase};

fn work(checks: usize) -> TestLoop {
    TestLoop::new()
        .checks(checks)
        .with(|plan| plan.checkpoints = true)
}

impl TestLoop {
    /// Takes the checkpoint that is ordered, or reports that it cannot be taken.
    fn checkpoint(self, tree: Option<&str>, failure: Option<&str>) -> Self {
        let orders = self.state.orders();
        let [.., Effect::Checkpoint { iteration }] = orders[..] else {
            panic!("no checkpoint is ordered: {orders:?}")
        };
        self.feed(Event::Checkpointed {
            iteration,
            tree: tree.map(str::to_owned),
            commit: tree.map(str::to_owned),
            skipped: vec![],
            failure: failure.map(str::to_owned),
            head: None,
        })
    }

    fn store(self, tree: &str) -> Self {
        self.checkpoint(Some(tree), None)
    }

    fn rewound(self, to: &str) -> Self {
        self.feed(Event::Rewound {
            to: to.into(),
            inbox: None,
        })
    }

    fn best(&self) -> Option<u32> {
        self.state.best_iteration().map(|best| best.iteration)
    }

    fn better(&self) -> Option<u32> {
        self.state.better_iteration().map(|best| best.iteration)
    }
}

#[test]
fn a_checkpoint_comes_before_preflight_and_before_each_iterations_checks() {
    let started = work(1).open().store("t0").check("r").start();
    assert_eq!(started.state.checkpoint.newest, Some(0));
    let ended = started.exit(0);
    assert_eq!(ended.orders(), [Effect::Checkpoint { iteration: 1 }]);
    let stored = ended.store("t1");
    let check = Effect::Check {
        iteration: 1,
        check: 0,
    };
    assert_eq!(stored.orders(), [check]);
    assert_eq!(stored.check("r").runs(), Some(2));
}

#[test]
fn loops_without_checks_or_preflight_have_checkpoints_too() {
    let plain = work(0).open().store("t0").start().exit(0);
    assert_eq!(plain.store("t1").runs(), Some(2));
    let open = work(1).no_preflight().open();
    assert_eq!(open.orders(), [Effect::Checkpoint { iteration: 0 }]);
    assert_eq!(open.clone().open().orders(), open.orders(), "after a crash");
    assert_eq!(open.store("t0").runs(), Some(1), "its checks have not run");
}

#[test]
fn journals_of_earlier_versions_have_none() {
    let old = TestLoop::new().checks(1).open();
    assert!(matches!(old.orders()[..], [Effect::Check { .. }]));
    assert!(old.check("r").start().exit(0).check("r").best().is_none());
}

#[test]
fn outside_git_only_the_first_is_ordered_and_a_failure_is_retried() {
    let outside = work(1).open().checkpoint(None, None).check("r");
    let ended = outside.start().exit(0);
    assert!(matches!(ended.orders()[..], [Effect::Check { .. }]));
    let failed = work(1).open().checkpoint(None, Some("disk full"));
    let ended = failed.check("r").start().exit(0);
    assert_eq!(ended.orders(), [Effect::Checkpoint { iteration: 1 }]);
}

#[test]
fn a_checkpoint_of_another_iteration_is_stale() {
    let ended = work(1).open().store("t0").check("r").start().exit(0);
    let stale = ended.clone().feed(Event::Checkpointed {
        iteration: 0,
        tree: Some("x".into()),
        commit: None,
        skipped: vec![],
        failure: None,
        head: None,
    });
    assert_eq!(stale.orders(), ended.orders());
}

#[test]
fn an_interrupted_checkpoint_is_taken_again() {
    let ended = work(1).open().store("t0").check("r").start().exit(0);
    assert_eq!(
        ended.clone().open().orders(),
        [Effect::Checkpoint { iteration: 1 }]
    );
    let checking = ended.store("t1").open();
    assert_eq!(
        checking.orders(),
        [Effect::Checkpoint { iteration: 1 }],
        "files may have changed before the checks run again"
    );
}

#[test]
fn the_best_iteration_has_the_most_green_checks_and_is_the_latest_of_these() {
    let start = work(2).at_most(4).open().store("t0").check("rr");
    assert_eq!(start.best(), Some(0));
    let first = start.start().exit(0).store("t1").check("gr");
    let second = first.start().exit(0).store("t2").check("rg");
    assert_eq!((second.best(), second.better()), (Some(2), None));
    let third = second.start().exit(0).store("t3").check("rr");
    assert_eq!((third.best(), third.better()), (Some(2), Some(2)));
    let last = third.start().exit(0).store("t4").check("rg");
    assert!(matches!(last.state.phase, Phase::Ended(_)));
    assert_eq!((last.best(), last.better()), (Some(4), None));
}

#[test]
fn of_as_many_green_checks_the_iteration_with_most_passed_tests_is_the_best() {
    let check = |work: TestLoop, passed| {
        let iteration = work.state.iteration;
        let tests = TestCounts {
            passed,
            failed: 1,
            ..TestCounts::default()
        };
        let report = CheckReport {
            tests: Some(tests),
            ..red()
        };
        work.feed(Event::Checked {
            iteration,
            check: 0,
            report,
            tree: None,
            written: vec![],
        })
    };
    let start = check(work(1).at_most(3).open().store("t0"), 5);
    let first = check(start.start().exit(0).store("t1"), 9);
    assert_eq!((first.best(), first.better()), (Some(1), None));
    let second = check(first.start().exit(0).store("t2"), 7);
    assert_eq!((second.best(), second.better()), (Some(1), Some(1)));
    let last = check(second.start().exit(0).store("t3"), 9);
    assert_eq!((last.best(), last.better()), (Some(3), None));
}

#[test]
fn an_ending_before_the_checks_may_be_worse_than_the_best() {
    let green = work(2).open().store("t0").check("gr").start().exit(0);
    let faulted = green.store("t1").fault();
    assert_eq!(faulted.better(), Some(0));
    let same = work(2).open().store("t0").check("gr").start().exit(0);
    assert_eq!(same.store("t0").fault().better(), None, "the same files");
    let red = work(2).open().store("t0").check("rr").start().exit(0);
    assert_eq!(red.store("t1").fault().better(), None, "nothing was green");
}

#[test]
fn a_rewound_loop_checks_the_files_before_it_continues() {
    let start = work(2).at_most(1).open().store("t0").check("gr");
    let ended = start.start().exit(0).store("t1").check("rr");
    assert_eq!(ended.better(), Some(0));
    let rewound = ended.rewound("0");
    assert_eq!(rewound.better(), None);
    assert_eq!(rewound.state.answers.len(), 1);
    let mut resumed = rewound;
    resumed.state.plan.limits.iterations = Some(3);
    let resumed = resumed.resume();
    assert!(
        matches!(resumed.orders()[..], [Effect::Check { .. }]),
        "checkpoint 1 is kept: {:?}",
        resumed.orders()
    );
    let next = resumed.check("gr").start().exit(0);
    assert_eq!(next.best(), Some(0));
    assert_eq!(next.orders(), [Effect::Checkpoint { iteration: 2 }]);
}

#[test]
fn the_events_are_written_as_documented() {
    let lines = [
        r#"{"event":"checkpointed","iteration":2,"tree":"t1","commit":"c1","skipped":[".env"]}"#,
        r#"{"event":"checkpointed","iteration":2,"failure":"disk full"}"#,
        r#"{"event":"rewound","to":"undo","inbox":7}"#,
    ];
    for line in lines {
        let event: Event = serde_json::from_str(line).unwrap();
        assert_ne!(event, Event::Unknown);
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }
}
