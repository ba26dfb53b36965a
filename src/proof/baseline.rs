//! The state of a workspace and its surroundings when a loop starts: a manifest, and copies of the
//! guards.

use super::copies::{COPIES_MAX, Copies, CopyWriter, hex, write_durably};
use super::encoding::{ManifestReader, broken, put_manifest};
use super::guards::{Ecosystems, GuardTable, Matches, is_in_ignored_directory, table};
use super::manifest::{Entry, Manifest, as_path, is_below};
use super::outside;
use super::patterns::PatternSet;
use super::review::is_reviewed;
use super::scope::{BaselineSpec, Scope};
use super::{review_files, rust_tests};
use crate::git;
use crate::git::ignored::IgnoredPaths;
use crate::os::{regular_file, sync_dir};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The first bytes of a stored baseline: its format and version. Loops that began under an earlier
/// version are still read.
const MAGIC: &[u8] = b"ralph baseline 2\n";
const FIRST_MAGIC: &[u8] = b"ralph baseline 1\n";

/// The directory of a baseline in a loop's directory, and its files.
const DIR: &str = "baseline";
const MANIFEST: &str = "manifest";
pub(super) const COPIES: &str = "copies";
pub(super) const SOURCES: &str = "sources";
pub(super) const ORIGINALS: &str = "originals";

/// Maximum size of a stored manifest, in bytes.
const MANIFEST_MAX: u64 = 1 << 30;

/// Names at the top of a workspace that are left out: ralph's own files.
const RALPH_DIR: &[u8] = b".ralph";

/// Maximum size of all copies of sources, in bytes.
const SOURCES_MAX: u64 = 64 << 20;

/// Maximum sizes of all copies, in bytes; 0 for none.
#[derive(Clone, Copy)]
pub(super) struct CopyCaps {
    pub(super) guards: u64,
    pub(super) sources: u64,
}

/// The state of a workspace and its surroundings when a loop starts.
pub(crate) struct Baseline {
    pub(super) dir: PathBuf,
    pub(super) scope: Scope,
    pub(super) workspace: Manifest,
    pub(super) outside: Manifest,
    pub(super) copies: Copies,
    /// Copies of sources, which tell the lines that were added; empty if checkpoints do.
    pub(super) sources: Copies,
    pub(super) ecosystems: Ecosystems,
    digest: String,
}

impl Baseline {
    /// Records the current state, durably, in the directory of a loop. Replaces an earlier baseline.
    pub(crate) fn take(spec: &BaselineSpec<'_>, loop_dir: &Path) -> io::Result<Self> {
        let caps = CopyCaps {
            guards: COPIES_MAX,
            sources: if spec.copies_sources { SOURCES_MAX } else { 0 },
        };
        Self::take_with_caps(Scope::new(spec)?, loop_dir, caps)
    }

    /// Records the files of a tree that was written to a directory of ralph's own, in which git
    /// ignores nothing.
    pub(crate) fn take_of_tree(spec: &BaselineSpec<'_>, dir: &Path) -> io::Result<Self> {
        let scope = Scope {
            has_git: true,
            ignored: IgnoredPaths::default(),
            git_dirs: Vec::new(),
            ..Scope::new(spec)?
        };
        let caps = CopyCaps {
            guards: COPIES_MAX,
            sources: 0,
        };
        Self::take_with_caps(scope, dir, caps)
    }

