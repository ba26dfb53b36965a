//! A campaign of random kills. Whichever processes die, and whenever, the loop's journal, its
//! commits and an external ledger agree at the end.
//!
//! The agent writes the ledger itself, so the test does not depend on what ralph claims. By default
//! each campaign kills a few times; `RALPH_CHAOS=1000` kills so often, and `RALPH_CHAOS_SEED`
//! repeats a campaign.

use crate::crash::{kill_now, supervisor};
use crate::kit::{Live, Test, alive, until};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Number of kills per campaign by default.
const KILLS: u32 = 8;

/// Each iteration records its begin and end in the ledger, leaves a daemon behind that has its own
/// session and no environment, and adds a line to a file.
const SCRIPT: &str = r#"iteration *
 cost 0.25
 sh echo "begin $RALPH_ITERATION" >> LEDGER
 sh setsid env -i sh -c 'echo "daemon $$" >> LEDGER; exec sleep 600' >/dev/null 2>&1 </dev/null &
 sh echo "$RALPH_ITERATION" >> steps; sleep 0.02
 sh echo "end $RALPH_ITERATION" >> LEDGER
 sh test ! -e FINISH || echo '<promise>COMPLETE</promise>'
"#;

/// The processes that a kill hits.
#[derive(Clone, Copy, Debug)]
enum Victims {
    Warden,
    Supervisor,
    Both,
    /// Any process of the loop: an agent, a check, git or ralph itself.
    Random,
    /// Every process at once, as if the machine had lost its power.
    All,
}

const VICTIMS: [Victims; 5] = [
    Victims::Warden,
    Victims::Supervisor,
    Victims::Both,
    Victims::Random,
    Victims::All,
];

struct Campaign {
    test: Test,
    random: fastrand::Rng,
    /// The messages that `ralph say` accepted.
    said: Vec<String>,
    kills: u32,
}

impl Campaign {
    fn new(seed: u64) -> Self {
        let test = Test::git();
        let path = |name: &str| test.root().join(name).display().to_string();
        let script = SCRIPT
            .replace("LEDGER", &path("ledger"))
            .replace("FINISH", &path("finish"));
        fs::write(path("ledger"), "").unwrap();
        let test = test.script(&script);
        Self {
            test,
            random: fastrand::Rng::with_seed(seed),
            said: Vec::new(),
            kills: 0,
        }
    }

    fn start(&self) -> Live {
        self.test.start(&[
            "run",
            "work",
            "--name",
            "a",
            "--agent",
            "script:../agent.script",
            "--worktree",
            "--check",
            "test -e steps",
            "--check",
            "sleep 0.01",
            "--max-iterations",
            "100000",
            "--max-stalls",
            "0",
            "--backoff",
            "1ms..2ms",
        ])
    }

    /// Returns the number of lines in the journal.
    fn lines(&self) -> usize {
        let journal = fs::read(self.test.loop_dir("a").join("journal.jsonl"));
        memchr::memchr_iter(b'\n', &journal.unwrap_or_default()).count()
    }

    /// Lets the loop run for a moment, then kills some of its processes.
    fn strike(&mut self, live: Live) {
        // Journal lines spread the kills over all phases, and the pause over what a phase does.
        let lines = self.lines() + self.random.usize(0..30);
        until("the journal to grow", || {
            self.lines() >= lines || !alive(live.pid())
        });
        let pause = Duration::from_millis(self.random.u64(0..30));
        std::thread::sleep(pause);
        if self.random.u8(0..4) == 0 {
            let text = format!("message-{}-end", self.said.len());
            if self.test.ralph(&["say", "a", &text]).code == 0 {
                self.said.push(text);
            }
        }
        let (warden, supervisor) = (live.pid(), supervisor(live.pid()));
        let victims = VICTIMS[self.random.usize(0..VICTIMS.len())];
        let pids: Vec<u32> = match victims {
            Victims::Warden => vec![warden],
            Victims::Supervisor => supervisor.into_iter().collect(),
            Victims::Both => [warden].into_iter().chain(supervisor).collect(),
            Victims::Random => {
                let all = self.test.survivors();
                all.get(self.random.usize(0..all.len().max(1)))
                    .copied()
                    .into_iter()
                    .collect()
            }
            Victims::All => self.test.survivors(),
        };
        kill_now(&pids);
        self.kills += 1;
        println!(
            "kill {}: {victims:?} at line {lines} + {pause:?}",
            self.kills
        );
        // A kill of an agent, a check or git does not end the loop.
        kill_now(&[warden]);
        let done = live.end();
        assert!(done.code != 2, "{done:?}");
    }

