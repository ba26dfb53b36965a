//! The panel at the bottom of the console: what the loop is doing, its checks and limits, what
//! happens next, and the keys.

use super::console::text_width;
use super::key_input::{KeyInput, KeyMode};
use super::key_rows::{editor, help_rows, key_list};
use super::live_line::{self, LiveStatus, TimeStyle};
use super::markdown::MEASURE;
use super::rest_text::clock;
use super::status::resting_until;
use super::{StyledText, TextStyle, display_width, one_line, truncate_to_width};
use crate::engine::display::wrap;
use crate::engine::event::Request;
use crate::engine::format::{plural, thousands};
use crate::engine::{Phase, State};
use std::time::Duration;

/// The data that the panel shows in addition to [`State`].
pub(super) struct PanelStatus<'a> {
    pub(super) name: &'a str,
    pub(super) since_event: Duration,
    pub(super) silent_for: Option<Duration>,
    /// The dollars and tokens, including those of the running iteration. `None` if the dollars are
    /// unknown.
    pub(super) spent: (Option<f64>, u64),
    pub(super) times: TimeStyle,
    /// `None` if no keys can be read.
    pub(super) keys: Option<&'a KeyInput>,
    /// The size of the terminal.
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Terminals with fewer rows than this show only the first row of the panel.
const MIN_ROWS: usize = 10;
/// Narrower terminals show only what the loop is doing.
const MIN_COLUMNS: usize = 20;
/// The maximum number of rows that show the agent's unfinished line above the panel.
const UNFINISHED_ROWS: usize = 3;
/// The number of cells of a bar.
const BAR: usize = 5;
/// Maximum numbers of columns of a check's name, the preferred one first.
const NAME_WIDTHS: [usize; 2] = [24, 12];
/// Maximum number of words in the short name of a check.
const NAME_WORDS: usize = 3;
/// The space between the parts of a row.
const GAP: usize = 3;

/// Returns the rows of the panel.
pub(super) fn rows(state: &State, status: &PanelStatus<'_>) -> Vec<StyledText> {
    let width = status.columns - 1;
    if width < MIN_COLUMNS {
        let mut row = StyledText::new(true);
        row.push(&truncate_to_width(&activity(state, status), width));
        return vec![row];
    }
    let mut rows = vec![title(state, status, width)];
    let editor = status.keys.and_then(|keys| match &keys.mode {
        KeyMode::Message(text) => Some(editor(text, width)),
        _ => None,
    });
    if status.rows >= MIN_ROWS {
        let help = status.keys.filter(|keys| keys.mode == KeyMode::Help);
        rows.push(checks_and_limits(state, status, width));
        rows.extend(help.map(|keys| help_rows(keys, width)).unwrap_or_default());
        if editor.is_none() {
            rows.push(next_and_keys(state, status, width));
        }
    }
    rows.extend(editor);
    rows
}

/// Returns the end of the agent's unfinished line.
pub(super) fn unfinished_rows(text: &str) -> Vec<StyledText> {
    let width = text_width();
    let texts = wrap(text, width.min(MEASURE), 0, 0);
    let shown = texts.len().saturating_sub(UNFINISHED_ROWS);
    let row = |text: &String| {
        let mut row = StyledText::new(true);
        row.push_styled("  │ ", TextStyle::Dim)
            .push(&truncate_to_width(text, width));
        row
    };
    texts[shown..].iter().map(row).collect()
}

/// Formats the first row: `── demo · iteration 2/25 · 1m 5s ─────`.
fn title(state: &State, status: &PanelStatus<'_>, width: usize) -> StyledText {
    let name = truncate_to_width(&one_line(status.name), width.saturating_sub(4).min(40));
    let left = width.saturating_sub(display_width(&name) + 7);
    let parts = truncate_to_width(&activity(state, status), left);
    let mut row = StyledText::new(true);
    row.push_styled("── ", TextStyle::Dim)
        .push_styled(&name, TextStyle::Bold)
        .push_styled(" · ", TextStyle::Dim)
        .push(&parts)
        .push(" ");
    let rule = "─".repeat(width.saturating_sub(row.columns()));
    row.push_styled(&rule, TextStyle::Dim);
    row
}

