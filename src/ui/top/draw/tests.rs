//! Tests of the drawing, on a terminal in memory.

use super::super::activity::{ActivityKind, ActivityRow};
use super::super::code::PatchLine;
use super::super::input::{Key, UserInput};
use super::super::model::TopEvent;
use super::super::page_data::{
    CheckCell, DiffData, DiffFile, IterationRow, PageCheck, PageData, PageUpdate, TimedLine,
};
use super::super::summary::{IterationMark, LoopDetails, LoopSummary};
use super::super::theme::ColorDepth;
use super::*;
use crate::engine::Status;
use crate::ui::TextStyle;
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::sync::Arc;

/// Returns an iteration with one check, which is green in every third.
pub(in super::super) fn iteration(number: u32) -> IterationRow {
    let green = number.is_multiple_of(3);
    IterationRow {
        number,
        mark: if green {
            IterationMark::Green
        } else {
            IterationMark::Red
        },
        agent: "claude".into(),
        started_ms: 0,
        ms: Some(60_000 * u64::from(number)),
        cost_usd: (number != 2).then(|| f64::from(number) / 10.0),
        checks: vec![Some(CheckCell {
            green,
            text: if green {
                "green (2s)"
            } else {
                "red (exit 1, 2s)"
            }
            .into(),
            line: (!green).then(|| "test cart::total ... FAILED".into()),
        })],
    }
}

/// Returns what a terminal shows.
fn shown(model: &TopModel, theme: Theme) -> Vec<String> {
    let (columns, rows) = model.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| {
            draw(model, theme, frame.area(), frame.buffer_mut());
        })
        .unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(columns));
    rows.map(|row| {
        let text: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned()
    })
    .collect()
}

const PLAIN: Theme = Theme::PLAIN;

fn model(size: (u16, u16)) -> TopModel {
    let details = LoopDetails {
        task: "Fix the cart".into(),
        agent: "claude".into(),
        strip: vec![
            IterationMark::Red,
            IterationMark::Partial,
            IterationMark::Failed,
            IterationMark::Green,
            IterationMark::Running,
        ],
        failing_line: Some("test cart::total ... FAILED".into()),
        ..LoopDetails::default()
    };
    let one = LoopSummary {
        name: "cart".into(),
        parent: None,
        repository: "~/shop".into(),
        status: Status::Running,
        state: "running".into(),
        iteration: "5/40".into(),
        cost: Some("$1.20".into()),
        since_ms: 0,
        doing: "▸ Edit src/cart.rs".into(),
        is_archived: false,
        details: Some(details),
    };
    let kid = LoopSummary {
        name: "kid".into(),
        parent: Some("cart".into()),
        status: Status::Done,
        state: "done".into(),
        details: None,
        doing: String::new(),
        ..one.clone()
    };
    let mut model = TopModel::new(size, 7_200_000);
    model.zone = TimeZone::UTC;
    model.update(TopEvent::Loops(vec![Arc::new(one), Arc::new(kid)]));
    model
}

fn past() -> PageData {
    PageData {
        is_running: true,
        iterations: (1..=5).map(iteration).collect(),
        checks: vec![PageCheck {
            command: "cargo test".into(),
            slug: "cargo-test".into(),
        }],
        timeline: vec![TimedLine {
            at_ms: 3_600_000,
            text: "starting iteration 1/40".into(),
            style: Some(TextStyle::Bold),
        }],
        notes: Vec::new(),
        trees: None,
        newest_tree: 4,
    }
}

fn page(size: (u16, u16), key: char) -> TopModel {
    let mut model = model(size);
    model.open("cart", false);
    let updates = [
        PageUpdate::Past(Arc::new(past())),
        PageUpdate::Activity {
            iteration: 5,
            lines: [
                (ActivityKind::Text, "I look at the cart."),
                (ActivityKind::ToolDone, "Read src/cart.rs  2s"),
                (ActivityKind::ToolRunning, "Edit src/cart.rs"),
            ]
            .map(|(kind, text)| ActivityRow {
                at_ms: 3_600_000,
                kind,
                text: text.into(),
            })
            .into(),
            dropped: 3,
        },
        PageUpdate::CheckLog(vec!["running 1 test".into(), "FAILED".into()]),
        PageUpdate::Diff(DiffData {
            files: vec![DiffFile {
                path: "src/cart.rs".into(),
                insertions: 2,
                deletions: 1,
                lines: ["@@ -1 +1,2 @@", "-old", "+new", "+more"]
                    .map(|text| PatchLine {
                        text: text.to_owned(),
                        ..PatchLine::default()
                    })
                    .into(),
            }],
            note: None,
        }),
    ];
    model.update(TopEvent::Input(UserInput::Key(Key::Char(key))));
    for update in updates {
        model.update(TopEvent::Page("cart".into(), update));
    }
    model
}

