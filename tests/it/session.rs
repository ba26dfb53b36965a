//! A loop inside a client's session: the input of its hooks, and their answers.

mod adoption;
mod hostile;

use crate::kit::{Done, Test, until};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const LOOP_FILE: &str = ".claude/ralph-loop.local.md";
const ID: &str = "6253c6c3-451f-4aa4-ae4d-91ee859fbae3";
const NAME: &str = "claude-859fbae3";

/// A client's session. The test itself stands for the client's process; people's commands run with
/// [`Test::elsewhere`].
struct Session<'t> {
    test: &'t Test,
    id: &'t str,
    cap: &'t str,
    client: &'t str,
    within: &'t str,
}

impl<'t> Session<'t> {
    fn of(test: &'t Test) -> Self {
        Self {
            test,
            id: ID,
            cap: "0",
            client: "claude",
            within: "60",
        }
    }

    fn hook(&self, verb: &str, said: Value) -> Value {
        let done = self.call(verb, said).exits(0);
        if done.out.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&done.out).expect("JSON")
        }
    }

    fn call(&self, verb: &str, said: Value) -> Done {
        let mut all = json!({
            "session_id": self.id,
            "transcript_path": self.test.root().join("transcript.jsonl"),
            "cwd": self.test.workspace(),
            "permission_mode": "default",
            "hook_event_name": match verb { "prompt" => "UserPromptSubmit", "stop" => "Stop", _ => "Other" },
        });
        let Value::Object(said) = said else {
            panic!("an object")
        };
        all.as_object_mut().unwrap().extend(said);
        self.raw(verb, all.to_string().as_bytes())
    }

    fn raw(&self, verb: &str, input: &[u8]) -> Done {
        let mut command = self.test.ralph_command(&[
            "hook",
            verb,
            "--client",
            self.client,
            "--within",
            self.within,
        ]);
        command
            .env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", self.cap)
            .stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ralph starts");
        // A hook that needs no input may exit before it has read it.
        let _ = child.stdin.take().unwrap().write_all(input);
        let done = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done {
            code: done.status.code().unwrap_or(-1),
            out: text(&done.stdout),
            err: text(&done.stderr),
        }
    }

    fn submit(&self, text: &str) -> Value {
        self.hook("prompt", json!({ "prompt": text }))
    }

    fn start_loop(&self, text: &str) -> String {
        let answer = self.submit(&format!("/ralph-loop {text}"));
        let message = &answer["hookSpecificOutput"];
        assert_eq!(message["hookEventName"], "UserPromptSubmit", "{answer}");
        message["additionalContext"].as_str().unwrap().to_owned()
    }

    fn stop(&self, text: &str) -> Value {
        self.hook(
            "stop",
            json!({ "last_assistant_message": text, "stop_hook_active": true }),
        )
    }

    /// Asserts that the hook blocks the stop, and returns the prompt.
    #[track_caller]
    fn assert_continues(&self, text: &str) -> String {
        let answer = self.stop(text);
        assert_eq!(answer["decision"], "block", "{answer}");
        answer["reason"].as_str().unwrap().to_owned()
    }

    /// Asserts that the hook allows the stop, and returns the message to the user.
    #[track_caller]
    fn assert_released(&self, text: &str) -> String {
        let answer = self.stop(text);
        assert_eq!(answer.get("decision"), None, "{answer}");
        answer["systemMessage"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

fn field(test: &Test, name: &str) -> String {
    let sheet = test.read(LOOP_FILE);
    let line = sheet
        .lines()
        .find(|line| line.starts_with(&format!("{name}:")));
    line.unwrap_or_default().to_owned()
}

#[test]
fn a_promise_in_the_last_message_ends_the_loop() {
    let test = Test::new();
    let session = Session::of(&test);
    let message =
        session.start_loop("Build a todo API --completion-promise DONE --max-iterations 20");
    for text in [
        "activated",
        "Iteration: 1",
        "Max iterations: 20",
        "<promise>DONE</promise>",
        "/cancel-ralph",
    ] {
        assert!(message.contains(text), "{text}: {message}");
    }
    assert_eq!(field(&test, "iteration"), "iteration: 1");
    let answer = session.stop("A first try.");
    assert_eq!(
        answer["reason"], "Build a todo API",
        "the same prompt, and nothing else"
    );
    assert!(
        answer["systemMessage"]
            .as_str()
            .unwrap()
            .starts_with("🔄 ralph iteration 2/20 | to finish: ")
    );
    assert_eq!(field(&test, "iteration"), "iteration: 2");
    assert_eq!(field(&test, "max_iterations"), "max_iterations: 20");
    assert_eq!(test.status(NAME)["status"], "running");
    assert_eq!(test.status(NAME)["current_iteration"], 2);
    assert_eq!(
        session
            .assert_continues("I will not write <promise>DONE</promise> yet.")
            .lines()
            .next(),
        Some("Build a todo API")
    );
    let message = session.assert_released("All is there.\n<promise>DONE</promise>");
    assert_eq!(
        message,
        "✅ ralph: detected <promise>DONE</promise> after 3 iterations"
    );
    assert!(!test.workspace().join(LOOP_FILE).exists());
    assert_eq!(test.status(NAME)["status"], "done");
    assert_eq!(
        session.hook("stop", json!({ "last_assistant_message": "more" })),
        Value::Null
    );
    test.ralph(&["logs", NAME])
        .exits(0)
        .says("All is there.\n<promise>DONE</promise>\n");
    let activity = test.read_loop(NAME, "iterations/0003/activity.jsonl");
    assert!(
        activity.contains(r#""act":"finished","text":"All is there."#),
        "{activity}"
    );
}

#[test]
fn the_iteration_limit_is_shown_and_defaults_to_25() {
    let test = Test::new();
    let session = Session::of(&test);
    assert!(session.start_loop("Do it").contains("Max iterations: 25 ("));
    session.submit("/cancel-ralph");
    assert!(
        session
            .start_loop("Do it --max-iterations 0")
            .contains("Max iterations: unlimited")
    );
    session.submit("/cancel-ralph");
    session.start_loop("Do it --max-iterations=2 --completion-promise X");
    session.assert_continues("one");
    let message = session.assert_released("two");
    assert!(
        message.starts_with("🛑 ralph: max iterations (2) reached; the agent did not promise X"),
        "{message}"
    );
    let state = test.status(NAME);
    assert_eq!(
        (&state["stop_reason"], &state["status"]),
        (&json!("max_iterations"), &json!("failed"))
    );
}

#[test]
fn a_loop_without_a_promise_runs_to_its_limit() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it --max-iterations 2");
    session.assert_continues("<promise>COMPLETE</promise>");
    session.assert_released("two");
    assert_eq!(test.status(NAME)["status"], "done");
}

#[test]
fn a_promise_does_not_replace_a_check() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop(r#"Write it --check "cat right" --completion-promise DONE"#);
    let prompt = session.assert_continues("<promise>DONE</promise>");
    assert!(prompt.starts_with("Write it\n"), "{prompt}");
    assert!(
        prompt.contains("The check `cat right` is red (exit 1)"),
        "{prompt}"
    );
    assert!(prompt.contains("No such file"), "what it printed: {prompt}");
    test.write("right", "");
    session.assert_continues("No promise this time.");
    assert!(
        session
            .assert_released("<promise>DONE</promise>")
            .contains("every check is green")
    );
}

#[test]
fn green_checks_alone_end_a_loop_without_a_promise() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Write it --check 'test -e right'");
    let answer = session.stop("I am done, trust me.");
    assert_eq!(answer["decision"], "block");
    assert!(
        answer["systemMessage"]
            .as_str()
            .unwrap()
            .contains("| red: `test -e right`"),
        "{answer}"
    );
    test.write("right", "");
    session.assert_released("Now.");
}

#[test]
fn no_loop_is_started_if_the_checks_are_green_already() {
    let test = Test::new();
    let session = Session::of(&test);
    let answer = session.submit("/ralph-loop Write it --check true");
    assert_eq!(answer["decision"], "block", "{answer}");
    let reason = answer["reason"].as_str().unwrap();
    assert!(
        reason.contains("nothing to do; no loop was started"),
        "{reason}"
    );
    assert_eq!(test.ralph(&["ls", "--names"]).exits(0).out, "");
    assert!(!test.workspace().join(LOOP_FILE).exists());
}

#[test]
fn checks_that_turn_green_without_a_change_need_a_promise_in_a_session_too() {
    let test = Test::git();
    let session = Session::of(&test);
    session.start_loop("Write it --check 'test -e ../outside'");
    test.write("../outside", "");
    let answer = session.stop("It works now.");
    assert_eq!(answer["decision"], "block", "{answer}");
    let prompt = answer["reason"].as_str().unwrap();
    assert!(prompt.contains("no file has changed"), "{prompt}");
    assert!(prompt.contains("<promise>COMPLETE</promise>"), "{prompt}");
    session.assert_released("<promise>COMPLETE</promise>");
}

#[test]
fn a_blocked_tag_ends_the_loop() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Write it --check false --completion-promise DONE");
    let message = session.assert_released("<blocked>which database?</blocked>");
    assert!(
        message.starts_with("✋ ralph: blocked after 1 iteration: which database?"),
        "{message}"
    );
    assert_eq!(test.status(NAME)["status"], "blocked");
}

