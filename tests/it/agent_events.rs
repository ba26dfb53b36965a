//! Whole loops with agents that print events: where a promise counts, what each end means, and agents that hang.

use crate::kit::Test;
use std::time::{SystemTime, UNIX_EPOCH};

/// Creates a custom agent that prints the file `stream` in this dialect, and then runs `then`.
fn agent(dialect: &str, stream: &str, then: &str) -> Test {
    let settings = format!(
        "graceLinger = '300ms'\n[agents.mine]\ncommand = 'mine'\nlogin = 'run mine login'\ndialect = '{dialect}'\n\
         [[agents.mine.reason]]\npattern = 'usage limit(, resets (?P<reset>.+))?'\nmeans = 'usage-limit'\n"
    );
    let program = format!("#!/bin/sh\ncat > /dev/null\ncat stream\n{then}\n");
    Test::new()
        .on_path("mine", &program)
        .file(".ralph/settings.toml", &settings)
        .file("stream", stream)
}

const RUN: [&str; 9] = [
    "run",
    "x",
    "--name",
    "a",
    "--agent",
    "mine",
    "--backoff",
    "0..0",
    "-m",
];

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m"}"#;
const PROMISE: &str = "<promise>COMPLETE</promise>";

fn text_event(text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"1","model":"m","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null}}"#
    )
}

fn result(text: &str) -> String {
    format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}","total_cost_usd":0.25,"usage":{{"input_tokens":10,"output_tokens":5}}}}"#
    )
}

const TOOL: &str = r#"{"type":"assistant","message":{"id":"2","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make"}}]},"parent_tool_use_id":null}"#;

#[test]
fn a_promise_counts_only_in_the_final_message() {
    let echo = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"text","text":"{PROMISE}"}}]}},"isSynthetic":true}}"#
    );
    let output = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{PROMISE}"}}]}}}}"#
    );
    let hook = format!(r#"{{"type":"system","subtype":"hook_response","stdout":"{PROMISE}"}}"#);
    let thought = format!(
        r#"{{"type":"assistant","message":{{"id":"1","content":[{{"type":"thinking","thinking":"{PROMISE}"}}]}},"parent_tool_use_id":null}}"#
    );
    let elsewhere = [
        INIT,
        &echo,
        &hook,
        &thought,
        &text_event(PROMISE),
        TOOL,
        &output,
        PROMISE,
    ]
    .join("\n");
    for (text, code) in [("All is well.", 1), (PROMISE, 0)] {
        let test = agent("claude", &format!("{elsewhere}\n{}\n", result(text)), "");
        test.ralph(&[&RUN[..], &["1"]].concat()).exits(code);
        let report = &test.events("a", "ended")[0]["report"];
        assert_eq!(
            (&report["cost_usd"], &report["session"]),
            (&0.25.into(), &"s-1".into()),
            "{report}"
        );
        assert_eq!(report["tokens"]["input"], 10, "{report}");
        assert_eq!(report["steps"], 1, "{report}");
    }
}

#[test]
fn a_done_pattern_counts_only_in_the_final_message() {
    for (text, code) in [("All is well.", 1), ("WORK IS DONE", 0)] {
        let test = agent(
            "claude",
            &format!("{INIT}\n{}\n{}\n", text_event("WORK IS DONE"), result(text)),
            "",
        );
        test.ralph(&[&RUN[..], &["1", "--done-pattern", "WORK IS DONE"]].concat())
            .exits(code);
    }
}

#[test]
fn an_agent_without_events_is_read_as_plain_text() {
    let test = agent(
        "claude",
        &format!("warning: a new version\n{PROMISE}\n"),
        "",
    );
    test.ralph(&[&RUN[..], &["1"]].concat()).exits(0);
}

#[test]
fn unparsed_lines_are_counted_and_break_nothing() {
    let odd = "{\"type\":\"news\"}\n{\"type\":\n{\"type\":\"result\"\nnothing of it\n";
    let test = agent("claude", &format!("{INIT}\n{odd}{}\n", result(PROMISE)), "");
    test.ralph(&[&RUN[..], &["1"]].concat()).exits(0);
    assert_eq!(test.events("a", "ended")[0]["report"]["strange"], 3);
    assert!(
        test.read_loop("a", "iterations/0001/output.log")
            .contains("nothing of it")
    );
}

