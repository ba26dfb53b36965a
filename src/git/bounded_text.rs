//! Keeps the first characters of a text and counts the others.

/// A text that grows up to a maximum number of characters.
pub(super) struct BoundedText {
    text: String,
    remaining: usize,
    dropped: u64,
}

impl BoundedText {
    pub(super) fn new(max_chars: usize) -> Self {
        Self {
            text: String::new(),
            remaining: max_chars,
            dropped: 0,
        }
    }

    /// Appends as much of `more` as fits.
    pub(super) fn push(&mut self, more: &str) {
        let mut rest = more;
        if self.remaining > 0 {
            let mut ends = more.char_indices().map(|(at, _)| at).chain([more.len()]);
            // The byte offset after `remaining` characters, or the end of a shorter text.
            let end = ends.nth(self.remaining).unwrap_or(more.len());
            let fits = &more[..end];
            self.remaining -= if end == more.len() {
                fits.chars().count()
            } else {
                self.remaining
            };
            self.text.push_str(fits);
            rest = &more[end..];
        }
        self.dropped += rest.chars().count() as u64;
    }

    /// Returns the text, and the number of characters that did not fit.
    pub(super) fn finish(self) -> (String, u64) {
        (self.text, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::BoundedText;

    fn bounded(max_chars: usize, parts: &[&str]) -> (String, u64) {
        let mut text = BoundedText::new(max_chars);
        for part in parts {
            text.push(part);
        }
        text.finish()
    }

    #[test]
    fn the_text_is_cut_between_characters() {
        assert_eq!(bounded(0, &["añ🦀"]), (String::new(), 3));
        assert_eq!(bounded(2, &["añ🦀"]), ("añ".into(), 1));
        assert_eq!(bounded(3, &["añ🦀"]), ("añ🦀".into(), 0));
        assert_eq!(bounded(4, &["añ🦀"]), ("añ🦀".into(), 0));
        assert_eq!(bounded(4, &["añ🦀", "", "🦀🦀", "x"]), ("añ🦀🦀".into(), 2));
    }
}
