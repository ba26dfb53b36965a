//! Creates a git worktree for a loop, and rolls it back if the loop does not start.

use super::error::CommandError;
use super::preconditions::check_ready;
use super::scm_check::{check_scm_tasks, file_list, working_tree_error};
use crate::config::settings::WorktreeSetting;
use crate::config::{PlanDraft, reject_secret};
use crate::engine::format::shell_quote;
use crate::engine::plan::Worktree;
use crate::git::worktree;
use crate::git::worktree::WorktreeSource;
use crate::os::regular_file;
use crate::store::dir::create_file;
use crate::store::{FileLock, LockHolder, LoopDir, LoopLock, StateDir, is_valid_name};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum time to wait while another loop creates a worktree of the same repository.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// A requested worktree, and the repository to create it from.
pub(crate) struct WorktreeRequest {
    source: WorktreeSource,
    /// The name of the flag or setting that requested the worktree, for messages.
    setting: String,
    /// The branch that the user named. `None` means `ralph/<name>`.
    branch: Option<String>,
    commit_timeout_ms: u64,
}

impl WorktreeRequest {
    /// Reads the request from the settings, and checks that git can create a worktree of the
    /// workspace's repository. Returns `None` if no worktree is requested.
    pub(crate) fn from_draft(draft: &PlanDraft) -> Result<Option<Self>, CommandError> {
        let (settings, dir) = (&draft.config.settings, &draft.plan().workspace);
        let branch = match &settings.worktree {
            WorktreeSetting::Off => return Ok(None),
            WorktreeSetting::DefaultBranch => None,
            WorktreeSetting::Branch(branch) => Some(branch.clone()),
        };
        let name = draft.config.display_name("worktree");
        reject_git_redirection()?;
        let source =
            WorktreeSource::find(dir).map_err(|why| working_tree_error(&name, &why, "git", dir))?;
        if source.head.is_none() {
            return Err(CommandError::usage(
                format!("{name} starts from the latest commit, but this repository has none"),
                "run `git commit --allow-empty -m \"first commit\"` to make a first commit",
            ));
        }
        if let Some(why) = source.missing_identity() {
            return Err(CommandError::usage(
                format!("git has no committer identity: {why}"),
                "run `git config user.name \"…\" && git config user.email \"…\"` to set one",
            ));
        }
        if let Some(branch) = branch
            .as_ref()
            .filter(|branch| !source.is_valid_branch_name(branch))
        {
            return Err(CommandError::usage(
                format!("{name}: {branch:?} is not a valid git branch name"),
                "use a name such as --worktree=feature/parser, or --worktree alone for ralph/<name>",
            ));
        }
        Ok(Some(Self {
            source,
            setting: name,
            branch,
            commit_timeout_ms: settings.check_timeout.0,
        }))
    }

    /// Returns whether a worktree or branch for this loop name already exists. Either may contain
    /// work.
    pub(crate) fn is_taken(&self, state_dir: &StateDir, name: &str) -> bool {
        let derived_branch = self.branch.is_none();
        std::fs::symlink_metadata(state_dir.worktree_path(name)).is_ok()
            || (derived_branch
                && self
                    .source
                    .branch_tip(&self.branch_for(Some(name)))
                    .is_some())
    }

    /// Returns the branch for a loop named `name`, or a placeholder if `name` is `None`.
    pub(crate) fn branch_for(&self, name: Option<&str>) -> String {
        self.branch
            .clone()
            .unwrap_or_else(|| format!("ralph/{}", name.unwrap_or("<name>")))
    }

