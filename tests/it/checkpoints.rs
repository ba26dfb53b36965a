//! Checkpoints through the real binary: `ralph diff`, `ralph rewind`, the best iteration, and a
//! repository that is otherwise unchanged.

use crate::crash::crash;
use crate::kit::{Test, until};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// An agent that turns one check green in its second iteration, and spoils it in the third.
const AGENT: &str = "#!/bin/sh
echo \"iteration $RALPH_ITERATION\" >>notes
case $RALPH_ITERATION in
2) touch good ;;
3) rm good ; echo $RALPH_ITERATION >extra ;;
esac
";

const CHECKS: [&str; 4] = ["--check", "test -f good", "--check", "test -f never"];

fn worse() -> Test {
    let test = Test::git().program("agent.sh", AGENT);
    test.sh("git add agent.sh && git commit -q -m agent");
    test
}

fn run(test: &Test, more: &[&str]) -> crate::kit::Done {
    let args = ["run", "t", "--name", "a", "-m", "3"];
    test.ralph(&[&args, &CHECKS[..], more, &["--", "./agent.sh"]].concat())
}

fn real_git() -> String {
    Test::new().sh("command -v git").trim().to_owned()
}

/// Returns everything in a repository that a loop must not change: files of `.git` except objects,
/// with their content, and the identity and times of files in the working tree.
fn repository(test: &Test) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![test.workspace()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, data) = (entry.path(), entry.metadata().unwrap());
            let name = path.strip_prefix(test.workspace()).unwrap();
            let is_ours = [".git/objects", ".ralph"];
            if is_ours.iter().any(|ours| name.starts_with(ours)) {
                continue;
            }
            if data.is_dir() {
                found.insert(name.to_owned(), "a directory".into());
                dirs.push(path);
                continue;
            }
            let content = fs::read(&path).unwrap_or_default();
            let identity = (data.ino(), data.mode(), data.mtime(), data.mtime_nsec());
            found.insert(name.to_owned(), format!("{identity:?} {content:?}"));
        }
    }
    found
}

#[test]
fn a_loop_and_rm_change_nothing_in_the_repository_but_what_was_asked() {
    let test = worse().file("staged", "s\n").file("other", "o\n");
    test.sh(
        "git add staged && echo more >>other && git stash -q -u && git stash apply -q --index
         printf '#!/bin/sh\\ntouch \"$0.ran\"\\n' >.git/hooks/reference-transaction
         cp .git/hooks/reference-transaction .git/hooks/post-index-change
         cp .git/hooks/reference-transaction .git/hooks/post-checkout
         chmod +x .git/hooks/reference-transaction .git/hooks/post-* && git config core.logAllRefUpdates always",
    );
    test.sh("rm -f .git/hooks/*.ran");
    let before = repository(&test);
    run(&test, &[]).exits(1);
    let refs = test.sh("git for-each-ref --format='%(refname)' refs/ralph");
    assert_eq!(refs.lines().count(), 4, "{refs}");
    test.ralph(&["verify", "a"]).exits(0);
    test.ralph(&["rewind", "a", "0"]).exits(0);
    test.ralph(&["verify", "a"]).exits(0);
    test.ralph(&["rm", "a"]).exits(0);
    let after = repository(&test);
    let names = before.keys().chain(after.keys());
    let changed: Vec<_> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
}

mod needs_bwrap {
    use super::*;

    /// An agent that fixes the code and changes a test, so that the second look runs its checks in a
    /// view.
    const AGENT: &str = "#!/bin/sh
echo fixed >code.py
echo '# more' >>tests/test_code.sh
echo '<promise>COMPLETE</promise>'
";

    #[test]
    fn nor_do_a_sandbox_a_second_look_and_a_verification() {
        let test = Test::git()
            .program("agent.sh", AGENT)
            .file("code.py", "broken\n")
            .file("tests/test_code.sh", "grep -q fixed code.py\n")
            .file("other", "o\n");
        // Git creates this directory, but a repository can do without.
        test.sh(
            "git add -A && git commit -qm start && echo more >>other && git stash -q
             echo staged >staged && git add staged && rm -rf .git/hooks",
        );
        let before = repository(&test);
        let args = ["run", "t", "--name", "a", "--sandbox", "--sealed"];
        let checks = [
            "--check",
            "sh tests/test_code.sh",
            "--second-look",
            "always",
        ];
        test.ralph(&[&args[..], &checks, &["--", "./agent.sh"]].concat())
            .exits(0)
            .says("by the original tests too");
        test.ralph(&["verify", "a"]).exits(0);
        test.ralph(&["rewind", "a", "0"]).exits(0);
        test.ralph(&["rm", "a"]).exits(0);
        let after = repository(&test);
        let names = before.keys().chain(after.keys());
        let changed: Vec<_> = names
            .filter(|name| before.get(*name) != after.get(*name))
            // A rewind writes these files again.
            .filter(|name| {
                !["code.py", "tests/test_code.sh"]
                    .iter()
                    .any(|own| name.ends_with(own))
            })
            .collect();
        assert!(changed.is_empty(), "{changed:?}");
        assert_eq!(test.read("code.py"), "broken\n");
    }

