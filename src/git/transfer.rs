//! Moves commits between machines: bundles, and repositories of ralph's own that are filled from a
//! bundle or a remote.

use super::command::{self, GitError, GitOutput};
use super::worktree::trimmed_stdout;
use super::{READ_MAX, look};
use std::path::Path;
use std::time::Duration;

/// Timeout for a command that transfers or packs a whole history.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(1800);

/// The refs that move with a loop: its branch, and its checkpoints.
const REFSPECS: [&str; 2] = ["+refs/heads/*:refs/heads/*", "+refs/ralph/*:refs/ralph/*"];

/// A committer's name and address.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// Returns the identity with which git would commit in a directory; `None` if none is configured.
pub(crate) fn identity(dir: &Path) -> Option<Identity> {
    let line = trimmed_stdout(&look_at(dir, &["var", "GIT_COMMITTER_IDENT"]).ok()?)?;
    // `Ada <ada@example.org> 1794787200 +0000`
    let (name, rest) = line.split_once(" <")?;
    let (email, _) = rest.split_once('>')?;
    Some(Identity {
        name: name.to_owned(),
        email: email.to_owned(),
    })
}

/// Returns the URL of a remote, and one of its branches, that had the commit when it was last
/// fetched or pushed; `None` if there is none that another machine could reach.
pub(crate) fn remote_with(dir: &Path, commit: &str) -> Option<(String, String)> {
    let format = "--format=%(refname:lstrip=2)";
    let args = [
        "for-each-ref",
        format,
        "--contains",
        commit,
        "refs/remotes/",
    ];
    let list = trimmed_stdout(&look_at(dir, &args).ok()?)?;
    list.lines().find_map(|name| {
        let (remote, branch) = name.split_once('/')?;
        let key = format!("remote.{remote}.url");
        let url = trimmed_stdout(&look_at(dir, &["config", "--get", &key]).ok()?)?;
        (branch != "HEAD" && is_reachable(&url)).then(|| (url, branch.to_owned()))
    })
}

/// Returns whether a URL names another machine and contains no password.
fn is_reachable(url: &str) -> bool {
    match url.split_once("://") {
        Some(("https" | "ssh" | "git" | "git+ssh", rest)) => {
            let authority = rest.split('/').next().unwrap_or_default();
            !authority
                .split_once('@')
                .is_some_and(|(user, _)| user.contains(':'))
        }
        Some(_) => false,
        // `git@host:path`
        None => url
            .split_once(':')
            .is_some_and(|(host, _)| host.contains('@') && !host.contains('/')),
    }
}

/// Writes a bundle with these refs or commits, without what is reachable from `known`. Returns
/// `false`, and writes nothing, if nothing is left.
pub(crate) fn write_bundle(
    repository: &Path,
    file: &Path,
    refs: &[String],
    known: &[String],
) -> Result<bool, String> {
    let file = file.to_str().ok_or("the path is not valid UTF-8")?;
    let mut args = vec!["bundle", "create", "--quiet", file];
    args.extend(refs.iter().map(String::as_str));
    args.push("--not");
    args.extend(known.iter().map(String::as_str));
    let output = transfer(repository, &args)?;
    match output.code {
        Some(0) => Ok(true),
        _ if output.stderr.contains("empty bundle") => Ok(false),
        _ => Err(output.error_message("bundle")),
    }
}

/// Returns the names and commits of a loop's branch and checkpoints.
pub(crate) fn loop_refs(
    repository: &Path,
    branch: &str,
    loop_id: &str,
) -> Result<Vec<(String, String)>, String> {
    let branch = format!("refs/heads/{branch}");
    let checkpoints = format!("refs/ralph/{loop_id}/");
    let args = [
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        &branch,
        &checkpoints,
    ];
    let output = look_at(repository, &args)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs
        .map(|(name, commit)| (name.to_owned(), commit.to_owned()))
        .collect())
}

/// Creates an empty repository in a directory that does not exist.
pub(crate) fn create_repository(path: &Path, identity: Option<&Identity>) -> Result<(), String> {
    let parent = path.parent().ok_or("the repository has no directory")?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or("the path is not valid UTF-8")?;
    // Without a template there are no hooks, whatever the user's settings say.
    change(parent, &["init", "--quiet", "--template=", "--", name])?;
    for (key, value) in identity
        .iter()
        .flat_map(|own| [("user.name", &own.name), ("user.email", &own.email)])
    {
        change(path, &["config", key, value])?;
    }
    Ok(())
}

/// Fetches a loop's branch and checkpoints from a bundle.
pub(crate) fn fetch_bundle(repository: &Path, bundle: &Path) -> Result<(), String> {
    let bundle = bundle.to_str().ok_or("the path is not valid UTF-8")?;
    let mut args = vec!["fetch", "--quiet", "--update-head-ok", "--", bundle];
    args.extend(REFSPECS);
    change(repository, &args)
}

