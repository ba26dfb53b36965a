//! Recorded output of real agents: each stream in `testdata/streams` decodes to the acts recorded next to it, however it
//! is split, and no other input breaks a decoder.

use crate::properties::decoder::DOCUMENTED_STREAMS;
use crate::snap;
use ralph::Act;
use ralph::testing::Replay;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The directory in which the recorded agents worked.
const WORKSPACE: &str = "/home/dev/project";

static AGENTS: LazyLock<BTreeMap<String, Replay>> = LazyLock::new(Replay::all);

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/streams")
}

/// Returns the name and content of every recorded stream.
fn streams() -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(dir())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let streams = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut streams: Vec<_> = streams
        .map(|path| (name(&path), fs::read(&path).unwrap()))
        .collect();
    streams.sort();
    assert!(
        streams.len() > 70,
        "only {} streams were found",
        streams.len()
    );
    streams
}

fn stream(name: &str) -> Vec<u8> {
    fs::read(dir().join(format!("{name}.jsonl"))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the agent that printed this stream.
fn agent(name: &str) -> &'static str {
    let known = AGENTS.keys().find(|known| name.starts_with(known.as_str()));
    known.unwrap_or_else(|| panic!("{name}: whose stream is it?"))
}

/// Formats an act as one line.
fn line(act: &Act<'_>) -> String {
    match act {
        Act::Text(text) => format!("said     {text:?}"),
        Act::Thinking(text) if text.is_empty() => "lives".into(),
        Act::Thinking(text) => format!("thought  {text:?}"),
        Act::ToolStarted { name, about } => format!("begins   {name} {about}"),
        Act::ToolFinished {
            name,
            about,
            ok: true,
            lines,
            ..
        } => {
            let lines = lines.map(|lines| format!(" +{} -{}", lines.added, lines.removed));
            format!("used     {name} {about}{}", lines.unwrap_or_default())
        }
        Act::ToolFinished {
            name, about, error, ..
        } => format!("failed   {name} {about}: {error}"),
        Act::Denied(text) => format!("denied   {text}"),
        Act::Cost(usd) => format!("cost     {usd:.6}"),
        Act::TokensUsed { model, tokens } => {
            let model = if model.is_empty() { "?" } else { model };
            let (read, written) = (tokens.cache_read, tokens.cache_write);
            format!(
                "tokens   {model}: {} in, {read} cached, {written} kept, {} out",
                tokens.input, tokens.output
            )
        }
        Act::SessionId(name) => format!("session  {name}"),
        Act::Retrying(text) => format!("retries  {text}"),
        Act::SideOutput(text) => format!("noise    {text}"),
        Act::NearLimit {
            limit,
            used,
            until_ms,
        } => {
            let reset = if until_ms.is_some() {
                ", with a reset"
            } else {
                ""
            };
            format!(
                "near     {limit} limit, {}% used{reset}",
                used.unwrap_or_default() * 100.0
            )
        }
        Act::Unparsed => "strange".into(),
        Act::Finished(message) => format!("finished {message:?}"),
        // The reset time is left out here: some messages name a time of day.
        Act::Failed { why, reason } => {
            let kind = reason
                .map(|reason| format!("{:?}", reason.kind))
                .unwrap_or_default();
            let reset = if reason.is_some_and(|reason| reason.until_ms.is_some()) {
                ", with a reset"
            } else {
                ""
            };
            format!("fails    {kind}{reset}: {why:?}")
        }
        Act::RunEnded => "over".into(),
        other => format!("{other:?}"),
    }
}

/// Decodes a stream. Returns its acts, its report and its final message.
fn read<'p>(
    name: &str,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (String, Value, Option<String>) {
    let mut acts = String::new();
    let mut tell = |act: &Act<'_>| writeln!(acts, "{}", line(act)).unwrap();
    let (report, message) = AGENTS[agent(name)].decode(Path::new(WORKSPACE), pieces, &mut tell);
    (acts, serde_json::to_value(report).unwrap(), message)
}

#[test]
fn every_recorded_stream_decodes_to_its_recorded_acts() {
    let mut wrong = Vec::new();
    for (name, bytes) in streams() {
        let (acts, report, _) = read(&name, [&bytes[..]]);
        assert!(
            report.get("strange").is_none_or(|strange| *strange == 0),
            "{name}: {report}"
        );
        let path = dir().join(format!("{name}.acts"));
        if snap::is_blessing() {
            fs::write(path, acts).unwrap();
        } else if fs::read_to_string(path).unwrap_or_default() != acts {
            wrong.push(format!("{name}.acts: now\n{acts}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "RALPH_BLESS=1 writes them anew\n{}",
        wrong.join("\n")
    );
}

/// A stream, its failure reason, and the reset time in Unix milliseconds if the stream contains it.
const ENDS: &[(&str, &str, Option<i64>)] = &[
    ("claude-400-credit", "credit", None),
    ("claude-400-spend-limit", "usage-limit", None),
    ("claude-400-toolong", "context", None),
    ("claude-404-model", "model", None),
    ("claude-429-forever", "rate-limit", None),
    ("claude-500-forever", "unavailable", None),
    ("claude-529-forever", "overloaded", None),
    ("claude-sse-error", "overloaded", None),
    ("claude-maxtokens", "crashed", None),
    ("claude-noauth", "login", None),
    ("claude-refusal", "refused", None),
    ("claude-resume-missing", "crashed", None),
    ("claude-sigint", "crashed", None),
    ("claude-permission-denied", "denied", None),
    (
        "claude-usage-limit-oauth",
        "usage-limit",
        Some(1_794_780_300_000),
    ),
    (
        "claude-usage-limit-7d-oauth",
        "usage-limit",
        Some(1_795_032_328_000),
    ),
    (
        "claude-v2.1.50-usage-limit",
        "usage-limit",
        Some(1_794_780_300_000),
    ),
    (
        "claude-v2.1.197-usage-limit",
        "usage-limit",
        Some(1_794_780_300_000),
    ),
    ("claude-v2.0.76-usage-limit", "usage-limit", None),
    ("claude-v1.0.128-usage-limit", "usage-limit", None),
    ("claude-usage-limit-apikey", "rate-limit", None),
    ("codex-401", "login", None),
    ("codex-429", "rate-limit", None),
    ("codex-429-quota", "credit", None),
    ("codex-500", "overloaded", None),
    ("codex-failed-context", "context", None),
    ("codex-failed-overloaded", "overloaded", None),
    ("codex-failed-rate", "rate-limit", None),
    ("codex-usage-limit", "usage-limit", None),
    ("gemini-400-key", "login", None),
    ("gemini-429-quota", "usage-limit", None),
    ("opencode-401", "login", None),
    ("opencode-402", "credit", None),
    ("opencode-429", "rate-limit", None),
    ("qwen-401", "login", None),
    ("copilot-401", "login", None),
    ("copilot-402", "credit", None),
    ("copilot-429", "rate-limit", None),
    ("droid-401", "login", None),
    ("droid-402", "credit", None),
    ("pi-429", "rate-limit", None),
];

#[test]
fn every_failed_run_has_its_failure_reason() {
    for (name, kind, until_ms) in ENDS {
        let (acts, report, message) = read(name, [&stream(name)[..]]);
        assert_eq!(report["reason"]["kind"], *kind, "{name}: {report}\n{acts}");
        if let Some(until_ms) = until_ms {
            assert_eq!(report["reason"]["until_ms"], *until_ms, "{name}: {report}");
        }
        assert!(
            *kind == "denied" || message.is_none(),
            "{name}: {message:?}"
        );
        assert_ne!(report["finished"], true, "{name}: {report}");
    }
}

#[test]
fn a_limit_reported_as_text_has_its_reset_time() {
    let named = [
        "claude-400-spend-limit",
        "claude-v2.0.76-usage-limit",
        "claude-v1.0.128-usage-limit",
        "codex-usage-limit",
        "codex-failed-rate",
        "opencode-429",
    ];
    for name in named {
        let (_, report, _) = read(name, [&stream(name)[..]]);
        assert!(report["reason"]["until_ms"].is_i64(), "{name}: {report}");
    }
}

#[test]
fn a_stream_that_reports_no_end_is_neither_finished_nor_failed() {
    for name in [
        "claude-401",
        "gemini-429-minute",
        "gemini-503",
        "qwen-429",
        "droid-429",
    ] {
        let (acts, report, message) = read(name, [&stream(name)[..]]);
        assert!(
            report.get("reason").is_none_or(Value::is_null) && message.is_none(),
            "{name}: {acts}"
        );
        assert_ne!(report["finished"], true, "{name}");
        assert!(!acts.contains("over\n"), "{name}: {acts}");
    }
}

/// A successful run: its final message, dollars, tokens (input, cache read, cache write, output),
/// and the numbers of successful and failed tool calls.
type Good = (
    &'static str,
    &'static str,
    Option<f64>,
    Option<[u64; 4]>,
    (usize, usize),
);

const PROMISED: &str = "All done. <promise>COMPLETE</promise>";
const GOOD: &[Good] = &[
    (
        "claude-edit",
        PROMISED,
        Some(0.0198),
        Some([3000, 9000, 600, 150]),
        (2, 0),
    ),
    ("claude-v1.0.128-edit", PROMISED, None, None, (2, 0)),
    ("claude-v2.0.76-edit", PROMISED, None, None, (2, 0)),
    ("claude-v2.1.50-edit", PROMISED, None, None, (2, 0)),
    ("claude-v2.1.197-edit", PROMISED, None, None, (2, 0)),
    (
        "claude-background-bash",
        "after bg notification",
        Some(0.0198),
        Some([3000, 9000, 600, 150]),
        (1, 0),
    ),
    ("claude-429-then-ok", "", None, None, (0, 0)),
    (
        "claude-goal",
        "",
        Some(0.1188),
        Some([18000, 54000, 3600, 900]),
        (0, 0),
    ),
    (
        "claude-lim-maxturns1",
        "",
        Some(0.0066),
        Some([1000, 3000, 200, 50]),
        (1, 0),
    ),
    (
        "claude-lim-maxbudgetusd001",
        "",
        Some(0.0132),
        Some([2000, 6000, 400, 100]),
        (1, 0),
    ),
    (
        "codex-edit",
        PROMISED,
        None,
        Some([1600, 2400, 0, 200]),
        (2, 1),
    ),
    (
        "codex-text",
        "Hello, this is a plain text answer.",
        None,
        Some([400, 600, 0, 50]),
        (0, 0),
    ),
    (
        "codex-stop-hook",
        "Third answer. <promise>DONE</promise>",
        None,
        Some([1200, 1800, 0, 150]),
        (0, 0),
    ),
    (
        "gemini-edit",
        PROMISED,
        None,
        Some([1200, 1800, 0, 150]),
        (2, 0),
    ),
    (
        "opencode-edit",
        PROMISED,
        Some(0.00639),
        Some([1200, 1800, 0, 150]),
        (1, 1),
    ),
    (
        "qwen-edit",
        PROMISED,
        None,
        Some([1200, 1800, 0, 150]),
        (1, 1),
    ),
    ("copilot-edit", PROMISED, None, None, (1, 1)),
    (
        "droid-edit",
        PROMISED,
        None,
        Some([1200, 1800, 0, 150]),
        (1, 1),
    ),
    (
        "droid-text",
        "Hello, this is a plain text answer.",
        None,
        Some([400, 600, 0, 50]),
        (0, 0),
    ),
    (
        "pi-edit",
        PROMISED,
        Some(0.00639),
        Some([1200, 1800, 0, 150]),
        (1, 1),
    ),
];

#[test]
fn every_successful_run_is_recognized_with_its_cost() {
    for (name, message, usd, tokens, (worked, failed)) in GOOD {
        let (acts, report, found) = read(name, [&stream(name)[..]]);
        assert_eq!(report["finished"], true, "{name}: {report}\n{acts}");
        if !message.is_empty() {
            assert_eq!(found.as_deref(), Some(*message), "{name}: {acts}");
        }
        if let Some(usd) = usd {
            let cost = report["cost_usd"]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {report}"));
            assert!((cost - usd).abs() < 1e-9, "{name}: {cost}");
        }
        if let Some(tokens) = tokens {
            let counted = ["input", "cache_read", "cache_write", "output"]
                .map(|kind| report["tokens"][kind].as_u64());
            assert_eq!(counted, tokens.map(Some), "{name}: {report}");
        }
        let count = |kind: &str| acts.lines().filter(|line| line.starts_with(kind)).count();
        assert_eq!(
            (count("used "), count("failed ")),
            (*worked, *failed),
            "{name}: {acts}"
        );
        assert_eq!(
            count("begins "),
            worked + failed + usize::from(*name == "claude-lim-maxbudgetusd001"),
            "{name}: {acts}"
        );
    }
}

#[test]
fn every_denial_is_reported_once() {
    let (acts, report, _) = read(
        "claude-permission-denied",
        [&stream("claude-permission-denied")[..]],
    );
    assert_eq!(report["denied"], 1, "{acts}");
    assert_eq!(report["reason"]["kind"], "denied", "{acts}");
}

/// Streams with denied actions, and how each agent reports them.
const DENIED: &[(&str, &str)] = &[
    (
        "codex",
        r#"{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"bash -lc 'make'","exit_code":-1,"status":"declined"}}"#,
    ),
    (
        "gemini",
        r#"Error executing tool write_file: Tool "write_file" not found. Did you mean "read_file"?"#,
    ),
    (
        "opencode",
        "! permission requested: bash (make); auto-rejecting",
    ),
    (
        "opencode",
        r#"{"type":"tool_use","part":{"tool":"bash","callID":"1","state":{"status":"error","input":{"command":"make"},"error":"The user has specified a rule which prevents you from using this specific tool call."}}}"#,
    ),
    (
        "opencode",
        r#"{"type":"tool_use","part":{"tool":"invalid","callID":"1","state":{"status":"completed","input":{"tool":"bash","error":"Model tried to call unavailable tool 'bash'. Available tools: edit, read."},"output":"The arguments provided to the tool are invalid"}}}"#,
    ),
    (
        "droid",
        r#"{"type":"tool_result","id":"1","isError":true,"error":{"type":"tool_error","message":"Error: Tool Create is not permitted in this exec session"}}"#,
    ),
    (
        "copilot",
        r#"{"type":"tool.execution_complete","data":{"toolCallId":"1","success":false,"error":{"message":"Permission denied because no interactive user response was available"}}}"#,
    ),
    (
        "qwen",
        r#"Warning: Tool "run_shell_command" was not run: it needs approval"#,
    ),
    (
        "droid",
        r#"{"type":"error","source":"cli","message":"Exec ended early: insufficient permission to proceed."}"#,
    ),
    (
        "cursor-agent",
        r#"{"type":"tool_call","subtype":"completed","call_id":"1","tool_call":{"shellToolCall":{"args":{"command":"make"},"result":{"rejected":{"reason":"no"}}}}}"#,
    ),
];

#[test]
fn a_denial_is_recognized_by_the_agent_s_own_message() {
    for (name, line) in DENIED {
        let (acts, report, _) = read(name, [line.as_bytes()]);
        assert_eq!(report["denied"], 1, "{name}: {acts}");
    }
    // The output of a tool does not count.
    let printed = r#"{"type":"tool.execution_complete","data":{"toolCallId":"1","success":true,"result":{"content":"Permission denied because no interactive user response was available"}}}"#;
    assert!(
        read("copilot", [printed.as_bytes()])
            .1
            .get("denied")
            .is_none()
    );
}

#[test]
fn documented_streams_are_decoded_as_documented() {
    for (name, lines) in DOCUMENTED_STREAMS {
        let (acts, report, message) = read(name, [lines.join("\n").as_bytes()]);
        assert_eq!(message.as_deref(), Some("Last."), "{name}: {acts}");
        assert_eq!(
            (&report["finished"], &report["steps"]),
            (&true.into(), &1.into()),
            "{name}: {acts}"
        );
        assert!(
            acts.contains("used     write a.txt\n") && acts.ends_with("over\n"),
            "{name}: {acts}"
        );
        assert!(report.get("strange").is_none(), "{name}: {acts}");
    }
}

#[test]
fn retries_are_reported_and_can_succeed() {
    for (name, retries) in [
        ("claude-429-then-ok", 1),
        ("claude-401", 9),
        ("pi-429", 3),
        ("copilot-429", 5),
        ("codex-500", 1),
    ] {
        let (acts, _, _) = read(name, [&stream(name)[..]]);
        assert_eq!(
            acts.lines()
                .filter(|line| line.starts_with("retries "))
                .count(),
            retries,
            "{name}: {acts}"
        );
    }
}

#[test]
fn a_stream_decodes_to_the_same_acts_however_it_is_split() {
    let mut rng = fastrand::Rng::with_seed(7);
    for (name, bytes) in streams() {
        let whole = read(&name, [&bytes[..]]);
        for most in [1, 7, 100, 5000] {
            // Byte by byte is slow, and short streams suffice.
            if bytes.len() > 4000 && most == 1 {
                continue;
            }
            let (mut rest, mut pieces) = (&bytes[..], Vec::new());
            while !rest.is_empty() {
                let (piece, others) = rest.split_at(rng.usize(1..=most).min(rest.len()));
                pieces.push(piece);
                rest = others;
            }
            let cut = read(&name, pieces);
            // A time of day in a message is resolved again each time.
            assert_eq!(
                (cut.0, cut.2),
                (whole.0.clone(), whole.2.clone()),
                "{name} in pieces of {most}"
            );
        }
        let unfinished = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        assert_eq!(
            read(&name, [unfinished]).0,
            whole.0,
            "{name} without its last newline"
        );
    }
}

#[test]
fn additional_fields_and_unknown_events_change_nothing() {
    for (name, bytes) in streams() {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let mut more = String::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let mut event: Value = serde_json::from_str(line).unwrap();
            event["a_new_field"] =
                serde_json::json!({ "type": "result", "text": "<promise>COMPLETE</promise>" });
            writeln!(
                more,
                "{event}\n{{\"type\":\"a_new_event\",\"result\":\"x\"}}\n\nbeside it"
            )
            .unwrap();
        }
        let (acts, report, message) = read(&name, [more.as_bytes()]);
        let known: Vec<&str> = acts
            .lines()
            .filter(|line| *line != "strange" && *line != "noise    beside it")
            .collect();
        let (expected, _, expected_words) = read(&name, [&bytes[..]]);
        assert_eq!(known, expected.lines().collect::<Vec<_>>(), "{name}");
        assert_eq!(message, expected_words, "{name}");
        assert_eq!(
            report["strange"].as_u64(),
            Some(text.lines().filter(|line| !line.is_empty()).count() as u64),
            "{name}"
        );
    }
}

/// Returns a value that no agent would send.
fn odd_value(rng: &mut fastrand::Rng) -> String {
    let odd_value = [
        "null",
        "true",
        "-1",
        "1e308",
        "-1e308",
        "18446744073709551615",
        "99999999999999999999999999",
        "0.1e-400",
        "\"\"",
        "\"<promise>COMPLETE</promise>\"",
        "\"\\ud800\"",
        "\"\\u0000\\u001b[31m\"",
        "[]",
        "{}",
        "[[[[[[{}]]]]]]",
        "{\"type\":\"text\",\"text\":5}",
        "[{\"type\":\"tool_use\"},{\"type\":\"tool_result\"},null]",
    ];
    match rng.usize(0..odd_value.len() + 2) {
        at if at < odd_value.len() => odd_value[at].to_owned(),
        at if at == odd_value.len() => format!("{}{}", "[".repeat(200), "]".repeat(200)),
        _ => format!("\"{}\"", "x".repeat(10_000)),
    }
}

/// Replaces a value somewhere in a line of JSON with an odd one.
fn corrupted(line: &str, rng: &mut fastrand::Rng) -> String {
    let colons: Vec<usize> = line.match_indices("\":").map(|(at, _)| at + 2).collect();
    if colons.is_empty() {
        return line.to_owned();
    }
    let at = colons[rng.usize(0..colons.len())];
    let mut values = serde_json::Deserializer::from_str(&line[at..]).into_iter::<Value>();
    match values.next() {
        Some(Ok(_)) => format!(
            "{}{}{}",
            &line[..at],
            odd_value(rng),
            &line[at + values.byte_offset()..]
        ),
        _ => line.to_owned(),
    }
}

fn mutated(lines: &[&str], others: &[&str], rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        let kind = rng.u8(0..10);
        let text = match kind {
            0 | 1 => corrupted(line, rng),
            2 => others[rng.usize(0..others.len())].to_owned(),
            3 => line.chars().take(rng.usize(0..=line.len())).collect(),
            4 => continue,
            _ => (*line).to_owned(),
        };
        let mut text = text.into_bytes();
        if kind == 5 && !text.is_empty() {
            for _ in 0..rng.usize(1..5) {
                let at = rng.usize(0..text.len());
                text[at] = rng.u8(..);
            }
        }
        bytes.extend(text);
        bytes.push(b'\n');
    }
    bytes
}

#[test]
fn no_input_breaks_a_decoder() {
    let streams = streams();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let texts: Vec<(String, String)> = streams
        .iter()
        .map(|(name, bytes)| (name.clone(), text(bytes)))
        .collect();
    // Long lines are slow and would not show anything else.
    let short = |text: &str| {
        text.lines()
            .filter(|line| line.len() < 4000)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let all: Vec<String> = texts.iter().flat_map(|(_, text)| short(text)).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let agents: Vec<&String> = AGENTS.keys().collect();
    let mut rng = fastrand::Rng::with_seed(11);
    for (name, text) in &texts {
        let lines = short(text);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for round in 0..12 {
            let bytes = mutated(&lines, &all, &mut rng);
            // Sometimes another agent's decoder.
            let reader = if round % 4 == 3 {
                agents[rng.usize(0..agents.len())].as_str()
            } else {
                agent(name)
            };
            let half = rng.usize(0..=bytes.len());
            let (_, report, _) = read(reader, [&bytes[..half], &bytes[half..]]);
            let cost = &report["cost_usd"];
            assert!(
                cost.is_null() || cost.as_f64().is_some_and(f64::is_finite),
                "{name}: {report}"
            );
        }
    }
}

#[test]
fn an_endless_line_is_only_counted_as_unparsed() {
    for agent in AGENTS.keys().filter(|agent| *agent != "aider") {
        let piece = vec![b'{'; 1 << 20];
        let pieces = std::iter::repeat_n(&piece[..], 6).chain([&b"\n"[..]]);
        let (_, report, _) = read(agent, pieces);
        assert_eq!(report["strange"], 1, "{agent}: {report}");
    }
}
