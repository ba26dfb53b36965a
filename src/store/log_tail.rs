//! Reads the last lines of a log, which usually explain why a check failed.

use crate::engine::plain_text::clean;
use crate::os::regular_file;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const LINES: usize = 8;
/// Only the last `BYTES` bytes of the file are read.
const BYTES: u64 = 8 * 1024;

/// Returns the last lines of a file without control characters, and whether earlier lines were left
/// out. A file that cannot be read counts as empty.
pub(crate) fn last_lines(path: &Path) -> (String, bool) {
    let (bytes, cut) = read_end(path).unwrap_or_default();
    let last = last_of(&bytes, cut);
    (
        clean(&String::from_utf8_lossy(last)).into_owned(),
        cut || last.len() < bytes.trim_ascii_end().len(),
    )
}

/// Returns the end of a file without control characters, and whether its start was left out. A file
/// that cannot be read counts as empty.
#[cfg(feature = "cli")]
pub(crate) fn log_end(path: &Path) -> (String, bool) {
    let (bytes, cut) = read_end(path).unwrap_or_default();
    (clean(&String::from_utf8_lossy(&bytes)).into_owned(), cut)
}

fn read_end(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut file = regular_file::open(path, false)?;
    let before = file.metadata()?.len().saturating_sub(BYTES);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes)?;
    Ok((bytes, before > 0))
}

/// Returns the last lines of `bytes`. If `cut` is `true`, the start was cut off, and the first,
/// partial line is dropped.
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
    fn only_the_last_lines_are_returned() {
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
    fn a_partial_first_line_is_dropped_if_a_whole_line_follows() {
        assert_eq!(last_of(b"alf\nwhole\n", true), b"whole");
        assert_eq!(last_of(b"no newline at all", true), b"no newline at all");
    }
}
