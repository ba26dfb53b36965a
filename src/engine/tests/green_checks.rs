//! When green checks end a loop without an explicit claim.

use super::kit::{TestLoop, Transition};
use crate::engine::event::{AgentReport, Event, Notice, ProcessExit};
use crate::engine::failure::FailureKind;
use crate::engine::proven::Basis;
use crate::engine::{Limit, Outcome};

const PROMISE: &str = "Everything works.\n\n<promise>COMPLETE</promise>";

/// Returns a loop in git whose first iteration changed something and left the check green.
fn green_after_a_change() -> TestLoop {
    TestLoop::new()
        .checks(1)
        .tree("start")
        .open()
        .check("r")
        .start()
        .say("A part.")
        .tree("changed")
        .check("g")
}

#[test]
fn an_iteration_that_begins_and_ends_green_and_changes_nothing_is_a_claim() {
    let work = green_after_a_change();
    assert_eq!(work.runs(), Some(2));
    let done = work.start().say("Nothing left.").check("g");
    assert_eq!(done.outcome(), Outcome::Done { checked: true });
    assert_eq!(done.state.done_basis(), Some(Basis::NothingLeft));
}

#[test]
fn an_idle_iteration_is_no_claim_if_anything_else_is_different() {
    let idle: [(&str, Transition); 11] = [
        ("it does not want to promise", |work| {
            work.say("I cannot write <promise>COMPLETE</promise> yet.")
                .check("g")
        }),
        ("it changed something", |work| {
            work.say("").tree("more").check("g")
        }),
        ("it ended red", |work| work.say("").check("r")),
        ("it failed", |work| work.exit(1).check("g")),
        ("it was silent for too long", |work| {
            work.notice(Notice::Silence).exit(143).check("g")
        }),
        ("it went back to the start", |work| {
            work.say("").tree("start").check("g")
        }),
        ("its content is unknown", |mut work| {
            work.tree = None;
            work.say("").check("g")
        }),
        ("it was denied something", |work| {
            work.end(AgentReport {
                exit: ProcessExit::from_code(0),
                denied: 1,
                ..AgentReport::default()
            })
            .check("g")
        }),
        ("it named a failure", |work| {
            work.end(AgentReport {
                exit: ProcessExit::from_code(0),
                reason: Some(FailureKind::Refused.into()),
                ..AgentReport::default()
            })
            .check("g")
        }),
        ("it was killed", |work| {
            work.end(AgentReport {
                exit: ProcessExit {
                    code: None,
                    signal: Some(9),
                },
                ..AgentReport::default()
            })
            .check("g")
        }),
        ("it is blocked", |work| {
            work.say("<blocked>no key</blocked>").check("g")
        }),
    ];
    for (name, end) in idle {
        let work = end(green_after_a_change().start());
        assert!(!work.is_done(), "{name}");
    }
}

#[test]
fn an_idle_iteration_is_no_claim_if_it_began_red_or_nothing_has_changed_since_the_start() {
    let red = TestLoop::new().checks(1).tree("start").open().check("r");
    let began_red = red.clone().start().say("").tree("changed").check("r");
    assert_eq!(began_red.start().say("").check("g").runs(), Some(3));

    let unchanged = red.start().say("").check("g");
    assert_eq!(unchanged.start().say("").check("g").runs(), Some(3));

    let outside_git = TestLoop::preflight("g").start().say("").check("g");
    assert_eq!(outside_git.start().say("").check("g").runs(), Some(3));
}

#[test]
fn an_idle_iteration_is_no_claim_if_a_signal_was_asked_for() {
    let work = TestLoop::new()
        .checks(1)
        .promise("SHIPPED")
        .tree("start")
        .open()
        .check("r")
        .start()
        .say("")
        .tree("changed")
        .check("g");
    assert_eq!(work.start().say("").check("g").runs(), Some(3));
}

/// Returns a loop with one check, in git, that asks for no claim.
fn until_green(color: &str) -> TestLoop {
    let work = TestLoop::new().checks(1).no_promise();
    work.tree("start").open().check(color)
}

#[test]
fn until_green_ends_as_soon_as_the_checks_are_green() {
    let work = until_green("r");
    assert_eq!(work.runs(), Some(1));
    assert!(work.state.expected_signals().is_empty());
    let done = work.start().exit(1).tree("changed").check("g");
    assert_eq!(done.outcome(), Outcome::Done { checked: true });
    assert_eq!(done.state.done_basis(), Some(Basis::GreenChecks));
}

#[test]
fn until_green_has_nothing_to_do_if_the_checks_are_green_at_the_start() {
    let done = until_green("g");
    assert_eq!(done.outcome(), Outcome::Done { checked: true });
    assert_eq!(done.state.iteration, 0);
    assert_eq!(done.state.done_basis(), Some(Basis::GreenAtStart));
}

#[test]
fn until_green_never_ends_on_an_unchanged_tree_without_a_claim() {
    let work = until_green("r").start().say("").check("g");
    assert_eq!(work.runs(), Some(2));
    assert!(work.state.is_green_without_change());
    assert_eq!(work.state.expected_promise().as_deref(), Some("COMPLETE"));
    assert!(work.clone().start().say(PROMISE).check("g").is_done());
    assert_eq!(work.clone().start().say("").check("g").runs(), Some(3));
    let changed = work.start().say("").tree("changed").check("g");
    assert!(changed.is_done());
}

#[test]
fn until_green_outside_git_needs_only_green_checks() {
    let work = TestLoop::new().checks(1).no_promise().open().check("r");
    assert!(work.start().say("").check("g").is_done());
}

#[test]
fn until_green_without_preflight_compares_with_the_tree_at_the_first_start() {
    let started = |tree: &str| {
        let work = TestLoop::new().checks(1).no_promise().no_preflight().open();
        let work = work.feed(Event::Started {
            iteration: 1,
            agent: None,
            tree: Some("start".into()),
            baseline: None,
            version: None,
        });
        work.say("").tree(tree).check("g")
    };
    assert_eq!(started("start").runs(), Some(2));
    assert!(started("changed").is_done());
}

#[test]
fn journals_without_rules_keep_theirs() {
    let work = || TestLoop::new().checks(1).first_rules();
    let turned = work()
        .open()
        .check("r")
        .start()
        .say("I fixed it.")
        .check("g");
    assert_eq!(turned.outcome(), Outcome::Done { checked: true });
    assert_eq!(turned.state.done_basis(), Some(Basis::GreenChecks));
    assert!(work().open().check("r").state.promises().is_empty());
    let green = work().open().check("g");
    assert_eq!(green.clone().start().say("").check("g").runs(), Some(2));
    assert!(green.start().say(PROMISE).check("g").is_done());
    let no_promise = TestLoop::new().checks(1).no_promise().first_rules();
    let plain = no_promise.at_most(1).open().check("g");
    assert!(plain.state.is_plain());
    assert_eq!(
        plain.start().say("").check("g").outcome(),
        Outcome::Limit {
            limit: Limit::Iterations,
            success: true
        }
    );
}
