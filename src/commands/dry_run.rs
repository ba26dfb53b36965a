//! `ralph run --dry-run`: the plan and the first prompt, and nothing is started.

use crate::config;
use crate::engine::format::{dollars, duration};
use crate::engine::plan::{Approve, Delivery};
use crate::engine::prompt::{Materials, render};
use crate::engine::{Plan, State};
use crate::lifecycle::failure::{Failure, answer};

/// Shows them; `branch` is that of a worktree that would be made.
pub(crate) fn dry_run(plan: &Plan, branch: Option<String>) -> Result<i32, Failure> {
    let task = match &plan.task.file {
        Some(path) => {
            String::from_utf8_lossy(&std::fs::read(path).map_err(Failure::broken)?).into_owned()
        }
        None => plan.task.text.clone().unwrap_or_default(),
    };
    let prompt = render(
        &State::new(plan.clone()),
        &Materials {
            task,
            ..Materials::default()
        },
    );
    answer(&format!(
        "{}\n--- the first prompt, as it would be with no check red ---\n\n{prompt}",
        in_words(plan, branch)
    ))?;
    if !prompt.ends_with('\n') {
        answer("\n")?;
    }
    Ok(0)
}

fn in_words(plan: &Plan, branch: Option<String>) -> String {
    let limits = &plan.limits;
    let never = |ms: Option<u64>| ms.map_or_else(|| "never".into(), duration);
    let at_most =
        |max: Option<u32>| max.map_or_else(|| "no limit".into(), |max| format!("at most {max}"));
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
            .then(|| ("", "on a terminal, where the prompt is typed".to_owned())),
    );
    rows.extend(match agent.prompt {
        Delivery::Stdin => None,
        Delivery::Argument => Some(("", "and the prompt as its last argument".to_owned())),
        Delivery::File => Some(("", "and the prompt's file as its last argument".to_owned())),
    });
    let approve = agent.approve.map(|level| match level {
        Approve::None => "only read",
        Approve::Edits => "change files",
        Approve::All => "do everything",
    });
    rows.extend(approve.map(|may| ("approve", format!("it may {may} without asking"))));
    rows.push(("workspace", plan.workspace.display().to_string()));
    rows.extend(branch.map(|branch| ("worktree", format!("a new one, on the branch {branch}"))));
    let timeout = |ms: u64| Some(ms).filter(|ms| *ms < config::NO_TIMEOUT);
    let checks = plan.proof.checks.iter();
    rows.extend(checks.map(|check| {
        (
            "check",
            format!(
                "{} (timeout {})",
                check.command,
                never(timeout(check.timeout_ms))
            ),
        )
    }));
    rows.push(("iterations", at_most(limits.iterations)));
    rows.push(("failures", at_most(limits.failures) + " in a row"));
    rows.extend(
        limits
            .cost_usd
            .map(|max| ("cost", format!("at most {}", dollars(max)))),
    );
    rows.extend(
        limits
            .time_ms
            .map(|max| ("time", format!("at most {}", duration(max)))),
    );
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
    let rows: Vec<String> = rows
        .iter()
        .map(|(name, value)| format!("{name:<12}{value}\n"))
        .collect();
    rows.concat()
}
