//! `ralph say`: a message is in the next prompt once, and again if that iteration was cut short.

use crate::crash::{WAITS, crashed};
use crate::kit::{Test, until};

const AGENT: &str = "script:../agent.script";
const MESSAGE: &str = "skip the migration for now";

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "x", "--name", "a", "--agent", AGENT], more].concat()
}

#[test]
fn a_message_sent_during_a_run_is_only_in_the_next_prompt() {
    let script = format!(
        "iteration 1\n {WAITS}iteration 2\n say going on\niteration *\n promise COMPLETE\n"
    );
    let test = Test::new().script(&script);
    let live = test.start(&run(&[]));
    until("the agent", || test.workspace().join("here").exists());
    let done = test
        .ralph(&["say", "a", "skip", "the migration", "for now"])
        .exits(0);
    assert_eq!(done.out, "your message will be in the next prompt of a\n");
    until("its line", || test.events("a", "answered").len() == 1);
    live.until_out("your message will be in the next prompt");
    test.write("go", "");
    live.end().exits(0);
    let told: Vec<bool> = (1..=3)
        .map(|number| test.prompt("a", number).contains(MESSAGE))
        .collect();
    assert_eq!(told, [false, true, false]);
}

#[test]
fn a_message_is_repeated_after_a_crash_cut_its_iteration_short() {
    let script =
        format!("iteration 1\n exit 42\niteration 2\n {WAITS}iteration *\n promise COMPLETE\n");
    let test = Test::new().script(&script);
    test.ralph(&run(&[])).exits(3);
    let done = test.ralph(&["say", "a", MESSAGE]).exits(0);
    assert!(
        done.out
            .ends_with("its status is waiting; to continue, run `ralph resume a`\n"),
        "{}",
        done.out
    );
    let live = test.start(&["resume", "a"]);
    until("the agent", || test.workspace().join("here").exists());
    until("its line", || test.events("a", "spawned").len() == 2);
    crate::crash::crash(live);
    test.ralph(&["resume", "a"]).exits(0);
    let told: Vec<bool> = (1..=3)
        .map(|number| test.prompt("a", number).contains(MESSAGE))
        .collect();
    assert_eq!(
        told,
        [false, true, true],
        "an interrupted iteration has not heard them"
    );
}

#[test]
fn a_message_is_repeated_after_the_user_stopped_its_iteration() {
    let script =
        format!("iteration 1\n exit 42\niteration 2\n {WAITS}iteration *\n promise COMPLETE\n");
    let test = Test::new().script(&script);
    test.ralph(&run(&[])).exits(3);
    test.ralph(&["say", "a", MESSAGE]).exits(0);
    let live = test.start(&["resume", "a"]);
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    test.ralph(&["resume", "a"]).exits(0);
    let told: Vec<bool> = (1..=3)
        .map(|number| test.prompt("a", number).contains(MESSAGE))
        .collect();
    assert_eq!(told, [false, true, true]);
}

#[test]
fn a_message_that_arrives_while_a_prompt_is_built_is_not_lost() {
    let test =
        Test::git().script("iteration 1\n sh touch ../arm\niteration 3\n promise COMPLETE\n");
    let git = test.sh("command -v git");
    let shim = format!(
        "#!/bin/sh\nif mv ../arm ../fired 2>/dev/null; then until test -e ../said; do sleep 0.01; done; fi\nexec {} \"$@\"\n",
        git.trim()
    );
    let test = test.on_path("git", &shim);
    let live = test.start(&run(&[]));
    until("the prompt", || test.root().join("fired").exists());
    test.ralph(&["say", "a", MESSAGE]).exits(0);
    test.write("../said", "");
    live.end().exits(0);
    assert_eq!(test.events("a", "answered").len(), 1);
    let told: Vec<bool> = (1..=3)
        .map(|number| test.prompt("a", number).contains(MESSAGE))
        .collect();
    assert_eq!(told, [false, true, false]);
}