#[test]
fn a_promise_outweighs_a_blocked_tag_and_both_are_shown() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Write it --check true --completion-promise DONE");
    let message =
        session.assert_released("<blocked>which port?</blocked>\n<promise>DONE</promise>");
    let expected = "✅ ralph: done after 1 iteration: every check is green; \
                    the agent also said that it is blocked: which port?";
    assert_eq!(message, expected);
}

#[test]
fn a_session_below_the_settings_of_its_repository_is_refused() {
    let test = Test::git()
        .file(".ralph/settings.toml", "maxIterations = 7\n")
        .file("deep/er/file", "");
    let session = Session::of(&test);
    let start = |dir: &str| {
        let dir = test.workspace().join(dir);
        let said = json!({"prompt": "/ralph-loop Do it --max-iterations 3", "cwd": dir});
        session.hook("prompt", said)
    };
    let answer = start("deep/er");
    let top = test.workspace().canonicalize().unwrap();
    let top = top.display();
    let reason = answer["reason"].as_str().unwrap();
    for text in [
        format!(
            "this session is in {top}/deep/er, but the project's settings are in {top}/.ralph/settings.toml"
        ),
        format!("start the session in {top}"),
    ] {
        assert!(reason.contains(&text), "{reason}");
    }
    assert!(!test.loop_dir(NAME).exists());
    test.write("deep/er/.ralph/settings.toml", "maxIterations = 3\n");
    start("deep/er");
    assert!(test.loop_dir(NAME).exists());
}

