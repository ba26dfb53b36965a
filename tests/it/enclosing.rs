//! Commands that run inside a loop, whatever the environment says: an agent controls only the loops
//! that it started.

use crate::crash::{kill_now, supervisor};
use crate::kit::{Test, alive, until};
use crate::spawn::tmux;
use serde_json::json;
use std::fs;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

/// Runs a command without the loop's variables.
const BARE: &str = "env -i PATH=\"$PATH\" HOME=\"$HOME\" RALPH_STATE_DIR=\"$RALPH_STATE_DIR\" \
                    TEST_MARK=\"$TEST_MARK\"";

/// Creates a loop `b`, which is paused before its first iteration.
fn with_other_loop(test: Test) -> Test {
    let run = [
        "run",
        "t",
        "--name",
        "b",
        "-m",
        "3",
        "--share-workspace",
        "--",
        "false",
    ];
    test.ralph(&[&run[..6], &["--backoff", "0..0"], &run[6..]].concat())
        .exits(1);
    assert_eq!(test.status("b")["max_iterations"], 3);
    test
}

/// Runs the loop `a`, whose agent is this shell command.
fn run(test: &Test, agent: &str) -> crate::kit::Done {
    test.ralph(&[
        "run",
        "t",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--share-workspace",
        "--",
        "sh",
        "-c",
        agent,
    ])
}

#[test]
fn an_agent_cannot_control_other_loops_whatever_its_environment_says() {
    let test = with_other_loop(Test::new());
    let verbs = [
        "set b max-iterations=99",
        "set a max-iterations=99",
        "stop b",
        "pause b",
        "resume b",
        "say b hello",
        "rm b",
        "rewind b 0",
        "rm --ended",
        "attach b",
    ];
    let tries = verbs.map(|verb| {
        format!(
            "{RALPH} {verb} 2>>told; echo $? >>codes\n\
             {BARE} {RALPH} {verb} 2>>told; echo $? >>codes\n\
             {BARE} setsid -w {RALPH} {verb} 2>>told; echo $? >>codes\n"
        )
    });
    run(&test, &tries.concat()).exits(0);
    let (told, codes) = (test.read("told"), test.read("codes"));
    assert_eq!(codes, "2\n".repeat(3 * verbs.len()), "{told}");
    assert!(
        told.contains(
            "an agent cannot control loops that it did not start: this command runs inside \"a\", which did not start \"b\""
        ),
        "{told}"
    );
    assert!(
        told.contains("cannot control its own loop (\"a\")"),
        "{told}"
    );
    assert!(told.contains("cannot run `ralph rm --ended`"), "{told}");
    let attach = told.lines().rev().filter(|line| line.contains("error:"));
    let refused = attach
        .take(3)
        .filter(|line| line.contains("an agent cannot control"));
    assert_eq!(refused.count(), 3, "{told}");
    assert_eq!(test.status("b")["max_iterations"], 3);
    assert!(test.events("b", "answered").is_empty());
}

#[test]
fn a_daemon_of_the_agent_cannot_control_its_loop() {
    let test = with_other_loop(Test::new());
    let daemon = format!(
        "for name in a b; do {RALPH} set $name max-iterations=99 2>told-$name; echo $? >code-$name; done"
    );
    let agent =
        format!("({BARE} setsid sh -c '{daemon}' &)\nuntil test -s code-b; do sleep 0.01; done");
    run(&test, &agent).exits(0);
    for name in ["a", "b"] {
        let (code, told) = (
            test.read(&format!("code-{name}")),
            test.read(&format!("told-{name}")),
        );
        assert_eq!(code, "2\n", "{told}");
        assert!(told.contains("an agent cannot control"), "{told}");
    }
}

#[test]
fn an_agent_that_killed_its_supervisor_cannot_control_its_loop() {
    let test = Test::new();
    let agent = format!(
        "trap '' TERM; touch here; until test -e go; do sleep 0.01; done\n\
         {BARE} setsid -w {RALPH} set a max-iterations=99 2>told; echo $? >code; sleep 600"
    );
    let live = test.start(&[
        "run", "t", "--name", "a", "-m", "1", "--", "sh", "-c", &agent,
    ]);
    until("the agent", || test.workspace().join("here").exists());
    let victims = [live.pid(), supervisor(live.pid()).unwrap()];
    kill_now(&victims);
    let _ = live.end();
    test.write("go", "");
    until("its command", || {
        fs::read_to_string(test.workspace().join("code")).is_ok_and(|code| !code.is_empty())
    });
    assert_eq!(test.read("code"), "2\n", "{}", test.read("told"));
    test.ralph(&["status", "a"]).exits(0).complains("killed");
    assert_eq!(test.status("a")["max_iterations"], 1);
}

