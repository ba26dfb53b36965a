//! What an agent has to say on the bus: files in its task directory, one a message, read as untrusted claims.

use crate::engine::plain_text::plain;
use crate::os::regular;
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

/// The directory, in the task directory.
const BUS: &str = "bus";
/// How a letter's name ends that appeared all at once.
const WHOLE: &str = ".letter";
/// No more of a file is read.
const LETTER_MAX: u64 = 64 << 10;
/// So many are taken at once: whoever floods the bus must not keep the runner from its work.
const AT_ONCE: usize = 64;
/// A file that whoever lives may still be writing is left alone for so long after its last change.
const SETTLING: Duration = Duration::from_millis(250);
/// So many names are looked at to find the oldest.
const NAMES_MAX: usize = 4096;

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    name: CString,
    /// What tells it from every other of this agent, and stays the same until it is taken away.
    pub stamp: String,
    /// Its type, if it says; anything may stand here.
    pub kind: String,
    /// The words, without control characters but for line ends.
    pub text: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    #[serde(rename = "type", default)]
    kind: String,
    text: String,
}

/// The letters of a task directory, held open: no name in it can lead elsewhere.
pub struct Letters {
    dir: OwnedFd,
    /// The oldest ones.
    pub all: Vec<Letter>,
    /// When to look again, if others are left.
    pub again: Option<Duration>,
}

/// Where an agent's letters lie.
pub fn place(task_dir: &Path) -> PathBuf {
    task_dir.join(BUS)
}

/// Reads what is there; none if there is nothing. While the agent lives, it may be in the middle of a file.
pub fn read(task_dir: &Path, agent_lives: bool) -> Option<Letters> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(CWD, place(task_dir), flags, Mode::empty()).ok()?;
    let mut names: Vec<CString> = Dir::read_from(&dir)
        .ok()?
        .flatten()
        .take(NAMES_MAX)
        .map(|entry| entry.file_name().to_owned())
        .collect();
    // A name that begins with a dot is a draft.
    names.retain(|name| !name.as_bytes().starts_with(b"."));
    names.sort_unstable();
    let found = names.len();
    if agent_lives {
        names.retain(|name| is_settled(&dir, name));
    }
    let again = match names.len() {
        count if count > AT_ONCE => Some(Duration::ZERO),
        count => (count < found).then_some(SETTLING),
    };
    names.truncate(AT_ONCE);
    let all = names
        .into_iter()
        .filter_map(|name| open(&dir, name))
        .collect();
    Some(Letters { dir, all, again })
}

/// Whether nobody is writing it any more. What [`leave`] left was whole from the beginning.
fn is_settled(dir: &OwnedFd, name: &CStr) -> bool {
    if name.to_bytes().ends_with(WHOLE.as_bytes()) {
        return true;
    }
    let Ok(data) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return true;
    };
    let changed = Duration::new(data.st_mtime.unsigned_abs(), data.st_mtime_nsec as u32);
    // A time to come is somebody's mistake.
    since_1970()
        .checked_sub(changed)
        .is_none_or(|age| age >= SETTLING)
}

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// A letter; none if something lies there that is none.
fn open(dir: &OwnedFd, name: CString) -> Option<Letter> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let read = |fd: OwnedFd| {
        let data = fstat(&fd)?;
        let file = regular::is_regular(File::from(fd))?;
        let mut bytes = Vec::new();
        file.take(LETTER_MAX).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>((
            bytes,
            format!("{}.{}.{}", data.st_ino, data.st_mtime, data.st_mtime_nsec),
        ))
    };
    let Some((bytes, stamp)) = openat(dir, &name, flags, Mode::empty())
        .ok()
        .and_then(|fd| read(fd).ok())
    else {
        let _ = unlinkat(dir, &name, AtFlags::empty());
        return None;
    };
    let content = serde_json::from_slice(&bytes).unwrap_or_else(|_| Content {
        kind: String::new(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    });
    let lines: Vec<_> = content.text.lines().map(plain).collect();
    let stamp = format!("{}/{stamp}", name.to_string_lossy());
    Some(Letter {
        name,
        stamp,
        kind: content.kind,
        text: lines.join("\n").trim().to_owned(),
    })
}

impl Letters {
    /// Takes one away that has been posted.
    pub fn take_away(&self, letter: &Letter) -> Result<(), String> {
        let name: &CStr = &letter.name;
        match unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(format!(
                "cannot take {BUS}/{} away: {error}",
                name.to_string_lossy()
            )),
        }
    }
}

