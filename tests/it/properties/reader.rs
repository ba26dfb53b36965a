//! Whatever an agent prints, its reader neither breaks nor counts what cannot be, and says the same however it is cut.
//! The first byte of an input chooses the agent, the second the place of the cut.

use ralph::Act;
use ralph::testing::Replay;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static AGENTS: LazyLock<BTreeMap<String, Replay>> = LazyLock::new(Replay::all);

/// What one reading came to: all that was said, and everything else.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    said: String,
    acts: Vec<String>,
    final_words: Option<String>,
}

fn read(agent: &Replay, pieces: &[&[u8]]) -> Heard {
    let mut heard = Heard::default();
    let mut hear = |act: &Act<'_>| match act {
        // Plain text is told in the pieces in which it comes.
        Act::Said(text) => heard.said.push_str(text),
        Act::BeganTool { about, .. } | Act::UsedTool { about, .. } => {
            assert!(
                about.chars().count() <= 201 && !about.contains(char::is_control),
                "{about:?}"
            );
            heard.acts.push(format!("{act:?}"));
        }
        Act::Cost(usd) => {
            assert!(usd.is_finite() && *usd >= 0.0, "{usd}");
            heard.acts.push(format!("{act:?}"));
        }
        Act::Failed { why, reason } => {
            let until = reason.and_then(|reason| reason.until_ms);
            assert!(until.is_none_or(is_in_calendar), "{until:?}");
            // Words such as "in an hour" are looked up anew each time.
            let kind = reason.map(|reason| (reason.kind, reason.until_ms.is_some()));
            heard.acts.push(format!("failed {why:?} {kind:?}"));
        }
        act => heard.acts.push(format!("{act:?}")),
    };
    let (report, final_words) = agent.read(Path::new("/work"), pieces.iter().copied(), &mut hear);
    assert!(
        report
            .cost_usd
            .is_none_or(|usd| usd.is_finite() && usd >= 0.0),
        "{report:?}"
    );
    assert!(
        final_words
            .as_ref()
            .is_none_or(|words| !words.trim().is_empty())
    );
    // What is written to the journal can be read again.
    let line = serde_json::to_string(&report).expect("a report is JSON");
    let again = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(report, again);
    heard.final_words = final_words;
    heard
}

/// From the year 1 to 9999, roughly.
pub fn is_in_calendar(ms: i64) -> bool {
    (-62_135_596_800_000..=253_402_300_799_999).contains(&ms)
}

pub fn holds(input: &[u8]) {
    let [agent, cut, stream @ ..] = input else {
        return;
    };
    let agent = AGENTS
        .values()
        .nth(usize::from(*agent) % AGENTS.len())
        .expect("there is one");
    let (one, other) = stream.split_at(stream.len() * usize::from(*cut) / 256);
    assert_eq!(read(agent, &[one, other]), read(agent, &[stream]));
}

/// What real agents printed, what documentation has, and plain text, each for its own reader.
pub fn seeds() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|dir| dir.join("testdata/streams"));
    let dir = dir
        .into_iter()
        .find(|dir| dir.is_dir())
        .expect("testdata/streams is there");
    let mut seeds = Vec::new();
    let mut seed = |name: &str, stream: &[u8]| {
        let agent = AGENTS
            .keys()
            .position(|agent| name.starts_with(agent.as_str()));
        let agent = agent.unwrap_or_else(|| panic!("{name}: whose stream is it?"));
        seeds.push([&[agent as u8, 128], stream].concat());
    };
    for file in fs::read_dir(dir).expect("it can be read") {
        let path = file.expect("it can be read").path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            seed(&name, &fs::read(&path).expect("it can be read"));
        }
    }
    for (name, lines) in BY_DOCUMENTATION {
        seed(name, lines.join("\n").as_bytes());
    }
    seed(
        "aider",
        "é is not in the subpath of x\nok \u{1b}[31mred\r\n<promise>日</promise>".as_bytes(),
    );
    // Cut after the first byte, which begins a character that never comes.
    seed("aider", b"\xdf\xc3\xa9");
    seeds
}

/// Streams as documentation has them.
pub const BY_DOCUMENTATION: &[(&str, &[&str])] = &[
    (
        "cursor-agent",
        &[
            r#"{"type":"system","subtype":"init","session_id":"s","model":"m","permissionMode":"default"}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"<promise>NO</promise>"}]}}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"First."}]}}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"writeToolCall":{"args":{"path":"a.txt"}}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"writeToolCall":{"args":{"path":"a.txt"},"result":{"success":{"linesCreated":1}}}}}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Last."}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"First.Last.","session_id":"s"}"#,
        ],
    ),
    (
        "amp",
        &[
            r#"{"type":"system","subtype":"init","session_id":"T-1","tools":[]}"#,
            r#"{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"First."},{"type":"tool_use","id":"c","name":"write","input":{"path":"a.txt"}}],"usage":{"input_tokens":10,"output_tokens":5}},"parent_tool_use_id":null}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":false}]},"parent_tool_use_id":null}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Last.","session_id":"T-1"}"#,
        ],
    ),
    (
        "goose",
        &[
            r#"{"type":"message","message":{"id":"1","role":"assistant","content":[{"type":"text","text":"First."},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"write","arguments":{"path":"a.txt"}}}}]}}"#,
            r#"{"type":"message","message":{"id":"2","role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[]}}]}}"#,
            r#"{"type":"message","message":{"id":"3","role":"assistant","content":[{"type":"text","text":"La"}]}}"#,
            r#"{"type":"message","message":{"id":"3","role":"assistant","content":[{"type":"text","text":"st."}]}}"#,
            r#"{"type":"complete","total_tokens":15}"#,
        ],
    ),
];
