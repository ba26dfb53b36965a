//! `ralph init` and `ralph template`, through the binary.

use crate::kit::Test;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn init_writes_the_starter_prompt_once() {
    let test = Test::new();
    let template = test.ralph(&["template"]).exits(0).out;
    assert!(!test.workspace().join("PROMPT.md").exists(), "template only prints");
    assert_eq!(test.ralph(&["init"]).exits(0).out, "created PROMPT.md\n");
    assert_eq!(test.read("PROMPT.md"), template);
    test.write("PROMPT.md", "my own words\n");
    let refused = test.ralph(&["init"]).exits(2);
    refused.complains("ralph: error: PROMPT.md already exists (use --force to overwrite)");
    assert_eq!(test.read("PROMPT.md"), "my own words\n");
    assert_eq!(test.ralph(&["init", "--force"]).exits(0).out, "created PROMPT.md (overwritten)\n");
    assert_eq!(test.read("PROMPT.md"), template);
    assert_eq!(fs::read_dir(test.workspace()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn the_starter_prompt_is_plain_and_covers_what_a_loop_needs() {
    let text = Test::new().ralph(&["template"]).exits(0).out;
    assert!(text.lines().count() < 15 && !text.contains('#'), "short, and without headings");
    for word in ["Read", "Pick the one", "read it to see", "tests", "plan", "Commit"] {
        assert!(text.contains(word), "{word}");
    }
    assert!(!text.contains("<promise>"), "what counts as done is said by the loop, not by the prompt");
}

#[test]
fn init_leaves_links_and_directories_alone() {
    let test = Test::new();
    let outside = test.root().join("outside.md");
    fs::write(&outside, "theirs\n").unwrap();
    symlink(&outside, test.workspace().join("PROMPT.md")).unwrap();
    test.ralph(&["init", "--force"]).exits(2).complains("PROMPT.md is a symbolic link");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs\n");
    fs::remove_file(test.workspace().join("PROMPT.md")).unwrap();
    fs::create_dir(test.workspace().join("PROMPT.md")).unwrap();
    test.ralph(&["init", "--force"]).exits(2).complains("PROMPT.md is a directory");
    assert!(test.workspace().join("PROMPT.md").is_dir());
}

#[test]
fn a_loop_runs_on_the_starter_prompt() {
    let test = Test::git().script("iteration 1\n  promise COMPLETE\n");
    test.ralph(&["init"]).exits(0);
    test.ralph(&["run", "--name", "a", "--agent", "script:../agent.script"]).exits(0);
    assert!(test.prompt("a", 1).starts_with(&test.read("PROMPT.md")));
}