/// Leaves a message for the runner, as `ralph bus post` does from inside.
pub fn leave(task_dir: &Path, kind: &str, text: &str) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let dir = place(task_dir);
    std::fs::create_dir_all(&dir)?;
    let (us, pid) = (since_1970().as_micros(), std::process::id());
    let name = format!(
        "{us:017}-{pid}-{}{WHOLE}",
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    // Appears whole or not at all: the runner may look at any instant.
    let draft = dir.join(format!(".{name}"));
    let mut file = regular::create(&draft)?;
    file.write_all(&serde_json::to_vec(&Content {
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
        read(task, false).map_or(vec![], |letters| {
            letters
                .all
                .into_iter()
                .map(|one| (one.kind, one.text))
                .collect()
        })
    }

    #[test]
    fn letters_are_read_in_order_and_taken_away_once() {
        let place = tempfile::tempdir().unwrap();
        let task = place.path();
        assert!(read(task, true).is_none());
        for number in 0..70 {
            leave(task, "note", &format!("letter {number}")).unwrap();
        }
        let letters = read(task, true).unwrap();
        assert_eq!(
            (letters.again, letters.all.len()),
            (Some(Duration::ZERO), AT_ONCE)
        );
        assert_eq!(letters.all[0].text, "letter 0");
        for letter in &letters.all {
            letters.take_away(letter).unwrap();
            letters.take_away(letter).unwrap();
        }
        assert_eq!(texts(task).len(), 6);
    }

    #[test]
    fn a_letter_by_hand_may_be_plain_text_and_is_stripped_of_controls() {
        let place = tempfile::tempdir().unwrap();
        let dir = super::place(place.path());
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a"), "plain \x1b[31mwords\x1b[0m\r\nand more\n").unwrap();
        fs::write(
            dir.join("b"),
            r#"{"text": "typed", "type": "x", "loop": "forged"}"#,
        )
        .unwrap();
        fs::write(dir.join(".draft"), "not yet").unwrap();
        fs::write(dir.join("c"), b"\xff\xfe").unwrap();
        let said = texts(place.path());
        assert_eq!(said[0], (String::new(), "plain words\nand more".into()));
        assert_eq!(said[1], ("x".into(), "typed".into()));
        assert_eq!(said[2].1, "\u{fffd}\u{fffd}");
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn a_file_that_is_being_written_is_left_until_it_has_settled() {
        let place = tempfile::tempdir().unwrap();
        let path = super::place(place.path()).join("slow");
        fs::create_dir(super::place(place.path())).unwrap();
        let mut file = fs::File::create(&path).unwrap();
        leave(place.path(), "note", "at once").unwrap();
        let read_now = |lives| read(place.path(), lives).unwrap();
        let letters = loop {
            file.set_modified(SystemTime::now()).unwrap();
            let begun = Instant::now();
            let letters = read_now(true);
            // Where looking takes as long as settling, it says nothing.
            if begun.elapsed() < SETTLING {
                break letters;
            }
        };
        assert_eq!((letters.again, letters.all.len()), (Some(SETTLING), 1));
        letters.take_away(&letters.all[0]).unwrap();
        file.write_all(b"words").unwrap();
        assert_eq!(
            read_now(false).all[0].text,
            "words",
            "the dead write nothing"
        );
        file.set_modified(SystemTime::now() - SETTLING).unwrap();
        assert_eq!(read_now(true).all[0].text, "words");
        file.set_modified(SystemTime::now() + Duration::from_secs(3600))
            .unwrap();
        assert_eq!(read_now(true).again, None);
    }

    #[test]
    fn nothing_but_files_is_read_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let (task, outside) = (place.path().join("task"), place.path().join("outside"));
        fs::create_dir(&task).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(&outside, super::place(&task)).unwrap();
        assert!(
            read(&task, false).is_none(),
            "the directory itself is a link"
        );
        fs::remove_file(super::place(&task)).unwrap();
        fs::create_dir(super::place(&task)).unwrap();
        std::os::unix::fs::symlink(outside.join("secret"), super::place(&task).join("link"))
            .unwrap();
        fs::create_dir(super::place(&task).join("dir")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(super::place(&task).join("pipe"))
                .status()
                .unwrap()
                .success()
        );
        fs::write(super::place(&task).join("long"), "x".repeat(100_000)).unwrap();
        let said = texts(&task);
        assert_eq!(
            said.iter().map(|(_, text)| text.len()).collect::<Vec<_>>(),
            [LETTER_MAX as usize]
        );
        assert_eq!(
            fs::read_to_string(outside.join("secret")).unwrap(),
            "secret"
        );
    }
}