/// Fetches a commit from a remote: the commit itself or, from servers that give out no commits, the
/// branch that contains it.
pub(crate) fn fetch_commit(
    repository: &Path,
    url: &str,
    commit: &str,
    branch: Option<&str>,
) -> Result<(), String> {
    let fetch = |wanted: &str| {
        let args = ["fetch", "--quiet", "--no-tags", "--", url, wanted];
        change(repository, &args)
    };
    fetch(commit)
        .or_else(|error| branch.map_or(Err(error), |branch| fetch(&format!("refs/heads/{branch}"))))
}

/// Sets the commit that a repository's own HEAD names, without a branch and without files.
pub(crate) fn detach_head(repository: &Path, commit: &str) -> Result<(), String> {
    let args = ["update-ref", "--no-deref", "HEAD", commit];
    change(repository, &args)
}

/// Creates a branch at a commit, unless it exists. Returns its commit.
pub(crate) fn ensure_branch(
    repository: &Path,
    branch: &str,
    commit: &str,
) -> Result<String, String> {
    let name = format!("refs/heads/{branch}");
    let tip = || -> Option<String> {
        trimmed_stdout(&look_at(repository, &["rev-parse", "--quiet", "--verify", &name]).ok()?)
    };
    if let Some(tip) = tip() {
        return Ok(tip);
    }
    change(repository, &["branch", "--no-track", "--", branch, commit])?;
    Ok(commit.to_owned())
}

fn look_at(dir: &Path, args: &[&str]) -> Result<GitOutput, String> {
    let mut command = look::git(dir, args);
    command::run(&mut command, READ_MAX, command::TIMEOUT).map_err(GitError::message)
}

fn transfer(dir: &Path, args: &[&str]) -> Result<GitOutput, String> {
    let mut command = command::git_with_hooks(dir);
    command.args(["-c", "core.hooksPath=/dev/null"]).args(args);
    command::run(&mut command, READ_MAX, TRANSFER_TIMEOUT).map_err(GitError::message)
}

/// Runs git, and fails if it does.
fn change(dir: &Path, args: &[&str]) -> Result<(), String> {
    let output = transfer(dir, args)?;
    match output.code {
        Some(0) => Ok(()),
        _ => Err(output.error_message(args.first().unwrap_or(&""))),
    }
}

/// The refs of a loop in the user's repository, while its code is packed. Dropping this deletes them.
pub(crate) struct LoopRefs<'a> {
    dir: &'a Path,
    prefix: String,
}

impl<'a> LoopRefs<'a> {
    pub(crate) fn new(dir: &'a Path, loop_id: &str) -> Self {
        let prefix = format!("refs/ralph/{loop_id}/");
        Self { dir, prefix }
    }

    /// Sets a ref to a commit.
    pub(crate) fn set(&self, name: &str, commit: &str) -> Result<(), String> {
        let name = format!("{}{name}", self.prefix);
        change(self.dir, &["update-ref", &name, commit])
    }

    /// Returns the full names of all refs.
    pub(crate) fn names(&self) -> Result<Vec<String>, String> {
        let args = ["for-each-ref", "--format=%(refname)", &self.prefix];
        let output = look_at(self.dir, &args)?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

impl Drop for LoopRefs<'_> {
    fn drop(&mut self) {
        for name in self.names().unwrap_or_default() {
            let _ = transfer(self.dir, &["update-ref", "-d", &name]);
        }
    }
}

/// Returns whether a repository has a commit.
pub(crate) fn has_commit(repository: &Path, commit: &str) -> bool {
    let object = format!("{commit}^{{commit}}");
    look_at(repository, &["cat-file", "-e", &object]).is_ok_and(|output| output.code == Some(0))
}

/// Returns the tree of a commit.
pub(crate) fn tree_of(repository: &Path, commit: &str) -> Option<String> {
    let object = format!("{commit}^{{tree}}");
    let output = look_at(repository, &["rev-parse", "--verify", "--quiet", &object]).ok()?;
    trimmed_stdout(&output).filter(|tree| !tree.is_empty())
}

/// Fetches a loop's branch and checkpoints into the user's repository. Fails if the branch exists and
/// has commits that the loop's does not contain, or if it is checked out and would change.
pub(crate) fn fetch_loop(
    repository: &Path,
    from: &Path,
    branch: &str,
    loop_id: &str,
) -> Result<(), String> {
    let from = from.to_str().ok_or("the path is not valid UTF-8")?;
    let branch = format!("refs/heads/{branch}:refs/heads/{branch}");
    let checkpoints = format!("+refs/ralph/{loop_id}/*:refs/ralph/{loop_id}/*");
    let args = [
        "fetch",
        "--quiet",
        "--no-tags",
        "--atomic",
        "--",
        from,
        &branch,
        &checkpoints,
    ];
    change(repository, &args)
}
