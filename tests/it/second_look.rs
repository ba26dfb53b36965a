//! The second look: agents that change what a check looks at instead of doing the work.

use crate::kit::{Done, Test, until};
use serde_json::Value;

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

/// A workspace whose test is red: `sum.sh` subtracts.
fn project() -> Test {
    let test = Test::git()
        .file(".gitignore", "deps/\n")
        .file("sum.sh", "echo $(($1 - $2))\n")
        .file("tests/sum_test.sh", "test \"$(sh sum.sh 2 3)\" = 5\n");
    test.sh("mkdir deps && echo 'exit 1' > deps/lib.sh");
    test.sh("git add -A && git commit -qm start");
    test
}

/// Runs at most three iterations of an agent that is one shell command, and then claims to be done.
fn run(test: &Test, agent: &str, args: &[&str]) -> Done {
    let agent = format!("{agent}\n{PROMISE}");
    let run = ["run", "x", "--name", "a"];
    let limit: &[&str] = if args.contains(&"-m") {
        &[]
    } else {
        &["-m", "3"]
    };
    test.ralph(&[&run[..], limit, args, &["--", "sh", "-c", &agent]].concat())
}

const CHECK: [&str; 2] = ["--check", "sh tests/sum_test.sh"];

fn rechecks(test: &Test) -> Vec<Value> {
    test.events("a", "rechecked")
}

const FIX: &str = "echo 'echo $(($1 + $2))' > sum.sh";

#[test]
fn code_that_is_fixed_is_done_without_a_second_check() {
    let test = project();
    run(&test, FIX, &CHECK)
        .exits(0)
        .says("done: every check is green\n");
    let surveyed = test.events("a", "surveyed");
    assert_eq!(surveyed.len(), 1, "{surveyed:?}");
    assert_eq!(surveyed[0]["touched"]["sources"]["total"], 1);
    assert_eq!(rechecks(&test), [] as [Value; 0]);
}

#[test]
fn a_rewritten_test_is_disputed_after_the_agent_was_told() {
    let test = project();
    run(&test, "echo true > tests/sum_test.sh", &CHECK)
        .exits(3)
        .says("disputed")
        .says("tests/sum_test.sh")
        .says("ralph resume a --accept tests/sum_test.sh");
    let status = test.status("a");
    assert_eq!(status["status"], "blocked");
    assert_eq!(status["outcome"]["kind"], "disputed");
    assert_eq!(status["stop_reason"], "disputed");
    assert_eq!(status["current_iteration"], 2);
    let told = test.prompt("a", 2);
    assert!(told.contains("red with the tests and settings"), "{told}");
    assert!(told.contains("- `tests/sum_test.sh`"), "{told}");
    assert!(!test.prompt("a", 1).contains("<changed>"));
    // Nothing is left of the view, and the workspace is as the agent left it.
    assert!(!test.loop_dir("a").join("view").exists());
    assert_eq!(test.read("tests/sum_test.sh"), "true\n");
}

#[test]
fn an_agent_that_is_told_can_fix_the_code_and_keep_its_test() {
    let test = project();
    let agent = format!(
        "if test -e .ralph/told; then {FIX}; fi; touch .ralph/told; echo true > tests/sum_test.sh"
    );
    run(&test, &agent, &CHECK)
        .exits(0)
        .says("every check is green, by the original tests too (1 test or settings file changed)");
    assert_eq!(test.status("a")["current_iteration"], 2);
}

