//! Remembers which settings files of which repositories the user trusts to run commands.
//!
//! A record names the repository's top, the file's path in it, and the file's content, so that a
//! changed file is not trusted, and can be compared with what was. Each record is a file whose name
//! is a hash of the three: processes that add records at the same time do not conflict, and
//! switching between branches does not lose one.

use super::enclosing::EnclosingLoop;
use crate::config::trust::GuardedValue;
use crate::config::{SettingsFile, SettingsFiles};
use crate::git;
use crate::os::regular_file;
use crate::process::orphans;
use crate::store::dir::{create_dir, create_file};
use crate::store::{StateDir, rfc3339};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use similar::TextDiff;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum size of a record, in bytes. A settings file has at most 1 MiB, and JSON can escape each
/// of its bytes with six.
const RECORD_MAX: u64 = 8 << 20;
/// Maximum time to look for a short diff. After that, the diff is longer than necessary.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// A trusted settings file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrustRecord {
    /// The top of the repository, or the workspace outside any.
    pub(crate) project: PathBuf,
    /// The path of the file, relative to the top of its checkout.
    pub(crate) file: PathBuf,
    /// The SHA-256 hash of the content.
    pub(crate) sha256: String,
    /// The time at which the user trusted the file, in RFC 3339 format.
    pub(crate) since: String,
    pub(crate) content: String,
}

/// A settings file with values that need trust, and how the user has decided about it so far.
#[derive(Debug)]
pub(crate) struct GuardedFile {
    /// The path for messages.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) values: Vec<GuardedValue>,
    pub(crate) is_trusted: bool,
    project: PathBuf,
    /// The path relative to the top of the checkout.
    relative: PathBuf,
    text: String,
}

impl GuardedFile {
    /// Returns whether this is the file's content.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.text == text
    }

    /// Returns whether this is the settings file that git does not track.
    pub(crate) fn is_local(&self) -> bool {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.as_bytes().ends_with(b".local")
    }

    /// Returns the keys of the values that need trust, each once.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.values.iter().map(|value| value.key.as_str()).collect();
        keys.dedup();
        keys
    }
}

/// The user's trust records.
#[derive(Clone, Debug)]
pub(crate) struct TrustRecords {
    dir: Option<PathBuf>,
}

impl TrustRecords {
    /// Returns the records in ralph's configuration directory. Without one, no file is trusted.
    pub(crate) fn new(config_dir: Option<&Path>) -> Self {
        Self {
            dir: config_dir.map(|dir| dir.join("trusted")),
        }
    }

    /// Returns the files that set values which need trust.
    pub(crate) fn check(&self, files: &SettingsFiles, workspace: &Path) -> Vec<GuardedFile> {
        let guarded = files.iter().filter_map(|file| {
            let values = file.guarded_values();
            (!values.is_empty()).then(|| self.check_file(file, values, workspace))
        });
        guarded.collect()
    }

    fn check_file(
        &self,
        file: &SettingsFile,
        values: Vec<GuardedValue>,
        workspace: &Path,
    ) -> GuardedFile {
        let repository = git::repository(workspace);
        let relative = file.path.strip_prefix(&repository.checkout);
        let mut checked = GuardedFile {
            name: file.name.clone(),
            path: file.path.clone(),
            values,
            is_trusted: false,
            relative: relative.unwrap_or(&file.path).to_owned(),
            project: repository.project,
            text: file.text.clone(),
        };
        let record = self.record_path(&checked).and_then(|path| load(&path));
        checked.is_trusted = record.is_some_and(|record| {
            record.project == checked.project
                && record.file == checked.relative
                && record.content == checked.text
        });
        checked
    }

    /// Returns the files that set values which need trust and do not have it.
    pub(crate) fn untrusted(&self, files: &SettingsFiles, workspace: &Path) -> Vec<GuardedFile> {
        let mut guarded = self.check(files, workspace);
        guarded.retain(|file| !file.is_trusted);
        guarded
    }

