//! Commands in a subdirectory of a repository, and loops whose workspaces overlap.

use crate::kit::{Done, Live, Test, until};

const WAITS: &str = "iteration *\n sh touch here; until test -e go; do sleep 0.01; done\n";

/// A repository with a directory `deep/er`, and settings at its top.
fn test() -> Test {
    let test = Test::git()
        .script("iteration *\n sh pwd > where\n say <promise>COMPLETE</promise>\n")
        .file(".ralph/settings.toml", "maxIterations = 7\n")
        .file("deep/er/task.md", "Mend the roof.\n");
    test.sh("git add -A && git commit -q -m deep");
    test
}

fn start_in(test: &Test, dir: &str, args: &[&str]) -> Live {
    let mut command = test.ralph_command(args);
    command.current_dir(test.workspace().join(dir));
    test.start_command(command)
}

fn run_in(test: &Test, dir: &str, args: &[&str]) -> Done {
    start_in(test, dir, args).end()
}

/// Returns the line that names the workspace.
fn note(test: &Test) -> String {
    format!(
        "ralph: note: the workspace is the top of the repository, {}; --here stays in deep/er",
        test.workspace().canonicalize().unwrap().display()
    )
}

#[test]
fn a_loop_in_a_subdirectory_works_at_the_top_with_its_settings() {
    let test = test();
    let agent = "script:../../../agent.script";
    let args = ["run", "--name", "a", "--prompt-file", "task.md", "--agent"];
    let done = run_in(&test, "deep/er", &[&args[..], &[agent]].concat()).exits(0);
    assert_eq!(done.err, format!("{}\n", note(&test)));
    let status = test.status("a");
    let top = test.workspace().canonicalize().unwrap();
    assert_eq!(status["workspace"], top.to_str().unwrap());
    assert_eq!(status["max_iterations"], 7);
    assert!(test.prompt("a", 1).contains("Mend the roof."));
    assert_eq!(test.read("where").trim(), top.to_str().unwrap());
}

#[test]
fn here_stays_in_the_current_directory_with_its_own_settings() {
    let test = test().file("deep/er/.ralph/settings.toml", "maxIterations = 3\n");
    let args = ["run", "x", "--here", "--name", "a", "--agent"];
    let agent = "script:../../../agent.script";
    let done = run_in(&test, "deep/er", &[&args[..], &[agent]].concat()).exits(0);
    assert_eq!(done.err, "");
    assert_eq!(test.status("a")["max_iterations"], 3);
    let here = test.workspace().canonicalize().unwrap().join("deep/er");
    assert_eq!(test.read("deep/er/where").trim(), here.to_str().unwrap());
}

#[test]
fn settings_that_do_not_apply_are_named() {
    let test = test().file("deep/.ralph/settings.toml", "maxIterations = 3\n");
    let done = run_in(&test, "deep/er", &["config"]).exits(0);
    let expected = format!("{} and uses the settings in deep/.ralph\n", note(&test));
    assert_eq!(done.err, expected);
    assert!(done.out.contains("maxIterations"), "{done:?}");
    let here = run_in(&test, "deep", &["config", "--here", "--json"]).exits(0);
    let rows: serde_json::Value = serde_json::from_str(&here.out).unwrap();
    assert_eq!(rows["maxIterations"]["value"], 3);
    assert_eq!(here.err, "");
}

#[test]
fn paths_and_programs_are_relative_to_the_current_directory() {
    let test = test().program(
        "deep/er/agent",
        "#!/bin/sh\ntouch deep/er/finished; echo working\n",
    );
    let args = ["run", "x", "--name", "a", "--done-file", "finished"];
    let config = ["-c", "mine.toml", "--", "./agent"];
    test.write("deep/er/mine.toml", "maxIterations = 2\n");
    run_in(&test, "deep/er", &[&args[..], &config].concat()).exits(0);
    assert_eq!(test.status("a")["max_iterations"], 2);
    assert_eq!(test.status("a")["current_iteration"], 1);
}

#[test]
fn init_writes_at_the_top() {
    let test = test();
    test.sh("rm .ralph/settings.toml");
    let done = run_in(&test, "deep/er", &["init"]).exits(0);
    assert_eq!(done.err, format!("{}\n", note(&test)));
    run_in(&test, "deep/er", &["init", "--settings"]).exits(0);
    for file in ["PROMPT.md", ".ralph/settings.toml"] {
        assert!(test.workspace().join(file).exists(), "{file}");
    }
    assert!(!test.workspace().join("deep/er/PROMPT.md").exists());
    run_in(&test, "deep/er", &["init", "--here"]).exits(0);
    assert!(test.workspace().join("deep/er/PROMPT.md").exists());
}

