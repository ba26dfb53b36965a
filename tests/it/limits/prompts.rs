//! The prompt file: it is read again for every iteration, and a missing one is an error.

use super::{assert_ended, run};
use crate::kit::Test;

#[test]
fn a_prompt_file_is_read_again_for_every_iteration() {
    let test = Test::new().file("PROMPT.md", "the first words\n");
    let test = test.script(
        "iteration 1\n write PROMPT.md\n  | the second words\niteration 2\n promise COMPLETE\n",
    );
    prompted(&test, &[]).exits(0);
    assert!(test.prompt("a", 1).contains("the first words"));
    assert!(test.prompt("a", 2).contains("the second words"));
    assert!(!test.prompt("a", 2).contains("the first words"));
}

fn prompted(test: &Test, args: &[&str]) -> crate::kit::Done {
    test.ralph(
        &[
            &[
                "run",
                "--name",
                "a",
                "--agent",
                super::AGENT,
                "--context",
                "feedback",
            ],
            args,
        ]
        .concat(),
    )
}

#[test]
fn a_prompt_file_that_is_missing_at_the_start_is_an_error() {
    let test = Test::new().script("");
    prompted(&test, &["--prompt-file", "gone.md"])
        .exits(2)
        .complains("ralph: error: prompt file not found: gone.md");
    assert!(!test.loop_dir("a").exists());
}

#[test]
fn a_prompt_file_that_is_deleted_ends_the_loop() {
    let test = Test::new()
        .file("PROMPT.md", "words\n")
        .script("iteration 1\n delete PROMPT.md\n");
    let path = test.workspace().canonicalize().unwrap().join("PROMPT.md");
    prompted(&test, &[]).exits(1).complains(&format!(
        "ralph: error: prompt file not found: {}\n",
        path.display()
    ));
    assert_ended(&test, "fatal", 1);
    assert_eq!(test.status("a")["outcome"]["why"], "prompt-file");
    test.write("PROMPT.md", "again\n");
    let live = test.start(&["resume", "a"]);
    live.until_out("starting iteration 2/25");
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
}

#[test]
fn a_prompt_file_that_cannot_be_read_ends_the_loop() {
    let test = Test::new()
        .file("PROMPT.md", "words\n")
        .script("iteration 1\n delete PROMPT.md\n sh mkdir PROMPT.md\n");
    prompted(&test, &[])
        .exits(1)
        .complains("ralph: error: cannot read prompt file: ")
        .complains("PROMPT.md: not a regular file\n");
    assert_ended(&test, "fatal", 1);
}

#[test]
fn a_prompt_file_that_is_too_large_is_an_error() {
    let test = Test::new().script("iteration 1\n sh truncate -s 1G PROMPT.md\n");
    test.sh("truncate -s 1G PROMPT.md");
    for dry in [&[][..], &["--dry-run"]] {
        prompted(&test, dry)
            .exits(2)
            .complains("prompt file is larger than 16 MiB: PROMPT.md");
    }
    test.write("PROMPT.md", "words\n");
    prompted(&test, &[])
        .exits(1)
        .complains("PROMPT.md: it is larger than 16 MiB\n");
}

#[test]
fn a_prompt_file_without_permission_is_an_error() {
    let test = Test::new().file("PROMPT.md", "words\n").script("");
    test.sh("chmod 755 ..; chmod -R a+rwX . ../state ../home; chmod 000 PROMPT.md");
    let command = test.unprivileged(&["run", "--name", "a", "--agent", super::AGENT]);
    let done = test.start_command(command).end().exits(2);
    done.complains("ralph: error: cannot read prompt file: PROMPT.md");
}

#[test]
fn an_empty_prompt_file_is_allowed() {
    let test = Test::new()
        .file("empty.md", "")
        .script("iteration 1\n promise COMPLETE\n");
    prompted(&test, &["--prompt-file", "empty.md"]).exits(0);
    assert!(
        run(
            &test,
            &[
                "--prompt-file",
                "empty.md",
                "--context",
                "none",
                "--no-promise",
                "-m",
                "1"
            ]
        )
        .exits(0)
        .err
        .is_empty()
    );
    assert_eq!(test.prompt("a", 1), "");
}
