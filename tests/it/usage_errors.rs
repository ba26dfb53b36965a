//! Command-line mistakes: each has a message, a hint and exit code 2, and changes nothing.

use crate::kit::Test;
use std::fs;

/// Returns every file and directory below the workspace and the state directory.
fn traces(test: &Test) -> Vec<String> {
    let root = test.root().display();
    test.sh(&format!("find '{root}/shop' '{root}/state' | sort"))
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Asserts that the arguments are refused with this error and hint, and that nothing changes on
/// disk.
#[track_caller]
fn refused(test: &Test, args: &[&str], error: &str, hint: &str) {
    let before = traces(test);
    let done = test.ralph(args).exits(2);
    let mut lines = done.err.lines();
    let first = lines.next().unwrap_or_default();
    assert!(
        first.starts_with("ralph: error: ") && first.contains(error),
        "{args:?}: {error:?} is not in\n{}",
        done.err
    );
    let last = lines.last().unwrap_or_default();
    assert!(
        last.starts_with("  hint: ") && last.contains(hint),
        "{args:?}: {hint:?} is not in\n{}",
        done.err
    );
    assert_eq!(done.out, "", "{args:?}");
    assert_eq!(traces(test), before, "{args:?}");
}

#[test]
fn a_loop_needs_a_task() {
    let test = Test::new();
    refused(&test, &["run", "--", "true"], "no task given", "PROMPT.md");
    refused(
        &test,
        &["run", " ", "--", "true"],
        "the task is empty",
        "leave it out",
    );
    refused(
        &test,
        &["run", "a", "--prompt", "b", "--", "true"],
        "TASK and --prompt",
        "",
    );
    refused(
        &test,
        &["run", "--prompt", "b", "--prompt-file", "c", "--", "true"],
        "--prompt and --prompt-file",
        "only one of them",
    );
}

#[test]
fn a_missing_name_is_answered_with_the_command_that_lists_the_loops() {
    let test = Test::new();
    for command in ["status", "logs", "stop", "attach", "say"] {
        test.ralph(&[command])
            .exits(2)
            .complains("`ralph ls` lists all loops");
    }
}

#[test]
fn a_prompt_file_must_be_an_existing_file() {
    let test = Test::new().file("folder/x", "");
    refused(
        &test,
        &["run", "--prompt-file", "no.md", "--", "true"],
        "prompt file not found: no.md",
        "create the file",
    );
    refused(
        &test,
        &["run", "--spec", "no.md", "--", "true"],
        "prompt file not found: no.md",
        "create the file",
    );
    refused(
        &test,
        &["run", "--prompt-file", "folder", "--", "true"],
        "cannot read prompt file: folder",
        "regular file",
    );
    test.write("PROMPT.md/x", "");
    refused(
        &test,
        &["run", "--", "true"],
        "cannot read prompt file: PROMPT.md",
        "regular file",
    );
    let stdin = ["run", "--prompt-file", "/dev/stdin", "--", "true"];
    refused(
        &test,
        &stdin,
        "cannot read prompt file: /dev/stdin",
        "regular file",
    );
}

#[test]
fn a_done_file_that_already_exists_is_refused() {
    let test = Test::new().file("report.md", "of yesterday");
    let args = ["run", "x", "--done-file", "report.md", "--", "true"];
    refused(
        &test,
        &args,
        "--done-file report.md already exists",
        "remove the file",
    );
}

#[test]
fn a_path_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let test = Test::new();
    let mut command = test.ralph_command(&["run", "x", "--done-file"]);
    command
        .arg(std::ffi::OsStr::from_bytes(b"b\xff"))
        .args(["--", "true"]);
    test.start_command(command)
        .end()
        .exits(2)
        .complains("UTF-8");
}

#[test]
fn an_empty_prompt_file_is_allowed() {
    let test = Test::new().file("PROMPT.md", "");
    test.ralph(&[
        "run",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--context",
        "none",
        "--",
        "true",
    ])
    .exits(0);
    assert_eq!(test.prompt("a", 1), "");
}

