//! Receipts, and proving them again: `ralph receipt` and `ralph verify`.

use crate::kit::{Done, Live, Test, alive, until};
use serde_json::Value;
use std::fs;

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

/// A workspace whose test is red: `sum.sh` subtracts.
fn project() -> Test {
    let test = Test::git()
        .file(".gitignore", "deps/\n")
        .file("sum.sh", "echo $(($1 - $2))\n")
        .file(
            "tests/sum_test.sh",
            "test \"$(sh sum.sh 2 3)\" = 5 && echo '1 passed, 0 failed'\n",
        );
    test.sh("git add -A && git commit -qm start");
    test
}

fn run(test: &Test, agent: &str, args: &[&str]) -> Done {
    let agent = format!("{agent}\n{PROMISE}");
    let run = ["run", "x", "--name", "a", "-m", "2"];
    test.ralph(&[&run[..], &CHECK, args, &["--", "sh", "-c", &agent]].concat())
}

const CHECK: [&str; 2] = ["--check", "sh tests/sum_test.sh"];
const FIX: &str = "echo 'echo $(($1 + $2))' > sum.sh";
/// Fixes the code, and changes a test in a way that leaves it right.
const FIX_BOTH: &str = "echo 'echo $(($1 + $2))' > sum.sh; echo '# more' >> tests/sum_test.sh";

fn receipt(test: &Test) -> Value {
    let printed = test.ralph(&["receipt", "a"]).exits(0).out;
    serde_json::from_str(&printed).unwrap()
}

fn sha256(test: &Test, path: &str) -> String {
    let line = test.sh(&format!("sha256sum {path}"));
    line.split(' ').next().unwrap().to_owned()
}

#[test]
fn a_receipt_says_what_was_proven_and_how() {
    let test = project();
    let original = sha256(&test, "tests/sum_test.sh");
    let base = test.sh("git rev-parse HEAD").trim().to_owned();
    run(&test, FIX_BOTH, &["--scm", "commit"]).exits(0);
    let receipt = receipt(&test);
    assert_eq!(
        (&receipt["ralph"], &receipt["version"]),
        (&"receipt".into(), &1.into())
    );
    assert_eq!(receipt["outcome"]["kind"], "done");
    assert_eq!(receipt["success"], true);
    assert_eq!(receipt["base"], base.as_str());
    assert_eq!(receipt["commit"], test.sh("git rev-parse HEAD").trim());
    assert_eq!(receipt["is_committed"], true);
    assert_eq!(
        receipt["graded"]["tree"],
        test.sh("git rev-parse 'HEAD^{tree}'").trim()
    );
    let reference = receipt["graded"]["ref"].as_str().unwrap();
    let stored = test.sh(&format!("git rev-parse '{reference}^{{tree}}'"));
    assert_eq!(receipt["graded"]["tree"], stored.trim());
    let check = &receipt["checks"][0];
    assert_eq!(check["command"], CHECK[1]);
    assert_eq!(check["result"]["exit"]["code"], 0);
    assert_eq!(check["result"]["tests"]["passed"], 1);
    assert_eq!(check["original"]["green"], true);
    assert_eq!(receipt["guards"]["files"]["tests/sum_test.sh"], original);
    assert_eq!(receipt["touched"]["guards"]["total"], 1);
    assert_eq!(receipt["second_look"]["verdict"], "agreed");
    assert_eq!(receipt["iterations"], 1);
    assert_eq!(receipt["agent"]["command"][0], "sh");
    for version in ["ralph", "git", "os"] {
        let shown = receipt["versions"][version].as_str().unwrap();
        assert!(!shown.is_empty(), "{version}");
    }
    let kept: Value = serde_json::from_str(&test.read_loop("a", "receipt.json")).unwrap();
    assert_eq!(kept, receipt);
    // It is derived from the journal.
    fs::remove_file(test.loop_dir("a").join("receipt.json")).unwrap();
    assert_eq!(self::receipt(&test), receipt);
}

