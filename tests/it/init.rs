//! `ralph init` and `ralph template`, through the binary.

mod projects;

use crate::kit::Test;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn init_writes_the_starter_prompt_once() {
    let test = Test::new();
    let template = test.ralph(&["template"]).exits(0).out;
    assert!(
        !test.workspace().join("PROMPT.md").exists(),
        "template only prints"
    );
    assert_eq!(test.ralph(&["init"]).exits(0).out, "created PROMPT.md\n");
    assert_eq!(test.read("PROMPT.md"), template);
    test.write("PROMPT.md", "my own words\n");
    let refused = test.ralph(&["init"]).exits(2);
    refused.complains("ralph: error: PROMPT.md already exists (use --force to overwrite)");
    assert_eq!(test.read("PROMPT.md"), "my own words\n");
    assert_eq!(
        test.ralph(&["init", "--force"]).exits(0).out,
        "created PROMPT.md (overwritten)\n"
    );
    assert_eq!(test.read("PROMPT.md"), template);
    assert_eq!(
        fs::read_dir(test.workspace()).unwrap().count(),
        1,
        "nothing else is left"
    );
}

#[test]
fn the_starter_prompt_is_plain_and_covers_what_a_loop_needs() {
    let text = Test::new().ralph(&["template"]).exits(0).out;
    assert!(
        text.lines().count() < 15 && !text.contains('#'),
        "short, and without headings"
    );
    for word in ["Read", "Pick the one", "read it to see", "tests", "plan"] {
        assert!(text.contains(word), "{word}");
    }
    for word in ["ommit", "Run "] {
        assert!(
            !text.contains(word),
            "--approve edits does not allow: {word}"
        );
    }
    assert!(
        !text.contains("<promise>"),
        "what counts as done is said by the loop, not by the prompt"
    );
}

#[test]
fn init_leaves_links_and_directories_alone() {
    let test = Test::new();
    let outside = test.root().join("outside.md");
    fs::write(&outside, "theirs\n").unwrap();
    symlink(&outside, test.workspace().join("PROMPT.md")).unwrap();
    test.ralph(&["init", "--force"])
        .exits(2)
        .complains("cannot write PROMPT.md: it is a symbolic link");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs\n");
    fs::remove_file(test.workspace().join("PROMPT.md")).unwrap();
    fs::create_dir(test.workspace().join("PROMPT.md")).unwrap();
    test.ralph(&["init", "--force"])
        .exits(2)
        .complains("cannot write PROMPT.md: it is a directory");
    assert!(test.workspace().join("PROMPT.md").is_dir());
}

#[test]
fn a_loop_runs_on_the_starter_prompt() {
    let test = Test::git().script("iteration 1\n  promise COMPLETE\n");
    test.ralph(&["init"]).exits(0);
    test.ralph(&["run", "--name", "a", "--agent", "script:../agent.script"])
        .exits(0);
    assert!(test.prompt("a", 1).starts_with(&test.read("PROMPT.md")));
}