    pub(super) fn take_with_caps(
        scope: Scope,
        loop_dir: &Path,
        caps: CopyCaps,
    ) -> io::Result<Self> {
        let new = loop_dir.join("baseline.new");
        remove_dir(&new)?;
        fs::DirBuilder::new().mode(0o700).create(&new)?;
        let workspace = walk_workspace(&scope.workspace)?;
        let outside = outside::list(&scope, &mut Vec::new());
        let mut writer = CopyWriter::create(&new.join(COPIES), caps.guards)?;
        let matched: Vec<_> = not_ignored(&scope, &workspace).collect();
        copy_guards(&scope, &workspace, &matched, &outside, &mut writer)?;
        let ecosystems = find_ecosystems(&matched);
        let copies = writer.finish()?;
        let mut sources = Copies::default();
        if caps.sources > 0 {
            let mut writer = CopyWriter::create(&new.join(SOURCES), caps.sources)?;
            copy_sources(&scope, &matched, &copies, &mut writer)?;
            sources = writer.finish()?;
        }
        drop(matched);
        let mut bytes = MAGIC.to_vec();
        scope.put(&mut bytes);
        put_manifest(&mut bytes, &workspace);
        put_manifest(&mut bytes, &outside);
        copies.put(&mut bytes);
        if caps.sources > 0 {
            sources.put(&mut bytes);
        }
        write_durably(&new.join(MANIFEST), &bytes)?;
        let dir = loop_dir.join(DIR);
        remove_dir(&dir)?;
        fs::rename(&new, &dir)?;
        sync_dir(loop_dir)?;
        Ok(Self {
            dir,
            ecosystems,
            scope,
            workspace,
            outside,
            copies,
            sources,
            digest: hex(&Sha256::digest(&bytes)),
        })
    }

    /// Opens the baseline in the directory of a loop. Returns `None` if the loop has none.
    /// `digest` is the one that the loop's journal has.
    pub(crate) fn open(loop_dir: &Path, digest: &str) -> io::Result<Option<Self>> {
        let dir = loop_dir.join(DIR);
        let path = dir.join(MANIFEST);
        let bytes = match regular_file::read(&path, MANIFEST_MAX, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?.0,
        };
        if hex(&Sha256::digest(&bytes)) != digest {
            let path = path.display();
            return Err(io::Error::other(format!(
                "{path} was changed since the loop started"
            )));
        }
        let first_format = bytes.strip_prefix(FIRST_MAGIC);
        let rest = first_format.or_else(|| bytes.strip_prefix(MAGIC));
        let mut from = ManifestReader::new(rest.ok_or_else(broken)?);
        let scope = Scope::read(&mut from, first_format.is_some())?;
        let workspace = from.manifest()?;
        let outside = from.manifest()?;
        let copies = Copies::get(&mut from)?;
        let sources = if from.is_at_end() {
            Copies::default()
        } else {
            Copies::get(&mut from)?
        };
        if !from.is_at_end() {
            return Err(broken());
        }
        Ok(Some(Self {
            dir,
            ecosystems: find_ecosystems(&not_ignored(&scope, &workspace).collect::<Vec<_>>()),
            scope,
            workspace,
            outside,
            copies,
            sources,
            digest: digest.to_owned(),
        }))
    }

    /// Returns a hash of everything that was recorded, copies included. It belongs in the journal:
    /// an agent can change the files of the baseline.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the SHA-256 hash of every original in the workspace, by its path there. Files of git
    /// itself are left out.
    pub(crate) fn hashes(&self) -> BTreeMap<String, String> {
        let inside = self.copies.hashes().filter_map(|(path, hash)| {
            let path = as_path(path).strip_prefix(&self.scope.workspace).ok()?;
            let path = Some(path).filter(|path| !path.starts_with(".git"))?;
            Some((git::path_name(path.as_os_str().as_bytes()), hex(hash)))
        });
        inside.collect()
    }

    pub(super) fn absolute(&self, path: &[u8]) -> Vec<u8> {
        absolute(&self.scope, path)
    }
}

/// Lists the workspace, without git's and ralph's own files.
pub(super) fn walk_workspace(workspace: &Path) -> io::Result<Manifest> {
    Manifest::walk(workspace, |path, _, depth| !is_own(path, depth))
}

/// Returns whether a path belongs to git or to ralph itself.
pub(super) fn is_own(path: &[u8], depth: usize) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next();
    name == Some(b".git") || (depth == 1 && path == RALPH_DIR)
}