#[test]
fn disputes_and_acceptances_are_in_the_receipt() {
    let test = project();
    let agent = "echo true > tests/sum_test.sh; echo '<changed>sums are gone</changed>'";
    run(&test, agent, &[]).exits(3);
    let disputed = receipt(&test);
    assert_eq!(disputed["outcome"]["kind"], "disputed");
    assert_eq!(disputed["disputes"][0]["iteration"], 1);
    assert_eq!(disputed["disputes"][0]["files"][0], "tests/sum_test.sh");
    assert_eq!(disputed["disputes"][0]["why"], "sums are gone");
    // The dispute is proven again: green for the agent, red by the original.
    test.ralph(&["verify", "a"])
        .exits(0)
        .says("verified (disputed)")
        .says("same: red (exit 1)");
    test.ralph(&["resume", "a", "--accept", "tests/**"])
        .exits(0);
    let accepted = receipt(&test);
    assert_eq!(accepted["outcome"]["kind"], "done");
    assert_eq!(accepted["accepted"][0]["globs"][0], "tests/**");
    assert_eq!(accepted["disputes"].as_array().unwrap().len(), 1);
    test.ralph(&["verify", "a"])
        .exits(0)
        .says("verified (done)");
}

#[test]
fn a_loop_is_verified_on_its_recorded_files_whatever_the_workspace_has_become() {
    let test = project();
    run(
        &test,
        &format!("{FIX_BOTH}; mkdir lib; echo x > lib/new"),
        &[],
    )
    .exits(0);
    test.ralph(&["verify", "a"])
        .exits(0)
        .says("verifying a: 1 check on the files")
        .says("by the original tests")
        .says("sh tests/sum_test.sh same: green, 1 passed")
        .says("✔ verified (done): the check has the same result");
    test.sh("git reset -q --hard && git clean -qfd && rm sum.sh && mkdir sum.sh lib && echo y > lib/later");
    let before = test.sh("git status --porcelain; ls -a");
    test.ralph(&["verify", "a"]).exits(0).says("verified");
    assert_eq!(test.sh("git status --porcelain; ls -a"), before);
    assert!(!test.loop_dir("a").join("verify").exists());
    let json = test.ralph(&["verify", "a", "--json"]).exits(0).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["verdict"], "verified");
    assert_eq!(json["checks"][0]["same"], true);
    assert_eq!(json["checks"][0]["now"]["tests"]["passed"], 1);
}

#[test]
fn a_result_that_depends_on_more_than_the_files_differs() {
    let test = project();
    let flag = test.root().join("flag");
    fs::write(&flag, "").unwrap();
    let check = format!("sh tests/sum_test.sh && test -e {}", flag.display());
    run(&test, FIX, &["--check", &check]).exits(0);
    test.ralph(&["verify", "a"])
        .exits(0)
        .says("all 2 checks have the same results");
    fs::remove_file(&flag).unwrap();
    test.ralph(&["verify", "a"])
        .exits(1)
        .says("differs: was green, 1 passed, is red (exit 1), 1 passed")
        .says("✘ differs: 1 of 2 checks has another result");
}

#[test]
fn a_result_differs_if_the_output_does_not_match_any_more() {
    let test = project();
    let flag = test.root().join("flag");
    fs::write(&flag, "all fine\n").unwrap();
    let check = format!("cat {}", flag.display());
    run(&test, FIX, &["--check", &check, "--expect", "fine"]).exits(0);
    test.ralph(&["verify", "a"]).exits(0);
    fs::write(&flag, "broken\n").unwrap();
    test.ralph(&["verify", "a"])
        .exits(1)
        .says("✘ differs: 1 of 2 checks has another result");
}

#[test]
fn a_sealed_loop_has_only_results_by_the_original_tests() {
    let test = project();
    run(&test, FIX_BOTH, &["--sealed"]).exits(0);
    let check = &receipt(&test)["checks"][0];
    assert_eq!(check["result"], Value::Null, "{check}");
    assert_eq!(check["original"]["green"], true, "{check}");
    test.ralph(&["verify", "a"]).exits(0);
    // A dispute is recorded, although no check ran twice.
    let test = project();
    let agent = "echo true > tests/sum_test.sh; echo '<changed>sums are gone</changed>'";
    run(&test, agent, &["--sealed"]).exits(3);
    let disputes = receipt(&test)["disputes"].clone();
    assert_eq!(disputes[0]["files"][0], "tests/sum_test.sh", "{disputes}");
    assert_eq!(disputes[0]["why"], "sums are gone");
    assert_eq!(disputes.as_array().map(Vec::len), Some(1), "{disputes}");
}

