//! Renders the report for people: groups of rows, then the problems to fix.

use super::report::{DoctorReport, PluginReport, ProgramReport};
use crate::engine::format::{bytes, plural};
use crate::ui::event_line::billing_text;
use crate::ui::{StyledText, TextStyle, display_width, hang, one_line};

/// A note that gets fewer columns than this continues below the value.
const NOTE_MIN: usize = 24;

#[derive(Clone, Copy, PartialEq)]
enum RowMark {
    Ok,
    /// The item is broken, or needed and missing.
    Bad,
    /// The item is missing, but not needed.
    Missing,
}

struct ReportRow {
    mark: RowMark,
    name: String,
    value: String,
    note: String,
}

fn row(mark: RowMark, name: &str, value: impl Into<String>, note: impl Into<String>) -> ReportRow {
    ReportRow {
        mark,
        name: name.to_owned(),
        value: value.into(),
        note: note.into(),
    }
}

fn ok_or(is_ok: bool, otherwise: RowMark) -> RowMark {
    if is_ok { RowMark::Ok } else { otherwise }
}

/// Renders the report. In a terminal of `columns` columns, long cells are broken between words.
pub(crate) fn text(report: &DoctorReport, color: bool, columns: Option<usize>) -> StyledText {
    // No particular agent is needed. If no agent is installed, the last lines say so.
    let agents = report
        .agents
        .iter()
        .map(|agent| program_row(agent, false))
        .collect();
    let tools = report
        .tools
        .iter()
        .map(|tool| program_row(tool, tool.name == "git"))
        .collect();
    let mut text = StyledText::new(color);
    text.push(&format!("ralph {}\n", report.ralph));
    let groups = [
        ("Agents", agents),
        ("Tools", tools),
        ("Plugin", report.plugins.iter().map(plugin_row).collect()),
        ("System", system_rows(report)),
        ("State", state_rows(report)),
        ("Here", workspace_rows(report)),
    ];
    let all = groups
        .iter()
        .flat_map(|(_, rows): &(_, Vec<ReportRow>)| rows);
    let name_width = all.map(|row| display_width(&row.name)).max().unwrap_or(0);
    for (title, rows) in groups.iter().filter(|(_, rows)| !rows.is_empty()) {
        render_group(&mut text, title, rows, name_width, columns);
    }
    text.push("\n");
    if report.ready {
        text.push_styled("✔", TextStyle::Green)
            .push(" a loop can run here\n");
    }
    for missing in &report.missing {
        text.push_styled("✘", TextStyle::Red)
            .push(" ")
            .push(&hang(
                &format!("needed: {}", one_line(missing)),
                columns,
                2,
                2,
            ))
            .push("\n");
    }
    text
}

fn render_group(
    text: &mut StyledText,
    title: &str,
    rows: &[ReportRow],
    name_width: usize,
    columns: Option<usize>,
) {
    text.push("\n")
        .push_styled(title, TextStyle::Bold)
        .push("\n");
    // Pad only values that a note follows.
    let with_note = rows.iter().filter(|row| !row.note.is_empty());
    let value_width = with_note
        .map(|row| display_width(&row.value))
        .max()
        .unwrap_or(0);
    for row in rows {
        let (symbol, style) = match row.mark {
            RowMark::Ok => ("✔", TextStyle::Green),
            RowMark::Bad => ("✘", TextStyle::Red),
            RowMark::Missing => ("–", TextStyle::Dim),
        };
        let pad = |text: &str, to: usize| {
            format!(
                "{text}{}",
                " ".repeat(to.saturating_sub(display_width(text)))
            )
        };
        let value = if row.note.is_empty() {
            row.value.clone()
        } else {
            pad(&row.value, value_width)
        };
        let gap = if value.is_empty() { "" } else { "  " };
        let name = format!(" {}  ", pad(&row.name, name_width));
        // The symbol and its indentation take three columns.
        let value_at = 3 + display_width(&name);
        let note_at = value_at + display_width(&value) + gap.len();
        text.push("  ").push_styled(symbol, style);
        if row.note.is_empty() {
            let value = hang(value.trim_end(), columns, value_at, value_at);
            text.push(format!("{name}{value}").trim_end());
        } else {
            // A value that leaves no room for its note has the note below it.
            let has_room = columns.is_none_or(|columns| note_at + NOTE_MIN <= columns);
            let indent = if has_room { note_at } else { value_at };
            let note = hang(&row.note, columns, note_at, indent);
            text.push(&format!("{name}{value}{gap}"));
            text.push_styled(&note, TextStyle::Dim);
        }
        text.push("\n");
    }
}

