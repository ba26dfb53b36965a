//! The content of the prompt, and the interpretation of the agent's answer.

use crate::kit::{Done, Test};
use std::fs;
use std::path::PathBuf;

const AGENT: &str = "script:../agent.script";

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[track_caller]
fn lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "{part:?} is in\n{text}");
    }
}

/// Returns the section of a prompt under a heading.
fn section<'a>(prompt: &'a str, heading: &str) -> &'a str {
    let (_, rest) = prompt
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("{heading}\n{prompt}"));
    rest.split("\n## ").next().unwrap_or_default()
}

/// Runs a loop named `a` on the scripted agent.
fn run(test: &Test, args: &[&str]) -> Done {
    let mut all = vec!["run", "--name", "a", "--agent", AGENT];
    all.extend(args);
    test.ralph(&all)
}

fn prompt_bytes(test: &Test, iteration: u32) -> Vec<u8> {
    let path: PathBuf = test
        .loop_dir("a")
        .join(format!("iterations/{iteration:04}/prompt.md"));
    fs::read(path).unwrap()
}

#[test]
fn a_prompt_contains_the_task_the_limits_and_what_counts_as_done() {
    let test = Test::git().script("iteration *\n  say still at it\n  cost 0.25\n");
    run(
        &test,
        &[
            "Mend",
            "the",
            "roof",
            "-m",
            "2",
            "--max-cost",
            "3",
            "--max-time",
            "1h",
            "--check",
            "test -f roof",
        ],
    )
    .exits(1);
    let first = test.prompt("a", 1);
    assert!(first.starts_with("Mend the roof\n"), "{first}");
    has(
        &first,
        &["iteration 1 of at most 2", "of 1h", "$0.0000 of $3.00"],
    );
    has(
        &first,
        &[
            "all must be green: `test -f roof`",
            "<blocked>the reason</blocked>",
        ],
    );
    has(&first, &["<promise>COMPLETE</promise>"]);
    lacks(&first, &["Iterations so far"]);
    has(
        &test.prompt("a", 2),
        &["iteration 2 of at most 2", "$0.2500 of $3.00"],
    );
}

#[test]
fn the_prompt_describes_done_as_it_is_judged() {
    let test = Test::git().script("iteration *\n  say no\n");
    let done_of = |args: &[&str]| {
        let mut all = vec!["work", "-m", "1"];
        all.extend(args);
        run(&test, &all);
        test.prompt("a", 1)
    };
    has(
        &done_of(&[]),
        &["<promise>COMPLETE</promise>", "the whole task"],
    );
    has(
        &done_of(&["--check", "true"]),
        &["<promise>COMPLETE</promise>", "all must be green: `true`"],
    );
    has(
        &done_of(&["--check", "true", "--no-preflight"]),
        &["<promise>COMPLETE</promise>"],
    );
    let both = done_of(&[
        "--check",
        "false",
        "--promise",
        "ALL  MENDED",
        "--done-file",
        "made.txt",
    ]);
    has(
        &both,
        &[
            "<promise>ALL MENDED</promise>",
            "create the file `made.txt`",
            "`false`",
        ],
    );
    let pattern = done_of(&["--done-pattern", "ALL OK"]);
    has(&pattern, &["`ALL` followed directly by ` OK`"]);
    lacks(&pattern, &["ALL OK", "<promise>"]);
    let plain = done_of(&["--no-promise"]);
    has(&plain, &["one sensible step", "<blocked>"]);
    lacks(&plain, &["<promise>"]);
}

