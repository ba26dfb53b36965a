//! Work that is not where it is expected: in nested repositories and submodules, on other branches,
//! or merged without its commits.

use super::place;
use crate::kit::{Done, Test};

/// Runs one iteration of this shell script in a worktree.
fn run(test: &Test, name: &str, agent: &str, more: &[&str]) -> Done {
    let args = ["run", "Make it.", "--name", name, "--worktree", "-m", "1"];
    let promise = ["--no-promise", "--", "sh", "-c", agent];
    test.ralph(&[&args[..], more, &promise].concat())
}

#[track_caller]
fn refused(test: &Test, name: &str, error: &str, hint: &str) {
    let done = test.ralph(&["rm", name, "--worktree"]).exits(2);
    let done = done.complains(error).complains(hint);
    assert!(place(test, name).exists(), "{done:?}");
    assert!(test.loop_dir(name).exists(), "{done:?}");
}

const MAKES_NESTED: &str =
    "mkdir app; cd app; git init -q; echo code > main.py; git add .; git commit -q -m init";

#[test]
fn a_nested_repository_is_reported_and_not_removed() {
    let test = Test::git();
    run(&test, "a", &format!("touch beside; {MAKES_NESTED}"), &[])
        .exits(0)
        .says("worktree commit: 1 file (beside) as ")
        .says("; nested repository app: no commit contains its files")
        .says("  unsaved  nested repository app: no commit contains its files");
    let report = &test.events("a", "committed")[0]["report"];
    assert_eq!(report["elsewhere"]["nested"][0], "app");
    assert_eq!(test.status("a")["elsewhere"]["nested"][0], "app");
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Unsaved: nested repository app: no commit contains its files\n");
    test.sh("git merge -q ralph/a && test ! -e app");
    refused(
        &test,
        "a",
        "would lose work: the nested repository app (1 commit)\n",
        "push or copy the nested repositories in ",
    );
    test.ralph(&["rm", "a", "--worktree", "--force"]).exits(0);
    assert!(!place(&test, "a").exists());
}

#[test]
fn a_nested_repository_that_the_agent_committed_is_reported_and_not_removed() {
    let test = Test::git();
    let agent = format!("({MAKES_NESTED}); git add -A; git commit -q -m all");
    run(&test, "a", &agent, &[])
        .exits(0)
        .says("[ralph] a: nested repository app: no commit contains its files\n");
    test.sh("git merge -q ralph/a");
    refused(
        &test,
        "a",
        "the nested repository app (1 commit)",
        "--force",
    );
    // Without its `.git`, git no longer looks at the files.
    let test = Test::git();
    run(&test, "b", &format!("{agent}; rm -rf app/.git; true"), &[])
        .exits(0)
        .says("nested repository app: no commit contains its files");
    refused(
        &test,
        "b",
        "the nested repository app (uncommitted files)",
        "--force",
    );
}

#[test]
fn the_agent_can_follow_the_note_about_a_nested_repository() {
    let test = Test::git();
    let agent = format!(
        "if test -e app; then
           sed -n 's/.*run `\\(rm -rf app.*unmatch app\\)`.*/\\1/p' > ../note; sh -e ../note
         else {MAKES_NESTED}; fi"
    );
    for (name, agent) in [
        ("a", agent.clone()),
        (
            "b",
            agent.replace(
                "git init -q;",
                "git init -q; git -C .. commit -q --allow-empty -m own;",
            ),
        ),
        (
            "c",
            format!("{agent}; cd $RALPH_WORKSPACE; git add -A; git commit -q -m all || true"),
        ),
    ] {
        test.ralph(&[
            "run",
            "Make it.",
            "--name",
            name,
            "--worktree",
            "-m",
            "2",
            "--no-promise",
            "--",
            "sh",
            "-c",
            &agent,
        ])
        .exits(0);
        assert!(
            test.prompt(name, 2)
                .contains("`app` is a git repository of its own inside this one"),
            "{name}"
        );
        let files = test.sh(&format!("git ls-tree -r --name-only ralph/{name}"));
        assert_eq!(files, "README\napp/main.py\n", "{name}");
        assert_eq!(test.status(name)["elsewhere"], serde_json::Value::Null);
    }
}

