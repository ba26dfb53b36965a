//! The rule for "done": green checks and a claim, with `--until-green` green checks alone, and a loop that stalls.

use crate::kit::{Done, Test};
use serde_json::Value;

/// Runs a loop called `a` on the test's script.
fn run(test: &Test, more: &[&str]) -> Done {
    let agent = ["--name", "a", "--agent", "script:../agent.script"];
    test.ralph(&[&["run", "Work through PLAN.md."], &agent[..], more].concat())
}

/// Asserts how the loop called `a` ended, and after how many iterations.
#[track_caller]
fn assert_ended(test: &Test, kind: &str, iterations: usize) {
    let status = test.status("a");
    assert_eq!(
        (&status["outcome"]["kind"], &status["current_iteration"]),
        (&kind.into(), &iterations.into()),
        "{status:#}"
    );
    assert_eq!(test.events("a", "started").len(), iterations);
}

/// Creates a repository that ignores `node_modules`, in which the agent installs the missing
/// dependencies, and later works as in `script`.
fn without_dependencies(script: &str) -> Test {
    let test = Test::git()
        .file(".gitignore", "node_modules\n")
        .script(&format!("iteration 1\n sh mkdir node_modules\n{script}"));
    test.sh("git add -A && git commit -q -m ignore && mkdir node_modules");
    test
}

const CSV_EXPORT: [&str; 9] = [
    "run",
    "Add the CSV export",
    "--name",
    "a",
    "--agent",
    "script:../agent.script",
    "--worktree",
    "--check",
    "test -d node_modules",
];

#[test]
fn restored_dependencies_do_not_prove_the_work() {
    for (flags, note) in [
        (
            &[][..],
            "All checks are green, but the last iteration did not say",
        ),
        (
            &["--until-green"],
            "All checks are green, although no file has changed",
        ),
    ] {
        let test = without_dependencies("");
        test.ralph(&[&CSV_EXPORT[..], flags].concat())
            .exits(1)
            .says("preflight check `test -d node_modules`: red")
            .says("check `test -d node_modules`: green")
            .says("  missing  the checks are green, but the agent did not promise COMPLETE\n")
            .says("changed  nothing");
        assert_ended(&test, "stalled", 6);
        let prompt = test.prompt("a", 2);
        assert!(prompt.contains(note), "{prompt}");
        assert!(prompt.contains("<promise>COMPLETE</promise>"), "{prompt}");
    }
}

#[test]
fn work_after_restored_dependencies_is_proven() {
    for (flags, claim) in [(&[][..], "promise COMPLETE"), (&["--until-green"], "say x")] {
        let script = format!("iteration 3\n write export.csv\n  | a;b\n {claim}\n");
        let test = without_dependencies(&script);
        test.ralph(&[&CSV_EXPORT[..], flags].concat()).exits(0);
        assert_ended(&test, "done", 3);
        assert_eq!(test.sh("git show ralph/a:export.csv"), "a;b\n");
    }
}

/// Does one item of a plan per iteration, then finds nothing left to do.
const TWO_ITEMS: &str = "iteration 1\n write one\n  | x\niteration 2\n write two\n  | x\n";

#[test]
fn a_plan_is_worked_through_until_an_iteration_changes_nothing() {
    let test = Test::git().script(TWO_ITEMS);
    let done = run(&test, &["--check", "test -f one"])
        .exits(0)
        .says("done: every check is green, and the agent found nothing left to do\n");
    let waiting = "every check is green, but the agent has not claimed that the task is done\n";
    assert_eq!(done.out.matches(waiting).count(), 2, "{}", done.out);
    assert_ended(&test, "done", 3);
    assert_eq!(test.status("a")["stop_reason"], "all_checks_passed");
    let prompts = [1, 2, 3].map(|iteration| test.prompt("a", iteration));
    let asks = prompts.map(|prompt| prompt.contains("did not say that the whole task is done"));
    assert_eq!(asks, [false, true, true]);
}

#[test]
fn a_claim_ends_a_green_loop_without_an_idle_iteration() {
    let test = Test::git().script(&format!("{TWO_ITEMS} promise COMPLETE\n"));
    run(&test, &["--check", "test -f one"])
        .exits(0)
        .says("done: every check is green\n");
    assert_ended(&test, "done", 2);
}

#[test]
fn an_idle_iteration_is_no_claim_if_it_fails_or_a_promise_is_required() {
    let fails = format!("{TWO_ITEMS}iteration 3-4\n exit 1\n");
    let test = Test::git().script(&fails);
    let check = ["--check", "test -f one", "--backoff", "1ms..2ms"];
    run(&test, &check).exits(0);
    assert_ended(&test, "done", 5);

    let test = Test::git().script(TWO_ITEMS);
    run(
        &test,
        &[&check[..], &["--promise", "SHIPPED", "-m", "4"]].concat(),
    )
    .exits(1);
    assert_ended(&test, "limit", 4);
}

#[test]
fn outside_git_an_idle_iteration_is_no_claim() {
    let test = Test::new().script(&format!("{TWO_ITEMS}iteration 5\n mark DONE\n"));
    run(&test, &["--check", "test -f one"]).exits(0);
    assert_ended(&test, "done", 5);
}

