//! Builds receipts from a loop's journal and the record of its start.

use crate::agent::redact::Redactor;
use crate::engine::receipt::{GuardHashes, Receipt, ReceiptHistory};
use crate::engine::{Event, ExitCode, Outcome};
use crate::proof::Baseline;
use crate::store::dir::create_file;
use crate::store::{LoopDir, StoreError, cache, rfc3339};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};

/// Maximum number of guards that a receipt lists. Its digest covers all of them.
const GUARDS_MAX: usize = 1000;

/// Builds the receipt of a loop.
pub(crate) fn build(dir: &LoopDir, redactor: &Redactor) -> Result<Receipt, StoreError> {
    let mut history = ReceiptHistory::default();
    let mut ended = String::new();
    let view = cache::replay(dir, &mut |line, state| {
        history.add(&line.event, state, || rfc3339(line.at_ms));
        if matches!(line.event, Event::Finished { .. }) {
            ended = rfc3339(line.at_ms);
        }
    })?;
    let (header, state) = (&view.header, &view.state);
    let mut receipt = Receipt::new(state, history);
    receipt.name.clone_from(&header.name);
    receipt.id.clone_from(&header.id);
    receipt.created = rfc3339(header.created_ms);
    receipt.ended = ended;
    receipt.success = state.outcome().map(Outcome::exit_code) == Some(ExitCode::Success);
    receipt.set_refs(&header.id, state);
    if let Some(digest) = &state.look.baseline {
        receipt.guards = guard_hashes(dir, digest, redactor);
    }
    Ok(receipt)
}

/// Writes the receipt of a loop to its directory.
pub(super) fn write(dir: &LoopDir, redactor: &Redactor) -> Result<(), String> {
    let receipt = build(dir, redactor).map_err(|error| error.to_string())?;
    let path = dir.receipt();
    let new = path.with_extension("json.new");
    let write = || {
        create_file(&new)?.write_all(to_json(&receipt)?.as_bytes())?;
        fs::rename(&new, &path)
    };
    write().map_err(|error: io::Error| format!("{}: {error}", path.display()))
}

/// Returns a receipt as people and scripts read it.
pub(crate) fn to_json(receipt: &Receipt) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(receipt)? + "\n")
}

fn guard_hashes(dir: &LoopDir, digest: &str, redactor: &Redactor) -> GuardHashes {
    let hashes = match Baseline::open(dir.path(), digest) {
        Ok(Some(baseline)) => baseline.hashes(),
        Ok(None) => {
            return GuardHashes::unknown("the record of the loop's start was deleted".into());
        }
        Err(error) => return GuardHashes::unknown(error.to_string()),
    };
    let mut all = Sha256::new();
    for (path, hash) in &hashes {
        all.update(format!("{hash}  {path}\n"));
    }
    let mut digest = String::new();
    for byte in all.finalize() {
        let _ = write!(digest, "{byte:02x}");
    }
    let total = hashes.len() as u64;
    let files = hashes.into_iter().take(GUARDS_MAX);
    let files = files.map(|(path, hash)| (redactor.redact_text(&path).into_owned(), hash));
    GuardHashes {
        total,
        digest,
        files: files.collect(),
        failure: None,
    }
}
