//! Checks that a loop can start: its agent and check commands are installed, its workspace is
//! writable, and its done file is absent.

use super::error::CommandError;
use crate::agent::script;
use crate::config::PlanDraft;
use crate::config::agents::{self, AgentPreset};
use crate::engine::Plan;
use crate::engine::format::shell_quote;
use crate::engine::plan::{Agent, SCRIPT};
use crate::git;
use crate::os::{disk, program, regular_file};
use crate::sandbox::{self, SandboxRequest};
use std::path::Path;
use std::process::{Command, Stdio};

/// Checks that a loop with this plan can start.
pub(crate) fn check_ready(draft: &PlanDraft) -> Result<(), CommandError> {
    check_installed(draft)?;
    check_writable(&draft.plan().workspace)?;
    check_working_tree(&draft.plan().workspace)?;
    check_done_file(draft)
}

/// Checks that the agent can write to the workspace: its iterations would cost money and achieve
/// nothing.
fn check_writable(workspace: &Path) -> Result<(), CommandError> {
    disk::check_writable(workspace).map_err(|error| {
        let dir = workspace.display();
        CommandError::usage(
            format!("cannot write to the workspace {dir}: {error}"),
            format!(
                "run `ls -ld {}` to see its owner and mode, or start the loop in a copy",
                shell_quote(&workspace.to_string_lossy())
            ),
        )
    })
}

/// Checks that git compares and commits the files around the workspace, and not those of another
/// directory, such as the user's home.
fn check_working_tree(workspace: &Path) -> Result<(), CommandError> {
    git::moved_working_tree(workspace).map_or(Ok(()), |top| {
        Err(CommandError::usage(
            format!(
                "core.worktree in the repository's configuration moves its working tree to {}",
                top.display()
            ),
            "if you do not know why, do not trust this repository; to use it where it lies: git config --unset core.worktree",
        ))
    })
}

/// Checks that the programs the loop needs are installed.
pub(crate) fn check_installed(draft: &PlanDraft) -> Result<(), CommandError> {
    let plan = draft.plan();
    for agent in plan.agents() {
        check_agent(agent, &plan.workspace, &draft.config.presets)?;
    }
    check_commands(plan)
}

/// Checks that the sandbox of the plan works here, by starting a shell in it. `state_dir` is hidden
/// from the agent.
pub(crate) fn check_sandbox(plan: &Plan, state_dir: &Path) -> Result<(), CommandError> {
    let Some(kind) = plan.sandbox.filter(|_| plan.session.is_none()) else {
        return Ok(());
    };
    for agent in plan.agents() {
        let request = SandboxRequest {
            kind,
            workspace: &plan.workspace,
            state_dir,
            agent,
            files: Vec::new(),
            caches: plan.workspace.clone(),
        };
        sandbox::probe(&request).map_err(|failure| {
            CommandError::usage(
                format!("--sandbox={kind}: {}", failure.message),
                failure.hint,
            )
        })?;
    }
    Ok(())
}

/// Checks that an agent can be started in `dir`. Error messages take the install command from
/// `presets`.
pub(crate) fn check_agent(
    agent: &Agent,
    dir: &Path,
    presets: &[(String, AgentPreset)],
) -> Result<(), CommandError> {
    // A function agent has no command.
    let Some(program) = agent.command.first() else {
        return Ok(());
    };
    if let Some(file) = program.strip_prefix(SCRIPT) {
        let text = regular_file::read_text(Path::new(file), true).map_err(|error| {
            CommandError::usage(
                format!("cannot read the script {file}: {error}"),
                "pass the path of a script file, as in --agent script:demo.script",
            )
        })?;
        let parsed = script::parse(&text);
        return parsed.map(drop).map_err(|wrong| {
            CommandError::usage(
                format!("{file}:{}: {}", wrong.line, wrong.message),
                "correct that line of the script and run the command again",
            )
        });
    }
    match program::find(program, dir) {
        None => Err(CommandError::usage(
            format!(
                "the agent {} is not installed: program {program} not found",
                agent.name
            ),
            agents::install_hint(program, presets).unwrap_or_else(|| {
                format!("install {program}, or check its spelling and your PATH")
            }),
        )),
        Some(path) if path.is_dir() => Err(CommandError::usage(
            format!("the agent's command is a directory: {program}"),
            "pass the path of the program inside that directory",
        )),
        Some(path) if !program::is_executable(&path) => Err(CommandError::usage(
            format!("the agent's command is not executable: {program}"),
            format!("make it executable: chmod +x {}", path.display()),
        )),
        Some(path) => match program::missing_interpreter(&path, dir) {
            None => Ok(()),
            Some(why) => Err(CommandError::usage(
                format!("the agent's command {program} cannot start: {why}"),
                format!("correct the first line of {}", path.display()),
            )),
        },
    }
}

/// Returns an error if the done file already exists, because it would count as the agent's claim.
fn check_done_file(draft: &PlanDraft) -> Result<(), CommandError> {
    let plan = draft.plan();
    match plan.proof.file() {
        Some(file) if plan.workspace.join(file).exists() => Err(CommandError::usage(
            format!(
                "{} {} already exists",
                draft.config.display_name("done-file"),
                file.display()
            ),
            "remove the file, or choose another one: the agent creates it when the work is done",
        )),
        _ => Ok(()),
    }
}

/// Rejects a check whose command or its interpreter is missing, because it could never turn green.
/// Asks the shell, because the command may be a builtin. A session has no preflight, but its user is there to
/// correct the check.
pub(crate) fn check_commands(plan: &Plan) -> Result<(), CommandError> {
    let in_session = plan.session.is_some();
    if !plan.proof.preflight && !in_session {
        return Ok(());
    }
    for check in &plan.proof.checks {
        let first = check.command.split_whitespace().next().unwrap_or_default();
        let is_plain = first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.+/".contains(c));
        if !is_plain {
            continue;
        }
        let dir = &plan.workspace;
        let interpreter =
            program::find(first, dir).and_then(|path| program::missing_interpreter(&path, dir));
        let (why, remedy) = if let Some(why) = interpreter {
            let remedy = format!("correct the first line of {first}");
            (format!("{first} cannot start: {why}"), remedy)
        } else if first.contains('/') || is_known_to_shell(first) {
            continue;
        } else {
            let why = format!("command {first} not found");
            (why, format!("install {first}"))
        };
        return Err(CommandError::usage(
            format!("the check {:?} cannot run: {why}", check.command),
            if in_session {
                format!("{remedy}, or correct the check")
            } else {
                format!(
                    "{remedy}, correct the check, or use --no-preflight if the agent will provide {first}"
                )
            },
        ));
    }
    Ok(())
}

fn is_known_to_shell(command: &str) -> bool {
    let known = Command::new(program::shell())
        .args(["-c", "command -v -- \"$0\"", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !known.is_ok_and(|status| !status.success())
}
