//! The views that print and exit, with the recorded night: `ls`, `status`, `show` and `logs`.
//!
//! Their snapshots are in `snapshots/views`, at 80 and at 160 columns.

use crate::kit::{RUN_ONCE, Test, until};
use crate::pty::{Screen, escapes, rows};
use crate::snap::assert_snapshot;
use serde_json::Value;

/// Compares what a command shows at both widths. No row is too long for its terminal.
#[track_caller]
fn assert_view(test: &Test, name: &str, args: &[&str]) {
    // A patch is shown as it is.
    let has_patch = args[0] == "show" && args.len() > 2;
    for columns in [80, 160] {
        let shown = test.night_rows(args, columns);
        // Cut the test's own paths, whose length is not known.
        let rows = shown
            .lines()
            .filter(|row| !has_patch && !row.contains("/test/"));
        for row in rows {
            assert!(row.chars().count() <= usize::from(columns), "{row:?}");
        }
        assert_snapshot(&format!("views/{name}-{columns}"), &shown);
    }
}

#[test]
fn ls_lists_a_night() {
    let test = Test::night();
    assert_view(&test, "ls", &["ls"]);
    let names = |args: &[&str]| {
        let done = test.start_command(test.night_command(args)).end().exits(0);
        let names = done.out.lines().skip(1);
        let names = names.map(|line| line.split(' ').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&["ls"]), ["totals", "links", "retries"]);
    assert_eq!(
        names(&["ls", "--state", "crashed,done"]),
        ["totals", "retries"]
    );
    test.ralph(&["ls", "--state", "dead"])
        .exits(2)
        .complains("the states are starting, running, ");
    let mut here = test.night_command(&["ls", "--here", "--names"]);
    here.current_dir(test.root().join("home/handbook/tests"));
    assert_eq!(test.start_command(here).end().exits(0).out, "links\n");
    // The order for scripts is by name.
    let all: Vec<Value> =
        serde_json::from_str(&test.ralph(&["ls", "--json"]).exits(0).out).unwrap();
    let all: Vec<_> = all
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(all, ["links", "retries", "totals"]);
}

#[test]
fn archived_loops_are_listed_on_request() {
    let test = Test::new();
    // A new loop of the same name moves the old one to the archive.
    test.ralph(&RUN_ONCE).exits(0);
    test.ralph(&RUN_ONCE).exits(0);
    let rows = |args: &[&str]| test.ralph(args).exits(0).out.lines().count() - 1;
    assert_eq!(rows(&["ls"]), 1);
    assert_eq!(rows(&["ls", "--all"]), 2);
    let shown = test.ralph(&["ls", "--all"]).exits(0);
    shown.says("\na ").says("done, archived");
    let all = test.ralph(&["ls", "--all", "--json"]).exits(0).out;
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    assert_eq!(all[1]["archived"], true);
}

#[test]
fn status_shows_the_last_iterations_and_words_on_a_terminal() {
    let test = Test::night();
    for name in ["totals", "links", "retries"] {
        assert_view(&test, &format!("status-{name}"), &["status", name]);
        // Scripts get only the lines they know.
        let piped = test.ralph(&["status", name]).exits(0).out;
        assert!(piped.lines().all(|line| line.contains(": ")), "{piped}");
    }
    let colored = Screen::start(test.night_command(&["status", "totals"]), 80)
        .end()
        .1;
    let colored = escapes(&String::from_utf8_lossy(&colored));
    assert!(colored.contains(&"[32m".to_owned()), "{colored:?}");
    let mut plain = test.night_command(&["status", "totals"]);
    plain.env("NO_COLOR", "1");
    let plain = Screen::start(plain, 80).end().1;
    assert_eq!(escapes(&String::from_utf8_lossy(&plain)), [] as [String; 0]);
}

#[test]
fn show_prints_every_iteration_of_a_loop() {
    let test = Test::night();
    for name in ["totals", "links", "retries"] {
        assert_view(&test, &format!("show-{name}"), &["show", name]);
    }
    let all: Value =
        serde_json::from_str(&test.ralph(&["show", "totals", "--json"]).exits(0).out).unwrap();
    let history = all["history"].as_array().unwrap();
    assert_eq!(history.len(), 30);
    assert_eq!(history[11]["reason"]["kind"], "usage-limit");
    assert_eq!(history[0]["files"][0]["path"], "lib/add_tax.sh");
    assert_eq!(history[0]["tools"][1]["tool"], "Write");
    assert_eq!(all["status"], "done");
}

#[test]
fn show_compares_all_checkpoints_with_a_few_git_processes() {
    let test = Test::night();
    let count = test.root().join("count");
    let wrapper = format!(
        "#!/bin/sh\necho git >> {}\nPATH=${{PATH#*:}} exec git \"$@\"\n",
        count.display()
    );
    let test = test.on_path("git", &wrapper);
    let shown = test.ralph(&["show", "totals"]).exits(0).out;
    assert!(shown.contains("30 iterations"), "{shown}");
    assert!(shown.contains(" +1 −1 "), "{shown}");
    let count = std::fs::read_to_string(count).unwrap().lines().count();
    assert!(count <= 5, "{count} processes");
}

