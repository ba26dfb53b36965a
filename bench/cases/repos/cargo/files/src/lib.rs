//! Wraps text at a width.

/// Returns lines of at most `width` characters, broken between words. A longer word has a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().unwrap();
        if last.len() > width {
            lines.push(word.to_string());
        } else {
            last.push_str(word);
            last.push(' ');
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn a_long_word_has_its_own_line() {
        assert_eq!(wrap("a incomprehensible b", 5), ["a", "incomprehensible", "b"]);
    }

    #[test]
    fn lines_have_no_trailing_space() {
        assert!(wrap("one two three", 7).iter().all(|line| !line.ends_with(' ')));
    }
}
