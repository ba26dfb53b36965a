//! Reserves a little disk space for recording a loop's ending on a full disk.

use super::dir::{create_file, remove_if_exists};
use std::io::Write;
use std::path::Path;
use std::{fs, io};

const SIZE: usize = 64 * 1024;

/// Creates the reserve file at `path` unless it exists. The file contains real zeros, because a
/// sparse file would reserve nothing.
pub(super) fn create(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|data| data.len() == SIZE as u64) {
        return Ok(());
    }
    let written = create_file(path).and_then(|mut file| file.write_all(&vec![0; SIZE]));
    if written.is_err() {
        // The disk is full. Free the partial reserve, because the journal may need its space right
        // away.
        let _ = remove_if_exists(path);
    }
    written
}