#[test]
fn an_unknown_flag_is_refused_with_a_suggestion() {
    let test = Test::new();
    refused(
        &test,
        &["run", "a", "--chek", "true", "--", "true"],
        "'--chek'",
        "did you mean --check?",
    );
    refused(
        &test,
        &["--max-iteration", "3", "--prompt", "a"],
        "'--max-iteration'",
        "--max-iterations?",
    );
    refused(
        &test,
        &["run", "a", "--zzz", "--", "true"],
        "'--zzz'",
        "ralph run --help",
    );
    refused(&test, &["ls", "--jsn"], "'--jsn'", "did you mean --json?");
    refused(
        &test,
        &["run", "a", "-q", "--json", "--", "true"],
        "--quiet",
        "ralph run --help",
    );
}

#[test]
fn an_unknown_command_is_never_a_task() {
    let test = Test::new();
    refused(
        &test,
        &["fix", "the", "bug"],
        "\"fix\" is not a command",
        "ralph run \"fix the bug\"",
    );
    refused(
        &test,
        &["statu"],
        "\"statu\" is not a command",
        "ralph status",
    );
    refused(
        &test,
        &["puase", "a"],
        "\"puase\" is not a command",
        "ralph pause",
    );
    refused(&test, &[""], "\"\" is not a command", "ralph run");
    refused(
        &test,
        &["help", "frobnicate"],
        "\"frobnicate\" is not a command",
        "ralph help",
    );
    let done = test.ralph(&[]).exits(2);
    assert!(
        done.out.is_empty() && done.err.contains("Usage: ralph"),
        "{done:?}"
    );
}

#[test]
fn flags_without_a_command_mean_run() {
    let test = Test::new();
    let args = [
        "--prompt",
        "say nothing",
        "-m",
        "1",
        "--no-promise",
        "--name",
        "a",
        "--",
        "true",
    ];
    test.ralph(&args)
        .exits(0)
        .says("[ralph] a: starting iteration 1/1");
    assert!(test.prompt("a", 1).starts_with("say nothing\n"));
    test.ralph(&[
        "-m",
        "1",
        "--no-promise",
        "--prompt",
        "- one\n- two",
        "--",
        "true",
    ])
    .exits(0);
    assert!(test.prompt("shop-1", 1).starts_with("- one\n- two\n"));
    refused(
        &test,
        &["--prompt", "-m", "5", "--", "true"],
        "--prompt <TEXT>",
        "ralph run --help",
    );
}

#[test]
fn a_name_is_short_and_plain() {
    let test = Test::new();
    let long = "x".repeat(64);
    for name in [
        "Bad",
        "-x",
        "a b",
        "../a",
        "a/b",
        "",
        ".",
        "é",
        long.as_str(),
    ] {
        let flag = format!("--name={name}");
        refused(
            &test,
            &["run", "a", &flag, "--", "true"],
            "is not a valid loop name",
            "a-z, 0-9",
        );
    }
    refused(
        &test,
        &["status", "No Such"],
        "is not a valid loop name",
        "a-z, 0-9",
    );
    refused(
        &test,
        &["status", "nosuch"],
        "no loop is named `nosuch`",
        "ralph ls",
    );
}

