//! Denied actions: when they end a loop, and when they do not.

use super::kit::TestLoop;
use crate::engine::event::{AgentReport, Fault, ProcessExit};
use crate::engine::failure::FailureKind;
use crate::engine::plan::{AllowRule, Approve};
use crate::engine::{Limit, Outcome};

fn failed(kind: FailureKind) -> AgentReport {
    AgentReport {
        exit: ProcessExit::from_code(1),
        cost_usd: Some(0.0),
        reason: Some(kind.into()),
        ..AgentReport::default()
    }
}

fn fault(work: &TestLoop) -> Option<Fault> {
    match work.state.outcome() {
        Some(Outcome::Fatal { class, .. }) => Some(*class),
        _ => None,
    }
}

#[test]
fn a_loop_ends_once_every_iteration_up_to_the_failure_limit_was_denied_everything() {
    let denied = || AgentReport {
        denied: 1,
        denial: Some("Bash npm test".into()),
        denials: vec!["Bash npm test".into()],
        ..failed(FailureKind::Denied)
    };
    let start = || {
        TestLoop::new().with(|plan| {
            plan.limits.failures = Some(3);
            plan.agent.approve = Some(Approve::Edits);
            plan.agent.allow = vec![AllowRule {
                tool: "Bash".into(),
                hint: "add Bash({about})".into(),
            }];
        })
    };
    let again = |work: TestLoop, report| work.start().end(report).after(300_000);
    let twice = again(again(start().open(), denied()), denied());
    assert_eq!((fault(&twice), twice.state.consecutive_failures), (None, 2));
    let work = twice.start().end(denied());
    assert_eq!(fault(&work), Some(Fault::Permission));
    let detail = work.state.outcome().unwrap().summary().detail;
    assert!(
        detail.ends_with(
            "everything it tried was denied (Bash npm test): add Bash(npm test), or allow more \
             with --approve all"
        ),
        "{detail}"
    );
    let worked = again(
        again(again(start().open(), denied()), denied()),
        AgentReport {
            exit: ProcessExit::from_code(0),
            finished: true,
            denied: 1,
            ..AgentReport::default()
        },
    );
    let work = again(again(worked, denied()), denied());
    assert_eq!(fault(&work), None, "an iteration in between did something");
    let mixed = again(
        again(start().open(), failed(FailureKind::Crashed)),
        denied(),
    );
    let work = mixed.start().end(denied());
    assert_eq!(
        work.state.outcome(),
        Some(&Outcome::Limit {
            limit: Limit::Failures,
            success: false
        }),
        "not only denials"
    );
}
