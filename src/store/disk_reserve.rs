//! A little disk space put aside, so that a full disk does not silence a loop's last words.

use super::dir::{create_file, remove};
use std::io::Write;
use std::path::Path;
use std::{fs, io};

const SIZE: usize = 64 * 1024;

/// Puts the space aside, if it is not. A sparse file would hold none, hence real zeros.
pub(super) fn fill(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|is| is.len() == SIZE as u64) {
        return Ok(());
    }
    let filled = create_file(path).and_then(|mut file| file.write_all(&vec![0; SIZE]));
    if filled.is_err() {
        // Half a reserve takes away space that the journal may need at once.
        let _ = remove(path);
    }
    filled
}