#[test]
fn settings_match_the_detected_project() {
    let test = Test::new()
        .file("package.json", r#"{"scripts": {"test": "true"}}"#)
        .file("Makefile", "lint:\n\ttrue\n")
        .program("../bin/npm", "#!/bin/sh\n")
        .program("../bin/codex", "#!/bin/sh\n");
    let mut command = test.ralph_command(&["init", "--settings"]);
    command.env("PATH", test.root().join("bin"));
    let done = test
        .start_command(command)
        .end()
        .exits(0)
        .says("created .ralph/settings.toml\n");
    let done = done
        .says("found package.json: npm test\n")
        .says("found Makefile: make lint (not installed: commented out)\n");
    done.says("next: review .ralph/settings.toml, then ralph run \"your task\"");
    let written = test.read(".ralph/settings.toml");
    assert!(
        written.contains("\n[[checks]]\ncommand = \"npm test\"\n"),
        "{written}"
    );
    assert!(
        written.contains("not installed here.\n#[[checks]]\n#command = \"make lint\"\n"),
        "{written}"
    );
    assert!(written.contains("#agent = \"codex\"\n"), "{written}");
    assert!(!test.workspace().join("PROMPT.md").exists());
}

#[test]
fn existing_settings_are_kept() {
    let test = Test::new().file(".ralph/settings.toml", "maxIterations = 3\n");
    test.ralph(&["init", "--settings"])
        .exits(2)
        .complains(".ralph/settings.toml already exists");
    assert_eq!(test.read(".ralph/settings.toml"), "maxIterations = 3\n");
    let done = test.ralph(&["init", "--settings", "--force"]).exits(0);
    done.says("created .ralph/settings.toml (overwritten)")
        .says("no checks detected");
    for end in ["json", "yaml", "yml"] {
        let name = format!(".ralph/settings.{end}");
        let test = Test::new().file(&name, "{}\n");
        for args in [
            &["init", "--settings"][..],
            &["init", "--settings", "--force"],
        ] {
            test.ralph(args)
                .exits(2)
                .complains(&format!("{name} already exists"));
        }
        assert!(!test.workspace().join(".ralph/settings.toml").exists());
        assert_eq!(test.read(&name), "{}\n");
    }
}

#[test]
fn settings_are_not_written_if_dot_ralph_is_a_symlink_or_a_file() {
    let test = Test::new();
    let outside = test.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, test.workspace().join(".ralph")).unwrap();
    test.ralph(&["init", "--settings", "--force"])
        .exits(2)
        .complains(".ralph is not a directory, or is a link to a directory outside this one");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::remove_file(test.workspace().join(".ralph")).unwrap();
    test.write(".ralph", "a file");
    test.ralph(&["init", "--settings"])
        .exits(2)
        .complains(".ralph is not a directory");
}

#[test]
fn only_installed_rust_tools_become_checks() {
    for (parts, found) in [
        (
            "clippy|fmt",
            "cargo test · cargo clippy -- -D warnings · cargo fmt --check",
        ),
        ("fmt", "cargo test · cargo fmt --check"),
        ("none", "cargo test"),
    ] {
        let cargo = format!("#!/bin/sh\ncase $1 in {parts}) exit 0 ;; esac\nexit 101\n");
        let test = Test::new()
            .file("Cargo.toml", "")
            .program("../bin/cargo", &cargo);
        let mut command = test.ralph_command(&["init", "--settings"]);
        command.env("PATH", test.root().join("bin"));
        test.start_command(command)
            .end()
            .exits(0)
            .says(&format!("found Cargo.toml: {found}\n"));
    }
}

#[test]
fn the_starter_settings_are_valid_with_and_without_their_commented_lines() {
    for files in [
        &[][..],
        &[("go.mod", "module x\n")],
        &[("package.json", r#"{"scripts": {"test": "true"}}"#)],
    ] {
        let test = files
            .iter()
            .fold(Test::new(), |test, (name, text)| test.file(name, text));
        test.ralph(&["init", "--settings"]).exits(0);
        test.ralph(&["config"])
            .exits(0)
            .says(".ralph/settings.toml");
        let written = test.read(".ralph/settings.toml");
        let uncommented = written
            .lines()
            .map(|line| {
                line.strip_prefix('#')
                    .filter(|rest| !rest.starts_with(' '))
                    .unwrap_or(line)
            })
            .fold(String::new(), |all, line| all + line + "\n");
        assert_ne!(uncommented, written);
        test.write(".ralph/settings.toml", &uncommented);
        let done = test.ralph(&["config", "--json"]).exits(0);
        let settings: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        for key in [
            "agent.name",
            "approve",
            "maxIterations",
            "maxTime",
            "checks[0].command",
            "scm.tasks",
        ] {
            assert_eq!(
                settings[key]["from"], ".ralph/settings.toml",
                "{key} of {settings}"
            );
        }
    }
}