#[test]
fn doctor_inspects_the_top() {
    let test = test();
    for (args, path) in [
        (&["doctor", "--json"][..], ""),
        (&["doctor", "--json", "--here"], "/deep/er"),
    ] {
        let done = run_in(&test, "deep/er", args);
        let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let top = test.workspace().canonicalize().unwrap();
        let expected = format!("{}{path}", top.display());
        assert_eq!(report["workspace"]["path"], expected);
    }
}

#[test]
fn outside_a_repository_the_current_directory_is_the_workspace() {
    let test = Test::new().file("deep/er/file", "");
    let done = run_in(&test, "deep/er", &["config"]).exits(0);
    assert_eq!(done.err, "");
}

/// Asserts that a second loop in `second` is refused while one runs in `first`.
fn overlaps(first: &str, second: &str, place: &str) {
    let test = Test::git().script(WAITS).file("deep/er/file", "");
    let agent = format!("script:{}/agent.script", test.root().display());
    let args = ["--here", "--no-promise", "-m", "1", "--agent", &agent];
    let first = start_in(
        &test,
        first,
        &[&["run", "x", "--name", "a"], &args[..]].concat(),
    );
    until("the agent", || !test.events("a", "spawned").is_empty());
    let again = [&["run", "x", "--name", "b"], &args[..]].concat();
    run_in(&test, second, &again)
        .exits(2)
        .complains("the loop \"a\" is already running in ")
        .complains(place)
        .complains("--worktree")
        .complains("--share-workspace");
    assert!(!test.loop_dir("b").exists());
    let shared = start_in(
        &test,
        second,
        &[&again[..], &["--share-workspace"]].concat(),
    );
    until("the agent", || !test.events("b", "spawned").is_empty());
    test.ralph(&["stop", "a", "b"]).exits(0);
    first.end().exits(130);
    shared.end().exits(130);
}

#[test]
fn a_loop_below_the_workspace_of_a_running_one_is_refused() {
    overlaps(".", "deep/er", "which contains this workspace");
}

#[test]
fn a_loop_above_the_workspace_of_a_running_one_is_refused() {
    overlaps("deep/er", ".", "which is part of this workspace");
}

#[test]
fn a_loop_next_to_a_running_one_starts() {
    let test = Test::git()
        .script(WAITS)
        .file("deep/er/file", "")
        .file("deep/erx/file", "");
    let agent = format!("script:{}/agent.script", test.root().display());
    let args = ["--here", "--no-promise", "-m", "1", "--agent", &agent];
    let start = |name: &str, dir: &str| {
        let live = start_in(
            &test,
            dir,
            &[&["run", "x", "--name", name], &args[..]].concat(),
        );
        until("the agent", || !test.events(name, "spawned").is_empty());
        live
    };
    let live = [start("a", "deep/er"), start("b", "deep/erx")];
    test.ralph(&["stop", "a", "b"]).exits(0);
    for live in live {
        live.end().exits(130);
    }
}

#[test]
fn a_worktree_is_no_part_of_the_workspace_around_it() {
    let test = Test::git().script(WAITS);
    let agent = format!("script:{}/agent.script", test.root().display());
    let args = ["--no-promise", "-m", "1", "--agent", &agent];
    let outer = start_in(
        &test,
        "..",
        &[&["run", "x", "--name", "a"], &args[..]].concat(),
    );
    until("the agent", || !test.events("a", "spawned").is_empty());
    let inner = start_in(
        &test,
        ".",
        &[&["run", "x", "--name", "b", "--worktree"], &args[..]].concat(),
    );
    until("the agent", || !test.events("b", "spawned").is_empty());
    test.ralph(&["stop", "a", "b"]).exits(0);
    outer.end().exits(130);
    inner.end().exits(130);
}

#[test]
fn a_directory_that_the_repository_ignores_is_its_own_workspace() {
    let test = Test::git().file(".gitignore", "*\n");
    test.sh("mkdir -p project");
    let args = [
        "run",
        "--name",
        "a",
        "--until-green",
        "--check",
        "test -f made",
    ];
    let agent = ["--", "touch", "made"];
    let done = run_in(&test, "project", &[&args[..], &["x"], &agent].concat()).exits(0);
    assert!(!done.err.contains("the workspace is"), "{}", done.err);
    assert!(test.workspace().join("project/made").exists());
}
