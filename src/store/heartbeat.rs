//! How far a loop's clock had come: written now and then, so that a crash gives little time back.
//!
//! It is no event: nothing happened. What a runner lived through after its last line, the next one counts.

use super::LoopDir;
use super::dir::append_file;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A loop's clock on disk.
pub struct Pulse {
    file: File,
}

impl Pulse {
    /// Finds out how far the clock had come, and goes on from there.
    pub fn open(dir: &LoopDir) -> io::Result<(u64, Self)> {
        let reached = fs::read_to_string(path(dir))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        drop(append_file(&path(dir))?);
        let file = File::options().write(true).open(path(dir))?;
        Ok((reached.unwrap_or(0), Self { file }))
    }

    /// Writes how far it has come.
    pub fn beat(&self, clock_ms: u64) -> io::Result<()> {
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
    fn the_clock_goes_on_where_it_had_come_to() {
        let place = tempfile::tempdir().unwrap();
        let dir = LoopDir::at(place.path().join("a"));
        dir.create().unwrap();
        let (reached, pulse) = Pulse::open(&dir).unwrap();
        assert_eq!(reached, 0);
        pulse.beat(1234).unwrap();
        pulse.beat(99).unwrap();
        assert_eq!(Pulse::open(&dir).unwrap().0, 99);
        fs::write(path(&dir), "garbage").unwrap();
        assert_eq!(Pulse::open(&dir).unwrap().0, 0);
    }
}