#[test]
fn a_check_cannot_control_loops() {
    let test = with_other_loop(Test::new());
    let check = format!("{BARE} {RALPH} set b max-iterations=99 2>>told; echo $? >>code");
    test.ralph(&[
        "run",
        "t",
        "--name",
        "a",
        "-m",
        "1",
        "--share-workspace",
        "--check",
        &check,
        "--",
        "true",
    ]);
    assert!(
        test.read("code").lines().all(|code| code == "2"),
        "{}",
        test.read("told")
    );
    assert_eq!(test.status("b")["max_iterations"], 3);
}

#[test]
fn an_agent_controls_the_loops_that_it_started() {
    let test = Test::new();
    let agent = format!(
        "{BARE} {RALPH} spawn t --no-tmux --name kid --share-workspace -m 2 -- sleep 600 >/dev/null\n\
         {BARE} {RALPH} set kid max-iterations=7; echo $? >>codes\n\
         {BARE} {RALPH} say kid hello; echo $? >>codes\n\
         {BARE} {RALPH} stop kid; echo $? >>codes"
    );
    let done = run(&test, &agent).exits(0);
    assert_eq!(test.read("codes"), "0\n0\n0\n", "{done:?}");
    assert_eq!(test.journal("kid")[0]["parent"], "a");
    assert_eq!(test.status("kid")["max_iterations"], 7);
}

#[test]
fn a_notify_command_controls_loops_as_its_user_does() {
    let test = with_other_loop(Test::new());
    let notify = format!("{RALPH} set b max-iterations=7");
    test.ralph(&[
        "run",
        "t",
        "--name",
        "a",
        "-m",
        "1",
        "--share-workspace",
        "--notify",
        &notify,
        "--",
        "true",
    ]);
    assert_eq!(test.status("b")["max_iterations"], 7);
}

