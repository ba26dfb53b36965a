//! `activity.jsonl` records what an agent did, and `ralph logs` prints it.

use crate::kit::Test;
use serde_json::{Value, json};
use std::fs;

const RUN: [&str; 8] = ["run", "x", "--name", "a", "--agent", "mine", "-m", "1"];
const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m"}"#;
const TOOL: &str = r#"{"type":"assistant","message":{"id":"2","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make"}}]},"parent_tool_use_id":null}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#;

/// Creates an agent that prints the file `stream`, in Claude Code's format, and then runs the shell
/// command `then`.
fn agent(stream: &str, then: &str) -> Test {
    Test::new()
        .on_path(
            "mine",
            &format!("#!/bin/sh\ncat > /dev/null\ncat stream\n{then}\n"),
        )
        .file(
            ".ralph/settings.toml",
            "[agents.mine]\ncommand = 'mine'\ndialect = 'claude'\n",
        )
        .file("stream", stream)
}

fn text_event(text: &str) -> String {
    json!({"type":"assistant","message":{"id":"1","model":"m","content":[{"type":"text","text":text}]},"parent_tool_use_id":null})
        .to_string()
}

fn result(text: &str) -> String {
    json!({"type":"result","subtype":"success","is_error":false,"result":text,"total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5}})
        .to_string()
}

/// Returns the lines of the activity file of the first iteration of loop `a`.
fn activity(test: &Test) -> Vec<Value> {
    let file = test.read_loop("a", "iterations/0001/activity.jsonl");
    let mut lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
    assert_eq!(
        lines.next(),
        Some(json!({"ralph":"activity","version":1,"iteration":1}))
    );
    lines.collect()
}

fn acts(test: &Test) -> Vec<String> {
    let lines = activity(test);
    lines
        .iter()
        .map(|line| line["act"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn logs_print_the_same_from_the_activity_file_and_from_the_stream() {
    let end = "All is well.\n<promise>COMPLETE</promise>";
    let stream = [
        INIT,
        &text_event("I \u{1b}[31mlook\u{1b}[0m.\n10%\r100%"),
        TOOL,
        "\u{1b}[33ma warning\u{1b}[0m",
        &text_event(end),
        &result(end),
        "",
    ];
    let test = agent(&stream.join("\n"), "");
    let shown = test.ralph(&RUN).exits(0).out;
    let lines =
        "I look.\n100%\n✔ Bash make\n· a warning\nAll is well.\n<promise>COMPLETE</promise>\n";
    let behind_gutter = format!("  | {}\n", lines.trim_end().replace('\n', "\n  | "));
    assert!(shown.contains(&behind_gutter), "{shown}");
    let acts = acts(&test);
    for act in ["session", "text", "tool-started", "tool-finished"] {
        assert!(acts.iter().any(|known| known == act), "{act}: {acts:?}");
    }
    for act in ["side-output", "cost", "tokens", "finished", "run-ended"] {
        assert!(acts.iter().any(|known| known == act), "{act}: {acts:?}");
    }
    let raw = test.read_loop("a", "iterations/0001/activity.jsonl");
    assert!(!raw.contains("\\u001b") && !raw.contains("\\r"), "{raw}");

    let dir = test.loop_dir("a").join("iterations/0001");
    assert_eq!(test.ralph(&["logs", "a"]).exits(0).out, lines);
    fs::rename(dir.join("output.log"), dir.join("elsewhere")).unwrap();
    assert_eq!(test.ralph(&["logs", "a"]).exits(0).out, lines);
    let followed = test.ralph(&["logs", "a", "-f"]).exits(0).out;
    assert!(followed.starts_with(lines), "{followed}");
    fs::rename(dir.join("elsewhere"), dir.join("output.log")).unwrap();
    fs::remove_file(dir.join("activity.jsonl")).unwrap();
    assert_eq!(test.ralph(&["logs", "a"]).exits(0).out, lines);
}

#[test]
fn logs_follow_the_activity_file_of_a_running_agent() {
    let then = "until test -e go; do sleep 0.01; done; cat end";
    let test = agent(&[INIT, &text_event("I look.\n"), ""].join("\n"), then).file(
        "end",
        &format!("{}\n", result("<promise>COMPLETE</promise>")),
    );
    let live = test.start(&RUN);
    live.until_out("  | I look.\n");
    let follower = test.start(&["logs", "a", "-f"]);
    follower.until_out("I look.\n");
    // The acts are written while the agent runs.
    assert!(acts(&test).contains(&"text".to_owned()));
    test.write("stream", "");
    test.write("go", "");
    live.end().exits(0);
    let out = follower.end().exits(0).out;
    assert!(
        out.starts_with("I look.\n[ralph] a: iteration 1 completed ("),
        "{out}"
    );
}

#[test]
fn a_long_activity_file_keeps_its_beginning_and_its_end() {
    let mut stream = vec![INIT.to_owned()];
    stream.extend((0..4000).map(|n| text_event(&format!("{n:0>1000}\n"))));
    stream.push(text_event("the last words"));
    stream.push(result("<promise>COMPLETE</promise>"));
    let test = agent(&(stream.join("\n") + "\n"), "");
    test.ralph(&RUN).exits(0);
    let path = test.loop_dir("a").join("iterations/0001/activity.jsonl");
    let size = fs::metadata(path).unwrap().len();
    assert!(size <= 1 << 20, "{size}");
    let out = test.ralph(&["logs", "a"]).exits(0).out;
    assert!(out.starts_with(&format!("{:0>1000}\n{:0>1000}\n", 0, 1)));
    assert!(out.ends_with(&format!("{:0>1000}\nthe last words\n", 3999)));
    let notes: Vec<&str> = out
        .lines()
        .filter(|line| line.contains("[ralph]"))
        .collect();
    let is_note = |note: &&str| {
        note.ends_with(" acts dropped here; --raw prints the agent's complete output")
    };
    assert!(!notes.is_empty() && notes.iter().all(is_note), "{notes:?}");
}

#[test]
fn a_secret_is_redacted_even_if_json_spells_it_differently() {
    let secret = "q\"uoted-secret-é";
    let test = agent(
        &format!(
            "{}\n{}\n",
            text_event(&format!("the key is {secret}.")),
            result("<promise>COMPLETE</promise>")
        ),
        "",
    );
    let mut command = test.ralph_command(&RUN);
    command.env("MY_API_KEY", secret);
    test.start_command(command).end().exits(0);
    let acts = activity(&test);
    let text_event = acts.iter().find(|line| line["act"] == "text").unwrap();
    assert_eq!(text_event["text"], "the key is [MY_API_KEY].\n");
}

#[test]
fn a_plain_text_agent_and_a_silent_agent_have_an_activity_file_too() {
    let test = Test::new();
    let run = |agent: &str| {
        let args = [
            "run", "x", "--name", "a", "-m", "1", "--", "sh", "-c", agent,
        ];
        test.ralph(&args).exits(1);
    };
    run(r"printf '\033[1mone\033[0m\n10%%\r20%%\ntwo'");
    let lines = activity(&test);
    let printed: String = lines
        .iter()
        .filter_map(|line| line["text"].as_str())
        .collect();
    assert_eq!(printed, "one\n20%\ntwo");
    run("true");
    assert_eq!(test.read_loop("a", "iterations/0001/activity.jsonl"), "");
}

#[test]
fn a_torn_last_line_is_skipped() {
    let test = agent(
        &format!(
            "{}\n{}\n",
            text_event("one\n"),
            result("<promise>COMPLETE</promise>")
        ),
        "",
    );
    test.ralph(&RUN).exits(0);
    let path = test.loop_dir("a").join("iterations/0001/activity.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let torn = whole.find("\"text\"").unwrap();
    fs::write(&path, &whole[..torn]).unwrap();
    // Without its end the file may lack acts that the agent's output has.
    assert_eq!(test.ralph(&["logs", "a"]).exits(0).out, "one\n");
    fs::remove_file(path.with_file_name("output.log")).unwrap();
    assert_eq!(test.ralph(&["logs", "a"]).exits(0).out, "");
}
