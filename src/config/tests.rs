//! What words become, and which are refused.

use super::*;

fn errand() -> Errand {
    Errand {
        task: Some("fix it".into()),
        command: vec!["agent".into()],
        workspace: "/nowhere".into(),
        ..Errand::default()
    }
}

fn refused(settings: Settings, errand: &Errand) -> String {
    settings.plan(errand).expect_err("this must be refused").error
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let plan = Settings::default().plan(&errand()).unwrap();
    assert_eq!(plan.limits.iterations, Some(25));
    assert_eq!(plan.limits.failures, Some(5));
    assert_eq!(plan.limits.cost_usd, None);
    assert_eq!(plan.limits.time_ms, None);
    assert_eq!(plan.limits.iteration_ms, Some(7_200_000));
    assert_eq!(plan.limits.inactivity_ms, None);
    assert_eq!((plan.rest.backoff_ms, plan.rest.backoff_cap_ms), (1000, 300_000));
    assert_eq!((plan.context.diff_chars, plan.context.output_chars), (5000, 2000));
    assert_eq!(plan.agent.exit_waiting, Some(42));
    assert_eq!(plan.log_cap, 64 << 20);
    assert_eq!(plan.proof.fallback, ["COMPLETE", "DONE"]);
    assert!(plan.proof.preflight);
}

#[test]
fn zero_means_no_limit() {
    let none = Settings {
        max_iterations: Some(0),
        max_cost: Some(0.0),
        max_time: Some(Span(0)),
        max_failures: Some(0),
        iteration_timeout: Some(Span(0)),
        ..Settings::default()
    };
    assert_eq!(none.plan(&errand()).unwrap().limits, Limits::default());
}

#[test]
fn equal_slugs_get_a_number() {
    let check = ["cargo test --all", "cargo  test, all", "…", "!"].map(str::to_owned).to_vec();
    let plan = Settings { check: Some(check), ..Settings::default() }.plan(&errand()).unwrap();
    let slugs: Vec<&str> = plan.proof.checks.iter().map(|check| check.slug.as_str()).collect();
    assert_eq!(slugs, ["cargo-test-all", "cargo-test-all-2", "check", "check-2"]);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let plain = Settings::default;
    let both = Errand { prompt: Some("x".into()), ..errand() };
    assert!(refused(plain(), &both).contains("TASK and --prompt"));
    let both = Errand { task: None, prompt: Some("x".into()), prompt_file: Some("y".into()), ..errand() };
    assert!(refused(plain(), &both).contains("--prompt and --prompt-file"));
    let none = Errand { task: Some("  ".into()), ..errand() };
    assert!(refused(plain(), &none).contains("no task"));
    let none = Errand { command: vec![], ..errand() };
    assert!(refused(plain(), &none).contains("no agent"));
    let missing = Errand { prompt_file: Some("missing.md".into()), ..errand() };
    assert_eq!(refused(plain(), &missing), "prompt file not found: missing.md");
    let settings = Settings { check: Some(vec![" ".into()]), ..plain() };
    assert!(refused(settings, &errand()).contains("empty"));
    let settings = Settings { done_pattern: Some("(?=x)".into()), ..plain() };
    let Wrong { error, hint } = settings.plan(&errand()).unwrap_err();
    assert!(error.contains("--done-pattern") && hint.contains("look-around"), "{error} {hint}");
    let settings = Settings { promise: Some("x".into()), no_promise: Some(true), ..plain() };
    assert!(refused(settings, &errand()).contains("contradict"));
    let settings = Settings { max_cost: Some(1.0), ..plain() };
    assert!(settings.plan(&errand()).unwrap_err().hint.contains("--allow-unknown-cost"));
}