#[test]
fn limits_are_non_negative_numbers() {
    let test = Test::new();
    let count = "a whole number, 0 or more";
    let amount = "an amount in dollars";
    let span = "write a duration as 90, 90s, 5m, 1h30m or 30d";
    for (flag, named, value, why) in [
        ("-m", "--max-iterations", "-5", count),
        ("-m", "--max-iterations", "abc", count),
        ("-m", "--max-iterations", "1.5", count),
        ("-m", "--max-iterations", "99999999999", "up to 4294967295"),
        ("-m", "--max-iterations", "", count),
        ("--maximum-iterations", "--max-iterations", "-1", count),
        ("--max-failures", "--max-failures", "-1", count),
        ("--max-failures", "--max-failures", "many", count),
        ("--diff-chars", "--diff-chars", "-1", count),
        ("--output-chars", "--output-chars", "x", count),
        ("--max-cost", "--max-cost", "-1", amount),
        ("--max-cost", "--max-cost", "abc", amount),
        ("--max-cost", "--max-cost", "nan", amount),
        ("--max-cost", "--max-cost", "inf", amount),
        ("--max-time", "--max-time", "-1s", span),
        ("--max-time", "--max-time", "-1", span),
        ("--max-time", "--max-time", "5x", span),
        ("--max-time", "--max-time", "", span),
        ("--max-time", "--max-time", "1h30", span),
        ("--max-time", "--max-time", "--check", span),
        ("--iteration-timeout", "--iteration-timeout", "-2h", span),
        ("--inactivity-timeout", "--inactivity-timeout", "soon", span),
        ("--check-timeout", "--check-timeout", "-1s", span),
        ("--delay", "--delay", "-3", span),
        ("--backoff", "--backoff", "5", "write a backoff as 1s..300s"),
        (
            "--backoff",
            "--backoff",
            "5s..1s",
            "must not exceed the second",
        ),
        ("--backoff", "--backoff", "-1s..1s", span),
        ("--on-fail", "--on-fail", "explode", ""),
        ("--context", "--context", "everything", ""),
        ("--exit-waiting", "--exit-waiting", "x", ""),
    ] {
        let args = ["run", "a", flag, value, "--", "true"];
        let hint = if why.is_empty() {
            ""
        } else {
            "ralph run --help"
        };
        refused(&test, &args, &format!("{named} <"), hint);
        refused(&test, &args, why, hint);
    }
}

#[test]
fn a_promise_is_given_without_its_tag() {
    let test = Test::new();
    for promise in ["<promise>ALL OK</promise>", "<Response>ALL OK</response>"] {
        refused(
            &test,
            &["run", "a", "--promise", promise, "--", "true"],
            "contains the tag itself",
            "--promise \"ALL OK\"",
        );
    }
}

#[test]
fn a_done_pattern_is_a_regular_expression_without_look_around() {
    let test = Test::new();
    for (pattern, why, hint) in [
        ("(", "unclosed group", "backslash"),
        ("", "matches an empty line", "only when the task is done"),
        ("x*", "matches an empty line", "only when the task is done"),
        ("[z-a]", "--done-pattern", "backslash"),
        ("*", "--done-pattern", "backslash"),
        ("(?=a)b", "look-around", "describe what matches instead"),
        (
            "(?<!not )done",
            "look-around",
            "describe what matches instead",
        ),
    ] {
        refused(
            &test,
            &["run", "a", "--done-pattern", pattern, "--", "true"],
            why,
            hint,
        );
    }
}

#[test]
fn an_empty_check_is_refused() {
    let test = Test::new();
    for check in ["", "  ", "\n"] {
        refused(
            &test,
            &["run", "a", "--check", check, "--", "true"],
            "is empty",
            "--check",
        );
    }
}

#[test]
fn a_check_whose_program_is_missing_is_refused() {
    let test = Test::new();
    let args = ["run", "a", "--check", "nosuchcmd --flag", "--", "true"];
    refused(
        &test,
        &args,
        "command nosuchcmd not found",
        "--no-preflight",
    );
    // Without preflight, the program of a check may be missing: the agent may install it.
    let args = [
        "run",
        "a",
        "--no-preflight",
        "-m",
        "1",
        "--check",
        "nosuchcmd --flag",
        "--",
        "true",
    ];
    test.ralph(&args)
        .exits(1)
        .says("check `nosuchcmd --flag`: red (exit 127");
}

