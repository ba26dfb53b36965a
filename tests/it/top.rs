//! `ralph top`, driven by keys in a window of a real tmux.

use crate::kit::{Test, signal, until};
use crate::night::MORNING_MS;
use crate::pty::open_terminal;
use crate::snap::assert_snapshot;
use crate::spawn::{tmux, until_status};
use std::fs;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

/// An agent that waits until the test creates the file `go`.
const WAITS: &str = "iteration *\n say begun\n sh until test -f go; do sleep 0.02; done\n";

/// Starts a shell command in a tmux window of this size.
fn open(test: &Test, (columns, rows): (u16, u16), variables: &[(&str, &str)], command: &str) {
    let (columns, rows) = (columns.to_string(), rows.to_string());
    let size = ["-x", &columns, "-y", &rows];
    let mut tmux = test.command("tmux");
    tmux.env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    tmux.envs(variables.iter().copied());
    tmux.args(["-u", "-f", "/dev/null", "-L", "ralph"]);
    tmux.args(["new-session", "-d", "-s", "screen"]);
    let started = tmux.args(size).arg(command).status();
    assert!(started.unwrap().success());
}

fn press(test: &Test, keys: &[&str]) {
    tmux(test, &[&["send-keys", "-t", "screen"], keys].concat());
}

fn type_text(test: &Test, typed: &str) {
    tmux(test, &["send-keys", "-l", "-t", "screen", "--", typed]);
}

fn shown(test: &Test) -> String {
    tmux(test, &["capture-pane", "-p", "-t", "screen"])
}

/// Waits until the window contains all of these texts, and returns what it shows.
fn until_shown(test: &Test, texts: &[&str]) -> String {
    let mut last = String::new();
    until(&format!("{texts:?} on the screen"), || {
        last = shown(test);
        texts.iter().all(|text| last.contains(text))
    });
    last
}

/// How often a screen without moving parts must look the same before it counts as drawn.
const STILL: u32 = 10;

/// Waits like [`until_shown`], and until nothing changes: while a screen is drawn, it also contains
/// parts of the one before.
fn until_still(test: &Test, texts: &[&str]) -> String {
    let (mut last, mut same) = (until_shown(test, texts), 0);
    until("a screen that does not change", || {
        let before = std::mem::replace(&mut last, shown(test));
        same = if before == last { same + 1 } else { 0 };
        same >= STILL
    });
    last
}

/// Compares every view of the recorded night with its snapshot.
fn compare_night(size: (u16, u16)) {
    let test = Test::night();
    let now = MORNING_MS.to_string();
    let command = format!("exec {RALPH} top");
    open(&test, size, &[("RALPH_TEST_NOW", &now)], &command);
    let compare = |view: &str, texts: &[&str]| {
        let rows = until_still(&test, texts);
        let rows: Vec<_> = rows.lines().map(str::trim_end).collect();
        let screen = test.without_root(&(rows.join("\n") + "\n"));
        assert_snapshot(&format!("top/{}x{}-{view}", size.0, size.1), &screen);
    };
    compare("list", &["totals", "retries", "links", "~/handbook", "●"]);
    press(&test, &["/"]);
    type_text(&test, "totals");
    until_shown(&test, &["1 loop"]);
    press(&test, &["Enter"]);
    press(&test, &["Enter"]);
    compare("activity", &["iteration 30 · ", "COMPLETE"]);
    press(&test, &["2", "Left", "Left"]);
    compare(
        "checks",
        &["whole iteration", "iteration 28 · ", "add_tax: fine"],
    );
    press(&test, &["3"]);
    compare("diff", &["from the start to iteration 30", "@@"]);
    press(&test, &["4"]);
    compare("prompt", &["iteration 28 · ", "# "]);
    press(&test, &["5"]);
    until("the notes", || !shown(&test).contains("iteration 28 · "));
    compare("notes", &["iteration 30"]);
    press(&test, &["6", "Home"]);
    compare("timeline", &["starting iteration 1/"]);
    press(&test, &["7"]);
    compare("plots", &["failing checks", "sum $"]);
    press(&test, &["?"]);
    compare("help", &["Everywhere"]);
    press(&test, &["Escape"]);
    until("the end of the help", || {
        !shown(&test).contains("Everywhere")
    });
    press(&test, &["q"]);
    until_shown(&test, &["search: totals"]);
    press(&test, &["q"]);
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
}

