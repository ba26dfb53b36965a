//! A place of its own for a loop: where it is made, what stands against it, and how a try is taken back.

use super::failure::Failure;
use super::preconditions::ready;
use super::scm_check::refusal;
use super::scm_check::work_can_be_kept;
use crate::cli::Verb;
use crate::config::settings::WorktreeWords;
use crate::config::{Settings, Stack};
use crate::engine::Plan;
use crate::engine::format::{plural, quoted};
use crate::engine::plan::Worktree;
use crate::git::worktree;
use crate::git::worktree::Ground;
use crate::store::dir::create_file;
use crate::store::{Holder, Home, Lock, LoopDir, valid_name};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a loop waits for another's worktree.
const TURN: Duration = Duration::from_secs(60);
/// How many files a warning names.
const SHOWN: usize = 3;

/// Refuses a single word behind `--worktree`: it may be meant as the branch, which stands behind `=`, and would become a
/// part of the task without a word. A text with spaces is no branch.
pub(crate) fn no_branch_apart(verb: &Verb, args: &[OsString]) -> Result<(), Failure> {
    if !matches!(verb, Verb::Run(_) | Verb::Spawn(_)) {
        return Ok(());
    }
    let typed: Vec<_> = args
        .iter()
        .map(|word| word.to_string_lossy())
        .take_while(|word| word != "--")
        .collect();
    let is_one = |word: &str| {
        !word.is_empty() && !word.starts_with('-') && !word.contains(char::is_whitespace)
    };
    let apart = typed
        .windows(2)
        .find(|pair| pair[0] == "--worktree" && is_one(&pair[1]));
    apart.map_or(Ok(()), |pair| {
        let word = &pair[1];
        Err(Failure::usage(
            format!("--worktree {word}: is {word:?} the branch, or the task?"),
            format!(
                "--worktree={word} names the branch; a task stands before the flag, or in quotation marks"
            ),
        ))
    })
}

/// A worktree that was asked for, and the repository that it would be made of.
pub(crate) struct Wanted {
    ground: Ground,
    /// What asked for it, and for what is looked for in that place.
    stack: Stack,
    /// The branch, if one was named.
    branch: Option<String>,
    commit_timeout_ms: u64,
}

impl Wanted {
    /// What the settings ask for, if they do, and if the repository around `dir` has it to give.
    pub(crate) fn of(stack: &Stack, dir: &Path) -> Result<Option<Self>, Failure> {
        let all = Settings::of(stack);
        let branch = match all.worktree {
            WorktreeWords::Off => return Ok(None),
            WorktreeWords::Own => None,
            WorktreeWords::On(branch) => Some(branch),
        };
        let name = stack.name("worktree");
        not_aimed()?;
        let ground = Ground::around(dir).map_err(|why| refusal(&name, &why, "git", dir))?;
        if ground.head.is_none() {
            return Err(Failure::usage(
                format!("{name} begins at the newest commit, and this repository has none"),
                "git commit first",
            ));
        }
        if let Some(why) = ground.nobody() {
            return Err(Failure::usage(
                format!("git does not know who commits: {why}"),
                "git config user.name \"…\" && git config user.email \"…\"",
            ));
        }
        if let Some(branch) = branch
            .as_ref()
            .filter(|branch| !ground.may_be_called(branch))
        {
            return Err(Failure::usage(
                format!("{name}: git has no branch of such a name: {branch}"),
                "name it as in --worktree=feature/parser, or leave the name out",
            ));
        }
        Ok(Some(Self {
            ground,
            stack: stack.clone(),
            branch,
            commit_timeout_ms: all.check_timeout.0,
        }))
    }

    /// Whether an earlier worktree or branch has the name of this loop: it may hold somebody's work.
    pub(crate) fn is_taken(&self, home: &Home, name: &str) -> bool {
        let named_like_it = self.branch.is_none();
        std::fs::symlink_metadata(home.worktree(name)).is_ok()
            || (named_like_it && self.ground.tip(&self.branch_of(Some(name))).is_some())
    }