#[test]
fn the_diff_shows_committed_staged_and_untracked_changes_since_the_start() {
    let test = Test::git()
        .file("kept.txt", "as it was\n")
        .file("README", "dirty before the start\n");
    test.sh("git add kept.txt");
    let test = test.script(
        "iteration 1
  write untracked/new.txt
  | in an untracked file
  write staged.txt
  | in a staged file
  sh git add staged.txt
  write committed.txt
  | in a committed file
  sh git add committed.txt && git commit -q -m work committed.txt
  append README
  | at the end of a tracked file
  write ignored.log
  | in an ignored file
",
    );
    test.write(".gitignore", "*.log\n");
    run(&test, &["work", "-m", "2"]).exits(1);
    has(&test.prompt("a", 1), &["work\n"]);
    lacks(&test.prompt("a", 1), &["Changes since", "dirty before"]);
    let second = test.prompt("a", 2);
    let diff = section(&second, "Changes since the loop started");
    has(
        diff,
        &[
            "```diff\n",
            "+in an untracked file",
            "+in a staged file",
            "+in a committed file",
        ],
    );
    has(
        diff,
        &["untracked/new.txt", "+at the end of a tracked file"],
    );
    lacks(diff, &["as it was", "+dirty before", "ignored", ".ralph"]);
}

#[test]
fn a_long_diff_says_what_was_cut() {
    let test = Test::git().script("iteration 1\n  sh yes 0123456789 | head -n 2000 > long.txt\n");
    run(&test, &["work", "-m", "2"]).exits(1);
    let second = test.prompt("a", 2);
    let diff = section(&second, "Changes since the loop started");
    let inside = diff.split("```").nth(1).unwrap();
    assert_eq!(
        inside
            .strip_prefix("diff\n")
            .unwrap()
            .trim_end()
            .chars()
            .count()
            .div_ceil(10),
        500,
        "{diff}"
    );
    has(diff, &[" later characters cut]"]);
    run(&test, &["work", "-m", "1", "--diff-chars", "100"]).exits(1);

    let test = Test::git().script("iteration 1\n  sh yes 0123456789 | head -n 2000 > long.txt\n");
    run(&test, &["work", "-m", "2", "--diff-chars", "100"]).exits(1);
    assert!(
        section(&test.prompt("a", 2), "Changes since the loop started")
            .chars()
            .count()
            < 200
    );
}

#[test]
fn the_prompt_says_that_there_is_no_repository() {
    let test = Test::new().script("iteration 1\n  write new.txt\n  | new\n");
    run(&test, &["work", "-m", "2"]).exits(1);
    has(
        &test.prompt("a", 2),
        &[
            "There is no diff: the workspace is not in a git repository.",
            "Iterations so far",
        ],
    );
    lacks(&test.prompt("a", 2), &["```diff"]);
}

#[test]
fn a_red_check_shows_its_end_and_where_the_rest_is() {
    let test = Test::git().script("iteration *\n  say no\n");
    let red = "seq 1000 3000; echo its last words >&2; exit 7";
    run(
        &test,
        &[
            "work",
            "-m",
            "2",
            "--check",
            red,
            "--check",
            "echo a green secret",
            "--output-chars",
            "60",
        ],
    )
    .exits(1);
    for (iteration, log) in [(1, 0), (2, 1)] {
        let prompt = test.prompt("a", iteration);
        has(
            &prompt,
            &[
                &format!("The check `{red}` is red (exit 7)."),
                "2999\n3000\nits last words\n",
            ],
        );
        has(
            &prompt,
            &[
                " earlier characters cut]",
                "Currently green: `echo a green secret`.",
            ],
        );
        lacks(&prompt, &["\n1000\n", "a green secret\n"]);
        let path = format!(".ralph/guardrail_{log}_seq-1000-3000-echo-its-last-words-2-exit.log");
        has(&prompt, &[&format!("Full output: {path}")]);
        assert!(test.read(&path).starts_with("1000\n1001\n"));
        assert!(test.read(&path).ends_with("3000\nits last words\n"));
    }
    has(
        &test.read(".ralph/guardrail_1_echo-a-green-secret.log"),
        &["a green secret\n"],
    );
}

