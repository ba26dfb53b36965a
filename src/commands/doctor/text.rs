//! Everything that was found out, as a person reads it: groups of rows, and a last line that says what to do.

use super::report::{Plugin, Program, Report};
use crate::engine::format::{bytes, plural};
use crate::ui::event_line::pays;
use crate::ui::{Paint, columns, one_line, paint};
use std::fmt::Write as _;

/// How a row is to be taken.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Good,
    /// Needed, and not there.
    Bad,
    /// Not there, and not needed.
    Without,
}

struct Row {
    mark: Mark,
    name: String,
    value: String,
    note: String,
}

fn row(mark: Mark, name: &str, value: impl Into<String>, note: impl Into<String>) -> Row {
    Row {
        mark,
        name: name.to_owned(),
        value: value.into(),
        note: note.into(),
    }
}

fn good_or(is_good: bool, otherwise: Mark) -> Mark {
    if is_good { Mark::Good } else { otherwise }
}

pub(crate) fn text(report: &Report, colour: bool) -> String {
    // None of them is needed; that one is, the last line says.
    let agents = report
        .agents
        .iter()
        .map(|agent| program(agent, false))
        .collect();
    let tools = report
        .tools
        .iter()
        .map(|tool| program(tool, tool.name == "git"))
        .collect();
    let mut text = format!("ralph {}\n", report.ralph);
    let groups = [
        ("Agents", agents),
        ("Tools", tools),
        ("In sessions", report.plugins.iter().map(plugin).collect()),
        ("System", system(report)),
        ("State", state(report)),
        ("Here", here(report)),
    ];
    let all = groups.iter().flat_map(|(_, rows): &(_, Vec<Row>)| rows);
    let wide = all.map(|row| columns(&row.name)).max().unwrap_or(0);
    for (title, rows) in groups.iter().filter(|(_, rows)| !rows.is_empty()) {
        group(&mut text, title, rows, wide, colour);
    }
    text.push('\n');
    if report.ready {
        let _ = writeln!(
            text,
            "{} a loop can run here",
            paint("✔", Paint::Green, colour)
        );
    }
    for missing in &report.missing {
        let _ = writeln!(
            text,
            "{} needed: {}",
            paint("✘", Paint::Red, colour),
            one_line(missing)
        );
    }
    text
}