#[test]
fn a_usage_limit_is_waited_for_and_costs_no_iteration() {
    let reset = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        + 2;
    let info = format!(
        r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{reset}}}}}"#
    );
    let limited = r#"{"type":"result","subtype":"success","is_error":true,"result":"You have hit your usage limit","api_error":"usage_limit_reached"}"#;
    let test = agent(
        "claude",
        &format!("{INIT}\n{info}\n{limited}\n"),
        "cp good stream; exit 1",
    );
    test.write("good", &format!("{INIT}\n{}\n", result(PROMISE)));
    let args = [&RUN[..], &["1", "--max-failures", "1"]].concat();
    test.ralph(&args)
        .exits(0)
        .says("iteration 1 is not counted: mine: usage limit reached, resting until");
    let started = test.events("a", "started");
    assert_eq!(started.len(), 2);
    assert!(
        started[1]["at_ms"]
            .as_u64()
            .is_none_or(|at| at >= reset * 1000),
        "{started:?}"
    );
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert!(now >= reset, "it did not wait");
    assert_eq!(test.status("a")["total_failures"], 0);
}

#[test]
fn a_usage_limit_with_exit_code_0_is_not_a_success() {
    let failed = r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"401 no such key"}}"#;
    let test = agent(
        "pi",
        &format!("{{\"type\":\"session\",\"id\":\"p\"}}\n{failed}\n{{\"type\":\"agent_end\"}}\n"),
        "exit 0",
    );
    let done = test.ralph(&[&RUN[..], &["3"]].concat()).exits(1);
    done.complains("it is not logged in (401 no such key): log in: run mine login");
    assert_eq!(test.events("a", "started").len(), 1, "it stops at once");
    assert_eq!(test.status("a")["outcome"]["why"], "login");
}

#[test]
fn a_success_event_that_reports_an_error_is_a_failure() {
    let failed = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"result":"{PROMISE} API Error: 500"}}"#
    );
    let test = agent("claude", &format!("{INIT}\n{failed}\n"), "");
    test.ralph(&[&RUN[..], &["5", "--max-failures", "2"]].concat())
        .exits(1)
        .says("2 consecutive failures");
    assert_eq!(
        test.events("a", "ended")[0]["report"]["reason"]["kind"],
        "crashed"
    );
}

/// The result of the tool of [`TOOL`] in this state.
fn tool_result(content: &str, is_error: bool) -> String {
    format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{content}","is_error":{is_error}}}]}}}}"#
    )
}

const DENIALS: &str = r#""permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"make"}}]"#;

/// Settings for the agent of [`agent`] that has levels of approval and can allow a command.
const LEVELS: &str = "[[agents.mine.allow]]\ntool = 'Bash'\nhint = 'add Bash({about}) to its rules'\n\
    [agents.mine.approve.edits]\nallows = 'edit files, but not run commands'\n\
    [agents.mine.approve.all]\nwords = ['--all']\n";

fn with_levels(test: &Test) {
    let settings = test.read(".ralph/settings.toml") + LEVELS;
    test.write(".ralph/settings.toml", &settings);
}

#[test]
fn an_agent_that_is_denied_everything_is_told_so_until_the_failure_limit_ends_the_loop() {
    let promised = format!("All is done.\\n{PROMISE}");
    // Whatever it claims: an agent that did nothing has nothing to claim.
    for (text, more) in [
        ("I could not", &["9"][..]),
        (&promised, &["9"]),
        (&promised, &["9", "--check", "true"]),
        ("WORK IS DONE", &["9", "--done-pattern", "WORK IS DONE"]),
    ] {
        let end = format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}",{DENIALS}}}"#
        );
        let denied = tool_result("no", true);
        let test = agent("claude", &[INIT, TOOL, &denied, &end, ""].join("\n"), "");
        with_levels(&test);
        let args = [&RUN[..], more, &["--max-failures", "2"]].concat();
        let done = test.ralph(&args).exits(1);
        let done = done.complains(
            "everything it tried was denied (Bash make): add Bash(make) to its rules, or allow \
             more with --approve all",
        );
        done.says("to allow it: add Bash(make) to its rules");
        assert_eq!(test.status("a")["outcome"]["why"], "permission", "{text}");
        assert_eq!(test.events("a", "started").len(), 2, "{text}");
        let prompt = test.prompt("a", 2);
        for part in [
            "not allowed to do this:\n- Bash make\n",
            "You may edit files, but not run commands.",
            "a claim that the task is done did not count",
        ] {
            assert!(prompt.contains(part), "{part}: {prompt}");
        }
    }
}

#[test]
fn a_denied_command_after_a_successful_one_is_no_failure() {
    let read = r#"{"type":"assistant","message":{"id":"3","model":"m","content":[{"type":"tool_use","id":"r","name":"Read","input":{"file_path":"a"}}]},"parent_tool_use_id":null}"#;
    let content = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"r","content":"text"}]}}"#;
    let denied = tool_result("no", true);
    let end = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"I read it.",{DENIALS}}}"#
    );
    let stream = [INIT, read, content, TOOL, &denied, &end, ""].join("\n");
    let test = agent("claude", &stream, "");
    with_levels(&test);
    let args = [&RUN[..], &["2", "--check", "false", "--max-failures", "1"]].concat();
    test.ralph(&args)
        .exits(1)
        .says("the agent was denied: Bash make")
        .says("check `false`: red");
    assert_eq!(test.status("a")["outcome"]["why"], "iterations");
    assert_eq!(test.status("a")["total_failures"], 0);
    assert!(test.prompt("a", 2).contains("- Bash make\n"));
}

