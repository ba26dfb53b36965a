//! Lays out rows of styled cells in columns that fit a terminal.

use super::{StyledText, TextStyle, display_width, one_line, truncate_to_width};
use crate::engine::display::char_width;

/// How a column is laid out.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TableColumn {
    /// Aligned to the left, never cut.
    Left,
    /// Aligned to the right, never cut.
    Right,
    /// Aligned to the left; cut at its end to at least this many columns.
    CutEnd(usize),
    /// Aligned to the left; cut at its beginning to at least this many columns, or left out.
    CutStart(usize),
    /// Takes what is left of the row; left out if that is too little.
    Rest,
}

/// A cell: a text of one line, or several parts with a style each.
#[derive(Clone, Default)]
pub(super) struct TableCell(Vec<(String, Option<TextStyle>)>);

impl TableCell {
    pub(super) fn new(text: &str, style: Option<TextStyle>) -> Self {
        Self(vec![(one_line(text), style)])
    }

    /// Adds a part, which must be one line.
    pub(super) fn and(mut self, text: &str, style: Option<TextStyle>) -> Self {
        self.0.push((text.to_owned(), style));
        self
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| display_width(text)).sum()
    }

    /// Cuts the end so that the cell fits.
    fn cut_end(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let (mut left, mut parts) = (width, Vec::new());
        for (text, style) in &self.0 {
            let text = truncate_to_width(text, left);
            left = left.saturating_sub(display_width(&text));
            parts.push((text, *style));
            if left == 0 {
                break;
            }
        }
        Self(parts)
    }

    /// Cuts the beginning so that the cell fits.
    fn cut_start(&self, width: usize) -> Self {
        let text: String = self.0.iter().map(|(text, _)| text.as_str()).collect();
        if self.width() <= width {
            return self.clone();
        }
        let mut left = width.saturating_sub(1);
        let end: Vec<char> = text
            .chars()
            .rev()
            .map_while(|c| {
                left = left.checked_sub(char_width(c))?;
                Some(c)
            })
            .collect();
        let text = std::iter::once('…').chain(end.into_iter().rev()).collect();
        Self(vec![(text, self.0.first().and_then(|(_, style)| *style))])
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::new(&text, None)
    }
}

/// The fewest columns that are worth a column for the rest of a row.
const REST_MIN: usize = 14;

/// A table with a fixed number of columns.
pub(super) struct TextTable {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<TableCell>>,
}

impl TextTable {
    /// Creates a table whose columns have these names. Without names, it has no heading.
    pub(super) fn new(columns: &[(&str, TableColumn)]) -> Self {
        let heading = columns
            .iter()
            .map(|(name, _)| TableCell::new(name, Some(TextStyle::Dim)));
        let has_heading = columns.iter().any(|(name, _)| !name.is_empty());
        Self {
            columns: columns.iter().map(|(_, column)| *column).collect(),
            rows: has_heading.then(|| heading.collect()).into_iter().collect(),
        }
    }

    pub(super) fn push(&mut self, cells: Vec<TableCell>) {
        self.rows.push(cells);
    }

    /// Appends the rows to `out`, each after `indent` spaces. Cells are cut only if `width` is set.
    pub(super) fn print(&self, indent: usize, width: Option<usize>, out: &mut StyledText) {
        self.print_with(indent, width, out, |_, _| {});
    }

