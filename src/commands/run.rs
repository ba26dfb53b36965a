//! `ralph run`: creates a loop and runs it in the foreground.

use super::dry_run::dry_run;
use super::supervise::supervise;
use super::trust::consent::{TrustStatus, settle_trust};
use super::workspace::ChosenWorkspace;
use crate::cli::{OutputArgs, RunArgs};
use crate::config::{
    Config, LayerStack, PlanDraft, SettingsFiles, SettingsPaths, resolve_typed_paths,
};
use crate::engine::ExitCode;
use crate::engine::plan::{Check, ContextLevel, Sandbox};
use crate::lifecycle::create::{Placement, PreparedLoop, create_loop};
use crate::lifecycle::error::CommandError;
use crate::lifecycle::preconditions::{check_installed, check_ready, check_sandbox};
use crate::lifecycle::scm_check::check_scm_tasks;
use crate::lifecycle::worktree_request::WorktreeRequest;
use crate::store;
use crate::store::{StateDir, is_valid_name};
use crate::ui::print::{warn, warn_all};
use std::path::PathBuf;

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, CommandError> {
    if args.is_for_fleet() {
        return Err(CommandError::usage(
            "a loop in the fleet runs in the background",
            "use `ralph spawn` instead of `ralph run`",
        ));
    }
    match resolve(args)? {
        Some(resolved) => start(&StateDir::locate()?, args, resolved),
        None => Ok(ExitCode::Success),
    }
}

/// A run that is ready to start.
pub(crate) struct ResolvedRun {
    pub(crate) draft: PlanDraft,
    /// The worktree to create for the loop. `None` runs the loop in the user's checkout.
    pub(crate) worktree: Option<WorktreeRequest>,
}

/// Resolves the arguments in the current directory. Returns `None` after a dry run.
pub(crate) fn resolve(args: &RunArgs) -> Result<Option<ResolvedRun>, CommandError> {
    let workspace = ChosenWorkspace::choose(args.here)?;
    let config = args
        .config
        .as_deref()
        .map(|path| workspace.typed_path(path));
    let files = SettingsFiles::read(&settings_paths(workspace.path.clone(), config))?;
    let trust = settle_trust(&files, &workspace.path, args)?;
    resolve_in(workspace, files.into_stack(), trust, args)
}

/// Returns where a workspace's settings files are. `project_file` replaces the project's file.
pub(crate) fn settings_paths(workspace: PathBuf, project_file: Option<PathBuf>) -> SettingsPaths {
    SettingsPaths {
        workspace,
        user_dir: config_dir(),
        project_file,
    }
}

/// Resolves the arguments on top of the given settings, and checks that the run can start in this
/// workspace. Returns `None` after a dry run.
pub(crate) fn resolve_in(
    workspace: ChosenWorkspace,
    mut stack: LayerStack,
    trust: TrustStatus,
    args: &RunArgs,
) -> Result<Option<ResolvedRun>, CommandError> {
    let mut flags = args.layer();
    let mut request = args.request(workspace.path, config_dir());
    resolve_typed_paths(&mut flags, &mut request.command, &workspace.current_dir);
    stack.push(flags);
    let draft = Config::new(stack)?.draft_plan(&request)?;
    if let Some(name) = args.name.as_deref().filter(|name| !is_valid_name(name)) {
        return Err(store::StoreError::InvalidName {
            name: name.to_owned(),
        }
        .into());
    }
    // Where the loop will run is known later.
    let is_for_fleet = args.is_for_fleet();
    let worktree = if is_for_fleet {
        None
    } else {
        WorktreeRequest::from_draft(&draft)?
    };
    if is_for_fleet {
    } else if worktree.is_some() {
        // The other checks run in the worktree once it exists.
        check_installed(&draft)?;
    } else {
        check_ready(&draft)?;
        // This runs the git program that the settings name.
        if trust == TrustStatus::Trusted {
            warn_all(check_scm_tasks(&draft)?);
        }
    }
    if !is_for_fleet {
        check_sandbox(draft.plan(), StateDir::locate()?.root())?;
    }
    if args.dry_run {
        dry_run(
            &draft.into_plan(),
            worktree
                .as_ref()
                .map(|worktree| worktree.branch_for(args.name.as_deref())),
        )?;
        return Ok(None);
    }
    let plan = draft.plan();
    if plan.limits.iterations.is_none_or(|max| max > 50) {
        warn(match plan.limits.iterations {
            Some(_) => "high iteration count (>50) may consume significant resources",
            None => "no iteration limit: the loop may consume significant resources",
        });
    }
    let has_held_out = plan.proof.checks.iter().any(Check::is_held_out);
    if has_held_out && plan.sandbox != Some(Sandbox::Bwrap) {
        warn(
            "an agent that looks for a held-out check can find it; --sandbox hides it from the agent",
        );
    }
    if plan.context.level == ContextLevel::None
        && plan.proof.checks.is_empty()
        && plan.proof.signals.is_empty()
        && !draft.config.settings.no_promise
    {
        warn(
            "with --context none ralph does not tell the agent how to finish: ask for <promise>COMPLETE</promise> in your prompt",
        );
    }
    Ok(Some(ResolvedRun { draft, worktree }))
}

/// Creates a loop in this state directory and runs it in the foreground.
pub(crate) fn start(
    state_dir: &StateDir,
    args: &RunArgs,
    resolved: ResolvedRun,
) -> Result<ExitCode, CommandError> {
    let ResolvedRun { draft, worktree } = resolved;
    let settings = &draft.config.settings;
    let output = OutputArgs {
        quiet: settings.quiet && !args.json,
        json: args.json,
        no_stream: !settings.stream,
        raw: settings.raw,
        hide_next_step: args.hide_next_step,
        in_window: false,
    };
    let PreparedLoop {
        dir, locks, plan, ..
    } = create_loop(
        state_dir,
        args.name.as_deref(),
        draft,
        Placement::foreground(worktree),
        &mut |warning| warn(warning),
    )?;
    supervise(&dir, locks, &plan, output)
}

/// Returns the path of ralph's configuration directory. `None` if the user's home directory is
/// unknown.
pub(crate) fn config_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    etcetera::choose_base_strategy()
        .ok()
        .map(|base| base.config_dir().join("ralph"))
}
