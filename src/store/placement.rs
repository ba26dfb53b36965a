//! Where a loop of the fleet runs. A mirror of the fleet writes it beside the loop's files, for the
//! commands that read them.

use super::dir::create_file;
use super::error::IoContext;
use super::{LoopDir, Result};
use crate::os::regular_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::path::Path;

/// The name of the file in the loop's directory.
const FILE: &str = "fleet.json";

/// What the fleet knows about a loop, besides its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FleetPlacement {
    /// The worker that runs the loop; `None` if none does.
    pub(crate) owner: Option<String>,
    /// How many workers have owned the loop so far.
    pub(crate) epoch: u64,
    /// Whether the loop waits for a worker.
    pub(crate) queued: bool,
    /// Why the last worker that looked at the loop left it to others.
    pub(crate) refused: Option<String>,
}

impl FleetPlacement {
    /// Reads the placement of the loop in this directory; `None` if it is not in a mirror.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let text = regular_file::read_text(&directory.join(FILE), false).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Replaces the placement. Readers see the old one or the new one.
    pub(crate) fn write(&self, dir: &LoopDir) -> Result<()> {
        let path = dir.path().join(FILE);
        let new = path.with_extension("new");
        let text = serde_json::to_string(self).unwrap_or_default();
        create_file(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, &path))
            .context("write", &path)
    }

    /// Says why the loop waits; `None` if it does not.
    pub(crate) fn waiting_for(&self) -> Option<String> {
        self.queued.then(|| {
            let refused = self.refused.clone();
            refused.unwrap_or_else(|| "waiting for a free worker".to_owned())
        })
    }
}
