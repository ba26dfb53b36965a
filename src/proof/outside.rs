//! Lists the files outside a workspace that can decide how a check ends: programs in `PATH`, the
//! user's settings, settings in the directories above, and those of the repository.

use super::guards::{rows, table};
use super::manifest::{Entry, Manifest, as_path, is_below};
use super::patterns::PatternSet;
use super::scope::Scope;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Directories above a workspace that are searched for settings and modules, and to which depth.
const DIRS_ABOVE: [(&str, usize); 2] = [(".cargo", 1), ("node_modules", 2)];

/// The depth to which directories of modules are listed.
const MODULES_DEPTH: usize = 2;

/// Files of a git directory that change what git does.
const GIT_FILES: [&str; 2] = ["config", "config.worktree"];
const GIT_DIRS: [&str; 2] = ["hooks", "info"];

/// Lists the files. Their paths are absolute. Adds to `refused` what was left out of the home
/// directory.
pub(super) fn list(scope: &Scope, refused: &mut Vec<Vec<u8>>) -> Manifest {
    let mut all = Manifest::default();
    for dir in scope.path_dirs.iter().filter(|dir| !scope.is_own(dir)) {
        add(&mut all, dir, &mut |_, is_dir, _| !is_dir);
    }
    let links: Vec<Entry> = all
        .entries
        .iter()
        .filter(|entry| !entry.is_file())
        .cloned()
        .collect();
    for link in links {
        // The program itself is what an agent would change.
        if let Ok(target) = std::fs::canonicalize(as_path(&link.path))
            && target.is_file()
            && !target.starts_with(&scope.workspace)
        {
            all.add_file(&target);
        }
    }
    if let Some(home) = scope
        .home
        .as_deref()
        .filter(|home| !home.starts_with(&scope.workspace))
    {
        add_settings(&mut all, scope, (home, Path::new("")), refused);
    }
    let named = &scope.settings;
    for (dir, usual) in &named.dirs {
        add_settings(&mut all, scope, (dir, usual), refused);
    }
    for file in &named.files {
        all.add_file(file);
    }
    for (dirs, depth_max) in [
        (&named.modules, MODULES_DEPTH),
        (&named.environments, usize::MAX),
    ] {
        for dir in dirs.iter().filter(|dir| !scope.is_own(dir)) {
            add(&mut all, dir, &mut |path, _, depth| {
                depth <= depth_max && !scope.is_own(&dir.join(as_path(path)))
            });
        }
    }
    for dir in scope.workspace.ancestors().skip(1) {
        let is_guard = |path: &[u8]| {
            let matches = table().matches(path);
            matches.is_guard(true) || matches.is_manifest()
        };
        add(&mut all, dir, &mut |path, is_dir, _| {
            !is_dir && is_guard(path)
        });
        for (name, depth_max) in DIRS_ABOVE {
            add(&mut all, &dir.join(name), &mut |path, _, depth| {
                depth <= depth_max && !scope.is_own(&dir.join(name).join(as_path(path)))
            });
        }
    }
    for dir in &scope.git_dirs {
        for name in GIT_FILES {
            all.add_file(&dir.join(name));
        }
        for name in GIT_DIRS {
            add(&mut all, &dir.join(name), &mut |_, _, depth| depth <= 2);
        }
    }
    let git = scope.workspace.join(".git");
    if !git.is_dir() {
        all.add_file(&git);
    }
    for script in scope
        .scripts
        .iter()
        .filter(|script| !script.starts_with(&scope.workspace))
    {
        all.add_file(script);
    }
    all.sort();
    all
}

/// Adds what is in a directory of settings, except for caches. `usual` is its place in the home
/// directory, by which the rows know it.
fn add_settings(
    all: &mut Manifest,
    scope: &Scope,
    (dir, usual): (&Path, &Path),
    refused: &mut Vec<Vec<u8>>,
) {
    let skip = PatternSet::new(&rows().outside.skip);
    let is_home = usual.as_os_str().is_empty();
    let depth_max = rows().outside.depth + 1 - usual.components().count();
    add(all, dir, &mut |path, is_dir, depth| {
        if is_home && depth == 1 && !path.starts_with(b".") {
            return false;
        }
        let full = dir.join(as_path(path));
        let known = usual.join(as_path(path));
        let is_wanted = depth <= depth_max
            && !is_skipped(&skip, known.as_os_str().as_bytes(), is_dir)
            && !scope.is_own(&full);
        if !is_wanted {
            refused.push(full.as_os_str().as_bytes().to_vec());
        }
        is_wanted
    });
}

/// Returns whether ralph keeps a copy of a file outside the workspace. Files of the home directory
/// may hold secrets and are not copied.
pub(super) fn is_copied(scope: &Scope, path: &Path) -> bool {
    scope.scripts.iter().any(|script| script == path)
        || scope.git_dirs.iter().any(|dir| path.starts_with(dir))
        || path == scope.workspace.join(".git")
}

fn is_skipped(skip: &PatternSet, path: &[u8], is_dir: bool) -> bool {
    skip.is_match(path) || (is_dir && skip.is_match(&[path, b"/x"].concat()))
}

/// Adds what is below `dir`, if it exists, with absolute paths.
fn add(all: &mut Manifest, dir: &Path, wants: &mut dyn FnMut(&[u8], bool, usize) -> bool) {
    let Ok(found) = Manifest::walk(dir, wants) else {
        return;
    };
    let prefix = dir.as_os_str().as_bytes();
    let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
    all.entries
        .extend(found.entries.into_iter().map(|entry| Entry {
            path: [prefix, b"/", &entry.path[..]].concat(),
            ..entry
        }));
}

impl Scope {
    /// Returns whether a path belongs to ralph, to the agent or to the workspace.
    fn is_own(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        let own = self.own.iter().chain([&self.workspace]);
        own.map(|own| own.as_os_str().as_bytes())
            .any(|own| is_below(path, own))
    }
}