/// Formats what the loop is doing, and for how long.
fn activity(state: &State, status: &PanelStatus<'_>) -> String {
    let live = LiveStatus {
        since_event: status.since_event,
        silent_for: status.silent_for,
        spend: Vec::new(),
    };
    let parts = live_line::parts(state, live, status.times);
    one_line(&parts.join(" · "))
}

/// Formats the second row: the checks on the left, and the spending on the right.
fn checks_and_limits(state: &State, status: &PanelStatus<'_>, width: usize) -> StyledText {
    let bars = meters(state, status.spent, true);
    let numbers = meters(state, status.spent, false);
    let names = |index: usize| checks(state, Some(NAME_WIDTHS[index]));
    let marks = checks(state, None);
    let candidates = [
        (names(0), &bars),
        (names(1), &bars),
        (names(1), &numbers),
        (marks.clone(), &bars),
        (marks.clone(), &numbers),
    ];
    for (checks, meters) in &candidates {
        if checks.columns() + GAP + meters.columns() <= width {
            return spread(checks, meters, width);
        }
    }
    if marks.columns() <= width {
        return marks;
    }
    let mut count = StyledText::new(true);
    let text = format!(" {}", plural(state.checks.len() as u64, "check"));
    count.push(&truncate_to_width(&text, width));
    count
}

/// Formats the third row: what happens next on the left, and the keys on the right.
fn next_and_keys(state: &State, status: &PanelStatus<'_>, width: usize) -> StyledText {
    let is_moving = status.keys.is_some_and(|keys| keys.is_moving);
    let text = format!(" → {}", next(state, is_moving, status.since_event));
    let keys = status.keys.map(key_list);
    let keys = keys.filter(|keys| keys.columns() <= width);
    let keys = keys.unwrap_or_else(|| StyledText::new(true));
    let left = width.saturating_sub(keys.columns() + GAP);
    let text = if left < 16 && keys.columns() > 0 {
        String::new()
    } else {
        truncate_to_width(&text, left.max(1))
    };
    let mut row = StyledText::new(true);
    let style = match state.request {
        Request::Go => TextStyle::Dim,
        _ => TextStyle::Yellow,
    };
    row.push_styled(&text, style);
    spread(&row, &keys, width)
}

/// Returns what the loop does after what it is doing now.
fn next(state: &State, is_moving: bool, since_event: Duration) -> String {
    let after = match state.phase {
        Phase::Resting { .. } | Phase::NotStarted => "",
        Phase::Checking if state.iteration == 0 => " after the preflight checks",
        _ => " after this iteration",
    };
    match state.request {
        _ if is_moving => return format!("to the background{after}"),
        Request::Pause => return format!("pauses{after}"),
        Request::Stop => return format!("stops{after}"),
        Request::PauseNow | Request::StopNow => return "stops".into(),
        Request::Go => {}
    }
    let limits = &state.plan.limits;
    let is_last =
        limits.iterations.is_some_and(|max| state.counted >= max) || !state.will_continue();
    let following = if is_last {
        "the loop ends".to_owned()
    } else {
        format!("iteration {}", state.iteration + 1)
    };
    match &state.phase {
        Phase::Running { .. } | Phase::Killing { .. } if !state.checks.is_empty() => {
            format!("checks, then done or {following}")
        }
        Phase::Checking if state.iteration == 0 => "iteration 1".into(),
        Phase::Checking | Phase::Looking => format!("done if green, else {following}"),
        Phase::Resting { .. } => {
            let now_ms = state
                .wall_ms
                .saturating_add_unsigned(since_event.as_millis() as u64);
            let at = resting_until(state).map(|at| format!(" at {}", clock(at, now_ms)));
            format!("{following}{}", at.unwrap_or_default())
        }
        Phase::Draining { .. } => "the loop ends with its child loops".into(),
        _ => format!("done or {following}"),
    }
}

