//! Saves a loop's clock from time to time, so that a crash loses little of the elapsed time.
//!
//! The heartbeat is not an event, because it does not change the loop. After a crash, the next
//! runner uses it to count the time since the last journal line.

use super::{LoopDir, aside};
use crate::os::regular_file;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The maximum length of the file, in bytes.
const SIZE_MAX: u64 = 64;

/// The open file that contains a loop's clock.
pub(crate) struct Heartbeat {
    file: File,
    path: PathBuf,
}

impl Heartbeat {
    /// Opens the heartbeat file. Also returns the saved clock in milliseconds; 0 if none was saved.
    pub(crate) fn open(dir: &LoopDir) -> io::Result<(u64, Self)> {
        let path = path(dir);
        let file = match regular_file::create(&path) {
            Err(error) if regular_file::is_not_regular(&error) => {
                aside::move_away(&path)?;
                regular_file::create(&path)?
            }
            file => file?,
        };
        let mut text = String::new();
        let read = (&file).take(SIZE_MAX).read_to_string(&mut text);
        let clock_ms = read.ok().and_then(|_| text.trim().parse().ok());
        Ok((clock_ms.unwrap_or(0), Self { file, path }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Saves the clock, in milliseconds.
    pub(crate) fn write(&self, clock_ms: u64) -> io::Result<()> {
        self.file
            .write_all_at(format!("{clock_ms:020}\n").as_bytes(), 0)
    }
}

fn path(dir: &LoopDir) -> PathBuf {
    dir.path().join("pulse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_saved_clock_is_read_back() {
        let temp = tempfile::tempdir().unwrap();
        let dir = LoopDir::new(temp.path().join("a"));
        dir.create().unwrap();
        let (clock_ms, heartbeat) = Heartbeat::open(&dir).unwrap();
        assert_eq!(clock_ms, 0);
        heartbeat.write(1234).unwrap();
        heartbeat.write(99).unwrap();
        assert_eq!(Heartbeat::open(&dir).unwrap().0, 99);
        std::fs::write(path(&dir), "garbage").unwrap();
        assert_eq!(Heartbeat::open(&dir).unwrap().0, 0);
    }
}