    /// Like [`TextTable::print`]; calls `after` after each row, with its number. The heading is row 0.
    pub(super) fn print_with(
        &self,
        indent: usize,
        width: Option<usize>,
        out: &mut StyledText,
        mut after: impl FnMut(usize, &mut StyledText),
    ) {
        let widths = self.widths(width.map(|width| width.saturating_sub(indent)));
        for (number, row) in self.rows.iter().enumerate() {
            let mut pending = indent;
            let mut is_first = true;
            for ((cell, column), width) in row.iter().zip(&self.columns).zip(&widths) {
                if *width == 0 {
                    continue;
                }
                if !std::mem::take(&mut is_first) {
                    pending += 2;
                }
                let cell = match column {
                    TableColumn::CutStart(_) => cell.cut_start(*width),
                    _ => cell.cut_end(*width),
                };
                let pad = width.saturating_sub(cell.width());
                if *column == TableColumn::Right {
                    pending += pad;
                }
                for (text, style) in &cell.0 {
                    if text.is_empty() {
                        continue;
                    }
                    out.push(&" ".repeat(std::mem::take(&mut pending)));
                    match style {
                        Some(style) => out.push_styled(text, *style),
                        None => out.push(text),
                    };
                }
                if *column != TableColumn::Right {
                    pending += pad;
                }
            }
            out.push("\n");
            after(number, out);
        }
    }

    /// Returns the width of each column; 0 for one that is left out.
    fn widths(&self, total: Option<usize>) -> Vec<usize> {
        let natural = |at: usize| self.rows.iter().map(|row| row[at].width()).max();
        let natural: Vec<usize> = (0..self.columns.len())
            .map(|at| natural(at).unwrap_or(0))
            .collect();
        let Some(total) = total else {
            return natural;
        };
        let mut widths = natural.clone();
        // The rest of the row is left out before the paths are.
        for dropped in 0..3 {
            widths.clone_from(&natural);
            for (width, column) in widths.iter_mut().zip(&self.columns) {
                let is_dropped = match column {
                    TableColumn::Rest => dropped > 0,
                    TableColumn::CutStart(_) => dropped > 1,
                    _ => false,
                };
                if is_dropped {
                    *width = 0;
                }
            }
            self.shrink(&mut widths, total);
            if used(&widths) <= total {
                break;
            }
        }
        widths
    }

    /// Shrinks the rest of the row first, then paths, then names.
    fn shrink(&self, widths: &mut [usize], total: usize) {
        for pass in 0..3 {
            for (at, column) in self.columns.iter().enumerate() {
                let min = match column {
                    TableColumn::Rest if pass == 0 => REST_MIN,
                    TableColumn::CutStart(min) if pass == 1 => *min,
                    TableColumn::CutEnd(min) if pass == 2 => *min,
                    _ => continue,
                };
                let over = used(widths).saturating_sub(total);
                if widths[at] > min {
                    widths[at] = widths[at].saturating_sub(over).max(min);
                }
            }
        }
    }
}

/// Returns the width of a row: two spaces follow every column but the last.
fn used(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown
        .map(|width| width + 2)
        .sum::<usize>()
        .saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(width: Option<usize>) -> String {
        let mut table = TextTable::new(&[
            ("NAME", TableColumn::CutEnd(4)),
            ("N", TableColumn::Right),
            ("PATH", TableColumn::CutStart(8)),
            ("NOW", TableColumn::Rest),
        ]);
        for (name, number, path, now) in [
            ("short", "7", "/home/a", "reads"),
            (
                "a-long-name",
                "30",
                "/home/somewhere/else",
                "writes a long text",
            ),
        ] {
            table.push(
                [name, number, path, now]
                    .map(|text| TableCell::new(text, None))
                    .to_vec(),
            );
        }
        let mut out = StyledText::new(false);
        table.print(0, width, &mut out);
        out.into_string()
    }

    #[test]
    fn columns_shrink_in_order_and_are_left_out_last() {
        assert_eq!(
            printed(None),
            "NAME          N  PATH                  NOW\n\
             short         7  /home/a               reads\n\
             a-long-name  30  /home/somewhere/else  writes a long text\n"
        );
        for width in [60, 50, 40, 30, 20, 16] {
            let text = printed(Some(width));
            assert!(
                text.lines().all(|line| display_width(line) <= width),
                "{text}"
            );
        }
        assert!(printed(Some(50)).contains("where/else"));
        assert_eq!(printed(Some(16)).lines().next(), Some("NAME          N"));
    }
}
