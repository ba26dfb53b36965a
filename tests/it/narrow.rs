//! What commands print on a terminal of 80 columns: rows end between words.

use crate::kit::Test;
use crate::pty::{Screen, rows};

/// Runs ralph on a terminal of 80 columns. Returns the exit code and the rows.
fn on_terminal(test: &Test, args: &[&str]) -> (i32, Vec<String>) {
    let mut command = test.ralph_command(args);
    command.env("NO_COLOR", "1");
    let (code, bytes) = Screen::start(command, 80).end();
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

/// A loop whose ending takes more than one row: tests with long names were changed.
fn disputed() -> (Test, Vec<String>) {
    let test = Test::git();
    for name in ["one", "two", "three"] {
        test.write(
            &format!("tests/integration/a_long_name_of_a_test_{name}.sh"),
            "false\n",
        );
    }
    test.sh("git add -A && git commit -qm tests");
    let check =
        "for test in tests/integration/*.sh; do sh $test || exit 1; done # every one of them";
    let agent = "for test in tests/integration/*.sh; do echo true > $test; done
        echo '<changed>these are outdated since the last release of the other service</changed>'
        echo '<promise>COMPLETE</promise>'";
    let run = ["run", "x", "--name", "a", "-m", "1", "--check", check];
    let (code, rows) = on_terminal(&test, &[&run[..], &["--", "sh", "-c", agent]].concat());
    assert_eq!(code, 3);
    (test, rows)
}

const ACCEPT: &str = "    ralph resume a --accept tests/integration/a_long_name_of_a_test_one.sh \
                      --accept tests/integration/a_long_name_of_a_test_three.sh \
                      --accept tests/integration/a_long_name_of_a_test_two.sh";

#[test]
fn the_summary_and_the_status_end_their_rows_between_words() {
    let (test, rows) = disputed();
    let start = rows.iter().position(|row| row.starts_with("■ disputed: "));
    let summary = &rows[start.unwrap()..];
    assert!(
        summary[1].starts_with("  ") && summary[2].starts_with("  "),
        "{summary:#?}"
    );
    let check = summary
        .iter()
        .position(|row| row.starts_with("  check"))
        .unwrap();
    assert_eq!(
        summary[check + 1],
        "    for test in tests/integration/*.sh; do sh $test || exit 1; done # every one of them"
    );
    assert!(
        summary[check + 2].starts_with("           green ("),
        "{summary:#?}"
    );
    // Commands are whole: the terminal breaks those that are longer than a row.
    let next = summary
        .iter()
        .position(|row| row.starts_with("  next"))
        .unwrap();
    assert_eq!(
        summary[next + 1..next + 4],
        [
            ACCEPT,
            "           ralph set a max-iterations=2 && ralph resume a --answer \"…\"",
            "           ralph logs a"
        ]
    );
    let texts = [&summary[..check], &summary[check + 2..next]].concat();
    assert_fits(&texts);

    let (code, rows) = on_terminal(&test, &["status", "a"]);
    assert_eq!(code, 0);
    let status = rows
        .iter()
        .position(|row| row.starts_with("Status     blocked ("))
        .unwrap();
    assert!(rows[status + 1].starts_with("           "), "{rows:#?}");
    let next = rows.iter().position(|row| row == "Next").unwrap();
    assert_eq!(rows[next + 1], ACCEPT);
    assert_eq!(
        rows[next + 2],
        "           ralph set a max-iterations=2 && ralph resume a --answer \"…\""
    );
    let agent = rows
        .iter()
        .position(|row| row.starts_with("Agent "))
        .unwrap();
    assert_fits(&rows[..agent - 4]);
    // Elsewhere, each row is one line.
    let lines = test.ralph(&["status", "a"]).out;
    assert!(lines.lines().all(|line| line.contains(": ")), "{lines}");
}
