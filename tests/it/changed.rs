//! The summary's `changed` line.

use crate::kit::Test;

#[test]
fn the_changed_line_counts_lines_of_files_with_tabs_and_spaces() {
    let test = Test::git()
        .file("main.go", "func main() {\n\tprintln(1)\n}\n")
        .file("two words", "a\tb\n");
    test.sh("git add -A && git commit -q -m code");
    let agent = "sed -i 's/^.println(1)/&\\n&/' main.go; echo c >> 'two words'; touch z";
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--",
        "sh",
        "-c",
        agent,
    ])
    .exits(0)
    .says("  changed  3 files +2 −0: main.go, two words, z\n");
}

#[test]
fn the_changed_line_says_which_lines_are_not_counted() {
    let test = Test::git().file("notes", "one\n");
    let run = |name: &str, agent: &str| {
        let args = ["run", "x", "--name", name, "-m", "1", "--no-promise", "--"];
        test.ralph(&[&args[..], &["sh", "-c", agent]].concat())
            .exits(0)
            .out
    };
    let shown = run("a", "echo two >> notes");
    assert!(
        shown.contains(
            "  changed  1 file that git did not track at the start, lines not counted: notes\n"
        ),
        "{shown}"
    );
    let shown = run("b", "echo three >> notes; echo c >> README; echo n > new");
    assert!(
        shown.contains("  changed  3 files +2 −0 (lines of 1 untracked at the start not counted): README, new, notes\n"),
        "{shown}"
    );
}
