//! Agents whose service is unavailable: the loop waits, hands over, keeps what the checks said, and gives up after
//! `--max-rest`. Agents that report errors in unusual ways: on plain text, without a message, or with exit code 0.

use crate::kit::{Test, until};
use std::fs;
use std::path::Path;

const PROMISE: &str = "<promise>COMPLETE</promise>";

/// Returns a stream recorded from a real agent.
fn recorded(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/streams");
    fs::read_to_string(dir.join(format!("{name}.jsonl"))).unwrap()
}

/// Returns a program that prints the file `stream` and fails, until the file `well` exists.
fn until_well(then: &str) -> String {
    format!(
        "#!/bin/sh\ncat > /dev/null\nif test -e well; then {then}; exit 0; fi\ncat stream\nexit 1\n"
    )
}

fn codex_says(text: &str) -> String {
    format!(
        "{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{{\"type\":\"turn.started\"}}\n\
         {{\"type\":\"item.completed\",\"item\":{{\"id\":\"1\",\"type\":\"agent_message\",\"text\":\"{text}\"}}}}\n\
         {{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":1,\"output_tokens\":1}}}}\n"
    )
}

/// Returns a failed result of Claude Code with this message.
fn claude_fails(message: &str) -> String {
    format!(
        "{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}}\n\
         {{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"{message}\"}}\n"
    )
}

fn started(test: &Test) -> Vec<String> {
    let started = test.events("a", "started");
    started
        .iter()
        .map(|line| line["agent"].as_str().unwrap_or("-").to_owned())
        .collect()
}

#[test]
fn an_outage_hands_over_to_the_healthy_agent() {
    for stream in [
        recorded("claude-500-forever"),
        claude_fails("API Error: 502 Bad Gateway"),
        claude_fails("API Error: Unable to connect to API (ConnectionRefused)"),
    ] {
        let test = Test::new()
            .on_path("claude", &until_well("true"))
            .on_path("codex", "#!/bin/sh\ncat > /dev/null\ncat codex-stream\n")
            .file("stream", &stream)
            .file("codex-stream", &codex_says(PROMISE));
        let args = ["run", "x", "--name", "a", "--agent", "claude,codex"];
        test.ralph(&args)
            .exits(0)
            .says("iteration 1 is not counted: claude: its service fails or cannot be reached");
        assert_eq!(started(&test), ["claude", "codex"]);
        assert_eq!(test.status("a")["total_failures"], 0);
    }
}

#[test]
fn an_outage_is_waited_for_without_running_the_checks_again() {
    let test = Test::new()
        .on_path("claude", &until_well("touch built; cat good"))
        .file("stream", &recorded("claude-500-forever"))
        .file(
            "good",
            &claude_fails("")
                .replace("true", "false")
                .replace("\"result\":\"\"", &format!("\"result\":\"{PROMISE}\"")),
        )
        .file(".ralph/settings.toml", "probe = '50ms..50ms'\n");
    let live = test.start(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "claude",
        "--max-failures",
        "1",
        "-m",
        "1",
        "--check",
        "mkdir -p out; echo once >> out/ran; echo not yet; test -e built",
    ]);
    until("it was tried again", || {
        test.events("a", "started").len() > 3
    });
    assert_eq!(test.read("out/ran"), "once\n", "only preflight has run it");
    test.sh("touch well");
    live.end().exits(0);
    assert_eq!(test.read("out/ran"), "once\nonce\n");
    let status = test.status("a");
    assert_eq!(
        (&status["total_failures"], &status["outcome"]["kind"]),
        (&0.into(), &"done".into())
    );
    let prompt = test.prompt("a", 3);
    assert!(
        prompt.contains("is red (exit 1)") && prompt.contains("not yet"),
        "the check's output is still in the prompt: {prompt}"
    );
}

#[test]
fn waiting_too_long_ends_the_loop_with_a_clear_outcome() {
    let test = Test::new()
        .on_path("claude", &until_well("cat good"))
        .file("stream", &recorded("claude-500-forever"))
        .file(
            "good",
            &claude_fails("")
                .replace("true", "false")
                .replace("\"result\":\"\"", &format!("\"result\":\"{PROMISE}\"")),
        )
        .file(".ralph/settings.toml", "probe = '50ms..100ms'\n");
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "claude",
        "--max-rest",
        "1s",
    ];
    let done = test.ralph(&args).exits(1);
    done.says("waited too long for its agent (")
        .says("): claude: its service fails or cannot be reached");
    let status = test.status("a");
    assert_eq!(
        (&status["stop_reason"], &status["outcome"]["why"]),
        (&"max_rest".into(), &"rest".into())
    );
    assert_eq!(status["total_failures"], 0);
    assert!(test.events("a", "started").len() > 1);
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Next: ralph resume a");
    test.sh("touch well");
    test.ralph(&["resume", "a"]).exits(0);
}