#[test]
fn the_history_says_how_each_iteration_ended() {
    let test = Test::git()
        .script("iteration 1\n  exit 3\niteration 2\n  promise COMPLETE\niteration 3\n  crash\n");
    run(
        &test,
        &[
            "work",
            "-m",
            "4",
            "--promise",
            "COMPLETE",
            "--check",
            "false",
            "--backoff",
            "1ms..1ms",
        ],
    )
    .exits(1);
    let last = test.prompt("a", 4);
    let history = section(&last, "Iterations so far");
    let lines: Vec<&str> = history
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    assert_eq!(lines.len(), 3, "{history}");
    has(lines[0], &["iteration 1/4: exit 3,", "`false` red"]);
    has(lines[1], &["iteration 2/4: exit 0,", "claimed done"]);
    has(lines[2], &["iteration 3/4: killed by signal 9,"]);
    lacks(lines[0], &["claimed"]);
}

#[test]
fn the_history_has_the_last_twenty_iterations() {
    let test = Test::new();
    test.ralph(&["run", "work", "--name", "a", "-m", "23", "--", "true"])
        .exits(1);
    let last = test.prompt("a", 23);
    lacks(&last, &["- iteration 2/23"]);
    has(&last, &["- iteration 3/23", "- iteration 22/23"]);
}

#[test]
fn with_context_none_the_prompt_is_the_file_byte_for_byte() {
    for bytes in [
        &b"\xff\xfe not text \x00 {{task}} <promise>X</promise>\r\n\r\nno end"[..],
        b"",
        b"\n\n",
        b"ends\n",
    ] {
        let test = Test::git().script("iteration *\n  sh cat > got\n");
        fs::write(test.workspace().join("PROMPT.md"), bytes).unwrap();
        run(
            &test,
            &["-m", "2", "--context", "none", "--check", "echo red; false"],
        )
        .exits(1);
        for iteration in [1, 2] {
            assert_eq!(prompt_bytes(&test, iteration), bytes);
        }
        assert_eq!(fs::read(test.workspace().join("got")).unwrap(), bytes);
    }
}

#[test]
fn context_feedback_has_no_diff_and_no_history() {
    let test = Test::git().script("iteration 1\n  write new.txt\n  | new\n");
    run(
        &test,
        &[
            "work",
            "-m",
            "2",
            "--context",
            "feedback",
            "--check",
            "echo its reason; false",
        ],
    )
    .exits(1);
    let second = test.prompt("a", 2);
    has(
        &second,
        &[
            "work\n",
            "its reason",
            "iteration 2 of at most 2",
            "all must be green",
        ],
    );
    lacks(&second, &["```diff", "Iterations so far", "new.txt"]);
}

#[test]
fn the_prompt_file_is_read_again_for_every_iteration() {
    let test = Test::git()
        .file("PROMPT.md", "Do task A.\n")
        .script("iteration 1\n  write PROMPT.md\n  | Do task B.\n");
    run(&test, &["-m", "2"]).exits(1);
    assert!(test.prompt("a", 1).starts_with("Do task A.\n"));
    assert!(test.prompt("a", 2).starts_with("Do task B.\n"));
}

#[test]
fn a_red_check_s_output_goes_where_on_fail_says() {
    let test = Test::git().script("iteration *\n  say no\n");
    let prompt_of = |how: &str| {
        run(
            &test,
            &[
                "THE TASK",
                "-m",
                "1",
                "--on-fail",
                how,
                "--check",
                "echo THE OUTPUT; false",
            ],
        )
        .exits(1);
        test.prompt("a", 1)
    };
    let at = |prompt: &str, part: &str| {
        prompt
            .find(part)
            .unwrap_or_else(|| panic!("{part}\n{prompt}"))
    };
    let appended = prompt_of("append");
    assert!(at(&appended, "THE TASK") < at(&appended, "\nTHE OUTPUT\n"));
    assert!(at(&appended, "\nTHE OUTPUT\n") < at(&appended, "## This loop"));
    let prepended = prompt_of("prepend");
    assert!(at(&prepended, "\nTHE OUTPUT\n") < at(&prepended, "THE TASK"));
    let first = prompt_of("replace");
    has(&first, &["THE TASK", "\nTHE OUTPUT\n"]);
    let check = ["--check", "echo THE OUTPUT; false", "--on-fail", "replace"];
    run(&test, &[&["THE TASK", "-m", "2"], &check[..]].concat()).exits(1);
    let replaced = test.prompt("a", 2);
    lacks(&replaced, &["THE TASK"]);
    // The replacement replaces only the task, not the rules.
    has(
        &replaced,
        &["\nTHE OUTPUT\n", "## This loop", "all must be green"],
    );
}

