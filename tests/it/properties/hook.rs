//! Any hook input and any slash command is parsed or rejected with a short reason.
//!
//! The first byte of an input selects between the two.

use ralph::testing::hook::{HookInput, HookResponse};
use ralph::testing::slash::{self, LoopArgs, LoopCommand};

pub fn check(input: &[u8]) {
    let [kind, rest @ ..] = input else { return };
    if kind % 2 == 1 {
        check_loop_args(&String::from_utf8_lossy(rest));
        return;
    }
    let hook_input = match HookInput::read(rest) {
        Ok(hook_input) => hook_input,
        Err(error) => {
            assert!(!error.is_empty() && error.len() < 1000, "{error}");
            return;
        }
    };
    let id = &hook_input.session_id;
    assert!(
        !id.is_empty() && id.len() <= 200 && !id.contains(|c: char| c.is_control() || c == '/'),
        "{id:?}"
    );
    let prompt = hook_input.prompt.unwrap_or_default();
    let response = HookResponse::Block {
        reason: prompt.clone(),
        message: hook_input.last_assistant_message.clone(),
    }
    .to_json();
    let response: serde_json::Value =
        serde_json::from_str(&response.expect("a block is printed")).expect("it is valid JSON");
    assert_eq!(response["reason"], prompt.as_str());
    assert_eq!(
        response["systemMessage"].as_str(),
        hook_input.last_assistant_message.as_deref()
    );
    if let Some((_, arguments)) = slash::parse_command(&prompt) {
        assert!(prompt.ends_with(arguments), "{prompt:?}");
        check_loop_args(arguments);
    }
}

fn check_loop_args(arguments: &str) {
    match slash::parse_loop_args(arguments) {
        Ok(LoopCommand::Help) => assert!(arguments.contains("-h"), "{arguments:?}"),
        Err(error) => {
            assert!(
                !error.error.is_empty() && error.error.len() < 2000,
                "{error:?}"
            );
            assert!(
                !error.hint.is_empty() && error.hint.iter().all(|line| !line.is_empty()),
                "{error:?}"
            );
        }
        Ok(LoopCommand::Start(args)) => check_parsed(arguments, &args),
    }
}

fn check_parsed(arguments: &str, args: &LoopArgs) {
    let LoopArgs {
        prompt,
        promise,
        checks,
        ..
    } = args;
    assert!(
        !prompt.is_empty() && prompt.trim() == prompt && prompt.len() <= arguments.len(),
        "{args:?}"
    );
    let is_folded = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ") == **text;
    assert!(
        promise
            .as_ref()
            .is_none_or(|text| !text.is_empty() && is_folded(text)),
        "{args:?}"
    );
    assert!(
        checks.iter().all(|check| !check.trim().is_empty()),
        "{args:?}"
    );
    if arguments.contains(['\'', '"', '“', '‘']) {
        return;
    }
    if !arguments.split_whitespace().any(|word| word == "--") {
        let flags = [
            "--max-iterations",
            "--completion-promise",
            "--check",
            "--help",
            "-h",
        ];
        assert_eq!(
            prompt.split_whitespace().find(|word| flags.contains(word)),
            None,
            "{arguments:?}"
        );
    }
    // Parsing the prompt again as a prompt does not change it.
    let again = LoopArgs {
        prompt: prompt.clone(),
        ..LoopArgs::default()
    };
    assert_eq!(
        slash::parse_loop_args(&format!("-- {prompt}")),
        Ok(LoopCommand::Start(again)),
        "{arguments:?}"
    );
}

/// Recorded hook inputs, and arguments with flags, quotes and mistakes.
pub fn seeds() -> Vec<Vec<u8>> {
    let inputs = [
        r#"{"session_id":"0b1b93a5-6c35","transcript_path":"/t.jsonl","cwd":"/work","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Done.","background_tasks":[]}"#,
        r#"{"session_id":"s","turn_id":"t","transcript_path":null,"hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":null}"#,
        r#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"/ralph-loop Build \"x\" $(id) \ud83d\ude00 --max-iterations 3"}"#,
        r#"{"session_id":"s","hook_event_name":"StopFailure","error":"server_error","last_assistant_message":"API Error: \ud83d"}"#,
        r#"{"session_id":"s","hook_event_name":"SessionEnd","reason":"exit","agent_id":"a","prompt":" /ralph:cancel-ralph"}"#,
    ];
    let arguments = [
        "Build a todo API --completion-promise 'ALL DONE' --max-iterations 20 --check \"test \\\"a\\\" = b\"",
        "--max-iterations=0 --check=./x --completion-promise “ALL DONE” -- --flag\n\n  text",
        "don't 'stop now' -- it's \\\" \"quoted\" —max-iterations --max-iteration",
        "\"Build\r\n--check\tx\r\nit\" --completion-promise <promise>x</promise>",
        "x --max-iterations 99999999999 -h --help",
    ];
    let seeds = inputs
        .into_iter()
        .map(|input| (0, input))
        .chain(arguments.into_iter().map(|text| (1, text)));
    seeds
        .map(|(kind, text)| [&[kind], text.as_bytes()].concat())
        .collect()
}