#[test]
fn an_agent_that_never_reports_an_event_is_unavailable() {
    let init = claude_fails("").lines().next().unwrap().to_owned();
    for output in ["", &init[..]] {
        let program = format!(
            "#!/bin/sh\ncat > /dev/null\nif test -e once; then echo '{PROMISE}'; exit 0; fi\n\
             touch once\necho '{output}'\nsleep 600\n"
        );
        let test = Test::new()
            .on_path("claude", &program)
            .file(".ralph/settings.toml", "probe = '50ms..50ms'\n");
        let args = [
            "run",
            "x",
            "--name",
            "a",
            "--agent",
            "claude",
            "-m",
            "1",
            "--inactivity-timeout",
            "1500ms",
        ];
        test.ralph(&args)
            .exits(0)
            .says("iteration 1 is not counted: claude: its service fails or cannot be reached");
        assert_eq!(test.events("a", "started").len(), 2);
    }
}

#[test]
fn a_silent_plain_text_agent_is_restarted_at_once() {
    let program = format!(
        "#!/bin/sh\nif test -e once; then echo '{PROMISE}'; exit 0; fi\ntouch once\nsleep 600\n"
    );
    let test = Test::new().on_path("mine", &program);
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--inactivity-timeout",
        "1500ms",
        "--",
        "mine",
    ];
    test.ralph(&args)
        .exits(0)
        .says("inactivity timeout (1.5s), restarting");
}

#[test]
fn running_out_of_extra_usage_is_a_usage_limit() {
    let test = Test::new().on_path("claude", &until_well("true")).file(
        "stream",
        &claude_fails("You're out of extra usage · resets 9pm"),
    );
    let live = test.start(&["run", "x", "--name", "a", "--agent", "claude"]);
    live.until_out("iteration 1 is not counted: claude: usage limit reached, resting until");
    live.signal("INT");
    live.end();
    assert_eq!(test.status("a")["total_failures"], 0);
}

#[test]
fn every_agent_without_a_login_is_named() {
    let failing = |message: &str| format!("#!/bin/sh\necho '{message}' >&2\nexit 1\n");
    let test = Test::new()
        .on_path("claude", &failing("Invalid API key · Please run /login"))
        .on_path("codex", &failing("Not logged in"));
    let args = ["run", "x", "--name", "a", "--agent", "claude,codex"];
    let done = test.ralph(&args).exits(1);
    done.complains("claude: it is not logged in")
        .complains("codex: it is not logged in")
        .complains("run codex login");
}

#[test]
fn a_stream_without_a_message_is_not_read_as_plain_text() {
    let program = format!(
        "#!/bin/sh\ncat > /dev/null\necho '{{\"type\":\"session.start\",\"data\":{{}}}}'\necho '{PROMISE}' >&2\n"
    );
    let test = Test::new().on_path("copilot", &program);
    let args = ["run", "x", "--name", "a", "--agent", "copilot", "-m", "1"];
    test.ralph(&args).exits(1);
    assert_eq!(test.status("a")["outcome"]["why"], "iterations");
}

#[test]
fn an_error_of_aider_is_a_failure_although_it_exits_with_0() {
    let bad_key = "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided: sk-dummy.\n\
                   The API provider is not able to authenticate you. Check your API key.\n";
    let test = Test::new()
        .on_path("aider", "#!/bin/sh\ncat text\n")
        .file("text", bad_key);
    let args = ["run", "x", "--name", "a", "--agent", "aider", "-m", "1"];
    test.ralph(&args)
        .exits(1)
        .complains("aider: it is not logged in (litellm.AuthenticationError");
    let retried = "litellm.RateLimitError: RateLimitError: OpenAIException - slow down\n\
                   Retrying in 0.2 seconds...\nTokens: 3.1k sent, 12 received.\nApplied edit to a.py\n";
    test.write("text", &format!("{retried}{PROMISE}\n"));
    test.ralph(&args).exits(0);
}

#[test]
fn a_rest_of_days_is_announced_loudly() {
    let test = Test::new()
        .on_path("claude", &until_well("true"))
        .file("stream", &claude_fails("You've hit your weekly limit"));
    // Three days and two hours from now.
    let reset = test.sh("date -u -d '+74 hours 30 minutes' '+%b %-d, %-I:%M%P (UTC)'");
    let message = format!("You've hit your weekly limit · resets {}", reset.trim());
    test.write("stream", &claude_fails(&message));
    let live = test.start(&["run", "x", "--name", "a", "--agent", "claude"]);
    live.until_out("claude: usage limit reached, RESTING FOR 3 DAYS 2 HOURS, until ");
    test.ralph(&["status", "a"])
        .exits(0)
        .says(" — 3 days 2 hours from the last event");
    live.signal("INT");
    live.end();
}
