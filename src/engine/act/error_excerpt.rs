//! Shortens an agent's error output to the lines that say what went wrong.

/// Maximum length of an excerpt, in characters.
const EXCERPT_MAX: usize = 500;
/// Maximum number of lines in an excerpt, taken from the end.
const LAST_LINES: usize = 5;

/// Words that mark a line as an error message. Case is ignored.
const ERROR_TERMS: [&str; 12] = [
    "error",
    "unknown",
    "unrecognized",
    "invalid",
    "denied",
    "not found",
    "not valid",
    "unauthorized",
    "forbidden",
    "expired",
    "refused",
    "cannot",
];

/// Returns the part of a failed program's output that explains the failure: its last non-blank
/// lines.
///
/// If none of these lines looks like an error message, the last earlier line that does is put
/// first: a usage text or a stack trace may follow the message.
pub(crate) fn error_excerpt(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let last = lines.split_off(lines.len().saturating_sub(LAST_LINES));
    let names_error = |line: &&&str| {
        let line = line.to_lowercase();
        ERROR_TERMS.iter().any(|term| line.contains(term))
    };
    let explanation = lines
        .iter()
        .rev()
        .find(names_error)
        .filter(|_| !last.iter().any(|line| names_error(&line)));
    match explanation {
        None => tail(&last.join("\n"), EXCERPT_MAX),
        Some(line) => {
            let line: String = line.chars().take(EXCERPT_MAX / 2).collect();
            format!(
                "{line}\n…\n{}",
                tail(&last[1..].join("\n"), EXCERPT_MAX / 2)
            )
        }
    }
}

/// Returns the last `max` characters of `text`. A cut text begins with `…`, which counts as one of
/// them.
fn tail(text: &str, max: usize) -> String {
    match text.chars().count().saturating_sub(max) {
        0 => text.to_owned(),
        dropped => std::iter::once('…')
            .chain(text.chars().skip(dropped + 1))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_is_short_and_ends_where_the_text_ends() {
        for (text, excerpt) in [
            ("", ""),
            ("one\n\n  \ntwo\r\n", "one\ntwo"),
            ("1\n2\n3\n4\n5\n6\n", "2\n3\n4\n5\n6"),
            (
                "noise\nUnknown argument: x\n\nUsage:\n1\n2\n3\n4\n5\n",
                "Unknown argument: x\n…\n2\n3\n4\n5",
            ),
            (
                "error: early\n1\n2\n3\n4\nerror: late\n",
                "1\n2\n3\n4\nerror: late",
            ),
        ] {
            assert_eq!(error_excerpt(text), excerpt, "{text:?}");
        }
        let long = format!("{}end", "é".repeat(600));
        assert_eq!(error_excerpt(&long).chars().count(), EXCERPT_MAX);
        assert!(error_excerpt(&long).ends_with("éend"));
    }
}