#[test]
fn a_crashed_loop_gets_its_messages_when_it_is_resumed() {
    let test = Test::new().script(&format!(
        "iteration 1\n {WAITS}iteration *\n promise COMPLETE\n"
    ));
    crashed(&test, &[]);
    test.ralph(&["say", "a", MESSAGE])
        .exits(0)
        .says("its status is crashed; to continue, run `ralph resume a`");
    test.ralph(&["resume", "a"]).exits(0);
    assert!(test.prompt("a", 2).contains(MESSAGE));
}

#[test]
fn resume_waits_for_a_process_that_cleans_up_after_a_crash() {
    let test = Test::new().script(&format!(
        "iteration 1\n {WAITS}iteration *\n promise COMPLETE\n"
    ));
    crashed(&test, &[]);
    let lock = test.loop_dir("a").join("lock");
    // Like `ralph status`, which kills what the crash has left; this takes a while on a busy
    // machine.
    std::fs::write(&lock, r#"{"pid":1,"loop_name":"a"}"#).unwrap();
    let mut sweeper = test.command("flock");
    sweeper
        .arg(&lock)
        .args(["sh", "-c", "touch ../held; sleep 2"]);
    let sweeper = test.start_command(sweeper);
    until("the lock", || test.root().join("held").exists());
    assert_eq!(
        test.status("a")["status"],
        "crashed",
        "whoever clears up is no runner"
    );
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("loop complete after 2 iterations");
    sweeper.end().exits(0);
}

#[test]
fn say_is_refused_for_a_loop_that_cannot_get_messages() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    test.ralph(&run(&[])).exits(0);
    test.ralph(&["say", "a", MESSAGE])
        .exits(2)
        .complains("\"a\" is done")
        .complains("ralph run");
    test.ralph(&["say", "a", " "])
        .exits(2)
        .complains("the message is empty");
    test.ralph(&["say", "a"]).exits(2).complains("<TEXT>");
    assert!(
        !test.loop_dir("a").join("inbox.jsonl").exists()
            || test.read_loop("a", "inbox.jsonl").is_empty()
    );
    let plain = [
        "run",
        "x",
        "--name",
        "b",
        "--agent",
        AGENT,
        "--context",
        "none",
        "-m",
        "1",
        "--check",
        "false",
    ];
    test.ralph(&plain).exits(1);
    test.ralph(&["say", "b", MESSAGE])
        .exits(2)
        .complains("cannot receive messages")
        .complains("prompt file");
    let test = test.file(
        ".ralph/template.md",
        "{{task}}\n{{#notes}}There are notes.{{/notes}}\n",
    );
    let own = [
        "run", "x", "--name", "c", "--agent", AGENT, "-m", "1", "--check", "false",
    ];
    test.ralph(&own).exits(1);
    test.ralph(&["say", "c", MESSAGE])
        .exits(2)
        .complains("prompt template");
}

#[test]
fn an_agent_cannot_say_something_to_its_own_loop() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!(
        "iteration *\n sh {ralph} say a be brief; echo said $?\n sh {ralph} wait a; echo waited $?\n"
    );
    let test = Test::new().script(&script);
    let done = test.ralph(&run(&["-m", "1"])).exits(1);
    assert!(
        done.out.contains("said 2") && done.out.contains("an agent cannot control its own loop"),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("waited 2") && done.out.contains("an agent cannot wait for its own loop"),
        "{}",
        done.out
    );
    assert!(test.events("a", "answered").is_empty());
}

mod needs_limits {
    use super::*;

    #[test]
    fn a_request_is_read_before_the_next_iteration_even_without_inotify() {
        let test = Test::new().script(&format!("iteration *\n {WAITS}"));
        let ralph = env!("CARGO_BIN_EXE_ralph");
        // A system without inotify watches left.
        let shell = format!(
            "echo 0 > /proc/sys/user/max_inotify_instances && exec {ralph} {}",
            run(&["-m", "3"]).join(" ")
        );
        let mut command = test.command("unshare");
        command.args(["-Ur", "sh", "-c", &shell]);
        let live = test.start_command(command);
        until("the agent", || test.workspace().join("here").exists());
        test.ralph(&["pause", "a"]).exits(0);
        test.write("go", "");
        live.end().exits(3);
        assert_eq!(test.status("a")["current_iteration"], 1);
    }
}
