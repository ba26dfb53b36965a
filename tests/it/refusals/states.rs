//! Commands that do not fit a loop's state: it is running, it has ended, or the command would change nothing.

use super::{AGENT, done, on_disk, refused, starts};
use crate::kit::{Test, until};
use crate::spawn::until_status;

/// Waits for the file `go`, and leaves the claim to the next iteration.
const WAITS: &str = "iteration 1\n sh touch here; until test -e go; do sleep 0.01; done\niteration *\n promise COMPLETE\n";

/// Starts a background loop called `auth` whose agent is running.
fn running_loop() -> Test {
    let test = Test::new().script(WAITS);
    test.ralph(&[&["spawn", "go", "--name", "auth"], &AGENT[..]].concat())
        .exits(0);
    until("the agent", || test.workspace().join("here").exists());
    test
}

/// No command can start or remove a loop under the name of a running one, which is not affected.
#[test]
fn the_name_of_a_living_loop_is_refused() {
    let test = running_loop();
    for args in starts("auth") {
        refused(
            &test,
            &args,
            "the loop \"auth\" is already starting or running",
            "`ralph status auth` shows what it does, `ralph stop auth` stops it",
        );
    }
    refused(
        &test,
        &["rm", "auth"],
        "cannot remove the loop \"auth\" while it is running",
        "run `ralph stop auth` first",
    );
    assert_eq!(test.ralph(&["ls", "--names"]).exits(0).out, "auth\n");
    test.write("go", "");
    until_status(&test, "auth", "done");
    assert_eq!(test.events("auth", "opened").len(), 1);
}

/// Commands that an ended loop cannot carry out are refused, each with what to do instead.
#[test]
fn an_ended_loop_cannot_be_steered() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    done(&test, "over");
    let again = "start a new loop with `ralph run`";
    for (args, error, hint) in [
        (
            &["pause", "over"][..],
            "cannot pause \"over\": it is not running, its status is done",
            "ralph status over",
        ),
        (&["resume", "over"], "\"over\" is done", again),
        (
            &["resume", "over", "--answer", "yes"],
            "\"over\" is done",
            again,
        ),
        (&["resume", "over", "--now"], "\"over\" is done", again),
        (
            &["say", "over", "hello"],
            "\"over\" is done: it has no next prompt",
            again,
        ),
        (
            &["set", "over", "max-iterations=9"],
            "\"over\" is done: limits no longer apply",
            again,
        ),
        (
            &["attach", "over"],
            "cannot attach to \"over\": it is not running, its status is done",
            "ralph logs over",
        ),
    ] {
        refused(&test, args, error, hint);
    }
    let before = on_disk(&test);
    let warned = test.ralph(&["stop", "over"]).exits(0);
    assert_eq!(
        (&warned.out[..], &warned.err[..]),
        (
            "",
            "ralph: warning: \"over\" is not running: its status is done\n"
        )
    );
    assert!(on_disk(&test) == before, "it changed something");
}

/// A loop at its limit is not paused or resumed either, but its limit can be raised, and then it
/// continues.
#[test]
fn a_loop_at_its_limit_is_resumed_only_with_a_higher_limit() {
    let test = Test::new().script("iteration 1\n say no\niteration 2\n promise COMPLETE\n");
    test.ralph(&[&["run", "go", "--name", "short", "-m", "1"], &AGENT[..]].concat())
        .exits(1);
    refused(
        &test,
        &["pause", "short"],
        "cannot pause \"short\": it is not running, its status is failed",
        "ralph status short",
    );
    refused(
        &test,
        &["resume", "short"],
        "has reached its limit (iterations)",
        "ralph set short max-iterations=",
    );
    let done = test.ralph(&["set", "short", "max-iterations=2"]).exits(0);
    assert_eq!(
        done.out,
        "set max-iterations=2 for short\nits status is failed; to continue, run `ralph resume short`\n"
    );
    test.ralph(&["resume", "short"]).exits(0);
}

/// A request that changes nothing is a warning: resuming a running loop, or pausing a paused one.
#[test]
fn a_request_without_effect_is_a_warning() {
    let test = running_loop();
    let warned = |args: &[&str], warning: &str| {
        let before = on_disk(&test);
        let done = test.ralph(args).exits(0);
        assert_eq!(
            (&done.out[..], done.err),
            ("", format!("ralph: warning: {warning}\n"))
        );
        assert!(on_disk(&test) == before, "{args:?} changed something");
    };
    warned(
        &["resume", "auth"],
        "\"auth\" is not paused: it is already running",
    );
    test.ralph(&["pause", "auth"]).exits(0);
    until("it is heard", || test.events("auth", "asked").len() == 1);
    warned(&["pause", "auth"], "\"auth\" is already paused or stopping");
    test.ralph(&["resume", "auth"]).exits(0);
    until("it is heard", || test.events("auth", "asked").len() == 2);
    warned(
        &["resume", "auth"],
        "\"auth\" is not paused: it is already running",
    );
    test.ralph(&["pause", "auth"]).exits(0);
    test.write("go", "");
    test.ralph(&["wait", "auth"]).exits(3);
    warned(&["pause", "auth"], "\"auth\" is already paused or stopping");
    test.ralph(&["stop", "auth"]).exits(0);
    warned(
        &["stop", "auth"],
        "\"auth\" is not running: its status is stopped",
    );
}

/// If a limit is already used up, nothing more starts; the output says so, and which limit would
/// allow more.
#[test]
fn setting_a_limit_below_the_usage_says_what_will_happen() {
    let test = running_loop();
    let done = test.ralph(&["set", "auth", "max-iterations=1"]).exits(0);
    let ends = "its iteration limit is reached (1 of 1): it ends after this iteration\n";
    assert_eq!(done.out, format!("set max-iterations=1 for auth\n{ends}"));
    let done = test.ralph(&["say", "auth", "mind the gap"]).exits(0);
    done.says(
        "its limits allow no further iteration; to allow more, run `ralph set auth max-iterations=2`\n",
    );
    test.ralph(&["set", "auth", "max-iterations=9"]).exits(0);
    test.ralph(&["set", "auth", "max-iterations=1"]).exits(0);
    test.write("go", "");
    test.ralph(&["wait", "auth"]).exits(1);
    let more = "`ralph set auth max-iterations=2 && ralph resume auth`\n";
    let done = test.ralph(&["set", "auth", "max-time=1h"]).exits(0);
    let why = "its status is failed, and its iteration limit is reached (1 of 1)";
    assert_eq!(
        done.out,
        format!("set max-time=1h for auth\n{why}; to continue, run {more}")
    );
    test.ralph(&["say", "auth", "mind the gap"])
        .exits(0)
        .says(&format!("its status is failed; to continue, run {more}"));
}