#[test]
fn a_check_may_use_shell_syntax() {
    let test = Test::new().file("dir/x", "");
    for (check, green) in [
        ("./script", false),
        ("dir/script --flag", false),
        ("/no/such/script", false),
        ("true", true),
        (":", true),
        ("test -d dir", true),
        ("[ -d dir ]", true),
        ("FOO=1 env | grep -q FOO=1", true),
        ("cd dir && test -f x", true),
        ("! test -f nothing", true),
        ("(exit 0)", true),
        ("{ true; }", true),
        ("if true; then true; fi", true),
        ("for i in 1 2; do true; done", true),
        ("\"true\"", true),
        ("$(echo true)", true),
        ("# a comment", true),
    ] {
        let args = [
            "run",
            "a",
            "--name",
            "a",
            "-m",
            "1",
            "--no-promise",
            "--check",
            check,
            "--",
            "true",
        ];
        let verdict = if green { "green" } else { "red (exit 127" };
        test.ralph(&args)
            .exits(i32::from(!green))
            .says(&format!("preflight check `{check}`: {verdict}"));
    }
}

#[test]
fn an_agent_must_be_installed_before_the_first_iteration() {
    let test = Test::new();
    refused(
        &test,
        &["run", "a", "--", "nosuchagent", "-p"],
        "nosuchagent",
        "PATH",
    );
    refused(
        &test,
        &["run", "a", "--", "./nosuchagent"],
        "./nosuchagent",
        "install ./nosuchagent",
    );
    refused(
        &test,
        &["run", "a", "--agent", "script:x", "--", "true"],
        "--agent cannot be combined with a command after --",
        "runs unchanged",
    );
}

#[test]
fn a_script_is_validated_before_anything_runs() {
    let test = Test::new().file("bad.script", "iteration 1\n  say hello\n  frobnicate\n");
    refused(
        &test,
        &["run", "a", "--agent", "script:no.script"],
        "no.script",
        "script:demo.script",
    );
    refused(
        &test,
        &["run", "a", "--agent", "script:bad.script"],
        "bad.script:3: unknown step `frobnicate`",
        "that line",
    );
}

#[test]
fn a_cost_limit_needs_an_agent_whose_cost_is_known() {
    let test = Test::new();
    let args = ["run", "a", "--max-cost", "5", "--", "true"];
    refused(
        &test,
        &args,
        "--max-cost is set, but ralph cannot read the cost of `true`",
        "--allow-unknown-cost",
    );
    let args = [
        "run",
        "a",
        "--max-cost",
        "5",
        "--allow-unknown-cost",
        "-m",
        "1",
        "--no-promise",
        "--",
        "true",
    ];
    test.ralph(&args).exits(0);
}

#[test]
fn promise_excludes_no_promise_and_is_not_empty() {
    let test = Test::new();
    let args = ["run", "a", "--promise", "X", "--no-promise", "--", "true"];
    refused(
        &test,
        &args,
        "--promise and --no-promise",
        "only one of them",
    );
    for empty in ["", " \t"] {
        refused(
            &test,
            &["run", "a", "--promise", empty, "--", "true"],
            "--promise",
            "in <promise>…</promise>",
        );
    }
}

#[test]
fn a_template_is_validated_before_anything_runs() {
    for (text, tag) in [
        ("{{tsk}}\n", "{{tsk}}"),
        ("{{#diff}}never closed\n", "{{#diff}}"),
        ("{{#diff}}{{#task}}{{/diff}}{{/task}}\n", "{{/diff}}"),
    ] {
        let test = Test::new().file(".ralph/template.md", text);
        refused(
            &test,
            &["run", "a", "--", "true"],
            &format!(".ralph/template.md: invalid tag {tag}"),
            "task, prepended",
        );
    }
    let test = Test::new().file(".ralph/template.md/x", "");
    refused(
        &test,
        &["run", "a", "--", "true"],
        ".ralph/template.md",
        "text file",
    );
}

