//! The contents of a prompt.

use super::kit::{TestLoop, plan};
use crate::engine::event::{AgentReport, ProcessExit};
use crate::engine::excerpt::Excerpt;
use crate::engine::plan::{ContextLevel, OnFail, Signal};
use crate::engine::prompt::{PromptInputs, TEMPLATE_FIELDS, render};
use crate::engine::template;
use std::collections::BTreeMap;
pub(super) fn inputs() -> PromptInputs {
    PromptInputs {
        task: "Write the parser.\n".into(),
        diff: Excerpt::head("+one\n+two", 6),
        diff_missing: String::new(),
        red: vec![(
            0,
            Excerpt::tail("expected 1, found 2", 7, 0),
            "/log/0".into(),
        )],
        scm_output: None,
        files: BTreeMap::new(),
        bus: Excerpt::default(),
    }
}

pub(super) fn prompt(work: &TestLoop) -> String {
    render(&work.state, &inputs())
}

/// Asserts that `text` contains `parts`, in this order.
pub(super) fn contains_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is missing or too early in:\n{text}")
        };
        rest = after;
    }
}

#[test]
fn the_default_template_is_valid() {
    assert_eq!(
        template::find_invalid_tag(&plan().context.template, &TEMPLATE_FIELDS),
        None
    );
}

#[test]
fn the_first_prompt_of_a_loop_with_a_red_check() {
    let work = TestLoop::preflight("r");
    assert_eq!(
        prompt(&work),
        "Write the parser.

The check `make test0` is red (exit 1). Full output: /log/0

```
found 2
```
[12 earlier characters cut]

## This loop

This is iteration 1 of at most 25 of a loop. You start with a fresh context: the work of earlier iterations is in the files.

How to finish:

- These checks are run for you after you exit, and all must be green: `make test0`.
- Only when the whole task is done, not just this iteration's part, write <promise>COMPLETE</promise> alone on the last line of your final message.
- The next iteration sees the files, but nothing else that you know. Write what it should know as <note>…</note> alone on lines of your final message.
- If you cannot continue without a person, do not guess or fake results: write <blocked>the reason</blocked> alone on a line and exit.

## Changes since the loop started

```diff
+one
+
```
[3 later characters cut]
"
    );
}

#[test]
fn the_prompt_says_what_done_requires() {
    let only = "- Only when the whole task is done, not just this iteration's part, ";
    let promise = "write <promise>COMPLETE</promise> alone on the last line of your final message.";
    contains_in_order(
        &prompt(&TestLoop::preflight("g")),
        &[
            "- These checks",
            "`make test0`.",
            only,
            promise,
            "<blocked>",
        ],
    );
    let bare = prompt(&TestLoop::new().open());
    contains_in_order(&bare, &[only, promise, "<blocked>"]);
    assert!(!bare.contains("These checks"));
    let plain = prompt(&TestLoop::new().no_promise().open());
    contains_in_order(
        &plain,
        &[
            "- Do one sensible step of the task, then exit.",
            "<blocked>",
        ],
    );
    assert!(!plain.contains("Only when"));
    let guarded = prompt(&TestLoop::new().no_promise().checks(1).open().check("g"));
    assert!(
        !guarded.contains("Do one sensible step") && !guarded.contains("Only when"),
        "{guarded}"
    );
    let asked = TestLoop::new()
        .promise("all\n is  well")
        .pattern("^FINISHED$")
        .with(|plan| plan.proof.signals.push(Signal::File("r.md".into())));
    let three = "write <promise>all is well</promise> alone on the last line of your final message, or print a line that \
                 matches the pattern `^FINI` followed directly by `SHED$`, or create the file `r.md`.";
    contains_in_order(&prompt(&asked.open()), &[only, three]);
}

#[test]
fn the_done_pattern_is_written_in_pieces_that_do_not_match_it() {
    for (pattern, pieces) in [
        ("DONE", "`DO` followed directly by `NE`"),
        ("É✓é", "`É✓` followed directly by `é`"),
        (
            "DONE|READY",
            "`DON` followed directly by `E|R` followed directly by `EAD` followed directly by `Y`",
        ),
        ("(", "`(`"),
        ("(((", "`((` followed directly by `(`"),
        (
            "x|y",
            "`x` followed directly by `|` followed directly by `y`",
        ),
    ] {
        let text = prompt(&TestLoop::new().pattern(pattern).open());
        contains_in_order(
            &text,
            &[&format!("print a line that matches the pattern {pieces}.")],
        );
    }
}

#[test]
fn the_prompt_says_how_much_of_the_limits_is_used() {
    let limited = |cost, time| {
        TestLoop::new().with(|plan| (plan.limits.cost_usd, plan.limits.time_ms) = (cost, time))
    };
    let spent = |work: TestLoop| {
        let report = AgentReport {
            exit: ProcessExit::from_code(0),
            cost_usd: Some(0.5),
            ..AgentReport::default()
        };
        prompt(&work.open().after(90_000).start().end(report))
    };
    contains_in_order(
        &spent(limited(Some(2.0), Some(3_600_000))),
        &["below. Used so far: $0.5000 of $2.00, 1m 30s of 1h.\n"],
    );
    contains_in_order(
        &spent(limited(None, Some(3_600_000))),
        &["Used so far: 1m 30s of 1h.\n"],
    );
    assert!(!spent(limited(None, None)).contains("Used so far"));
    let unlimited = prompt(
        &TestLoop::new()
            .with(|plan| plan.limits.iterations = None)
            .open(),
    );
    contains_in_order(&unlimited, &["This is iteration 1 of a loop."]);
}

