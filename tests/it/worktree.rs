//! Worktrees: where the work goes, what stays unchanged, and when a worktree is refused.

mod crash;
mod elsewhere;
mod locks;
mod refuse;

use crate::kit::{Done, Test, until};
use std::path::PathBuf;

/// The arguments of a loop called `a` in a worktree, with a check that looks for `made`.
const RUN: [&str; 11] = [
    "run",
    "Make it.",
    "--name",
    "a",
    "--worktree",
    "--agent",
    "script:../agent.script",
    "--check",
    "test -f made",
    "--backoff=5ms..10ms",
    "--until-green",
];

/// Creates the file that the check looks for.
const WRITES_MADE: &str = "iteration *\n write made\n  | yes\n";

/// Returns the arguments for a loop that needs a claim.
fn claiming() -> &'static [&'static str] {
    &RUN[..RUN.len() - 1]
}

fn run(test: &Test, more: &[&str]) -> Done {
    test.ralph(&[&RUN[..], more].concat())
}

fn place(test: &Test, name: &str) -> PathBuf {
    test.state_dir().join("worktrees").join(name)
}

/// Returns the commit subjects of a branch, newest first.
fn subjects(test: &Test, branch: &str) -> Vec<String> {
    test.sh(&format!("git log --format=%s {branch}"))
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Returns everything in the user's checkout that must not change.
fn checkout_state(test: &Test) -> String {
    test.sh(
        "git for-each-ref --format='%(refname) %(objectname)' --exclude='refs/heads/ralph/**' --exclude=refs/heads/side --exclude='refs/ralph/**'
         git stash list; cat .git/HEAD .git/config; export GIT_OPTIONAL_LOCKS=0; stat -c '%Y %Z %s %i' .git/index; sha256sum .git/index
         find . -path ./.git -prune -o -printf '%p %T@ %s %i\\n' | sort; git status --porcelain",
    )
}

#[test]
fn work_is_committed_in_the_worktree_and_the_checkout_is_unchanged() {
    let test = Test::git().file("deep/kept", "1\n").script(
        "iteration 1\n write draft\n  | x\n say <commit>Draft it</commit>\n exit 1\n\
         iteration 2\n write made\n  | yes\n append README\n  | more\n",
    );
    test.sh("git add -A && git commit -q -m deep && echo stashed >> README && git stash -q");
    test.sh(
        "echo staged > staged && git add staged && echo dirty >> README && echo new > untracked",
    );
    let before = checkout_state(&test);
    let done = run(&test, &[])
        .exits(0)
        .complains("the worktree will not contain your uncommitted changes: 3 files (README, staged, untracked)")
        .says("worktree commit: 1 file (draft) as ")
        .says("worktree commit: 2 files (README, made) as ")
        .says("  inspect  git diff main...ralph/a\n  merge    git merge ralph/a\n  remove   ralph rm a --worktree\n");
    let place = place(&test, "a");
    assert!(
        done.out
            .contains(&format!("  worktree {} on ralph/a\n", place.display())),
        "{}",
        done.out
    );
    assert_eq!(checkout_state(&test), before);
    assert_eq!(
        subjects(&test, "ralph/a"),
        ["Make it.", "Draft it", "deep", "first"]
    );
    let loop_id = test.journal("a")[0]["id"].as_str().unwrap().to_owned();
    let last = test.sh("git log -1 --format=%B ralph/a");
    assert_eq!(
        last.trim_end(),
        format!("Make it.\n\nRalph-Iteration: a 2\nRalph-Id: {loop_id}/2")
    );
    assert_eq!(
        test.sh(&format!("git -C '{}' status --porcelain", place.display())),
        ""
    );
    assert_eq!(
        std::fs::read_to_string(place.join("README")).unwrap(),
        "a project\nmore\n",
        "not the dirty one"
    );

    let status = test.status("a");
    assert_eq!(status["worktree"], place.to_str().unwrap());
    assert_eq!(
        (&status["workspace"], &status["branch"]),
        (&status["worktree"], &"ralph/a".into())
    );
    assert_eq!(
        test.events("a", "finished")[0]["worktree"],
        status["worktree"]
    );
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Worktree: ")
        .says("Inspect: git diff main...ralph/a\nMerge: git merge ralph/a\nRemove: ralph rm a --worktree\n");
    let prompt = test.prompt("a", 2);
    assert!(
        prompt.contains("+++ b/draft") && !prompt.contains("untracked"),
        "{prompt}"
    );
    assert!(
        prompt.contains("what you leave uncommitted is committed for you"),
        "{prompt}"
    );
    let progress = std::fs::read_to_string(place.join(".ralph/task/a/progress.md")).unwrap();
    assert!(
        progress.contains("- Worktree: 2 files (README, made) as "),
        "{progress}"
    );
    // The commands in the summary work.
    test.sh("git stash -q --include-untracked && git diff --quiet main...ralph/a || git merge -q ralph/a && test -f made");
}

#[test]
fn the_workspace_is_the_same_subdirectory_in_the_worktree() {
    let test = Test::git()
        .file("deep/er/kept", "")
        .file("deep/new/only", "")
        .script(WRITES_MADE);
    test.sh("git add deep/er && git commit -q -m deep");
    for (at, name) in [("deep/er", "a"), ("deep/new", "b")] {
        let args = [
            "run",
            "x",
            "--name",
            name,
            "--worktree",
            "--here",
            "--check",
            "test -f made",
            "--until-green",
            "--agent",
        ];
        let mut command =
            test.ralph_command(&[&args[..], &["script:../../../agent.script"]].concat());
        command.current_dir(test.workspace().join(at));
        test.start_command(command).end().exits(0);
        assert_eq!(
            test.status(name)["workspace"],
            place(&test, name).join(at).to_str().unwrap()
        );
        assert!(
            test.sh(&format!("git show --name-only --format= ralph/{name}"))
                .contains(&format!("{at}/made"))
        );
    }
}

#[test]
fn uncommitted_prompt_and_settings_files_are_read_from_the_checkout() {
    let test = Test::git()
        .script("iteration *\n sh cp ../../../agent.script . ; test -e made || touch made\n")
        .file("spec.md", "Mend the roof.\n")
        .file(".ralph/template.md", "own words: {{task}}\n")
        .file(
            ".ralph/settings.json",
            r#"{"checks": ["test -f made"], "untilGreen": true, "worktree": true}"#,
        );
    test.ralph(&[
        "run",
        "--name",
        "a",
        "--prompt-file",
        "spec.md",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    assert_eq!(test.prompt("a", 1), "own words: Mend the roof.\n");
    assert_eq!(
        test.status("a")["prompt_file"],
        test.workspace().join("spec.md").to_str().unwrap()
    );
    assert!(!place(&test, "a").join("spec.md").exists());
    test.ralph(&[
        "run",
        "x",
        "--name",
        "b",
        "--worktree=false",
        "--check",
        "true",
        "-m",
        "1",
        "--no-promise",
        "--",
        "true",
    ])
    .exits(0);
    assert_eq!(
        test.status("b")["worktree"],
        serde_json::Value::Null,
        "a flag turns it off"
    );
}

#[test]
fn a_branch_can_be_named_and_an_existing_one_is_continued() {
    let test = Test::git().script(WRITES_MADE);
    let named = |name: &str| {
        test.ralph(&[&["run", "x", "--name", name, "--worktree=side"], &RUN[5..]].concat())
    };
    named("a").exits(0).says("git diff main...side");
    assert_eq!(subjects(&test, "side"), ["x", "first"]);
    named("b")
        .exits(2)
        .complains("the branch side is checked out in ")
        .complains("/worktrees/a");
    test.ralph(&["rm", "a", "--worktree", "--force"])
        .exits(0)
        .says("branch side (was ");
    test.sh("git branch side && git checkout -q side && echo own > own && git add own && git commit -q -m own && git checkout -q main");
    named("b").exits(0);
    assert_eq!(
        subjects(&test, "side"),
        ["x", "own", "first"],
        "it begins where the branch was"
    );
    test.ralph(&["rm", "b", "--worktree"])
        .exits(0)
        .says("kept the branch side: it existed before the loop");
    assert_eq!(subjects(&test, "side"), ["x", "own", "first"]);
}

#[test]
fn a_default_name_is_one_that_no_worktree_or_branch_has() {
    let test = Test::git().script(WRITES_MADE);
    test.sh("git branch ralph/shop-1");
    std::fs::create_dir_all(place(&test, "shop-2")).unwrap();
    let args = [&["run", "x", "--worktree"], &RUN[5..]].concat();
    test.ralph(&args).exits(0).says("ralph/shop-3");
    test.ralph(&args).exits(0).says("ralph/shop-4");
    assert_eq!(subjects(&test, "ralph/shop-1"), ["first"]);
    let args = [&["run", "x", "--worktree=side"], &RUN[5..]].concat();
    test.ralph(&args)
        .exits(0)
        .says("/worktrees/shop-1 on side\n");
}

#[test]
fn worktrees_work_from_another_worktree_and_from_a_detached_head() {
    let test = Test::git().script(WRITES_MADE);
    test.sh("git worktree add -q ../tree -b feature && cd ../tree && echo f > f && git add f && git commit -q -m feature");
    let mut command = test.ralph_command(&RUN);
    command.current_dir(test.root().join("tree"));
    test.start_command(command)
        .end()
        .exits(0)
        .says("git diff feature...ralph/a");
    assert_eq!(subjects(&test, "ralph/a"), ["Make it.", "feature", "first"]);
    test.sh("git checkout -q --detach");
    let first = test.sh("git rev-parse HEAD");
    let args = [&["run", "x", "--name", "b", "--worktree"], &RUN[5..]].concat();
    test.ralph(&args)
        .exits(0)
        .says(&format!("git diff {}...ralph/b", &first[..7]));
}

#[test]
fn a_rejected_commit_loses_no_work_and_does_not_end_the_loop() {
    let test = Test::git().program(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ntest -f linted || { echo 'lint: linted is missing'; exit 1; }\n",
    );
    let test = test.script(
        "iteration 1\n write one\n  | x\n say <commit>One</commit>\niteration 2\n write linted\n  | x\n write made\n  | x\n",
    );
    run(&test, &[])
        .exits(0)
        .says("worktree commit: failed (exit 1, ")
        .says("; the work stays uncommitted, and ralph tries again after the next iteration\n")
        .says("  | lint: linted is missing\n")
        .says("worktree commit: 3 files (linted, made, one)");
    assert!(
        test.prompt("a", 2).contains("lint: linted is missing"),
        "{}",
        test.prompt("a", 2)
    );
    assert_eq!(subjects(&test, "ralph/a"), ["One", "first"]);

    let test = Test::git().program(
        ".git/hooks/pre-commit",
        "#!/bin/sh\necho 'lint: never'; exit 1\n",
    );
    let test = test.script(WRITES_MADE);
    run(&test, &[])
        .exits(0)
        .says("  unsaved  the work of iteration 1 is not committed: lint: never\n");
    test.ralph(&["status", "a"])
        .says("Unsaved: the work of iteration 1 is not committed: lint: never\n");
    assert!(place(&test, "a").join("made").exists());
    test.ralph(&["rm", "a", "--worktree"])
        .exits(2)
        .complains("1 uncommitted file (made)");
    let test = test.file("x", "");
    let args = [
        &["run", "x", "--name", "b", "--quiet", "--worktree"],
        &RUN[5..],
    ]
    .concat();
    test.ralph(&args)
        .exits(0)
        .says("/worktrees/b on ralph/b\n")
        .says("not committed: lint: never\n");
}

#[test]
fn scm_tasks_run_in_a_worktree_and_a_push_includes_its_commits() {
    let test =
        Test::git().script("iteration 1\n write one\n  | x\niteration 2\n write made\n  | x\n");
    test.sh("git init -q --bare ../remote.git && git remote add origin \"$PWD/../remote.git\"");
    run(&test, &["--scm", "commit", "--scm", "push origin HEAD"])
        .exits(0)
        .says("worktree commit: 1 file (one)")
        .says("a: commit: 1 file (made)")
        .says("push origin HEAD: done");
    let pushed = |name: &str| {
        test.sh(&format!(
            "git -C ../remote.git log --format=%s ralph/{name}"
        ))
    };
    assert_eq!(pushed("a"), "Make it.\nMake it.\nfirst\n");
    let args = [
        &[
            "run",
            "x",
            "--name",
            "b",
            "--worktree",
            "--scm",
            "push origin HEAD",
        ],
        &RUN[5..],
    ]
    .concat();
    test.ralph(&args).exits(0).says("push origin HEAD: done");
    assert_eq!(pushed("b"), "x\nx\nfirst\n");
    let lines: Vec<_> = test
        .events("b", "committed")
        .iter()
        .map(|line| line["task"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [1, 1, 0]);
}

#[test]
fn nothing_is_committed_if_the_agent_commits_itself() {
    let test =
        Test::git().script("iteration 1\n sh touch made; git add made; git commit -q -m own\n");
    let done = run(&test, &[]).exits(0);
    assert!(!done.out.contains("worktree commit"), "{}", done.out);
    assert_eq!(subjects(&test, "ralph/a"), ["own", "first"]);
}

#[test]
fn worktrees_work_with_submodules_filters_and_a_sparse_checkout() {
    let test = Test::git()
        .script(WRITES_MADE)
        .file("wide/far", "")
        .file("near", "");
    test.sh("git init -q ../sub.git && cd ../sub.git && touch README && git add -A && git commit -q -m sub");
    test.sh("git -c protocol.file.allow=always submodule --quiet add ../sub.git sub && git add -A && git commit -q -m sub");
    run(&test, &[])
        .exits(0)
        .complains("submodules are not checked out in the worktree; to check them out: git -C ")
        .complains("submodule update --init --recursive");
    test.ralph(&["rm", "a", "--worktree", "--force"]).exits(0);
    // A clean and smudge filter, as in git-lfs; and a hook that prints a complaint after the
    // checkout.
    test.sh(
        "git config filter.swap.smudge 'tr a-z A-Z' && git config filter.swap.clean 'tr A-Z a-z'",
    );
    test.sh("echo '*.big filter=swap' > .gitattributes && echo HELLO > x.big && git add -A && git commit -q -m big");
    let test = test.program(
        ".git/hooks/post-checkout",
        "#!/bin/sh\ntouch hooked; echo 'fatal: no cache' >&2; exit 3\n",
    );
    test.sh("git sparse-checkout set --no-cone /near /x.big /.gitattributes");
    let _ = run(&test, &[])
        .exits(0)
        .complains("git created the worktree but reported errors")
        .complains("no cache");
    let place = place(&test, "a");
    assert_eq!(
        std::fs::read_to_string(place.join("x.big")).unwrap(),
        "HELLO\n"
    );
    assert!(
        test.sh("git show --name-only --format= ralph/a")
            .contains("hooked\nmade\n")
    );
    assert_eq!(
        test.sh("git ls-tree -r --name-only ralph/a | grep wide"),
        "wide/far\n",
        "nothing was deleted"
    );
}

#[test]
fn a_dry_run_describes_the_worktree_and_creates_nothing() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &["--dry-run"])
        .exits(0)
        .says("worktree    a new one on branch ralph/a\n");
    assert!(
        !test.state_dir().join("worktrees").exists()
            && test.sh("git branch --list 'ralph/*'").is_empty()
    );
    let lines = run(&test, &["--json"]).exits(0).json_lines();
    assert_eq!(
        lines.last().unwrap()["worktree"],
        place(&test, "a").to_str().unwrap()
    );
    let plan = &test.journal("a")[0]["plan"]["worktree"];
    assert_eq!(
        (&plan["branch"], &plan["base_branch"]),
        (&"ralph/a".into(), &"main".into())
    );
    assert_eq!(plan["from"], test.workspace().to_str().unwrap());
}

#[test]
fn notify_gets_the_worktree_s_path() {
    let test = Test::git().script(WRITES_MADE);
    run(&test, &["--notify", "cat > ../../../told.json"]).exits(0);
    let told: serde_json::Value = serde_json::from_str(&test.read("../told.json")).unwrap();
    assert_eq!(told["worktree"], place(&test, "a").to_str().unwrap());
}

#[test]
fn a_background_loop_can_have_a_worktree_too() {
    let test = Test::git().script(WRITES_MADE);
    test.sh("echo dirty >> README");
    let args = [
        &["spawn", "x", "--name", "a", "--no-tmux", "--worktree"],
        &RUN[5..],
    ]
    .concat();
    test.ralph(&args)
        .exits(0)
        .complains("the worktree will not contain your uncommitted changes: 1 file (README)")
        .says("spawned a ");
    until("its end", || test.status("a")["status"] == "done");
    assert_eq!(subjects(&test, "ralph/a"), ["x", "first"]);
    until("its supervisor's end", || test.survivors().is_empty());
    test.sh("git merge -q ralph/a");
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
}
