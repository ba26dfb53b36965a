//! Tests of the model: events in, effects and rows out.

use super::super::activity::{ActivityKind, ActivityRow};
use super::super::page_data::{DiffData, PageCheck, PageData, PagePart, PageUpdate};
use super::super::summary::{LoopDetails, LoopSummary};
use super::*;
use crate::engine::Status;

pub(in super::super) fn summary(name: &str, status: Status) -> LoopSummary {
    LoopSummary {
        name: name.into(),
        parent: None,
        repository: "~/shop".into(),
        status,
        state: status.as_str().into(),
        iteration: "3/10".into(),
        cost: Some("$0.5000".into()),
        since_ms: 1000,
        doing: "▸ Edit src/cart.rs".into(),
        is_archived: false,
        details: Some(LoopDetails {
            task: "Fix the cart".into(),
            limits: "max-iterations=20".into(),
            ..LoopDetails::default()
        }),
    }
}

fn model(loops: Vec<LoopSummary>) -> TopModel {
    let mut model = TopModel::new((80, 24), 10_000);
    model.update(TopEvent::Loops(loops.into_iter().map(Arc::new).collect()));
    model
}

fn press(model: &mut TopModel, keys: &str) -> Option<TopEffect> {
    let mut effect = None;
    for c in keys.chars() {
        let key = match c {
            '\n' => Key::Enter,
            '\x1b' => Key::Escape,
            '\t' => Key::Tab,
            '↓' => Key::Down,
            '↑' => Key::Up,
            '←' => Key::Left,
            '→' => Key::Right,
            c => Key::Char(c),
        };
        effect = model.update(TopEvent::Input(UserInput::Key(key)));
    }
    effect
}

/// Returns the rows as text, the selected one with a mark.
fn rows(model: &TopModel) -> Vec<String> {
    let text = |row: &ListRow| match row {
        ListRow::Repository { name, count, .. } => format!("{name} {count}"),
        ListRow::Loop {
            summary,
            depth,
            hidden,
            ..
        } => {
            let hidden = match hidden {
                0 => String::new(),
                hidden => format!(" +{hidden}"),
            };
            format!("{}{}{hidden}", "  ".repeat(depth + 1), summary.name)
        }
    };
    let rows = model.rows.iter().enumerate();
    rows.map(|(at, row)| {
        let mark = if at == model.selected { " <" } else { "" };
        format!("{}{mark}", text(row))
    })
    .collect()
}

fn command(effect: Option<TopEffect>) -> (Vec<String>, bool) {
    match effect {
        Some(TopEffect::Run(command)) => (command.args, command.takes_terminal),
        Some(TopEffect::OpenReport(name)) => (vec!["report".into(), name, "--open".into()], false),
        other => panic!("{other:?}"),
    }
}

#[test]
fn loops_are_grouped_by_repository_with_children_below_their_parents() {
    let loops = vec![
        summary("old", Status::Done),
        LoopSummary {
            parent: Some("lead".into()),
            repository: "~/elsewhere".into(),
            ..summary("kid-10", Status::Running)
        },
        LoopSummary {
            parent: Some("lead".into()),
            ..summary("kid-2", Status::Running)
        },
        LoopSummary {
            repository: "~/blog".into(),
            ..summary("post", Status::Blocked)
        },
        summary("lead", Status::Running),
    ];
    let mut model = model(loops);
    let all = [
        "~/shop 4",
        "  lead <",
        "    kid-2",
        "    kid-10",
        "  old",
        "~/blog 1",
        "  post",
    ];
    assert_eq!(rows(&model), all);
    press(&mut model, " ");
    let folded = ["~/shop 4", "  lead +2 <", "  old", "~/blog 1", "  post"];
    assert_eq!(rows(&model), folded);
    press(&mut model, "→f");
    let running = ["~/shop 3", "  lead <", "    kid-2", "    kid-10"];
    assert_eq!(rows(&model), running);
    press(&mut model, "f");
    assert_eq!(rows(&model), ["~/blog 1", "  post <"]);
    press(&mut model, "f");
    assert_eq!(rows(&model), ["~/shop 1", "  old <"]);
    press(&mut model, "f/KID-1");
    assert_eq!(rows(&model), ["~/elsewhere 1", "  kid-10 <"]);
    press(&mut model, "\x1b");
    assert_eq!(rows(&model).len(), all.len());
    press(&mut model, "g\n");
    assert_eq!(rows(&model), ["~/shop 4 <", "~/blog 1", "  post"]);
}

