//! Writes a log file with a size limit: it keeps the head and the tail of the output, in constant
//! memory.

use crate::engine::format;
use crate::os::regular_file;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A log that never grows beyond its limit, and keeps the last bytes of the output in memory.
pub(crate) struct OutputLog {
    /// The log file; `None` until the first byte is written, because many checks print nothing.
    log: Option<File>,
    path: PathBuf,
    /// Half the limit, in bytes: the maximum size of the head, and of the tail.
    half: u64,
    total: u64,
    /// A ring buffer on disk for everything after the head; `None` until it is needed.
    ring: Option<File>,
    tail: TailBuffer,
}

impl OutputLog {
    /// Opens a log at `path` for at most `cap` bytes. It also keeps the last `tail_size` bytes in
    /// memory.
    pub(crate) fn new(path: &Path, cap: u64, tail_size: usize) -> Self {
        let tail = TailBuffer {
            bytes: Vec::new(),
            max: tail_size,
        };
        Self {
            log: None,
            path: path.to_owned(),
            half: (cap / 2).max(1),
            total: 0,
            ring: None,
            tail,
        }
    }

    /// Appends output. Beyond the limit, the output overwrites the oldest bytes after the head.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.tail.push(bytes);
        if self.total < self.half {
            let room = (self.half - self.total).min(bytes.len() as u64) as usize;
            let (head, rest) = bytes.split_at(room);
            let log = match &mut self.log {
                Some(log) => log,
                none => none.insert(create_private_file(&self.path)?),
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
                none => none.insert(create_private_file(&ring_path(&self.path))?),
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

    /// Returns the total number of bytes written, including dropped ones.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the last bytes as text, without a partial character at the start.
    pub(crate) fn tail_text(&self) -> String {
        let bytes = self.tail.get();
        let cut = bytes
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80)
            .count();
        String::from_utf8_lossy(&bytes[cut..]).into_owned()
    }

    /// Appends the tail to the head, with a line between them that states how much was dropped.
    pub(crate) fn finish(mut self) -> io::Result<()> {
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
            let (dropped, kept) = (format::bytes(dropped), format::bytes(self.half));
            write!(
                log,
                "\n[ralph: {dropped} of output dropped here; the log keeps the first {kept} and the last {kept}]\n"
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

/// Creates or truncates a file that only its owner can read, because agents may print secrets.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    let file = regular_file::create(path)?;
    file.set_len(0)?;
    Ok(file)
}

/// The last `max` bytes of a stream. The buffer holds up to twice as much, which keeps moves rare.
struct TailBuffer {
    bytes: Vec<u8>,
    max: usize,
}

impl TailBuffer {
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

    fn logged(cap: u64, writes: &[&[u8]]) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let mut log = OutputLog::new(&path, cap, 4);
        for bytes in writes {
            log.write(bytes).unwrap();
        }
        let last = log.tail_text();
        log.finish().unwrap();
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "the ring buffer is removed"
        );
        (fs::read_to_string(&path).unwrap(), last)
    }

    #[test]
    fn short_output_is_kept_whole() {
        assert_eq!(
            logged(10, &[b"abc", b"de"]),
            ("abcde".into(), "bcde".into())
        );
        assert_eq!(logged(10, &[b"abcdefgh"]).0, "abcdefgh");
        assert_eq!(logged(10, &[b"abcde", b"fghij"]).0, "abcdefghij");
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_reports_what_was_dropped() {
        let notice = "\n[ralph: 3 bytes of output dropped here; the log keeps the first 5 bytes and the last 5 bytes]\n";
        for writes in [
            &[&b"abcdefghijklm"[..]][..],
            &[b"abc", b"defg", b"hijkl", b"m"],
            &[b"abcdefghijkl", b"m"],
        ] {
            assert_eq!(
                logged(10, writes),
                (format!("abcde{notice}ijklm"), "jklm".into())
            );
        }
    }

    #[test]
    fn the_log_does_not_depend_on_write_boundaries() {
        let text: Vec<u8> = (0..100).map(|n| b'a' + n % 26).collect();
        let whole = logged(30, &[&text]);
        for size in 1..60 {
            let writes: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(logged(30, &writes), whole, "{size}");
        }
    }

    #[test]
    fn a_partial_character_is_left_out_of_the_tail_text() {
        assert_eq!(logged(100, &["aé日".as_bytes()]).1, "日");
    }
}
