//! Other processes that change a loop's own files: the change is named, and never leads to a second
//! agent, a silent end, a lost request or additional iterations.

use crate::kit::{Done, Live, Test, alive, signal, until};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// A journal line that would allow 100 iterations.
const FORGED: &str = r#"{"at":"2026-11-18T00:00:00.000Z","at_ms":1,"ms":0,"event":"changed","limit":{"name":"max-iterations","value":100}}"#;

/// An agent that waits for the file `go` in the workspace.
const WAITS: &str = "touch here; until test -e go; do sleep 0.02; done";

const PLAIN: [&str; 7] = ["run", "x", "--name", "a", "-m", "2", "--no-promise"];

fn run(test: &Test, agent: &str) -> Done {
    test.ralph(&[&PLAIN[..], &["--", "sh", "-c", agent]].concat())
}

/// Starts a loop whose agent waits, and waits for the agent.
fn start_waiting(test: &Test, agent: &str) -> Live {
    let live = test.start(&[&PLAIN[..], &["--", "sh", "-c", agent]].concat());
    until("the agent", || {
        test.workspace().join("here").exists() && spawned(test) > 0
    });
    live
}

fn file(test: &Test, name: &str) -> PathBuf {
    test.loop_dir("a").join(name)
}

fn append(test: &Test, line: &str) {
    let mut options = fs::OpenOptions::new();
    let journal = options.append(true).open(file(test, "journal.jsonl"));
    journal.unwrap().write_all(line.as_bytes()).unwrap();
}

fn cut(test: &Test, name: &str, lines: usize) {
    let whole = test.read_loop("a", name);
    let kept: String = whole.split_inclusive('\n').take(lines).collect();
    assert!(kept.len() < whole.len());
    let opened = fs::OpenOptions::new().write(true).open(file(test, name));
    opened.unwrap().set_len(kept.len() as u64).unwrap();
}

fn spawned(test: &Test) -> usize {
    test.events("a", "spawned").len()
}

#[test]
fn a_line_that_the_agent_appends_to_the_journal_is_removed_and_kept_aside() {
    let test = Test::new().file("line", &format!("{FORGED}\n"));
    run(&test, "cat line >> $RALPH_STATE_DIR/loops/a/journal.jsonl")
        .exits(0)
        .complains("another process appended 115 bytes; ralph removed them and kept them in ")
        .complains("journal.jsonl.aside-1");
    assert_eq!(spawned(&test), 2);
    assert_eq!(
        test.read_loop("a", "journal.jsonl.aside-1"),
        format!("{FORGED}\n")
    );
    assert_eq!(test.events("a", "changed").len(), 0);
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("has reached its limit");
}

#[test]
fn an_appended_line_is_not_shown_while_the_agent_runs() {
    let test = Test::new();
    let live = start_waiting(&test, WAITS);
    append(&test, &format!("{FORGED}\n"));
    assert_eq!(test.status("a")["max_iterations"], 2);
    test.write("go", "");
    live.end().exits(0).complains("another process appended");
}

#[test]
fn a_line_appended_to_an_ended_loop_grants_no_iteration() {
    let test = Test::new();
    run(&test, "true").exits(0);
    append(&test, &format!("{FORGED}\n"));
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("has reached its limit");
    test.ralph(&["resume", "a", "--answer", "go on"]).exits(2);
    assert_eq!(spawned(&test), 2);
}

#[test]
fn a_line_appended_after_a_crash_is_removed_and_kept_aside() {
    let test = Test::new();
    let live = start_waiting(&test, WAITS);
    kill_everything(&test, live);
    append(&test, &format!("{FORGED}\n"));
    test.write("go", "");
    test.ralph(&["resume", "a"])
        .exits(0)
        .complains("another process appended");
    assert_eq!(spawned(&test), 2);
    assert!(file(&test, "journal.jsonl.aside-1").exists());
}

