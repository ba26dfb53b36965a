//! Reads lines of bounded length: a file without line ends must not fill the memory.

use std::io::{self, BufRead};

/// The longest line that is read, in bytes. The longest lines contain a task, which has at most
/// 16 MiB.
pub(super) const LINE_MAX: usize = 64 << 20;

/// A line that was read.
#[derive(Debug, PartialEq)]
pub(super) struct LineInfo {
    /// The line's length in the file, including its newline.
    pub(super) len: u64,
    /// Whether the line ends with a newline, rather than with the file.
    pub(super) is_complete: bool,
    /// Whether the line is longer than [`LINE_MAX`], so that its end is missing from the buffer.
    pub(super) is_cut: bool,
}

/// Replaces the content of `line` with the next line, without its newline. At the end of the file,
/// the length is 0.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<LineInfo> {
    read_line_up_to(reader, LINE_MAX, line)
}

fn read_line_up_to(
    reader: &mut impl BufRead,
    max: usize,
    line: &mut Vec<u8>,
) -> io::Result<LineInfo> {
    line.clear();
    let mut info = LineInfo {
        len: 0,
        is_complete: false,
        is_cut: false,
    };
    while !info.is_complete {
        let buffer = match reader.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', buffer);
        let content = &buffer[..end.unwrap_or(buffer.len())];
        let kept = content.len().min(max - line.len());
        line.extend_from_slice(&content[..kept]);
        info.is_cut |= kept < content.len();
        info.is_complete = end.is_some();
        let consumed = content.len() + usize::from(info.is_complete);
        info.len += consumed as u64;
        reader.consume(consumed);
    }
    Ok(info)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_skipped() {
        let mut reader = io::BufReader::with_capacity(3, &b"one\n\nlonger line\ntail"[..]);
        let mut line = Vec::new();
        let mut next = || {
            let info = read_line_up_to(&mut reader, 4, &mut line).unwrap();
            let text = String::from_utf8(line.clone()).unwrap();
            (text, info.len, info.is_complete, info.is_cut)
        };
        assert_eq!(next(), ("one".into(), 4, true, false));
        assert_eq!(next(), (String::new(), 1, true, false));
        assert_eq!(next(), ("long".into(), 12, true, true));
        assert_eq!(next(), ("tail".into(), 4, false, false));
        assert_eq!(next(), (String::new(), 0, false, false));
    }
}