#[test]
fn the_list_fits_a_small_terminal() {
    let rows = shown(&model((80, 16)), PLAIN);
    let expected = "
 ralph top  ▶ 1 running  ? 0 waiting for you  ✔ 1 done  ✘ 0 failed
    NAME     STATE      ITER CHECKS   COST  AGE  NOW
 ▾ ~/shop  2 loops
  ▶ cart     running    5/40 ○◐✘●▶    $1.20 2h   ▸ Edit src/cart.rs
  ✔ └ kid    done       5/40          $1.20 2h







─ cart ─────────────────────────────────────────────────────────────────────────
  failing  test cart::total ... FAILED
  now      ▸ Edit src/cart.rs
 Enter open  p pause  r resume  x stop  s say  / search  ? help  q quit";
    assert_eq!(format!("\n{}", rows.join("\n").trim_end()), expected);
}

#[test]
fn an_ascii_terminal_without_colors_shows_the_same() {
    let theme = Theme {
        colors: ColorDepth::Monochrome,
        ascii: true,
    };
    let rows = shown(&model((80, 16)), theme);
    assert!(rows.iter().all(|row| row.is_ascii()), "{rows:#?}");
    assert_eq!(
        rows[3],
        "  > cart     running    5/40 o/x*>    $1.20 2h   > Edit src/cart.rs"
    );
}

#[test]
fn the_checks_are_a_row_each_with_a_column_per_iteration() {
    let rows = shown(&page((80, 24), '2'), PLAIN);
    assert_eq!(rows[3], " iteration                   1       5");
    assert_eq!(rows[5], " cargo test                  ○ ○ ● ○ ○");
    assert_eq!(rows[7], " iteration 5 · claude · 5m · $0.5000 · 1 of 1 red");
    assert_eq!(rows[8], " ○ cargo test  red (exit 1, 2s)");
    assert_eq!(rows[9], "   test cart::total ... FAILED");
    assert_eq!(rows[10], " running 1 test");
}

#[test]
fn the_diff_lists_its_files_next_to_the_patch() {
    let rows = shown(&page((80, 24), '3'), PLAIN);
    assert_eq!(rows[3], " 1 file, +2 −1, from the start to iteration 4");
    assert_eq!(rows[4], " src/cart.rs         +2 −1 │ @@ -1 +1,2 @@");
    assert_eq!(rows[6], "                           │ +new");
}

#[test]
fn the_plots_are_next_to_the_activity_if_there_is_room() {
    let narrow = shown(&page((80, 24), '1'), PLAIN);
    assert_eq!(narrow[4], "          … 3 earlier lines are not shown");
    assert_eq!(narrow[6], " 01:00:00 ✔ Read src/cart.rs  2s");
    assert_eq!(narrow[7], " 01:00:00 ▸ Edit src/cart.rs");
    let wide = shown(&page((160, 48), '1'), PLAIN);
    assert!(
        wide[3].ends_with("│ cost  max $0.5000 · sum $1.30"),
        "{wide:#?}"
    );
    let plots = shown(&page((80, 24), '7'), PLAIN);
    assert_eq!(plots[3], " cost  max $0.5000 · sum $1.30");
    assert_eq!(plots[5], "          ▅▅ ██");
    assert_eq!(plots[10], " ██ ?? ██ ██ ██");
    assert_eq!(plots[13], " failing checks  max 1");
}

#[test]
fn every_size_is_drawn_without_a_panic() {
    for columns in [1, 29, 30, 61, 80, 120] {
        for rows in [1, 7, 8, 9, 16, 36] {
            shown(&model((columns, rows)), PLAIN);
            for key in "1234567?xsal/".chars() {
                let mut model = page((columns, rows), key);
                shown(&model, PLAIN);
                for _ in 0..3 {
                    model.update(TopEvent::Input(UserInput::Key(Key::PageDown)));
                    model.update(TopEvent::Input(UserInput::Key(Key::Up)));
                    model.update(TopEvent::Input(UserInput::Wheel(true)));
                }
                shown(&model, PLAIN);
            }
        }
    }
}

#[test]
fn values_that_are_no_numbers_are_drawn() {
    let mut odd = past();
    for (one, cost) in odd
        .iterations
        .iter_mut()
        .zip([f64::NAN, f64::INFINITY, -1.0])
    {
        one.cost_usd = Some(cost);
    }
    let mut model = page((80, 24), '7');
    model.update(TopEvent::Page(
        "cart".into(),
        PageUpdate::Past(Arc::new(odd)),
    ));
    shown(&model, PLAIN);
    let empty = PageUpdate::Past(Arc::new(PageData::default()));
    model.update(TopEvent::Page("cart".into(), empty));
    for key in "1234567".chars() {
        model.update(TopEvent::Input(UserInput::Key(Key::Char(key))));
        shown(&model, PLAIN);
    }
}
