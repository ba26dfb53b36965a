//! However an iteration or its runner ends, no process that the agent started is left.

use crate::kit::{Live, Test, alive, signal, until};

pub(crate) const AGENT: &str = "script:../agent.script";

/// Every way to leave a process group, for processes that obey SIGTERM.
const OBEYS_TERM: &str = "
    fork 10m
    fork setsid 10m
    fork daemon 10m
    fork setsid daemon clearenv 10m
    fork hold 10m
    fork setsid daemon clearenv hold 10m
";

/// The same for processes that only SIGKILL ends, and a chain in which each process replaces the
/// previous one.
const IGNORES_TERM: &str = "
    ignore TERM
    ignore HUP
    ignore INT
    fork ignore-term 10m
    fork setsid ignore-term 10m
    fork daemon ignore-term hold 10m
    fork setsid daemon clearenv ignore-term hold 10m
    refork 10m
";

/// The second agent looks for processes of the first. A process ID may have been reused, so it also
/// compares the working directory.
const LOOK_BACK: &str = "sh for pid in $(sed -n s/forked.//p ../state/loops/a/iterations/0001/output.log); \
    do [ /proc/$pid/cwd -ef . ] && echo $pid still lives; done";

/// A way to end an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    AgentExits,
    Timeout,
    Silence,
    CtrlCTwice,
    TermTwice,
    HangUp,
    StopVerb,
    SupervisorKilled,
    WardenKilled,
}

/// The expected state afterwards: the exit code, the status, the number of endings in the journal,
/// and whether iteration 1 has an end.
struct Found {
    code: i32,
    status: &'static str,
    finished: usize,
    ended: bool,
}

impl Way {
    fn found(self) -> Found {
        let (code, status, finished, ended) = match self {
            Self::AgentExits | Self::Timeout | Self::Silence => (1, "failed", 1, true),
            Self::CtrlCTwice | Self::StopVerb => (130, "stopped", 1, true),
            Self::TermTwice => (3, "paused", 0, true),
            Self::HangUp => (129, "crashed", 0, false),
            Self::SupervisorKilled | Self::WardenKilled => (137, "crashed", 0, false),
        };
        Found {
            code,
            status,
            finished,
            ended,
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Timeout => &["--iteration-timeout", "4s", "--backoff", "0..0"],
            Self::Silence => &["--inactivity-timeout", "2s"],
            _ => &[],
        }
    }

    fn trigger(self, test: &Test, live: &Live) {
        match self {
            Self::AgentExits | Self::Timeout | Self::Silence => {}
            Self::CtrlCTwice => press(test, live, "INT", 2),
            Self::TermTwice => press(test, live, "TERM", 2),
            Self::HangUp => live.signal("HUP"),
            Self::StopVerb => drop(
                test.ralph(&["stop", "a"])
                    .exits(0)
                    .says("stopped ralph loop for a"),
            ),
            Self::SupervisorKilled => signal(supervisor(test), "KILL"),
            Self::WardenKilled => live.signal("KILL"),
        }
    }
}

/// Starts a process tree, ends it in one way, and asserts that nothing is left; then the loop
/// continues.
fn assert_nothing_survives(way: Way, tree: &str) {
    let last = if way == Way::AgentExits { "" } else { "hang" };
    let script =
        format!("iteration 1\n{tree}\nsay ready\n{last}\niteration *\n{LOOK_BACK}\nsay again\n");
    let test = Test::new().script(&script);
    let live = test.start(
        &[
            &["run", "t", "--name", "a", "--agent", AGENT, "-m", "2"],
            way.flags(),
        ]
        .concat(),
    );
    ready(&test);
    way.trigger(&test, &live);
    let found = way.found();
    live.end().exits(found.code);
    until("the runner's end", || {
        test.status("a")["status"] != "running"
    });
    assert_eq!(test.status("a")["status"], found.status);
    assert_no_survivors(&test, tree.matches("fork ").count());
    assert_eq!(test.events("a", "finished").len(), found.finished);
    let ended = test
        .events("a", "ended")
        .iter()
        .any(|event| event["iteration"] == 1);
    assert_eq!(ended, found.ended);
    if found.status != "failed" {
        // The limit is two iterations: the interrupted one counts.
        test.ralph(&["resume", "a"]).exits(1).says("again");
    }
    let second = test.read_loop("a", "iterations/0002/output.log");
    assert!(
        second.ends_with("again\n") && !second.contains("still lives"),
        "{second}"
    );
    let history = test.prompt("a", 2);
    assert_eq!(
        history.contains("interrupted"),
        found.status == "crashed",
        "{history}"
    );
    let status = test.status("a");
    assert_eq!(
        (&status["stop_reason"], status["current_iteration"].as_u64()),
        (&"max_iterations".into(), Some(2))
    );
    assert_eq!(status["total_failures"], u32::from(way == Way::Timeout));
}