    /// Plans the worktree for a loop named `name`. Fails if the worktree's path or branch is in
    /// use.
    pub(crate) fn plan(
        &self,
        state_dir: &StateDir,
        name: &str,
        from: &Path,
    ) -> Result<Worktree, CommandError> {
        let path = state_dir.worktree_path(name);
        if path.starts_with(self.source.top()) {
            return Err(CommandError::usage(
                format!(
                    "the state directory {} is inside this repository",
                    state_dir.root().display()
                ),
                "set RALPH_STATE_DIR to a path outside the repository, so that the worktree does not clutter your checkout",
            ));
        }
        for path in [&path, &self.source.repository] {
            if path.to_str().is_none() {
                return Err(CommandError::usage(
                    format!("the path {} is not valid UTF-8", path.display()),
                    "rename the directory: the journal can store only UTF-8 paths",
                ));
            }
        }
        reject_secret("the worktree", &path.to_string_lossy())?;
        reject_secret("the repository", &self.source.repository.to_string_lossy())?;
        let branch = self.branch_for(Some(name));
        for branch in self.source.branch.iter().chain([&branch]) {
            reject_secret("the branch", branch)?;
        }
        if std::fs::symlink_metadata(&path).is_ok() {
            let is_known = state_dir.find_loop(name).is_ok();
            let remove = if is_known {
                format!("ralph rm {name} --worktree")
            } else {
                format!(
                    "git worktree remove {}",
                    shell_quote(&path.to_string_lossy())
                )
            };
            return Err(CommandError::usage(
                format!(
                    "the worktree directory for {name:?} already exists: {}",
                    path.display()
                ),
                format!(
                    "run `{remove}` if it contains no work that you need, or choose another --name"
                ),
            ));
        }
        let tip = self.source.branch_tip(&branch);
        if let Some(place) = tip.as_ref().and_then(|_| self.source.checkout_of(&branch)) {
            return Err(CommandError::usage(
                format!("the branch {branch} is checked out in {}", place.display()),
                "choose another branch with --worktree=BRANCH, or switch that checkout to another branch",
            ));
        }
        if tip.is_some() && self.branch.is_none() {
            return Err(CommandError::usage(
                format!("the branch {branch} already exists"),
                format!(
                    "use --worktree={branch} to continue that branch, or choose another --name or --worktree=BRANCH"
                ),
            ));
        }
        Ok(Worktree {
            path,
            branch,
            new_branch: tip.is_none(),
            repository: self.source.repository.clone(),
            from: from.to_owned(),
            base: tip.or_else(|| self.source.head.clone()).unwrap_or_default(),
            base_branch: self.source.branch.clone(),
            commit_timeout_ms: self.commit_timeout_ms,
        })
    }

    /// Creates the planned worktree and moves the draft into it. The loop's lock must be held, and
    /// its journal must not exist yet. `stop` returns true if creation was interrupted.
    pub(crate) fn create(
        &self,
        state_dir: &StateDir,
        dir: &LoopDir,
        planned: Worktree,
        draft: &mut PlanDraft,
        stop: &dyn Fn() -> bool,
    ) -> Result<NewWorktree, CommandError> {
        // If another process was faster, what exists now must not be rolled back.
        if dir.journal().exists() || std::fs::symlink_metadata(&planned.path).is_ok() {
            return Err(CommandError::usage(
                format!(
                    "the loop {:?} was just started by another process",
                    dir.name()
                ),
                "choose another --name",
            ));
        }
        let record = serde_json::to_string(&planned).map_err(CommandError::broken)?;
        let written = create_file(&dir.worktree_draft()).and_then(|mut file| {
            file.write_all(record.as_bytes())
                .and_then(|()| file.sync_all())
        });
        // From here on, dropping `created` rolls everything back.
        let mut created = NewWorktree {
            dir: Some(dir.clone()),
            warnings: Vec::new(),
        };
        written.map_err(CommandError::broken)?;
        created.warnings.extend(self.uncommitted_warning());
        state_dir.create_worktrees_dir()?;
        let lock = lock_repository(state_dir, dir, &planned.repository, stop);
        let git_errors = self.source.add_worktree(&planned, stop).map_err(|why| {
            let name = &self.setting;
            CommandError::usage(
                format!("{name}: cannot create the worktree: {why}"),
                "run `git worktree list` to see the repository's worktrees",
            )
        })?;
        drop(lock);
        created.warnings.extend(
            git_errors.map(|why| format!("git created the worktree but reported errors: {why}")),
        );
        if worktree::has_submodules(&planned) {
            let path = shell_quote(&planned.path.to_string_lossy());
            created.warnings.push(format!(
                "submodules are not checked out in the worktree; to check them out: git -C {path} submodule update --init --recursive"
            ));
        }
        // `components` drops a trailing slash.
        let workspace: PathBuf = planned
            .path
            .join(&self.source.prefix)
            .components()
            .collect();
        // git does not create a directory that has no files in HEAD.
        std::fs::create_dir_all(&workspace).map_err(CommandError::broken)?;
        draft.move_to_worktree(planned, workspace);
        check_ready(draft)?;
        created.warnings.extend(check_scm_tasks(draft)?);
        Ok(created)
    }

