//! Agents in a sandbox: what they can reach, and how their processes end.

mod bwrap;
mod landlock;

use crate::kit::{Done, Test};
use std::fs;
use std::path::Path;

/// A repository, a home directory with a secret, and another loop's state.
fn project() -> Test {
    let test = Test::git()
        .file("../home/.ssh/id", "a secret")
        .file("../home/.gitconfig", "[user]\nname = tester\n")
        .file("../home/.config/ralph/settings.toml", "quiet = false\n")
        .file("../state/loops/other/journal.jsonl", "another loop\n");
    test.sh("mkdir ../home/.mine");
    test
}

/// Runs one iteration of an agent that is a shell script, and returns its end.
fn run(test: &Test, flag: &str, script: &str, args: &[&str]) -> Done {
    let run = ["run", "x", "--name", "a", "-m", "1", "--no-promise", flag];
    test.ralph(&[&run[..], args, &["--", "sh", "-c", script]].concat())
}

/// Checks that the journal has the exit code or the signal of the agent, not of the sandbox.
fn assert_exits(flag: &str) {
    let test = project();
    run(&test, flag, "exit 7", &[]);
    assert_eq!(test.events("a", "ended")[0]["report"]["exit"]["code"], 7);
    test.ralph(&["rm", "a"]).exits(0);
    run(&test, flag, "kill -9 $$", &[]);
    assert_eq!(test.events("a", "ended")[0]["report"]["exit"]["signal"], 9);
}

