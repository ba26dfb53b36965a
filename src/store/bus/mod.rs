//! What loops and people tell one another: lines at the end of a file that many write at once.
//!
//! Each loop has a bus, and so has each project. Nobody rewrites a line. A file that has grown long is put aside,
//! and the one that was put aside before it goes.

mod read;

use super::dir::{keep_from_git, make_dir, sync_dir};
use super::error::Doing;
use super::lock::is_at;
use super::{LoopDir, Result, rfc3339};
pub use read::Heard;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VERSION: u64 = 1;
/// A file of this size is put aside.
const LONG: u64 = 8 << 20;
/// A message is looked for in so many bytes before it is written a second time.
const RECENT: u64 = 256 << 10;
/// The longest text of a message, in characters.
pub const TEXT_MAX: usize = 16_000;
/// The longest type of a message, in characters.
const KIND_MAX: usize = 40;

/// A bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    path: PathBuf,
    whose: Whose,
}

/// What the first line of a bus says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Whose {
    Loop(String),
    Project(PathBuf),
}

#[derive(Serialize)]
struct FirstLine<'a> {
    ralph: &'static str,
    version: u64,
    of: &'a Whose,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// What tells it from every other.
    pub id: String,
    /// When it was posted, RFC 3339 in UTC.
    pub time: String,
    /// What kind of message it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The loop that it comes from; none if it comes from a person.
    #[serde(rename = "loop")]
    pub from: Option<String>,
    /// The iteration of that loop.
    pub iteration: Option<u32>,
    /// The words.
    pub text: String,
}

impl Post {
    /// A message of now. A text that is too long is cut.
    pub fn new(id: String, kind: &str, from: Option<(&str, u32)>, text: &str) -> Self {
        let mut words: String = text.chars().take(TEXT_MAX).collect();
        if words.len() < text.len() {
            words.push('…');
        }
        Self {
            id,
            time: rfc3339(jiff::Timestamp::now().as_millisecond()),
            kind: kind.to_owned(),
            from: from.map(|(name, _)| name.to_owned()),
            iteration: from.map(|(_, iteration)| iteration),
            text: words,
        }
    }

    /// Who says it: a loop in an iteration, or a person.
    pub fn sender(&self) -> String {
        match (&self.from, self.iteration) {
            (Some(name), Some(iteration)) => format!("{name}#{iteration}"),
            (Some(name), None) => name.clone(),
            (None, _) => "a person".into(),
        }
    }
}

/// The types by which a loop itself says how it left: from an agent they would be a lie.
pub const LEAVING: [&str; 6] = ["done", "failed", "blocked", "waiting", "stopped", "paused"];

/// The type that a word names: small letters, digits, `_` and `-`.
pub fn kind(word: &str) -> Option<String> {
    let word = word.trim().to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!word.is_empty() && word.len() <= KIND_MAX && word.chars().all(plain)).then_some(word)
}

/// A short name for something long: the same for the same words, today and by any later ralph (FNV-1a).
pub fn digest(words: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", words.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

impl Bus {
    /// The bus of a loop.
    pub fn of_loop(dir: &LoopDir) -> Self {
        Self {
            path: dir.path().join("bus.jsonl"),
            whose: Whose::Loop(dir.name().to_owned()),
        }
    }

    pub(super) fn of_project(projects: &Path, project: &Path) -> Self {
        let path = projects
            .join(digest(&project.to_string_lossy()))
            .join("bus.jsonl");
        Self {
            path,
            whose: Whose::Project(project.to_owned()),
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Posts these messages, but for those that are there already. They are durable afterwards. Others may be
    /// posting, too: so long they are waited for.
    pub fn post(&self, posts: &[Post], patience: Duration) -> Result<()> {
        // A loop's directory is not made anew: it may have been taken away.
        if let (Whose::Project(_), Some(dir)) = (&self.whose, self.path.parent()) {
            make_dir(dir).doing("create", dir)?;
            dir.parent().map(keep_from_git);
        }
        self.write(posts, Instant::now() + patience)
            .doing("write", &self.path)
    }

    fn write(&self, posts: &[Post], deadline: Instant) -> io::Result<()> {
        loop {
            let mut options = OpenOptions::new();
            let mut file = options
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)?;
            lock(&file, deadline)?;
            let length = file.metadata()?.len();
            if !is_at(&file, &self.path)? {
                // Another has put it aside between opening and locking.
                continue;
            }
            if length > LONG {
                fs::rename(&self.path, self.aside())?;
                continue;
            }
            let text = self.lines(posts, &mut file, length)?;
            let written = if text.is_empty() {
                0
            } else {
                write_once(&mut file, text.as_bytes())?
            };
            // Others may write while this is made durable.
            let _ = file.unlock();
            if written < text.len() {
                return Err(io::Error::from(ErrorKind::StorageFull));
            }
            file.sync_data()?;
            if let Some(dir) = self.path.parent().filter(|_| length == 0) {
                sync_dir(dir)?;
            }
            return Ok(());
        }
    }

    /// What is to be written at the end of a file of this length.
    fn lines(&self, posts: &[Post], file: &mut File, length: u64) -> io::Result<String> {
        let mut recent = Vec::new();
        file.seek(SeekFrom::Start(length.saturating_sub(RECENT)))?;
        file.read_to_end(&mut recent)?;
        let known = String::from_utf8_lossy(&recent);
        let mut text = String::new();
        for post in posts
            .iter()
            .filter(|post| !known.contains(&format!("\"id\":\"{}\"", post.id)))
        {
            text += &serde_json::to_string(post)?;
            text.push('\n');
        }
        if length == 0 {
            let first = FirstLine {
                ralph: "bus",
                version: VERSION,
                of: &self.whose,
            };
            text = format!("{}\n{text}", serde_json::to_string(&first)?);
        } else if recent.last() != Some(&b'\n') && !text.is_empty() {
            // What a crash or a full disk cut short must not swallow the next line, too.
            text.insert(0, '\n');
        }
        Ok(text)
    }

    /// Where a file goes that has grown long.
    fn aside(&self) -> PathBuf {
        self.path.with_file_name("bus.old.jsonl")
    }
}

/// A second write of what did not fit might land behind somebody else's line.
fn write_once(file: &mut File, text: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(text) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn lock(file: &File, deadline: Instant) -> io::Result<()> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "another process does not let go of it",
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
