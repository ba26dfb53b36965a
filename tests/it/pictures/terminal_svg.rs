//! Draws what a terminal shows as SVG: text with its colors, in a window.

use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar as _;

/// The size of a cell, and the space around the text, in pixels.
const CELL: (f64, f64) = (8.4, 17.5);
const MARGIN: f64 = 16.0;
const TITLE: f64 = 34.0;
const BACK: &str = "#141a26";
const TEXT: &str = "#dfe5ee";

/// The 16 colors of a terminal.
const COLORS: [&str; 16] = [
    "#2b3446", "#f0806a", "#5cc9a7", "#e5b455", "#6ea8ee", "#c394e8", "#56c3d6", "#c5cdd9",
    "#77849a", "#ff9c84", "#7be0bf", "#f5ca74", "#8fc0fa", "#d7b1f5", "#7fdbea", "#ffffff",
];

/// How a cell is drawn.
#[derive(Clone, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a terminal sets each of them on its own"
)]
struct CellStyle {
    front: Option<String>,
    back: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
    is_reversed: bool,
}

/// Cells of one style in a row.
struct CellRun {
    style: CellStyle,
    column: usize,
    width: usize,
    text: String,
}

/// Returns a picture of the screen, given its rows with escape sequences for colors.
pub(super) fn svg(title: &str, screen: &str) -> String {
    let rows: Vec<&str> = screen.trim_end().lines().collect();
    let mut style = CellStyle::default();
    let rows: Vec<Vec<CellRun>> = rows.iter().map(|row| runs(row, &mut style)).collect();
    let end = |row: &Vec<CellRun>| row.last().map_or(0, |run| run.column + run.width);
    let columns = rows.iter().map(end).max().unwrap_or(0);
    let width = columns as f64 * CELL.0 + 2.0 * MARGIN;
    let height = rows.len() as f64 * CELL.1 + TITLE + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, 'SF Mono', 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"14\" fill=\"{TEXT}\">\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"10\" fill=\"{BACK}\"/>\n"
    );
    for (at, color) in ["#f0806a", "#e5b455", "#5cc9a7"].iter().enumerate() {
        let x = 20 + at * 18;
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"17\" r=\"5.5\" fill=\"{color}\"/>"
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"22\" text-anchor=\"middle\" font-size=\"13\" fill=\"#8d99ad\">{title}</text>",
        width / 2.0
    );
    for (at, row) in rows.iter().enumerate() {
        let y = TITLE + at as f64 * CELL.1;
        for run in row {
            draw(&mut svg, run, y);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, run: &CellRun, y: f64) {
    let (x, width) = (
        MARGIN + run.column as f64 * CELL.0,
        run.width as f64 * CELL.0,
    );
    let style = &run.style;
    let (mut front, mut back) = (style.front.clone(), style.back.clone());
    if style.is_reversed {
        let text = front.unwrap_or_else(|| TEXT.into());
        front = Some(back.unwrap_or_else(|| BACK.into()));
        back = Some(text);
    }
    if let Some(back) = back {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{back}\"/>",
            CELL.1
        );
    }
    if run.text.trim().is_empty() {
        return;
    }
    let _ = write!(
        svg,
        "<text xml:space=\"preserve\" x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\"",
        y + 13.0
    );
    if let Some(front) = front {
        let _ = write!(svg, " fill=\"{front}\"");
    }
    for (is_set, attribute) in [
        (style.is_bold, "font-weight=\"700\""),
        (style.is_dim, "opacity=\"0.62\""),
        (style.is_italic, "font-style=\"italic\""),
        (style.is_underlined, "text-decoration=\"underline\""),
    ] {
        if is_set {
            let _ = write!(svg, " {attribute}");
        }
    }
    let text = run.text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, ">{text}</text>");
}