/// What an agent tries: it writes the result of each attempt into the workspace.
const ATTEMPTS: &str = "
    try() { if sh -c \"$2\" >>noise 2>&1; then echo \"$1 yes\"; else echo \"$1 no\"; fi >>attempts; }
    try workspace 'echo x > file.txt'
    try task_dir 'echo x > \"$RALPH_TASK_DIR/file\"'
    try temp 'f=$(mktemp) && echo x > \"$f\" && rm \"$f\"'
    try home 'echo x > ~/file.txt'
    try settings 'echo x >> ~/.config/ralph/settings.toml'
    try read_home 'cat ~/.gitconfig'
    try secret 'cat ~/.ssh/id'
    try state 'cat \"$RALPH_STATE_DIR\"/loops/other/journal.jsonl'
    try own_state 'ls \"$RALPH_STATE_DIR\"/loops/a'
    try commit 'git add file.txt && git commit -qm mine'
    try device 'echo x > /dev/null && head -c 1 /dev/urandom'
    try agent_socket 'test -n \"$SSH_AUTH_SOCK\"'
";

/// Returns the attempts that succeeded.
fn successes(test: &Test) -> Vec<String> {
    let attempts = test.read("attempts");
    let all = attempts
        .lines()
        .filter_map(|line| line.strip_suffix(" yes"));
    all.map(str::to_owned).collect()
}

const ALLOWED: [&str; 6] = [
    "workspace",
    "task_dir",
    "temp",
    "read_home",
    "commit",
    "device",
];

/// Fails if anything but the workspace has changed.
fn assert_untouched(test: &Test) {
    let read = |path: &str| fs::read_to_string(test.root().join(path)).unwrap();
    assert_eq!(read("home/.ssh/id"), "a secret");
    assert_eq!(read("home/.config/ralph/settings.toml"), "quiet = false\n");
    assert!(!test.root().join("home/file.txt").exists());
    assert_eq!(test.sh("git log -1 --format=%s").trim(), "mine");
}

/// Creates a directory with links to these programs, for a machine without all others.
fn few_programs(test: &Test, names: &[&str]) -> String {
    let dir = test.root().join("few");
    fs::create_dir(&dir).unwrap();
    for name in names {
        let path = test.sh(&format!("command -v {name}"));
        std::os::unix::fs::symlink(Path::new(path.trim()), dir.join(name)).unwrap();
    }
    dir.display().to_string()
}

#[test]
fn without_bwrap_the_loop_does_not_begin() {
    let test = project();
    let path = few_programs(&test, &["git", "sh", "touch"]);
    let run = ["run", "x", "--name", "a", "--sandbox", "--", "touch", "ran"];
    for args in [&run[..], &[&run[..2], &["--dry-run"], &run[2..]].concat()] {
        let mut command = test.ralph_command(args);
        command.env("PATH", &path);
        test.start_command(command)
            .end()
            .exits(2)
            .complains("--sandbox=bwrap: bwrap is not installed")
            .complains("apt install bubblewrap");
    }
    let mut command =
        test.ralph_command(&["spawn", "x", "--no-tmux", "--sandbox", "--", "touch", "ran"]);
    command.env("PATH", &path);
    test.start_command(command).end().exits(2);
    assert!(!test.workspace().join("ran").exists());
    assert!(!test.loop_dir("a").exists());
}

#[test]
fn an_agent_that_sandboxes_itself_is_refused_in_landlock() {
    let agent = "#!/bin/sh\ntouch ran\n";
    let test = project()
        .on_path("codex", agent)
        .on_path("gemini", agent)
        .on_path("claude", agent)
        .file(".claude/settings.json", r#"{"sandbox": {"enabled": true}}"#);
    for (args, by) in [
        (&["--agent", "codex"][..], "its default"),
        (
            &["--agent", "claude"],
            "sandbox.enabled in .claude/settings.json",
        ),
        (&["--", "gemini", "--sandbox", "-p"], "--sandbox"),
    ] {
        let run = ["run", "x", "--sandbox=landlock"];
        test.ralph(&[&run[..], args].concat())
            .exits(2)
            .complains(&format!("runs commands in a sandbox of its own ({by})"))
            .complains("use --sandbox=bwrap");
    }
    assert!(!test.workspace().join("ran").exists());
}

#[test]
fn a_project_can_ask_for_a_sandbox_but_not_remove_yours() {
    let test = project().untrusting();
    let path = few_programs(&test, &["git", "sh", "touch"]);
    let run = |user: &str, project: &str| {
        test.write("../home/.config/ralph/settings.toml", user);
        test.write(".ralph/settings.toml", project);
        let mut command = test.ralph_command(&["run", "x", "--dry-run", "--", "touch", "ran"]);
        command.env("PATH", &path);
        test.start_command(command).end()
    };
    // Without bwrap, an error shows that the sandbox was asked for.
    run("", "sandbox = true")
        .exits(2)
        .complains("bwrap is not installed");
    run("sandbox = true", "")
        .exits(2)
        .complains("bwrap is not installed");
    for weaker in [
        "sandbox = false",
        "sandbox = 'none'",
        "sandbox = 'landlock'",
    ] {
        let start = ["run", "x", "--", "touch", "ran"];
        test.write(".ralph/settings.toml", weaker);
        test.ralph(&start)
            .exits(2)
            .complains("is not trusted")
            .complains("sandbox");
    }
    run("", "sandbox = 'docker'")
        .exits(2)
        .complains("true, false or one of none, bwrap, landlock");
    assert!(!test.workspace().join("ran").exists());
}

#[test]
fn a_function_of_the_host_cannot_be_confined() {
    let test = project();
    let error = ralph::Loop::new("x")
        .workspace(test.workspace())
        .state_dir(test.state_dir())
        .sandbox(ralph::Sandbox::Bwrap)
        .run_with(|_: &ralph::Turn| "done")
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("cannot run in a sandbox"), "{message}");
}

#[test]
fn commands_inside_a_sandbox_name_what_works_there() {
    let test = project();
    for args in [
        &["spawn", "x", "--", "true"][..],
        &["run", "x", "--", "true"],
        &["status", "other"],
        &["ls"],
        &["bus", "tail"],
    ] {
        let mut command = test.ralph_command(args);
        command.env("RALPH_SANDBOX", "bwrap");
        test.start_command(command)
            .end()
            .exits(2)
            .complains("does not work in a sandbox")
            .complains("`ralph done`");
    }
}
