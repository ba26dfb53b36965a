//! Views by an overlay: a mount namespace in which the workspace, and other directories with changed
//! files, are covered by overlays. Ordinary users can create it.

use super::change::Changes;
use super::layer::LayerWriter;
use super::{View, ViewChange, ViewError, ViewKind, ViewRequest, Weakness, at, below};
use crate::os::namespace::{EnterError, MountNamespace, Overlay, mountpoints};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prepares a view by overlays. If the kernel refuses one outside the workspace, the view does
/// without it.
pub(super) fn prepare(request: &ViewRequest) -> Result<View, ViewError> {
    let workspace = fs::canonicalize(request.workspace).map_err(at(request.workspace))?;
    if workspace == Path::new("/") {
        let why = "an overlay cannot cover the root directory".to_owned();
        return Err(ViewError::Unavailable(why));
    }
    let mountpoints = mountpoints();
    let mut layers = Layers::assign(request, &workspace, &mountpoints);
    let mut overlays = layers.write(request.scratch, &mountpoints)?;
    // Root can do without a user namespace, in which files of other users could not be changed.
    let mut needs_user = !rustix::process::geteuid().is_root();
    let namespace = loop {
        let namespace = MountNamespace::new(&overlays, request.scratch, needs_user)
            .map_err(at(request.scratch))?;
        let namespace = Arc::new(namespace);
        match namespace.try_enter().map_err(at(request.scratch))? {
            Ok(()) => break namespace,
            Err(EnterError::Namespace(_)) if !needs_user => needs_user = true,
            Err(EnterError::Namespace(error)) => {
                let why = format!("the kernel refuses a mount namespace: {error}");
                return Err(ViewError::Unavailable(why));
            }
            Err(EnterError::Overlay(index, error)) => {
                let refused = overlays.remove(index);
                if refused.target.starts_with(&workspace) {
                    return Err(ViewError::Unavailable(explain(&refused, &error)));
                }
                layers.unmask(&refused.target);
            }
        }
    };
    let mut redirects: Vec<_> = overlays
        .iter()
        .map(|overlay| (overlay.target.clone(), overlay.layer.join("upper")))
        .collect();
    // The request's path may contain symbolic links.
    let of_workspace = redirects.iter().find(|(target, _)| *target == workspace);
    let of_workspace = of_workspace.map(|(_, upper)| (request.workspace.to_owned(), upper.clone()));
    redirects.extend(of_workspace);
    Ok(View {
        kind: ViewKind::Overlay,
        dir: request.workspace.to_owned(),
        scratch: request.scratch.to_owned(),
        weaknesses: Weakness::unmasked(layers.unmasked).into_iter().collect(),
        redirects,
        namespace: Some(namespace),
    })
}

fn explain(refused: &Overlay, error: &std::io::Error) -> String {
    let target = refused.target.display();
    match refused.submounts.first() {
        Some(below) => format!(
            "the kernel refuses an overlay of {target}, below which {} is mounted: {error}",
            below.display()
        ),
        None => format!("the kernel refuses an overlay of {target}: {error}"),
    }
}

/// The directories to cover, and what their upper layers must contain.
struct Layers<'a> {
    /// In the order of their paths, so that outer directories come first.
    by_root: BTreeMap<PathBuf, Changes<'a>>,
    /// Files that no overlay can hide.
    unmasked: Vec<PathBuf>,
}

impl<'a> Layers<'a> {
    /// Assigns every change to the workspace or to a directory outside it.
    fn assign(request: &ViewRequest<'a>, workspace: &Path, mountpoints: &[PathBuf]) -> Self {
        let mut layers = Self {
            by_root: BTreeMap::new(),
            unmasked: Vec::new(),
        };
        let mut mounts = mountpoints.iter();
        let has_mounts = mounts.any(|mount| below(mount, workspace).is_some());
        // There may be tens of thousands of changes, most of them in the workspace.
        let mut inside = Vec::with_capacity(request.changes.len());
        for change in request.changes {
            let path = below(&change.path, request.workspace);
            match path.or_else(|| below(&change.path, workspace)) {
                Some(path) if !has_mounts => inside.push((path.to_owned(), &change.content)),
                Some(path) => layers.add(workspace, path, change, workspace, mountpoints),
                None => match resolve(&change.path) {
                    Some((root, path)) => layers.add(&root, &path, change, workspace, mountpoints),
                    None => layers.unmasked.push(change.path.clone()),
                },
            }
        }
        let of_workspace = layers.by_root.entry(workspace.to_owned()).or_default();
        inside.extend(std::mem::take(of_workspace));
        *of_workspace = inside.into_iter().collect();
        layers.merge(workspace, mountpoints);
        layers
    }

