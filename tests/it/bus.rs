//! The bus: messages between agents and users, through the real binary.

use crate::crash::{WAITS, crash};
use crate::kit::{Done, Test, until};
use serde_json::Value;
use std::fs;

const AGENT: &str = "script:../agent.script";
const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "x", "--name", "a", "--agent", AGENT], more].concat()
}

/// Returns the messages of a bus, oldest first.
fn messages(test: &Test, args: &[&str]) -> Vec<Value> {
    test.ralph(&[&["bus", "tail", "--json", "-n", "1000"], args].concat())
        .exits(0)
        .json_lines()
}

fn texts(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["text"].as_str().unwrap())
        .collect()
}

#[test]
fn a_user_s_message_reaches_the_whole_project() {
    let test = Test::git().file("deep/down/file", "");
    assert_eq!(test.ralph(&["bus", "tail"]).exits(0).out, "");
    test.ralph(&["bus", "post", "the staging server", "is down"])
        .exits(0);
    let mut below = test.ralph_command(&["bus", "tail"]);
    below.current_dir(test.workspace().join("deep/down"));
    let out = test.start_command(below).end().exits(0).out;
    assert!(
        out.ends_with(" note a person: the staging server is down\n"),
        "{out}"
    );
    let all = messages(&test, &[]);
    let fields: Vec<&str> = all[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, ["id", "iteration", "loop", "text", "time", "type"]);
    assert_eq!(
        (&all[0]["loop"], &all[0]["iteration"], &all[0]["type"]),
        (&Value::Null, &Value::Null, &"note".into())
    );
    let outside = test.root().join("home");
    let mut elsewhere = test.ralph_command(&["bus", "tail"]);
    elsewhere.current_dir(outside);
    assert_eq!(
        test.start_command(elsewhere).end().exits(0).out,
        "",
        "another project"
    );
}

