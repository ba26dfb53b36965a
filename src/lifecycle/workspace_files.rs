//! Removes the files that a loop wrote to its workspace, except for those that belong to another
//! loop as well.

use crate::agent::task_dir::{TaskDir, remove_if_unused};
use crate::git::exclude;
use crate::os::disk;
use crate::store::{Journal, JournalHeader, LoopDir, StateDir};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which loops of a state directory have which files in their workspaces.
pub(crate) struct WorkspaceFiles {
    loops: HashMap<PathBuf, JournalHeader>,
    /// The directories of the loops in each workspace.
    by_workspace: HashMap<PathBuf, Vec<PathBuf>>,
    /// For each workspace whose loops were examined, how many loops have each file.
    owners: HashMap<PathBuf, HashMap<PathBuf, u32>>,
    /// The number of loops in each project; `None` until it is needed.
    projects: Option<HashMap<PathBuf, u32>>,
}

impl WorkspaceFiles {
    /// Finds all loops, including archived ones. A loop whose header cannot be read is left out.
    pub(crate) fn scan(state_dir: &StateDir) -> Self {
        let names = state_dir.loop_names().unwrap_or_default();
        let dirs = names.iter().map(|name| state_dir.loop_dir(name));
        let loops = dirs.chain(state_dir.archived_loops()).filter_map(|dir| {
            let header = Journal::read_header(&dir).ok()?;
            Some((dir.path().to_owned(), header))
        });
        let loops: HashMap<_, _> = loops.collect();
        let mut by_workspace: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
        for (dir, header) in &loops {
            let workspace = real_path(&header.plan.workspace);
            by_workspace.entry(workspace).or_default().push(dir.clone());
        }
        Self {
            loops,
            by_workspace,
            owners: HashMap::new(),
            projects: None,
        }
    }

    /// Removes the files of a loop that is about to be removed, and returns how many bytes that
    /// freed. Files that cannot be removed are left.
    pub(crate) fn remove(&mut self, dir: &LoopDir) -> u64 {
        let Some(header) = self.loops.get(dir.path()) else {
            return 0;
        };
        let workspace = real_path(&header.plan.workspace);
        let own = files(dir, header);
        self.examine(&workspace);
        let owners = self.owners.entry(workspace.clone()).or_default();
        // The agent may have replaced a directory with a link to elsewhere.
        let is_real =
            |path: &str| fs::symlink_metadata(workspace.join(path)).is_ok_and(|data| data.is_dir());
        let (ralph, task) = (is_real(".ralph"), is_real(".ralph/task"));
        let mut freed = 0;
        for file in own {
            let count = owners.entry(file.clone()).or_insert(1);
            *count = count.saturating_sub(1);
            let is_in_task = file.starts_with(".ralph/task");
            if *count > 0 || !ralph || (is_in_task && !task) {
                continue;
            }
            let path = workspace.join(file);
            let size = disk::usage(&path);
            let removed = if is_in_task {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
            freed += removed.map_or(0, |()| size);
        }
        if ralph {
            remove_if_unused(&workspace);
        }
        if let Some(header) = self.loops.remove(dir.path()) {
            self.remove_exclude_block(&header);
        }
        freed
    }

    /// Counts the files of all loops in a workspace, unless that has been done.
    fn examine(&mut self, workspace: &Path) {
        if self.owners.contains_key(workspace) {
            return;
        }
        let mut owners: HashMap<PathBuf, u32> = HashMap::new();
        let here = self.by_workspace.get(workspace).into_iter().flatten();
        let here = here.filter_map(|dir| Some((dir, self.loops.get(dir)?)));
        for (dir, header) in here {
            for file in files(&LoopDir::new(dir.clone()), header) {
                *owners.entry(file).or_default() += 1;
            }
        }
        self.owners.insert(workspace.to_owned(), owners);
    }

    /// Removes ralph's block from the repository's exclude file if this was the last loop there.
    fn remove_exclude_block(&mut self, last: &JournalHeader) {
        let place = checkout(last);
        let project = crate::git::project(place);
        let projects = self.projects.get_or_insert_with(|| {
            let mut projects = HashMap::from([(project.clone(), 1)]);
            for other in self.loops.values() {
                *projects
                    .entry(crate::git::project(checkout(other)))
                    .or_default() += 1;
            }
            projects
        });
        let count = projects.entry(project).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 && exclude::is_added(place) {
            // The block does no harm if it stays.
            let _ = exclude::remove(place);
        }
    }
}

/// Returns a directory in the repository, which exists even if the loop's worktree was removed.
fn checkout(header: &JournalHeader) -> &Path {
    let worktree = header.plan.worktree.as_ref();
    worktree.map_or(&header.plan.workspace, |worktree| &worktree.from)
}

/// Returns the loop's files, relative to the workspace.
fn files(dir: &LoopDir, header: &JournalHeader) -> HashSet<PathBuf> {
    let task = TaskDir::new(Path::new(""), &header.name).path().to_owned();
    let logs = dir.logged_slugs().into_iter();
    let logs = logs.map(|(iteration, slug)| header.plan.guardrail_log(iteration, &slug).into());
    logs.chain([task]).collect()
}

fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
