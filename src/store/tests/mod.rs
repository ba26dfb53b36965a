//! Loops made for tests, and what they are asked.

mod bus;
mod cache;
mod home;
mod inbox;
mod journal;
mod lock;
mod space;

use super::{Header, Home, Journal, Line, LoopDir};
use crate::engine::event::{Door, Event, Wish};
use crate::engine::plan::{Agent, Context, Grace, Level, Limits, Plan, Proof, Rest, Scm, Task};
use crate::engine::usage::Prices;
use std::path::{Path, PathBuf};

/// A state directory that goes away with the test.
struct Place {
    home: Home,
    _temp: tempfile::TempDir,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    Place {
        home: Home::at(temp.path().join("state")),
        _temp: temp,
    }
}

impl Place {
    fn dir(&self, name: &str) -> LoopDir {
        let dir = self.home.loop_dir(name);
        dir.create().unwrap();
        dir
    }

    fn loop_called(&self, name: &str) -> (LoopDir, Journal) {
        let dir = self.dir(name);
        let journal = Journal::create(&dir, &header(name, "id-1")).unwrap();
        (dir, journal)
    }
}

fn plan(workspace: &Path) -> Plan {
    Plan {
        task: Task {
            title: None,
            text: Some("say \"hello\"\n".to_owned()),
            file: None,
        },
        proof: Proof::default(),
        limits: Limits {
            iterations: Some(25),
            cost_usd: Some(0.1),
            ..Limits::default()
        },
        rest: Rest::default(),
        agent: Agent::default(),
        fallback: vec![],
        prices: Prices::default(),
        context: Context {
            level: Level::Full,
            diff_chars: 5000,
            output_chars: 2000,
            bus: 0,
            template: "{task}\n".to_owned(),
        },
        grace: Grace::default(),
        workspace: workspace.to_owned(),
        scm: Scm::default(),
        notify: None,
        worktree: None,
        session: None,
        covered: Vec::new(),
        share_workspace: false,
        log_cap: 1 << 20,
        min_free: 0,
    }
}

fn header(name: &str, id: &str) -> Header {
    Header {
        name: name.to_owned(),
        id: id.to_owned(),
        created_ms: 1_789_000_000_123,
        parent: None,
        background: false,
        tmux: None,
        plan: plan(&PathBuf::from("/tmp/work")),
    }
}

/// The `n`th of a series of lines, no two of which fold alike.
fn line(n: u64) -> Line {
    let event = match n % 4 {
        0 => Event::Opened {
            pid: 7,
            version: "0.1.0 — ü".to_owned(),
            cost_usd: None,
            tokens: None,
            inside: false,
        },
        1 => Event::Asked {
            wish: Wish::Pause,
            by: Door::Inbox,
            inbox: Some(n),
        },
        2 => Event::Started {
            iteration: n as u32,
            agent: None,
        },
        _ => Event::Asked {
            wish: Wish::Go,
            by: Door::Sigterm,
            inbox: None,
        },
    };
    Line {
        at_ms: 1_789_000_001_000 + n as i64,
        ms: n,
        event,
    }
}

fn write(journal: &mut Journal, lines: std::ops::Range<u64>) {
    for n in lines {
        journal.append(&line(n)).unwrap();
    }
}