#[test]
fn until_green_ends_with_the_first_green_iteration() {
    let test = Test::git().script(TWO_ITEMS);
    run(&test, &["--check", "test -f one", "--until-green"])
        .exits(0)
        .says("done: every check is green\n");
    assert_ended(&test, "done", 1);
    assert!(!test.prompt("a", 1).contains("<promise>"));
}

#[test]
fn until_green_has_nothing_to_do_if_every_check_is_green() {
    for flag in ["--until-green", "--no-promise"] {
        let test = Test::git().script(TWO_ITEMS);
        let nothing = "every check was green already: nothing to do";
        run(&test, &["--check", "true", flag])
            .exits(0)
            .says("loop complete after 0 iterations\n")
            .says(&format!("done: {nothing}\n"));
        assert_ended(&test, "done", 0);
        assert_eq!(test.status("a")["outcome"]["detail"], nothing);
        assert!(!test.workspace().join("one").exists());
    }
}

#[test]
fn without_a_task_the_checks_are_the_task() {
    let test = Test::git().script(TWO_ITEMS);
    let args = ["run", "--name", "a", "--agent", "script:../agent.script"];
    let checked = [&args[..], &["--check", "test -f two"]].concat();
    test.ralph(&checked)
        .exits(0)
        .says("done: every check is green\n");
    assert_ended(&test, "done", 2);
    let prompt = test.prompt("a", 1);
    assert!(prompt.starts_with("Make the checks pass.\n"), "{prompt}");
    assert!(!prompt.contains("<promise>"), "{prompt}");
    test.ralph(&checked).exits(0).says("nothing to do\n");
    assert_ended(&test, "done", 0);

    test.ralph(&args).exits(2).complains("--check");
    let promised = [&checked[..], &["--promise", "SHIPPED", "-m", "1"]].concat();
    test.ralph(&promised).exits(1);
    assert_ended(&test, "limit", 1);
}

#[test]
fn until_green_needs_checks_and_contradicts_a_promise() {
    let test = Test::git().script(TWO_ITEMS);
    run(&test, &["--until-green"])
        .exits(2)
        .complains("ralph: error: --until-green needs checks\n")
        .complains("--check");
    let both = ["--check", "true", "--until-green", "--promise", "SHIPPED"];
    run(&test, &both)
        .exits(2)
        .complains("--promise and --until-green contradict each other\n");
    assert!(!test.loop_dir("a").exists());
    let settings = r#"{"untilGreen": true, "checks": ["test -f two"]}"#;
    let test = test.file(".ralph/settings.json", settings);
    run(&test, &["--promise", "SHIPPED", "-m", "3"]).exits(1);
    assert_ended(&test, "limit", 3);
}

const STALLS: [&str; 8] = ["run", "t", "--name", "a", "--check", "false", "--", "true"];

#[test]
fn a_loop_that_makes_no_progress_stalls_and_resume_resets_the_count() {
    let test = Test::git();
    let done = test
        .ralph(&[&["run", "--json"], &STALLS[1..]].concat())
        .exits(1);
    let last: Value = done.json_lines().pop().unwrap();
    assert_eq!(
        (
            &last["outcome"]["kind"],
            &last["stop_reason"],
            &last["iterations"]
        ),
        (&"stalled".into(), &"stalled".into(), &5.into()),
        "{last:#}"
    );
    assert_ended(&test, "stalled", 5);
    assert_eq!(test.status("a")["status"], "failed");
    let warned =
        (1..=5).map(|iteration| test.prompt("a", iteration).contains("different approach"));
    assert_eq!(
        warned.collect::<Vec<_>>(),
        [false, false, false, true, false]
    );
    test.ralph(&["resume", "a"])
        .exits(1)
        .says("loop ended after 10 iterations: no progress")
        .says("next     ralph resume a");
    assert_ended(&test, "stalled", 10);
}

#[test]
fn the_stall_limit_can_be_changed_or_removed() {
    let with = |flags: &[&str]| {
        let test = Test::git();
        test.ralph(&[&STALLS[..6], flags, &STALLS[6..]].concat())
            .exits(1);
        test
    };
    assert_ended(&with(&["--max-stalls", "2"]), "stalled", 2);
    assert_ended(&with(&["--max-stalls", "0", "-m", "7"]), "limit", 7);
    let test = with(&["--max-stalls", "2"]);
    test.ralph(&["set", "a", "max-stalls=3"]).exits(0);
    test.ralph(&["resume", "a"]).exits(1);
    assert_ended(&test, "stalled", 5);
}

#[test]
fn going_back_and_forth_between_two_contents_stalls() {
    let agent = |script: &str| {
        let test = Test::git();
        test.ralph(&[&STALLS[..6], &["-m", "8", "--", "sh", "-c", script]].concat())
            .exits(1);
        test
    };
    let test = agent("if grep -qs 1 f; then echo 2 > f; else echo 1 > f; fi");
    // The first two iterations lead to new contents.
    assert_ended(&test, "stalled", 7);
    assert_ended(&agent("echo more >> f"), "limit", 8);
}

