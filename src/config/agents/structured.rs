//! Do the words of a command ask for an agent's events?

/// A word that many agents know for a longer one.
const SHORT: (&str, &str) = ("-o", "--output-format");

/// Whether these words ask for the stream: all of its own are among them.
pub fn says(words: &[String], stream: &[String]) -> bool {
    groups(stream).all(|(option, value)| match value {
        None => words.iter().any(|word| word == option),
        Some(value) => values(words, option).any(|given| given == value),
    })
}

/// Whether these words choose a form of output themselves. What an agent is told twice it may refuse.
pub fn chooses(words: &[String], stream: &[String]) -> bool {
    let valued = groups(stream).any(|(_, value)| value.is_some());
    groups(stream).any(|(option, value)| match value {
        // Beside an option with a value it only says how much is told.
        None => !valued && words.iter().any(|word| word == option),
        Some(_) => values(words, option).next().is_some(),
    })
}

/// Options, each with its value if it has one.
fn groups(stream: &[String]) -> impl Iterator<Item = (&str, Option<&str>)> {
    let is_option = |word: &String| word.starts_with('-');
    let at = stream
        .iter()
        .enumerate()
        .filter(move |(_, word)| is_option(word));
    at.map(move |(at, option)| {
        let value = stream.get(at + 1).filter(|value| !is_option(value));
        (option.as_str(), value.map(String::as_str))
    })
}

/// What is given for an option, spelled `--option value` or `--option=value`.
fn values<'a>(words: &'a [String], option: &'a str) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(move |(at, word)| {
        let word = word.as_str();
        let short = option == SHORT.1 && word == SHORT.0;
        if word == option || short {
            return Some(words.get(at + 1).map_or("", String::as_str));
        }
        word.strip_prefix(option)?.strip_prefix('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_asks_for_events_if_all_of_the_words_are_there() {
        let stream = "--output-format stream-json --verbose";
        for (line, says_it, chosen) in [
            ("-p --output-format stream-json --verbose", true, true),
            ("-p --verbose --output-format=stream-json", true, true),
            ("-p --verbose -o stream-json", true, true),
            ("-p --output-format stream-json", false, true),
            ("-p --verbose", false, false),
            ("-p --output-format json --verbose", false, true),
            ("-p --output-format", false, true),
            ("-p stream-json", false, false),
            ("", false, false),
        ] {
            assert_eq!(says(&words(line), &words(stream)), says_it, "{line}");
            assert_eq!(chooses(&words(line), &words(stream)), chosen, "{line}");
        }
        assert!(says(&words("exec --json -"), &words("--json")));
        assert!(chooses(&words("exec --json -"), &words("--json")));
        assert!(!says(&words("exec -"), &words("--json")));
    }
}
