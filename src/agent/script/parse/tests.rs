//! Tests of the parser: accepted scripts, and error messages for invalid ones.

use super::*;

/// Invalid scripts, each with the line number of its error and a part of the message.
const INVALID_SCRIPTS: &[(&str, usize, &str)] = &[
    ("", 1, "the script is empty"),
    ("# only\n\n# comments\n", 1, "the script is empty"),
    (
        "say hello",
        1,
        "`say` must come after a line such as `iteration 1`",
    ),
    (
        "iteration 1\n  sya hello",
        2,
        "unknown step `sya`; did you mean `say`?",
    ),
    (
        "iteration 1\n  echo_prompt",
        2,
        "did you mean `echo-prompt`?",
    ),
    ("iterations 1", 1, "did you mean `iteration`?"),
    ("iteration 1\n  juggle", 2, "lists all steps"),
    (
        "iteration 1\n  write",
        2,
        "`write` needs an argument: `write PATH`",
    ),
    ("iteration 1\n  print", 2, "needs an argument"),
    ("iteration 1\n  sleep", 2, "`sleep 300ms`"),
    ("iteration 1\n  sleep 3 s", 2, "`3 s` is not a duration"),
    (
        "iteration 1\n  sleep 99999999999999999999s",
        2,
        "is not a duration",
    ),
    ("iteration 1\n  sleep s", 2, "is not a duration"),
    ("iteration 1\n  flood 64MB", 2, "`64MB` is not a size"),
    (
        "iteration 1\n  flood 64MiB twoline",
        2,
        "`oneline`, not `twoline`",
    ),
    (
        "iteration 1\n  say x\n  | content",
        3,
        "must follow `write PATH`",
    ),
    ("| content", 1, "must follow `write PATH`"),
    (
        "iteration 1\n  write a\n  - old",
        3,
        "must follow `replace PATH`",
    ),
    (
        "iteration 1\n  replace a\n  | old",
        3,
        "must follow `write PATH`",
    ),
    ("iteration 1\n  replace a\n  say x", 2, "needs the old text"),
    (
        "iteration 1\n  replace a\n  + new\niteration 2",
        2,
        "needs the old text",
    ),
    ("iteration 1\n  replace a", 2, "needs the old text"),
    ("iteration", 1, "is not an iteration"),
    ("iteration 0", 1, "is not an iteration"),
    ("iteration one", 1, "`one` is not an iteration"),
    ("iteration -3", 1, "is not an iteration"),
    ("iteration 4-2", 1, "ends before it starts"),
    (
        "iteration 1\niteration 2\niteration 1",
        3,
        "overlaps an earlier section",
    ),
    (
        "iteration 1-3\niteration 3-5",
        2,
        "overlaps an earlier section",
    ),
    (
        "iteration 5-\niteration 9",
        2,
        "overlaps an earlier section",
    ),
    ("iteration *\niteration *", 2, "overlaps an earlier section"),
    (
        "iteration 1\n  write /etc/passwd",
        2,
        "is outside the workspace",
    ),
    (
        "iteration 1\n  append a/../../b",
        2,
        "is outside the workspace",
    ),
    ("iteration 1\n  delete .", 2, "is outside the workspace"),
    ("iteration 1\n  delete ..", 2, "is outside the workspace"),
    ("iteration 1\n  mark READY", 2, "`READY` is not a marker"),
    ("iteration 1\n  cost free", 2, "`free` is not a cost"),
    ("iteration 1\n  cost -1", 2, "is not a cost"),
    ("iteration 1\n  cost NaN", 2, "is not a cost"),
    ("iteration 1\n  ignore KILL", 2, "TERM, INT and HUP"),
    ("iteration 1\n  fork", 2, "`fork 60s`"),
    (
        "iteration 1\n  fork setsid",
        2,
        "`setsid` is not a duration",
    ),
    ("iteration 1\n  fork nohup 5s", 2, "not `nohup`"),
    ("iteration 1\n  refork", 2, "needs an argument"),
    ("iteration 1\n  hang 5s", 2, "`hang` takes no argument"),
    ("iteration 1\n  exit 256", 2, "from 0 to 255"),
    ("iteration 1\n\n# x\n  exit -1", 4, "from 0 to 255"),
];

#[test]
fn every_mistake_is_reported_with_its_line_number() {
    let long = format!("iteration 1\n{}", "z".repeat(5000));
    let long = (long.as_str(), 2, "unknown step");
    for (text, line, message) in INVALID_SCRIPTS.iter().chain([&long]) {
        let error = parse(text).expect_err(text);
        assert_eq!(error.line, *line, "{text:?}: {error}");
        assert!(error.message.contains(message), "{text:?}: {error}");
    }
}

#[test]
fn every_documented_step_is_parsed_and_every_step_is_documented() {
    let text = include_str!("../../../../docs/scripted-agents.md");
    let examples: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
    let scripts: Vec<&str> = examples
        .iter()
        .filter_map(|example| example.strip_prefix("script\n"))
        .collect();
    assert!(!scripts.is_empty());
    for script in &scripts {
        parse(script).unwrap_or_else(|error| panic!("{error}\n{script}"));
    }
    for keyword in KEYWORDS {
        assert!(
            text.contains(&format!("`{keyword}")),
            "{keyword} is not documented"
        );
    }
}

#[test]
fn fork_options_are_parsed() {
    let parsed = parse("iteration 1\r\n  fork setsid hold clearenv 5m\r\n").unwrap();
    let expected = ForkOptions {
        setsid: true,
        hold: true,
        clearenv: true,
        lifetime: Duration::from_secs(300),
        ..ForkOptions::default()
    };
    assert_eq!(parsed.sections[0].steps, [(2, ScriptStep::Fork(expected))]);
}

#[test]
fn any_text_is_parsed_or_rejected_without_a_panic() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..5000 {
        let pieces = (0..random.usize(..12)).map(|_| match random.u8(..5) {
            0 => "\n".to_owned(),
            1 => random
                .choice(["iteration 1\n", "é", "| ", "- ", "+", "1-", "5ms", "*"])
                .unwrap()
                .to_owned(),
            2 => random.char(..).to_string(),
            _ => format!("{} ", random.choice(KEYWORDS).unwrap()),
        });
        let _ = parse(&pieces.collect::<String>());
    }
}