#[test]
fn a_loop_is_canceled_in_the_session_by_ralph_stop_or_by_deleting_its_file() {
    let test = Test::new();
    let session = Session::of(&test);
    let none = session.submit("/cancel-ralph");
    assert!(
        none["reason"]
            .as_str()
            .unwrap()
            .starts_with("no ralph loop is active"),
        "{none}"
    );
    session.start_loop("Do it");
    session.assert_continues("one");
    let message = session.submit("/cancel-ralph");
    assert_eq!(
        message["reason"],
        "🛑 ralph: loop canceled at iteration 2 (cancel-ralph)"
    );
    session.start_loop("Do it");
    test.elsewhere(&["stop", NAME])
        .exits(0)
        .says("stopped ralph loop");
    assert!(!test.workspace().join(LOOP_FILE).exists());
    assert_eq!(session.assert_released("one"), "");
    session.start_loop("Do it");
    std::fs::remove_file(test.workspace().join(LOOP_FILE)).unwrap();
    assert!(session.assert_released("one").contains("deleted"));
    assert_eq!(test.status(NAME)["status"], "stopped");
}

#[test]
fn a_loop_never_reacts_to_another_session_s_stop() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    let other = Session {
        id: "another-session",
        ..Session::of(&test)
    };
    assert_eq!(other.stop("anything"), Value::Null);
    let refused = other.submit("/ralph-loop Do it, too");
    assert_eq!(refused["decision"], "block");
    assert!(
        refused["reason"].as_str().unwrap().contains(NAME),
        "{refused}"
    );
    session.assert_continues("one");
    let helper = json!({ "last_assistant_message": "x", "agent_id": "a1" });
    assert_eq!(
        session.hook("stop", helper),
        Value::Null,
        "a helper's stop does not count"
    );
}

#[test]
fn an_unreadable_loop_file_is_reported_and_renamed_and_ends_the_loop() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    let broken = test
        .read(LOOP_FILE)
        .replace("iteration: 1", "iteration: many");
    test.write(LOOP_FILE, &broken);
    let message = session.assert_released("one");
    assert!(
        message.contains("iteration") && message.contains("many") && message.contains("broken"),
        "{message}"
    );
    assert!(!test.workspace().join(LOOP_FILE).exists());
    assert_eq!(test.read(".claude/ralph-loop.local.broken.md"), broken);
    assert_eq!(test.status(NAME)["status"], "failed");
    // A loop file that does not belong to a loop of ralph.
    test.write(
        LOOP_FILE,
        "---\nactive: true\niteration: x\nmax_iterations: 3\n---\nDo it\n",
    );
    assert!(session.assert_released("one").contains("iteration"));
}