fn with_actions(actions: &[OnFail], colors: &str) -> TestLoop {
    let work = TestLoop::new().checks(actions.len()).with(|plan| {
        for (check, action) in plan.proof.checks.iter_mut().zip(actions) {
            check.on_fail = *action;
        }
    });
    work.open().check(colors)
}

fn rendered(work: &TestLoop) -> String {
    let output = |index: usize| Excerpt::head(&format!("output {index}"), 99);
    let red = work
        .state
        .checks
        .iter()
        .enumerate()
        .filter(|(_, report)| !report.as_ref().unwrap().is_green());
    let red = red
        .map(|(index, _)| (index, output(index), format!("/log/{index}")))
        .collect();
    render(&work.state, &PromptInputs { red, ..inputs() })
}

#[test]
fn the_fail_action_decides_where_red_output_goes() {
    let task = "Write the parser.";
    for (action, order) in [
        (OnFail::Append, [task, "output 0"]),
        (OnFail::Prepend, ["output 0", task]),
    ] {
        contains_in_order(
            &rendered(&with_actions(&[action], "r")),
            &[order[0], order[1], "## This loop"],
        );
    }
    let second = |work: TestLoop, colors: &str| rendered(&work.start().exit(0).check(colors));
    let replaced = second(with_actions(&[OnFail::Replace], "r"), "r");
    assert!(!replaced.contains(task));
    contains_in_order(
        &replaced,
        &[
            "output 0",
            "## This loop",
            "These checks",
            "<blocked>",
            "## Changes",
        ],
    );
    let all = with_actions(
        &[
            OnFail::Append,
            OnFail::Prepend,
            OnFail::Replace,
            OnFail::Replace,
        ],
        "rrrr",
    );
    let all = second(all, "rrrr");
    assert!(!all.contains(task));
    contains_in_order(
        &all,
        &[
            "output 1",
            "output 2",
            "\n\nThe check `make test3` is red",
            "output 3",
            "output 0",
            "## This loop",
        ],
    );
}

#[test]
fn the_first_prompt_contains_the_task_even_if_red_output_replaces_it_later() {
    let first = with_actions(&[OnFail::Replace], "r");
    let first = first.with(|plan| plan.task.title = Some("Parser".into()));
    let first = first.open().check("r");
    contains_in_order(
        &rendered(&first),
        &["Parser", "Write the parser.", "output 0", "## This loop"],
    );
    let second = rendered(&first.start().exit(0).check("r"));
    contains_in_order(&second, &["Parser", "output 0", "## This loop"]);
    assert!(!second.contains("Write the parser."));
}

#[test]
fn a_green_check_is_only_named() {
    let text = rendered(&with_actions(&[OnFail::Replace, OnFail::Append], "gr"));
    contains_in_order(
        &text,
        &[
            "Write the parser.",
            "output 1",
            "Currently green: `make test0`.",
            "## Changes",
        ],
    );
    assert!(!text.contains("output 0"));
    contains_in_order(
        &rendered(&with_actions(&[OnFail::Append; 2], "gg")),
        &["Currently green: `make test0`, `make test1`."],
    );
    assert!(!rendered(&with_actions(&[OnFail::Append], "r")).contains("Currently green"));
}

#[test]
fn output_of_checks_that_have_not_run_is_ignored() {
    let work = TestLoop::new().checks(1).no_preflight().open();
    assert!(!prompt(&work).contains("is red"));
    let unexpected = PromptInputs {
        red: vec![(7, Excerpt::default(), String::new())],
        ..inputs()
    };
    assert!(!render(&work.state, &unexpected).contains("is red"));
}

#[test]
fn a_missing_diff_is_explained() {
    let none = PromptInputs {
        diff: Excerpt::default(),
        diff_missing: "No git here.".into(),
        ..inputs()
    };
    let text = render(&TestLoop::new().open().state, &none);
    contains_in_order(&text, &["<blocked>", "\n\nNo git here.\n"]);
    assert!(!text.contains("## Changes"));
}

#[test]
fn feedback_has_neither_diff_nor_history() {
    let work = TestLoop::preflight("r").start().exit(0).check("r");
    let mut lean = work.clone();
    lean.state.plan.context.level = ContextLevel::Feedback;
    let inputs = PromptInputs {
        diff_missing: "No git here.".into(),
        ..inputs()
    };
    let text = render(&lean.state, &inputs);
    contains_in_order(&text, &["Write the parser.", "found 2", "These checks"]);
    for part in [
        "## Changes",
        "## Iterations",
        "with a summary below",
        "No git here.",
    ] {
        assert!(render(&work.state, &inputs).contains(part), "{part}");
        assert!(!text.contains(part), "{part}");
    }
}

#[test]
fn context_none_is_the_task_byte_for_byte() {
    let work = TestLoop::new()
        .checks(1)
        .with(|plan| plan.context.level = ContextLevel::None)
        .open()
        .check("r");
    for task in ["", "\n\n x \r\n", "{{done}} <promise>COMPLETE</promise>"] {
        assert_eq!(
            render(
                &work.state,
                &PromptInputs {
                    task: task.into(),
                    ..inputs()
                }
            ),
            task
        );
    }
}

#[test]
fn an_unknown_name_stays_in_the_prompt() {
    let template = "{{title}}|{{max_iterations}}|{{nonsense}}  \n\n";
    let titled = |title: Option<&str>| {
        let work = TestLoop::new().with(|plan| {
            plan.context.template = template.into();
            plan.task.title = title.map(Into::into);
        });
        prompt(&work.open())
    };
    assert_eq!(titled(Some("Parser")), "Parser|25|{{nonsense}}\n");
    assert_eq!(titled(None), "|25|{{nonsense}}\n");
}
