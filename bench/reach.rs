//! `reach N RALPH DIR` starts loops below DIR with an agent that sleeps, and gives each verb N times to a living
//! supervisor. A line for each verb: median and worst time in microseconds from the verb's start to its effect on disk,
//! the same until it has exited, and its name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The times of one verb.
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
    fn start(&self, words: &[&str]) -> Child {
        let mut command = Command::new(&self.ralph);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        command.spawn().expect("ralph starts")
    }

    fn spawn(&self, name: &str) {
        let words = ["spawn", "x", "--name", name, "--no-tmux", "--share-workspace", "--no-promise", "--"];
        let status = self.start(&[&words[..], &["sleep", "3600"]].concat()).wait().expect("ralph ends");
        assert!(status.success(), "ralph spawn failed");
        until(&format!("the agent of {name}"), || self.journal(name).contains("\"spawned\""));
    }

    fn journal(&self, name: &str) -> String {
        fs::read_to_string(self.loops.join(name).join("journal.jsonl")).unwrap_or_default()
    }

    /// Gives a verb, and waits for its effect and its end.
    fn give(&mut self, verb: &'static str, words: &[&str], effect: impl Fn(&Self) -> bool) {
        assert!(!effect(self), "{verb}: it is so already");
        let begun = Instant::now();
        let mut child = self.start(words);
        until(verb, || effect(self));
        let reached = begun.elapsed();
        assert!(child.wait().expect("ralph ends").success(), "ralph {words:?} failed");
        let exited = begun.elapsed();
        let at = self.times.iter().position(|times| times.verb == verb).unwrap_or_else(|| {
            self.times.push(Times { verb, effect: Vec::new(), exit: Vec::new() });
            self.times.len() - 1
        });
        self.times[at].effect.push(reached.as_micros());
        self.times[at].exit.push(exited.as_micros());
    }

    /// Gives a verb whose effect is one more line of this kind in the journal.
    fn tell(&mut self, verb: &'static str, words: &[&str], name: &str, line: &str) {
        let count = |bench: &Self| bench.journal(name).matches(line).count();
        let before = count(self);
        self.give(verb, words, |bench| count(bench) > before);
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
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
        eprintln!("reach: {count:?} is no number");
        return ExitCode::from(2);
    };
    let loops = Path::new(dir).join("loops");
    let mut bench = Bench { ralph: ralph.clone(), loops, times: Vec::new() };
    bench.spawn("live");
    for _ in 0..count {
        bench.tell("pause", &["pause", "live"], "live", "\"wish\":\"pause\"");
        bench.tell("resume", &["resume", "live"], "live", "\"wish\":\"go\"");
        bench.tell("say", &["say", "live", "hello"], "live", "\"event\":\"answered\"");
        bench.tell("set", &["set", "live", "max-iterations=40"], "live", "\"event\":\"changed\"");
    }
    for _ in 0..count {
        bench.spawn("short");
        bench.tell("stop", &["stop", "short"], "short", "\"event\":\"finished\"");
        bench.give("rm", &["rm", "short"], |bench| !bench.loops.join("short").exists());
    }
    bench.tell("stop", &["stop", "live"], "live", "\"event\":\"finished\"");
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
