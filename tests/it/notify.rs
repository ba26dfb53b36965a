//! `--notify`: when the command runs, what it receives, and that it does not affect the loop.

use crate::kit::{Test, until};
use serde_json::Value;
use std::fs;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

fn run<'a>(notify: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
        "--notify",
        notify,
    ];
    [&args, more].concat()
}

fn told(test: &Test) -> Value {
    serde_json::from_str(&test.read("told.json")).unwrap()
}

#[test]
fn notify_gets_all_documented_fields_of_an_ending() {
    let test = Test::git().script("iteration 1\n  promise COMPLETE\n");
    let notify = "cat >told.json; echo heard; pwd >where; env >env";
    let done = test.ralph(&run(notify, &["--json"])).exits(0);
    let told = told(&test);
    let last = done.json_lines().pop().unwrap();
    for (field, value) in last
        .as_object()
        .unwrap()
        .iter()
        .filter(|(field, _)| *field != "loop")
    {
        assert_eq!(told[field], *value, "{field}");
    }
    let workspace = fs::canonicalize(test.workspace())
        .unwrap()
        .display()
        .to_string();
    let known = ["event", "name", "status", "workspace", "directory"]
        .map(|field| told[field].as_str().unwrap());
    let directory = test.loop_dir("a").display().to_string();
    assert_eq!(known, ["finished", "a", "done", &workspace, &directory]);
    assert_eq!(test.read("where").trim(), workspace);
    assert!(
        !done.out.contains("heard") && !done.err.contains("heard"),
        "its output is not the console's"
    );
    assert_eq!(test.read_loop("a", "notify.log"), "heard\n");
    let environment = test.read("env");
    assert!(
        environment.contains("RALPH_LOOP=a\n") && !environment.contains("RALPH_ID="),
        "{environment}"
    );
    let result = environment
        .lines()
        .find_map(|line| line.strip_prefix("RALPH_RESULT="))
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(result).unwrap(), told);
}

#[test]
fn notify_runs_for_a_pause_and_for_every_kind_of_ending() {
    for (script, more, code, status) in [
        (
            "iteration 1\n  exit 1\n",
            &["--max-failures", "1"][..],
            1,
            "failed",
        ),
        ("iteration 1\n  say x\n", &["-m", "1"], 1, "failed"),
        ("iteration 1\n  blocked Which port?\n", &[], 3, "blocked"),
        ("iteration 1\n  mark WAIT\n", &[], 3, "waiting"),
    ] {
        let test = Test::new().script(script);
        test.ralph(&run("cat >told.json", more)).exits(code);
        let told = told(&test);
        assert_eq!(
            (&told["status"], &told["exit_code"]),
            (&status.into(), &code.into()),
            "{told}"
        );
    }
    let test = Test::new().script("iteration 1\n  say ready\n  sleep 300ms\n");
    let live = test.start(&run("cat >told.json", &[]));
    live.until_out("ready");
    test.ralph(&["pause", "a"]).exits(0);
    live.end().exits(3);
    let told = told(&test);
    assert_eq!(
        (&told["event"], &told["status"]),
        (&"paused".into(), &"paused".into())
    );
    assert_eq!(
        (&told["outcome"], &told["exit_code"]),
        (&Value::Null, &3.into())
    );
    fs::remove_file(test.workspace().join("told.json")).unwrap();
    test.ralph(&["stop", "a"]).exits(0);
    assert_eq!(self::told(&test)["status"], "stopped");
}

#[test]
fn what_a_marker_says_is_part_of_the_outcome_everywhere() {
    for (marker, code, detail) in [
        (
            "WAIT_WITHOUT_RESTART",
            3,
            "the agent asked to wait: WAIT marker; the agent says: need webhook",
        ),
        (
            "DONE",
            0,
            "the agent claimed it; there are no checks; the agent says: need webhook",
        ),
    ] {
        let script = format!("iteration 1\n  sh echo need webhook > $TASK_FOLDER/{marker}\n");
        let test = Test::new().script(&script);
        let done = test.ralph(&run("cat >told.json", &[])).exits(code);
        assert!(done.out.contains(detail), "{}", done.out);
        assert_eq!(told(&test)["outcome"]["detail"], detail);
        assert_eq!(test.status("a")["outcome"]["detail"], detail);
        assert_eq!(test.events("a", "finished")[0]["outcome"]["detail"], detail);
        test.ralph(&["status", "a"]).exits(0).says(detail);
        test.ralph(&["bus", "tail"]).exits(0).says(detail);
    }
}

#[test]
fn a_failing_notify_command_is_only_a_warning() {
    let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
    let done = test.ralph(&run("echo why >&2; exit 7", &[])).exits(0);
    done.complains("ralph: warning: --notify \"echo why >&2; exit 7\": it failed (exit 7)")
        .says("✔ done");
    assert_eq!(test.read_loop("a", "notify.log"), "why\n");
    assert_eq!(test.status("a")["status"], "done");
}

#[test]
fn processes_of_a_notify_command_are_killed_with_it_and_ctrl_c_ends_it() {
    let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
    test.ralph(&run("setsid sleep 600 & sleep 600 & true", &[]))
        .exits(0);
    assert!(test.survivors().is_empty());
    let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
    let live = test.start(&run("touch begun; setsid sleep 600 & sleep 600", &[]));
    until("the command", || test.workspace().join("begun").exists());
    live.signal("INT");
    live.end().exits(0).complains("it was killed (signal 9)");
    assert!(test.survivors().is_empty());
}

#[test]
fn a_hanging_notify_command_is_stopped() {
    let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
    test.ralph(&run("sleep 600 & sleep 600", &[]))
        .exits(0)
        .complains("it was stopped after 30 s");
    assert!(test.survivors().is_empty());
}

#[test]
fn notify_does_not_run_after_a_hangup() {
    let test = Test::new().script("iteration 1\n  say ready\n  hang\n");
    let live = test.start(&run("cat >told.json", &[]));
    live.until_out("ready");
    live.signal("HUP");
    live.end().exits(129);
    assert!(!test.workspace().join("told.json").exists());
}

#[test]
fn the_notify_command_is_not_mistaken_for_the_agent() {
    let test = Test::new().script("iteration 1\n  say x\n");
    let notify =
        format!("{RALPH} set a max-iterations=9; echo code=$?; {RALPH} done; echo code=$?");
    test.ralph(&run(&notify, &["-m", "1"])).exits(1);
    let log = test.read_loop("a", "notify.log");
    assert!(
        log.contains("code=0\n") && log.contains("not inside a loop") && log.contains("code=2\n"),
        "{log}"
    );
    assert_eq!(test.status("a")["max_iterations"], 9);
}

#[test]
fn an_empty_notify_flag_turns_the_setting_off() {
    let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
    test.write(".ralph/settings.toml", "notify = \"touch told\"\n");
    test.ralph(&run("", &[])).exits(0);
    assert!(
        !test.workspace().join("told").exists() && !test.loop_dir("a").join("notify.json").exists()
    );
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    assert!(
        test.workspace().join("told").exists(),
        "the setting itself works"
    );
}
