//! Decides whether a run may use a project's settings: by the user's records, by a question on the
//! terminal, or in CI.

use crate::cli::RunArgs;
use crate::commands::run::config_dir;
use crate::config::SettingsFiles;
use crate::lifecycle::error::CommandError;
use crate::lifecycle::trust::{GuardedFile, TrustRecords, is_inside_loop};
use crate::ui::print::{ask, can_ask, note, print_notice, warn};
use crate::ui::trust_text;
use std::path::Path;

/// Whether everything that the settings would run is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustStatus {
    Trusted,
    /// Nothing from the settings may be executed, only shown.
    Untrusted,
}

/// Settles whether a run may use these files. Asks on a terminal, and returns an error if the files
/// are not trusted. A dry run executes nothing, so it only prints a note.
pub(crate) fn settle_trust(
    files: &SettingsFiles,
    workspace: &Path,
    args: &RunArgs,
) -> Result<TrustStatus, CommandError> {
    let records = TrustRecords::new(config_dir().as_deref());
    let untrusted = records.untrusted(files, workspace);
    if untrusted.is_empty() {
        return Ok(TrustStatus::Trusted);
    }
    // An agent can set flags and variables, so for a loop that it starts only the records count.
    let is_inside = is_inside_loop();
    if args.trust && !is_inside {
        return Ok(TrustStatus::Trusted);
    }
    if args.dry_run {
        note(trust_text::not_yet(&untrusted));
        return Ok(TrustStatus::Untrusted);
    }
    if is_ci() && !is_inside {
        note(trust_text::trusted_in_ci(&untrusted));
        return Ok(TrustStatus::Trusted);
    }
    if is_inside || !can_ask() {
        return Err(refusal(&records, &untrusted, is_inside));
    }
    let rows = show(&records, &untrusted, workspace);
    if !ask(&trust_text::question(&untrusted, rows)) {
        return Err(CommandError::usage(
            trust_text::declined(&untrusted),
            trust_text::how_to_do_without(&untrusted),
        ));
    }
    for file in &untrusted {
        if let Err(error) = records.add(file) {
            warn(format!(
                "cannot remember that you trust {}: {error}",
                file.name
            ));
        }
    }
    Ok(TrustStatus::Trusted)
}

/// Prints what the files would run, and how they have changed since the user trusted them. Returns
/// the number of rows.
pub(super) fn show(records: &TrustRecords, files: &[GuardedFile], workspace: &Path) -> usize {
    let mut rows = 0;
    for file in files {
        let diff = records.diff(file);
        let text = trust_text::describe(file, workspace, diff.as_deref());
        rows += text.lines().count();
        print_notice(&text);
    }
    rows
}

fn refusal(records: &TrustRecords, files: &[GuardedFile], is_inside: bool) -> CommandError {
    let has_changed = files.iter().all(|file| records.diff(file).is_some());
    let hint = if is_inside {
        "an agent cannot trust settings: ask a person to run `ralph trust` outside the loop"
    } else {
        "read it, then run `ralph trust`; or pass --trust for this run only"
    };
    CommandError::usage(trust_text::refused(files, has_changed), hint)
}

/// Returns whether this is a CI job, where settings come from the same commit as the job itself.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}