    #[test]
    fn a_directory_of_hooks_that_a_killed_loop_created_is_removed_later() {
        let test = Test::git();
        test.sh("rm -rf .git/hooks");
        let agent = "touch ../at-work at-work; sleep 1000";
        let args = [
            "run",
            "t",
            "--name",
            "a",
            "--sandbox",
            "--",
            "sh",
            "-c",
            agent,
        ];
        let live = test.start(&args);
        until("the agent", || test.workspace().join("at-work").exists());
        assert!(test.workspace().join(".git/hooks").exists());
        crash(live);
        test.ralph(&["status", "a"]).exits(0);
        assert!(!test.workspace().join(".git/hooks").exists());
    }
}

#[test]
fn a_loop_that_ends_worse_than_its_best_says_so_and_can_be_rewound() {
    let test = worse();
    let told = "after iteration 2, 1 of 2 checks was green, now 0: `ralph rewind a 2`";
    run(&test, &[]).exits(1).says(told);
    assert_eq!(test.events("a", "checkpointed").len(), 4);
    assert_eq!(test.events("a", "finished")[0]["better"], 2);
    test.ralph(&["status", "a"])
        .says(&format!("Better: {told}"));
    let status = test.status("a");
    assert_eq!(
        (&status["best_iteration"], &status["better_iteration"]),
        (&2.into(), &2.into())
    );
    test.ralph(&["diff", "a", "2..3"])
        .exits(0)
        .says("+iteration 3")
        .says("deleted file mode");
    test.ralph(&["diff", "a", "--stat"]).exits(0).says("notes");
    test.ralph(&["diff", "a", "best..undo"])
        .exits(2)
        .complains("nothing to undo");

    let rewound = test.ralph(&["rewind", "a", "best"]).exits(0);
    assert!(
        rewound.out.starts_with("D extra\nA good\nM notes\n"),
        "{}",
        rewound.out
    );
    assert!(test.workspace().join("good").exists());
    assert_eq!(test.read("notes"), "iteration 1\niteration 2\n");
    assert!(test.status("a")["better_iteration"].is_null());
    test.ralph(&["rewind", "a", "undo"]).exits(0);
    assert_eq!(test.read("extra"), "3\n");
    test.ralph(&["rewind", "a", "undo"]).exits(0);
    assert!(!test.workspace().join("extra").exists());

    test.ralph(&["set", "a", "max-iterations=4"]).exits(0);
    test.ralph(&["resume", "a"]).exits(1);
    assert_eq!(
        test.read("notes"),
        "iteration 1\niteration 2\niteration 4\n"
    );
    assert!(test.prompt("a", 4).contains("put the files back"));
    test.ralph(&["diff", "a", "2..4", "--stat"])
        .exits(0)
        .says("1 file changed");
    test.ralph(&["diff", "a", "2..3"]).says("+iteration 3");
}

#[test]
fn unknown_checkpoints_and_loops_without_any_are_usage_errors() {
    let test = worse();
    run(&test, &[]).exits(1);
    test.ralph(&["rewind", "a", "7"])
        .exits(2)
        .complains("no checkpoint \"7\"")
        .complains("it has 0 to 3");
    test.ralph(&["diff", "a", "3"])
        .exits(2)
        .complains("ralph diff a 2..3");
    test.ralph(&["rm", "a"]).exits(0);
    run(&test, &["--no-checkpoints"]).exits(1);
    test.ralph(&["diff", "a"])
        .exits(2)
        .complains("--no-checkpoints");
    assert_eq!(test.sh("git for-each-ref refs/ralph"), "");
    let outside = Test::new().program("agent.sh", AGENT);
    run(&outside, &[]).exits(1);
    assert_eq!(outside.events("a", "checkpointed").len(), 1);
    outside
        .ralph(&["rewind", "a", "0"])
        .exits(2)
        .complains("git repositories only");
}

#[test]
fn a_running_loop_can_be_compared_but_not_rewound() {
    let agent = "echo more >>notes; touch ../at-work; until test -e ../go-on; do sleep 0.01; done";
    let test = Test::git();
    let live = test.start(&[
        "run", "t", "--name", "a", "-m", "2", "--", "sh", "-c", agent,
    ]);
    until("the agent", || test.root().join("at-work").exists());
    test.ralph(&["diff", "a"]).exits(0);
    test.ralph(&["rewind", "a", "0"])
        .exits(2)
        .complains("while it is running")
        .complains("ralph pause a");
    fs::write(test.root().join("go-on"), "").unwrap();
    live.end().exits(1);
    test.ralph(&["diff", "a"]).exits(0).says("+more");
}

