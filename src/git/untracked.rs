//! Which files git does not track, which of them are news, and how those look in a diff.

use super::overlay::Overlay;
use super::prefix::Head;
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

/// More untracked files than this are neither remembered nor shown.
const FILES_MAX: usize = 20_000;
/// So many bytes of their names are read.
const NAMES_MAX: usize = 4 << 20;
/// A larger file is only named.
const SHOWN_MAX: u64 = 1 << 20;
/// So many files are opened for one diff.
const OPENED_MAX: usize = 2_000;
/// So many files that became tracked without a change are left out of a diff: each is an argument.
const SETTLED_MAX: usize = 1_000;

/// The untracked files at the loop's start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Untracked {
    /// How each looked, by its quoted name.
    Known(BTreeMap<String, Seen>),
    /// Too many to remember: so many were counted.
    TooMany(usize),
}

/// Size, and seconds and nanoseconds of the last change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen(u64, i64, i64);

impl From<&Metadata> for Seen {
    fn from(data: &Metadata) -> Self {
        // A directory here is a repository inside this one; what happens in it is its own affair.
        if data.is_dir() {
            Self(0, 0, 0)
        } else {
            Self(data.len(), data.mtime(), data.mtime_nsec())
        }
    }
}

/// What happened to untracked files since the base.
#[derive(Default)]
pub(crate) struct Since {
    news: Vec<News>,
    gone: Vec<String>,
    /// Untracked at the start, unchanged, and no longer untracked.
    pub(crate) settled: Vec<String>,
    /// What could not be seen.
    pub(crate) note: Option<String>,
}

struct News {
    name: String,
    path: PathBuf,
    data: Metadata,
    /// Whether it was there, with other content.
    old: bool,
}

impl Untracked {
    /// Remembers what is untracked now.
    pub(crate) fn take(overlay: &Overlay) -> Result<Self, String> {
        let (paths, more) = list(overlay)?;
        if more {
            return Ok(Self::TooMany(paths.len()));
        }
        let seen = paths.iter().filter_map(|path| {
            let data = fs::symlink_metadata(overlay.top().join(OsStr::from_bytes(path))).ok()?;
            Some((quote(path), Seen::from(&data)))
        });
        Ok(Self::Known(seen.collect()))
    }

    /// Compares what is untracked now with what was.
    pub(crate) fn since(&self, overlay: &Overlay) -> Result<Since, String> {
        let known = match self {
            Self::Known(known) => known,
            Self::TooMany(count) => {
                let note = format!(
                    "untracked files are not shown: there were more than {count} at the start"
                );
                return Ok(Since {
                    note: Some(note),
                    ..Since::default()
                });
            }
        };
        let (paths, more) = list(overlay)?;
        let mut since = Since::default();
        if more {
            since.note = Some(format!(
                "only the first {} untracked files were looked at",
                paths.len()
            ));
        }
        let mut left: BTreeMap<&str, Seen> = known
            .iter()
            .map(|(name, seen)| (name.as_str(), *seen))
            .collect();
        for path in &paths {
            let name = quote(path);
            let before = left.remove(name.as_str());
            let path = overlay.top().join(OsStr::from_bytes(path));
            // A file that vanished meanwhile is no news.
            let Ok(data) = fs::symlink_metadata(&path) else {
                continue;
            };
            if before != Some(Seen::from(&data)) {
                since.news.push(News {
                    name,
                    path,
                    data,
                    old: before.is_some(),
                });
            }
        }
        if !more {
            since.sort_out(left, overlay.top());
        }
        Ok(since)
    }
}

impl Since {
    /// Tells what became of files that are not untracked any more: deleted, or tracked as they were.
    fn sort_out(&mut self, left: BTreeMap<&str, Seen>, top: &Path) {
        // A quoted name is not a path; such a file is too rare to be worth turning back into one.
        for (name, before) in left.into_iter().filter(|(name, _)| !name.starts_with('"')) {
            match fs::symlink_metadata(top.join(name)) {
                Err(_) => self.gone.push(name.to_owned()),
                Ok(data) if before == Seen::from(&data) && self.settled.len() < SETTLED_MAX => {
                    self.settled.push(name.to_owned());
                }
                Ok(_) => {}
            }
        }
    }