#[test]
fn a_clone_whose_commits_are_on_its_remote_may_be_removed() {
    let test = Test::git();
    run(
        &test,
        "a",
        "git clone -q $PWD/.git/../../../../shop lib 2>&1 || git clone -q ../../../shop lib",
        &[],
    )
    .exits(0);
    assert!(place(&test, "a").join("lib/README").exists());
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
    run(
        &test,
        "b",
        "git clone -q ../../../shop lib; touch lib/new",
        &[],
    )
    .exits(0);
    refused(
        &test,
        "b",
        "the nested repository lib (uncommitted files)",
        "--force",
    );
}

#[test]
fn a_nested_repository_that_was_there_before_is_left_alone() {
    let test = Test::git();
    test.sh(MAKES_NESTED);
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "--check",
        "test -f made",
        "--scm",
        "commit",
        "--promise",
        "OK",
        "-m",
        "2",
        "--",
        "sh",
        "-c",
        "touch made; echo '<promise>OK</promise>'",
    ])
    .exits(0)
    .says("commit: 1 file (made) as ");
    assert_eq!(test.sh("git status --porcelain"), "?? app/\n");
    assert_eq!(test.status("a")["elsewhere"], serde_json::Value::Null);
}

#[test]
fn work_on_another_branch_is_named_where_it_is() {
    let test = Test::git();
    let agent = "git checkout -q -b other; echo x > made";
    let place = place(&test, "a");
    run(&test, "a", agent, &[])
        .exits(0)
        .says("; the agent switched from ralph/a to other\n")
        .says(&format!(
            "  worktree {} on other (the agent switched from ralph/a to other)\n",
            place.display()
        ))
        .says("  inspect  git diff main...other\n  merge    git merge other\n");
    assert_eq!(test.status("a")["branch"], "other");
    let finished = &test.events("a", "finished")[0];
    assert_eq!(finished["branch"], "other");
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Merge: git merge other\n");
    test.ralph(&["rm", "a", "--worktree"])
        .exits(0)
        .says("kept the branch other, to which the agent had switched\n")
        .says("its branch ralph/a (was ");
    test.sh("git merge -q other && test -f made");
    // Work on both branches.
    let agent = "echo 1 > one; git add one; git commit -q -m one; git checkout -q -b fresh main; echo 2 > two";
    run(&test, "b", agent, &["-q"]).exits(0).says(
        " on fresh (the agent switched from ralph/b to fresh; 1 commit on ralph/b not included)\n",
    );
    refused(&test, "b", "would lose work: 1 commit\n", "git merge fresh");
    // A detached HEAD.
    run(&test, "c", "git checkout -q --detach; echo 3 > three", &[])
        .exits(0)
        .says("; the agent detached HEAD from ralph/c\n");
    let commit = test.events("c", "committed")[0]["report"]["commit"].clone();
    assert_eq!(test.status("c")["branch"], commit);
    refused(
        &test,
        "c",
        "would lose work: 1 commit\n",
        &format!("git merge {}", commit.as_str().unwrap()),
    );
}

#[test]
fn squashed_and_cherry_picked_work_may_be_removed() {
    let test = Test::git();
    let agent = "for n in 1 2; do echo $n > $RALPH_LOOP$n; git add -A; git commit -q -m $n; done";
    for name in ["a", "b", "c", "d", "e"] {
        run(&test, name, agent, &[]).exits(0);
    }
    refused(
        &test,
        "a",
        "would lose work: 2 commits\n",
        "git merge ralph/a",
    );
    test.sh("git merge -q --squash ralph/a && git commit -q -m squashed && echo more >> README && git commit -q -a -m later");
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
    test.sh("git cherry-pick main..ralph/b >/dev/null");
    test.ralph(&["rm", "b", "--worktree"]).exits(0);
    test.sh("git cherry-pick ralph/c >/dev/null");
    refused(
        &test,
        "c",
        "would lose work: 2 commits\n",
        "git merge ralph/c",
    );
    test.sh("git merge -q --squash ralph/d && git commit -q -m squashed && git revert --no-edit HEAD >/dev/null");
    refused(
        &test,
        "d",
        "would lose work: 2 commits\n",
        "git merge ralph/d",
    );
    // Commits that cancel each other out are in no other branch, although merging them changes
    // nothing.
    test.sh(&format!(
        "cd '{}' && git rm -q e1 e2 && git commit -q -m undo",
        place(&test, "e").display()
    ));
    refused(
        &test,
        "e",
        "would lose work: 3 commits\n",
        "git merge ralph/e",
    );
}