/// Formats the marks of the checks, with names of at most `name_width` columns.
fn checks(state: &State, name_width: Option<usize>) -> StyledText {
    let mut row = StyledText::new(true);
    let checks = &state.plan.proof.checks;
    if checks.is_empty() {
        row.push_styled(" no checks", TextStyle::Dim);
        return row;
    }
    for (at, check) in checks.iter().enumerate() {
        let (mark, style) = check_mark(state, at);
        row.push(if name_width.is_some() && at > 0 {
            "  "
        } else {
            " "
        });
        row.push_styled(mark, style);
        if let Some(width) = name_width {
            let name = truncate_to_width(&short_name(&check.command), width);
            row.push(" ").push(&name);
        }
    }
    row
}

/// Returns what a person calls a check: its first words, without a path and flags.
fn short_name(command: &str) -> String {
    let is_word = |word: &&str| !word.starts_with(|c: char| "-#|&;<>(){}".contains(c));
    let command = one_line(command);
    let words = command.split(' ').take_while(is_word).take(NAME_WORDS);
    let name = words.collect::<Vec<_>>().join(" ");
    let name = name.trim_start_matches("./").trim_end_matches(';');
    if name.is_empty() {
        command
    } else {
        name.to_owned()
    }
}

/// Returns the mark of a check: its result, or whether it is running. The marks differ in shape, not
/// only in color.
fn check_mark(state: &State, check: usize) -> (&'static str, TextStyle) {
    let is_checking = state.phase == Phase::Checking;
    let running = state.checks.iter().position(Option::is_none);
    if is_checking && running == Some(check) {
        return ("◐", TextStyle::Yellow);
    }
    match state.last_check_report(check) {
        Some(report) if report.is_green() => ("●", TextStyle::Green),
        Some(_) => ("○", TextStyle::Red),
        None => ("·", TextStyle::Dim),
    }
}

/// Formats the dollars and tokens, each with a bar if it has a limit.
fn meters(state: &State, (cost, tokens): (Option<f64>, u64), with_bars: bool) -> StyledText {
    let limits = &state.plan.limits;
    let mut row = StyledText::new(true);
    let mut meter = |label: &str, text: String, share: Option<f64>| {
        if row.columns() > 0 {
            row.push("   ");
        }
        if !label.is_empty() {
            row.push_styled(label, TextStyle::Dim).push(" ");
        }
        if let Some(share) = share.filter(|_| with_bars) {
            bar(share, &mut row);
            row.push(" ");
        }
        row.push(&text);
    };
    let share = |used: f64, max: f64| if max > 0.0 { used / max } else { 1.0 };
    match (cost, limits.cost_usd) {
        (cost, Some(max)) => {
            let text = cost.map_or_else(|| "?".into(), cents);
            let text = format!("{text}/{}", cents(max));
            meter("cost", text, Some(share(cost.unwrap_or(0.0), max)));
        }
        (Some(cost), None) => meter("cost", cents(cost), None),
        (None, None) => {}
    }
    match limits.tokens {
        Some(max) => {
            let text = format!("{}/{}", short_count(tokens), short_count(max));
            meter("tokens", text, Some(share(tokens as f64, max as f64)));
        }
        None if tokens > 0 => meter("tokens", short_count(tokens), None),
        None => {}
    }
    row
}

/// Formats dollars with cents, which leaves more room than the four digits of a sum below a dollar.
fn cents(usd: f64) -> String {
    format!("${usd:.2}")
}

fn short_count(count: u64) -> String {
    thousands(count).replace(".0", "")
}

/// Appends a bar: `▰▰▱▱▱▱`.
fn bar(share: f64, row: &mut StyledText) {
    let style = match share {
        ..0.7 => TextStyle::Green,
        ..0.9 => TextStyle::Yellow,
        _ => TextStyle::Red,
    };
    let full = (share * BAR as f64).round().clamp(0.0, BAR as f64) as usize;
    // What has been spent is never shown as nothing.
    let full = if share > 0.0 { full.max(1) } else { full };
    row.push_styled(&"▰".repeat(full), style)
        .push_styled(&"▱".repeat(BAR - full), TextStyle::Dim);
}

