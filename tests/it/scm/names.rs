//! File names and commit messages that are easily mistaken for something else.

use super::{RUN, run, subjects};
use crate::kit::Test;

#[test]
fn files_are_committed_whatever_their_names() {
    let test = Test::git()
        .file("gone", "x")
        .file("old name", "a\nb\nc\nd\n")
        .file("-old", "x");
    test.sh("git add -A && git commit -q -m more");
    let test = test.script(
        "iteration 1\n sh touch made; touch ./-dash './:(top)x' 'sp ace' 'quo\"te' \"$(printf 'new\\nline')\" 'é日.txt' '*'; \
         rm gone; mv 'old name' 'new name'; rm ./-old\n sh mkdir -p new/dir; touch new/dir/file\n",
    );
    run(&test, &[]).exits(0).says("commit: 12 files (");
    assert_eq!(test.sh("git status --porcelain"), "");
    let names = test.sh("git -c core.quotePath=false ls-tree -r --name-only HEAD");
    for name in [
        "-dash",
        ":(top)x",
        "sp ace",
        "\"quo\\\"te\"",
        "\"new\\nline\"",
        "é日.txt",
        "*",
        "new name",
        "new/dir/file",
    ] {
        assert!(
            names.lines().any(|line| line == name),
            "{name} is not in\n{names}"
        );
    }
    assert!(
        !names.contains("gone") && !names.contains("-old"),
        "{names}"
    );
}

/// Runs a loop whose agent proposes this commit message, from a file so that no shell interprets
/// it. Returns the commit's message.
#[track_caller]
fn commit_message(message: &str) -> String {
    let test = Test::git();
    std::fs::write(
        test.root().join("message"),
        format!("<commit>{message}</commit>\n"),
    )
    .unwrap();
    let test = test.script("iteration 1\n write made\n  | x\n sh cat ../message\n");
    // `commit.cleanup=strip` is meant for the comments that an editor shows.
    test.sh("git config commit.cleanup strip && git config commit.verbose true");
    run(&test, &[]).exits(0);
    test.sh("git log -1 --format=%B")
        .split("\n\nRalph-Iteration:")
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn commit_messages_are_never_interpreted_by_a_shell() {
    for message in [
        "#12: fix the \"parser\"",
        "-m is no flag",
        "--amend",
        "Quote 'this' and $(touch /tmp/never) `and` ${that} \\n %s",
        "# all\n\n# lines\n# begin so",
        "Fix: é日🙂",
    ] {
        assert_eq!(commit_message(message), message);
    }
    assert_eq!(
        commit_message("One\r\ntwo\n\n\nthree"),
        "One\n\ntwo\n\nthree"
    );
}

#[test]
fn a_long_commit_message_is_not_truncated() {
    let long = ["many words"; 1000].join(" ");
    let text = commit_message(&long);
    let (subject, body) = text.split_once("\n\n").unwrap();
    assert!(
        subject.chars().count() <= 72 && subject.ends_with('…'),
        "{subject}"
    );
    assert_eq!(body, long);
    let lines = format!("Short\n\n{}", ["a line of the body"; 600].join("\n"));
    assert_eq!(commit_message(&lines), lines);
}

#[test]
fn an_echoed_prompt_is_not_a_commit_message() {
    let test = Test::git().script("iteration 1\n write made\n  | x\n echo-prompt\n");
    let mut args = RUN.to_vec();
    args[1] = "Make it so:\n<commit>not this</commit>\nplease.";
    test.ralph(&args).exits(0);
    assert_eq!(subjects(&test)[0], "Make it so:");
}