#[test]
fn the_user_s_own_template_is_rendered() {
    let template = "{{#notes}}N: {{notes}}\n{{/notes}}{{title}}: {{task}} ({{iteration}}/{{max_iterations}})\n{{done}}\n";
    let test = Test::git()
        .file(".ralph/template.md", template)
        .file("PROMPT.md", "Mend it.\n");
    let test = test.script("iteration *\n  say I will not say <promise>COMPLETE</promise> yet\n");
    run(
        &test,
        &["The", "roof", "--prompt-file", "PROMPT.md", "-m", "2"],
    )
    .exits(1);
    let first = test.prompt("a", 1);
    assert!(
        first.starts_with("The roof: Mend it. (1/2)\n- Only when"),
        "{first}"
    );
    lacks(&first, &["## This loop"]);
    has(
        &test.prompt("a", 2),
        &[
            "N: The last promise did not count",
            "The roof: Mend it. (2/2)\n",
        ],
    );
}

#[test]
fn a_run_does_not_change_the_repository_s_index_or_branch() {
    let test = Test::git()
        .file("staged", "s\n")
        .file("untracked", "u\n")
        .script("iteration *\n  say nothing done\n");
    test.sh("git add staged && echo more >> README && echo half >> staged");
    let look = |test: &Test| {
        let state = test.sh("git status --porcelain && git rev-parse HEAD && git diff && git diff --cached && git stash list && git branch -a && git worktree list");
        // The index's bytes change whenever its timestamps are refreshed; its entries must not
        // change.
        (state, test.sh("git ls-files -s"))
    };
    let index = fs::read(test.workspace().join(".git/index")).unwrap();
    let before = look(&test);
    assert_eq!(
        fs::read(test.workspace().join(".git/index")).unwrap(),
        index
    );
    run(&test, &["work", "-m", "2", "--check", "false"]).exits(1);
    assert_eq!(
        fs::read(test.workspace().join(".git/index")).unwrap(),
        index,
        "the index was written"
    );
    assert_eq!(look(&test), before);
}

// ---- what counts as a claim ------------------------------------------------------------------------

#[test]
fn a_promise_ends_a_loop_without_checks() {
    for (args, answer) in [
        (&[][..], "promise COMPLETE"),
        (&[], "promise DONE"),
        (&[], "promise complete"),
        (&[], "say It all works.\n  promise COMPLETE"),
        (&[], "say It all works. <promise>COMPLETE</promise>"),
        (&[], "say **<promise>COMPLETE</promise>**"),
        (&[], "say <response>DONE</response>"),
        (&["--promise", "ROOF  MENDED"], "promise roof mended"),
        (&["--completion-promise", "MENDED"], "promise MENDED"),
        (&["--completion-tag", "MENDED"], "promise MENDED"),
        (
            &["--completion-response", "MENDED"],
            "say <response>MENDED</response>",
        ),
    ] {
        let test = Test::git().script(&format!("iteration 2-\n  {answer}\n"));
        let mut all = vec!["work", "-m", "3"];
        all.extend(args);
        run(&test, &all)
            .exits(0)
            .says("[ralph] a: loop complete after 2 iterations");
        assert_eq!(test.status("a")["stop_reason"], "completed", "{answer}");
    }
}

