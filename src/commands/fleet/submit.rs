//! `ralph spawn --fleet`: submits a loop to the fleet.

use super::connection;
use crate::cli::RunArgs;
use crate::commands::run::{self, ResolvedRun};
use crate::config::settings::WorktreeSetting;
use crate::engine::ExitCode;
use crate::engine::plan::Plan;
use crate::fleet::block_on;
use crate::fleet::error::FleetError;
use crate::fleet::exchange::LoopRecord;
use crate::fleet::nats::NatsExchange;
use crate::fleet::submit::{CodeError, PackedCode, Submission};
use crate::lifecycle::create::random_id;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::scm_check::file_list;
use crate::store::StateDir;
use crate::store::dir::create_dir;
use crate::ui::print::{print_json, print_message};
use crate::ui::tty::is_terminal;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) fn spawn_in_fleet(args: &RunArgs) -> Result<ExitCode, CommandError> {
    let flags = &args.fleet;
    let connection = connection(&flags.target.flags())?;
    let Some(ResolvedRun { draft, .. }) = run::resolve(args)? else {
        return Ok(ExitCode::Success);
    };
    let settings = &draft.config.settings;
    let branch = match &settings.worktree {
        WorktreeSetting::Branch(branch) => Some(branch.clone()),
        WorktreeSetting::Off | WorktreeSetting::DefaultBranch => None,
    };
    let commit_timeout_ms = settings.check_timeout.0;
    let plan = draft.into_plan();
    check_paths(&plan)?;
    let id = random_id()?;
    let scratch = Scratch::create(&id)?;
    let code = PackedCode::pack(&plan.workspace, &id, flags.include_dirty, &scratch.0)
        .map_err(code_error)?;
    let submission = Submission {
        id,
        name: args.name.clone(),
        name_base: StateDir::name_base(&plan.workspace),
        branch,
        labels: labels(&flags.label)?,
        commit_timeout_ms,
        submitted_by: submitter(),
        plan,
    };
    let record = block_on(async {
        let exchange = NatsExchange::open(&connection).await?;
        submission.submit(&exchange, &code).await
    })?
    .map_err(|error| fleet_error(error, args.name.as_deref()))?;
    print_record(&record, args.json, &connection.pool)
}

fn print_record(record: &LoopRecord, json: bool, pool: &str) -> Result<ExitCode, CommandError> {
    let name = &record.name;
    if json {
        print_json(&json!({ "name": name, "id": record.id, "pool": pool }).to_string())?;
        return Ok(ExitCode::Success);
    }
    print_message(&format!("queued {name} (fleet, pool {pool})\n"));
    if is_terminal() {
        print_message(&format!(
            "watch: ralph status {name} --fleet · ralph logs {name} -f --fleet\n\
             steer: ralph say {name} TEXT --fleet · ralph pause {name} --fleet\n\
             fetch: ralph fetch {name}\n"
        ));
    }
    Ok(ExitCode::Success)
}

/// Rejects files that a worker cannot have.
fn check_paths(plan: &Plan) -> Result<(), CommandError> {
    match &plan.task.file {
        Some(file) if !file.starts_with(&plan.workspace) => Err(CommandError::usage(
            format!(
                "the prompt file {} is outside the workspace, so no worker has it",
                file.display()
            ),
            "move it into the repository and commit it, or pass its text with --prompt",
        )),
        _ => Ok(()),
    }
}

fn code_error(error: CodeError) -> CommandError {
    match error {
        CodeError::NotInGit(why) => CommandError::usage(
            format!("a fleet needs the code in a git repository with a commit: {why}"),
            "run `git init`, commit your files, and try again",
        ),
        CodeError::Dirty(files) => CommandError::usage(
            format!("these changes are not committed: {}", file_list(&files)),
            "commit them, or pass --include-dirty to send them along",
        ),
        CodeError::Failed(why) => CommandError::broken(format!("cannot pack the code: {why}")),
    }
}

pub(crate) fn fleet_error(error: FleetError, name: Option<&str>) -> CommandError {
    match error {
        FleetError::NameTaken => CommandError::usage(
            format!(
                "the fleet has a loop named {:?} already",
                name.unwrap_or_default()
            ),
            "choose another --name, or remove that loop with `ralph rm NAME --fleet`",
        ),
        error => CommandError::broken(error),
    }
}

/// Parses labels, each as `key=value`.
pub(crate) fn labels(labels: &[String]) -> Result<BTreeMap<String, String>, CommandError> {
    let parse = |label: &String| match label.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(CommandError::usage(
            format!("--label {label:?} is not of the form KEY=VALUE"),
            "write --label gpu=yes",
        )),
    };
    labels.iter().map(parse).collect()
}

/// Returns the user and host, for people.
fn submitter() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned());
    format!("{user}@{}", host_name())
}

/// Returns the name of this machine.
pub(crate) fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// A directory that is removed when this value is dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn create(id: &str) -> Result<Self, CommandError> {
        let path = StateDir::locate()?.root().join("fleet").join(id);
        create_dir(&path).map_err(CommandError::broken)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}