    /// The branch that a loop of this name would work on.
    pub(crate) fn branch_of(&self, name: Option<&str>) -> String {
        self.branch
            .clone()
            .unwrap_or_else(|| format!("ralph/{}", name.unwrap_or("<name>")))
    }

    /// The worktree that a loop of this name would have, or what is in its way.
    pub(crate) fn planned(
        &self,
        home: &Home,
        name: &str,
        from: &Path,
    ) -> Result<Worktree, Failure> {
        let path = home.worktree(name);
        if path.starts_with(self.ground.top()) {
            return Err(Failure::usage(
                format!(
                    "the state directory {} is inside this repository",
                    home.root().display()
                ),
                "a worktree there would be in your way: put RALPH_STATE_DIR somewhere else",
            ));
        }
        for path in [&path, &self.ground.repository] {
            if path.to_str().is_none() {
                return Err(Failure::usage(
                    format!("the path {} is not UTF-8", path.display()),
                    "the journal cannot hold it: rename it",
                ));
            }
        }
        let branch = self.branch_of(Some(name));
        if std::fs::symlink_metadata(&path).is_ok() {
            let is_known = home.find(name).is_ok();
            let away = if is_known {
                format!("ralph rm {name} --worktree")
            } else {
                git_away(&path)
            };
            return Err(Failure::usage(
                format!(
                    "there is a worktree of this name already: {}",
                    path.display()
                ),
                format!("look into it; {away} removes it; or choose another --name"),
            ));
        }
        let tip = self.ground.tip(&branch);
        if let Some(place) = tip
            .as_ref()
            .and_then(|_| self.ground.where_checked_out(&branch))
        {
            return Err(Failure::usage(
                format!("the branch {branch} is checked out in {}", place.display()),
                "name another, as in --worktree=BRANCH, or leave it there first",
            ));
        }
        if tip.is_some() && self.branch.is_none() {
            return Err(Failure::usage(
                format!("the branch {branch} exists already"),
                format!(
                    "--worktree={branch} goes on with it; or choose another --name or --worktree=BRANCH"
                ),
            ));
        }
        Ok(Worktree {
            path,
            branch,
            new_branch: tip.is_none(),
            repository: self.ground.repository.clone(),
            from: from.to_owned(),
            base: tip.or_else(|| self.ground.head.clone()).unwrap_or_default(),
            base_branch: self.ground.branch.clone(),
            commit_timeout_ms: self.commit_timeout_ms,
        })
    }

    /// Makes it for a loop whose lock is held and which has no journal yet. The plan is then for that place.
    pub(crate) fn make(
        &self,
        home: &Home,
        dir: &LoopDir,
        planned: Worktree,
        plan: &mut Plan,
        stop: &dyn Fn() -> bool,
    ) -> Result<Made, Failure> {
        // Another may have been faster until the lock was taken. What is there now is not for this try to take back.
        if dir.journal().exists() || std::fs::symlink_metadata(&planned.path).is_ok() {
            return Err(Failure::usage(
                format!(
                    "the loop {:?} was started by somebody else just now",
                    dir.name()
                ),
                "choose another --name",
            ));
        }
        let draft = serde_json::to_string(&planned).map_err(Failure::broken)?;
        let draft = create_file(&dir.worktree_draft()).and_then(|mut file| {
            file.write_all(draft.as_bytes())
                .and_then(|()| file.sync_all())
        });
        // From here on, whatever goes wrong is taken back.
        let mut made = Made {
            dir: Some(dir.clone()),
            notes: Vec::new(),
        };
        draft.map_err(Failure::broken)?;
        self.name_what_stays(&mut made.notes);
        home.make_worktrees()?;
        let turn = turn(home, dir, &planned.repository, stop);
        let complaint = self.ground.add(&planned, stop).map_err(|why| {
            let name = self.stack.name("worktree");
            Failure::usage(
                format!("{name} cannot be made: {why}"),
                "see what git worktree list says",
            )
        })?;
        drop(turn);
        made.notes.extend(
            complaint.map(|why| format!("the worktree is made, but not all went well: {why}")),
        );
        if worktree::has_submodules(&planned) {
            let path = quoted(&planned.path.to_string_lossy());
            made.notes.push(format!(
                "submodules are not checked out in the worktree: git -C {path} submodule update --init --recursive"
            ));
        }
        // Without the slash that an empty rest, or git, ends it with.
        plan.workspace = planned
            .path
            .join(&self.ground.prefix)
            .components()
            .collect();
        // A directory without a file in HEAD is not brought along.
        std::fs::create_dir_all(&plan.workspace).map_err(Failure::broken)?;
        plan.worktree = Some(planned);
        ready(plan, &self.stack)?;
        work_can_be_kept(plan, &self.stack.name("scm"))?;
        Ok(made)
    }

