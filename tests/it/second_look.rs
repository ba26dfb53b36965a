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
    // Everyone who reads how the loop ended learns whose decision it was.
    let ending = "every check is green; red turned green and no source file changed: only \
                  tests/sum_test.sh; a person accepted the change of tests/sum_test.sh";
    test.ralph(&["resume", "a", "--accept", "tests/**"])
        .exits(0)
        .says("you accepted changes of tests/**")
        .says(&format!("✔ done: {ending}"));
    let status = test.status("a");
    assert_eq!(status["outcome"]["kind"], "done");
    assert_eq!(status["outcome"]["detail"], ending);
    assert_eq!(status["current_iteration"], 1);
    test.ralph(&["status", "a"])
        .says(&format!("Status: done ({ending})"));
    assert_eq!(test.events("a", "started").len(), 1);
    let finished = test.events("a", "finished");
    assert_eq!(finished[1]["outcome"]["detail"], ending);
    let accepted = &test.events("a", "surveyed")[1]["touched"]["accepted"];
    assert_eq!(accepted["files"][0]["path"], "tests/sum_test.sh");
    let receipt: Value = serde_json::from_str(&test.ralph(&["receipt", "a"]).exits(0).out).unwrap();
    assert_eq!(receipt["outcome"]["detail"], ending);
    assert_eq!(&receipt["touched"]["accepted"], accepted);
    test.ralph(&["resume", "a", "--accept", "tests/**"])
        .exits(2)
        .complains("no change of its tests is disputed");
}

/// Asserts that every text about the ending of the loop `a` says this.
#[track_caller]
fn assert_ending(test: &Test, done: Done, detail: &str) {
    done.exits(0).says(&format!("✔ done: {detail}\n"));
    test.ralph(&["status", "a"])
        .says(&format!("Status: done ({detail})\n"));
    assert_eq!(test.status("a")["outcome"]["detail"], detail);
    let finished = test.events("a", "finished");
    assert_eq!(finished[0]["outcome"]["detail"], detail);
    let receipt = test.ralph(&["receipt", "a"]).exits(0).out;
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt["outcome"]["detail"], detail);
    let log = test.read_loop("a", "iterations.log");
    assert!(log.contains(detail), "{log}");
}

#[test]
fn a_loop_that_changed_nothing_says_so_wherever_its_ending_is_named() {
    let test = project();
    let done = run(&test, "true", &["--check", "true"]);
    assert_ending(&test, done, "every check is green; nothing was changed");
    // A check that turns green by itself.
    let test = project();
    let check = "test -e ../seen || { touch ../seen; exit 1; }";
    let done = run(&test, "true", &["--check", check]);
    assert_ending(
        &test,
        done,
        "every check is green; red turned green and nothing was changed",
    );
    for args in [&["--check", "true", "--second-look", "never"][..], &[]] {
        let test = project();
        let basis = match args {
            [] => "the agent claimed it; there are no checks",
            _ => "every check is green",
        };
        let done = run(&test, "true", args);
        assert_ending(&test, done, &format!("{basis}; nothing was changed"));
    }
}

#[test]
fn a_loop_that_changed_no_source_file_names_what_it_changed() {
    let test = project();
    // Red because of the machine, and not because of the code.
    let check = "sh tests/sum_test.sh; test -e ../repaired";
    let agent = "touch ../repaired; echo '# more' >> tests/sum_test.sh";
    let done = run(&test, agent, &["--check", check]);
    assert_ending(
        &test,
        done,
        "every check is green, by the original tests too (1 test or settings file changed); red \
         turned green and no source file changed: only tests/sum_test.sh",
    );
    let test = project();
    let agent = "for n in 1 2 3 4 5 6 7; do echo true > tests/$n.sh; done";
    let args = ["--check", "test -e tests/7.sh", "--allow", "tests/**"];
    let done = run(&test, agent, &args);
    assert_ending(
        &test,
        done,
        "every check is green; red turned green and no source file changed: only tests/1.sh, \
         tests/2.sh, tests/3.sh, tests/4.sh, tests/5.sh and 2 more files",
    );
}

#[test]
fn what_was_not_accepted_is_still_judged_by_the_originals() {
    let test = project();
    let agent = format!("{FIX}; echo true > tests/sum_test.sh; echo false > tests/sum_test.sh");
    let agent = format!("{agent}; echo '# more' >> tests/other.sh; echo true > tests/sum_test.sh");
    test.write("tests/other.sh", "true\n");
    test.sh("git add -A && git commit -qm other");
    let check = [
        "--check",
        "sh tests/sum_test.sh && sh tests/other.sh && test -e never",
    ];
    run(
        &test,
        &format!("{agent}; touch never; mv sum.sh old.sh"),
        &check,
    )
    .exits(3);
    test.ralph(&["resume", "a", "--accept", "tests/sum*"])
        .exits(0)
        .says(
            "every check is green, by the other original tests too (1 test or settings file \
             changed); a person accepted the change of tests/sum_test.sh",
        );
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
fn settings_that_a_variable_names_are_restored_wherever_they_are() {
    for (variable, path, check) in [
        (
            "XDG_CONFIG_HOME",
            "conf",
            "test -e $XDG_CONFIG_HOME/tool/rc",
        ),
        ("PIP_CONFIG_FILE", "conf/pip", "test -e $PIP_CONFIG_FILE"),
        ("PYTHONPATH", "conf", "test -e $PYTHONPATH/sitecustomize.py"),
    ] {
        let test = project();
        test.sh("mkdir ../conf");
        let cheat = check.strip_prefix("test -e ").unwrap();
        let agent = format!("{FIX}; mkdir -p $(dirname {cheat}); touch {cheat}; {PROMISE}");
        let mut command = test.ralph_command(&[
            "run",
            "x",
            "--name",
            "a",
            "-m",
            "2",
            "--no-preflight",
            "--check",
            check,
            "--",
            "sh",
            "-c",
            &agent,
        ]);
        command.env(variable, test.root().join(path));
        test.start_command(command)
            .end()
            .exits(3)
            .says("disputed")
            .says(path);
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

#[test]
fn what_a_check_script_reads_is_a_part_of_it() {
    for cheat in [
        "echo 'compare() { :; }' > compare",
        "echo 0 > cases/one.out",
        "rm cases/one.in",
    ] {
        let test = Test::git()
            .file("total", "echo 0\n")
            .file("compare", "compare() { sh total | diff \"$1\" -; }\n")
            .file("cases/one.in", "1\n")
            .file("cases/one.out", "1\n")
            .file(
                "check.sh",
                ". ./compare\nfor i in cases/*.in; do test ! -e \"$i\" || compare \"${i%.in}.out\" || exit 1; done\n",
            );
        test.sh("git add -A && git commit -qm start");
        run(&test, cheat, &["--check", "sh check.sh"])
            .exits(3)
            .says("disputed");
    }
}