#[test]
fn another_plugin_s_loop_is_taken_over_at_its_iteration() {
    let test = Test::new();
    let session = Session::of(&test);
    let sheet = "---\nactive: true\niteration: 3\nmax_iterations: 5\ncompletion_promise: \"IT'S \"DONE\"\"\nstarted_at: \
                 \"2026-11-16T07:00:00Z\"\n---\n\nFix --- it\n";
    test.write(LOOP_FILE, sheet);
    assert_eq!(session.assert_continues("no"), "Fix --- it");
    assert_eq!(field(&test, "iteration"), "iteration: 4");
    assert_eq!(field(&test, "max_iterations"), "max_iterations: 5");
    let other = Session {
        id: "another-session",
        ..Session::of(&test)
    };
    assert_eq!(other.stop("mine?"), Value::Null);
    let codex = Session {
        client: "codex",
        id: "a-third-session",
        ..Session::of(&test)
    };
    assert_eq!(codex.stop("mine?"), Value::Null);
    session.assert_continues("no");
    assert!(
        session
            .assert_released("no")
            .starts_with("🛑 ralph: max iterations (5) reached")
    );
    test.write(LOOP_FILE, sheet);
    session.assert_released("<promise>IT'S \"DONE\"</promise>");
    assert_eq!(test.status(NAME)["status"], "done");
}

#[test]
fn the_prompt_is_never_interpreted_by_a_shell() {
    for prompt in [
        "say \"hi\" and 'ho' and don't $(touch pwned) `touch pwned`",
        "two\nlines\n\n  and ¿emoji? 🦀\ttabs",
        "--- \n---\nactive: false\n---",
        "\\n \\\" $HOME ${x} %s {{task}} <promise>x</promise>",
    ] {
        let test = Test::new();
        let session = Session::of(&test);
        session.start_loop(&format!("{prompt} --completion-promise 'it is \"$(id)\"'"));
        assert_eq!(session.assert_continues("one"), prompt.trim());
        assert!(!test.workspace().join("pwned").exists());
        session.assert_released("<promise>it is \"$(id)\"</promise>");
    }
    let test = Test::new();
    let session = Session::of(&test);
    let long = "words of a long prompt ".repeat(50_000);
    session.start_loop(&long);
    assert_eq!(session.assert_continues("one"), long.trim());
}

#[test]
fn a_prompt_too_long_for_codex_is_shortened_and_names_a_file_with_all_of_it() {
    let test = Test::new();
    let session = Session {
        client: "codex",
        ..Session::of(&test)
    };
    let long = format!("Begin. {}End.", "é🦀 of a long prompt ".repeat(5_000));
    session.start_loop(&long);
    for n in [2, 3] {
        let message = session.assert_continues("no");
        assert!(message.len() < 9_000, "{}", message.len());
        assert!(
            message.contains("\n\nBegin. é") && message.ends_with(" End."),
            "{message}"
        );
        let path = message
            .split("read all of it in ")
            .nth(1)
            .unwrap()
            .lines()
            .next()
            .unwrap();
        assert!(path.contains(&format!("/{n:04}/")), "{path}");
        assert_eq!(std::fs::read_to_string(path).unwrap().trim(), long);
    }
}

#[test]
fn invalid_arguments_start_no_loop() {
    let test = Test::new();
    let session = Session::of(&test);
    for (args, said) in [
        ("", "prompt"),
        ("x --max-iterations", "--max-iterations"),
        ("x --max-iterations 1.5", "1.5"),
        ("x --max-iteration 3", "--max-iterations"),
        ("x --completion-promise", "--completion-promise"),
    ] {
        let answer = session.submit(&format!("/ralph-loop {args}"));
        assert_eq!(answer["decision"], "block", "{args}: {answer}");
        assert!(
            answer["reason"].as_str().unwrap().contains(said),
            "{args}: {answer}"
        );
    }
    assert_eq!(session.submit("/ralph-loop-er x"), Value::Null);
    assert_eq!(session.submit("tell me of /ralph-loop"), Value::Null);
    assert!(
        session.submit("/ralph-help")["reason"]
            .as_str()
            .unwrap()
            .contains("--check CMD")
    );
    test.ralph(&["ls"]).exits(0).says("no loops yet");
}

#[test]
fn the_hook_never_fails_whatever_its_input() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    for input in [
        "",
        "{",
        "[]",
        "null",
        "{\"session_id\":7}",
        "{\"session_id\":\"../../x\"}",
        "\u{0}\u{1}",
    ] {
        for verb in ["prompt", "stop", "failure", "end"] {
            let done = session.raw(verb, input.as_bytes()).exits(0);
            let answer: Value =
                serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{input}: {done:?}"));
            assert!(
                answer["systemMessage"]
                    .as_str()
                    .unwrap()
                    .starts_with("⚠️ ralph: "),
                "{input}: {answer}"
            );
            assert_eq!(answer.get("decision"), None);
        }
    }
    session.assert_continues("one");
}

