//! How does it look? Readers of the journal: they hold nothing that it lacks, and never stall a loop.

pub mod console;
pub mod files;
pub mod line;
pub mod status;
pub mod stream;
pub mod summary;

/// Colour, where it helps and is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paint {
    /// Good.
    Green,
    /// Bad.
    Red,
    /// Mind this.
    Yellow,
    /// Less important.
    Dim,
    /// More important.
    Bold,
}

/// Text in a colour, if colours are on.
pub fn paint(text: &str, paint: Paint, on: bool) -> String {
    if !on || text.is_empty() {
        return text.to_owned();
    }
    let code = match paint {
        Paint::Green => 32,
        Paint::Red => 31,
        Paint::Yellow => 33,
        Paint::Dim => 2,
        Paint::Bold => 1,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Text cut to so many characters, with a mark where it was cut.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