fn group(text: &mut String, title: &str, rows: &[Row], wide: usize, colour: bool) {
    let _ = writeln!(text, "\n{}", paint(title, Paint::Bold, colour));
    // Only values that something follows are lined up.
    let followed = rows.iter().filter(|row| !row.note.is_empty());
    let value_wide = followed.map(|row| columns(&row.value)).max().unwrap_or(0);
    for row in rows {
        let (sign, hue) = match row.mark {
            Mark::Good => ("✔", Paint::Green),
            Mark::Bad => ("✘", Paint::Red),
            Mark::Without => ("–", Paint::Dim),
        };
        let pad = |text: &str, to: usize| {
            format!("{text}{}", " ".repeat(to.saturating_sub(columns(text))))
        };
        let value = if row.note.is_empty() {
            row.value.clone()
        } else {
            pad(&row.value, value_wide)
        };
        let gap = if value.is_empty() || row.note.is_empty() {
            ""
        } else {
            "  "
        };
        let note = paint(&row.note, Paint::Dim, colour);
        let line = format!(
            "  {} {}  {value}{gap}{note}",
            paint(sign, hue, colour),
            pad(&row.name, wide)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn program(program: &Program, needed: bool) -> Row {
    let mark = good_or(
        program.works,
        if needed || program.installed {
            Mark::Bad
        } else {
            Mark::Without
        },
    );
    let value = match (&program.version, program.installed) {
        (Some(version), _) => version.as_str(),
        (None, true) => "?",
        (None, false) => "not there",
    };
    let note = match (&program.trouble, &program.login) {
        (Some(trouble), _) => trouble.clone(),
        (None, _) if program.installed && program.payer.is_some() => {
            let payer = program.payer.as_deref().unwrap_or_default();
            format!("{} · {}", program.title, pays(payer, &program.held_back))
        }
        (None, Some(login)) if program.installed && !login.is_empty() => {
            format!("{} · log in: {login}", program.title)
        }
        (None, _) if program.installed => program.title.clone(),
        (None, Some(_)) => program.install.clone(),
        (None, None) => format!("{}: {}", program.title, program.install),
    };
    row(mark, &program.name, one_line(value), one_line(&note))
}

fn plugin(plugin: &Plugin) -> Row {
    let mark = match (&plugin.trouble, plugin.installed) {
        (Some(_), _) => Mark::Bad,
        (None, installed) => good_or(installed, Mark::Without),
    };
    let command = plugin.command;
    let value = if plugin.installed {
        format!("{command} is there")
    } else {
        format!("no {command}")
    };
    let install = if plugin.installed {
        String::new()
    } else {
        format!("ralph plugin install {}", plugin.client)
    };
    row(
        mark,
        plugin.client,
        value,
        one_line(plugin.trouble.as_ref().unwrap_or(&install)),
    )
}

fn system(report: &Report) -> Vec<Row> {
    let rows = report.system.iter().map(|feature| {
        let version = feature
            .version
            .map(|version| format!(" (version {version})"))
            .unwrap_or_default();
        let mark = good_or(feature.available, Mark::Without);
        row(mark, feature.name, format!("{}{version}", feature.note), "")
    });
    rows.collect()
}

fn state(report: &Report) -> Vec<Row> {
    let state = &report.state;
    let mut facts = vec![
        if state.writable {
            "writable"
        } else {
            "not writable"
        }
        .to_owned(),
    ];
    if !state.exists {
        facts.push("made when the first loop starts".into());
    }
    facts.extend(state.free_bytes.map(|free| format!("{} free", bytes(free))));
    let mut loops: Vec<String> = state
        .loops
        .iter()
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    if state.unreadable > 0 {
        loops.push(format!("{} unreadable", state.unreadable));
    }
    let some = !loops.is_empty();
    let loops = if some {
        loops.join(", ")
    } else {
        "none yet".into()
    };
    vec![
        row(
            good_or(state.writable && state.enough_space, Mark::Bad),
            "directory",
            one_line(&state.path),
            facts.join(", "),
        ),
        row(good_or(some, Mark::Without), "loops", loops, ""),
    ]
}

fn here(report: &Report) -> Vec<Row> {
    let here = &report.workspace;
    let branch = here
        .branch
        .as_ref()
        .map_or_else(|| "no branch".into(), |branch| format!("on {branch}"));
    let git = match (here.changed_files, &here.trouble) {
        (_, Some(trouble)) => row(Mark::Bad, "git", one_line(trouble), ""),
        (Some(0), _) => row(
            Mark::Good,
            "git",
            format!("{}, clean", one_line(&branch)),
            "",
        ),
        (Some(count), _) => {
            let files = plural(u64::from(count), "file");
            row(
                Mark::Good,
                "git",
                format!("{}, {files} not committed", one_line(&branch)),
                "",
            )
        }
        (None, None) => row(Mark::Without, "git", "no repository", "git init"),
    };
    let prompt = if here.prompt_file {
        ("there", "")
    } else {
        ("not there", "ralph init")
    };
    let settings = if let Some(trouble) = &here.settings_trouble {
        row(Mark::Bad, "settings", one_line(trouble), "")
    } else if here.settings.is_empty() {
        row(Mark::Without, "settings", "none", "ralph init --settings")
    } else {
        row(Mark::Good, "settings", here.settings.join(", "), "")
    };
    let directory = row(Mark::Good, "directory", one_line(&here.path), "");
    let agent = report
        .agent
        .as_ref()
        .map(|agent| row(Mark::Good, "agent", one_line(agent), "by the settings"));
    let mut rows = vec![
        directory,
        git,
        row(
            good_or(here.prompt_file, Mark::Without),
            "PROMPT.md",
            prompt.0,
            prompt.1,
        ),
        settings,
    ];
    rows.extend(agent);
    rows
}
