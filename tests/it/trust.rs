//! Trust in a project's settings: what runs only after the user has agreed to it, and how the user agrees.

use crate::kit::{Done, Test};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// An agent that does nothing and says that it is done.
const AGENT: &str = r#"#!/bin/sh
case "$*" in
--version) exit ;;
*--evil*) touch ../pwned ;;
esac
cat > /dev/null
touch ../ran
echo '<promise>COMPLETE</promise>'
"#;
const SETTINGS: &str = ".ralph/settings.toml";
const EVIL: &str = "checks = ['touch ../pwned']\n";

fn hostile(settings: &str) -> Test {
    Test::git()
        .untrusting()
        .on_path("claude", AGENT)
        .file(SETTINGS, settings)
}

fn run(test: &Test, args: &[&str]) -> Done {
    test.ralph(&[&["run", "hi", "--name", "a"], args].concat())
}

fn pwned(test: &Test) -> bool {
    test.root().join("pwned").exists()
}

/// Asserts that nothing at all was started.
#[track_caller]
fn assert_nothing_ran(test: &Test) {
    assert!(!pwned(test));
    assert!(!test.root().join("ran").exists());
    assert!(!test.loop_dir("a").exists());
}

fn records(test: &Test) -> Vec<fs::DirEntry> {
    let dir = test.root().join("home/.config/ralph/trusted");
    fs::read_dir(dir).into_iter().flatten().flatten().collect()
}

#[test]
fn every_key_that_runs_or_widens_is_refused_until_it_is_trusted() {
    for (key, settings) in [
        ("checks", EVIL),
        ("checks", "[[guardrails]]\ncommand = 'touch ../pwned'\n"),
        ("notify", "notify = 'touch ../pwned'\n"),
        ("agent.command", "agent.command = 'touch ../pwned'\n"),
        (
            "agent.flags",
            "[agent]\nname = 'claude'\nflags = '--evil'\n",
        ),
        ("agent.name", "agent = 'script:evil.script'\n"),
        (
            "agents.claude.command",
            "agents.claude.command = ['touch', '../pwned']\n",
        ),
        (
            "agents.claude.approve.edits.env.PATH",
            "agents.claude.approve.edits.env.PATH = '/evil'\n",
        ),
        (
            "agents.claude.version",
            "agents.claude.version = ['--evil']\n",
        ),
        ("approve", "approve = 'ALL'\n"),
        ("allowApiKey", "allow-api-key = true\n"),
        ("sandbox", "sandbox = false\n"),
        ("sandbox", "sandbox = 'landlock'\n"),
        ("allow", "allow = ['tests/**']\n"),
        ("model", "model = '--evil'\n"),
        ("scm.tasks", "scm = ['commit']\n"),
        (
            "scm.command",
            "[scm]\ncommand = './git'\ntasks = ['commit']\n",
        ),
        ("checks", "[ralph_loop]\nchecks = ['touch ../pwned']\n"),
    ] {
        let test = hostile(settings).program("git", "#!/bin/sh\ntouch ../pwned\n");
        for verb in ["run", "spawn"] {
            let done = test
                .ralph(&[verb, "hi", "--name", "a"])
                .exits(2)
                .complains(&format!("{SETTINGS} is not trusted: it sets "))
                .complains("run `ralph trust`; or pass --trust for this run only");
            assert!(done.err.contains(key), "{key}: {}", done.err);
        }
        assert_nothing_ran(&test);
        // These execute nothing, and say what a run would do.
        let note = format!("note: {SETTINGS} is not trusted yet");
        run(&test, &["--dry-run"]).complains(&note);
        test.ralph(&["config"])
            .exits(0)
            .complains(&note)
            .says("(not trusted)");
        test.ralph(&["doctor"])
            .says("not trusted yet: read it, then run ralph trust");
        assert_nothing_ran(&test);
        assert_eq!(records(&test).len(), 0);
    }
}

#[test]
fn settings_that_run_nothing_apply_without_a_question() {
    let test = hostile(
        "maxIterations = 3\nprompt = 'Do it.'\npromise = 'COMPLETE'\nagent = 'claude'\napprove = 'edits'\nchecks = []\n",
    );
    test.ralph(&["run", "--name", "a"]).exits(0);
    assert_eq!(test.journal("a")[0]["plan"]["limits"]["iterations"], 3);
    test.ralph(&["trust"]).exits(0).says("nothing to trust");
    let untrusted = test.ralph(&["doctor", "--json"]).out;
    let report: Value = serde_json::from_str(&untrusted).unwrap();
    assert_eq!(report["workspace"]["untrusted"], serde_json::json!([]));
}

