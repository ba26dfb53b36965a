//! The end of a red check's output: what a person wants to see first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// So many lines are enough to see what is wrong.
const LINES: usize = 8;
/// Whatever is longer than this is not read for the console.
const BYTES: u64 = 8 * 1024;

/// The last lines of a file, as they are, and whether others stand before them; none if it cannot be read.
pub fn last_lines(path: &Path) -> (Vec<u8>, bool) {
    let (bytes, cut) = read_end(path).unwrap_or_default();
    let last = last_of(&bytes, cut);
    (
        last.to_vec(),
        cut || last.len() < bytes.trim_ascii_end().len(),
    )
}

fn read_end(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let before = file.metadata()?.len().saturating_sub(BYTES);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes)?;
    Ok((bytes, before > 0))
}

/// The last lines of a text; where its beginning was cut off, a whole line is shown rather than half of one.
fn last_of(bytes: &[u8], cut: bool) -> &[u8] {
    let bytes = bytes.trim_ascii_end();
    let ends = bytes
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1);
    let starts: Vec<usize> = ends.take(LINES).collect();
    match starts.as_slice() {
        all if all.len() == LINES => &bytes[all[LINES - 1]..],
        [.., first] if cut => &bytes[*first..],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_left() {
        assert_eq!(last_of(b"", false), b"");
        assert_eq!(last_of(b"one\ntwo\n\n", false), b"one\ntwo");
        assert_eq!(
            last_of(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", false),
            b"2\n3\n4\n5\n6\n7\n8\n9"
        );
        assert_eq!(
            last_of(b"1\n2\n3\n4\n5\n6\n7\n8", false),
            b"1\n2\n3\n4\n5\n6\n7\n8"
        );
    }

    #[test]
    fn half_a_line_is_not_shown_where_a_whole_one_is_there() {
        assert_eq!(last_of(b"alf\nwhole\n", true), b"whole");
        assert_eq!(last_of(b"no newline at all", true), b"no newline at all");
    }
}
