//! Whatever a client tells its hook, and whatever a person types behind a slash, is understood or refused in few words. The
//! first byte of an input chooses between the two.

use ralph::testing::hook::{Answer, Input};
use ralph::testing::slash::{self, Asked, Errand};

pub fn holds(input: &[u8]) {
    let [kind, said @ ..] = input else { return };
    if kind % 2 == 1 {
        typed(&String::from_utf8_lossy(said));
        return;
    }
    let told = match Input::read(said) {
        Ok(told) => told,
        Err(wrong) => {
            assert!(!wrong.is_empty() && wrong.len() < 1000, "{wrong}");
            return;
        }
    };
    let id = &told.session_id;
    assert!(
        !id.is_empty() && id.len() <= 200 && !id.contains(|c: char| c.is_control() || c == '/'),
        "{id:?}"
    );
    let prompt = told.prompt.unwrap_or_default();
    let answer = Answer::Block {
        reason: prompt.clone(),
        message: told.last_assistant_message.clone(),
    }
    .to_json();
    let answer: serde_json::Value =
        serde_json::from_str(&answer.expect("it says something")).expect("it is JSON");
    assert_eq!(answer["reason"], prompt.as_str());
    assert_eq!(
        answer["systemMessage"].as_str(),
        told.last_assistant_message.as_deref()
    );
    if let Some((_, arguments)) = slash::command(&prompt) {
        assert!(prompt.ends_with(arguments), "{prompt:?}");
        typed(arguments);
    }
}

fn typed(arguments: &str) {
    match slash::parse(arguments) {
        Ok(Asked::Help) => assert!(arguments.contains("-h"), "{arguments:?}"),
        Err(wrong) => {
            assert!(
                !wrong.error.is_empty() && wrong.error.len() < 2000,
                "{wrong:?}"
            );
            assert!(
                !wrong.hint.is_empty() && wrong.hint.iter().all(|line| !line.is_empty()),
                "{wrong:?}"
            );
        }
        Ok(Asked::Loop(errand)) => is_sound(arguments, &errand),
    }
}

fn is_sound(arguments: &str, errand: &Errand) {
    let Errand {
        prompt,
        promise,
        checks,
        ..
    } = errand;
    assert!(
        !prompt.is_empty() && prompt.trim() == prompt && prompt.len() <= arguments.len(),
        "{errand:?}"
    );
    let is_folded =
        |words: &String| words.split_whitespace().collect::<Vec<_>>().join(" ") == **words;
    assert!(
        promise
            .as_ref()
            .is_none_or(|words| !words.is_empty() && is_folded(words)),
        "{errand:?}"
    );
    assert!(
        checks.iter().all(|check| !check.trim().is_empty()),
        "{errand:?}"
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
    // What was understood as the prompt is the prompt.
    let again = Errand {
        prompt: prompt.clone(),
        ..Errand::default()
    };
    assert_eq!(
        slash::parse(&format!("-- {prompt}")),
        Ok(Asked::Loop(again)),
        "{arguments:?}"
    );
}

/// What clients tell, and what people type.
pub fn seeds() -> Vec<Vec<u8>> {
    let told = [
        r#"{"session_id":"0b1b93a5-6c35","transcript_path":"/t.jsonl","cwd":"/work","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Done.","background_tasks":[]}"#,
        r#"{"session_id":"s","turn_id":"t","transcript_path":null,"hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":null}"#,
        r#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"/ralph-loop Build \"x\" $(id) \ud83d\ude00 --max-iterations 3"}"#,
        r#"{"session_id":"s","hook_event_name":"StopFailure","error":"server_error","last_assistant_message":"API Error: \ud83d"}"#,
        r#"{"session_id":"s","hook_event_name":"SessionEnd","reason":"exit","agent_id":"a","prompt":" /ralph:cancel-ralph"}"#,
    ];
    let typed = [
        "Build a todo API --completion-promise 'ALL DONE' --max-iterations 20 --check \"test \\\"a\\\" = b\"",
        "--max-iterations=0 --check=./x --completion-promise “ALL DONE” -- --flag\n\n  text",
        "don't 'stop now' -- it's \\\" \"quoted\" —max-iterations --max-iteration",
        "\"Build\r\n--check\tx\r\nit\" --completion-promise <promise>x</promise>",
        "x --max-iterations 99999999999 -h --help",
    ];
    let seeds = told
        .into_iter()
        .map(|told| (0, told))
        .chain(typed.into_iter().map(|typed| (1, typed)));
    seeds
        .map(|(kind, text)| [&[kind], text.as_bytes()].concat())
        .collect()
}
