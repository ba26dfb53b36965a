//! Prepares views: a check in a view sees the workspace as it is, except for some files.
//!
//! A view is at the workspace's own path, because a copy elsewhere would lead back to the workspace:
//! a virtual environment's scripts, for example, name their interpreter by its absolute path. Where
//! the kernel does not allow that, [`View::prepare`] chooses a weaker kind and says so.

mod change;
mod copy;
mod exchange;
#[cfg(target_os = "linux")]
mod layer;
#[cfg(target_os = "linux")]
mod overlay;
mod remove;
#[cfg(test)]
pub(super) mod tests;

use super::{ViewChange, ViewContent};
#[cfg(target_os = "linux")]
use crate::os::regular_file;
use change::Changes;
use remove::remove_tree;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs, io};

/// What a view is made from.
#[derive(Clone, Copy)]
pub(crate) struct ViewRequest<'a> {
    /// Absolute path of the directory in which the checks run.
    pub(crate) workspace: &'a Path,
    /// A directory that only views use. It may contain what a killed process left behind.
    pub(crate) scratch: &'a Path,
    pub(crate) changes: &'a [ViewChange],
    /// Whether the workspace is a worktree that ralph created, in which no one else works.
    pub(crate) is_own_worktree: bool,
}

/// A view of a workspace. [`View::remove`] deletes it, together with everything that checks wrote.
pub(crate) struct View {
    kind: ViewKind,
    dir: PathBuf,
    scratch: PathBuf,
    weaknesses: Vec<Weakness>,
    /// Where writes below a directory go, innermost directories last; empty if they go to `dir`.
    redirects: Vec<(PathBuf, PathBuf)>,
    #[cfg(target_os = "linux")]
    namespace: Option<std::sync::Arc<crate::os::namespace::MountNamespace>>,
}

/// How a view is made, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewKind {
    /// An overlay at the workspace's own path, in a namespace of the check's own.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux has overlays")
    )]
    Overlay,
    /// The changed files are exchanged in the workspace itself until the view is removed.
    Exchange,
    /// A copy of the workspace in another directory.
    Copy,
}

/// Maximum number of files that a message about a weakness names.
const NAMED_MAX: usize = 3;

/// A reason why a check in the view may still see what the view should hide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Weakness {
    /// An overlay is impossible, for this reason.
    NoOverlay(String),
    /// These files outside the workspace are as the agent left them.
    Unmasked(Vec<PathBuf>),
    /// These files of the copy name the workspace's path, so programs may use files there.
    NamesWorkspace(Vec<PathBuf>),
}

/// An error that prevented a view.
#[derive(Debug)]
pub(crate) enum ViewError {
    /// This kind of view is impossible here.
    Unavailable(String),
    /// An operation on this path failed.
    Io(PathBuf, io::Error),
}

impl<'a> ViewRequest<'a> {
    /// Separates the changes in the workspace, by their path relative to it, from the files outside.
    fn split(&self, workspace: &Path) -> (Changes<'a>, Vec<PathBuf>) {
        let (mut inside, mut outside) = (Changes::new(), Vec::new());
        for change in self.changes {
            let path = below(&change.path, self.workspace);
            match path.or_else(|| below(&change.path, workspace)) {
                Some(path) => {
                    inside.insert(path.to_owned(), &change.content);
                }
                None => outside.push(change.path.clone()),
            }
        }
        (inside, outside)
    }
}

impl View {
    /// Prepares a view of the strongest kind that works here.
    pub(crate) fn prepare(request: &ViewRequest) -> Result<Self, ViewError> {
        Self::recover(request.scratch)?;
        fs::create_dir_all(request.scratch).map_err(at(request.scratch))?;
        #[cfg(target_os = "linux")]
        let unavailable = match overlay::prepare(request) {
            Err(ViewError::Unavailable(why)) => why,
            result => return result,
        };
        #[cfg(not(target_os = "linux"))]
        let unavailable = "this system has no mount namespaces".to_owned();
        Self::recover(request.scratch)?;
        fs::create_dir_all(request.scratch).map_err(at(request.scratch))?;
        let mut view = match request.is_own_worktree.then(|| exchange::prepare(request)) {
            Some(Ok(view)) => view,
            None | Some(Err(ViewError::Unavailable(_))) => copy::prepare(request)?,
            Some(Err(error)) => return Err(error),
        };
        view.weaknesses.insert(0, Weakness::NoOverlay(unavailable));
        Ok(view)
    }

    /// Prepares a view of the strongest kind, or fails.
    pub(crate) fn prepare_overlay(request: &ViewRequest) -> Result<Self, ViewError> {
        Self::recover(request.scratch)?;
        fs::create_dir_all(request.scratch).map_err(at(request.scratch))?;
        #[cfg(target_os = "linux")]
        return overlay::prepare(request);
        #[cfg(not(target_os = "linux"))]
        Err(ViewError::Unavailable(
            "this system has no mount namespaces".into(),
        ))
    }

    /// Checks whether the kernel allows a view of the strongest kind. Uses the empty directory
    /// `scratch`.
    pub(crate) fn probe(scratch: &Path) -> Result<(), ViewError> {
        #[cfg(target_os = "linux")]
        {
            let workspace = scratch.join("workspace");
            fs::create_dir_all(&workspace).map_err(at(&workspace))?;
            let file = workspace.join("file");
            regular_file::create(&file).map_err(at(&file))?;
            let view = overlay::prepare(&ViewRequest {
                workspace: &workspace,
                scratch: &scratch.join("view"),
                changes: &[ViewChange {
                    path: file,
                    content: ViewContent::Absent,
                }],
                is_own_worktree: false,
            });
            let removed = remove_tree(scratch).map_err(at(scratch));
            view.map(drop).and(removed)
        }
        #[cfg(not(target_os = "linux"))]
        Err(ViewError::Unavailable(format!(
            "this system has no mount namespaces ({})",
            scratch.display()
        )))
    }

