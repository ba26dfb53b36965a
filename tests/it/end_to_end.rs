//! The main use case, end to end.

use crate::kit::Test;

const AGENT: &str = "script:../agent.script";

#[test]
fn a_red_check_that_turns_green_ends_a_loop_that_asks_for_no_claim() {
    let test =
        Test::git().script("iteration 1\n  say looking\niteration 2\n  write fixed\n  | yes\n");
    let done = test.ralph(&[
        "run",
        "fix",
        "it",
        "--name",
        "a",
        "--check",
        "test -f fixed",
        "--until-green",
        "--agent",
        AGENT,
    ]);
    done.exits(0)
        .says("[ralph] a: starting iteration 1/25")
        .says("loop complete after 2 iterations");
    assert_eq!(test.status("a")["stop_reason"], "all_checks_passed");
    assert_eq!(test.events("a", "started").len(), 2);
}