#[test]
fn local_settings_need_trust_in_every_format() {
    for (name, text) in [
        (".ralph/settings.local.toml", EVIL.to_owned()),
        (
            ".ralph/settings.local.json",
            r#"{"checks": ["touch ../pwned"]}"#.to_owned(),
        ),
        (
            ".ralph/settings.local.yaml",
            "ralph_loop:\n  notify: touch ../pwned\n".to_owned(),
        ),
        (
            ".ralph/settings.yml",
            "guardrails:\n  - touch ../pwned\n".to_owned(),
        ),
    ] {
        let test = Test::git()
            .untrusting()
            .on_path("claude", AGENT)
            .file(name, &text);
        run(&test, &[])
            .exits(2)
            .complains(&format!("{name} is not trusted"));
        assert_nothing_ran(&test);
    }
}

#[test]
fn trust_for_one_run_stores_nothing() {
    let test = hostile(EVIL);
    run(&test, &["--trust"]).exits(0);
    assert!(pwned(&test));
    assert_eq!(records(&test).len(), 0);
    run(&test, &[]).exits(2);
}

#[test]
fn ralph_trust_shows_what_would_run_and_remembers_it() {
    let test = hostile(&format!(
        "{EVIL}approve = 'all'\n[agent]\nname = 'claude'\nflags = \"--x 'a b'\"\n"
    ));
    let done = test
        .ralph(&["trust"])
        .exits(0)
        .says(&format!("trusted {SETTINGS} in "))
        .complains("is not trusted yet. It sets:\n");
    for line in [
        "  checks       touch ../pwned\n",
        "  agent.flags  --x 'a b'\n",
        "  approve      all\n",
    ] {
        assert!(done.err.contains(line), "{line}: {}", done.err);
    }
    assert!(!pwned(&test), "it was shown, not run");
    let record = records(&test).pop().unwrap();
    assert_eq!(
        record.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let dir = test.root().join("home/.config/ralph/trusted");
    assert_eq!(
        fs::metadata(dir).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let stored: Value = serde_json::from_slice(&fs::read(record.path()).unwrap()).unwrap();
    assert_eq!(stored["file"], SETTINGS);
    assert_eq!(stored["content"].as_str().unwrap(), test.read(SETTINGS));
    assert_eq!(stored["sha256"].as_str().unwrap().len(), 64);
    test.ralph(&["trust"]).exits(0).says("is trusted already");
    run(&test, &[]).exits(0);
    test.ralph(&["spawn", "hi", "--name", "b", "--no-tmux"])
        .exits(0);
    test.ralph(&["wait", "b"]).exits(0);
    assert!(!test.ralph(&["config"]).exits(0).err.contains("trusted"));
    let list = test.ralph(&["trust", "--list"]).exits(0).out;
    assert!(
        list.contains(&format!("shop/{SETTINGS}  since 20")),
        "{list}"
    );
    assert_eq!(list.lines().count(), 1);
    test.ralph(&["trust", "--revoke"])
        .exits(0)
        .says("no longer trusted");
    assert_eq!(records(&test).len(), 0);
    run(&test, &[]).exits(2);
    test.ralph(&["trust", "--revoke"])
        .exits(0)
        .says("were trusted");
    test.ralph(&["trust", "--list"])
        .exits(0)
        .says("no settings are trusted yet");
}

#[test]
fn a_changed_file_has_to_be_trusted_again_and_the_difference_is_shown() {
    let test = hostile("maxIterations = 3\nchecks = ['true']\n");
    test.ralph(&["trust"]).exits(0);
    run(&test, &[]).exits(0);
    test.write(SETTINGS, "maxIterations = 3\nchecks = ['touch ../pwned']\n");
    test.ralph(&["run", "hi", "--name", "b"])
        .exits(2)
        .complains(&format!(
            "{SETTINGS} has changed since you trusted it: it sets checks"
        ));
    assert!(!pwned(&test));
    let done = test
        .ralph(&["trust"])
        .exits(0)
        .complains("has changed since you trusted it");
    for line in ["  -checks = ['true']\n", "  +checks = ['touch ../pwned']\n"] {
        assert!(done.err.contains(line), "{line}: {}", done.err);
    }
    // Going back to what was trusted needs no second question, as with branches.
    test.write(SETTINGS, "maxIterations = 3\nchecks = ['true']\n");
    test.ralph(&["run", "hi", "--name", "b"]).exits(0);
    // A change of one byte is a change.
    test.write(SETTINGS, "maxIterations = 3\nchecks = ['true']\n\n");
    test.ralph(&["run", "hi", "--name", "c"]).exits(2);
}

#[test]
fn ci_trusts_and_says_so() {
    let test = hostile(EVIL);
    let with_ci = |value: &str, name: &str| {
        let mut command = test.ralph_command(&["run", "hi", "--name", name]);
        command.env("CI", value);
        test.start_command(command).end()
    };
    for value in ["", "false", "0"] {
        with_ci(value, "a").exits(2);
    }
    let done = with_ci("true", "a").exits(0);
    let note = format!("note: CI is set, so this run trusts {SETTINGS}, which sets checks\n");
    assert!(done.err.contains(&note), "{}", done.err);
    assert!(pwned(&test));
    assert_eq!(records(&test).len(), 0, "nothing is stored");
}

#[test]
fn what_the_user_named_or_wrote_is_trusted() {
    let test = hostile(EVIL).file("other.toml", "checks = ['true']\n");
    run(&test, &["--config", "other.toml"]).exits(0);
    assert!(!pwned(&test), "the project's file is replaced");
    test.write(".ralph/settings.local.toml", "notify = 'touch ../pwned'\n");
    test.ralph(&["run", "hi", "--name", "b", "--config", "other.toml"])
        .exits(2)
        .complains(".ralph/settings.local.toml is not trusted");
    let test = Test::git().untrusting().on_path("claude", AGENT).file(
        "../home/.config/ralph/settings.toml",
        "checks = ['true']\nnotify = 'true'\n",
    );
    run(&test, &[]).exits(0);
    // Flags are the user's own words.
    run(&test, &["--check", "true", "--yolo", "--notify", "true"]).exits(0);
}

#[test]
fn what_init_wrote_is_trusted_until_it_is_changed() {
    let test = Test::git()
        .untrusting()
        .on_path("claude", AGENT)
        .program("test.sh", "#!/bin/sh\n");
    test.ralph(&["init", "--settings"]).exits(0);
    assert!(test.read(SETTINGS).contains("[[checks]]"));
    run(&test, &[]).exits(0);
    test.ralph(&["init", "--settings", "--force"]).exits(0);
    let changed = test.read(SETTINGS) + "notify = 'touch ../pwned'\n";
    test.write(SETTINGS, &changed.replace("./test.sh", "touch ../pwned"));
    test.ralph(&["run", "hi", "--name", "b"]).exits(2);
    assert!(!pwned(&test));
}

#[test]
fn resume_uses_the_recorded_plan() {
    let test = hostile("checks = ['test -e done']\nmaxIterations = 1\n");
    run(&test, &["--trust"]).exits(1);
    test.write(SETTINGS, EVIL);
    test.write("done", "");
    test.ralph(&["set", "a", "max-iterations=2"]).exits(0);
    test.ralph(&["resume", "a"]).exits(0);
    assert!(!pwned(&test));
}

#[test]
fn a_link_a_worktree_and_a_copy_are_judged_by_their_content_and_repository() {
    let test = hostile(EVIL);
    test.sh(
        "git add -A && git commit -q -m settings && git worktree add -q ../tree && cp -r . ../copy",
    );
    test.ralph(&["trust"]).exits(0);
    let in_dir = |dir: &str, name: &str| {
        let mut command = test.ralph_command(&["run", "hi", "--name", name]);
        command.current_dir(test.root().join(dir));
        test.start_command(command).end()
    };
    in_dir("tree", "a").exits(0);
    in_dir("copy", "b").exits(2);
    test.sh("echo 'notify = \"touch ../pwned\"' >> ../tree/.ralph/settings.toml");
    in_dir("tree", "c").exits(2).complains("has changed since");
    // The content of a link counts, not its name.
    test.sh("mv .ralph/settings.toml ../elsewhere.toml && ln -s ../../elsewhere.toml .ralph/settings.toml");
    in_dir("shop", "d").exits(0);
    test.sh("echo >> ../elsewhere.toml");
    in_dir("shop", "e").exits(2);
    // Neither a nested repository nor a subdirectory inherits the trust of the one around it.
    test.sh("git checkout -q . && git init -q inner && mkdir -p inner/.ralph sub/.ralph");
    for dir in ["inner", "sub"] {
        test.write(&format!("{dir}/{SETTINGS}"), EVIL);
    }
    in_dir("shop/inner", "f").exits(2);
    let mut command = test.ralph_command(&["run", "hi", "--name", "g", "--here"]);
    command.current_dir(test.workspace().join("sub"));
    test.start_command(command).end().exits(2);
    test.ralph(&["trust", "sub"]).exits(0).says("sub\n");
    let mut command = test.ralph_command(&["run", "hi", "--name", "g", "--here"]);
    command.current_dir(test.workspace().join("sub"));
    test.start_command(command).end().exits(0);
    // An unpacked archive cannot claim to be a worktree of a repository that is trusted.
    test.sh("mkdir -p ../fake/.ralph && cp ../tree/.git ../fake/ && git show HEAD:.ralph/settings.toml > ../fake/.ralph/settings.toml");
    in_dir("fake", "h").exits(2);
}

#[test]
fn an_agent_can_neither_trust_settings_nor_start_a_loop_with_changed_ones() {
    let test = Test::git().untrusting().on_path(
        "claude",
        "#!/bin/sh\ncat > /dev/null\n\
         echo \"checks = ['touch ../pwned']\" > .ralph/settings.toml\n\
         for args in '' --trust; do\n\
         CI=true ralph spawn child --no-tmux --share-workspace --name child $args -- true > ../spawn.txt 2>&1; echo $? >> ../codes\n\
         done\n\
         ralph trust > ../trust.txt 2>&1; echo $? >> ../codes\n\
         ralph trust --list >> ../trust.txt 2>&1; echo $? >> ../codes\n\
         ralph init --settings --force > ../init.txt 2>&1\n\
         echo '<promise>COMPLETE</promise>'\n",
    );
    let test = test.file(SETTINGS, "checks = ['true']\n");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ralph"), test.root().join("bin/ralph")).unwrap();
    test.ralph(&["trust"]).exits(0);
    run(&test, &["--no-preflight"]).exits(0);
    let read = |name: &str| fs::read_to_string(test.root().join(name)).unwrap();
    assert_eq!(read("codes"), "2\n2\n2\n2\n");
    let refused = read("spawn.txt");
    assert!(
        refused.contains("ask a person to run `ralph trust` outside the loop"),
        "{refused}"
    );
    assert!(read("trust.txt").contains("an agent cannot decide which settings are trusted"));
    assert!(!pwned(&test));
    assert_eq!(records(&test).len(), 1, "only what the user trusted");
}

#[test]
fn a_child_loop_in_a_trusted_workspace_starts() {
    let test = Test::git().untrusting().on_path(
        "claude",
        "#!/bin/sh\ncat > /dev/null\n\
         ralph run child --share-workspace --name child -- echo '<promise>COMPLETE</promise>' > ../child.txt 2>&1; echo $? > ../code\n\
         echo '<promise>COMPLETE</promise>'\n",
    );
    let test = test.file(SETTINGS, "checks = ['true']\n");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ralph"), test.root().join("bin/ralph")).unwrap();
    test.ralph(&["trust"]).exits(0);
    run(&test, &[]).exits(0);
    assert_eq!(fs::read_to_string(test.root().join("code")).unwrap(), "0\n");
}

#[test]
fn many_processes_can_trust_at_once() {
    let test = hostile(EVIL);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let test = &test;
            scope.spawn(move || {
                let dir = format!("p{}", number % 4);
                test.write(
                    &format!("{dir}/{SETTINGS}"),
                    &format!("checks = ['echo {number}']\n"),
                );
                test.ralph(&["trust", &dir]).exits(0);
            });
        }
    });
    let list = test.ralph(&["trust", "--list"]).exits(0).out;
    assert_eq!(list.lines().count(), 4, "{list}");
    let is_draft = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".new");
    assert!(!records(&test).iter().any(is_draft));
}