/// Adds a submodule called `lib`.
fn with_submodule() -> Test {
    let test = Test::git();
    test.sh("git init -q ../lib.git && cd ../lib.git && touch README && git add -A && git commit -q -m lib");
    test.sh("git -c protocol.file.allow=always submodule --quiet add ../lib.git lib && git commit -q -m lib");
    test
}

#[test]
fn work_in_a_submodule_is_named_and_not_removed() {
    let test = with_submodule();
    let agent = "git -c protocol.file.allow=always submodule --quiet update --init; echo x >> lib/README; touch lib/new";
    run(&test, "a", agent, &[])
        .exits(0)
        .says("[ralph] a: submodule lib: uncommitted changes inside\n")
        .says("  changed  2 files +1 −0: lib/README, lib/new\n")
        .says("  unsaved  submodule lib: uncommitted changes inside\n");
    refused(
        &test,
        "a",
        "would lose work: 1 uncommitted file (lib)",
        "--force",
    );
    test.ralph(&[
        "run",
        "x",
        "--name",
        "b",
        "--worktree",
        "-m",
        "2",
        "--no-promise",
        "--",
        "sh",
        "-c",
        agent,
    ])
    .exits(0);
    assert!(
        test.prompt("b", 2)
            .contains("The submodule `lib` has uncommitted changes."),
        "{}",
        test.prompt("b", 2)
    );
    // A commit inside the submodule moves its HEAD, which the worktree's commit records.
    let commits = format!("{agent}; cd lib; git add -A; git commit -q -m inside");
    run(&test, "c", &commits, &[])
        .exits(0)
        .says("worktree commit: 1 file (lib) as ");
    assert_eq!(test.status("c")["elsewhere"], serde_json::Value::Null);
    test.sh("git merge -q ralph/c");
    test.ralph(&["rm", "c", "--worktree"])
        .exits(2)
        .complains("it contains submodules");
}

#[test]
fn files_in_a_submodule_that_is_not_checked_out_are_named_and_not_removed() {
    let test = with_submodule();
    run(&test, "a", "touch lib/new", &[])
        .exits(0)
        .says("  unsaved  submodule lib: uncommitted changes inside\n");
    refused(
        &test,
        "a",
        "would lose work: 1 uncommitted file (lib)",
        "--force",
    );
}

#[test]
fn changes_in_a_submodule_count_without_a_worktree_too() {
    let test = with_submodule();
    test.sh("echo before >> lib/README");
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "--check",
        "true",
        "--scm",
        "commit",
        "--no-preflight",
        "-m",
        "1",
        "--promise",
        "OK",
        "--",
        "sh",
        "-c",
    ];
    let touches = "touch lib/new; echo '<promise>OK</promise>'";
    test.ralph(&[&args[..], &[touches]].concat())
        .exits(0)
        .says("  changed  1 file +0 −0: lib/new\n");
    assert_eq!(
        test.status("a")["elsewhere"],
        serde_json::Value::Null,
        "the submodule was dirty before"
    );
    test.sh("cd lib && git add -A && git commit -q -m clean && cd .. && git commit -q -a -m lib");
    test.ralph(
        &[
            &args[..],
            &["echo more >> lib/README; echo '<promise>OK</promise>'"],
        ]
        .concat(),
    )
    .exits(0)
    .says("commit: nothing to commit; submodule lib: uncommitted changes inside\n");
}
