//! Finds untracked files that are new or changed since the start of the loop, and renders them as a
//! diff.

use super::bounded_text::BoundedText;
use super::overlay::IndexOverlay;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Maximum number of untracked files that are recorded or shown.
const FILES_MAX: usize = 20_000;
/// Only the first `NAMES_MAX` bytes of the list of file names are read.
const NAMES_MAX: usize = 4 << 20;
/// Maximum size of a file whose content is shown, in bytes.
const SHOWN_MAX: u64 = 1 << 20;
/// Maximum number of untracked files that are opened for one diff.
const OPENED_MAX: usize = 2_000;
/// Maximum number of files that are excluded from a diff. Each one is an argument for git.
const NOW_TRACKED_MAX: usize = 1_000;

/// The untracked files at the start of the loop. Serialized into `base.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum UntrackedFiles {
    /// The files, by their quoted names.
    Known(BTreeMap<String, FileStamp>),
    /// Too many files to record. The number is a lower bound.
    TooMany(usize),
}

/// A file's size, and the seconds and nanoseconds of its modification time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FileStamp(u64, i64, i64);

impl From<&Metadata> for FileStamp {
    fn from(data: &Metadata) -> Self {
        // An untracked directory is a nested repository, which has a diff of its own.
        if data.is_dir() {
            Self(0, 0, 0)
        } else {
            Self(data.len(), data.mtime(), data.mtime_nsec())
        }
    }
}

/// The differences between the untracked files now and those at the start.
#[derive(Default)]
pub(super) struct UntrackedChanges {
    /// New files, and files whose content has changed.
    changed: Vec<ChangedFile>,
    deleted: Vec<String>,
    /// Files that have not changed since the start, but are tracked now.
    pub(super) now_tracked: Vec<String>,
    /// A note about files that are not included; `None` if all are included.
    pub(super) note: Option<String>,
}

struct ChangedFile {
    name: String,
    path: PathBuf,
    data: Metadata,
    /// Whether the file already existed at the start, untracked and with different content.
    existed: bool,
}

impl UntrackedFiles {
    /// Records the files that are untracked now.
    pub(super) fn capture(overlay: &IndexOverlay) -> Result<Self, String> {
        let (paths, more) = list_untracked(overlay)?;
        if more {
            return Ok(Self::TooMany(paths.len()));
        }
        let files = paths.iter().filter_map(|path| {
            let data = fs::symlink_metadata(overlay.top().join(OsStr::from_bytes(path))).ok()?;
            Some((quote(path), FileStamp::from(&data)))
        });
        Ok(Self::Known(files.collect()))
    }

    /// Returns whether a file of this quoted name was untracked at the start. `None` if there were
    /// too many to record.
    pub(super) fn knows(&self, name: &str) -> Option<bool> {
        match self {
            Self::Known(files) => Some(files.contains_key(name)),
            Self::TooMany(_) => None,
        }
    }

    /// Returns the nested repositories at the start.
    pub(super) fn nested(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Known(files) => Some(files.keys()),
            Self::TooMany(_) => None,
        };
        names
            .into_iter()
            .flatten()
            .filter_map(|name| name.strip_suffix('/'))
    }

    /// Compares the files that are untracked now with those at the start.
    /// The names in the result begin with `prefix`.
    pub(super) fn changes(
        &self,
        overlay: &IndexOverlay,
        prefix: &str,
    ) -> Result<UntrackedChanges, String> {
        let known = match self {
            Self::Known(known) => known,
            Self::TooMany(count) => {
                let note = format!(
                    "untracked files are not shown, because there were more than {count} at \
                     the start"
                );
                return Ok(UntrackedChanges {
                    note: Some(note),
                    ..UntrackedChanges::default()
                });
            }
        };
        let (paths, more) = list_untracked(overlay)?;
        let mut changes = UntrackedChanges::default();
        if more {
            changes.note = Some(format!(
                "only the first {} untracked files were examined",
                paths.len()
            ));
        }
        let mut remaining: BTreeMap<&str, FileStamp> = known
            .iter()
            .map(|(name, stamp)| (name.as_str(), *stamp))
            .collect();
        for path in &paths {
            let name = quote(path);
            let before = remaining.remove(name.as_str());
            let path = overlay.top().join(OsStr::from_bytes(path));
            // The file has been deleted since it was listed.
            let Ok(data) = fs::symlink_metadata(&path) else {
                continue;
            };
            if before != Some(FileStamp::from(&data)) {
                changes.changed.push(ChangedFile {
                    name: with_prefix(prefix, &name),
                    path,
                    data,
                    existed: before.is_some(),
                });
            }
        }
        if !more {
            changes.classify_missing(remaining, overlay.top(), prefix);
        }
        Ok(changes)
    }
}

