//! Edge cases of background loops: paths, empty prompts, rests, changed limits, signals, and several loops at once.

use super::{ends_with, gated, iterations, let_go, spawn, until_window, until_works};
use crate::kit::{Test, signal, until};
use crate::spawn::{tmux, until_status};

const SCRIPT: [&str; 2] = ["--agent", "script:../agent.script"];

/// A relative prompt file is resolved against the directory in which the loop was spawned, even if
/// it is resumed elsewhere. An absolute path works too.
#[test]
fn a_prompt_file_is_relative_to_where_the_loop_was_spawned() {
    let absolute = |test: &Test| test.workspace().join("PROMPT.md").display().to_string();
    for path in [|_: &Test| "PROMPT.md".to_owned(), absolute] {
        let test = gated();
        let path = path(&test);
        spawn(
            &test,
            &[
                "--prompt-file",
                &path,
                "--context",
                "none",
                "-m",
                "2",
                "--no-promise",
                "--",
                "./agent",
            ],
        )
        .exits(0);
        until_works(&test, 1);
        test.ralph(&["pause", "agent"]).exits(0);
        let_go(&test, 1);
        ends_with(&test, 3, "paused");
        let mut elsewhere = test.ralph_command(&["resume", "agent"]);
        elsewhere.current_dir("/");
        test.start_command(elsewhere).end().exits(0);
        until_works(&test, 2);
        assert_eq!(test.read("got-2"), "Do task A\n");
        let file = test
            .workspace()
            .canonicalize()
            .unwrap()
            .join("PROMPT.md")
            .display()
            .to_string();
        assert_eq!(
            std::fs::canonicalize(test.status("agent")["prompt_file"].as_str().unwrap())
                .unwrap()
                .display()
                .to_string(),
            file
        );
        let_go(&test, 2);
        ends_with(&test, 0, "done (ran to its iteration limit)");
    }
}

/// An empty prompt file is not an error: the agent reads nothing.
#[test]
fn an_empty_prompt_is_passed_as_empty_input() {
    let test = gated();
    test.write("PROMPT.md", "");
    spawn(
        &test,
        &[
            "--context",
            "none",
            "-m",
            "1",
            "--no-promise",
            "--",
            "./agent",
        ],
    )
    .exits(0);
    until_works(&test, 1);
    assert_eq!(test.read("got-1"), "");
    let_go(&test, 1);
    ends_with(&test, 0, "done (ran to its iteration limit)");
}

/// A rest after a failure is not inactivity of the agent, so nothing is killed.
#[test]
fn a_rest_does_not_count_as_inactivity() {
    let test = Test::new().script("iteration 1\n exit 1\niteration *\n promise COMPLETE\n");
    let args = ["go", "--inactivity-timeout", "2s", "--backoff", "3s..3s"];
    spawn(&test, &[&args[..], &SCRIPT].concat()).exits(0);
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    assert_eq!(
        (iterations(&test), test.events("agent", "noticed").len()),
        (2, 0)
    );
}

/// A pause ends a rest at once: the loop is paused, not resting. After a resume, it does not rest
/// again first.
#[test]
fn a_pause_ends_a_rest() {
    let test = Test::new().script("iteration 1\n exit 1\niteration *\n promise COMPLETE\n");
    spawn(
        &test,
        &[&["go", "--backoff", "10h..10h"], &SCRIPT[..]].concat(),
    )
    .exits(0);
    until("the rest", || {
        test.status("agent")["resting_until"].is_string()
    });
    assert_eq!(
        test.ralph(&["pause", "agent"]).exits(0).out,
        "paused ralph loop for agent\n"
    );
    ends_with(&test, 3, "paused");
    assert_eq!(test.status("agent")["consecutive_failures"], 1);
    test.ralph(&["resume", "agent"]).exits(0);
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    assert_eq!(iterations(&test), 2);
}

/// A resume with an answer ends the rest: the next iteration starts at once, with the answer in its
/// prompt.
#[test]
fn resume_with_an_answer_ends_a_rest() {
    let test = Test::new().script("iteration 1\n exit 1\niteration *\n promise COMPLETE\n");
    spawn(
        &test,
        &[&["go", "--backoff", "10h..10h"], &SCRIPT[..]].concat(),
    )
    .exits(0);
    until("the rest", || {
        test.status("agent")["resting_until"].is_string()
    });
    let done = test
        .ralph(&["resume", "agent", "--now", "--answer", "port 8080"])
        .exits(0);
    assert_eq!(
        done.out,
        "your message will be in its next prompt\nresumed ralph loop for agent\n"
    );
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    assert!(test.prompt("agent", 2).contains("port 8080"));
}

