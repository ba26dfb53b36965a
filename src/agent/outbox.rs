//! The agent's outbox: messages for the bus, one file each, in a subdirectory of the task
//! directory.
//!
//! An agent inside a loop may not write to the bus itself. It writes files here, by hand or with
//! `ralph bus post`, and the runner posts them as untrusted claims.

use crate::engine::plain_text::plain;
use crate::os::regular_file;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// Name of the outbox in the task directory.
const DIR_NAME: &str = "bus";
/// Suffix of files that were renamed into place and are therefore complete.
const COMPLETE_SUFFIX: &str = ".letter";
/// Only the first `MESSAGE_MAX` bytes of a file are read.
const MESSAGE_MAX: u64 = 64 << 10;
/// Maximum number of messages per read. A flood of messages must not starve the runner.
const BATCH_MAX: usize = 64;
/// Time that a file must be unchanged to count as complete while the agent runs.
const SETTLE_TIME: Duration = Duration::from_millis(250);
/// Maximum number of directory entries that are sorted to find the oldest messages.
const NAMES_MAX: usize = 4096;

/// A message that is waiting to be posted to the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutboxMessage {
    name: CString,
    /// Identifies the message among all of the agent's messages. The key stays the same until the
    /// file is removed, so a message that is read twice is posted once.
    pub(crate) key: String,
    /// The unvalidated message type; empty if the file has none.
    pub(crate) kind: String,
    /// The text, without control characters except line ends.
    pub(crate) text: String,
}

#[derive(Serialize, Deserialize)]
struct OutboxContent {
    #[serde(rename = "type", default)]
    kind: String,
    text: String,
}

/// The contents of an outbox. The directory stays open, so replacing it with a symbolic link has no
/// effect.
pub(crate) struct Outbox {
    dir: OwnedFd,
    /// The oldest messages, at most [`BATCH_MAX`] of them.
    pub(crate) messages: Vec<OutboxMessage>,
    /// Time to wait before the next read; `None` if no messages are left.
    pub(crate) retry_after: Option<Duration>,
}

/// Returns the path of the outbox.
pub(crate) fn dir(task_dir: &Path) -> PathBuf {
    task_dir.join(DIR_NAME)
}

/// Reads the outbox; `None` if it does not exist. If `agent_is_running`, skips files that the agent
/// may still be writing.
pub(crate) fn read(task_dir: &Path, agent_is_running: bool) -> Option<Outbox> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(CWD, dir(task_dir), flags, Mode::empty()).ok()?;
    let mut names: Vec<CString> = Dir::read_from(&dir)
        .ok()?
        .flatten()
        .take(NAMES_MAX)
        .map(|entry| entry.file_name().to_owned())
        .collect();
    // Names that begin with a dot are drafts.
    names.retain(|name| !name.as_bytes().starts_with(b"."));
    names.sort_unstable();
    let found = names.len();
    if agent_is_running {
        names.retain(|name| is_complete(&dir, name));
    }
    let is_any_incomplete = names.len() < found;
    // Entries that cannot be read must not hide the messages after them.
    let mut messages = names
        .into_iter()
        .filter_map(|name| read_message(&dir, name));
    let batch: Vec<OutboxMessage> = messages.by_ref().take(BATCH_MAX).collect();
    let retry_after = if messages.next().is_some() {
        Some(Duration::ZERO)
    } else {
        is_any_incomplete.then_some(SETTLE_TIME)
    };
    drop(messages);
    let messages = batch;
    Some(Outbox {
        dir,
        messages,
        retry_after,
    })
}

fn is_complete(dir: &OwnedFd, name: &CStr) -> bool {
    if name.to_bytes().ends_with(COMPLETE_SUFFIX.as_bytes()) {
        return true;
    }
    let Ok(data) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return true;
    };
    let changed = Duration::new(data.st_mtime.unsigned_abs(), data.st_mtime_nsec as u32);
    // A modification time in the future is wrong and must not delay the message.
    since_epoch()
        .checked_sub(changed)
        .is_none_or(|age| age >= SETTLE_TIME)
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Reads the message in the file `name`. Returns `None` if it is not a regular file, and removes
/// it.
fn read_message(dir: &OwnedFd, name: CString) -> Option<OutboxMessage> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let read = |fd: OwnedFd| {
        let data = fstat(&fd)?;
        let file = regular_file::require_regular(File::from(fd))?;
        let mut bytes = Vec::new();
        file.take(MESSAGE_MAX).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>((
            bytes,
            format!("{}.{}.{}", data.st_ino, data.st_mtime, data.st_mtime_nsec),
        ))
    };
    let Some((bytes, version)) = openat(dir, &name, flags, Mode::empty())
        .ok()
        .and_then(|fd| read(fd).ok())
    else {
        let _ = unlinkat(dir, &name, AtFlags::empty());
        return None;
    };
    let content = serde_json::from_slice(&bytes).unwrap_or_else(|_| OutboxContent {
        kind: String::new(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    });
    let lines: Vec<_> = content.text.lines().map(plain).collect();
    let key = format!("{}/{version}", name.to_string_lossy());
    Some(OutboxMessage {
        name,
        key,
        kind: content.kind,
        text: lines.join("\n").trim().to_owned(),
    })
}

impl Outbox {
    /// Removes a message that has been posted.
    pub(crate) fn remove(&self, message: &OutboxMessage) -> Result<(), String> {
        let name: &CStr = &message.name;
        match unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(format!(
                "cannot remove {DIR_NAME}/{}: {error}",
                name.to_string_lossy()
            )),
        }
    }
}