#[test]
fn the_recorded_night_at_80x24() {
    compare_night((80, 24));
}

#[test]
fn the_recorded_night_at_160x48() {
    compare_night((160, 48));
}

#[test]
fn keys_watch_and_steer_a_loop_and_the_terminal_is_restored() {
    let test = Test::git().script(WAITS);
    let args = [
        "spawn",
        "Fix the cart",
        "--name",
        "cart",
        "--no-tmux",
        "-m",
        "3",
        "--check",
        "false",
        "--agent",
        "script:../agent.script",
    ];
    test.ralph(&args).exits(0);
    let command = format!("{RALPH} top; echo \"exit $?\"; stty -a; exec cat");
    open(&test, (80, 24), &[], &command);
    until_shown(&test, &["▶ 1 running", "cart", "running", "1/3"]);
    press(&test, &["Enter"]);
    until_shown(&test, &["1 Activity", "begun", "live"]);
    press(&test, &["s"]);
    type_text(&test, "- 'use' EUR");
    press(&test, &["Enter"]);
    until_shown(&test, &["your message will be in the next prompt"]);
    press(&test, &["5"]);
    until_shown(&test, &["- 'use' EUR"]);
    press(&test, &["p"]);
    until_shown(&test, &["pausing"]);
    press(&test, &["l"]);
    until_shown(&test, &["Limits of cart", "max-iterations=13"]);
    press(&test, &["C-u"]);
    type_text(&test, "max-iterations=7");
    press(&test, &["Enter"]);
    until_shown(&test, &["1/7"]);
    test.write("go", "");
    until_status(&test, "cart", "paused");
    until_shown(&test, &["paused"]);
    press(&test, &["q"]);
    until_shown(&test, &["? 1 waiting for you"]);
    press(&test, &["x"]);
    until_shown(&test, &["Stop cart?"]);
    press(&test, &["n"]);
    press(&test, &["x"]);
    press(&test, &["y"]);
    until_status(&test, "cart", "stopped");
    until_shown(&test, &["■ cart"]);
    tmux(
        &test,
        &["resize-window", "-t", "screen", "-x", "100", "-y", "30"],
    );
    until_shown(&test, &["a answer"]);
    press(&test, &["q"]);
    let after = until_shown(&test, &["exit 0", " icanon"]);
    assert!(!after.contains("ralph top"), "{after}");
}

#[test]
fn a_loop_that_ran_in_the_foreground_takes_the_terminal_when_it_is_resumed() {
    let script = "iteration 1\n blocked Which one?\niteration *\n say at work\n exit 7\n";
    let test = Test::new().script(script);
    let agent = ["--agent", "script:../agent.script"];
    let args = [
        "run",
        "x",
        "--name",
        "front",
        "-m",
        "2",
        "--max-failures",
        "1",
    ];
    test.ralph(&[&args[..], &agent].concat()).exits(3);
    open(&test, (80, 24), &[], &format!("exec {RALPH} top"));
    until_shown(&test, &["front", "blocked"]);
    press(&test, &["a"]);
    until_shown(&test, &["Which one?"]);
    type_text(&test, "the first");
    press(&test, &["Enter"]);
    until_shown(&test, &["at work", "press Enter to return"]);
    press(&test, &["Enter"]);
    until_shown(&test, &["ralph top", "✘ 1 failed"]);
    press(&test, &["o"]);
    // Not in the current directory, which may be a repository.
    let report = test.loop_dir("front").join("report.html");
    until("the report", || report.exists());
    press(&test, &["q"]);
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
    assert_eq!(test.events("front", "answered").len(), 1);
}

