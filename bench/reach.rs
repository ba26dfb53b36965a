//! `reach N RALPH DIR` starts loops below DIR with an agent that sleeps, and runs each command N
//! times against a running supervisor. It prints one line per command: the median and worst time in
//! microseconds until its effect is on disk, the same until it has exited, and its name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here should take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The times of one command, in microseconds.
struct Times {
    verb: &'static str,
    effect: Vec<u128>,
    exit: Vec<u128>,
}

struct Bench {
    ralph: String,
    loops: PathBuf,
    times: Vec<Times>,
}

impl Bench {
    fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(&self.ralph);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        command.spawn().expect("ralph starts")
    }

    fn spawn(&self, name: &str) {
        let args = [
            "spawn",
            "x",
            "--name",
            name,
            "--no-tmux",
            "--share-workspace",
            "--no-promise",
            "--",
        ];
        let status = self
            .start(&[&args[..], &["sleep", "3600"]].concat())
            .wait()
            .expect("ralph ends");
        assert!(status.success(), "ralph spawn failed");
        until(&format!("the agent of {name}"), || {
            self.journal(name).contains("\"spawned\"")
        });
    }

    fn journal(&self, name: &str) -> String {
        fs::read_to_string(self.loops.join(name).join("journal.jsonl")).unwrap_or_default()
    }

    /// Runs a command, and waits for its effect and its exit.
    fn measure(&mut self, verb: &'static str, args: &[&str], effect: impl Fn(&Self) -> bool) {
        assert!(!effect(self), "{verb}: its effect is there before it runs");
        let started = Instant::now();
        let mut child = self.start(args);
        until(verb, || effect(self));
        let reached = started.elapsed();
        assert!(
            child.wait().expect("ralph ends").success(),
            "ralph {args:?} failed"
        );
        let exited = started.elapsed();
        let at = self
            .times
            .iter()
            .position(|times| times.verb == verb)
            .unwrap_or_else(|| {
                self.times.push(Times {
                    verb,
                    effect: Vec::new(),
                    exit: Vec::new(),
                });
                self.times.len() - 1
            });
        self.times[at].effect.push(reached.as_micros());
        self.times[at].exit.push(exited.as_micros());
    }

    /// Runs a command whose effect is one more `line` in the journal.
    fn measure_journal_line(&mut self, verb: &'static str, args: &[&str], name: &str, line: &str) {
        let count = |bench: &Self| bench.journal(name).matches(line).count();
        let before = count(self);
        self.measure(verb, args, |bench| count(bench) > before);
    }
}

fn until(what: &str, is_done: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < TIMEOUT, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [count, ralph, dir] = &args[..] else {
        eprintln!("usage: reach N RALPH DIR");
        return ExitCode::from(2);
    };
    let Ok(count) = count.parse::<usize>() else {
        eprintln!("reach: {count:?} is not a number");
        return ExitCode::from(2);
    };
    let loops = Path::new(dir).join("loops");
    let mut bench = Bench {
        ralph: ralph.clone(),
        loops,
        times: Vec::new(),
    };
    bench.spawn("live");
    for _ in 0..count {
        bench.measure_journal_line("pause", &["pause", "live"], "live", "\"wish\":\"pause\"");
        bench.measure_journal_line("resume", &["resume", "live"], "live", "\"wish\":\"go\"");
        bench.measure_journal_line(
            "say",
            &["say", "live", "hello"],
            "live",
            "\"event\":\"answered\"",
        );
        bench.measure_journal_line(
            "set",
            &["set", "live", "max-iterations=40"],
            "live",
            "\"event\":\"changed\"",
        );
    }
    for _ in 0..count {
        bench.spawn("short");
        bench.measure_journal_line(
            "stop",
            &["stop", "short"],
            "short",
            "\"event\":\"finished\"",
        );
        bench.measure("rm", &["rm", "short"], |bench| {
            !bench.loops.join("short").exists()
        });
    }
    bench.measure_journal_line("stop", &["stop", "live"], "live", "\"event\":\"finished\"");
    for Times { verb, effect, exit } in &mut bench.times {
        let figures: Vec<String> = [effect, exit]
            .into_iter()
            .map(|all| {
                all.sort_unstable();
                format!("{} {}", all[all.len() / 2], all[all.len() - 1])
            })
            .collect();
        println!("{} {verb}", figures.join(" "));
    }
    ExitCode::SUCCESS
}
