//! How a worktree is made for a loop, looked at, and taken away again.

use super::command;
use super::command::{Output, Trouble};
use super::scm::{NoTree, Tree};
use super::{READ_MAX, untracked};
use crate::engine::format::quoted;
use crate::engine::plan::Worktree;
use crate::os;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long checking out a whole tree may take, with filters, hooks, and what a partial clone must fetch.
const CHECKOUT: Duration = Duration::from_secs(1800);

/// Variables by which the environment says which repository, tree or index is meant. Whoever has one of them would
/// work in the user's own checkout, wherever he stands.
const AIMED: [&str; 4] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
];

/// What ralph writes into a workspace, and nobody misses.
const NO_WORK: [&str; 2] = [
    ":(top,exclude,glob)**/.ralph/task/**",
    ":(top,exclude,glob)**/.ralph/guardrail_*.log",
];

/// The variable that keeps git from seeing a worktree as what it is.
pub fn aimed() -> Option<&'static str> {
    AIMED
        .into_iter()
        .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The repository that a worktree would be made of, as it is seen from one of its directories.
#[derive(Debug)]
pub struct Ground {
    tree: Tree,
    /// The directory, from the top of the working tree.
    pub prefix: PathBuf,
    /// Where git keeps what all worktrees share.
    pub repository: PathBuf,
    /// The commit that is checked out; none before the first.
    pub head: Option<String>,
    /// The branch that is checked out, if it is one.
    pub branch: Option<String>,
}

/// What a loop's worktree has that is nowhere else.
#[derive(Debug, Default, PartialEq)]
pub struct Only {
    /// Files that are not committed, as git names them.
    pub files: Vec<String>,
    /// How many commits no other branch or tag leads to.
    pub commits: u32,
}

impl Only {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.commits == 0
    }
}

impl Ground {
    /// The repository around `dir`.
    pub fn around(dir: &Path) -> Result<Self, NoTree> {
        let tree = Tree::around(&[], dir)?;
        let broken = |trouble: Trouble| NoTree::Broken(trouble.sentence());
        let mut command = command::git(dir);
        command.args([
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
            "--show-prefix",
        ]);
        let output = command::run(&mut command, READ_MAX, command::PATIENCE).map_err(broken)?;
        let mut lines = output
            .stdout
            .split_inclusive(|byte| *byte == b'\n')
            .map(command::path_of);
        let (Some(repository), Some(prefix), Some(0)) = (lines.next(), lines.next(), output.code)
        else {
            return Err(NoTree::Broken(output.complaint("rev-parse")));
        };
        let head = tree.head().map_err(NoTree::Broken)?;
        let branch = said(
            &tree
                .call(&["symbolic-ref", "--quiet", "--short", "HEAD"])
                .map_err(broken)?,
        );
        Ok(Self {
            tree,
            prefix,
            repository,
            head,
            branch,
        })
    }

    /// The top of the working tree.
    pub fn top(&self) -> &Path {
        self.tree.top()
    }

    /// The files that are not as the newest commit has them.
    pub fn changed(&self) -> Result<Vec<String>, String> {
        self.tree.changed()
    }

    /// Why git would not know who commits.
    pub fn nobody(&self) -> Option<String> {
        self.tree.nobody()
    }

    /// Whether a branch may be called this.
    pub fn may_be_called(&self, branch: &str) -> bool {
        let name = format!("refs/heads/{branch}");
        let is_good = self
            .tree
            .call(&["check-ref-format", &name])
            .is_ok_and(|output| output.code == Some(0));
        is_good && !branch.starts_with('-') && branch != "HEAD"
    }

    /// The newest commit of a branch, if there is such a branch.
    pub fn tip(&self, branch: &str) -> Option<String> {
        said(
            &self
                .tree
                .call(&[
                    "rev-parse",
                    "--quiet",
                    "--verify",
                    &format!("refs/heads/{branch}^{{commit}}"),
                ])
                .ok()?,
        )
    }

    /// Where a branch is checked out, if it is.
    pub fn where_checked_out(&self, branch: &str) -> Option<PathBuf> {
        let listed = self
            .tree
            .call(&["worktree", "list", "--porcelain", "-z"])
            .ok()?
            .stdout;
        let wanted = format!("branch refs/heads/{branch}");
        let mut place = None;
        for field in listed.split(|byte| *byte == 0) {
            if let Some(path) = field.strip_prefix(b"worktree ") {
                place = Some(command::path_of(path));
            } else if field == wanted.as_bytes() {
                return place;
            }
        }
        None
    }

    /// Makes the worktree, unless this says stop. What a hook complained of afterwards is told, and is no reason
    /// against it.
    pub fn add(&self, plan: &Worktree, stop: &dyn Fn() -> bool) -> Result<Option<String>, String> {
        let mut command = command::willing(self.top());
        // If this process is killed, what was begun is taken back by the next one, and nobody may be at it any more.
        os::dies_with_parent(&mut command);
        command.args(["worktree", "add", "--quiet"]);
        if plan.new_branch {
            command
                .args(["--no-track", "-b", &plan.branch])
                .arg(&plan.path)
                .arg(&plan.base);
        } else {
            command.arg(&plan.path).arg(&plan.branch);
        }
        let output = command::run_unless(&mut command, READ_MAX, CHECKOUT, stop)
            .map_err(Trouble::sentence)?;
        if output.code == Some(0) {
            return Ok(None);
        }
        let complaint = output.complaint("worktree add");
        if tree_of(plan).is_ok() {
            Ok(Some(complaint))
        } else {
            Err(complaint)
        }
    }
}

/// Whether the worktree is there, and is the one that git knows at this place.
pub fn is_there(plan: &Worktree) -> bool {
    fs::symlink_metadata(plan.path.join(".git")).is_ok()
}

