//! Plans and reports as they usually are.

use crate::engine::event::{AgentReport, CheckReport, Event, ProcessExit};
use crate::engine::limits::Limits;
use crate::engine::plan::{
    Agent, Check, ContextLevel, GracePeriods, OnFail, Plan, PromptContext, Proof, RULES, Rest, Scm,
    Task, Worktree,
};
use crate::engine::scm::ScmTaskReport;
use crate::engine::usage::Prices;

const TEMPLATE: &str = include_str!("../../../presets/prompt.md");

/// Returns the plan of a loop that has only a task, with the program's defaults.
pub(super) fn plan() -> Plan {
    Plan {
        rules: RULES,
        sandbox: None,
        task: Task {
            title: None,
            text: Some("Write the parser.".into()),
            file: None,
        },
        proof: Proof {
            preflight: true,
            fallback: vec!["COMPLETE".into(), "DONE".into()],
            ..Proof::default()
        },
        limits: Limits {
            iterations: Some(25),
            failures: Some(5),
            iteration_ms: Some(7_200_000),
            ..Limits::default()
        },
        rest: Rest {
            delay_ms: 0,
            backoff_ms: 1000,
            backoff_cap_ms: 300_000,
            probe_ms: 30_000,
            probe_cap_ms: 900_000,
        },
        agent: Agent {
            name: "agent".into(),
            command: vec!["agent".into()],
            ..Agent::default()
        },
        context: PromptContext {
            level: ContextLevel::Full,
            diff_chars: 5000,
            output_chars: 2000,
            bus: 0,
            template: TEMPLATE.into(),
        },
        fallback: vec![],
        prices: Prices::default(),
        grace: GracePeriods {
            linger_ms: 10_000,
            term_ms: 5000,
            marker_ms: 30_000,
            survivor_ms: 30_000,
            ready_ms: 30_000,
            children_ms: Some(300_000),
        },
        workspace: "/work".into(),
        worktree: None,
        session: None,
        redacted: Vec::new(),
        scm: Scm::default(),
        checkpoints: false,
        notify: None,
        share_workspace: false,
        log_owner: None,
        log_cap: 1 << 26,
        min_free: 1 << 20,
    }
}

pub(super) fn worktree() -> Worktree {
    Worktree {
        path: "/trees/a".into(),
        branch: "ralph/a".into(),
        new_branch: true,
        repository: "/repo/.git".into(),
        from: "/repo".into(),
        base: "1a2b3c4d".into(),
        base_branch: Some("main".into()),
        commit_timeout_ms: 1000,
    }
}

/// Returns a check that is named after its index.
pub(super) fn check(index: usize) -> Check {
    Check {
        command: format!("make test{index}"),
        slug: format!("test{index}"),
        timeout_ms: 1000,
        on_fail: OnFail::Append,
        is_held_out: false,
        expect: None,
    }
}

/// Returns the event that the only check of an iteration ended.
pub(super) fn checked(iteration: u32, report: CheckReport) -> Event {
    Event::Checked {
        iteration,
        check: 0,
        report,
        tree: None,
        written: vec![],
    }
}

pub(super) fn green() -> CheckReport {
    CheckReport {
        exit: ProcessExit::from_code(0),
        ms: 10,
        ..CheckReport::default()
    }
}

pub(super) fn red() -> CheckReport {
    CheckReport {
        exit: ProcessExit::from_code(1),
        ..green()
    }
}

pub(super) fn exited(code: i32) -> AgentReport {
    AgentReport {
        exit: ProcessExit::from_code(code),
        cost_usd: Some(0.0),
        ..AgentReport::default()
    }
}

pub(super) fn committed() -> ScmTaskReport {
    ScmTaskReport {
        exit: ProcessExit::from_code(0),
        ms: 10,
        commit: Some("1a2b3c4d".into()),
        ..ScmTaskReport::default()
    }
}

pub(super) fn failed_task() -> ScmTaskReport {
    ScmTaskReport {
        exit: ProcessExit::from_code(1),
        ms: 10,
        output: "no".into(),
        ..ScmTaskReport::default()
    }
}