#[test]
fn accepted_changes_end_the_loop_without_an_agent() {
    let test = project();
    let agent = "echo true > tests/sum_test.sh; echo '<changed>sums are gone</changed>'";
    run(&test, agent, &CHECK).exits(3).says("sums are gone");
    assert_eq!(test.status("a")["current_iteration"], 1);
    test.ralph(&["resume", "a", "--accept", "[x"])
        .exits(2)
        .complains("--accept: `[x` is not a valid pattern");
    test.ralph(&["resume", "a", "--accept", "src/**"])
        .exits(2)
        .complains("matches none of the disputed files");
    test.ralph(&["resume", "a", "--accept", "tests/**"])
        .exits(0);
    assert_eq!(test.status("a")["outcome"]["kind"], "done");
    assert_eq!(test.status("a")["current_iteration"], 1);
    assert_eq!(test.events("a", "started").len(), 1);
    test.ralph(&["resume", "a", "--accept", "tests/**"])
        .exits(2)
        .complains("no change of its tests is disputed");
}

#[test]
fn a_dispute_continues_with_the_agent_after_an_answer() {
    let test = project();
    let agent = format!(
        "if test -e .ralph/told; then git checkout -q tests; {FIX}; else touch .ralph/told; \
         echo true > tests/sum_test.sh; echo '<changed>easier</changed>'; fi"
    );
    run(&test, &agent, &CHECK).exits(3);
    test.ralph(&["resume", "a", "--answer", "Keep the old test."])
        .exits(0);
    assert!(test.prompt("a", 2).contains("Keep the old test."));
}

#[test]
fn files_that_git_ignores_and_files_outside_are_restored_too() {
    let cheats = [
        (
            "an ignored file",
            "sh deps/lib.sh",
            "echo 'exit 0' > deps/lib.sh",
        ),
        ("a new ignored file", "test -e deps/new", "touch deps/new"),
        (
            "a program in PATH",
            "some-checker",
            "printf '#!/bin/sh\\n' > ${PATH%%:*}/some-checker; chmod +x ${PATH%%:*}/some-checker",
        ),
        (
            "the user's settings",
            "test -e $HOME/.checkrc",
            "touch $HOME/.checkrc",
        ),
    ];
    for (what, check, cheat) in cheats {
        let test = project().on_path("another", "#!/bin/sh\n");
        let agent = format!("{FIX}; {cheat}");
        let args = ["--check", check, "--no-preflight"];
        run(&test, &agent, &args).exits(3).says("disputed");
        assert_eq!(rechecks(&test).len(), 2, "{what}");
    }
}

#[test]
fn a_shell_that_the_agent_adds_to_path_runs_no_check() {
    let test = project().on_path("another", "#!/bin/sh\n");
    let agent = "printf '#!/bin/sh\\nexit 0\\n' > ${PATH%%:*}/sh; chmod +x ${PATH%%:*}/sh";
    run(&test, agent, &["--check", "false", "-m", "1"]).exits(1);
}

#[test]
fn checks_see_no_variable_of_ralph() {
    let test = project();
    let check = "! env | grep -E '^(RALPH_|TASK_FOLDER)'";
    run(&test, FIX, &["--check", check]).exits(0);
}

#[test]
fn without_a_second_look_the_checks_alone_decide() {
    let test = project();
    let args = [&CHECK[..], &["--second-look", "never"]].concat();
    run(&test, "echo true > tests/sum_test.sh", &args).exits(0);
    assert_eq!(test.events("a", "surveyed"), [] as [Value; 0]);
}

#[test]
fn the_look_can_be_taken_although_nothing_was_touched() {
    let test = project();
    let args = [&CHECK[..], &["--second-look", "always"]].concat();
    run(&test, FIX, &args)
        .exits(0)
        .says("by the original tests too");
    assert_eq!(rechecks(&test).len(), 1);
}

#[test]
fn nothing_is_committed_while_the_work_is_disputed() {
    let test = project();
    let args = [&CHECK[..], &["--scm", "commit"]].concat();
    run(&test, "echo true > tests/sum_test.sh", &args).exits(3);
    assert_eq!(test.sh("git log -1 --format=%s"), "start\n");
    let test = project();
    run(&test, FIX, &args).exits(0);
    assert_ne!(test.sh("git log -1 --format=%s"), "start\n");
}