#[test]
fn ignored_files_are_hidden_only_if_the_loop_touched_them() {
    let test = project();
    test.sh("mkdir deps && echo old > deps/lib");
    run(
        &test,
        &format!("{FIX}; echo forged > deps/tool"),
        // It is green with the file too, but counts it.
        &[
            "--check",
            "if test -e deps/tool; then echo passed: 2; else echo passed: 1; fi",
        ],
    )
    .exits(0);
    // Dependencies that a person installs later are no reason to doubt the result.
    test.sh("echo new > deps/lib");
    test.ralph(&["verify", "a"]).exits(0);
    let test = project();
    test.sh("mkdir deps && echo old > deps/lib");
    run(&test, FIX, &["--check", "test -e deps/lib"]).exits(0);
    test.sh("rm deps/lib && echo new > deps/lib");
    test.ralph(&["verify", "a"]).exits(0);
}

#[test]
fn what_cannot_be_verified_is_a_usage_error() {
    let test = project();
    run(&test, FIX, &["--no-checkpoints"]).exits(0);
    assert_eq!(receipt(&test)["graded"], Value::Null);
    test.ralph(&["verify", "a"])
        .exits(2)
        .complains("the files that its checks ran on were not recorded")
        .complains("--no-checkpoints");
    test.ralph(&["rm", "a"]).exits(0);
    test.sh("git checkout -q .");
    run(&test, FIX_BOTH, &[]).exits(0);
    test.sh("git for-each-ref --format='delete %(refname)' refs/ralph | git update-ref --stdin && git gc -q --prune=now");
    test.ralph(&["verify", "a"])
        .exits(2)
        .complains("does not have the files that the checks ran on");
    test.ralph(&["rm", "a"]).exits(0);
    test.sh("git checkout -q .");
    run(&test, FIX_BOTH, &[]).exits(0);
    // The copies of the originals must be those of the start.
    test.sh(&format!(
        "echo x >> {}",
        test.loop_dir("a").join("baseline/manifest").display()
    ));
    test.ralph(&["verify", "a"])
        .exits(2)
        .complains("was changed since the loop started");
    test.ralph(&["verify", "nothing"]).exits(2);
    test.ralph(&["verify", "./no.json"])
        .exits(2)
        .complains("cannot read ./no.json");
    test.write("bad.json", "{\"ralph\":\"journal\",\"version\":1}");
    test.ralph(&["verify", "bad.json"])
        .exits(2)
        .complains("is not a receipt");
    test.write("new.json", "{\"ralph\":\"receipt\",\"version\":9}");
    test.ralph(&["verify", "new.json"])
        .exits(2)
        .complains("later version");
    let evil = "{\"ralph\":\"receipt\",\"version\":1,\"graded\":{\"tree\":\"--output=x\"}}";
    test.write("evil.json", evil);
    test.ralph(&["verify", "evil.json"])
        .exits(2)
        .complains("is not the ID of a git object");
}

#[test]
fn a_running_loop_has_no_receipt() {
    let test = project();
    let agent = "touch ../at-work; until test -e ../go-on; do sleep 0.01; done";
    let live = test.start(&[
        "run", "t", "--name", "a", "-m", "1", "--", "sh", "-c", agent,
    ]);
    until("the agent", || test.root().join("at-work").exists());
    test.ralph(&["receipt", "a"])
        .exits(2)
        .complains("has not ended");
    test.ralph(&["verify", "a"])
        .exits(2)
        .complains("has not ended");
    fs::write(test.root().join("go-on"), "").unwrap();
    live.end();
}

/// Writes the receipt of a loop that has committed its work, and makes a clone. Returns the paths of
/// the two.
fn clone(test: &Test) -> (String, String) {
    let file = test.root().join("receipt.json").display().to_string();
    test.ralph(&["receipt", "a", "--output", &file]).exits(0);
    test.ralph(&["receipt", "a", "--output", &file])
        .exits(2)
        .complains("--force");
    let clone = test.root().join("clone").display().to_string();
    test.sh(&format!("git clone -q --no-local . {clone}"));
    (file, clone)
}

fn verify_in(test: &Test, clone: &str, args: &[&str]) -> Done {
    let mut command = test.ralph_command(&[&["verify"], args].concat());
    command.current_dir(clone).env_remove("CI");
    test.start_command(command).end()
}