/// A limit that is raised or lowered while the loop runs applies immediately, without a restart.
#[test]
fn a_limit_can_be_changed_while_the_loop_runs() {
    let test = gated();
    spawn(&test, &["-m", "1", "--no-promise", "--", "./agent"]).exits(0);
    until_works(&test, 1);
    let done = test.ralph(&["set", "agent", "max-iterations=9"]).exits(0);
    assert_eq!(done.out, "set max-iterations=9 for agent\n");
    let_go(&test, 1);
    until_works(&test, 2);
    until_window(&test, "starting iteration 2/9");
    test.ralph(&["set", "agent", "max-iterations=2"]).exits(0);
    let_go(&test, 2);
    ends_with(&test, 0, "done (ran to its iteration limit)");
    assert_eq!(
        (iterations(&test), test.events("agent", "opened").len()),
        (2, 1)
    );
}

/// SIGTERM to the process in the window pauses the loop; its agent finishes first.
#[test]
fn sigterm_to_the_window_s_process_pauses() {
    let test = gated();
    spawn(&test, &["-m", "9", "--", "./agent"]).exits(0);
    until_works(&test, 1);
    let pane = tmux(
        &test,
        &[
            "display-message",
            "-p",
            "-t",
            "=ralph:=agent",
            "#{pane_pid}",
        ],
    );
    signal(pane.trim().parse().unwrap(), "TERM");
    until("it is heard", || !test.events("agent", "asked").is_empty());
    let_go(&test, 1);
    ends_with(&test, 3, "paused");
    assert_eq!(
        test.events("agent", "ended")[0]["report"]["exit"]["code"],
        0
    );
}

/// A stopped loop leaves no process that its agent started, and its name can be reused.
#[test]
fn a_stopped_loop_leaves_no_process_and_its_name_can_be_reused() {
    let test = Test::new()
        .script("iteration *\n fork setsid daemon clearenv 10m\n sh touch here\n hang\n");
    spawn(&test, &[&["go"], &SCRIPT[..]].concat()).exits(0);
    until("the agent", || test.workspace().join("here").exists());
    let log = test.loop_dir("agent").join("iterations/0001/output.log");
    let forked = || {
        std::fs::read_to_string(&log)
            .ok()?
            .strip_suffix('\n')?
            .rsplit(' ')
            .next()?
            .parse()
            .ok()
    };
    until("its number", || forked().is_some());
    let pid: u32 = forked().unwrap();
    assert!(crate::kit::alive(pid));
    test.ralph(&["stop", "agent"])
        .exits(0)
        .says("stopped ralph loop for agent\n");
    assert!(!crate::kit::alive(pid) && test.survivors().iter().all(|left| *left != pid));
    assert_eq!(test.status("agent")["status"], "stopped");
    let test = test.script("iteration *\n promise COMPLETE\n");
    let again = spawn(&test, &[&["go"], &SCRIPT[..]].concat()).exits(0);
    again.complains("the previous loop \"agent\" (stopped) was archived in ");
    until_status(&test, "agent", "done");
}

/// Loops run side by side, each in its own window; what happens to one does not affect the other.
#[test]
fn two_loops_have_separate_windows() {
    let test = gated();
    for name in ["agent", "other"] {
        let args = [
            "spawn",
            "--name",
            name,
            "-m",
            "9",
            "--share-workspace",
            "--",
            "./agent",
        ];
        test.ralph(&args).exits(0);
        until("its agent", || !test.events(name, "spawned").is_empty());
    }
    let windows = tmux(&test, &["list-windows", "-t", "=ralph", "-F", "#W"]);
    assert_eq!(windows, "agent\nother\n");
    test.ralph(&["stop", "agent"]).exits(0);
    until("its window's end", || {
        tmux(&test, &["list-windows", "-t", "=ralph", "-F", "#W"]) == "other\n"
    });
    assert_eq!(test.status("other")["status"], "running");
    test.ralph(&["stop", "other"]).exits(0);
}

/// The user's own tmux, with a session of the same name and a configuration, is never touched.
#[test]
fn the_user_s_own_tmux_is_left_alone() {
    let test = Test::new().script(
        "iteration *\n sh touch here; until test -e go; do sleep 0.01; done\n promise COMPLETE\n",
    );
    std::fs::write(
        test.root().join("home/.tmux.conf"),
        "set-option -g set-clipboard on\nset-option -g @mine yes\n",
    )
    .unwrap();
    let mine = |args: &[&str]| {
        let output = test
            .command("tmux")
            .args(["-L", "mine"])
            .args(args)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    mine(&[
        "new-session",
        "-d",
        "-s",
        "ralph",
        "-n",
        "notes",
        "sleep 600",
    ]);
    spawn(&test, &[&["go"], &SCRIPT[..]].concat()).exits(0);
    until("the agent", || test.workspace().join("here").exists());
    assert_eq!(
        mine(&["list-windows", "-a", "-F", "#S:#W"]),
        "ralph:notes\n"
    );
    assert_eq!(
        tmux(&test, &["show-options", "-gv", "@mine"]),
        "",
        "nor is its configuration read"
    );
    assert_eq!(
        tmux(&test, &["show-options", "-sv", "set-clipboard"]),
        "off\n"
    );
    test.write("go", "");
    ends_with(&test, 0, "done (the agent claimed it; there are no checks)");
    assert_eq!(
        mine(&["list-windows", "-a", "-F", "#S:#W"]),
        "ralph:notes\n"
    );
    mine(&["kill-server"]);
}
