//! Iterates over the lines of a file from the last to the first, reading no more than necessary.

use memchr::memrchr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Minimum number of bytes to read at once. Long lines are read in larger blocks.
const BLOCK_SIZE: u64 = 64 << 10;

/// The lines of a byte range of a file, in reverse order.
pub(super) struct ReverseLines<'f> {
    file: &'f File,
    /// The offset at which the range starts, in bytes.
    start: u64,
    /// The offset of `buffer` in the file, in bytes.
    offset: u64,
    buffer: Vec<u8>,
    /// The offset in `buffer` at which the next line ends; `None` once all lines were returned.
    end: Option<usize>,
    /// Number of bytes after the last newline. If nonzero, a line is still being written.
    pub(super) unterminated: u64,
}

impl<'f> ReverseLines<'f> {
    /// Returns the terminated lines between the offsets `start` and `end`. The line at `start` may
    /// be partial.
    pub(super) fn new(file: &'f File, start: u64, end: u64) -> io::Result<Self> {
        let mut lines = Self {
            file,
            start,
            offset: end,
            buffer: Vec::new(),
            end: Some(0),
            unterminated: 0,
        };
        let unterminated = lines.previous()?;
        lines.unterminated = unterminated.map_or(0, |range| range.len() as u64);
        Ok(lines)
    }

    /// Returns the line before the one returned last, without its newline; `None` at the start of
    /// the range.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.previous()?.map(|range| &self.buffer[range]))
    }

    fn previous(&mut self) -> io::Result<Option<Range<usize>>> {
        while let Some(end) = self.end {
            if let Some(at) = memrchr(b'\n', &self.buffer[..end]) {
                self.end = Some(at);
                return Ok(Some(at + 1..end));
            }
            if self.offset == self.start {
                self.end = None;
                return Ok(Some(0..end));
            }
            self.read_block(end)?;
        }
        Ok(None)
    }

    /// Truncates the buffer to its first `end` bytes, and prepends the file's previous block.
    fn read_block(&mut self, end: usize) -> io::Result<()> {
        let size = BLOCK_SIZE.max(end as u64).min(self.offset - self.start);
        let offset = self.offset - size;
        let size = size as usize;
        let mut buffer = vec![0; size + end];
        self.file.read_exact_at(&mut buffer[..size], offset)?;
        buffer[size..].copy_from_slice(&self.buffer[..end]);
        (self.buffer, self.offset, self.end) = (buffer, offset, Some(size + end));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_returned_from_the_last_to_the_first() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("lines");
        let mut rng = fastrand::Rng::with_seed(fastrand::u64(..));
        for round in 0..200 {
            let lengths = [
                0,
                1,
                3,
                1000,
                BLOCK_SIZE as usize - 1,
                BLOCK_SIZE as usize,
                3 * BLOCK_SIZE as usize,
            ];
            let line = |rng: &mut fastrand::Rng| {
                let byte = char::from(b'a' + rng.u8(..26)).to_string();
                byte.repeat(lengths[rng.usize(..lengths.len())])
            };
            let mut text: String = (0..rng.usize(..6)).map(|_| line(&mut rng) + "\n").collect();
            let unterminated = if rng.bool() {
                line(&mut rng)
            } else {
                String::new()
            };
            text.push_str(&unterminated);
            std::fs::write(&path, &text).unwrap();
            let file = File::open(&path).unwrap();
            let start = if rng.bool() {
                0
            } else {
                rng.usize(..=text.len())
            };
            let mut lines = ReverseLines::new(&file, start as u64, text.len() as u64).unwrap();
            assert_eq!(
                lines.unterminated as usize,
                unterminated.len().min(text.len() - start),
                "round {round}"
            );
            let mut expected: Vec<_> = text[start..].split('\n').collect();
            expected.pop();
            while let Some(line) = lines.next().unwrap() {
                let line = std::str::from_utf8(line).unwrap();
                assert_eq!(Some(line), expected.pop(), "round {round}");
            }
            assert!(expected.is_empty(), "round {round}");
        }
    }
}