/// Puts one text at the left and another at the right end of a row.
fn spread(left: &StyledText, right: &StyledText, width: usize) -> StyledText {
    let mut row = left.clone();
    if right.columns() > 0 {
        let space = width.saturating_sub(left.columns() + right.columns());
        row.push(&" ".repeat(space)).append(right);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::super::live_line::tests::plan;
    use super::*;
    use crate::engine::plain_text::plain;
    use serde_json::json;

    fn state(checks: &[&str]) -> State {
        let mut plan = plan();
        let check = |command: &&str| json!({"command": command, "slug": command, "timeout_ms": 0, "on_fail": "append"});
        plan.proof.checks =
            serde_json::from_value(checks.iter().map(check).collect()).expect("checks");
        (plan.limits.cost_usd, plan.limits.tokens) = (Some(5.0), Some(400_000));
        let mut state = State::new(plan);
        state.checks = vec![None; checks.len()];
        (state.iteration, state.counted) = (1, 1);
        state.phase = Phase::Running {
            started: true,
            since_ms: 0,
            stop_at_ms: None,
        };
        state
    }

    fn shown(state: &State, columns: usize, rows: usize, keys: Option<&KeyInput>) -> Vec<String> {
        let status = PanelStatus {
            name: "shop",
            since_event: Duration::ZERO,
            silent_for: None,
            spent: (Some(4.2), 12_000),
            times: TimeStyle::Elapsed,
            keys,
            columns,
            rows,
        };
        let rows = super::rows(state, &status);
        assert!(rows.iter().all(|row| row.columns() < columns), "{columns}");
        let texts = rows.iter().map(|row| plain(row.as_str()).into_owned());
        texts.collect()
    }

    #[test]
    fn the_panel_uses_the_room_it_has() {
        let state = state(&["./test.sh", "cargo clippy --all", "npm run lint && x"]);
        let keys = KeyInput::new(true);
        assert_eq!(
            shown(&state, 100, 24, Some(&keys))[1..],
            [
                " · test.sh  · cargo clippy  · npm run lint           cost ▰▰▰▰▱ $4.20/$5.00   tokens ▰▱▱▱▱ 12k/400k",
                " → checks, then done or iteration 2                        p pause  s say  q stop  d detach  ? help",
            ]
        );
        assert_eq!(
            shown(&state, 80, 24, Some(&keys))[1],
            " · test.sh  · cargo clippy  · npm run lint   cost $4.20/$5.00   tokens 12k/400k"
        );
        assert_eq!(
            shown(&state, 50, 24, Some(&keys))[1..],
            [
                " · · ·         cost $4.20/$5.00   tokens 12k/400k",
                "         p pause  s say  q stop  d detach  ? help",
            ]
        );
        assert_eq!(shown(&state, 80, 6, Some(&keys)).len(), 1);
        for columns in 2..200 {
            shown(&state, columns, 24, Some(&keys));
            shown(&state, columns, 24, None);
        }
    }

    #[test]
    fn a_message_and_the_help_replace_the_keys() {
        let state = state(&[]);
        let mut keys = KeyInput::new(false);
        keys.mode = KeyMode::Message("use the new parser ".repeat(9));
        for columns in 4..120 {
            shown(&state, columns, 24, Some(&keys));
        }
        assert!(shown(&state, 80, 24, Some(&keys))[2].ends_with("the new parser "));
        keys.mode = KeyMode::Help;
        let rows = shown(&state, 80, 24, Some(&keys));
        assert_eq!(
            (rows.len(), rows[1].as_str()),
            (
                7,
                " no checks                       cost ▰▰▰▰▱ $4.20/$5.00   tokens ▰▱▱▱▱ 12k/400k"
            )
        );
        assert!(
            !rows.iter().any(|row| row.contains("background")),
            "{rows:?}"
        );
    }

    #[test]
    fn a_request_says_what_happens_next() {
        let mut state = state(&["true"]);
        let next = |state: &State, is_moving| super::next(state, is_moving, Duration::ZERO);
        state.request = Request::Pause;
        assert_eq!(next(&state, false), "pauses after this iteration");
        assert_eq!(next(&state, true), "to the background after this iteration");
        state.request = Request::Go;
        state.counted = 3;
        assert_eq!(next(&state, false), "checks, then done or the loop ends");
        state.phase = Phase::Checking;
        assert_eq!(next(&state, false), "done if green, else the loop ends");
    }
}
