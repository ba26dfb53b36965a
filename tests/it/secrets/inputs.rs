//! Secrets in what people type besides texts: patterns, names, paths, and arguments that are wrong.

use super::leaks;
use crate::kit::{Done, Test};
use std::fs;

const VALUE: &str = "hunter2.of+a-test";
/// A value that could be a loop's name.
const NAME: &str = "hunter2-of-a-test";

fn run(test: &Test, args: &[&str]) -> Done {
    let mut command = test.ralph_command(args);
    command.env("SHOP_TOKEN", VALUE).env("NAME_TOKEN", NAME);
    let done = test.start_command(command).end();
    leaks::assert_none_printed(&done, &[VALUE, NAME]);
    leaks::assert_none(test, &[VALUE, NAME]);
    done
}

#[test]
fn a_done_pattern_with_a_secret_matches_and_is_not_recorded() {
    let agent = "echo deployed $SHOP_TOKEN ok; exec sleep 1000";
    for pattern in [VALUE, &regex::escape(VALUE)] {
        let test = Test::new();
        let pattern = format!("^deployed {pattern} ok");
        let args = ["run", "x", "--name", "a", "-m", "1", "--done-pattern"];
        let args = [&args[..], &[&pattern, "--", "sh", "-c", agent]].concat();
        run(&test, &args).exits(0);
        let recorded = &test.journal("a")[0]["plan"]["proof"]["pattern"];
        assert_eq!(recorded, r"^deployed \[SHOP_TOKEN\] ok");
    }
}

#[test]
fn a_pattern_of_a_check_with_a_secret_matches_and_is_not_recorded() {
    let check = "echo deployed $SHOP_TOKEN ok";
    let args = ["run", "x", "--name", "a", "-m", "1", "--until-green"];
    for (pattern, code) in [("^deployed @ ok$", 0), ("^@ was deployed$", 1)] {
        let test = Test::new();
        let pattern = pattern.replace('@', &regex::escape(VALUE));
        let checks = ["--check", check, "--expect", &pattern, "--", "true"];
        run(&test, &[&args[..], &checks].concat()).exits(code);
        let recorded = &test.journal("a")[0]["plan"]["proof"]["checks"][0]["expect"];
        let recorded = recorded.as_str().unwrap();
        assert!(recorded.contains(r"\[SHOP_TOKEN\]"), "{recorded}");
        let receipt = run(&test, &["receipt", "a"]).exits(0).out;
        assert!(receipt.contains("SHOP_TOKEN"), "{receipt}");
    }
}

#[test]
fn names_and_paths_with_a_secret_are_refused() {
    let with = |text: &str| text.replace('@', NAME);
    let file = with("todo-@.md");
    let test = Test::git().file(&file, "do it\n");
    for (args, what) in [
        (
            &["run", "x", "--name", "a-@"][..],
            "--name: \"a-[NAME_TOKEN]\"",
        ),
        (&["run", "x", "--done-file", "out/@"], "--done-file: \""),
        (&["run", "--prompt-file", "todo-@.md"], "--prompt-file: \""),
        (&["run", "x", "--protect", "@/**"], "--protect: \""),
        (&["run", "x", "--allow", "@/**"], "--allow: \""),
        (&["run", "x", "--worktree=fix/@"], "the branch: \""),
        (&["run", "x", "--worktree", "--name", "@"], "--name: \""),
        (&["spawn", "x", "--name", "a-@"], "--name: \""),
    ] {
        let args: Vec<String> = args.iter().map(|arg| with(arg)).collect();
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(["--", "true"]);
        run(&test, &args)
            .exits(2)
            .complains(what)
            .complains("contains the value of a secret variable");
    }
    assert_eq!(
        test.sh("git branch --list; git worktree list | wc -l"),
        "* main\n1\n"
    );
}

#[test]
fn a_workspace_with_a_secret_in_its_path_is_refused() {
    let test = Test::new();
    for dir in [VALUE.to_owned(), VALUE.replace(['.', '+'], " ")] {
        let dir = test.workspace().join(dir);
        fs::create_dir(&dir).unwrap();
        let mut command = test.ralph_command(&["run", "x", "-m", "1", "--here", "--", "true"]);
        // The second directory only gives the loop a name with a secret.
        command
            .env("SHOP_TOKEN", VALUE)
            .env("NAME_TOKEN", NAME)
            .current_dir(dir);
        let done = test.start_command(command).end().exits(2);
        leaks::assert_none_printed(&done, &[VALUE]);
        done.complains("contains the value of a secret variable");
    }
    leaks::assert_none(&test, &[VALUE, NAME]);
}

#[test]
fn an_error_before_a_loop_exists_contains_no_secret() {
    let test = Test::git().file("settings.toml", &format!("\"{VALUE}\" = 1\n"));
    let with = |text: &str| text.replace('@', VALUE);
    for args in [
        &["run", "x", "--max-iterations", "@"][..],
        &["run", "x", "--@"],
        &["run", "x", "--agent", "@"],
        &["run", "x", "--", "@"],
        &["run", "x", "--check", "@ --all", "--", "true"],
        &["run", "x", "--done-pattern", "@(", "--", "true"],
        &[
            "run",
            "x",
            "--promise",
            "<promise>@</promise>",
            "--",
            "true",
        ],
        &["run", "--prompt-file", "@", "--", "true"],
        &["run", "x", "--config", "@.toml", "--", "true"],
        &["run", "x", "--config", "settings.toml", "--", "true"],
        &["run", "x", "--scm", "@", "--scm-command", "@", "--", "true"],
        &["run", "x", "--name", "../@", "--", "true"],
        &["run", "x", "--name", "@", "--dry-run", "--", "true"],
        &["run", "x", "--worktree=@", "--dry-run", "--", "true"],
        &[
            "run",
            "x",
            "--notify",
            "@",
            "--model",
            "@",
            "--dry-run",
            "--",
            "true",
        ],
        &["status", "@"],
        &["set", "a", "@=3"],
        &["set", "a", "max-iterations=@"],
        &["bus", "post", "--loop", "@", "hi"],
        &["@"],
        &["run", "x", "--worktree= @", "--", "true"],
        &["hook", "stop", "--client", "@"],
    ] {
        let args: Vec<String> = args.iter().map(|arg| with(arg)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(&test, &args);
    }
}