#[test]
fn a_damaged_record_trusts_nothing() {
    let test = hostile(EVIL);
    test.ralph(&["trust"]).exits(0);
    let record = records(&test).pop().unwrap().path();
    for text in ["", "{}", "not json"] {
        fs::write(&record, text).unwrap();
        run(&test, &[]).exits(2);
        test.ralph(&["trust", "--list"]).exits(0);
    }
    test.ralph(&["trust"]).exits(0);
    run(&test, &[]).exits(0);
}

#[test]
fn usage_errors_of_trust_are_clear() {
    let test = hostile(EVIL);
    test.ralph(&["trust", "missing"])
        .exits(2)
        .complains("is not a directory");
    test.ralph(&["trust", "--list", "--revoke"]).exits(2);
    test.write(SETTINGS, "checks = 5\n");
    test.ralph(&["trust"])
        .exits(2)
        .complains("checks must be a list");
    // The records of a repository that is gone can still be revoked.
    let gone = Test::git()
        .untrusting()
        .file("old/.ralph/settings.toml", EVIL);
    gone.sh("git init -q old");
    gone.ralph(&["trust", "old"]).exits(0);
    gone.sh("rm -rf old");
    gone.ralph(&["trust", "old", "--revoke"])
        .exits(0)
        .says("no longer trusted");
    gone.ralph(&["trust", "--list"])
        .exits(0)
        .says("no settings are trusted");
}

