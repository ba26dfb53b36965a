//! Whatever a transcript contains, its end alone determines the last message and whether a tool was
//! used.

use ralph::testing::transcript::TranscriptFormat::Claude;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const PROMPT: &str = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n";
const UNRELATED: &str =
    "{\"type\":\"last-prompt\",\"lastPrompt\":\"the \\\"assistant\\\" and the \\\"user\\\"\"}\n";
const MESSAGE: &str = "{\"type\":\"assistant\",\"isSidechain\":false,\"message\":{\"id\":\"unique\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"last\"}]}}\n";
const TOOL: &str = "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":{}}]}}\n";

fn last(path: &Path) -> Option<String> {
    Claude
        .last_message(path, Duration::ZERO)
        .expect("the file exists")
}

pub fn check(text: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file can be created");
    let mut append = |text: &[u8]| {
        file.write_all(text).expect("it can be written");
        file.path().to_owned()
    };
    let path = append(text);
    let message = last(&path);
    let is_incomplete = text.last().is_some_and(|byte| *byte != b'\n');
    assert!(
        message
            .as_ref()
            .is_none_or(|text| !text.trim().is_empty() && !is_incomplete),
        "{message:?}"
    );
    let used = Claude.used_tool(&path);
    assert!(used.is_some());
    if is_incomplete {
        return;
    }
    append(UNRELATED.as_bytes());
    assert_eq!(
        (last(&path), Claude.used_tool(&path)),
        (message, used),
        "unrelated lines change nothing"
    );
    append(MESSAGE.as_bytes());
    // The input may end with other parts of the same message.
    assert!(
        last(&path).is_some_and(|text| text.ends_with("last")) && Claude.used_tool(&path) == used
    );
    append(PROMPT.as_bytes());
    assert_eq!(
        (last(&path), Claude.used_tool(&path)),
        (None, Some(false)),
        "the answer to a prompt is pending"
    );
    append(TOOL.as_bytes());
    assert_eq!(
        (last(&path), Claude.used_tool(&path)),
        (None, Some(true)),
        "the result of a tool is pending"
    );
    append(MESSAGE.as_bytes());
    assert_eq!(
        (last(&path).as_deref(), Claude.used_tool(&path)),
        (Some("last"), Some(true))
    );
    append(b"{\"type\":\"user");
    assert_eq!(
        (last(&path), Claude.used_tool(&path)),
        (None, Some(true)),
        "the last line is incomplete"
    );
}

/// Conversations with the structure of real ones.
pub fn seeds() -> Vec<Vec<u8>> {
    let line = |id: &str, part: &str| {
        format!(
            "{{\"parentUuid\":\"a\",\"isSidechain\":false,\"message\":{{\"id\":\"{id}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{part}],\"stop_reason\":\"end_turn\",\"usage\":{{\"input_tokens\":5}}}},\"type\":\"assistant\",\"uuid\":\"b\",\"timestamp\":\"2026-01-02T03:04:05.678Z\"}}\n"
        )
    };
    let text =
        |id: &str, text: &str| line(id, &format!("{{\"type\":\"text\",\"text\":\"{text}\"}}"));
    let thinking = line(
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
            &thinking,
            &text("m1", "one"),
            UNRELATED,
            &text("m1", "two \\ud83d\\ude00"),
            UNRELATED,
        ]
        .concat(),
        [PROMPT, TOOL, result, &half, &side, &error].concat(),
        [PROMPT, &text("m1", "old"), summary, PROMPT, TOOL, result].concat(),
        [MESSAGE, TOOL, TOOL, result, result, MESSAGE.trim_end()].concat(),
    ]
    .map(String::into_bytes)
    .into()
}
