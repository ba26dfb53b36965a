//! The documented behavior of background loops, scenario by scenario, in a window of a real tmux.

mod edges;
mod kills;
mod restarts;
mod window;

use crate::kit::{Done, Test, until};
use crate::spawn::tmux;

/// Records its prompt, reports that it works, and exits when the test releases this iteration.
const GATED: &str = "#!/bin/sh
cat > got-$RALPH_ITERATION.part && mv got-$RALPH_ITERATION.part got-$RALPH_ITERATION
echo working on $RALPH_ITERATION
until test -e go-$RALPH_ITERATION; do sleep 0.01; done
";

/// Spawns a loop called `agent` with these arguments. Its window shows plain lines.
fn spawn(test: &Test, args: &[&str]) -> Done {
    let mut command = test.ralph_command(&[&["spawn", "--name", "agent"], args].concat());
    command.env("NO_COLOR", "1");
    test.start_command(command).end()
}

/// Creates a test with the agent above and a prompt file.
fn gated() -> Test {
    Test::new()
        .program("agent", GATED)
        .file("PROMPT.md", "Do task A\n")
}

/// Waits until this iteration's agent is working.
fn until_works(test: &Test, iteration: u32) {
    until("the agent", || {
        test.workspace().join(format!("got-{iteration}")).exists()
    });
}

/// Lets this iteration's agent exit.
fn let_go(test: &Test, iteration: u32) {
    test.write(&format!("go-{iteration}"), "");
}

/// Returns everything the loop's window has shown, with wrapped lines joined.
fn window(test: &Test) -> String {
    tmux(
        test,
        &["capture-pane", "-p", "-J", "-S", "-", "-t", "=ralph:=agent"],
    )
}

/// Waits until the loop's window shows this.
#[track_caller]
fn until_window(test: &Test, expected: &str) {
    until(&format!("{expected:?} in the window"), || {
        window(test).contains(expected)
    });
}

/// Runs `ralph wait`, and asserts the loop's exit code and ending.
#[track_caller]
fn ends_with(test: &Test, code: i32, line: &str) {
    assert_eq!(
        test.ralph(&["wait", "agent"]).exits(code).out,
        format!("agent: {line}\n")
    );
}

/// Returns the number of iterations.
fn iterations(test: &Test) -> usize {
    test.events("agent", "started").len()
}