macro_rules! assert_nothing_survives {
    ($($name:ident: $way:ident, $tree:ident;)*) => {
        $(#[test] fn $name() { assert_nothing_survives(Way::$way, $tree); })*
    };
}

assert_nothing_survives! {
    an_agent_that_exits_leaves_no_child: AgentExits, OBEYS_TERM;
    an_agent_that_exits_leaves_no_deaf_child: AgentExits, IGNORES_TERM;
    an_iteration_timeout_ends_the_tree: Timeout, OBEYS_TERM;
    an_iteration_timeout_ends_a_deaf_tree: Timeout, IGNORES_TERM;
    silence_ends_the_tree: Silence, OBEYS_TERM;
    silence_ends_a_deaf_tree: Silence, IGNORES_TERM;
    ctrl_c_twice_ends_the_tree: CtrlCTwice, OBEYS_TERM;
    ctrl_c_twice_ends_a_deaf_tree: CtrlCTwice, IGNORES_TERM;
    a_second_term_ends_the_tree: TermTwice, OBEYS_TERM;
    a_second_term_ends_a_deaf_tree: TermTwice, IGNORES_TERM;
    a_hang_up_ends_the_tree: HangUp, OBEYS_TERM;
    a_hang_up_ends_a_deaf_tree: HangUp, IGNORES_TERM;
    the_stop_verb_ends_the_tree: StopVerb, OBEYS_TERM;
    the_stop_verb_ends_a_deaf_tree: StopVerb, IGNORES_TERM;
    a_killed_supervisor_takes_the_tree_along: SupervisorKilled, OBEYS_TERM;
    a_killed_supervisor_takes_a_deaf_tree_along: SupervisorKilled, IGNORES_TERM;
    a_killed_warden_takes_the_tree_along: WardenKilled, OBEYS_TERM;
    a_killed_warden_takes_a_deaf_tree_along: WardenKilled, IGNORES_TERM;
}

/// Waits until the first agent has printed `ready`.
#[track_caller]
pub(crate) fn ready(test: &Test) {
    until("a ready agent", || {
        output(test).lines().any(|line| line == "ready")
    });
}

/// Returns what the first agent has printed so far.
pub(crate) fn output(test: &Test) -> String {
    std::fs::read_to_string(test.loop_dir("a").join("iterations/0001/output.log"))
        .unwrap_or_default()
}

/// Returns the processes that the first agent reports to have left behind.
pub(crate) fn forked(test: &Test) -> Vec<u32> {
    output(test)
        .lines()
        .filter_map(|line| line.strip_prefix("forked ")?.parse().ok())
        .collect()
}

/// Returns the loop's latest runner.
pub(crate) fn supervisor(test: &Test) -> u32 {
    pid_of(test, "opened")
}

/// Returns the loop's latest agent.
pub(crate) fn agent(test: &Test) -> u32 {
    pid_of(test, "spawned")
}

fn pid_of(test: &Test, event: &str) -> u32 {
    test.events("a", event)
        .last()
        .and_then(|event| event["pid"].as_u64())
        .expect("its pid") as u32
}

/// Sends a signal this many times, each after the previous one was recorded.
pub(crate) fn press(test: &Test, live: &Live, name: &str, times: usize) {
    let before = test.events("a", "asked").len();
    for time in 1..=times {
        live.signal(name);
        until("a heard signal", || {
            test.events("a", "asked").len() == before + time
        });
    }
}

/// Asserts that the agent and everything it forked have exited, with or without the marker.
#[track_caller]
pub(crate) fn assert_no_survivors(test: &Test, forks: usize) {
    let mut pids = forked(test);
    assert_eq!(pids.len(), forks, "{}", output(test));
    pids.push(test.events("a", "spawned")[0]["pid"].as_u64().unwrap() as u32);
    pids.retain(|pid| alive(*pid));
    assert_eq!(pids, [0; 0], "they live");
    // A chain of processes can escape one scan, but hardly ten.
    for _ in 0..10 {
        assert_eq!(test.survivors(), [0; 0]);
    }
}
