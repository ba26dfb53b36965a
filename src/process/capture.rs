//! An iteration's output on disk: its head and its tail in constant memory, and what was dropped.

use crate::engine::format;
use crate::os::regular;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A log that never grows beyond its cap.
pub struct Capture {
    /// Made with the first byte: many agents and checks say nothing.
    log: Option<File>,
    path: PathBuf,
    /// Bytes that may go into the head, and as many into the tail.
    half: u64,
    total: u64,
    /// What comes after the head goes round and round in here.
    ring: Option<File>,
    last: Last,
}

impl Capture {
    /// Opens a log for at most `cap` bytes; the last `remembered` bytes are kept in memory as well.
    pub fn new(path: &Path, cap: u64, remembered: usize) -> Self {
        let last = Last {
            bytes: Vec::new(),
            max: remembered,
        };
        Self {
            log: None,
            path: path.to_owned(),
            half: (cap / 2).max(1),
            total: 0,
            ring: None,
            last,
        }
    }

    /// Takes the next bytes.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.last.push(bytes);
        if self.total < self.half {
            let room = (self.half - self.total).min(bytes.len() as u64) as usize;
            let (head, rest) = bytes.split_at(room);
            let log = match &mut self.log {
                Some(log) => log,
                none => none.insert(private_file(&self.path)?),
            };
            log.write_all(head)?;
            self.total += room as u64;
            bytes = rest;
        }
        while !bytes.is_empty() {
            let at = (self.total - self.half) % self.half;
            let room = (self.half - at).min(bytes.len() as u64) as usize;
            let ring = match &mut self.ring {
                Some(ring) => ring,
                none => none.insert(private_file(&ring_path(&self.path))?),
            };
            if at == 0 {
                ring.seek(SeekFrom::Start(0))?;
            }
            ring.write_all(&bytes[..room])?;
            self.total += room as u64;
            bytes = &bytes[room..];
        }
        Ok(())
    }

    /// Bytes taken so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The last bytes, as text; a character cut in two at the start is left out.
    pub fn last_text(&self) -> String {
        let bytes = self.last.get();
        let cut = bytes
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80)
            .count();
        String::from_utf8_lossy(&bytes[cut..]).into_owned()
    }

    /// Puts the tail behind the head, and says between them what was dropped.
    pub fn finish(mut self) -> io::Result<()> {
        let (Some(log), Some(ring)) = (&mut self.log, &mut self.ring) else {
            return Ok(());
        };
        let beyond = self.total - self.half;
        let start = if beyond > self.half {
            beyond % self.half
        } else {
            0
        };
        let dropped = beyond.saturating_sub(self.half);
        if dropped > 0 {
            let (gone, kept) = (format::bytes(dropped), format::bytes(self.half));
            write!(
                log,
                "\n[ralph: {gone} of output dropped here; the log keeps the first and last {kept}]\n"
            )?;
        }
        ring.seek(SeekFrom::Start(start))?;
        io::copy(ring, log)?;
        ring.seek(SeekFrom::Start(0))?;
        io::copy(&mut ring.take(start), log)?;
        fs::remove_file(ring_path(&self.path))
    }
}

fn ring_path(log: &Path) -> PathBuf {
    log.with_extension("tail")
}

/// A file that only its owner may read: agents print secrets.
pub fn private_file(path: &Path) -> io::Result<File> {
    let file = regular::create(path)?;
    file.set_len(0)?;
    Ok(file)
}

/// The last bytes of a stream, moved only when twice as much has come.
struct Last {
    bytes: Vec<u8>,
    max: usize,
}

impl Last {
    fn push(&mut self, bytes: &[u8]) {
        if bytes.len() >= self.max {
            self.bytes.clear();
        } else if self.bytes.len() + bytes.len() > 2 * self.max {
            self.bytes.drain(..self.bytes.len() - self.max);
        }
        self.bytes
            .extend_from_slice(&bytes[bytes.len().saturating_sub(self.max)..]);
    }

    fn get(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(self.max)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(cap: u64, writes: &[&[u8]]) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let mut capture = Capture::new(&path, cap, 4);
        for bytes in writes {
            capture.write(bytes).unwrap();
        }
        let last = capture.last_text();
        capture.finish().unwrap();
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "the ring is gone"
        );
        (fs::read_to_string(&path).unwrap(), last)
    }

    #[test]
    fn a_short_output_is_kept_whole() {
        assert_eq!(
            captured(10, &[b"abc", b"de"]),
            ("abcde".into(), "bcde".into())
        );
        assert_eq!(captured(10, &[b"abcdefgh"]).0, "abcdefgh");
        assert_eq!(captured(10, &[b"abcde", b"fghij"]).0, "abcdefghij");
    }

    #[test]
    fn a_long_output_keeps_head_and_tail_and_says_what_was_dropped() {
        let said =
            "\n[ralph: 3 bytes of output dropped here; the log keeps the first and last 5 bytes]\n";
        for writes in [
            &[&b"abcdefghijklm"[..]][..],
            &[b"abc", b"defg", b"hijkl", b"m"],
            &[b"abcdefghijkl", b"m"],
        ] {
            assert_eq!(
                captured(10, writes),
                (format!("abcde{said}ijklm"), "jklm".into())
            );
        }
    }

    #[test]
    fn any_split_of_the_same_bytes_gives_the_same_log() {
        let text: Vec<u8> = (0..100).map(|n| b'a' + n % 26).collect();
        let whole = captured(30, &[&text]);
        for size in 1..60 {
            let writes: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(captured(30, &writes), whole, "{size}");
        }
    }

    #[test]
    fn a_character_cut_in_two_is_left_out_of_the_last_text() {
        assert_eq!(captured(100, &["aé日".as_bytes()]).1, "日");
    }
}
