//! `--notify`: when the command runs, what it receives, and that it does not affect the loop.

use crate::crash::crash;
use crate::kit::{Test, until};
use crate::scripting::{fields, names};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
fn notify_is_run_when_an_error_ends_the_runner() {
    let test = Test::new();
    let cut = "printf '' >$RALPH_STATE_DIR/loops/a/journal.jsonl";
    let args = ["run", "x", "--name", "a", "--notify", "cat >told.json"];
    let done = test.ralph(&[&args[..], &["--", "sh", "-c", cut]].concat());
    done.exits(1).complains(" are missing");
    let told = told(&test);
    let message = told["error"].as_str().unwrap();
    assert!(
        message.contains("journal.jsonl was changed by another process"),
        "{message}"
    );
    assert_eq!(
        (&told["event"], &told["name"]),
        (&json!("error"), &json!("a"))
    );
    assert_eq!(
        (&told["success"], &told["exit_code"], &told["outcome"]),
        (&json!(false), &json!(1), &Value::Null)
    );
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

/// The agent `mine` is at a limit while the file `gate` exists, and then runs `limit`.
fn limited(probe: &str, limit: &str) -> Test {
    let settings = format!(
        "probe = '{probe}'\n[agents.mine]\ncommand = 'mine'\ndialect = 'claude'\n\
         [[agents.mine.exit]]\ncode = 7\nmeans = 'limit'\n"
    );
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"<promise>COMPLETE</promise>"}"#;
    let agent =
        format!("#!/bin/sh\ncat >/dev/null\nif test -e gate; then\n{limit}\nfi\necho '{done}'\n");
    Test::new()
        .on_path("mine", &agent)
        .file(".ralph/settings.toml", &settings)
        .file("gate", "")
}

const REST: [&str; 7] = ["run", "x", "--name", "a", "--agent", "mine", "--notify"];

fn run_limited(notify: &str) -> Vec<&str> {
    [&REST[..], &[notify]].concat()
}

/// Returns what the command `cat >>told.jsonl` was told so far.
fn all_told(test: &Test) -> Vec<Value> {
    let file = fs::read_to_string(test.workspace().join("told.jsonl")).unwrap_or_default();
    let lines = file.split_inclusive('\n');
    let complete = lines.filter(|line| line.ends_with('\n'));
    complete
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn told_events(test: &Test) -> Vec<String> {
    let told = all_told(test);
    told.iter()
        .map(|told| told["event"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn notify_runs_when_a_long_rest_begins_and_when_it_ends() {
    let reset = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(3600);
    let info = format!(
        r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{}}}}}"#,
        reset.as_secs()
    );
    let result = r#"{"type":"result","subtype":"success","is_error":true,"result":"You have hit your usage limit","api_error":"usage_limit_reached"}"#;
    let limit = format!("echo '{info}'\necho '{result}'\nexit 1");
    let test = limited("30s..30s", &limit);
    let live = test.start(&run_limited("cat >>told.jsonl"));
    until("the rest", || told_events(&test) == ["rest_started"]);
    let status = test.status("a");
    assert!(status["resting_until"].is_string(), "{status}");
    test.sh("rm gate");
    test.ralph(&["resume", "a", "--now"]).exits(0);
    live.end().exits(0);
    assert_eq!(
        told_events(&test),
        ["rest_started", "rest_ended", "finished"]
    );
    for told in &all_told(&test)[..2] {
        for field in ["name", "workspace", "directory", "resting_until"] {
            assert_eq!(told[field], status[field], "{field}");
        }
        assert_eq!(
            [&told["status"], &told["why"]],
            ["running", "mine: usage limit reached"]
        );
        assert_eq!(told["iterations"], 1);
        let documented = names("scripting.md", "When a long rest begins or ends");
        assert_eq!(fields(told), documented);
    }
    let recorded = test.events("a", "notified");
    assert_eq!(
        [&recorded[0]["stage"], &recorded[1]["stage"]],
        ["rest_started", "rest_ended"]
    );
}

#[test]
fn a_rest_is_notified_once_even_if_its_runner_is_killed() {
    let test = limited("1h..1h", "exit 7");
    let live = test.start(&run_limited("cat >>told.jsonl"));
    until("the rest", || told_events(&test) == ["rest_started"]);
    live.signal("KILL");
    drop(live);
    until("the crash", || test.status("a")["status"] == "crashed");
    let live = test.start(&["resume", "a"]);
    until("the next runner", || test.events("a", "opened").len() == 2);
    test.ralph(&["pause", "a"]).exits(0);
    live.end().exits(3);
    let live = test.start(&["resume", "a"]);
    until("the third runner", || test.events("a", "opened").len() == 3);
    test.sh("rm gate");
    test.ralph(&["resume", "a", "--now"]).exits(0);
    live.end().exits(0);
    // The end of the loop shows that the agent works again.
    assert_eq!(told_events(&test), ["rest_started", "paused", "finished"]);
}

#[test]
fn a_short_rest_is_not_notified() {
    let test = limited("9m..9m", "exit 7");
    let live = test.start(&run_limited("cat >>told.jsonl"));
    until("the rest", || !test.events("a", "ended").is_empty());
    test.sh("rm gate");
    test.ralph(&["resume", "a", "--now"]).exits(0);
    live.end().exits(0);
    assert_eq!(told_events(&test), ["finished"]);
}

#[test]
fn a_rest_s_notify_command_neither_delays_a_stop_nor_survives_its_runner() {
    let hangs =
        "cat >>told.jsonl; case $RALPH_RESULT in *rest_*) setsid sleep 600 & sleep 600;; esac";
    let test = limited("1h..1h", "exit 7");
    let live = test.start(&run_limited(hangs));
    until("the rest", || told_events(&test) == ["rest_started"]);
    test.ralph(&["stop", "a"]).exits(0);
    live.end_within(Duration::from_secs(20)).exits(130);
    assert_eq!(told_events(&test), ["rest_started", "finished"]);
    assert!(test.survivors().is_empty());
    let test = limited("1h..1h", "exit 7");
    let live = test.start(&run_limited(hangs));
    until("the rest", || told_events(&test) == ["rest_started"]);
    live.signal("KILL");
    drop(live);
    until("the crash", || test.status("a")["status"] == "crashed");
    until("its processes' end", || test.survivors().is_empty());
    let test = limited("1h..1h", "exit 7");
    let live = test.start(&run_limited(hangs));
    until("the rest", || told_events(&test) == ["rest_started"]);
    crash(live);
    test.ralph(&["stop", "a"]).exits(0);
    assert!(test.survivors().is_empty(), "the next command kills them");
}

#[test]
fn a_failing_notify_command_does_not_end_a_rest() {
    let test = limited("1h..1h", "exit 7");
    let live = test.start(&run_limited("cat >>told.jsonl; exit 7"));
    until("the rest", || told_events(&test) == ["rest_started"]);
    test.sh("rm gate");
    test.ralph(&["resume", "a", "--now"]).exits(0);
    let done = live.end().exits(0);
    let warnings = [&done.out[..], &done.err].concat();
    assert_eq!(warnings.matches("it failed (exit 7)").count(), 2);
}

#[test]
fn an_agent_at_its_limit_is_never_tried_again_without_a_rest() {
    for probe in ["0", "0..15m", "0s..0s"] {
        let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
        test.ralph(&run("", &["--probe", probe]))
            .exits(2)
            .complains("--probe must be longer than 0");
        test.write(".ralph/settings.toml", &format!("probe = '{probe}'\n"));
        test.ralph(&run("", &[])).exits(2).complains("probe");
        assert!(!test.loop_dir("a").exists());
    }
}