    /// Undoes and deletes what a killed process left in the directory of a view.
    pub(crate) fn recover(scratch: &Path) -> Result<(), ViewError> {
        exchange::undo(scratch)?;
        remove_tree(scratch).map_err(at(scratch))
    }

    pub(crate) fn kind(&self) -> ViewKind {
        self.kind
    }

    /// Returns the directory in which checks must run.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns why a check in the view may still see what the view should hide.
    pub(crate) fn weaknesses(&self) -> &[Weakness] {
        &self.weaknesses
    }

    /// Makes the command start in the view. Writes are shared by all commands that do, one after
    /// the other.
    pub(crate) fn confine(&self, command: &mut Command) -> io::Result<()> {
        command.current_dir(&self.dir);
        #[cfg(target_os = "linux")]
        if let Some(namespace) = &self.namespace {
            namespace.confine(command, &self.dir)?;
        }
        Ok(())
    }

    /// Returns where a process outside the view finds what a check has written to a path.
    pub(crate) fn written_path(&self, path: &Path) -> PathBuf {
        let mut redirects = self.redirects.iter().rev();
        let written = redirects.find_map(|(from, to)| Some(to.join(below(path, from)?)));
        written.unwrap_or_else(|| path.to_owned())
    }

    /// Returns where a process outside the view finds the file that a check sees at a path; `None` if
    /// the check sees none.
    pub(crate) fn shown_path(&self, path: &Path) -> Option<PathBuf> {
        let mut redirects = self.redirects.iter().rev();
        let redirect = redirects.find_map(|(from, to)| Some((to, below(path, from)?)));
        let Some((layer, rest)) = redirect else {
            return Some(path.to_owned());
        };
        let written = layer.join(rest);
        if self.kind == ViewKind::Copy
            || fs::symlink_metadata(&written).is_ok_and(|meta| is_shown(&meta))
        {
            return Some(written);
        }
        let mut dirs = rest.ancestors().map(|part| layer.join(part));
        let is_hidden = |dir: PathBuf| fs::symlink_metadata(dir).is_ok_and(|meta| !is_shown(&meta));
        (!dirs.any(is_hidden)).then(|| path.to_owned())
    }

    /// Deletes the view. No process may be running in it.
    pub(crate) fn remove(self) -> Result<(), ViewError> {
        Self::recover(&self.scratch)
    }
}

impl Weakness {
    fn unmasked(paths: Vec<PathBuf>) -> Option<Self> {
        (!paths.is_empty()).then_some(Self::Unmasked(paths))
    }
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, paths) = match self {
            Self::NoOverlay(why) => return f.write_str(why),
            Self::Unmasked(paths) => ("these files are as the agent left them", paths),
            Self::NamesWorkspace(paths) => ("these files name the workspace's own path", paths),
        };
        let names = paths.iter().take(NAMED_MAX);
        let names: Vec<_> = names.map(|path| path.display().to_string()).collect();
        let more = if paths.len() > NAMED_MAX { ", …" } else { "" };
        write!(f, "{text}: {}{more}", names.join(", "))
    }
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => f.write_str(why),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

/// Returns whether an entry of an overlay's upper layer is shown: a device hides what is below it.
fn is_shown(meta: &Metadata) -> bool {
    !meta.file_type().is_char_device()
}

/// Returns a function that adds a path to an error.
fn at(path: &Path) -> impl FnOnce(io::Error) -> ViewError {
    let path = path.to_owned();
    move |error| ViewError::Io(path, error)
}

/// Returns the part of the path below the directory; `None` if it is outside, or is the directory.
fn below<'a>(path: &'a Path, dir: &Path) -> Option<&'a Path> {
    // Almost every path begins with the directory's own. Taking it apart takes ten times as long.
    let bytes = path.as_os_str().as_bytes();
    let rest = bytes.strip_prefix(dir.as_os_str().as_bytes());
    if let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b"/"))
        && rest
            .split(|byte| *byte == b'/')
            .all(|part| !matches!(part, b"" | b"." | b".."))
    {
        return Some(Path::new(OsStr::from_bytes(rest)));
    }
    let rest = path.strip_prefix(dir).ok()?;
    let is_plain = rest
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    (is_plain && rest.as_os_str() != OsStr::new("")).then_some(rest)
}

#[cfg(test)]
#[test]
fn paths_below_a_directory_are_plain() {
    let cases = [
        ("/a/b/c", "/a", Some("b/c")),
        ("/a//b", "/a", Some("b")),
        ("/a/b", "/a/", Some("b")),
        ("/a/./b", "/a", Some("b")),
        ("/a/b/", "/a", Some("b/")),
        ("/ab", "/a", None),
        ("/a", "/a", None),
        ("/a/", "/a", None),
        ("/a/../b", "/a", None),
        ("/a/b/../../c", "/a", None),
        ("/b", "/a", None),
        ("/b", "/", Some("b")),
    ];
    for (path, dir, expected) in cases {
        let found = below(Path::new(path), Path::new(dir));
        assert_eq!(found, expected.map(Path::new), "{path} below {dir}");
    }
}
