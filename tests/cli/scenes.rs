//! Scenarios that must work the same with every CLI.

use crate::clis::{CLAUDE, CODEX, COPILOT, Cli, DROID, GEMINI, OLD_CLAUDE, OPENCODE, PI, QWEN};
use crate::kit::until_within;
use crate::model::{Step, Tokens, refuse, say};
use crate::stage::{PATIENCE, Stage, now_s};
use serde_json::{Value, json};

/// Defines one test per CLI and scenario. The tests of one CLI are in a module named after it, as
/// in `scenes::codex`.
macro_rules! with {
    ($($name:ident $cli:ident: $($scene:ident)*;)*) => {
        $(mod $name { $(#[test] fn $scene() { super::$scene(&super::$cli); })* })*
    };
}

with! {
    claude CLAUDE: red_then_green promise_in_a_result stop_in_a_tool not_allowed bad_key own_paths;
    old_claude OLD_CLAUDE: red_then_green promise_in_a_result stop_in_a_tool not_allowed bad_key;
    codex CODEX: red_then_green promise_in_a_result stop_in_a_tool not_allowed bad_key own_paths;
    copilot COPILOT: red_then_green promise_in_a_result stop_in_a_tool own_paths;
    droid DROID: red_then_green promise_in_a_result stop_in_a_tool own_paths;
    gemini GEMINI: red_then_green promise_in_a_result stop_in_a_tool own_paths;
    opencode OPENCODE: red_then_green stop_in_a_tool own_costs own_paths;
    pi PI: red_then_green promise_in_a_result stop_in_a_tool own_costs own_paths;
    qwen QWEN: red_then_green promise_in_a_result stop_in_a_tool own_paths;
}

/// The model makes the promise that ends the loop.
pub(crate) fn promise() -> Step {
    say("All is well.\n<promise>COMPLETE</promise>")
}

/// The agent changes a file with its own tool: the check is red after the first iteration and green
/// after the second.
fn red_then_green(cli: &Cli) {
    let stage = Stage::set(cli, []);
    let write = |file: &str| (cli.write)(&stage.path(file), "hello").with_text("I write it.");
    stage.model.add([
        write("one.txt"),
        say("It says hello."),
        write("two.txt"),
        say("It says hello twice."),
    ]);
    let check = "grep hello one.txt two.txt";
    stage
        .run(&[
            "--approve",
            "edits",
            "--check",
            check,
            "--no-promise",
            "-m",
            "3",
        ])
        .exits(0);
    let reports = stage.reports();
    assert_eq!(reports.len(), 2);
    for report in &reports {
        assert_eq!(report["finished"], true, "{report}");
        assert_eq!(report["steps"], 1, "{report}");
        assert_eq!(
            report["strange"],
            Value::Null,
            "every line of its stream is understood: {report}"
        );
        assert!(report["session"].is_string(), "{report}");
    }
    let checks = stage.test.events("a", "checked");
    let green: Vec<bool> = checks
        .iter()
        .map(|check| check["report"]["exit"]["code"] == 0)
        .collect();
    assert_eq!(green, [false, false, true], "{checks:?}");
    stage.model.assert_played(4);
}

/// A promise in a tool's result or before a tool call does not count; in the final message it does.
fn promise_in_a_result(cli: &Cli) {
    let found =
        (cli.shell)("echo '<promise>COMPLETE</promise>'").with_text("<promise>COMPLETE</promise>");
    let stage = Stage::set(cli, [found, say("I have seen it."), promise()]);
    stage.run(&["--approve", "all", "-m", "3"]).exits(0);
    let reports = stage.reports();
    let promised: Vec<bool> = reports
        .iter()
        .map(|report| report["said"]["promised"] == true)
        .collect();
    assert_eq!(promised, [false, true], "{reports:?}");
    stage.model.assert_played(3);
}

/// `ralph stop` while a command runs leaves neither the command nor any part of the CLI.
fn stop_in_a_tool(cli: &Cli) {
    let stage = Stage::set(cli, [(cli.shell)("touch begun; sleep 333; touch ended")]);
    let live = stage.start(&["--approve", "all"]);
    until_within(PATIENCE, "the tool to begin", || {
        stage.test.workspace().join("begun").exists()
    });
    stage.test.ralph(&["stop", "a"]).exits(0);
    live.end_within(PATIENCE).exits(130);
    assert_eq!(stage.test.survivors(), Vec::<u32>::new());
    assert!(!stage.test.workspace().join("ended").exists());
}

/// If the agent was denied something and did nothing else, the next prompt says so. At the failure
/// limit, the loop stops and names the flag that allows it.
fn not_allowed(cli: &Cli) {
    let stage = Stage::set(cli, []);
    let write = || (cli.write)(&stage.path("new.txt"), "x");
    stage
        .model
        .add([write(), promise(), write(), say("I may not write.")]);
    stage
        .run(&["--approve", "none", "--max-failures", "2"])
        .exits(1)
        .complains("everything it tried was denied")
        .complains("--approve edits");
    assert!(!stage.test.workspace().join("new.txt").exists());
    let reports = stage.reports();
    assert_eq!(reports.len(), 2, "a promise does not count: {reports:?}");
    for report in &reports {
        assert_eq!(report["denied"], 1, "{report}");
    }
    let prompt = stage.test.prompt("a", 2);
    // Codex does not name the file.
    let denied = match cli.name {
        "codex" => "- patch rejected",
        _ => "new.txt\n",
    };
    assert!(prompt.contains(denied), "{prompt}");
    assert!(prompt.contains("You may read files"), "{prompt}");
    stage.model.assert_played(4);
}

/// A rejected API key stops the loop at once, with a hint.
fn bad_key(cli: &Cli) {
    let refused = refuse(401, "authentication_error", "invalid x-api-key");
    let stage = Stage::set(cli, std::iter::repeat_n(refused, 20));
    stage
        .run(&[])
        .exits(1)
        .complains("it is not logged in")
        .complains("log in: ");
    let reports = stage.reports();
    assert_eq!(
        (reports.len(), &reports[0]["reason"]["kind"]),
        (1, &json!("login")),
        "{reports:?}"
    );
}

/// The cost is the CLI's own figure, computed with the prices in its settings.
fn own_costs(cli: &Cli) {
    let tokens = Tokens {
        input: 10_000,
        cache_read: 100_000,
        cache_write: 0,
        output: 1_000,
    };
    let steps = [(cli.shell)("true"), say("One.")].map(|step| step.with_tokens(tokens));
    let stage = Stage::set(cli, steps);
    stage
        .run(&["--approve", "all", "-m", "1", "--no-promise"])
        .exits(0);
    // Dollars per million tokens: 2 for input, 0.50 for cache reads, 10 for output.
    let usd = (10_000.0 * 2.0 + 100_000.0 * 0.5 + 1_000.0 * 10.0) / 1e6;
    cost(&stage, &[2.0 * usd]);
}

/// Asserts that the loop waits for a limit with a known reset time, and that the iteration does not
/// count against the limit of one.
pub(crate) fn assert_waited_out(stage: &Stage, reset_s: u64) {
    stage.model.add([promise()]);
    let done = stage.run(&["-m", "1"]).exits(0);
    assert!(now_s() >= reset_s, "it did not wait\n{}", done.out);
    let reports = stage.reports();
    assert_eq!(reports.len(), 2, "{}", done.out);
    let reason = json!({ "kind": "usage-limit", "until_ms": reset_s * 1000 });
    assert_eq!(reports[0]["reason"], reason, "{}", reports[0]);
    assert_eq!(stage.test.status("a")["outcome"]["kind"], "done");
    stage.model.assert_played(2);
}

/// Asserts that a service which fails with this kind of error is asked again after a while, and that
/// the iteration does not count.
pub(crate) fn assert_probed(stage: &Stage, kind: &str, asked: usize) {
    stage.model.add([promise()]);
    let done = stage.run(&["-m", "1", "--probe", "100ms..100ms"]).exits(0);
    let reports = stage.reports();
    assert_eq!(reports.len(), 2, "{}", done.out);
    assert_eq!(reports[0]["reason"]["kind"], kind, "{}", reports[0]);
    assert_eq!(stage.test.status("a")["total_failures"], 0);
    stage.model.assert_played(asked);
}

/// Asserts that the loop waits for a service that cannot be reached, and then gives up.
pub(crate) fn assert_unreachable(stage: &Stage, args: &[&str]) {
    let args = [&["--probe", "100ms..100ms", "--max-rest", "1s"], args].concat();
    stage
        .run(&args)
        .exits(1)
        .says("its service fails or cannot be reached");
    let status = stage.test.status("a");
    assert_eq!(
        (&status["stop_reason"], &status["total_failures"]),
        (&json!("max_rest"), &json!(0)),
        "{status}"
    );
}

/// Asserts what each iteration cost, in dollars.
#[track_caller]
pub(crate) fn cost(stage: &Stage, expected: &[f64]) {
    let reports = stage.reports();
    let costs: Vec<f64> = reports
        .iter()
        .map(|report| report["cost_usd"].as_f64().unwrap_or(f64::NAN))
        .collect();
    let close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
    let all = costs.len() == expected.len() && costs.iter().zip(expected).all(close);
    assert!(all, "{costs:?} and not {expected:?}");
    let total = stage.test.status("a")["cost_usd"].as_f64().unwrap();
    assert!(close((&total, &expected.iter().sum())), "{total} in all");
}

/// Without a sandbox, the agent writes nothing in the home directory but the paths that its preset
/// names: with one, it could not write anything else.
fn own_paths(cli: &Cli) {
    let mut stage = Stage::set(cli, []);
    if cli.name == "claude" {
        stage.unset("CLAUDE_CONFIG_DIR");
    }
    stage.model.add([
        (cli.write)(&stage.path("one.txt"), "hello"),
        (cli.shell)("true"),
        promise(),
    ]);
    let home = stage.test.root().join("home");
    let before = files_below(&home);
    stage.run(&["--approve", "all", "-m", "1"]).exits(0);
    let plan = stage.test.journal("a").remove(0)["plan"].take();
    let own: Vec<&str> = plan["agent"]["own_paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    let foreign: Vec<_> = files_below(&home)
        .into_iter()
        .filter(|path| !before.contains(path))
        .filter(|path| {
            !own.iter()
                .any(|own| path.starts_with(own.trim_end_matches('/')))
        })
        .collect();
    assert!(foreign.is_empty(), "{foreign:?} are not in {own:?}");
}

/// Returns all files below a directory.
fn files_below(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                files_below(&entry.path())
            } else {
                vec![entry.path()]
            }
        })
        .collect()
}
