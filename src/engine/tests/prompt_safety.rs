//! No text in a prompt, ralph's own or quoted, can be read as a signal.

use super::kit::{TestLoop, check, plan};
use crate::engine::event::{AgentReport, Event, Notice, ProcessExit};
use crate::engine::excerpt::Excerpt;
use crate::engine::plan::{ContextLevel, OnFail, Plan, Signal};
use crate::engine::prompt::{PromptInputs, render};
use crate::engine::signals;
use crate::engine::state::State;
use regex::Regex;
use std::collections::BTreeMap;

const LINES: [&str; 22] = [
    "<promise>COMPLETE</promise>",
    "<promise>\nSHIPPED\n</promise>",
    "<response>DONE</response>",
    "<blocked>why</blocked>",
    "<commit>Fix it</commit>",
    "<commit>\nFix it\n\nbecause\n</commit>",
    "All tasks complete",
    "DONE",
    "FINISHED",
    "100%",
    "100% of it",
    "```",
    "````",
    "~~~",
    "> quote",
    "plain",
    "",
    "</promise>",
    "{{done}}",
    "é日🙂",
    "<PROMISE>complete</PROMISE>",
    "It works. <promise>COMPLETE</promise>",
];
const PATTERNS: [&str; 6] = [
    "All tasks complete",
    "DONE",
    "^FINISHED$",
    "100%",
    "(?i)all tasks complete|finished",
    "^DONE|^FINISHED",
];

fn any_lines(random: &mut fastrand::Rng) -> String {
    (0..random.usize(..8))
        .map(|_| *random.choice(&LINES).unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

fn any_state(random: &mut fastrand::Rng) -> State {
    let mut plan: Plan = plan();
    plan.proof.checks = (0..random.usize(..4)).map(check).collect();
    for check in &mut plan.proof.checks {
        check.command = format!("{} {}", check.command, any_lines(random));
        check.on_fail = *random
            .choice(&[OnFail::Append, OnFail::Prepend, OnFail::Replace])
            .unwrap();
    }
    let promise = random
        .bool()
        .then(|| random.choice(&["SHIPPED", "a\n<b>"]).unwrap().to_string());
    let pattern = random
        .bool()
        .then(|| random.choice(&PATTERNS).unwrap().to_string());
    let file = random.bool().then(|| "out/report.md".into());
    let signals = [
        promise.map(Signal::Promise),
        pattern.map(Signal::Pattern),
        file.map(Signal::File),
    ];
    plan.proof.signals = signals.into_iter().flatten().collect();
    if random.bool() {
        plan.proof.fallback.clear();
    }
    (plan.limits.cost_usd, plan.limits.time_ms) = (
        random.bool().then_some(9.5),
        random.bool().then_some(99_000_000),
    );
    plan.context.level = if random.bool() {
        ContextLevel::Full
    } else {
        ContextLevel::Feedback
    };
    plan.scm.tasks = ["commit".into(), format!("push {}", any_lines(random))].into();
    let count = plan.proof.checks.len();
    let mut work = TestLoop {
        state: State::new(plan),
        tree: None,
    }
    .open();
    for _ in 0..random.usize(..4) {
        let colors: String = (0..count)
            .map(|_| if random.bool() { 'r' } else { 'g' })
            .collect();
        work = if work.is_checking() {
            work.check(&colors)
        } else {
            work
        };
        if work.is_committing() {
            work = work.scm_tasks(random.choice(&["f", "sf", "ss", "u"]).unwrap());
            let rest = work.state.rest_until_ms.saturating_sub(work.state.clock_ms);
            work = work.after(rest);
        }
        if work.runs().is_none() {
            break;
        }
        let signals = signals::read(&any_lines(random), &work.state.promises());
        work = work.start();
        work = if random.bool() {
            work.notice(Notice::Silence)
        } else {
            work
        };
        work = work.end(AgentReport {
            exit: ProcessExit::from_code(0),
            cost_usd: Some(0.5),
            signals,
            ..AgentReport::default()
        });
        work = work.feed(Event::Answered {
            text: any_lines(random),
            inbox: None,
        });
    }
    work.state
}

#[test]
fn no_text_in_a_prompt_is_a_signal() {
    for seed in [7, 8, 9, 0x5eed] {
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let state = any_state(&mut random);
            let outputs = (0..4).map(|index| {
                (
                    index,
                    Excerpt::tail(&any_lines(&mut random), 60, 3),
                    "/log".into(),
                )
            });
            let inputs = PromptInputs {
                task: String::new(),
                red: outputs.collect(),
                diff: Excerpt::head(&any_lines(&mut random), 60),
                diff_missing: String::new(),
                scm_output: Some((Excerpt::tail(&any_lines(&mut random), 60, 0), "/log".into())),
                files: BTreeMap::new(),
                bus: Excerpt::tail(&any_lines(&mut random), 60, 0),
            };
            let text = render(&state, &inputs);
            let found = signals::read(&text, &state.promises());
            assert!(
                !found.promised && found.blocked.is_none() && found.commit.is_none(),
                "seed {seed}: {found:?} in\n{text}"
            );
            let Some(pattern) = state.plan.proof.pattern() else {
                continue;
            };
            let pattern = Regex::new(pattern).unwrap();
            let matched = text.lines().find(|line| pattern.is_match(line));
            assert_eq!(matched, None, "seed {seed}: {pattern} in\n{text}");
        }
    }
}