#[test]
fn a_limit_is_set_by_name_and_value() {
    let test = Test::new();
    test.ralph(&["run", "a", "--name", "a", "-m", "1", "--", "true"])
        .exits(1);
    for word in [
        "max-iterations",
        "max-iterations=x",
        "max-iterations=-1",
        "max-cost=inf",
        "max-time=-1s",
        "max=1",
        "=1",
    ] {
        refused(
            &test,
            &["set", "a", word],
            &format!("{word:?}"),
            "max-iterations=N",
        );
    }
    refused(&test, &["set", "a"], "LIMIT=VALUE", "ralph set --help");
    refused(&test, &["set", "b", "max-iterations=3"], "`b`", "ralph ls");
    refused(
        &test,
        &["logs", "a", "--iteration", "2"],
        "--iteration 2",
        "newest",
    );
}

#[test]
fn done_and_blocked_work_only_inside_a_loop() {
    let test = Test::new();
    refused(&test, &["done"], "not inside a loop", "ralph stop");
    refused(
        &test,
        &["blocked", "why"],
        "not inside a loop",
        "ralph stop",
    );
    refused(&test, &["blocked"], "<WHY>", "ralph blocked --help");
}

#[test]
fn a_dry_run_prints_the_plan_and_leaves_no_trace() {
    let test = Test::git().file("PROMPT.md", "Mend the roof.");
    let before = traces(&test);
    let args = [
        "run",
        "--dry-run",
        "--check",
        "touch checked",
        "--promise",
        "THE ROOF HOLDS",
        "-m",
        "7",
        "--max-time",
        "1h",
        "--",
        "sh",
        "-c",
        "touch ran",
    ];
    let done = test.ralph(&args).exits(0);
    assert_eq!(traces(&test), before);
    assert_eq!(done.err, "");
    let (plan, prompt) = done
        .out
        .split_once("--- the first prompt")
        .expect("two parts");
    for row in [
        "agent       sh -c touch ran\n",
        "check       touch checked (timeout 10m)\n",
        "iterations  at most 7\n",
    ] {
        assert!(plan.contains(row), "{row:?} is not in\n{plan}");
    }
    assert!(
        plan.contains("time        at most 1h\n") && plan.contains("workspace   "),
        "{plan}"
    );
    assert!(
        prompt.contains("Mend the roof.\n") && prompt.contains("iteration 1 of at most 7"),
        "{prompt}"
    );
    assert!(
        prompt.contains("<promise>THE ROOF HOLDS</promise>"),
        "{prompt}"
    );
}

#[test]
fn every_command_has_readable_help() {
    let test = Test::new();
    let all = test.ralph(&["--help"]).exits(0).out;
    assert_eq!(test.ralph(&["help"]).exits(0).out, all);
    let verbs: Vec<&str> = all
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        verbs.contains(&"run") && verbs.contains(&"demo") && !all.contains("__"),
        "{all}"
    );
    for verb in verbs.into_iter().filter(|verb| *verb != "help") {
        let done = test.ralph(&[verb, "--help"]).exits(0);
        assert_eq!(done.err, "");
        assert!(
            done.out.contains(&format!("Usage: ralph {verb}")),
            "{}",
            done.out
        );
        let first = done.out.lines().next().unwrap_or_default();
        assert!(
            first.starts_with(char::is_uppercase) && !first.ends_with('.'),
            "{verb}: {first}"
        );
        assert!(all.contains(first), "{verb}: {first}");
        assert!(
            done.out.lines().all(|line| line.chars().count() <= 100),
            "{verb} is too wide\n{}",
            done.out
        );
    }
    let run = test.ralph(&["run", "--help"]).exits(0).out;
    for heading in [
        "Task:",
        "Done when:",
        "Checks:",
        "Limits:",
        "Rest:",
        "Agent:",
        "Output:",
    ] {
        assert!(
            run.contains(&format!("\n{heading}\n")),
            "{heading} is not in\n{run}"
        );
    }
}

