//! Whatever a transcript holds, its end alone says what the agent's last words are, and whether it used a tool.

use ralph::testing::transcript::{last_words, used_tools};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const PROMPT: &str = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n";
const NOISE: &str =
    "{\"type\":\"last-prompt\",\"lastPrompt\":\"the \\\"assistant\\\" and the \\\"user\\\"\"}\n";
const WORDS: &str = "{\"type\":\"assistant\",\"isSidechain\":false,\"message\":{\"id\":\"unheard of\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"last\"}]}}\n";
const TOOL: &str = "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":{}}]}}\n";

fn words(path: &Path) -> Option<String> {
    last_words(path, Duration::ZERO).expect("the file is there")
}

pub fn holds(text: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file can be made");
    let mut append = |text: &[u8]| {
        file.write_all(text).expect("it can be written");
        file.path().to_owned()
    };
    let path = append(text);
    let said = words(&path);
    let is_torn = text.last().is_some_and(|byte| *byte != b'\n');
    assert!(
        said.as_ref()
            .is_none_or(|said| !said.trim().is_empty() && !is_torn),
        "{said:?}"
    );
    let used = used_tools(&path);
    assert!(used.is_some());
    if is_torn {
        return;
    }
    append(NOISE.as_bytes());
    assert_eq!(
        (words(&path), used_tools(&path)),
        (said, used),
        "what is no part of the conversation changes nothing"
    );
    append(WORDS.as_bytes());
    // Further parts of the same message may stand before it.
    assert!(words(&path).is_some_and(|words| words.ends_with("last")) && used_tools(&path) == used);
    append(PROMPT.as_bytes());
    assert_eq!(
        (words(&path), used_tools(&path)),
        (None, Some(false)),
        "an answer is yet to come"
    );
    append(TOOL.as_bytes());
    assert_eq!(
        (words(&path), used_tools(&path)),
        (None, Some(true)),
        "a tool's result is yet to come"
    );
    append(WORDS.as_bytes());
    assert_eq!(
        (words(&path).as_deref(), used_tools(&path)),
        (Some("last"), Some(true))
    );
    append(b"{\"type\":\"user");
    assert_eq!(
        (words(&path), used_tools(&path)),
        (None, Some(true)),
        "a torn line is yet to come"
    );
}

/// Conversations in the shape of real ones.
pub fn seeds() -> Vec<Vec<u8>> {
    let said = |id: &str, part: &str| {
        format!(
            "{{\"parentUuid\":\"a\",\"isSidechain\":false,\"message\":{{\"id\":\"{id}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{part}],\"stop_reason\":\"end_turn\",\"usage\":{{\"input_tokens\":5}}}},\"type\":\"assistant\",\"uuid\":\"b\",\"timestamp\":\"2026-01-02T03:04:05.678Z\"}}\n"
        )
    };
    let text =
        |id: &str, text: &str| said(id, &format!("{{\"type\":\"text\",\"text\":\"{text}\"}}"));
    let thought = said(
        "m1",
        "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"x\"}",
    );
    let result = "{\"isSidechain\":false,\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":\"x\"}]},\"toolUseResult\":{}}\n";
    let summary = "{\"isSidechain\":false,\"type\":\"system\",\"subtype\":\"stop_hook_summary\",\"hookCount\":1}\n";
    let side = text("m9", "theirs").replace("false", "true");
    let error = text("m8", "API Error").replace("\"uuid\"", "\"isApiErrorMessage\":true,\"uuid\"");
    let half = text("m2", "half \\ud83d");
    [
        [
            PROMPT,
            &thought,
            &text("m1", "one"),
            NOISE,
            &text("m1", "two \\ud83d\\ude00"),
            NOISE,
        ]
        .concat(),
        [PROMPT, TOOL, result, &half, &side, &error].concat(),
        [PROMPT, &text("m1", "old"), summary, PROMPT, TOOL, result].concat(),
        [WORDS, TOOL, TOOL, result, result, WORDS.trim_end()].concat(),
    ]
    .map(String::into_bytes)
    .into()
}