#[test]
fn show_prints_everything_about_one_iteration() {
    let test = Test::night();
    assert_view(&test, "show-links-18", &["show", "links", "18"]);
    assert_view(&test, "show-totals-12", &["show", "totals", "12"]);
    let one: Value =
        serde_json::from_str(&test.ralph(&["show", "links", "17", "--json"]).exits(0).out).unwrap();
    assert_eq!(one["second_look"][0]["green"], false);
    assert_eq!(
        one["touched"]["guards"]["files"][0]["path"],
        "tests/links.sh"
    );
    assert!(
        one["patch"]
            .as_str()
            .unwrap()
            .contains("+++ b/tests/links.sh")
    );
    assert!(one["prompt"].as_str().unwrap().contains("## This loop"));
    test.ralph(&["show", "links", "19"])
        .exits(2)
        .complains("\"links\" has only iterations 1 to 18");
}

#[test]
fn ascii_terminals_get_ascii() {
    let test = Test::night();
    for args in [&["show", "totals"][..], &["status", "links"], &["ls"]] {
        let mut command = test.night_command(args);
        command.env("LC_ALL", "C");
        let shown = Screen::start(command, 80).end().1;
        assert!(shown.is_ascii(), "{}", String::from_utf8_lossy(&shown));
    }
}

#[test]
fn logs_of_a_whole_loop_say_what_happened_between_iterations() {
    let test = Test::night();
    let done = test.ralph(&["logs", "links", "--all"]).exits(0);
    assert_snapshot("views/logs-links", &test.without_root(&done.out));
    assert_view(&test, "logs-totals", &["logs", "totals", "--all"]);
    // The last hours of the night before `MORNING_MS` are the end of `totals`.
    let since = test.night_command(&["logs", "totals", "--since", "3h"]);
    let done = test.start_command(since).end().exits(0);
    assert!(
        done.out
            .contains("totals: loop complete after 30 iterations"),
        "{}",
        done.out
    );
    assert!(!done.out.contains("totals: iteration 9\n"), "{}", done.out);
    let done = test.ralph(&["logs", "retries", "--all", "--json"]).exits(0);
    let lines = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let count = |key: &str, value: &str| lines.iter().filter(|line| line[key] == value).count();
    assert_eq!(count("event", "started"), 12);
    assert_eq!(count("act", "failed"), 1);
    assert!(count("act", "tool-finished") > 20);
    test.ralph(&["logs", "retries", "-f"])
        .exits(0)
        .says("[ralph] retries: crashed; run `ralph resume retries` to continue it\n");
}

#[test]
fn logs_follow_checks_and_end_with_the_outcome() {
    let test = Test::new().script(
        "iteration 1\n  say one\n  sh until test -e go; do sleep 0.01; done\n  promise COMPLETE\n\
         iteration 2\n  sh touch built\n  promise COMPLETE\n",
    );
    let live = test.start(&[
        "run",
        "x",
        "--name",
        "a",
        "--check",
        "test -e built",
        "--agent",
        "script:../agent.script",
    ]);
    live.until_out("  | one\n");
    let follower = test.start(&["logs", "a", "-f"]);
    follower.until_out("one\n");
    test.write("go", "");
    live.end()
        .exits(0)
        .says("the agent claimed to be done, but a check is red");
    let out = follower.end().exits(0).out;
    let mut rest = &out[..];
    for text in [
        "one\n<promise>COMPLETE</promise>\n",
        "[ralph] a: iteration 1 completed",
        "[ralph] a: check `test -e built`: red",
        "[ralph] a: the agent claimed to be done, but a check is red\n",
        "[ralph] a: iteration 2\n",
        "[ralph] a: check `test -e built`: green",
        "[ralph] a: loop complete after 2 iterations\n",
    ] {
        let at = rest
            .find(text)
            .unwrap_or_else(|| panic!("{text:?} in {out}"));
        rest = &rest[at + text.len()..];
    }
}

#[test]
fn a_running_loop_is_first_and_says_what_it_does() {
    let test = Test::night().on_path(
        "claude",
        "#!/bin/sh\ncat >/dev/null\ncat stream\nuntil test -e go; do sleep 0.01; done\n",
    );
    test.write(
        "stream",
        concat!(
            r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#,
            "\n",
            r#"{"type":"assistant","message":{"id":"2","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make all"}}]},"parent_tool_use_id":null}"#,
            "\n"
        ),
    );
    let live = test.start(&["run", "x", "--name", "zz", "-m", "1", "--agent", "claude"]);
    let listed = || test.ralph(&["ls"]).exits(0).out;
    until("the tool in the list", || {
        listed().contains("Bash make all")
    });
    let list = listed();
    assert!(list.lines().nth(1).unwrap().starts_with("zz "), "{list}");
    test.ralph(&["pause", "zz"]).exits(0);
    let shown = test.ralph(&["status", "zz"]).exits(0).out;
    assert!(
        shown.contains("\nPending: pause after this iteration\n"),
        "{shown}"
    );
    let shown = test.night_rows(&["status", "zz"], 80);
    assert!(shown.contains("running"), "{shown}");
    test.write("go", "");
    live.end();
}

#[test]
fn spawn_says_how_to_watch_steer_and_stop_on_a_terminal() {
    let test = Test::new().script("iteration *\n say hello\n");
    let command = test.ralph_command(&[
        "spawn",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--no-tmux",
        "--agent",
        "script:../agent.script",
    ]);
    let (code, bytes) = Screen::start(command, 80).end();
    assert_eq!(code, 0);
    assert_eq!(
        rows(&bytes)[1..4],
        [
            "watch: ralph attach a · ralph logs a -f · ralph status a",
            "steer: ralph say a TEXT · ralph pause a · ralph set a max-iterations=N",
            "stop:  ralph stop a",
        ]
    );
    test.ralph(&["wait", "a"]).exits(0);
}