    fn uncommitted_warning(&self) -> Option<String> {
        let changed = self.source.changed_files().unwrap_or_default();
        (!changed.is_empty()).then(|| {
            let files = file_list(&changed);
            format!(
                "the worktree will not contain your uncommitted changes: {files}; commit them first if the loop needs them"
            )
        })
    }
}

/// Waits until no other loop is creating a worktree of this repository, because git fails on a
/// half-created one. Returns `None` after the timeout. The caller then continues without the lock.
fn lock_repository(
    state_dir: &StateDir,
    dir: &LoopDir,
    repository: &Path,
    stop: &dyn Fn() -> bool,
) -> Option<FileLock> {
    let path = state_dir.repository_lock_path(repository).ok()?;
    let me = LockHolder {
        pid: std::process::id(),
        loop_name: dir.name().into(),
        ..LockHolder::default()
    };
    let started = Instant::now();
    loop {
        match FileLock::acquire(&path, &me).ok()? {
            Ok(lock) => return Some(lock),
            Err(_) if started.elapsed() > LOCK_TIMEOUT || stop() => return None,
            Err(_) => {}
        }
    }
}

/// A new worktree. Dropping it removes the worktree, unless [`NewWorktree::keep`] was called.
pub(crate) struct NewWorktree {
    dir: Option<LoopDir>,
    pub(crate) warnings: Vec<String>,
}

impl NewWorktree {
    /// Keeps the worktree after the journal has recorded it. Returns the warnings.
    pub(crate) fn keep(mut self) -> Vec<String> {
        if let Some(dir) = self.dir.take() {
            let _ = std::fs::remove_file(dir.worktree_draft());
        }
        std::mem::take(&mut self.warnings)
    }
}

impl Drop for NewWorktree {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.take() {
            roll_back(&dir);
        }
    }
}

/// Removes the worktree and the directory of a loop that never started. The loop's lock must be
/// held.
pub(super) fn roll_back(dir: &LoopDir) {
    if dir.journal().exists() {
        return;
    }
    let path = dir.worktree_draft();
    let begun = std::fs::metadata(&path).and_then(|data| data.modified());
    let draft = regular_file::read_text(&path, false).ok();
    // If the draft is incomplete, nothing else has been created yet.
    let planned: Option<Worktree> = draft.and_then(|draft| serde_json::from_str(&draft).ok());
    if planned.is_none_or(|planned| worktree::roll_back(&planned, begun.ok()).is_ok()) {
        let _ = std::fs::remove_dir_all(dir.path());
    }
}

/// Removes the directories and worktrees of loops whose creation crashed. Returns their names.
pub(crate) fn remove_incomplete_loops(state_dir: &StateDir) -> Vec<String> {
    let mut removed = Vec::new();
    for dir in state_dir
        .incomplete_loops()
        .into_iter()
        .filter(|dir| is_valid_name(dir.name()))
    {
        let me = LockHolder {
            pid: std::process::id(),
            loop_name: dir.name().into(),
            ..LockHolder::default()
        };
        if let Ok(Ok(_lock)) = LoopLock::acquire(&dir, &me) {
            roll_back(&dir);
            removed.extend((!dir.path().exists()).then(|| dir.name().to_owned()));
        }
    }
    removed
}

/// Returns an error if an environment variable would point git away from the worktree.
pub(crate) fn reject_git_redirection() -> Result<(), CommandError> {
    worktree::redirecting_variable().map_or(Ok(()), |name| {
        Err(CommandError::usage(
            format!("{name} is set, so git would use your own checkout instead of the worktree"),
            format!("unset {name}"),
        ))
    })
}