    fn resume(&self) -> Live {
        self.test.start(&["resume", "a", "--quiet"])
    }

    fn run(mut self) {
        let kills: u32 = std::env::var("RALPH_CHAOS")
            .ok()
            .and_then(|number| number.parse().ok())
            .unwrap_or(KILLS);
        let mut live = self.start();
        while self.kills < kills {
            self.strike(live);
            live = if self.test.loop_dir("a").join("journal.jsonl").exists() {
                self.resume()
            } else {
                self.start()
            };
        }
        // The next prompts deliver what was said last.
        let started = self.test.events("a", "started").len();
        until("two iterations", || {
            self.test.events("a", "started").len() >= started + 2
        });
        fs::write(self.test.root().join("finish"), "").unwrap();
        let _ = live.end();
        if self.test.status("a")["status"] != "done" {
            self.resume().end().exits(0);
        }
        self.verify();
    }

    fn verify(&self) {
        let test = &self.test;
        crate::crash::check_invariants(test, "a");
        assert_eq!(test.status("a")["status"], "done");
        let started = test.events("a", "started").len();

        let ledger = fs::read_to_string(test.root().join("ledger")).unwrap();
        let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
        for line in ledger.lines() {
            *lines.entry(line).or_default() += 1;
        }
        let twice = lines.iter().find(|(_, count)| **count > 1);
        assert_eq!(twice, None, "an iteration ran twice");
        let begun = ledger.lines().filter(|line| line.starts_with("begin"));
        assert!(
            begun.count() <= started,
            "an iteration is not in the journal"
        );
        for ended in test.events("a", "ended") {
            let line = format!("end {}", ended["iteration"]);
            let ok = ended["report"]["exit"]["code"] == 0;
            assert!(!ok || lines.contains_key(&*line), "{line}: {ended}");
        }
        let daemons = ledger
            .lines()
            .filter_map(|line| line.strip_prefix("daemon ")?.parse().ok());
        let mut left: Vec<u32> = daemons.collect();
        left.retain(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command == b"sleep\x00600\0" && alive(*pid)
        });
        kill_now(&left);
        assert_eq!(left, [0; 0], "daemons of the agent");

        // Every iteration is committed at most once, and the repository is whole.
        let log = test.sh("git log --format=%B ralph/a");
        let mut trailers: Vec<&str> = log
            .lines()
            .filter(|line| line.starts_with("Ralph-Iteration:"))
            .collect();
        let commits = trailers.len();
        trailers.sort_unstable();
        trailers.dedup();
        assert_eq!(trailers.len(), commits, "a commit was made twice: {log}");
        assert_eq!(
            test.sh("git log --format=%s"),
            "first\n",
            "the user's branch"
        );
        test.sh("git fsck --strict && git status && test -z \"$(git stash list)\"");

        // Every accepted message is in a prompt.
        let prompts: Vec<String> = (1..=started as u32)
            .map(|iteration| {
                let path = format!("iterations/{iteration:04}/prompt.md");
                fs::read_to_string(test.loop_dir("a").join(path)).unwrap_or_default()
            })
            .collect();
        for text in &self.said {
            assert!(
                prompts.iter().any(|prompt| prompt.contains(text)),
                "{text} was lost"
            );
        }
        println!(
            "{} kills, {started} iterations, {commits} commits, {} messages",
            self.kills,
            self.said.len()
        );
    }
}

/// Runs one campaign, with the seed in the environment or this one.
fn campaign(seed: u64) {
    let given = std::env::var("RALPH_CHAOS_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or(seed);
    println!("RALPH_CHAOS_SEED={seed}");
    Campaign::new(seed).run();
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_a_loop_is_killed_1() {
    campaign(1);
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_a_loop_is_killed_2() {
    campaign(2);
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_a_loop_is_killed_3() {
    campaign(3);
}