#[test]
fn text_that_is_not_a_promise_does_not_end_a_loop() {
    for (args, answer) in [
        (&[][..], "say COMPLETE"),
        (&[], "say I cannot say <promise>COMPLETE</promise> yet"),
        (&[], "say > <promise>COMPLETE</promise>"),
        (&[], "say ```\n  say <promise>COMPLETE</promise>\n  say ```"),
        (&[], "promise NOT COMPLETE"),
        (&["--promise", "MENDED"], "promise COMPLETE"),
        (&["--promise", "MENDED"], "promise DONE"),
        (&["--no-promise"], "promise COMPLETE"),
    ] {
        let test = Test::git().script(&format!("iteration 1\n  {answer}\n"));
        let mut all = vec!["work", "-m", "2"];
        all.extend(args);
        run(&test, &all).says("starting iteration 2/2");
        assert_eq!(test.status("a")["outcome"]["kind"], "limit", "{answer}");
    }
}

#[test]
fn a_promise_inside_a_sentence_is_explained_in_the_next_prompt() {
    let test = Test::git().script(
        "iteration 1\n  say I will not write <promise>COMPLETE</promise> before it holds\n",
    );
    run(&test, &["work", "-m", "2"]).exits(1);
    has(
        &test.prompt("a", 2),
        &[
            "inside a sentence",
            "did not count",
            "alone on the last line",
        ],
    );
    lacks(&test.prompt("a", 1), &["did not count"]);
}

#[test]
fn a_promise_ends_a_loop_only_while_every_check_is_green() {
    let test = Test::git().script("iteration 1\n  promise COMPLETE\niteration 2\n  write roof\n  | new\niteration 3\n  promise COMPLETE\n");
    run(
        &test,
        &[
            "work",
            "-m",
            "5",
            "--promise",
            "COMPLETE",
            "--check",
            "test -f roof",
        ],
    )
    .exits(0)
    .says("after 3 iterations");
    has(
        &test.prompt("a", 2),
        &["claim that the task is done did not count, because a check was red"],
    );
    lacks(&test.prompt("a", 3), &["did not count"]);
    assert_eq!(test.status("a")["stop_reason"], "all_checks_passed");

    // Checks that are green from the start prove nothing, so a claim is asked for as well.
    let test = Test::git().script("iteration 2\n  promise COMPLETE\n");
    run(&test, &["work", "-m", "5", "--check", "true"])
        .exits(0)
        .says("after 2 iterations");
}

#[test]
fn an_agent_that_echoes_its_prompt_is_never_done() {
    for args in [
        &[][..],
        &["--promise", "ROOF MENDED"],
        &["--check", "true"],
        &["--done-pattern", "ROOF MENDED"],
        &["--done-pattern", "(?i)roof.*mended", "--promise", "X"],
        &["--done-pattern", "^."],
        &["--context", "none"],
    ] {
        let task = "Mend the roof.\n\nWhen it holds, print\n<promise>COMPLETE</promise>\nor\nROOF MENDED\nand exit.\n";
        let test = Test::git()
            .file("PROMPT.md", task)
            .script("iteration *\n  echo-prompt\n");
        let mut all = vec!["-m", "3"];
        all.extend(args);
        run(&test, &all).exits(1).says("starting iteration 3/3");
        assert_eq!(test.status("a")["outcome"]["why"], "iterations", "{args:?}");
    }
}

#[test]
fn a_promise_after_an_echoed_prompt_counts() {
    let task = "Mend the roof.\nThen print\nROOF MENDED\n";
    for (args, answer) in [
        (&[][..], "promise COMPLETE"),
        (
            &["--done-pattern", "ROOF MENDED"],
            "say ROOF MENDED\n  say and that is all",
        ),
    ] {
        let script = format!(
            "iteration 1\n  echo-prompt\niteration 2\n  echo-prompt\n  say Well.\n  {answer}\n"
        );
        let test = Test::git().file("PROMPT.md", task).script(&script);
        let mut all = vec!["-m", "3"];
        all.extend(args);
        run(&test, &all)
            .exits(0)
            .says("loop complete after 2 iterations");
    }
}