    /// Writes the news as diffs, reading `budget` bytes at most. Whether that was all.
    pub(crate) fn render(&self, head: &mut Head, budget: usize) -> bool {
        for name in &self.gone {
            head.push(&format!(
                "diff --git {0} {1}\ndeleted file (it was untracked)\n",
                side('a', name),
                side('b', name)
            ));
        }
        let mut left = budget;
        for (opened, news) in self.news.iter().enumerate() {
            if opened >= OPENED_MAX || left == 0 {
                return false;
            }
            let text = news.render();
            left = left.saturating_sub(text.len());
            head.push(&text);
        }
        true
    }

    /// Tells each file's name and its new lines, reading `budget` bytes at most. Whether that was all.
    pub(crate) fn count(&self, budget: usize, mut tell: impl FnMut(String, u64)) -> bool {
        let mut left = budget;
        let mut all = true;
        for name in &self.gone {
            tell(name.clone(), 0);
        }
        for (opened, news) in self.news.iter().enumerate() {
            let mut lines = 0;
            if opened >= OPENED_MAX || left == 0 {
                all = false;
            } else if let (false, Content::Text(text)) = (news.old, news.content()) {
                // How many lines of a changed one are new, nobody knows: it was never stored.
                left = left.saturating_sub(text.len());
                lines = text.lines().count() as u64;
            }
            tell(news.name.clone(), lines);
        }
        all
    }
}

enum Content {
    Text(String),
    Binary,
    Huge,
    Unreadable(String),
    Repository,
}

impl News {
    fn content(&self) -> Content {
        if self.data.is_dir() {
            return Content::Repository;
        }
        if self.data.len() > SHOWN_MAX {
            return Content::Huge;
        }
        let bytes = if self.data.is_symlink() {
            fs::read_link(&self.path).map(|target| target.into_os_string().as_bytes().to_vec())
        } else {
            // The file may have been swapped for a link or a pipe since it was listed.
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
            Err(error) => Content::Unreadable(error.to_string()),
            // Git's own rule for what is binary.
            Ok(bytes) if bytes.iter().take(8000).any(|byte| *byte == 0) => Content::Binary,
            Ok(bytes) => Content::Text(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    fn render(&self) -> String {
        let (a, b) = (side('a', &self.name), side('b', &self.name));
        let mode = match (self.data.is_symlink(), self.data.mode() & 0o111) {
            (true, _) => "120000",
            (false, 0) => "100644",
            (false, _) => "100755",
        };
        let mut text = format!("diff --git {a} {b}\nnew file mode {mode}\n");
        if self.old {
            text.push_str("(untracked since before the start and changed since; shown whole)\n");
        }
        let done = match self.content() {
            Content::Binary => writeln!(text, "Binary files /dev/null and {b} differ"),
            Content::Huge => writeln!(text, "({} bytes; too large to show)", self.data.len()),
            Content::Unreadable(why) => writeln!(text, "(cannot be read: {why})"),
            Content::Repository => writeln!(text, "(a git repository of its own)"),
            Content::Text(content) if content.is_empty() => Ok(()),
            Content::Text(content) => hunk(&mut text, &b, &content),
        };
        debug_assert!(done.is_ok(), "a String takes every write");
        text
    }
}

fn hunk(text: &mut String, b: &str, content: &str) -> std::fmt::Result {
    let count = content.split_inclusive('\n').count();
    let range = if count == 1 {
        "+1".to_owned()
    } else {
        format!("+1,{count}")
    };
    // As git does, a tab ends a name with a space in it.
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

/// A quoted name with the prefix of one side of a diff.
fn side(prefix: char, name: &str) -> String {
    match name.strip_prefix('"') {
        Some(rest) => format!("\"{prefix}/{rest}"),
        None => format!("{prefix}/{name}"),
    }
}

/// The untracked files that are not ignored, and whether there are more.
fn list(overlay: &Overlay) -> Result<(Vec<Vec<u8>>, bool), String> {
    let output = overlay.git_ok(
        &["ls-files", "-z", "--others", "--exclude-standard"],
        NAMES_MAX,
    )?;
    // The last name has a NUL after it too; a name cut in the middle has none.
    let mut paths: Vec<Vec<u8>> = output
        .stdout
        .split(|byte| *byte == 0)
        .map(<[u8]>::to_vec)
        .collect();
    paths.pop();
    let more = output.cut || paths.len() > FILES_MAX;
    paths.truncate(FILES_MAX);
    Ok((paths, more))
}

/// A name as git prints it: odd ones in quotes, with escapes. No two paths give the same name.
pub(crate) fn quote(path: &[u8]) -> String {
    let odd = |byte: &u8| *byte < 0x20 || matches!(*byte, b'"' | b'\\' | 0x7f);
    if let Ok(plain) = str::from_utf8(path)
        && !path.iter().any(odd)
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
