//! What an agent does is told: its last words where it fails, and what it was not allowed.

use crate::kit::{Done, Test};
use std::fs;

#[test]
fn an_agent_that_fails_is_shown_with_its_own_words() {
    let test = Test::new();
    let agent = "echo starting; echo; printf '\\033[31merror:\\033[0m unknown flag --once\\n' >&2; exit 2";
    let words =
        ["run", "x", "--name", "a", "--max-failures", "2", "--backoff", "0..0", "--", "sh", "-c", agent];
    test.ralph(&words).exits(1).says("  said     starting\n").says("           error: unknown flag --once\n");
    let ended = &test.events("a", "ended")[0];
    assert_eq!(ended["report"]["error"], "starting\nerror: unknown flag --once");
    assert_eq!(test.status("a")["last_error"], "starting\nerror: unknown flag --once");
    let progress = test.read(".ralph/task/a/progress.md");
    assert!(progress.contains("- Error: starting error: unknown flag --once\n"), "{progress}");
}

#[test]
fn a_quiet_run_shows_the_last_words_of_an_agent_that_failed() {
    let test = Test::new();
    let words = ["run", "x", "-q", "--max-failures", "1", "--", "sh", "-c", "echo no such model; exit 1"];
    test.ralph(&words).exits(1).says("\n  | no such model\n");
}

#[test]
fn an_agent_that_did_not_fail_has_no_last_words() {
    let test = Test::new();
    test.ralph(&["run", "x", "--name", "a", "-m", "1", "--", "echo", "hello"]).exits(1);
    let stopped = ["--iteration-timeout", "100ms", "--", "sh", "-c", "echo hello; sleep 60"];
    test.ralph(&[&["run", "x", "--name", "b", "-m", "1"][..], &stopped].concat()).exits(1);
    for name in ["a", "b"] {
        assert!(test.events(name, "ended")[0]["report"].get("error").is_none(), "{name}");
        assert!(test.status(name)["last_error"].is_null(), "{name}");
    }
}

#[test]
fn only_the_end_of_long_last_words_is_kept() {
    let test = Test::new();
    let agent = "seq 1 20; printf 'x%.0s' $(seq 1 600); exit 1";
    test.ralph(&["run", "x", "--name", "a", "--max-failures", "1", "--", "sh", "-c", agent]).exits(1);
    let error = test.events("a", "ended")[0]["report"]["error"].as_str().unwrap().to_owned();
    assert_eq!(error, "x".repeat(500));
}

/// Runs a loop whose agent is known to say `refused:` where it is not allowed something. What is known of an
/// agent stands in the first line of the journal, and there it is put in.
fn known_agent(test: &Test, approve: &str, agent: &str) -> Done {
    let words = ["run", "x", "--name", "a", "-m", "1", "--no-promise", "--", "sh", "-c"];
    test.ralph(&[&words[..], &["test -e agent || exit 0; . ./agent"]].concat()).exits(0);
    let journal = test.loop_dir("a").join("journal.jsonl");
    let lines = fs::read_to_string(&journal).unwrap();
    let known = format!("\"approve\":{approve},");
    let lines = lines.replacen("\"approve\":null,", &known, 1);
    fs::write(&journal, lines.replacen("\"denied\":[]", "\"denied\":[\"refused: \"]", 1)).unwrap();
    let _ = fs::remove_file(test.loop_dir("a").join("state.json"));
    test.write("agent", agent);
    test.ralph(&["set", "a", "max-iterations=2"]).exits(0);
    test.ralph(&["resume", "a"])
}

#[test]
fn a_denial_is_shown_counted_and_advised_on() {
    let test = Test::new();
    let agent = "for what in ls rm ls cp mv; do echo \"refused: $what\"; done; exit 1";
    let done = known_agent(&test, "\"edits\"", agent).exits(0);
    for what in ["ls", "rm", "cp"] {
        assert_eq!(
            done.out.matches(&format!("the agent was not allowed: refused: {what}")).count(),
            1,
            "{done:?}"
        );
    }
    assert!(!done.out.contains("not allowed: refused: mv"), "{done:?}");
    let done = done.says("the agent was not allowed something 5 times\n");
    done.says("  denied   5 times, first: refused: ls; --approve all lets it do everything\n");
    let report = &test.events("a", "ended")[1]["report"];
    assert_eq!((&report["denied"], &report["denial"]), (&5.into(), &"refused: ls".into()));
}

#[test]
fn advice_on_a_denial_names_the_next_level_if_there_is_one() {
    for (level, advice) in [
        ("\"none\"", "once: refused: ls; --approve edits lets it change files\n"),
        ("\"all\"", "once: refused: ls\n"),
        ("null", "once: refused: ls; what it may do is for its own command to say\n"),
    ] {
        known_agent(&Test::new(), level, "echo refused: ls").exits(0).says(advice);
    }
}

#[test]
fn an_echoed_prompt_is_no_denial() {
    let test = Test::new();
    let agent = "cat ../state/loops/a/iterations/0002/prompt.md; echo ok";
    test.write(".ralph/template.md", "{{task}}\nIf it says\nrefused: ls\nask.\n{{done}}\n");
    known_agent(&test, "null", agent).exits(0);
    assert!(test.prompt("a", 2).contains("\nrefused: ls\n"));
    assert!(test.events("a", "ended")[1]["report"].get("denied").is_none());
}
