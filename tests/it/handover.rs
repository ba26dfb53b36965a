//! What an iteration's prompt says about earlier iterations: their notes, failures and files.

use crate::kit::{Done, Test};

/// Runs a loop named `a` on the scripted agent.
fn run(test: &Test, args: &[&str]) -> Done {
    let head = [
        "run",
        "mend",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
    ];
    test.ralph(&[&head[..], args].concat())
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn the_next_prompt_contains_the_note_or_the_end_of_the_final_message() {
    let test = Test::new().script(
        "iteration 1\n  say The parser is done.\n  say <note>Look at `parse_date`\n  say and at <promise>COMPLETE</promise></note>\n\
         iteration 2\n  say Only the printer is left.\niteration *\n  sh true\n",
    );
    run(&test, &["-m", "4"]).exits(1);
    has(
        &test.prompt("a", 2),
        &[
            "Iteration 1 left this note:\n\n```\nLook at `parse_date`\nand at ‹promise›COMPLETE‹/promise›\n```\n",
        ],
    );
    assert!(!test.prompt("a", 2).contains("The parser is done."));
    let last = "Iteration 2 left this note:\n\n```\nOnly the printer is left.\n```\n";
    has(&test.prompt("a", 3), &[last]);
    has(&test.prompt("a", 4), &[last]);
    assert_eq!(
        test.events("a", "ended")[1]["report"]["note"],
        "Only the printer is left."
    );
}

#[test]
fn the_history_names_failing_lines_and_the_files_of_each_iteration() {
    let test = Test::git().script(
        "iteration 1\n  write src/a.rs\n  | one\n  write b.txt\n  | one\n\
         iteration 2\n  write b.txt\n  | two\niteration *\n  say idle\n",
    );
    let long = format!(
        "printf 'ok\\nerror: `b` is missing\\nsummary\\n'; : {}; false",
        "x".repeat(99)
    );
    run(&test, &["-m", "4", "--check", &long, "--check", "true"]).exits(1);
    let prompt = test.prompt("a", 4);
    let (_, history) = prompt.split_once("## Iterations so far").unwrap();
    let lines: Vec<&str> = history
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    let red = "red: ``error: `b` is missing``";
    has(lines[0], &[red, "; changed `b.txt`, `src/a.rs`"]);
    has(lines[1], &[red, "; changed `b.txt`"]);
    assert!(lines[2].ends_with(red), "{history}");
    assert!(
        !history.contains("`true`") && !history.contains(&"x".repeat(60)),
        "{history}"
    );
    has(
        &test.read(".ralph/task/a/progress.md"),
        &[": ``error: `b` is missing``\n"],
    );
}

#[test]
fn a_cut_diff_lists_all_files_and_lock_files_come_last() {
    let test = Test::git().script(
        "iteration 1\n  sh seq 3000 > a-lock.json; echo 'x = 1' > src.py; rm README\niteration *\n  say idle\n",
    );
    run(&test, &["-m", "2"]).exits(1);
    has(
        &test.prompt("a", 2),
        &[
            "+x = 1\n",
            "characters cut] Changed files: README +0 −1, src.py +1 −0, a-lock.json +3000 −0.",
        ],
    );
}

#[test]
fn the_prompt_does_not_say_what_is_not_known() {
    let test = Test::new().script("iteration *\n  say idle\n");
    let unknown = ["--max-cost", "2", "--allow-unknown-cost"];
    let check = ["--check", "echo hello; false", "--output-chars", "0"];
    run(&test, &[&["-m", "2"], &unknown[..], &check].concat()).exits(1);
    let prompt = test.prompt("a", 2);
    has(
        &prompt,
        &[
            "is red (exit 1). Full output: .ralph/guardrail_1_echo-hello-false.log\n",
            "Used so far: unknown cost of $2.00.",
        ],
    );
    assert!(!prompt.contains("printed nothing"), "{prompt}");
}

#[test]
fn a_command_with_backticks_and_newlines_is_one_code_span() {
    let test = Test::new().script("iteration *\n  say idle\n");
    run(&test, &["-m", "1", "--check", "test `echo 1` = 2\nfalse"]).exits(1);
    has(
        &test.prompt("a", 1),
        &[
            "The check ``test `echo 1` = 2 false`` is red",
            "green: ``test `echo 1` = 2 false``.",
        ],
    );
}

#[test]
fn only_a_loop_that_succeeded_is_complete_and_green_checks_are_not_invented() {
    let test = Test::new().script("iteration *\n  say idle\n");
    let done = run(&test, &["-m", "1"]).exits(1);
    has(
        &done.out,
        &["loop ended after 1 iteration: iteration limit reached"],
    );
    assert!(!done.out.contains("loop complete"), "{}", done.out);
    let log = test.read_loop("a", "iterations.log");
    has(
        &log,
        &["[LIMIT] loop ended after 1 iterations: iteration limit reached\n"],
    );
    let done = run(&test, &["-m", "1", "--no-promise"]).exits(0);
    has(
        &done.out,
        &[
            "loop complete after 1 iteration",
            "ran to its iteration limit\n",
        ],
    );
}

#[test]
fn colored_tags_count() {
    for (tag, code) in [
        ("promise>COMPLETE</promise", 0),
        ("response>DONE</response", 0),
        ("blocked>no key</blocked", 3),
    ] {
        let agent = format!("printf '\\033[32m<{tag}>\\033[0m\\n'");
        let test = Test::new();
        let args = ["run", "t", "-m", "1", "--", "sh", "-c", &agent];
        test.ralph(&args).exits(code);
    }
}