#[test]
fn the_selection_stays_on_its_loop_while_the_list_changes() {
    let names = ["a", "b", "c"];
    let done = |name: &&str| summary(name, Status::Done);
    let mut model = model(names.iter().map(done).collect());
    press(&mut model, "↓");
    assert_eq!(model.current().unwrap().name, "b");
    let mut loops: Vec<_> = names.iter().map(done).collect();
    loops.push(summary("new", Status::Running));
    let share = |loops: Vec<LoopSummary>| loops.into_iter().map(Arc::new).collect();
    model.update(TopEvent::Loops(share(loops)));
    assert_eq!(model.current().unwrap().name, "b");
    model.update(TopEvent::Loops(share(vec![summary("c", Status::Done)])));
    assert_eq!(model.current().unwrap().name, "c", "b is gone");
    model.update(TopEvent::Loops(Vec::new()));
    assert!(model.current().is_none());
    assert_eq!(press(&mut model, "↓↑\np x"), None);
    assert!(model.message.unwrap().is_error);
}

#[test]
fn a_thousand_loops_are_read_only_where_they_are_visible() {
    let loops = (0..1000).map(|at| summary(&format!("l-{at}"), Status::Done));
    let mut model = model(loops.collect());
    let shown = model.interest().shown;
    assert!(shown.len() <= 24 && shown.contains("l-0"), "{shown:?}");
    press(&mut model, "G");
    let shown = model.interest().shown;
    assert!(shown.len() <= 24 && shown.contains("l-999"), "{shown:?}");
    assert_eq!(model.first + draw::list_height(&model), model.rows.len());
    model.update(TopEvent::Resized(80, 8));
    assert!(model.interest().shown.contains("l-999"));
    press(&mut model, "g");
    assert_eq!(model.first, 0);
}

#[test]
fn keys_run_the_same_commands_as_a_person_would() {
    let mut loops = vec![summary("a", Status::Running)];
    let details = loops[0].details.as_mut().unwrap();
    details.question = Some("EUR or USD?".into());
    details.needs_terminal = true;
    let mut model = model(loops);
    let mut run = |keys: &str| {
        let (args, takes_terminal) = command(press(&mut model, keys));
        (args.join("|"), takes_terminal)
    };
    assert_eq!(run("p"), ("pause|a".into(), false));
    assert_eq!(run("r"), ("resume|a".into(), true));
    assert_eq!(run("t"), ("attach|a".into(), true));
    assert_eq!(run("o"), ("report|a|--open".into(), false));
    assert_eq!(run("xy"), ("stop|a".into(), false));
    assert_eq!(run("s- be quick\n"), ("say|a|--|- be quick".into(), false));
    assert_eq!(run("aEUR\n"), ("resume|a|--answer=EUR".into(), true));
    assert_eq!(
        run("l max-cost=5\n"),
        ("set|a|--|max-iterations=20|max-cost=5".into(), false)
    );
    assert_eq!(run("\np"), ("pause|a".into(), false), "on its page, too");
    assert_eq!(press(&mut model, "xn"), None);
    assert_eq!(press(&mut model, "s\n"), None, "nothing to say");
    assert_eq!(press(&mut model, "shello\x1b"), None);
    assert!(model.dialog.is_none());
}

#[test]
fn the_first_line_that_a_command_prints_is_shown_for_a_while() {
    let mut model = model(vec![summary("a", Status::Running)]);
    let generation = model.interest().generation;
    model.update(TopEvent::CommandEnded {
        args: vec!["pause".into(), "a".into()],
        output: "\n\u{1b}[2Jpaused a\nthe agent finishes first\n".into(),
        success: true,
    });
    assert_eq!(model.message.as_ref().unwrap().text, "paused a");
    assert_ne!(model.interest().generation, generation, "look at all loops");
    model.update(TopEvent::Clock(10_000 + MESSAGE_MS));
    assert_eq!(model.message, None);
    model.update(TopEvent::CommandEnded {
        args: vec!["stop".into(), "a".into()],
        output: String::new(),
        success: false,
    });
    assert_eq!(model.message.unwrap().text, "ralph stop a failed");
}