#[test]
fn a_failed_tool_says_why() {
    let failed = tool_result("Exit code 2\\nmake: no rule", true);
    let stream = [INIT, TOOL, &failed, &result(PROMISE), ""].join("\n");
    let test = agent("claude", &stream, "");
    let why = "✘ Bash make: Exit code 2 make: no rule";
    test.ralph(&[&RUN[..], &["1"]].concat()).exits(0).says(why);
    test.ralph(&["logs", "a"]).exits(0).says(why);
}

#[test]
fn an_agent_that_hangs_after_its_run_is_stopped_without_a_failure() {
    let test = agent(
        "claude",
        &format!("{INIT}\n{}\n", result(PROMISE)),
        "sleep 60",
    );
    test.ralph(&[&RUN[..], &["1"]].concat()).exits(0);
    assert_eq!(test.status("a")["total_failures"], 0);
    let report = &test.events("a", "ended")[0]["report"];
    assert!(report["ms"].as_u64().unwrap() < 30_000, "{report}");
}

#[test]
fn a_background_command_of_the_agent_is_waited_for() {
    let tasks = |tasks: &str| {
        format!(r#"{{"type":"system","subtype":"background_tasks_changed","tasks":{tasks}}}"#)
    };
    let first = format!(
        "{INIT}\n{}\n{}\n",
        tasks(r#"[{"task_id":"1"}]"#),
        result("It runs.")
    );
    let test = agent("claude", &first, "sleep 1; cat rest");
    test.write(
        "rest",
        &format!("{}\n{INIT}\n{}\n", tasks("[]"), result(PROMISE)),
    );
    test.ralph(&[&RUN[..], &["1"]].concat()).exits(0);
    assert_eq!(
        test.events("a", "ended")[0]["report"]["cost_usd"],
        0.25,
        "costs count from the start"
    );
}

#[test]
fn a_running_tool_counts_as_activity_but_retries_do_not() {
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":9,"error":"overloaded"}"#;
    let retries = format!("while :; do echo '{retry}'; sleep 0.1; done");
    let args = [&RUN[..], &["1", "--inactivity-timeout", "1500ms"]].concat();
    let test = agent("claude", &format!("{INIT}\n"), &retries);
    let outage = [&args[..], &["--probe", "10ms..10ms", "--max-rest", "1ms"]].concat();
    test.ralph(&outage)
        .exits(1)
        .says("its service fails or cannot be reached");
    let done =
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#;
    let then = format!("sleep 2; cat <<'E'\n{done}\n{}\nE", result(PROMISE));
    let test = agent("claude", &format!("{INIT}\n{TOOL}\n"), &then);
    test.ralph(&args).exits(0);
}

#[test]
fn a_known_agent_s_command_is_recognized_by_its_arguments() {
    // Next to an event stream, a plain line does not count; in plain text it is the agent's
    // message.
    let stream = format!(
        "{INIT}\n{}\n{}\n{PROMISE}\n",
        text_event(PROMISE),
        result("no")
    );
    let program = "#!/bin/sh\ncat > /dev/null\ncat stream\n";
    for (args, code) in [
        (
            &["-p", "--output-format", "stream-json", "--verbose"][..],
            1,
        ),
        (&["-p", "--verbose", "--output-format=stream-json"][..], 1),
        (&["-p"][..], 0),
    ] {
        let test = Test::new()
            .on_path("claude", program)
            .file("stream", &stream);
        let run = ["run", "x", "--name", "a", "-m", "1", "--", "claude"];
        test.ralph(&[&run[..], args].concat()).exits(code);
    }
}

#[test]
fn the_last_line_of_a_known_agent_s_plain_text_gives_the_failure_reason() {
    let last = "Invalid API key · Please run /login";
    let program = format!(
        "#!/bin/sh\ncat > /dev/null\necho 'Credit balance is too low'\necho '{last}'\nexit 1\n"
    );
    let test = Test::new().on_path("claude", &program);
    let done = test
        .ralph(&["run", "x", "--name", "a", "--", "claude", "-p"])
        .exits(1);
    done.complains("it is not logged in")
        .complains("log in: start claude and type /login");
    assert_eq!(test.events("a", "started").len(), 1);
}

#[test]
fn every_failed_iteration_has_a_reason_for_scripts() {
    let script = "iteration 1\n exit 3\niteration 2\n hang\niteration 3\n say well\n";
    let test = Test::new().script(script);
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
        "--backoff",
        "0..0",
        "-m",
        "3",
    ];
    test.ralph(&[&args[..], &["--iteration-timeout", "300ms"]].concat())
        .exits(1);
    let status = test.status("a");
    let reasons: Vec<_> = status["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["reason"])
        .collect();
    let expected = serde_json::json!([{"kind": "crashed", "why": "exited"}, {"kind": "killed", "why": "timed_out"}, null]);
    assert_eq!(serde_json::json!(reasons), expected);
    assert!(status["last_reason"].is_null(), "{status}");
    let log = test.read_loop("a", "iterations.log");
    assert!(
        log.contains("reason=crashed why=exited\n")
            && log.contains("reason=killed why=timed_out\n"),
        "{log}"
    );
}

#[test]
fn a_deleted_program_is_reported_as_not_found() {
    let test = agent(
        "claude",
        &format!("{INIT}\n{}\n", result("more")),
        "rm \"$0\"",
    );
    test.ralph(&[&RUN[..], &["3"]].concat())
        .exits(1)
        .complains("cannot start mine");
    let status = test.status("a");
    assert_eq!(
        (&status["last_reason"]["kind"], &status["outcome"]["why"]),
        (&"not-found".into(), &"not-found".into())
    );
}

#[test]
fn a_near_limit_is_reported_once_per_iteration() {
    let reset = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        + 100;
    let info = format!(
        r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"allowed_warning","resetsAt":{reset},"rateLimitType":"five_hour","utilization":0.92}}}}"#
    );
    let stream = [
        INIT,
        &info,
        &text_event("I work."),
        &info,
        &result(PROMISE),
        "",
    ]
    .join("\n");
    let test = agent("claude", &stream, "");
    let done = test.ralph(&[&RUN[..], &["1"]].concat()).exits(0);
    for out in [done.out, test.ralph(&["logs", "a"]).exits(0).out] {
        let warned: Vec<_> = out.lines().filter(|line| line.contains("limit")).collect();
        assert!(
            matches!(warned[..], [line] if line.contains("! 92% of its 5-hour limit is used; it resets at ")),
            "{out}"
        );
    }
}

