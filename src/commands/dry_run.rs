//! `ralph run --dry-run`: prints the plan and the first prompt without starting anything.

use crate::agent::redact::Redactor;
use crate::config;
use crate::engine::format::duration;
use crate::engine::limits::{LIMITS, Limit};
use crate::engine::plan::{Approve, Check, PROMPT_FILE_MAX, PromptDelivery, Signal};
use crate::engine::prompt::{PromptInputs, render};
use crate::engine::{ExitCode, Plan, State};
use crate::lifecycle::error::CommandError;
use crate::os::regular_file;
use crate::ui::print::print_output;
use crate::ui::{hang, tty};

/// The column in which the values begin.
const INDENT: usize = 12;

/// Prints the plan and the first prompt. `branch` is the branch of the worktree that a real run
/// would create, or `None` if it would create none.
pub(crate) fn dry_run(plan: &Plan, branch: Option<String>) -> Result<ExitCode, CommandError> {
    let task = match &plan.task.file {
        Some(path) => {
            let (bytes, _) = regular_file::read(path, PROMPT_FILE_MAX, true).map_err(|error| {
                let path = path.display();
                CommandError::broken(format!("cannot read prompt file: {path}: {error}"))
            })?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        None => plan.task.text.clone().unwrap_or_default(),
    };
    let prompt = render(
        &State::new(plan.clone()),
        &PromptInputs {
            task,
            ..PromptInputs::default()
        },
    );
    let text = format!(
        "{}\n--- the first prompt if no check is red ---\n\n{prompt}",
        describe_plan(plan, branch)
    );
    print_output(&Redactor::for_plan(plan).redact_text(&text))?;
    if !prompt.ends_with('\n') {
        print_output("\n")?;
    }
    Ok(ExitCode::Success)
}

/// Says when the loop is done.
fn describe_done(plan: &Plan) -> String {
    let signals = State::new(plan.clone()).expected_signals();
    let signals: Vec<_> = signals.iter().map(Signal::describe).collect();
    let claim = format!(
        "the agent claims that the whole task is finished ({})",
        signals.join(" or ")
    );
    match (plan.proof.checks.is_empty(), signals.is_empty()) {
        (false, false) => format!("every check is green, and {claim}"),
        (false, true) => "every check is green, and the files have changed since the start".into(),
        (true, false) => claim,
        (true, true) => "never; it runs to its iteration limit, and that is a success".into(),
    }
}

/// Describes the checks, and how they run.
fn proof_rows(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let never = |ms: Option<u64>| ms.map_or_else(|| "never".into(), duration);
    let timeout = |ms: u64| Some(ms).filter(|ms| *ms < config::NO_TIMEOUT);
    let checks = plan.proof.checks.iter();
    rows.extend(checks.map(|check| {
        (
            if check.is_held_out() {
                "held out"
            } else {
                "check"
            },
            format!(
                "{} (timeout {})",
                check.command,
                never(timeout(check.timeout_ms))
            ),
        )
    }));
    let setup = plan.proof.setup.as_ref();
    rows.extend(setup.map(|setup| ("setup", setup.command.clone())));
    if plan.proof.sealed {
        let text = "the checks always run with the original tests and settings";
        rows.push(("sealed", text.into()));
    }
    rows
}

fn describe_plan(plan: &Plan, branch: Option<String>) -> String {
    let limits = &plan.limits;
    let never = |ms: Option<u64>| ms.map_or_else(|| "never".into(), duration);
    let agent = &plan.agent;
    let mut rows = vec![("agent", agent.command.join(" "))];
    rows.extend(
        agent
            .env
            .iter()
            .map(|(name, value)| ("", format!("with {name}={value}"))),
    );
    rows.extend(
        agent
            .terminal
            .then(|| ("", "on a terminal, with the prompt typed in".to_owned())),
    );
    rows.extend(match agent.prompt {
        PromptDelivery::Stdin => None,
        PromptDelivery::Argument => Some(("", "with the prompt as the last argument".to_owned())),
        PromptDelivery::File => Some((
            "",
            "with the path of the prompt file as the last argument".to_owned(),
        )),
    });
    let approve = agent.approve.map(|level| match level {
        Approve::None => "only read",
        Approve::Edits => "change files",
        Approve::All => "do everything",
    });
    rows.extend(approve.map(|allowed| ("approve", format!("it may {allowed} without asking"))));
    rows.extend(
        plan.sandbox
            .map(|kind| ("sandbox", format!("the agent runs {}", kind.describe()))),
    );
    rows.push(("workspace", plan.workspace.display().to_string()));
    rows.extend(branch.map(|branch| ("worktree", format!("a new one on branch {branch}"))));
    rows.extend(proof_rows(plan));
    rows.push(("done", describe_done(plan)));
    for row in &LIMITS {
        let max = row.max(limits);
        // A loop without checks never stalls.
        let applies = match row.limit {
            Limit::Stalls => !plan.proof.checks.is_empty(),
            Limit::Peeks => plan.proof.checks.iter().any(Check::is_held_out),
            _ => true,
        };
        if row.key.is_some() && applies && (max.is_some() || !row.is_budget) {
            let at_most = max.map_or_else(|| "no limit".into(), |max| format!("at most {max}"));
            let noun = Some(row.noun)
                .filter(|noun| *noun != row.name)
                .unwrap_or_default();
            rows.push((row.name, format!("{at_most} {noun}").trim_end().to_owned()));
        }
    }
    rows.push((
        "timeouts",
        format!(
            "iteration {}, inactivity {}",
            never(limits.iteration_ms),
            never(limits.inactivity_ms)
        ),
    ));
    rows.extend(
        plan.scm
            .tasks
            .iter()
            .map(|task| ("scm", format!("{} {task}", plan.scm.command.join(" ")))),
    );
    rows.extend(
        plan.notify
            .iter()
            .map(|command| ("notify", command.clone())),
    );
    let columns = tty::width();
    let rows: Vec<String> = rows
        .iter()
        .map(|(name, value)| {
            // Indent further lines, so that none looks like a row of its own.
            let lines = value
                .split('\n')
                .map(|line| hang(line, columns, INDENT, INDENT));
            let value = lines.collect::<Vec<_>>().join(&format!("\n{:INDENT$}", ""));
            format!("{name:<INDENT$}{value}\n")
        })
        .collect();
    rows.concat()
}
