//! Whether a loop could start here: its agent and its checks are there, and nothing claims the work yet.

use super::failure::Failure;
use crate::agent::script;
use crate::config::{Settings, Stack, agents};
use crate::engine::Plan;
use crate::engine::plan::{Agent, SCRIPT};
use crate::os::program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a loop with this plan could start here.
pub(crate) fn ready(plan: &Plan, stack: &Stack) -> Result<(), Failure> {
    installed(plan, stack)?;
    nothing_claimed_yet(plan, stack)
}

/// Whether the programs that it needs are there.
pub(crate) fn installed(plan: &Plan, stack: &Stack) -> Result<(), Failure> {
    let own = Settings::of(stack).agents;
    for agent in plan.agents() {
        agent_exists(agent, &plan.workspace, &own)?;
    }
    checks_exist(plan)
}

/// Whether an agent could be started in this directory.
pub(crate) fn agent_exists(
    agent: &Agent,
    dir: &Path,
    own: &BTreeMap<String, Value>,
) -> Result<(), Failure> {
    // An agent that is a function has no command.
    let Some(program) = agent.command.first() else {
        return Ok(());
    };
    if let Some(file) = program.strip_prefix(SCRIPT) {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::usage(
                format!("cannot read the script {file}: {error}"),
                "name a file, as in --agent script:demo.script",
            )
        })?;
        let parsed = script::parse(&text);
        return parsed.map(drop).map_err(|wrong| {
            Failure::usage(
                format!("{file}:{}: {}", wrong.line, wrong.message),
                "nothing was started; correct that line",
            )
        });
    }
    match program::find(program, dir) {
        None => Err(Failure::usage(
            format!(
                "the agent {} is not installed: there is no program {program}",
                agent.name
            ),
            agents::how_to_install(program, own)
                .unwrap_or_else(|| "install it, or check its name and your PATH".into()),
        )),
        Some(path) if path.is_dir() => Err(Failure::usage(
            format!("the agent's command is a directory: {program}"),
            "name the program in it",
        )),
        Some(path) if !program::may_run(&path) => Err(Failure::usage(
            format!("the agent's command may not be run: {program}"),
            format!("chmod +x {}", path.display()),
        )),
        Some(_) => Ok(()),
    }
}

/// A file that is there already would be taken for the agent's claim.
fn nothing_claimed_yet(plan: &Plan, stack: &Stack) -> Result<(), Failure> {
    match &plan.proof.file {
        Some(file) if plan.workspace.join(file).exists() => Err(Failure::usage(
            format!(
                "{} {} is there already",
                stack.name("done-file"),
                file.display()
            ),
            "it is to show that the work is done: remove it, or name another",
        )),
        _ => Ok(()),
    }
}

/// A check whose first word is a bare command that nobody has would be red for ever. The shell knows
/// its own words, so it is asked.
fn checks_exist(plan: &Plan) -> Result<(), Failure> {
    if !plan.proof.preflight {
        return Ok(());
    }
    for check in &plan.proof.checks {
        let first = check.command.split_whitespace().next().unwrap_or_default();
        let bare = first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
        if !bare {
            continue;
        }
        let known = Command::new("sh")
            .args(["-c", "command -v -- \"$0\"", first])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if known.is_ok_and(|status| !status.success()) {
            return Err(Failure::usage(
                format!(
                    "the check {:?} cannot run: there is no command {first}",
                    check.command
                ),
                "install it, correct it, or start with --no-preflight if the agent is to bring it",
            ));
        }
    }
    Ok(())
}
