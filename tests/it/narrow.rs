//! What commands print on a terminal of 80 columns: rows end between words.

use crate::kit::Test;
use crate::pty::{Screen, rows};

/// Runs ralph on a terminal of 80 columns. Returns the exit code and the rows.
fn on_terminal(test: &Test, args: &[&str]) -> (i32, Vec<String>) {
    let (code, bytes) = Screen::start(test.ralph_command(args), 80).end();
    (code, rows(&bytes))
}

/// Asserts that each row fits, except for those with a word that is too long for any row.
#[track_caller]
fn assert_fits(rows: &[String]) {
    for row in rows {
        let is_long = row.chars().count() > 80;
        assert!(
            !is_long || row.trim().len() < 90 && !row.trim().contains(' '),
            "{row:?}"
        );
    }
}

#[test]
fn errors_and_hints_end_their_rows_between_words() {
    let test = Test::new();
    let (code, rows) = on_terminal(&test, &["run", "x", "--agent", "nosuch"]);
    assert_eq!(code, 2);
    assert_eq!(rows[0], "ralph: error: --agent \"nosuch\": unknown agent");
    assert!(rows[1].starts_with("  hint: known agents: claude, codex, "));
    assert!(rows[2].starts_with("        "), "{rows:?}");
    assert!(rows.iter().any(|row| row.ends_with("after --")), "{rows:?}");
    assert_fits(&rows);
    // Elsewhere, each is on one line.
    let err = test.ralph(&["run", "x", "--agent", "nosuch"]).err;
    assert_eq!(err.lines().count(), 2, "{err}");
}

#[test]
fn a_command_in_a_hint_stays_in_one_row() {
    let test = Test::new()
        .untrusting()
        .file(".ralph/settings.toml", "notify = 'true'\n");
    let dry = ["run", "x", "--dry-run", "--", "true"];
    let (_, rows) = on_terminal(&test, &dry);
    assert_fits(&rows[..3]);
    assert!(
        rows.iter().any(|row| row.contains("`ralph trust`")),
        "{rows:?}"
    );
}

#[test]
fn the_report_of_doctor_and_the_settings_fit() {
    let test = Test::new();
    let (_, rows) = on_terminal(&test, &["doctor"]);
    let install = rows.iter().position(|row| row.contains(" goose "));
    let next = &rows[install.unwrap() + 1];
    assert!(next.starts_with("                   "), "{rows:#?}");
    assert_fits(&rows);
    let (_, rows) = on_terminal(&test, &["config"]);
    assert_fits(&rows);
}

#[test]
fn no_row_of_an_untrusted_value_begins_at_the_left() {
    let value = format!("echo{}approve  none{}", " ".repeat(70), "x".repeat(200));
    let settings = format!("notify = '{value}'\n");
    let test = Test::new().untrusting();
    let test = test.file(".ralph/settings.toml", &settings);
    let (code, rows) = on_terminal(&test, &["trust"]);
    assert_eq!(code, 0);
    let first = rows.iter().position(|row| row == "  notify  echo").unwrap();
    let last = rows
        .iter()
        .position(|row| row.starts_with("trusted "))
        .unwrap();
    let value_rows = &rows[first + 1..last];
    assert_eq!(value_rows.len(), 4, "{rows:#?}");
    assert!(
        value_rows.iter().all(|row| row.starts_with("          ")),
        "{rows:#?}"
    );
    assert_fits(&rows);
}
