//! Codex only: usage limits, and costs computed from the price table.

use crate::clis::CODEX;
use crate::model::{Tokens, refuse, say};
use crate::scenes::{assert_probed, assert_unreachable, assert_waited_out, cost};
use crate::stage::{Stage, now_s};
use serde_json::{Value, json};

#[test]
fn a_usage_limit_is_waited_for() {
    let stage = Stage::set(&CODEX, []);
    let reset_s = now_s() + 8;
    let limited = refuse(
        429,
        "usage_limit_reached",
        "The usage limit has been reached",
    )
    .header("x-codex-primary-used-percent", "100.0")
    .header("x-codex-primary-window-minutes", "300")
    .header("x-codex-primary-reset-at", &reset_s.to_string())
    .detail("plan_type", json!("plus"))
    .detail("resets_at", json!(reset_s));
    stage.model.add([limited]);
    assert_waited_out(&stage, reset_s);
}

#[test]
fn an_overloaded_service_is_waited_for() {
    let busy =
        refuse(503, "server_error", "Overloaded").detail("code", json!("server_is_overloaded"));
    // Codex retries once before it gives up.
    let stage = Stage::set(&CODEX, [busy.clone(), busy]);
    assert_probed(&stage, "overloaded", 3);
}

#[test]
fn a_bad_gateway_is_waited_for() {
    let broken = refuse(502, "server_error", "Bad gateway");
    // Codex repeats the request once, then reconnects once and does the same.
    let stage = Stage::set(&CODEX, std::iter::repeat_n(broken, 4));
    assert_probed(&stage, "unavailable", 5);
}

#[test]
fn an_unreachable_service_is_waited_for() {
    let stage = Stage::set(&CODEX, []);
    // No program listens on this port.
    stage
        .test
        .sh("sed -i 's|127.0.0.1:[0-9]*|127.0.0.1:9|' ../home/.codex/config.toml");
    // Codex tries to reconnect until it is stopped.
    assert_unreachable(&stage, &["--inactivity-timeout", "10s"]);
}

#[test]
fn the_cost_is_computed_from_tokens_and_prices() {
    let tokens = Tokens {
        input: 10_000,
        cache_read: 100_000,
        cache_write: 0,
        output: 1_000,
    };
    let steps =
        [(CODEX.shell)("true"), say("One."), say("Two.")].map(|step| step.with_tokens(tokens));
    let stage = Stage::set(&CODEX, steps);
    stage
        .run(&[
            "--approve",
            "all",
            "-m",
            "2",
            "--no-promise",
            "--model",
            "gpt-5-codex",
        ])
        .exits(0);
    // Dollars per million tokens, from presets/prices.toml: 1.25 for input, 0.125 for cache reads,
    // 10 for output.
    let usd = (10_000.0 * 1.25 + 100_000.0 * 0.125 + 1_000.0 * 10.0) / 1e6;
    cost(&stage, &[2.0 * usd, usd]);
}

#[test]
fn a_model_without_a_price_has_no_cost() {
    let stage = Stage::set(&CODEX, [say("One.")]);
    stage
        .run(&["-m", "1", "--no-promise"])
        .exits(0)
        .says("cost unknown");
    assert_eq!(stage.reports()[0]["cost_usd"], Value::Null);
}