/// An agent that writes a file in each iteration, and then waits for its end.
const WORKING: &str = "echo $RALPH_ITERATION >>notes; touch ../at-work; sleep 1000";

/// Asserts that the newest checkpoint has the work of an iteration that was cut short.
#[track_caller]
fn assert_kept(test: &Test) {
    let taken = test.events("a", "checkpointed");
    assert_eq!(taken.last().unwrap()["iteration"], 1, "{taken:?}");
    test.ralph(&["diff", "a"]).exits(0).says("+1");
    fs::write(test.workspace().join("notes"), "mine\n").unwrap();
    test.ralph(&["rewind", "a", "1"]).exits(0);
    assert_eq!(test.read("notes"), "1\n");
    test.ralph(&["rewind", "a", "0"]).exits(0).says("D notes");
    assert!(!test.workspace().join("notes").exists());
}

#[test]
fn work_that_is_stopped_at_once_is_in_a_checkpoint() {
    for stop in ["ralph stop", "two signals", "a time limit"] {
        let test = Test::git();
        let args = ["run", "t", "--name", "a", "--check", "false"];
        let args = [&args[..], &["--", "sh", "-c", WORKING]].concat();
        let live = test.start(&args);
        until("the agent", || test.root().join("at-work").exists());
        match stop {
            "a time limit" => drop(test.ralph(&["set", "a", "max-time=1s"]).exits(0)),
            "two signals" => {
                live.signal("INT");
                live.until_out("Ctrl-C");
                live.signal("INT");
            }
            _ => drop(test.ralph(&["stop", "a"]).exits(0)),
        }
        live.end();
        assert_kept(&test);
    }
}

#[test]
fn work_of_a_runner_that_was_killed_is_in_a_checkpoint_once_the_loop_continues() {
    let test = Test::git();
    let live = test.start(&["run", "t", "--name", "a", "--", "sh", "-c", WORKING]);
    until("the agent", || test.root().join("at-work").exists());
    crash(live);
    test.ralph(&["set", "a", "max-iterations=1"]).exits(0);
    test.ralph(&["resume", "a"]).exits(1);
    assert_kept(&test);
}

#[test]
fn a_checkpoint_that_fails_is_a_warning() {
    let script = format!(
        "#!/bin/sh\nfor arg; do case $arg in commit-tree) echo 'fatal: no space' >&2; exit 128 ;; esac; done\nexec {} \"$@\"\n",
        real_git()
    );
    let test = worse().on_path("git", &script);
    let done = run(&test, &[]).exits(1);
    assert_eq!(
        done.err.matches("cannot take a checkpoint").count(),
        1,
        "{}",
        done.err
    );
    assert!(done.err.contains("no space"), "{}", done.err);
    assert_eq!(test.events("a", "started").len(), 3);
}

#[test]
fn a_kill_during_a_checkpoint_leaves_nothing_behind() {
    for point in ["update-index", "commit-tree", "update-ref"] {
        let script = format!(
            "#!/bin/sh\nheld=$RALPH_STATE_DIR/../held\nfor arg; do
             if test \"$arg\" = {point} && test -e \"$RALPH_STATE_DIR/../shop/good\" && mkdir \"$held\" 2>/dev/null
             then exec sleep 600; fi\ndone\nexec {} \"$@\"\n",
            real_git()
        );
        let test = worse().on_path("git", &script);
        let args = ["run", "t", "--name", "a", "-m", "3"];
        let live = test.start(&[&args, &CHECKS[..], &["--", "./agent.sh"]].concat());
        until(point, || test.root().join("held").exists());
        crash(live);
        test.ralph(&["resume", "a"]).exits(1);
        let taken = test.events("a", "checkpointed");
        assert_eq!(taken.last().unwrap()["iteration"], 3, "{point}");
        test.ralph(&["rewind", "a", "2"]).exits(0);
        assert!(test.workspace().join("good").exists(), "{point}");
        test.ralph(&["rm", "a"]).exits(0);
        let left = test.sh("find .git -name '*.lock' -o -path '*refs/ralph*'");
        assert_eq!(left, "", "{point}");
    }
}

#[test]
fn a_loop_in_its_own_worktree_is_rewound_there() {
    let test = worse();
    run(&test, &["--worktree"]).exits(1);
    let tree = test.state_dir().join("worktrees/a");
    assert!(tree.join("extra").exists());
    test.ralph(&["rewind", "a", "2"]).exits(0);
    assert!(!tree.join("extra").exists() && tree.join("good").exists());
    assert!(!test.workspace().join("good").exists());
    test.ralph(&["rm", "a", "--worktree", "--force"]).exits(0);
    assert_eq!(test.sh("git for-each-ref refs/ralph"), "");
}
