//! A missing or too old tmux, and an unwritable state directory: each is reported, and nothing is lost.

use super::{AGENT, is_refusal, on_disk, starts, verbs};
use crate::kit::{Test, signal, until};
use crate::spawn::until_status;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Creates a directory with the few programs that a loop needs, with a tmux of this version or
/// without one.
fn few_tools(test: &Test, version: Option<&str>) -> PathBuf {
    let bin = test.root().join("few");
    let _ = fs::remove_dir_all(&bin);
    fs::create_dir(&bin).unwrap();
    test.sh("for tool in sh cat git env sleep touch; do ln -s \"$(command -v $tool)\" ../few/$tool; done");
    if let Some(version) = version {
        fs::write(
            bin.join("tmux"),
            format!("#!/bin/sh\necho tmux {version}\n"),
        )
        .unwrap();
        fs::set_permissions(bin.join("tmux"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    bin
}

/// Returns a ralph command for a machine without tmux, or with one of this version.
fn with_tmux(test: &Test, version: Option<&str>, args: &[&str]) -> Command {
    let mut command = test.ralph_command(args);
    command.env("PATH", few_tools(test, version));
    command
}

/// Without a usable tmux, nothing starts in a window and a loop to be resumed is not changed; with
/// a usable one, the loop continues.
#[test]
fn an_unusable_tmux_is_reported() {
    let test =
        Test::new().script("iteration 1\n blocked Which port?\niteration *\n promise COMPLETE\n");
    test.ralph(&[&["spawn", "go", "--name", "asks"], &AGENT[..]].concat())
        .exits(0);
    until_status(&test, "asks", "blocked");
    test.ralph(&["wait", "asks"]).exits(3);
    for (version, error) in [
        (None, "tmux is not installed"),
        (Some("2.9a"), "tmux 2.9a is too old: ralph needs tmux 3.0"),
    ] {
        let no_tmux = "or add --no-tmux for a plain background process";
        let stays = "\"asks\" was not resumed";
        let spawn = [&["spawn", "go", "--name", "new"], &AGENT[..]].concat();
        for (args, hint) in [
            (&spawn[..], no_tmux),
            (&["resume", "asks"], stays),
            (&["resume", "asks", "--answer", "80"], stays),
        ] {
            let before = on_disk(&test);
            is_refusal(
                &test.start_command(with_tmux(&test, version, args)).end(),
                args,
                error,
                hint,
            );
            assert!(on_disk(&test) == before, "{args:?} changed something");
        }
    }
    test.ralph(&["resume", "asks", "--answer", "8080"]).exits(0);
    until_status(&test, "asks", "done");
    let prompt = test.prompt("asks", 2);
    assert!(
        prompt.contains("8080") && !prompt.contains("\n80"),
        "{prompt}"
    );
    assert!(!test.loop_dir("new").exists());
}

/// After a machine restart without tmux, every loop is listed and none is changed; one without a
/// window continues.
#[test]
fn a_restart_without_tmux_leaves_every_loop_intact() {
    let test = Test::new()
        .script("iteration *\n sh until test -e go; do sleep 0.01; done\n promise COMPLETE\n");
    for (name, more) in [("plain", &["--no-tmux"][..]), ("shown", &[])] {
        let args = [
            &["spawn", "go", "--name", name, "--share-workspace"],
            more,
            &AGENT,
        ]
        .concat();
        test.ralph(&args).exits(0);
        until("the agent", || !test.events(name, "spawned").is_empty());
    }
    // Kill everything, agents included, like a power cut.
    until("the end of all", || {
        let left = test.survivors();
        for pid in &left {
            signal(*pid, "KILL");
        }
        left.is_empty()
    });
    test.write("go", "");
    let done = test
        .start_command(with_tmux(&test, None, &["resume", "--all"]))
        .end()
        .exits(2);
    done.says("resumed ralph loop for plain\n")
        .complains("ralph: error: tmux is not installed\n  hint: install tmux, or add --no-tmux for a plain background process; \"shown\" was not resumed\n");
    until_status(&test, "plain", "done");
    assert_eq!(test.status("shown")["status"], "crashed");
    test.ralph(&["resume", "--all"])
        .exits(0)
        .says("resumed ralph loop for shown\n");
    until_status(&test, "shown", "done");
}

/// If the state directory is a file, every command says so, and the file is kept.
#[test]
fn a_file_in_place_of_the_state_directory_is_reported() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    fs::remove_dir(test.state_dir()).unwrap();
    fs::write(test.state_dir(), "precious").unwrap();
    let mut all = verbs("auth");
    all.extend(starts("auth"));
    all.push([&["run", "go"], &AGENT[..]].concat());
    for args in [
        "resume --all",
        "rm --ended",
        "ls",
        "ls --names",
        "ls --json",
        "bus tail",
        "bus post hello",
    ] {
        all.push(args.split(' ').collect());
    }
    for args in &all {
        is_refusal(
            &test.ralph(args),
            args,
            &test.state_dir().display().to_string(),
            "RALPH_STATE_DIR",
        );
        assert_eq!(fs::read_to_string(test.state_dir()).unwrap(), "precious");
    }
    assert!(
        !test.workspace().join(".ralph").exists(),
        "nothing was started"
    );
}

/// With read-only access, a user can see a loop but not steer or remove it; no loop starts in an
/// unwritable state directory.
#[test]
fn a_read_only_state_directory_is_reported() {
    let test = Test::new().script(
        "iteration *\n sh touch here; until test -e go; do sleep 0.01; done\n promise COMPLETE\n",
    );
    test.ralph(&[&["spawn", "go", "--name", "auth", "--no-tmux"], &AGENT[..]].concat())
        .exits(0);
    until("the agent", || test.workspace().join("here").exists());
    let inbox = test.loop_dir("auth").join("inbox.jsonl");
    fs::write(&inbox, "").unwrap();
    test.sh("chmod 755 .. ; chmod 777 . ; chmod -R a+rX,a-w ../state");
    let before = on_disk(&test);
    for args in [
        &["pause", "auth"][..],
        &["say", "auth", "hello"],
        &["set", "auth", "max-iterations=3"],
        &["stop", "auth"],
        &["bus", "post", "--loop", "auth", "hello"],
        &["bus", "post", "hello"],
        &[
            "run",
            "go",
            "--name",
            "new",
            "--share-workspace",
            "--",
            "true",
        ],
        &[
            "spawn",
            "go",
            "--name",
            "new",
            "--share-workspace",
            "--",
            "true",
        ],
    ] {
        let done = test.start_command(test.unprivileged(args)).end();
        is_refusal(
            &done,
            args,
            &test.state_dir().display().to_string(),
            "RALPH_STATE_DIR",
        );
        assert!(on_disk(&test) == before, "{args:?} changed something");
    }
    for args in [
        &["status", "auth"][..],
        &["ls"],
        &["logs", "auth"],
        &["bus", "tail", "auth"],
    ] {
        test.start_command(test.unprivileged(args)).end().exits(0);
    }
    test.sh("chmod -R u+w ../state");
    test.write("go", "");
    until_status(&test, "auth", "done");
    test.sh("chmod -R a-w ../state");
    let args = ["rm", "auth"];
    let done = test.start_command(test.unprivileged(&args)).end();
    is_refusal(
        &done,
        &args,
        &test.state_dir().display().to_string(),
        "RALPH_STATE_DIR",
    );
    test.sh("chmod -R u+w ../state");
    assert_eq!(test.status("auth")["status"], "done");
}

mod needs_script {
    use super::*;

    /// A window cannot be shown without tmux; its loop keeps running, and its logs can be followed.
    #[test]
    fn attach_to_a_window_needs_tmux() {
        let waits = "iteration *\n sh touch here; until test -e go; do sleep 0.01; done\n promise COMPLETE\n";
        let test = Test::new().script(waits);
        test.ralph(&[&["spawn", "go", "--name", "auth"], &AGENT[..]].concat())
            .exits(0);
        until("the agent", || test.workspace().join("here").exists());
        few_tools(&test, None);
        let live = test.start_on_terminal_with("PATH=../few", &["attach", "auth"]);
        live.end()
            .exits(2)
            .says("tmux is not installed")
            .says("`ralph logs auth -f`");
        test.write("go", "");
        until_status(&test, "auth", "done");
    }
}

/// Returns a test whose workspace and state directory belong to the user of `Test::unprivileged`.
fn owned_by_unprivileged(test: Test) -> Test {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    std::fs::set_permissions(test.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        for dir in [test.workspace(), test.state_dir()] {
            chown(dir, Some(65534), Some(65534)).unwrap();
        }
    }
    test
}

#[test]
fn no_agent_starts_in_a_workspace_that_is_not_writable() {
    let run = [
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "5",
        "--no-promise",
        "--agent",
        "script:../agent.script",
    ];
    let test = owned_by_unprivileged(Test::new().script("iteration *\n say hello\n"));
    test.sh("mkdir -p .ralph/task/a && chmod -R 777 .ralph && chmod 555 .");
    let done = test.start_command(test.unprivileged(&run)).end();
    let workspace = test.workspace().canonicalize().unwrap();
    done.exits(2).complains(&format!(
        "cannot write to the workspace {}: ",
        workspace.display()
    ));
    assert!(!test.loop_dir("a").exists(), "there is no loop");
    test.sh("chmod 755 .");
    // The agent itself makes it read-only.
    let test = owned_by_unprivileged(Test::new().script("iteration *\n sh chmod 555 .\n"));
    let done = test.start_command(test.unprivileged(&run)).end();
    assert_ne!(done.code, 0, "{done:?}");
    assert!(
        format!("{}{}", done.out, done.err).contains("cannot write to the workspace"),
        "{done:?}"
    );
    assert_eq!(test.events("a", "started").len(), 1);
    test.sh("chmod 755 .");
}