    fn add(
        &mut self,
        root: &Path,
        path: &Path,
        change: &'a ViewChange,
        workspace: &Path,
        mountpoints: &[PathBuf],
    ) {
        let full = root.join(path);
        let root = match below(&full, workspace) {
            Some(_) => workspace,
            None => root,
        };
        // An overlay ends where another file system is mounted below it.
        let mount = mountpoints
            .iter()
            .filter(|mount| mount.starts_with(root) && below(&full, mount).is_some())
            .max_by_key(|mount| mount.as_os_str().len());
        let root = mount.map_or(root, PathBuf::as_path);
        if let Some(path) = below(&full, root) {
            let changes = self.by_root.entry(root.to_owned()).or_default();
            changes.insert(path.to_owned(), &change.content);
        }
    }

    /// Merges each layer into the one above it: fewer mounts, and every file is covered once.
    fn merge(&mut self, workspace: &Path, mountpoints: &[PathBuf]) {
        for (root, changes) in std::mem::take(&mut self.by_root) {
            let is_separate = root == workspace || mountpoints.contains(&root);
            let outer = self.by_root.keys().rev().find(|outer| {
                let between =
                    |mount: &&PathBuf| root.starts_with(mount) && mount.starts_with(outer);
                let mount = mountpoints.iter().filter(between).max();
                root.starts_with(outer) && mount.is_none_or(|mount| mount == *outer)
            });
            match outer.cloned().filter(|_| !is_separate) {
                Some(outer) => {
                    let prefix = below(&root, &outer).unwrap_or(Path::new("")).to_owned();
                    let merged = self.by_root.entry(outer).or_default();
                    merged.extend(
                        changes
                            .into_iter()
                            .map(|(path, to)| (prefix.join(path), to)),
                    );
                }
                None => {
                    self.by_root.insert(root, changes);
                }
            }
        }
    }

    /// Writes the layers, and returns the overlays to mount.
    fn write(&self, scratch: &Path, mountpoints: &[PathBuf]) -> Result<Vec<Overlay>, ViewError> {
        let empty = scratch.join("empty");
        fs::create_dir_all(&empty).map_err(at(&empty))?;
        let mut overlays = Vec::new();
        for (index, (root, changes)) in self.by_root.iter().enumerate() {
            let layer = scratch.join(index.to_string());
            for part in ["lower", "work"] {
                fs::create_dir_all(layer.join(part)).map_err(at(&layer))?;
            }
            let upper = layer.join("upper");
            LayerWriter::write(root, &upper, changes).map_err(|error| {
                // Some file systems and kernels have no device that hides a file.
                match error.kind() {
                    std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::Unsupported => {
                        ViewError::Unavailable(format!("cannot hide a file: {error}"))
                    }
                    _ => ViewError::Io(upper.clone(), error),
                }
            })?;
            let below_root = mountpoints.iter().filter_map(|mount| below(mount, root));
            let mut submounts: Vec<&Path> = below_root
                .filter(|mount| !changes.contains_key(*mount))
                .collect();
            submounts.sort_unstable();
            // Each is mounted together with those below it.
            submounts.dedup_by(|inner, outer| inner.starts_with(outer));
            overlays.push(Overlay {
                target: root.clone(),
                layer,
                submounts: submounts.into_iter().map(Path::to_owned).collect(),
            });
        }
        Ok(overlays)
    }

    fn unmask(&mut self, root: &Path) {
        let changes = self.by_root.remove(root).unwrap_or_default();
        let paths = changes.into_keys().map(|path| root.join(path));
        self.unmasked.extend(paths);
    }
}

/// Splits the path of a file outside the workspace into an existing directory, without symbolic
/// links, and the rest. `None` if no overlay can cover the directory.
fn resolve(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let dir = path.ancestors().skip(1).find(|dir| dir.is_dir())?;
    let root = fs::canonicalize(dir).ok()?;
    (root != Path::new("/")).then(|| Some((root, below(path, dir)?.to_owned())))?
}
