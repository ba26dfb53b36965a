//! Claude Code only, current and old versions: usage limits, background commands and reported costs.

use crate::clis::{CLAUDE, Cli, OLD_CLAUDE};
use crate::model::{Tokens, refuse, say, use_tool};
use crate::scenes::{assert_probed, assert_unreachable, assert_waited_out, cost, promise};
use crate::stage::{Stage, now_s};
use serde_json::json;

macro_rules! with_both {
    ($($name:ident)*) => {
        mod claude { $(#[test] fn $name() { super::$name(&super::CLAUDE); })* }
        mod old_claude { $(#[test] fn $name() { super::$name(&super::OLD_CLAUDE); })* }
    };
}

with_both! { usage_limit overloaded server_error bad_gateway unreachable two_results costs }

fn usage_limit(cli: &Cli) {
    let mut stage = Stage::set(cli, []);
    // Only a subscription has usage limits: use a token instead of the key.
    stage.unset("ANTHROPIC_API_KEY");
    stage.env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy");
    let reset_s = now_s() + 8;
    let mut limited = refuse(
        429,
        "rate_limit_error",
        "This request would exceed your account's rate limit.",
    );
    for (name, value) in [
        ("status", "rejected"),
        ("reset", &reset_s.to_string()),
        ("representative-claim", "five_hour"),
        ("5h-status", "rejected"),
        ("5h-reset", &reset_s.to_string()),
        ("5h-utilization", "1.0"),
        ("overage-status", "rejected"),
    ] {
        limited = limited.header(&format!("anthropic-ratelimit-unified-{name}"), value);
    }
    stage.model.add([limited]);
    assert_waited_out(&stage, reset_s);
}

fn overloaded(cli: &Cli) {
    let mut stage = Stage::set(cli, [refuse(529, "overloaded_error", "Overloaded")]);
    stage.env("CLAUDE_CODE_MAX_RETRIES", "0");
    assert_probed(&stage, "overloaded", 2);
}

fn server_error(cli: &Cli) {
    let mut stage = Stage::set(cli, [refuse(500, "api_error", "Internal server error")]);
    stage.env("CLAUDE_CODE_MAX_RETRIES", "0");
    assert_probed(&stage, "unavailable", 2);
}

fn bad_gateway(cli: &Cli) {
    let mut stage = Stage::set(cli, [refuse(502, "api_error", "Bad gateway")]);
    stage.env("CLAUDE_CODE_MAX_RETRIES", "0");
    assert_probed(&stage, "unavailable", 2);
}

fn unreachable(cli: &Cli) {
    let mut stage = Stage::set(cli, []);
    stage.env("CLAUDE_CODE_MAX_RETRIES", "0");
    // No program listens on this port.
    stage.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    assert_unreachable(&stage, &[]);
}

/// A background command outlives the turn: the run continues when the command ends, and only the
/// last message counts.
fn two_results(cli: &Cli) {
    let command = "sleep 2; echo done > late.txt";
    let input = json!({ "command": command, "run_in_background": true, "description": "wait" });
    let steps = [use_tool("Bash", input), say("I wait for it."), promise()];
    let stage = Stage::set(cli, steps);
    stage.run(&["--approve", "all", "-m", "1"]).exits(0);
    let reports = stage.reports();
    assert_eq!(reports.len(), 1, "both results are of one iteration");
    assert_eq!(stage.test.read("late.txt"), "done\n");
    assert_eq!(reports[0]["said"]["promised"], true, "{}", reports[0]);
    assert_eq!(reports[0]["tokens"]["output"], 150, "{}", reports[0]);
    stage.model.assert_played(3);
}

fn costs(cli: &Cli) {
    let tokens = Tokens {
        input: 10_000,
        cache_read: 100_000,
        cache_write: 20_000,
        output: 1_000,
    };
    let steps =
        [(cli.shell)("true"), say("One."), say("Two.")].map(|step| step.with_tokens(tokens));
    let stage = Stage::set(cli, steps);
    let args = [
        "--approve",
        "all",
        "-m",
        "2",
        "--no-promise",
        "--model",
        "claude-opus-4-5-20251101",
    ];
    stage.run(&args).exits(0);
    // Dollars per million tokens: 5 for input, 0.50 for cache reads, 6.25 for cache writes, 25 for
    // output.
    let usd = (10_000.0 * 5.0 + 100_000.0 * 0.5 + 20_000.0 * 6.25 + 1_000.0 * 25.0) / 1e6;
    cost(&stage, &[2.0 * usd, usd]);
    let counted =
        json!({ "input": 20_000, "cache_read": 200_000, "cache_write": 40_000, "output": 2_000 });
    assert_eq!(stage.reports()[0]["tokens"], counted);
}