/// Splits a row into runs of one style, without spaces at its end. A style lasts until it is changed,
/// also in the next row.
fn runs(row: &str, style: &mut CellStyle) -> Vec<CellRun> {
    let mut runs: Vec<CellRun> = Vec::new();
    let mut column = 0;
    let mut parts = row.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let mut add = |text: &str, style: &CellStyle| {
        for c in text.chars() {
            let width = c.width().unwrap_or(0);
            match runs.last_mut() {
                Some(run) if run.style == *style && run.column + run.width == column => {
                    run.text.push(c);
                    run.width += width;
                }
                _ => runs.push(CellRun {
                    style: style.clone(),
                    column,
                    width,
                    text: c.to_string(),
                }),
            }
            column += width;
        }
    };
    add(first, style);
    for part in parts {
        let Some((codes, text)) = part.strip_prefix('[').and_then(|rest| rest.split_once('m'))
        else {
            continue;
        };
        apply(codes, style);
        add(text, style);
    }
    while let Some(run) = runs.last_mut() {
        let is_plain = run.style.back.is_none() && !run.style.is_reversed;
        if !is_plain {
            break;
        }
        let text = run.text.trim_end();
        run.width -= run.text.len() - text.len();
        run.text.truncate(text.len());
        if !run.text.is_empty() {
            break;
        }
        runs.pop();
    }
    runs
}

/// Applies the numbers of a sequence that sets colors.
fn apply(codes: &str, style: &mut CellStyle) {
    let mut codes = codes
        .split([';', ':'])
        .map(|code| code.parse().unwrap_or(0));
    while let Some(code) = codes.next() {
        let color = |at: u32| COLORS.get(at as usize).map(|color| (*color).to_owned());
        match code {
            0 => *style = CellStyle::default(),
            1 => style.is_bold = true,
            2 => style.is_dim = true,
            3 => style.is_italic = true,
            4 => style.is_underlined = true,
            7 => style.is_reversed = true,
            22 => (style.is_bold, style.is_dim) = (false, false),
            23 => style.is_italic = false,
            24 => style.is_underlined = false,
            27 => style.is_reversed = false,
            30..=37 => style.front = color(code - 30),
            38 => style.front = extended(&mut codes),
            39 => style.front = None,
            40..=47 => style.back = color(code - 40),
            48 => style.back = extended(&mut codes),
            49 => style.back = None,
            90..=97 => style.front = color(code - 82),
            100..=107 => style.back = color(code - 92),
            _ => {}
        }
    }
}

/// Returns the color of `5;N` or `2;R;G;B`.
fn extended(codes: &mut impl Iterator<Item = u32>) -> Option<String> {
    let kind = codes.next()?;
    let first = codes.next()?;
    if kind == 2 {
        let (green, blue) = (codes.next()?, codes.next()?);
        return Some(format!("#{first:02x}{green:02x}{blue:02x}"));
    }
    Some(match first {
        0..=15 => COLORS[first as usize].to_owned(),
        // A cube of 6 x 6 x 6 colors, then shades of gray.
        16..=231 => {
            let part = |by: u32| match (first - 16) / by % 6 {
                0 => 0,
                step => 55 + step * 40,
            };
            format!("#{:02x}{:02x}{:02x}", part(36), part(6), part(1))
        }
        _ => {
            let shade = 8 + (first.min(255) - 232) * 10;
            format!("#{shade:02x}{shade:02x}{shade:02x}")
        }
    })
}

#[test]
fn colors_and_widths_are_kept() {
    let drawn = svg(
        "t",
        "a\u{1b}[1;31mred <b>\u{1b}[0m \u{1b}[38;5;196mX\u{1b}[48;2;1;2;3mY\u{1b}[m\n日本\u{1b}[7mR\u{1b}[27m  \n",
    );
    for part in [
        ">a</text>",
        "fill=\"#f0806a\" font-weight=\"700\">red &lt;b></text>",
        "fill=\"#ff0000\">X</text>",
        "fill=\"#010203\"/>",
        "textLength=\"33.6\" lengthAdjust=\"spacingAndGlyphs\">日本</text>",
        "fill=\"#141a26\">R</text>",
    ] {
        assert!(drawn.contains(part), "{part} is not in {drawn}");
    }
}
