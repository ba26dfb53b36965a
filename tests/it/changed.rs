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