    /// Leaves out the values that need trust and do not have it. Returns the files that set them.
    pub(crate) fn remove_untrusted(
        &self,
        files: &mut SettingsFiles,
        workspace: &Path,
    ) -> Vec<GuardedFile> {
        let untrusted = self.untrusted(files, workspace);
        for file in &untrusted {
            files.remove_guarded(&file.path);
        }
        untrusted
    }

    /// Records that the user trusts a file with exactly the content that was read.
    pub(crate) fn add(&self, file: &GuardedFile) -> io::Result<()> {
        let path = self
            .record_path(file)
            .ok_or_else(|| io::Error::other("the home directory is unknown"))?;
        let dir = path.parent().unwrap_or(Path::new("/"));
        create_dir(dir)?;
        let record = TrustRecord {
            project: file.project.clone(),
            file: file.relative.clone(),
            sha256: hex(&Sha256::digest(&file.text)),
            since: rfc3339(jiff::Timestamp::now().as_millisecond()),
            content: file.text.clone(),
        };
        let name = path.file_stem().unwrap_or_default().display();
        let draft = dir.join(format!(".{name}.{}.new", std::process::id()));
        let write = || {
            let mut file = create_file(&draft)?;
            serde_json::to_writer(&file, &record)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
    }

    /// Returns a diff from the content that the user trusted last to the current one; `None` if the
    /// user has never trusted this file.
    pub(crate) fn diff(&self, file: &GuardedFile) -> Option<String> {
        let records = self.list();
        let earlier = records
            .iter()
            .filter(|record| record.project == file.project && record.file == file.relative);
        let last = earlier.max_by(|a, b| a.since.cmp(&b.since))?;
        let diff = TextDiff::configure()
            .deadline(Instant::now() + DIFF_TIME)
            .diff_lines(last.content.as_str(), file.text.as_str());
        Some(diff.unified_diff().context_radius(1).to_string())
    }

    /// Returns all records, sorted by project and file, the newest first of those for one file.
    pub(crate) fn list(&self) -> Vec<TrustRecord> {
        let mut records: Vec<TrustRecord> = self.paths().filter_map(|path| load(&path)).collect();
        records.sort_by(|a, b| {
            (&a.project, &a.file)
                .cmp(&(&b.project, &b.file))
                .then(b.since.cmp(&a.since))
        });
        records
    }

    /// Removes all records of a project. Returns how many there were.
    pub(crate) fn revoke(&self, project: &Path) -> io::Result<usize> {
        let mut removed = 0;
        for path in self.paths() {
            if load(&path).is_some_and(|record| record.project == project) {
                fs::remove_file(&path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns the path of the record that makes a file trusted.
    fn record_path(&self, file: &GuardedFile) -> Option<PathBuf> {
        let mut hash = Sha256::new();
        for part in [
            file.project.as_os_str().as_bytes(),
            file.relative.as_os_str().as_bytes(),
            file.text.as_bytes(),
        ] {
            hash.update(part);
            hash.update([0]);
        }
        Some(
            self.dir
                .as_ref()?
                .join(format!("{}.json", hex(&hash.finalize()))),
        )
    }

    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let entries = self.dir.as_ref().and_then(|dir| fs::read_dir(dir).ok());
        let paths = entries.into_iter().flatten().flatten();
        paths
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
    }
}

/// Returns whether this process belongs to a loop: its agent, or a command that the loop runs.
/// Trust is a person's decision, so such a process can neither give it nor do without it.
pub(crate) fn is_inside_loop() -> bool {
    let has_marker = std::env::var_os(orphans::MARKER_VAR).is_some_and(|value| !value.is_empty());
    has_marker || StateDir::locate().is_ok_and(|dir| EnclosingLoop::find(&dir).is_some())
}

/// Loads a record; `None` if it is missing or damaged.
fn load(path: &Path) -> Option<TrustRecord> {
    let (bytes, is_longer) = regular_file::read(path, RECORD_MAX, true).ok()?;
    serde_json::from_slice(&bytes).ok().filter(|_| !is_longer)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
