//! Reads receipts that may come from anywhere.

use crate::engine::receipt::{RECEIPT, Receipt, RecordedTree, VERSION};
use crate::lifecycle::error::CommandError;
use crate::os::regular_file;
use serde::Deserialize;
use std::path::{Component, Path};

/// Maximum size of a receipt, in bytes.
const SIZE_MAX: u64 = 16 << 20;

/// The fields of every version of the format.
#[derive(Deserialize)]
struct ReceiptMarker {
    ralph: String,
    version: u32,
}

/// Reads a receipt, and checks that its values can be used in commands and paths.
pub(crate) fn read_receipt(path: &Path) -> Result<Receipt, CommandError> {
    let shown = path.display();
    let hint = "`ralph receipt NAME --output FILE` writes a receipt";
    let (bytes, is_longer) = regular_file::read(path, SIZE_MAX, true)
        .map_err(|error| CommandError::usage(format!("cannot read {shown}: {error}"), hint))?;
    let invalid =
        |why: String| CommandError::usage(format!("{shown} is not a receipt: {why}"), hint);
    if is_longer {
        return Err(invalid("it is too large".into()));
    }
    let marker: ReceiptMarker =
        serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
    if marker.ralph != RECEIPT {
        return Err(invalid(format!(
            "its field \"ralph\" is {:?}",
            marker.ralph
        )));
    }
    if marker.version > VERSION {
        return Err(CommandError::usage(
            format!("{shown} was written by a later version of ralph"),
            "update ralph",
        ));
    }
    let receipt: Receipt =
        serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
    let trees = [&receipt.start, &receipt.graded].into_iter().flatten();
    let ids = trees.map(|tree: &RecordedTree| &tree.tree);
    let ids = ids.chain([&receipt.base, &receipt.commit].into_iter().flatten());
    for id in ids {
        if id.len() < 40 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(invalid(format!("{id:?} is not the ID of a git object")));
        }
    }
    let directory = Path::new(&receipt.directory);
    let is_below = |part| matches!(part, Component::Normal(_));
    if !directory.components().all(is_below) {
        return Err(invalid(format!(
            "{:?} is not a directory of a repository",
            receipt.directory
        )));
    }
    Ok(receipt)
}