#[test]
fn a_receipt_may_have_any_timeout() {
    let test = project();
    run(&test, FIX, &["--scm", "commit"]).exits(0);
    let (file, clone) = clone(&test);
    let mut receipt: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for timeout_s in [1e19, 1e300] {
        receipt["checks"][0]["timeout_s"] = timeout_s.into();
        fs::write(&file, receipt.to_string()).unwrap();
        verify_in(&test, &clone, &[&file, "--trust"])
            .exits(0)
            .says("✔ verified (done)");
    }
}

#[test]
fn a_receipt_is_verified_in_another_clone() {
    let test = project();
    run(&test, FIX_BOTH, &["--scm", "commit"]).exits(0);
    let (file, clone) = clone(&test);
    verify_in(&test, &clone, &[&file])
        .exits(2)
        .complains("sh tests/sum_test.sh")
        .complains("are not trusted")
        .complains("--trust");
    // What is checked out, and what the user has changed there, does not matter.
    test.sh(&format!(
        "cd {clone} && git checkout -q HEAD~1 && echo broken > sum.sh && touch extra"
    ));
    let before = test.sh(&format!(
        "cd {clone} && git status --porcelain && find .git -type f | sort"
    ));
    verify_in(&test, &clone, &[&file, "--trust"])
        .exits(0)
        .says("✔ verified (done)");
    let after = test.sh(&format!(
        "cd {clone} && git status --porcelain && find .git -type f | sort"
    ));
    assert_eq!(before, after);
    let left = fs::read_dir(test.state_dir().join("verify"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
    // A loop that did not commit its work is verified once its files are fetched.
    let test = project();
    run(&test, FIX_BOTH, &[]).exits(0);
    let (file, clone) = self::clone(&test);
    let refused = verify_in(&test, &clone, &[&file, "--trust"])
        .exits(2)
        .complains("does not have the files that the checks ran on");
    let reference = receipt(&test)["graded"]["ref"].as_str().unwrap().to_owned();
    assert!(
        refused.err.contains(&format!("git fetch PATH {reference}")),
        "{}",
        refused.err
    );
    test.sh(&format!("cd {clone} && git fetch -q origin {reference}"));
    verify_in(&test, &clone, &[&file, "--trust"])
        .exits(0)
        .says("verified");
}

#[test]
fn a_forged_receipt_differs() {
    let test = project();
    run(
        &test,
        "echo true > tests/sum_test.sh",
        &["--second-look", "never", "--scm", "commit"],
    )
    .exits(0);
    let (file, clone) = clone(&test);
    verify_in(&test, &clone, &[&file, "--trust"]).exits(0);
    let mut forged: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    // The claim that the original tests were green too.
    forged["touched"] = serde_json::json!({});
    fs::write(&file, forged.to_string()).unwrap();
    verify_in(&test, &clone, &[&file, "--trust"])
        .exits(1)
        .says("differs: was green, is red (exit 1)");
    forged["checks"][0]["result"]["exit"] = serde_json::json!({"code": 1});
    forged["checks"][0]["result"]["green"] = false.into();
    forged["guards"]["files"]["tests/sum_test.sh"] = "00".into();
    fs::write(&file, forged.to_string()).unwrap();
    verify_in(&test, &clone, &[&file, "--trust"])
        .exits(1)
        .says("were not as the receipt says: tests/sum_test.sh")
        .says("the original tests or settings are others");
}

/// Verifies a loop whose check runs until it is killed, if the file `pid.on` exists. Returns the
/// verification, and the ID of a process that the check has started.
fn start_verification(test: &Test) -> (Live, u32) {
    let pid = test.root().join("pid");
    if !test.loop_dir("a").exists() {
        let check = format!(
            "sh tests/sum_test.sh && if test -e {0}.on; then setsid sleep 1000 & echo $! > {0}.new && mv {0}.new {0}; wait; fi",
            pid.display()
        );
        run(test, FIX_BOTH, &["--check", &check]).exits(0);
    }
    fs::write(test.root().join("pid.on"), "").unwrap();
    let live = test.start(&["verify", "a"]);
    until("the check", || pid.exists());
    let sleeper = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    fs::remove_file(&pid).unwrap();
    fs::remove_file(test.root().join("pid.on")).unwrap();
    (live, sleeper)
}

/// Returns the process that runs the checks, not the one that waits for it.
fn child(test: &Test, live: &Live) -> u32 {
    let child = test.sh(&format!("ps -o pid= --ppid {}", live.pid()));
    child.trim().parse().unwrap()
}

#[test]
fn a_verification_whose_processes_are_all_killed_is_cleaned_up_by_the_next_command() {
    let test = project();
    for next in ["status", "verify", "rm"] {
        let (live, sleeper) = start_verification(&test);
        crate::kit::kill_together(&[live.pid(), child(&test, &live)]);
        live.end().exits(137);
        test.ralph(&[next, "a"])
            .exits(0)
            .complains("a verification of the loop \"a\" was killed; killed ");
        assert!(!alive(sleeper), "{next}");
        assert!(!test.loop_dir("a").join("verify").exists(), "{next}");
    }
}

#[test]
fn an_interrupted_verification_leaves_nothing() {
    for signal in ["INT", "KILL"] {
        let test = project();
        let (live, sleeper) = start_verification(&test);
        if signal == "INT" {
            live.signal("INT");
        } else {
            crate::kit::signal(child(&test, &live), "KILL");
        }
        live.end().exits(if signal == "INT" { 130 } else { 137 });
        until("its processes to exit", || !alive(sleeper));
        assert!(!test.loop_dir("a").join("verify").exists(), "{signal}");
        test.ralph(&["verify", "a"]).exits(0);
    }
}

#[test]
fn the_commands_of_a_receipt_run_after_a_yes_on_a_terminal() {
    let test = project();
    run(&test, FIX_BOTH, &["--scm", "commit"]).exits(0);
    let (file, _) = clone(&test);
    let live = test.start_on_terminal_with("CI=", &["verify", &file]);
    live.until_out("Run them?");
    live.type_in("n\n");
    live.end().exits(2);
    let live = test.start_on_terminal_with("CI=", &["verify", &file]);
    live.until_out("Run them?");
    live.type_in("y\n");
    live.end().exits(0).says("verified");
}

/// A run by a known agent, which fixes the code in its second iteration.
fn run_claude(test: &Test) -> Done {
    let run = ["run", "x", "--name", "a", "-m", "2", "--agent", "claude"];
    test.ralph(&[&run[..], &CHECK].concat())
}

/// An agent that counts how often it is started for its version, and prints its result as Claude
/// Code does.
const CLAUDE: &str = "#!/bin/sh
if test \"$*\" = --version; then echo v >> ../asked; ANSWER; exit; fi
cat > /dev/null
test -e ../again && echo 'echo $(($1 + $2))' > sum.sh
touch ../again
echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"<promise>COMPLETE</promise>\",\"total_cost_usd\":0.01}'
";

#[test]
fn a_receipt_names_the_versions_of_ralph_and_of_the_agent() {
    let test = project().on_path(
        "claude",
        &CLAUDE.replace("ANSWER", "echo '2.1.34 (Claude Code)'"),
    );
    run_claude(&test).exits(0);
    assert_eq!(test.read("../asked"), "v\n", "once, not in every iteration");
    let started = test.events("a", "started");
    assert_eq!(started.len(), 2);
    assert_eq!(started[0]["version"], "2.1.34");
    assert_eq!(started[1]["version"], Value::Null);
    let versions = &receipt(&test)["versions"];
    assert_eq!(versions["agent"], "2.1.34");
    assert_eq!(versions["ralph"], env!("CARGO_PKG_VERSION"));
    assert!(!test.loop_dir("a").join("version.log").exists());
}

#[test]
fn an_agent_that_does_not_tell_its_version_changes_nothing() {
    for answer in ["exit 3", "echo unknown"] {
        let test = project().on_path("claude", &CLAUDE.replace("ANSWER", answer));
        run_claude(&test)
            .exits(0)
            .says("done: every check is green");
        let versions = &receipt(&test)["versions"];
        assert_eq!(versions["agent"], Value::Null, "{versions}");
        assert_eq!(versions["ralph"], env!("CARGO_PKG_VERSION"));
    }
    // One that hangs, and ignores the request to end.
    let answer = "trap '' TERM; sleep 600 & wait";
    let test = project().on_path("claude", &CLAUDE.replace("ANSWER", answer));
    run_claude(&test).exits(0);
    assert_eq!(receipt(&test)["versions"]["agent"], Value::Null);
    // Other commands are not started for it: they might begin to work.
    let test = project().program("agent.sh", "#!/bin/sh\necho \"$*\" >> ../calls\n");
    test.ralph(&[&["run", "x", "-m", "1"][..], &CHECK, &["--", "./agent.sh"]].concat());
    assert_eq!(test.read("../calls"), "\n");
}