/// Returns whether a path that existed at the start was ignored then.
pub(super) fn was_ignored(scope: &Scope, path: &[u8], is_dir: bool) -> bool {
    if scope.has_git {
        scope.ignored.contains(path)
    } else {
        is_in_ignored_directory(path, is_dir, false)
    }
}

fn absolute(scope: &Scope, path: &[u8]) -> Vec<u8> {
    scope
        .workspace
        .join(as_path(path))
        .as_os_str()
        .as_bytes()
        .to_vec()
}

fn find_ecosystems(files: &[(&Entry, Matches)]) -> Ecosystems {
    let mut found = Ecosystems::new();
    for (_, matches) in files {
        found.add(matches);
    }
    found
}

/// Returns the files of the start that were not ignored, with what the rows say about each.
fn not_ignored<'a>(
    scope: &'a Scope,
    workspace: &'a Manifest,
) -> impl Iterator<Item = (&'a Entry, Matches)> {
    let table: &GuardTable = table();
    // Entries below an ignored directory follow it.
    let mut ignored: Option<&[u8]> = None;
    workspace.entries.iter().filter_map(move |entry| {
        if ignored.is_some_and(|dir| is_below(&entry.path, dir)) {
            return None;
        }
        if was_ignored(scope, &entry.path, entry.is_dir()) {
            ignored = Some(&entry.path);
            return None;
        }
        (!entry.is_dir()).then(|| (entry, table.matches(&entry.path)))
    })
}

/// Copies the guards, small ones first, so that a few large fixtures leave room for the rest.
fn copy_guards(
    scope: &Scope,
    workspace: &Manifest,
    matched: &[(&Entry, Matches)],
    outside: &Manifest,
    writer: &mut CopyWriter,
) -> io::Result<()> {
    let protect = PatternSet::new(&scope.protect);
    let full = |entry: &Entry| scope.workspace.join(as_path(&entry.path));
    let chosen = workspace.entries.iter().filter(|entry| {
        !entry.is_dir() && (protect.is_match(&entry.path) || scope.scripts.contains(&full(entry)))
    });
    let mut files: Vec<(&Entry, PathBuf, bool)> =
        chosen.map(|entry| (entry, full(entry), false)).collect();
    let chosen: HashSet<&[u8]> = files.iter().map(|(entry, ..)| &entry.path[..]).collect();
    for (entry, matches) in matched {
        let is_source = !matches.is_guard(false);
        let is_copied = !is_source || entry.path.ends_with(b".rs");
        if is_copied && !chosen.contains(&entry.path[..]) {
            files.push((entry, full(entry), is_source));
        }
    }
    let outside = outside.entries.iter().filter(|entry| !entry.is_dir());
    files.extend(outside.filter_map(|entry| {
        let path = as_path(&entry.path);
        outside::is_copied(scope, path).then(|| (entry, path.to_owned(), false))
    }));
    files.sort_by_key(|(entry, ..)| entry.size);
    for (entry, path, is_rust_source) in files {
        writer.add(&path, entry, |content| {
            // A source without tests needs no copy; one that cannot be read to the end might.
            !is_rust_source
                || std::str::from_utf8(content)
                    .is_ok_and(|text| rust_tests::has_tests(text).unwrap_or(true))
        })?;
    }
    Ok(())
}

/// Copies the sources whose added lines a person should read, small ones first.
fn copy_sources(
    scope: &Scope,
    matched: &[(&Entry, Matches)],
    guards: &Copies,
    writer: &mut CopyWriter,
) -> io::Result<()> {
    let mut files: Vec<&Entry> = matched.iter().map(|(entry, _)| *entry).collect();
    files.retain(|entry| {
        entry.is_file()
            && entry.size <= review_files::FILE_MAX
            && is_reviewed(&entry.path)
            && !guards.contains(&absolute(scope, &entry.path))
    });
    files.sort_by_key(|entry| entry.size);
    for entry in files {
        let path = absolute(scope, &entry.path);
        writer.add(as_path(&path), entry, |_| true)?;
    }
    Ok(())
}

fn remove_dir(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
