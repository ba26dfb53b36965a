//! Formats text about the trust in a project's settings: what they would run, and the question
//! whether they may.

use super::tty::{error_height, error_width};
use super::wrap::hang_all;
use super::{display_width, hang, one_line};
use crate::engine::plain_text::visible;
use crate::lifecycle::trust::{GuardedFile, TrustRecord};
use std::fmt::Write as _;
use std::path::Path;

/// Describes what a file would run, and how it has changed if the user trusted it before. Nothing
/// is left out: each value is shown in full, with its line breaks. On a terminal, a long value does
/// not continue in the first column, where it could look like a row, or like ralph's own words.
pub(crate) fn describe(file: &GuardedFile, workspace: &Path, diff: Option<&str>) -> String {
    let (name, dir) = (&file.name, workspace.display());
    let mut text = match diff {
        None => format!("{name} in {dir} is not trusted yet. It sets:\n"),
        Some(_) => format!("{name} in {dir} has changed since you trusted it. It now sets:\n"),
    };
    let columns = error_width();
    text = hang(&text, columns, 0, 2).into_owned();
    // A name that the file chose must not look like another row.
    let keys = file.values.iter().map(|value| one_line(&value.key));
    let keys: Vec<String> = keys.collect();
    let width = keys.iter().map(|key| display_width(key)).max().unwrap_or(0);
    for (key, value) in keys.iter().zip(&file.values) {
        let mut key = key.as_str();
        for line in value.text.split('\n') {
            let pad = " ".repeat(width.saturating_sub(display_width(key)));
            let line = hang_all(&visible(line), columns, width + 4);
            let _ = writeln!(text, "  {key}{pad}  {line}");
            key = "";
        }
    }
    if let Some(diff) = diff {
        text.push_str("The difference:\n");
        for line in diff.lines() {
            let line = hang_all(&visible(line), columns, 3);
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// Returns the question whether to trust the files that were described in `rows` rows. If the
/// description does not fit the screen, the question says so and names the keys again.
pub(crate) fn question(files: &[GuardedFile], rows: usize) -> String {
    let (these, set) = if files.len() == 1 {
        ("this file", "It sets")
    } else {
        ("these files", "They set")
    };
    let is_longer = error_height().is_some_and(|height| rows >= height);
    let summary = is_longer.then(|| {
        let text = format!(
            "That was longer than your screen ({rows} rows): scroll up before you answer. {set} {}.\n",
            keys(files)
        );
        hang(&text, error_width(), 0, 2).into_owned()
    });
    let summary = summary.unwrap_or_default();
    format!("{summary}Trust {these} to run all of that as you? [y/N] ")
}

/// Returns the note of a command that executes nothing.
pub(crate) fn not_yet(files: &[GuardedFile]) -> String {
    format!(
        "{} not trusted yet, so a run would ask or refuse: read it, then run `ralph trust`",
        subject(files, "is", "are")
    )
}

/// Returns the line of a run that trusts files because it is a CI job.
pub(crate) fn trusted_in_ci(files: &[GuardedFile]) -> String {
    format!(
        "CI is set, so this run trusts {}, which {} {}",
        names(files),
        if files.len() == 1 { "sets" } else { "set" },
        keys(files)
    )
}

/// Returns the message of a run that cannot ask.
pub(crate) fn refused(files: &[GuardedFile], has_changed: bool) -> String {
    let why = if has_changed {
        format!(
            "{} changed since you trusted {}",
            subject(files, "has", "have"),
            if files.len() == 1 { "it" } else { "them" }
        )
    } else {
        format!("{} not trusted", subject(files, "is", "are"))
    };
    let set = if files.len() == 1 {
        "it sets"
    } else {
        "they set"
    };
    format!("{why}: {set} {}", keys(files))
}

/// Returns the message of a run after the user said no.
pub(crate) fn declined(files: &[GuardedFile]) -> String {
    format!(
        "{} not trusted, so nothing was started",
        subject(files, "is", "are")
    )
}

/// Says how to run without the files. `--config` replaces the project's file, but not the local one.
pub(crate) fn how_to_do_without(files: &[GuardedFile]) -> &'static str {
    if files.iter().all(|file| !file.is_local()) {
        "edit it, or leave it out: `--config FILE` uses another settings file instead"
    } else {
        "edit or remove what you do not trust"
    }
}

/// Returns the note of a session whose loop runs without what the files would run.
pub(crate) fn skipped(files: &[GuardedFile]) -> String {
    format!(
        "Note: {} not trusted, so {} {} not apply. To trust it, read it and run `ralph trust` in a terminal.",
        subject(files, "is", "are"),
        keys(files),
        if files.iter().map(|file| file.keys().len()).sum::<usize>() == 1 {
            "does"
        } else {
            "do"
        }
    )
}

/// Lists trusted files, one per line.
pub(crate) fn list(records: &[TrustRecord]) -> String {
    let lines = records.iter().map(|record| {
        let path = record.project.join(&record.file);
        let day = record.since.split('T').next().unwrap_or_default();
        format!("{}  since {day}\n", path.display())
    });
    let text: String = lines.collect();
    if text.is_empty() {
        "no settings are trusted yet\n".into()
    } else {
        text
    }
}

fn names(files: &[GuardedFile]) -> String {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    names.join(" and ")
}

fn subject(files: &[GuardedFile], one: &str, several: &str) -> String {
    format!(
        "{} {}",
        names(files),
        if files.len() == 1 { one } else { several }
    )
}

/// Lists the keys that need trust: `checks, notify`.
fn keys(files: &[GuardedFile]) -> String {
    let mut keys: Vec<String> = files
        .iter()
        .flat_map(|file| file.keys())
        .map(one_line)
        .collect();
    keys.sort();
    keys.dedup();
    keys.join(", ")
}
