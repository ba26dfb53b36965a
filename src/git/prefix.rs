//! How a text is kept to its first characters while the rest is only counted.

/// A text that grows up to a number of characters.
pub(crate) struct Head {
    text: String,
    room: usize,
    dropped: u64,
}

impl Head {
    /// Keeps at most `room` characters.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            text: String::new(),
            room,
            dropped: 0,
        }
    }

    /// Adds what still fits.
    pub(crate) fn push(&mut self, more: &str) {
        let mut rest = more;
        if self.room > 0 {
            let mut ends = more.char_indices().map(|(at, _)| at).chain([more.len()]);
            // The end after `room` characters, or that of the text if it is shorter.
            let end = ends.nth(self.room).unwrap_or(more.len());
            let fits = &more[..end];
            self.room -= if end == more.len() {
                fits.chars().count()
            } else {
                self.room
            };
            self.text.push_str(fits);
            rest = &more[end..];
        }
        self.dropped += rest.chars().count() as u64;
    }

    /// The head, and how many characters did not fit.
    pub(crate) fn finish(self) -> (String, u64) {
        (self.text, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    fn cut(room: usize, parts: &[&str]) -> (String, u64) {
        let mut head = Head::new(room);
        for part in parts {
            head.push(part);
        }
        head.finish()
    }

    #[test]
    fn the_cut_falls_between_characters() {
        assert_eq!(cut(0, &["añ🦀"]), (String::new(), 3));
        assert_eq!(cut(2, &["añ🦀"]), ("añ".into(), 1));
        assert_eq!(cut(3, &["añ🦀"]), ("añ🦀".into(), 0));
        assert_eq!(cut(4, &["añ🦀"]), ("añ🦀".into(), 0));
        assert_eq!(cut(4, &["añ🦀", "", "🦀🦀", "x"]), ("añ🦀🦀".into(), 2));
    }
}