#[test]
fn a_cut_journal_ends_the_loop_and_is_not_continued() {
    let test = Test::new();
    run(&test, "printf '' > $RALPH_STATE_DIR/loops/a/journal.jsonl")
        .exits(1)
        .complains("journal.jsonl was changed by another process: ")
        .complains(" are missing");

    let test = Test::new();
    let live = start_waiting(&test, WAITS);
    cut(&test, "journal.jsonl", 2);
    test.write("go", "");
    live.end().exits(1).complains(" are missing");
    refuses_altered_journal(&test, " are missing");
    assert_eq!(test.read("here"), "", "the agent ran once");
    test.ralph(&["rm", "a"]).exits(0);
}

#[test]
fn a_journal_that_was_cut_or_changed_between_two_runs_is_not_continued() {
    for change in ["cut", "edit"] {
        let test = Test::new();
        let args = [
            "run",
            "x",
            "--name",
            "a",
            "--",
            "sh",
            "-c",
            "echo why > $RALPH_TASK_DIR/BLOCKED",
        ];
        test.ralph(&args).exits(3);
        if change == "cut" {
            cut(&test, "journal.jsonl", 3);
            refuses_altered_journal(&test, " are missing");
        } else {
            let journal = test.read_loop("a", "journal.jsonl");
            let edited = journal.replacen("\"max_iterations\":50", "\"max_iterations\":99", 1);
            let edited = if edited == journal {
                journal.replacen("sh", "hs", 1)
            } else {
                edited
            };
            fs::write(file(&test, "journal.jsonl"), edited).unwrap();
            refuses_altered_journal(&test, "its content is not what ralph wrote");
        }
        // Without the seal, the journal counts as it is.
        fs::remove_file(file(&test, "seal")).unwrap();
        let _ = fs::remove_file(file(&test, "state.json"));
        let done = test.ralph(&["resume", "a"]);
        assert!(!done.err.contains("another process"), "{done:?}");
    }
}

/// Asserts that `resume` refuses the journal with these words.
#[track_caller]
fn refuses_altered_journal(test: &Test, detail: &str) {
    let before = test.read_loop("a", "journal.jsonl");
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("was changed by another process: ")
        .complains(detail)
        .complains("seal and run `ralph resume a`");
    assert_eq!(test.read_loop("a", "journal.jsonl"), before);
}

#[test]
fn an_incomplete_last_line_is_kept_aside() {
    let test = Test::new();
    run(&test, "true").exits(0);
    let journal = test.read_loop("a", "journal.jsonl");
    let unfinished = journal.trim_end().rsplit_once('\n').unwrap().0;
    test.replace_journal("a", &format!("{unfinished}\n{{\"at\":\"20"));
    test.ralph(&["resume", "a"])
        .complains("cut off an incomplete last line of 9 bytes, left by a crash and kept them in ");
    assert_eq!(test.read_loop("a", "journal.jsonl.aside-1"), "{\"at\":\"20");
}

#[test]
fn a_deleted_lock_file_does_not_free_a_running_loop() {
    let test = Test::new();
    let live = start_waiting(
        &test,
        "echo $$ >> agents; touch here; until test -e go; do sleep 0.02; done",
    );
    fs::remove_file(file(&test, "lock")).unwrap();
    assert_eq!(test.status("a")["status"], "running");
    test.ralph(&["resume", "a"])
        .exits(0)
        .complains("already running");
    test.ralph(&["rm", "a"]).exits(2);
    test.ralph(&["run", "y", "--name", "a", "--", "true"])
        .exits(2);
    let agent: u32 = test.read("agents").trim().parse().unwrap();
    assert!(alive(agent));
    test.write("go", "");
    live.end()
        .exits(0)
        .complains("another process deleted or replaced the lock file; ralph created it again");
    assert_eq!(spawned(&test), 2);
    assert!(file(&test, "lock").exists());
}

