//! Records the names of the tests that a check ran before the first iteration, outside the journal:
//! there may be many.

use super::copies::{hex, write_durably};
use crate::engine::test_names::{RecordedTests, TestNames};
use crate::os::regular_file;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The directory of the records in a loop's directory.
const DIR: &str = "start-tests";

/// Maximum size of a record, in bytes.
const RECORD_MAX: u64 = 128 << 20;

/// Records the tests of a check, durably. Returns `None` if it has none.
pub(crate) fn record(
    loop_dir: &Path,
    slug: &str,
    names: &TestNames,
) -> io::Result<Option<RecordedTests>> {
    let path = path(loop_dir, slug);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if names.is_empty() {
        return Ok(None);
    }
    let mut builder = fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(loop_dir.join(DIR))?;
    let text = names.to_text();
    write_durably(&path, text.as_bytes())?;
    Ok(Some(names.recorded(digest(text.as_bytes()))))
}

/// Opens the record of a check; `None` if it is not the one that the journal names.
pub(crate) fn open(loop_dir: &Path, slug: &str, recorded: &RecordedTests) -> Option<TestNames> {
    let (bytes, more) = regular_file::read(&path(loop_dir, slug), RECORD_MAX, false).ok()?;
    let is_same = !more && digest(&bytes) == recorded.digest;
    let text = String::from_utf8(bytes).ok().filter(|_| is_same)?;
    Some(TestNames::from_text(&text))
}

fn path(loop_dir: &Path, slug: &str) -> PathBuf {
    loop_dir.join(DIR).join(slug)
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