    fn name_what_stays(&self, notes: &mut Vec<String>) {
        let changed = self.ground.changed().unwrap_or_default();
        if !changed.is_empty() {
            let names = changed[..SHOWN.min(changed.len())].join(", ");
            let more = if changed.len() > SHOWN { ", …" } else { "" };
            let count = plural(changed.len() as u64, "file");
            notes.push(format!(
                "uncommitted changes stay where they are and are not in the worktree: {count} ({names}{more})"
            ));
        }
    }
}

/// Waits until no other loop of this repository is having its worktree made: git itself stumbles over one that is half
/// there. Whoever does not get his turn tries without.
fn turn(home: &Home, dir: &LoopDir, repository: &Path, stop: &dyn Fn() -> bool) -> Option<Lock> {
    let path = home.repository_lock_path(repository).ok()?;
    let me = Holder {
        pid: std::process::id(),
        loop_name: dir.name().into(),
        ..Holder::default()
    };
    let begun = Instant::now();
    loop {
        match Lock::take(&path, &me).ok()? {
            Ok(lock) => return Some(lock),
            Err(_) if begun.elapsed() > TURN || stop() => return None,
            Err(_) => {}
        }
    }
}

/// A worktree that was made, and is taken back unless its loop begins.
pub(crate) struct Made {
    dir: Option<LoopDir>,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

impl Made {
    /// The journal has it.
    pub(crate) fn keep(mut self) -> Vec<String> {
        if let Some(dir) = self.dir.take() {
            let _ = std::fs::remove_file(dir.worktree_draft());
        }
        std::mem::take(&mut self.notes)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.take() {
            take_back(&dir);
        }
    }
}

/// Takes back what was made for a loop that never began. Its lock must be held.
fn take_back(dir: &LoopDir) {
    if dir.journal().exists() {
        return;
    }
    let draft = std::fs::read_to_string(dir.worktree_draft()).ok();
    // One that cannot be read is of a try that had made nothing else.
    let planned: Option<Worktree> = draft.and_then(|draft| serde_json::from_str(&draft).ok());
    if planned.is_none_or(|planned| worktree::undo(&planned).is_ok()) {
        let _ = std::fs::remove_dir_all(dir.path());
    }
}

/// Takes back what crashes have left half made.
pub(crate) fn clear_half_made(home: &Home) {
    for dir in home
        .half_made()
        .into_iter()
        .filter(|dir| valid_name(dir.name()))
    {
        let me = Holder {
            pid: std::process::id(),
            loop_name: dir.name().into(),
            ..Holder::default()
        };
        if let Ok(Ok(_lock)) = Lock::take(&dir.lock(), &me) {
            take_back(&dir);
        }
    }
}

/// Refuses an environment in which git would not see a worktree as what it is.
pub(crate) fn not_aimed() -> Result<(), Failure> {
    worktree::aimed().map_or(Ok(()), |name| {
        Err(Failure::usage(
            format!("{name} is set: git would work in your own checkout, and not in the worktree"),
            format!("unset {name}"),
        ))
    })
}

/// How git takes a worktree away that no loop knows.
fn git_away(path: &Path) -> String {
    format!("git worktree remove {}", quoted(&path.to_string_lossy()))
}
