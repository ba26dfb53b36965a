//! SCM tasks after green iterations: commits, pushes, and what is reported if they fail.

mod crash;
mod fail;
mod names;
mod start;

use crate::kit::{Done, Live, Test};

/// The arguments of a loop called `a` that commits, with a check that looks for `made`.
const RUN: [&str; 12] = [
    "run",
    "Make it.",
    "--name",
    "a",
    "--agent",
    "script:../agent.script",
    "--check",
    "test -f made",
    "--scm",
    "commit",
    "--backoff=5ms..10ms",
    "--until-green",
];

/// Creates the file that the check looks for.
const WRITES_MADE: &str = "iteration *\n write made\n  | yes\n";

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..], more].concat()
}

/// Like `args`, for a loop that needs a claim.
fn claiming<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..RUN.len() - 1], more].concat()
}

fn run(test: &Test, more: &[&str]) -> Done {
    test.ralph(&args(more))
}

fn start(test: &Test, more: &[&str]) -> Live {
    test.start(&args(more))
}

/// Returns the subjects of all commits, newest first.
fn subjects(test: &Test) -> Vec<String> {
    test.sh("git log --format=%s")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Adds a git hook to the repository in the workspace.
fn hook(test: Test, name: &str, script: &str) -> Test {
    test.program(
        &format!(".git/hooks/{name}"),
        &format!("#!/bin/sh\n{script}\n"),
    )
}

/// Adds a bare repository next to the workspace to push to.
fn with_remote(test: Test) -> Test {
    test.sh("git init -q --bare -b main ../remote.git && git remote add origin ../remote.git");
    test
}

fn remote_log(test: &Test) -> String {
    test.sh("git -C ../remote.git log --format=%s main 2>/dev/null || true")
}

#[test]
fn green_work_is_committed_with_the_agent_s_message_and_its_trailers() {
    let test = Test::git().script(
        "iteration 1\n write made\n  | yes\n write other\n  | x\n say <commit>Add what was asked\n say because\n say </commit>\n",
    );
    let done = run(&test, &[])
        .exits(0)
        .says("commit: 2 files (made, other) as ")
        .says("\"Add what was asked\" (");
    let id = test.sh("git rev-parse HEAD");
    assert!(done.out.contains(&id[..7]), "{}", done.out);
    let loop_id = test.journal("a")[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        test.sh("git log -1 --format=%B").trim_end(),
        format!("Add what was asked\n\nbecause\n\nRalph-Iteration: a 1\nRalph-Id: {loop_id}/1")
    );
    assert_eq!(
        test.sh("git log -1 --format='%(trailers:key=Ralph-Iteration,valueonly)'")
            .trim(),
        "a 1"
    );
    assert_eq!(test.sh("git status --porcelain"), "");
    assert!(test.prompt("a", 1).contains("<commit>"));
    let committed = &test.events("a", "committed")[0];
    assert_eq!(committed["report"]["commit"], id.trim());
    assert_eq!(committed["report"]["files"], 2);
    assert!(
        test.read(".ralph/task/a/progress.md")
            .contains("- SCM `commit`: 2 files (made, other) as ")
    );
    assert_eq!(test.status("a")["scm"][0]["commit"], id.trim());
    test.ralph(&["status", "a"])
        .exits(0)
        .says("SCM: commit — 2 files");
}

#[test]
fn without_a_message_the_subject_is_the_title_or_the_task() {
    let test = Test::git().script(WRITES_MADE).file("spec.md", "# Spec\n");
    run(&test, &["--prompt-file", "spec.md"]).exits(0);
    assert_eq!(subjects(&test)[0], "Make it.");
    let test = Test::git()
        .script(WRITES_MADE)
        .file("spec.md", "\n## The spec\n\nmore\n");
    test.ralph(&[&["run", "--prompt-file", "spec.md"], &RUN[2..]].concat())
        .exits(0);
    assert_eq!(subjects(&test)[0], "The spec");
}

#[test]
fn each_green_iteration_is_its_own_commit() {
    let test = Test::git().script(
        "iteration 1\n write made\n  | 1\n say <commit>One</commit>\niteration 2\n append made\n  | 2\n\
         iteration 3\n sh mv made moved; mkdir made\n say <commit>Red</commit>\n\
         iteration 4\n sh rmdir made; mv moved made\n append made\n  | 4\n promise SHIPPED\n",
    );
    test.ralph(&claiming(&["--promise", "SHIPPED"])).exits(0);
    assert_eq!(
        subjects(&test),
        ["Make it.", "Make it.", "One", "first"],
        "none of the red third"
    );
    let iterations =
        test.sh("git log --format='%(trailers:key=Ralph-Iteration,valueonly,separator=)'");
    assert_eq!(
        iterations.split_whitespace().collect::<Vec<_>>(),
        ["a", "4", "a", "2", "a", "1"]
    );
}

#[test]
fn nothing_is_committed_without_changes_or_without_checks() {
    let test = Test::git()
        .script("iteration 1\n say idle\niteration *\n promise COMPLETE\n")
        .file("made", "");
    test.sh("git add -A && git commit -q -m made");
    test.ralph(&claiming(&["--scm", "push"]))
        .exits(0)
        .says("nothing changed; skipped: commit, push");
    assert_eq!(subjects(&test), ["made", "first"]);
    assert!(
        test.events("a", "committed")
            .iter()
            .all(|line| line["report"]["skipped"] == "unchanged")
    );

    let test = Test::git().script("iteration *\n write made\n  | x\n promise COMPLETE\n");
    let args = [
        "run", "x", "--name", "a", "--agent", RUN[5], "--scm", "commit",
    ];
    test.ralph(&args)
        .exits(0)
        .complains("never runs: SCM tasks need green checks");
    assert_eq!(subjects(&test), ["first"]);
    assert!(test.events("a", "committed").is_empty());
}

#[test]
fn files_that_ralph_writes_are_never_staged() {
    let test = Test::git().file("deep/er/keep", "").file(".ralph/settings.json", "{}").script(
        "iteration 1\n write made\n  | x\n sh touch ../../outside; git add -f .ralph; git -C ../.. add -f .ralph\n",
    );
    test.sh("git add -A && git commit -q -m deep && echo '{ }' > .ralph/settings.json");
    let mut args = RUN;
    args[5] = "script:../../../agent.script";
    let mut command = test.ralph_command(&args);
    command.current_dir(test.workspace().join("deep/er")).args([
        "--here",
        "-c",
        "../../.ralph/settings.json",
    ]);
    let done = test
        .start_command(command)
        .end()
        .exits(0)
        .says("commit: 2 files (deep/er/made, outside)");
    assert_eq!(done.err, "", "what is ralph's own is not called dirty");
    assert_eq!(
        test.sh("git show --name-only --format= HEAD"),
        "deep/er/made\noutside\n"
    );
    assert_eq!(test.sh("git diff --cached --name-only"), "");
}

#[test]
fn a_state_directory_in_the_repository_is_not_committed() {
    let test = Test::git().script(WRITES_MADE);
    let mut command = test.ralph_command(&RUN);
    command.env("RALPH_STATE_DIR", test.workspace().join("state"));
    test.start_command(command)
        .end()
        .exits(0)
        .says("commit: 1 file (made)")
        .says("changed  1 file");
    assert_eq!(test.sh("git status --porcelain"), "");
}

#[test]
fn ralph_pushes_only_on_request() {
    let test = with_remote(Test::git().script(WRITES_MADE));
    run(&test, &[]).exits(0);
    assert_eq!(remote_log(&test), "");
    let test = with_remote(Test::git().script(WRITES_MADE));
    run(&test, &["--scm", "push -u origin 'main'"])
        .exits(0)
        .says("push -u origin 'main': done (");
    assert_eq!(remote_log(&test), "Make it.\nfirst\n");
}

#[test]
fn commits_made_by_the_agent_are_pushed_too() {
    let test = with_remote(
        Test::git().script("iteration 1\n sh touch made; git add made; git commit -q -m own\n"),
    );
    run(&test, &["--scm", "push origin HEAD"])
        .exits(0)
        .says("commit: nothing to commit")
        .says("push origin HEAD: done");
    assert_eq!(remote_log(&test), "own\nfirst\n");
    assert_eq!(subjects(&test), ["own", "first"]);
}

#[test]
fn a_repository_without_commits_gets_its_first_commit() {
    let test = Test::new().script(WRITES_MADE);
    test.sh("git init -q -b main");
    run(&test, &[]).exits(0).says("commit: 1 file (made) as ");
    assert_eq!(subjects(&test), ["Make it."]);
}

#[test]
fn commits_work_in_a_linked_worktree_and_a_submodule() {
    let test = Test::git();
    test.sh("git worktree add -q ../tree -b side");
    let script = test.root().join("agent.script");
    std::fs::write(script, WRITES_MADE).unwrap();
    let mut command = test.ralph_command(&RUN);
    command.current_dir(test.root().join("tree"));
    test.start_command(command).end().exits(0);
    assert_eq!(test.sh("git log --format=%s side"), "Make it.\nfirst\n");
    assert_eq!(subjects(&test), ["first"]);

    let test = Test::git().script("iteration 1\n sh touch made; echo x >> sub/README\n");
    test.sh("git init -q ../sub.git && cd ../sub.git && touch README && git add -A && git commit -q -m sub");
    test.sh("git -c protocol.file.allow=always submodule --quiet add ../sub.git sub && git commit -q -m sub");
    run(&test, &[]).exits(0).says("commit: 1 file (made)");
}

#[test]
fn events_and_dry_run_list_the_scm_tasks() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &["--dry-run"])
        .exits(0)
        .says("scm         git commit\n");
    let lines = run(&test, &["--json"]).exits(0).json_lines();
    let committed = lines
        .iter()
        .find(|line| line["event"] == "committed")
        .unwrap();
    assert_eq!(committed["report"]["paths"][0], "made");
}