impl UntrackedChanges {
    /// Sorts the files that are no longer untracked: some were deleted, others are tracked now and
    /// unchanged.
    fn classify_missing(&mut self, missing: BTreeMap<&str, FileStamp>, top: &Path, prefix: &str) {
        // Skip quoted names, which are not paths. They are too rare to be worth decoding.
        for (name, before) in missing
            .into_iter()
            .filter(|(name, _)| !name.starts_with('"'))
        {
            match fs::symlink_metadata(top.join(name)) {
                Err(_) => self.deleted.push(with_prefix(prefix, name)),
                Ok(data)
                    if before == FileStamp::from(&data)
                        && self.now_tracked.len() < NOW_TRACKED_MAX =>
                {
                    self.now_tracked.push(name.to_owned());
                }
                Ok(_) => {}
            }
        }
    }

    /// Appends the changes to `patch` as diffs, reading at most `budget` bytes. Returns whether all
    /// changes were appended.
    pub(super) fn render(&self, patch: &mut BoundedText, budget: usize) -> bool {
        for name in &self.deleted {
            patch.push(&format!(
                "diff --git {0} {1}\ndeleted file (it was untracked)\n",
                with_prefix("a/", name),
                with_prefix("b/", name)
            ));
        }
        let mut remaining = budget;
        for (opened, file) in self.changed.iter().enumerate() {
            if opened >= OPENED_MAX || remaining == 0 {
                return false;
            }
            let text = file.render();
            remaining = remaining.saturating_sub(text.len());
            patch.push(&text);
        }
        true
    }

    /// Calls `add` with each file's name and number of new lines, reading at most `budget` bytes.
    /// Returns whether the lines of all files were counted.
    pub(super) fn count(&self, budget: usize, mut add: impl FnMut(String, u64)) -> bool {
        let mut remaining = budget;
        let mut complete = true;
        for name in &self.deleted {
            add(name.clone(), 0);
        }
        for (opened, file) in self.changed.iter().enumerate() {
            let mut lines = 0;
            if opened >= OPENED_MAX || remaining == 0 {
                complete = false;
            } else if let (false, FileContent::Text(text)) = (file.existed, file.content()) {
                // Skip a file that existed at the start: its old content was not stored, so the
                // number of new lines is unknown.
                remaining = remaining.saturating_sub(text.len());
                lines = text.lines().count() as u64;
            }
            add(file.name.clone(), lines);
        }
        complete
    }

    /// Returns how many files existed at the start and have changed or are gone. Their earlier content
    /// was not stored, so their lines are not counted.
    pub(super) fn uncounted(&self) -> u32 {
        let changed = self.changed.iter().filter(|file| file.existed);
        (changed.count() + self.deleted.len()) as u32
    }
}

enum FileContent {
    Text(String),
    Binary,
    Huge,
    Unreadable(String),
    NestedRepository,
}