#[test]
fn a_typed_line_can_be_edited() {
    let mut model = model(vec![summary("a", Status::Running)]);
    press(&mut model, "sübung macht");
    let mut input = |input| {
        model.update(TopEvent::Input(input));
        match &model.dialog {
            Some(Dialog::Line { line, .. }) => (line.text.clone(), line.cursor),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(input(UserInput::Key(Key::Ctrl('w'))).0, "übung ");
    assert_eq!(input(UserInput::Key(Key::Home)).1, 0);
    assert_eq!(input(UserInput::Key(Key::Right)).1, "ü".len());
    assert_eq!(input(UserInput::Key(Key::Backspace)).0, "bung ");
    assert_eq!(
        input(UserInput::Paste("a\r\nb\u{1b}[2J".into())).0,
        "a bbung "
    );
    assert_eq!(input(UserInput::Key(Key::Ctrl('u'))).0, "bung ");
    assert_eq!(input(UserInput::Key(Key::Delete)).0, "ung ");
    assert_eq!(input(UserInput::Key(Key::Ctrl('k'))).0, "");
    assert_eq!(input(UserInput::Key(Key::Backspace)).0, "");
}

#[test]
fn the_mouse_selects_opens_and_scrolls() {
    let mut model = model(vec![
        summary("a", Status::Running),
        summary("b", Status::Done),
    ]);
    let mut input = |input| {
        model.update(TopEvent::Input(input));
        let tab = model.page.as_ref().map(|page| page.tab);
        (model.current().map(|one| one.name.clone()), tab)
    };
    assert_eq!(input(UserInput::Click(9, 4)), (Some("b".into()), None));
    assert_eq!(input(UserInput::Click(9, 20)), (Some("b".into()), None));
    assert_eq!(
        input(UserInput::Click(9, 4)),
        (Some("b".into()), Some(Tab::Activity))
    );
    assert_eq!(
        input(UserInput::Click(14, 1)),
        (Some("b".into()), Some(Tab::Checks))
    );
    assert_eq!(
        input(UserInput::Wheel(true)),
        (Some("b".into()), Some(Tab::Checks))
    );
}

#[test]
fn tabs_ask_for_what_they_show_and_follow_the_newest_iteration() {
    let mut model = model(vec![summary("a", Status::Running)]);
    press(&mut model, "\n");
    let wanted = |model: &TopModel| model.interest().page.unwrap().part;
    assert_eq!(wanted(&model), PagePart::Activity);
    let past = |newest: u32| {
        let iterations = (1..=newest).map(super::super::draw::iteration);
        TopEvent::Page(
            "a".into(),
            PageUpdate::Past(Arc::new(PageData {
                iterations: iterations.collect(),
                checks: vec![PageCheck {
                    command: "cargo test".into(),
                    slug: "cargo-test".into(),
                }],
                ..PageData::default()
            })),
        )
    };
    model.update(past(3));
    let request = |model: &TopModel| model.interest().page.unwrap().iteration;
    assert_eq!(request(&model), None);
    press(&mut model, "←");
    assert_eq!(request(&model), Some(2));
    model.update(past(4));
    assert_eq!(request(&model), Some(2), "a selected iteration stays");
    press(&mut model, "→→");
    assert_eq!(request(&model), None, "the newest is followed again");
    press(&mut model, "→→→");
    for (key, expected) in [
        ("2", PagePart::CheckLog),
        ("3", PagePart::Diff),
        ("\t", PagePart::Prompt),
        ("\t", PagePart::Past),
        ("7", PagePart::Past),
        ("\t", PagePart::Activity),
    ] {
        press(&mut model, key);
        assert_eq!(wanted(&model), expected, "{key:?}");
    }
    let lines = (0..100).map(|at| ActivityRow {
        at_ms: 0,
        kind: ActivityKind::Text,
        text: format!("line {at}"),
    });
    model.update(TopEvent::Page(
        "a".into(),
        PageUpdate::Activity {
            iteration: 4,
            lines: lines.collect(),
            dropped: 0,
        },
    ));
    press(&mut model, "↑↑");
    let (total, height) = draw::page_rows(&model);
    let first = |model: &TopModel| model.page.as_ref().unwrap().scroll.first(total, height);
    assert_eq!((total, first(&model)), (100, 100 - height - 2));
    press(&mut model, "↓↓↓↓");
    assert_eq!(first(&model), 100 - height);
    let odd = PageUpdate::Diff(DiffData::default());
    model.update(TopEvent::Page("another".into(), odd));
    assert!(model.page.as_ref().unwrap().diff.is_none());
    press(&mut model, "q");
    assert!(model.page.is_none());
    assert_eq!(press(&mut model, "q"), Some(TopEffect::Quit));
}