#[test]
fn a_failed_turn_is_reported_and_the_loop_can_continue() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    let failed =
        json!({ "error": "server_error", "last_assistant_message": "API Error: 529 Overloaded." });
    assert_eq!(session.hook("failure", failed), Value::Null);
    let done = test
        .ralph(&["status", NAME])
        .exits(0)
        .says("Turn failed: API Error: 529 Overloaded.");
    let done = done
        .says(&format!("claude --resume {ID}"))
        .says(&format!("ralph resume {NAME} continues outside it"));
    done.says("Status: crashed");
    session.hook("end", json!({ "reason": "other" }));
    assert_eq!(test.status(NAME)["stumbled"], "API Error: 529 Overloaded.");
    session.assert_continues("It went on.");
    assert_eq!(test.status(NAME)["status"], "running");
    session.hook("end", json!({ "reason": "other" }));
    assert_eq!(test.status(NAME)["stumbled"], "the session was closed");
}

#[test]
fn an_older_client_may_stop_after_a_service_error() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    let line = json!({ "type": "assistant", "isApiErrorMessage": true, "message": { "id": "n",
        "role": "assistant", "content": [{ "type": "text", "text": "API Error: 529" }] } });
    std::fs::write(test.root().join("transcript.jsonl"), format!("{line}\n")).unwrap();
    let message = session.assert_released("API Error: 529");
    assert!(
        message.contains("failed in iteration 1: API Error: 529")
            && message.contains("ralph resume"),
        "{message}"
    );
    assert_eq!(test.status(NAME)["stumbled"], "API Error: 529");
    session.assert_continues("These are other words.");
    // The hook may run before the transcript is written.
    std::fs::write(test.root().join("transcript.jsonl"), "").unwrap();
    let late = std::thread::spawn({
        let path = test.root().join("transcript.jsonl");
        move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            std::fs::write(path, format!("{line}\n")).unwrap();
        }
    });
    assert!(
        session
            .assert_released("API Error: 529")
            .contains("failed in iteration 2")
    );
    late.join().unwrap();
}

#[test]
fn a_loop_can_continue_outside_its_session() {
    let claude = "#!/bin/sh\ncat > seen\necho '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\
                  \"result\":\"<promise>DONE</promise>\",\"session_id\":\"s\",\"total_cost_usd\":0.1}'\n";
    let test = Test::new().on_path("claude", claude);
    let session = Session::of(&test);
    session.start_loop("Do it --completion-promise DONE");
    session.assert_continues("one");
    session.hook("end", json!({ "reason": "other" }));
    test.elsewhere(&["resume", NAME])
        .exits(0)
        .says("starting iteration 3/25");
    assert!(test.read("seen").starts_with("Do it\n"));
    assert!(!test.workspace().join(LOOP_FILE).exists());
    assert_eq!(
        session.assert_released("two"),
        "",
        "the session has no part in it any more"
    );
}

#[test]
fn a_session_s_loop_ends_with_its_client() {
    let test = Test::new();
    let shell = test.root().join("client");
    std::fs::copy("/bin/sh", &shell).unwrap();
    let input = json!({ "session_id": ID, "cwd": test.workspace(), "hook_event_name": "UserPromptSubmit",
        "prompt": "/ralph-loop Do it" });
    test.write("input.json", &input.to_string());
    let mut client = test.command(&shell);
    let ralph = env!("CARGO_BIN_EXE_ralph");
    client.args([
        "-c",
        &format!("{ralph} hook prompt < input.json > out; read line; exit 0"),
    ]);
    let mut client = client.stdin(Stdio::piped()).spawn().unwrap();
    until("the loop has begun", || {
        test.workspace().join(LOOP_FILE).exists()
    });
    until("it is known", || {
        test.ralph(&["ls", "--json"])
            .out
            .contains("\"status\":\"running\"")
    });
    drop(client.stdin.take());
    client.wait().unwrap();
    assert_eq!(test.status(NAME)["status"], "crashed");
}