mod needs_script {
    use super::*;

    const QUESTION: &str = "Trust this file to run all of that as you? [y/N] ";

    #[test]
    fn a_question_that_does_not_fit_the_screen_ends_with_what_is_set() {
        let checks = vec!["\"true\""; 60].join(", ");
        let test = hostile(&format!("notify = 'touch ../pwned'\nchecks = [{checks}]\n"));
        let setting = "stty rows 20 cols 100;";
        let live = test.start_on_terminal_with(setting, &["run", "hi", "--name", "a"]);
        live.until_out(QUESTION);
        let out = live.out();
        let summary = "rows): scroll up before you answer. It sets checks, notify.";
        assert!(out.contains(summary), "{out}");
        live.type_in("n\n");
        live.end().exits(2);
        assert_nothing_ran(&test);
    }

    #[test]
    fn on_a_terminal_ralph_shows_what_would_run_and_asks_once() {
        let test = hostile("checks = [\"touch ../pwned #\\u001b[8m hidden\"]\nnotify = 'true'\n");
        for answer in ["\n", "n\n", "maybe\n", "\x04"] {
            let live = test.start_on_terminal(&["run", "hi", "--name", "a"]);
            live.until_out(QUESTION);
            assert!(!pwned(&test), "nothing runs before the answer");
            let out = live.out();
            assert!(out.contains("is not trusted yet. It sets:"), "{out}");
            assert!(
                out.contains("  checks  touch ../pwned #\u{fffd}[8m hidden"),
                "{out}"
            );
            assert!(out.contains("  notify  true"), "{out}");
            live.type_in(answer);
            live.end()
                .exits(2)
                .says("is not trusted, so nothing was started");
            assert_nothing_ran(&test);
        }
        let live = test.start_on_terminal(&["run", "hi", "--name", "a"]);
        live.until_out(QUESTION);
        // A file that is swapped after it was shown does not run.
        let shown = test.read(SETTINGS);
        test.write(SETTINGS, "checks = ['touch ../swapped']\n");
        live.type_in("y\n");
        live.end().exits(0);
        assert!(pwned(&test) && !test.root().join("swapped").exists());
        test.ralph(&["run", "hi", "--name", "b"]).exits(2);
        test.write(SETTINGS, &shown);
        let live = test.start_on_terminal(&["run", "hi", "--name", "b"]);
        let done = live.end().exits(0);
        assert!(!done.out.contains("[y/N]"), "asked once: {}", done.out);
    }