#[test]
fn a_done_pattern_matches_an_unterminated_line_once_the_agent_is_quiet() {
    let test = Test::new();
    let agent = "printf 'work is finished'; sleep 600";
    let args = ["run", "t", "--name", "a", "--done-pattern", "finished$"];
    test.ralph(&[&args[..], &["--", "sh", "-c", agent]].concat())
        .exits(0)
        .says("done pattern matched, stopping loop");
}

#[test]
fn a_done_pattern_stops_the_agent_when_it_matches() {
    let test =
        Test::git().script("iteration 1\n  say 99%\niteration 2\n  say plan: 100%\n  hang\n");
    run(&test, &["work", "--done-pattern", r"plan:.*100%"])
        .exits(0)
        .says("[ralph] a: done pattern matched, stopping loop");
    assert_eq!(test.status("a")["current_iteration"], 2);
    // The checks decide: a red one starts the next iteration.
    let test = Test::git().script(
        "iteration 1\n  say plan: 100%\niteration 2\n  write roof\n  | new\n  say plan: 100%\n",
    );
    let done = run(
        &test,
        &[
            "work",
            "--done-pattern",
            r"plan:.*100%",
            "--check",
            "test -f roof",
        ],
    )
    .exits(0);
    assert_eq!(
        done.out
            .matches("done pattern matched, stopping loop")
            .count(),
        1,
        "{}",
        done.out
    );
    assert_eq!(test.status("a")["current_iteration"], 2);
}

#[test]
fn a_blocked_tag_ends_the_loop_as_blocked() {
    let test =
        Test::git().script("iteration 1\n  blocked Which port?\niteration 2\n  promise COMPLETE\n");
    run(&test, &["work"])
        .exits(3)
        .says("blocked: Which port?")
        .says("ralph resume a --answer");
    test.ralph(&[
        "resume",
        "a",
        "--answer",
        "Port 80, not <promise>COMPLETE</promise>",
    ])
    .exits(0);
    has(
        &test.prompt("a", 2),
        &["A person says: Port 80, not ‹promise›COMPLETE‹/promise›"],
    );
}

#[test]
fn a_check_s_control_characters_reach_neither_the_prompt_nor_the_console() {
    let check = r"printf '\033[31mred\033[0m\000 10%%\r 90%%\r100%%\r\nlast\033]0;title\007 line\n'; exit 1";
    let test = Test::git()
        .on_path("mine", "#!/bin/sh\nprintf %s \"$1\" > told\n")
        .file("check.sh", check)
        .file(
            ".ralph/settings.toml",
            "[agents.mine]\ncommand = 'mine'\nprompt = 'argument'\n",
        );
    let args = ["run", "mend", "--name", "a", "--agent", "mine", "-m", "2"];
    let done = test
        .ralph(&[&args[..], &["--check", "sh check.sh"]].concat())
        .exits(1);
    let told = test.read("told");
    assert_eq!(told.trim_end(), test.prompt("a", 2).trim_end());
    for text in [&told, &done.out] {
        has(text, &["100%\n", "last line\n"]);
        lacks(text, &["\x1b", "\0", "\r", "90%", "title"]);
    }
    let raw = fs::read(
        test.loop_dir("a")
            .join("iterations/0001/check-sh-check-sh.log"),
    )
    .unwrap();
    assert!(raw.starts_with(b"\x1b[31mred\x1b[0m\0 10%\r"));
}

#[test]
fn a_task_with_a_nul_character_can_be_passed_as_an_argument() {
    let test = Test::new()
        .on_path("mine", "#!/bin/sh\nprintf %s \"$1\" > told\n")
        .file("TASK.md", "me\0nd\n")
        .file(
            ".ralph/settings.toml",
            "[agents.mine]\ncommand = 'mine'\nprompt = 'argument'\n",
        );
    let args = ["run", "--prompt-file", "TASK.md", "--name", "a", "-m", "1"];
    test.ralph(&[&args[..], &["--agent", "mine"]].concat())
        .exits(1);
    has(&test.read("told"), &["mend\n"]);
}