#[test]
fn commands_work_on_a_session_s_loop() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    test.ralph(&["ls"]).exits(0).says(NAME).says("running");
    test.elsewhere(&["say", NAME, "mind the gap"]).exits(0);
    test.elsewhere(&["set", NAME, "max-iterations=5"]).exits(0);
    let prompt = session.assert_continues("one");
    assert_eq!(prompt, "Do it\n\nA person says: mind the gap");
    assert_eq!(field(&test, "max_iterations"), "max_iterations: 5");
    assert_eq!(session.assert_continues("two"), "Do it", "told once");
    test.elsewhere(&["pause", NAME]).exits(0);
    assert!(
        session
            .assert_released("three")
            .starts_with("⏸ ralph: paused at iteration 3")
    );
    assert!(!test.workspace().join(LOOP_FILE).exists());
    assert_eq!(test.status(NAME)["status"], "paused");
    for text in ["four", "five"] {
        assert_eq!(session.assert_released(text), "", "the pause holds");
        assert_eq!(test.status(NAME)["status"], "paused");
    }
    test.elsewhere(&["resume", NAME])
        .exits(0)
        .says("send any message in its session to continue");
    assert_eq!(session.assert_continues("six"), "Do it");
    assert_eq!(field(&test, "iteration"), "iteration: 4");
    test.elsewhere(&["pause", NAME]).exits(0);
    session.assert_released("seven");
    let answer = session.submit("/cancel-ralph");
    assert!(answer["reason"].as_str().unwrap().contains("canceled"));
    test.elsewhere(&["rm", NAME]).exits(0);
}

#[test]
fn set_up_says_how_an_unlimited_loop_ends_and_how_to_cancel_a_busy_one() {
    let test = Test::new();
    let session = Session::of(&test);
    let shown = session.start_loop("Do it --max-iterations 0");
    for line in [
        "Max iterations: unlimited",
        "Completion promise: none (only /cancel-ralph ends the loop)",
        "press Esc first, or send /cancel-ralph with Ctrl-X Ctrl-S",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("runs to its limit"), "{shown}");
}

#[test]
fn a_check_whose_command_is_missing_is_refused() {
    let test = Test::new();
    let answer = Session::of(&test).submit("/ralph-loop Do it --check 'no-such-program -x'");
    let reason = answer["reason"].as_str().unwrap();
    assert!(
        reason.contains("command no-such-program not found") && !reason.contains("preflight"),
        "{reason}"
    );
    assert!(!test.workspace().join(LOOP_FILE).exists());
    test.ralph(&["ls"]).exits(0).says("no loops yet");
}

#[test]
fn another_plugin_that_handles_the_same_stops_is_reported() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    assert!(!test.ralph(&["status", NAME]).exits(0).out.contains("Mind:"));
    let settings = "{\"enabledPlugins\": {\"ralph-loop@claude-plugins-official\": true}}";
    test.write("../home/.claude/settings.json", settings);
    let disable = "claude plugin disable ralph-loop@claude-plugins-official";
    test.ralph(&["status", NAME]).exits(0).says(disable);
}

#[test]
fn codex_has_the_same_commands_with_another_sigil() {
    let test = Test::new();
    test.write(
        LOOP_FILE,
        "---\nactive: true\niteration: 1\nmax_iterations: 3\n---\n\nDo it\n",
    );
    let session = Session {
        client: "codex",
        ..Session::of(&test)
    };
    assert_eq!(
        session.stop("none"),
        Value::Null,
        "that file is of another client's plugin"
    );
    let message = session.submit("$ralph-loop Do <it> & more --completion-promise DONE");
    let message = message["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("To cancel: $cancel-ralph"), "{message}");
    assert_eq!(session.assert_continues("one"), "Do <it> & more");
    let silent = json!({ "last_assistant_message": null });
    assert_eq!(
        session.hook("stop", silent)["decision"],
        "block",
        "no words, and no wait for a transcript"
    );
    session.assert_released("<promise>DONE</promise>");
    assert_eq!(test.status("codex-859fbae3")["status"], "done");
    assert!(
        session.submit("$ralph-help")["reason"]
            .as_str()
            .unwrap()
            .contains("  $ralph-loop PROMPT")
    );
}

#[test]
fn the_user_can_change_the_limit_in_the_loop_file() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it");
    let edited = test
        .read(LOOP_FILE)
        .replace("max_iterations: 25", "max_iterations: 2");
    test.write(LOOP_FILE, &edited);
    session.assert_continues("one");
    assert!(
        session
            .assert_released("two")
            .contains("max iterations (2) reached")
    );
}

