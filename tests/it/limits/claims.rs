//! Claims with which an agent ends its loop: waiting, blocked or done.

use super::{assert_ended, run};
use crate::kit::Test;

#[test]
fn the_exit_code_for_waiting_ends_a_loop() {
    let test = Test::new().script("iteration 2\n exit 42\n");
    run(&test, &[]).exits(3);
    assert_ended(&test, "waiting", 2);
    let status = test.status("a");
    assert_eq!(
        (&status["status"], &status["outcome"]["why"]),
        (&"waiting".into(), &"exit 42".into())
    );
    assert_eq!(status["total_failures"], 0);
    test.ralph(&["resume", "a"])
        .exits(1)
        .says("starting iteration 3/25");
}

#[test]
fn the_exit_code_for_waiting_can_be_changed() {
    let test = Test::new().script("iteration 1\n exit 42\niteration *\n exit 7\n");
    run(&test, &["--exit-waiting", "7"]).exits(3);
    assert_ended(&test, "waiting", 2);
    assert_eq!(
        test.status("a")["total_failures"],
        1,
        "42 is now a failure like any other"
    );
}

#[test]
fn the_wait_marker_ends_a_loop() {
    let test = Test::new().script("iteration 1\n mark WAIT\n");
    run(&test, &[]).exits(3);
    assert_ended(&test, "waiting", 1);
    assert_eq!(test.status("a")["outcome"]["why"], "WAIT marker");
    assert!(
        test.loop_dir("a").join("iterations/0001/WAIT").exists(),
        "it counts once"
    );
}

#[test]
fn a_blocked_tag_ends_a_loop_with_its_text() {
    let test = Test::new().script("iteration 1\n blocked Which port should it use?\n");
    run(&test, &[]).exits(3).says("Which port should it use?");
    assert_ended(&test, "blocked", 1);
    assert_eq!(
        test.status("a")["outcome"]["why"],
        "Which port should it use?"
    );
}

#[test]
fn a_blocked_marker_ends_a_loop_with_its_text() {
    let test = Test::new().script("iteration 1\n mark BLOCKED Which port should it use?\n");
    run(&test, &["--check", "false"]).exits(3);
    assert_ended(&test, "blocked", 1);
    assert_eq!(
        test.status("a")["outcome"]["why"],
        "Which port should it use?"
    );
    assert_eq!(test.status("a")["outcome"]["kind"], "blocked");
}

#[test]
fn a_done_pattern_stops_the_running_agent_and_the_checks_decide() {
    let test = Test::new().script(
        "iteration 1\n say All is DONE here\n hang\niteration 2\n write fixed\n  | yes\n say All is DONE here\n hang\n",
    );
    let done = run(
        &test,
        &["--done-pattern", "is DONE", "--check", "test -f fixed"],
    )
    .exits(0);
    done.says("done pattern matched, stopping the agent")
        .says("[ralph] a: loop complete after 2 iterations");
    assert_ended(&test, "all_checks_passed", 2);
    assert_eq!(
        test.status("a")["total_failures"],
        0,
        "what ralph stopped did not fail"
    );
}

#[test]
fn a_requested_done_pattern_is_required_even_if_the_checks_turn_green() {
    let test = Test::new()
        .script("iteration 1\n write fixed\n  | yes\niteration 2\n say finished\n exit 1\n");
    run(
        &test,
        &["--done-pattern", "^finished$", "--check", "test -f fixed"],
    )
    .exits(0);
    assert_ended(&test, "all_checks_passed", 2);
}

#[test]
fn a_done_file_is_a_claim() {
    let test = Test::new().script("iteration 2\n write out/result\n  | yes\n");
    run(&test, &["--done-file", "out/result"]).exits(0);
    assert_ended(&test, "completed", 2);
    assert!(
        test.workspace().join("out/result").exists(),
        "it is the user's own, and stays"
    );
}