#[test]
fn a_check_writes_nothing_to_the_workspace_in_the_view() {
    let test = project();
    let check = "sh tests/sum_test.sh && echo run >> runs";
    let agent = format!("{FIX}; echo '# more' >> tests/sum_test.sh");
    run(&test, &agent, &["--check", check]).exits(0);
    assert_eq!(rechecks(&test).len(), 1);
    // Preflight was red, and the check ran again because it had written a file. In the view, it has
    // written nothing.
    assert_eq!(test.read("runs"), "run\nrun\n");
}

#[test]
fn a_record_of_the_start_that_was_changed_asks_a_person() {
    let test = project();
    let cheat = "echo true > tests/sum_test.sh; for f in $(find $RALPH_STATE_DIR/loops/a/baseline -type f); \
                 do echo x >> $f; done";
    run(&test, cheat, &CHECK).exits(3).says("disputed");
    let deleted = project();
    let cheat = "echo true > tests/sum_test.sh; rm -r $RALPH_STATE_DIR/loops/a/baseline";
    run(&deleted, cheat, &CHECK)
        .exits(3)
        .says("the record of the loop's start was deleted");
}

#[test]
fn tests_that_no_longer_run_are_disputed_although_no_file_was_touched() {
    let test = project();
    let check = "if test -e sum.log; then echo '1 passed'; else echo '2 passed'; fi";
    let agent = format!("{FIX}; touch sum.log");
    run(&test, &agent, &["--check", check])
        .exits(3)
        .says("disputed");
    assert!(test.prompt("a", 2).contains("1 tests ran, 2 at the start"));
}

/// A source of a Rust crate with a test in it. The check does not say which tests it runs.
const RUST: &str = "pub fn one() -> u8 { 1 }\n\n#[cfg(test)]\nmod tests {\n    use super::one;\n\n    \
    #[test]\n    fn is_one() {\n        assert_eq!(one(), 1);\n    }\n}\n";

#[test]
fn tests_that_are_deleted_with_their_source_are_missed() {
    let test = project().file("src/one.rs", RUST);
    test.sh("git add -A && git commit -qm more");
    run(&test, &format!("{FIX}; rm src/one.rs"), &CHECK)
        .exits(3)
        .says("the tests that were in src/one.rs are in no other source")
        .says("ralph resume a --accept src/one.rs");
    assert_eq!(test.status("a")["current_iteration"], 2);
    let told = test.prompt("a", 2);
    assert!(told.contains("no other source has the tests"), "{told}");
    assert!(told.contains("- `src/one.rs`"), "{told}");
    test.ralph(&["resume", "a", "--accept", "src/one.rs"])
        .exits(0);
}

#[test]
fn tests_that_move_with_their_source_are_not_missed() {
    let test = project().file("src/one.rs", RUST);
    test.sh("git add -A && git commit -qm more");
    let agent = format!("{FIX}; mkdir src/one; mv src/one.rs src/one/mod.rs");
    run(&test, &agent, &CHECK).exits(0);
}

#[test]
fn a_runner_that_is_killed_during_the_look_leaves_nothing_behind() {
    let test = project();
    // The check waits for the file `go`, which is new and ignored, so that it is never in the view.
    let check = "sh tests/sum_test.sh && { test -e deps/go || test -e ../resumed || sleep 321; }";
    let agent = format!("{FIX}; touch deps/go; echo '# more' >> tests/sum_test.sh; {PROMISE}");
    let args = ["run", "x", "--name", "a", "-m", "3", "--check", check];
    let live = test.start(&[&args[..], &["--", "sh", "-c", &agent]].concat());
    until("the check sleeps in the view", || {
        test.survivors()
            .iter()
            .any(|pid| command_line(*pid).starts_with("sleep 321"))
    });
    live.signal("KILL");
    live.end();
    until("no process is left", || test.survivors().is_empty());
    test.write("../resumed", "");
    test.ralph(&["resume", "a"]).exits(0);
    assert!(!test.loop_dir("a").join("view").exists());
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