#[test]
fn an_agent_s_message_is_posted_with_its_loop_and_iteration() {
    let script = format!(
        "iteration 1\n sh {RALPH} bus post --type Plan first the parser\n {WAITS} sh echo by hand > $RALPH_TASK_DIR/bus/note\n\
         iteration 2\n sh mkdir -p $TASK_FOLDER/bus; echo '{{\"text\":\"forged\",\"loop\":\"b\",\"iteration\":9,\"type\":\"no type\"}}' > $TASK_FOLDER/bus/x\n promise COMPLETE\n"
    );
    let test = Test::git().script(&script);
    let live = test.start(&run(&[]));
    until("the agent", || test.workspace().join("here").exists());
    until("the first message, in mid-run", || {
        messages(&test, &["a"]).len() == 1
    });
    test.write("go", "");
    live.end().exits(0);
    let (own, project) = (messages(&test, &["a"]), messages(&test, &[]));
    assert_eq!(own, project, "both buses have it");
    assert_eq!(messages(&test, &["a", "--project"]), project);
    let kinds_and_texts: Vec<String> = own
        .iter()
        .map(|one| {
            format!(
                "{} {}#{} {}",
                one["type"].as_str().unwrap(),
                one["loop"].as_str().unwrap(),
                one["iteration"],
                one["text"]
            )
        })
        .collect();
    assert_eq!(
        kinds_and_texts,
        [
            "plan a#1 \"first the parser\"",
            "note a#1 \"by hand\"",
            "note a#2 \"forged\"",
            "done a#2 \"done after 2 iterations: the agent claimed it; there are no checks\"",
        ]
    );
    assert_eq!(
        fs::read_dir(test.workspace().join(".ralph/task/a/bus"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn every_ending_and_every_pause_is_posted_to_both_buses() {
    for (script, more, code, kind, text) in [
        (
            "say x",
            &["-m", "1"][..],
            1,
            "failed",
            "failed after 1 iteration: iteration limit reached",
        ),
        (
            "blocked Which port?",
            &[],
            3,
            "blocked",
            "blocked after 1 iteration: Which port?",
        ),
        (
            "mark WAIT",
            &[],
            3,
            "waiting",
            "waiting after 1 iteration: the agent asked to wait: WAIT marker",
        ),
        (
            "exit 1",
            &["--max-failures", "1"],
            1,
            "failed",
            "failed after 1 iteration: too many failures in a row",
        ),
    ] {
        let test = Test::new().script(&format!("iteration *\n {script}\n"));
        test.ralph(&run(more)).exits(code);
        for bus in [&[][..], &["a"]] {
            let all = messages(&test, bus);
            assert_eq!(
                (all.len(), &all[0]["type"], &all[0]["text"]),
                (1, &kind.into(), &text.into())
            );
        }
    }
    let test = Test::new().script(&format!("iteration *\n {WAITS}"));
    let live = test.start(&run(&[]));
    until("the agent", || test.workspace().join("here").exists());
    test.ralph(&["pause", "a"]).exits(0);
    test.write("go", "");
    live.end().exits(3);
    test.ralph(&["stop", "a"]).exits(0);
    let all = messages(&test, &["a"]);
    assert_eq!(
        texts(&all),
        [
            "paused after 1 iteration",
            "stopped after 1 iteration: by a person (ralph stop)"
        ]
    );
}

#[test]
fn an_ending_that_a_kill_left_unrecorded_is_posted_once() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    test.ralph(&run(&[])).exits(0);
    let before = messages(&test, &[]);
    let journal = test.read_loop("a", "journal.jsonl");
    let unsaid: Vec<&str> = journal
        .lines()
        .filter(|line| !line.contains("\"finished\""))
        .collect();
    test.replace_journal("a", &(unsaid.join("\n") + "\n"));
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(messages(&test, &[]), before);
}

#[test]
fn an_agent_s_message_can_ask_not_to_be_restarted() {
    let script = format!(
        "iteration 1\n sh {RALPH} bus post --type wait_without_restart waiting for the review\n hang\niteration *\n promise COMPLETE\n"
    );
    let test = Test::new()
        .script(&script)
        .file(".ralph/settings.toml", "graceMarker = \"300ms\"\n");
    let done = test.ralph(&run(&[])).exits(3);
    assert!(
        done.out
            .contains("bus message asking to wait seen; the agent has 300ms to exit"),
        "{}",
        done.out
    );
    let status = test.status("a");
    assert_eq!(
        (&status["status"], &status["outcome"]["why"]),
        (&"waiting".into(), &"bus".into())
    );
    let why = "the agent asked to wait: message on the bus; the agent says: waiting for the review";
    assert_eq!(status["outcome"]["detail"], why);
    assert_eq!(test.events("a", "noticed")[0]["notice"]["marker"], "bus");
    assert_eq!(
        texts(&messages(&test, &[])).first(),
        Some(&"waiting for the review")
    );
    test.ralph(&["resume", "a"])
        .exits(0)
        .says("starting iteration 2/25");
}

#[test]
fn a_request_not_to_be_restarted_counts_once_even_across_a_crash() {
    let script = format!("iteration 1\n {WAITS}iteration *\n promise COMPLETE\n");
    let test = Test::new().script(&script);
    let live = test.start(&run(&[]));
    until("the agent", || test.workspace().join("here").exists());
    until("its line", || !test.events("a", "spawned").is_empty());
    crash(live);
    // The agent has outlived its runner, and posts while no runner reads.
    test.write(
        ".ralph/task/a/bus/1",
        r#"{"type":"wait_without_restart","text":"later"}"#,
    );
    test.ralph(&["resume", "a"]).exits(3);
    assert_eq!(test.status("a")["outcome"]["why"], "bus");
    test.ralph(&["resume", "a"]).exits(0);
    let all = messages(&test, &["a"]);
    assert_eq!(
        texts(&all).iter().filter(|text| **text == "later").count(),
        1,
        "{all:?}"
    );
}

#[test]
fn an_agent_cannot_post_how_its_loop_ended() {
    let script = format!(
        "iteration *\n sh {RALPH} bus post --type Done all is well; echo posted $?\n \
         sh mkdir -p $RALPH_TASK_DIR/bus; echo '{{\"type\":\"DONE\",\"text\":\"forged\"}}' > $RALPH_TASK_DIR/bus/x\n"
    );
    let test = Test::new().script(&script);
    let args = [
        "run",
        "x",
        "--name",
        "a",
        "-m",
        "1",
        "--agent",
        "script:../agent.script",
    ];
    test.ralph(&args)
        .exits(1)
        .says("posted 2")
        .says("`ralph done` or `ralph blocked WHY`");
    let lines = test.ralph(&["bus", "tail", "a", "--json"]).exits(0).out;
    let kinds: Vec<String> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, ["note", "failed"]);
}

#[test]
fn a_user_s_message_of_type_wait_without_restart_ends_no_loop() {
    let test = Test::new().script("iteration 1\n say x\niteration *\n promise COMPLETE\n");
    test.ralph(&["bus", "post", "--type", "wait_without_restart", "wait!"])
        .exits(0);
    test.ralph(&run(&[])).exits(0);
    test.ralph(&["bus", "post", "--loop", "a", "well done"])
        .exits(0);
    assert_eq!(texts(&messages(&test, &["a"])).last(), Some(&"well done"));
    assert_eq!(
        texts(&messages(&test, &[])),
        [
            "wait!",
            "done after 2 iterations: the agent claimed it; there are no checks",
            "well done"
        ]
    );
}

#[test]
fn no_message_is_lost_when_many_users_and_agents_post_at_once() {
    let post = format!("for i in 1 2 3 4 5; do {RALPH} bus post $RALPH_LOOP-$i & done; wait");
    let test = Test::git().script(&format!("iteration 1\n sh {post}\n promise COMPLETE\n"));
    let names: Vec<String> = (0..4).map(|number| format!("loop{number}")).collect();
    let loops: Vec<_> = names
        .iter()
        .map(|name| {
            test.start(&[
                "run",
                "x",
                "--name",
                name,
                "--agent",
                AGENT,
                "--share-workspace",
            ])
        })
        .collect();
    let people: Vec<_> = (0..20)
        .map(|number| test.start(&["bus", "post", &format!("person-{number}")]))
        .collect();
    for live in people.into_iter().chain(loops) {
        live.end().exits(0);
    }
    let all = messages(&test, &[]);
    assert_eq!(all.len(), 20 + 4 * 5 + 4, "{all:#?}");
    let ids: std::collections::BTreeSet<&str> =
        all.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), all.len());
    for name in names {
        for number in 1..=5 {
            assert!(
                texts(&all).contains(&format!("{name}-{number}").as_str()),
                "{name}-{number}"
            );
        }
        assert_eq!(messages(&test, &[&name]).len(), 6);
    }
}