fn program_row(program: &ProgramReport, needed: bool) -> ReportRow {
    let mark = ok_or(
        program.works,
        if needed || program.installed {
            RowMark::Bad
        } else {
            RowMark::Missing
        },
    );
    let value = match (&program.version, program.installed) {
        (Some(version), _) => version.as_str(),
        (None, true) => "?",
        (None, false) => "not installed",
    };
    let note = match (&program.problem, &program.login) {
        (Some(problem), _) => problem.clone(),
        (None, _) if program.installed && program.payer.is_some() => {
            let payer = program.payer.as_deref().unwrap_or_default();
            format!(
                "{} · {}",
                program.title,
                billing_text(payer, &program.held_back)
            )
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

fn plugin_row(plugin: &PluginReport) -> ReportRow {
    let mark = match (&plugin.problem, plugin.installed) {
        (Some(_), _) => RowMark::Bad,
        (None, installed) => ok_or(installed, RowMark::Missing),
    };
    let command = &plugin.command;
    let value = if plugin.installed {
        format!("{command} installed")
    } else {
        format!("{command} not installed")
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
        one_line(plugin.problem.as_ref().unwrap_or(&install)),
    )
}

fn system_rows(report: &DoctorReport) -> Vec<ReportRow> {
    let rows = report.system.iter().map(|feature| {
        let version = feature
            .version
            .map(|version| format!(" (version {version})"))
            .unwrap_or_default();
        let mark = ok_or(feature.available, RowMark::Missing);
        row(mark, feature.name, format!("{}{version}", feature.note), "")
    });
    rows.collect()
}

fn state_rows(report: &DoctorReport) -> Vec<ReportRow> {
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
        facts.push("created when the first loop starts".into());
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
    let has_loops = !loops.is_empty();
    let loops = if has_loops {
        loops.join(", ")
    } else {
        "none yet".into()
    };
    vec![
        row(
            ok_or(state.writable && state.enough_space, RowMark::Bad),
            "directory",
            one_line(&state.path),
            facts.join(", "),
        ),
        row(ok_or(has_loops, RowMark::Missing), "loops", loops, ""),
    ]
}

fn workspace_rows(report: &DoctorReport) -> Vec<ReportRow> {
    let workspace = &report.workspace;
    let branch = workspace
        .branch
        .as_ref()
        .map_or_else(|| "no branch".into(), |branch| format!("on {branch}"));
    let git = match (workspace.changed_files, &workspace.git_error) {
        (_, Some(error)) => row(RowMark::Bad, "git", one_line(error), ""),
        (Some(0), _) => row(
            RowMark::Ok,
            "git",
            format!("{}, clean", one_line(&branch)),
            "",
        ),
        (Some(count), _) => {
            let files = plural(u64::from(count), "file");
            row(
                RowMark::Ok,
                "git",
                format!("{}, {files} not committed", one_line(&branch)),
                "",
            )
        }
        (None, None) => row(RowMark::Missing, "git", "no repository", "git init"),
    };
    let prompt = if workspace.prompt_file {
        ("found", "")
    } else {
        ("not found", "ralph init")
    };
    let settings = if let Some(error) = &workspace.settings_error {
        row(RowMark::Bad, "settings", one_line(error), "")
    } else if workspace.settings.is_empty() {
        row(
            RowMark::Missing,
            "settings",
            "none",
            "ralph init --settings",
        )
    } else if workspace.untrusted.is_empty() {
        row(RowMark::Ok, "settings", workspace.settings.join(", "), "")
    } else {
        let untrusted = workspace.untrusted.join(" and ");
        let note = format!("{untrusted} not trusted yet: read it, then run ralph trust");
        row(
            RowMark::Missing,
            "settings",
            workspace.settings.join(", "),
            note,
        )
    };
    let directory = row(RowMark::Ok, "directory", one_line(&workspace.path), "");
    let agent = report
        .agent
        .as_ref()
        .map(|agent| row(RowMark::Ok, "agent", one_line(agent), "from the settings"));
    let mut rows = vec![
        directory,
        git,
        row(
            ok_or(workspace.prompt_file, RowMark::Missing),
            "PROMPT.md",
            prompt.0,
            prompt.1,
        ),
        settings,
    ];
    rows.extend(agent);
    rows
}
