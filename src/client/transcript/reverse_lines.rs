//! Lines of a file from the last to the first, without reading more of it than they need.

use memchr::memrchr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// So much is read at once, or as much again as a line is known to have.
const BLOCK: u64 = 64 << 10;

/// The lines between two places of a file.
pub struct Backwards<'f> {
    file: &'f File,
    floor: u64,
    /// Where `buffer` begins in the file.
    start: u64,
    buffer: Vec<u8>,
    /// Where in `buffer` the next line ends; none if there is no more.
    end: Option<usize>,
    /// How many bytes there are behind the last line end: somebody is writing there.
    pub torn: u64,
}

impl<'f> Backwards<'f> {
    /// The lines from the floor, where perhaps only a piece of one begins, to the last line end before `end`.
    pub fn new(file: &'f File, floor: u64, end: u64) -> io::Result<Self> {
        let mut lines = Self {
            file,
            floor,
            start: end,
            buffer: Vec::new(),
            end: Some(0),
            torn: 0,
        };
        let torn = lines.step()?;
        lines.torn = torn.map_or(0, |torn| torn.len() as u64);
        Ok(lines)
    }

    /// The line before the one that was handed out last, without its line end.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.step()?.map(|line| &self.buffer[line]))
    }

    fn step(&mut self) -> io::Result<Option<Range<usize>>> {
        while let Some(end) = self.end {
            if let Some(at) = memrchr(b'\n', &self.buffer[..end]) {
                self.end = Some(at);
                return Ok(Some(at + 1..end));
            }
            if self.start == self.floor {
                self.end = None;
                return Ok(Some(0..end));
            }
            self.read_before(end)?;
        }
        Ok(None)
    }

    /// Reads what stands in the file before what is left of the buffer.
    fn read_before(&mut self, end: usize) -> io::Result<()> {
        let size = BLOCK.max(end as u64).min(self.start - self.floor);
        let from = self.start - size;
        let size = size as usize;
        let mut buffer = vec![0; size + end];
        self.file.read_exact_at(&mut buffer[..size], from)?;
        buffer[size..].copy_from_slice(&self.buffer[..end]);
        (self.buffer, self.start, self.end) = (buffer, from, Some(size + end));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_the_last_to_the_first() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lines");
        let mut rng = fastrand::Rng::with_seed(fastrand::u64(..));
        for round in 0..200 {
            let lengths = [
                0,
                1,
                3,
                1000,
                BLOCK as usize - 1,
                BLOCK as usize,
                3 * BLOCK as usize,
            ];
            let line = |rng: &mut fastrand::Rng| {
                let byte = char::from(b'a' + rng.u8(..26)).to_string();
                byte.repeat(lengths[rng.usize(..lengths.len())])
            };
            let mut text: String = (0..rng.usize(..6)).map(|_| line(&mut rng) + "\n").collect();
            let torn = if rng.bool() {
                line(&mut rng)
            } else {
                String::new()
            };
            text.push_str(&torn);
            std::fs::write(&path, &text).unwrap();
            let file = File::open(&path).unwrap();
            let floor = if rng.bool() {
                0
            } else {
                rng.usize(..=text.len())
            };
            let mut lines = Backwards::new(&file, floor as u64, text.len() as u64).unwrap();
            assert_eq!(
                lines.torn as usize,
                torn.len().min(text.len() - floor),
                "round {round}"
            );
            let mut expected: Vec<_> = text[floor..].split('\n').collect();
            expected.pop();
            while let Some(line) = lines.next().unwrap() {
                let line = std::str::from_utf8(line).unwrap();
                assert_eq!(Some(line), expected.pop(), "round {round}");
            }
            assert!(expected.is_empty(), "round {round}");
        }
    }
}