/// Adds a message for the runner to post, as `ralph bus post` does inside a loop.
pub(crate) fn enqueue(task_dir: &Path, kind: &str, text: &str) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let dir = dir(task_dir);
    std::fs::create_dir_all(&dir)?;
    let (us, pid) = (since_epoch().as_micros(), std::process::id());
    let name = format!(
        "{us:017}-{pid}-{}{COMPLETE_SUFFIX}",
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    // Write under a draft name first, because the runner may read the directory at any moment.
    let draft = dir.join(format!(".{name}"));
    let mut file = regular_file::create(&draft)?;
    file.write_all(&serde_json::to_vec(&OutboxContent {
        kind: kind.to_owned(),
        text: text.to_owned(),
    })?)?;
    file.sync_data()?;
    std::fs::rename(&draft, dir.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Instant;

    fn texts(task: &Path) -> Vec<(String, String)> {
        read(task, false).map_or(vec![], |outbox| {
            outbox
                .messages
                .into_iter()
                .map(|message| (message.kind, message.text))
                .collect()
        })
    }

    #[test]
    fn messages_are_read_in_order_and_removed_once() {
        let temp = tempfile::tempdir().unwrap();
        let task = temp.path();
        assert!(read(task, true).is_none());
        for number in 0..70 {
            enqueue(task, "note", &format!("message {number}")).unwrap();
        }
        let outbox = read(task, true).unwrap();
        assert_eq!(
            (outbox.retry_after, outbox.messages.len()),
            (Some(Duration::ZERO), BATCH_MAX)
        );
        assert_eq!(outbox.messages[0].text, "message 0");
        for message in &outbox.messages {
            outbox.remove(message).unwrap();
            outbox.remove(message).unwrap();
        }
        assert_eq!(texts(task).len(), 6);
    }

    #[test]
    fn a_message_written_by_hand_may_be_plain_text_and_loses_its_control_characters() {
        let temp = tempfile::tempdir().unwrap();
        let dir = super::dir(temp.path());
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a"), "plain \x1b[31mwords\x1b[0m\r\nand more\n").unwrap();
        fs::write(
            dir.join("b"),
            r#"{"text": "typed", "type": "x", "loop": "forged"}"#,
        )
        .unwrap();
        fs::write(dir.join(".draft"), "not yet").unwrap();
        fs::write(dir.join("c"), b"\xff\xfe").unwrap();
        let texts = texts(temp.path());
        assert_eq!(texts[0], (String::new(), "plain words\nand more".into()));
        assert_eq!(texts[1], ("x".into(), "typed".into()));
        assert_eq!(texts[2].1, "\u{fffd}\u{fffd}");
        assert_eq!(texts.len(), 3);
    }

    #[test]
    fn a_file_that_is_being_written_is_not_read_yet() {
        let temp = tempfile::tempdir().unwrap();
        let path = super::dir(temp.path()).join("slow");
        fs::create_dir(super::dir(temp.path())).unwrap();
        let mut file = fs::File::create(&path).unwrap();
        enqueue(temp.path(), "note", "at once").unwrap();
        let read_now = |running| read(temp.path(), running).unwrap();
        let outbox = loop {
            file.set_modified(SystemTime::now()).unwrap();
            let start = Instant::now();
            let outbox = read_now(true);
            // If reading took as long as settling, the result proves nothing.
            if start.elapsed() < SETTLE_TIME {
                break outbox;
            }
        };
        assert_eq!(
            (outbox.retry_after, outbox.messages.len()),
            (Some(SETTLE_TIME), 1)
        );
        outbox.remove(&outbox.messages[0]).unwrap();
        file.write_all(b"words").unwrap();
        assert_eq!(
            read_now(false).messages[0].text,
            "words",
            "an agent that has exited writes nothing"
        );
        file.set_modified(SystemTime::now() - SETTLE_TIME).unwrap();
        assert_eq!(read_now(true).messages[0].text, "words");
        file.set_modified(SystemTime::now() + Duration::from_secs(3600))
            .unwrap();
        assert_eq!(read_now(true).retry_after, None);
    }

    #[test]
    fn only_regular_files_are_read_and_no_link_is_followed() {
        let temp = tempfile::tempdir().unwrap();
        let (task, outside) = (temp.path().join("task"), temp.path().join("outside"));
        fs::create_dir(&task).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(&outside, super::dir(&task)).unwrap();
        assert!(
            read(&task, false).is_none(),
            "the directory itself is a symbolic link"
        );
        fs::remove_file(super::dir(&task)).unwrap();
        fs::create_dir(super::dir(&task)).unwrap();
        std::os::unix::fs::symlink(outside.join("secret"), super::dir(&task).join("link")).unwrap();
        fs::create_dir(super::dir(&task).join("dir")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(super::dir(&task).join("pipe"))
                .status()
                .unwrap()
                .success()
        );
        fs::write(super::dir(&task).join("long"), "x".repeat(100_000)).unwrap();
        let texts = texts(&task);
        assert_eq!(
            texts.iter().map(|(_, text)| text.len()).collect::<Vec<_>>(),
            [MESSAGE_MAX as usize]
        );
        assert_eq!(
            fs::read_to_string(outside.join("secret")).unwrap(),
            "secret"
        );
    }
}
