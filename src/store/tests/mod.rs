//! Tests of the state directory, and helpers that create loops in a temporary one.

mod bus;
mod cache;
mod disk_full;
mod ended;
mod inbox;
mod journal;
mod lock;
mod state_dir;
mod tampering;

use super::{Journal, JournalHeader, JournalLine, LoopDir, StateDir};
use crate::engine::event::{Event, Request, RequestSource};
use crate::engine::limits::Limits;
use crate::engine::plan::{
    Agent, ContextLevel, GracePeriods, Plan, PromptContext, Proof, RULES, Rest, Scm, Task,
};
use crate::engine::usage::Prices;
use std::path::{Path, PathBuf};

/// A state directory that is removed after the test.
struct TestStateDir {
    state_dir: StateDir,
    _temp: tempfile::TempDir,
}

fn test_state_dir() -> TestStateDir {
    let temp = tempfile::tempdir().unwrap();
    TestStateDir {
        state_dir: StateDir::new(temp.path().join("state")),
        _temp: temp,
    }
}

impl TestStateDir {
    fn create_dir(&self, name: &str) -> LoopDir {
        let dir = self.state_dir.loop_dir(name);
        dir.create().unwrap();
        dir
    }

    fn create_loop(&self, name: &str) -> (LoopDir, Journal) {
        let dir = self.create_dir(name);
        let journal = Journal::create(&dir, &header(name, "id-1")).unwrap();
        (dir, journal)
    }
}

fn plan(workspace: &Path) -> Plan {
    Plan {
        rules: RULES,
        sandbox: None,
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
        context: PromptContext {
            level: ContextLevel::Full,
            diff_chars: 5000,
            output_chars: 2000,
            bus: 0,
            template: "{task}\n".to_owned(),
        },
        grace: GracePeriods::default(),
        workspace: workspace.to_owned(),
        scm: Scm::default(),
        checkpoints: false,
        notify: None,
        worktree: None,
        session: None,
        redacted: Vec::new(),
        share_workspace: false,
        log_owner: None,
        log_cap: 1 << 20,
        min_free: 0,
    }
}

fn header(name: &str, id: &str) -> JournalHeader {
    JournalHeader {
        name: name.to_owned(),
        id: id.to_owned(),
        created_ms: 1_789_000_000_123,
        parent: None,
        background: false,
        tmux: None,
        plan: plan(&PathBuf::from("/tmp/work")),
    }
}

/// Returns line `n` of a series of lines, each of which changes the state.
fn line(n: u64) -> JournalLine {
    let event = match n % 4 {
        0 => Event::Opened {
            pid: 7,
            version: "0.1.0 — ü".to_owned(),
            cost_usd: None,
            tokens: None,
            in_session: false,
            boot: None,
        },
        1 => Event::Asked {
            request: Request::Pause,
            by: RequestSource::Inbox,
            inbox: Some(n),
        },
        2 => Event::Started {
            iteration: n as u32,
            agent: None,
            tree: None,
            baseline: None,
            version: None,
        },
        _ => Event::Asked {
            request: Request::Go,
            by: RequestSource::Sigterm,
            inbox: None,
        },
    };
    JournalLine {
        at_ms: 1_789_000_001_000 + n as i64,
        ms: n,
        event,
    }
}

fn append_lines(journal: &mut Journal, lines: std::ops::Range<u64>) {
    for n in lines {
        journal.append(&line(n)).unwrap();
    }
}