/// That it is gone, and what would bring it back.
pub fn gone(plan: &Worktree) -> String {
    let [path, repository] =
        [&plan.path, &plan.repository].map(|path| quoted(&path.to_string_lossy()));
    let git = format!("git --git-dir {repository} worktree");
    if plan.path.exists() {
        return format!("the worktree {path} is one no longer; {git} repair may mend it");
    }
    format!(
        "the worktree is gone: {path}; {git} add -f {path} {} brings it back",
        quoted(&plan.branch)
    )
}

/// The worktree as git sees it.
fn tree_of(plan: &Worktree) -> Result<Tree, String> {
    match Tree::around(&[], &plan.path) {
        Ok(tree) if tree.is_at(&plan.path) => Ok(tree),
        Err(NoTree::Broken(why)) => Err(why),
        _ => Err(format!(
            "git does not see {} as a worktree",
            plan.path.display()
        )),
    }
}

/// What would be lost with the worktree, and with its branch if that was made for it.
pub fn only_here(plan: &Worktree) -> Result<Only, String> {
    let mut only = Only::default();
    let mut tips = Vec::new();
    if is_there(plan) {
        let tree = tree_of(plan)?;
        // Not `changed`: what is uncommitted inside a submodule would be lost, too, and so would settings.
        let words = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--",
            ":/",
        ];
        let words: Vec<&str> = words.into_iter().chain(NO_WORK).collect();
        let output = tree.call(&words).map_err(Trouble::sentence)?;
        if output.code != Some(0) && !output.cut {
            return Err(output.complaint("status"));
        }
        let entries = output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|entry| entry.len() > 3);
        only.files = entries.map(|entry| untracked::quote(&entry[3..])).collect();
        tips.extend(tree.head()?);
    } else if let Ok(left) = fs::read_dir(&plan.path) {
        // Nobody can tell what these are.
        only.files = left
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
    }
    if !plan.repository.is_dir() {
        return Ok(only);
    }
    let own = format!("refs/heads/{}", plan.branch);
    if plan.new_branch && tip_of(plan).is_some() {
        tips.push(own.clone());
    }
    if tips.is_empty() {
        return Ok(only);
    }
    let mut words = vec!["rev-list".to_owned(), "--count".to_owned()];
    words.extend(tips);
    words.push("--not".into());
    words.extend(plan.new_branch.then(|| format!("--exclude={own}")));
    // Not `--all`: what is checked out in this very worktree would count as another place.
    words.push("--glob=*".into());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let counted =
        said(&git_of(plan, &words, command::PATIENCE)?).and_then(|count| count.parse().ok());
    only.commits = counted.ok_or_else(|| "git rev-list does not count".to_owned())?;
    Ok(only)
}

/// Takes the worktree away, and whatever is in it. Submodules have their commits there and nowhere else: they go
/// only by force.
pub fn remove(plan: &Worktree, force: bool) -> Result<(), String> {
    if !force && tree_of(plan).is_ok_and(|tree| tree.has("modules")) {
        return Err("submodules are checked out there, and may have work of their own".into());
    }
    take_away(plan, &["--force"])
}

/// Takes the worktree away by such force.
fn take_away(plan: &Worktree, force: &[&str]) -> Result<(), String> {
    if plan.repository.is_dir() {
        let path = plan.path.to_string_lossy();
        let words = [&["worktree", "remove"], force, &[&path]].concat();
        let output = git_of(plan, &words, CHECKOUT)?;
        let unknown = output.stderr.contains("is not a working tree");
        if output.code != Some(0) && !unknown {
            return Err(output.complaint("worktree remove"));
        }
    }
    match fs::remove_dir_all(&plan.path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", plan.path.display()))
        }
        _ => Ok(()),
    }
}

/// The newest commit of its branch, if that is there.
fn tip_of(plan: &Worktree) -> Option<String> {
    let name = format!("refs/heads/{}^{{commit}}", plan.branch);
    said(
        &git_of(
            plan,
            &["rev-parse", "--quiet", "--verify", &name],
            command::PATIENCE,
        )
        .ok()?,
    )
}

/// Deletes its branch, and says which commit it had led to.
pub fn delete_branch(plan: &Worktree) -> Result<Option<String>, String> {
    let Some(tip) = tip_of(plan) else {
        return Ok(None);
    };
    let output = git_of(
        plan,
        &["branch", "--quiet", "-D", "--", &plan.branch],
        command::PATIENCE,
    )?;
    if output.code == Some(0) {
        Ok(Some(tip))
    } else {
        Err(output.complaint("branch -D"))
    }
}

/// Takes back what was made for a loop that never began: nobody has worked there.
pub fn undo(plan: &Worktree) -> Result<(), String> {
    // Git locks what it has not yet made to the end.
    take_away(plan, &["--force", "--force"])?;
    if plan.new_branch && tip_of(plan).as_ref() == Some(&plan.base) {
        delete_branch(plan)?;
    }
    Ok(())
}

/// Whether what is checked out there has submodules: git does not bring them along.
pub fn has_submodules(plan: &Worktree) -> bool {
    plan.path.join(".gitmodules").is_file()
}

/// Asks the repository that a worktree belongs to, wherever the user's checkout may be by now.
fn git_of(plan: &Worktree, words: &[&str], patience: Duration) -> Result<Output, String> {
    let mut command = command::willing(&plan.repository);
    command.env("GIT_DIR", &plan.repository).args(words);
    command::run(&mut command, READ_MAX, patience).map_err(Trouble::sentence)
}

fn said(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(text).filter(|text| output.code == Some(0) && !text.is_empty())
}
