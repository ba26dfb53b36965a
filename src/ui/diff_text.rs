//! Colors a patch.

use super::{StyledText, TextStyle};

/// Returns a patch, or git's statistics of one, with the usual colors.
pub(crate) fn patch(text: &str, color: bool) -> StyledText {
    let mut styled = StyledText::new(color);
    let mut in_hunk = false;
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        if line.starts_with("diff --git ") {
            in_hunk = false;
        }
        let style = match line.as_bytes().first() {
            Some(b'@') => {
                in_hunk = true;
                Some(TextStyle::Dim)
            }
            Some(b'+') if in_hunk => Some(TextStyle::Green),
            Some(b'-') if in_hunk => Some(TextStyle::Red),
            Some(b' ') | None => None,
            _ if in_hunk => Some(TextStyle::Dim),
            _ => Some(TextStyle::Bold),
        };
        match style {
            Some(style) => styled.push_styled(line, style),
            None => styled.push(line),
        };
        styled.push(end);
    }
    styled
}