#[test]
fn the_console_shows_each_starting_check_and_the_fail_action_of_a_red_one() {
    let test = Test::git().script("iteration 2\n write made\n  | x\n");
    run(&test, &["--on-fail", "prepend"])
        .exits(0)
        .says("a: checking `test -f made`\n")
        .says("preflight check `test -f made`: red (exit 1, ")
        .says("); its output comes first in the next prompt\n");
}

#[test]
fn a_commit_with_options_stages_everything_and_has_a_message() {
    let script =
        "iteration 1\n write made\n  | yes\n say <commit>Add it</commit>\n promise COMPLETE\n";
    for (task, subject) in [
        ("commit --no-verify --signoff", "Add it"),
        ("commit -m 'Make \"it\"' --no-verify -s", "Make \"it\""),
        ("commit --message=Made --no-verify --signoff", "Made"),
    ] {
        let test = hook(Test::git().script(script), "pre-commit", "exit 1");
        let mut args = args(&[]);
        let at = args.iter().position(|arg| *arg == "commit").unwrap();
        args[at] = task;
        let done = test.ralph(&args).exits(0);
        assert!(done.out.contains("1 file (made) as "), "{}", done.out);
        assert_eq!(subjects(&test), [subject, "first"], "{task}");
        let body = test.sh("git log -1 --format=%B");
        assert!(body.contains("\nRalph-Iteration: a 1\n"), "{body}");
        assert!(body.contains("\nSigned-off-by: tester <"), "{body}");
        assert_eq!(test.sh("git status --porcelain"), "", "{task}");
        let asks = test.prompt("a", 1).contains("<commit>");
        assert_eq!(asks, subject == "Add it", "{task}");
    }
}
