//! What ralph suggests for the words of other tools and for slips, and texts that begin with a dash.

use crate::kit::Test;

/// Returns the hint for arguments that are refused.
#[track_caller]
fn hint(args: &[&str]) -> String {
    let done = Test::new().ralph(args).exits(2);
    assert_eq!(done.out, "", "{args:?}");
    let last = done.err.lines().last().unwrap_or_default();
    last.strip_prefix("  hint: ")
        .unwrap_or_else(|| panic!("{args:?}: no hint in {}", done.err))
        .to_owned()
}

#[test]
fn commands_of_other_tools_and_slips_are_recognized() {
    for (word, ours) in [
        ("rnu", "run"),
        ("spwan", "spawn"),
        ("stat", "status"),
        ("kill", "stop"),
        ("cancel", "stop"),
        ("ps", "ls"),
        ("list", "ls"),
        ("delete", "rm"),
        ("remove", "rm"),
        ("clean", "rm --ended"),
        ("tail", "logs -f"),
        ("log", "logs"),
        ("continue", "resume"),
        ("restart", "resume"),
        ("loop", "run"),
        ("start", "run"),
        ("watch", "attach"),
        ("version", "--version"),
    ] {
        let hint = hint(&[word, "a", "--check", "true"]);
        assert!(
            hint.contains(&format!("did you mean `ralph {ours}`?")),
            "{word}: {hint}"
        );
    }
    let hint = hint(&["fix", "the", "bug"]);
    assert!(hint.contains("ralph run \"fix the bug\""), "{hint}");
}

#[test]
fn flags_of_other_tools_are_recognized() {
    for (args, expected) in [
        (&["run", "a", "--verbose"][..], "shown by default"),
        (&["ls", "--format", "json"], "did you mean --json?"),
        (&["status", "a", "--format=json"], "did you mean --json?"),
        (
            &["run", "a", "--output-format", "json"],
            "did you mean --json?",
        ),
        (&["run", "a", "--timeout", "5"], "--max-time"),
        (&["run", "a", "--budget", "5"], "--max-cost"),
        (&["run", "a", "--max-loops", "5"], "--max-iterations"),
        (&["run", "a", "--detach"], "ralph spawn"),
        (
            &["run", "a", "--dangerously-skip-permissions"],
            "--approve all",
        ),
        (&["run", "a", "--chek", "true"], "did you mean --check?"),
        // A hint for another command would be wrong here.
        (&["ls", "--budget", "5"], "ralph ls --help"),
        (&["ls", "--verbose"], "ralph ls --help"),
    ] {
        let hint = hint(args);
        assert!(hint.contains(expected), "{args:?}: {hint}");
        assert!(!hint.contains("--promise"), "{args:?}: {hint}");
    }
}

#[test]
fn a_text_may_begin_with_a_dash_and_a_space() {
    let test = Test::new();
    let base = ["-m", "1", "--no-promise", "--", "true"];
    for (number, (args, prompt)) in [
        (&["run", "- fix the list"][..], "- fix the list\n"),
        (&["run", "-m", "2", "- one\n- two"], "- one\n- two\n"),
        (&["run", "-q", "- after a switch"], "- after a switch\n"),
        (&["run", "---\ntitle: x\n---\nDo it."], "---\ntitle: x\n"),
        (&["run", "--prompt", "- of a flag"], "- of a flag\n"),
        (&["run", "--", "cat"], ""),
    ]
    .into_iter()
    .enumerate()
    {
        if prompt.is_empty() {
            test.ralph(args).exits(2).complains("no task given");
            continue;
        }
        let name = format!("a{number}");
        let rest = ["--name", &name];
        let args: Vec<&str> = if args.contains(&"-m") {
            [args, &rest, &base[2..]].concat()
        } else {
            [args, &rest, &base].concat()
        };
        test.ralph(&args).exits(0);
        let shown = test.prompt(&name, 1);
        assert!(shown.starts_with(prompt), "{args:?}: {shown}");
    }
    let args = ["run", "Wait.", "--name", "b", "--", "sh", "-c", "exit 42"];
    test.ralph(&args).exits(3);
    test.ralph(&["say", "b", "- look at the log"]).exits(0);
    test.ralph(&["bus", "post", "- a list"]).exits(0);
    test.ralph(&["bus", "tail"]).exits(0).says("- a list");
    test.ralph(&["resume", "b"]).exits(3);
    assert!(test.prompt("b", 2).contains("- look at the log"));
}

