//! The billing of an agent, the variables that are not passed to it, and redaction in every file.

mod hosts;
mod inputs;
mod leaks;
mod random;
mod streams;

use crate::kit::Test;
use std::fs;
use std::process::Command;

/// Prints the variables that these tests are about.
const SHOWS: &str = "#!/bin/sh\nenv | grep -E '^(ANTHROPIC_|CLAUDE|OPENAI|CODEX)' | cut -d= -f1 | sort >seen\ntouch \"$RALPH_TASK_DIR/DONE\"\n";

fn with_key(test: &Test, more: &[&str]) -> Command {
    let args = [&["run", "x", "--name", "a", "--agent", "claude"], more].concat();
    let mut command = test.ralph_command(&args);
    command
        .env("ANTHROPIC_API_KEY", "sk-ant-dummy-of-a-test")
        .env("CLAUDECODE", "1");
    command
}

#[test]
fn an_agent_with_its_own_login_does_not_get_an_api_key() {
    let test = Test::new().on_path("claude", SHOWS);
    let run = |more: &[&str]| {
        let done = test.start_command(with_key(&test, more)).end();
        let _ = fs::remove_dir_all(test.loop_dir("a"));
        done
    };
    let output = run(&[]).out;
    assert!(
        output.contains("claude uses the key in ANTHROPIC_API_KEY\n"),
        "{output}"
    );
    assert!(
        test.read("seen").contains("ANTHROPIC_API_KEY"),
        "the key pays: {output}"
    );
    test.write("../home/.claude/.credentials.json", "{}");
    let output = run(&[]).out;
    let line = "claude uses its own login (~/.claude/.credentials.json); ANTHROPIC_API_KEY is not passed to it";
    assert!(output.contains(line), "{output}");
    assert!(
        !test.read("seen").contains("ANTHROPIC_API_KEY"),
        "the login pays: {output}"
    );
    let output = run(&["--allow-api-key"]).out;
    assert!(
        output.contains("claude uses the key in ANTHROPIC_API_KEY\n"),
        "{output}"
    );
    assert!(
        test.read("seen").contains("ANTHROPIC_API_KEY"),
        "as it was asked for: {output}"
    );
}

#[test]
fn no_agent_gets_the_variables_of_an_outer_agent() {
    let test = Test::new().program("mine", SHOWS);
    let mut command = test.ralph_command(&["run", "x", "--name", "a", "--", "./mine"]);
    command
        .env("CLAUDECODE", "1")
        .env("CLAUDE_CODE_ENTRYPOINT", "cli")
        .env("CODEX_THREAD_ID", "t");
    let done = test.start_command(command).end().exits(0);
    assert_eq!(test.read("seen"), "", "{}", done.out);
}

#[test]
fn a_secret_is_redacted_in_everything_that_ralph_writes() {
    // The secret's last letter is also its first, and it is the last thing printed.
    const SECRET: &str = "s3cr3t-of-the-tests";
    let test = Test::git().program(
        "mine",
        "#!/bin/sh\necho \"the token is $SHOP_TOKEN\"\nprintf %s \"$SHOP_TOKEN\" | cut -c1-6 | tr -d '\\n'\n\
         printf %s \"$SHOP_TOKEN\" | cut -c7-\n\"$RALPH\" bus post \"token $SHOP_TOKEN\"\n\
         \"$RALPH\" blocked \"who owns $SHOP_TOKEN?\"\nprintf %s \"$SHOP_TOKEN\"\nexit 1\n",
    );
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--check",
        "echo red $SHOP_TOKEN; false",
        "--notify",
        "cat >told",
    ];
    let mut command = test.ralph_command(&[&args, &["-m", "2", "--", "./mine"][..]].concat());
    command
        .env("SHOP_TOKEN", SECRET)
        .env("RALPH", env!("CARGO_BIN_EXE_ralph"));
    let done = test.start_command(command).end().exits(3);
    assert!(
        !done.out.contains(SECRET) && !done.err.contains(SECRET),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("the token is [SHOP_TOKEN]\n"),
        "{}",
        done.out
    );
    assert!(
        test.status("a")["outcome"]["why"]
            .as_str()
            .unwrap()
            .contains("who owns [SHOP_TOKEN]?")
    );
    let mut resumed = test.ralph_command(&["resume", "a", "--answer", "me"]);
    resumed
        .env("SHOP_TOKEN", SECRET)
        .env("RALPH", env!("CARGO_BIN_EXE_ralph"));
    test.start_command(resumed).end().exits(3);
    assert!(test.prompt("a", 2).contains("red [SHOP_TOKEN]"));
    leaks::assert_none(&test, &[SECRET]);
}

#[test]
fn a_secret_typed_by_the_user_is_used_but_not_recorded() {
    let test = Test::new();
    let value = "hunter2-of-a-test";
    let check =
        format!("test -n \"$SHOP_TOKEN\" && test \"$SHOP_TOKEN\" = {value} && grep -q {value} got");
    let agent = format!("cat >> got; echo {value} >> got; echo '<promise>COMPLETE</promise>'");
    let task = format!("Deploy with {value}.");
    let args = [
        "run",
        &task,
        "--name",
        "a",
        "--check",
        &check,
        "--context",
        "none",
        "--notify",
    ];
    let notify = format!("echo {value} > told");
    let args = [&args[..], &[&notify, "--", "sh", "-c", &agent]].concat();
    let mut command = test.ralph_command(&args);
    command.env("SHOP_TOKEN", value);
    let done = test.start_command(command).end().exits(0);
    assert!(
        !done.out.contains(value) && !done.err.contains(value),
        "{}",
        done.out
    );
    let got = format!("Deploy with [SHOP_TOKEN].{value}\n");
    assert_eq!(
        test.read("got"),
        got,
        "its command has what was typed, and the prompt the name"
    );
    assert_eq!(test.read("told"), format!("{value}\n"));
    let told = test.sh(&format!("grep -rl {value} ../state .ralph || true"));
    assert_eq!(told, "", "nobody else");
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Deploy with [SHOP_TOKEN].");
}

#[test]
fn a_loop_with_a_secret_is_not_resumed_without_its_variable() {
    let test = Test::new();
    let value = "hunter2-of-a-test";
    let check = format!("test -n {value} && test -e never");
    let mut command = test.ralph_command(&[
        "run", "x", "--name", "a", "-m", "1", "--check", &check, "--", "true",
    ]);
    command.env("SHOP_TOKEN", value);
    test.start_command(command).end().exits(1);
    test.ralph(&["set", "a", "max-iterations=2"]).exits(0);
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("SHOP_TOKEN is not set, but");
    let mut again = test.ralph_command(&["resume", "a"]);
    again.env("SHOP_TOKEN", value);
    test.start_command(again)
        .end()
        .exits(1)
        .says("starting iteration 2/2");
}