#[test]
fn a_forged_background_lock_does_not_exempt_a_process() {
    let test = Test::new();
    // A daemon in its own session that claims to run a background loop: it holds the locks of a
    // lock file and of a journal that look genuine.
    let daemon = "cd $RALPH_STATE_DIR/loops && mkdir -p x && \
        sed -e '1s/\"name\":\"a\"/\"name\":\"x\"/; 1s/\"background\":false/\"background\":true/' a/journal.jsonl > x/journal.jsonl && \
        start=$(cut -d ' ' -f 22 /proc/$$/stat) && \
        printf '{\"pid\":%s,\"start_time\":%s,\"loop_name\":\"x\",\"since\":\"2026-11-18T00:00:00Z\",\"background\":true}' $$ $start > x/lock && \
        exec 8<>x/lock 9<>x/journal.jsonl && flock 8 && flock 9 && echo $$ > daemon.pid && exec sleep 600 __supervise x";
    let agent = format!(
        "setsid sh -c '{}' & until test -s $RALPH_STATE_DIR/loops/daemon.pid; do sleep 0.02; done",
        daemon.replace('\'', "'\\''")
    );
    let agent = agent.replace("exec sleep 600 __supervise x", "exec sleep 600");
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
        &agent,
    ])
    .exits(0);
    let daemon: u32 = fs::read_to_string(test.state_dir().join("loops/daemon.pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(!alive(daemon), "the sweep spared the daemon");
}

#[test]
fn a_deleted_or_cut_inbox_swallows_no_request() {
    for change in ["delete", "cut", "pipe"] {
        let test = Test::new();
        let live = start_waiting(&test, WAITS);
        test.ralph(&["say", "a", "a message that makes the inbox long"])
            .exits(0);
        until("the message in the journal", || {
            !test.events("a", "answered").is_empty()
        });
        match change {
            "delete" => fs::remove_file(file(&test, "inbox.jsonl")).unwrap(),
            "cut" => fs::write(file(&test, "inbox.jsonl"), "").unwrap(),
            _ => {
                test.sh("cd ../state/loops/a; mkfifo pipe; mv -f pipe inbox.jsonl");
            }
        }
        test.ralph(&["pause", "a"])
            .exits(0)
            .says("paused ralph loop for a");
        assert_eq!(test.events("a", "asked").len(), 1, "{change}");
        test.write("go", "");
        live.end().exits(3);
        assert_eq!(test.status("a")["status"], "paused", "{change}");
        assert_eq!(spawned(&test), 1, "{change}");
    }
}

#[test]
fn stop_reports_an_ending_that_it_did_not_cause() {
    // The agent ends its loop as soon as it is asked to stop.
    let agent = "trap 'echo \"<promise>COMPLETE</promise>\"; exit 0' TERM; touch here; while :; do sleep 0.02; done";
    let test = Test::new();
    let live = test.start(&["run", "x", "--name", "a", "--", "sh", "-c", agent]);
    until("the agent", || test.workspace().join("here").exists());
    let stopped = test.ralph(&["stop", "a"]).exits(0);
    live.end();
    let status = test.status("a")["status"].as_str().unwrap().to_owned();
    let says_stopped = stopped.out.contains("stopped ralph loop for a");
    assert_eq!(says_stopped, status == "stopped", "{status}: {stopped:?}");
}

#[test]
fn an_implausible_heartbeat_is_ignored() {
    let test = Test::new();
    let live = start_waiting(&test, WAITS);
    kill_everything(&test, live);
    fs::write(file(&test, "pulse"), "18446744073709551615\n").unwrap();
    test.write("go", "");
    test.ralph(&["resume", "a"])
        .exits(0)
        .complains("pulse: ralph ignores the saved time, which is later than the clock allows");
    assert!(test.events("a", "woke").len() < 5);
    assert!(test.status("a")["active_s"].as_f64().unwrap() < 600.0);
}

#[test]
fn a_moved_state_directory_ends_the_loop_with_a_message() {
    let test = Test::new();
    run(
        &test,
        "test -e once || mv $RALPH_STATE_DIR $RALPH_STATE_DIR.moved; touch once",
    )
    .exits(1)
    .complains("the loop's directory was deleted or moved: ")
    .complains("hint: move it back and run `ralph resume a`, or start a new loop\n");
    assert!(
        !test.state_dir().exists(),
        "nothing was created in its place"
    );
    fs::rename(test.root().join("state.moved"), test.state_dir()).unwrap();
    assert_eq!(test.status("a")["outcome"]["why"], "disk");
    test.ralph(&["resume", "a"]).exits(0);
    assert_eq!(spawned(&test), 2);
}

mod needs_mounts {
    use super::*;

    #[test]
    fn a_state_directory_that_is_unmounted_ends_the_loop_with_a_message() {
        let test = Test::new();
        let ralph = env!("CARGO_BIN_EXE_ralph");
        // The loop's directory lies on a file system that the agent takes away; the lazy unmount
        // leaves the runner its open files.
        let agent = "umount -l $RALPH_STATE_DIR";
        let script = format!(
            "mount -t tmpfs none $RALPH_STATE_DIR || exit 99\n\
             {ralph} run x --name a -m 3 --no-promise -- sh -c 'echo >>../ran; {agent}'\n\
             code=$?; ls -A $RALPH_STATE_DIR >../left; exit $code"
        );
        let mut command = test.command("unshare");
        command.args(["-Urm", "sh", "-c", &script]);
        test.start_command(command)
            .end()
            .exits(1)
            .complains("the loop's directory was deleted or moved: ");
        assert_eq!(test.read("../ran"), "\n", "no second iteration");
        assert_eq!(test.read("../left"), "", "nothing was created in its place");
    }
}

#[test]
fn a_link_in_place_of_the_task_directory_leads_nowhere() {
    let test = Test::new().file("mine/progress.md", "notes\n");
    let link = "rm -rf $RALPH_TASK_DIR; ln -s $PWD/mine $RALPH_TASK_DIR";
    let args = ["run", "x", "--name", "a", "-m", "2", "--no-promise", "--"];
    test.ralph(&[&args[..], &["sh", "-c", link]].concat())
        .exits(0);
    assert_eq!(test.read("mine/progress.md"), "notes\n");
    assert_eq!(spawned(&test), 2);
}

#[test]
fn a_copy_in_place_of_the_state_directory_leads_to_no_second_agent() {
    let test = Test::new();
    let live = start_waiting(
        &test,
        "echo $$ >> agents; touch here; until test -e go; do sleep 0.02; done",
    );
    test.sh("mv ../state ../state.old && cp -a ../state.old ../state");
    test.ralph(&["status", "a"])
        .complains("still runs the loop \"a\", with its journal at ");
    test.ralph(&["resume", "a"])
        .exits(2)
        .complains("still runs the loop \"a\"");
    let agent: u32 = test.read("agents").trim().parse().unwrap();
    assert!(alive(agent), "status killed the agent");
    test.write("go", "");
    live.end()
        .exits(1)
        .complains("the loop's directory was replaced by another one: ");
    assert_eq!(test.read("agents").lines().count(), 1);
    test.ralph(&["resume", "a"]).exits(0);
}

#[test]
fn removing_a_loop_with_a_damaged_journal_kills_what_it_left_behind() {
    let test = Test::new();
    let live = start_waiting(&test, &format!("setsid sleep 600 & echo $! > pid; {WAITS}"));
    let daemon: u32 = test.read("pid").trim().parse().unwrap();
    let warden = live.pid();
    let supervisor: u32 = test
        .sh(&format!("pgrep -P {warden}"))
        .trim()
        .parse()
        .unwrap();
    // A stopped warden cannot clean up after the supervisor.
    signal(warden, "STOP");
    signal(supervisor, "KILL");
    signal(warden, "KILL");
    live.end_within(Duration::from_secs(20));
    test.sh("cd ../state/loops/a && rm -f state.json && sed -i '2s/.*/{broken/' journal.jsonl");
    until("the lock", || {
        test.ralph(&["rm", "a"])
            .err
            .contains("is damaged at line 2")
    });
    assert!(alive(daemon));
    test.ralph(&["rm", "a", "--force"])
        .exits(0)
        .complains("that it left behind");
    assert!(!alive(daemon));
}

/// Kills the warden and the supervisor at once, and waits until the loop's processes are gone.
fn kill_everything(test: &Test, live: Live) {
    let warden = live.pid();
    let supervisor = test.sh(&format!("pgrep -P {warden}"));
    let supervisor: u32 = supervisor.trim().parse().unwrap();
    signal(supervisor, "KILL");
    live.end();
    until("a crash", || test.status("a")["status"] == "crashed");
}