impl ChangedFile {
    fn content(&self) -> FileContent {
        if self.data.is_dir() {
            return FileContent::NestedRepository;
        }
        if self.data.len() > SHOWN_MAX {
            return FileContent::Huge;
        }
        let bytes = if self.data.is_symlink() {
            fs::read_link(&self.path).map(|target| target.into_os_string().as_bytes().to_vec())
        } else {
            // The file may have been replaced with a link or a FIFO since it was listed.
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            let mut bytes = Vec::new();
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(flags)
                .open(&self.path);
            file.and_then(|file| file.take(SHOWN_MAX).read_to_end(&mut bytes))
                .map(|_| bytes)
        };
        match bytes {
            Err(error) => FileContent::Unreadable(error.to_string()),
            // Git recognizes binary files in the same way.
            Ok(bytes) if bytes.iter().take(8000).any(|byte| *byte == 0) => FileContent::Binary,
            Ok(bytes) => FileContent::Text(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    fn render(&self) -> String {
        let (a, b) = (with_prefix("a/", &self.name), with_prefix("b/", &self.name));
        let mode = match (self.data.is_symlink(), self.data.mode() & 0o111) {
            (true, _) => "120000",
            (false, 0) => "100644",
            (false, _) => "100755",
        };
        let mut text = format!("diff --git {a} {b}\nnew file mode {mode}\n");
        if self.existed {
            text.push_str("(was untracked at the start and has changed since; shown in full)\n");
        }
        let done = match self.content() {
            FileContent::Binary => writeln!(text, "Binary files /dev/null and {b} differ"),
            FileContent::Huge => writeln!(text, "({} bytes; too large to show)", self.data.len()),
            FileContent::Unreadable(why) => writeln!(text, "(cannot be read: {why})"),
            FileContent::NestedRepository => writeln!(text, "(a nested git repository)"),
            FileContent::Text(content) if content.is_empty() => Ok(()),
            FileContent::Text(content) => write_hunk(&mut text, &b, &content),
        };
        debug_assert!(done.is_ok(), "writing to a String does not fail");
        text
    }
}

fn write_hunk(text: &mut String, b: &str, content: &str) -> std::fmt::Result {
    let count = content.split_inclusive('\n').count();
    let range = if count == 1 {
        "+1".to_owned()
    } else {
        format!("+1,{count}")
    };
    // As in git, a tab follows a name that contains a space.
    let tab = if b.contains(' ') { "\t" } else { "" };
    write!(text, "--- /dev/null\n+++ {b}{tab}\n@@ -0,0 {range} @@\n")?;
    for line in content.split_inclusive('\n') {
        write!(text, "+{line}")?;
    }
    if !content.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
    Ok(())
}

/// Adds a prefix, such as one side of a diff (`a/` or `b/`), to a name that may be quoted.
pub(super) fn with_prefix(prefix: &str, name: &str) -> String {
    match name.strip_prefix('"') {
        Some(rest) => format!("\"{prefix}{rest}"),
        None => format!("{prefix}{name}"),
    }
}

/// Lists untracked files that are not ignored. Also returns whether there are more than listed.
fn list_untracked(overlay: &IndexOverlay) -> Result<(Vec<Vec<u8>>, bool), String> {
    let output = overlay.git_ok(
        &["ls-files", "-z", "--others", "--exclude-standard"],
        NAMES_MAX,
    )?;
    // Every name ends with a NUL, so the last part is empty or a truncated name.
    let mut paths: Vec<Vec<u8>> = output
        .stdout
        .split(|byte| *byte == 0)
        .map(<[u8]>::to_vec)
        .collect();
    paths.pop();
    paths.retain(|path| !is_ralph_file(path));
    let more = output.truncated || paths.len() > FILES_MAX;
    paths.truncate(FILES_MAX);
    Ok((paths, more))
}

/// Returns whether a path is in `.ralph`, except for the settings and the template, which are the
/// user's.
fn is_ralph_file(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    if !parts.any(|part| part == b".ralph") {
        return false;
    }
    let name = parts.next().unwrap_or_default();
    let is_own = name.starts_with(b"settings.") || name == b"template.md";
    !is_own || parts.next().is_some()
}

/// Quotes a path as git does: an unusual name is put in quotes, with escapes. Different paths
/// always have different quoted names.
pub(super) fn quote(path: &[u8]) -> String {
    let special = |byte: &u8| *byte < 0x20 || matches!(*byte, b'"' | b'\\' | 0x7f);
    if let Ok(plain) = str::from_utf8(path)
        && !path.iter().any(special)
    {
        return plain.to_owned();
    }
    let mut name = String::from("\"");
    for chunk in path.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' | '\\' => name.extend(['\\', char]),
                '\n' => name.push_str("\\n"),
                '\t' => name.push_str("\\t"),
                '\0'..' ' | '\x7f' => name.push_str(&octal(char as u8)),
                _ => name.push(char),
            }
        }
        for byte in chunk.invalid() {
            name.push_str(&octal(*byte));
        }
    }
    name.push('"');
    name
}

fn octal(byte: u8) -> String {
    format!("\\{byte:03o}")
}