#[test]
fn archived_loops_are_listed_on_request_and_cannot_be_steered() {
    let test = Test::new();
    test.ralph(&crate::kit::RUN_ONCE).exits(0);
    test.ralph(&crate::kit::RUN_ONCE).exits(0);
    open(&test, (100, 30), &[], &format!("exec {RALPH} top"));
    let rows = until_shown(&test, &["✔ a ", "1 loop"]);
    assert!(!rows.contains("archived"), "{rows}");
    press(&test, &["A"]);
    until_shown(&test, &["2 loops", "with archived", "archived  "]);
    press(&test, &["End"]);
    press(&test, &["p"]);
    until_shown(&test, &["is archived: a newer loop has its name"]);
    press(&test, &["Enter"]);
    until_shown(&test, &["1 Activity", "iteration 1 · "]);
    press(&test, &["C-c"]);
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
    // The other views read it by the name of its directory.
    let all = test.ralph(&["ls", "--all", "--names"]).exits(0).out;
    let name = all.lines().find(|name| *name != "a").unwrap();
    for view in ["status", "show", "logs"] {
        test.ralph(&[view, name]).exits(0);
    }
}

/// A terminal whose user reads nothing is as slow as can be.
#[test]
fn a_terminal_that_reads_nothing_slows_no_loop_and_top_still_ends() {
    let test = Test::new().script("iteration *\n flood 8MiB\n");
    let args = ["--name", "a", "-m", "3", "--no-promise", "--no-tmux"];
    let agent = ["--agent", "script:../agent.script"];
    test.ralph(&[&["spawn", "x"], &args[..], &agent].concat())
        .exits(0);
    // One screen is more than a terminal buffers.
    let (controller, terminal) = open_terminal(500, 400);
    let mut command = test.ralph_command(&["top", "a"]);
    command.stdin(terminal.try_clone().unwrap());
    command.stdout(terminal.try_clone().unwrap());
    let mut top = command.stderr(terminal).spawn().unwrap();
    drop(command);
    until("a loop that ends", || {
        test.status("a")["status"] != "running" && test.status("a")["status"] != "starting"
    });
    assert_eq!(test.status("a")["current_iteration"], 3);
    let status = fs::read_to_string(format!("/proc/{}/status", top.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(peak < 300 << 10, "{peak} KiB");
    signal(top.id(), "TERM");
    until("the end of top", || top.try_wait().unwrap().is_some());
    drop(controller);
}

#[test]
fn a_terminal_without_unicode_gets_only_ascii() {
    let test = Test::new();
    test.ralph(&crate::kit::RUN_ONCE);
    let variables = [("LC_ALL", "C"), ("NO_COLOR", "1")];
    let command = format!("exec {RALPH} top");
    open(&test, (80, 24), &variables, &command);
    let rows = until_shown(&test, &["ralph top", " a ", "Enter open"]);
    assert!(rows.is_ascii(), "{rows}");
    let colored = tmux(&test, &["capture-pane", "-e", "-p", "-t", "screen"]);
    let is_colored = (0..=8).any(|color| colored.contains(&format!("\x1b[3{color}")));
    assert!(!is_colored, "{colored:?}");
    press(&test, &["C-c"]);
    until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
}

#[test]
fn without_a_terminal_it_names_another_command() {
    let test = Test::new();
    let done = test.ralph(&["top"]).exits(2);
    assert!(done.err.contains("needs a terminal"), "{}", done.err);
    assert!(done.err.contains("ralph ls"), "{}", done.err);
    test.ralph(&["top", "nothing"]).exits(2);
}

mod needs_script {
    use super::*;

    #[test]
    fn an_agent_cannot_steer_its_own_loop() {
        // The keys are typed when what they need is on the screen.
        let script = format!(
            "iteration *\n sh \
             (until grep -q 'Enter' seen 2>/dev/null; do sleep 0.05; done; printf p; \
             until grep -q cannot seen; do sleep 0.05; done; printf q) | \
             script -qfc \"{RALPH} top\" seen >/dev/null; touch over\n"
        );
        let test = Test::new().script(&script);
        let args = [
            "run",
            "x",
            "--name",
            "a",
            "-m",
            "1",
            "--no-promise",
            "--agent",
            "script:../agent.script",
        ];
        test.ralph(&args);
        assert!(test.workspace().join("over").exists());
        assert!(test.events("a", "asked").is_empty());
    }
}