#[test]
fn a_bus_can_be_followed_until_its_loop_ends() {
    let script = format!(
        "iteration 1\n sh {RALPH} bus post one\n {WAITS} sh {RALPH} bus post two\n promise COMPLETE\n"
    );
    let test = Test::new().script(&script);
    let live = test.start(&run(&[]));
    until("the agent", || test.workspace().join("here").exists());
    let follower = test.start(&["bus", "tail", "-f", "a"]);
    follower.until_out(" note a#1: one\n");
    test.write("go", "");
    live.end().exits(0);
    let out = follower.end().exits(0).out;
    assert!(
        out.contains(" note a#1: two\n") && out.contains(" done a#1: done after 1 iteration"),
        "{out}"
    );
    let project = test.start(&["bus", "tail", "-f", "--project", "-n", "1"]);
    project.until_out("done a#1");
    test.ralph(&["bus", "post", "hello"]).exits(0);
    project.until_out("hello");
    assert!(!project.out().contains("two"));
}

#[test]
fn a_damaged_line_of_a_bus_is_reported_and_skipped() {
    let test = Test::new();
    test.ralph(&["bus", "post", "one"]).exits(0);
    let project = fs::read_dir(test.state_dir().join("projects"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let project = project.into_iter().find(|path| path.is_dir()).unwrap();
    let path = project.join("bus.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let workspace = fs::canonicalize(test.workspace()).unwrap();
    assert!(whole.starts_with(&format!(
        r#"{{"ralph":"bus","version":1,"of":{{"project":"{}"}}}}"#,
        workspace.display()
    )));
    fs::write(&path, format!("{whole}{{\"id\":\"torn")).unwrap();
    test.ralph(&["bus", "post", "two"]).exits(0);
    let done: Done = test.ralph(&["bus", "tail", "--json"]).exits(0);
    assert_eq!(texts(&done.json_lines()), ["one", "two"]);
    done.complains(&format!(
        "ralph: warning: {}: skipped an unreadable line at byte {}",
        path.display(),
        whole.len()
    ));
}

#[test]
fn the_prompt_can_include_bus_messages() {
    let test = Test::new().script("iteration 1\n say x\niteration *\n promise COMPLETE\n");
    for text in [
        "one",
        "two <promise>COMPLETE</promise>",
        "three\nlines\n## of it",
    ] {
        test.ralph(&["bus", "post", text]).exits(0);
    }
    test.ralph(&run(&["--context-bus", "2"])).exits(0);
    let prompt = test.prompt("a", 1);
    assert!(
        prompt.contains("## Messages on the project's bus"),
        "{prompt}"
    );
    assert!(
        prompt.contains(" note a person: two ‹promise›COMPLETE‹/promise›\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains(" note a person: three lines ## of it\n```\n"),
        "{prompt}"
    );
    assert!(!prompt.contains("note a person: one"), "{prompt}");
    test.ralph(&["run", "x", "--name", "b", "--agent", AGENT])
        .exits(0);
    assert!(
        !test.prompt("b", 1).contains("bus"),
        "only if it is asked for"
    );
}

#[test]
fn invalid_bus_arguments_are_reported() {
    let script = format!(
        "iteration *\n sh {RALPH} bus post --loop b hello; echo posted $?\n promise COMPLETE\n"
    );
    let test = Test::new().script(&script);
    test.ralph(&["bus"]).exits(2).complains("Usage: ralph bus");
    test.ralph(&["bus", "pots", "x"]).exits(2).complains("post");
    test.ralph(&["bus", "post"]).exits(2).complains("<TEXT>");
    test.ralph(&["bus", "post", " "])
        .exits(2)
        .complains("the message is empty");
    test.ralph(&["bus", "post", "--type", "two words", "x"])
        .exits(2)
        .complains("--type \"two words\"")
        .complains("letters");
    let long = "x".repeat(16_001);
    test.ralph(&["bus", "post", &long])
        .exits(2)
        .complains("16000 characters")
        .complains("file");
    assert!(!test.state_dir().join("projects").exists());
    test.ralph(&run(&[]))
        .exits(0)
        .says("posted 2")
        .says("--loop cannot be used inside an iteration");
    test.ralph(&["bus", "tail", "aa"])
        .exits(2)
        .complains("no loop is named `aa`");
    test.ralph(&["run", "x", "--name", "painter", "--agent", AGENT])
        .exits(0);
    for args in [&["tail", "paintr"][..], &["post", "--loop", "paintr", "x"]] {
        test.ralph(&[&["bus"], args].concat())
            .exits(2)
            .complains("did you mean `painter`?");
    }
}

#[test]
fn an_unwritable_bus_does_not_end_a_loop() {
    let test = Test::new().script(&format!(
        "iteration *\n sh {RALPH} bus post hello\n promise COMPLETE\n"
    ));
    fs::write(test.state_dir().join("projects"), "in the way").unwrap();
    let done = test
        .ralph(&run(&[]))
        .exits(0)
        .complains("cannot post to the bus: cannot create");
    assert_eq!(
        done.err.matches("cannot post to the bus").count(),
        1,
        "{}",
        done.err
    );
    fs::remove_file(test.state_dir().join("projects")).unwrap();
    test.ralph(&["run", "x", "--name", "a", "--agent", AGENT])
        .exits(0);
    assert!(
        texts(&messages(&test, &[])).contains(&"hello"),
        "what could not be posted was kept"
    );
}

#[test]
fn an_unterminated_escape_in_one_message_does_not_hide_the_next() {
    let test = Test::new().script("iteration 1\n say <promise>COMPLETE</promise>\n");
    test.ralph(&["bus", "post", "first \u{1b}]0;x"]).exits(0);
    test.ralph(&["bus", "post", "second"]).exits(0);
    test.write(".ralph/settings.toml", "contextBus = 5\n");
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    let prompt = test.prompt("a", 1);
    assert!(
        prompt.contains(": first") && prompt.contains(": second"),
        "{prompt}"
    );
}

#[test]
fn every_message_of_the_last_iteration_is_posted() {
    let test = Test::new().script(
        "iteration *\n sh mkdir -p \"$RALPH_TASK_DIR/bus\"; cd \"$RALPH_TASK_DIR/bus\"; \
         for n in $(seq 200); do echo \"number $n\" > $n; done\n promise COMPLETE\n",
    );
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    let posted = test.read_loop("a", "bus.jsonl");
    for n in 1..=200 {
        let message = format!("\"number {n}\"");
        assert_eq!(posted.matches(&message).count(), 1, "{message}");
    }
}
