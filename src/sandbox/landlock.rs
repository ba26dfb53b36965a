//! Carries out a layout with Landlock, which can only grant access to whole directories. So a
//! directory with something hidden in it is not granted, but each of its other entries is.

use super::SandboxError;
use super::layout::{Access, Layout};
use crate::os::landlock::{Grant, Ruleset};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The rules that a process applies to itself.
#[derive(Debug)]
pub(super) struct Rules(Arc<Ruleset>);

impl Rules {
    pub(super) fn restrict(&self, command: &mut Command) {
        self.0.restrict(command);
    }
}

/// Builds the rules for a layout.
pub(super) fn compose(layout: &Layout, workspace: &Path) -> Result<Rules, SandboxError> {
    let workspace = fs::canonicalize(workspace).map_err(SandboxError::Io)?;
    if let Some(hidden) = layout.hidden_below(&workspace) {
        return Err(SandboxError::HiddenInside(hidden.to_owned(), workspace));
    }
    let mut grants = Vec::new();
    for (path, access) in layout.rules() {
        let access = match access {
            Access::Hidden => continue,
            Access::Read => Grant::Read,
            Access::Write | Access::Private => Grant::Write,
        };
        grant(layout, path.to_owned(), access, &mut grants);
    }
    let ruleset = Ruleset::new(&grants).map_err(SandboxError::NoLandlock)?;
    Ok(Rules(Arc::new(ruleset)))
}

/// Grants access to a path, or to the entries of a directory in which something is hidden.
fn grant(layout: &Layout, path: PathBuf, access: Grant, grants: &mut Vec<(PathBuf, Grant)>) {
    if layout.hidden_below(&path).is_none() {
        grants.push((path, access));
        return;
    }
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        // A link would grant access to its target, which has a rule of its own.
        let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
        let path = entry.path();
        if !is_link && !layout.has_rule(&path) {
            grant(layout, path, access, grants);
        }
    }
}
