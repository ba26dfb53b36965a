//! Acts of an agent as ralph shows them: its error message if it fails, and what it was denied.

use crate::kit::{Done, Test};

#[test]
fn a_failed_agent_is_shown_with_its_error_message() {
    let test = Test::new();
    let agent =
        "echo starting; echo; printf '\\033[31merror:\\033[0m unknown flag --once\\n' >&2; exit 2";
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--max-failures",
        "2",
        "--backoff",
        "0..0",
        "--",
        "sh",
        "-c",
        agent,
    ];
    test.ralph(&args)
        .exits(1)
        .says("  output   starting\n")
        .says("           error: unknown flag --once\n");
    let ended = &test.events("a", "ended")[0];
    assert_eq!(
        ended["report"]["error"],
        "starting\nerror: unknown flag --once"
    );
    assert_eq!(
        test.status("a")["last_error"],
        "starting\nerror: unknown flag --once"
    );
    let progress = test.read(".ralph/task/a/progress.md");
    assert!(
        progress.contains("- Error: starting error: unknown flag --once\n"),
        "{progress}"
    );
}

#[test]
fn a_quiet_run_shows_the_error_message_of_a_failed_agent() {
    let test = Test::new();
    let args = [
        "run",
        "x",
        "-q",
        "--max-failures",
        "1",
        "--",
        "sh",
        "-c",
        "echo no such model; exit 1",
    ];
    test.ralph(&args).exits(1).says("\n  | no such model\n");
}

#[test]
fn a_successful_agent_has_no_error_message() {
    let test = Test::new();
    test.ralph(&["run", "x", "--name", "a", "-m", "1", "--", "echo", "hello"])
        .exits(1);
    let stopped = [
        "--iteration-timeout",
        "100ms",
        "--",
        "sh",
        "-c",
        "echo hello; sleep 60",
    ];
    test.ralph(&[&["run", "x", "--name", "b", "-m", "1"][..], &stopped].concat())
        .exits(1);
    for name in ["a", "b"] {
        assert!(
            test.events(name, "ended")[0]["report"]
                .get("error")
                .is_none(),
            "{name}"
        );
        assert!(test.status(name)["last_error"].is_null(), "{name}");
    }
}

#[test]
fn only_the_end_of_a_long_error_message_is_kept() {
    let test = Test::new();
    let agent = "seq 1 20; printf 'x%.0s' $(seq 1 600); exit 1";
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "--max-failures",
        "1",
        "--",
        "sh",
        "-c",
        agent,
    ])
    .exits(1);
    let error = test.events("a", "ended")[0]["report"]["error"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(error, format!("…{}", "x".repeat(499)));
}

const KNOWN: &str = r#"
[agents.known]
command = ["./agent"]
denied = ["refused: "]
[agents.known.approve.none]
words = ["--read"]
[agents.known.approve.edits]
words = ["--edit"]
[agents.known.approve.all]
words = ["--all"]
[agents.free]
command = ["./agent"]
denied = ["refused: "]
"#;

/// Runs a known agent that prints `refused:` when it is denied something.
fn known_agent(test: &Test, approve: &str, script: &str) -> Done {
    test.write(".ralph/settings.toml", KNOWN);
    test.write("agent", &format!("#!/bin/sh\n{script}\n"));
    test.sh("chmod +x agent");
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--agent",
        "known",
        "--approve",
        approve,
    ])
}

#[test]
fn a_denial_is_shown_and_counted_and_comes_with_advice() {
    let test = Test::new();
    let agent = "for what in ls rm ls cp mv; do echo \"refused: $what\"; done; exit 1";
    let done = known_agent(&test, "edits", agent).exits(0);
    for what in ["ls", "rm", "cp"] {
        let line = format!("the agent was denied: refused: {what}");
        assert_eq!(done.out.matches(&line).count(), 1, "{done:?}");
    }
    assert!(!done.out.contains("not allowed: refused: mv"), "{done:?}");
    let done = done.says("the agent was denied permission 5 times\n");
    done.says("  denied   5 times, first: refused: ls; allow more with --approve all\n");
    let report = &test.events("a", "ended")[0]["report"];
    assert_eq!(
        (&report["denied"], &report["denial"]),
        (&5.into(), &"refused: ls".into())
    );
    let progress = test.read(".ralph/task/a/progress.md");
    assert!(
        progress.contains("- Denied (5): refused: ls\n"),
        "{progress}"
    );
}

#[test]
fn advice_on_a_denial_names_the_next_approval_level_if_there_is_one() {
    for (level, advice) in [
        (
            "none",
            "once: refused: ls; allow more with --approve edits\n",
        ),
        (
            "edits",
            "once: refused: ls; allow more with --approve all\n",
        ),
        ("all", "once: refused: ls\n"),
    ] {
        known_agent(&Test::new(), level, "echo refused: ls")
            .exits(0)
            .says(advice);
    }
    let test = Test::new()
        .file(".ralph/settings.toml", KNOWN)
        .program("agent", "#!/bin/sh\necho refused: ls\n");
    let free = ["run", "x", "-m", "1", "--no-promise", "--agent", "free"];
    test.ralph(&free)
        .exits(0)
        .says("once: refused: ls; its own command line sets its permissions\n");
}

#[test]
fn a_failed_quiet_run_says_what_was_denied() {
    let test = Test::new();
    test.write(".ralph/settings.local.toml", "quiet = true\n");
    test.write(".ralph/settings.toml", KNOWN);
    let test = test.program("agent", "#!/bin/sh\necho refused: ls\n");
    let done = test
        .ralph(&["run", "x", "-m", "1", "--agent", "known"])
        .exits(1);
    done.says("  the agent was denied permission once: refused: ls; allow more with --approve all");
}

#[test]
fn a_denial_on_a_screen_counts_once_however_often_it_is_redrawn() {
    let agent = r"echo ready; read x; for i in 1 2 3; do printf '\033[2J\033[5;5H\033[31m│ refused: \033[mls │\n'; done; seq 99";
    let test = Test::new().file(".ralph/template.md", "{{task}} and never say refused: rm\n");
    test.write(".ralph/settings.toml", KNOWN);
    let test = test.program(
        "agent",
        &format!("#!/bin/sh\n{agent}\necho '<blocked>no key'; echo 'at all</blocked>'\n"),
    );
    let done = test
        .ralph(&[
            "run", "x", "--name", "a", "-m", "1", "--pty", "--agent", "known",
        ])
        .exits(3);
    done.says("the agent was denied: refused: ls")
        .says("once: refused: ls; allow more with --approve all");
    assert_eq!(test.events("a", "ended")[0]["report"]["denied"], 1);
    assert_eq!(test.status("a")["outcome"]["why"], "no key at all");
}

#[test]
fn an_echoed_prompt_does_not_count_as_a_denial() {
    let test = Test::new();
    test.write(
        ".ralph/template.md",
        "{{task}}\nIf it says\nrefused: ls\nask.\n{{done}}\n",
    );
    known_agent(&test, "edits", "cat; echo ok").exits(0);
    assert!(test.prompt("a", 1).contains("\nrefused: ls\n"));
    assert!(
        test.events("a", "ended")[0]["report"]
            .get("denied")
            .is_none()
    );
}
