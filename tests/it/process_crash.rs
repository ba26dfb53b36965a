//! Processes of a runner that is killed: which are swept, which are exempt, and which cannot be
//! killed.

use crate::kit::{Live, Test, alive, signal, until};
use crate::process::{AGENT, agent, assert_no_survivors, forked, ready, supervisor};
use std::fs;
use std::path::PathBuf;

#[test]
fn the_next_command_sweeps_processes_that_outlived_warden_and_supervisor() {
    let script =
        "iteration 1\n fork 10m\n fork setsid daemon 10m\n fork clearenv 10m\n say ready\n hang\n";
    let test = Test::new().script(script);
    let live = test.start(&["run", "t", "--name", "a", "--agent", AGENT, "-m", "1"]);
    ready(&test);
    kill_both(&test, live);
    let left: Vec<u32> = forked(&test)
        .into_iter()
        .chain([agent(&test)])
        .filter(|pid| alive(*pid))
        .collect();
    assert_eq!(left.len(), 4, "nobody was there to end them");
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Status: crashed")
        .complains("the loop \"a\" crashed; killed 4 processes");
    assert_no_survivors(&test, 3);
    test.ralph(&["status", "a"])
        .exits(0)
        .says("Status: crashed");
    // Its only iteration was interrupted, and counts.
    test.ralph(&["resume", "a"]).exits(1);
    assert_eq!(test.events("a", "started").len(), 1);
    assert!(
        test.read_loop("a", "iterations.log")
            .contains("iteration 1 interrupted")
    );
}

#[test]
fn an_agent_that_keeps_starting_processes_is_swept_with_all_of_them() {
    let script = format!(
        "iteration 1\n fork 10m\n say ready\n{}",
        " fork 10m\n".repeat(200)
    );
    let test = Test::new().script(&script);
    let live = test.start(&["run", "t", "--name", "a", "--agent", AGENT, "-m", "1"]);
    ready(&test);
    kill_both(&test, live);
    test.ralph(&["status", "a"])
        .exits(0)
        .complains("\"a\" crashed; killed");
    assert_eq!(test.survivors(), [0; 0]);
}

#[test]
fn resume_sweeps_processes_left_by_a_crash_before_it_starts_anything() {
    let test = Test::new().script(
        "iteration 1\n fork setsid daemon 10m\n say ready\n hang\niteration *\n promise COMPLETE\n",
    );
    let live = test.start(&["run", "t", "--name", "a", "--agent", AGENT]);
    ready(&test);
    kill_both(&test, live);
    // The agent and its daemon; on a busy machine, a process that is still exiting counts too.
    test.ralph(&["resume", "a"])
        .exits(0)
        .complains("\"a\" crashed; killed");
    assert_no_survivors(&test, 1);
    assert_eq!(test.events("a", "started").len(), 2);
}

#[test]
fn stop_starts_nothing_for_a_loop_that_was_killed_before_its_first_iteration() {
    let test = Test::new().script("iteration *\n promise COMPLETE\n");
    let check = "sleep 600 & echo checked >> seen; true";
    test.ralph(&[
        "run", "t", "--name", "a", "--agent", AGENT, "--check", check,
    ])
    .exits(0);
    let seen = test.read("seen");
    // The journal as a kill between creation and the first iteration leaves it: the plan alone.
    let plan = test
        .read_loop("a", "journal.jsonl")
        .split_inclusive('\n')
        .next()
        .unwrap()
        .to_owned();
    test.replace_journal("a", &plan);
    assert_eq!(test.status("a")["status"], "crashed");
    test.ralph(&["stop", "a"]).exits(0);
    assert_eq!(
        (test.status("a")["status"].as_str(), test.read("seen")),
        (Some("stopped"), seen)
    );
}

/// Kills supervisor and warden so that neither can react to the other's exit.
fn kill_both(test: &Test, live: Live) {
    let runner = [supervisor(test), live.pid()];
    for name in ["STOP", "KILL"] {
        for pid in runner {
            signal(pid, name);
        }
    }
    live.end().exits(137);
    let lock = fs::File::open(test.loop_dir("a").join("lock")).unwrap();
    until("a free lock", || lock.try_lock_shared().is_ok());
}

/// Starts a loop by `exec` from a shell that already has a child. Returns the loop and that child.
fn with_older_child(test: &Test) -> (Live, u32) {
    let mut command = test.command("sh");
    command.args([
        "-c",
        "sleep 600 & echo friend $!; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_ralph"),
    ]);
    command.args(["run", "t", "--name", "a", "--agent", AGENT, "-m", "1"]);
    let live = test.start_command(command);
    live.until_out("friend ");
    live.until_out("\n");
    let pid = live
        .out()
        .lines()
        .find_map(|line| line.strip_prefix("friend ")?.parse().ok())
        .unwrap();
    (live, pid)
}

#[test]
fn children_older_than_the_loop_are_spared_when_it_ends() {
    let test = Test::new().script("iteration 1\n fork setsid 10m\n say ready\n");
    let (live, friend) = with_older_child(&test);
    live.end().exits(1);
    assert_only_survivor(&test, friend);
}