#[test]
fn a_session_s_model_cannot_control_loops_that_it_did_not_start() {
    let test = with_other_loop(Test::new());
    let name = "claude-0000000a";
    let input = json!({
        "session_id": "5d2c7f00-0000-4000-8000-00000000000a",
        "cwd": test.workspace(),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "/ralph-loop Do it",
    });
    test.write("input.json", &input.to_string());
    // A client, which runs the hook, then the model's commands.
    let client = test.root().join("client");
    fs::copy("/bin/sh", &client).unwrap();
    let commands = format!(
        "{RALPH} hook prompt <input.json >answer\n\
         for name in {name} b; do\n\
           for verb in stop 'set max-iterations=99' pause 'say hello'; do\n\
             set -- $verb; first=$1; shift\n\
             {BARE} sh -c '\"$0\" \"$@\"; exit $?' {RALPH} $first $name $@ 2>>told; echo $? >>codes\n\
           done\n\
         done\n\
         {RALPH} spawn t --no-tmux --name kid --share-workspace -m 1 -- sleep 600 >/dev/null 2>>told\n\
         {RALPH} stop kid 2>>told; echo $? >kid\n\
         read line; exit 0"
    );
    let mut command = test.command(&client);
    command.args(["-c", &commands]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    until("the model's commands", || {
        fs::read_to_string(test.workspace().join("kid")).is_ok_and(|code| !code.is_empty())
    });
    let (told, codes, kid) = (test.read("told"), test.read("codes"), test.read("kid"));
    // A person in another terminal.
    test.ralph(&["set", name, "max-iterations=6"]).exits(0);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(codes, "2\n".repeat(8), "{told}");
    assert!(
        told.contains(&format!(
            "an agent cannot control its own loop (\"{name}\")"
        )),
        "{told}"
    );
    assert!(
        told.contains("type /cancel-ralph to end the loop of this session, or run the command in another terminal"),
        "{told}"
    );
    assert_eq!(kid, "0\n", "{told}");
    assert_eq!(test.status("b")["max_iterations"], 3);
    let answer = test.read("answer");
    assert!(
        answer.contains("/cancel-ralph") && !answer.contains("ralph stop"),
        "the model is not told how: {answer}"
    );
}

#[test]
fn a_person_s_shell_in_a_tmux_server_that_an_agent_started_is_outside() {
    let test = with_other_loop(Test::new());
    // The agent's spawn starts the server. The shell in its window is the person's.
    let shell = format!(
        "RALPH_STATE_DIR={} {RALPH} set b max-iterations=7; echo $? >code",
        test.state_dir().display()
    );
    let agent = format!(
        "{RALPH} spawn t --name kid --share-workspace -m 1 -- sleep 600\n\
         tmux -L ralph new-window -d -t ralph: -c \"$PWD\" \"sh -c '{shell}'\"\n\
         until test -s code; do sleep 0.01; done\n\
         {RALPH} stop kid"
    );
    let done = run(&test, &agent).exits(0);
    assert_eq!(test.read("code"), "0\n", "{done:?}");
    assert_eq!(test.status("b")["max_iterations"], 7);
}

#[test]
fn a_tmux_server_that_an_agent_s_spawn_started_keeps_a_person_s_windows() {
    let test = Test::new();
    // The server starts for the window of `kid`.
    let agent = format!(
        "test $RALPH_ITERATION = 2 || {RALPH} spawn t --name kid --share-workspace -m 1 -- sleep 600"
    );
    let args = ["run", "t", "--name", "a", "-m", "2", "--no-promise"];
    let more = ["--delay", "1h", "--share-workspace", "--", "sh", "-c"];
    let live = test.start(&[&args[..], &more, &[&agent]].concat());
    until("the rest after the first iteration", || {
        test.loop_dir("a").exists() && test.events("a", "ended").len() == 1
    });
    let command = "echo $$ >person; exec sleep 600";
    let dir = test.workspace().display().to_string();
    tmux(
        &test,
        &["new-window", "-d", "-t", "ralph:", "-c", &dir, command],
    );
    until("the person's window", || !read(&test, "person").is_empty());
    let person = read(&test, "person").trim().parse().unwrap();
    test.ralph(&["stop", "kid"]).exits(0);
    test.ralph(&["resume", "--now", "a"]).exits(0);
    live.end().exits(0);
    let is_alive = alive(person);
    tmux(&test, &["kill-server"]);
    until("the end of the window", || !alive(person));
    assert!(is_alive, "the window outlived the loop's sweeps");
}

/// A window that a person opens while an agent runs, in the server that this agent's spawn started.
/// The agent then exits and leaves a daemon, or its supervisor is killed.
#[test]
fn a_person_s_window_outlives_the_iteration_in_which_it_was_opened() {
    for is_killed in [false, true] {
        let test = Test::new();
        let agent = format!(
            "{RALPH} spawn t --name kid --share-workspace -m 1 -- sleep 600\n\
             (setsid sleep 600 & echo $! >daemon)\n\
             until test -e go; do sleep 0.01; done\n\
             {RALPH} stop kid"
        );
        let args = ["run", "t", "--name", "a", "-m", "1", "--no-promise"];
        let more = ["--share-workspace", "--", "sh", "-c", &agent];
        let live = test.start(&[&args[..], &more].concat());
        until("the daemon", || !read(&test, "daemon").is_empty());
        let command = "echo $$ >person; exec sleep 600";
        let dir = test.workspace().display().to_string();
        let window = ["new-window", "-d", "-t", "ralph:", "-c", &dir, command];
        tmux(&test, &window);
        until("the person's window", || !read(&test, "person").is_empty());
        let pid = |name| read(&test, name).trim().parse::<u32>().unwrap();
        let (person, daemon) = (pid("person"), pid("daemon"));
        if is_killed {
            kill_now(&[supervisor(live.pid()).unwrap()]);
        }
        test.write("go", "");
        let done = live.end();
        let (is_open, is_swept) = (alive(person), !alive(daemon));
        tmux(&test, &["kill-server"]);
        until("the end of the window", || !alive(person));
        assert!(is_open, "{done:?}");
        assert!(is_swept, "{done:?}");
        if !is_killed {
            let named = format!(
                "left open in ralph's tmux server, by the agent or by you: 1 window (process {person})"
            );
            done.exits(0).says(&named);
            let report = &test.events("a", "ended")[0]["report"];
            assert_eq!(report["windows"], json!([person]), "{report}");
        }
    }
}

fn read(test: &Test, name: &str) -> String {
    fs::read_to_string(test.workspace().join(name)).unwrap_or_default()
}