#[test]
fn new_failures_are_progress() {
    let test = Test::git()
        .file(".gitignore", "count\n")
        .script("iteration *\n sh echo x >> count\n");
    test.sh("git add -A && git commit -q -m ignore");
    let check = "echo FAILED test_$(tr -cd x < count | tr x y); false";
    run(&test, &["--check", check, "-m", "7"]).exits(1);
    assert_ended(&test, "limit", 7);
}

#[test]
fn at_the_iteration_limit_the_ending_names_the_missing_claim() {
    let test = Test::git().script("iteration *\n append one\n  | x\n");
    let check = ["--check", "test -f one", "-m", "2"];
    let missing = "the checks are green, but the agent did not promise COMPLETE; \
                   with --until-green, green checks are enough\n";
    run(&test, &check)
        .exits(1)
        .says("failed: iteration limit reached\n")
        .says(&format!("  missing  {missing}"))
        .says(&format!("the work is not proven: {missing}"));
    assert_ended(&test, "limit", 2);
    let asked = run(&test, &[&check[..], &["--promise", "SHIPPED"]].concat())
        .exits(1)
        .says("the checks are green, but the agent did not promise SHIPPED\n");
    assert!(!asked.out.contains("--until-green"), "{}", asked.out);
}

const BLOCKED_TOO: &str = "iteration 1\n promise COMPLETE\n blocked which port?\n";

#[test]
fn a_promise_with_green_checks_outweighs_blocked_and_both_are_shown() {
    let also = "the agent also said that it is blocked: which port?";
    for flags in [&[][..], &["--check", "true"]] {
        let test = Test::new().script(BLOCKED_TOO);
        run(&test, flags)
            .exits(0)
            .says(&format!(
                "[ralph] a: loop complete after 1 iteration\n[ralph] a: {also}\n✔ done: "
            ))
            .says(&format!("; {also}\n  took "));
        assert_ended(&test, "done", 1);
        let status = test.status("a");
        let detail = status["outcome"]["detail"].as_str().unwrap();
        assert!(detail.ends_with(&format!("; {also}")), "{detail}");
        let finished = &test.events("a", "finished")[0];
        assert_eq!(finished["outcome"]["detail"], detail);
        test.ralph(&["status", "a"]).exits(0).says(also);
        let log = test.read_loop("a", "iterations.log");
        assert!(log.contains(also), "{log}");
    }
}

#[test]
fn a_promise_with_a_red_check_does_not_outweigh_blocked() {
    let test = Test::new().script(BLOCKED_TOO);
    run(&test, &["--check", "false"])
        .exits(3)
        .says("[ralph] a: loop ended after 1 iteration: which port?\n");
    assert_ended(&test, "blocked", 1);
}

#[test]
fn a_promise_outweighs_a_request_to_wait_and_both_are_shown() {
    let test = Test::new().script("iteration 1\n mark WAIT\n promise COMPLETE\n");
    run(&test, &[])
        .exits(0)
        .says("[ralph] a: the agent asked to wait: WAIT marker\n");
    assert_ended(&test, "done", 1);
}

#[test]
fn with_until_green_no_done_file_is_needed() {
    let test = Test::git().script("iteration 1\n write fixed\n");
    let flags = ["--check", "test -f fixed", "--until-green"];
    run(&test, &[&flags[..], &["--done-file", "report.md"]].concat()).exits(0);
    assert_ended(&test, "done", 1);
}

#[test]
fn with_until_green_a_done_pattern_only_stops_the_agent_early() {
    let flags = ["--check", "test -f fixed", "--until-green"];
    let pattern = [&flags[..], &["--done-pattern", "^ALL DONE"]].concat();
    let test = Test::git().script("iteration 1\n write fixed\n");
    run(&test, &pattern).exits(0);
    assert_ended(&test, "done", 1);
    let test = Test::git().script("iteration 1\n write fixed\n say ALL DONE\n hang\n");
    run(&test, &pattern)
        .exits(0)
        .says("done pattern matched, stopping the agent");
    assert_ended(&test, "done", 1);
}

#[test]
fn a_dry_run_says_what_done_means() {
    let test = Test::new();
    for (args, done) in [
        (
            &["--check", "false"][..],
            "every check is green, and the agent claims that the whole task is finished (promise COMPLETE)",
        ),
        (
            &["--check", "false", "--until-green"],
            "every check is green, and the files have changed since the start",
        ),
        (
            &["--done-file", "report.md"],
            "the agent claims that the whole task is finished (create report.md)",
        ),
        (
            &["--no-promise"],
            "never; it runs to its iteration limit, and that is a success",
        ),
    ] {
        let args = [&["run", "x", "--dry-run"][..], args, &["--", "true"]].concat();
        let shown = test.ralph(&args).exits(0).out;
        assert!(
            shown.contains(&format!("\ndone        {done}\n")),
            "{args:?}: {shown}"
        );
        let has_checks = args.contains(&"--check");
        assert_eq!(
            shown.contains("\nstalls      at most 5"),
            has_checks,
            "{shown}"
        );
    }
}