#[test]
fn the_client_s_block_cap_ends_the_loop_with_its_own_stop_reason() {
    let test = Test::new();
    let session = Session {
        cap: "3",
        ..Session::of(&test)
    };
    session.start_loop("Do it --completion-promise DONE");
    let mut transcript = String::new();
    let mut turn = |tool: bool| {
        let user = json!({ "type": "user", "message": { "role": "user", "content": "go on" } });
        transcript += &(user.to_string() + "\n");
        if tool {
            let call = json!({ "type": "assistant", "message": { "id": "m", "role": "assistant",
                "content": [{ "type": "tool_use", "id": "t", "name": "Bash", "input": {} }] } });
            let result = json!({ "type": "user", "message": { "role": "user",
                "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "ok" }] } });
            transcript += &[call, result].map(|line| line.to_string() + "\n").concat();
        }
        let said = json!({ "type": "assistant", "message": { "id": "n", "role": "assistant",
            "content": [{ "type": "text", "text": "no" }] } });
        transcript += &(said.to_string() + "\n");
        std::fs::write(test.root().join("transcript.jsonl"), &transcript).unwrap();
    };
    for tool in [false, false, false, true, false, false] {
        turn(tool);
        session.assert_continues("no");
    }
    turn(false);
    let message = session.assert_released("no");
    assert!(
        message.contains("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0"),
        "{message}"
    );
    assert_eq!(test.status(NAME)["stop_reason"], "block_cap");
}

#[test]
fn the_last_message_is_read_from_the_transcript_if_the_client_sends_none() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it --completion-promise DONE");
    let line = |text: &str| {
        let said = json!({ "type": "assistant", "message": { "id": "n", "role": "assistant",
            "content": [{ "type": "text", "text": text }] } });
        format!("{said}\n")
    };
    let path = test.root().join("transcript.jsonl");
    std::fs::write(
        &path,
        line("<promise>DONE</promise>") + &line("not yet").replace("\"n\"", "\"o\""),
    )
    .unwrap();
    assert_eq!(
        session.hook("stop", json!({}))["decision"],
        "block",
        "the last message alone counts"
    );
    std::fs::write(
        &path,
        line("no").replace("\"n\"", "\"p\"") + &line("<promise>DONE</promise>"),
    )
    .unwrap();
    assert_eq!(session.hook("stop", json!({})).get("decision"), None);
    assert_eq!(test.status(NAME)["status"], "done");
}

#[test]
fn checks_that_exceed_the_client_s_hook_timeout_are_red_and_leave_no_process() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Do it --check 'sleep 1000'");
    let prompt = Session {
        within: "2",
        ..session
    }
    .assert_continues("no");
    assert!(
        prompt.contains("The check `sleep 1000` is red (timeout after "),
        "{prompt}"
    );
}

#[test]
fn hooks_do_nothing_for_an_agent_that_ralph_started() {
    let test = Test::new();
    test.write(
        LOOP_FILE,
        "---\nactive: true\niteration: 1\nmax_iterations: 3\ncompletion_promise: null\n---\n\nDo it\n",
    );
    let input = json!({ "session_id": ID, "cwd": test.workspace(), "hook_event_name": "Stop",
        "last_assistant_message": "no" });
    test.write("input.json", &input.to_string());
    let hook = format!("{} hook stop < input.json", env!("CARGO_BIN_EXE_ralph"));
    assert_eq!(test.sh(&format!("RALPH_ITERATION=1 {hook}")), "");
    assert!(test.sh(&hook).contains("block"), "but for that");
}

/// A message of the agent in a transcript, on two lines as Claude Code writes it.
fn message(id: &str, output: u64) -> String {
    let line = |output: u64, content: Value| {
        let usage = json!({"input_tokens": 1000, "output_tokens": output});
        json!({"type": "assistant", "message": {
            "id": id, "model": "priced", "content": [content], "usage": usage,
        }})
    };
    format!(
        "{}\n{}\n",
        line(1, json!({"type": "tool_use", "id": "t", "name": "Bash"})),
        line(output, json!({"type": "text", "text": "ok"}))
    )
}

#[test]
fn budgets_act_on_what_the_transcript_gained_since_the_last_stop() {
    for (limit, reached) in [("maxCost = 0.01", "cost"), ("maxTokens = 5000", "tokens")] {
        let prices = "[prices.priced]\ninput = 1\noutput = 2\n";
        let test = Test::new().file(".ralph/settings.toml", &format!("{limit}\n{prices}"));
        let transcript = test.root().join("transcript.jsonl");
        let add = |text: &str| {
            let mut file = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(&transcript)
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        // What was used before the loop does not count.
        add(&message("before", 900_000));
        let session = Session::of(&test);
        session.start_loop("Do it");
        add(&message("one", 500));
        session.assert_continues("one");
        assert_eq!(test.status(NAME)["cost_usd"], 0.002);
        assert_eq!(test.status(NAME)["tokens"], 1500);
        session.assert_continues("nothing new");
        assert_eq!(test.status(NAME)["cost_usd"], 0.002);
        add(&message("two", 4000));
        let ended = session.assert_released("two");
        assert!(ended.contains("limit reached"), "{ended}");
        assert_eq!(test.status(NAME)["outcome"]["why"], reached);
        assert_eq!(test.status(NAME)["cost_usd"], 0.011);
        let report = &test.events(NAME, "ended")[2]["report"];
        let len = std::fs::metadata(&transcript).unwrap().len();
        assert_eq!(report["transcript_bytes"], len);
    }
}

/// A request in a Codex rollout file, as Codex writes it: a repeated total after it changes nothing.
fn codex_request(total: u64, last: u64) -> String {
    let count = |output: u64| json!({"input_tokens": 1000, "cached_input_tokens": 200, "output_tokens": output});
    let counted = json!({"type": "event_msg", "payload": {"type": "token_count", "info": {
        "total_token_usage": {"input_tokens": 1000 * total, "cached_input_tokens": 200 * total,
            "output_tokens": 100 * total},
        "last_token_usage": count(last),
    }}});
    let context = json!({"type": "turn_context", "payload": {"model": "priced"}});
    let no_usage = json!({"type": "event_msg", "payload": {"type": "token_count", "info": null}});
    format!("{context}\n{no_usage}\n{counted}\n{counted}\n")
}

#[test]
fn budgets_act_in_a_codex_session() {
    let settings = "maxTokens = 3000\n[prices.priced]\ninput = 1\noutput = 2\n";
    let test = Test::new().file(".ralph/settings.toml", settings);
    let session = Session {
        client: "codex",
        ..Session::of(&test)
    };
    let name = NAME.replace("claude", "codex");
    let transcript = test.root().join("transcript.jsonl");
    let add = |text: &str| {
        let mut whole = std::fs::read_to_string(&transcript).unwrap_or_default();
        whole.push_str(text);
        std::fs::write(&transcript, whole).unwrap();
    };
    // What was used before the loop does not count.
    add(&codex_request(7, 100));
    session.submit("$ralph-loop Do it");
    add(&codex_request(8, 100));
    session.assert_continues("one");
    assert_eq!(test.status(&name)["tokens"], 1100);
    assert_eq!(test.status(&name)["cost_usd"], 0.0012);
    session.assert_continues("nothing new");
    assert_eq!(test.status(&name)["tokens"], 1100);
    add(&codex_request(10, 100));
    let ended = session.assert_released("two");
    assert!(ended.contains("limit reached"), "{ended}");
    assert_eq!(test.status(&name)["outcome"]["why"], "tokens");
    assert_eq!(test.status(&name)["tokens"], 3300);
}

#[test]
fn a_message_on_both_sides_of_a_stop_counts_once() {
    let test = Test::new().file(".ralph/settings.toml", "maxTokens = 50000\n");
    let transcript = test.root().join("transcript.jsonl");
    let session = Session::of(&test);
    session.start_loop("Do it");
    let both = message("one", 500);
    let (first, _) = both.split_at(both.find('\n').unwrap() + 1);
    std::fs::write(&transcript, first).unwrap();
    session.assert_continues("one");
    assert_eq!(test.status(NAME)["tokens"], 1001);
    std::fs::write(&transcript, &both).unwrap();
    session.assert_continues("two");
    assert_eq!(test.status(NAME)["tokens"], 1500);
}

#[test]
fn a_budget_that_cannot_act_in_a_session_is_named_at_set_up() {
    let test = Test::new().file(".ralph/settings.toml", "maxTokens = 5000\n");
    let said = json!({"prompt": "/ralph-loop Do it", "transcript_path": null});
    let answer = Session::of(&test).hook("prompt", said);
    let shown = answer["hookSpecificOutput"]["additionalContext"].to_string();
    assert!(
        shown.contains("Note: max-tokens does not apply here"),
        "{answer}"
    );
}

#[test]
fn the_logs_of_a_session_s_checks_carry_the_name_of_its_loop() {
    let test = Test::new();
    let session = Session::of(&test);
    session.start_loop("Write it --check 'echo no; false'");
    let prompt = session.assert_continues("done");
    let log = format!(".ralph/guardrail_1_echo-no-false_{NAME}.log");
    assert!(prompt.contains(&log), "{prompt}");
    assert!(test.workspace().join(log).exists());
}

#[test]
fn a_session_says_that_the_sandbox_does_not_apply() {
    let test = Test::git();
    test.write("../home/.config/ralph/settings.toml", "sandbox = true\n");
    let printed = Session::of(&test).start_loop("Fix it. --max-iterations 3");
    assert!(
        printed
            .contains("The setting sandbox does not apply here: Claude Code itself runs the agent"),
        "{printed}"
    );
    assert_eq!(test.status(NAME)["sandbox"], Value::Null);
}