#[test]
fn a_second_loop_in_a_workspace_is_pointed_to_a_worktree() {
    let test = Test::git().script("iteration 1\n hang\n");
    let agent = "script:../agent.script";
    let first = test.start(&["run", "One.", "--name", "a", "--agent", agent]);
    first.until_out("starting iteration 1");
    test.ralph(&["run", "Two.", "--agent", agent])
        .exits(2)
        .complains("the loop \"a\" is already running in this workspace")
        .complains("with --worktree");
    test.ralph(&["stop", "a"]).exits(0);
    first.end().exits(130);
}

#[test]
fn limits_can_be_spelled_as_in_settings_files_and_durations_combined() {
    let test = Test::new();
    let args = [
        "run",
        "Wait.",
        "--name",
        "a",
        "--max-time",
        "1h30m",
        "--backoff",
        "0",
        "--",
        "sh",
        "-c",
        "exit 42",
    ];
    test.ralph(&args).exits(3);
    assert_eq!(test.status("a")["max_time"], 5400.0);
    for limit in ["max_iterations=6", "maxIterations=6", "max-iterations=6"] {
        test.ralph(&["set", "a", limit]).exits(0);
        assert_eq!(test.status("a")["max_iterations"], 6, "{limit}");
    }
    test.ralph(&["set", "a", "max_time=1d12h"]).exits(0);
    assert_eq!(test.status("a")["max_time"], 129_600.0);
}

#[test]
fn no_backoff_means_no_rest_after_a_failure() {
    for settings in ["backoff: 0\n", "backoff: null\n", "backoff: \"0\"\n"] {
        let test = Test::new().file(".ralph/settings.yaml", settings);
        let args = ["run", "Fail.", "--max-failures", "3", "--", "false"];
        let done = test.ralph(&args).exits(1);
        assert_eq!(
            done.out.matches("retrying in 0ms").count(),
            2,
            "{}",
            done.out
        );
    }
}

#[test]
fn a_slip_of_one_letter_suggests_a_command_of_the_same_length() {
    let hint = hint(&["rum", "x"]);
    assert!(hint.contains("did you mean `ralph run`?"), "{hint}");
}

#[test]
fn a_suggested_task_leaves_flags_and_the_agent_outside_its_quotes() {
    for (args, expected) in [
        (
            &["fix tests", "--", "true"][..],
            "`ralph run \"fix tests\" -- true`",
        ),
        (
            &["fix", "it", "--check", "npm test"],
            "`ralph run \"fix it\" --check 'npm test'`",
        ),
        (&["print \"$HOME\""], "`ralph run 'print \"$HOME\"'`"),
    ] {
        let hint = hint(args);
        assert!(hint.contains(expected), "{args:?}: {hint}");
    }
}

#[test]
fn flags_of_limits_are_shown_as_arguments_of_set() {
    for (args, expected) in [
        (
            &["set", "a", "-m", "30"][..],
            "ralph set a max-iterations=30",
        ),
        (&["set", "a", "--max-cost=2.5"], "ralph set a max-cost=2.5"),
        (&["set", "a", "--max-time", "1h"], "ralph set a max-time=1h"),
        (&["set", "a", "--max-tokens"], "ralph set a max-tokens=N"),
        (
            &["set", "-m", "30", "a"],
            "ralph set NAME max-iterations=30",
        ),
        (&["set", "a", "--chek", "x"], "ralph set --help"),
    ] {
        let hint = hint(args);
        assert!(hint.contains(expected), "{args:?}: {hint}");
    }
}

#[test]
fn hints_for_a_settings_file_use_its_format() {
    for (name, text, expected) in [
        (
            "toml",
            "maxIterations = \"x\"\n",
            "for example maxIterations = 10",
        ),
        ("toml", "noPreflight = true\n", "use preflight = false"),
        (
            "json",
            "{\"maxIterations\": \"x\"}",
            "for example maxIterations: 10",
        ),
        (
            "yaml",
            "maxIterations: x\n",
            "for example maxIterations: 10",
        ),
    ] {
        let test = Test::new().file(&format!(".ralph/settings.{name}"), text);
        test.ralph(&["config"])
            .exits(2)
            .complains(&format!("hint: {expected}\n"));
    }
}

#[test]
fn a_task_that_is_no_git_command_is_refused() {
    let test = Test::git();
    test.sh("git config alias.ship 'push origin HEAD'");
    let run = |task: &str| {
        let task = format!("--scm={task}");
        let args = ["run", "x", "--check", "false", "--dry-run", &task];
        test.ralph(&[&args[..], &["--", "true"]].concat())
    };
    run("commt")
        .exits(2)
        .complains("--scm: git has no command \"commt\"\n  hint: did you mean commit?\n");
    run("psuh").exits(2).complains("did you mean push?");
    run("frobnicate-all")
        .exits(2)
        .complains("such as commit or push");
    for task in [
        "commit",
        "commit --no-verify",
        "ship",
        "-c core.editor=true push",
    ] {
        run(task).exits(0);
    }
}