    #[test]
    fn the_hint_after_a_no_names_config_only_where_it_helps() {
        for (file, hint) in [
            (SETTINGS, "`--config FILE` uses another settings file"),
            (
                ".ralph/settings.local.toml",
                "edit or remove what you do not trust",
            ),
        ] {
            let test = Test::git().untrusting().file(file, EVIL);
            let live = test.start_on_terminal(&["run", "hi", "--name", "a"]);
            live.until_out(QUESTION);
            live.type_in("n\n");
            let done = live.end().exits(2);
            let words: Vec<&str> = done.out.split_whitespace().collect();
            assert!(words.join(" ").contains(hint), "{}", done.out);
        }
    }

    #[test]
    fn spawn_asks_before_it_detaches_and_a_change_is_shown() {
        let test = hostile("checks = ['true']\n");
        test.ralph(&["trust"]).exits(0);
        test.write(SETTINGS, EVIL);
        test.write(".ralph/settings.local.json", r#"{"notify": "true"}"#);
        let live = test.start_on_terminal(&["spawn", "hi", "--name", "a", "--no-tmux"]);
        live.until_out("Trust these files to run all of that as you? [y/N] ");
        let out = live.out();
        let words: Vec<&str> = out.split_whitespace().collect();
        assert!(
            words.join(" ").contains("has changed since you trusted it"),
            "{out}"
        );
        for text in ["  -checks = ['true']", "  +checks = ['touch ../pwned']"] {
            assert!(out.contains(text), "{text}: {out}");
        }
        assert_nothing_ran(&test);
        live.type_in("yes\n");
        live.end().exits(0).says("spawned a");
        test.ralph(&["wait", "a"]).exits(0);
        assert!(pwned(&test));
        assert_eq!(records(&test).len(), 3);
    }
}