#[test]
fn children_older_than_the_loop_are_spared_when_the_supervisor_is_killed() {
    let test = Test::new().script("iteration 1\n fork setsid daemon 10m\n say ready\n hang\n");
    let (live, friend) = with_older_child(&test);
    ready(&test);
    signal(supervisor(&test), "KILL");
    live.end()
        .exits(137)
        .complains("the supervisor was killed by signal 9; killed 2 processes that it left behind");
    assert_only_survivor(&test, friend);
}

fn assert_only_survivor(test: &Test, friend: u32) {
    let left = test.survivors();
    signal(friend, "KILL");
    assert_eq!(left, [friend]);
    until("an empty tree", || test.survivors().is_empty());
}

/// A frozen cgroup, in which even SIGKILL does not end a process until it is thawed.
struct Freezer(PathBuf);

impl Freezer {
    fn of(pid: u32) -> Self {
        let dir = PathBuf::from(format!("/sys/fs/cgroup/freezer/ralph-test-{pid}"));
        fs::create_dir(&dir).unwrap();
        let freezer = Self(dir);
        freezer.write("cgroup.procs", &pid.to_string());
        freezer.write("freezer.state", "FROZEN");
        until("frost", || {
            fs::read_to_string(freezer.0.join("freezer.state"))
                .unwrap()
                .trim()
                == "FROZEN"
        });
        freezer
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.write("freezer.state", "THAWED");
        until("an empty freezer", || fs::remove_dir(&self.0).is_ok());
    }
}

/// Shortens the timeouts in an ended loop's plan, as if it had been started with them.
fn shorten_timeouts(test: &Test) {
    let mut journal = test.read_loop("a", "journal.jsonl");
    for (patient, hasty) in [
        ("\"term_ms\":5000", "\"term_ms\":100"),
        ("\"survivor_ms\":30000", "\"survivor_ms\":700"),
    ] {
        assert!(journal.contains(patient), "{journal}");
        journal = journal.replacen(patient, hasty, 1);
    }
    test.replace_journal("a", &journal);
}

mod needs_freezer {
    use super::*;

    #[test]
    fn a_process_that_outlives_sigkill_is_reported_and_nothing_starts_next_to_it() {
        let script = "iteration 1\n exit 42\niteration 2\n fork setsid 10m\n say ready\n\
             sh until test -e go; do sleep 0.02; done\niteration *\n promise COMPLETE\n";
        let test = Test::new().script(script);
        test.ralph(&["run", "t", "--name", "a", "--agent", AGENT])
            .exits(3);
        shorten_timeouts(&test);
        let live = test.start(&["resume", "a"]);
        live.until_out("ready");
        let log = test.read_loop("a", "iterations/0002/output.log");
        let pid: u32 = log
            .lines()
            .find_map(|line| line.strip_prefix("forked ")?.parse().ok())
            .unwrap();
        let freezer = Freezer::of(pid);
        test.write("go", "");
        let done = live.end();
        assert!(alive(pid), "it is frozen");
        done.exits(1)
            .complains(&format!("processes still running after SIGKILL: {pid}"));
        assert_eq!(test.status("a")["outcome"]["why"], "survivors");
        assert_eq!(test.events("a", "ended")[1]["report"]["survivors"][0], pid);
        // The process is still alive, so a resume does not start anything either.
        test.ralph(&["resume", "a"])
            .exits(1)
            .complains(&pid.to_string());
        assert_eq!(test.events("a", "started").len(), 2);
        drop(freezer);
        until("its end", || !alive(pid));
        test.ralph(&["resume", "a"]).exits(0);
    }
}

mod stopped {
    use super::*;

    const DAEMON: &str = "iteration *\n fork setsid daemon clearenv 10m\n say ready\n hang\n";

    /// Kills one of a loop's two processes while the other is stopped, and checks that the next
    /// command ends everything.
    fn check(kill: impl Fn(u32, u32) -> (u32, u32)) {
        let test = Test::new().script(DAEMON);
        let live = test.start(&["run", "t", "--name", "a", "--agent", AGENT, "-m", "1"]);
        ready(&test);
        let (stopped, killed) = kill(live.pid(), supervisor(&test));
        signal(stopped, "STOP");
        signal(killed, "KILL");
        test.ralph(&["status", "a"])
            .exits(0)
            .says("Status: crashed");
        assert_no_survivors(&test, 1);
        let _ = live.end();
        assert_eq!(test.survivors(), [0; 0]);
        test.ralph(&["stop", "a"]).exits(0);
    }

    #[test]
    fn the_next_command_continues_a_stopped_warden_whose_supervisor_was_killed() {
        check(|warden, supervisor| (warden, supervisor));
    }

    #[test]
    fn the_next_command_continues_a_stopped_supervisor_whose_warden_was_killed() {
        check(|warden, supervisor| (supervisor, warden));
    }

    #[test]
    fn a_stopped_warden_is_left_alone_while_its_supervisor_works() {
        let test = Test::new().script("iteration 1\n say ready\n hang\n");
        let live = test.start(&["run", "t", "--name", "a", "--agent", AGENT, "-m", "1"]);
        ready(&test);
        signal(live.pid(), "STOP");
        test.ralph(&["status", "a"])
            .exits(0)
            .says("Status: running");
        let stat = fs::read_to_string(format!("/proc/{}/stat", live.pid())).unwrap();
        assert!(stat.contains(") T "), "{stat}");
        signal(live.pid(), "CONT");
        test.ralph(&["stop", "a"]).exits(0);
        live.end().exits(130);
    }
}
