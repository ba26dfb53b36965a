//! Cost and token limits: they stop a running agent, and readers see what it has spent so far.

use crate::kit::{Test, until};

/// Creates an agent that prints the file `stream` in `OpenCode`'s format, then works on until it is
/// stopped.
fn endless_agent(stream: &str) -> Test {
    let settings = "[agents.mine]\ncommand = 'mine'\ndialect = 'opencode'\n";
    let program = "#!/bin/sh\ncat > /dev/null\ncat stream\necho $$ > pid\nexec sleep 600\n";
    Test::new()
        .on_path("mine", program)
        .file(".ralph/settings.toml", settings)
        .file("stream", stream)
}

/// A step with its cost in dollars and its tokens.
fn step(usd: f64, tokens: u64) -> String {
    format!(
        "{}\n",
        serde_json::json!({"type": "step_finish", "sessionID": "s", "part": {
            "reason": "tool-calls", "cost": usd, "tokens": {"input": tokens},
        }})
    )
}

const RUN: [&str; 8] = ["run", "x", "--name", "a", "--agent", "mine", "-m", "3"];

#[test]
fn an_agent_that_crosses_a_budget_is_stopped_at_once() {
    for (args, line, limit) in [
        (
            ["--max-cost", "0.02"],
            "cost limit reached ($0.0210 of $0.0200), stopping the agent",
            "cost",
        ),
        (
            ["--max-tokens", "2500"],
            "token limit reached (3.0k of 2.5k tokens), stopping the agent",
            "tokens",
        ),
    ] {
        let test = endless_agent(&step(0.007, 1000).repeat(3));
        let done = test.ralph(&[&RUN[..], &args].concat()).exits(1);
        done.says(line)
            .says("iteration 1 stopped: the loop's budget was used up")
            .says("✘ failed: ");
        assert_eq!(test.status("a")["outcome"]["why"], limit);
        assert_eq!(test.status("a")["total_failures"], 0);
        assert_eq!(test.events("a", "started").len(), 1);
        assert_eq!(test.events("a", "spent").len(), 1);
        assert_eq!(test.status("a")["cost_usd"], 0.021, "{limit}");
        assert_eq!(test.survivors(), Vec::<u32>::new());
    }
}

#[test]
fn an_agent_below_its_budget_is_left_alone() {
    let test = endless_agent(&step(0.007, 1000));
    let live = test.start(&[&RUN[..], &["--max-cost", "0.02", "--max-tokens", "5000"]].concat());
    until("the agent's work", || test.workspace().join("pid").exists());
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    assert_eq!(test.events("a", "spent").len(), 0);
}

#[test]
fn readers_see_the_time_and_the_cost_of_the_running_iteration() {
    let test = endless_agent(&step(0.26, 1000).repeat(3));
    let live = test.start(&[&RUN[..], &["--max-tokens", "5000"]].concat());
    live.until_out("starting iteration 1");
    until("the cost in the status", || {
        test.status("a")["cost_usd"] == 0.78
    });
    assert_eq!(test.status("a")["tokens"], 3000);
    let active_s = || test.status("a")["active_s"].as_f64().unwrap();
    let before = active_s();
    until("the time to pass", || active_s() > before);
    test.ralph(&["status", "a"])
        .exits(0)
        .says("\nCost: $0.7800\n")
        .says("\nTokens: 3.0k of 5.0k\n");
    test.ralph(&["ls"]).exits(0).says("  $0.7800  ");
    let list = test.ralph(&["ls", "--json"]).exits(0).json_lines();
    assert_eq!(list[0][0]["cost_usd"], 0.78);
    test.ralph(&["stop", "a"]).exits(0);
    live.end().exits(130);
    assert_eq!(test.status("a")["cost_usd"], 0.78, "counted once");
}

#[test]
fn a_cost_that_no_agent_reports_is_never_shown_as_zero() {
    // Claude Code reports its cost, but not in this output.
    let stub = "#!/bin/sh\ntouch here\nuntil test -e go; do sleep 0.02; done\necho hello\n";
    let test = Test::new().on_path("claude", stub);
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--agent",
        "claude",
    ];
    let live = test.start(&args);
    until("the agent", || test.workspace().join("here").exists());
    let cost = || {
        let shown = test.ralph(&["ls"]).exits(0).out;
        let row = shown.lines().nth(1).unwrap_or_default().to_owned();
        row.split_whitespace().nth(3).unwrap_or_default().to_owned()
    };
    assert_eq!(cost(), "?");
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Cost: unknown\n");
    test.write("go", "");
    live.end();
    assert_eq!(cost(), "?");
}
