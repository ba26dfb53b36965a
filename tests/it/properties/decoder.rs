//! Whatever an agent prints, its decoder does not panic, reports plausible values, and decodes the
//! same however the output is split.
//!
//! The first byte of an input selects the agent, the second where its output is split.

use ralph::Act;
use ralph::testing::Replay;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static AGENTS: LazyLock<BTreeMap<String, Replay>> = LazyLock::new(Replay::all);

/// The result of decoding: all text in one, and all other acts.
#[derive(Debug, Default, PartialEq)]
struct Decoded {
    text: String,
    acts: Vec<String>,
    final_message: Option<String>,
}

fn decode(agent: &Replay, pieces: &[&[u8]]) -> Decoded {
    let mut decoded = Decoded::default();
    let mut on_act = |act: &Act<'_>| match act {
        // Plain text is emitted in the pieces in which it arrives.
        Act::Text(text) => decoded.text.push_str(text),
        Act::ToolStarted { about, .. } | Act::ToolFinished { about, .. } => {
            assert!(
                about.chars().count() <= 201 && !about.contains(char::is_control),
                "{about:?}"
            );
            decoded.acts.push(format!("{act:?}"));
        }
        Act::Cost(usd) => {
            assert!(usd.is_finite() && *usd >= 0.0, "{usd}");
            decoded.acts.push(format!("{act:?}"));
        }
        Act::Failed { why, reason } => {
            let until = reason.and_then(|reason| reason.until_ms);
            assert!(until.is_none_or(is_in_calendar), "{until:?}");
            // Relative times such as "in an hour" differ from call to call.
            let kind = reason.map(|reason| (reason.kind, reason.until_ms.is_some()));
            decoded.acts.push(format!("failed {why:?} {kind:?}"));
        }
        act => decoded.acts.push(format!("{act:?}")),
    };
    let (report, final_message) =
        agent.decode(Path::new("/work"), pieces.iter().copied(), &mut on_act);
    assert!(
        report
            .cost_usd
            .is_none_or(|usd| usd.is_finite() && usd >= 0.0),
        "{report:?}"
    );
    assert!(
        final_message
            .as_ref()
            .is_none_or(|text| !text.trim().is_empty())
    );
    // The report survives a round trip through the journal.
    let line = serde_json::to_string(&report).expect("a report serializes");
    let again = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(report, again);
    decoded.final_message = final_message;
    decoded
}

/// Whether a Unix time in milliseconds is between the years 1 and 9999.
pub fn is_in_calendar(ms: i64) -> bool {
    (-62_135_596_800_000..=253_402_300_799_999).contains(&ms)
}

pub fn check(input: &[u8]) {
    let [agent, cut, stream @ ..] = input else {
        return;
    };
    let agent = AGENTS
        .values()
        .nth(usize::from(*agent) % AGENTS.len())
        .expect("there is an agent");
    let (one, other) = stream.split_at(stream.len() * usize::from(*cut) / 256);
    assert_eq!(decode(agent, &[one, other]), decode(agent, &[stream]));
}

/// Recorded streams, documented streams, and plain text, each for its own decoder.
pub fn seeds() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|dir| dir.join("testdata/streams"));
    let dir = dir
        .into_iter()
        .find(|dir| dir.is_dir())
        .expect("testdata/streams exists");
    let mut seeds = Vec::new();
    let mut seed = |name: &str, stream: &[u8]| {
        let agent = AGENTS
            .keys()
            .position(|agent| name.starts_with(agent.as_str()));
        let agent = agent.unwrap_or_else(|| panic!("{name}: no agent with this prefix"));
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
    for (name, lines) in DOCUMENTED_STREAMS {
        seed(name, lines.join("\n").as_bytes());
    }
    seed(
        "aider",
        "é is not in the subpath of x\nok \u{1b}[31mred\r\n<promise>日</promise>".as_bytes(),
    );
    // Split after the first byte, which starts a character that is never completed.
    seed("aider", b"\xdf\xc3\xa9");
    seeds
}

/// Streams of agents for which there are no recordings, taken from their documentation.
pub const DOCUMENTED_STREAMS: &[(&str, &[&str])] = &[
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