#[test]
fn the_version_is_the_package_version() {
    let version = format!("ralph {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        assert_eq!(Test::new().ralph(&[flag]).exits(0).out, version);
    }
}

#[test]
fn a_high_iteration_limit_triggers_a_warning() {
    let test = Test::new();
    for (limit, text) in [
        ("51", "high iteration count (>50)"),
        ("0", "no iteration limit"),
    ] {
        let done = test.ralph(&[
            "run",
            "a",
            "-m",
            limit,
            "--",
            "sh",
            "-c",
            "echo '<promise>COMPLETE</promise>'",
        ]);
        done.exits(0).complains(&format!("ralph: warning: {text}"));
    }
    let done = test
        .ralph(&[
            "run",
            "a",
            "-m",
            "50",
            "--",
            "sh",
            "-c",
            "echo '<promise>COMPLETE</promise>'",
        ])
        .exits(0);
    assert_eq!(done.err, "");
    assert!(
        fs::read_dir(test.state_dir().join("loops"))
            .unwrap()
            .count()
            == 3
    );
}

#[test]
fn a_deleted_current_directory_is_reported() {
    let test = Test::new();
    let ralph = env!("CARGO_BIN_EXE_ralph");
    for args in ["run x -- true", "config", "doctor", "init --settings"] {
        let said = test.sh(&format!(
            "mkdir gone && cd gone && rmdir ../gone && {{ {ralph} {args} 2>&1 || echo $?; }}"
        ));
        assert!(
            said.contains("cannot find the current directory") && said.ends_with("1\n"),
            "{args}: {said}"
        );
    }
}

#[test]
fn an_unknown_command_is_refused_with_the_closest_one() {
    let test = Test::new();
    for (typed, meant) in [
        ("staus", "status"),
        ("stat", "status"),
        ("rsume", "resume"),
        ("lgos", "logs"),
    ] {
        test.ralph(&[typed])
            .exits(2)
            .complains(&format!("did you mean `ralph {meant}`?"));
    }
}

#[test]
fn a_file_called_ralph_in_the_workspace_is_named() {
    let test = Test::new().file(".ralph", "precious\n");
    let path = test.workspace().canonicalize().unwrap().join(".ralph");
    let error = format!("ralph: error: {} is not a directory\n", path.display());
    for command in [
        &["run", "x", "--name", "a", "--", "true"][..],
        &["spawn", "x", "--name", "a", "--", "true"],
        &["config"],
    ] {
        test.ralph(command)
            .exits(2)
            .complains(&error)
            .complains("  hint: ralph keeps its settings and working files in a directory of this name; rename");
    }
    assert!(!test.loop_dir("a").exists());
    assert_eq!(test.read(".ralph"), "precious\n");
    test.sh("rm .ralph; ln -s nowhere .ralph");
    test.ralph(&["run", "x", "--name", "a", "--", "true"])
        .exits(2)
        .complains(&error);
    test.sh("rm .ralph");
    // The agent replaces the directory.
    let replace = "rm -r .ralph; echo precious > .ralph";
    test.ralph(&["run", "x", "--name", "b", "--", "sh", "-c", replace])
        .exits(1)
        .complains(&format!(
            "cannot write to the workspace: {}/",
            path.display()
        ));
    assert_eq!(test.read(".ralph"), "precious\n");
    test.sh("rm .ralph");
    test.ralph(&["run", "x", "-m", "1", "--no-promise", "--", "true"])
        .exits(0);
}

#[test]
fn a_pattern_of_paths_must_be_valid() {
    let test = Test::new();
    let cases = [
        ("--protect", "", "it is empty"),
        ("--allow", "!tests/**", "cannot be negated"),
        ("--allow", "tests/{a,b", "is not a valid pattern"),
        ("--protect", "x[", "is not a valid pattern"),
    ];
    for (flag, glob, error) in cases {
        let args = ["run", "a", flag, glob, "--check", "true", "--", "true"];
        refused(&test, &args, error, "golden/");
    }
}