#[test]
fn the_cost_of_a_continued_session_is_not_counted_twice() {
    let claude = r#"{"type":"result","subtype":"success","is_error":false,"result":"more","total_cost_usd":0.$((n * 25)),"usage":{"input_tokens":10,"output_tokens":5},"modelUsage":{"m":{"inputTokens":$((n * 10)),"outputTokens":$((n * 5))}}}"#;
    let codex = r#"{"type":"turn.completed","usage":{"input_tokens":$((n * 10)),"output_tokens":$((n * 5))}}"#;
    let began = r#"{"type":"thread.started","thread_id":"$id"}"#;
    let init = r#"{"type":"system","subtype":"init","session_id":"$id","model":"m"}"#;
    for (dialect, events, id, tokens) in [
        ("claude", [init, claude], "same", 45),
        ("claude", [init, claude], "other-$n", 90),
        ("codex", [began, codex], "same", 45),
        ("codex", [began, codex], "other-$n", 90),
    ] {
        let [first, last] = events;
        let then = format!(
            "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n >n; id={id}\ncat <<E\n{first}\n{last}\nE"
        );
        let test = agent(dialect, "", &then);
        test.ralph(&[&RUN[..], &["3"]].concat()).exits(1);
        let status = test.status("a");
        assert_eq!(status["tokens"], tokens, "{dialect} {id}: {status}");
        if dialect == "claude" {
            assert_eq!(
                status["cost_usd"],
                if tokens == 45 { 0.75 } else { 1.5 },
                "{id}"
            );
        }
    }
}

#[test]
fn a_tool_is_shown_even_if_its_result_is_too_long_to_parse() {
    let then = format!(
        "printf '{{\"type\":\"user\",\"message\":{{\"content\":[{{\"tool_use_id\":\"t\",\"content\":\"'\n\
         head -c 17000000 /dev/zero | tr '\\0' x\n\
         echo '\"}}]}}}}'\ncat <<'E'\n{}\nE",
        result(PROMISE)
    );
    let test = agent("claude", &format!("{INIT}\n{TOOL}\n"), &then);
    test.ralph(&[&RUN[..], &["1"]].concat())
        .exits(0)
        .says("✔ Bash make\n");
    let report = &test.events("a", "ended")[0]["report"];
    assert_eq!(
        (&report["steps"], &report["strange"]),
        (&1.into(), &1.into()),
        "{report}"
    );
}
